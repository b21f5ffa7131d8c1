//! Requests of sources with finite transfers, computed before a run, for external simulators.
//!
//! A source draws from its own random stream when it makes a request: sizes, think times and the number of a page's
//! objects do not depend on how fast it is served. A simulator that carries out these actions, each its time after the
//! last was served, therefore runs the same traffic.

use aqumen_scenario::streams::{Kind, Stream};
use aqumen_scenario::traffic::Scope;
use aqumen_scenario::{Plan, Traffic};
use aqumen_units::{Instant, Span};

use crate::{Action, Step, build};

/// Actions of one source, each with the time since the action before it (in a closed loop: since that was served).
pub type Requests = Vec<(Span, Action)>;

/// Most actions per source: with links without delay nothing else bounds their number.
const ACTIONS_MAX: usize = 1_000_000;

/// Returns the requests of each group's sources, at least up to the end of the run. A closed loop has one source per
/// flow, an open loop one per group. `None`: the group has no finite transfers, or its sessions use several
/// connections.
pub fn requests(plan: &Plan) -> Vec<Option<Vec<Requests>>> {
    let groups = plan.groups.iter().map(|group| {
        let finite =
            matches!(group.traffic, Traffic::Transfers(_) | Traffic::Web(_)) && group.traffic.connections() == 1;
        let shared = group.traffic.scope() == Scope::Group;
        let flows = if shared { group.flows.start..group.flows.start + 1 } else { group.flows.clone() };
        finite.then(|| flows.map(|flow| source_requests(plan, &group.traffic, flow, shared)).collect())
    });
    groups.collect()
}

fn source_requests(plan: &Plan, traffic: &Traffic, flow: u32, shared: bool) -> Requests {
    let mut done = Requests::new();
    let Some(mut source) = build(traffic) else { return done };
    let mut rng = Stream::new(plan.seed, Kind::Traffic, u64::from(flow));
    // A transfer takes at least a round trip; in an open loop nothing waits for it.
    let Some(the_flow) = plan.flows.get(flow as usize) else { return done };
    let links = the_flow.path.iter().chain(&the_flow.return_path);
    let round_trip: u64 = links.map(|link| plan.links[*link as usize].delay_min().as_nanos()).sum();
    let least = if shared { Span::ZERO } else { Span::from_nanos(round_trip) };
    let end = Instant::ZERO + plan.duration;
    // A group's source begins with the first of its flows that starts.
    let group = &plan.groups[the_flow.group as usize];
    let first = if shared {
        &plan.flows[group.flows.start as usize..group.flows.end as usize]
    } else {
        std::slice::from_ref(the_flow)
    };
    let mut now = first.iter().filter_map(|flow| flow.on.first()).map(|(start, _)| *start).min().unwrap_or(end);
    let mut served = None;
    while now < end && done.len() < ACTIONS_MAX {
        match source.next(now, &mut rng) {
            Step::At(at, action) => {
                done.push((at.saturating_since(now), action));
                now = at;
                if let Action::Transfer { connection, .. } = action {
                    served = Some(connection);
                }
            }
            Step::Await => {
                now += least;
                match served.take() {
                    Some(connection) => source.on_delivered(connection),
                    None => break,
                }
            }
            Step::End => break,
        }
    }
    done
}
