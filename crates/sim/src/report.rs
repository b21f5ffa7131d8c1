//! Result of a run: metrics of each window, from the measured pieces that lie in it.

use aqumen_network::measurement::{edges, fill_sojourn, pieces_in};
use aqumen_network::port::Port;
use aqumen_network::{LinkMeasurement, aqm_report};
use aqumen_result::{FlowMetrics, LinkMetrics, RunResult};
use aqumen_result::{Synchrony, jain, rtt_slope};
use aqumen_scenario::{Group, Plan, Window};
use indexmap::IndexMap;

use crate::engine::{FlowTotal, Outcome, Totals};
use crate::measure::sharing::Sharing;

/// Makes the result of a finished run.
pub(crate) fn result(plan: &Plan, mut run: Outcome) -> RunResult {
    let edges = edges(plan);
    let mut result = RunResult::new("packet", &plan.scenario, plan.seed, plan.window_bounds());
    result.notes.clone_from(&plan.notes);
    result.cost.events = run.events;
    result.cost.threads = run.threads;
    for (number, group) in plan.groups.iter().enumerate() {
        let by_window = |window: &Window| {
            let (mut metrics, sent) = flow_metrics(group, &run.totals, &edges, window);
            if group.transport.tcp().is_some() {
                run.segments.fill(&mut metrics, number as u32, pieces_in(&edges, window), sent);
            }
            run.measures.fill(&mut metrics, plan, number as u32, pieces_in(&edges, window), window);
            (window.name.clone(), metrics)
        };
        result.flows.insert(group.name.clone(), plan.windows.iter().map(by_window).collect());
    }
    let offered: Vec<_> = run.ports.iter_mut().map(Port::offered_bits).collect();
    let ports = run.ports.iter().zip(&run.port_links).zip(run.series).zip(offered);
    for (((port, &number), series), offered) in ports {
        let Some((meter, totals)) = port.measured() else { continue };
        let link = &plan.links[number as usize];
        if result.links.is_empty() {
            result.aqm = aqm_report(link, |visit| port.settings(visit));
        }
        port.notes(&mut |note| result.notes.push(format!("{}: {note}", link.name)));
        result.cost.bottleneck_packets += totals.departures;
        let crossing = plan.flows.iter().filter(|flow| flow.path.contains(&number)).count().max(1);
        let mut metrics = IndexMap::new();
        let mut sojourn = IndexMap::new();
        let mut queue = IndexMap::new();
        for window in &plan.windows {
            let seen = LinkMeasurement::new(plan, link, window, &edges, meter, offered.as_deref(), &series);
            let mut own = seen.metrics;
            own.loss_sync_ratio = own.loss_event_flows_mean.map(|hit| hit / crossing as f64);
            if let Some((_, share)) = run.measures.shares.iter().find(|(of, _)| *of == number) {
                judge_sharing(&mut own, plan, number, share, &run.totals, &edges, window);
            }
            metrics.insert(window.name.clone(), own);
            fill_sojourn(&mut result.flows, window, &seen.sojourn_of_group);
            sojourn.insert(window.name.clone(), seen.sojourn);
            queue.insert(window.name.clone(), seen.queue);
        }
        result.queue.insert(link.name.to_string(), queue);
        result.links.insert(link.name.to_string(), metrics);
        result.sojourn.insert(link.name.to_string(), sojourn);
        result.series.insert(link.name.to_string(), series);
    }
    result
}

/// Fills in how flows share link `number`.
fn judge_sharing(
    metrics: &mut LinkMetrics,
    plan: &Plan,
    number: u32,
    share: &Sharing,
    totals: &Totals,
    edges: &[u64],
    window: &Window,
) {
    let mut together = Synchrony::default();
    pieces_in(edges, window).for_each(|k| together.merge(&share.pieces[k]));
    metrics.sync_index = together.index();
    metrics.fairness_mean = share.fairness_mean(window);
    metrics.convergence_s = share.convergence_s(window);
    let endless = plan.flows.iter().zip(0..);
    let endless = endless.filter(|(flow, _)| plan.is_endless(flow) && flow.path.contains(&number));
    let mean_rtt_and_bytes = endless.map(|(_, flow)| {
        let done = done_in(totals, flow, edges, window);
        (done.counts.rtt_sum_ns as f64 / done.counts.rtt_samples.max(1) as f64, done.delivered as f64)
    });
    metrics.rtt_fairness_slope = rtt_slope(&mean_rtt_and_bytes.collect::<Vec<_>>());
}

/// Returns the totals of `flow` in `window`.
fn done_in(totals: &Totals, flow: usize, edges: &[u64], window: &Window) -> FlowTotal {
    let mut done = FlowTotal::default();
    pieces_in(edges, window).for_each(|piece| done.add(&totals.piece(flow, piece)));
    done
}

/// Returns the metrics of a group's flows in a window, and the number of segments that they sent.
fn flow_metrics(group: &Group, totals: &Totals, edges: &[u64], window: &Window) -> (FlowMetrics, u64) {
    let mut sum = FlowTotal::default();
    let mut shares = Vec::with_capacity(group.flows.len());
    for flow in group.flows.clone() {
        let done = done_in(totals, flow as usize, edges, window);
        shares.push(done.delivered as f64);
        sum.add(&done);
    }
    let delivered = sum.delivered as f64;
    let counts = &sum.counts;
    let transport = &group.transport;
    let goodput_bps = delivered * 8.0 / (window.end - window.start).as_secs_f64();
    let metrics = FlowMetrics {
        goodput_bps,
        jain_fairness: jain(shares),
        rtt_mean_s: (counts.rtt_samples > 0).then(|| counts.rtt_sum_ns as f64 * 1e-9 / counts.rtt_samples as f64),
        retransmitted_ratio: (counts.sent > 0).then(|| counts.retransmitted as f64 / counts.sent as f64),
        timeouts: Some(counts.timeouts),
        throughput_bps: Some(goodput_bps * f64::from(transport.packet_bytes()) / f64::from(transport.payload_bytes())),
        ..FlowMetrics::default()
    };
    (metrics, counts.sent)
}
