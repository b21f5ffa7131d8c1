//! FQ-PIE: flow queueing with PIE in each queue, after the FreeBSD implementation by Al-Saadi and Armitage and Linux's `sch_fq_pie`.
//! The scheduler is in [`fq`](crate::fq), PIE in [`pie`](crate::pie).
//!
//! Deviations:
//! - No RFC describes it. The scheduler is that of RFC 8290, also when the limit is passed: the fattest queue gives way. Linux and
//!   draft-tahiliani-tsvwg-fq-pie refuse the arriving packet: `overflow = arriving`.
//! - PIE's parameters and safeguards are its own (RFC 8033), so `derandomize` is on, and packets are marked up to a probability
//!   of 0.1.
//! - All queues are updated at the same times; Linux spreads more than 2048 over several jiffies.
//! - `memory` is enforced; Linux counts it, and lets packets in all the same.
//! - `on_off`: "a third of the buffer" means of the buffer of all queues together.
//! - PIE's own are in [`pie`](crate::pie). `fq-pie-linux` has Linux's limit, safeguards and ECN default.

use crate::algorithm::Algorithm;
use crate::multi::fq::{self, FlowQueues, FqParams, GivesWay};
use crate::today::pie::{self, Pie};
use crate::{DefaultValue, Kind, Limit, Network, Param, ParamError, Settings, Value};

/// Its row.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "fq-pie",
    title: "FQ-PIE",
    summary: "flow queueing with PIE in each queue",
    reference: "Al-Saadi, Armitage: Dummynet AQM v0.2: CoDel, FQ-CoDel, PIE and FQ-PIE for FreeBSD's ipfw/dummynet framework, 2016",
    params: &fq::params::<{ fq::PARAMS.len() + 1 + pie::PARAMS_OF_A_QUEUE.len() }>(
        &[OVERFLOW],
        &pie::PARAMS_OF_A_QUEUE,
    ),
};

const OVERFLOW: Param = Param {
    name: "overflow",
    kind: Kind::Choice(&["fattest", "arriving"]),
    default: DefaultValue::Value(Value::Choice("fattest")),
    doc: "who gives way when the limit is passed: the fattest queue (RFC 8290), or the arriving packet, as in Linux",
};

/// Flow queueing with PIE.
pub type FqPie = FlowQueues<Pie>;

impl FqPie {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network, limit: Limit) -> Result<Self, ParamError> {
        let gives_way =
            if settings.choice("overflow") == Some("arriving") { GivesWay::Arriving } else { GivesWay::Fattest };
        let params = FqParams { overflow: Some(gives_way), ..FqParams::from_settings(settings)? };
        Ok(FlowQueues::new(params, Pie::in_a_bank(settings, network)?, limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi::testing::{Fixed, Log, NETWORK, flow};
    use crate::{Handle, Qdisc};
    use aqumen_units::{Instant, Span};
    use std::vec::Vec;

    #[test]
    fn the_fattest_queue_gives_way_or_the_arriving_packet() {
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

    #[test]
    fn pie_judges_each_queue_by_its_own_delay() {
        // One packet each millisecond. Flow 1 keeps fifty waiting, that is 50 ms above PIE's 15; flow 2 sends one each 10 ms. Signals are
        // marks, up to a probability of 0.1, then drops.
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
