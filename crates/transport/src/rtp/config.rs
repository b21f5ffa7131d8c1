//! Parameters of an RTP flow, presets and their accepted ranges.

use aqumen_units::{Rate, Span};

use crate::Config;
use crate::check::{ConfigError, in_range, packet_sizes};

/// Size on the wire of a receiver report: IPv4, UDP, RTCP header with SSRC, one report block (bytes).
pub const REPORT_BYTES: u16 = 20 + 8 + 8 + 24;

/// Rate control of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// None: the initial rate is kept.
    Fixed,
    /// By the loss and round-trip time in RTCP reports, as the sources of the AAQM paper.
    Aaqm,
    /// TCP's throughput equation (RFC 5348).
    Tfrc,
    /// NADA: delay, losses and marks combined into one signal (RFC 8698).
    Nada,
}

/// Parameters of an RTP flow. Rates are encoder rates, without headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpConfig {
    /// Rate control of the sender.
    pub control: Control,
    /// Whether media packets are ECN-capable (RFC 6679).
    pub ecn: bool,
    /// Largest packet on the wire (bytes).
    pub packet_bytes: u16,
    /// IP, UDP and RTP headers in a packet (bytes).
    pub header_bytes: u16,
    /// Frame period of the encoder; the packets of a frame are spread over it.
    pub frame_interval: Span,
    /// Whether the encoder makes frames of whole packets and carries the remainder over to the next frame.
    pub whole_packets: bool,
    /// Interval between RTCP receiver reports.
    pub report_interval: Span,
    /// Interval between RTCP sender reports, which carry the timestamps for round-trip measurement.
    pub sender_report_interval: Span,
    /// Initial rate.
    pub initial_rate: Rate,
    /// Lowest rate of the encoder.
    pub min_rate: Rate,
    /// Highest rate of the encoder.
    pub max_rate: Rate,
}

impl RtpConfig {
    /// A video source that adapts by RTCP reports every 900 ms, as in the AAQM paper.
    pub const fn standard() -> Self {
        RtpConfig {
            control: Control::Aaqm,
            ecn: false,
            packet_bytes: 1200,
            header_bytes: 40,
            frame_interval: Span::from_millis(40),
            whole_packets: false,
            report_interval: Span::from_millis(900),
            sender_report_interval: Span::from_millis(900),
            initial_rate: Rate::from_bps(300_000),
            min_rate: Rate::from_bps(150_000),
            max_rate: Rate::from_bps(1_500_000),
        }
    }

    /// [`standard`](Self::standard) with TFRC and a report every 100 ms; RFC 5348 asks for one in each round trip.
    pub const fn tfrc() -> Self {
        RtpConfig { control: Control::Tfrc, ..RtpConfig::standard() }.reporting(Span::from_millis(100))
    }

    /// [`standard`](Self::standard) with NADA and its feedback interval of 100 ms (RFC 8698 section 6.3).
    pub const fn nada() -> Self {
        RtpConfig { control: Control::Nada, ..RtpConfig::standard() }.reporting(Span::from_millis(100))
    }

    /// Sets the report interval of both endpoints.
    const fn reporting(self, interval: Span) -> Self {
        RtpConfig { report_interval: interval, sender_report_interval: interval, ..self }
    }

    /// Media in a full packet (bytes).
    pub const fn payload_bytes(&self) -> u16 {
        self.packet_bytes - self.header_bytes
    }

    /// Checks that every field is in its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        packet_sizes(self.packet_bytes, self.header_bytes, 0, "0 to 255 bytes")?;
        in_range("frame_interval", self.frame_interval, Span::from_millis(1)..=Span::from_secs(1), "1 ms to 1 s")?;
        let reports =
            [("report_interval", self.report_interval), ("sender_report_interval", self.sender_report_interval)];
        for (field, interval) in reports {
            in_range(field, interval, Span::from_millis(10)..=Span::from_secs(60), "10 ms to 60 s")?;
        }
        let (least, most) = (Rate::from_bps(1_000), Rate::from_bps(10_000_000_000));
        in_range("max_rate", self.max_rate, least..=most, "1 kbit/s to 10 Gbit/s")?;
        in_range("min_rate", self.min_rate, least..=self.max_rate, "1 kbit/s to max_rate")?;
        in_range("initial_rate", self.initial_rate, self.min_rate..=self.max_rate, "min_rate to max_rate")
    }
}

impl Config for RtpConfig {
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
        REPORT_BYTES
    }
}
