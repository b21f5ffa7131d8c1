//! Anti-windup: what a law's integral may keep while the link idles.
//!
//! Traffic that does not respond drives an integral far above what the rest of the traffic needs. Afterwards the queue
//! is empty and the link idles until the integral has come down by the law's own step. While that lasts, the load says
//! where the integral belongs. A TCP flow's window follows from the probabilities that were applied (Misra, Gong,
//! Towsley 2000), and the link's utilisation over that window is the load L = N / (R C):
//!
//! ```text
//! dW/dt = (1 - W^2 p(t - R) / 2) / R        u = share of the time in which the link is busy
//! R dL/dt = u / W - L                       p_hold = 2 L^2, the probability that holds this load
//!
//! conditional         queue empty, link idle:  integral = min(integral, p_hold)
//! back-calculation    the same, and the excess over p_hold decays with the window's time constant R W / 2
//! ```
//!
//! Traffic that does not grow when the probability falls lets W grow and L fall: the integral decays.
//! Under a congestion control with another constant L is wrong by it, and p_hold what holds that control.
//!
//! Deviations: none; there is no other text. The delay R is a lag of first order.

use aqumen_units::{Probability, Span};

use crate::{DefaultValue, Kind, MAX_LOOPS, Network, Observation, Param, SampledLaw, Settings, Theory, Value};

/// How an integral is kept from winding up while the link idles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AntiWindup {
    /// Not at all: the law as its text has it.
    None,
    /// The integral is at most what holds the estimated load.
    Conditional,
    /// The part of the integral above that bound decays.
    BackCalculation,
}

/// A law with its anti-windup.
#[derive(Clone, Copy, Debug)]
pub struct AntiWindupLaw<L> {
    pub(crate) inner: L,
    protection: Option<Protection>,
}

#[derive(Clone, Copy, Debug)]
struct Protection {
    mode: AntiWindup,
    load: LoadObserver,
}

/// The load that follows from the link's utilisation under the probabilities that were applied.
#[derive(Clone, Copy, Debug)]
struct LoadObserver {
    /// Round-trip time without queueing, R, seconds.
    rtt_s: f64,
    /// The probability to which the senders respond now.
    delayed_p: f64,
    /// Window of a flow under it, W, packets.
    window: f64,
    /// L, 1/packets.
    load: f64,
}

impl AntiWindup {
    /// The row that every law with an integral has.
    pub(crate) const PARAM: Param = Param {
        name: "anti_windup",
        kind: Kind::Choice(&["none", "conditional", "back-calculation"]),
        default: DefaultValue::Value(Value::Choice("none")),
        doc: "while the queue is empty and the link idles, the integral is at most what holds the estimated load \
              (conditional), or its excess decays (back-calculation); none: the text's law",
    };

    /// The one that was given.
    pub(crate) fn from_settings(settings: &Settings<'_>) -> Self {
        match settings.choice("anti_windup") {
            Some("conditional") => AntiWindup::Conditional,
            Some("back-calculation") => AntiWindup::BackCalculation,
            _ => AntiWindup::None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            AntiWindup::None => "none",
            AntiWindup::Conditional => "conditional",
            AntiWindup::BackCalculation => "back-calculation",
        }
    }
}

impl<L> AntiWindupLaw<L> {
    /// `law` without anti-windup.
    pub(crate) const fn unprotected(law: L) -> Self {
        AntiWindupLaw { inner: law, protection: None }
    }

    /// `law` with `mode`, in a network whose round trip takes `rtt_s` without queueing.
    pub(crate) fn new(law: L, mode: AntiWindup, rtt_s: f64) -> Self {
        AntiWindupLaw { inner: law, protection: Some(Protection { mode, load: LoadObserver::new(rtt_s) }) }
    }

    /// Makes the wrapper from the settings of a registry entry.
    pub(crate) fn from_settings(law: L, settings: &Settings<'_>, network: &Network) -> Self {
        let rtt_s = settings.number("rtt").unwrap_or(network.base_rtt_s);
        AntiWindupLaw::new(law, AntiWindup::from_settings(settings), rtt_s)
    }

    /// Whether its integral is ever changed from outside.
    pub(crate) fn is_active(&self) -> bool {
        self.protection.is_some_and(|protection| protection.mode != AntiWindup::None)
    }
}

impl<L: SampledLaw> AntiWindupLaw<L> {
    /// The answer after a step that answered `p`.
    pub(crate) fn protect(&mut self, seen: &Observation, p: Probability) -> Probability {
        let Some(Protection { mode, load }) = &mut self.protection else { return p };
        if *mode == AntiWindup::None {
            return p;
        }
        load.update(seen);
        let starves = seen.queue_pkts < 1.0 && seen.idle_s > 0.0;
        let held = load.held_probability();
        match self.inner.integral().filter(|integral| starves && *integral > held) {
            None => p,
            Some(_) if *mode == AntiWindup::Conditional => self.inner.set_integral(held),
            Some(integral) => {
                let kept = libm::exp(-seen.interval_s / (0.5 * load.rtt_s * load.window));
                self.inner.set_integral(held + kept * (integral - held))
            }
        }
    }
}

impl<L: SampledLaw> SampledLaw for AntiWindupLaw<L> {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        self.inner.periods()
    }

    fn step(&mut self, which: usize, seen: &Observation) -> Probability {
        let p = self.inner.step(which, seen);
        if which == 0 { self.protect(seen, p) } else { p }
    }

    fn initial(&self) -> Probability {
        self.inner.initial()
    }

    fn integral(&self) -> Option<f64> {
        self.inner.integral()
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        self.inner.set_integral(p)
    }

    fn take_over(&mut self, old: &Self) {
        self.inner.take_over(&old.inner);
        if let (Some(new), Some(old)) = (&mut self.protection, &old.protection) {
            new.load = LoadObserver { rtt_s: new.load.rtt_s, ..old.load };
        }
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.observe(visit);
        if let Some(Protection { load, .. }) = self.protection.filter(|_| self.is_active()) {
            visit("held_probability", load.held_probability());
        }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.inner.settings(visit);
        self.visit_mode(visit);
    }

    fn theory(&self) -> &dyn Theory {
        self.inner.theory()
    }
}

impl<L> AntiWindupLaw<L> {
    /// Shows the parameter in force, of a law that has it.
    pub(crate) fn visit_mode(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        if let Some(Protection { mode, .. }) = self.protection {
            visit(AntiWindup::PARAM.name, Value::Choice(mode.name()));
        }
    }
}

impl LoadObserver {
    /// Makes the model for flows that begin with a window of one packet.
    fn new(rtt_s: f64) -> Self {
        LoadObserver { rtt_s: rtt_s.max(1e-9), delayed_p: 0.0, window: 1.0, load: 1.0 }
    }

    fn update(&mut self, seen: &Observation) {
        if seen.interval_s <= 0.0 {
            return;
        }
        let round_trips = seen.interval_s / self.rtt_s;
        let weight = -libm::expm1(-round_trips);
        self.delayed_p += weight * (seen.applied.get() - self.delayed_p);
        // The exact solution for a constant p, which tends to the window sqrt(2 / p).
        let pole = libm::sqrt(0.5 * self.delayed_p);
        let (growth, pull) = if pole * round_trips > 1e-9 {
            let tanh = libm::tanh(pole * round_trips);
            (tanh / pole, tanh * pole)
        } else {
            (round_trips, 0.0)
        };
        self.window = (self.window + growth) / (1.0 + pull * self.window);
        let busy = (1.0 - seen.idle_s / seen.interval_s).clamp(0.0, 1.0);
        self.load += weight * (busy / self.window - self.load);
    }

    /// 2 L^2, at most 1.
    fn held_probability(&self) -> f64 {
        (2.0 * self.load * self.load).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 ms, of which so many idle, under `p`.
    fn seen(queue_pkts: f64, idle_ms: f64, p: f64) -> Observation {
        Observation {
            interval_s: 0.01,
            queue_pkts,
            idle_s: 1e-3 * idle_ms,
            applied: Probability::clamp(p),
            ..Observation::default()
        }
    }

    /// The observer of a round trip of 100 ms after `seconds` of this.
    fn after(seconds: f64, seen: &Observation) -> LoadObserver {
        let mut load = LoadObserver::new(0.1);
        (0..(100.0 * seconds) as usize).for_each(|_| load.update(seen));
        load
    }

    #[test]
    fn the_load_is_the_utilisation_over_the_window_that_the_probability_leaves() {
        // sqrt(2 / 0.02) = 10 packets; a link that is busy half of the time: L = 0.05, and 2 L^2 = 0.005.
        let load = after(60.0, &seen(0.0, 5.0, 0.02));
        assert!((load.window - 10.0).abs() < 1e-6 && (load.held_probability() - 0.005).abs() < 1e-6, "{load:?}");
        // Without signals a window grows by a packet a round trip, from one.
        assert!((after(5.0, &seen(0.0, 0.0, 0.0)).window - 51.0).abs() < 1e-9);
    }

    #[test]
    fn steps_of_any_length_lead_to_the_same_window() {
        let at = |interval_s: f64| {
            let mut load = LoadObserver { delayed_p: 0.02, ..LoadObserver::new(0.1) };
            let seen = Observation { interval_s, ..seen(0.0, 0.0, 0.02) };
            (0..(2.0 / interval_s) as usize).for_each(|_| load.update(&seen));
            load.window
        };
        // W = 10 tanh(atanh(0.1) + 2 s / (0.1 s 10)).
        let expected = 10.0 * (libm::atanh(0.1) + 2.0).tanh();
        assert!((at(0.001) - expected).abs() < 1e-6 && (at(1.0) - expected).abs() < 1e-6, "{} {expected}", at(1.0));
    }

    /// An integral that stands where it was put.
    struct Stuck(f64);

    impl SampledLaw for Stuck {
        fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
            [Some(Span::from_millis(10)), None]
        }

        fn step(&mut self, _which: usize, _seen: &Observation) -> Probability {
            Probability::clamp(self.0)
        }

        fn integral(&self) -> Option<f64> {
            Some(self.0)
        }

        fn set_integral(&mut self, p: f64) -> Probability {
            self.0 = p;
            Probability::clamp(p)
        }
    }

    /// Ten seconds of a busy link under p = 0.5, then the link is busy for a fifth of the time, `seconds` long.
    fn unwound(mode: AntiWindup, queue_pkts: f64, seconds: f64) -> f64 {
        let mut law = AntiWindupLaw::new(Stuck(0.5), mode, 0.1);
        (0..1000).for_each(|_| _ = law.step(0, &seen(20.0, 0.0, 0.5)));
        let mut p = 0.5;
        (0..(100.0 * seconds) as usize).for_each(|_| p = law.step(0, &seen(queue_pkts, 8.0, p)).get());
        p
    }

    #[test]
    fn over_an_empty_queue_the_integral_comes_down_to_what_the_load_needs() {
        // Windows of two and a fifth of the link: at most 2 (0.2 / 2)^2 = 0.02, and less where nothing grows.
        let conditional = unwound(AntiWindup::Conditional, 0.0, 1.0);
        assert!(conditional < 0.02, "{conditional}");
        assert!(unwound(AntiWindup::Conditional, 0.0, 10.0) < 0.1 * conditional, "it does not decay");
        // Slower by the window's time constant of 100 ms.
        assert!(unwound(AntiWindup::BackCalculation, 0.0, 0.1) > unwound(AntiWindup::Conditional, 0.0, 0.1));
        assert!(unwound(AntiWindup::BackCalculation, 0.0, 2.0) < 0.02);
        assert_eq!(unwound(AntiWindup::None, 0.0, 10.0), 0.5);
    }

    #[test]
    fn while_something_waits_or_the_link_is_busy_the_law_is_left_alone() {
        assert_eq!(unwound(AntiWindup::Conditional, 1.0, 10.0), 0.5);
        let mut law = AntiWindupLaw::new(Stuck(0.5), AntiWindup::Conditional, 0.1);
        (0..1000).for_each(|_| _ = law.step(0, &seen(0.0, 0.0, 0.1)));
        assert_eq!(law.inner.0, 0.5);
    }
}
