//! The result of one run, with the keys that `aqumen run --json` prints.

use indexmap::IndexMap;
use serde::Serialize;

use crate::Histogram;

/// The result of one run of one engine.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// [`crate::SCHEMA`].
    pub schema: u32,
    /// Version of the program.
    pub aqumen: &'static str,
    /// The scenario's name.
    pub scenario: String,
    /// `packet`, `fluid`, `theory`, `live`, `ns2` or `ns3`.
    pub engine: &'static str,
    /// The AQM under test.
    pub aqm: AqmReport,
    /// The seed.
    pub seed: u64,
    /// Name of each window and its ends in seconds.
    pub windows: IndexMap<String, [f64; 2]>,
    /// Metrics of each recorded link in each window.
    pub links: IndexMap<String, IndexMap<String, LinkMetrics>>,
    /// Metrics of each flow group in each window.
    pub flows: IndexMap<String, IndexMap<String, FlowMetrics>>,
    /// What the run cost. The only part that differs from one run to the next.
    pub cost: Cost,
    /// Queue and probability of each recorded link over time.
    #[serde(skip)]
    pub series: IndexMap<String, Series>,
    /// Sojourn times of each recorded link in each window, nanoseconds.
    #[serde(skip)]
    pub sojourn: IndexMap<String, IndexMap<String, Histogram>>,
}

/// An AQM and the parameters in force, designed ones included.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AqmReport {
    /// Name of the algorithm or profile.
    pub name: String,
    /// Its parameters.
    pub params: IndexMap<String, ParamValue>,
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// A number in the parameter's unit.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A word.
    Choice(String),
}

/// What a link did in one window. Ratios are over arrivals; an undefined one (no arrivals, no target) is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkMetrics {
    /// Departed bits / capacity bits; of a packet in transmission at an edge of the window, the part inside counts.
    pub utilization: Option<f64>,
    /// Time average of the packets waiting.
    pub queue_mean_pkts: f64,
    /// Time-averaged standard deviation of the packets waiting.
    pub queue_std_pkts: f64,
    /// Root mean square over time of queue minus target.
    pub qacd_pkts: Option<f64>,
    /// The same at the AQM's sampling instants.
    pub qacd_sampled_pkts: Option<f64>,
    /// Mean time from arrival to the start of transmission, seconds.
    pub sojourn_mean_s: Option<f64>,
    /// Median of the same.
    pub sojourn_p50_s: Option<f64>,
    /// Its 95th percentile.
    pub sojourn_p95_s: Option<f64>,
    /// Its 99th percentile.
    pub sojourn_p99_s: Option<f64>,
    /// Packets that arrived.
    pub arrivals_pkts: u64,
    /// Packets whose transmission ended.
    pub departures_pkts: u64,
    /// Packets marked CE.
    pub marked_pkts: u64,
    /// Packets the AQM discarded.
    pub early_dropped_pkts: u64,
    /// Packets discarded for want of room.
    pub overflow_dropped_pkts: u64,
    /// Packets lost on the wire after their transmission.
    pub wire_lost_pkts: Option<u64>,
    /// Marked / arrived.
    pub mark_ratio: Option<f64>,
    /// Discarded by the AQM / arrived.
    pub early_drop_ratio: Option<f64>,
    /// Discarded for want of room / arrived.
    pub overflow_drop_ratio: Option<f64>,
}

/// What a flow group got in one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowMetrics {
    /// Bits delivered in order to the receiving applications, per second.
    pub goodput_bps: f64,
    /// Jain's index of the flows' goodputs, (sum x)^2 / (n sum x^2).
    pub jain_fairness: Option<f64>,
    /// Mean of the senders' round-trip time samples, seconds.
    pub rtt_mean_s: Option<f64>,
    /// Retransmitted / sent segments.
    pub retransmitted_ratio: Option<f64>,
    /// Retransmission time-outs.
    pub timeouts: Option<u64>,
    /// Real-time traffic: mean one-way delay, seconds.
    pub delay_mean_s: Option<f64>,
    /// Real-time traffic: mean interarrival jitter (RFC 3550), seconds.
    pub jitter_mean_s: Option<f64>,
    /// Real-time traffic: lost / sent packets.
    pub loss_ratio: Option<f64>,
}

/// What a run cost.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cost {
    /// CPU time of the run, set-up included, seconds.
    pub cpu_s: f64,
    /// Time on the clock, seconds.
    pub wall_s: f64,
    /// Events processed.
    pub events: u64,
    /// Packets that crossed the recorded links.
    pub bottleneck_packets: u64,
}

/// A link over time, sampled at equal steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Sampling instants, seconds.
    pub t_s: Vec<f64>,
    /// Packets waiting.
    pub queue_pkts: Vec<f64>,
    /// Probability in force.
    pub probability: Vec<f64>,
}
