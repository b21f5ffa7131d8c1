//! RTP and RTCP (RFC 3550): frames of an encoder in real time, and reports by which the sender adapts its rate.
//!
//! The source cuts frames into packets and spreads them over the time of a frame; it makes frames itself ([`start`]) or
//! takes those that are written. The sink hands frames over, whole or what arrived of them, and reports
//! losses, jitter and what the sender needs for a round trip, at a fixed interval. [`Control`] says what the
//! sender makes of the reports.
//!
//! Deviations from RFC 3550:
//! - Sequence numbers have 32 bits and never wrap; the RTCP interval is not randomised (section 6.2), since experiments
//!   fix it and an endpoint has no randomness.
//! - Reports carry no SDES chunk; they carry the share of marked packets (as RFC 6679 does) and, for TFRC and NADA,
//!   what those need, where standards use RTCP packets of their own.
//! - Nothing is repaired. Packets are taken in order: what an overtaken packet would have completed is lost.
//! - An end that has nothing to tell is silent: no report without media since the last.
//!
//! [`start`]: crate::Endpoint::start

mod config;
mod control;
mod nada;
mod reception;
mod sink;
mod source;
mod tfrc;

pub use config::{Control, REPORT_BYTES, RtpConfig};
pub use sink::RtpSink;
pub use source::RtpSource;
pub use tfrc::throughput;

use crate::Message;

/// A packet of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Media {
    /// Sequence number, from 0.
    pub seq: u32,
    /// When the frame was made, by the media clock of 90 kHz (RFC 3551 section 4.5).
    pub timestamp: u32,
    /// The frame.
    pub message: Message,
    /// Where in the frame this part begins (bytes).
    pub offset: u32,
    /// Its length (bytes).
    pub payload: u16,
    /// The sender's round-trip time (us), 0 if unknown: losses within it are one loss event (RFC 5348 section 3.2.1).
    pub rtt_us: u32,
}

/// A sender report (RFC 3550 section 6.4.1). Its NTP timestamp is when the packet left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderReport {
    /// Middle 32 bits of the NTP timestamp: seconds in 16 bits, and their fraction in 16.
    pub ntp: u32,
    /// The same moment by the media clock.
    pub timestamp: u32,
    /// Media packets sent so far.
    pub packets: u32,
    /// Media in them (bytes, modulo 2^32).
    pub octets: u32,
}

/// A receiver report with its one report block (RFC 3550 section 6.4.1), and what the rate control wants to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverReport {
    /// Share of the packets since the last report that were lost (1/256).
    pub fraction_lost: u8,
    /// Share of those that arrived with a mark (1/256).
    pub fraction_marked: u8,
    /// Packets lost since the beginning.
    pub cumulative_lost: i32,
    /// Highest sequence number that arrived.
    pub highest: u32,
    /// Interarrival jitter (ticks of the media clock).
    pub jitter: u32,
    /// Timestamp of the last sender report; 0: there was none.
    pub lsr: u32,
    /// Time since then (1/65536 s).
    pub dlsr: u32,
    /// For the rate control.
    pub feedback: Feedback,
}

/// What a rate control needs beyond RFC 3550.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feedback {
    /// Nothing.
    None,
    /// RFC 5348 section 3.2.2.
    Tfrc {
        /// p: loss events per packet.
        loss_event_rate: f64,
        /// X_recv: what arrived since the last report (bit/s).
        receive_rate: f64,
    },
    /// RFC 8698 section 4.
    Nada {
        /// x_curr: the congestion signal as a delay (s).
        congestion: f64,
        /// r_recv: what arrived in the last half second (bit/s).
        receive_rate: f64,
        /// rmode 0: neither losses nor a queue; the rate may rise quickly.
        calm: bool,
    },
}

/// Ticks of the media clock (Hz).
const CLOCK_HZ: u64 = 90_000;

/// `nanos` on a clock of `hz` ticks a second, the lower 32 bits.
fn ticks(nanos: u64, hz: u64) -> u32 {
    (u128::from(nanos) * u128::from(hz) / 1_000_000_000) as u32
}
