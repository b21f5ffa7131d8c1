//! PIE's control law from delay to probability, without the per-packet safeguards.

use aqumen_units::{Probability, Span};

use crate::{MAX_LOOPS, Observation, SampledLaw, Value};

// RFC 8033 sections 4.2, 5.1.
pub(super) const DEFAULT_TARGET_S: f64 = 0.015;
pub(super) const DEFAULT_INTERVAL_S: f64 = 0.015;
pub(super) const DEFAULT_ALPHA_HZ: f64 = 0.125;
pub(super) const DEFAULT_BETA_HZ: f64 = 1.25;
/// Section 4.2: divisors of the step for a probability below each bound.
const TUNING: [(f64, f64); 6] = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)];
/// Section 4.2: decay per update once congestion is over.
pub(super) const DECAY: f64 = 0.98;
/// Linux: decay per update.
pub(super) const LINUX_DECAY: f64 = 1.0 - 1.0 / 64.0;
/// Section 5.5: largest increment, from probability `CAP_FROM_P` on.
const CAP_FROM_P: f64 = 0.1;
const CAP: f64 = 0.02;
/// Linux: delay above which `CAP` is added per update.
const BOOST_DELAY_S: f64 = 0.250;

/// Increment common to PIE and PI2: alpha (delay - target) + beta (delay - previous delay).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayPi {
    /// Weight of the error, Hz.
    pub alpha_hz: f64,
    /// Weight of the change, Hz.
    pub beta_hz: f64,
    /// Target delay, seconds.
    pub target_s: f64,
    /// Delay at the previous update, seconds.
    pub previous_s: f64,
}

/// The parameters of [`PieLaw`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieLawParams {
    /// Target delay, seconds.
    pub target_s: f64,
    /// Time between updates.
    pub interval: Span,
    /// Weight of the error, Hz.
    pub alpha_hz: f64,
    /// Weight of the change, Hz.
    pub beta_hz: f64,
    /// Scale the steps down while the probability is small.
    pub auto_tune: bool,
    /// Limit increments to 0.02 per update from a probability of 0.1 on.
    pub cap: bool,
    /// Add 0.02 per update above a delay of 250 ms.
    pub delay_boost: bool,
    /// Factor of the probability per update without congestion.
    pub decay: f64,
}

/// The law from delay to probability, without the per-packet safeguards.
#[derive(Clone, Copy, Debug)]
pub struct PieLaw {
    pub(super) params: PieLawParams,
    pub(super) core: DelayPi,
    pub(super) p: Probability,
}

impl DelayPi {
    /// Increment of the probability at `delay_s`, which becomes the previous delay.
    pub fn increment(&mut self, delay_s: f64) -> f64 {
        let dp = self.alpha_hz * (delay_s - self.target_s) + self.beta_hz * (delay_s - self.previous_s);
        self.previous_s = delay_s;
        dp
    }
}

impl Default for PieLawParams {
    /// The RFC's values.
    fn default() -> Self {
        PieLawParams {
            target_s: DEFAULT_TARGET_S,
            interval: Span::from_secs_f64(DEFAULT_INTERVAL_S),
            alpha_hz: DEFAULT_ALPHA_HZ,
            beta_hz: DEFAULT_BETA_HZ,
            auto_tune: true,
            cap: true,
            delay_boost: false,
            decay: DECAY,
        }
    }
}

impl PieLaw {
    /// The law at p = 0 and delay 0.
    pub const fn new(params: PieLawParams) -> Self {
        let PieLawParams { alpha_hz, beta_hz, target_s, .. } = params;
        let core = DelayPi { alpha_hz, beta_hz, target_s, previous_s: 0.0 };
        PieLaw { params, core, p: Probability::ZERO }
    }

    /// Parameters.
    pub const fn params(&self) -> &PieLawParams {
        &self.params
    }

    /// Current probability.
    pub const fn probability(&self) -> Probability {
        self.p
    }

    /// Delay at the last update, seconds.
    pub const fn delay_s(&self) -> f64 {
        self.core.previous_s
    }

    /// Divisor of the increment at probability `p` (RFC 8033 section 4.2).
    pub fn divisor(p: f64) -> f64 {
        TUNING.iter().find(|(below, _)| p < *below).map_or(1.0, |(_, divisor)| *divisor)
    }

    /// Updates the probability for `delay_s`.
    pub fn update(&mut self, delay_s: f64) -> Probability {
        self.update_where(delay_s, true)
    }

    /// [`update`](Self::update), with the decay only if `can_be_over`.
    pub(super) fn update_where(&mut self, delay_s: f64, can_be_over: bool) -> Probability {
        let (p, previous_s) = (self.p.get(), self.core.previous_s);
        let mut dp = self.core.increment(delay_s);
        // Section 4.2: smaller steps at small probabilities.
        if self.params.auto_tune {
            dp /= Self::divisor(p);
        }
        // Section 5.5.
        if self.params.cap && p >= CAP_FROM_P {
            dp = dp.min(CAP);
        }
        if self.params.delay_boost && delay_s > BOOST_DELAY_S {
            dp += CAP;
        }
        let mut p = (p + dp).clamp(0.0, 1.0);
        // Section 4.2: decay after congestion.
        if delay_s == 0.0 && previous_s == 0.0 && can_be_over {
            p *= self.params.decay;
        }
        self.p = Probability::clamp(p);
        self.p
    }
}

impl SampledLaw for PieLaw {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(self.params.interval), None]
    }

    fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
        self.update(if observation.queue_pkts > 0.0 { observation.sojourn_s } else { 0.0 })
    }

    fn integral(&self) -> Option<f64> {
        Some(self.p.get())
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        self.p = Probability::clamp(p);
        self.p
    }

    fn take_over(&mut self, old: &Self) {
        (self.core.previous_s, self.p) = (old.core.previous_s, old.p);
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("delay", self.core.previous_s);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let PieLawParams { target_s, interval, alpha_hz, beta_hz, .. } = self.params;
        visit("target", Value::Number(target_s));
        visit("interval", Value::seconds(interval));
        visit("alpha", Value::Number(alpha_hz));
        visit("beta", Value::Number(beta_hz));
    }
}
