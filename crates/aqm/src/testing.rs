//! Helpers for tests of algorithms and of programs that use them: reproducible random numbers, a log of marks and
//! drops, a link under constant load, and checks of algorithms and disciplines against the rules of [`Aqm`] and
//! [`Qdisc`].

use alloc::vec::Vec;

use aqumen_units::{Bytes, Ecn, Instant, Rate, Span};

use crate::{Aqm, Draw, DropReason, Fates, Fifo, Handle, Limit, Packet, Qdisc, Totals};

/// Always draws the same number.
#[derive(Clone, Debug)]
pub struct Fixed(pub f64);

impl Draw for Fixed {
    fn uniform(&mut self) -> f64 {
        self.0
    }
}

/// Minimal standard generator (Park, Miller 1988); the seed is in 1..2^31 - 1.
#[derive(Clone, Debug)]
pub struct Lehmer(pub u64);

impl Draw for Lehmer {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        self.0 as f64 / 0x7fff_ffff as f64
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014), for tests that use single bits.
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Draw for SplitMix {
    fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Records marks and drops, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Packets marked.
    pub marked: Vec<Handle>,
    /// Packets dropped.
    pub dropped: Vec<Handle>,
}

impl Fates for Log {
    fn marked(&mut self, handle: Handle) {
        self.marked.push(handle);
    }

    fn dropped(&mut self, handle: Handle, _reason: DropReason) {
        self.dropped.push(handle);
    }
}

/// Constant load on a link: equal packets at equal distances, numbered from 0.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Rate of the link.
    pub link: Rate,
    /// Offered load over the rate of the link; 2 sends twice what the link carries.
    pub factor: f64,
    /// The packet.
    pub packet: Packet,
    /// Duration.
    pub duration: Span,
}

/// Result of a [`Load`].
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Sojourn time of each transmitted packet, in the order of transmission.
    pub sojourns: Vec<Span>,
    /// Marks and drops.
    pub log: Log,
    /// Counters of the queue.
    pub totals: Totals,
}

impl Load {
    /// Offers the load to an empty `queue` from the epoch on, with random numbers of the seed 1.
    pub fn offer(&self, queue: &mut impl Qdisc) -> Outcome {
        let bytes = Bytes(u64::from(self.packet.bytes));
        let service = self.link.time_for(bytes);
        let gap = Span::from_secs_f64(service.as_secs_f64() / self.factor);
        let arrival = |number: u64| Instant::ZERO + gap * number;
        let (mut log, mut rng, mut sojourns) = (Log::default(), SplitMix(1), Vec::new());
        let (mut next, mut free_at) = (0, None);
        let end = Instant::ZERO + self.duration;
        loop {
            // At equal times: timers, then departures, then arrivals.
            let events = [queue.next_timer(), free_at, Some(arrival(next))];
            let Some(now) = events.into_iter().flatten().min().filter(|now| *now < end) else { break };
            if queue.next_timer() == Some(now) {
                queue.on_timer(now, &mut rng);
                continue;
            }
            if free_at == Some(now) {
                queue.transmitted(service, now);
                free_at = None;
            } else {
                queue.enqueue(next as Handle, &self.packet, now, &mut rng, &mut log);
                next += 1;
            }
            if free_at.is_none()
                && let Some(handle) = queue.dequeue(now, &mut rng, &mut log)
            {
                sojourns.push(now - arrival(u64::from(handle)));
                free_at = Some(now + service);
            }
        }
        Outcome { sojourns, log, totals: *queue.totals() }
    }
}

/// Checks `aqm`, a new object, against the rules that each [`Aqm`] obeys, under random sequences of calls:
///
/// - a packet that is not ECN-capable is never marked,
/// - an early timer call changes nothing that can be seen; a due one moves the timer ahead,
/// - state variables are finite,
/// - equal calls with equal random numbers give equal decisions.
///
/// # Panics
///
/// With the rule that is broken.
///
/// ```
/// use aqumen_aqm::testing::check;
/// use aqumen_aqm::{Codel, CodelParams};
///
/// check(&Codel::new(CodelParams::default()).unwrap());
/// ```
pub fn check<A: Aqm + Clone>(aqm: &A) {
    for seed in 0..24 {
        let limit = [Limit::packets(1), Limit::packets(50), Limit { packets: u32::MAX, bytes: Bytes(100_000) }];
        let limit = limit[seed as usize % 3];
        let first = exercise(Fifo::new(aqm.clone(), limit), limit, seed);
        assert!(
            first == exercise(Fifo::new(aqm.clone(), limit), limit, seed),
            "equal calls with equal random numbers decide differently"
        );
    }
}

/// Checks a discipline, which `make` builds for a capacity, against the rules that each [`Qdisc`] obeys, under random
/// sequences of calls: those of [`check`], and
///
/// - each packet has one fate: it waits, is dropped, or is sent, once,
/// - backlog and counters are those of its packets, and the backlog stays within the capacity,
/// - the link is idle only if nothing waits.
///
/// # Panics
///
/// With the rule that is broken.
///
/// ```
/// use aqumen_aqm::Drr;
/// use aqumen_aqm::testing::check_qdisc;
///
/// check_qdisc(|limit| Drr::new(16, 1514, false, limit));
/// ```
pub fn check_qdisc<Q: Qdisc>(make: impl Fn(Limit) -> Q) {
    for seed in 0..24 {
        let limit = [Limit::packets(1), Limit::packets(50), Limit { packets: u32::MAX, bytes: Bytes(100_000) }];
        let limit = limit[seed as usize % 3];
        assert!(
            exercise(make(limit), limit, seed) == exercise(make(limit), limit, seed),
            "equal calls with equal random numbers decide differently"
        );
    }
}

/// Observable state of a discipline: probability, timer, state variables as bits.
fn state(queue: &impl Qdisc) -> (f64, Option<Instant>, Vec<(&'static str, u64)>) {
    let mut seen = Vec::new();
    queue.observe(&mut |name, value| {
        assert!(value.is_finite(), "the state variable {name} is {value}");
        seen.push((name, value.to_bits()));
    });
    (queue.probability().get(), queue.next_timer(), seen)
}

/// Packets of a random sequence of calls, by handle.
#[derive(Default)]
struct Sequence {
    all: Vec<Packet>,
    waits: Vec<bool>,
    transmitting: bool,
    log: Log,
    /// Marks and drops that are checked.
    seen: (usize, usize),
}

impl Sequence {
    /// Adds an arriving packet; returns its handle.
    fn arrive(&mut self, packet: Packet) -> Handle {
        self.all.push(packet);
        self.waits.push(true);
        (self.all.len() - 1) as Handle
    }

    /// Ends the wait of packet `handle`.
    fn leave(&mut self, handle: Handle) {
        let waits = self.waits.get_mut(handle as usize);
        assert!(waits.is_some_and(core::mem::take), "packet {handle} is dropped or sent, but does not wait");
    }

    /// Checks the marks and drops of a call.
    fn check_fates(&mut self) {
        for handle in &self.log.marked[self.seen.0..] {
            let packet = self.all.get(*handle as usize).filter(|_| self.waits[*handle as usize]);
            assert!(packet.is_some(), "packet {handle} is marked, but does not wait");
            assert!(packet.is_some_and(|packet| packet.ecn.is_ect()), "a packet that is not ECN-capable is marked");
        }
        for k in self.seen.1..self.log.dropped.len() {
            self.leave(self.log.dropped[k]);
        }
        self.seen = (self.log.marked.len(), self.log.dropped.len());
    }

    /// Checks backlog and counters.
    fn check_counts(&self, queue: &impl Qdisc, limit: Limit) {
        let waiting = || self.all.iter().zip(&self.waits).filter(|(_, waits)| **waits).map(|(packet, _)| packet);
        let (backlog, totals) = (queue.backlog(), queue.totals());
        assert!(backlog.packets as usize == waiting().count(), "the backlog is not the packets that wait");
        assert!(
            backlog.bytes == waiting().map(|packet| u64::from(packet.bytes)).sum::<u64>(),
            "the backlog is not the bytes that wait"
        );
        assert!(backlog.packets <= limit.packets && backlog.bytes <= limit.bytes.0, "the backlog exceeds the capacity");
        let held = u64::from(backlog.packets) + u64::from(self.transmitting);
        let dropped = totals.early_dropped + totals.overflow_dropped;
        assert!(totals.arrivals == self.all.len() as u64, "arrivals are not counted");
        assert!(totals.arrivals == totals.departures + dropped + held, "departures or drops are not counted");
        assert!(
            (dropped, totals.marked) == (self.log.dropped.len() as u64, self.log.marked.len() as u64),
            "marks or drops are not counted"
        );
    }
}

/// Marks and drops of a random sequence of 400 calls.
fn exercise(mut queue: impl Qdisc, limit: Limit, seed: u64) -> (Log, Totals) {
    let (mut choice, mut rng, mut now, mut packets) =
        (SplitMix(seed), SplitMix(!seed), Instant::ZERO, Sequence::default());
    for _ in 0..400 {
        match choice.bits() % 8 {
            0 | 1 => {
                let scale = [100_000, 10_000_000, 1_000_000_000][choice.bits() as usize % 3];
                now += Span::from_nanos(choice.bits() % scale);
            }
            2..=4 => {
                for _ in 0..[1, 1, 1, 30][choice.bits() as usize % 4] {
                    let packet = any_packet(&mut choice);
                    let handle = packets.arrive(packet);
                    queue.enqueue(handle, &packet, now, &mut rng, &mut packets.log);
                    packets.check_fates();
                }
            }
            5 | 6 => {
                if packets.transmitting {
                    queue.transmitted(Span::from_micros(500), now);
                }
                let sent = queue.dequeue(now, &mut rng, &mut packets.log);
                packets.check_fates();
                sent.iter().for_each(|handle| packets.leave(*handle));
                packets.transmitting = sent.is_some();
                assert!(sent.is_some() || !packets.waits.contains(&true), "the link is idle although packets wait");
            }
            _ => {}
        }
        packets.check_counts(&queue, limit);
        let before = state(&queue);
        match before.1 {
            Some(due) if due <= now => {
                queue.on_timer(now, &mut rng);
                assert!(queue.next_timer().is_none_or(|due| due > now), "the timer is due again at once");
            }
            _ => {
                queue.on_timer(now, &mut rng);
                assert!(state(&queue) == before, "an early timer call changes something");
            }
        }
    }
    (packets.log, *queue.totals())
}

/// A packet of one of six flows and three classes.
fn any_packet(choice: &mut SplitMix) -> Packet {
    let (ecn, bytes) = (Ecn::from_bits(choice.bits() as u8), 40 + (choice.bits() % 1460) as u32);
    let flow = (choice.bits() % 6) as u32;
    let class = [0, 8, 46][flow as usize % 3];
    Packet {
        bytes,
        ecn,
        class,
        segments: 1,
        flow_hash: flow,
        source_hash: flow,
        destination_hash: flow,
        ..Packet::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{ALGORITHMS, build};
    use crate::{Backlog, Cx, DropTail, Store, Verdict};

    #[test]
    fn every_built_in_algorithm_passes_the_check() {
        for algorithm in ALGORITHMS {
            check(&build(algorithm.name, &[], &crate::multi::testing::NETWORK).unwrap().unwrap());
        }
    }

    /// Breaks one rule each.
    #[derive(Clone, Copy)]
    enum Broken {
        MarksAll,
        TimerStands,
        TimerMoves(Instant),
        NotFinite,
    }

    impl Aqm for Broken {
        fn on_arrival<R: Draw>(&mut self, _: &Packet, _: &mut Cx<'_, R>) -> Verdict {
            if matches!(self, Broken::MarksAll) { Verdict::Mark } else { Verdict::Pass }
        }

        fn next_timer(&self) -> Option<Instant> {
            match self {
                Broken::TimerStands => Some(Instant::ZERO),
                Broken::TimerMoves(due) => Some(*due),
                _ => None,
            }
        }

        fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
            if let Broken::TimerMoves(due) = self {
                *due = cx.now + Span::from_millis(1);
            }
        }

        fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
            visit("x", if matches!(self, Broken::NotFinite) { f64::NAN } else { 0.0 });
        }
    }

    #[test]
    fn every_built_in_discipline_passes_the_check() {
        for row in crate::registry::algorithms() {
            let make =
                |limit| crate::registry::build_qdisc(row.name, &[], &crate::multi::testing::NETWORK, limit).unwrap();
            check_qdisc(|limit| make(limit).unwrap());
        }
    }

    /// First-in first-out queue that breaks one rule of disciplines.
    #[derive(Clone)]
    struct BrokenQueue {
        store: Store,
        fault: Fault,
        sent: Option<Handle>,
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Fault {
        None,
        SendsTwice,
        Idles,
        LosesSilently,
        Overfills,
        MarksAfterwards,
    }

    impl Qdisc for BrokenQueue {
        fn enqueue<R: Draw>(
            &mut self,
            handle: Handle,
            packet: &Packet,
            now: Instant,
            _: &mut R,
            fates: &mut impl Fates,
        ) {
            self.store.arrive(packet);
            if self.fault == Fault::Overfills || !self.store.is_full(packet) {
                return self.store.push(0, handle, packet, now);
            }
            match self.fault {
                Fault::LosesSilently => {}
                _ => self.store.refuse(handle, DropReason::Overflow, fates),
            }
        }

        fn dequeue<R: Draw>(&mut self, now: Instant, _: &mut R, fates: &mut impl Fates) -> Option<Handle> {
            match self.fault {
                Fault::Idles => return None,
                Fault::SendsTwice if self.sent.is_some() => return self.sent,
                Fault::MarksAfterwards => self.sent.iter().for_each(|handle| self.store.mark(*handle, fates)),
                _ => {}
            }
            let (sent, _) = self.store.pop(0, now)?;
            self.sent = Some(sent.handle);
            Some(self.store.send(&sent, now))
        }

        fn transmitted(&mut self, duration: Span, _: Instant) {
            self.store.transmitted(duration);
        }

        fn backlog(&self) -> Backlog {
            self.store.backlog()
        }

        fn totals(&self) -> &Totals {
            self.store.totals()
        }

        fn observe(&self, _: &mut dyn FnMut(&'static str, f64)) {}
    }

    #[test]
    fn each_fault_of_a_discipline_is_found_by_its_name() {
        let says = |fault: Fault| {
            let make = |limit| BrokenQueue { store: Store::new(1, limit), fault, sent: None };
            let panic = std::panic::catch_unwind(|| check_qdisc(make)).err()?;
            panic
                .downcast_ref::<std::string::String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).into()))
        };
        assert_eq!(says(Fault::None), None);
        for (fault, words) in [
            (Fault::SendsTwice, "is dropped or sent, but does not wait"),
            (Fault::Idles, "the link is idle although packets wait"),
            (Fault::LosesSilently, "the backlog is not the packets that wait"),
            (Fault::Overfills, "the backlog exceeds the capacity"),
            (Fault::MarksAfterwards, "is marked, but does not wait"),
        ] {
            let said = says(fault).unwrap_or_default();
            assert!(said.contains(words), "{fault:?}: {said}");
        }
    }

    #[test]
    #[should_panic(expected = "not ECN-capable is marked")]
    fn a_mark_on_an_incapable_packet_is_found() {
        check(&Broken::MarksAll);
    }

    #[test]
    #[should_panic(expected = "due again at once")]
    fn a_timer_that_stands_is_found() {
        check(&Broken::TimerStands);
    }

    #[test]
    #[should_panic(expected = "early timer call changes")]
    fn an_early_timer_that_changes_something_is_found() {
        check(&Broken::TimerMoves(Instant::ZERO + Span::from_millis(1)));
    }

    #[test]
    #[should_panic(expected = "the state variable x is NaN")]
    fn a_state_that_is_not_finite_is_found() {
        check(&Broken::NotFinite);
    }

    #[test]
    fn twice_the_load_fills_a_queue_without_aqm_and_half_is_lost() {
        // 1 ms a packet, two arrive in it: at the end of 1 s 2000 came, 1000 left, 10 wait, the rest is lost.
        let load = Load {
            link: Rate::from_bps(8_000_000),
            factor: 2.0,
            packet: Packet { bytes: 1000, segments: 1, ..Packet::default() },
            duration: Span::from_secs(1),
        };
        let outcome = load.offer(&mut Fifo::new(DropTail::default(), Limit::packets(10)));
        assert_eq!((outcome.totals.arrivals, outcome.totals.departures), (2000, 999));
        assert_eq!(outcome.log.dropped.len() as u64, 2000 - 999 - 1 - 10);
        assert!(outcome.sojourns.iter().all(|sojourn| *sojourn <= Span::from_millis(10)));
    }
}
