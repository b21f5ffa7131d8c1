//! The tables of links: the bottleneck of a dumbbell, a link of a graph, the opposite direction of either, and the
//! links between hosts and routers.

use aqumen_units::{Rate, Span};

use crate::channel::{Capacity, Channel, Losses};
use crate::field::{Buffer, Name, Packets, all_defaults, table};
use crate::spread::Spread;

/// The buffer of links that are not meant to lose packets.
pub(crate) const BUFFER_ELSEWHERE: Buffer = Buffer::Packets(100_000);

table! {
    /// The link under test of a dumbbell.
    pub struct Bottleneck("the bottleneck link") {
        /// Its rate, or rates over time.
        pub rate: Option<Capacity>,
        /// In place of a rate: a medium with a law of its own.
        pub channel: Option<Channel>,
        /// Losses on the wire, after the queue: a probability, or a table.
        pub loss: Option<Losses>,
        /// Its propagation delay.
        pub delay: Span,
        /// Room of its queue, in packets or bytes; the packet in transmission does not count.
        pub buffer: Buffer,
        /// The opposite direction.
        pub reverse: Reverse = Reverse::default(),
    }
}

table! {
    /// A link of a graph.
    pub struct GraphLink("a link") {
        /// Its name; that of the opposite direction has `-reverse` behind.
        pub name: Name,
        /// The node whose queue it drains.
        pub from: Name,
        /// The node it leads to.
        pub to: Name,
        /// Its rate, or rates over time.
        pub rate: Option<Capacity>,
        /// In place of a rate: a medium with a law of its own.
        pub channel: Option<Channel>,
        /// Losses on the wire, after the queue: a probability, or a table.
        pub loss: Option<Losses>,
        /// Its propagation delay.
        pub delay: Span,
        /// Room of its queue, in packets or bytes; the packet in transmission does not count.
        pub buffer: Buffer = BUFFER_ELSEWHERE,
        /// Its AQM: a SPEC, or `test` for the AQM under test.
        pub aqm: String = "droptail".into(),
        /// Whether its metrics and series are wanted; a link under test is recorded anyway.
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
        /// Its rate, or rates over time; as the link if absent.
        pub rate: Option<Capacity>,
        /// In place of a rate: a medium with a law of its own.
        pub channel: Option<Channel>,
        /// Losses on the wire, after the queue: a probability, or a table; none if absent.
        pub loss: Option<Losses>,
        /// Its propagation delay; that of the link if absent.
        pub delay: Option<Span>,
        /// Room of its queue.
        pub buffer: Buffer = BUFFER_ELSEWHERE,
        /// Its AQM: a SPEC, or `test` for the AQM under test.
        pub aqm: String = "droptail".into(),
        /// Whether its metrics and series are wanted.
        pub record: bool = false,
        /// Target queue length, from which the deviation is measured.
        pub target: Option<Packets>,
    }
}

table! {
    /// A link between a host and a router; both directions are alike.
    pub struct Access("an access link") {
        /// Its rate.
        pub rate: Rate,
        /// Its propagation delay, or whence each flow takes it, on each side by itself.
        pub delay: Spread = Spread::fixed(Span::ZERO),
        /// Losses on the wire in each direction: a probability, or a table.
        pub loss: Option<Losses>,
        /// Room of its queue.
        pub buffer: Buffer = BUFFER_ELSEWHERE,
    }
}

impl Default for Reverse {
    fn default() -> Self {
        all_defaults()
    }
}
