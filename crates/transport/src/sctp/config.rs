//! Parameters of SCTP, presets and their accepted ranges.

use aqumen_units::Span;

use super::CHUNK_HEADER;
use crate::Config;
use crate::check::{ConfigError, in_range, packet_sizes};

/// Parameters of SCTP, shared by all associations of a flow group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpConfig {
    /// Whether data packets are ECN-capable (RFC 4960 appendix A).
    pub ecn: bool,
    /// Size on the wire of a full packet: the path MTU (bytes).
    pub packet_bytes: u16,
    /// IP, SCTP and DATA chunk headers in a packet (bytes). A SACK without gap ack blocks has the same size.
    pub header_bytes: u16,
    /// Number of streams; each is delivered in order, independently of the others.
    pub streams: u16,
    /// Whether a handshake of two round trips precedes the data.
    pub handshake: bool,
    /// Initial congestion window (chunk bytes); `None`: RFC 9260 section 7.2.1, min(4 PMDCS, max(2 PMDCS, 4404)).
    pub initial_window_bytes: Option<u32>,
    /// Receive buffer (chunk bytes). Also the initial slow-start threshold, as section 7.2.1 suggests.
    pub receive_window_bytes: u32,
    /// Longest delay of a SACK, which covers at most two packets (section 6.2); `None`: a SACK for each packet.
    pub delayed_sack: Option<Span>,
    /// Most packets sent in response to one event, without fast retransmissions (Max.Burst of section 6.1); 0: no
    /// limit.
    pub max_burst: u8,
    /// Whether `max_burst` applies only to a SACK that acknowledges a fast retransmission.
    pub burst_after_repair: bool,
    /// End of fast recovery.
    pub recovery: Recovery,
    /// Lower bound of the retransmission timeout (RTO.Min).
    pub min_rto: Span,
    /// Upper bound of the retransmission timeout (RTO.Max).
    pub max_rto: Span,
    /// Retransmission timeout before the first round-trip sample (RTO.Initial).
    pub initial_rto: Span,
}

/// Rule that ends fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Fast recovery ends when the highest chunk outstanding at its start is acknowledged, or at a timeout (RFC 9260
    /// section 7.2.4).
    Standard,
    /// As in ns-2.35: a loss beyond that chunk starts another recovery with another halving. A timeout does not end it,
    /// and the window stays at one chunk until the end.
    Ns2,
}

impl SctpConfig {
    /// SCTP by RFC 9260 with its suggested values (section 16), over IPv4 over Ethernet.
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

    /// `Agent/SCTP` of ns-2.35, for cross-checks: initial window of RFC 4960, initial timeout of 3 s. Deviation: ns-2's
    /// receive window of 64 KiB would be the bottleneck of every scenario.
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

    /// Largest chunk of the path, PMDCS (chunk bytes).
    pub const fn chunk_bytes(&self) -> u32 {
        self.payload_bytes() as u32 + CHUNK_HEADER as u32
    }

    /// Initial congestion window (chunk bytes).
    pub fn first_window(&self) -> u32 {
        let chunk = self.chunk_bytes();
        self.initial_window_bytes.unwrap_or((4 * chunk).min((2 * chunk).max(4404)))
    }

    /// Checks that every field is in its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const HOUR: Span = Span::from_secs(3_600);
        packet_sizes(self.packet_bytes, self.header_bytes, CHUNK_HEADER, "16 to 255 bytes")?;
        in_range("streams", self.streams, 1..=65_535, "1 to 65535")?;
        if let Some(window) = self.initial_window_bytes {
            in_range("initial_window_bytes", window, 1..=1 << 30, "1 to 2^30 bytes")?;
        }
        in_range("receive_window_bytes", self.receive_window_bytes, 1_500..=1 << 30, "1500 to 2^30 bytes")?;
        if let Some(delay) = self.delayed_sack {
            // RFC 9260 section 6.2 limits the delay to 500 ms.
            in_range("delayed_sack", delay, Span::from_nanos(1)..=Span::from_millis(500), "above 0 s, at most 0.5 s")?;
        }
        in_range("max_burst", self.max_burst, 0..=254, "0 (no limit) to 254 packets")?;
        in_range("max_rto", self.max_rto, Span::from_micros(1)..=HOUR, "1 us to 1 h")?;
        in_range("min_rto", self.min_rto, Span::ZERO..=self.max_rto, "0 s to max_rto")?;
        in_range("initial_rto", self.initial_rto, Span::from_micros(1)..=self.max_rto, "1 us to max_rto")
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
        // A SACK without blocks has the size of a data packet's headers.
        self.header_bytes
    }

    fn window_pkts(&self) -> Option<u32> {
        // The window counts chunk headers, so empty messages admit most packets.
        Some(self.receive_window_bytes / u32::from(CHUNK_HEADER))
    }

    fn initial_window_pkts(&self) -> u32 {
        self.first_window().div_ceil(self.chunk_bytes())
    }
}
