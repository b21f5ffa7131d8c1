//! State of applications: of flows and of groups, each with its traffic source.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqumen_scenario::streams::{Kind, Stream};
use aqumen_scenario::traffic::Scope;
use aqumen_scenario::{Plan, Traffic};
use aqumen_traffic::{Action, Source, Step};

use super::moment::instant;
use super::totals::FlowTotal;

/// All applications: those of flows, and those of groups.
#[derive(Clone, Default)]
pub(super) struct Applications {
    pub(super) of_flows: Vec<FlowApplication>,
    pub(super) of_groups: Vec<GroupApplication>,
}

/// A source, and its planned action.
#[derive(Clone)]
pub(super) struct Driver {
    pub(super) source: Box<dyn Source>,
    pub(super) rng: Stream,
    /// Next action and its time.
    pub(super) pending: Option<(u64, Action)>,
}

/// The application of a flow.
#[derive(Clone)]
pub(super) struct FlowApplication {
    pub(super) flow: u32,
    /// Source of the flow; `None` if the group's source assigns transfers.
    pub(super) driver: Option<Driver>,
    /// Index of the group's application, or `NONE`.
    pub(super) group: u32,
    /// Number of this connection of the source, and number of connections: consecutive flows, of which the first has
    /// the driver.
    pub(super) connection: u32,
    pub(super) connections: u32,
    pub(super) running: bool,
    /// Whether its source may sleep, and whether it sleeps: its next write is pending without an event.
    pub(super) may_sleep: bool,
    pub(super) sleeps: bool,
    /// The source waits for a delivery.
    pub(super) waits: bool,
    /// Whether the transport reports deliveries.
    pub(super) tells: bool,
    /// Whether the connection is open.
    pub(super) open: bool,
    /// Current transfer.
    pub(super) request: Option<Request>,
    /// Time at which the current page was requested.
    pub(super) page_at: Option<u64>,
    /// Time of the sink's last delivery.
    pub(super) delivered_at: u64,
    /// Number of messages written.
    pub(super) messages: u32,
    /// Totals of the flow's earlier connections.
    pub(super) retired: FlowTotal,
}

/// The application of a group.
#[derive(Clone)]
pub(super) struct GroupApplication {
    pub(super) driver: Driver,
    pub(super) running: bool,
    /// Idle flows; the lowest number is used first.
    pub(super) idle: BinaryHeap<Reverse<u32>>,
    pub(super) group: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) bytes: u64,
    pub(super) at: u64,
    /// Arrival of the first data.
    pub(super) first_at: Option<u64>,
}

impl Applications {
    /// Draws from the random numbers of `seed` from now on.
    pub(super) fn reseed(&mut self, seed: u64) {
        for application in &mut self.of_flows {
            application.driver.iter_mut().for_each(|driver| driver.reseed(seed, application.flow));
        }
        for application in &mut self.of_groups {
            // The flows of groups have streams with the numbers of flows; groups count down from the last number.
            application.driver.reseed(seed, u32::MAX - application.group);
        }
    }

    /// Returns the number of priorities that the applications need.
    pub(super) fn priorities(plan: &Plan) -> u32 {
        let groups = plan.groups.iter().filter(|group| group.traffic != Traffic::Bulk);
        groups.map(|group| group.flows.len() as u32 + u32::from(group.traffic.scope() == Scope::Group)).sum()
    }

    /// Notes a delivery by the sink of a flow.
    pub(super) fn delivered(&mut self, application: u32, at: u64) {
        let application = &mut self.of_flows[application as usize];
        application.delivered_at = application.delivered_at.max(at);
        if let Some(request) = &mut application.request {
            request.first_at.get_or_insert(at);
        }
    }

    /// Returns the totals of a flow's earlier connections.
    pub(super) fn retired(&self, application: u32) -> &FlowTotal {
        static NOTHING: FlowTotal = FlowTotal::NOTHING;
        self.of_flows.get(application as usize).map_or(&NOTHING, |application| &application.retired)
    }
}

impl Driver {
    /// Makes the driver of `source`, which belongs to `flow` or to the group whose first flow this is.
    pub(super) fn new(plan: &Plan, source: Box<dyn Source>, flow: u32) -> Driver {
        Driver { source, rng: Stream::new(plan.seed, Kind::Traffic, u64::from(flow)), pending: None }
    }

    fn reseed(&mut self, seed: u64, flow: u32) {
        self.rng = Stream::new(seed, Kind::Traffic, u64::from(flow));
    }

    pub(super) fn next(&mut self, now: u64) -> Step {
        self.source.next(instant(now), &mut self.rng)
    }
}
