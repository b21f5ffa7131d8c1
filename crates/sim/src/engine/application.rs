//! The applications of flows and of groups, each with its source: what each of them is at.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqumen_scenario::streams::{Kind, Stream};
use aqumen_scenario::traffic::Scope;
use aqumen_scenario::{Plan, Traffic};
use aqumen_traffic::{Action, Source, Step};

use super::moment::instant;
use super::totals::FlowTotal;

/// All applications, those of flows first, then those of groups.
#[derive(Default)]
pub(super) struct Applications {
    pub(super) of_flows: Vec<OfFlow>,
    pub(super) of_groups: Vec<OfGroup>,
}

/// A source, and what it will do.
pub(super) struct Driver {
    pub(super) source: Box<dyn Source>,
    pub(super) rng: Stream,
    /// Its next action, and when.
    pub(super) pending: Option<(u64, Action)>,
}

/// The application of a flow.
pub(super) struct OfFlow {
    pub(super) flow: u32,
    /// `None`: the group's source gives it transfers.
    pub(super) driver: Option<Driver>,
    /// Its index among the groups' applications, or `NONE`.
    pub(super) group: u32,
    /// Which of its source's connections it is, and how many these are: flows one after another, of
    /// which the first has the driver.
    pub(super) connection: u32,
    pub(super) connections: u32,
    pub(super) running: bool,
    /// Whether its source may sleep, and whether it does: its next write is pending, but no event comes for it.
    pub(super) may_sleep: bool,
    pub(super) sleeps: bool,
    /// The source waits until something that it asked for has been delivered.
    pub(super) waits: bool,
    /// Whether anybody learns when what it asked for has been delivered.
    pub(super) tells: bool,
    /// Whether its connection is open.
    pub(super) open: bool,
    /// The transfer under way.
    pub(super) request: Option<Request>,
    /// When the page under way was asked for.
    pub(super) page_at: Option<u64>,
    /// When the sink last handed something over.
    pub(super) delivered_at: u64,
    /// Messages written.
    pub(super) messages: u32,
    /// What the flow's earlier connections did.
    pub(super) retired: FlowTotal,
}

/// The application of a group.
pub(super) struct OfGroup {
    pub(super) driver: Driver,
    pub(super) running: bool,
    /// Flows without a transfer; the first of the group is taken first.
    pub(super) idle: BinaryHeap<Reverse<u32>>,
    pub(super) group: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) bytes: u64,
    pub(super) at: u64,
    /// When its first data came.
    pub(super) first_at: Option<u64>,
}

impl Applications {
    /// Ranks that they need.
    pub(super) fn ranks(plan: &Plan) -> u32 {
        let groups = plan.groups.iter().filter(|group| group.traffic != Traffic::Bulk);
        groups.map(|group| group.flows.len() as u32 + u32::from(group.traffic.scope() == Scope::Group)).sum()
    }

    /// The sink of a flow handed something over.
    pub(super) fn delivered(&mut self, application: u32, at: u64) {
        let application = &mut self.of_flows[application as usize];
        application.delivered_at = application.delivered_at.max(at);
        if let Some(request) = &mut application.request {
            request.first_at.get_or_insert(at);
        }
    }

    /// What the earlier connections of a flow did.
    pub(super) fn retired(&self, application: u32) -> &FlowTotal {
        static NOTHING: FlowTotal = FlowTotal::NOTHING;
        self.of_flows.get(application as usize).map_or(&NOTHING, |application| &application.retired)
    }
}

impl Driver {
    /// `source` of `flow`, or of the group whose first flow that is.
    pub(super) fn new(plan: &Plan, source: Box<dyn Source>, flow: u32) -> Driver {
        Driver { source, rng: Stream::new(plan.seed, Kind::Traffic, u64::from(flow)), pending: None }
    }

    pub(super) fn next(&mut self, now: u64) -> Step {
        self.source.next(instant(now), &mut self.rng)
    }
}
