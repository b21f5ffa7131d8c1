//! Result of a run, with the keys of every engine, and the machine under `host`.

use std::fs;

use aqumen_network::aqm_report;
use aqumen_network::measurement::fill_sojourn;
use aqumen_result::{Cost, Histogram, RunResult, rtt_slope};
use aqumen_scenario::Plan;
use indexmap::IndexMap;
use serde::Serialize;

use super::forwarder::Lateness;
use super::hosts::HostMeasurements;
use super::network::Network;

/// The result of a run of the engine `live`.
#[derive(Debug, Serialize)]
pub struct LiveResult {
    /// Result as of every engine.
    #[serde(flatten)]
    pub result: RunResult,
    /// Machine of the run.
    pub host: Host,
}

/// Machine of a run, and whether it kept up.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Host {
    /// Kernel release.
    pub kernel: String,
    /// Congestion control of each TCP group.
    pub congestion: IndexMap<String, String>,
    /// Kernel settings in the namespaces of the run.
    pub sysctls: IndexMap<String, String>,
    /// Whether the thread that carries packets had real-time scheduling.
    pub realtime: bool,
    /// Whether idle processors were kept from sleeping.
    pub awake: bool,
    /// Median lateness of writes, seconds.
    pub write_late_p50_s: Option<f64>,
    /// 99th percentile of the lateness, seconds.
    pub write_late_p99_s: Option<f64>,
    /// Wake-ups more than a millisecond late.
    pub missed_steps: u64,
    /// Packets that a device or the kernel dropped outside the scenario's links.
    pub device_dropped_pkts: u64,
    /// Connections that failed.
    pub failed_connections: u64,
    /// CPU time of the links, seconds.
    pub links_cpu_s: Option<f64>,
    /// Load of the machine at the end: runnable threads, mean over a minute.
    pub load: Option<f64>,
    /// Whether the machine kept up, so that the metrics describe the scenario.
    pub valid: bool,
    /// Reasons against it, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid_because: Vec<String>,
}

/// Highest 99th percentile of the lateness in a valid run, seconds.
pub const LATE_P99_MAX_S: f64 = 2e-3;

/// Curves for plots.
#[derive(Debug, Serialize)]
pub struct Curves<'a> {
    /// Queue and probability of each recorded link over time.
    pub series: IndexMap<&'a str, LinkCurves<'a>>,
    /// Distributions of sojourn times, seconds.
    pub sojourn: IndexMap<&'a str, IndexMap<&'a str, Cumulative>>,
    /// Distributions of queue lengths over time, packets.
    pub queue: IndexMap<&'a str, IndexMap<&'a str, Cumulative>>,
}

/// Time series of a link.
#[derive(Debug, Serialize)]
pub struct LinkCurves<'a> {
    t: &'a [f64],
    queue_pkts: &'a [f64],
    p: &'a [f64],
}

/// Values, and the fraction at or below each.
type Cumulative = (Vec<f64>, Vec<f64>);

impl Host {
    /// Judges whether the run is valid.
    pub fn judge(&mut self, lateness: &Lateness) {
        self.write_late_p50_s = lateness.quantile_s(0.50);
        self.write_late_p99_s = lateness.quantile_s(0.99);
        self.missed_steps = lateness.missed_steps;
        self.device_dropped_pkts += lateness.refused_pkts;
        self.load = fs::read_to_string("/proc/loadavg").ok().and_then(|text| text.split(' ').next()?.parse().ok());
        let mut because = Vec::new();
        if let Some(late) = self.write_late_p99_s.filter(|late| *late > LATE_P99_MAX_S) {
            because.push(format!(
                "one packet in a hundred was written {:.1} ms late or more; 2 ms are accepted",
                late * 1e3
            ));
        }
        if self.device_dropped_pkts > 0 {
            because
                .push(format!("the kernel dropped {} packets outside the scenario's links", self.device_dropped_pkts));
        }
        if self.failed_connections > 0 {
            because.push(format!("{} connections failed", self.failed_connections));
        }
        self.valid = because.is_empty();
        self.invalid_because = because;
    }
}

/// Result of `plan` over `network`, with the measurements of the hosts.
pub(crate) fn result(
    plan: &Plan,
    network: &mut Network<'_>,
    measurements: Option<&HostMeasurements>,
    cost: Cost,
) -> RunResult {
    let mut result = RunResult::new("live", &plan.scenario, plan.seed, plan.window_bounds());
    result.notes.clone_from(&plan.notes);
    result.cost = cost;
    if let Some(measurements) = measurements {
        for (number, group) in (0u32..).zip(&plan.groups) {
            let by_window =
                plan.windows.iter().map(|window| (window.name.clone(), measurements.metrics(plan, number, window)));
            result.flows.insert(group.name.clone(), by_window.collect());
        }
    }
    for (number, link) in &mut network.links {
        let link_plan = &plan.links[*number as usize];
        if !link_plan.record {
            continue;
        }
        if result.links.is_empty() {
            result.aqm = aqm_report(link_plan, |visit| link.settings(visit));
        }
        link.notes(&mut |note| result.notes.push(format!("{}: {note}", link_plan.name)));
        result.cost.bottleneck_packets += link.totals().departures;
        let (mut metrics, mut sojourn, mut queue) = (IndexMap::new(), IndexMap::new(), IndexMap::new());
        for (window, in_window) in plan.windows.iter().zip(link.measurements(&plan.windows)) {
            let mut link_metrics = in_window.metrics;
            link_metrics.rtt_fairness_slope =
                measurements.and_then(|measurements| slope(plan, *number, measurements, window));
            metrics.insert(window.name.clone(), link_metrics);
            fill_sojourn(&mut result.flows, window, &in_window.sojourn_of_group);
            sojourn.insert(window.name.clone(), in_window.sojourn);
            queue.insert(window.name.clone(), in_window.queue);
        }
        result.links.insert(link_plan.name.to_string(), metrics);
        result.sojourn.insert(link_plan.name.to_string(), sojourn);
        result.queue.insert(link_plan.name.to_string(), queue);
        result.series.insert(link_plan.name.to_string(), link.series().clone());
    }
    result
}

/// Slope of goodput over round-trip time for the endless transfers on a link.
fn slope(plan: &Plan, link: u32, measurements: &HostMeasurements, window: &aqumen_scenario::Window) -> Option<f64> {
    let endless = plan.flows.iter().zip(0u32..);
    let endless = endless.filter(|(flow, _)| plan.is_endless(flow) && flow.path.contains(&link));
    rtt_slope(&endless.map(|(_, number)| measurements.rtt_and_bytes(number, window)).collect::<Vec<_>>())
}

/// Curves of `result`.
pub fn curves(result: &RunResult) -> Curves<'_> {
    let cumulative = |histogram: &Histogram, scale: f64, shift: f64| -> Cumulative {
        histogram.cumulative().into_iter().map(|(value, share)| (value * scale - shift, share)).unzip()
    };
    fn by_window(
        all: &IndexMap<String, IndexMap<String, Histogram>>,
        curve: impl Fn(&Histogram) -> Cumulative,
    ) -> IndexMap<&str, IndexMap<&str, Cumulative>> {
        all.iter()
            .map(|(link, windows)| {
                (link.as_str(), windows.iter().map(|(window, histogram)| (window.as_str(), curve(histogram))).collect())
            })
            .collect()
    }
    Curves {
        series: result
            .series
            .iter()
            .map(|(link, s)| (link.as_str(), LinkCurves { t: &s.t_s, queue_pkts: &s.queue_pkts, p: &s.probability }))
            .collect(),
        sojourn: by_window(&result.sojourn, |histogram| cumulative(histogram, 1e-9, 0.0)),
        // Bins end at the whole number below their edge.
        queue: by_window(&result.queue, |histogram| cumulative(histogram, 1.0, 1.0)),
    }
}

#[cfg(test)]
mod tests {
    use aqumen_units::Ecn;

    use super::super::hosts::tests::measurements_of;
    use super::super::network::Packet;
    use super::*;
    use crate::lab::dumbbell;

    /// Judges a run with these latenesses of writes, nanoseconds.
    fn judged(late_ns: &[u64], host: Host, refused_pkts: u64) -> Host {
        let mut lateness = Lateness { refused_pkts, missed_steps: 5, ..Lateness::default() };
        late_ns.iter().for_each(|late| lateness.writes.record(*late));
        let mut host = host;
        host.judge(&lateness);
        host
    }

    #[test]
    fn a_machine_that_kept_up_makes_a_valid_run() {
        // 99 in a hundred within 1 ms.
        let mut late = vec![900_000; 199];
        late.push(50_000_000);
        let host = judged(&late, Host::default(), 0);
        assert!(host.valid && host.invalid_because.is_empty(), "{host:?}");
        assert!((host.write_late_p50_s.unwrap() / 0.9e-3 - 1.0).abs() < 0.1, "{host:?}");
        // Late wake-ups are reported, and do not invalidate a run.
        assert_eq!((host.missed_steps, host.device_dropped_pkts), (5, 0));
        // Without writes nothing was late.
        assert!(judged(&[], Host::default(), 0).valid);
    }

    #[test]
    fn each_reason_against_a_run_is_listed() {
        let late = judged(&[3_000_000; 100], Host::default(), 0);
        assert!(!late.valid && late.invalid_because.len() == 1, "{late:?}");
        assert!(late.invalid_because[0].contains("ms late or more; 2 ms are accepted"), "{late:?}");
        // Packets that the device dropped, and packets that the kernel refused.
        let lost = judged(&[1000; 100], Host { device_dropped_pkts: 3, ..Host::default() }, 4);
        assert_eq!(lost.device_dropped_pkts, 7);
        assert_eq!(lost.invalid_because, ["the kernel dropped 7 packets outside the scenario's links"]);
        let failed = judged(&[3_000_000; 100], Host { failed_connections: 2, ..Host::default() }, 1);
        assert_eq!(failed.invalid_because.len(), 3, "{failed:?}");
        assert_eq!(failed.invalid_because[2], "2 connections failed");
    }

    #[test]
    fn curves_are_cumulative_distributions() {
        let mut histogram = Histogram::default();
        [0u64, 0, 4, 4].into_iter().for_each(|value| histogram.record(value));
        let by_window = || IndexMap::from([("all".to_owned(), histogram.clone())]);
        let mut series = aqumen_result::Series::default();
        series.sample(0.5, 7.0, 0.25);
        let mut result = RunResult::new("live", "one", 1, std::iter::empty());
        result.series.insert("link".to_owned(), series);
        result.sojourn.insert("link".to_owned(), by_window());
        result.queue.insert("link".to_owned(), by_window());
        let curves = curves(&result);
        // The queue is empty half of the time, and never above four packets.
        let (packets, shares) = &curves.queue["link"]["all"];
        let at =
            |value: f64| packets.iter().zip(shares).rfind(|(packets, _)| **packets <= value).map(|(_, share)| *share);
        assert_eq!((at(0.0), at(4.0), packets.last()), (Some(0.5), Some(1.0), Some(&4.0)));
        // Sojourn times are seconds.
        let (seconds, _) = &curves.sojourn["link"]["all"];
        assert!(seconds.last().is_some_and(|last| (4e-9..6e-9).contains(last)), "{seconds:?}");
        let own = &curves.series["link"];
        assert_eq!((own.t, own.queue_pkts, own.p), (&[0.5][..], &[7.0][..], &[0.25][..]));
    }

    fn plan(flows: &str) -> Plan {
        let near = &[
            ("duration", "1s"),
            ("topology.bottleneck.rate", "80Mbit"),
            ("topology.bottleneck.delay", "1ms"),
            ("topology.access.rate", "800Mbit"),
            ("topology.access.delay", "1ms"),
        ];
        dumbbell(near, flows)
    }

    #[test]
    fn a_result_has_the_recorded_links_and_their_traffic() {
        let plan = plan("[[flows]]\nname = \"f\"\n");
        let mut network = Network::new(&plan).unwrap();
        for slot in 0..3 {
            let identity = aqumen_network::Identity::default();
            let packet = Packet { slot, bytes: 1000, ecn: Ecn::Ect0, ack: None, identity, route: 0, passed: 0 };
            network.enter(0, packet, &mut |_, _, _| {});
        }
        network.advance(plan.duration.as_nanos(), &mut |_, _, _| {});
        let result = result(&plan, &mut network, None, Cost { wall_s: 2.0, ..Cost::default() });
        let tested: Vec<String> =
            plan.links.iter().filter(|link| link.record).map(|link| link.name.to_string()).collect();
        assert!(tested.len() < plan.links.len());
        assert_eq!(result.links.keys().map(String::as_str).collect::<Vec<_>>(), tested);
        let crossed: u64 = result.links.values().map(|windows| windows["all"].departures_pkts).sum();
        assert_eq!((crossed, result.cost.bottleneck_packets, result.cost.wall_s), (3, 3, 2.0));
        let first = &tested[0];
        assert!(result.sojourn[first].contains_key("all") && result.queue[first].contains_key("all"));
        assert!(result.series.contains_key(first) && result.flows.is_empty());
        assert_eq!((result.aqm.name.as_str(), result.engine), ("droptail", "live"));
    }

    #[test]
    fn goodput_by_round_trip_is_that_of_endless_transfers_over_the_link() {
        let plan = plan("[[flows]]\nname = \"endless\"\ncount = 3\n[[flows]]\nname = \"finite\"\ntransfer = \"1MB\"\n");
        let number = plan.links.iter().position(|link| link.record).unwrap() as u32;
        // Twice the round-trip time, a quarter of the bytes: a slope of -2. The finite flow is left out.
        let measurements = measurements_of(&plan, &[(30, 16_000_000), (60, 4_000_000), (120, 1_000_000), (10, 7)]);
        let all = plan.windows.iter().find(|window| window.name == "all").unwrap();
        let all_flows = slope(&plan, number, &measurements, all).unwrap();
        assert!((all_flows + 2.0).abs() < 1e-9, "{all_flows}");
        // Only its own flow crosses an access link: one flow has no slope.
        let access = plan.flows[0].path.iter().copied().find(|link| *link != number).unwrap();
        assert_eq!(slope(&plan, access, &measurements, all), None);
    }
}
