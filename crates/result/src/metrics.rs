//! Result of one run, with the keys of `aqumen run --json`.

use indexmap::IndexMap;
use serde::Serialize;

use crate::{CompletionMetrics, Histogram};

/// Result of one run of one engine.
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
    /// Name and bounds (seconds) of each window.
    pub windows: IndexMap<String, [f64; 2]>,
    /// Metrics of each recorded link in each window.
    pub links: IndexMap<String, IndexMap<String, LinkMetrics>>,
    /// Metrics of each flow group in each window.
    pub flows: IndexMap<String, IndexMap<String, FlowMetrics>>,
    /// Notes on the run, one line each; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Cost of the run; the only part that is not reproducible.
    pub cost: Cost,
    /// Time series of each recorded link.
    #[serde(skip)]
    pub series: IndexMap<String, Series>,
    /// Sojourn times of each recorded link in each window, nanoseconds.
    #[serde(skip)]
    pub sojourn: IndexMap<String, IndexMap<String, Histogram>>,
    /// Queue lengths (packets) of each recorded link in each window, weighted by time in nanoseconds.
    #[serde(skip)]
    pub queue: IndexMap<String, IndexMap<String, Histogram>>,
}

impl RunResult {
    /// An empty result of `engine`.
    ///
    /// `windows`: name and bounds in seconds, of the scenario called `scenario` with `seed`.
    pub fn new(
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

/// Configuration of an AQM. Numbers are in the units of the algorithm's table: packets, seconds, bit/s, Hz.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AqmReport {
    /// Name of the algorithm.
    pub name: String,
    /// Given values, including those of a profile.
    pub given: IndexMap<String, ParamValue>,
    /// Parameters in force, including designed ones.
    pub params: IndexMap<String, ParamValue>,
    /// Nominal network for which missing parameters are designed.
    pub nominal: NominalReport,
}

/// Nominal network for which an AQM designs parameters that are not given.
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
    /// A boolean.
    Flag(bool),
    /// A name.
    Choice(String),
}

/// Range of values of a metric, by its key.
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

/// Metrics of a link in one window. Ratios are over arrivals; undefined ones (no arrivals, no target) are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkMetrics {
    /// Departed bits / capacity bits; packets in transmission at a window edge count by the part inside.
    pub utilization: Option<f64>,
    /// Time average of the queue length, packets.
    pub queue_mean_pkts: f64,
    /// Time-averaged standard deviation of the queue length, packets.
    pub queue_std_pkts: f64,
    /// Root mean square over time of queue minus target.
    pub qacd_pkts: Option<f64>,
    /// Root mean square of queue minus target at the AQM's sampling instants.
    pub qacd_sampled_pkts: Option<f64>,
    /// Mean time from arrival to the start of transmission, seconds.
    pub sojourn_mean_s: Option<f64>,
    /// Median of the sojourn time.
    pub sojourn_p50_s: Option<f64>,
    /// 95th percentile of the sojourn time.
    pub sojourn_p95_s: Option<f64>,
    /// 99th percentile of the sojourn time.
    pub sojourn_p99_s: Option<f64>,
    /// Packets that arrived.
    pub arrivals_pkts: u64,
    /// Packets whose transmission ended.
    pub departures_pkts: u64,
    /// Packets marked CE.
    pub marked_pkts: u64,
    /// Packets that the AQM dropped.
    pub early_dropped_pkts: u64,
    /// Packets lost to a full buffer.
    pub overflow_dropped_pkts: u64,
    /// Packets lost on the wire after their transmission.
    pub wire_lost_pkts: Option<u64>,
    /// Marked / arrived.
    pub mark_ratio: Option<f64>,
    /// Dropped by the AQM / arrived.
    pub early_drop_ratio: Option<f64>,
    /// Lost to a full buffer / arrived.
    pub overflow_drop_ratio: Option<f64>,
    /// 5th percentile of the queue length over time.
    pub queue_p5_pkts: Option<f64>,
    /// 25th percentile.
    pub queue_p25_pkts: Option<f64>,
    /// Median.
    pub queue_p50_pkts: Option<f64>,
    /// 75th percentile.
    pub queue_p75_pkts: Option<f64>,
    /// 95th percentile.
    pub queue_p95_pkts: Option<f64>,
    /// Fraction of the time with an empty queue.
    pub queue_empty_ratio: Option<f64>,
    /// Fraction of the time with a queue below the target.
    pub queue_below_target_ratio: Option<f64>,
    /// Mean of the samples of the probability in force.
    pub probability_mean: Option<f64>,
    /// Integral over time of the absolute value of queue minus target, packets x seconds.
    pub queue_iae_pkts_s: Option<f64>,
    /// Integral over time of the squared difference, packets^2 x seconds.
    pub queue_ise_pkts2_s: Option<f64>,
    /// Seconds from the start of the window until the queue has settled; see [`crate::transient()`].
    pub settling_s: Option<f64>,
    /// Largest sample of the queue above the target until it has settled, packets.
    pub overshoot_pkts: Option<f64>,
    /// Mean number of consecutive losses.
    pub loss_run_mean_pkts: Option<f64>,
    /// Largest number of consecutive losses.
    pub loss_run_max_pkts: Option<u64>,
    /// Index of dispersion of the losses over the sampling interval.
    pub loss_dispersion: Option<f64>,
    /// Mean time between losses, seconds (RFC 7928 section 2.3).
    pub loss_interval_mean_s: Option<f64>,
    /// Median of the time between losses.
    pub loss_interval_p50_s: Option<f64>,
    /// 95th percentile of the time between losses.
    pub loss_interval_p95_s: Option<f64>,
    /// Mean number of flows with losses within one round trip of a loss; see [`crate::LossTracker`].
    pub loss_event_flows_mean: Option<f64>,
    /// Fraction of the flows across the link hit by a loss event: 1 if each event hits all (RFC 7928 section 2.4).
    pub loss_sync_ratio: Option<f64>,
    /// Hurst parameter of the arrivals per sampling interval; see [`crate::hurst_at_queue`].
    pub arrivals_hurst: Option<f64>,
    /// Synchronisation of the flows' windows; see [`crate::Synchrony`].
    pub sync_index: Option<f64>,
    /// Slope of ln(goodput) over ln(round-trip time) of the flows; see [`crate::rtt_slope`].
    pub rtt_fairness_slope: Option<f64>,
    /// Mean over time of Jain's index over sliding intervals.
    pub fairness_mean: Option<f64>,
    /// Seconds from the last start of a flow until the fairness index reaches 0.9.
    pub convergence_s: Option<f64>,
}

/// Metrics of a flow group in one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowMetrics {
    /// Goodput: bits delivered in order to the receiving applications, per second.
    pub goodput_bps: f64,
    /// Jain's index of the flows' goodputs, (sum x)^2 / (n sum x^2).
    pub jain_fairness: Option<f64>,
    /// Mean of the senders' round-trip time samples, seconds.
    pub rtt_mean_s: Option<f64>,
    /// Mean sojourn time of its data packets, seconds, at the recorded link where it is longest.
    pub sojourn_mean_s: Option<f64>,
    /// 95th percentile of the sojourn time.
    pub sojourn_p95_s: Option<f64>,
    /// 99th percentile of the sojourn time.
    pub sojourn_p99_s: Option<f64>,
    /// Retransmitted / sent segments.
    pub retransmitted_ratio: Option<f64>,
    /// Retransmission time-outs.
    pub timeouts: Option<u64>,
    /// Mean one-way delay, seconds; of TCP over two of every 16 segments.
    pub delay_mean_s: Option<f64>,
    /// Mean interarrival jitter (RFC 3550), seconds; of TCP the mean change of the delay between consecutive segments.
    pub jitter_mean_s: Option<f64>,
    /// Lost / sent packets, as counted by receivers of real-time traffic; of TCP as counted by queues and wires.
    pub loss_ratio: Option<f64>,
    /// Throughput: bits of packets, headers included, that reached the receivers, per second.
    pub throughput_bps: Option<f64>,
    /// Median of the one-way delay, seconds.
    pub delay_p50_s: Option<f64>,
    /// 95th percentile of the one-way delay.
    pub delay_p95_s: Option<f64>,
    /// 99th percentile of the one-way delay.
    pub delay_p99_s: Option<f64>,
    /// Packet delay variation (RFC 5481 section 4.2): 95th percentile of the delay minus the smallest, seconds.
    pub delay_variation_p95_s: Option<f64>,
    /// Packet delay variation with the 99th percentile.
    pub delay_variation_p99_s: Option<f64>,
    /// Mean number of consecutive losses.
    pub loss_burst_mean_pkts: Option<f64>,
    /// Video: frames that were due.
    pub frames: Option<u64>,
    /// Video: frames with a lost or late packet / frames.
    pub frame_loss_ratio: Option<f64>,
    /// Voice: rating R of the E-model.
    pub r_factor: Option<f64>,
    /// Voice: mean opinion score.
    pub mos: Option<f64>,
    /// Arrivals of the application that found no idle flow.
    pub refused: Option<u64>,
    /// Transfers: mean time from the request to the first data at the application, seconds (RFC 7928 section 2.2).
    pub startup_mean_s: Option<f64>,
    /// Median of the start-up time.
    pub startup_p50_s: Option<f64>,
    /// 95th percentile of the start-up time.
    pub startup_p95_s: Option<f64>,
    /// Web: pages loaded.
    pub pages: Option<u64>,
    /// Web: mean page load time, seconds.
    pub page_load_mean_s: Option<f64>,
    /// Median of the page load time.
    pub page_load_p50_s: Option<f64>,
    /// 95th percentile of the page load time.
    pub page_load_p95_s: Option<f64>,
    /// 99th percentile of the page load time.
    pub page_load_p99_s: Option<f64>,
    /// Segmented video: viewers whose playback has started by the end of the window.
    pub video_began: Option<u64>,
    /// Mean time from the first request to the first picture, of playbacks that started in the window, seconds.
    pub video_startup_mean_s: Option<f64>,
    /// Stalls that began in the window.
    pub video_stalls: Option<u64>,
    /// Stalled time / time from the first picture to the last.
    pub video_stalled_ratio: Option<f64>,
    /// Mean bit rate of segments that arrived in the window.
    pub video_bitrate_mean_bps: Option<f64>,
    /// Segments that arrived in the window with another bit rate than the previous one.
    pub video_switches: Option<u64>,
    /// Completion times of finite transfers, by size.
    #[serde(flatten)]
    pub completions: CompletionMetrics,
}

impl FlowMetrics {
    /// Sets the metrics of sojourn times at a link (nanoseconds), unless those at another link are longer.
    pub fn set_sojourn(&mut self, sojourn: &Histogram) {
        let seconds = |ns: Option<f64>| ns.map(|ns| ns * 1e-9);
        let mean = seconds(sojourn.mean());
        if mean > self.sojourn_mean_s {
            self.sojourn_mean_s = mean;
            self.sojourn_p95_s = seconds(sojourn.quantile(0.95));
            self.sojourn_p99_s = seconds(sojourn.quantile(0.99));
        }
    }
}

/// Cost of a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cost {
    /// CPU time, set-up included, seconds.
    pub cpu_s: f64,
    /// Wall-clock time, seconds.
    pub wall_s: f64,
    /// Events processed.
    pub events: u64,
    /// Packets that crossed the recorded links.
    pub bottleneck_packets: u64,
    /// Threads of the run, if more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
}

/// Time series of a link at equal steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Sampling instants, seconds.
    pub t_s: Vec<f64>,
    /// Queue length, packets.
    pub queue_pkts: Vec<f64>,
    /// Probability in force.
    pub probability: Vec<f64>,
    /// State variables of the AQM by name, such as its capacity estimate; NaN where it showed none.
    pub state: IndexMap<&'static str, Vec<f64>>,
}

impl Series {
    /// Adds a sample; state variables follow through [`Series::observe`].
    pub fn sample(&mut self, at_s: f64, queue_pkts: f64, probability: f64) {
        self.state.values_mut().for_each(|values| values.resize(self.t_s.len(), f64::NAN));
        self.t_s.push(at_s);
        self.queue_pkts.push(queue_pkts);
        self.probability.push(probability);
    }

    /// Adds a state variable of the latest sample.
    pub fn observe(&mut self, name: &'static str, value: f64) {
        // Linear search, as there are few.
        let known = self.state.keys().position(|known| *known == name);
        let number = known.unwrap_or_else(|| self.state.insert_full(name, Vec::new()).0);
        let values = &mut self.state[number];
        values.resize(self.t_s.len().saturating_sub(1), f64::NAN);
        values.push(value);
    }

    /// Series of a state variable, as long as the others; `None` if the AQM never showed it.
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
    fn state_variables_are_as_long_as_the_series() {
        // The AQM changes after the second sample: from then on it shows `b` instead of `a`.
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
    fn the_sojourn_time_of_a_group_is_that_of_its_slowest_link() {
        // 2^30 ns, 1.07 s, is at the start of a bin; 2^28 is a quarter of it, 2^31 twice as much.
        let waits = |ns: u64| {
            let mut histogram = Histogram::default();
            histogram.record(ns);
            histogram
        };
        let mut metrics = FlowMetrics::default();
        let second = (1u64 << 30) as f64 * 1e-9;
        for (ns, longest) in [(1 << 30, 1.0), (1 << 28, 1.0), (1 << 31, 2.0)] {
            metrics.set_sojourn(&waits(ns));
            for told in [metrics.sojourn_mean_s, metrics.sojourn_p95_s, metrics.sojourn_p99_s] {
                assert!((told.unwrap() / second - longest).abs() < 0.02, "after {ns} ns: {metrics:?}");
            }
        }
        // No packet crossed the link: nothing changes.
        let before = metrics.clone();
        metrics.set_sojourn(&Histogram::default());
        assert_eq!(metrics.sojourn_mean_s, before.sojourn_mean_s);
    }
}
