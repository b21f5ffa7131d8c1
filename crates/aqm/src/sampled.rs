//! A sampled law as an [`Aqm`]: one coin toss per packet, and a timer for each loop.

use aqumen_units::{Instant, Probability, Span};

use crate::anti_windup::{AntiWindup, AntiWindupLaw};
use crate::{
    Aqm, Backlog, Coin, Cx, Draw, MAX_LOOPS, Network, Observation, Packet, SampledLaw, Settings, Theory, Totals, Value,
    Verdict,
};

/// An [`Aqm`] that signals each arriving packet with the probability of a sampled law.
#[derive(Clone, Debug)]
pub struct SampledAqm<L> {
    law: AntiWindupLaw<L>,
    ecn: bool,
    applied: Probability,
    loops: [Option<Loop>; MAX_LOOPS],
}

/// A sampling loop: its timer, and the counters at its last step.
#[derive(Clone, Copy, Debug)]
struct Loop {
    period: Span,
    due: Instant,
    observer: Observer,
}

impl<L: SampledLaw> SampledAqm<L> {
    /// Applies `law` from the epoch on. With `ecn`, ECN-capable packets are marked instead of dropped.
    pub fn new(law: L, ecn: bool) -> Self {
        let law = AntiWindupLaw::without_anti_windup(law);
        let loops = law.periods().map(|period| {
            // A custom law with a period of 0 must not stop the clock.
            period.map(|period| period.max(Span::from_nanos(1))).map(|period| Loop {
                period,
                due: Instant::ZERO + period,
                observer: Observer::default(),
            })
        });
        let applied = law.initial();
        SampledAqm { law, ecn, applied, loops }
    }

    /// Adds anti-windup to the law, in a network with base RTT `rtt_s`.
    pub fn with_anti_windup(self, mode: AntiWindup, rtt_s: f64) -> Self {
        SampledAqm { law: AntiWindupLaw::new(self.law.inner, mode, rtt_s), ..self }
    }

    /// `law` with the settings `ecn` and `anti_windup`.
    pub(crate) fn with_settings(law: L, settings: &Settings<'_>, network: &Network) -> Self {
        let plain = SampledAqm::new(law, settings.flag("ecn").unwrap_or(true));
        SampledAqm { law: AntiWindupLaw::from_settings(plain.law.inner, settings, network), ..plain }
    }

    /// The law.
    pub fn law(&self) -> &L {
        &self.law.inner
    }

    /// Visits the anti-windup parameter of a law that has it.
    pub(crate) fn visit_anti_windup(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.law.visit_mode(visit);
    }
}

impl<L: SampledLaw> Aqm for SampledAqm<L> {
    #[inline(always)]
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        if self.law.sees_packets() {
            self.law.on_packet(packet, cx.now, cx.queue.bytes);
        }
        Coin { probability: self.applied, ecn: self.ecn }.toss(packet.ecn, cx.queue.is_full(packet), cx.rng)
    }

    fn coin(&self) -> Option<Coin> {
        (!self.law.sees_packets()).then_some(Coin { probability: self.applied, ecn: self.ecn })
    }

    fn next_timer(&self) -> Option<Instant> {
        self.loops.iter().flatten().map(|l| l.due).min()
    }

    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        for which in 0..MAX_LOOPS {
            let Some(l) = &mut self.loops[which] else { continue };
            if l.due > cx.now {
                continue;
            }
            let queue = Backlog { packets: cx.queue.packets, bytes: cx.queue.bytes };
            let observation = l.observer.observe(cx.now, queue, cx.queue.totals, self.applied);
            // A late call does the work of one period, and the timer keeps its phase.
            let late = cx.now - l.due;
            let periods = if late < l.period { 1 } else { late.as_nanos() / l.period.as_nanos() + 1 };
            l.due = l.due.saturating_add(l.period.saturating_mul(periods));
            self.applied = self.law.step(which, &observation);
        }
    }

    fn probability(&self) -> Probability {
        self.applied
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.law.observe(visit);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.law.settings(visit);
        visit("ecn", Value::Flag(self.ecn));
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        if let Some(old) = old {
            self.applied = old.applied;
            self.law.take_over(&old.law);
        }
        for (which, l) in self.loops.iter_mut().enumerate() {
            let Some(l) = l else { continue };
            // An existing loop continues from its last step; a new one starts now.
            l.observer = match old.and_then(|old| old.loops[which].as_ref()) {
                Some(before) => before.observer,
                None => Observer::new(now, totals),
            };
            l.due = l.observer.last().saturating_add(l.period);
        }
    }

    fn law_mut(&mut self) -> Option<&mut dyn SampledLaw> {
        Some(&mut self.law)
    }

    fn theory(&self) -> &dyn Theory {
        self.law.theory()
    }
}

/// Computes observations of a queue from its counters, each relative to the previous observation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observer {
    last: Instant,
    totals: Totals,
    /// Busy time up to `last`.
    busy: Span,
}

impl Observer {
    /// Observer of a queue with counters `totals` at `now`.
    pub fn new(now: Instant, totals: &Totals) -> Self {
        Observer { last: now, totals: *totals, busy: totals.busy_until(now) }
    }

    /// Time of the previous observation.
    pub fn last(&self) -> Instant {
        self.last
    }

    /// Observes the queue at `now`, with `waiting` packets and the probability `applied`.
    pub fn observe(&mut self, now: Instant, waiting: Backlog, totals: &Totals, applied: Probability) -> Observation {
        let old = &self.totals;
        // A transmission may use only part of a time slot: the counted busy time must not decrease.
        let (interval, busy) = (now - self.last, totals.busy_until(now).max(self.busy));
        let observation = Observation {
            now,
            interval_s: interval.as_secs_f64(),
            queue_pkts: waiting.packets as f64,
            queue_bytes: waiting.bytes as f64,
            arrivals_pkts: (totals.arrivals - old.arrivals) as f64,
            accepted_pkts: (totals.accepted - old.accepted) as f64,
            departures_pkts: (totals.departures - old.departures) as f64,
            departures_bytes: (totals.departed_bytes - old.departed_bytes) as f64,
            busy_s: (totals.busy - old.busy).as_secs_f64(),
            idle_s: interval.saturating_sub(busy - self.busy).as_secs_f64(),
            sojourn_s: totals.last_sojourn.as_secs_f64(),
            applied,
        };
        *self = Observer { last: now, totals: *totals, busy };
        observation
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use aqumen_units::{Bytes, Ecn};

    use super::*;
    use crate::{Account, DropReason, Fates, Fifo, Handle, Limit, Qdisc};

    /// Records idle and busy time of each period of 5 ms, in milliseconds.
    #[derive(Default)]
    struct IdleBusyLog(Vec<(f64, f64)>);

    impl SampledLaw for IdleBusyLog {
        fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
            [Some(Span::from_millis(5)), None]
        }

        fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
            self.0.push((observation.idle_s * 1e3, observation.busy_s * 1e3));
            Probability::ZERO
        }
    }

    struct NoDraws;

    impl Draw for NoDraws {
        fn uniform(&mut self) -> f64 {
            panic!("a probability of 0 must not draw a number")
        }
    }

    impl Fates for NoDraws {
        fn marked(&mut self, _handle: Handle) {}

        fn dropped(&mut self, _handle: Handle, _reason: DropReason) {}
    }

    #[test]
    fn idle_time_is_exact_in_the_middle_of_a_transmission() {
        let mut fifo =
            Fifo::new(SampledAqm::new(IdleBusyLog::default(), false), Limit { packets: 9, bytes: Bytes(9999) });
        let at = |ms: u64| Instant::ZERO + Span::from_millis(ms);
        // Transmissions from 2 to 7 ms and from 14 ms on; samples at 5, 10 and 15 ms.
        fifo.enqueue(0, &Packet { bytes: 1000, ..Packet::default() }, at(2), &mut NoDraws, &mut NoDraws);
        assert_eq!(fifo.dequeue(at(2), &mut NoDraws, &mut NoDraws), Some(0));
        fifo.on_timer(at(5), &mut NoDraws);
        fifo.transmitted(Span::from_millis(5), at(7));
        assert_eq!(fifo.dequeue(at(7), &mut NoDraws, &mut NoDraws), None);
        fifo.on_timer(at(10), &mut NoDraws);
        fifo.enqueue(1, &Packet { bytes: 1000, ..Packet::default() }, at(14), &mut NoDraws, &mut NoDraws);
        assert_eq!(fifo.dequeue(at(14), &mut NoDraws, &mut NoDraws), Some(1));
        fifo.on_timer(at(15), &mut NoDraws);
        // Busy time is counted at the departure: all 5 ms are in the second period.
        assert_eq!(fifo.aqm().law().0, [(2.0, 0.0), (3.0, 5.0), (4.0, 0.0)]);
    }

    #[test]
    fn a_host_that_tosses_the_coin_gets_the_same_verdicts() {
        /// Multiples of the golden ratio, modulo 1.
        struct Golden(f64);
        impl Draw for Golden {
            fn uniform(&mut self) -> f64 {
                self.0 = (self.0 + 0.618_033_988_749_894_9) % 1.0;
                self.0
            }
        }
        /// A probability that rises by 0.1 per millisecond.
        struct Rising;
        impl SampledLaw for Rising {
            fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
                [Some(Span::from_millis(1)), None]
            }

            fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
                Probability::clamp(observation.now.as_secs_f64() * 100.0)
            }
        }
        let account = || Account::new(SampledAqm::new(Rising, true), Limit { packets: 4, bytes: Bytes(9999) });
        let (mut called, mut tossed) = (account(), account());
        let (mut one, mut other) = (Golden(0.0), Golden(0.0));
        let mut verdicts = [0; 3];
        for step in 1..=9 {
            let now = Instant::ZERO + Span::from_millis(step);
            called.on_timer(now, &mut one);
            tossed.on_timer(now, &mut other);
            for ecn in [Ecn::Ect0, Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ect0, Ecn::NotEct] {
                let packet = Packet { bytes: 1000, ecn, ..Packet::default() };
                let verdict = called.arrive(&packet, now, &mut one);
                let coin = tossed.coin().expect("a law tosses a coin");
                assert_eq!(tossed.arrive_by_coin(coin, 1000, ecn, now, &mut other), verdict);
                verdicts[verdict.map_or(2, usize::from)] += 1;
            }
            while called.backlog().packets > 0 {
                called.start_head(1000, Span::ZERO, now);
                tossed.start_head(1000, Span::ZERO, now);
            }
        }
        assert_eq!((called.totals(), one.0), (tossed.totals(), other.0));
        assert!(verdicts.iter().all(|count| *count > 3), "passed, marked, dropped: {verdicts:?}");
    }
}
