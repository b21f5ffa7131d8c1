//! What one can choose about an SCTP, the presets, and which values make sense.

use aqumen_units::Span;

use super::CHUNK_HEADER;
use crate::Config;
use crate::check::{ConfigError, number, span};

/// The parameters of an SCTP, shared by all associations of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpConfig {
    /// Whether data packets are ECN-capable (RFC 4960 appendix A).
    pub ecn: bool,
    /// Size on the wire of a full packet: the path MTU (bytes).
    pub packet_bytes: u16,
    /// Of which headers: IP, SCTP and DATA chunk (bytes). A SACK without gap ack blocks is as large, by chance.
    pub header_bytes: u16,
    /// Streams of the association, each delivered in its own order.
    pub streams: u16,
    /// Whether the association is set up before data flows: two round trips.
    pub handshake: bool,
    /// Congestion window at the start (chunk bytes); `None`: RFC 9260 section 7.2.1, min(4 PMDCS, max(2 PMDCS, 4404)).
    pub initial_window_bytes: Option<u32>,
    /// The receiver's buffer (chunk bytes). Also the initial slow-start threshold, as section 7.2.1 suggests.
    pub receive_window_bytes: u32,
    /// How long a SACK may be held back, for at most two packets (section 6.2); `None`: one for each packet.
    pub delayed_sack: Option<Span>,
    /// Most packets that leave in answer to one event, fast retransmissions aside (Max.Burst of section 6.1); 0: no
    /// limit.
    pub max_burst: u8,
    /// Whether `max_burst` limits only what leaves in answer to a SACK of something that was fast retransmitted.
    pub burst_after_repair: bool,
    /// When fast recovery ends.
    pub recovery: Recovery,
    /// Lower bound of the retransmission timeout (RTO.Min).
    pub min_rto: Span,
    /// Upper bound of the retransmission timeout (RTO.Max).
    pub max_rto: Span,
    /// Retransmission timeout before the first round-trip sample (RTO.Initial).
    pub initial_rto: Span,
}

/// How long fast recovery lasts, and what it keeps from happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Until the highest chunk outstanding at its beginning is acknowledged, or the timer
    /// expires (RFC 9260 section 7.2.4).
    Standard,
    /// As in ns-2.35: a chunk beyond that one which is reported missing begins another, with another halving; and the
    /// timer does not end it, so that the window stays at one chunk up to there.
    Ns2,
}

impl SctpConfig {
    /// SCTP by RFC 9260 with the values it suggests (section 16), over IPv4 over Ethernet.
    pub const fn standard() -> Self {
        SctpConfig {
            ecn: false,
            packet_bytes: 1500,
            header_bytes: 48,
            streams: 1,
            handshake: true,
            initial_window_bytes: None,
            receive_window_bytes: 1 << 20,
            delayed_sack: Some(Span::from_millis(200)),
            max_burst: 4,
            burst_after_repair: false,
            recovery: Recovery::Standard,
            min_rto: Span::from_secs(1),
            max_rto: Span::from_secs(60),
            initial_rto: Span::from_secs(1),
        }
    }

    /// `Agent/SCTP` of ns-2.35, for cross-checks: it begins with the window of RFC 4960 and a timeout of 3 s. Its
    /// receiver window of 64 KiB is not kept, since it would be the bottleneck of every scenario.
    pub const fn ns2() -> Self {
        SctpConfig {
            initial_window_bytes: Some(4380),
            burst_after_repair: true,
            recovery: Recovery::Ns2,
            initial_rto: Span::from_secs(3),
            ..SctpConfig::standard()
        }
    }

    /// User data in a full packet (bytes).
    pub const fn payload_bytes(&self) -> u16 {
        self.packet_bytes - self.header_bytes
    }

    /// The chunk bytes of a full packet: PMDCS, the path's largest DATA chunk.
    pub const fn chunk_bytes(&self) -> u32 {
        self.payload_bytes() as u32 + CHUNK_HEADER as u32
    }

    /// The congestion window at the start (chunk bytes).
    pub fn first_window(&self) -> u32 {
        let chunk = self.chunk_bytes();
        self.initial_window_bytes.unwrap_or((4 * chunk).min((2 * chunk).max(4404)))
    }

    /// Checks every field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const HOUR: Span = Span::from_secs(3_600);
        number("header_bytes", self.header_bytes, u32::from(CHUNK_HEADER), 255, "16 to 255 bytes")?;
        if self.packet_bytes <= self.header_bytes {
            let range = "more than header_bytes, at most 65535 bytes";
            return Err(ConfigError { field: "packet_bytes", value: f64::from(self.packet_bytes), range });
        }
        number("streams", self.streams, 1, 65_535, "1 to 65535")?;
        if let Some(window) = self.initial_window_bytes {
            number("initial_window_bytes", window, 1, 1 << 30, "1 to 2^30 bytes")?;
        }
        number("receive_window_bytes", self.receive_window_bytes, 1_500, 1 << 30, "1500 to 2^30 bytes")?;
        if let Some(delay) = self.delayed_sack {
            // RFC 9260 section 6.2: no implementation may wait for longer than 500 ms.
            span("delayed_sack", delay, Span::from_nanos(1), Span::from_millis(500), "above 0 s, at most 0.5 s")?;
        }
        number("max_burst", self.max_burst, 0, 254, "0 (no limit) to 254 packets")?;
        span("max_rto", self.max_rto, Span::from_micros(1), HOUR, "1 us to 1 h")?;
        span("min_rto", self.min_rto, Span::ZERO, self.max_rto, "0 s to max_rto")?;
        span("initial_rto", self.initial_rto, Span::from_micros(1), self.max_rto, "1 us to max_rto")
    }
}

impl Config for SctpConfig {
    fn packet_bytes(&self) -> u16 {
        self.packet_bytes
    }

    fn header_bytes(&self) -> u16 {
        self.header_bytes
    }

    fn ecn(&self) -> bool {
        self.ecn
    }

    fn ack_bytes(&self) -> u16 {
        // A SACK without blocks is as large as the headers of data.
        self.header_bytes
    }

    fn window_pkts(&self) -> Option<u32> {
        // The window counts the headers of chunks: that of empty messages admits most packets.
        Some(self.receive_window_bytes / u32::from(CHUNK_HEADER))
    }

    fn initial_window_pkts(&self) -> u32 {
        self.first_window().div_ceil(self.chunk_bytes())
    }
}
