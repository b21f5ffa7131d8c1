//! RTP and RTCP (RFC 3550): frames of a real-time encoder, and reports by which the sender adapts its rate.
//!
//! The source splits frames into packets and spreads them over the frame period. It generates frames itself ([`start`])
//! or takes written ones. The sink delivers frames, complete or partial, and reports losses, jitter and the timestamps
//! for a round-trip measurement at a fixed interval. [`Control`] selects the sender's response to reports.
//!
//! Deviations from RFC 3550:
//! - Sequence numbers have 32 bits and never wrap. The RTCP interval is not randomised (section 6.2): experiments fix
//!   it, and endpoints draw no random numbers.
//! - Reports carry no SDES chunk. They carry the fraction of marked packets (as in RFC 6679) and the feedback of TFRC
//!   and NADA, for which the standards use separate RTCP packets.
//! - Losses are not repaired. A packet that arrives after a later one is discarded.
//! - An endpoint without media since its last report sends no report.
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

/// Media packet: a part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Media {
    /// Sequence number, from 0.
    pub seq: u32,
    /// Creation time of the frame on the media clock of 90 kHz (RFC 3551 section 4.5).
    pub timestamp: u32,
    /// The frame.
    pub message: Message,
    /// Offset of this part in the frame (bytes).
    pub offset: u32,
    /// Length of this part (bytes).
    pub payload: u16,
    /// The sender's round-trip time (us), 0: unknown. Losses within it are one loss event (RFC 5348 section 3.2.1).
    pub rtt_us: u32,
}

/// Sender report (RFC 3550 section 6.4.1). Its NTP timestamp is its sending time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderReport {
    /// Middle 32 bits of the NTP timestamp: seconds in 16 bits, and their fraction in 16.
    pub ntp: u32,
    /// Sending time on the media clock.
    pub timestamp: u32,
    /// Media packets sent so far.
    pub packets: u32,
    /// Media bytes sent so far (modulo 2^32).
    pub octets: u32,
}

/// Receiver report with one report block (RFC 3550 section 6.4.1) and rate-control feedback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverReport {
    /// Fraction of packets lost since the last report (1/256).
    pub fraction_lost: u8,
    /// Fraction of arrived packets with a mark since the last report (1/256).
    pub fraction_marked: u8,
    /// Packets lost since the beginning.
    pub cumulative_lost: i32,
    /// Highest sequence number that arrived.
    pub highest: u32,
    /// Interarrival jitter (ticks of the media clock).
    pub jitter: u32,
    /// Timestamp of the last sender report; 0: none.
    pub lsr: u32,
    /// Delay since the last sender report (1/65536 s).
    pub dlsr: u32,
    /// Feedback for the rate control.
    pub feedback: Feedback,
}

/// Rate-control feedback beyond RFC 3550.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feedback {
    /// No feedback.
    None,
    /// RFC 5348 section 3.2.2.
    Tfrc {
        /// p: loss events per packet.
        loss_event_rate: f64,
        /// X_recv: receive rate since the last report (bit/s).
        receive_rate: f64,
    },
    /// RFC 8698 section 4.
    Nada {
        /// x_curr: the congestion signal as a delay (s).
        congestion: f64,
        /// r_recv: receive rate over the last 500 ms (bit/s).
        receive_rate: f64,
        /// rmode 0: neither losses nor queueing; the rate may ramp up.
        ramp_up: bool,
    },
}

/// Frequency of the media clock (Hz).
const CLOCK_HZ: u64 = 90_000;

/// Lower 32 bits of a clock of frequency `hz` after `nanos`.
fn ticks(nanos: u64, hz: u64) -> u32 {
    (u128::from(nanos) * u128::from(hz) / 1_000_000_000) as u32
}
