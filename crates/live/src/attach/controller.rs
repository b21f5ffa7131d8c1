//! Controller of one queue: maps readings of the shaper and the marker to a probability.
//!
//! A reading is converted to the AQM's observation. Packets are the backlog in bytes over the mean packet size, since
//! the kernel counts a super-packet as one packet. The sojourn time is the backlog over the departure rate. The
//! transmitter is busy while there is a backlog. The AQM is stepped by its own timer, once it regulates: see [`Phase`].
//!
//! If readings are further apart than the lifetime of an order, the marker passed everything meanwhile, and the queue
//! says nothing about the load. The AQM is then suspended until it is restarted.

use std::time::Duration;

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Cx, Draw, Limit, PacketRule, QueueView, Totals};
use aqumen_units::{Bytes, Instant, Rate, Span};

use super::decayed_ratio::DecayedRatio;
use super::marker::Counts;
use super::startup::Startup;
use crate::netlink::tc::Stats;
use crate::telemetry::DEADLINE;

/// Time constant of the mean packet size, seconds.
const PACKET_TIME_S: f64 = 1.0;
/// Time constant of the departure rate, in seconds with a backlog.
const RATE_TIME_S: f64 = 0.5;
/// Backlogged time below which the shaper's configured rate is used, seconds.
const RATE_WARMUP_S: f64 = 0.05;

/// Counters of marker and shaper at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    pub(crate) counts: Counts,
    pub(crate) queue: Stats,
}

#[derive(Debug)]
pub(crate) struct Controller {
    aqm: AnyAqm,
    limit: Limit,
    totals: Totals,
    last: Option<Reading>,
    /// Bytes over packets.
    packet: DecayedRatio,
    /// Bits over backlogged seconds.
    rate: DecayedRatio,
    /// Configured rate of the shaper.
    nominal: Rate,
    /// Whether departures may pause without congestion.
    radio: bool,
    phase: Phase,
}

/// Whether the AQM regulates. It is stepped only while it does: otherwise it would wind up.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Everything passes.
    Suspended,
    /// The standing queue is drained first.
    Startup(Startup),
    /// The AQM's probability is in force.
    Regulating,
}

/// State of the queue after a reading, and the probability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct State {
    pub(crate) backlog_bytes: u32,
    pub(crate) backlog_pkts: f64,
    /// Backlog over the departure rate, seconds.
    pub(crate) sojourn_s: f64,
    /// Probability from now on.
    pub(crate) p: f64,
    /// Departure rate while backlogged, bit/s.
    pub(crate) link_bps: f64,
    pub(crate) packet_bytes: f64,
    /// Bytes that left since the previous reading.
    pub(crate) departed_bytes: u64,
    /// Time since the previous reading, seconds.
    pub(crate) interval_s: f64,
    /// Whether there was a backlog at the previous reading and at this one.
    pub(crate) backlogged: bool,
    /// Whether the previous reading is older than the lifetime of an order: everything passed meanwhile.
    pub(crate) after_gap: bool,
    /// Rule from now on of an AQM that signals flow by flow, while it regulates.
    pub(crate) rule: Option<PacketRule>,
}

/// Unused random source: the marker makes the random choice.
struct UnusedRandomness;

impl Draw for UnusedRandomness {
    fn uniform(&mut self) -> f64 {
        0.5
    }
}

impl Controller {
    /// Controls an empty queue with this `limit`; `packet_bytes` and `rate` are first estimates.
    pub(crate) fn new(aqm: AnyAqm, limit: Limit, packet_bytes: f64, rate: Rate) -> Self {
        // The initial estimate weighs as much as two packets.
        let mut packet = DecayedRatio::new(PACKET_TIME_S);
        packet.add(0.0, 2.0 * packet_bytes, 2.0);
        Controller {
            aqm,
            limit,
            totals: Totals::default(),
            last: None,
            packet,
            rate: DecayedRatio::new(RATE_TIME_S),
            nominal: rate,
            radio: false,
            phase: Phase::Regulating,
        }
    }

    /// Drains the standing queue before the AQM regulates.
    pub(crate) fn with_startup(mut self, startup: Startup) -> Self {
        self.phase = Phase::Startup(startup);
        self
    }

    /// Passes everything from now on.
    pub(crate) fn suspend(&mut self) {
        self.phase = Phase::Suspended;
    }

    /// Whether everything passes until the AQM is restarted.
    pub(crate) fn is_suspended(&self) -> bool {
        matches!(self.phase, Phase::Suspended)
    }

    /// Restarts with `aqm`, after `startup` if there is one.
    pub(crate) fn restart(&mut self, mut aqm: AnyAqm, startup: Option<Startup>, now: Instant) {
        if let (AnyAqm::StPi2(aqm), AnyAqm::StPi2(old)) = (&mut aqm, &self.aqm) {
            aqm.inherit_round_trip(old);
        }
        self.aqm = aqm;
        match startup {
            Some(startup) => self.phase = Phase::Startup(startup),
            None => self.regulate(now),
        }
    }

    /// Lets the AQM regulate from now on.
    fn regulate(&mut self, now: Instant) {
        self.aqm.take_over(None, now, &self.totals);
        self.phase = Phase::Regulating;
    }

    /// Treats time with a backlog and no departures as a pause of a radio link: the AQM is not stepped, and the link
    /// counts as idle.
    pub(crate) fn for_radio_link(mut self) -> Self {
        self.radio = true;
        self
    }

    /// Time of the AQM's next step.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.aqm.next_timer().filter(|_| matches!(self.phase, Phase::Regulating))
    }

    /// Totals that the AQM observes.
    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Replaces the AQM by `aqm`, which inherits its learnt state.
    pub(crate) fn replace(&mut self, mut aqm: AnyAqm, now: Instant, rate: Rate) {
        aqm.take_over(Some(&self.aqm), now, &self.totals);
        self.aqm = aqm;
        self.nominal = rate;
    }

    /// Takes a reading, and steps the AQM if it is due.
    pub(crate) fn on_reading(&mut self, new: &Reading) -> State {
        let mut state = State::default();
        if let Some(last) = self.last {
            self.accumulate(&last, new, &mut state);
            if let AnyAqm::StPi2(aqm) = &mut self.aqm {
                aqm.learn(&new.counts.packets_since(&last.counts), new.at);
            }
            state.after_gap = Duration::from_nanos(new.at.saturating_since(last.at).as_nanos()) > DEADLINE;
        }
        if state.after_gap {
            self.suspend();
        }
        self.last = Some(*new);
        let packet_bytes = self.packet.value();
        let backlog = f64::from(new.queue.backlog_bytes);
        let link_bps = self.link_bps();
        // The mean packet may be longer than a single waiting one.
        let backlog_pkts = if backlog > 0.0 { (backlog / packet_bytes).max(1.0) } else { 0.0 };
        let sojourn_s = 8.0 * backlog / link_bps;
        self.totals.last_sojourn = Span::from_secs_f64(sojourn_s);
        let silent = self.radio && state.backlogged && state.departed_bytes == 0;
        let mut p = 0.0;
        if let Phase::Startup(startup) = &mut self.phase {
            match startup.update(state.interval_s, backlog_pkts) {
                Some(signals) => p = signals,
                None => self.regulate(new.at),
            }
        }
        if !silent && self.next_timer().is_some_and(|due| due <= new.at) {
            self.aqm.on_timer(&mut Cx {
                now: new.at,
                queue: QueueView {
                    packets: backlog_pkts.round() as u32,
                    bytes: new.queue.backlog_bytes.into(),
                    limit: self.limit,
                    totals: &self.totals,
                },
                rng: &mut UnusedRandomness,
            });
        }
        State {
            backlog_bytes: new.queue.backlog_bytes,
            backlog_pkts,
            sojourn_s,
            p: if matches!(self.phase, Phase::Regulating) { self.aqm.probability().get() } else { p },
            link_bps,
            packet_bytes,
            rule: self.rule(new.at, backlog_pkts, state.interval_s),
            ..state
        }
    }

    /// Rule of an AQM that signals flow by flow, while it regulates.
    fn rule(&self, now: Instant, backlog_pkts: f64, interval_s: f64) -> Option<PacketRule> {
        match &self.aqm {
            AnyAqm::StPi2(aqm) if matches!(self.phase, Phase::Regulating) => {
                Some(aqm.packet_rule(now, backlog_pkts, interval_s))
            }
            _ => None,
        }
    }

    /// Calls `visit` with each estimate of an AQM that measures its network.
    pub(crate) fn observe_estimates(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        if let AnyAqm::StPi2(aqm) = &self.aqm {
            aqm.observe(visit);
            visit("handshakes", aqm.handshakes().into());
        }
    }

    /// Departure rate of a backlog, bit/s.
    fn link_bps(&self) -> f64 {
        let nominal_bps = self.nominal.as_bps() as f64;
        if self.rate.denominator < RATE_WARMUP_S {
            return nominal_bps;
        }
        // A shaper starved by other classes still sends now and then.
        self.rate.value().max(nominal_bps * 1e-3)
    }

    /// Accumulates the changes between two readings.
    fn accumulate(&mut self, last: &Reading, new: &Reading, state: &mut State) {
        let interval = new.at.saturating_since(last.at);
        let interval_s = interval.as_secs_f64();
        let since = |new: u64, last: u64| new.saturating_sub(last);
        let arrived = since(new.counts.segments, last.counts.segments);
        let arrived_bytes = since(new.counts.bytes, last.counts.bytes);
        let early = since(new.counts.dropped_segments, last.counts.dropped_segments);
        let overflow = u64::from(new.queue.drops.wrapping_sub(last.queue.drops));
        let departed_bytes = since(new.queue.bytes, last.queue.bytes);

        // Without arrivals the mean packet size stays.
        if arrived > 0 {
            self.packet.add(interval_s, arrived_bytes as f64, arrived as f64);
        }
        let backlogged = last.queue.backlog_bytes > 0 && new.queue.backlog_bytes > 0;
        let silent = self.radio && backlogged && departed_bytes == 0;
        if backlogged && !silent {
            self.rate.add(interval_s, 8.0 * departed_bytes as f64, interval_s);
        }
        // Backlogged at both ends of the interval: busy throughout. Otherwise busy while the departures were
        // transmitted.
        let busy_s = if backlogged && !silent {
            interval_s
        } else {
            (8.0 * departed_bytes as f64 / self.link_bps()).min(interval_s)
        };

        let totals = &mut self.totals;
        totals.arrivals += arrived;
        totals.arrived_bytes += arrived_bytes;
        totals.marked += since(new.counts.marked_segments, last.counts.marked_segments);
        totals.early_dropped += early;
        totals.overflow_dropped += overflow;
        // Marker and shaper are read one after the other: a drop may be counted before its arrival.
        totals.accepted += arrived.saturating_sub(early + overflow);
        totals.departures += since(new.queue.packets, last.queue.packets);
        totals.departed_bytes += departed_bytes;
        totals.busy += Span::from_secs_f64(busy_s);
        (state.departed_bytes, state.interval_s, state.backlogged) = (departed_bytes, interval_s, backlogged);
    }
}

/// Queue limit of `packets`, and of `bytes` if given.
pub(crate) fn queue_limit(packets: f64, bytes: Option<u64>) -> Limit {
    Limit { packets: packets.round().clamp(1.0, 1e9) as u32, bytes: Bytes(bytes.unwrap_or(u64::MAX)) }
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::{MAX_LOOPS, Observation, SampledLaw};
    use aqumen_units::Probability;

    use super::super::design;
    use super::*;

    /// Law whose probability is a thousandth of the queue in packets. It sends each observation to the test.
    #[derive(Clone)]
    struct Proportional(std::sync::mpsc::Sender<Observation>);

    impl SampledLaw for Proportional {
        fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
            [Some(Span::from_millis(10)), None]
        }

        fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
            self.0.send(*observation).unwrap();
            Probability::clamp(observation.queue_pkts / 1000.0)
        }
    }

    fn controller() -> (Controller, std::sync::mpsc::Receiver<Observation>) {
        let (send, observations) = std::sync::mpsc::channel();
        let aqm = AnyAqm::custom_law(Proportional(send), true);
        (Controller::new(aqm, queue_limit(400.0, None), 1000.0, Rate::from_bps(8_000_000)), observations)
    }

    /// Reading at `ms` after these numbers of packets of 500 bytes.
    fn reading(ms: u64, arrived: u64, departed: u64) -> Reading {
        let waiting = (arrived - departed) as u32;
        Reading {
            at: Instant::from_nanos(ms * 1_000_000),
            counts: Counts { packets: arrived, segments: arrived, bytes: 500 * arrived, ..Counts::default() },
            queue: Stats {
                bytes: 500 * departed,
                packets: departed,
                // Super-packets of ten.
                backlog_pkts: waiting / 10,
                backlog_bytes: 500 * waiting,
                drops: 0,
            },
        }
    }

    #[test]
    fn the_queue_is_the_backlog_over_the_mean_packet() {
        let (mut controller, observations) = controller();
        controller.on_reading(&reading(0, 0, 0));
        // 20 packets leave each 10 ms (8 Mbit/s). After a second of 500-byte packets the backlog is 40, however the
        // kernel counts.
        for step in 1..=100 {
            controller.on_reading(&reading(10 * step, 20 * step + 40, 20 * step));
        }
        let state = controller.on_reading(&reading(1010, 20 * 101 + 40, 20 * 101));
        assert!((state.packet_bytes - 500.0).abs() < 1.0, "{}", state.packet_bytes);
        assert!((state.backlog_pkts - 40.0).abs() < 0.1, "{}", state.backlog_pkts);
        // 40 * 500 * 8 bit / 8 Mbit/s = 20 ms.
        assert!((state.sojourn_s - 0.02).abs() < 1e-4, "{}", state.sojourn_s);
        assert!((state.p - 0.04).abs() < 1e-12);
        let last = observations.iter().take(101).last().unwrap();
        assert_eq!((last.queue_pkts, last.arrivals_pkts, last.departures_pkts), (40.0, 20.0, 20.0));
        assert!((last.busy_s - 0.01).abs() < 1e-9 && last.idle_s < 1e-9, "{last:?}");
    }

    #[test]
    fn a_suspended_aqm_is_not_stepped_and_restarts() {
        let (mut controller, observations) = controller();
        controller.suspend();
        for step in 0..100 {
            let state = controller.on_reading(&reading(10 * step, 20 * step + 40, 20 * step));
            assert_eq!((state.p, controller.next_timer()), (0.0, None));
        }
        assert!(observations.try_recv().is_err(), "stepped while suspended");
        let (send, observations) = std::sync::mpsc::channel();
        controller.restart(AnyAqm::custom_law(Proportional(send), true), None, Instant::from_nanos(990_000_000));
        controller.on_reading(&reading(1000, 20 * 100 + 40, 20 * 100));
        let first = observations.try_recv().unwrap();
        // The observation covers the 10 ms since the restart, not the second before.
        assert_eq!((first.queue_pkts, first.departures_pkts, first.interval_s), (40.0, 20.0, 0.01));
    }

    #[test]
    fn a_standing_queue_is_drained_before_the_aqm_regulates() {
        let network = aqumen_aqm::Network { packet_bytes: 500.0, ..design::example(8) };
        let (controller, observations) = controller();
        let mut controller = controller.with_startup(Startup::new(&network));
        controller.on_reading(&reading(0, 300, 0));
        // 2000 packets a second and 100 ms: 200 in flight, and a backlog of 300. The mean packet has 500 bytes after
        // the first reading.
        let state = controller.on_reading(&reading(10, 320, 20));
        assert!((state.p - 0.02).abs() < 0.005 && observations.try_recv().is_err(), "{state:?}");
        // A backlog of 40, twice the target: the AQM regulates, and takes its first step 10 ms later.
        controller.on_reading(&reading(20, 340, 300));
        assert!(observations.try_recv().is_err());
        // The mean packet is still a little above 500 bytes.
        assert!((controller.on_reading(&reading(30, 360, 320)).p - 0.04).abs() < 0.003);
    }

    #[test]
    fn without_a_backlog_the_link_is_busy_during_its_transmissions() {
        let (mut controller, observations) = controller();
        controller.on_reading(&reading(0, 0, 0));
        // 5 packets of 500 bytes: 20 000 bits, 2.5 ms at 8 Mbit/s; the other 7.5 ms are idle.
        let state = controller.on_reading(&reading(10, 5, 5));
        assert_eq!((state.backlog_pkts, state.sojourn_s, state.p), (0.0, 0.0, 0.0));
        let first = observations.recv().unwrap();
        assert!((first.busy_s - 0.0025).abs() < 1e-9 && (first.idle_s - 0.0075).abs() < 1e-9, "{first:?}");
    }

    #[test]
    fn a_stalled_wire_is_busy_and_a_stalled_radio_is_idle() {
        // 40 packets wait for 100 ms without departures; in the next 100 ms 100 packets of 500 bytes leave: 4 Mbit/s.
        let readings = [reading(0, 40, 0), reading(100, 40, 0), reading(200, 140, 100)];
        let (mut wire, observations) = controller();
        let states = readings.map(|reading| wire.on_reading(&reading));
        // A stall caused by other classes is congestion: the AQM is stepped, and there is no idle time.
        let step = observations.recv().unwrap();
        assert_eq!((step.interval_s, step.departures_pkts, step.idle_s), (0.1, 0.0, 0.0), "{step:?}");
        // The 100 ms without departures count a little less than the last 100 ms: the rate is halved.
        assert!((1.9e6..2.4e6).contains(&states[2].link_bps), "{:?}", states[2]);

        let (radio, observations) = controller();
        let mut radio = radio.for_radio_link();
        let states = readings.map(|reading| radio.on_reading(&reading));
        assert!((states[2].link_bps - 4e6).abs() < 1.0, "{:?}", states[2]);
        let step = observations.recv().unwrap();
        assert_eq!(step.departures_pkts, 100.0, "stepped while the radio was silent: {step:?}");
        assert!((step.busy_s - 0.1).abs() < 1e-9 && (step.interval_s - 0.2).abs() < 1e-9, "{step:?}");
    }

    #[test]
    fn wrapped_and_reset_counters_are_tolerated() {
        let (mut controller, observations) = controller();
        let mut first = reading(0, 100, 100);
        first.queue.drops = u32::MAX;
        controller.on_reading(&first);
        // Three drops across the wrap; the discipline was replaced, so its counters restart at zero.
        let mut second = reading(10, 110, 0);
        second.queue.drops = 2;
        second.queue.backlog_bytes = 0;
        controller.on_reading(&second);
        let step = observations.recv().unwrap();
        assert_eq!(step.departures_pkts, 0.0);
        assert_eq!(controller.totals().overflow_dropped, 3);
        assert_eq!(step.accepted_pkts, 7.0);
    }

    #[test]
    fn the_rate_is_measured_while_backlogged() {
        let (mut controller, _observations) = controller();
        controller.on_reading(&reading(0, 0, 0));
        assert_eq!(controller.link_bps(), 8e6, "no estimate yet: the shaper's rate");
        // 10 packets of 500 bytes in 10 ms, with more waiting: 4 Mbit/s.
        for step in 1..=300 {
            controller.on_reading(&reading(10 * step, 10 * step + 20, 10 * step));
        }
        assert!((controller.link_bps() - 4e6).abs() < 1e3, "{}", controller.link_bps());
        // An hour without traffic changes nothing.
        controller.on_reading(&reading(3_600_000, 3020, 3020));
        assert!((controller.link_bps() - 4e6).abs() < 2e4, "{}", controller.link_bps());
    }

    #[test]
    fn counters_of_marker_and_shaper_are_accumulated() {
        let (mut controller, observations) = controller();
        let at = |ms: u64, times: u64| Reading {
            at: Instant::from_nanos(ms * 1_000_000),
            counts: Counts {
                segments: 100 * times,
                bytes: 70_000 * times,
                marked_segments: 7 * times,
                dropped_segments: 5 * times,
                ..Counts::default()
            },
            queue: Stats { bytes: 60_000 * times, packets: 80 * times, drops: 3 * times as u32, ..Stats::default() },
        };
        // Counts before the first reading are left out.
        let states = [at(0, 1), at(10, 2), at(30, 4)].map(|reading| controller.on_reading(&reading));
        assert_eq!(states[0], State { link_bps: 8e6, packet_bytes: 1000.0, ..State::default() });
        assert_eq!((states[2].departed_bytes, states[2].interval_s, states[2].backlogged), (120_000, 0.02, false));
        let totals = controller.totals();
        assert_eq!((totals.arrivals, totals.arrived_bytes), (300, 210_000));
        assert_eq!((totals.marked, totals.early_dropped, totals.overflow_dropped), (21, 15, 9));
        assert_eq!((totals.departures, totals.departed_bytes, totals.accepted), (240, 180_000, 276));
        // 60 kB in 10 ms are more than 8 Mbit/s: busy throughout.
        assert!((totals.busy.as_secs_f64() - 0.03).abs() < 1e-9, "{:?}", totals.busy);
        assert_eq!(observations.try_iter().count(), 2);
    }

    #[test]
    fn a_single_short_packet_counts_as_one() {
        let (mut controller, _observations) = controller();
        let mut first = reading(0, 0, 0);
        first.queue.backlog_bytes = 60;
        let state = controller.on_reading(&first);
        // 60 bytes at 8 Mbit/s: 60 us.
        assert_eq!((state.backlog_pkts, state.backlog_bytes), (1.0, 60));
        assert!((state.sojourn_s - 6e-5).abs() < 1e-12 && (controller.totals().last_sojourn.as_nanos()) == 60_000);
    }

    #[test]
    fn a_starved_shaper_counts_as_a_thousandth_of_its_rate() {
        let (mut controller, _observations) = controller();
        for step in 0..100 {
            controller.on_reading(&reading(10 * step, 40, 0));
        }
        assert_eq!(controller.link_bps(), 8e3);
        assert_eq!(controller.on_reading(&reading(1000, 40, 0)).sojourn_s, 8.0 * 20_000.0 / 8e3);
    }

    #[test]
    fn after_a_suspension_a_standing_queue_is_drained_first() {
        let network = aqumen_aqm::Network { packet_bytes: 1000.0, ..design::example(8) };
        let (mut controller, _observations) = controller();
        controller.suspend();
        controller.on_reading(&reading(0, 300, 0));
        let (send, _observations) = std::sync::mpsc::channel();
        let aqm = AnyAqm::custom_law(Proportional(send), true);
        controller.restart(aqm, Some(Startup::new(&network)), Instant::ZERO);
        let state = controller.on_reading(&reading(10, 320, 20));
        assert!(state.p > 0.0 && controller.next_timer().is_none(), "{state:?}");
    }

    #[test]
    fn a_reading_after_the_lifetime_of_an_order_is_a_gap() {
        // 40 packets wait at each reading, and 2 leave in a millisecond.
        let late_by = |ms: u64| {
            let (mut controller, observations) = controller();
            controller.on_reading(&reading(0, 40, 0));
            controller.on_reading(&reading(10, 60, 20));
            let at = 10 + ms;
            let state = controller.on_reading(&reading(at, 2 * at + 40, 2 * at));
            (state.after_gap, controller.is_suspended(), state.p > 0.0, observations.try_iter().count())
        };
        for ms in [10, 50, 150, 200] {
            assert_eq!(late_by(ms), (false, false, true, 2), "{ms} ms");
        }
        // After a gap everything passes until the restart.
        for ms in [201, 1000, 20_000] {
            assert_eq!(late_by(ms), (true, true, false, 1), "{ms} ms");
        }
    }

    #[test]
    fn a_replaced_aqm_continues_at_the_new_rate() {
        let (mut controller, _observations) = controller();
        controller.on_reading(&reading(0, 0, 0));
        let (send, observations) = std::sync::mpsc::channel();
        controller.replace(AnyAqm::custom_law(Proportional(send), true), Instant::ZERO, Rate::from_bps(4_000_000));
        let state = controller.on_reading(&reading(10, 25, 5));
        assert_eq!((state.link_bps, observations.try_iter().count()), (4e6, 1));
    }

    #[test]
    fn the_mean_packet_size_outlasts_idle_time() {
        let (mut controller, _observations) = controller();
        for step in 0..=100 {
            controller.on_reading(&reading(10 * step, 20 * step, 20 * step));
        }
        let after_an_hour = controller.on_reading(&reading(3_600_000, 2000, 2000));
        assert!((after_an_hour.packet_bytes - 500.0).abs() < 1.0, "{after_an_hour:?}");
    }

    #[test]
    fn the_estimated_rate_is_used_after_fifty_backlogged_milliseconds() {
        let rate_after = |ms| {
            let (mut controller, _observations) = controller();
            // 25 packets of 500 bytes leave: 100 000 bits.
            controller.on_reading(&reading(0, 100, 0));
            controller.on_reading(&reading(ms, 100, 25)).link_bps
        };
        assert_eq!([rate_after(49), rate_after(50)], [8e6, 2e6]);
    }

    #[test]
    fn an_interval_is_backlogged_if_both_its_ends_are() {
        let backlogged = |before: u64, now: u64| {
            let (mut controller, _observations) = controller();
            controller.on_reading(&reading(0, before, 0));
            controller.on_reading(&reading(10, 50, 50 - now)).backlogged
        };
        assert_eq!(
            [backlogged(0, 0), backlogged(5, 0), backlogged(0, 5), backlogged(5, 5)],
            [false, false, false, true]
        );
    }

    #[test]
    fn a_limit_is_a_whole_number_of_packets_and_at_least_one() {
        let limits = [(0.2, None), (7.6, Some(9000)), (1e12, None)].map(|(packets, bytes)| queue_limit(packets, bytes));
        assert_eq!(limits.map(|limit| limit.packets), [1, 8, 1_000_000_000]);
        assert_eq!(limits.map(|limit| limit.bytes.0), [u64::MAX, 9000, u64::MAX]);
    }
}
