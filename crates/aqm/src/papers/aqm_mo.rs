//! AQM-MO: cascaded control of congestion window and queue, designed by the optimal margin method (Radwa 2015).
//!
//! The inner loop controls TCP's window, estimated from arrivals; the outer loop controls the queue and sets the
//! window's reference. All gains follow from the magnitude optimum ("optimal margin": a closed-loop gain of 1 over the
//! widest frequency range); [`design`] has the rules. With two integrators V and X, and without a derivative:
//!
//! ```text
//! every h1:  lambda += (1 - exp(-h1/tau_rate)) (A/h1 - lambda)          A arrivals since the last inner step
//!            w = lambda (Tp + q/C) / N                               window of this rate at this queue
//!            V += h1/T_first [ (w - W0) + k_po (e + X/T_io) ]        unless p would leave its range
//!            p = clamp(V + K_p e, 0, p_max),   K_p = k_po T_do / T_first
//! every h2:  e = q - target;  X += h2 e                              unless e winds up; |X| <= x_b W0 T_io / k_po
//! ```
//!
//! The paper's p = p1 + p2 is the same controller: p2 is the part of p from (w - W0), p1 the part from the queue.
//!
//! Deviations:
//! - The paper's formulas are illegible in print; they are reconstructed from its description of the loops. Its design
//!   (D0) ignores the delay and oscillates; the default, D1c, includes round trip and filters.
//! - w is compensated for the queue: in any equilibrium the bare rate is the capacity, whatever the window.
//! - N is at most R0 C / 2 (windows of two), since no marking holds smaller windows.

pub mod design;

use aqumen_units::{Probability, Span};

use crate::params::joined;
use crate::{
    Algorithm, AntiWindup, Bound, DefaultValue, DesignReport, Kind, MAX_LOOPS, Network, Observation, Param, ParamError,
    QueueOperatingPoint, RoundTrip, SampledAqm, SampledLaw, Settings, Target, TcpPlant, Theory, Transfer, Unit, Value,
    transfer::{difference, multiply},
};
use design::{Gains, Lags, Rule};

/// Bounds of h1 = R0 / 10, seconds.
const INNER_PERIODS: (f64, f64) = (1e-3, 0.1);
/// Shortest period, seconds.
const PERIOD_MIN_S: f64 = 1e-6;
const DEFAULT_P_MAX: f64 = 1.0;
const DEFAULT_X_BOUND: f64 = 0.5;
/// Time constant of the average p that estimates N, round trips.
const ADAPT_ROUND_TRIPS: f64 = 20.0;
/// Largest ratio between the estimated and the assumed N.
const ADAPT_RANGE: f64 = 8.0;

/// Parameters of AQM-MO and ST-AQM-MO, without those of the network.
pub(crate) const PARAMS: [Param; 7] = [
    Param {
        name: "design",
        kind: Kind::Choice(&["D1c", "D1", "D0"]),
        default: DefaultValue::Value(Value::Choice("D1c")),
        doc: "delay-aware closed form (D1c), delay-aware magnitude optimum (D1), or delay-free as in the paper (D0)",
    },
    period("h1", "R0 / 10, 1 to 100 ms", "period of the inner loop"),
    period("h2", "2 h1", "period of the outer loop"),
    Param::positive(
        "tau_rate",
        Unit::Seconds,
        DefaultValue::Designed("R0 / 2"),
        "time constant of the arrival rate's filter",
    ),
    Param {
        name: "tau_queue",
        kind: Kind::Number { unit: Unit::Seconds, min: Bound::Inclusive(0.0), max: Bound::Open },
        default: DefaultValue::number(0.0),
        doc: "time constant of the queue's filter; 0: none",
    },
    Param {
        name: "p_max",
        kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Inclusive(1.0) },
        default: DefaultValue::number(DEFAULT_P_MAX),
        doc: "greatest probability",
    },
    Param {
        name: "x_bound",
        kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Open },
        default: DefaultValue::number(DEFAULT_X_BOUND),
        doc: "bound of the outer integrator, in windows W0, x_b",
    },
];

const fn period(name: &'static str, default: &'static str, doc: &'static str) -> Param {
    let kind = Kind::Number { unit: Unit::Seconds, min: Bound::Inclusive(PERIOD_MIN_S), max: Bound::Inclusive(1e6) };
    Param { name, kind, default: DefaultValue::Designed(default), doc }
}

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "aqm-mo",
    title: "AQM-MO",
    summary: "two loops, window and queue, with gains by the optimal margin method",
    reference: "Radwa: Queue management using optimal margin method to improve bottleneck link performance, 2015",
    params: joined![
        &[
            Param::positive(
                "capacity",
                Unit::BitsPerSecond,
                DefaultValue::Designed("the network's capacity"),
                "assumed capacity, C",
            ),
            Param::positive(
                "flows",
                Unit::One,
                DefaultValue::Designed("the network's flows"),
                "assumed number of flows, N; a low estimate is the safe one",
            ),
            Param { doc: "round-trip time without queueing, Tp; a high estimate is the safe one", ..RoundTrip::RTT },
            Param::TARGET,
            Target::DELAY,
            Param::flag("adapt_n", false, "adapt the gains to the number of flows estimated from the average p"),
        ],
        &PARAMS,
        &[AntiWindup::PARAM, Param::ECN],
    ],
};

/// Parameters of both loops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AqmMoParams {
    /// The design rule.
    pub rule: Rule,
    /// Period of the inner loop, seconds.
    pub h1_s: f64,
    /// Period of the outer loop, seconds.
    pub h2_s: f64,
    /// Time constant of the arrival rate's filter, seconds.
    pub tau_l_s: f64,
    /// Time constant of the queue's filter, seconds; zero for none.
    pub tau_q_s: f64,
    /// Greatest probability.
    pub p_max: f64,
    /// Bound of the outer integrator in windows.
    pub x_bound: f64,
    /// Whether the gains follow an N estimated from the average p.
    pub adapt_n: bool,
}

/// The law.
#[derive(Clone, Debug)]
pub struct AqmMo {
    params: AqmMoParams,
    target: Target,
    /// Capacity as given in the settings; `None` if built without settings.
    capacity_bps: Option<f64>,
    /// Assumed plant, before any adaptation.
    assumed: TcpPlant,
    /// Plant of the current gains, with at most R0 C / 2 flows.
    plant: TcpPlant,
    gains: Gains,
    base_rtt_s: f64,
    target_pkts: f64,
    /// 1 - exp(-h1 / tau_l), 1 - exp(-h2 / tau_q), 1 - exp(-h2 / (20 R0)).
    weights: [f64; 3],
    rate: f64,
    v: f64,
    x: f64,
    error: f64,
    queue: f64,
    average_p: f64,
    p: f64,
    /// Part of p from the window.
    p2: f64,
}

impl AqmMoParams {
    /// Defaults for a round trip of `rtt_s` at the target: D1c, h1 = R0 / 10, h2 = 2 h1, tau_l = R0 / 2.
    pub fn new(rtt_s: f64) -> Self {
        let h1_s = (0.1 * rtt_s).clamp(INNER_PERIODS.0, INNER_PERIODS.1);
        AqmMoParams {
            rule: Rule::D1c,
            h1_s,
            h2_s: 2.0 * h1_s,
            tau_l_s: 0.5 * rtt_s,
            tau_q_s: 0.0,
            p_max: DEFAULT_P_MAX,
            x_bound: DEFAULT_X_BOUND,
            adapt_n: false,
        }
    }

    /// Parameters from the settings [`PARAMS`]; `rtt_s` is the round trip at the target.
    pub(crate) fn from_settings(settings: &Settings<'_>, rtt_s: f64) -> Self {
        let mut params = AqmMoParams::new(rtt_s);
        if let Some(h1) = settings.number("h1") {
            (params.h1_s, params.h2_s) = (h1, 2.0 * h1);
        }
        for (name, field) in [
            ("h2", &mut params.h2_s),
            ("tau_rate", &mut params.tau_l_s),
            ("tau_queue", &mut params.tau_q_s),
            ("p_max", &mut params.p_max),
            ("x_bound", &mut params.x_bound),
        ] {
            if let Some(x) = settings.number(name) {
                *field = x;
            }
        }
        params.rule = match settings.choice("design") {
            Some("D0") => Rule::D0,
            Some("D1") => Rule::D1,
            _ => Rule::D1c,
        };
        params.adapt_n = settings.flag("adapt_n").unwrap_or(false);
        params
    }

    pub(crate) fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("design", Value::Choice(self.rule.name()));
        visit("h1", Value::Number(self.h1_s));
        visit("h2", Value::Number(self.h2_s));
        visit("tau_rate", Value::Number(self.tau_l_s));
        visit("tau_queue", Value::Number(self.tau_q_s));
        visit("p_max", Value::Number(self.p_max));
        visit("x_bound", Value::Number(self.x_bound));
    }

    fn lags(&self) -> Lags {
        Lags { inner_s: self.tau_l_s + 0.5 * self.h1_s, outer_s: self.tau_q_s + 0.5 * self.h2_s }
    }
}

impl AqmMo {
    /// The law for `plant` with base RTT `base_rtt_s` and target queue `target`.
    pub fn new(params: AqmMoParams, plant: TcpPlant, base_rtt_s: f64, target: Target) -> Result<Self, ParamError> {
        for (name, value) in
            [("rtt", base_rtt_s), ("h1", params.h1_s), ("h2", params.h2_s), ("tau_rate", params.tau_l_s)]
        {
            Param::check_positive(name, value, Unit::Seconds)?;
        }
        for (name, period) in [("h1", params.h1_s), ("h2", params.h2_s)] {
            if period < PERIOD_MIN_S {
                return Err(ParamError::relation(name, period, "must be at least 1 us"));
            }
        }
        Param::check_positive("x_bound", params.x_bound, Unit::One)?;
        if !(params.tau_q_s >= 0.0 && params.tau_q_s.is_finite()) {
            return Err(ParamError::relation("tau_queue", params.tau_q_s, "must be at least 0"));
        }
        if !(params.p_max > 0.0 && params.p_max <= 1.0) {
            return Err(ParamError::relation("p_max", params.p_max, "must be above 0, at most 1"));
        }
        let assumed = plant;
        let plant = with_windows_of_two(plant)?;
        let gains = design::gains(params.rule, &plant, params.lags()).ok_or_else(|| {
            ParamError::relation("design", plant.window_pkts(), "gives no gains for windows of this size")
        })?;
        let weight = |period: f64, tau: f64| if tau > 0.0 { -libm::expm1(-period / tau) } else { 1.0 };
        let p = plant.operating_probability();
        Ok(AqmMo {
            weights: [
                weight(params.h1_s, params.tau_l_s),
                weight(params.h2_s, params.tau_q_s),
                weight(params.h2_s, ADAPT_ROUND_TRIPS * plant.rtt_s()),
            ],
            params,
            target,
            capacity_bps: None,
            assumed,
            plant,
            gains,
            base_rtt_s,
            target_pkts: target.packets(plant.capacity_pps()),
            rate: plant.capacity_pps(),
            v: p,
            x: 0.0,
            error: 0.0,
            queue: target.packets(plant.capacity_pps()),
            average_p: p,
            p: p.min(params.p_max),
            p2: p,
        })
    }

    /// Current gains.
    pub const fn gains(&self) -> &Gains {
        &self.gains
    }

    /// Target queue.
    pub const fn target(&self) -> Target {
        self.target
    }

    /// Sets the gains for another network without a jump of p; `plant` has the round trip at the target. No change if
    /// the rule gives no gains.
    pub(crate) fn retune(&mut self, plant: TcpPlant) {
        let Ok(plant) = with_windows_of_two(plant) else { return };
        let Some(gains) = design::gains(self.params.rule, &plant, self.params.lags()) else { return };
        let old = &self.gains;
        let gain_rate = |gains: &Gains| gains.k_po / gains.t_io;
        let x = self.x * gain_rate(old) / gain_rate(&gains) * plant.window_pkts() / self.plant.window_pkts();
        if !x.is_finite() {
            return;
        }
        self.x = x;
        self.v += (old.k_p - gains.k_p) * self.error;
        (self.plant, self.gains) = (plant, gains);
        self.target_pkts = self.target.packets(plant.capacity_pps());
    }

    fn inner(&mut self, observation: &Observation) {
        let Gains { t_first, k_po, t_io, k_p, .. } = self.gains;
        let p_max = self.params.p_max;
        self.rate += self.weights[0] * (observation.arrivals_pkts / self.params.h1_s - self.rate);
        let round_trip = self.base_rtt_s + observation.queue_pkts / self.plant.capacity_pps();
        let window_error = self.rate * round_trip / self.plant.flows() - self.plant.window_pkts();
        let velocity = window_error + k_po * (self.error + self.x / t_io);
        let step = self.params.h1_s / t_first;
        let v = self.v + step * velocity;
        let p = v + k_p * self.error;
        // Conditional integration: V stays where p is saturated.
        let winds_up = (p > p_max && velocity > 0.0) || (p < 0.0 && velocity < 0.0);
        if !winds_up && v.is_finite() {
            self.v = v;
            self.p2 += step * window_error;
        }
        self.p = (self.v + k_p * self.error).clamp(0.0, p_max);
    }

    fn outer(&mut self, observation: &Observation) {
        self.queue += self.weights[1] * (observation.queue_pkts - self.queue);
        self.error = self.queue - self.target_pkts;
        let (e, p) = (self.error, self.p);
        // An empty queue cannot get shorter. But a positive X must still decrease then, or it holds the queue empty.
        let winds_up = (p <= 0.0 && e < 0.0)
            || (p >= self.params.p_max && e > 0.0)
            || (observation.queue_pkts <= 0.0 && e < 0.0 && self.x <= 0.0);
        if !winds_up {
            self.x += self.params.h2_s * e;
        }
        let bound = self.params.x_bound * self.plant.window_pkts() * self.gains.t_io / self.gains.k_po;
        self.x = self.x.clamp(-bound, bound);
        if self.params.adapt_n {
            self.average_p += self.weights[2] * (p - self.average_p);
            let (capacity, rtt, n) = (self.assumed.capacity_pps(), self.assumed.rtt_s(), self.assumed.flows());
            // p = 2 / W^2 and W = R C / N.
            let flows = (rtt * capacity * libm::sqrt(0.5 * self.average_p)).clamp(n / ADAPT_RANGE, n * ADAPT_RANGE);
            if let Ok(plant) = TcpPlant::new(flows, capacity, rtt) {
                self.retune(plant);
            }
        }
    }

    fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let capacity_bps = settings.number("capacity").unwrap_or(network.capacity.as_bps() as f64);
        let capacity_pps = capacity_bps / (8.0 * network.packet_bytes);
        let target = Target::from_settings(settings, network)?;
        let base_rtt_s = settings.number("rtt").unwrap_or(network.base_rtt_s);
        let rtt_s = base_rtt_s + target.seconds(capacity_pps);
        let plant = TcpPlant::new(settings.number("flows").unwrap_or(network.flows), capacity_pps, rtt_s)?;
        let law = AqmMo::new(AqmMoParams::from_settings(settings, rtt_s), plant, base_rtt_s, target)?;
        Ok(AqmMo { capacity_bps: Some(capacity_bps), ..law })
    }
}

/// The plant with fewer flows if its windows are below 2.
fn with_windows_of_two(plant: TcpPlant) -> Result<TcpPlant, ParamError> {
    let (capacity, rtt) = (plant.capacity_pps(), plant.rtt_s());
    TcpPlant::new(plant.flows().min(0.5 * rtt * capacity), capacity, rtt)
}

impl SampledAqm<AqmMo> {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        Ok(SampledAqm::with_settings(AqmMo::from_settings(settings, network)?, settings, network))
    }
}

impl SampledLaw for AqmMo {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [self.params.h1_s, self.params.h2_s].map(|period| Some(Span::from_secs_f64(period)))
    }

    fn step(&mut self, which: usize, observation: &Observation) -> Probability {
        match which {
            0 => self.inner(observation),
            _ => self.outer(observation),
        }
        Probability::clamp(self.p)
    }

    fn initial(&self) -> Probability {
        Probability::clamp(self.p)
    }

    fn integral(&self) -> Option<f64> {
        Some(self.v)
    }

    /// Also removes a positive outer integral, so that the window's reference is at least the one at the target.
    fn set_integral(&mut self, p: f64) -> Probability {
        self.p2 += p - self.v;
        self.v = p;
        self.x = self.x.min(0.0);
        self.p = (self.v + self.gains.k_p * self.error).clamp(0.0, self.params.p_max);
        Probability::clamp(self.p)
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("p1", self.p - self.p2);
        visit("p2", self.p2);
        visit("arrival_rate", self.rate);
        visit("inner_integral", self.v);
        visit("outer_integral", self.x);
        visit("error", self.error);
        visit("flows", self.plant.flows());
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        if let Some(capacity) = self.capacity_bps {
            visit("capacity", Value::Number(capacity));
        }
        visit("flows", Value::Number(self.assumed.flows()));
        visit("rtt", Value::Number(self.base_rtt_s));
        self.target.settings(visit);
        visit("adapt_n", Value::Flag(self.params.adapt_n));
        self.params.settings(visit);
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for AqmMo {
    /// Both loops in continuous time without adaptation, with half periods and filters as lags t_F and t_q:
    /// C(s) = ((R0 s / (1 + t_F s) + 1) / N + k_po (1 + 1/(T_io s)) / (1 + t_q s)) / (T_first s) + K_p / (1 + t_q s).
    /// The window's estimate contains the arrival rate C + dq/dt times R0, and the queue.
    fn linear(&self, at: &QueueOperatingPoint) -> Option<Transfer> {
        let Lags { inner_s: t_f, outer_s: t_q } = self.params.lags();
        let capacity = self.capacity_bps.map_or(self.assumed.capacity_pps(), |bps| bps / (8.0 * at.packet_bytes));
        let r0 = self.base_rtt_s + self.target.seconds(capacity);
        // At most as many flows as have windows of 2, as in the law.
        let n = self.assumed.flows().min(0.5 * r0 * capacity);
        let Gains { t_first, t_io, k_po, k_p, .. } = self.gains;
        let (lag_f, lag_q) = ([1.0, t_f], [1.0, t_q]);
        // Common denominator N T_first s T_io s (1 + t_F s) (1 + t_q s).
        let den = multiply(&multiply(&lag_f, &lag_q), &[0.0, 0.0, n * t_first * t_io]);
        let window = multiply(&multiply(&[1.0, r0 + t_f], &[0.0, t_io]), &lag_q);
        let queue = multiply(&multiply(&[1.0, t_io], &[-k_po * n]), &lag_f);
        let direct = multiply(&[0.0, 0.0, -k_p * t_first * n * t_io], &lag_f);
        Some(Transfer { num: difference(&difference(&window, &queue), &direct), den, period_s: None })
    }

    fn derive(&self, _at: &QueueOperatingPoint, _plant: &TcpPlant, report: &mut dyn DesignReport) {
        let gains = &self.gains;
        report.number("T_first", gains.t_first);
        report.number("k_po", gains.k_po);
        report.number("T_io", gains.t_io);
        report.number("T_do", gains.t_do);
        report.number("K_p", gains.k_p);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Network of the test vectors: C = 1250, N = 10, Tp = 0.1, target 25: R0 = 0.12, W0 = 15.
    fn law(change: impl Fn(&mut AqmMoParams)) -> AqmMo {
        let mut params = AqmMoParams::new(0.12);
        change(&mut params);
        AqmMo::new(params, TcpPlant::new(10.0, 1250.0, 0.12).unwrap(), 0.1, Target::Packets(25.0)).unwrap()
    }

    /// Observation of a busy link over 12 ms at this queue.
    fn full(queue_pkts: f64) -> Observation {
        Observation { queue_pkts, arrivals_pkts: 15.0, ..Observation::default() }
    }

    #[test]
    fn in_equilibrium_the_probability_is_constant() {
        // 15 arrivals in 12 ms are 1250/s; (0.1 + 25/1250) * 1250 / 10 = 15 = W0. p = 2 / 225.
        let mut law = law(|_| {});
        for k in 0..100 {
            law.step(0, &full(25.0));
            let p = law.step(usize::from(k % 2 == 1), &full(25.0));
            assert!((p.get() - 2.0 / 225.0).abs() < 1e-12);
        }
        assert_eq!(law.periods(), [Some(Span::from_millis(12)), Some(Span::from_millis(24))]);
    }

    #[test]
    fn the_queue_error_changes_p1_and_the_window_error_p2() {
        let part = |law: &AqmMo, name: &str| {
            let mut found = None;
            law.observe(&mut |key, value| found = if key == name { Some(value) } else { found });
            found.unwrap()
        };
        // 30 packets: e = 5. With w = W0 (by choice of the rate) only p1 changes.
        let mut queue = law(|_| {});
        queue.rate = 15.0 * 10.0 / (0.1 + 30.0 / 1250.0);
        queue.weights[0] = 0.0;
        queue.step(1, &full(30.0));
        queue.step(0, &full(30.0));
        assert!((part(&queue, "p2") - 2.0 / 225.0).abs() < 1e-15);
        // p1 = K_p e + h1/T_first k_po (e + X/T_io), X = 0.024 * 5.
        let g = *queue.gains();
        let expected = g.k_p * 5.0 + 0.012 / g.t_first * g.k_po * (5.0 + 0.12 / g.t_io);
        assert!((part(&queue, "p1") - expected).abs() < 1e-15);
        // Twice the rate at the target: w = 2 W0 after a filter of weight 1.
        let mut rate = law(|_| {});
        rate.weights[0] = 1.0;
        rate.step(0, &Observation { arrivals_pkts: 30.0, ..full(25.0) });
        assert!((part(&rate, "p2") - (2.0 / 225.0 + 0.012 / g.t_first * 15.0)).abs() < 1e-15);
        assert!(part(&rate, "p1").abs() < 1e-15);
    }

    #[test]
    fn the_number_of_flows_follows_from_the_average_probability() {
        let mut law = law(|params| params.adapt_n = true);
        law.p = 8.0 / 225.0;
        for _ in 0..10_000 {
            law.p = 8.0 / 225.0;
            law.step(1, &full(25.0));
        }
        // p = 2 (N / (R0 C))^2: four times p means twice the flows and half the window.
        assert!((law.plant.flows() - 20.0).abs() < 1e-6 && (law.plant.window_pkts() - 7.5).abs() < 1e-6);
        // At most eight times the assumed number.
        for _ in 0..100_000 {
            law.p = 1.0;
            law.step(1, &full(25.0));
        }
        assert!((law.plant.flows() - 75.0).abs() < 1e-6, "{}", law.plant.flows());
    }

    #[test]
    fn a_change_of_gains_does_not_move_p() {
        let mut law = law(|_| {});
        law.step(1, &full(40.0));
        let p = law.v + law.gains.k_p * law.error;
        law.retune(TcpPlant::new(20.0, 1250.0, 0.12).unwrap());
        assert!((law.v + law.gains.k_p * law.error - p).abs() < 1e-15);
    }

    #[test]
    fn the_design_assumes_windows_of_at_least_two() {
        // N = 100: R0 C / N = 1.5; the design uses 75 flows.
        let law =
            AqmMo::new(AqmMoParams::new(0.12), TcpPlant::new(100.0, 1250.0, 0.12).unwrap(), 0.1, Target::Packets(25.0))
                .unwrap();
        assert_eq!(law.plant.flows(), 75.0);
        assert_eq!(law.initial().get(), 0.5);
    }

    #[test]
    fn errors_name_the_invalid_parameter() {
        let refused = |change: fn(&mut AqmMoParams)| {
            let mut params = AqmMoParams::new(0.12);
            change(&mut params);
            let plant = TcpPlant::new(10.0, 1250.0, 0.12).unwrap();
            AqmMo::new(params, plant, 0.1, Target::Packets(25.0)).unwrap_err().param
        };
        assert_eq!(refused(|params| params.h1_s = 0.0), "h1");
        assert_eq!(refused(|params| params.tau_q_s = -1.0), "tau_queue");
        assert_eq!(refused(|params| params.p_max = 1.5), "p_max");
        assert_eq!(refused(|params| params.x_bound = 0.0), "x_bound");
    }

    #[test]
    fn the_integral_is_constant_only_while_the_probability_is_saturated() {
        // Windows twice as long as assumed raise p by h1 / T_first 15; windows of 0 lower it by as much.
        let pushed = |p: f64, arrivals_pkts: f64| {
            let mut law = law(|_| {});
            law.weights[0] = 1.0;
            (law.p, law.v) = (p, p);
            law.step(0, &Observation { arrivals_pkts, ..full(25.0) });
            law.v - p
        };
        let p_max = law(|_| {}).params.p_max;
        let step = 0.012 / law(|_| {}).gains().t_first * 15.0;
        let (up, down) = (|p: f64| pushed(p, 30.0), |p: f64| pushed(p, 0.0));
        // Ending just inside, and just outside, either bound.
        assert!((up(p_max - 1.001 * step) - step).abs() < 1e-9 && up(p_max - 0.999 * step) == 0.0);
        assert!((down(1.001 * step) + step).abs() < 1e-9 && down(0.999 * step) == 0.0);
        // Steps back into the range are allowed.
        assert!((up(-0.5 * step) - step).abs() < 1e-9 && (down(p_max + 0.5 * step) + step).abs() < 1e-9);
    }
}
