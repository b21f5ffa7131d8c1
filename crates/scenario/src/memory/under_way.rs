//! What the packets take that are under way or wait at one time, bytes: how many there may be, and what is kept of
//! each.
//!
//! No more wait at a link than it has room for, than comes faster than it leaves, than its senders may have under way,
//! and than its discipline lets be (`filling`).

use aqumen_aqm::registry::AnyQdisc;
use aqumen_aqm::{Aqm, Limit, Qdisc};

use crate::cost::round_trip;
use crate::line::Medium;
use crate::memory::filling::{longest, rate_at};
use crate::memory::kept::{self, GROWN};
use crate::memory::mix::Mix;
use crate::memory::reach::{DEVIATIONS, accesses, always_carries, inflow, queue_forms, rates, room};
use crate::memory::share::{Share, share};
use crate::network::Core;
use crate::plan::Link;
use crate::schema::{Side, Spec};
use crate::traffic::Traffic;

/// What comes of the bound on a queue that a discipline of a simpler network keeps: in the real one flows start apart,
/// have round trips of their own, and hear of signals later.
const SAFETY: f64 = 1.5;

/// Of a medium with a law of its own nobody knows when it carries what: in the long run at least this part of its rate,
/// but for so many seconds.
const FADED: f64 = 0.25;
const FADES_S: f64 = 2.0;

/// A queue into which work comes with a variance of v a second and that empties at a speed u, as Brownian motion does,
/// is longer than this times v / 2u for a millionth of the time.
const TAIL: f64 = 14.0;

/// The smallest data packet, bytes.
pub(crate) fn smallest_packet(spec: &Spec) -> u64 {
    spec.flows.iter().map(|group| u64::from(group.transport.config.packet_bytes())).min().unwrap_or(1).max(1)
}

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
        bytes += on_wires * share.each;
        // A packet or its acknowledgement, and a timer of each flow.
        pending += 2.0 * on_wires + spec.flows[i].flows() as f64;
    }
    // Each list has room for a few events, though there may be one alone.
    let apart = pending.min(kept::LISTS as f64) * kept::TOGETHER as f64;
    bytes += (GROWN * pending + apart) * kept::EVENT as f64;
    bytes as u64
}

/// How much lies before a link at one time, bits, at the most, if `bps` come from the start to the end.
fn left_over(link: &Link, bps: f64, until: u64) -> f64 {
    let outages = link.line.iter().flat_map(|line| &line.outages);
    let outages: Vec<(u64, u64)> =
        outages.map(|(from, to)| (from.as_nanos(), to.map_or(until, |to| to.as_nanos()))).collect();
    let mut changes: Vec<u64> = link.rates.iter().map(|(at, _)| at.as_nanos()).collect();
    changes.extend(outages.iter().flat_map(|(from, to)| [*from, *to]));
    changes.retain(|at| *at < until);
    changes.extend([0, until]);
    changes.sort_unstable();
    changes.dedup();
    let (mut lies, mut most) = (0.0f64, 0.0);
    for pair in changes.windows(2) {
        let began = outages.partition_point(|(from, _)| *from <= pair[0]);
        let down = outages[..began].last().is_some_and(|(_, to)| *to > pair[0]);
        let rate = if down { 0.0 } else { rate_at(link, pair[0]).as_bps() as f64 };
        lies = (lies + (bps - rate) * (pair[1] - pair[0]) as f64 / 1e9).max(0.0);
        most = f64::max(most, lies);
    }
    most
}

/// What the packets that may wait at a link take, bytes. They are taken from the shares.
fn waiting(spec: &Spec, core: &Core, number: usize, link: Option<&Link>, little: f64, shares: &mut [Share]) -> f64 {
    if !queue_forms(spec, core, number) {
        return 0.0;
    }
    let at = &core.links[number];
    let crosses = |path: &[u32]| path.iter().any(|other| *other as usize == number);
    let mut here: Vec<usize> = (0..shares.len()).filter(|i| crosses(&core.ways[*i].path)).collect();
    // Only their acknowledgements do; each has its place among those of the data that they acknowledge.
    let back: Vec<usize> = (0..shares.len()).filter(|i| crosses(&core.ways[*i].return_path)).collect();
    let data = !here.is_empty();
    here.extend(back.iter().filter(|i| shares[**i].flows.is_some()));
    here.sort_unstable();
    here.dedup();
    let smallest = here.iter().map(|i| shares[*i].packet_bytes).fold(f64::INFINITY, f64::min);
    let slowest = rates(spec, core, number).fold(u64::MAX, u64::min).max(1) as f64;
    let room = room(at.buffer, if data { smallest } else { 40.0 });
    let duration_s = spec.duration.as_secs_f64();
    let until = spec.duration.as_nanos();
    let inflow = inflow(spec, core, number);
    let can = |i: usize| accesses(spec, core, i, Side::BOTH[0]);
    let left_over = |bps: f64| match link {
        Some(link) if at.carries.medium == Medium::Wire => left_over(link, bps.min(inflow), until),
        Some(_) => {
            let comes = bps.min(inflow);
            (comes - FADED * slowest).max(0.0) * duration_s + comes * FADES_S.min(duration_s)
        }
        None => bps.min(inflow) * duration_s,
    };
    let peak = left_over(here.iter().map(|i| shares[*i].peak_bps.min(can(*i))).sum());
    let variance = |films: bool| -> f64 {
        // What comes through access links that are full anyway comes evenly.
        let unevenly = here.iter().filter(|i| shares[**i].bps < can(**i));
        let alike = unevenly.filter(|i| matches!(spec.flows[**i].traffic, Traffic::Video(_)) == films);
        alike.map(|i| shares[*i].variance).sum()
    };
    let flows: f64 = here.iter().map(|i| spec.flows[*i].flows() as f64).sum();
    // What a discipline is not asked about: it is shown what comes evenly spaced. Of frames that differ by chance alone
    // no more piles up than a queue holds that leaves faster than they come.
    let comes: f64 = here.iter().map(|i| shares[*i].bps.min(can(*i))).sum();
    // What windows let in has its place in the queue, and does not make it longer as it goes on.
    let sent: f64 = here.iter().map(|i| shares[*i].bps).filter(|bps| bps.is_finite()).sum();
    let empties = if at.carries.medium == Medium::Wire { (slowest - sent).max(0.0) / (8.0 * smallest) } else { 0.0 };
    let frames = (DEVIATIONS * (variance(true) * duration_s).sqrt()).min(TAIL * variance(true) / (2.0 * empties));
    let others = DEVIATIONS * (variance(false) * duration_s).sqrt();
    let unevenly = (frames + others).min(peak / (8.0 * smallest)) + flows;
    let more = left_over(comes) / (8.0 * smallest) + unevenly;
    let discipline = link.and_then(Discipline::of);
    let loses = discipline.as_ref().is_none_or(|known| !known.rests_at_buffer);
    let admitted = |i: usize| if loses { shares[i].admitted } else { shares[i].admitted.min(shares[i].at_once) };
    let (windows, datagrams): (Vec<usize>, Vec<usize>) = here.iter().partition(|i| shares[**i].flows.is_some());
    let windows: f64 = windows.into_iter().map(admitted).sum();
    // Where there is room for all datagrams they wait beside windows in the part that they have of what comes.
    let part: f64 = datagrams.iter().map(|i| shares[*i].bps.min(can(*i))).sum::<f64>() / slowest;
    let beside = if part < 1.0 && always_carries(spec, core, number) {
        windows * part / (1.0 - part) + unevenly
    } else {
        f64::INFINITY
    };
    let datagrams = datagrams.into_iter().map(admitted).sum::<f64>().min(beside);
    let mut most = room.min(more).min(windows + datagrams);
    let dearest = here.iter().map(|i| shares[*i].each).fold(0.0, f64::max);
    let port = |packets: f64| match &discipline {
        Some(Discipline { served: true, packet_bytes, .. }) => packets * GROWN * (kept::SERVED as f64 + packet_bytes),
        _ => GROWN * (in_ring(packets) * kept::IN_FIFO as f64 + packets * kept::EVENT as f64),
    };
    if let (Some(link), true) = (link, data && most * dearest + port(most) > little) {
        let rtt = here.iter().map(|i| round_trip(spec, core, *i, true).as_nanos()).max().unwrap_or(0);
        let mix = Mix::of(&here.iter().map(|i| &shares[*i]).collect::<Vec<_>>(), slowest);
        if let Some(longest) = longest(link, &mix.load(rtt), until).map(|longest| longest as f64 * mix.smaller) {
            most = most.min(SAFETY * longest + unevenly);
        }
    }
    // What leaves as foreseen lies in rings all the way.
    let served = discipline.as_ref().is_some_and(|known| known.served);
    let larger = if served { 1.0 } else { in_ring(most) / most.max(1.0) };
    let levels = if at.record { GROWN * kept::LEVEL as f64 * larger * most } else { 0.0 };
    let mut bytes = port(most) + levels + discipline.map_or(0.0, |known| known.queues_bytes);
    // The dear ones first.
    here.sort_by(|a, b| shares[*b].each.total_cmp(&shares[*a].each));
    for i in here {
        let of_group = most.min(shares[i].admitted);
        let of_group = if shares[i].flows.is_some() { of_group } else { of_group.min(datagrams) };
        bytes += of_group * larger * shares[i].each;
        shares[i].admitted -= of_group;
        most -= of_group;
    }
    bytes
}

/// Places of a ring that holds so many packets.
fn in_ring(packets: f64) -> f64 {
    (packets.min(1e15) as u64).next_power_of_two() as f64
}

/// Quantities that the discipline of `link` shows of its state at each sample.
pub(crate) fn shown(link: &Link) -> u64 {
    let mut shown = 0;
    if let Some(Ok(qdisc)) = link.aqm.build_qdisc(link.limit) {
        qdisc.observe(&mut |_, _| shown += 1);
    }
    shown
}

/// Whether nothing is lost at `link` before its buffer is full, however short that is.
pub(crate) fn rests_at_buffer(link: &Link) -> bool {
    matches!(link.aqm.build_qdisc(Limit::packets(1)), Some(Ok(qdisc)) if qdisc.rests_at_buffer())
}

/// What a discipline keeps.
struct Discipline {
    /// It is asked for each packet; nothing is lost before its buffer is full.
    served: bool,
    rests_at_buffer: bool,
    /// Of its queues, and of a packet that waits, bytes.
    queues_bytes: f64,
    packet_bytes: f64,
}

impl Discipline {
    /// That of `link`, unless it is from outside or cannot be built.
    fn of(link: &Link) -> Option<Self> {
        let served = match link.aqm.build() {
            None => true,
            Some(aqm) => aqm.ok()?.hooks().decides_at_head,
        };
        let room = |packets: u32| {
            let qdisc: AnyQdisc = link.aqm.build_qdisc(Limit::packets(packets))?.ok()?;
            (!qdisc.is_own()).then(|| qdisc.memory_bytes() as f64)
        };
        let (one, many) = (room(1)?, room(1001)?);
        Some(Discipline {
            served,
            rests_at_buffer: rests_at_buffer(link),
            queues_bytes: if served { one } else { 0.0 },
            packet_bytes: (many - one) / 1000.0,
        })
    }
}

/// What packets of group `i` take that wait at its access links: they do where those are what limits its flows.
fn access_queues(spec: &Spec, core: &Core, i: usize, share: &Share) -> f64 {
    let (group, way) = (&spec.flows[i], &core.ways[i]);
    let Some(access) = &way.access else { return 0.0 };
    let can = accesses(spec, core, i, Side::BOTH[0]);
    let hosts = f64::from(core.hosts(spec, i, Side::BOTH[0]));
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

/// Packets of group `i` that are sent and not acknowledged, at the most, whatever became of them.
pub(crate) fn let_in(spec: &Spec, core: &Core, i: usize) -> f64 {
    share(spec, core, i).let_in
}

/// Packets of group `i` on wires, as if there were no other, at the most.
pub(crate) fn in_pipe(spec: &Spec, core: &Core, i: usize) -> f64 {
    on_wires(spec, core, i, &share(spec, core, i))
}

/// Packets of group `i` on wires, at the most: what its part of the narrowest link carries in a round trip, or what
/// datagrams come at on their way there, and what each flow sends at one moment.
fn on_wires(spec: &Spec, core: &Core, i: usize, share: &Share) -> f64 {
    let (group, way) = (&spec.flows[i], &core.ways[i]);
    let demand = |i: usize| accesses(spec, core, i, Side::BOTH[0]).min(1e15);
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
    let rate = rate.min(share.peak_bps);
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
