//! Tables of links: the bottleneck of a dumbbell, a link of a graph, the opposite direction, access links.

use aqumen_units::{Rate, Span};

use crate::channel::{Capacity, Channel, Losses};
use crate::field::{Buffer, Name, Packets, all_defaults, table};
use crate::spread::Spread;

/// Default buffer, large enough not to drop packets.
pub(crate) const BUFFER_DEFAULT: Buffer = Buffer::Packets(100_000);

table! {
    /// The link under test of a dumbbell.
    pub struct Bottleneck("the bottleneck link") {
        /// Its rate, or rates over time.
        pub rate: Option<Capacity>,
        /// Medium in place of a rate.
        pub channel: Option<Channel>,
        /// Losses on the wire, after the queue: a probability, or a table.
        pub loss: Option<Losses>,
        /// Its propagation delay.
        pub delay: Span,
        /// Capacity of its queue, in packets or bytes, without the packet in transmission.
        pub buffer: Buffer,
        /// The opposite direction.
        pub reverse: Reverse = Reverse::default(),
    }
}

table! {
    /// A link of a graph.
    pub struct GraphLink("a link") {
        /// Name; the opposite direction has the suffix `-reverse`.
        pub name: Name,
        /// Node at its start, whose queue it serves.
        pub from: Name,
        /// Node at its end.
        pub to: Name,
        /// Its rate, or rates over time.
        pub rate: Option<Capacity>,
        /// Medium in place of a rate.
        pub channel: Option<Channel>,
        /// Losses on the wire, after the queue: a probability, or a table.
        pub loss: Option<Losses>,
        /// Its propagation delay.
        pub delay: Span,
        /// Capacity of its queue, in packets or bytes, without the packet in transmission.
        pub buffer: Buffer = BUFFER_DEFAULT,
        /// Its AQM: a SPEC, or `test` for the AQM under test.
        pub aqm: String = "droptail".into(),
        /// Whether metrics and series are recorded; always on a link under test.
        pub record: bool = false,
        /// Target queue length, from which the deviation is measured; that of the nominal network on a link under test.
        pub target: Option<Packets>,
        /// Whether there is no link in the opposite direction.
        pub one_way: bool = false,
        /// The opposite direction.
        pub reverse: Reverse = Reverse::default(),
    }
}

table! {
    /// The opposite direction of a link.
    pub struct Reverse("the opposite direction") {
        /// Rate, or rates over time; that of the link if absent.
        pub rate: Option<Capacity>,
        /// Medium in place of a rate.
        pub channel: Option<Channel>,
        /// Losses on the wire, after the queue: a probability, or a table; none if absent.
        pub loss: Option<Losses>,
        /// Its propagation delay; that of the link if absent.
        pub delay: Option<Span>,
        /// Capacity of its queue.
        pub buffer: Buffer = BUFFER_DEFAULT,
        /// Its AQM: a SPEC, or `test` for the AQM under test.
        pub aqm: String = "droptail".into(),
        /// Whether metrics and series are recorded.
        pub record: bool = false,
        /// Target queue length, from which the deviation is measured.
        pub target: Option<Packets>,
    }
}

table! {
    /// A link between a host and a router, the same in both directions.
    pub struct Access("an access link") {
        /// Its rate.
        pub rate: Rate,
        /// Propagation delay, or its distribution over the flows, drawn for each side separately.
        pub delay: Spread = Spread::fixed(Span::ZERO),
        /// Losses on the wire in each direction: a probability, or a table.
        pub loss: Option<Losses>,
        /// Capacity of its queue.
        pub buffer: Buffer = BUFFER_DEFAULT,
    }
}

impl Default for Reverse {
    fn default() -> Self {
        all_defaults()
    }
}
