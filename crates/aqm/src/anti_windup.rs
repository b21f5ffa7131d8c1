//! Anti-windup: a bound on a law's integral while the link idles.
//!
//! Unresponsive traffic drives the integral far above the probability that the other traffic needs. Afterwards the
//! queue is empty and the link idles until the law has reduced its integral step by step. During that time the
//! estimated load bounds the integral. A TCP flow's window follows from the applied probabilities (Misra, Gong, Towsley
//! 2000), and the link's utilisation over that window is the load L = N / (R C):
//!
//! ```text
//! dW/dt = (1 - W^2 p(t - R) / 2) / R        u = fraction of time in which the link is busy
//! R dL/dt = u / W - L                       p_hold = 2 L^2, the probability that holds this load
//!
//! conditional         queue empty, link idle:  integral = min(integral, p_hold)
//! back-calculation    queue empty, link idle:  integral - p_hold decays with the window's time constant R W / 2
//! ```
//!
//! If traffic does not grow when the probability falls, W grows and L falls, so the integral decays. For a congestion
//! control with another response constant, L is off by that factor, and p_hold is the probability that holds it.
//!
//! Deviations: none, there is no other source. The delay R is modelled as a first-order lag.

use aqumen_units::{Instant, Probability, Span};

use crate::{DefaultValue, Kind, MAX_LOOPS, Network, Observation, Packet, Param, SampledLaw, Settings, Theory, Value};

/// Anti-windup method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AntiWindup {
    /// None: the law as published.
    None,
    /// The integral is at most the probability that holds the estimated load.
    Conditional,
    /// The excess of the integral over that bound decays.
    BackCalculation,
}

/// A law with its anti-windup.
#[derive(Clone, Copy, Debug)]
pub struct AntiWindupLaw<L> {
    pub(crate) inner: L,
    state: Option<AntiWindupState>,
}

#[derive(Clone, Copy, Debug)]
struct AntiWindupState {
    mode: AntiWindup,
    load: LoadObserver,
}

/// Observer of the load from the link's utilisation and the applied probabilities.
#[derive(Clone, Copy, Debug)]
struct LoadObserver {
    /// Round-trip time without queueing, R, seconds.
    rtt_s: f64,
    /// Applied probability, delayed by a round trip.
    delayed_p: f64,
    /// Window of a flow, W, packets.
    window: f64,
    /// L, 1/packets.
    load: f64,
}

impl AntiWindup {
    /// Parameter of every law with an integral.
    pub(crate) const PARAM: Param = Param {
        name: "anti_windup",
        kind: Kind::Choice(&["none", "conditional", "back-calculation"]),
        default: DefaultValue::Value(Value::Choice("none")),
        doc: "while the queue is empty and the link idles, the integral is at most what holds the estimated load \
              (conditional), or its excess decays (back-calculation); none: the published law",
    };

    /// Method that the settings select.
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
    pub(crate) const fn without_anti_windup(law: L) -> Self {
        AntiWindupLaw { inner: law, state: None }
    }

    /// `law` with method `mode` in a network with base RTT `rtt_s`.
    pub(crate) fn new(law: L, mode: AntiWindup, rtt_s: f64) -> Self {
        AntiWindupLaw { inner: law, state: Some(AntiWindupState { mode, load: LoadObserver::new(rtt_s) }) }
    }

    /// `law` with the method that the settings select.
    pub(crate) fn from_settings(law: L, settings: &Settings<'_>, network: &Network) -> Self {
        let rtt_s = settings.number("rtt").unwrap_or(network.base_rtt_s);
        AntiWindupLaw::new(law, AntiWindup::from_settings(settings), rtt_s)
    }

    /// Whether anti-windup is on.
    pub(crate) fn is_active(&self) -> bool {
        self.state.is_some_and(|state| state.mode != AntiWindup::None)
    }
}

impl<L: SampledLaw> AntiWindupLaw<L> {
    /// Output after a step of the law with output `p`.
    pub(crate) fn limit_integral(&mut self, observation: &Observation, p: Probability) -> Probability {
        let Some(AntiWindupState { mode, load }) = &mut self.state else { return p };
        if *mode == AntiWindup::None {
            return p;
        }
        load.update(observation);
        let is_idle = observation.queue_pkts < 1.0 && observation.idle_s > 0.0;
        let bound = load.holding_probability();
        match self.inner.integral().filter(|integral| is_idle && *integral > bound) {
            None => p,
            Some(_) if *mode == AntiWindup::Conditional => self.inner.set_integral(bound),
            Some(integral) => {
                let factor = libm::exp(-observation.interval_s / (0.5 * load.rtt_s * load.window));
                self.inner.set_integral(bound + factor * (integral - bound))
            }
        }
    }
}

impl<L: SampledLaw> SampledLaw for AntiWindupLaw<L> {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        self.inner.periods()
    }

    fn step(&mut self, which: usize, observation: &Observation) -> Probability {
        let p = self.inner.step(which, observation);
        if which == 0 { self.limit_integral(observation, p) } else { p }
    }

    fn sees_packets(&self) -> bool {
        self.inner.sees_packets()
    }

    #[inline]
    fn on_packet(&mut self, packet: &Packet, now: Instant, waiting_bytes: u64) {
        self.inner.on_packet(packet, now, waiting_bytes);
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
        if let (Some(new), Some(old)) = (&mut self.state, &old.state) {
            new.load = LoadObserver { rtt_s: new.load.rtt_s, ..old.load };
        }
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.observe(visit);
        if let Some(AntiWindupState { load, .. }) = self.state.filter(|_| self.is_active()) {
            visit("held_probability", load.holding_probability());
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
    /// Visits the anti-windup parameter of a law that has it.
    pub(crate) fn visit_mode(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        if let Some(AntiWindupState { mode, .. }) = self.state {
            visit(AntiWindup::PARAM.name, Value::Choice(mode.name()));
        }
    }
}

impl LoadObserver {
    /// Observer of flows that start with a window of one packet.
    fn new(rtt_s: f64) -> Self {
        LoadObserver { rtt_s: rtt_s.max(1e-9), delayed_p: 0.0, window: 1.0, load: 1.0 }
    }

    fn update(&mut self, observation: &Observation) {
        if observation.interval_s <= 0.0 {
            return;
        }
        let round_trips = observation.interval_s / self.rtt_s;
        let weight = -libm::expm1(-round_trips);
        self.delayed_p += weight * (observation.applied.get() - self.delayed_p);
        // Exact solution for constant p; it tends to the window sqrt(2 / p).
        let pole = libm::sqrt(0.5 * self.delayed_p);
        let (growth, pull) = if pole * round_trips > 1e-9 {
            let tanh = libm::tanh(pole * round_trips);
            (tanh / pole, tanh * pole)
        } else {
            (round_trips, 0.0)
        };
        self.window = (self.window + growth) / (1.0 + pull * self.window);
        let busy = (1.0 - observation.idle_s / observation.interval_s).clamp(0.0, 1.0);
        self.load += weight * (busy / self.window - self.load);
    }

    /// p_hold = 2 L^2, at most 1.
    fn holding_probability(&self) -> f64 {
        (2.0 * self.load * self.load).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interval of 10 ms with `idle_ms` idle time and applied probability `p`.
    fn observation(queue_pkts: f64, idle_ms: f64, p: f64) -> Observation {
        Observation {
            interval_s: 0.01,
            queue_pkts,
            idle_s: 1e-3 * idle_ms,
            applied: Probability::clamp(p),
            ..Observation::default()
        }
    }

    /// Observer for a round trip of 100 ms after `seconds` of equal observations.
    fn after(seconds: f64, observation: &Observation) -> LoadObserver {
        let mut load = LoadObserver::new(0.1);
        (0..(100.0 * seconds) as usize).for_each(|_| load.update(observation));
        load
    }

    #[test]
    fn the_load_is_the_utilisation_over_the_window() {
        // sqrt(2 / 0.02) = 10 packets; the link is busy half of the time: L = 0.05, 2 L^2 = 0.005.
        let load = after(60.0, &observation(0.0, 5.0, 0.02));
        assert!((load.window - 10.0).abs() < 1e-6 && (load.holding_probability() - 0.005).abs() < 1e-6, "{load:?}");
        // Without signals the window grows by one packet per round trip, from 1.
        assert!((after(5.0, &observation(0.0, 0.0, 0.0)).window - 51.0).abs() < 1e-9);
    }

    #[test]
    fn the_window_does_not_depend_on_the_step_length() {
        let at = |interval_s: f64| {
            let mut load = LoadObserver { delayed_p: 0.02, ..LoadObserver::new(0.1) };
            let observation = Observation { interval_s, ..observation(0.0, 0.0, 0.02) };
            (0..(2.0 / interval_s) as usize).for_each(|_| load.update(&observation));
            load.window
        };
        // W = 10 tanh(atanh(0.1) + 2 s / (0.1 s 10)).
        let expected = 10.0 * (libm::atanh(0.1) + 2.0).tanh();
        assert!((at(0.001) - expected).abs() < 1e-6 && (at(1.0) - expected).abs() < 1e-6, "{} {expected}", at(1.0));
    }

    /// A law whose integral changes by `set_integral` only.
    struct ConstantIntegral(f64);

    impl SampledLaw for ConstantIntegral {
        fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
            [Some(Span::from_millis(10)), None]
        }

        fn step(&mut self, _which: usize, _observation: &Observation) -> Probability {
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

    /// Output after 10 s of a busy link at p = 0.5 and `seconds` of a link that is busy for 20 % of the time.
    fn unwound(mode: AntiWindup, queue_pkts: f64, seconds: f64) -> f64 {
        let mut law = AntiWindupLaw::new(ConstantIntegral(0.5), mode, 0.1);
        (0..1000).for_each(|_| _ = law.step(0, &observation(20.0, 0.0, 0.5)));
        let mut p = 0.5;
        (0..(100.0 * seconds) as usize).for_each(|_| p = law.step(0, &observation(queue_pkts, 8.0, p)).get());
        p
    }

    #[test]
    fn with_an_empty_queue_the_integral_falls_to_the_holding_probability() {
        // Windows of 2, 20 % utilisation: at most 2 (0.2 / 2)^2 = 0.02, and less if the traffic does not grow.
        let conditional = unwound(AntiWindup::Conditional, 0.0, 1.0);
        assert!(conditional < 0.02, "{conditional}");
        assert!(unwound(AntiWindup::Conditional, 0.0, 10.0) < 0.1 * conditional, "it does not decay");
        // Back-calculation is slower by the window's time constant of 100 ms.
        assert!(unwound(AntiWindup::BackCalculation, 0.0, 0.1) > unwound(AntiWindup::Conditional, 0.0, 0.1));
        assert!(unwound(AntiWindup::BackCalculation, 0.0, 2.0) < 0.02);
        assert_eq!(unwound(AntiWindup::None, 0.0, 10.0), 0.5);
    }

    #[test]
    fn anti_windup_does_nothing_while_packets_wait_or_the_link_is_busy() {
        assert_eq!(unwound(AntiWindup::Conditional, 1.0, 10.0), 0.5);
        let mut law = AntiWindupLaw::new(ConstantIntegral(0.5), AntiWindup::Conditional, 0.1);
        (0..1000).for_each(|_| _ = law.step(0, &observation(0.0, 0.0, 0.1)));
        assert_eq!(law.inner.0, 0.5);
    }
}
