//! One end of a connection of a transport other than TCP, as its host sees it.
//!
//! Every such transport has a *source* end, to which an application writes messages, and a *sink* end, which hands them
//! to the application there. Both are an [`Endpoint`]: they read no clock, draw no random number, and do no input or
//! output. The two ends of a connection share their configuration.

use aqumen_units::{Ecn, Instant, Span};

use crate::message::{Delivery, Message};
use crate::{rtp, sctp, udp};

/// A packet, by value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Size on the wire, headers included (bytes).
    pub bytes: u16,
    /// ECN codepoint; a router may turn an ECT codepoint into [`Ecn::Ce`].
    pub ecn: Ecn,
    /// Number among the packets of this direction of the flow, from 0; a retransmission counts as a new packet. It is
    /// what loss and jitter are measured by.
    pub seq: u32,
    /// When it left the endpoint.
    pub sent_at: Instant,
    /// What it carries.
    pub body: Body,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    /// A datagram of [`udp`].
    Datagram(udp::Datagram),
    /// A part of a frame, of [`rtp`].
    Media(rtp::Media),
    /// A sender report of RTCP, of [`rtp`].
    SenderReport(rtp::SenderReport),
    /// A receiver report of RTCP, of [`rtp`].
    Report(rtp::ReceiverReport),
    /// A message that sets up an association of [`sctp`].
    Setup(sctp::Setup),
    /// A DATA chunk of [`sctp`].
    Data(sctp::Data),
    /// A selective acknowledgement of [`sctp`].
    Sack(sctp::Sack),
}

// Hosts keep packets by value in their events.
const _: () = assert!(size_of::<Body>() <= 64);

/// Counts since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets sent, retransmissions and feedback included.
    pub sent: u64,
    /// Packets that carried something sent before.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Round trips measured.
    pub rtt_samples: u64,
    /// Their sum.
    pub rtt_sum: Span,
    /// Bytes of messages that reached the application, of incomplete ones too where they are handed over in parts (sink
    /// end).
    pub delivered_bytes: u64,
}

/// One end of a connection.
///
/// After every other call that takes the time the host polls [`poll_transmit`](Self::poll_transmit) until `None`, and
/// at the sink end [`poll_delivery`](Self::poll_delivery) too. Time never goes backwards.
pub trait Endpoint {
    /// Begins to offer data of its own: without end, or an encoder's frames (source end). It does nothing at a
    /// transport that sends only what is written.
    fn start(&mut self, _now: Instant) {}

    /// Offers nothing more of its own; what was sent is still repaired (source end).
    fn stop(&mut self, _now: Instant) {}

    /// The application hands over a message (source end; a sink ignores it).
    fn write(&mut self, now: Instant, message: Message);

    /// A packet arrived. One that does not belong here is ignored.
    fn on_packet(&mut self, now: Instant, packet: &Packet);

    /// The timer of [`next_timer`](Self::next_timer). Late calls are fine, early and extra ones do nothing.
    fn on_timer(&mut self, now: Instant);

    /// When [`on_timer`](Self::on_timer) is to be called; any other call may change it.
    fn next_timer(&self) -> Option<Instant>;

    /// The next packet to send now.
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet>;

    /// Counts since the connection began.
    fn stats(&self) -> Stats;

    /// The next message for the application (sink end).
    fn poll_delivery(&mut self) -> Option<Delivery>;

    /// The rate at which an adaptive real-time application may produce now, headers not counted (source end) (bit/s).
    fn rate_bps(&self) -> Option<f64> {
        None
    }

    /// Source end: all that was written has been acknowledged, or sent if nothing is ever acknowledged.
    fn is_idle(&self) -> bool {
        true
    }
}
