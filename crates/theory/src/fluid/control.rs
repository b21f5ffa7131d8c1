//! How an AQM drives the equations: its control law at its own instants, or the law that its decisions obey on average.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, MAX_LOOPS, Observation, SafeguardLimits, Value};
pub use aqumen_aqm::{RedLaw, SignalProcess};
use aqumen_units::{Instant, Probability};

use super::packets::{Packets, StepThroughput};

/// The AQM of a fluid queue.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one per queue; an indirection would gain nothing")]
pub enum Control {
    /// None: the buffer's end alone.
    None,
    /// One with a control law inside.
    Law(AnyAqm),
    /// RED, averaged over its packets.
    Red(RedLaw),
    /// One that decides packet by packet: asked for evenly spaced packets.
    Packets(AnyAqm),
}

/// Totals of a queue since the start, in packets and seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) arrivals: f64,
    pub(crate) accepted: f64,
    pub(crate) departures: f64,
    pub(crate) busy_s: f64,
}

/// Queue state that an AQM observes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) queue_pkts: f64,
    pub(crate) packet_bytes: f64,
    pub(crate) sojourn_s: f64,
    pub(crate) totals: Totals,
}

/// A control with its clocks.
#[derive(Debug)]
pub(crate) struct Driver {
    control: Control,
    /// The packets of a [`Control::Packets`], which has moved in here.
    packets: Option<Packets>,
    loops: [Option<Loop>; MAX_LOOPS],
    applied: Probability,
    ecn: bool,
    share: SignalProcess,
    spares: Option<SafeguardLimits>,
    /// Whether the last step found a delay as short as that.
    short: bool,
    /// Whether the last step found a delay that spares packets.
    spared: bool,
    /// Time for which a burst at an empty queue is spared, and what is left of it, nanoseconds (RFC 8033 section 4.4).
    burst_ns: [u64; 2],
    /// The probability above which signals are losses all the same.
    mark_limit: f64,
}

#[derive(Clone, Copy, Debug)]
struct Loop {
    period_ns: u64,
    due_ns: u64,
    last_ns: u64,
    totals: Totals,
}

impl Driver {
    /// `buffer_pkts`, `packet_bytes` and `ect` (whether packets can carry marks) are for those that look at packets.
    pub(crate) fn new(
        mut control: Control,
        sample_at_start: bool,
        buffer_pkts: f64,
        packet_bytes: f64,
        ect: bool,
    ) -> Self {
        let mut driver = Driver {
            control: Control::None,
            packets: None,
            loops: [None; MAX_LOOPS],
            applied: Probability::ZERO,
            ecn: true,
            share: SignalProcess::Bernoulli,
            spares: None,
            short: false,
            spared: false,
            burst_ns: [0; 2],
            mark_limit: 1.0,
        };
        if let Control::Law(aqm) = &mut control {
            (driver.ecn, driver.mark_limit) = marking(aqm);
            driver.share = aqm.theory().signal_process();
            driver.spares = aqm.theory().safeguard();
            driver.burst_ns = [driver.spares.map_or(0, |spares| spares.burst.as_nanos()); 2];
            if let Some(law) = aqm.law_mut() {
                driver.applied = law.initial();
                driver.loops = law.periods().map(|period| {
                    let period_ns = period?.as_nanos().max(1);
                    let due_ns = if sample_at_start { 0 } else { period_ns };
                    Some(Loop { period_ns, due_ns, last_ns: 0, totals: Totals::default() })
                });
            }
        }
        match control {
            Control::Packets(aqm) => driver.packets = Some(Packets::new(aqm, buffer_pkts, packet_bytes, ect)),
            control => driver.control = control,
        }
        driver
    }

    /// When the law steps next, nanoseconds.
    #[inline]
    pub(crate) fn due_ns(&self) -> u64 {
        if let Some(packets) = &self.packets {
            return packets.due_ns();
        }
        self.loops.iter().flatten().map(|l| l.due_ns).min().unwrap_or(u64::MAX)
    }

    /// Steps every loop that is due; whether one was.
    pub(crate) fn sample(&mut self, now_ns: u64, view: View) -> bool {
        if let Some(packets) = &mut self.packets {
            packets.on_timer(now_ns, view.queue_pkts);
            return true;
        }
        let mut stepped = false;
        let Control::Law(aqm) = &mut self.control else { return false };
        let Some(law) = aqm.law_mut() else { return false };
        for which in 0..MAX_LOOPS {
            let Some(l) = &mut self.loops[which] else { continue };
            if l.due_ns > now_ns {
                continue;
            }
            let (new, old) = (view.totals, l.totals);
            let departures_pkts = new.departures - old.departures;
            let interval_s = (now_ns - l.last_ns) as f64 * 1e-9;
            let seen = Observation {
                now: Instant::from_nanos(now_ns),
                interval_s,
                queue_pkts: view.queue_pkts,
                queue_bytes: view.queue_pkts * view.packet_bytes,
                arrivals_pkts: new.arrivals - old.arrivals,
                accepted_pkts: new.accepted - old.accepted,
                departures_pkts,
                departures_bytes: departures_pkts * view.packet_bytes,
                busy_s: new.busy_s - old.busy_s,
                idle_s: (interval_s - (new.busy_s - old.busy_s)).max(0.0),
                sojourn_s: view.sojourn_s,
                applied: self.applied,
            };
            l.last_ns = now_ns;
            l.totals = new;
            l.due_ns += l.period_ns;
            self.applied = law.step(which, &seen);
            if let Some(spares) = self.spares {
                let (p, before) = (self.applied.get(), self.short);
                self.short = view.sojourn_s < spares.delay_s;
                self.spared = self.short && p < spares.probability;
                let [allowed, left] = self.burst_ns;
                let again = p == 0.0 && self.short && before;
                self.burst_ns[1] = if again { allowed } else { left.saturating_sub(l.period_ns) };
            }
            stepped = true;
        }
        stepped
    }

    /// Share of the packets that are signalled, given the average queue.
    #[inline]
    pub(crate) fn probability(&self, average: f64) -> f64 {
        if let Some(packets) = &self.packets {
            return packets.probability();
        }
        match &self.control {
            Control::None | Control::Packets(_) => 0.0,
            Control::Law(_) if self.spared || self.burst_ns[1] > 0 => 0.0,
            Control::Law(_) => self.share.signal_probability(self.applied.get()),
            Control::Red(red) => red.probability(average),
        }
    }

    /// Whether it decides packet by packet.
    pub(crate) fn looks_at_packets(&self) -> bool {
        self.packets.is_some()
    }

    /// Whether packets are spared that the law would signal.
    pub(crate) fn is_sparing(&self) -> bool {
        self.spared && self.applied.get() > 0.0
    }

    /// Whether signals to ECN-capable packets are losses.
    #[inline]
    pub(crate) fn loses_marks(&self, average: f64) -> bool {
        if let Some(packets) = &self.packets {
            return packets.loses();
        }
        match &self.control {
            Control::None | Control::Packets(_) => false,
            Control::Law(_) => !self.ecn || self.applied.get() > self.mark_limit,
            Control::Red(red) => red.drops_ect(average),
        }
    }

    /// Passes the queue's throughput in a step to an AQM that counts packets.
    #[inline]
    pub(crate) fn meet(&mut self, from_ns: u64, to_ns: u64, passed: StepThroughput, queue_pkts: f64, sojourn_s: f64) {
        if let Some(packets) = &mut self.packets {
            packets.meet(from_ns, to_ns, passed, queue_pkts, sojourn_s);
        }
    }

    /// The probability as traces show it: what the algorithm calls so, not the single signals
    /// of one that looks at packets.
    pub(crate) fn shown_probability(&self, average: f64) -> f64 {
        match &self.packets {
            Some(packets) => packets.aqm.probability().get(),
            None if self.spared || self.burst_ns[1] > 0 => self.share.signal_probability(self.applied.get()),
            None => self.probability(average),
        }
    }

    /// -ln(1 - w) of the average queue; zero without one.
    pub(crate) fn decay(&self) -> f64 {
        match &self.control {
            Control::Red(red) => red.decay,
            _ => 0.0,
        }
    }
}

/// Whether `aqm` marks, and up to which probability.
fn marking(aqm: &AnyAqm) -> (bool, f64) {
    let (mut ecn, mut limit) = (true, 1.0);
    aqm.settings(&mut |name, value| match (name, value) {
        ("ecn", Value::Flag(yes)) => ecn = yes,
        ("mark_p", Value::Number(p)) => limit = p,
        _ => {}
    });
    (ecn, limit)
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::{Network, RedCurve, SampledLaw};
    use aqumen_units::{Rate, Span};

    use super::*;
    use crate::testing::{NETWORK, built, choice};

    /// Records the observations of a law.
    #[derive(Clone)]
    struct Recorder(std::sync::Arc<std::sync::Mutex<Vec<Observation>>>);

    impl SampledLaw for Recorder {
        fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
            [Some(Span::from_millis(40)), None]
        }

        fn step(&mut self, _which: usize, seen: &Observation) -> Probability {
            self.0.lock().unwrap().push(*seen);
            Probability::clamp(0.25)
        }

        fn initial(&self) -> Probability {
            Probability::clamp(0.5)
        }
    }

    #[test]
    fn a_law_is_shown_what_happened_since_it_stepped_last() {
        let seen = std::sync::Arc::default();
        let law = Recorder(std::sync::Arc::clone(&seen));
        let aqm = AnyAqm::custom_law(law, true);
        let mut driver = Driver::new(Control::Law(aqm), false, 100.0, 500.0, true);
        let view = |arrivals, accepted, departures, busy_s| View {
            queue_pkts: 7.0,
            packet_bytes: 500.0,
            sojourn_s: 0.007,
            totals: Totals { arrivals, accepted, departures, busy_s },
        };
        assert!(!driver.sample(39_999_999, view(0.0, 0.0, 0.0, 0.0)) && driver.due_ns() == 40_000_000);
        assert_eq!(driver.probability(0.0), 0.5);
        assert!(driver.sample(40_000_000, view(50.0, 45.0, 38.0, 0.03)));
        assert!(driver.sample(90_000_000, view(80.0, 70.0, 60.0, 0.05)));
        assert_eq!((driver.probability(0.0), driver.due_ns()), (0.25, 120_000_000));
        let seen = seen.lock().unwrap();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        for (shown, [interval, arrivals, accepted, departures, busy, applied]) in
            seen.iter().zip([[0.04, 50.0, 45.0, 38.0, 0.03, 0.5], [0.05, 30.0, 25.0, 22.0, 0.02, 0.25]])
        {
            near(shown.interval_s, interval);
            near(shown.arrivals_pkts, arrivals);
            near(shown.accepted_pkts, accepted);
            near(shown.departures_pkts, departures);
            near(shown.departures_bytes, 500.0 * departures);
            near(shown.busy_s, busy);
            near(shown.idle_s, interval - busy);
            near(shown.queue_bytes, 3500.0);
            near(shown.applied.get(), applied);
        }
        assert_eq!(seen.len(), 2);
    }

    #[test]
    fn pie_spares_packets_while_the_delay_is_below_half_of_its_target() {
        let rate = Rate::from_bps(8_000_000);
        let network = Network { capacity: rate, link_rate: rate, target_pkts: 15.0, ..NETWORK };
        let mut driver = Driver::new(Control::Law(built(&choice("pie", &[], network))), false, 300.0, 1000.0, true);
        let at = |driver: &mut Driver, sojourn_s: f64| {
            let due = driver.due_ns();
            let view =
                View { queue_pkts: 1000.0 * sojourn_s, packet_bytes: 1000.0, sojourn_s, totals: Totals::default() };
            driver.sample(due, view);
            (driver.probability(0.0), driver.shown_probability(0.0))
        };
        // Long above its target of 15 ms.
        for _ in 0..120 {
            at(&mut driver, 0.03);
        }
        let (signalled, shown) = at(&mut driver, 0.03);
        assert!(signalled > 0.01 && signalled < 0.1 && shown == signalled, "{signalled} {shown}");
        // Half of it is 7.5 ms; what the law says is shown all the same.
        let (signalled, shown) = at(&mut driver, 0.0074);
        assert!(signalled == 0.0 && shown > 0.01 && driver.is_sparing(), "{signalled} {shown}");
        assert!(at(&mut driver, 0.0076).0 > 0.01);
        // From p = .2 on nothing is spared.
        while at(&mut driver, 0.3).1 < 0.7 {}
        let (signalled, shown) = at(&mut driver, 0.0);
        assert!(signalled == shown && shown > 0.1, "{signalled} {shown}");
        // Once p is back at 0 and the queue has been short for two steps, the next 150 ms are spared: nine steps of 15
        // ms go by, the tenth ends it.
        while at(&mut driver, 0.0).1 > 0.0 {}
        assert!(!driver.is_sparing(), "nothing would be signalled");
        at(&mut driver, 0.0);
        let spared = (1..).find(|_| at(&mut driver, 0.1).0 > 0.0).unwrap();
        assert_eq!(spared, 10);
    }

    #[test]
    fn spreading_signals_out_changes_their_share() {
        let law = |wait| RedLaw {
            curve: RedCurve::new(50.0, 150.0, 0.1, true).unwrap(),
            decay: 0.002,
            wait,
            ecn: true,
            mark_limit: (1.0, 300.0),
        };
        // At 150 the curve gives 0.1: gaps of 10 to 19 packets average 14.5; gaps of 1 to 9 average 5.
        assert!((law(true).probability(150.0) - 1.0 / 14.5).abs() < 1e-12);
        assert!((law(false).probability(150.0) - 1.0 / 5.0).abs() < 1e-12);
        // At the end every packet is signalled, whatever the spreading.
        assert_eq!((law(true).probability(300.0), law(false).probability(300.0)), (1.0, 1.0));
        let back = law(true);
        assert!((back.average_at(back.probability(120.0)) - 120.0).abs() < 1e-9);
    }
}
