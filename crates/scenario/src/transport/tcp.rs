//! The settings of TCP.

use aqumen_transport::tcp::{Congestion, LossDetection, Reduction, RtoFloor, TcpConfig, Variant};

use super::settings::{Setting, Table, settings};

const VARIANTS: [Variant; 3] = [Variant::Reno, Variant::NewReno, Variant::Sack];
const VARIANT_NAMES: &[&str] = &["reno", "newreno", "sack"];

/// Name of the congestion control.
pub(super) fn congestion_name(config: &TcpConfig) -> &'static str {
    Congestion::NAMES[congestion_index(config)]
}

const DETECTIONS: [LossDetection; 4] =
    [LossDetection::Rfc6675, LossDetection::Sack1, LossDetection::Fack, LossDetection::Rack];
const DETECTION_NAMES: &[&str] = &["rfc6675", "sack1", "fack", "rack"];

const REDUCTIONS: [Reduction; 3] = [Reduction::AtOnce, Reduction::Proportional, Reduction::RateHalving];
const REDUCTION_NAMES: &[&str] = &["at-once", "prr", "rate-halving"];

impl Table for TcpConfig {
    const SETTINGS: &'static [Setting<Self>] = settings! {
        "variant" variant Choice (VARIANT_NAMES, variant_index, |config, index| config.variant = VARIANTS[index]): "how losses are repaired";
        "congestion" congestion Choice (Congestion::NAMES, congestion_index, |config, index| config.congestion = Congestion::ALL[index]):
            "how the window follows acknowledgements, losses and marks";
        "hystart" hystart Flag: "whether CUBIC leaves slow start when the round trip grows (HyStart)";
        "reno_friendly" reno_friendly Flag: "whether CUBIC's window is at least that of Reno";
        "pacing" pacing Flag: "whether segments are paced over the round trip; required by bbr and prague";
        "ecn" ecn Flag: "whether data packets are ECN-capable";
        "packet" packet_bytes Size: "size on the wire of a full data packet";
        "header" header_bytes Size: "header bytes of a packet; also the size of a SYN";
        "ack" ack_bytes Size: "size on the wire of an acknowledgement";
        "initial_window" initial_window Segments: "congestion window at the start";
        "receive_window" receive_window Segments: "largest window that the receiver advertises";
        "delayed_ack" delayed_ack TimeOrNone: "longest delay of an acknowledgement; \"none\": one for each segment";
        "min_rto" min_rto Time: "lower bound of the retransmission timeout";
        "rto_floor" rto_floor Choice (&["timeout", "variation"], |config| config.rto_floor as usize, |config, index| {
            config.rto_floor = [RtoFloor::Timeout, RtoFloor::Variation][index];
        }): "quantity that min_rto bounds: the whole timeout, or its excess over the smoothed round trip";
        "max_rto" max_rto Time: "upper bound of the retransmission timeout";
        "initial_rto" initial_rto Time: "retransmission timeout before the first round-trip sample";
        "rto_tick" rto_tick Time: "granularity of the clock that measures round trips";
        "max_burst" max_burst Burst: "most segments sent per acknowledgement; \"none\": no limit";
        "limited_transmit" limited_transmit Flag: "whether the first two duplicate acknowledgements each release a segment";
        "growth_limit" growth_limit Segments: "most segments by which one acknowledgement counts towards window growth";
        "restart_window" restart_window SegmentsOrNone: "window after a pause; \"none\": unchanged";
        "syn" syn Flag: "whether the connection opens with a SYN";
        "timestamps" timestamps Flag: "whether each acknowledgement gives a round-trip sample";
        "segment_times" segment_times Flag:
            "whether round trips are measured on the acknowledged segments, SACK included, and by timestamp only otherwise, as in Linux; read with rack";
        "send_overhead" send_overhead Time: "upper bound of the random delay before sends";
        "min_window" min_window WindowFloor: "smallest window after a reaction to marks, 0 to 2 segments";
        "halve_flight" halve_flight Flag: "whether a reduction halves the flight size; otherwise the window";
        "validate_window" validate_window Flag: "whether the window grows only while it limits the sender";
        "exit_by_flight" exit_by_flight Flag: "whether NewReno leaves recovery with a window of the flight size plus one";
        "recovery_burst" recovery_burst Quirk: "whether NewReno sends at most two segments for a duplicate acknowledgement in recovery";
        "ect_retransmissions" ect_retransmissions Flag: "whether retransmissions are ECN-capable";
        "cwr_retransmissions" cwr_retransmissions Quirk: "whether a retransmission may carry CWR";
        "timeout_after_mark_keeps_threshold" timeout_after_mark_keeps_threshold Quirk:
            "whether a timeout in the window of a reaction to a mark leaves the threshold alone";
        "mark_after_timeout_counts" mark_after_timeout_counts Quirk: "whether a mark echoed after a timeout counts";
        "ecn_backoff" ecn_backoff Quirk: "whether the timer stays backed off while marks come back to a window of one";
        "forget_rtt" forget_rtt Quirk: "whether the smoothed round trip is discarded after four backoffs";
        "full_segments" full_segments Quirk: "whether a transfer is rounded up to whole segments";
        "initial_threshold" initial_threshold SegmentsOrNone: "slow-start threshold at the start; \"none\": the receive window";
        "loss_detection" loss_detection Choice (DETECTION_NAMES, detection_index, |config, index| config.loss_detection = DETECTIONS[index]):
            "loss detection of a sack sender";
        "lost_retransmissions" lost_retransmissions Flag: "whether a sack sender notices that a retransmission was lost; always with rack";
        "reduction" reduction Choice (REDUCTION_NAMES, reduction_index, |config, index| config.reduction = REDUCTIONS[index]):
            "how a sack sender in recovery reaches its reduced window";
        "timer_on_any_ack" timer_on_any_ack Quirk: "whether a sack sender restarts the timer with each acknowledgement";
        "tail_probe" tail_probe Flag: "whether a probe is sent after two round trips without acknowledgements (TLP); read with rack";
        "frto" frto Flag: "whether a timeout that proves spurious is undone (F-RTO); read with rack";
        "whole_windows" whole_windows Flag: "whether windows are whole numbers of segments, as in Linux";
        "quick_acks" quick_acks Burst: "acknowledgements without delay at the start; \"none\": all are delayed";
        "ack_marks" ack_marks Flag: "whether a marked segment, the next one and one with CWR are acknowledged at once, as in Linux";
        "adaptive_acks" adaptive_acks Flag: "whether the delay of acknowledgements adapts to the data rate, with none at the end of a write, after an idle time or a duplicate, as in Linux";
        "write" write Burst: "segments per write of a bulk application, the last with PSH; \"none\": unlimited";
        "tso" tso Flag: "whether segments sent together form a super-packet, whose last carries PSH, as with segmentation offload in Linux; read with rack";
        "ack_merging" ack_merging Time: "interval within which segments in order are acknowledged together (GRO)";
    };

    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        self.validate().map_err(|error| (error.field, error.range))
    }
}

fn variant_index(config: &TcpConfig) -> usize {
    VARIANTS.iter().position(|variant| *variant == config.variant).unwrap_or(0)
}

fn congestion_index(config: &TcpConfig) -> usize {
    Congestion::ALL.iter().position(|congestion| *congestion == config.congestion).unwrap_or(0)
}

fn detection_index(config: &TcpConfig) -> usize {
    DETECTIONS.iter().position(|detection| *detection == config.loss_detection).unwrap_or(0)
}

fn reduction_index(config: &TcpConfig) -> usize {
    REDUCTIONS.iter().position(|reduction| *reduction == config.reduction).unwrap_or(0)
}
