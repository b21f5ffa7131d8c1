//! From a moving network to the result: the same metrics as the packet engine's, of fluid.

use aqumen_aqm::{Aqm, Value};
use aqumen_result::{AqmReport, FlowMetrics, Histogram, LinkMetrics, LinkSums, Moments, NominalReport};
use aqumen_result::{ParamValue, RunResult, Series};
use aqumen_scenario::{AqmChoice, Plan, Window};
use indexmap::IndexMap;

use super::classes::{modelled_links, unresponsive};
use super::integrate::{ClassTotals, Fluid, QueueTotals};
use crate::Error;

/// How often the host hears of progress.
const REPORTS: u64 = 20;

/// Moves `fluid` through the whole of `plan` and measures it.
pub(crate) fn measure(
    plan: &Plan,
    fluid: &mut Fluid,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<RunResult, Error> {
    let links = modelled_links(plan);
    let duration = plan.duration.as_nanos();
    let mut edges: Vec<u64> =
        plan.windows.iter().flat_map(|window| [window.start.as_nanos(), window.end.as_nanos()]).collect();
    edges.extend([0, duration]);
    edges.retain(|&at| at <= duration);
    edges.sort_unstable();
    edges.dedup();

    let interval = plan.sample_interval.as_nanos().max(1);
    let samples = (1..).map(|k| k * interval).take_while(|&at| at <= duration);
    let reports = (1..=REPORTS).map(|k| (duration as u128 * k as u128 / REPORTS as u128) as u64);
    let mut stops: Vec<u64> = edges.iter().copied().chain(samples).chain(reports).collect();
    stops.sort_unstable();
    stops.dedup();

    let mut marks = Marks { edges, queues: Vec::new(), classes: Vec::new(), sojourn: vec![Vec::new(); links.len()] };
    let mut series = vec![Series::default(); links.len()];
    let mut reported = 0;
    for at in stops {
        fluid.advance(at);
        if marks.edges.binary_search(&at).is_ok() {
            marks.queues.push((0..links.len()).map(|j| fluid.queue_totals(j)).collect());
            marks.classes.push((0..fluid.classes()).map(|k| fluid.class_totals(k)).collect());
            for (j, kept) in marks.sojourn.iter_mut().enumerate() {
                kept.push(fluid.take_sojourn(j));
            }
        }
        if at > 0 && at % interval == 0 {
            for (j, series) in series.iter_mut().enumerate() {
                series.t_s.push(at as f64 * 1e-9);
                series.queue_pkts.push(fluid.queue_pkts(j));
                series.probability.push(fluid.shown_probability(j));
            }
        }
        let share = (at as u128 * REPORTS as u128 / duration.max(1) as u128) as u64;
        if share > reported {
            reported = share;
            if !progress(share as f64 / REPORTS as f64) {
                return Err(Error::Cancelled);
            }
        }
    }
    Ok(result(plan, fluid, &links, &marks, series))
}

/// The largest change between two results: of a window's mean or deviation of the queue, as a share of the buffer.
pub(crate) fn largest_change(plan: &Plan, old: &RunResult, new: &RunResult) -> f64 {
    let mut largest: f64 = 0.0;
    for link in plan.links.iter().filter(|link| link.record) {
        let (Some(old), Some(new)) = (old.links.get(&link.name.to_string()), new.links.get(&link.name.to_string()))
        else {
            continue;
        };
        let room = f64::from(link.limit.packets).min(new.values().map(|m| m.queue_mean_pkts).fold(1.0, f64::max) * 3.0);
        for (a, b) in old.values().zip(new.values()) {
            let moved = (a.queue_mean_pkts - b.queue_mean_pkts).abs().max((a.queue_std_pkts - b.queue_std_pkts).abs());
            largest = largest.max(moved / room);
        }
    }
    largest
}

/// Totals at the edges of the windows.
struct Marks {
    edges: Vec<u64>,
    queues: Vec<Vec<QueueTotals>>,
    classes: Vec<Vec<ClassTotals>>,
    /// Arrivals of each queue between each pair of edges.
    sojourn: Vec<Vec<Histogram>>,
}

impl Marks {
    /// Numbers of a window's first and last edge.
    fn ends(&self, window: &Window) -> (usize, usize) {
        let find = |at: u64| self.edges.binary_search(&at).unwrap_or_else(|after| after.min(self.edges.len() - 1));
        (find(window.start.as_nanos()), find(window.end.as_nanos()))
    }
}

fn result(plan: &Plan, fluid: &Fluid, links: &[usize], marks: &Marks, series: Vec<Series>) -> RunResult {
    let mut result = RunResult::new("fluid", &plan.scenario, plan.seed, plan.window_bounds());
    result.notes.clone_from(&plan.notes);
    for (number, group) in plan.groups.iter().enumerate() {
        let of_window =
            |window: &Window| (window.name.clone(), flow_metrics(plan, fluid, number as u32, marks, window));
        result.flows.insert(group.name.clone(), plan.windows.iter().map(of_window).collect());
    }
    for ((j, &number), series) in links.iter().enumerate().zip(series) {
        let link = &plan.links[number];
        if !link.record {
            continue;
        }
        if result.links.is_empty() {
            result.aqm = aqm_report(&plan.links[number].aqm);
        }
        let (mut metrics, mut sojourns, mut queues) = (IndexMap::new(), IndexMap::new(), IndexMap::new());
        for window in &plan.windows {
            let (from, to) = marks.ends(window);
            let mut sojourn = Histogram::default();
            marks.sojourn[j][from + 1..=to].iter().for_each(|part| sojourn.merge(part));
            let grown = (&marks.queues[from][j], &marks.queues[to][j]);
            let mut own = link_metrics(plan, fluid, (j, number), grown, &sojourn, window);
            queues.insert(window.name.clone(), judge_series(&mut own, plan, link.target_pkts, &series, window));
            metrics.insert(window.name.clone(), own);
            sojourns.insert(window.name.clone(), sojourn);
        }
        result.cost.bottleneck_packets += fluid.queue_totals(j).departures as u64;
        result.links.insert(link.name.to_string(), metrics);
        result.queue.insert(link.name.to_string(), queues);
        result.sojourn.insert(link.name.to_string(), sojourns);
        result.series.insert(link.name.to_string(), series);
    }
    result
}

/// Reports the given parameters of `choice` and the resolved ones.
pub(crate) fn aqm_report(choice: &AqmChoice) -> AqmReport {
    let param = |value: Value<'_>| match value {
        Value::Number(x) => ParamValue::Number(x),
        Value::Flag(yes) => ParamValue::Flag(yes),
        Value::Choice(word) => ParamValue::Choice(word.into()),
    };
    let mut params = IndexMap::new();
    if let Some(Ok(aqm)) = choice.build() {
        aqm.settings(&mut |name, value| {
            params.insert(name.to_string(), param(value));
        });
    }
    let network = &choice.network;
    AqmReport {
        name: choice.name.clone(),
        given: choice.values.iter().map(|(name, value)| (name.clone(), param(value.as_value()))).collect(),
        params,
        nominal: NominalReport {
            capacity_bps: network.capacity.as_bps(),
            flows: network.flows,
            base_rtt_s: network.base_rtt_s,
            target_pkts: network.target_pkts,
            packet_bytes: network.packet_bytes,
        },
    }
}

fn link_metrics(
    plan: &Plan,
    fluid: &Fluid,
    (j, number): (usize, usize),
    (old, new): (&QueueTotals, &QueueTotals),
    sojourn: &Histogram,
    window: &Window,
) -> LinkMetrics {
    let [sum, sum_squared, n] = [0, 1, 2].map(|i| new.sampled[i] - old.sampled[i]);
    let departures = new.departures - old.departures;
    let sums = LinkSums {
        length: (window.end - window.start).as_secs_f64(),
        unit_s: 1.0,
        area: new.area - old.area,
        area_squared: new.area_squared - old.area_squared,
        sampled: Moments { sum, sum_squared, n: n as u64 },
        arrivals: new.arrivals - old.arrivals,
        departures,
        marked: new.marked - old.marked,
        early_dropped: new.early - old.early,
        overflow_dropped: new.overflow - old.overflow,
        sent: departures,
        capacity: fluid.capacity_pkts(j, window.start.as_nanos(), window.end.as_nanos()),
    };
    let mut metrics = sums.metrics(plan.links[number].target_pkts);
    metrics.set_sojourn(sojourn);
    metrics
}

/// The queue as sampled in `window`, whole packets counted by nanoseconds; fills in what is told from the samples.
fn judge_series(
    metrics: &mut LinkMetrics,
    plan: &Plan,
    target: Option<f64>,
    series: &Series,
    window: &Window,
) -> Histogram {
    let (start_s, end_s) = (window.start.as_secs_f64(), window.end.as_secs_f64());
    let inside = series.t_s.partition_point(|&t| t <= start_s)..series.t_s.partition_point(|&t| t <= end_s);
    let (step, samples) = (plan.sample_interval, &series.queue_pkts[inside]);
    let mut queue = Histogram::default();
    samples.iter().for_each(|&pkts| queue.record_many(libm::rint(pkts.max(0.0)) as u64, step.as_nanos()));
    metrics.set_queue(&queue);
    metrics.queue_iae_pkts_s =
        target.map(|target| samples.iter().map(|&pkts| (pkts - target).abs()).sum::<f64>() * step.as_secs_f64());
    metrics.set_series(series, target, start_s, end_s);
    queue
}

fn flow_metrics(plan: &Plan, fluid: &Fluid, group: u32, marks: &Marks, window: &Window) -> FlowMetrics {
    let (from, to) = marks.ends(window);
    let transport = &plan.groups[group as usize].transport;
    let load = unresponsive(&plan.groups[group as usize]);
    let payload_bits = 8.0 * load.map_or(f64::from(transport.payload_bytes()), |load| load.payload_bytes);
    let packet_bits = 8.0 * load.map_or(f64::from(transport.packet_bytes()), |load| load.packet_bytes);
    let length_s = (window.end - window.start).as_secs_f64();
    let (mut sum, mut squares, mut flows) = (ClassTotals::default(), 0.0, 0.0);
    for k in (0..fluid.classes()).filter(|&k| fluid.group(k) == group) {
        let (old, new) = (&marks.classes[from][k], &marks.classes[to][k]);
        let delivered = new.delivered - old.delivered;
        sum.sent += new.sent - old.sent;
        sum.lost += new.lost - old.lost;
        sum.delivered += delivered;
        sum.rtt_pkts_s += new.rtt_pkts_s - old.rtt_pkts_s;
        let members = fluid.members(k);
        flows += members;
        squares += delivered * delivered / members;
    }
    FlowMetrics {
        goodput_bps: sum.delivered * payload_bits / length_s,
        jain_fairness: (squares > 0.0).then(|| sum.delivered * sum.delivered / (flows * squares)),
        rtt_mean_s: (sum.sent > 0.0 && load.is_none()).then(|| sum.rtt_pkts_s / sum.sent),
        // UDP repairs nothing.
        retransmitted_ratio: (sum.sent > 0.0).then(|| if load.is_some() { 0.0 } else { sum.lost / sum.sent }),
        loss_ratio: (sum.sent > 0.0 && load.is_some()).then(|| sum.lost / sum.sent),
        timeouts: None,
        throughput_bps: Some(sum.delivered * packet_bits / length_s),
        ..FlowMetrics::default()
    }
}
