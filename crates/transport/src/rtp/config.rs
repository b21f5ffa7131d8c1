//! What one can choose about an RTP flow, the presets, and which values make sense.

use aqumen_units::{Rate, Span};

use crate::Config;
use crate::check::{ConfigError, number, span};

/// Size on the wire of a receiver report: IPv4, UDP, RTCP header with SSRC, one report block (bytes).
pub const REPORT_BYTES: u16 = 20 + 8 + 8 + 24;

/// How the sender sets its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// Not at all: it keeps the initial rate.
    Fixed,
    /// From the loss and the round trip of RTCP reports, as the sources of the AAQM paper do.
    Aaqm,
    /// TCP's throughput equation (RFC 5348).
    Tfrc,
    /// Delay, losses and marks as one signal (RFC 8698).
    Nada,
}

/// The parameters of an RTP flow. Rates are those of the encoder: headers are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpConfig {
    /// How the sender sets its rate.
    pub control: Control,
    /// Whether media packets are ECN-capable (RFC 6679).
    pub ecn: bool,
    /// Largest packet on the wire (bytes).
    pub packet_bytes: u16,
    /// Of which headers: IP, UDP, RTP (bytes).
    pub header_bytes: u16,
    /// Time from one frame to the next, and over which the packets of a frame are spread.
    pub frame_interval: Span,
    /// Whether the encoder makes frames of whole packets, and keeps what is less for the next frame.
    pub whole_packets: bool,
    /// Time from one RTCP report of the receiver to the next.
    pub report_interval: Span,
    /// The same of the sender, whose reports carry no more than the clock by which the round trip is told.
    pub sender_report_interval: Span,
    /// The rate at the start.
    pub initial_rate: Rate,
    /// The least rate at which the encoder works.
    pub min_rate: Rate,
    /// The highest.
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

    /// The same by TFRC, with a report every 100 ms: RFC 5348 wants one in each round trip.
    pub const fn tfrc() -> Self {
        RtpConfig { control: Control::Tfrc, ..RtpConfig::standard() }.reporting(Span::from_millis(100))
    }

    /// The same by NADA, with its feedback interval of 100 ms (RFC 8698 section 6.3).
    pub const fn nada() -> Self {
        RtpConfig { control: Control::Nada, ..RtpConfig::standard() }.reporting(Span::from_millis(100))
    }

    /// With reports at this interval from both ends.
    const fn reporting(self, interval: Span) -> Self {
        RtpConfig { report_interval: interval, sender_report_interval: interval, ..self }
    }

    /// Media in a full packet (bytes).
    pub const fn payload_bytes(&self) -> u16 {
        self.packet_bytes - self.header_bytes
    }

    /// Checks every field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const MS: Span = Span::from_millis(1);
        number("header_bytes", self.header_bytes, 0, 255, "0 to 255 bytes")?;
        if self.packet_bytes <= self.header_bytes {
            let range = "more than header_bytes, at most 65535 bytes";
            return Err(ConfigError { field: "packet_bytes", value: f64::from(self.packet_bytes), range });
        }
        span("frame_interval", self.frame_interval, MS, Span::from_secs(1), "1 ms to 1 s")?;
        let reports =
            [("report_interval", self.report_interval), ("sender_report_interval", self.sender_report_interval)];
        for (field, interval) in reports {
            span(field, interval, Span::from_millis(10), Span::from_secs(60), "10 ms to 60 s")?;
        }
        let rate = |field, rate: Rate, least: u64, most: u64, range| {
            let fits = (least..=most).contains(&rate.as_bps());
            if fits { Ok(()) } else { Err(ConfigError { field, value: rate.as_bps() as f64, range }) }
        };
        rate("max_rate", self.max_rate, 1_000, 10_000_000_000, "1 kbit/s to 10 Gbit/s")?;
        rate("min_rate", self.min_rate, 1_000, self.max_rate.as_bps(), "1 kbit/s to max_rate")?;
        let (least, most) = (self.min_rate.as_bps(), self.max_rate.as_bps());
        rate("initial_rate", self.initial_rate, least, most, "min_rate to max_rate")
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
