//! How much windows have under way before something ends their growth: their own law, a full buffer, a lossy wire.

use aqumen_transport::tcp::Congestion;

use crate::cost::round_trip;
use crate::memory::reach::{DEVIATIONS, ROOM, accesses, narrowest, queue_forms, room};
use crate::network::Core;
use crate::schema::{Group, Side, Spec};
use crate::sends::{Sends, answers, told};
use crate::transport::Protocol;

/// BBR fills a pipe and, before it knows how wide that is, a queue of three more.
pub(crate) const STARTING: f64 = 3.0;

/// Vegas: packets of each flow that wait at the most, with as many that it does not know of.
const VEGAS: f64 = 8.0;

/// LEDBAT: the delay that it aims at, seconds (RFC 6817 section 2.5).
const LEDBAT_S: f64 = 0.1;

/// HyStart: slow start ends where packets wait for so many seconds at the most, and not before windows of so many
/// packets (RFC 9406 section 4.3). Until then they grow to so many times that.
const HYSTART_S: f64 = 0.016;
const HYSTART_LEAST: f64 = 16.0;
const HYSTART_TIMES: f64 = 3.0;
/// CUBIC: packets by the cube of a second (RFC 9438 section 4.6).
const CUBIC_C: f64 = 0.4;

/// Slow start doubles windows until their senders hear of a loss: once more after it has come to that.
const HEARD: f64 = 2.0;

/// Packets that the flows of group `i` have under way at the most: whatever becomes of them at links, and where a
/// buffer of theirs overflows.
pub(crate) fn most(spec: &Spec, core: &Core, i: usize) -> (f64, f64) {
    let group = &spec.flows[i];
    // A pipe that changes its length is another.
    if !answers(group) || spec.events.iter().any(|event| event.delay.is_some()) {
        return (f64::INFINITY, f64::INFINITY);
    }
    // What the law of its windows lets wait at a host's own link, others do not change.
    let own_hosts = u64::from(core.hosts(spec, i, Side::BOTH[0])) >= group.flows();
    let law = by_law(spec, core, i);
    let lossless = if holds_back_with_all_beside(spec, core, i) { law } else { f64::INFINITY };
    let at_access = if own_hosts { law } else { lossless };
    let hears = match &group.transport.config {
        Protocol::Tcp(tcp) => !tcp.congestion.samples_delivery(),
        other => matches!(other, Protocol::Sctp(_)),
    };
    if !hears {
        return (at_access, lossless);
    }
    let lost = until_lost(spec, core, i);
    (at_access.min(lost), lossless.min(lost).min(until_full(spec, core, i)))
}

/// Packets a second that the way of group `i` carries, and those on its way there and back.
fn pipe(spec: &Spec, core: &Core, i: usize) -> (f64, f64) {
    let bps = narrowest(spec, core, i).min(accesses(spec, core, i, Side::BOTH[0]));
    let per_second = bps / (8.0 * f64::from(spec.flows[i].transport.config.packet_bytes()));
    (per_second, per_second * round_trip(spec, core, i, true).as_secs_f64())
}

/// Whether nobody fills a queue on the way of group `i`: windows hold back, and what is sent regardless finds room.
fn holds_back_with_all_beside(spec: &Spec, core: &Core, i: usize) -> bool {
    let beside = |j: &usize| core.ways[*j].path.iter().any(|link| core.ways[i].path.contains(link));
    let (windows, others): (Vec<usize>, Vec<usize>) =
        (0..core.ways.len()).filter(beside).partition(|j| answers(&spec.flows[*j]) && told(&spec.flows[*j]).is_none());
    let sends = |j: usize| Sends::of(&spec.flows[j]).map_or(f64::INFINITY, |sends| sends.bps);
    let regardless: f64 = others.into_iter().map(|j| spec.flows[j].flows() as f64 * sends(j)).sum();
    windows.into_iter().all(|j| holds_back(&spec.flows[j])) && regardless < ROOM * narrowest(spec, core, i)
}

/// By the law of its windows, if nobody beside them fills a queue.
fn by_law(spec: &Spec, core: &Core, i: usize) -> f64 {
    let group = &spec.flows[i];
    let Some(tcp) = group.transport.config.tcp() else { return f64::INFINITY };
    let (count, duration_s) = (group.flows() as f64, spec.duration.as_secs_f64());
    let (per_second, pipe) = pipe(spec, core, i);
    // Who comes later takes the queue that he finds for none.
    let waits = |seconds: f64| seconds * per_second * if group.start.low == group.start.high { 1.0 } else { count };
    match tcp.congestion {
        Congestion::Vegas => HEARD * pipe + VEGAS * count,
        Congestion::Ledbat => pipe + waits(LEDBAT_S),
        Congestion::Cubic | Congestion::Cubic21 if tcp.hystart => {
            HYSTART_TIMES * (pipe + waits(HYSTART_S)) + count * (HYSTART_LEAST + CUBIC_C * duration_s.powi(3))
        }
        other if other.samples_delivery() => pipe + STARTING * pipe,
        _ => f64::INFINITY,
    }
}

/// Whether flows of `group` leave room in queues that nobody empties.
fn holds_back(group: &Group) -> bool {
    let hystart = group.transport.config.tcp().is_some_and(|tcp| tcp.hystart);
    group.transport.config.tcp().is_some_and(|tcp| match tcp.congestion {
        Congestion::Vegas | Congestion::Ledbat => true,
        Congestion::Cubic | Congestion::Cubic21 => hystart,
        other => other.samples_delivery(),
    })
}

/// Until a buffer on the way is full, if they come to it faster than it empties.
fn until_full(spec: &Spec, core: &Core, i: usize) -> f64 {
    if accesses(spec, core, i, Side::BOTH[0]) <= narrowest(spec, core, i) {
        return f64::INFINITY;
    }
    let packet_bytes = f64::from(spec.flows[i].transport.config.packet_bytes());
    let forms = core.ways[i].path.iter().filter(|link| queue_forms(spec, core, **link as usize));
    let rooms = forms.map(|link| room(core.links[*link as usize].buffer, packet_bytes));
    HEARD * (pipe(spec, core, i).1 + rooms.fold(f64::INFINITY, f64::min))
}

/// Until one of them is lost on a wire: of each flow as many in the mean as are sent for each that is.
fn until_lost(spec: &Spec, core: &Core, i: usize) -> f64 {
    if spec.events.iter().any(|event| event.loss.is_some()) {
        return f64::INFINITY;
    }
    let (config, count) = (&spec.flows[i].transport.config, spec.flows[i].flows() as f64);
    let losses = core.ways[i].path.iter().filter_map(|link| core.links[*link as usize].loss.as_ref());
    let lost = losses.map(|loss| loss.mean(config.packet_bytes().into())).fold(0.0, f64::max);
    (count + DEVIATIONS * count.sqrt()) * (HEARD / lost + f64::from(config.initial_window_pkts()))
}
