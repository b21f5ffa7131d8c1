//! What the packets take that are under way or wait at one time, bytes: how many there may be, and what is kept of
//! each.
//!
//! No more wait at a link than it has room for, than comes faster than it leaves, than its senders may have under way,
//! and than its discipline lets be (`filling`).

use aqumen_aqm::registry::AnyQdisc;
use aqumen_aqm::{Aqm, Limit, Qdisc};
use aqumen_transport::tcp::{Ack, Congestion, TcpConfig, Variant};
use aqumen_units::Rate;

use crate::cost::{base_rtt_s, offered, round_trip};
use crate::field::Buffer;
use crate::filling::{Flows, Load, longest, rate_at};
use crate::law::Law;
use crate::line::Medium;
use crate::network::Core;
use crate::plan::Link;
use crate::schema::{Group, Side, Spec};
use crate::sends::{Sends, answers, told};
use crate::traffic::Traffic;

/// What the packet engine keeps of a packet. The engine's files hold what they keep to these figures.
pub mod kept {
    /// An event: a packet on its way, with the moment when it gets there.
    pub const EVENT: usize = 32;
    /// Events of the same short time lie in a list, which has room for eight from the first on; there are so many
    /// lists.
    pub const TOGETHER: usize = 8;
    /// See [`TOGETHER`].
    pub const LISTS: usize = 4096;
    /// So many events are expected in that time, three of each packet that a recorded link carries; no fewer than so
    /// many a second.
    pub const EXPECTED: f64 = 4.0;
    /// See [`EXPECTED`].
    pub const LEAST_PER_SECOND: f64 = 1e3;
    /// A packet that waits at a port that knows when it will leave.
    pub const IN_FIFO: usize = 32;
    /// The same at a port that asks a discipline, beside what that keeps.
    pub const SERVED: usize = 60;
    /// How long a queue had one length.
    pub const LEVEL: usize = 8;
    /// A delivery that is worked out ahead of the next edge of a window, with what is measured of it.
    pub const DELIVERY: usize = 20;
    /// A transfer or a page that was delivered.
    pub const REQUEST: usize = 48;
}

/// A list grows by doubling, and leaves as much behind as it holds: the allocator keeps for others what it grew out of.
pub(crate) const GROWN: f64 = 2.0;

/// What comes of the bound on a queue that a discipline of a simpler network keeps: in the real one flows start apart,
/// have round trips of their own, and hear of signals later.
const SAFETY: f64 = 1.5;

/// Below so many bytes nobody asks a discipline how long its queue becomes.
const LITTLE: f64 = 1e6;

/// So many standard deviations cover what sources that send of themselves do more than their mean.
const DEVIATIONS: f64 = 4.0;

/// How many times what a pipe holds starts to wait before it, of flows that measure how wide it is.
pub(crate) const STARTING: f64 = 3.0;

/// So many times the mean of their law are flows' transfers that are under way together.
const MANY_TIMES: f64 = 10.0;

/// Where what is written takes no more than this part of a link it comes as it is written.
const ROOM: f64 = 0.9;

/// How many times what the narrowest link carries comes of rates that are told, until they hear that packets are lost.
const OVERSHOOT: f64 = 2.0;

/// A queue into which work comes with a variance of v a second and that empties at a speed u, as Brownian motion does,
/// is longer than this times v / 2u for a millionth of the time.
const TAIL: f64 = 14.0;

/// What a group brings.
struct Share {
    /// Packets at one time at the most, of all its flows; and those that may have been sent and not acknowledged.
    admitted: f64,
    let_in: f64,
    /// What is kept of one that waits beside the port's part, and of one under way, bytes.
    each: f64,
    /// If its flows answer signals: their windows.
    flows: Option<Flows>,
    /// Packets a second that come whatever becomes of them.
    per_second: f64,
    /// Bits a second that its sources send, and while all of them do; the variance of the packets in a second.
    bps: f64,
    peak_bps: f64,
    variance: f64,
    packet_bytes: f64,
    /// Sources that send at the same moments, how often they do, and how long that is apart, seconds.
    chorus: f64,
    beats: f64,
    beat_s: f64,
    /// Sources that have a moment each when they send next, and how far ahead those lie, seconds.
    sources: f64,
    gap_s: f64,
}

/// Bits a second that can come to `link`: what access links and the links before it carry.
pub(crate) fn inflow(spec: &Spec, core: &Core, link: usize) -> f64 {
    let mut before: Vec<u32> = Vec::new();
    let mut sum = 0.0;
    for (i, way) in core.ways.iter().enumerate() {
        for (side, path) in Side::BOTH.into_iter().zip([&way.path, &way.return_path]) {
            match path.iter().position(|other| *other as usize == link) {
                None => {}
                // Acknowledgements are as many as the data on their way there.
                Some(_) if side == Side::BOTH[1] => sum += acknowledgements(spec, core, i),
                Some(0) => sum += accesses(spec, core, i, side),
                Some(at) => before.push(path[at - 1]),
            }
        }
    }
    before.sort_unstable();
    before.dedup();
    let fastest = |link: &u32| rates(spec, core, *link as usize).fold(0, u64::max) as f64;
    sum + before.iter().map(fastest).sum::<f64>()
}

/// Bits a second of acknowledgements that can come back to group `i`.
fn acknowledgements(spec: &Spec, core: &Core, i: usize) -> f64 {
    let config = &spec.flows[i].transport.config;
    let narrowest = core.ways[i].path.iter().map(|link| rates(spec, core, *link as usize).fold(0, u64::max)).min();
    let data = accesses(spec, core, i, Side::BOTH[0]).min(narrowest.unwrap_or(u64::MAX) as f64);
    data * f64::from(config.ack_bytes()) / f64::from(config.packet_bytes())
}

/// Bits a second that the hosts of group `i` on a side can send.
fn accesses(spec: &Spec, core: &Core, i: usize, side: Side) -> f64 {
    let access = core.ways[i].access.as_ref();
    access.map_or(f64::INFINITY, |access| access.rate.as_bps() as f64 * f64::from(core.hosts(spec, i, side)))
}

/// The rates that a link has during the run, bit/s.
fn rates(spec: &Spec, core: &Core, link: usize) -> impl Iterator<Item = u64> {
    let link = &core.links[link];
    let events = spec.events.iter().filter_map(|event| event.capacity).map(Rate::as_bps);
    link.carries.rates.iter().map(|(_, rate)| rate.as_bps()).chain([link.rate.as_bps()]).chain(events)
}

/// Bits a second that the narrowest link on the way of group `i` carries at the most.
pub(crate) fn narrowest(spec: &Spec, core: &Core, i: usize) -> f64 {
    let rates = core.ways[i].path.iter().map(|link| rates(spec, core, *link as usize).fold(0, u64::max));
    rates.min().map_or(f64::INFINITY, |rate| rate as f64)
}

/// Packets that a link with this buffer has room for, of so many bytes each.
pub(crate) fn room(buffer: Buffer, packet_bytes: f64) -> f64 {
    match buffer {
        Buffer::Packets(packets) => f64::from(packets),
        Buffer::Bytes(bytes) => bytes.0 as f64 / packet_bytes,
    }
}

/// Whether packets wait at the link: more can come than it carries.
pub(crate) fn queue_forms(spec: &Spec, core: &Core, link: usize) -> bool {
    let (least, at) = (rates(spec, core, link).fold(u64::MAX, u64::min), &core.links[link].carries);
    let goes_down = !at.outages.is_empty() || spec.events.iter().any(|event| event.state.is_some());
    goes_down || at.medium != Medium::Wire || inflow(spec, core, link) > least as f64
}

/// The smallest data packet, bytes.
pub(crate) fn smallest_packet(spec: &Spec) -> u64 {
    spec.flows.iter().map(|group| u64::from(group.transport.config.packet_bytes())).min().unwrap_or(1).max(1)
}

/// What packets take that may be under way or wait at one time, bytes, at `links`, those of the plan. `None`: what they
/// are is not known.
pub(crate) fn packets(spec: &Spec, core: &Core, links: Option<&[Link]>) -> u64 {
    let mut shares: Vec<Share> = (0..spec.flows.len()).map(|i| share(spec, core, i)).collect();
    let lists = Lists::of(spec, core, &shares);
    let mut bytes = lists.ahead(&shares) * kept::EVENT as f64;
    for number in 0..core.links.len() {
        bytes += waiting(spec, core, number, links.map(|links| &links[number]), lists, &mut shares);
    }
    for (i, share) in shares.iter().enumerate() {
        bytes += access_queues(spec, core, i, share);
        bytes += on_wires(spec, core, i, share).min(share.admitted) * (share.each + kept::EVENT as f64 * GROWN);
    }
    bytes as u64
}

/// The lists of events of the same short time.
#[derive(Clone, Copy)]
struct Lists {
    /// How long that is, seconds.
    step_s: f64,
    /// For how many events each has room in the end.
    room: f64,
    /// How many come by within the run.
    passed: f64,
}

impl Lists {
    /// A step is short enough for a few events of what the links carry. Where more comes than that, or smaller packets
    /// do, as many times more fall into it: a list keeps its room when it is emptied, and all lists come by where most
    /// comes.
    fn of(spec: &Spec, core: &Core, shares: &[Share]) -> Self {
        let largest = spec.flows.iter().map(|group| group.transport.config.packet_bytes()).max().unwrap_or(1);
        let comes = |i: usize| shares[i].bps.min(accesses(spec, core, i, Side::BOTH[0]));
        let carried = |link: usize| {
            let here = (0..shares.len()).filter(|i| core.ways[*i].path.iter().any(|other| *other as usize == link));
            here.map(comes).sum::<f64>().min(core.links[link].rate.as_bps() as f64)
        };
        let recorded = (0..core.links.len()).filter(|link| core.links[*link].record);
        let expected: f64 = recorded.map(|link| 3.0 * carried(link) / (8.0 * f64::from(largest.max(1)))).sum();
        let endless = |share: &Share| share.bps == f64::INFINITY;
        let that_share = shares.iter().filter(|share| endless(share)).count().max(1) as f64;
        // One that is dropped has been sent and has arrived; those that send what they can share what there is.
        let happen = |i: usize| {
            let narrowest = core.ways[i].path.iter().map(|link| core.links[*link as usize].rate.as_bps()).min();
            let arrives = comes(i).min(narrowest.unwrap_or(u64::MAX) as f64);
            let bps = if endless(&shares[i]) { 3.0 * arrives / that_share } else { 2.0 * comes(i) + arrives };
            bps / (8.0 * shares[i].packet_bytes.max(1.0))
        };
        let longest_ns = 1e9 * kept::EXPECTED / expected.max(kept::LEAST_PER_SECOND);
        // A power of two of nanoseconds.
        let step_s = (1u64 << (longest_ns as u64).max(1).ilog2()) as f64 / 1e9;
        let fall_into_it = step_s * (0..shares.len()).map(happen).sum::<f64>();
        let room = (fall_into_it.min(1e9) as u64).max(kept::TOGETHER as u64).next_power_of_two() as f64;
        Lists { step_s, room, passed: spec.duration.as_secs_f64() / step_s + 1.0 }
    }

    /// Places for events of lists in which hardly more lies than when a source sends next.
    fn ahead(self, shares: &[Share]) -> f64 {
        let lists = self.passed.min(kept::LISTS as f64);
        let filled = shares.iter().map(|share| share.sources.min(share.gap_s / self.step_s));
        filled.sum::<f64>().min(lists) * (self.room - 1.0)
    }

    /// Places for events that they have beyond those of `packets` that wait, of which one leaves each `leaves_s`
    /// seconds.
    fn spare(self, packets: f64, leaves_s: f64, shares: &[Share]) -> f64 {
        // A list gets its room when it comes by, and lends it to another that begins to fill.
        let lists = self.passed.min(kept::LISTS as f64);
        let filled = |packets: f64| packets.min(packets * leaves_s / self.step_s + 1.0).min(lists);
        // What many sources do at one moment lies in one list, their packets a little later in another. They have two
        // others each time, if those of the time before hold what still waits.
        let larger = |share: &Share| {
            let room = (share.chorus.min(1e9) as u64).next_power_of_two() as f64;
            let still_waits = (packets - share.beat_s / leaves_s).max(0.0);
            filled(still_waits).min(2.0 * share.beats) * (room - self.room).max(0.0)
        };
        filled(packets) * (self.room - 1.0) + shares.iter().map(larger).sum::<f64>()
    }
}

/// What group `i` brings.
fn share(spec: &Spec, core: &Core, i: usize) -> Share {
    let group = &spec.flows[i];
    let config = &group.transport.config;
    let (duration_s, rtt_s) = (spec.duration.as_secs_f64(), base_rtt_s(spec, core, i));
    let (count, packet_bytes) = (group.flows() as f64, f64::from(config.packet_bytes()));
    let first = f64::from(config.initial_window_pkts());
    let window = if group.traffic == Traffic::Bulk { config.window_of_full_pkts() } else { config.window_pkts() };
    let window = window.map_or(f64::INFINITY, f64::from);
    let (sends, answers) = (Sends::of(group), answers(group));
    let asked = match &sends {
        Some(sends) => count * sends.in_seconds(duration_s) + DEVIATIONS * (count * sends.variance * duration_s).sqrt(),
        None => offered(group, duration_s, rtt_s).packets,
    };
    let window = window.min(at_once(group));
    let mut admitted = asked.min(count * window);
    let narrowest = narrowest(spec, core, i);
    let mut most_bps = f64::INFINITY;
    if let (true, Some(sends)) = (told(group).is_some(), &sends) {
        // A rate that starts as it may and grows until packets are lost does not go far beyond what the way carries.
        most_bps = f64::max(count * sends.first_bps, OVERSHOOT * narrowest);
    } else if answers {
        // An acknowledgement lets in what it acknowledges, and no more than as much again.
        let carried = narrowest.min(accesses(spec, core, i, Side::BOTH[0]));
        let acknowledged = carried * duration_s / (8.0 * packet_bytes);
        let grown = first * 2f64.powf((duration_s / rtt_s).floor().min(60.0) + 1.0);
        admitted = admitted.min(count * grown).min(count * first + acknowledged);
    }
    let let_in = admitted;
    let own = own_queue(spec, core, i).unwrap_or(f64::INFINITY);
    let (window, admitted) = (window.min(own), admitted.min(own + count * first));
    // What a receiver does that answers at once is worked out ahead; what it tells beyond a gap has a place of its own.
    let ahead = |tcp: &TcpConfig| match tcp.delayed_ack {
        Some(_) => 0,
        None if tcp.variant == Variant::Sack => kept::DELIVERY + size_of::<Ack>(),
        None => kept::DELIVERY,
    };
    let by_value = config.tcp().map_or(size_of::<aqumen_transport::Packet>(), ahead);
    let flows = Flows {
        count: group.flows().min(u64::from(u32::MAX)) as u32,
        first: first as u32,
        most: window.min(1e9) as u32,
        ecn: config.ecn(),
    };
    // Evenly spaced messages of sources that begin together, and the packets of a transfer that leave at one moment.
    let in_step = |sends: &Sends| sends.variance == 0.0 && group.start.low == group.start.high;
    let bursts = !answers && matches!(group.traffic, Traffic::Transfers(_) | Traffic::Web(_));
    let together = |sends: &Sends| if bursts { sends.packets } else { count };
    let apart = if bursts { count } else { 1.0 };
    Share {
        admitted,
        let_in,
        each: GROWN * (config.kept_bytes() + by_value) as f64,
        flows: answers.then_some(flows),
        per_second: sends.map_or(0.0, |sends| count * sends.regardless),
        bps: sends.map_or(f64::INFINITY, |sends| (count * sends.bps).min(most_bps)),
        variance: sends.map_or(0.0, |sends| count * sends.variance),
        peak_bps: sends.map_or(f64::INFINITY, |sends| count * sends.peak_bps),
        packet_bytes: sends.map_or(packet_bytes, |sends| sends.packet_bytes),
        chorus: sends.as_ref().filter(|sends| bursts || in_step(sends)).map_or(0.0, together),
        beats: sends.map_or(0.0, |sends| apart * sends.first_messages * duration_s),
        beat_s: sends.map_or(f64::INFINITY, |sends| 1.0 / (apart * sends.first_messages)),
        sources: sends.map_or(0.0, |_| count),
        gap_s: sends.map_or(0.0, |sends| 1.0 / sends.first_messages),
    }
}

/// Packets that the flows of group `i` have under way at the most by the law of their windows, if nobody beside them
/// fills a queue: BBR a queue of three pipes before it knows how wide that is, Vegas twice the four of each flow that it
/// aims at.
fn own_queue(spec: &Spec, core: &Core, i: usize) -> Option<f64> {
    let congestion = |j: usize| spec.flows[j].transport.config.tcp().map(|tcp| tcp.congestion);
    let holds_back = |j: usize| congestion(j).is_some_and(|each| each.samples_delivery() || each == Congestion::Vegas);
    let beside = |j: &usize| core.ways[*j].path.iter().any(|link| core.ways[i].path.contains(link));
    if !(0..core.ways.len()).filter(beside).all(holds_back) {
        return None;
    }
    let group = &spec.flows[i];
    let bps = narrowest(spec, core, i).min(accesses(spec, core, i, Side::BOTH[0]));
    let round_s = round_trip(spec, core, i, true).as_secs_f64();
    let pipe = bps * round_s / (8.0 * f64::from(group.transport.config.packet_bytes()));
    let vegas = congestion(i) == Some(Congestion::Vegas);
    Some(pipe + if vegas { 8.0 * group.flows() as f64 } else { STARTING * pipe })
}

/// Packets of one flow at the most that its application has asked for and not yet got: one transfer at a time, one page,
/// one segment of a film.
fn at_once(group: &Group) -> f64 {
    let payload = f64::from(group.transport.config.payload_bytes().max(1));
    // With those that open and close.
    let of = |size: &Law| (largest(size) / payload).ceil() + 2.0;
    match &group.traffic {
        Traffic::Transfers(kind) => of(&kind.size.0),
        Traffic::Web(kind) => of(&kind.main.0).max(f64::from(kind.connections) * of(&kind.embedded.0)),
        Traffic::AdaptiveVideo(kind) => {
            kind.ladder.last().map_or(0.0, |best| (kind.segment_bytes(*best) as f64 / payload).ceil() + 2.0)
        }
        _ => f64::INFINITY,
    }
}

/// What a size is at the most, bytes, as far as many together are concerned: of a law many times its mean.
fn largest(size: &Law) -> f64 {
    if let Law::Fixed(bytes) = size { *bytes } else { MANY_TIMES * size.mean() }
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
fn waiting(spec: &Spec, core: &Core, number: usize, link: Option<&Link>, lists: Lists, shares: &mut [Share]) -> f64 {
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
    let largest = here.iter().map(|i| shares[*i].packet_bytes).fold(0.0, f64::max);
    let slowest = rates(spec, core, number).fold(u64::MAX, u64::min).max(1) as f64;
    let room = room(at.buffer, if data { smallest } else { 40.0 });
    let duration_s = spec.duration.as_secs_f64();
    let until = spec.duration.as_nanos();
    let inflow = inflow(spec, core, number);
    let can = |i: usize| accesses(spec, core, i, Side::BOTH[0]);
    // Of a medium with a law of its own nobody knows when it carries what.
    let left_over = |bps: f64| match link.filter(|_| at.carries.medium == Medium::Wire) {
        Some(link) => left_over(link, bps.min(inflow), until),
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
    let admitted: f64 = here.iter().map(|i| shares[*i].admitted).sum();
    let mut most = room.min(more).min(admitted);
    let dearest = here.iter().map(|i| shares[*i].each).fold(0.0, f64::max);
    let discipline = link.and_then(Discipline::of);
    let port = |packets: f64| match &discipline {
        Some(Discipline { served: true, packet_bytes, .. }) => packets * GROWN * (kept::SERVED as f64 + packet_bytes),
        _ => {
            let ring = (packets.min(1e15) as u64).next_power_of_two() as f64 * kept::IN_FIFO as f64;
            let alone = lists.spare(packets, 8.0 * largest / slowest, shares);
            GROWN * ring + (packets * GROWN + alone) * kept::EVENT as f64
        }
    };
    if let (Some(link), true) = (link, data && most * dearest + port(most) > LITTLE) {
        let rtt = here.iter().map(|i| round_trip(spec, core, *i, true).as_nanos()).max().unwrap_or(0);
        let mix = Mix::of(&here.iter().map(|i| &shares[*i]).collect::<Vec<_>>(), slowest);
        if let Some(longest) = longest(link, &mix.load(rtt), until).map(|longest| longest as f64 * mix.smaller) {
            most = most.min(SAFETY * longest + unevenly);
        }
    }
    let levels = if at.record { GROWN * kept::LEVEL as f64 * most } else { 0.0 };
    let mut bytes = port(most) + levels + discipline.map_or(0.0, |known| known.queues_bytes);
    // The dear ones first.
    here.sort_by(|a, b| shares[*b].each.total_cmp(&shares[*a].each));
    for i in here {
        let of_group = most.min(shares[i].admitted);
        bytes += of_group * shares[i].each;
        shares[i].admitted -= of_group;
        most -= of_group;
    }
    bytes
}

/// What comes to a link as its discipline is shown it: packets of one size.
struct Mix {
    bytes: f64,
    /// Packets a second of that size that come whatever becomes of them.
    regardless: f64,
    flows: Vec<Flows>,
    /// As many packets wait as are shown, times this: those that come regardless may be smaller.
    smaller: f64,
}

impl Mix {
    /// That of `shares` at a link that carries `bps` at the least. What applications write over windows comes as it is
    /// written where there is room for it.
    fn of(shares: &[&Share], bps: f64) -> Self {
        let written = shares.iter().map(|share| if share.flows.is_some() { share.bps } else { 0.0 });
        let always = shares.iter().map(|share| 8.0 * share.per_second * share.packet_bytes).sum::<f64>();
        let room = always + written.filter(|bps| bps.is_finite()).sum::<f64>() < ROOM * bps;
        let opens = |share: &&&Share| share.flows.is_some() && !(room && share.bps.is_finite());
        let windows: Vec<&&Share> = shares.iter().filter(opens).collect();
        let others = shares.iter().filter(|share| !opens(share));
        let (mut regardless, mut packets) = (always, shares.iter().map(|share| share.per_second).sum::<f64>());
        for share in others.filter(|share| share.flows.is_some()) {
            regardless += share.bps;
            packets += share.bps / (8.0 * share.packet_bytes);
        }
        let mean = if packets > 0.0 { regardless / (8.0 * packets) } else { f64::INFINITY };
        let bytes = windows.iter().map(|share| share.packet_bytes).fold(f64::INFINITY, f64::min);
        let bytes = if windows.is_empty() { mean } else { bytes };
        let part = (regardless / bps).min(1.0);
        let smaller = if mean < bytes { 1.0 + part * (bytes / mean - 1.0) } else { 1.0 };
        Mix {
            bytes,
            regardless: regardless / (8.0 * bytes),
            flows: windows.iter().filter_map(|share| share.flows).collect(),
            smaller,
        }
    }

    fn load(&self, rtt: u64) -> Load {
        Load {
            regardless: self.regardless,
            flows: self.flows.clone(),
            bytes: self.bytes.clamp(1.0, 65_535.0) as u32,
            rtt,
        }
    }
}

/// Quantities that the discipline of `link` shows of its state at each sample.
pub(crate) fn shown(link: &Link) -> u64 {
    let mut shown = 0;
    if let Some(Ok(qdisc)) = link.aqm.build_qdisc(link.limit) {
        qdisc.observe(&mut |_, _| shown += 1);
    }
    shown
}

/// What a discipline keeps.
struct Discipline {
    /// It is asked for each packet.
    served: bool,
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
        Some(Discipline { served, queues_bytes: if served { one } else { 0.0 }, packet_bytes: (many - one) / 1000.0 })
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
    let waiting = (room * hosts).min(share.admitted).min(more + group.flows() as f64);
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

/// Packets of group `i` on wires, at the most: what its part of the narrowest link carries in a round trip, and a first
/// window of each flow.
fn on_wires(spec: &Spec, core: &Core, i: usize, share: &Share) -> f64 {
    let (group, way) = (&spec.flows[i], &core.ways[i]);
    let config = &group.transport.config;
    let demand = |i: usize| accesses(spec, core, i, Side::BOTH[0]).min(1e15);
    let part = |link: &u32| {
        let all: f64 = (0..core.ways.len()).filter(|j| core.ways[*j].path.contains(link)).map(demand).sum();
        rates(spec, core, *link as usize).fold(0, u64::max) as f64 * demand(i) / all.max(1.0)
    };
    let rate = way.path.iter().map(part).fold(demand(i), f64::min).min(share.peak_bps);
    let round_s = round_trip(spec, core, i, true).as_secs_f64();
    let mut in_round = rate * round_s / (8.0 * share.packet_bytes);
    if share.bps < rate {
        // As it is written, by chance more than on the average.
        let written = share.bps * round_s / (8.0 * share.packet_bytes);
        in_round = in_round.min(written + DEVIATIONS * (share.variance * round_s.max(1.0)).sqrt());
    }
    in_round + group.flows() as f64 * f64::from(config.initial_window_pkts())
}
