//! Interface between a host and the endpoints of transports other than TCP.
//!
//! A connection has a *source*, to which an application writes messages, and a *sink*, which delivers them to the
//! application there. Both are an [`Endpoint`]: they read no clock, draw no random number, and do no input or output.
//! The two endpoints of a connection share their configuration.

use aqumen_units::{Ecn, Instant, Span};

use crate::message::{Delivery, Message};
use crate::{rtp, sctp, udp};

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Size on the wire, headers included (bytes).
    pub bytes: u16,
    /// ECN codepoint; a router may turn an ECT codepoint into [`Ecn::Ce`].
    pub ecn: Ecn,
    /// Sequence number among the packets of this direction of the flow, from 0; a retransmission counts as a new
    /// packet. Loss and jitter are measured by it.
    pub seq: u32,
    /// Time at which it left the endpoint.
    pub sent_at: Instant,
    /// Content of the packet.
    pub body: Body,
}

/// Content of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    /// A datagram of [`udp`].
    Datagram(udp::Datagram),
    /// Part of a frame, of [`rtp`].
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

// Hosts store packets by value in their events.
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
    /// Round-trip samples.
    pub rtt_samples: u64,
    /// Sum of the round-trip samples.
    pub rtt_sum: Span,
    /// Bytes of messages delivered to the application (sink). Transports that deliver in parts count parts of
    /// incomplete messages too.
    pub delivered_bytes: u64,
}

/// An endpoint of a connection.
///
/// After every other call that takes the time, the host polls [`poll_transmit`](Self::poll_transmit) until `None`, and
/// at the sink [`poll_delivery`](Self::poll_delivery) too. Time never goes backwards.
pub trait Endpoint {
    /// Begins to send data that the source generates: an endless transfer, or an encoder's frames. No effect at a
    /// transport that sends only written messages.
    fn start(&mut self, _now: Instant) {}

    /// Stops generating data; losses are still repaired (source).
    fn stop(&mut self, _now: Instant) {}

    /// Accepts a message from the application (source; no effect at a sink).
    fn write(&mut self, now: Instant, message: Message);

    /// Processes an arriving packet; packets of another transport are ignored.
    fn on_packet(&mut self, now: Instant, packet: &Packet);

    /// Timer callback for [`next_timer`](Self::next_timer). Late calls are allowed; early and additional calls have no
    /// effect.
    fn on_timer(&mut self, now: Instant);

    /// Time at which to call [`on_timer`](Self::on_timer); any other call may change it.
    fn next_timer(&self) -> Option<Instant>;

    /// The next packet to send now.
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet>;

    /// Counts since the connection began.
    fn stats(&self) -> Stats;

    /// The next message for the application (sink).
    fn poll_delivery(&mut self) -> Option<Delivery>;

    /// Current rate limit of an adaptive real-time application, without headers (bit/s) (source).
    fn rate_bps(&self) -> Option<f64> {
        None
    }

    /// Whether all written data has been acknowledged, or sent where the transport has no acknowledgements (source).
    fn is_idle(&self) -> bool {
        true
    }
}
