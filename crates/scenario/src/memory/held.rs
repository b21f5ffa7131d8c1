//! What is kept of what is not under way: requests that were served, packets of the last moments, and messages that
//! wait for their turn.

use crate::cost::{Asked, asked, base_rtt_s, offered, round_trip};
use crate::memory::kept::{self, GROWN};
use crate::memory::reach::{narrowest, shortest_room};
use crate::network::Core;
use crate::schema::Spec;
use crate::sends::{Sends, answers};
use crate::transport::Protocol;

/// Which part of its fair share a flow gets at least beside others that answer otherwise to what the network tells.
const PART: f64 = 0.5;

/// RFC 9260 section 7.2.3: four packets after a loss.
const LEAST_WINDOW_PKTS: f64 = 4.0;

/// What is kept of the transfers and pages of all groups, bytes: where each waits for what it asked for, no more than
/// the narrowest link of their way carries.
pub(crate) fn requests(spec: &Spec, core: &Core) -> u64 {
    let duration_s = spec.duration.as_secs_f64();
    let of_group = |i: usize| {
        let (group, rtt_s) = (&spec.flows[i], base_rtt_s(spec, core, i));
        let Asked { transfers, pages } = asked(group, duration_s, rtt_s);
        let bits = 8.0 * f64::from(group.transport.config.packet_bytes()) * offered(group, duration_s, rtt_s).packets;
        let part = if answers(group) { narrowest(spec, core, i) * duration_s / bits.max(1.0) } else { 1.0 };
        let asks = transfers + pages;
        asks.min(asks * part + group.flows() as f64)
    };
    let all: f64 = (0..spec.flows.len()).map(of_group).sum();
    (GROWN * all * kept::REQUEST as f64) as u64
}

/// What receivers keep for a while of the packets that have come to them, bytes.
pub(crate) fn remembered(spec: &Spec, core: &Core) -> u64 {
    let of_group = |i: usize| {
        let group = &spec.flows[i];
        let (Protocol::Rtp(rtp), Some(sends)) = (&group.transport.config, Sends::of(group)) else { return 0.0 };
        let (bytes, lasts) = rtp.remembers();
        let bps = (group.flows() as f64 * sends.bps).min(narrowest(spec, core, i));
        // One list each, with room for four from the first on.
        let packets = bps / (8.0 * sends.packet_bytes) * lasts.as_secs_f64();
        (GROWN * packets + 4.0 * group.flows() as f64) * bytes as f64
    };
    (0..spec.flows.len()).map(of_group).sum::<f64>() as u64
}

/// What messages take that applications have written and that their associations could not send yet, bytes: SCTP keeps
/// each of them.
pub(crate) fn unsent(spec: &Spec, core: &Core) -> u64 {
    let of_group = |i: usize| {
        let group = &spec.flows[i];
        let (Protocol::Sctp(sctp), Some(sends)) = (&group.transport.config, Sends::of(group)) else { return 0.0 };
        let beside = |j: &usize| core.ways[*j].path.iter().any(|link| core.ways[i].path.contains(link));
        let flows: u64 = (0..spec.flows.len()).filter(beside).map(|j| spec.flows[j].flows()).sum();
        let gets = (PART * narrowest(spec, core, i) / flows as f64).min(burst_bps(spec, core, i));
        let waits = (1.0 - gets / sends.bps).max(0.0) * sends.messages * spec.duration.as_secs_f64();
        GROWN * group.flows() as f64 * waits * sctp.waiting_bytes() as f64
    };
    (0..spec.flows.len()).map(of_group).sum::<f64>() as u64
}

/// What a flow of group `i` carries at the least whose windows leave in one piece, bits a second: in each round trip
/// what the shortest buffer on its way takes, and what the least window after a loss is.
fn burst_bps(spec: &Spec, core: &Core, i: usize) -> f64 {
    let window = shortest_room(spec, core, i) + LEAST_WINDOW_PKTS;
    8.0 * f64::from(spec.flows[i].transport.config.packet_bytes()) * window
        / round_trip(spec, core, i, true).as_secs_f64().max(1e-9)
}
