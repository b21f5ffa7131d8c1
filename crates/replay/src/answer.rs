//! Result of a replay. Field names are the keys of `aqumen replay --json`.

use aqumen_result::AqmReport;
use serde::Serialize;

/// Result of one AQM on a capture.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The capture.
    pub capture: CaptureReport,
    /// Settings of the queue and the replay.
    pub setup: SetupReport,
    /// The AQM and its parameters in force.
    pub aqm: AqmReport,
    /// The queue and the link.
    pub link: LinkReport,
    /// All packets.
    pub total: ClassReport,
    /// Packets by protocol and port.
    pub services: Vec<ClassReport>,
    /// Packets by DSCP and ECN field, as they arrived.
    pub traffic_classes: Vec<ClassReport>,
    /// Flows with most bytes.
    pub flows: Vec<FlowReport>,
    /// All other flows together.
    pub other_flows: Counts,
    /// CPU time that the replay took, seconds.
    pub cpu_s: f64,
}

/// Contents of a capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CaptureReport {
    /// Packets that were offered.
    pub packets: u64,
    /// Bytes of these packets on the link.
    pub bytes: u64,
    /// Time from the first offered packet to the last, seconds.
    pub duration_s: f64,
    /// Offered load, bits per second; absent if the capture has no duration.
    pub offered_bps: Option<f64>,
    /// Number of flows.
    pub flows: u64,
    /// Packets with a time before that of the previous packet: offered together with it.
    pub reordered_pkts: u64,
    /// Pauses of more than an hour, which were shortened to one.
    pub pauses_shortened: u64,
    /// Packets without a time, which were left out.
    pub timeless_pkts: u64,
    /// Packets in which no IP header was found.
    pub not_ip_pkts: u64,
    /// Packets among these of an unsupported link type.
    pub unknown_link_pkts: u64,
    /// Packets larger than any jumbo frame: not yet segmented by the host's offload.
    pub super_pkts: u64,
    /// Whether the file ends within a packet.
    pub cut_off: bool,
}

/// The settings of a replay in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetupReport {
    /// Rate of the link, bits per second.
    pub rate_bps: u64,
    /// Buffer in packets.
    pub buffer_pkts: u32,
    /// Buffer in bytes, if it is limited so.
    pub buffer_bytes: Option<u64>,
    /// Propagation delay of the link, seconds.
    pub delay_s: f64,
    /// Bytes that each packet takes on the link beyond its length in the capture.
    pub overhead_bytes: i64,
    /// Ratio of offered to captured speed.
    pub speedup: f64,
    /// The only interface whose packets counted.
    pub interface: Option<u32>,
    /// Seed of the AQM's random numbers.
    pub seed: u64,
    /// Target queue for which AQMs design themselves, packets.
    pub target_pkts: f64,
    /// Number of flows for which AQMs design themselves.
    pub nominal_flows: f64,
    /// Round-trip time for which AQMs design themselves, seconds.
    pub nominal_rtt_s: f64,
    /// Packet size for which AQMs design themselves, bytes.
    pub nominal_packet_bytes: f64,
}

/// Metrics of the queue and its link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkReport {
    /// Time from the first arrival to the last arrival or the end of the last transmission, seconds.
    pub elapsed_s: f64,
    /// Fraction of this time in which the link was busy.
    pub utilization: Option<f64>,
    /// Mean of the packets waiting over this time.
    pub queue_mean_pkts: Option<f64>,
    /// Standard deviation of the packets waiting.
    pub queue_std_pkts: Option<f64>,
    /// Most packets waiting.
    pub queue_max_pkts: u32,
    /// Packets still in the queue when nothing more left it.
    pub left_pkts: u32,
}

/// Counts of packets by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Packets that arrived.
    pub arrivals_pkts: u64,
    /// Bytes of these packets on the link.
    pub arrived_bytes: u64,
    /// Packets that left.
    pub departures_pkts: u64,
    /// Bytes of these packets on the link.
    pub departed_bytes: u64,
    /// Packets that the AQM marked.
    pub marked_pkts: u64,
    /// Packets that the AQM dropped.
    pub early_dropped_pkts: u64,
    /// Packets dropped because the buffer was full.
    pub overflow_dropped_pkts: u64,
}

/// A class of packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassReport {
    /// Name.
    pub name: String,
    /// Counts of its packets.
    #[serde(flatten)]
    pub counts: Counts,
    /// Sojourn times of its packets.
    #[serde(flatten)]
    pub sojourn: Sojourn,
}

/// Sojourn times: from a packet's arrival to the start of its transmission, seconds. Absent if none was transmitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sojourn {
    /// Mean.
    #[serde(rename = "sojourn_mean_s")]
    pub mean_s: Option<f64>,
    /// Median.
    #[serde(rename = "sojourn_p50_s")]
    pub p50_s: Option<f64>,
    /// 95th percentile.
    #[serde(rename = "sojourn_p95_s")]
    pub p95_s: Option<f64>,
    /// 99th percentile.
    #[serde(rename = "sojourn_p99_s")]
    pub p99_s: Option<f64>,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowReport {
    /// Protocol, source and destination.
    pub flow: String,
    /// Counts of its packets.
    #[serde(flatten)]
    pub counts: Counts,
    /// Mean sojourn time, seconds.
    pub sojourn_mean_s: Option<f64>,
    /// Longest sojourn time, seconds.
    pub sojourn_max_s: Option<f64>,
}

impl Counts {
    /// Adds the counts of another class.
    pub(crate) fn add(&mut self, other: &Counts) {
        self.arrivals_pkts += other.arrivals_pkts;
        self.arrived_bytes += other.arrived_bytes;
        self.departures_pkts += other.departures_pkts;
        self.departed_bytes += other.departed_bytes;
        self.marked_pkts += other.marked_pkts;
        self.early_dropped_pkts += other.early_dropped_pkts;
        self.overflow_dropped_pkts += other.overflow_dropped_pkts;
    }
}
