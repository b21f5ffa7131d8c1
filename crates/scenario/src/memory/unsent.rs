//! What messages take that applications have written and their transport could not send yet: SCTP keeps each of them.
//! How many there are depends on what the others on the way leave.

use crate::cost::{base_rtt_s, offered, round_trip};
use crate::memory::kept::GROWN;
use crate::memory::reach::{queue_forms, room};
use crate::network::Core;
use crate::schema::Spec;
use crate::sends::Sends;
use crate::transport::Protocol;

/// Which part of its fair share a flow gets at least beside others that answer otherwise to what the network tells.
const PART: f64 = 0.5;

/// RFC 9260 section 7.2.3: four packets after a loss.
const LEAST_WINDOW_PKTS: f64 = 4.0;

/// What messages take that wait for their associations in the end, bytes.
pub(crate) fn unsent(spec: &Spec, core: &Core) -> u64 {
    let duration_s = spec.duration.as_secs_f64();
    let of_group = |i: usize| {
        let group = &spec.flows[i];
        let (Protocol::Sctp(sctp), Some(sends)) = (&group.transport.config, Sends::of(group)) else { return 0.0 };
        let fair = |link: &u32| fair_share(spec, core, *link);
        let gets = PART * core.ways[i].path.iter().map(fair).fold(f64::INFINITY, f64::min);
        let gets = gets.min(burst_bps(spec, core, i));
        let waits = (1.0 - gets / sends.bps).max(0.0) * sends.messages * duration_s;
        GROWN * group.flows() as f64 * waits * sctp.waiting_bytes() as f64
    };
    (0..spec.flows.len()).map(of_group).sum::<f64>() as u64
}

/// What a flow of group `i` carries at the least whose windows leave in one piece, bits a second: in each round trip
/// what the shortest buffer on its way takes, and what the least window after a loss is.
fn burst_bps(spec: &Spec, core: &Core, i: usize) -> f64 {
    let packet_bytes = f64::from(spec.flows[i].transport.config.packet_bytes());
    let forms = core.ways[i].path.iter().filter(|link| queue_forms(spec, core, **link as usize));
    let rooms = forms.map(|link| room(core.links[*link as usize].buffer, packet_bytes));
    let window = rooms.fold(f64::INFINITY, f64::min) + LEAST_WINDOW_PKTS;
    8.0 * packet_bytes * window / round_trip(spec, core, i, true).as_secs_f64().max(1e-9)
}

/// What each flow gets that wants more than its share of `link`, bits a second, where those that want less get what
/// they want; infinity where there is enough for all.
fn fair_share(spec: &Spec, core: &Core, link: u32) -> f64 {
    // What a flow of each group wants, and how many there are.
    let wants = |i: usize| (wanted_bps(spec, core, i) / spec.flows[i].flows() as f64, spec.flows[i].flows() as f64);
    let here = (0..spec.flows.len()).filter(|i| core.ways[*i].path.contains(&link));
    let mut wants: Vec<(f64, f64)> = here.map(wants).collect();
    wants.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = core.links[link as usize].rate.as_bps() as f64;
    let mut flows: f64 = wants.iter().map(|(_, count)| count).sum();
    for (each, count) in wants {
        if each * flows > left {
            return left / flows;
        }
        left -= each * count;
        flows -= count;
    }
    f64::INFINITY
}

/// What a group sends if nobody hinders it, bits a second.
fn wanted_bps(spec: &Spec, core: &Core, i: usize) -> f64 {
    let group = &spec.flows[i];
    let duration_s = spec.duration.as_secs_f64();
    let of_requests = || {
        let packets = offered(group, duration_s, base_rtt_s(spec, core, i)).packets;
        8.0 * f64::from(group.transport.config.packet_bytes()) * packets / duration_s
    };
    Sends::of(group).map_or_else(of_requests, |sends| group.flows() as f64 * sends.bps)
}
