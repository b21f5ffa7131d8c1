//! The agenda: everything that is known to happen before the run starts, but for the first starts of lone senders.

use aqumen_network::measurement::edges;
use aqumen_scenario::Plan;

/// Something on the agenda. At equal moments the order is that of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Control {
    /// A window begins or ends.
    Edge,
    /// Another AQM, or other parameters, at a link of the plan.
    ReplaceAqm { link: u32, change: u32 },
    /// A flow's application stops.
    Pause(u32),
    /// A flow's application starts or goes on.
    Resume(u32),
    /// The host wants to hear how far the run is.
    Progress,
}

/// What is to come, in order.
pub(crate) struct Agenda {
    items: Vec<(u64, Control)>,
    done: usize,
    next: u64,
    /// Edges of windows, in order; the last is the end of the run.
    edges: Vec<u64>,
    edges_done: usize,
    next_edge: u64,
}

impl Agenda {
    /// Of `plan`; some flows `start_alone` for the first time, and need no stop of all places for that.
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
        Agenda { items, done: 0, next, edges, edges_done: 0, next_edge }
    }

    /// When the next item is due; `u64::MAX` when all are done.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The next edge; `u64::MAX` after the last.
    #[inline]
    pub(crate) fn next_edge(&self) -> u64 {
        self.next_edge
    }

    /// The next item that is due at `now`.
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
