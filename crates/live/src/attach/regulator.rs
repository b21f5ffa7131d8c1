//! From a reading to a probability: the controller, with `--rollback` (comparison with a baseline) and `--autorate`
//! (estimated link rate). After a gap in the readings, or a pause, the AQM restarts at the operating point of its
//! design.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Network, Totals};
use aqumen_scenario::AqmSpec;
use aqumen_units::{Instant, Rate};

use super::autorate::Autorate;
use super::controller::{self, Controller, Reading, State};
use super::design::network_at;
use super::options::{Options, Target, is_self_contained};
use super::rollback::{Comparison, Verdict};
use super::sampled;
use super::startup::Startup;

/// Controller of one queue, with rollback and rate estimation.
#[derive(Debug)]
pub(super) struct Regulator {
    spec: AqmSpec,
    target: Target,
    network: Network,
    controller: Controller,
    comparison: Option<Comparison>,
    autorate: Option<Autorate>,
    messages: Vec<String>,
}

impl Regulator {
    /// Regulates with `aqm`, designed for `network`; `limit_bytes`: the queue's limit, if it is one of bytes.
    pub(super) fn new(options: &Options, network: Network, aqm: AnyAqm, limit_bytes: Option<u64>) -> Self {
        let limit = controller::queue_limit(network.buffer_pkts, limit_bytes);
        let controller = Controller::new(aqm, limit, network.packet_bytes, network.link_rate);
        let controller = if options.autorate.is_some() { controller.for_radio_link() } else { controller };
        let controller = match startup(&options.aqm, &network) {
            Some(startup) => controller.with_startup(startup),
            None => controller,
        };
        Regulator {
            spec: options.aqm.clone(),
            target: options.target,
            network,
            controller,
            comparison: options.rollback.map(Comparison::new),
            autorate: options.autorate.map(|range| Autorate::new(network.link_rate, range)),
            messages: Vec::new(),
        }
    }

    /// Takes a reading. Returns the state with the probability from now on, or the reason to detach.
    pub(super) fn on_reading(&mut self, reading: &Reading) -> Result<State, String> {
        let mut state = self.controller.on_reading(reading);
        if state.after_gap {
            self.after_gap(&state, reading.at);
            return Ok(state);
        }
        if let Some(comparison) = &mut self.comparison {
            let bits = 8.0 * state.departed_bytes as f64;
            match comparison.update(state.interval_s, state.sojourn_s, bits, state.p) {
                Verdict::Measure => {
                    state.p = 0.0;
                    self.controller.suspend();
                }
                Verdict::Regulate if self.controller.is_suspended() => self.restart(reading.at),
                Verdict::Regulate => {}
                Verdict::Pause(why) => {
                    state.p = 0.0;
                    self.controller.suspend();
                    self.messages.push(format!("rolled back for a while: {why}"));
                }
                Verdict::Detach(why) => return Err(why),
            }
        }
        let autorate = self.autorate.as_mut();
        let rate = autorate.and_then(|auto| auto.update(state.interval_s, state.departed_bytes, state.backlogged));
        if let Some(rate) = rate {
            self.redesign(reading.at, rate);
        }
        Ok(state)
    }

    /// Handles a gap in the readings, during which everything passed.
    fn after_gap(&mut self, state: &State, now: Instant) {
        self.messages
            .push(format!("stalled for {:.1} s: everything passed meanwhile; the AQM restarts", state.interval_s));
        match &mut self.comparison {
            // The comparison decides at the next reading whether to restart.
            Some(comparison) => comparison.reset_window(),
            None => self.restart(now),
        }
    }

    /// Restarts the AQM at the operating point of its design, after the standing queue is drained.
    fn restart(&mut self, now: Instant) {
        if let Ok(aqm) = sampled::build_at_operating_point(&self.spec, &self.network) {
            self.controller.restart(aqm, startup(&self.spec, &self.network), now);
        }
    }

    /// Takes the log messages since the last call.
    pub(super) fn take_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.messages)
    }

    /// Time of the AQM's next step.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.controller.next_timer()
    }

    /// Rate that the AQM is designed for.
    pub(super) fn rate(&self) -> Rate {
        self.network.link_rate
    }

    /// Calls `visit` with each estimate of an AQM that measures its network.
    pub(super) fn observe_estimates(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.controller.observe_estimates(visit);
    }

    /// Totals that the AQM observes.
    pub(super) fn totals(&self) -> &Totals {
        self.controller.totals()
    }

    /// Redesigns the AQM for another link rate.
    fn redesign(&mut self, now: Instant, rate: Rate) {
        let network = network_at(&self.network, self.target, rate);
        // Parameters that do not fit the new rate stay as they were.
        if let Ok(aqm) = sampled::build(&self.spec, &network) {
            self.controller.replace(aqm, now, rate);
            self.network = network;
        }
    }
}

/// Startup of an AQM; a fixed probability has no target, and ST-PI2 is not designed for a network.
fn startup(spec: &AqmSpec, network: &Network) -> Option<Startup> {
    (spec.algorithm != "fixed" && !is_self_contained(spec)).then(|| Startup::new(network))
}

#[cfg(test)]
mod tests {
    use super::super::design;
    use super::super::marker::Counts;
    use super::*;
    use crate::netlink::tc::Stats;

    /// Regulator of 12 Mbit/s with packets of 1500 bytes (1000 a second) and a buffer of 400.
    fn regulator(line: &str) -> Regulator {
        let options = Options::from_line(line);
        let network = Network { target_pkts: 50.0, ..design::example(12) };
        let aqm = sampled::build(&options.aqm, &network).unwrap();
        Regulator::new(&options, network, aqm, None)
    }

    /// Readings each 10 ms of a backlogged queue with departures.
    #[derive(Default)]
    struct Queue {
        readings: u64,
        left: u64,
    }

    impl Queue {
        /// Next reading, with the backlog and the departures since the previous one.
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
    fn a_fixed_probability_applies_from_the_first_reading() {
        let mut fixed = regulator("eth0 --aqm fixed:p=0.25");
        assert_eq!(fixed.on_reading(&Queue::default().next(300, 0)).unwrap().p, 0.25);
        // Other AQMs first give each flow one signal per round trip, until the queue is near its target: 10 signals per
        // 100 packets in flight and 300 waiting.
        let mut pi = regulator("eth0 --aqm pi");
        assert_eq!(pi.on_reading(&Queue::default().next(300, 0)).unwrap().p, 0.025);
        assert!(pi.next_timer().is_none(), "it has not begun");
    }

    #[test]
    fn rollback_measures_a_baseline_for_ten_seconds_and_detaches_when_worse() {
        let mut regulator = regulator("eth0 --aqm fixed:p=0.25 --rollback delay=20ms");
        let mut queue = Queue::default();
        let mut run = |waiting, readings| -> Vec<_> {
            (0..readings).map(|_| regulator.on_reading(&queue.next(waiting, 10)).map(|state| state.p)).collect()
        };
        // 100 packets wait 100 ms; the first reading starts the ten seconds.
        assert!(run(100, 1000).iter().all(|p| *p == Ok(0.0)), "the baseline is measured without the AQM");
        run(100, 5);
        assert!(run(100, 900).iter().all(|p| *p == Ok(0.25)));
        // 130 packets are 30 ms more, in the mean of the ten seconds.
        run(130, 200);
        let worse = run(130, 1000).into_iter().find_map(Result::err).unwrap();
        assert!(worse.starts_with("mean delay 1") && worse.ends_with(", 100.0 ms before"), "{worse}");
    }

    #[test]
    fn after_a_gap_the_queue_is_drained_and_the_aqm_restarts_at_its_operating_point() {
        let mut regulator = regulator("eth0 --aqm pi");
        let mut queue = Queue::default();
        (0..10).for_each(|_| _ = regulator.on_reading(&queue.next(50, 10)).unwrap());
        assert!(regulator.take_messages().is_empty() && regulator.next_timer().is_some());
        // Ten seconds pass, and the buffer is full. The next order passes everything.
        queue.readings += 1000;
        let state = regulator.on_reading(&queue.next(400, 10_000)).unwrap();
        assert!(state.after_gap && state.p == 0.0 && regulator.next_timer().is_none(), "{state:?}");
        assert_eq!(regulator.take_messages(), ["stalled for 10.0 s: everything passed meanwhile; the AQM restarts"]);
        // Each of ten flows gets one signal per round trip: 10 per 100 packets in flight and 400 waiting.
        assert_eq!(regulator.on_reading(&queue.next(400, 10)).unwrap().p, 0.02);
        // Near its target PI takes over, starting at 2 / W0^2 with W0 = 0.15 s 1000 / 10 packets.
        (0..3).for_each(|_| _ = regulator.on_reading(&queue.next(50, 10)).unwrap());
        let p = regulator.on_reading(&queue.next(50, 10)).unwrap().p;
        assert!((p / (2.0 / 225.0) - 1.0).abs() < 0.01, "{p}");
    }

    #[test]
    fn occasional_late_readings_do_not_change_the_result() {
        // The same queue, read each 10 ms, and with one reading of ten 150 ms late.
        let p_after = |late: bool| {
            let mut regulator = regulator("eth0 --aqm pi");
            let mut queue = Queue::default();
            let last = (0..1000).map(|reading| {
                queue.readings += if late && reading % 10 == 9 { 15 } else { 0 };
                let state = regulator.on_reading(&queue.next(60, 10)).unwrap();
                assert!(!state.after_gap);
                state.p
            });
            last.last().unwrap()
        };
        assert_eq!(p_after(true), p_after(false));
    }

    #[test]
    fn a_paused_aqm_returns() {
        let mut regulator = regulator("eth0 --aqm fixed:p=0.25 --rollback delay=20ms,return=60s");
        let mut queue = Queue::default();
        let mut run = |seconds: u64, waiting| -> Vec<f64> {
            (0..100 * seconds).map(|_| regulator.on_reading(&queue.next(waiting, 10)).unwrap().p).collect()
        };
        assert_eq!((run(10, 100).last(), run(9, 150).last()), (Some(&0.0), Some(&0.25)));
        assert_eq!(run(2, 150).last(), Some(&0.0), "it was better before");
        assert!(run(60, 150).iter().all(|p| *p == 0.0));
        run(10, 150);
        assert_eq!(run(30, 150).last(), Some(&0.25), "the baseline is a new one");
        assert_eq!(regulator.take_messages(), ["rolled back for a while: mean delay 150.0 ms, 100.1 ms before"]);
    }

    #[test]
    fn lost_throughput_is_reported_in_mbit_per_second() {
        let mut regulator = regulator("eth0 --aqm fixed:p=0.25 --rollback throughput=10%");
        let mut queue = Queue::default();
        let worse = (0..3000)
            .find_map(|reading| regulator.on_reading(&queue.next(50, if reading < 1100 { 10 } else { 5 })).err());
        // 10 packets of 1500 bytes each 10 ms are 12 Mbit/s; the window of the change contains some of them.
        let worse = worse.unwrap();
        assert!(worse.starts_with("throughput 6.") && worse.ends_with(" Mbit/s, 12.00 before"), "{worse}");
    }

    #[test]
    fn the_target_queue_follows_the_estimated_rate() {
        // At 500 packets a second 37 packets wait 74 ms, too long for a target of 50 ms. At 1000 a second the target is
        // 50 packets.
        for (follows, regulates) in [("--autorate", true), ("--listen no", false)] {
            let mut regulator = regulator(&format!("eth0 --aqm pi --target 50ms {follows}"));
            let mut queue = Queue::default();
            let last = (0..1000).map(|_| regulator.on_reading(&queue.next(37, 5)).unwrap().p).last().unwrap();
            assert_eq!(last > 0.01, regulates, "{follows}: {last}");
        }
    }

    #[test]
    fn arrivals_and_departures_are_counted() {
        let mut regulator = regulator("eth0 --aqm pi");
        let mut queue = Queue::default();
        for _ in 0..3 {
            regulator.on_reading(&queue.next(20, 10)).unwrap();
        }
        assert_eq!((regulator.totals().arrivals, regulator.totals().departures), (20, 20));
        assert!(regulator.next_timer().is_some(), "over a short queue the AQM regulates at once");
    }
}
