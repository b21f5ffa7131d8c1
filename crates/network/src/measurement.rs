//! Metrics of a link in the measurement windows.
//!
//! A meter measures in pieces: piece k lies between edge k - 1 of all windows (or the start) and edge k.

use aqumen_result::{FlowMetrics, Histogram, LinkMetrics, LinkPiece, Meter, Series, capacity_bits};
use aqumen_scenario::{Group, Link, Plan, Window};
use aqumen_units::Instant;
use indexmap::IndexMap;

/// Measurement of a link in a window.
#[derive(Clone, Debug, Default)]
pub struct LinkMeasurement {
    /// Metrics.
    pub metrics: LinkMetrics,
    /// Sojourn times, nanoseconds.
    pub sojourn: Histogram,
    /// Queue lengths in packets, weighted by the nanoseconds that each lasted.
    pub queue: Histogram,
    /// Sojourn times of the data packets of each group of flows, nanoseconds.
    pub sojourn_of_group: Vec<Histogram>,
}

/// Returns the edges of all windows after the start, in order, and the end of the run.
pub fn edges(plan: &Plan) -> Vec<u64> {
    let mut edges: Vec<u64> =
        plan.windows.iter().flat_map(|window| [window.start.as_nanos(), window.end.as_nanos()]).collect();
    edges.push(plan.duration.as_nanos());
    edges.retain(|&at| 0 < at && at <= plan.duration.as_nanos());
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Returns the windows of a run that ends at `end`, nanoseconds: open windows end there, later ones are left out.
pub fn windows_until(plan: &Plan, end: u64) -> Vec<Window> {
    let end = Instant::from_nanos(end);
    let begun = plan.windows.iter().filter(|window| window.start < end);
    begun.map(|window| Window { end: window.end.min(end), ..window.clone() }).collect()
}

/// Returns the indices of the pieces that lie in `window`.
pub fn pieces_in<'e>(edges: &'e [u64], window: &Window) -> impl Iterator<Item = usize> + 'e {
    let (start, end) = (window.start.as_nanos(), window.end.as_nanos());
    edges.iter().enumerate().filter(move |&(_, &edge)| start < edge && edge <= end).map(|(k, _)| k)
}

/// Returns for each group of flows its first flow, and whether link `number` carries the group's data.
pub fn groups_at(plan: &Plan, number: u32) -> Vec<(u32, bool)> {
    let crosses = |group: &Group| {
        let flows = &plan.flows[group.flows.start as usize..group.flows.end as usize];
        (group.flows.start, flows.iter().any(|flow| flow.path.contains(&number)))
    };
    plan.groups.iter().map(crosses).collect()
}

/// Fills in the sojourn times of each group of flows at a link in `window`. Of several links the one with the longest
/// sojourn times counts.
pub fn fill_sojourn(
    flows: &mut IndexMap<String, IndexMap<String, FlowMetrics>>,
    window: &Window,
    sojourn: &[Histogram],
) {
    for (by_window, waits) in flows.values_mut().zip(sojourn) {
        if let Some(metrics) = by_window.get_mut(&window.name) {
            metrics.set_sojourn(waits);
        }
    }
}

impl LinkMeasurement {
    /// Measures `link` in `window` from the pieces of `meter` between `edges` and the samples in `series`. `offered`:
    /// bits that a medium offered in each piece.
    pub fn new(
        plan: &Plan,
        link: &Link,
        window: &Window,
        edges: &[u64],
        meter: &Meter,
        offered: Option<&[f64]>,
        series: &Series,
    ) -> Self {
        let mut piece = LinkPiece::default();
        pieces_in(edges, window).filter_map(|k| meter.pieces.get(k)).for_each(|later| piece.merge(later));
        let capacity = match offered {
            Some(bits) => pieces_in(edges, window).filter_map(|k| bits.get(k)).sum(),
            None => wire_bits(link, window),
        };
        let mut metrics = piece.metrics((window.end - window.start).as_nanos(), capacity, link.target_pkts);
        metrics.set_series(series, link.target_pkts, window.start.as_secs_f64(), window.end.as_secs_f64());
        // Sample k ends the interval from (k - 1) steps on.
        let step = plan.sample_interval.as_nanos();
        let (first, end) = (window.start.as_nanos().div_ceil(step), window.end.as_nanos() / step);
        metrics.loss_dispersion = meter.loss_dispersion(first as usize, end as usize);
        metrics.arrivals_hurst = meter.arrivals_hurst(first as usize, end as usize);
        let LinkPiece { sojourn, queue, sojourn_of_group, .. } = piece;
        LinkMeasurement { metrics, sojourn, queue, sojourn_of_group }
    }
}

/// Returns the bits that a wire could have carried in `window`.
fn wire_bits(link: &Link, window: &Window) -> f64 {
    let rates = link.rates.iter().map(|&(from, rate)| (from.as_nanos(), rate.as_bps()));
    let outages = link.line.as_ref().map_or(&[][..], |line| &line.outages);
    let outages = outages.iter().map(|(down, up)| (down.as_nanos(), up.map_or(u64::MAX, |up| up.as_nanos())));
    capacity_bits(rates, outages, window.start.as_nanos(), window.end.as_nanos())
}
