//! FQ-CoDel (RFC 8290): flow queueing with CoDel in each queue, the default of many Linux distributions. The scheduler
//! is in [`fq`](crate::fq), CoDel in [`codel`](crate::codel).
//!
//! Where the RFC and Linux differ, the defaults are Linux's:
//! - CoDel exempts a queue if at most an MTU is left *in all queues together* (`backlog = all`). RFC 8289 and ns-3 test
//!   the queue itself (`backlog = queue`); with many flows few queues are then signalled, and their sum is not
//!   controlled.
//! - At overflow the fattest queue loses half of its bytes (`half = bytes`), and CoDel's count rises by the number of
//!   dropped packets (`count_drops`). RFC 8290 section 4.1 drops half of the packets and does not mention the count.
//!   The maximum is 64 packets in both.
//! - `memory` counts the memory of packet buffers (`truesize`).
//!
//! Deviations:
//! - `limit` is the link's buffer unless given; the RFC's and Linux's default is 10240 packets.
//! - At overflow batches are dropped until all packets fit; Linux drops one batch, and may stay above its memory limit.
//! - truesize assumes a separate buffer per packet; Linux counts the driver's allocation.
//! - A turn ends at credits of 0 or below (RFC 8290 section 3, Linux); section 4.2 says "negative".
//! - Linux removes an emptied new queue if there are no old queues, so that its next packet makes it new again; section
//!   4.2 moves it to the old queues. `emptied = gone`.
//! - CoDel's deviations are in [`codel`](crate::codel). `fq-codel-linux` has Linux's limit, MTU, lists and arithmetic.

use crate::algorithm::Algorithm;
use crate::multi::fq::{self, BacklogScope, DropUnit, FlowQueues, FqParams};
use crate::params::joined;
use crate::today::codel::{self, Codel};
use crate::{DefaultValue, Kind, Limit, Network, Param, ParamError, Settings, Value};

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "fq-codel",
    title: "FQ-CoDel",
    summary: "flow queueing with CoDel in each queue: flows share the link fairly, and sparse flows hardly wait",
    reference: "Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet: The Flow Queue CoDel packet scheduler and AQM algorithm, RFC 8290, 2018",
    params: joined![&fq::PARAMS, &[BACKLOG, HALF, COUNT_DROPS], &codel::PARAMS_OF_A_QUEUE],
};

const BACKLOG: Param = Param {
    name: "backlog",
    kind: Kind::Choice(&["queue", "all"]),
    default: DefaultValue::Value(Value::Choice("all")),
    doc: "backlog that CoDel compares with `mtu`: of its own queue (RFC 8289, ns-3), or of all queues (Linux)",
};

const HALF: Param = Param {
    name: "half",
    kind: Kind::Choice(&["bytes", "packets"]),
    default: DefaultValue::Value(Value::Choice("bytes")),
    doc: "unit of the half that the fattest queue loses at overflow: bytes (Linux) or packets (RFC 8290)",
};

const COUNT_DROPS: Param =
    Param::flag("count_drops", true, "add the packets that the fattest queue loses to CoDel's count, as in Linux");

/// Flow queueing with CoDel.
pub type FqCodel = FlowQueues<Codel>;

impl FqCodel {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network, limit: Limit) -> Result<Self, ParamError> {
        let shown = if settings.choice("backlog") == Some("queue") { BacklogScope::Queue } else { BacklogScope::All };
        let half = if settings.choice("half") == Some("packets") { DropUnit::Packets } else { DropUnit::Bytes };
        let count_drops = Some(settings.flag("count_drops").unwrap_or(true));
        let params =
            FqParams { backlog: Some(shown), half: Some(half), count_drops, ..FqParams::from_settings(settings)? };
        Ok(FlowQueues::new(params, Codel::for_flow_queue(settings, network)?, limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi::testing::{Fixed, Log, NETWORK, flow};
    use crate::{Handle, Qdisc};
    use aqumen_units::{Instant, Span};
    use std::vec::Vec;

    /// A link that sends one packet each millisecond. Flow 1 keeps fifty packets waiting, flow 2 sends one each 10 ms.
    /// Handles of flow 2 are odd. Returns marks with their milliseconds, up to `until_ms`.
    fn marks(qdisc: &mut impl Qdisc, until_ms: u64) -> Vec<(u64, Handle)> {
        let (mut rng, mut log, mut next) = (Fixed(0.5), Log::default(), 0);
        let mut marks = Vec::new();
        for ms in 0..until_ms {
            let now = Instant::ZERO + Span::from_millis(ms);
            if qdisc.next_timer().is_some_and(|due| due <= now) {
                qdisc.on_timer(now, &mut rng);
            }
            if ms % 10 == 0 {
                qdisc.enqueue(2 * ms as u32 + 1, &flow(2, 1000), now, &mut rng, &mut log);
            }
            while qdisc.backlog().packets < 50 {
                qdisc.enqueue(2 * next, &flow(1, 1000), now, &mut rng, &mut log);
                next += 1;
            }
            assert!(qdisc.dequeue(now, &mut rng, &mut log).is_some());
            qdisc.transmitted(Span::from_millis(1), now + Span::from_millis(1));
            marks.extend(log.marked.drain(..).map(|handle| (ms, handle)));
        }
        marks
    }

    #[test]
    fn codel_acts_on_each_queue_separately() {
        let mut fq = FqCodel::from_settings(&Settings::NONE, &NETWORK, Limit::packets(1000)).unwrap();
        let marks = marks(&mut fq, 400);
        // Flow 1's packets have waited 5 ms from 5 ms on: signals are in order from 105 ms on, then 100, 70.7, 57.7 and
        // 50 ms apart. A slot that is flow 2's moves a mark by a millisecond.
        let times: Vec<u64> = marks.iter().map(|&(ms, _)| ms).collect();
        assert_eq!(times, [105, 205, 276, 334, 384]);
        assert!(marks.iter().all(|(_, handle)| handle % 2 == 0), "{marks:?}");
    }

    #[test]
    fn overflow_drops_half_of_the_bytes_or_half_of_the_packets() {
        // 1400 + 4 * 400 + 100 B = 3100 B; half is 1550: the first packet leaves 1700, the second 1300 B.
        // Of six packets half are three.
        let lost = |given: &[(&'static str, Value<'static>)]| {
            let settings = Settings::check(given, ALGORITHM.params).unwrap();
            let mut fq = FqCodel::from_settings(&settings, &NETWORK, Limit::packets(6)).unwrap();
            let (mut rng, mut log) = (Fixed(0.5), Log::default());
            for (handle, of, bytes) in
                [(0, 1, 1400), (1, 1, 400), (2, 1, 400), (3, 1, 400), (4, 1, 400), (5, 1, 100), (20, 2, 100)]
            {
                fq.enqueue(handle, &flow(of, bytes), Instant::ZERO, &mut rng, &mut log);
            }
            log.dropped
        };
        assert_eq!(lost(&[]), [0, 1]);
        assert_eq!(lost(&[("half", Value::Choice("packets"))]), [0, 1, 2]);
    }

    #[test]
    fn codel_observes_the_backlog_of_all_queues_or_of_its_own() {
        // Forty flows with one packet each: every queue has nothing left behind its packet, so that CoDel is
        // quiet, but all together have.
        let marked = |backlog| {
            let given = [("backlog", Value::Choice(backlog)), ("queues", Value::Number(65_536.0))];
            let settings = Settings::check(&given, ALGORITHM.params).unwrap();
            let mut fq = FqCodel::from_settings(&settings, &NETWORK, Limit::packets(1000)).unwrap();
            let (mut rng, mut log) = (Fixed(0.5), Log::default());
            for ms in 0..2000 {
                let now = Instant::ZERO + Span::from_millis(ms);
                while fq.backlog().packets < 40 {
                    let next = fq.totals().arrivals as u32;
                    fq.enqueue(next, &flow(next % 40, 1000), now, &mut rng, &mut log);
                }
                fq.dequeue(now, &mut rng, &mut log);
            }
            log.marked.len()
        };
        // Packets wait for 40 ms, and each queue counts for itself: signals from 100 ms on, more and more.
        assert_eq!(marked("queue"), 0);
        assert!(marked("all") > 40, "{}", marked("all"));
    }
}
