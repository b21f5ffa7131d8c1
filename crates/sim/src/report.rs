//! From what was measured to the result: metrics of each window, from the pieces that lie in it.

use aqumen_aqm::Value;
use aqumen_result::{AqmReport, Cost, FlowMetrics, LinkMetrics, ParamValue, RunResult};
use aqumen_scenario::{Group, Link, Plan, Window};
use indexmap::IndexMap;

use crate::control::edges;
use crate::engine::{Engine, FlowPiece};
use crate::meter::Piece;
use crate::port::Port;

/// The result of a finished run.
pub(crate) fn result(plan: &Plan, engine: Engine<'_>, version: &'static str, cpu_s: f64, wall_s: f64) -> RunResult {
    let edges = edges(plan);
    let mut result = RunResult {
        schema: aqumen_result::SCHEMA,
        aqumen: version,
        scenario: plan.scenario.clone(),
        engine: "packet",
        aqm: AqmReport::default(),
        seed: plan.seed,
        windows: plan.windows.iter().map(|w| (w.name.clone(), [w.start.as_secs_f64(), w.end.as_secs_f64()])).collect(),
        links: IndexMap::new(),
        flows: IndexMap::new(),
        cost: Cost { cpu_s, wall_s, events: engine.events, bottleneck_packets: 0 },
        series: IndexMap::new(),
        sojourn: IndexMap::new(),
    };
    for group in &plan.groups {
        let pieces = &engine.flow_pieces[group.flows.start as usize..group.flows.end as usize];
        let by_window = |window: &Window| (window.name.clone(), flow_metrics(group, pieces, &edges, window));
        result.flows.insert(group.name.clone(), plan.windows.iter().map(by_window).collect());
    }
    let ports = engine.network.ports.iter().zip(&engine.network.port_links).zip(engine.series);
    for ((port, &number), series) in ports {
        let Some((meter, totals)) = port.measured() else { continue };
        let link = &plan.links[number as usize];
        if result.links.is_empty() {
            result.aqm = aqm_report(link, port);
        }
        result.cost.bottleneck_packets += totals.departures;
        let mut metrics = IndexMap::new();
        let mut sojourn = IndexMap::new();
        for window in &plan.windows {
            let piece = merge(&meter.pieces, &edges, window);
            metrics.insert(window.name.clone(), link_metrics(link, &piece, window));
            sojourn.insert(window.name.clone(), piece.sojourn);
        }
        result.links.insert(link.name.clone(), metrics);
        result.sojourn.insert(link.name.clone(), sojourn);
        result.series.insert(link.name.clone(), series);
    }
    result
}

fn aqm_report(link: &Link, port: &Port) -> AqmReport {
    let mut params = IndexMap::new();
    port.settings(&mut |name, value| {
        let value = match value {
            Value::Number(x) => ParamValue::Number(x),
            Value::Flag(yes) => ParamValue::Flag(yes),
            Value::Choice(word) => ParamValue::Choice(word.into()),
        };
        params.insert(name.to_string(), value);
    });
    AqmReport { name: link.aqm.name.clone(), params }
}

/// Indices of the pieces that lie in `window`.
fn pieces_in<'e>(edges: &'e [u64], window: &Window) -> impl Iterator<Item = usize> + 'e {
    let (start, end) = (window.start.as_nanos(), window.end.as_nanos());
    edges.iter().enumerate().filter(move |&(_, &edge)| start < edge && edge <= end).map(|(k, _)| k)
}

fn merge(pieces: &[Piece], edges: &[u64], window: &Window) -> Piece {
    pieces_in(edges, window).fold(Piece::default(), |mut sum, k| {
        sum.merge(&pieces[k]);
        sum
    })
}

fn link_metrics(link: &Link, piece: &Piece, window: &Window) -> LinkMetrics {
    let grown = &piece.grown;
    let length_ns = (window.end - window.start).as_nanos() as f64;
    let mean = piece.area as f64 / length_ns;
    let mean_square = piece.area_squared as f64 / length_ns;
    let ratio = |count: u64| (grown.arrivals > 0).then(|| count as f64 / grown.arrivals as f64);
    let capacity = capacity_bits(link, window);
    let seconds = |ns: f64| ns * 1e-9;
    LinkMetrics {
        utilization: (capacity > 0.0).then(|| (grown.departed_bytes as f64 * 8.0 + piece.partly_sent_bits) / capacity),
        queue_mean_pkts: mean,
        queue_std_pkts: (mean_square - mean * mean).max(0.0).sqrt(),
        qacd_pkts: link.target_pkts.map(|target| (mean_square - 2.0 * target * mean + target * target).max(0.0).sqrt()),
        qacd_sampled_pkts: link.target_pkts.and_then(|target| piece.sampled.rms_about(target)),
        sojourn_mean_s: piece.sojourn.mean().map(seconds),
        sojourn_p50_s: piece.sojourn.quantile(0.50).map(seconds),
        sojourn_p95_s: piece.sojourn.quantile(0.95).map(seconds),
        sojourn_p99_s: piece.sojourn.quantile(0.99).map(seconds),
        arrivals_pkts: grown.arrivals,
        departures_pkts: grown.departures,
        marked_pkts: grown.marked,
        early_dropped_pkts: grown.early_dropped,
        overflow_dropped_pkts: grown.overflow_dropped,
        mark_ratio: ratio(grown.marked),
        early_drop_ratio: ratio(grown.early_dropped),
        overflow_drop_ratio: ratio(grown.overflow_dropped),
    }
}

/// Bits that the link could have carried in `window`.
fn capacity_bits(link: &Link, window: &Window) -> f64 {
    let mut bits = 0.0;
    for (k, &(from, rate)) in link.rates.iter().enumerate() {
        let until = link.rates.get(k + 1).map_or(window.end, |next| next.0).min(window.end);
        bits += rate.as_bps() as f64 * until.saturating_since(from.max(window.start)).as_secs_f64();
    }
    bits
}

fn flow_metrics(group: &Group, pieces: &[Vec<FlowPiece>], edges: &[u64], window: &Window) -> FlowMetrics {
    let mut sum = FlowPiece::default();
    let (mut squares, flows) = (0.0, group.flows.len() as f64);
    for pieces in pieces {
        let mut delivered = 0;
        for k in pieces_in(edges, window) {
            let (piece, counts) = (&pieces[k], &mut sum.counts);
            delivered += piece.delivered;
            counts.sent += piece.counts.sent;
            counts.retransmitted += piece.counts.retransmitted;
            counts.timeouts += piece.counts.timeouts;
            counts.rtt_samples += piece.counts.rtt_samples;
            counts.rtt_sum_ns += piece.counts.rtt_sum_ns;
            sum.reception.add(&piece.reception);
        }
        sum.delivered += delivered;
        squares += (delivered as f64) * (delivered as f64);
    }
    let delivered = sum.delivered as f64;
    let counts = &sum.counts;
    FlowMetrics {
        goodput_bps: delivered * 8.0 / (window.end - window.start).as_secs_f64(),
        jain_fairness: (squares > 0.0).then(|| delivered * delivered / (flows * squares)),
        rtt_mean_s: (counts.rtt_samples > 0).then(|| counts.rtt_sum_ns as f64 * 1e-9 / counts.rtt_samples as f64),
        retransmitted_ratio: (counts.sent > 0).then(|| counts.retransmitted as f64 / counts.sent as f64),
        timeouts: Some(counts.timeouts),
        delay_mean_s: sum.reception.delay_mean_s(),
        jitter_mean_s: sum.reception.jitter_mean_s(),
        loss_ratio: sum.reception.loss_ratio(),
    }
}
