//! Parameters of TCP, presets and their accepted ranges.

use aqumen_units::Span;

use super::Congestion;
use crate::Config;
use crate::check::{ConfigError, in_range, packet_sizes, require};

/// Loss recovery of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Fast retransmit, and fast recovery that ends with the first new acknowledgement (RFC 5681 section 3.2).
    Reno,
    /// Fast recovery until all data outstanding at the loss is acknowledged (RFC 6582).
    NewReno,
    /// Selective acknowledgements with a [`LossDetection`].
    Sack,
}

/// Rule by which a SACK sender declares segments lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossDetection {
    /// Three segments beyond it have arrived (IsLost of RFC 6675).
    Rfc6675,
    /// After a third duplicate, any later segment has arrived; the pipe is counted, not computed (`Agent/TCP/Sack1` of
    /// ns-2).
    Sack1,
    /// The highest arrived segment is more than four beyond it (forward acknowledgement, Mathis and Mahdavi 1996:
    /// three; the TCP-Linux of ns-2: four).
    Fack,
    /// A segment sent later has arrived, and a round trip and a reordering window have passed (RACK, RFC 8985).
    Rack,
}

/// Window reduction of a sender in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Silence until the pipe has shrunk to the new window (RFC 6675).
    AtOnce,
    /// In proportion to delivered segments (RFC 9937, which replaces RFC 6937).
    Proportional,
    /// One segment for every other one that arrives (TCP-Linux of ns-2).
    RateHalving,
}

/// Quantity that the minimum timeout bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoFloor {
    /// The timeout (RFC 6298 rule 2.4).
    Timeout,
    /// The timeout less the smoothed round-trip time, as in Linux: a queue that grows within that time causes no
    /// spurious timeout.
    Variation,
}

/// Parameters of TCP, shared by all connections of a flow group.
///
/// Start from [`TcpConfig::ns2`] or [`TcpConfig::modern`], change fields, and [`validate`](TcpConfig::validate).
/// "Segments" are data packets; sizes on the wire include headers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpConfig {
    /// Loss recovery.
    pub variant: Variant,
    /// Congestion control.
    pub congestion: Congestion,
    /// Whether CUBIC may leave slow start before a loss: by HyStart++ (RFC 9406), with `whole_windows` by Linux's
    /// HyStart. Other controls ignore it.
    pub hystart: bool,
    /// Whether CUBIC's window is at least Reno's (RFC 9438 section 4.3). Other controls ignore it.
    pub reno_friendly: bool,
    /// Whether segments are paced over the round trip. BBR and Prague require it.
    pub pacing: bool,
    /// Whether data packets are ECN-capable (RFC 3168).
    pub ecn: bool,
    /// Size on the wire of a full data packet (bytes).
    pub packet_bytes: u16,
    /// Headers in a data packet (bytes), also the size of a SYN.
    pub header_bytes: u16,
    /// Size on the wire of an acknowledgement (bytes).
    pub ack_bytes: u16,
    /// Initial congestion window (RFC 6928) (segments).
    pub initial_window: u32,
    /// Largest receive window, the receive buffer (segments). Also the default initial slow-start threshold: "the
    /// largest possible advertised window" of RFC 5681 section 3.1.
    pub receive_window: u32,
    /// Delay of acknowledgements (RFC 5681 section 4.2); `None`: one for each segment.
    pub delayed_ack: Option<Span>,
    /// Lower bound of the retransmission timeout, before backoff (RFC 6298 rule 2.4).
    pub min_rto: Span,
    /// Quantity that `min_rto` bounds.
    pub rto_floor: RtoFloor,
    /// Upper bound of the retransmission timeout, after backoff (RFC 6298 rules 2.5 and 5.5).
    pub max_rto: Span,
    /// Retransmission timeout before the first round-trip sample (RFC 6298 rule 2.1).
    pub initial_rto: Span,
    /// Clock granularity of round-trip measurement (G of RFC 6298); whole microseconds.
    pub rto_tick: Span,
    /// Most segments sent in response to one acknowledgement; 0: no limit.
    pub max_burst: u8,
    /// Whether each of the first two duplicate acknowledgements releases a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// Most segments that one acknowledgement adds to window growth (L of RFC 3465).
    pub growth_limit: u32,
    /// Window after an idle period longer than the retransmission timeout (RFC 5681 section 4.1) (segments); `None`:
    /// unchanged.
    pub restart_window: Option<u32>,
    /// Whether the connection begins with a SYN, a segment without data.
    pub syn: bool,
    /// Whether each acknowledgement gives a round-trip sample (RFC 7323); otherwise one segment per window is timed.
    pub timestamps: bool,
    /// Whether round trips are measured by the sending times of arrived segments, SACKed ones included. The timestamp
    /// is used only if all of them were retransmitted (as in Linux). Read with [`LossDetection::Rack`].
    pub segment_times: bool,
    /// Upper bound of the random delay before window-driven sends, drawn by the host (ns-2's `overhead_`, against phase
    /// effects).
    pub send_overhead: Span,
    /// Smallest window after a mark or a fast retransmit (segments). 0: a window below one sends nothing until the
    /// retransmission timer expires (RFC 3168 section 6.1.2 for a window of one, extended by ns-2).
    pub min_window: f64,
    /// Whether a reduction halves the flight size (RFC 5681 equation 4); otherwise the window, as in ns-2.
    pub halve_flight: bool,
    /// Whether the window grows only while it limits the sender (RFC 7661); in ns-2 it always grows.
    pub validate_window: bool,
    /// Whether NewReno ends recovery with at most the flight size plus one (RFC 6582 section 3.2 step 3, option 1);
    /// ns-2 (`exit_recovery_fix_` off) keeps the halved window.
    pub exit_by_flight: bool,
    /// Whether retransmissions are ECN-capable; forbidden by RFC 3168 section 6.1.5, done by ns-2.
    pub ect_retransmissions: bool,
    /// Initial slow-start threshold (segments), as a host may remember it from earlier connections (RFC 9040); `None`:
    /// the receive window.
    pub initial_threshold: Option<u32>,
    /// Rule by which a SACK sender declares segments lost.
    pub loss_detection: LossDetection,
    /// Whether a SACK sender detects a lost retransmission and repeats it; otherwise only the timer does.
    /// [`LossDetection::Rack`] always does.
    pub lost_retransmissions: bool,
    /// Window reduction of a SACK sender in recovery.
    pub reduction: Reduction,
    /// Whether a tail loss probe is sent after two round trips without an acknowledgement (TLP, RFC 8985 section 7);
    /// read with [`LossDetection::Rack`].
    pub tail_probe: bool,
    /// Whether a spurious timeout is undone (F-RTO, RFC 5682; RFC 3522); read with [`LossDetection::Rack`].
    pub frto: bool,
    /// Whether windows are whole numbers of segments: reductions are rounded down, and acknowledged segments are
    /// counted until they make one (as in Linux). Slow start then ends exactly at the threshold, and the
    /// acknowledgement that ends a recovery counts.
    pub whole_windows: bool,
    /// Number of immediate acknowledgements at the start, which speed up slow start.
    pub quick_acks: u8,
    /// Whether the first marked segment, the next, and the one with CWR are acknowledged at once (as in Linux).
    pub ack_marks: bool,
    /// Whether the delay of acknowledgements follows the gaps between segments, with immediate ones at the end of a
    /// write, after an idle period or a duplicate (as in Linux).
    pub adaptive_acks: bool,
    /// Segments of one write of an application with endless data; 0: a single endless write.
    pub write: u8,
    /// Whether segments sent together form a super-packet whose last segment carries PSH, as with segmentation offload
    /// in Linux. Read with [`LossDetection::Rack`].
    pub tso: bool,
    /// Time within which in-order segments share one acknowledgement, as with generic receive offload.
    pub ack_merging: Span,
    /// Behaviour specific to ns-2.
    pub quirks: Quirks,
}

/// Behaviour of ns-2.35 that no RFC specifies and no host shows, for cross-checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// Whether NewReno sends at most two segments for each duplicate acknowledgement in recovery.
    pub recovery_burst: bool,
    /// Whether a retransmission may carry CWR (`SetCWRonRetransmit_`); RFC 3168 asks for new data.
    pub cwr_retransmissions: bool,
    /// Whether a timeout keeps the threshold when the last reduction was for a mark, however long ago.
    pub timeout_after_mark_keeps_threshold: bool,
    /// Whether a mark echoed after a timeout counts although it belongs to the window before.
    pub mark_after_timeout_counts: bool,
    /// Whether backoff persists while marks are echoed to a window of one, and increases with each reaction
    /// (`ecn_backoff_`).
    pub ecn_backoff: bool,
    /// Whether the smoothed round-trip time is discarded after four backoffs (after 4.3BSD).
    pub forget_rtt: bool,
    /// Whether every segment is full: a transfer is rounded up to whole segments.
    pub full_segments: bool,
    /// Whether every acknowledgement restarts a SACK sender's timer (TCP-Linux of ns-2), not only those of new data
    /// (RFC 6298 rule 5.3).
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

    /// Behaviour of `Agent/TCP`.
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
    /// Deviation: ns-2's default window limit (`window_` 20) would be the bottleneck of every scenario; published
    /// scenarios set it. ECN is off, as there. `docs/transports/tcp.md` lists each value.
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

    /// TCP by current RFCs: SACK, ECN, initial window 10, delayed acknowledgements, timestamps.
    ///
    /// The minimum timeout is 200 ms, as in deployed stacks. RFC 6298 rule 2.4 asks for 1 s, which it explains with
    /// coarse clocks; every timeout would cost five times as much.
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

    /// TCP of a Linux host (6.x) with CUBIC; [`congestion`](Self::congestion) may also be Reno or BBR.
    ///
    /// Windows are whole segments, acknowledgements count in full, those at the start and after marks are immediate,
    /// and spurious timeouts are undone. The application writes 64 KiB at a time. ECN is on (sysctl `tcp_ecn` 1). As on
    /// most hosts only BBR is paced; `sch_fq` corresponds to [`pacing`](Self::pacing), receive offload to
    /// [`ack_merging`](Self::ack_merging).
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

    /// `Agent/TCP/Linux` of ns-2.35 with `cubic`, a reduction to 0.7, and `Agent/TCPSink/Sack1`, for cross-checks:
    /// CUBIC of Linux 2.6.22, segment sizes of [`ns2`](Self::ns2).
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

    /// [`modern`](Self::modern) with BBR version 1, which ignores ECN: its packets are not ECN-capable.
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

    /// Whether the sender tracks each segment in flight, for RACK.
    pub(super) fn uses_rack(&self) -> bool {
        self.variant == Variant::Sack && self.loss_detection == LossDetection::Rack
    }

    /// Whether the sender is ns-2's `Agent/TCP/Sack1`.
    pub(super) fn is_sack1(&self) -> bool {
        self.variant == Variant::Sack && self.loss_detection == LossDetection::Sack1
    }

    /// Checks every field, in the order of declaration.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const DAY: Span = Span::from_secs(86_400);
        const HOUR: Span = Span::from_secs(3_600);
        self.check_congestion()?;
        packet_sizes(self.packet_bytes, self.header_bytes, 20, "20 to 255 bytes")?;
        in_range("ack_bytes", self.ack_bytes, 20..=65_535, "20 to 65535 bytes")?;
        in_range("initial_window", self.initial_window, 1..=1 << 30, "1 to 2^30 segments")?;
        in_range("receive_window", self.receive_window, 1..=1 << 30, "1 to 2^30 segments")?;
        if let Some(delay) = self.delayed_ack {
            in_range("delayed_ack", delay, Span::from_nanos(1)..=Span::from_millis(500), "above 0 s, at most 0.5 s")?;
        }
        in_range("max_rto", self.max_rto, Span::from_micros(1)..=HOUR, "1 us to 1 h")?;
        in_range("min_rto", self.min_rto, Span::ZERO..=self.max_rto, "0 s to max_rto")?;
        in_range("initial_rto", self.initial_rto, Span::from_micros(1)..=self.max_rto, "1 us to max_rto")?;
        let whole = self.rto_tick.as_nanos().is_multiple_of(1_000);
        let valid = whole && (Span::from_micros(1)..=Span::from_secs(1)).contains(&self.rto_tick);
        require("rto_tick", self.rto_tick, valid, "whole microseconds, 1 us to 1 s")?;
        in_range("max_burst", self.max_burst, 0..=254, "0 (no limit) to 254 segments")?;
        in_range("growth_limit", self.growth_limit, 1..=1 << 30, "1 to 2^30 segments")?;
        if let Some(window) = self.restart_window {
            in_range("restart_window", window, 1..=1 << 30, "1 to 2^30 segments")?;
        }
        if let Some(threshold) = self.initial_threshold {
            in_range("initial_threshold", threshold, 2..=1 << 30, "2 to 2^30 segments")?;
        }
        let (repeats, reduces) = (self.lost_retransmissions, self.reduction != Reduction::AtOnce);
        require("lost_retransmissions", 1.0, !(self.is_sack1() && repeats), "false with loss_detection sack1")?;
        require("reduction", 1.0, !(self.is_sack1() && reduces), "at-once with loss_detection sack1")?;
        in_range("ack_merging", self.ack_merging, Span::ZERO..=Span::from_millis(10), "0 s to 10 ms")?;
        in_range("send_overhead", self.send_overhead, Span::ZERO..=DAY, "0 s to 1 day")?;
        let (least, text) =
            if self.whole_windows { (1.0, "1 to 2 segments with whole windows") } else { (0.0, "0 to 2 segments") };
        in_range("min_window", self.min_window, least..=2.0, text)
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
    /// Checks the requirements of the congestion control.
    fn check_congestion(&self) -> Result<(), ConfigError> {
        let properties = self.congestion.properties();
        for (field, requirement, met) in [
            ("variant", properties.sack, self.variant == Variant::Sack),
            ("ecn", properties.ecn, self.ecn),
            ("pacing", properties.pacing, self.pacing),
            ("timestamps", properties.timestamps, self.timestamps),
        ] {
            if let Some(text) = requirement {
                require(field, 0.0, met, text)?;
            }
        }
        Ok(())
    }
}
