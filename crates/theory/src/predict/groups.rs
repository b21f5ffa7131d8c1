//! Flows that a link holds back, group by group.

use aqumen_scenario::{Flow, Plan};
use indexmap::IndexMap;

use crate::equilibrium::response::{Law, Sender};
use crate::fluid::base_rtt_s;
use crate::multi::coupled::Class;

/// Flows of one group that a link holds back.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupClass {
    pub(super) number: u32,
    pub(super) class: Class,
    pub(super) ecn: bool,
}

/// How many flows have which round trip, seconds.
pub(super) type Paths = Vec<(f64, f64)>;

/// The groups of flows, of which each is there for a part of the time.
///
/// Args: `drops`: whether the queue drops ECN-capable packets, too.
pub(super) fn groups_of(plan: &Plan, held: &[(&Flow, f64)], drops: bool) -> Vec<GroupClass> {
    let mut groups: IndexMap<u32, Paths> = IndexMap::new();
    for (flow, on) in held {
        groups.entry(flow.group).or_default().push((*on, base_rtt_s(plan, flow)));
    }
    let of = |(number, flows): (u32, Paths)| {
        let transport = &plan.groups[number as usize].transport;
        let sender = Sender::from_protocol(transport).ok()?;
        let sender = if drops { sender.with_losses() } else { sender };
        let (flows, base_rtt_s) = together(flows);
        let class = Class { flows, base_rtt_s, sender, scalable: sender.law == Law::Prague };
        Some(GroupClass { number, class, ecn: !sender.losses })
    };
    groups.into_iter().filter_map(of).collect()
}

/// How many flows there are, and the round trip with which as many send what these do, seconds: the harmonic mean.
pub(super) fn together(flows: impl IntoIterator<Item = (f64, f64)>) -> (f64, f64) {
    let sum = |(all, inverse): (f64, f64), (flows, rtt_s): (f64, f64)| (all + flows, inverse + flows / rtt_s);
    let (all, inverse) = flows.into_iter().fold((0.0, 0.0), sum);
    (all, all / inverse)
}

/// The sender of the most flows; Reno where there are none.
pub(super) fn most_common(flows: impl Iterator<Item = (f64, Sender)>) -> Sender {
    flows.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(Sender::reno(), |(_, sender)| sender)
}
