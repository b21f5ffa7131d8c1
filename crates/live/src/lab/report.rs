//! The result of a run, with the keys of every engine, and under `host` what the machine did.

use std::fs;

use aqumen_network::aqm_report;
use aqumen_network::measurement::fill_sojourn;
use aqumen_result::{Cost, Histogram, RunResult, rtt_slope};
use aqumen_scenario::Plan;
use indexmap::IndexMap;
use serde::Serialize;

use super::hosts::Seen;
use super::network::Network;
use super::pump::Lateness;

/// The result of a run of the engine `live`.
#[derive(Debug, Serialize)]
pub struct LiveResult {
    /// What every engine answers.
    #[serde(flatten)]
    pub result: RunResult,
    /// The machine that ran it.
    pub host: Host,
}

/// The machine that ran it, and whether it kept up.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Host {
    /// Release of the kernel.
    pub kernel: String,
    /// Congestion control of each group of TCP.
    pub congestion: IndexMap<String, String>,
    /// What was set of the kernel, in the namespaces of the run.
    pub sysctls: IndexMap<String, String>,
    /// Whether the thread that carries packets had real-time scheduling.
    pub realtime: bool,
    /// Whether idle processors were kept from sleeping.
    pub awake: bool,
    /// How late packets were written, seconds: the median.
    pub write_late_p50_s: Option<f64>,
    /// The 99th percentile.
    pub write_late_p99_s: Option<f64>,
    /// Times that the program woke more than a millisecond after something was due.
    pub missed_steps: u64,
    /// Packets that a device or the kernel discarded beside the scenario's links.
    pub device_dropped_pkts: u64,
    /// Connections that failed.
    pub failed_connections: u64,
    /// CPU time that the links took, seconds.
    pub links_cpu_s: Option<f64>,
    /// The machine's load at the end: runnable threads, mean over a minute.
    pub load: Option<f64>,
    /// Whether the machine kept up, so that the figures say something about the scenario.
    pub valid: bool,
    /// Why not: one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid_because: Vec<String>,
}

/// A run whose 99th percentile of lateness is above this says nothing, seconds.
pub const LATE_P99_MAX_S: f64 = 2e-3;

/// What people and plots want beside the figures.
#[derive(Debug, Serialize)]
pub struct Curves<'a> {
    /// Queue and probability of each recorded link over time.
    pub series: IndexMap<&'a str, CurvesOfLink<'a>>,
    /// Sojourn times, seconds, and the share of packets that waited no longer.
    pub sojourn: IndexMap<&'a str, IndexMap<&'a str, Cumulative>>,
    /// Queue lengths, and the share of time in which no more waited.
    pub queue: IndexMap<&'a str, IndexMap<&'a str, Cumulative>>,
}

/// A link over time.
#[derive(Debug, Serialize)]
pub struct CurvesOfLink<'a> {
    t: &'a [f64],
    queue_pkts: &'a [f64],
    p: &'a [f64],
}

/// Values, and the share at or below each.
type Cumulative = (Vec<f64>, Vec<f64>);

impl Host {
    /// Judges the run.
    pub fn judge(&mut self, lateness: &Lateness) {
        self.write_late_p50_s = lateness.quantile_s(0.50);
        self.write_late_p99_s = lateness.quantile_s(0.99);
        self.missed_steps = lateness.missed_steps;
        self.device_dropped_pkts += lateness.refused_pkts;
        self.load = fs::read_to_string("/proc/loadavg").ok().and_then(|text| text.split(' ').next()?.parse().ok());
        let mut because = Vec::new();
        if let Some(late) = self.write_late_p99_s.filter(|late| *late > LATE_P99_MAX_S) {
            because.push(format!(
                "one packet in a hundred was written {:.1} ms late or later; 2 ms are accepted",
                late * 1e3
            ));
        }
        if self.device_dropped_pkts > 0 {
            because.push(format!(
                "the kernel discarded {} packets that the scenario's links did not",
                self.device_dropped_pkts
            ));
        }
        if self.failed_connections > 0 {
            because.push(format!("{} connections failed", self.failed_connections));
        }
        self.valid = because.is_empty();
        self.invalid_because = because;
    }
}

/// The result of `plan`, run over `network`; `seen` by the hosts.
pub fn result(plan: &Plan, network: &mut Network<'_>, seen: Option<&Seen>, cost: Cost) -> RunResult {
    let mut result = RunResult::begun("live", &plan.scenario, plan.seed, plan.window_bounds());
    result.notes.clone_from(&plan.notes);
    result.cost = cost;
    if let Some(seen) = seen {
        for (number, group) in (0u32..).zip(&plan.groups) {
            let by_window = plan.windows.iter().map(|window| (window.name.clone(), seen.metrics(plan, number, window)));
            result.flows.insert(group.name.clone(), by_window.collect());
        }
    }
    for (number, link) in &mut network.links {
        let of_plan = &plan.links[*number as usize];
        if !of_plan.record {
            continue;
        }
        if result.links.is_empty() {
            result.aqm = aqm_report(of_plan, |visit| link.settings(visit));
        }
        link.notes(&mut |note| result.notes.push(format!("{}: {note}", of_plan.name)));
        result.cost.bottleneck_packets += link.totals().departures;
        let (mut metrics, mut sojourn, mut queue) = (IndexMap::new(), IndexMap::new(), IndexMap::new());
        for (window, in_window) in plan.windows.iter().zip(link.measurements(&plan.windows)) {
            let mut own = in_window.metrics;
            own.rtt_fairness_slope = seen.and_then(|seen| slope(plan, *number, seen, window));
            metrics.insert(window.name.clone(), own);
            fill_sojourn(&mut result.flows, window, &in_window.sojourn_of_group);
            sojourn.insert(window.name.clone(), in_window.sojourn);
            queue.insert(window.name.clone(), in_window.queue);
        }
        result.links.insert(of_plan.name.clone(), metrics);
        result.sojourn.insert(of_plan.name.clone(), sojourn);
        result.queue.insert(of_plan.name.clone(), queue);
        result.series.insert(of_plan.name.clone(), link.series().clone());
    }
    result
}

/// How goodput follows the round-trip time of the endless transfers that cross a link.
fn slope(plan: &Plan, link: u32, seen: &Seen, window: &aqumen_scenario::Window) -> Option<f64> {
    let endless = plan.flows.iter().zip(0u32..);
    let endless = endless.filter(|(flow, _)| plan.is_endless(flow) && flow.path.contains(&link));
    rtt_slope(&endless.map(|(_, number)| seen.rtt_and_bytes(number, window)).collect::<Vec<_>>())
}

/// The curves of `result`.
pub fn curves(result: &RunResult) -> Curves<'_> {
    let cumulative = |histogram: &Histogram, scale: f64, shift: f64| -> Cumulative {
        histogram.cumulative().into_iter().map(|(value, share)| (value * scale - shift, share)).unzip()
    };
    fn by_window(
        all: &IndexMap<String, IndexMap<String, Histogram>>,
        of: impl Fn(&Histogram) -> Cumulative,
    ) -> IndexMap<&str, IndexMap<&str, Cumulative>> {
        all.iter()
            .map(|(link, windows)| {
                (link.as_str(), windows.iter().map(|(window, histogram)| (window.as_str(), of(histogram))).collect())
            })
            .collect()
    }
    Curves {
        series: result
            .series
            .iter()
            .map(|(link, s)| (link.as_str(), CurvesOfLink { t: &s.t_s, queue_pkts: &s.queue_pkts, p: &s.probability }))
            .collect(),
        sojourn: by_window(&result.sojourn, |histogram| cumulative(histogram, 1e-9, 0.0)),
        // A bin ends with the whole number before its edge.
        queue: by_window(&result.queue, |histogram| cumulative(histogram, 1.0, 1.0)),
    }
}

#[cfg(test)]
mod tests {
    use aqumen_scenario::Scenario;
    use aqumen_units::Ecn;

    use super::super::hosts::tests::seen_of;
    use super::super::network::Packet;
    use super::*;

    /// What a run was whose packets were written so late, nanoseconds.
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
        // That the program overslept now and then is told, and does not matter by itself.
        assert_eq!((host.missed_steps, host.device_dropped_pkts), (5, 0));
        // Nothing was written: nothing was late.
        assert!(judged(&[], Host::default(), 0).valid);
    }

    #[test]
    fn what_speaks_against_a_run_is_said_one_by_one() {
        let late = judged(&[3_000_000; 100], Host::default(), 0);
        assert!(!late.valid && late.invalid_because.len() == 1, "{late:?}");
        assert!(late.invalid_because[0].contains("ms late or later; 2 ms are accepted"), "{late:?}");
        // What the device discarded, and what the kernel did not take.
        let lost = judged(&[1000; 100], Host { device_dropped_pkts: 3, ..Host::default() }, 4);
        assert_eq!(lost.device_dropped_pkts, 7);
        assert_eq!(lost.invalid_because, ["the kernel discarded 7 packets that the scenario's links did not"]);
        let failed = judged(&[3_000_000; 100], Host { failed_connections: 2, ..Host::default() }, 1);
        assert_eq!(failed.invalid_because.len(), 3, "{failed:?}");
        assert_eq!(failed.invalid_because[2], "2 connections failed");
    }

    #[test]
    fn curves_are_the_shares_up_to_each_value() {
        let mut histogram = Histogram::default();
        [0u64, 0, 4, 4].into_iter().for_each(|value| histogram.record(value));
        let by_window = || IndexMap::from([("all".to_owned(), histogram.clone())]);
        let mut series = aqumen_result::Series::default();
        series.sample(0.5, 7.0, 0.25);
        let mut result = RunResult::begun("live", "one", 1, std::iter::empty());
        result.series.insert("link".to_owned(), series);
        result.sojourn.insert("link".to_owned(), by_window());
        result.queue.insert("link".to_owned(), by_window());
        let curves = curves(&result);
        // Half of the time nobody waited, all of the time four packets at most.
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
        let text = format!(
            "name = \"t\"\nduration = \"1s\"\naqm = \"droptail\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"80Mbit\", delay = \"1ms\", buffer = \"50pkt\" }}\n\
             access = {{ rate = \"800Mbit\", delay = \"1ms\" }}\n{flows}"
        );
        Scenario::parse(&text, "t.toml").unwrap().plan(1, None).unwrap()
    }

    #[test]
    fn a_result_has_the_links_under_test_and_what_crossed_them() {
        let plan = plan("[[flows]]\nname = \"f\"\n");
        let mut network = Network::new(&plan).unwrap();
        for slot in 0..3 {
            let who = aqumen_network::Identity::default();
            let packet = Packet { slot, bytes: 1000, ecn: Ecn::Ect0, ack: None, who, route: 0, passed: 0 };
            network.enter(0, packet, &mut |_, _, _| {});
        }
        network.advance(plan.duration.as_nanos(), &mut |_, _, _| {});
        let told = result(&plan, &mut network, None, Cost { wall_s: 2.0, ..Cost::default() });
        let tested: Vec<&str> = plan.links.iter().filter(|link| link.record).map(|link| link.name.as_str()).collect();
        assert!(tested.len() < plan.links.len());
        assert_eq!(told.links.keys().map(String::as_str).collect::<Vec<_>>(), tested);
        let crossed: u64 = told.links.values().map(|windows| windows["all"].departures_pkts).sum();
        assert_eq!((crossed, told.cost.bottleneck_packets, told.cost.wall_s), (3, 3, 2.0));
        let first = tested[0];
        assert!(told.sojourn[first].contains_key("all") && told.queue[first].contains_key("all"));
        assert!(told.series.contains_key(first) && told.flows.is_empty());
        assert_eq!((told.aqm.name.as_str(), told.engine), ("droptail", "live"));
    }

    #[test]
    fn goodput_by_round_trip_is_that_of_endless_transfers_over_the_link() {
        let plan = plan("[[flows]]\nname = \"endless\"\ncount = 3\n[[flows]]\nname = \"finite\"\ntransfer = \"1MB\"\n");
        let number = plan.links.iter().position(|link| link.record).unwrap() as u32;
        // Twice the round trip, a quarter of the bytes: a slope of -2. One with an end is not among them.
        let seen = seen_of(&plan, &[(30, 16_000_000), (60, 4_000_000), (120, 1_000_000), (10, 7)]);
        let all = plan.windows.iter().find(|window| window.name == "all").unwrap();
        let told = slope(&plan, number, &seen, all).unwrap();
        assert!((told + 2.0).abs() < 1e-9, "{told}");
        // Nobody's data cross the access link of another flow: of one flow alone there is no slope.
        let access = plan.flows[0].path.iter().copied().find(|link| *link != number).unwrap();
        assert_eq!(slope(&plan, access, &seen, all), None);
    }
}
