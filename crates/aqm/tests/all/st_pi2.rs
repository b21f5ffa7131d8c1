//! Properties of ST-PI2 before a link: its probabilities, exempt packets, scales of times and sizes, floods.

use std::collections::VecDeque;

use aqumen_aqm::{Aqm, Cx, Limit, Packet, QueueView, StPi2, StPi2Params, Totals, Verdict};
use aqumen_units::{Ecn, Instant, Span};
use proptest::prelude::*;

use crate::common::{Fixed, config};
use crate::random::Random;
use crate::replay::observed;

/// A packet before the queue. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: u64,
    flow: u32,
    bytes: u32,
    ecn: Ecn,
    syn: bool,
}

/// Fate of an arrival, and the number of packets that waited before it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    verdict: Verdict,
    waiting: u32,
}

/// Lets `arrivals` pass `aqm` and a link that needs `byte_ns` for a byte; shows each state of the law to `step`.
fn pass(aqm: &mut StPi2, arrivals: &[Arrival], byte_ns: u64, mut step: impl FnMut(&StPi2)) -> Vec<Seen> {
    let (mut queue, mut bytes, mut totals) = (VecDeque::new(), 0, Totals::default());
    let mut ends: Option<u64> = None;
    let mut seen = Vec::with_capacity(arrivals.len());
    let mut next = 0;
    while let Some(arrival) = arrivals.get(next) {
        let timer = aqm.next_timer().unwrap().as_nanos();
        let now = timer.min(arrival.at).min(ends.unwrap_or(u64::MAX));
        let view =
            QueueView { packets: queue.len() as u32, bytes, limit: Limit::packets(u32::MAX), totals: &totals.clone() };
        let cx = &mut Cx { now: Instant::from_nanos(now), queue: view, rng: &mut Fixed(0.5) };
        if now == timer {
            aqm.on_timer(cx);
            step(aqm);
            continue;
        }
        if ends == Some(now) {
            let since = totals.transmitting_since.take().unwrap();
            let sent: u64 = (now - since.as_nanos()) / byte_ns;
            totals.departures += 1;
            totals.departed_bytes += sent;
            totals.busy += Span::from_nanos(now - since.as_nanos());
            ends = None;
        } else {
            let Arrival { flow, bytes: size, ecn, syn, .. } = *arrival;
            let packet = Packet { bytes: size, ecn, segments: 1, flow_hash: flow, syn, ..Packet::default() };
            let verdict = aqm.on_arrival(&packet, cx);
            seen.push(Seen { verdict, waiting: queue.len() as u32 });
            next += 1;
            if !matches!(verdict, Verdict::Drop(_)) {
                queue.push_back(size);
                bytes += u64::from(size);
            }
        }
        if ends.is_none() && !queue.is_empty() {
            let size = u64::from(queue.pop_front().unwrap());
            bytes -= size;
            totals.transmitting_since = Some(Instant::from_nanos(now));
            ends = Some(now + size * byte_ns);
        }
    }
    seen
}

/// Packets of `flows` flows at `load` times a link of 1 ms for 1000 B, each flow after a handshake of 40 ms.
fn load(seed: u64, flows: u32, load: f64, seconds: u64, sizes: &[u32]) -> Vec<Arrival> {
    let mut draw = Random(seed);
    let mut below = |n: u64| draw.bits() % n;
    let mean: u64 = sizes.iter().map(|&size| u64::from(size)).sum::<u64>() / sizes.len() as u64;
    let mut arrivals = Vec::new();
    for flow in 0..flows {
        let at = 2 * below(5_000_000);
        let handshake = Arrival { at, flow, bytes: 60, ecn: Ecn::NotEct, syn: true };
        arrivals.extend([handshake, Arrival { at: at + 40_000_000, syn: false, ..handshake }]);
    }
    for _ in 0..(load * (seconds * 1_000_000) as f64 / mean as f64) as u64 {
        let flow = below(u64::from(flows)).min(below(u64::from(flows))) as u32;
        arrivals.push(Arrival {
            at: 50_000_000 + 2 * below(seconds * 500_000_000),
            flow,
            bytes: sizes[flow as usize % sizes.len()],
            ecn: [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][flow as usize % 3],
            syn: false,
        });
    }
    arrivals.sort_by_key(|arrival| arrival.at);
    arrivals
}

fn st_pi2(rtt_s: f64) -> StPi2 {
    StPi2::new(StPi2Params { rtt_s, ..StPi2Params::default() }).unwrap()
}

fn signals(seen: &[Seen]) -> usize {
    seen.iter().filter(|seen| seen.verdict != Verdict::Pass).count()
}

proptest! {
    #![proptest_config(config(32))]

    #[test]
    fn the_root_and_the_share_of_signals_are_probabilities(
        seed in any::<u64>(), flows in 1..60u32, of_link in 0.2..6.0f64, exempt in 0.0..8.0f64,
    ) {
        let params = StPi2Params { exempt_pkts: exempt, ..StPi2Params::default() };
        let (mut aqm, mut wrong) = (StPi2::new(params).unwrap(), Vec::new());
        let arrivals = load(seed, flows, of_link, 1, &[1500, 100, 700]);
        let seen = pass(&mut aqm, &arrivals, 1000, |aqm| {
            let state = observed(|visit| aqm.observe(visit));
            let roots = ["root_probability", "root_average"].iter().all(|&name| (0.0..=1.0).contains(&state[name]));
            let known = state["capacity"] == 0.0 || state["target_delay"] * state["capacity"] / 8.0 >= exempt * 40.0;
            let finite = state.values().all(|value| value.is_finite());
            if !(roots && known && finite && (0.0..=1.0).contains(&aqm.probability().get())) {
                wrong.push(state);
            }
        });
        prop_assert!(wrong.is_empty(), "{:?}", wrong[0]);
        for seen in seen.iter().filter(|seen| seen.verdict != Verdict::Pass) {
            prop_assert!(f64::from(seen.waiting) > exempt, "a signal while {} packets waited", seen.waiting);
        }
    }

    /// A link twice as fast, whose times are half as long, and one with packets twice as large at twice the rate.
    #[test]
    fn decisions_do_not_depend_on_the_scale_of_times_and_sizes(seed in any::<u64>(), flows in 1..20u32) {
        let slow = load(seed, flows, 1.6, 2, &[1500, 300]);
        let fast: Vec<_> = slow.iter().map(|&arrival| Arrival { at: arrival.at / 2, ..arrival }).collect();
        let large: Vec<_> = slow.iter().map(|&arrival| Arrival { bytes: 2 * arrival.bytes, ..arrival }).collect();
        let first = pass(&mut st_pi2(0.1), &slow, 1000, |_| {});
        prop_assert!(signals(&first) > 10);
        prop_assert_eq!(&first, &pass(&mut st_pi2(0.05), &fast, 500, |_| {}));
        prop_assert_eq!(&first, &pass(&mut st_pi2(0.1), &large, 500, |_| {}));
    }

    /// Eight flows of 1500 B at a tenth of the link each, beside one of 100 B packets at the whole link.
    #[test]
    fn a_flood_of_small_packets_is_not_spared(seed in any::<u64>()) {
        let mut arrivals = load(seed, 8, 0.8, 3, &[1500]);
        let flood: Vec<_> = load(seed ^ 1, 1, 1.0, 3, &[100]).into_iter().filter(|a| a.bytes == 100).collect();
        arrivals.extend(flood.into_iter().map(|arrival| Arrival { flow: 1000, ..arrival }));
        arrivals.iter_mut().for_each(|arrival| arrival.ecn = Ecn::NotEct);
        arrivals.sort_by_key(|arrival| arrival.at);
        let seen = pass(&mut st_pi2(0.1), &arrivals, 1000, |_| {});
        let lost = |of: &dyn Fn(u32) -> bool| {
            let fates: Vec<_> = arrivals.iter().zip(&seen).filter(|(a, _)| of(a.flow)).map(|(_, &s)| s).collect();
            signals(&fates) as f64 / fates.len() as f64
        };
        let (small, large) = (lost(&|flow| flow == 1000), lost(&|flow| flow != 1000));
        prop_assert!(small > large, "{small} of the flood, {large} of the others");
    }
}
