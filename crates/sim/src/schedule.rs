//! The schedule: all items known before the run starts, except the first starts of bulk senders.

use aqumen_network::measurement::edges;
use aqumen_scenario::Plan;

/// A scheduled item. Equal times are ordered by the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Control {
    /// Edge of a measurement window.
    Edge,
    /// Change of the AQM or its parameters at a link.
    ReplaceAqm { link: u32, change: u32 },
    /// Stop of a flow's application.
    Pause(u32),
    /// Start or resumption of a flow's application.
    Resume(u32),
    /// Progress report to the host.
    Progress,
}

/// Scheduled items, in order.
#[derive(Clone)]
pub(crate) struct Schedule {
    items: Vec<(u64, Control)>,
    done: usize,
    next: u64,
    /// Edges of measurement windows, in order; the last is the end of the run.
    edges: Vec<u64>,
    edges_done: usize,
    next_edge: u64,
}

impl Schedule {
    /// Makes the schedule of `plan`. Flows that `start_alone` need no scheduled first start.
    pub(crate) fn new(plan: &Plan, start_alone: impl Fn(u32) -> bool) -> Self {
        let end = plan.duration.as_nanos();
        let edges = edges(plan);
        let mut items: Vec<_> = edges.iter().map(|&at| (at, Control::Edge)).collect();
        for (flow, number) in plan.flows.iter().zip(0u32..) {
            let starts = flow.on.iter().skip(usize::from(start_alone(number)));
            items.extend(starts.map(|(from, _)| (from.as_nanos(), Control::Resume(number))));
            let ends = flow.on.iter().filter_map(|(_, until)| *until);
            items.extend(ends.map(|until| (until.as_nanos(), Control::Pause(number))));
        }
        for (link, number) in plan.links.iter().zip(0u32..) {
            let changes = link.line.iter().flat_map(|line| &line.aqms).zip(0u32..);
            items
                .extend(changes.map(|((at, _), change)| (at.as_nanos(), Control::ReplaceAqm { link: number, change })));
        }
        const REPORTS: u64 = 50;
        items.extend((1..=REPORTS).map(|k| ((end as u128 * k as u128 / REPORTS as u128) as u64, Control::Progress)));
        items.retain(|&(at, _)| at <= end);
        items.sort_unstable();
        items.dedup();
        let next = items.first().map_or(u64::MAX, |&(at, _)| at);
        let next_edge = edges.first().copied().unwrap_or(u64::MAX);
        Schedule { items, done: 0, next, edges, edges_done: 0, next_edge }
    }

    /// Returns the time of the next item; `u64::MAX` if all are done.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the next edge; `u64::MAX` after the last.
    #[inline]
    pub(crate) fn next_edge(&self) -> u64 {
        self.next_edge
    }

    /// Takes the next item that is due at `now`.
    pub(crate) fn take(&mut self, now: u64) -> Option<Control> {
        let &(at, control) = self.items.get(self.done)?;
        if at > now {
            return None;
        }
        self.done += 1;
        self.next = self.items.get(self.done).map_or(u64::MAX, |&(at, _)| at);
        if control == Control::Edge {
            self.edges_done += 1;
            self.next_edge = self.edges.get(self.edges_done).copied().unwrap_or(u64::MAX);
        }
        Some(control)
    }
}
