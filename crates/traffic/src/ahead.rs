//! What sources of finite transfers will ask for, worked out ahead of a run, for engines that are other programs.
//!
//! A source draws when it asks, from a stream of its own: sizes, think times and the number of a page's objects do not
//! depend on how fast it is served. An engine that carries out these actions, each so long after the last was served,
//! meets the same traffic as this one.

use aqumen_scenario::streams::{Kind, Stream};
use aqumen_scenario::traffic::Scope;
use aqumen_scenario::{Plan, Traffic};
use aqumen_units::{Instant, Span};

use crate::{Action, Step, build};

/// Actions of one source, each with the time from the one before it (in a closed loop: from when that was served).
pub type Ahead = Vec<(Span, Action)>;

/// Actions that are worked out at most for a source: links without delay set no bound.
const ACTIONS_MAX: usize = 1_000_000;

/// For each group of `plan`: what its sources will ask for, at least up to the end of the run. One source for each
/// flow, or one for the group where its transfers come whatever becomes of those before. `None`: a group without finite
/// transfers, or one whose sessions use several connections.
pub fn ahead(plan: &Plan) -> Vec<Option<Vec<Ahead>>> {
    let groups = plan.groups.iter().map(|group| {
        let asks = matches!(group.traffic, Traffic::Transfers(_) | Traffic::Web(_)) && group.traffic.connections() == 1;
        let shared = group.traffic.scope() == Scope::Group;
        let flows = if shared { group.flows.start..group.flows.start + 1 } else { group.flows.clone() };
        asks.then(|| flows.map(|flow| of_source(plan, &group.traffic, flow, shared)).collect())
    });
    groups.collect()
}

fn of_source(plan: &Plan, traffic: &Traffic, flow: u32, shared: bool) -> Ahead {
    let mut done = Ahead::new();
    let Some(mut source) = build(traffic) else { return done };
    let mut rng = Stream::new(plan.seed, Kind::Traffic, u64::from(flow));
    // No transfer takes less than a round trip; in an open loop nothing waits for it.
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
