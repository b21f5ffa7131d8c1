//! An algorithm that decides packet by packet, asked packet by packet: the fluid that arrives in a step is cut into
//! evenly spaced packets, and the share that the algorithm signals is the probability of the next step. Its random
//! numbers are the same in every run.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Cx, Draw, DropReason, Limit, Packet, QueueView, Totals, Verdict};
use aqumen_units::{Ecn, Instant, Span};

/// An algorithm with the packets that it is shown.
#[derive(Debug)]
pub(crate) struct Packets {
    pub(crate) aqm: AnyAqm,
    limit: Limit,
    packet: Packet,
    totals: Totals,
    rng: SplitMix,
    /// Fluid that has not made a whole packet yet: arrived, departed, overflown.
    uncounted: [f64; 3],
    /// Signals that the fluid has not got yet.
    pending: f64,
    p: f64,
    loses: bool,
}

/// Throughput of a queue in a step, packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepThroughput {
    pub(crate) arrivals: f64,
    pub(crate) departures: f64,
    pub(crate) overflow: f64,
}

/// SplitMix64 (Steele, Lea, Flood 2014) from a fixed start.
#[derive(Clone, Copy, Debug)]
struct SplitMix(u64);

impl Draw for SplitMix {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Packets {
    pub(crate) fn new(aqm: AnyAqm, buffer_pkts: f64, packet_bytes: f64, ect: bool) -> Self {
        Packets {
            aqm,
            limit: Limit::packets(buffer_pkts.min(f64::from(u32::MAX)) as u32),
            packet: Packet {
                bytes: packet_bytes as u32,
                ecn: if ect { Ecn::Ect0 } else { Ecn::NotEct },
                segments: 1,
                ..Packet::default()
            },
            totals: Totals::default(),
            rng: SplitMix(0),
            uncounted: [0.0; 3],
            pending: 0.0,
            p: 0.0,
            loses: !ect,
        }
    }

    /// Share of the packets that are signalled at the moment.
    pub(crate) fn probability(&self) -> f64 {
        self.p
    }

    /// Whether signals are losses although packets can carry marks.
    pub(crate) fn loses(&self) -> bool {
        self.loses
    }

    pub(crate) fn due_ns(&self) -> u64 {
        self.aqm.next_timer().map_or(u64::MAX, Instant::as_nanos)
    }

    pub(crate) fn on_timer(&mut self, now_ns: u64, queue_pkts: f64) {
        let queue = view(queue_pkts, &self.packet, self.limit, &self.totals);
        self.aqm.on_timer(&mut Cx { now: Instant::from_nanos(now_ns), queue, rng: &mut self.rng });
    }

    /// A step from `from_ns` to `to_ns` has `passed` through a queue of `queue_pkts`, which takes `sojourn_s` to cross.
    pub(crate) fn meet(&mut self, from_ns: u64, to_ns: u64, passed: StepThroughput, queue_pkts: f64, sojourn_s: f64) {
        self.pending -= self.p * passed.arrivals;
        let parts = [passed.arrivals, passed.departures, passed.overflow];
        let mut whole = [0u64; 3];
        for ((left, part), whole) in self.uncounted.iter_mut().zip(parts).zip(&mut whole) {
            *left += part.max(0.0);
            *whole = libm::floor(*left) as u64;
            *left -= *whole as f64;
        }
        let sojourn = Span::from_secs_f64(sojourn_s);
        self.totals.last_sojourn = sojourn;
        let [arrivals, departures, overflows] = whole;
        for k in 0..arrivals {
            let now = spaced(from_ns, to_ns, k, arrivals);
            let queue = view(queue_pkts, &self.packet, self.limit, &self.totals);
            let verdict = self.aqm.on_arrival(&self.packet, &mut Cx { now, queue, rng: &mut self.rng });
            self.count(verdict);
            self.totals.arrivals += 1;
            self.totals.arrived_bytes += u64::from(self.packet.bytes);
            if k < overflows {
                let queue = view(queue_pkts, &self.packet, self.limit, &self.totals);
                self.aqm.on_overflow(&self.packet, &mut Cx { now, queue, rng: &mut self.rng });
                self.totals.discard(DropReason::Overflow);
            } else {
                self.totals.accepted += 1;
            }
            if queue_pkts <= 0.0 {
                self.aqm.on_idle(now);
            }
        }
        for k in 0..departures {
            let now = spaced(from_ns, to_ns, k, departures);
            let queue = view(queue_pkts, &self.packet, self.limit, &self.totals);
            let verdict = self.aqm.on_dequeue(&self.packet, sojourn, &mut Cx { now, queue, rng: &mut self.rng });
            self.count(verdict);
            self.aqm.on_departure(now);
            self.totals.departures += 1;
            self.totals.departed_bytes += u64::from(self.packet.bytes);
        }
        self.p = if passed.arrivals > 0.0 { (self.pending / passed.arrivals).clamp(0.0, 1.0) } else { 0.0 };
    }

    fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark => {
                self.pending += 1.0;
                self.loses = false;
                self.totals.marked += 1;
            }
            // The fluid overflows by itself; a forced drop is the algorithm's own.
            Verdict::Drop(DropReason::Early | DropReason::Overflow) => {
                self.pending += 1.0;
                self.loses = true;
                self.totals.discard(DropReason::Early);
            }
        }
    }
}

/// When packet `k` of `n` passes that are evenly spaced over a step, half a gap from its ends.
fn spaced(from_ns: u64, to_ns: u64, k: u64, n: u64) -> Instant {
    Instant::from_nanos(from_ns + (to_ns - from_ns) * (2 * k + 1) / (2 * n))
}

fn view<'t>(queue_pkts: f64, packet: &Packet, limit: Limit, totals: &'t Totals) -> QueueView<'t> {
    let packets = libm::round(queue_pkts.max(0.0)) as u32;
    QueueView { packets, bytes: u64::from(packets) * u64::from(packet.bytes), limit, totals }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_a_step_are_a_gap_apart_and_half_a_gap_from_its_ends() {
        // Four in 800 ns: gaps of 200.
        let at: Vec<u64> = (0..4).map(|k| spaced(1000, 1800, k, 4).as_nanos()).collect();
        assert_eq!(at, [1100, 1300, 1500, 1700]);
        assert_eq!(spaced(1000, 1800, 0, 1).as_nanos(), 1400);
    }

    /// Packets of 1000 bytes, of which so large a share is marked.
    fn signalling(share: f64) -> Packets {
        use aqumen_aqm::{MAX_LOOPS, Observation, SampledLaw};
        use aqumen_units::Probability;
        #[derive(Clone)]
        struct FixedProbability(f64);
        impl SampledLaw for FixedProbability {
            fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
                [None, None]
            }
            fn step(&mut self, _which: usize, _seen: &Observation) -> Probability {
                self.initial()
            }
            fn initial(&self) -> Probability {
                Probability::clamp(self.0)
            }
        }
        Packets::new(AnyAqm::custom_law(FixedProbability(share), true), 100.0, 1000.0, true)
    }

    #[test]
    fn the_algorithm_sees_each_whole_packet_and_what_became_of_it() {
        // In 40 steps 90 packets arrive, of which 10 find no room, and 80.4 leave: 80 whole ones.
        let mut packets = signalling(0.0);
        for k in 0..40 {
            let passed = StepThroughput { arrivals: 2.25, departures: 2.01, overflow: 0.25 };
            packets.meet(k * 1_000_000, (k + 1) * 1_000_000, passed, 99.0, 0.05);
        }
        let Totals { arrivals, arrived_bytes, accepted, overflow_dropped, early_dropped, marked, .. } = packets.totals;
        assert_eq!((arrivals, arrived_bytes, accepted, overflow_dropped), (90, 90_000, 80, 10));
        assert_eq!((packets.totals.departures, packets.totals.departed_bytes), (80, 80_000));
        assert_eq!((early_dropped, marked, packets.totals.last_sojourn), (0, 0, Span::from_millis(50)));
    }

    #[test]
    fn what_the_algorithm_signals_reaches_the_fluid_in_full() {
        // Every fourth packet is marked: of 2.5 packets a step, 4000 steps, 2500.
        let mut packets = signalling(0.25);
        let mut signalled = 0.0;
        for k in 0..4000 {
            signalled += 2.5 * packets.probability();
            let passed = StepThroughput { arrivals: 2.5, departures: 2.5, overflow: 0.0 };
            packets.meet(k * 1_000_000, (k + 1) * 1_000_000, passed, 10.0, 0.01);
        }
        assert_eq!(packets.totals.arrivals, 10_000);
        assert!((signalled - packets.totals.marked as f64).abs() < 3.0, "{signalled} {}", packets.totals.marked);
        // Binomial: 2500 with a standard deviation of 43.
        assert!((signalled - 2500.0).abs() < 130.0, "{signalled}");
        assert!(!packets.loses());
    }
}
