//! What is kept of what is no longer under way: requests that were served, packets of the last moments, and segments
//! that arrived beyond one that did not.

use crate::cost::{Asked, asked, base_rtt_s, offered};
use crate::memory::kept::{self, GROWN};
use crate::memory::reach::{narrowest, queue_forms, room};
use crate::memory::under_way::{in_pipe, let_in, rests_at_buffer};
use crate::memory::windows::STARTING;
use crate::network::Core;
use crate::plan::Link;
use crate::schema::Spec;
use crate::sends::{Sends, answers};
use crate::traffic::Traffic;
use crate::transport::Protocol;

/// Round trips until all of a pipe has arrived of which large parts are lost. Measured with BBR: 4 to 12 where flows
/// start one after the other, so that the first take all of the pipe for theirs, and 2 where they start together.
const TRIES: f64 = 12.0;
const TRIES_TOGETHER: f64 = 4.0;

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

/// What senders keep of segments that are no longer under way, bytes, where they go on whatever is lost: a segment that
/// is lost again and again holds the place of all that arrived after it. They fill the pipe and, before they know how
/// wide it is, a queue of three more; where there is room for that, and no AQM, nothing is lost.
pub(crate) fn held_up(spec: &Spec, core: &Core, links: Option<&[Link]>) -> u64 {
    let of_group = |i: usize| {
        let group = &spec.flows[i];
        let config = &group.transport.config;
        let goes_on = config.tcp().is_some_and(|tcp| tcp.congestion.samples_delivery());
        // What pauses lets what was lost arrive.
        if !goes_on || group.traffic != Traffic::Bulk {
            return 0.0;
        }
        let packet_bytes = f64::from(config.packet_bytes());
        let pipe = in_pipe(spec, core, i);
        let fills = |link: &u32| {
            if !queue_forms(spec, core, *link as usize) {
                return 0.0;
            }
            let room = room(core.links[*link as usize].buffer, packet_bytes);
            let waits = links.is_some_and(|links| rests_at_buffer(&links[*link as usize]));
            if waits && room > STARTING * pipe { 0.0 } else { pipe + room.min(STARTING * pipe) }
        };
        let filled = core.ways[i].path.iter().map(fills).fold(0.0, f64::max);
        let (rtt_s, duration_s) = (base_rtt_s(spec, core, i), spec.duration.as_secs_f64());
        let apart_s = (group.start.high - group.start.low).as_secs_f64();
        let tries = if apart_s < rtt_s { TRIES_TOGETHER } else { TRIES };
        // Round trips that are left when windows that double have filled it.
        let first = group.flows() as f64 * f64::from(config.initial_window_pkts());
        let left = duration_s / rtt_s - (filled / first).log2().max(0.0);
        let tries = tries.min(left.max(0.0));
        GROWN * (tries * filled).min(let_in(spec, core, i)) * config.kept_bytes() as f64
    };
    (0..spec.flows.len()).map(of_group).sum::<f64>() as u64
}
