//! Flows on each link of a plan in a window, and the bottleneck of each flow.

use aqumen_scenario::{Flow, Plan, Window};

use super::transfers::ShortTransfers;
use crate::fluid::{Load, time_on, unresponsive};

/// Share of `window` in which `flow` is on.
pub(crate) fn presence(flow: &Flow, window: &Window) -> f64 {
    time_on(flow, window.start, window.end)
}

/// Load that `flow` offers while it is on, if it is unresponsive or sends short transfers.
pub(crate) fn load_of(plan: &Plan, flow: &Flow) -> Option<Load> {
    let group = &plan.groups[flow.group as usize];
    unresponsive(group).or_else(|| ShortTransfers::new(group).map(|transfers| transfers.load()))
}

/// Mean rate of a link over `window`, bit/s.
pub(crate) fn mean_bps(plan: &Plan, link: usize, window: &Window) -> f64 {
    let rates = &plan.links[link].rates;
    let length = (window.end - window.start).as_secs_f64();
    // Of a link that changes often a window sees few rates.
    let first = rates.partition_point(|(at, _)| *at <= window.start).saturating_sub(1);
    let last = rates.partition_point(|(at, _)| *at < window.end).max(first);
    let parts = (first..last).map(|k| {
        let (at, rate) = rates[k];
        let until = rates.get(k + 1).map_or(window.end, |next| next.0).min(window.end);
        rate.as_bps() as f64 * until.saturating_since(at.max(window.start)).as_secs_f64()
    });
    if length > 0.0 { parts.sum::<f64>() / length } else { rates[0].1.as_bps() as f64 }
}

/// Flows on a link: those with windows, and the load of unresponsive ones, bit/s.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Users {
    pub(crate) flows: f64,
    pub(crate) load_bps: f64,
}

pub(crate) fn users(plan: &Plan, window: &Window) -> Vec<Users> {
    let mut users = vec![Users::default(); plan.links.len()];
    for flow in &plan.flows {
        let (on, load) = (presence(flow, window), load_of(plan, flow));
        for &link in &flow.path {
            match load {
                Some(load) => users[link as usize].load_bps += on * load.pps * 8.0 * load.packet_bytes,
                None => users[link as usize].flows += on,
            }
        }
    }
    users
}

/// Number of the link that leaves each of `flows` the least capacity: the lowest rate per flow that crosses it.
pub(crate) fn bottleneck_of(plan: &Plan, flow: &Flow, users: &[Users], window: &Window) -> Option<usize> {
    // One bit per second is left by any load, so that an overloaded link is the narrowest.
    let share =
        |link: usize| (mean_bps(plan, link, window) - users[link].load_bps).max(1.0) / users[link].flows.max(1e-9);
    flow.path.iter().map(|&link| link as usize).min_by(|&a, &b| share(a).total_cmp(&share(b)))
}
