//! From a reading to a probability: the controller, and around it a comparison with before (`--rollback`) and a rate
//! that is followed (`--autorate`). After a gap in the readings, or a time without it, the AQM begins anew from the
//! operating point that it was designed for.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Network, Totals};
use aqumen_scenario::AqmSpec;
use aqumen_units::{Instant, Rate};

use super::autorate::Autorate;
use super::controller::{self, Controller, Reading, State};
use super::design::network_at;
use super::options::{Options, Target};
use super::rollback::{Comparison, Verdict};
use super::sampled;
use super::start::Start;

/// What says how much of the traffic is to be marked or dropped.
#[derive(Debug)]
pub(super) struct Regulator {
    spec: AqmSpec,
    target: Target,
    network: Network,
    controller: Controller,
    comparison: Option<Comparison>,
    autorate: Option<Autorate>,
    news: Vec<String>,
}

impl Regulator {
    /// With `aqm`, which was designed for `network`, over a queue with room for so many bytes, if bytes bound it.
    pub(super) fn new(options: &Options, network: Network, aqm: AnyAqm, limit_bytes: Option<u64>) -> Self {
        let limit = controller::limit(network.buffer_pkts, limit_bytes);
        let controller = Controller::new(aqm, limit, network.packet_bytes, network.link_rate);
        let controller = if options.autorate.is_some() { controller.of_radio() } else { controller };
        let controller = match start(&options.aqm, &network) {
            Some(start) => controller.after(start),
            None => controller,
        };
        Regulator {
            spec: options.aqm.clone(),
            target: options.target,
            network,
            controller,
            comparison: options.rollback.map(Comparison::new),
            autorate: options.autorate.map(|range| Autorate::new(network.link_rate, range)),
            news: Vec::new(),
        }
    }

    /// What a reading means, with the probability from now on; or why it is better to leave.
    pub(super) fn read(&mut self, reading: &Reading) -> Result<State, String> {
        let mut state = self.controller.read(reading);
        if state.after_gap {
            return Ok(self.after_gap(state, reading.at));
        }
        if let Some(comparison) = &mut self.comparison {
            let bits = 8.0 * state.departed_bytes as f64;
            match comparison.see(state.interval_s, state.sojourn_s, bits, state.p) {
                Verdict::Wait => {
                    state.p = 0.0;
                    self.controller.hold();
                }
                Verdict::Go if self.controller.is_held() => self.begin_anew(reading.at),
                Verdict::Go => {}
                Verdict::Away(why) => {
                    state.p = 0.0;
                    self.controller.hold();
                    self.news.push(format!("rolled back for a while: {why}"));
                }
                Verdict::Worse(why) => return Err(why),
            }
        }
        let autorate = self.autorate.as_mut();
        let rate = autorate.and_then(|auto| auto.see(state.interval_s, state.departed_bytes, state.waited));
        if let Some(rate) = rate {
            self.redesign(reading.at, rate);
        }
        Ok(state)
    }

    /// Nothing was read for so long that everything passed.
    fn after_gap(&mut self, state: State, now: Instant) -> State {
        self.news.push(format!(
            "stood still for {:.1} s: everything passed meanwhile; the AQM begins anew",
            state.interval_s
        ));
        match &mut self.comparison {
            // It says at the next reading whether to begin.
            Some(comparison) => comparison.forget_window(),
            None => self.begin_anew(now),
        }
        state
    }

    /// The AQM begins where it was designed for, once the queue that it finds has been brought down.
    fn begin_anew(&mut self, now: Instant) {
        if let Ok(aqm) = sampled::build_at_rest(&self.spec, &self.network) {
            self.controller.begin_anew(aqm, start(&self.spec, &self.network), now);
        }
    }

    /// What an operator is to be told since the last time.
    pub(super) fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// When the AQM wants to be stepped.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.controller.next_timer()
    }

    /// The rate that the AQM is designed for.
    pub(super) fn rate(&self) -> Rate {
        self.network.link_rate
    }

    /// What the AQM is told.
    pub(super) fn totals(&self) -> &Totals {
        self.controller.totals()
    }

    /// The link has another rate: the same AQM, designed for that.
    fn redesign(&mut self, now: Instant, rate: Rate) {
        let network = network_at(&self.network, self.target, rate);
        // Parameters that fit at one rate and not at another stay what they were.
        if let Ok(aqm) = sampled::build(&self.spec, &network) {
            self.controller.replace(aqm, now, rate);
            self.network = network;
        }
    }
}

/// How the AQM begins; a probability that never changes has no queue that it aims at.
fn start(spec: &AqmSpec, network: &Network) -> Option<Start> {
    (spec.algorithm != "fixed").then(|| Start::new(network))
}

#[cfg(test)]
mod tests {
    use super::super::marker::Counts;
    use super::*;
    use crate::netlink::tc::Stats;

    /// 12 Mbit/s and packets of 1500 bytes: 1000 a second, with room for 400.
    fn regulator(line: &str) -> Regulator {
        let options = Options::of_line(line);
        let rate = Rate::from_bps(12_000_000);
        let network = Network {
            capacity: rate,
            flows: 10.0,
            base_rtt_s: 0.1,
            target_pkts: 50.0,
            packet_bytes: 1500.0,
            link_rate: rate,
            buffer_pkts: 400.0,
        };
        let aqm = sampled::build(&options.aqm, &network).unwrap();
        Regulator::new(&options, network, aqm, None)
    }

    /// Readings each 10 ms of a queue in which packets wait while others leave.
    #[derive(Default)]
    struct Queue {
        readings: u64,
        left: u64,
    }

    impl Queue {
        /// The next: `waiting` packets wait, and so many left since the one before.
        fn next(&mut self, waiting: u64, left: u64) -> Reading {
            self.readings += 1;
            self.left += left;
            let arrived = self.left + waiting;
            Reading {
                at: Instant::from_nanos(self.readings * 10_000_000),
                counts: Counts { packets: arrived, segments: arrived, bytes: 1500 * arrived, ..Counts::default() },
                queue: Stats {
                    bytes: 1500 * self.left,
                    packets: self.left,
                    backlog_bytes: 1500 * waiting as u32,
                    backlog_pkts: waiting as u32,
                    drops: 0,
                },
            }
        }
    }

    #[test]
    fn a_probability_that_is_given_holds_from_the_first_reading_over_whatever_queue() {
        let mut fixed = regulator("eth0 --aqm fixed:p=0.25");
        assert_eq!(fixed.read(&Queue::default().next(300, 0)).unwrap().p, 0.25);
        // Of others each flow gets a signal a round trip, until the queue is near its target: 10 of 100 packets in
        // flight and 300 that wait.
        let mut pi = regulator("eth0 --aqm pi");
        assert_eq!(pi.read(&Queue::default().next(300, 0)).unwrap().p, 0.025);
        assert!(pi.next_timer().is_none(), "it has not begun");
    }

    #[test]
    fn what_is_compared_with_before_waits_for_ten_seconds_and_leaves_where_it_became_worse() {
        let mut regulator = regulator("eth0 --aqm fixed:p=0.25 --rollback delay=20ms");
        let mut queue = Queue::default();
        let mut run = |waiting, readings| -> Vec<_> {
            (0..readings).map(|_| regulator.read(&queue.next(waiting, 10)).map(|state| state.p)).collect()
        };
        // 100 packets wait 100 ms; the first reading is the beginning of the ten seconds.
        assert!(run(100, 1000).iter().all(|p| *p == Ok(0.0)), "before is measured without it");
        run(100, 5);
        assert!(run(100, 900).iter().all(|p| *p == Ok(0.25)));
        // 130 packets would be 30 ms more, on the mean of the ten seconds.
        run(130, 200);
        let worse = run(130, 1000).into_iter().find_map(Result::err).unwrap();
        assert!(worse.starts_with("mean delay 1") && worse.ends_with(", 100.0 ms before"), "{worse}");
    }

    #[test]
    fn after_a_gap_the_queue_is_brought_down_and_the_aqm_begins_where_it_was_designed_for() {
        let mut regulator = regulator("eth0 --aqm pi");
        let mut queue = Queue::default();
        (0..10).for_each(|_| _ = regulator.read(&queue.next(50, 10)).unwrap());
        assert!(regulator.news().is_empty() && regulator.next_timer().is_some());
        // Ten seconds pass; all room is taken. The order that follows passes everything.
        queue.readings += 1000;
        let state = regulator.read(&queue.next(400, 10_000)).unwrap();
        assert!(state.after_gap && state.p == 0.0 && regulator.next_timer().is_none(), "{state:?}");
        assert_eq!(regulator.news(), ["stood still for 10.0 s: everything passed meanwhile; the AQM begins anew"]);
        // Each of ten flows gets a signal a round trip: 10 of 100 packets in flight and 400 that wait.
        assert_eq!(regulator.read(&queue.next(400, 10)).unwrap().p, 0.02);
        // Near its target it is PI's again, which begins at 2 / W0^2 with W0 = 0.15 s 1000 / 10 packets.
        (0..3).for_each(|_| _ = regulator.read(&queue.next(50, 10)).unwrap());
        let p = regulator.read(&queue.next(50, 10)).unwrap().p;
        assert!((p / (2.0 / 225.0) - 1.0).abs() < 0.01, "{p}");
    }

    #[test]
    fn readings_that_are_late_now_and_then_change_nothing_but_their_own_step() {
        // The same queue, read each 10 ms, and with one reading of ten 150 ms late.
        let p_after = |late: bool| {
            let mut regulator = regulator("eth0 --aqm pi");
            let mut queue = Queue::default();
            let last = (0..1000).map(|reading| {
                queue.readings += if late && reading % 10 == 9 { 15 } else { 0 };
                let state = regulator.read(&queue.next(60, 10)).unwrap();
                assert!(!state.after_gap);
                state.p
            });
            last.last().unwrap()
        };
        assert_eq!(p_after(true), p_after(false));
    }

    #[test]
    fn what_was_rolled_back_for_a_while_comes_back() {
        let mut regulator = regulator("eth0 --aqm fixed:p=0.25 --rollback delay=20ms,return=60s");
        let mut queue = Queue::default();
        let mut run = |seconds: u64, waiting| -> Vec<f64> {
            (0..100 * seconds).map(|_| regulator.read(&queue.next(waiting, 10)).unwrap().p).collect()
        };
        assert_eq!((run(10, 100).last(), run(9, 150).last()), (Some(&0.0), Some(&0.25)));
        assert_eq!(run(2, 150).last(), Some(&0.0), "it was better before");
        assert!(run(60, 150).iter().all(|p| *p == 0.0));
        run(10, 150);
        assert_eq!(run(30, 150).last(), Some(&0.25), "what is before has changed");
        assert_eq!(regulator.news(), ["rolled back for a while: mean delay 150.0 ms, 100.1 ms before"]);
    }

    #[test]
    fn lost_throughput_is_told_in_bits() {
        let mut regulator = regulator("eth0 --aqm fixed:p=0.25 --rollback throughput=10%");
        let mut queue = Queue::default();
        let worse =
            (0..3000).find_map(|reading| regulator.read(&queue.next(50, if reading < 1100 { 10 } else { 5 })).err());
        // 10 packets of 1500 bytes each 10 ms are 12 Mbit/s; the window in which it fell has some of them.
        let worse = worse.unwrap();
        assert!(worse.starts_with("throughput 6.") && worse.ends_with(" Mbit/s, 12.00 before"), "{worse}");
    }

    #[test]
    fn at_another_rate_the_queue_that_is_aimed_at_is_another() {
        // 37 packets of a link that lets through 500 a second wait 74 ms, which is too long for a target of 50 ms; of
        // one with 1000 a second that is the time of 50.
        for (follows, regulates) in [("--autorate", true), ("--listen no", false)] {
            let mut regulator = regulator(&format!("eth0 --aqm pi --target 50ms {follows}"));
            let mut queue = Queue::default();
            let last = (0..1000).map(|_| regulator.read(&queue.next(37, 5)).unwrap().p).last().unwrap();
            assert_eq!(last > 0.01, regulates, "{follows}: {last}");
        }
    }

    #[test]
    fn what_arrived_and_left_is_counted() {
        let mut regulator = regulator("eth0 --aqm pi");
        let mut queue = Queue::default();
        for _ in 0..3 {
            regulator.read(&queue.next(20, 10)).unwrap();
        }
        assert_eq!((regulator.totals().arrivals, regulator.totals().departures), (20, 20));
        assert!(regulator.next_timer().is_some(), "a short queue is the AQM's at once");
    }
}
