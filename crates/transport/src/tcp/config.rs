//! What one can choose about a TCP, the presets, and which values make sense.

use aqumen_units::Span;

use super::Congestion;
use crate::Config;
use crate::check::{ConfigError, number, secs, span};

/// How a sender repairs losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Fast retransmit and fast recovery that ends with the first new acknowledgement (RFC 5681 section 3.2).
    Reno,
    /// Fast recovery that ends when all that was outstanding at the loss has arrived (RFC 6582).
    NewReno,
    /// Selective acknowledgements, by [`LossDetection`].
    Sack,
}

/// Which segments a SACK sender takes for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossDetection {
    /// Those with three that arrived beyond them (RFC 6675, IsLost).
    Rfc6675,
    /// After a third duplicate, those with any that arrived beyond them; the data in the network are counted, not
    /// worked out (`Agent/TCP/Sack1` of ns-2).
    Sack1,
    /// Those more than four before the highest that arrived, gaps counted (forward acknowledgement, Mathis and Mahdavi
    /// 1996; three there, four in the TCP-Linux of ns-2).
    Fack,
    /// Those that have had a round trip and a reordering window when a segment that left later
    /// has arrived (RACK, RFC 8985).
    Rack,
}

/// How a sender in recovery reaches its reduced window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// It is silent until the pipe has shrunk to the window (RFC 6675).
    AtOnce,
    /// It sends in proportion to what arrives (RFC 9937, which replaces RFC 6937).
    Proportional,
    /// It sends a segment for every other one that arrives (TCP-Linux of ns-2).
    RateHalving,
}

/// What the minimum of the timeout bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoFloor {
    /// The whole timeout (RFC 6298 rule 2.4).
    Timeout,
    /// What it adds to the smoothed round trip, as in Linux: a queue that builds up within that time ends no transfer
    /// in a spurious timeout.
    Variation,
}

/// The parameters of a TCP, shared by all connections of a group.
///
/// Start from [`TcpConfig::ns2`] or [`TcpConfig::modern`], change fields, and [`validate`](TcpConfig::validate).
/// "Segments" are data packets; sizes on the wire include the headers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpConfig {
    /// How losses are repaired.
    pub variant: Variant,
    /// How the window follows acknowledgements, losses and marks.
    pub congestion: Congestion,
    /// Whether CUBIC leaves slow start before a loss: by HyStart++ (RFC 9406), with `whole_windows` by Linux's HyStart;
    /// others do not read it.
    pub hystart: bool,
    /// Whether CUBIC's window is never below what Reno's would be (RFC 9438 section 4.3); others do not read it.
    pub reno_friendly: bool,
    /// Whether segments leave evenly over the round trip. BBR and Prague cannot do without.
    pub pacing: bool,
    /// Whether data packets are ECN-capable (RFC 3168).
    pub ecn: bool,
    /// Size on the wire of a full data packet (bytes).
    pub packet_bytes: u16,
    /// Of which headers (bytes); a SYN is as large.
    pub header_bytes: u16,
    /// Size on the wire of an acknowledgement (bytes).
    pub ack_bytes: u16,
    /// Congestion window before the first acknowledgement of data (RFC 6928) (segments).
    pub initial_window: u32,
    /// What the receiver offers at most (its buffer) (segments). Also the usual initial slow-start threshold: "the
    /// largest possible advertised window" of RFC 5681 section 3.1.
    pub receive_window: u32,
    /// How long the receiver may hold an acknowledgement back (RFC 5681 section 4.2); `None`: one for each segment.
    pub delayed_ack: Option<Span>,
    /// Lower bound of the retransmission timeout, before backoff (RFC 6298 rule 2.4).
    pub min_rto: Span,
    /// What `min_rto` bounds.
    pub rto_floor: RtoFloor,
    /// Upper bound of the retransmission timeout, after backoff (RFC 6298 rules 2.5 and 5.5).
    pub max_rto: Span,
    /// Retransmission timeout before the first round-trip sample (RFC 6298 rule 2.1).
    pub initial_rto: Span,
    /// Granularity of the clock that measures round trips (G of RFC 6298); whole microseconds.
    pub rto_tick: Span,
    /// At most so many segments leave in answer to one acknowledgement; 0: no limit.
    pub max_burst: u8,
    /// Whether the first two duplicate acknowledgements each let a new segment go (RFC 3042).
    pub limited_transmit: bool,
    /// Most segments by which one acknowledgement counts towards window growth (L of RFC 3465).
    pub growth_limit: u32,
    /// Window after a pause longer than the retransmission timeout (RFC 5681 section 4.1)
    /// (segments); `None`: unchanged.
    pub restart_window: Option<u32>,
    /// Whether the connection opens with a SYN, a data-less segment that takes one round trip.
    pub syn: bool,
    /// Whether each acknowledgement gives a round-trip sample (RFC 7323); else one segment per window is timed.
    pub timestamps: bool,
    /// Whether round trips are those of the segments that have arrived, by SACK too, which are timed one by one; only
    /// where none tells, because all had left more than once, the timestamp does (as in Linux). Read with
    /// [`LossDetection::Rack`].
    pub segment_times: bool,
    /// Upper bound of the random delay before window-driven sends, drawn by the host (ns-2's `overhead_`, which breaks
    /// phase effects).
    pub send_overhead: Span,
    /// Smallest window after a mark or a fast retransmit (segments). 0: it may fall below one, and then nothing leaves
    /// until the retransmission timer expires (RFC 3168 section 6.1.2 for a window of one, taken further by ns-2).
    pub min_window: f64,
    /// Whether a reduction halves what is in flight (RFC 5681 equation 4); else the window, as ns-2 does.
    pub halve_flight: bool,
    /// Whether the window grows only while it is what limits the sender (RFC 7661); ns-2 lets it grow regardless.
    pub validate_window: bool,
    /// Whether NewReno leaves recovery with no more than what is in flight plus one (RFC 6582 section 3.2 step 3,
    /// option 1); ns-2 (`exit_recovery_fix_` off) keeps the halved window.
    pub exit_by_flight: bool,
    /// Whether retransmissions are ECN-capable; RFC 3168 section 6.1.5 forbids it, ns-2 does it.
    pub ect_retransmissions: bool,
    /// Slow-start threshold at the start (segments), as a host may remember it from earlier connections (RFC 9040);
    /// `None`: the receive window.
    pub initial_threshold: Option<u32>,
    /// Which segments a SACK sender takes for lost.
    pub loss_detection: LossDetection,
    /// Whether a SACK sender notices that a retransmission was lost and sends it once more; else only the timer finds
    /// out. With [`LossDetection::Rack`] it does anyway.
    pub lost_retransmissions: bool,
    /// How a SACK sender in recovery comes down to its reduced window.
    pub reduction: Reduction,
    /// Whether a segment leaves when nothing has come back for two round trips (TLP, RFC 8985 section 7); read with
    /// [`LossDetection::Rack`].
    pub tail_probe: bool,
    /// Whether a timeout that proves spurious is undone (F-RTO, RFC 5682; RFC 3522); read with [`LossDetection::Rack`].
    pub frto: bool,
    /// Whether windows are whole: reductions are rounded down, and acknowledged segments are counted until they make
    /// one (as in Linux). Slow start then ends at the threshold, and the acknowledgement that ends a recovery counts.
    pub whole_windows: bool,
    /// Acknowledgements that the receiver does not hold back at the start, so that slow start sees each segment.
    pub quick_acks: u8,
    /// Whether the receiver acknowledges at once the first marked segment and the next, and the
    /// one with CWR (as Linux does).
    pub ack_marks: bool,
    /// Whether the receiver holds acknowledgements back as long as Linux does, by the pace of the data, and none at the
    /// end of a write, after a silence or after a copy.
    pub adaptive_acks: bool,
    /// Segments of one write of an application that always has data; 0: its writes have no end.
    pub write: u8,
    /// Two and more segments that leave together are one super-packet, whose last carries PSH, as with segmentation
    /// offload in Linux. Read with [`LossDetection::Rack`].
    pub tso: bool,
    /// Segments in order that arrive within so long are acknowledged together, as a host with
    /// generic receive offload does.
    pub ack_merging: Span,
    /// What only ns-2 does.
    pub quirks: Quirks,
}

/// Habits of ns-2.35 that no RFC asks for and no host has: they are there so that runs can be held against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// Whether NewReno sends at most two segments for each duplicate acknowledgement in recovery, as ns-2 does.
    pub recovery_burst: bool,
    /// Whether a retransmission may carry CWR (ns-2's `SetCWRonRetransmit_`); RFC 3168 asks for new data.
    pub cwr_retransmissions: bool,
    /// Whether a timeout leaves the threshold alone when the last reduction was for a mark, however long ago (ns-2).
    pub timeout_after_mark_keeps_threshold: bool,
    /// Whether a mark echoed after a timeout counts although it is of the window before (ns-2).
    pub mark_after_timeout_counts: bool,
    /// Whether the timer stays backed off while marks come back to a window of one, and backs off further with each
    /// reaction (ns-2's `ecn_backoff_`).
    pub ecn_backoff: bool,
    /// Whether the smoothed round trip is discarded after four backoffs (ns-2, after 4.3BSD).
    pub forget_rtt: bool,
    /// Whether every segment is full, a transfer being rounded up to whole segments (ns-2).
    pub full_segments: bool,
    /// Whether a SACK sender restarts the timer with each acknowledgement, as the TCP-Linux of ns-2 does, and not only
    /// with those of new data (RFC 6298 rule 5.3).
    pub timer_on_any_ack: bool,
}

impl Quirks {
    /// None of them.
    pub const NONE: Quirks = Quirks {
        recovery_burst: false,
        cwr_retransmissions: false,
        timeout_after_mark_keeps_threshold: false,
        mark_after_timeout_counts: false,
        ecn_backoff: false,
        forget_rtt: false,
        full_segments: false,
        timer_on_any_ack: false,
    };

    /// Those of `Agent/TCP`.
    pub const NS2: Quirks = Quirks {
        recovery_burst: true,
        cwr_retransmissions: true,
        timeout_after_mark_keeps_threshold: true,
        mark_after_timeout_counts: true,
        ecn_backoff: true,
        forget_rtt: true,
        full_segments: true,
        timer_on_any_ack: false,
    };
}

impl TcpConfig {
    /// `Agent/TCP/Reno` of ns-2.35 with `Agent/TCPSink`, for cross-checks: 1000 bytes on the wire (`packetSize_` 960)
    /// and one acknowledgement per segment.
    ///
    /// Its default window limit (`window_` 20) is the one value not kept: it would be the bottleneck of every
    /// scenario, and published scenarios set it. ECN is off, as there; `docs/transports/tcp.md` lists each value.
    pub const fn ns2() -> Self {
        TcpConfig {
            variant: Variant::Reno,
            congestion: Congestion::Reno,
            hystart: true,
            reno_friendly: true,
            pacing: false,
            ecn: false,
            packet_bytes: 1000,
            header_bytes: 40,
            ack_bytes: 40,
            initial_window: 2,
            receive_window: 1000,
            delayed_ack: None,
            min_rto: Span::from_millis(200),
            rto_floor: RtoFloor::Timeout,
            max_rto: Span::from_secs(60),
            initial_rto: Span::from_secs(3),
            rto_tick: Span::from_millis(10),
            max_burst: 0,
            limited_transmit: true,
            growth_limit: 1,
            restart_window: Some(1),
            syn: true,
            timestamps: false,
            segment_times: false,
            send_overhead: Span::ZERO,
            min_window: 0.0,
            halve_flight: false,
            validate_window: false,
            exit_by_flight: false,
            ect_retransmissions: true,
            initial_threshold: None,
            loss_detection: LossDetection::Sack1,
            lost_retransmissions: false,
            reduction: Reduction::AtOnce,
            tail_probe: false,
            frto: false,
            whole_windows: false,
            quick_acks: 0,
            ack_marks: false,
            adaptive_acks: false,
            write: 0,
            tso: false,
            ack_merging: Span::ZERO,
            quirks: Quirks::NS2,
        }
    }

    /// A TCP by today's RFCs: SACK, ECN, initial window 10, delayed acknowledgements, timestamps.
    ///
    /// The smallest timeout is 200 ms, as deployed stacks have it, not the 1 s of RFC 6298 rule 2.4, which the RFC
    /// explains with coarse clocks and would make every timeout cost five times what it costs in practice.
    pub const fn modern() -> Self {
        TcpConfig {
            variant: Variant::Sack,
            congestion: Congestion::Reno,
            hystart: true,
            reno_friendly: true,
            pacing: false,
            ecn: true,
            packet_bytes: 1500,
            header_bytes: 52,
            ack_bytes: 52,
            initial_window: 10,
            receive_window: 65_535,
            delayed_ack: Some(Span::from_millis(40)),
            min_rto: Span::from_millis(200),
            rto_floor: RtoFloor::Variation,
            max_rto: Span::from_secs(60),
            initial_rto: Span::from_secs(1),
            rto_tick: Span::from_micros(1),
            max_burst: 0,
            limited_transmit: true,
            growth_limit: 2,
            restart_window: Some(10),
            syn: true,
            timestamps: true,
            segment_times: false,
            send_overhead: Span::ZERO,
            min_window: 2.0,
            halve_flight: true,
            validate_window: true,
            exit_by_flight: true,
            ect_retransmissions: false,
            initial_threshold: None,
            loss_detection: LossDetection::Rack,
            lost_retransmissions: false,
            reduction: Reduction::Proportional,
            tail_probe: true,
            frto: false,
            whole_windows: false,
            quick_acks: 0,
            ack_marks: false,
            adaptive_acks: false,
            write: 0,
            tso: false,
            ack_merging: Span::ZERO,
            quirks: Quirks::NONE,
        }
    }

    /// [`modern`](Self::modern) with CUBIC and HyStart++.
    pub const fn cubic() -> Self {
        TcpConfig { congestion: Congestion::Cubic, ..TcpConfig::modern() }
    }

    /// TCP as a Linux host runs it (6.x), with CUBIC; [`congestion`](Self::congestion) can be Reno or BBR too.
    ///
    /// Windows are whole segments, acknowledgements count in full, the first of them and those after marks are not held
    /// back, a timeout that proves spurious is undone. The application writes 64 KiB at a time. ECN is on (sysctl
    /// `tcp_ecn` 1). As on most hosts nothing is paced but BBR: with `sch_fq` it would be ([`pacing`](Self::pacing)),
    /// and a network card with receive offload would set [`ack_merging`](Self::ack_merging).
    pub const fn linux() -> Self {
        TcpConfig {
            congestion: Congestion::Cubic,
            max_rto: Span::from_secs(120),
            growth_limit: 1 << 30,
            segment_times: true,
            halve_flight: false,
            frto: true,
            whole_windows: true,
            quick_acks: 16,
            ack_marks: true,
            adaptive_acks: true,
            write: 45,
            tso: true,
            ..TcpConfig::modern()
        }
    }

    /// [`linux`](Self::linux) with Reno.
    pub const fn linux_reno() -> Self {
        TcpConfig { congestion: Congestion::Reno, ..TcpConfig::linux() }
    }

    /// [`linux`](Self::linux) with BBR version 1.
    pub const fn linux_bbr() -> Self {
        TcpConfig { congestion: Congestion::Bbr, pacing: true, ecn: false, ..TcpConfig::linux() }
    }

    /// `Agent/TCP/Linux` of ns-2.35 with `cubic`, the reduction set to 0.7, and `Agent/TCPSink/Sack1`, for
    /// cross-checks: CUBIC as in Linux 2.6.22, segments of [`ns2`](Self::ns2).
    pub const fn cubic_ns2() -> Self {
        TcpConfig {
            variant: Variant::Sack,
            congestion: Congestion::Cubic21,
            hystart: false,
            receive_window: 4000,
            rto_tick: Span::from_millis(1),
            timestamps: true,
            loss_detection: LossDetection::Fack,
            lost_retransmissions: true,
            reduction: Reduction::RateHalving,
            quirks: Quirks { timer_on_any_ack: true, ..Quirks::NS2 },
            ..TcpConfig::ns2()
        }
    }

    /// [`modern`](Self::modern) with DCTCP; retransmissions are ECN-capable, as in its data centres.
    pub const fn dctcp() -> Self {
        TcpConfig { congestion: Congestion::Dctcp, ect_retransmissions: true, ..TcpConfig::modern() }
    }

    /// [`modern`](Self::modern) with TCP Prague: ECT(1) on all data, paced.
    pub const fn prague() -> Self {
        TcpConfig { congestion: Congestion::Prague, pacing: true, ect_retransmissions: true, ..TcpConfig::modern() }
    }

    /// [`modern`](Self::modern) with BBR version 1, which takes no notice of ECN: its packets are not ECN-capable.
    pub const fn bbr() -> Self {
        TcpConfig { congestion: Congestion::Bbr, pacing: true, ecn: false, ..TcpConfig::modern() }
    }

    /// [`modern`](Self::modern) with Vegas.
    pub const fn vegas() -> Self {
        TcpConfig { congestion: Congestion::Vegas, ..TcpConfig::modern() }
    }

    /// [`modern`](Self::modern) with LEDBAT, whose initial window is two (RFC 6817 section 2.5).
    pub const fn ledbat() -> Self {
        TcpConfig { congestion: Congestion::Ledbat, initial_window: 2, ..TcpConfig::modern() }
    }

    /// Data in a full packet (bytes).
    pub const fn payload_bytes(&self) -> u16 {
        self.packet_bytes - self.header_bytes
    }

    /// Whether a sender keeps what is under way segment by segment.
    pub(super) fn tracks_segments(&self) -> bool {
        self.variant == Variant::Sack && self.loss_detection == LossDetection::Rack
    }

    /// Whether it is the `Agent/TCP/Sack1` of ns-2.
    pub(super) fn is_sack1(&self) -> bool {
        self.variant == Variant::Sack && self.loss_detection == LossDetection::Sack1
    }

    /// Checks every field, in the order they are declared.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const DAY: Span = Span::from_secs(86_400);
        const HOUR: Span = Span::from_secs(3_600);
        self.check_congestion()?;
        number("header_bytes", self.header_bytes, 20, 255, "20 to 255 bytes")?;
        if self.packet_bytes <= self.header_bytes {
            let range = "more than header_bytes, at most 65535 bytes";
            return Err(ConfigError { field: "packet_bytes", value: f64::from(self.packet_bytes), range });
        }
        number("ack_bytes", self.ack_bytes, 20, 65_535, "20 to 65535 bytes")?;
        number("initial_window", self.initial_window, 1, 1 << 30, "1 to 2^30 segments")?;
        number("receive_window", self.receive_window, 1, 1 << 30, "1 to 2^30 segments")?;
        if let Some(delay) = self.delayed_ack {
            span("delayed_ack", delay, Span::from_nanos(1), Span::from_millis(500), "above 0 s, at most 0.5 s")?;
        }
        span("max_rto", self.max_rto, Span::from_micros(1), HOUR, "1 us to 1 h")?;
        span("min_rto", self.min_rto, Span::ZERO, self.max_rto, "0 s to max_rto")?;
        span("initial_rto", self.initial_rto, Span::from_micros(1), self.max_rto, "1 us to max_rto")?;
        let whole = self.rto_tick.as_nanos().is_multiple_of(1_000);
        if !whole || self.rto_tick < Span::from_micros(1) || self.rto_tick > Span::from_secs(1) {
            let range = "whole microseconds, 1 us to 1 s";
            return Err(ConfigError { field: "rto_tick", value: secs(self.rto_tick), range });
        }
        number("max_burst", self.max_burst, 0, 254, "0 (no limit) to 254 segments")?;
        number("growth_limit", self.growth_limit, 1, 1 << 30, "1 to 2^30 segments")?;
        if let Some(window) = self.restart_window {
            number("restart_window", window, 1, 1 << 30, "1 to 2^30 segments")?;
        }
        if let Some(threshold) = self.initial_threshold {
            number("initial_threshold", threshold, 2, 1 << 30, "2 to 2^30 segments")?;
        }
        if self.is_sack1() && self.lost_retransmissions {
            let range = "false with loss_detection sack1";
            return Err(ConfigError { field: "lost_retransmissions", value: 1.0, range });
        }
        if self.is_sack1() && self.reduction != Reduction::AtOnce {
            let range = "at-once with loss_detection sack1";
            return Err(ConfigError { field: "reduction", value: 1.0, range });
        }
        span("ack_merging", self.ack_merging, Span::ZERO, Span::from_millis(10), "0 s to 10 ms")?;
        span("send_overhead", self.send_overhead, Span::ZERO, DAY, "0 s to 1 day")?;
        if !(0.0..=2.0).contains(&self.min_window) {
            let range = "0 to 2 segments";
            return Err(ConfigError { field: "min_window", value: self.min_window, range });
        }
        if self.whole_windows && self.min_window < 1.0 {
            let range = "1 to 2 segments where windows are whole";
            return Err(ConfigError { field: "min_window", value: self.min_window, range });
        }
        Ok(())
    }
}

impl Config for TcpConfig {
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
        self.ack_bytes
    }

    fn window_pkts(&self) -> Option<u32> {
        Some(self.receive_window)
    }

    fn initial_window_pkts(&self) -> u32 {
        self.initial_window
    }
}

impl TcpConfig {
    /// What a congestion control cannot do without.
    fn check_congestion(&self) -> Result<(), ConfigError> {
        let terms = self.congestion.terms();
        let needs = [
            ("variant", terms.sack, self.variant == Variant::Sack),
            ("ecn", terms.ecn, self.ecn),
            ("pacing", terms.pacing, self.pacing),
            ("timestamps", terms.timestamps, self.timestamps),
        ];
        match needs.into_iter().find_map(|(field, why, given)| Some((field, why.filter(|_| !given)?))) {
            Some((field, range)) => Err(ConfigError { field, value: 0.0, range }),
            None => Ok(()),
        }
    }
}
