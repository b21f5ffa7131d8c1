//! Random scenarios, all valid, against what holds for every run: nothing is refused, packets are
//! conserved, every figure is a number in its range, and no answer depends on what else runs, in which
//! order, or on how much of the run follows.

use crate::valid;

use std::any::Any;
use std::panic::catch_unwind;

use aqumen_result::RunResult;
use aqumen_scenario::{Medium, Plan, Scenario};
use aqumen_sim::{Options, run};
use valid::Case;

fn answer(plan: &Plan) -> RunResult {
    run(plan, Options::default(), &mut |_| true).unwrap_or_else(|error| panic!("{error}"))
}

/// All of an answer but what it cost.
pub(crate) fn told(result: &RunResult) -> String {
    let RunResult { aqm, links, flows, notes, series, sojourn, queue, .. } = result;
    format!("{aqm:?}\n{links:?}\n{flows:?}\n{notes:?}\n{series:?}\n{sojourn:?}\n{queue:?}")
}

fn check(seed: u64) {
    let case = Case::new(seed);
    let scenario = Scenario::parse_with(&case.text, "valid.toml", Case::files())
        .unwrap_or_else(|error| panic!("refused: {error}"));
    let again = Scenario::parse_with(&scenario.to_toml(), "valid.toml", Case::files())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.to_toml(), scenario.to_toml());
    let mut plans = match scenario.plan(seed, None) {
        Ok(plan) => vec![plan],
        // An AQM that takes over in an event may find that no design fits the network, and says so (1 case in 1000).
        Err(error) if error.to_string().contains(".aqm = ") && error.to_string().contains(": events.") => return,
        Err(error) => panic!("refused: {error}"),
    };
    assert_eq!(plans[0], again.plan(seed, None).unwrap());
    // So may one that is asked for.
    plans.extend(case.aqms.iter().filter_map(|name| scenario.plan(seed, Some(&scenario.aqm(name).unwrap())).ok()));

    let answers: Vec<RunResult> = plans.iter().map(answer).collect();
    for (plan, answer) in plans.iter().zip(&answers) {
        figures_are_numbers_in_their_range(answer);
        packets_are_conserved(plan, answer);
    }
    // On two threads at a time, in the two orders.
    let expected: Vec<String> = answers.iter().map(told).collect();
    let other: Vec<String> = std::thread::scope(|scope| {
        let backwards = scope.spawn(|| plans.iter().rev().map(|plan| told(&answer(plan))).collect::<Vec<_>>());
        let forwards: Vec<String> = plans.iter().map(|plan| told(&answer(plan))).collect();
        assert!(forwards == expected, "a run depends on what else runs");
        backwards.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    assert!(other.iter().rev().eq(&expected), "a run depends on what ran before");
    a_part_is_the_beginning_of_the_whole(seed, &case, &scenario);
}

/// Ratios are within 0 and 1, everything else is finite and not negative where it cannot be.
fn figures_are_numbers_in_their_range(result: &RunResult) {
    // What an AQM does not know, having taken over later, has no number in the samples of its state.
    let mut known = result.clone();
    known.series.values_mut().for_each(|series| series.state.clear());
    let all = told(&known);
    assert!(!all.contains("NaN") && !all.contains("inf"), "{all}");
    let ratio = |what: &str, x: Option<f64>| {
        if let Some(x) = x {
            assert!((0.0..=1.0).contains(&x), "{what} = {x}");
        }
    };
    for (name, windows) in &result.links {
        for (window, link) in windows {
            let at = |what: &str| format!("{name}, {window}: {what}");
            ratio(&at("utilization"), link.utilization);
            // What is decided at the head in a window may have arrived before it: over arrivals,
            // only the whole run is bounded.
            for (what, share) in [
                ("mark_ratio", link.mark_ratio),
                ("early_drop_ratio", link.early_drop_ratio),
                ("overflow_drop_ratio", link.overflow_drop_ratio),
            ] {
                ratio(&at(what), share.map(|x| if window == "all" { x } else { x.min(1.0) }));
            }
            assert!(link.queue_mean_pkts >= 0.0, "{}", at("queue"));
            let quantiles = [link.sojourn_p50_s, link.sojourn_p95_s, link.sojourn_p99_s];
            assert!(quantiles.is_sorted(), "{}: {quantiles:?}", at("sojourn"));
        }
    }
    for (name, series) in &result.series {
        assert!(series.probability.iter().all(|p| (0.0..=1.0).contains(p)), "{name}: a probability out of range");
        assert!(series.queue_pkts.iter().all(|q| *q >= 0.0), "{name}: a negative queue");
        assert!(series.t_s.is_sorted(), "{name}");
    }
    for (name, windows) in &result.flows {
        for (window, group) in windows {
            let at = |what: &str| format!("{name}, {window}: {what}");
            ratio(&at("retransmitted"), group.retransmitted_ratio);
            ratio(&at("loss"), group.loss_ratio);
            // A sum of squares over squares of sums may be an ulp above one.
            ratio(&at("fairness"), group.jain_fairness.map(|x| (x - 1e-12).max(0.0)));
            assert!(group.goodput_bps >= 0.0, "{}", at("goodput"));
            assert!(group.rtt_mean_s.is_none_or(|rtt| rtt > 0.0), "{}", at("RTT"));
        }
    }
}

/// Packet conservation at a link, over the windows as over the run: arrivals = departures + drops + queued.
fn packets_are_conserved(plan: &Plan, result: &RunResult) {
    for (name, windows) in &result.links {
        let link = plan.links.iter().find(|link| link.name == **name).unwrap();
        let all = &windows["all"];
        let gone = all.departures_pkts + all.early_dropped_pkts + all.overflow_dropped_pkts;
        let left =
            all.arrivals_pkts.checked_sub(gone).unwrap_or_else(|| panic!("{name}: more went than came: {all:?}"));
        // Media send several packets at a time.
        let is_wire = link.line.as_ref().is_none_or(|line| line.medium == Medium::Wire);
        let in_transmission = if is_wire { 1 } else { 64 };
        // A packet has at least 40 bytes, that of an acknowledgement.
        let room = u64::from(link.limit.packets).min(link.limit.bytes.0 / 20);
        assert!(left <= room.saturating_add(in_transmission), "{name}: {left} are there, with room for {room}");
        assert!(all.marked_pkts <= all.arrivals_pkts, "{name}: {all:?}");
    }
    for (number, group) in plan.groups.iter().enumerate() {
        let flows = &plan.flows[group.flows.start as usize..group.flows.end as usize];
        let delivered_bits = result.flows[&group.name]["all"].goodput_bps * plan.duration.as_secs_f64();
        // What is delivered has crossed every link of the way.
        for (index, link) in plan.links.iter().enumerate().filter(|(_, link)| link.record) {
            let others = plan.flows.iter().any(|flow| {
                flow.group != number as u32
                    && (flow.path.contains(&(index as u32)) || flow.return_path.contains(&(index as u32)))
            });
            if others || !flows.iter().all(|flow| flow.path.contains(&(index as u32))) {
                continue;
            }
            let all = &result.links[&link.name.to_string()]["all"];
            let most = all.departures_pkts as f64 * 8.0 * f64::from(group.transport.payload_bytes());
            assert!(
                delivered_bits <= most + 1.0,
                "{}: {delivered_bits} bits came, {most} went over {}",
                group.name,
                link.name
            );
        }
    }
}

/// A run up to some moment is the beginning of the whole.
fn a_part_is_the_beginning_of_the_whole(seed: u64, case: &Case, scenario: &Scenario) {
    let end_ms = case.last_start_ms.max(case.duration_ms / 3) + 7;
    if end_ms >= case.duration_ms {
        return;
    }
    let until = format!("{end_ms}ms");
    let whole = scenario.with("windows", &format!("{{ beginning = [\"0s\", \"{until}\"] }}")).unwrap();
    let part = scenario.until(&until).unwrap_or_else(|error| panic!("cannot be cut: {error}"));
    let spec = case.aqms.first().map(|name| scenario.aqm(name).unwrap());
    let plans = [&whole, &part].map(|scenario| scenario.plan(seed, spec.as_ref()));
    let [Ok(whole), Ok(part)] = plans else { return };
    let (whole, part) = (answer(&whole), answer(&part));
    for (name, series) in &part.series {
        let all = &whole.series[name];
        let n = series.t_s.len();
        assert_eq!(series.t_s, all.t_s[..n], "{name}");
        assert_eq!(series.queue_pkts, all.queue_pkts[..n], "{name}: another queue than in the whole run");
        assert_eq!(series.probability, all.probability[..n], "{name}: another probability than in the whole run");
    }
    for (name, windows) in &part.links {
        let (some, all) = (&windows["all"], &whole.links[name]["beginning"]);
        let counts = |m: &aqumen_result::LinkMetrics| {
            [m.arrivals_pkts, m.departures_pkts, m.marked_pkts, m.early_dropped_pkts, m.overflow_dropped_pkts]
        };
        assert_eq!(counts(some), counts(all), "{name}");
        assert_close(some.queue_mean_pkts, all.queue_mean_pkts, name);
        assert_close(some.utilization.unwrap_or(0.0), all.utilization.unwrap_or(0.0), name);
        assert_close(some.sojourn_mean_s.unwrap_or(0.0), all.sojourn_mean_s.unwrap_or(0.0), name);
    }
    for (name, windows) in &part.flows {
        let (some, all) = (&windows["all"], &whole.flows[name]["beginning"]);
        assert_close(some.goodput_bps, all.goodput_bps, name);
        assert_close(some.rtt_mean_s.unwrap_or(0.0), all.rtt_mean_s.unwrap_or(0.0), name);
        assert_eq!(some.timeouts, all.timeouts, "{name}");
    }
}

/// Equality except for the order of sums.
fn assert_close(some: f64, all: f64, name: &str) {
    assert!((some - all).abs() <= 1e-9 * all.abs(), "{name}: {some} in the part, {all} in the whole");
}

/// Checks each seed, on all cores; shows the scenario of the first one that fails, and what became of the others.
fn check_all(seeds: std::ops::Range<u64>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let seeds = &seeds;
    let of_thread = move |first: usize| {
        let own = seeds.clone().skip(first).step_by(threads);
        own.filter_map(|seed| Some((seed, catch_unwind(|| check(seed)).err()?))).collect::<Vec<_>>()
    };
    let mut failed: Vec<(u64, String)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|first| scope.spawn(move || of_thread(first))).collect();
        running
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .map(|(seed, panic)| (seed, message(&*panic)))
            .collect()
    });
    failed.sort();
    if let Some((seed, message)) = failed.first() {
        let Case { text, aqms, .. } = Case::new(*seed);
        let others: String = failed[1..].iter().map(|(seed, message)| format!("\n{seed}: {message}")).collect();
        panic!("seed {seed}, AQMs {aqms:?}: {message}\n{text}\n{} others fail:{others}", failed.len() - 1);
    }
}

/// Beginning of a panic's message.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    text.unwrap_or_default().chars().take(300).collect()
}

#[test]
fn every_valid_scenario_runs_and_holds_the_invariants() {
    check_all(0..200);
}

#[test]
#[ignore = "shows one scenario"]
fn the_scenario_of_one_seed() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    check_all(seed..seed + 1);
}

#[test]
#[ignore = "long: four minutes"]
fn many_valid_scenarios_run_and_hold_the_invariants() {
    // 200 take four seconds of two busy cores.
    check_all(1000..11_000);
}
