//! The controller: readings of the shaper and the marker in, the probability out.
//!
//! A reading becomes what an AQM is told of its queue: packets are the backlog's bytes over the measured mean packet,
//! since the kernel counts a super-packet as one; the sojourn time is the backlog over the rate of departures;
//! transmissions are busy while something waits. The AQM is stepped by its own timer, once it has begun: see [`Phase`].
//! Readings further apart than an order holds have a gap between them: the marker let everything pass meanwhile, and
//! the queue that grew says nothing of the load. The AQM then stops, until it is begun anew.

use std::time::Duration;

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Cx, Draw, Limit, QueueView, Totals};
use aqumen_units::{Bytes, Instant, Rate, Span};

use super::marker::Counts;
use super::recent::Recent;
use super::start::Start;
use crate::netlink::tc::Stats;
use crate::telemetry::DEADLINE;

/// Over how much time the mean packet is taken, seconds.
const PACKET_TIME_S: f64 = 1.0;
/// Over how much time of departures with a backlog the rate is taken, seconds.
const RATE_TIME_S: f64 = 0.5;
/// Before so much of it the shaper's own rate counts.
const RATE_KNOWN_S: f64 = 0.05;

/// What was read at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    pub(crate) counts: Counts,
    pub(crate) queue: Stats,
}

/// The controller of one queue.
#[derive(Debug)]
pub(crate) struct Controller {
    aqm: AnyAqm,
    limit: Limit,
    totals: Totals,
    last: Option<Reading>,
    /// Bytes over packets.
    packet: Recent,
    /// Bits over seconds in which something waited.
    rate: Recent,
    /// The shaper's own rate.
    nominal: Rate,
    /// The link falls silent now and then without being congested.
    radio: bool,
    phase: Phase,
}

/// Whether the AQM regulates yet. One that does not is not stepped: it would wind up.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Everything passes.
    Held,
    /// The queue that was found is brought down.
    Start(Start),
    /// It regulates.
    Begun,
}

/// What a reading meant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct State {
    /// The backlog.
    pub(crate) backlog_bytes: u32,
    /// The same in mean packets.
    pub(crate) backlog_pkts: f64,
    /// The backlog over the rate of departures, seconds.
    pub(crate) sojourn_s: f64,
    /// The probability that applies from now on.
    pub(crate) p: f64,
    /// The rate of departures while something waited, bit/s.
    pub(crate) link_bps: f64,
    /// The mean packet, bytes.
    pub(crate) packet_bytes: f64,
    /// What left since the reading before, bytes.
    pub(crate) departed_bytes: u64,
    /// Since the reading before, seconds.
    pub(crate) interval_s: f64,
    /// Something waited then, and something waits now.
    pub(crate) waited: bool,
    /// The reading before is older than an order holds: everything passed meanwhile.
    pub(crate) after_gap: bool,
}

/// No law draws numbers: the coin is the kernel's.
struct NoCoin;

impl Draw for NoCoin {
    fn uniform(&mut self) -> f64 {
        0.5
    }
}

impl Controller {
    /// Over an empty queue with room for `limit`, of packets of about `packet_bytes` that leave at about `rate`.
    pub(crate) fn new(aqm: AnyAqm, limit: Limit, packet_bytes: f64, rate: Rate) -> Self {
        // As much as two packets a mean time: the first real ones outweigh it at once.
        let mut packet = Recent::new(PACKET_TIME_S);
        packet.add(0.0, 2.0 * packet_bytes, 2.0);
        Controller {
            aqm,
            limit,
            totals: Totals::default(),
            last: None,
            packet,
            rate: Recent::new(RATE_TIME_S),
            nominal: rate,
            radio: false,
            phase: Phase::Begun,
        }
    }

    /// Brings down the queue that it finds before the AQM begins.
    pub(crate) fn after(mut self, start: Start) -> Self {
        self.phase = Phase::Start(start);
        self
    }

    /// From now on everything passes.
    pub(crate) fn hold(&mut self) {
        self.phase = Phase::Held;
    }

    /// Whether everything passes until the AQM is begun anew.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Held)
    }

    /// Begins anew with `aqm`, after `start` if there is one.
    pub(crate) fn begin_anew(&mut self, aqm: AnyAqm, start: Option<Start>, now: Instant) {
        self.aqm = aqm;
        match start {
            Some(start) => self.phase = Phase::Start(start),
            None => self.begin(now),
        }
    }

    /// The AQM is stepped from now on.
    fn begin(&mut self, now: Instant) {
        self.aqm.take_over(None, now, &self.totals);
        self.phase = Phase::Begun;
    }

    /// Takes a time in which packets wait and none leaves as silence of a radio: the AQM is not
    /// stepped, and the link is not busy.
    pub(crate) fn of_radio(mut self) -> Self {
        self.radio = true;
        self
    }

    /// When the AQM wants to be stepped.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.aqm.next_timer().filter(|_| matches!(self.phase, Phase::Begun))
    }

    /// What the AQM is told.
    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Puts `aqm` in the place of the AQM; it takes over what has been learnt.
    pub(crate) fn replace(&mut self, mut aqm: AnyAqm, now: Instant, rate: Rate) {
        aqm.take_over(Some(&self.aqm), now, &self.totals);
        self.aqm = aqm;
        self.nominal = rate;
    }

    /// Takes a reading, and steps the AQM if it is due.
    pub(crate) fn read(&mut self, new: &Reading) -> State {
        let mut state = State::default();
        if let Some(last) = self.last {
            self.count(&last, new, &mut state);
            state.after_gap = Duration::from_nanos(new.at.saturating_since(last.at).as_nanos()) > DEADLINE;
        }
        if state.after_gap {
            self.hold();
        }
        self.last = Some(*new);
        let packet_bytes = self.packet.mean();
        let backlog = f64::from(new.queue.backlog_bytes);
        let link_bps = self.link_bps();
        // The mean packet may be longer than one that waits.
        let backlog_pkts = if backlog > 0.0 { (backlog / packet_bytes).max(1.0) } else { 0.0 };
        let sojourn_s = 8.0 * backlog / link_bps;
        self.totals.last_sojourn = Span::from_secs_f64(sojourn_s);
        let silent = self.radio && state.waited && state.departed_bytes == 0;
        let mut p = 0.0;
        if let Phase::Start(start) = &mut self.phase {
            match start.see(state.interval_s, backlog_pkts) {
                Some(signals) => p = signals,
                None => self.begin(new.at),
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
                rng: &mut NoCoin,
            });
        }
        State {
            backlog_bytes: new.queue.backlog_bytes,
            backlog_pkts,
            sojourn_s,
            p: if matches!(self.phase, Phase::Begun) { self.aqm.probability().get() } else { p },
            link_bps,
            packet_bytes,
            ..state
        }
    }

    /// The rate at which what waits leaves, bit/s.
    fn link_bps(&self) -> f64 {
        let nominal_bps = self.nominal.as_bps() as f64;
        if self.rate.within < RATE_KNOWN_S {
            return nominal_bps;
        }
        // A shaper that other classes starve still sends now and then.
        self.rate.mean().max(nominal_bps * 1e-3)
    }

    /// What happened between two readings.
    fn count(&mut self, last: &Reading, new: &Reading, state: &mut State) {
        let interval = new.at.saturating_since(last.at);
        let interval_s = interval.as_secs_f64();
        let since = |new: u64, last: u64| new.saturating_sub(last);
        let arrived = since(new.counts.segments, last.counts.segments);
        let arrived_bytes = since(new.counts.bytes, last.counts.bytes);
        let early = since(new.counts.dropped_segments, last.counts.dropped_segments);
        let overflow = u64::from(new.queue.drops.wrapping_sub(last.queue.drops));
        let departed_bytes = since(new.queue.bytes, last.queue.bytes);

        // Without packets there is nothing to forget for.
        if arrived > 0 {
            self.packet.add(interval_s, arrived_bytes as f64, arrived as f64);
        }
        let waited = last.queue.backlog_bytes > 0 && new.queue.backlog_bytes > 0;
        let silent = self.radio && waited && departed_bytes == 0;
        if waited && !silent {
            self.rate.add(interval_s, 8.0 * departed_bytes as f64, interval_s);
        }
        // Something waited at either end: it was busy in between. Else as long as what left takes.
        let busy_s = if waited && !silent {
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
        (state.departed_bytes, state.interval_s, state.waited) = (departed_bytes, interval_s, waited);
    }
}

/// Room for `packets`.
pub(crate) fn limit(packets: f64, bytes: Option<u64>) -> Limit {
    Limit { packets: packets.round().clamp(1.0, 1e9) as u32, bytes: Bytes(bytes.unwrap_or(u64::MAX)) }
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::{MAX_LOOPS, Observation, SampledLaw};
    use aqumen_units::Probability;

    use super::*;

    /// Says as its probability a thousandth of the queue in packets, and keeps what it saw.
    #[derive(Clone)]
    struct Proportional(std::sync::mpsc::Sender<Observation>);

    impl SampledLaw for Proportional {
        fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
            [Some(Span::from_millis(10)), None]
        }

        fn step(&mut self, _which: usize, seen: &Observation) -> Probability {
            self.0.send(*seen).unwrap();
            Probability::clamp(seen.queue_pkts / 1000.0)
        }
    }

    fn controller() -> (Controller, std::sync::mpsc::Receiver<Observation>) {
        let (send, seen) = std::sync::mpsc::channel();
        let aqm = AnyAqm::custom_law(Proportional(send), true);
        (Controller::new(aqm, limit(400.0, None), 1000.0, Rate::from_bps(8_000_000)), seen)
    }

    /// A reading at `ms` after so many packets of 500 bytes arrived and left.
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
        let (mut controller, seen) = controller();
        controller.read(&reading(0, 0, 0));
        // 20 packets leave each 10 ms, 8 Mbit/s; after a second of 500-byte packets 40 of them wait,
        // however the kernel counts them.
        for step in 1..=100 {
            controller.read(&reading(10 * step, 20 * step + 40, 20 * step));
        }
        let state = controller.read(&reading(1010, 20 * 101 + 40, 20 * 101));
        assert!((state.packet_bytes - 500.0).abs() < 1.0, "{}", state.packet_bytes);
        assert!((state.backlog_pkts - 40.0).abs() < 0.1, "{}", state.backlog_pkts);
        // 40 * 500 * 8 bit / 8 Mbit/s = 20 ms.
        assert!((state.sojourn_s - 0.02).abs() < 1e-4, "{}", state.sojourn_s);
        assert!((state.p - 0.04).abs() < 1e-12);
        let last = seen.iter().take(101).last().unwrap();
        assert_eq!((last.queue_pkts, last.arrivals_pkts, last.departures_pkts), (40.0, 20.0, 20.0));
        assert!((last.busy_s - 0.01).abs() < 1e-9 && last.idle_s < 1e-9, "{last:?}");
    }

    #[test]
    fn an_aqm_that_is_held_is_not_stepped_and_begins_anew() {
        let (mut controller, seen) = controller();
        controller.hold();
        for step in 0..100 {
            let state = controller.read(&reading(10 * step, 20 * step + 40, 20 * step));
            assert_eq!((state.p, controller.next_timer()), (0.0, None));
        }
        assert!(seen.try_recv().is_err(), "it was stepped while it was held");
        let (send, seen) = std::sync::mpsc::channel();
        controller.begin_anew(AnyAqm::custom_law(Proportional(send), true), None, Instant::from_nanos(990_000_000));
        controller.read(&reading(1000, 20 * 100 + 40, 20 * 100));
        let first = seen.try_recv().unwrap();
        // What it hears is of the 10 ms since it began, not of the second before.
        assert_eq!((first.queue_pkts, first.departures_pkts, first.interval_s), (40.0, 20.0, 0.01));
    }

    #[test]
    fn a_long_queue_is_brought_down_before_the_aqm_begins() {
        let network = aqumen_aqm::Network {
            capacity: Rate::from_bps(8_000_000),
            flows: 10.0,
            base_rtt_s: 0.1,
            target_pkts: 20.0,
            packet_bytes: 500.0,
            link_rate: Rate::from_bps(8_000_000),
            buffer_pkts: 400.0,
        };
        let (controller, seen) = controller();
        let mut controller = controller.after(Start::new(&network));
        controller.read(&reading(0, 300, 0));
        // 2000 packets a second and 100 ms: 200 in flight and 300 that wait. The mean packet has 500
        // bytes after the first reading.
        let state = controller.read(&reading(10, 320, 20));
        assert!((state.p - 0.02).abs() < 0.005 && seen.try_recv().is_err(), "{state:?}");
        // 40 wait, twice the target: the AQM's turn, which is its first step 10 ms later.
        controller.read(&reading(20, 340, 300));
        assert!(seen.try_recv().is_err());
        // The mean packet is still a little above 500 bytes.
        assert!((controller.read(&reading(30, 360, 320)).p - 0.04).abs() < 0.003);
    }

    #[test]
    fn a_link_without_backlog_is_busy_as_long_as_what_left_takes() {
        let (mut controller, seen) = controller();
        controller.read(&reading(0, 0, 0));
        // 5 packets of 500 bytes: 20 000 bits, 2.5 ms at 8 Mbit/s; the other 7.5 ms are idle.
        let state = controller.read(&reading(10, 5, 5));
        assert_eq!((state.backlog_pkts, state.sojourn_s, state.p), (0.0, 0.0, 0.0));
        let first = seen.recv().unwrap();
        assert!((first.busy_s - 0.0025).abs() < 1e-9 && (first.idle_s - 0.0075).abs() < 1e-9, "{first:?}");
    }

    #[test]
    fn a_wire_that_waits_is_busy_and_a_radio_that_waits_is_silent() {
        // For 100 ms 40 packets wait and none leaves; in the next 100 ms 100 packets of 500 bytes do: 4 Mbit/s.
        let readings = [reading(0, 40, 0), reading(100, 40, 0), reading(200, 140, 100)];
        let (mut wire, seen) = controller();
        let states = readings.map(|reading| wire.read(&reading));
        // What other classes hold up is congestion: the AQM is stepped, and there was no idle moment.
        let step = seen.recv().unwrap();
        assert_eq!((step.interval_s, step.departures_pkts, step.idle_s), (0.1, 0.0, 0.0), "{step:?}");
        // The hundred milliseconds without departures count, a little less than the last: the link is half as fast.
        assert!((1.9e6..2.4e6).contains(&states[2].link_bps), "{:?}", states[2]);

        let (radio, seen) = controller();
        let mut radio = radio.of_radio();
        let states = readings.map(|reading| radio.read(&reading));
        assert!((states[2].link_bps - 4e6).abs() < 1.0, "{:?}", states[2]);
        let step = seen.recv().unwrap();
        assert_eq!(step.departures_pkts, 100.0, "it was stepped while the radio was silent: {step:?}");
        assert!((step.busy_s - 0.1).abs() < 1e-9 && (step.interval_s - 0.2).abs() < 1e-9, "{step:?}");
    }

    #[test]
    fn counters_that_wrap_or_fall_back_do_no_harm() {
        let (mut controller, seen) = controller();
        let mut first = reading(0, 100, 100);
        first.queue.drops = u32::MAX;
        controller.read(&first);
        // Three drops across the wrap; and the discipline was replaced, so that its counts begin again.
        let mut second = reading(10, 110, 0);
        second.queue.drops = 2;
        second.queue.backlog_bytes = 0;
        controller.read(&second);
        let step = seen.recv().unwrap();
        assert_eq!(step.departures_pkts, 0.0);
        assert_eq!(controller.totals().overflow_dropped, 3);
        assert_eq!(step.accepted_pkts, 7.0);
    }

    #[test]
    fn the_rate_is_that_of_departures_while_something_waits() {
        let (mut controller, _seen) = controller();
        controller.read(&reading(0, 0, 0));
        assert_eq!(controller.link_bps(), 8e6, "unknown yet: the shaper's");
        // 10 packets of 500 bytes in 10 ms, with more waiting: 4 Mbit/s.
        for step in 1..=300 {
            controller.read(&reading(10 * step, 10 * step + 20, 10 * step));
        }
        assert!((controller.link_bps() - 4e6).abs() < 1e3, "{}", controller.link_bps());
        // An hour without traffic changes nothing.
        controller.read(&reading(3_600_000, 3020, 3020));
        assert!((controller.link_bps() - 4e6).abs() < 2e4, "{}", controller.link_bps());
    }

    #[test]
    fn what_marker_and_shaper_counted_adds_up() {
        let (mut controller, seen) = controller();
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
        // What was counted before the first reading is not this controller's.
        let states = [at(0, 1), at(10, 2), at(30, 4)].map(|reading| controller.read(&reading));
        assert_eq!(states[0], State { link_bps: 8e6, packet_bytes: 1000.0, ..State::default() });
        assert_eq!((states[2].departed_bytes, states[2].interval_s, states[2].waited), (120_000, 0.02, false));
        let totals = controller.totals();
        assert_eq!((totals.arrivals, totals.arrived_bytes), (300, 210_000));
        assert_eq!((totals.marked, totals.early_dropped, totals.overflow_dropped), (21, 15, 9));
        assert_eq!((totals.departures, totals.departed_bytes, totals.accepted), (240, 180_000, 276));
        // 60 kB in 10 ms are more than 8 Mbit/s: it was busy all the time.
        assert!((totals.busy.as_secs_f64() - 0.03).abs() < 1e-9, "{:?}", totals.busy);
        assert_eq!(seen.try_iter().count(), 2);
    }

    #[test]
    fn one_short_packet_that_waits_is_one() {
        let (mut controller, _seen) = controller();
        let mut first = reading(0, 0, 0);
        first.queue.backlog_bytes = 60;
        let state = controller.read(&first);
        // 60 bytes at 8 Mbit/s: 60 us.
        assert_eq!((state.backlog_pkts, state.backlog_bytes), (1.0, 60));
        assert!((state.sojourn_s - 6e-5).abs() < 1e-12 && (controller.totals().last_sojourn.as_nanos()) == 60_000);
    }

    #[test]
    fn a_shaper_that_hardly_sends_has_a_thousandth_of_its_rate() {
        let (mut controller, _seen) = controller();
        for step in 0..100 {
            controller.read(&reading(10 * step, 40, 0));
        }
        assert_eq!(controller.link_bps(), 8e3);
        assert_eq!(controller.read(&reading(1000, 40, 0)).sojourn_s, 8.0 * 20_000.0 / 8e3);
    }

    #[test]
    fn after_a_hold_a_long_queue_is_brought_down_first() {
        let network = aqumen_aqm::Network {
            capacity: Rate::from_bps(8_000_000),
            flows: 10.0,
            base_rtt_s: 0.1,
            target_pkts: 20.0,
            packet_bytes: 1000.0,
            link_rate: Rate::from_bps(8_000_000),
            buffer_pkts: 400.0,
        };
        let (mut controller, _seen) = controller();
        controller.hold();
        controller.read(&reading(0, 300, 0));
        let (send, _seen) = std::sync::mpsc::channel();
        let aqm = AnyAqm::custom_law(Proportional(send), true);
        controller.begin_anew(aqm, Some(Start::new(&network)), Instant::ZERO);
        let state = controller.read(&reading(10, 320, 20));
        assert!(state.p > 0.0 && controller.next_timer().is_none(), "{state:?}");
    }

    #[test]
    fn a_reading_older_than_an_order_holds_is_a_gap_and_a_late_one_is_not() {
        // 40 packets wait at each reading, and 2 leave in a millisecond.
        let late_by = |ms: u64| {
            let (mut controller, seen) = controller();
            controller.read(&reading(0, 40, 0));
            controller.read(&reading(10, 60, 20));
            let at = 10 + ms;
            let state = controller.read(&reading(at, 2 * at + 40, 2 * at));
            (state.after_gap, controller.is_held(), state.p > 0.0, seen.try_iter().count())
        };
        for ms in [10, 50, 150, 200] {
            assert_eq!(late_by(ms), (false, false, true, 2), "{ms} ms");
        }
        // Everything passed meanwhile, and passes until it is begun anew.
        for ms in [201, 1000, 20_000] {
            assert_eq!(late_by(ms), (true, true, false, 1), "{ms} ms");
        }
    }

    #[test]
    fn an_aqm_in_the_place_of_another_goes_on_and_the_link_has_its_new_rate() {
        let (mut controller, _seen) = controller();
        controller.read(&reading(0, 0, 0));
        let (send, seen) = std::sync::mpsc::channel();
        controller.replace(AnyAqm::custom_law(Proportional(send), true), Instant::ZERO, Rate::from_bps(4_000_000));
        let state = controller.read(&reading(10, 25, 5));
        assert_eq!((state.link_bps, seen.try_iter().count()), (4e6, 1));
    }

    #[test]
    fn the_mean_packet_is_of_those_that_came_however_long_ago() {
        let (mut controller, _seen) = controller();
        for step in 0..=100 {
            controller.read(&reading(10 * step, 20 * step, 20 * step));
        }
        let after_an_hour = controller.read(&reading(3_600_000, 2000, 2000));
        assert!((after_an_hour.packet_bytes - 500.0).abs() < 1.0, "{after_an_hour:?}");
    }

    #[test]
    fn the_link_is_known_from_fifty_milliseconds_of_waiting_on() {
        let rate_after = |ms| {
            let (mut controller, _seen) = controller();
            // 25 packets of 500 bytes leave: 100 000 bits.
            controller.read(&reading(0, 100, 0));
            controller.read(&reading(ms, 100, 25)).link_bps
        };
        assert_eq!([rate_after(49), rate_after(50)], [8e6, 2e6]);
    }

    #[test]
    fn it_waits_all_along_where_something_waits_at_either_end() {
        let waited = |before: u64, now: u64| {
            let (mut controller, _seen) = controller();
            controller.read(&reading(0, before, 0));
            controller.read(&reading(10, 50, 50 - now)).waited
        };
        assert_eq!([waited(0, 0), waited(5, 0), waited(0, 5), waited(5, 5)], [false, false, false, true]);
    }

    #[test]
    fn room_is_whole_packets_and_no_less_than_one() {
        let limits = [(0.2, None), (7.6, Some(9000)), (1e12, None)].map(|(packets, bytes)| limit(packets, bytes));
        assert_eq!(limits.map(|limit| limit.packets), [1, 8, 1_000_000_000]);
        assert_eq!(limits.map(|limit| limit.bytes.0), [u64::MAX, 9000, u64::MAX]);
    }
}
