//! The theory engine: a prediction told as the result of a run.

use aqumen_result::{FlowMetrics, LinkMetrics, LinkSteadyState, RunResult, Series};
use aqumen_scenario::{Plan, Window};
use indexmap::IndexMap;

use crate::Error;
use crate::fluid::{Load, aqm_report, only_wires, unresponsive};
use crate::noise::packet_noise::Z95;
use crate::predict::users::{Users, bottleneck_of, load_of, presence, users};
use crate::predict::{LinkPrediction, Prediction, predict};

/// Runs `plan` on the theory engine.
pub fn run(plan: &Plan) -> Result<RunResult, Error> {
    only_wires(plan)?;
    let prediction = predict(plan)?;
    known_signals(&prediction)?;
    let mut result = RunResult::new("theory", &plan.scenario, plan.seed, plan.window_bounds());
    result.notes.clone_from(&plan.notes);
    result.aqm = plan.links.iter().find(|link| link.record).map(|link| aqm_report(&link.aqm)).unwrap_or_default();
    for (name, windows) in &prediction {
        let link = plan.links.iter().find(|link| link.name == **name);
        let target = link.and_then(|link| link.target_pkts);
        let metrics = plan.windows.iter().map(|w| (w.name.clone(), link_metrics(&windows[&w.name], target, w)));
        result.links.insert(name.clone(), metrics.collect());
        result.series.insert(name.clone(), series(plan, windows));
        result
            .sojourn
            .insert(name.clone(), plan.windows.iter().map(|w| (w.name.clone(), Default::default())).collect());
        result.queue.insert(name.clone(), result.sojourn[name].clone());
    }
    for (group, entry) in plan.groups.iter().enumerate() {
        let of_window = |w: &Window| (w.name.clone(), flow_metrics(plan, group as u32, w, &prediction));
        result.flows.insert(entry.name.clone(), plan.windows.iter().map(of_window).collect());
    }
    Ok(result)
}

/// Refuses links of which it is not known which share of their packets is signalled.
fn known_signals(prediction: &Prediction) -> Result<(), Error> {
    let mut all = prediction.iter().flat_map(|(name, windows)| windows.values().map(move |at| (name, at)));
    let Some((name, at)) = all.find(|(_, at)| at.probability.is_nan()) else { return Ok(()) };
    let why = at.analysis.as_ref().and_then(|analysis| analysis.noise.why.clone()).unwrap_or_default();
    Err(Error::Unsupported(format!("link {name}: {why}; use engine packet")))
}

/// The 99th percentile of a normal variable in its deviations.
const Z99: f64 = 2.326_347_874_040_841;

fn link_metrics(at: &LinkPrediction, target: Option<f64>, window: &Window) -> LinkMetrics {
    let length_s = (window.end - window.start).as_secs_f64();
    // A link without a queue, and a full buffer, hold still in packets too. Elsewhere packets move the queue: without
    // a valid noise model neither deviation nor percentiles are known.
    let still = at.tail || at.queue_pkts == 0.0;
    let stable = at.analysis.as_ref().and_then(|analysis| analysis.margins.as_ref()).is_none_or(|m| m.exact.stable);
    // The height of an oscillation is the nonlinear equations'.
    let height = at.analysis.as_ref().and_then(|analysis| analysis.expected.oscillation_std_pkts);
    let noise = at.analysis.as_ref().map(|analysis| &analysis.noise).filter(|noise| noise.valid);
    let spread = match noise.and_then(|noise| noise.queue_std_pkts) {
        Some(deviation) => deviation,
        None if still => 0.0,
        None if stable => f64::NAN,
        None => height.unwrap_or(f64::NAN),
    };
    let utilization = at.utilization - noise.and_then(|noise| noise.utilization_lost).unwrap_or(0.0);
    let known = noise.and_then(|noise| noise.queue_std_pkts);
    let percentile = |z: f64| known.map(|deviation| at.queue_pkts + z * deviation);
    let departures = at.utilization * at.capacity_pps * length_s;
    let (marked, early, overflow) = match (at.tail, at.ecn) {
        _ if at.signalled.is_some() => at.signalled.map_or((0.0, 0.0, 0.0), |[marked, early]| (marked, early, 0.0)),
        (true, _) => (0.0, 0.0, at.probability),
        (false, false) => (0.0, at.probability, 0.0),
        // Of those that arrive, unresponsive load is dropped and the others are marked.
        (false, true) => {
            let others = at.utilization * at.capacity_pps - at.admitted_pps;
            let share =
                if at.unresponsive_pps > 0.0 { at.unresponsive_pps / (others + at.unresponsive_pps) } else { 0.0 };
            (at.probability * (1.0 - share), at.probability * share, 0.0)
        }
    };
    let arrivals = departures / (1.0 - early - overflow);
    let point = LinkSteadyState {
        queue_pkts: at.queue_pkts,
        queue_std_pkts: spread,
        arrivals,
        departures,
        mark_ratio: marked,
        early_drop_ratio: early,
        overflow_drop_ratio: overflow,
        utilization,
    };
    let sojourn = (arrivals > 0.0).then_some(at.queue_pkts / at.capacity_pps);
    LinkMetrics {
        sojourn_mean_s: sojourn,
        sojourn_p50_s: sojourn.filter(|_| still || known.is_some()),
        sojourn_p95_s: percentile(Z95).map(|pkts| pkts / at.capacity_pps).or(sojourn.filter(|_| still)),
        sojourn_p99_s: percentile(Z99).map(|pkts| pkts / at.capacity_pps).or(sojourn.filter(|_| still)),
        queue_p95_pkts: percentile(Z95),
        ..point.metrics(target)
    }
}

fn flow_metrics(plan: &Plan, group: u32, window: &Window, prediction: &Prediction) -> FlowMetrics {
    let first = plan.flows.iter().find(|flow| flow.group == group);
    if let Some(load) = first.and_then(|flow| load_of(plan, flow)) {
        return load_metrics(plan, group, load, window, prediction);
    }
    let transport = &plan.groups[group as usize].transport;
    let payload = f64::from(transport.payload_bytes());
    let users = users(plan, window);
    let mut inverse: Vec<Option<f64>> = vec![None; plan.links.len()];
    let (mut goodput, mut squares, mut rtts, mut lost, mut n) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for flow in plan.flows.iter().filter(|flow| flow.group == group) {
        let on = presence(flow, window);
        n += 1.0;
        let link = bottleneck_of(plan, flow, &users, window).filter(|_| on > 0.0);
        let Some((link, at)) = link.and_then(|link| Some((link, prediction.get(&plan.links[link].name.to_string())?)))
        else {
            continue;
        };
        let Some(at) = at.get(&window.name) else { continue };
        // Equal windows: rates as 1 / R, which fill what the link has for them.
        let wait = at.queue_pkts / at.capacity_pps;
        let left = at.utilization * at.capacity_pps - at.admitted_pps;
        let of_group = at.own.iter().find(|(number, ..)| *number == group);
        let (own, per_s) = match of_group {
            Some((_, window, wait)) => {
                let own = crate::fluid::base_rtt_s(plan, flow) + wait;
                (own, window / own)
            }
            None => {
                let own = crate::fluid::base_rtt_s(plan, flow) + wait;
                let all = *inverse[link].get_or_insert_with(|| inverse_rtts(plan, window, &users, link, wait));
                (own, left / at.weight / all / own)
            }
        };
        let rate = on * per_s * payload * 8.0;
        goodput += rate;
        squares += rate * rate;
        rtts += rate * own;
        lost += if at.ecn && transport.ecn() { 0.0 } else { rate * at.probability };
    }
    FlowMetrics {
        goodput_bps: goodput,
        jain_fairness: (squares > 0.0).then(|| goodput * goodput / (n * squares)),
        rtt_mean_s: (goodput > 0.0).then(|| rtts / goodput),
        retransmitted_ratio: (goodput > 0.0).then(|| lost / goodput),
        ..FlowMetrics::default()
    }
}

/// The sum of 1 / R over the flows that `link` holds back, where each waits so long.
fn inverse_rtts(plan: &Plan, window: &Window, users: &[Users], link: usize, wait_s: f64) -> f64 {
    let held = plan.flows.iter().filter(|flow| load_of(plan, flow).is_none());
    let held = held.filter(|flow| bottleneck_of(plan, flow, users, window) == Some(link));
    held.map(|flow| presence(flow, window) / (crate::fluid::base_rtt_s(plan, flow) + wait_s)).sum()
}

/// Metrics of a group of unresponsive flows, the load that passes every link of their path, or of short transfers,
/// which are all delivered.
fn load_metrics(plan: &Plan, group: u32, load: Load, window: &Window, prediction: &Prediction) -> FlowMetrics {
    let (mut goodput, mut squares, mut offered, mut n) = (0.0, 0.0, 0.0, 0.0);
    let delivered = unresponsive(&plan.groups[group as usize]).is_none();
    for flow in plan.flows.iter().filter(|flow| flow.group == group) {
        let passes = flow.path.iter().fold(1.0, |passes, &link| {
            let at = prediction
                .get(&plan.links[link as usize].name.to_string())
                .and_then(|windows| windows.get(&window.name));
            passes * (1.0 - at.filter(|_| !delivered).map_or(0.0, |at| at.probability.min(1.0)))
        });
        let rate = presence(flow, window) * load.pps * load.payload_bytes * 8.0;
        offered += rate;
        goodput += rate * passes;
        squares += rate * passes * rate * passes;
        n += 1.0;
    }
    FlowMetrics {
        goodput_bps: goodput,
        jain_fairness: (squares > 0.0).then(|| goodput * goodput / (n * squares)),
        retransmitted_ratio: (offered > 0.0 && !delivered).then_some(0.0),
        loss_ratio: (offered > 0.0).then(|| 1.0 - goodput / offered),
        ..FlowMetrics::default()
    }
}

/// The predictions as lines over time: of the shortest window that a moment lies in.
fn series(plan: &Plan, windows: &IndexMap<String, LinkPrediction>) -> Series {
    let mut series = Series::default();
    let interval = plan.sample_interval.as_nanos().max(1);
    for k in 1..=plan.duration.as_nanos() / interval {
        let at = aqumen_units::Instant::from_nanos(k * interval);
        let shortest = plan.windows.iter().filter(|w| w.start <= at && at <= w.end).min_by_key(|w| w.end - w.start);
        let Some(here) = shortest.map(|w| &windows[&w.name]) else { continue };
        series.t_s.push(at.as_secs_f64());
        series.queue_pkts.push(here.queue_pkts);
        series.probability.push(here.probability);
    }
    series
}
