//! What the packets take that are under way or wait at one time, bytes: how many there may be, and what is kept of
//! each.

use crate::cost::round_trip;
use crate::memory::kept::{self, GROWN};
use crate::memory::queue::waiting;
use crate::memory::reach::{DEVIATIONS, accesses, rates, room};
use crate::memory::share::{Share, share};
use crate::network::Core;
use crate::plan::Link;
use crate::schema::{Side, Spec};

/// What packets take that may be under way or wait at one time, bytes, at `links`, those of the plan: those that might
/// keep more than `little` are asked. `None`: what they are is not known.
pub(crate) fn packets(spec: &Spec, core: &Core, links: Option<&[Link]>, little: f64) -> u64 {
    let mut shares: Vec<Share> = (0..spec.flows.len()).map(|i| share(spec, core, i)).collect();
    let mut bytes = 0.0;
    for number in 0..core.links.len() {
        bytes += waiting(spec, core, number, links.map(|links| &links[number]), little, &mut shares);
    }
    let mut pending = 0.0;
    for (i, share) in shares.iter().enumerate() {
        bytes += access_queues(spec, core, i, share);
        let on_wires = on_wires(spec, core, i, share).min(share.admitted);
        bytes += (1.0 + share.held_up) * on_wires * share.each;
        // A packet or its acknowledgement, and a timer of each flow.
        pending += 2.0 * on_wires + spec.flows[i].flows() as f64;
    }
    // Each list has room for a few events, though there may be one alone.
    let apart = pending.min(kept::LISTS as f64) * kept::TOGETHER as f64;
    bytes += (GROWN * pending + apart) * kept::EVENT as f64;
    bytes as u64
}

/// What packets of group `i` take that wait at its access links: they do where those are what limits its flows.
fn access_queues(spec: &Spec, core: &Core, i: usize, share: &Share) -> f64 {
    let (group, way) = (&spec.flows[i], &core.ways[i]);
    let Some(access) = &way.access else { return 0.0 };
    let can = accesses(spec, core, i);
    let hosts = f64::from(core.hosts(spec, i, Side::Source));
    let narrowest =
        way.path.iter().map(|link| core.links[*link as usize].rate.as_bps()).min().unwrap_or(u64::MAX) as f64;
    let limits_s = if share.bps < can {
        return 0.0;
    } else if share.flows.is_none() || can <= narrowest {
        spec.duration.as_secs_f64()
    } else if can / hosts < narrowest {
        // Until so many flows have started that the link limits them.
        (group.start.high - group.start.low).as_secs_f64() * narrowest / can
    } else {
        return 0.0;
    };
    let room = room(access.buffer, share.packet_bytes);
    let comes = if share.bps.is_finite() { share.bps - can } else { can.min(narrowest) };
    let more = comes * limits_s / (8.0 * share.packet_bytes);
    let waiting = (room * hosts).min(share.at_access).min(more + group.flows() as f64);
    waiting * (share.each + (kept::EVENT + kept::LEVEL) as f64 * GROWN)
}

/// Packets of group `i` on wires, at the most: what its part of the narrowest link carries in a round trip, or what
/// datagrams come at on their way there, and what each flow sends at one moment.
fn on_wires(spec: &Spec, core: &Core, i: usize, share: &Share) -> f64 {
    let (group, way) = (&spec.flows[i], &core.ways[i]);
    let demand = |i: usize| accesses(spec, core, i).min(1e15);
    let part = |link: &u32| {
        let all: f64 = (0..core.ways.len()).filter(|j| core.ways[*j].path.contains(link)).map(demand).sum();
        rates(spec, core, *link as usize).fold(0, u64::max) as f64 * demand(i) / all.max(1.0)
    };
    let round_s = round_trip(spec, core, i, true).as_secs_f64();
    // What nobody acknowledges comes to the narrowest link as it is sent.
    let (rate, round_s) = match share.flows {
        Some(_) => (way.path.iter().map(part).fold(demand(i), f64::min), round_s),
        None => (demand(i), round_s / 2.0),
    };
    let mut in_round = rate * round_s / (8.0 * share.packet_bytes);
    if share.bps < rate {
        // As it is written, by chance more than on the average: of sources that send or not as many more send at a
        // moment as of coins.
        let packets = |bps: f64| bps * round_s / (8.0 * share.packet_bytes);
        let (written, peak) = (packets(share.bps), packets(share.peak_bps));
        let variance = (share.variance * round_s).min(written * (peak - written) / group.flows() as f64);
        in_round = in_round.min(written + DEVIATIONS * variance.max(0.0).sqrt());
    }
    in_round + group.flows() as f64 * share.together
}
