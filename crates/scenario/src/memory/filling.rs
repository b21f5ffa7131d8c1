//! How long the queue of a link becomes where more comes than leaves: its discipline is asked, packet by packet. What
//! comes is as plain as can be: datagrams evenly spaced, and windows that slow start opens, that a signal halves, and
//! that grow by one in a round trip from then on. Whether an AQM keeps a queue of millions short, and how far slow
//! start goes beyond what it aims at, follows from its law in this way, and from nothing that would have to be known of
//! it.

use std::collections::VecDeque;

use aqumen_aqm::registry::AnyQdisc;
use aqumen_aqm::{DropReason, Fates, Handle, Packet, Qdisc};
use aqumen_units::{Bytes, Ecn, Instant, Rate, Span};

use crate::line::Medium;
use crate::plan::Link;
use crate::streams::{Kind, Stream};

/// What comes to a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    /// Packets a second that come whatever becomes of them.
    pub(crate) regardless: f64,
    /// Flows that answer signals.
    pub(crate) flows: Vec<Flows>,
    /// Bytes of a packet.
    pub(crate) bytes: u32,
    /// The longest round trip without queueing, nanoseconds.
    pub(crate) rtt: u64,
}

/// So many flows alike.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flows {
    pub(crate) count: u32,
    /// Packets of the first window, and of the largest.
    pub(crate) first: u32,
    pub(crate) most: u32,
    pub(crate) ecn: bool,
}

/// Packets that are looked at: some tenths of a second. A run that has to do with more takes longer itself.
const LOOKED_AT: u64 = 1 << 20;
/// One of so many that the link carries in a run; of a pipe that takes long to fill so many times what it holds; and no
/// more than that many.
const PART: u64 = 8;
const PIPES: u64 = 16;
const LOOKED_AT_MAX: u64 = 8 * LOOKED_AT;
/// Flows at most.
const FLOWS_MAX: u64 = 1 << 16;
/// A queue that has not become longer for so many times as long as it took to become so long will not.
const PATIENCE: u64 = 20;
/// Before this many packets have come nothing is said.
const FEW: u64 = 1 << 18;

/// The longest queue of `link` under `load` within `until` nanoseconds, packets. `None`: nobody can tell, or it would
/// take too long until a queue forms.
pub(crate) fn longest(link: &Link, load: &Load, until: u64) -> Option<u64> {
    let count: u64 = load.flows.iter().map(|flows| u64::from(flows.count)).sum();
    if count > FLOWS_MAX || link.line.as_ref().is_some_and(|line| line.medium != Medium::Wire) {
        return None;
    }
    if link.line.as_ref().is_some_and(|line| !line.outages.is_empty() || !line.aqms.is_empty()) {
        return None;
    }
    let pipe = if load.flows.is_empty() { 0 } else { carried(link, load, load.rtt) };
    if pipe > LOOKED_AT_MAX / PIPES {
        return None;
    }
    let looked_at = LOOKED_AT.max(PIPES * pipe).max(carried(link, load, until) / PART).min(LOOKED_AT_MAX);
    let qdisc = link.aqm.build_qdisc(link.limit)?.ok()?;
    if qdisc.is_own() {
        return None;
    }
    Some(Filling::new(link, load, qdisc).run(until, looked_at))
}

/// Packets that `link` carries in so many nanoseconds at the most: of a round trip those that windows have to hold
/// before a queue forms.
fn carried(link: &Link, load: &Load, nanos: u64) -> u64 {
    let fastest = link.rates.iter().map(|(_, rate)| rate.as_bps()).max().unwrap_or(0) as f64;
    (fastest * nanos as f64 / 1e9 / (8.0 * f64::from(load.bytes.max(1)))) as u64
}

/// The rate of `link` at a moment, nanoseconds.
pub(crate) fn rate_at(link: &Link, now: u64) -> Rate {
    let begun = link.rates.partition_point(|(from, _)| from.as_nanos() <= now);
    link.rates[begun.saturating_sub(1)].1
}

/// The longest queue of each moment before.
#[derive(Default)]
struct Past(Vec<(u64, u64)>);

impl Past {
    /// A moment is kept where it lies so many times as far from the start as the one before.
    const APART: f64 = 1.05;

    fn keep(&mut self, now: u64, longest: u64) {
        if self.0.last().is_none_or(|(last, _)| now as f64 > Self::APART * *last as f64) {
            self.0.push((now, longest));
        }
    }

    /// At a moment between two that are kept, or before the first.
    fn at(&self, moment: u64) -> f64 {
        let next = self.0.partition_point(|(at, _)| *at <= moment);
        let (from, before) = if next == 0 { (0, 0) } else { self.0[next - 1] };
        let Some(&(to, after)) = self.0.get(next) else { return before as f64 };
        before as f64 + (after - before) as f64 * (moment - from) as f64 / (to - from) as f64
    }

    /// What the queue that was `longest` until `now` becomes by `until`. What it grows by each time that the time
    /// doubles changes by the same factor as the last time: 2 where it grows steadily, 1 where chance alone makes it
    /// longer, less where it comes to an end. More than steadily no queue grows that stands: windows let in two packets
    /// for each that leaves at the most.
    fn goes_on(&self, now: u64, longest: u64, until: u64) -> u64 {
        let (half, quarter) = (self.at(now / 2), self.at(now / 4));
        let (mut grows, before) = (longest as f64 - half, half - quarter);
        let factor = if grows < 2.0 * before { grows / before } else { 2.0 };
        let (mut length, mut time, until) = (longest as f64, now as f64, until as f64);
        while time < until {
            grows *= factor;
            length += grows * ((until - time) / time).min(1.0);
            time *= 2.0;
        }
        length as u64
    }
}

/// A flow that answers signals.
#[derive(Clone, Copy)]
struct Flow {
    window: f64,
    most: f64,
    under_way: u32,
    /// Packets that are gone: of those it hears with the next that leaves the queue, and with the next that joins it.
    gone: u32,
    gone_at_tail: u32,
    /// Whether nothing has slowed it down yet.
    slow_start: bool,
    /// Acknowledgements until it answers a signal again.
    deaf: u32,
    ecn: Ecn,
}

impl Flow {
    /// A signal.
    fn reduce(&mut self) {
        self.window = (self.window / 2.0).max(1.0);
        self.slow_start = false;
        self.deaf = self.under_way;
    }

    /// An acknowledgement: two packets for one in slow start, then one more in a round trip.
    fn grow(&mut self) {
        self.window += if self.slow_start { 1.0 } else { 1.0 / self.window };
    }
}

/// A flow that answers nothing.
const REGARDLESS: u32 = u32::MAX;

struct Filling<'a> {
    link: &'a Link,
    qdisc: AnyQdisc,
    rng: Stream,
    load: &'a Load,
    flows: Vec<Flow>,
    /// What each handle stands for: whose it is, and whether it tells of a signal. Which handles are free.
    packets: Vec<(u32, bool)>,
    free: Vec<Handle>,
    /// What is under way back to its source: when it is there, whose it is, whether it tells of a signal, and whether
    /// it acknowledges a packet.
    back: VecDeque<(u64, u32, bool, bool)>,
    fates: Seen,
    /// The packet in transmission, when that ends and how long it takes; when one more comes regardless, and how often.
    sending: Option<(Handle, u64, Span)>,
    next: u64,
    interval: f64,
    came: u64,
}

/// What a discipline has told since the last look.
#[derive(Default)]
struct Seen {
    marked: Vec<Handle>,
    dropped: Vec<Handle>,
}

impl Fates for Seen {
    fn marked(&mut self, handle: Handle) {
        self.marked.push(handle);
    }

    fn dropped(&mut self, handle: Handle, _: DropReason) {
        self.dropped.push(handle);
    }
}

impl<'a> Filling<'a> {
    fn new(link: &'a Link, load: &'a Load, qdisc: AnyQdisc) -> Self {
        let of = |flows: &Flows| Flow {
            window: f64::from(flows.first.min(flows.most)),
            most: f64::from(flows.most),
            under_way: 0,
            gone: 0,
            gone_at_tail: 0,
            slow_start: true,
            deaf: 0,
            ecn: if flows.ecn { Ecn::Ect0 } else { Ecn::NotEct },
        };
        let flows = load.flows.iter().flat_map(|flows| (0..flows.count).map(move |_| of(flows)));
        let interval = 1e9 / load.regardless;
        Filling {
            link,
            qdisc,
            rng: Stream::new(1, Kind::Aqm, 0),
            load,
            flows: flows.collect(),
            packets: Vec::new(),
            free: Vec::new(),
            back: VecDeque::new(),
            fates: Seen::default(),
            sending: None,
            next: if interval.is_finite() { 0 } else { u64::MAX },
            interval,
            came: 0,
        }
    }

    /// The longest queue; where that is not known after so many packets, what it becomes if it goes on as it has.
    fn run(mut self, until: u64, looked_at: u64) -> u64 {
        let (mut longest, mut since) = (0, 0);
        let mut past = Past::default();
        let changes = self.link.rates.last().map_or(0, |(at, _)| at.as_nanos());
        for flow in 0..self.flows.len() as u32 {
            self.send(flow, 0);
        }
        loop {
            let back = self.back.front().map_or(u64::MAX, |(at, ..)| *at);
            let end = self.sending.map_or(u64::MAX, |(_, end, _)| end);
            let timer = self.qdisc.next_timer().map_or(u64::MAX, Instant::as_nanos);
            let now = back.min(end).min(self.next).min(timer);
            if now >= until {
                return longest;
            }
            if now == timer {
                self.qdisc.on_timer(Instant::from_nanos(now), &mut self.rng);
            } else if now == end {
                self.sent(now);
            } else if now == back {
                self.answer(now);
            } else {
                self.arrive(REGARDLESS, now);
                self.next = now + (self.interval as u64).max(1);
            }
            let waiting = u64::from(self.qdisc.backlog().packets);
            if waiting > longest {
                (longest, since) = (waiting, now);
            }
            let settled = now > PATIENCE.saturating_mul(since.max(changes).max(self.load.rtt)) && self.came > FEW;
            if settled || longest >= u64::from(self.link.limit.packets) {
                return longest;
            }
            past.keep(now, longest);
            if self.came > looked_at {
                return past.goes_on(now, longest, until).min(self.link.limit.packets.into());
            }
        }
    }

    /// The flow sends what its window admits.
    fn send(&mut self, of: u32, now: u64) {
        loop {
            let flow = &mut self.flows[of as usize];
            if f64::from(flow.under_way) >= flow.window.min(flow.most).floor().max(1.0) {
                return;
            }
            flow.under_way += 1;
            self.arrive(of, now);
        }
    }

    /// A packet comes.
    fn arrive(&mut self, of: u32, now: u64) {
        self.came += 1;
        let mut packet = (of, false);
        let mut ecn = Ecn::NotEct;
        if let Some(flow) = self.flows.get_mut(of as usize) {
            ecn = flow.ecn;
            packet.1 = flow.gone_at_tail > 0;
        }
        let handle = self.free.pop().unwrap_or_else(|| {
            self.packets.push(packet);
            self.packets.len() as Handle - 1
        });
        self.packets[handle as usize] = packet;
        // Flows that differ have queues that differ, where a discipline has many.
        let flow_hash = of.wrapping_mul(0x9e37_79b9);
        let told = Packet { bytes: self.load.bytes, ecn, segments: 1, flow_hash, ..Packet::default() };
        self.qdisc.enqueue(handle, &told, Instant::from_nanos(now), &mut self.rng, &mut self.fates);
        self.look(now, Some(handle));
        if self.sending.is_none() {
            self.serve(now);
        }
    }

    /// What the discipline did to packets, `arrived` among them, comes to their sources with what leaves next, or with
    /// what joins the queue next.
    fn look(&mut self, now: u64, arrived: Option<Handle>) {
        while let Some(handle) = self.fates.marked.pop() {
            self.packets[handle as usize].1 = true;
        }
        while let Some(handle) = self.fates.dropped.pop() {
            let (of, _) = self.packets[handle as usize];
            self.free.push(handle);
            let Some(flow) = self.flows.get_mut(of as usize) else { continue };
            if arrived == Some(handle) {
                flow.gone_at_tail += 1
            } else {
                flow.gone += 1
            }
            if flow.gone + flow.gone_at_tail == flow.under_way {
                // Nothing is left that could tell of it.
                self.back.push_back((now + self.load.rtt, of, true, false));
            }
        }
    }

    /// The link takes the next packet, if one waits.
    fn serve(&mut self, now: u64) {
        let taken = self.qdisc.dequeue(Instant::from_nanos(now), &mut self.rng, &mut self.fates);
        self.look(now, None);
        let takes = rate_at(self.link, now).time_for(Bytes(self.load.bytes.into()));
        self.sending = taken.map(|handle| (handle, now + takes.as_nanos(), takes));
    }

    /// The transmission under way has ended.
    fn sent(&mut self, now: u64) {
        let Some((handle, _, takes)) = self.sending.take() else { return };
        self.qdisc.transmitted(takes, Instant::from_nanos(now));
        let (of, told) = self.packets[handle as usize];
        self.free.push(handle);
        if of != REGARDLESS {
            self.back.push_back((now + self.load.rtt, of, told, true));
        }
        self.serve(now);
    }

    /// A source hears of one of its packets.
    fn answer(&mut self, now: u64) {
        let Some((_, of, told, acknowledges)) = self.back.pop_front() else { return };
        let flow = &mut self.flows[of as usize];
        flow.under_way -= u32::from(acknowledges);
        let signal = told || flow.gone > 0;
        flow.under_way -= std::mem::take(&mut flow.gone);
        if told {
            flow.under_way -= std::mem::take(&mut flow.gone_at_tail);
        }
        if flow.deaf > 0 {
            flow.deaf -= 1;
        } else if signal {
            flow.reduce();
        } else {
            flow.grow();
        }
        self.send(of, now);
    }
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::{Limit, Network};

    use super::*;
    use crate::choice::AqmChoice;
    use crate::value::OwnedValue;

    /// 8 Mbit/s: 1000 packets of 1000 bytes a second.
    fn link(aqm: &str, room: u32) -> Link {
        let rate = Rate::from_bps(8_000_000);
        let network = Network {
            capacity: rate,
            flows: 4.0,
            base_rtt_s: 0.1,
            target_pkts: 50.0,
            packet_bytes: 1000.0,
            link_rate: rate,
            buffer_pkts: f64::from(room),
        };
        Link {
            name: "link".into(),
            from: 0,
            to: 1,
            delay: Span::ZERO,
            rates: vec![(Instant::ZERO, rate)],
            line: None,
            limit: Limit::packets(room),
            aqm: AqmChoice::builtin(aqm, Vec::new(), network),
            target_pkts: None,
            record: true,
        }
    }

    const SECOND: u64 = 1_000_000_000;

    fn datagrams(per_second: f64) -> Load {
        Load { regardless: per_second, flows: Vec::new(), bytes: 1000, rtt: 0 }
    }

    fn windows(count: u32, most: u32) -> Load {
        Load {
            flows: vec![Flows { count, first: 2, most, ..Flows::default() }],
            bytes: 1000,
            rtt: SECOND / 10,
            ..Load::default()
        }
    }

    #[test]
    fn what_comes_faster_than_it_leaves_piles_up() {
        // 1500 come and 1000 leave each second: 5000 after 10 s, or what there is room for.
        let after = longest(&link("droptail", 100_000), &datagrams(1500.0), 10 * SECOND).unwrap();
        assert!(after.abs_diff(5000) <= 2, "{after}");
        assert_eq!(longest(&link("droptail", 700), &datagrams(1500.0), 10 * SECOND), Some(700));
        // What leaves in time leaves nobody waiting but one.
        assert!(longest(&link("droptail", 100_000), &datagrams(900.0), 10 * SECOND).unwrap() <= 1);
    }

    #[test]
    fn slow_start_sends_two_for_each_that_leaves_until_the_window_is_full() {
        // In slow start the queue grows as fast as the link carries, 1000 packets a second, less those of the first
        // round trips.
        let after = longest(&link("droptail", 100_000), &windows(4, 1_000_000), 10 * SECOND).unwrap();
        assert!((9000..10_000).contains(&after), "{after}");
        // Four windows of 50 less 100 packets that are on the way there and back.
        let bounded = longest(&link("droptail", 100_000), &windows(4, 50), 10 * SECOND).unwrap();
        assert!((90..200).contains(&bounded), "{bounded}");
    }

    #[test]
    fn an_aqm_that_signals_ends_slow_start() {
        for aqm in ["codel", "pie", "fq-codel"] {
            let after = longest(&link(aqm, 100_000), &windows(4, 1_000_000), 60 * SECOND).unwrap();
            assert!(after < 3000, "{aqm}: {after}");
        }
        // Of packets that answer nothing CoDel drops too few.
        assert!(longest(&link("codel", 5000), &datagrams(2000.0), 60 * SECOND) >= Some(5000));
    }

    #[test]
    fn a_flow_that_has_lost_all_begins_again() {
        // A fifth of the packets is lost, now and then all that a small window has under way. The windows that come
        // about within 10 000 round trips are larger than the first.
        let mut link = link("droptail", 100_000);
        let network = link.aqm.network;
        link.aqm = AqmChoice::builtin("fixed", vec![("p".into(), OwnedValue::Number(0.2))], network);
        let one = Load { rtt: SECOND / 1000, ..windows(1, 1_000_000) };
        let after = longest(&link, &one, 10 * SECOND).unwrap();
        assert!((4..30).contains(&after), "{after}");
    }

    #[test]
    fn nothing_is_said_of_links_of_which_nothing_is_known() {
        let mut down = link("droptail", 100);
        let line = crate::line::Line { outages: vec![(Instant::ZERO, None)], ..Default::default() };
        down.line = Some(Box::new(line));
        assert_eq!(longest(&down, &datagrams(1500.0), SECOND), None);
        assert_eq!(longest(&link("droptail", 100), &windows(100_000, 10), SECOND), None);
        // A pipe of a million packets: nothing waits before that many are under way.
        let mut far = windows(4, 1_000_000);
        far.rtt = 1000 * SECOND;
        assert_eq!(longest(&link("droptail", 100_000_000), &far, 1_000_000 * SECOND), None);
    }

    #[test]
    fn a_queue_goes_on_as_it_has_where_there_is_too_much_to_look_at() {
        // Of two million packets each second all but 1000 stay.
        let steady = longest(&link("droptail", 100_000_000), &datagrams(2e6), 10 * SECOND).unwrap() as f64;
        assert!((steady / (1.999e6 * 10.0) - 1.0).abs() < 0.01, "{steady}");
        // No longer than there is room: packets that find none do not come to wait.
        assert_eq!(longest(&link("droptail", 2_000_000), &datagrams(2e6), 10 * SECOND), Some(2_000_000));
    }

    #[test]
    fn growth_changes_from_one_doubling_to_the_next_as_it_did_before() {
        let goes_on = |lengths: [u64; 3]| {
            let mut past = Past::default();
            past.keep(25, lengths[0]);
            past.keep(50, lengths[1]);
            past.keep(100, lengths[2]);
            past.goes_on(100, lengths[2], 800)
        };
        // Steady: 1 in each unit of time.
        assert_eq!(goes_on([25, 50, 100]), 800);
        // By 30 each time.
        assert_eq!(goes_on([40, 70, 100]), 190);
        // By half as much each time: 10, 5 and 2.5 more.
        assert_eq!(goes_on([40, 80, 100]), 117);
        // No more; and never more than steadily: 100 within the last half, 200, 400 and 800 more.
        assert_eq!(goes_on([90, 100, 100]), 100);
        assert_eq!(goes_on([0, 0, 100]), 1500);
        assert_eq!(goes_on([0, 10, 110]), 1510);
    }
}
