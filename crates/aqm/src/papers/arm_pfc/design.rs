//! Design quantities of ARM-PFC: sampled model of the network, and its h-step predictor.
//!
//! Equation numbers are those of Bigdeli and Haeri 2007. Corrections of printed equations:
//! - (6), (11): the plant's gain is -k_t, and the plant includes the delay.
//! - (13): correct, but its partial fractions divide by tau1 - tau2. Without unresponsive traffic that is 0 at W0 = 2
//!   (N = 175 at the paper's capacity and delay). The step response s(n), its increments H_n and the sums D_n used here
//!   are regular there.
//! - (18): the sum over past inputs is scaled by k_i (1 - alpha_i), and the separate term u(k) is wrong.
//! - (20): k_i (1 - alpha_i) u(k-d-1) is missing in each line.
//! - beta1, beta2 and eta of the predictor are not printed; [`Predictor`] has their closed forms.

use alloc::vec::Vec;

use crate::{ParamError, TcpPlant};

/// Maximum number of samples per round trip, d.
pub const MAX_DELAY: usize = 64;
/// Furthest coincidence point, h, samples.
pub const MAX_HORIZON: usize = 128;

/// Plant sampled every Ts = R0 / d with a zero-order hold (eqs. (12), (13)):
///
/// ```text
/// y(k) = -n1 y(k-1) - n2 y(k-2) + m1 u(k-d-1) + m2 u(k-d-2)
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    delay: usize,
    period_s: f64,
    gain: f64,
    x1: f64,
    x2: f64,
    alpha1: f64,
    alpha2: f64,
    m1: f64,
    m2: f64,
}

impl Model {
    /// `plant` sampled `d` times per round trip.
    pub fn new(plant: &TcpPlant, d: usize) -> Result<Self, ParamError> {
        if !(1..=MAX_DELAY).contains(&d) {
            return Err(ParamError::relation("d", d as f64, "must be a whole number of 1 to 64 samples"));
        }
        let period_s = plant.rtt_s() / d as f64;
        Ok(Model::from_time_constants(plant.gain_pkts(), plant.queue_time_s(), plant.window_time_s(), period_s, d))
    }

    /// Model of a plant with gain -`gain`, time constants `tau1_s`, `tau2_s` and a delay of `d` samples, sampled every
    /// `period_s`. All are above 0.
    pub fn from_time_constants(gain: f64, tau1_s: f64, tau2_s: f64, period_s: f64, d: usize) -> Self {
        let (x1, x2) = (period_s / tau1_s, period_s / tau2_s);
        let mut model = Model {
            delay: d,
            period_s,
            gain: -gain,
            x1,
            x2,
            alpha1: libm::exp(-x1),
            alpha2: libm::exp(-x2),
            m1: 0.0,
            m2: 0.0,
        };
        model.m1 = model.step_response(1);
        model.m2 = model.step_response(2) - model.m1 * (1.0 - model.n1());
        model
    }

    /// Delay, d, samples.
    pub const fn delay(&self) -> usize {
        self.delay
    }

    /// Sampling period, Ts, seconds.
    pub const fn period_s(&self) -> f64 {
        self.period_s
    }

    /// Static gain, kappa = -k_t: packets of queue per unit of probability.
    pub const fn gain(&self) -> f64 {
        self.gain
    }

    /// n1 = -(alpha1 + alpha2), alpha_i = exp(-Ts / tau_i).
    pub fn n1(&self) -> f64 {
        -(self.alpha1 + self.alpha2)
    }

    /// n2 = alpha1 alpha2.
    pub fn n2(&self) -> f64 {
        self.alpha1 * self.alpha2
    }

    /// m1 = s(1).
    pub const fn m1(&self) -> f64 {
        self.m1
    }

    /// m2 = s(2) - s(1) (1 - n1).
    pub const fn m2(&self) -> f64 {
        self.m2
    }

    /// One step of the recursion from y(k-1), y(k-2), u(k-d-1), u(k-d-2).
    pub fn step(&self, y1: f64, y2: f64, u1: f64, u2: f64) -> f64 {
        (self.alpha1 + self.alpha2) * y1 - self.alpha1 * self.alpha2 * y2 + self.m1 * u1 + self.m2 * u2
    }

    /// Step response after n samples, without the delay, with x_i = Ts / tau_i:
    /// s(n) = kappa [1 - exp(-n x1) (1 + x1 (1 - exp(-n (x2 - x1))) / (x2 - x1))].
    pub fn step_response(&self, n: usize) -> f64 {
        let n = n as f64;
        let apart = self.x2 - self.x1;
        let ratio = if apart == 0.0 { n } else { -libm::expm1(-n * apart) / apart };
        self.gain * (1.0 - libm::exp(-n * self.x1) * (1.0 + self.x1 * ratio))
    }

    /// Markov parameter, H_n = s(n) - s(n-1), n >= 1.
    pub fn markov(&self, n: usize) -> f64 {
        self.step_response(n) - self.step_response(n - 1)
    }

    /// D_n = sum of alpha1^i alpha2^(n-1-i) over i < n, equal to (alpha1^n - alpha2^n) / (alpha1 - alpha2) if they
    /// differ.
    pub fn power_sum(&self, n: usize) -> f64 {
        let (mut sum, mut power) = (0.0, 1.0);
        for _ in 0..n {
            sum = self.alpha1 * sum + power;
            power *= self.alpha2;
        }
        sum
    }
}

/// ARMarkov predictor of the queue h samples ahead for constant future u (eq. (21), corrected):
///
/// ```text
/// y(k+h) = beta1 y(k) + beta2 y(k-1) + sum over j = 1..d of c_j u(k-j) + eta u(k-d-1) + g u(k)
/// beta1 = D_(h+1),  beta2 = -n2 D_h,  c_j = H_(h-d+j),  eta = m2 D_h,  g = s(h-d)
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Predictor {
    beta1: f64,
    beta2: f64,
    eta: f64,
    gain: f64,
    /// H_1, ..., H_h.
    markov: Vec<f64>,
    delay: usize,
}

impl Predictor {
    /// Predictor of `model` for `h` samples ahead, more than its delay.
    pub fn new(model: &Model, h: usize) -> Result<Self, ParamError> {
        let delay = model.delay;
        if h <= delay || h > MAX_HORIZON {
            return Err(ParamError::relation(
                "h",
                h as f64,
                "must be a whole number of at least d + 1 samples, at most 128",
            ));
        }
        let mut predictor = Predictor { beta1: 0.0, beta2: 0.0, eta: 0.0, gain: 0.0, markov: Vec::new(), delay };
        if predictor.redesign(model, h) {
            Ok(predictor)
        } else {
            Err(ParamError::relation("h", h as f64, "is too short for a response of this network's model"))
        }
    }

    /// Becomes the predictor of another `model` for `h` samples ahead, more than its delay. Allocates only beyond
    /// [`Predictor::reserve`]. Returns `false` without a change if the response within the horizon vanishes by rounding
    /// (for example with a window of 10^15 packets).
    pub(crate) fn redesign(&mut self, model: &Model, h: usize) -> bool {
        debug_assert!(h > model.delay && h <= MAX_HORIZON);
        let gain = model.step_response(h - model.delay);
        let usable = (-1e60..-1e-60).contains(&gain);
        if usable {
            self.beta1 = model.power_sum(h + 1);
            self.beta2 = -model.n2() * model.power_sum(h);
            self.eta = model.m2 * model.power_sum(h);
            self.gain = gain;
            self.markov.clear();
            self.markov.extend((1..=h).map(|n| model.markov(n)));
            self.delay = model.delay;
        }
        usable
    }

    /// Reserves memory for horizons of up to `h` samples.
    pub(crate) fn reserve(&mut self, h: usize) {
        self.markov.reserve_exact(h.saturating_sub(self.markov.len()));
    }

    /// Sets identified coefficients: beta1, beta2, H_1, ..., H_h and eta. Returns `false` without a change if they are
    /// not finite or `accept` rejects the resulting gain.
    pub(crate) fn identify(
        &mut self,
        [beta1, beta2]: [f64; 2],
        markov: impl Iterator<Item = f64> + Clone,
        eta: f64,
        accept: impl Fn(f64) -> bool,
    ) -> bool {
        let gain: f64 = markov.clone().take(self.horizon() - self.delay).sum();
        let finite = [beta1, beta2, eta, gain].iter().all(|x| x.is_finite()) && markov.clone().all(f64::is_finite);
        let usable = finite && accept(gain);
        if usable {
            (self.beta1, self.beta2, self.eta, self.gain) = (beta1, beta2, eta, gain);
            self.markov.iter_mut().zip(markov).for_each(|(old, new)| *old = new);
        }
        usable
    }

    /// Delay, d, samples.
    pub const fn delay(&self) -> usize {
        self.delay
    }

    /// Coincidence point, h, samples.
    pub fn horizon(&self) -> usize {
        self.markov.len()
    }

    /// H_1, ..., H_h.
    pub fn markov(&self) -> &[f64] {
        &self.markov
    }

    /// Weight of y(k).
    pub const fn beta1(&self) -> f64 {
        self.beta1
    }

    /// Weight of y(k-1).
    pub const fn beta2(&self) -> f64 {
        self.beta2
    }

    /// Weight of u(k-d-1).
    pub const fn eta(&self) -> f64 {
        self.eta
    }

    /// Weight of u(k), g.
    pub const fn gain(&self) -> f64 {
        self.gain
    }

    /// Weights of u(k-1), ..., u(k-d): c_1, ..., c_d.
    pub fn c(&self) -> &[f64] {
        &self.markov[self.horizon() - self.delay..]
    }

    /// Free response y_free(k+h): the prediction without the part of u(k). `u` holds u(k-1), u(k-2), ..., u(k-d-1) or
    /// more.
    pub fn free_response(&self, y: f64, y1: f64, u: &[f64]) -> f64 {
        let past: f64 = self.c().iter().zip(u).map(|(c, u)| c * u).sum();
        self.beta1 * y + self.beta2 * y1 + past + self.eta * u[self.delay]
    }

    /// Prediction y(k | k-h) of the current output from y(k-h), y(k-h-1) and the inputs applied since. `u` holds
    /// u(k-d-1), ..., u(k-d-h-1) or more.
    pub fn predict_applied(&self, y_h: f64, y_h1: f64, u: &[f64]) -> f64 {
        let past: f64 = self.markov.iter().zip(u).map(|(h, u)| h * u).sum();
        self.beta1 * y_h + self.beta2 * y_h1 + past + self.eta * u[self.horizon()]
    }
}
