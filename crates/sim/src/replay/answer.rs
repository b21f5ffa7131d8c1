//! What a replay answers. The names of the fields are the keys of `aqumen replay --json`.

use aqumen_result::AqmReport;
use serde::Serialize;

/// What one AQM did to a capture.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// What was replayed.
    pub capture: CaptureReport,
    /// To what it was offered, and how.
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
    /// The flows with most bytes.
    pub flows: Vec<FlowReport>,
    /// All other flows together.
    pub other_flows: Counts,
    /// CPU time that the replay took, seconds.
    pub cpu_s: f64,
}

/// What a capture holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CaptureReport {
    /// Packets that were offered.
    pub packets: u64,
    /// Their bytes on the link.
    pub bytes: u64,
    /// From the first to the last as they were offered, seconds.
    pub duration_s: f64,
    /// Their bits over this time, bits per second; absent if there is no such time.
    pub offered_bps: Option<f64>,
    /// Flows that were told apart.
    pub flows: u64,
    /// Packets stamped before one ahead of them: offered together with it.
    pub reordered_pkts: u64,
    /// Pauses of more than an hour, which were shortened to one.
    pub pauses_shortened: u64,
    /// Packets without a time, which were left out.
    pub timeless_pkts: u64,
    /// Packets in which no IP header was found.
    pub not_ip_pkts: u64,
    /// Packets of a link type that is not understood, of those.
    pub unknown_link_pkts: u64,
    /// Packets larger than any jumbo frame: what offloading in the host had not yet cut into packets.
    pub super_pkts: u64,
    /// Whether the file ends within a packet.
    pub cut_off: bool,
}

/// The settings of a replay in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetupReport {
    /// Rate of the link, bits per second.
    pub rate_bps: u64,
    /// Room of the queue, packets.
    pub buffer_pkts: u32,
    /// Room of the queue in bytes, if it has such a limit.
    pub buffer_bytes: Option<u64>,
    /// Propagation delay of the link, seconds.
    pub delay_s: f64,
    /// Bytes that each packet takes on the link beyond its length in the capture.
    pub overhead_bytes: i64,
    /// How many times faster than they were captured the packets were offered.
    pub speedup: f64,
    /// The only interface whose packets counted.
    pub interface: Option<u32>,
    /// Seed of the AQM's random numbers.
    pub seed: u64,
    /// Target queue for which AQMs design themselves, packets.
    pub target_pkts: f64,
    /// Flows for which they do.
    pub nominal_flows: f64,
    /// Round-trip time for which they do, seconds.
    pub nominal_rtt_s: f64,
    /// Packet size for which they do, bytes.
    pub nominal_packet_bytes: f64,
}

/// What a queue and its link did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkReport {
    /// From the first arrival to the last arrival or the end of the last transmission, whichever is later, seconds.
    pub elapsed_s: f64,
    /// Share of this time in which the link was busy.
    pub utilization: Option<f64>,
    /// Mean of the packets waiting over this time.
    pub queue_mean_pkts: Option<f64>,
    /// Their standard deviation.
    pub queue_std_pkts: Option<f64>,
    /// Most packets waiting.
    pub queue_max_pkts: u32,
    /// Packets still in the queue when nothing more left it.
    pub left_pkts: u32,
}

/// What happened to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Packets that arrived.
    pub arrivals_pkts: u64,
    /// Their bytes on the link.
    pub arrived_bytes: u64,
    /// Packets that left.
    pub departures_pkts: u64,
    /// Their bytes on the link.
    pub departed_bytes: u64,
    /// Packets that the AQM marked.
    pub marked_pkts: u64,
    /// Packets that the AQM dropped.
    pub early_dropped_pkts: u64,
    /// Packets dropped for want of room.
    pub overflow_dropped_pkts: u64,
}

/// A class of packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassReport {
    /// Its name.
    pub name: String,
    /// What happened to its packets.
    #[serde(flatten)]
    pub counts: Counts,
    /// How long they waited.
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
    /// What happened to its packets.
    #[serde(flatten)]
    pub counts: Counts,
    /// Mean sojourn time, seconds.
    pub sojourn_mean_s: Option<f64>,
    /// Longest sojourn time, seconds.
    pub sojourn_max_s: Option<f64>,
}

impl Counts {
    /// Adds those of another class.
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
