//! FQ-PIE: flow queueing with PIE in each queue, after the FreeBSD implementation by Al-Saadi and Armitage and Linux's
//! `sch_fq_pie`. The scheduler is in [`fq`](crate::fq), PIE in [`pie`](crate::pie).
//!
//! Deviations:
//! - There is no RFC. The scheduler is that of RFC 8290, also at overflow: the fattest queue drops packets. Linux and
//!   draft-tahiliani-tsvwg-fq-pie drop the arriving packet: `overflow = arriving`.
//! - PIE has its own defaults (RFC 8033): `derandomize` is on, and packets are marked up to a probability of 0.1.
//! - All queues are updated at the same times; Linux distributes more than 2048 queues over several jiffies.
//! - `memory` is enforced; Linux only counts it.
//! - `on_off`: "a third of the buffer" refers to the buffer of all queues.
//! - PIE's deviations are in [`pie`](crate::pie). `fq-pie-linux` has Linux's limit, lists, safeguards and ECN default.

use crate::algorithm::Algorithm;
use crate::multi::fq::{self, FlowQueues, FqParams, OverflowVictim};
use crate::params::joined;
use crate::today::pie::{self, Pie};
use crate::{DefaultValue, Kind, Limit, Network, Param, ParamError, Settings, Value};

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "fq-pie",
    title: "FQ-PIE",
    summary: "flow queueing with PIE in each queue",
    reference: "Al-Saadi, Armitage: Dummynet AQM v0.2: CoDel, FQ-CoDel, PIE and FQ-PIE for FreeBSD's ipfw/dummynet framework, 2016",
    params: joined![&fq::PARAMS, &[OVERFLOW], &pie::PARAMS_OF_A_QUEUE],
};

const OVERFLOW: Param = Param {
    name: "overflow",
    kind: Kind::Choice(&["fattest", "arriving"]),
    default: DefaultValue::Value(Value::Choice("fattest")),
    doc: "packets dropped at overflow: from the fattest queue (RFC 8290), or the arriving one, as in Linux",
};

/// Flow queueing with PIE.
pub type FqPie = FlowQueues<Pie>;

impl FqPie {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network, limit: Limit) -> Result<Self, ParamError> {
        let gives_way = if settings.choice("overflow") == Some("arriving") {
            OverflowVictim::Arriving
        } else {
            OverflowVictim::Fattest
        };
        let params = FqParams { overflow: Some(gives_way), ..FqParams::from_settings(settings)? };
        Ok(FlowQueues::new(params, Pie::for_flow_queue(settings, network)?, limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi::testing::{Fixed, Log, NETWORK, flow};
    use crate::testing::Lehmer;
    use crate::{Aqm, Cx, Draw, Handle, Packet, Qdisc, Totals, Verdict};
    use aqumen_units::{Instant, Probability, Span};
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn overflow_drops_from_the_fattest_queue_or_the_arriving_packet() {
        for (overflow, lost) in [("fattest", [0, 1]), ("arriving", [21, 22])] {
            let given = [("overflow", Value::Choice(overflow))];
            let settings = Settings::check(&given, ALGORITHM.params).unwrap();
            let mut fq = FqPie::from_settings(&settings, &NETWORK, Limit::packets(4)).unwrap();
            let (mut rng, mut log) = (Fixed(0.5), Log::default());
            for (handle, of) in [(0, 1), (1, 1), (2, 1), (20, 2), (21, 2), (22, 2)] {
                fq.enqueue(handle, &flow(of, 1000), Instant::ZERO, &mut rng, &mut log);
            }
            // A batch is half of the three packets of flow 1, that is two: there is room for the last packet then.
            assert_eq!(log.dropped, lost, "{overflow}");
            let totals = fq.totals();
            assert_eq!((totals.arrivals, totals.overflow_dropped, fq.backlog().packets), (6, 2, 4), "{overflow}");
        }
    }

    /// PIE that is never quiescent.
    #[derive(Clone, Debug)]
    struct AlwaysAwake(Pie);

    impl Aqm for AlwaysAwake {
        fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
            self.0.on_arrival(packet, cx)
        }

        fn on_overflow<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) {
            self.0.on_overflow(packet, cx);
        }

        fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
            self.0.on_dequeue(packet, sojourn, cx)
        }

        fn next_timer(&self) -> Option<Instant> {
            self.0.next_timer()
        }

        fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
            self.0.on_timer(cx);
        }

        fn probability(&self) -> Probability {
            self.0.probability()
        }

        fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
            self.0.take_over(old.map(|old| &old.0), now, totals);
        }
    }

    /// Marks, drops and timer times over 20 s of bursts of four flows, with pauses of up to 2 s. In the middle the
    /// parameters change to those of `other`.
    fn fates<A: Aqm + Clone>(aqm: A, other: A) -> (Log, Vec<(u64, f64)>) {
        let params = FqParams { queues: 16, overflow: Some(OverflowVictim::Fattest), ..FqParams::default() };
        let mut fq = FlowQueues::new(params, aqm, Limit::packets(40));
        let (mut rng, mut log, mut seen) = (Lehmer(7), Log::default(), Vec::new());
        let mut draws = Lehmer(99);
        let (mut now, mut number) = (Instant::ZERO, 0);
        while now < Instant::ZERO + Span::from_secs(20) {
            now += Span::from_micros(1 + (draws.uniform() * 3_000.0) as u64);
            if draws.uniform() < 0.002 {
                now += Span::from_millis((draws.uniform() * 2_000.0) as u64);
            }
            if number == 6_000 {
                fq.retune(FlowQueues::new(params, other.clone(), Limit::packets(40)), now);
            }
            while let Some(due) = fq.next_timer().filter(|due| *due <= now) {
                fq.on_timer(due, &mut rng);
            }
            for _ in 0..(draws.uniform() * 4.0) as u32 {
                fq.enqueue(number, &flow((draws.uniform() * 4.0) as u32, 1000), now, &mut rng, &mut log);
                number += 1;
            }
            fq.dequeue(now, &mut rng, &mut log);
            fq.transmitted(Span::from_micros(500), now);
            seen.push((fq.next_timer().unwrap().as_nanos(), fq.probability().get()));
        }
        (log, seen)
    }

    #[test]
    fn skipping_quiescent_queues_changes_no_result() {
        for settings in [
            vec![("ecn", Value::Flag(false))],
            vec![("safeguards", Value::Choice("linux")), ("start", Value::Number(0.5))],
            vec![("delay", Value::Choice("rate")), ("safeguards", Value::Choice("linux"))],
            vec![("on_off", Value::Flag(true))],
        ] {
            let pie = |target| {
                let mut given = settings.clone();
                given.push(("target", Value::Number(target)));
                Pie::for_flow_queue(&Settings::check(&given, ALGORITHM.params).unwrap(), &NETWORK).unwrap()
            };
            let (lazy, beats) = fates(pie(0.005), pie(0.002));
            let (restless, all) = fates(AlwaysAwake(pie(0.005)), AlwaysAwake(pie(0.002)));
            assert!(lazy.dropped.len() + lazy.marked.len() > 100, "{settings:?}");
            assert_eq!((lazy.marked, lazy.dropped), (restless.marked, restless.dropped), "{settings:?}");
            assert_eq!(beats, all, "{settings:?}");
        }
    }

    #[test]
    fn only_queues_that_are_not_quiescent_are_updated() {
        let settings = Settings::check(&[("queues", Value::Number(1024.0))], ALGORITHM.params).unwrap();
        let mut fq = FqPie::from_settings(&settings, &NETWORK, Limit::packets(100)).unwrap();
        let (mut rng, mut log) = (Fixed(0.5), Log::default());
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        assert_eq!(fq.awake().len(), 1024);
        fq.on_timer(at(15), &mut rng);
        assert!(fq.awake().is_empty());
        fq.enqueue(0, &flow(1, 1000), at(20), &mut rng, &mut log);
        fq.on_timer(at(30), &mut rng);
        assert_eq!(fq.awake().len(), 1);
        // After the departure, the delay is 0 again at the next update.
        fq.dequeue(at(31), &mut rng, &mut log);
        fq.on_timer(at(45), &mut rng);
        assert!(fq.awake().is_empty());
        assert_eq!(fq.next_timer(), Some(at(60)));
    }

    #[test]
    fn pie_acts_on_each_queue_by_its_own_delay() {
        // One packet each millisecond. Flow 1 keeps fifty waiting, that is 50 ms above PIE's 15; flow 2 sends one each
        // 10 ms. Signals are marks, up to a probability of 0.1, then drops.
        let mut fq = FqPie::from_settings(&Settings::NONE, &NETWORK, Limit::packets(1000)).unwrap();
        let (mut rng, mut log, mut next) = (Fixed(0.001), Log::default(), 0);
        for ms in 0..2000u32 {
            let now = Instant::ZERO + Span::from_millis(u64::from(ms));
            if fq.next_timer().is_some_and(|due| due <= now) {
                fq.on_timer(now, &mut rng);
            }
            if ms % 10 == 0 {
                fq.enqueue(2 * ms + 1, &flow(2, 1000), now, &mut rng, &mut log);
            }
            for _ in 0..2 {
                if fq.backlog().packets < 50 {
                    fq.enqueue(2 * next, &flow(1, 1000), now, &mut rng, &mut log);
                    next += 1;
                }
            }
            fq.dequeue(now, &mut rng, &mut log);
            fq.transmitted(Span::from_millis(1), now + Span::from_millis(1));
        }
        let signalled: Vec<Handle> = log.marked.iter().chain(&log.dropped).copied().collect();
        assert!(signalled.len() > 10, "{signalled:?}");
        assert!(signalled.iter().all(|handle| handle % 2 == 0), "{signalled:?}");
        assert!(fq.probability().get() > 0.0);
        // The timer keeps PIE's period of 15 ms: 2000 ms are past the 133rd.
        assert_eq!(fq.next_timer(), Some(Instant::ZERO + Span::from_millis(2010)));
    }
}
