//! The result of one run, with the keys that `aqumen run --json` prints.

use indexmap::IndexMap;
use serde::Serialize;

use crate::{CompletionMetrics, Histogram};

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
    /// What a reader should know of the run: one line each. Left out where there is nothing to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the run cost. The only part that differs from one run to the next.
    pub cost: Cost,
    /// Queue and probability of each recorded link over time.
    #[serde(skip)]
    pub series: IndexMap<String, Series>,
    /// Sojourn times of each recorded link in each window, nanoseconds.
    #[serde(skip)]
    pub sojourn: IndexMap<String, IndexMap<String, Histogram>>,
    /// Queue lengths of each recorded link in each window, packets, counted by the nanoseconds that each lasted.
    #[serde(skip)]
    pub queue: IndexMap<String, IndexMap<String, Histogram>>,
}

impl RunResult {
    /// A run of `engine` of which nothing is told yet.
    ///
    /// `windows`: name and ends in seconds, of the scenario called `scenario` with `seed`.
    pub fn begun(
        engine: &'static str,
        scenario: &str,
        seed: u64,
        windows: impl Iterator<Item = (String, [f64; 2])>,
    ) -> Self {
        RunResult {
            schema: crate::SCHEMA,
            aqumen: env!("CARGO_PKG_VERSION"),
            scenario: scenario.into(),
            engine,
            aqm: AqmReport::default(),
            seed,
            windows: windows.collect(),
            links: IndexMap::new(),
            flows: IndexMap::new(),
            notes: Vec::new(),
            cost: Cost::default(),
            series: IndexMap::new(),
            sojourn: IndexMap::new(),
            queue: IndexMap::new(),
        }
    }
}

/// An AQM: what it was given, and what that resolved to. Numbers are in the units of the algorithm's table: packets,
/// seconds, bit/s, Hz.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AqmReport {
    /// Name of the algorithm.
    pub name: String,
    /// The values given, a profile's included.
    pub given: IndexMap<String, ParamValue>,
    /// The parameters in force, designed ones included.
    pub params: IndexMap<String, ParamValue>,
    /// The network for which what was not given is designed.
    pub nominal: NominalReport,
}

/// The network for which an AQM designs what it is not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct NominalReport {
    /// Capacity.
    pub capacity_bps: u64,
    /// Long-lived flows.
    pub flows: f64,
    /// Round-trip time without queueing, seconds.
    pub base_rtt_s: f64,
    /// Target queue length, packets.
    pub target_pkts: f64,
    /// Mean packet on the wire, bytes.
    pub packet_bytes: f64,
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

/// Range of the values of a metric, by its key.
pub fn range_of(key: &str) -> [f64; 2] {
    match key {
        "utilization" | "jain_fairness" | "fairness_mean" | "probability_mean" | "arrivals_hurst" => [0.0, 1.0],
        "mos" => [1.0, 4.5],
        "r_factor" => [0.0, 100.0],
        "sync_index" => [-1.0, 1.0],
        "rtt_fairness_slope" => [f64::NEG_INFINITY, f64::INFINITY],
        key if key.ends_with("_ratio") => [0.0, 1.0],
        _ => [0.0, f64::INFINITY],
    }
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
    /// Queue length below which the queue was for 5 % of the time.
    pub queue_p5_pkts: Option<f64>,
    /// For a quarter of the time.
    pub queue_p25_pkts: Option<f64>,
    /// For half of the time.
    pub queue_p50_pkts: Option<f64>,
    /// For three quarters of the time.
    pub queue_p75_pkts: Option<f64>,
    /// For 95 % of the time.
    pub queue_p95_pkts: Option<f64>,
    /// Share of the time during which no packet waited.
    pub queue_empty_ratio: Option<f64>,
    /// Share of the time during which fewer packets waited than the target.
    pub queue_below_target_ratio: Option<f64>,
    /// Mean of the samples of the probability in force.
    pub probability_mean: Option<f64>,
    /// Integral over time of the absolute value of queue minus target, packets x seconds.
    pub queue_iae_pkts_s: Option<f64>,
    /// Integral over time of its square, packets^2 x seconds.
    pub queue_ise_pkts2_s: Option<f64>,
    /// Seconds from the start of the window until the queue has settled; see [`crate::transient()`].
    pub settling_s: Option<f64>,
    /// Largest sample of the queue above the target until then, packets.
    pub overshoot_pkts: Option<f64>,
    /// Mean number of packets lost one directly after the other.
    pub loss_run_mean_pkts: Option<f64>,
    /// The most of them.
    pub loss_run_max_pkts: Option<u64>,
    /// Index of dispersion of the losses over the sampling interval.
    pub loss_dispersion: Option<f64>,
    /// Mean time from one loss to the next, seconds (RFC 7928 section 2.3).
    pub loss_interval_mean_s: Option<f64>,
    /// Its median.
    pub loss_interval_p50_s: Option<f64>,
    /// Its 95th percentile.
    pub loss_interval_p95_s: Option<f64>,
    /// Mean number of flows that lose packets within one round trip of a loss; see [`crate::LossClock`].
    pub loss_event_flows_mean: Option<f64>,
    /// The same over the flows that cross the link: 1 where each event hits all (RFC 7928 section 2.4).
    pub loss_sync_ratio: Option<f64>,
    /// Hurst parameter of the packets that arrive per sampling interval; see [`crate::hurst_at_queue`].
    pub arrivals_hurst: Option<f64>,
    /// How much the windows of the flows move together; see [`crate::Synchrony`].
    pub sync_index: Option<f64>,
    /// Slope of ln(goodput) over ln(round-trip time) of the flows; see [`crate::rtt_slope`].
    pub rtt_fairness_slope: Option<f64>,
    /// Mean over time of Jain's index over sliding intervals.
    pub fairness_mean: Option<f64>,
    /// Seconds from the last start of a flow until that index reaches 0.9.
    pub convergence_s: Option<f64>,
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
    /// Mean sojourn time of its data packets at a recorded link, seconds; of several at that where they waited longest.
    pub sojourn_mean_s: Option<f64>,
    /// Its 95th percentile.
    pub sojourn_p95_s: Option<f64>,
    /// Its 99th percentile.
    pub sojourn_p99_s: Option<f64>,
    /// Retransmitted / sent segments.
    pub retransmitted_ratio: Option<f64>,
    /// Retransmission time-outs.
    pub timeouts: Option<u64>,
    /// Mean one-way delay, seconds. Of TCP two of 16 segments are looked at.
    pub delay_mean_s: Option<f64>,
    /// Mean interarrival jitter (RFC 3550), seconds; of TCP the mean change of the delay between two segments in a row.
    pub jitter_mean_s: Option<f64>,
    /// Lost / sent packets: as the receivers of real-time traffic see it, of TCP as queues and wires do.
    pub loss_ratio: Option<f64>,
    /// Bits of packets, headers included, that reached the receivers, per second.
    pub throughput_bps: Option<f64>,
    /// Median of the one-way delay, seconds.
    pub delay_p50_s: Option<f64>,
    /// Its 95th percentile.
    pub delay_p95_s: Option<f64>,
    /// Its 99th percentile.
    pub delay_p99_s: Option<f64>,
    /// Packet delay variation (RFC 5481 section 4.2): 95th percentile of the delay less the smallest, seconds.
    pub delay_variation_p95_s: Option<f64>,
    /// The same with the 99th percentile.
    pub delay_variation_p99_s: Option<f64>,
    /// Mean number of packets lost one directly after the other.
    pub loss_burst_mean_pkts: Option<f64>,
    /// Video: frames that should have been shown.
    pub frames: Option<u64>,
    /// Video: frames of which a packet was lost or late / frames.
    pub frame_loss_ratio: Option<f64>,
    /// Voice: rating R of the E-model.
    pub r_factor: Option<f64>,
    /// Voice: mean opinion score.
    pub mos: Option<f64>,
    /// Arrivals of the application that found no flow idle.
    pub refused: Option<u64>,
    /// Transfers: mean time from the request to the first data that reach the application, seconds (RFC 7928 section
    /// 2.2).
    pub startup_mean_s: Option<f64>,
    /// Its median.
    pub startup_p50_s: Option<f64>,
    /// Its 95th percentile.
    pub startup_p95_s: Option<f64>,
    /// Web: pages that were loaded.
    pub pages: Option<u64>,
    /// Web: mean time to load a page, seconds.
    pub page_load_mean_s: Option<f64>,
    /// Its median.
    pub page_load_p50_s: Option<f64>,
    /// Its 95th percentile.
    pub page_load_p95_s: Option<f64>,
    /// Its 99th percentile.
    pub page_load_p99_s: Option<f64>,
    /// Films in segments: viewers whose picture has moved by the end of the window.
    pub video_began: Option<u64>,
    /// Mean time from the first request to the first picture, of those that began in the window, seconds.
    pub video_startup_mean_s: Option<f64>,
    /// Stalls that began in the window.
    pub video_stalls: Option<u64>,
    /// Time stalled / time from the first picture to the last.
    pub video_stalled_ratio: Option<f64>,
    /// Mean bit rate of the segments that came in the window.
    pub video_bitrate_mean_bps: Option<f64>,
    /// Segments that came in the window with another bit rate than the one before.
    pub video_switches: Option<u64>,
    /// Times of finite transfers, by size.
    #[serde(flatten)]
    pub completions: CompletionMetrics,
}

impl FlowMetrics {
    /// Fills in what sojourn times at a link say, in nanoseconds, unless the packets waited longer at another.
    pub fn tell_sojourn(&mut self, sojourn: &Histogram) {
        let seconds = |ns: Option<f64>| ns.map(|ns| ns * 1e-9);
        let mean = seconds(sojourn.mean());
        if mean > self.sojourn_mean_s {
            self.sojourn_mean_s = mean;
            self.sojourn_p95_s = seconds(sojourn.quantile(0.95));
            self.sojourn_p99_s = seconds(sojourn.quantile(0.99));
        }
    }
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
    /// Threads that shared the run, if more than one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
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
    /// What the AQM shows of its state, such as its estimate of the capacity, by name; not a number where it showed
    /// nothing.
    pub state: IndexMap<&'static str, Vec<f64>>,
}

impl Series {
    /// One more sample of a link with so many packets waiting; what of its AQM's state belongs to it comes by
    /// [`Series::observe`].
    pub fn sample(&mut self, at_s: f64, queue_pkts: f64, probability: f64) {
        self.state.values_mut().for_each(|values| values.resize(self.t_s.len(), f64::NAN));
        self.t_s.push(at_s);
        self.queue_pkts.push(queue_pkts);
        self.probability.push(probability);
    }

    /// A quantity of the AQM's state at the latest sample.
    pub fn observe(&mut self, name: &'static str, value: f64) {
        // They are few: the right one is found sooner than its hash is worked out.
        let known = self.state.keys().position(|known| *known == name);
        let number = known.unwrap_or_else(|| self.state.insert_full(name, Vec::new()).0);
        let values = &mut self.state[number];
        values.resize(self.t_s.len().saturating_sub(1), f64::NAN);
        values.push(value);
    }

    /// The series of a quantity, as long as the others; `None` if the AQM never showed it.
    pub fn state(&self, name: &str) -> Option<Vec<f64>> {
        let mut values = self.state.get(name)?.clone();
        values.resize(self.t_s.len(), f64::NAN);
        Some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_as_long_as_the_series_whenever_it_was_shown() {
        // The AQM changes after the second sample: from then on it shows `b` and no longer `a`.
        let mut series = Series::default();
        for (at, name) in ["a", "a", "b"].into_iter().enumerate() {
            series.sample(at as f64, 7.0, 0.5);
            series.observe(name, at as f64);
        }
        series.sample(3.0, 7.0, 0.5);
        let shown =
            |name| series.state(name).map(|values| values.into_iter().map(|x| (!x.is_nan()).then_some(x)).collect());
        assert_eq!(shown("a"), Some(vec![Some(0.0), Some(1.0), None, None]));
        assert_eq!(shown("b"), Some(vec![None, None, Some(2.0), None]));
        assert_eq!(shown("c"), None);
        assert_eq!(series.queue_pkts.len(), 4);
    }

    #[test]
    fn a_flow_group_waits_as_long_as_at_the_link_where_it_waits_longest() {
        // 2^30 ns is where a bin begins: 1.07 s; 2^28: a quarter of that, 2^31 twice as much.
        let waits = |ns: u64| {
            let mut histogram = Histogram::default();
            histogram.record(ns);
            histogram
        };
        let mut metrics = FlowMetrics::default();
        let second = (1u64 << 30) as f64 * 1e-9;
        for (ns, longest) in [(1 << 30, 1.0), (1 << 28, 1.0), (1 << 31, 2.0)] {
            metrics.tell_sojourn(&waits(ns));
            for told in [metrics.sojourn_mean_s, metrics.sojourn_p95_s, metrics.sojourn_p99_s] {
                assert!((told.unwrap() / second - longest).abs() < 0.02, "after {ns} ns: {metrics:?}");
            }
        }
        // No packet crossed the link: nothing is said of it.
        let before = metrics.clone();
        metrics.tell_sojourn(&Histogram::default());
        assert_eq!(metrics.sojourn_mean_s, before.sojourn_mean_s);
    }
}
