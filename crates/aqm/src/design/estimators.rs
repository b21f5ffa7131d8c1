//! Estimators of self-tuning AQMs: the link's capacity from departures, TCP's load from the probability.
//!
//! Zhang, Hollot, Towsley and Misra 2003: two first-order filters, with time constants of 5 and 10 s,
//!
//! ```text
//! dC^/dt = (C_meas - C^) / tau_c        C_meas = packets sent / busy time of the link
//! dL^/dt = (sqrt(p / 2) - L^) / tau_l   L = N / (R C) = 1 / window, by TCP's throughput equation p = 2 L^2
//! ```
//!
//! discretised exactly for inputs that are constant over a period. C^ is not updated if the link was busy for less than
//! half of the period, since an idle link is not a slow link. L^ is unbounded, but the load used is bounded: at p = 0
//! it would fall to 0, and with it every gain, and the controller could not recover.

use crate::{Bound, DefaultValue, Kind, Observation, Param, ParamError, Settings, Unit, Value};

/// Least busy fraction of a period for an update of C^.
const BUSY_FRACTION: f64 = 0.5;
const DEFAULT_TAU_C_S: f64 = 5.0;
const DEFAULT_TAU_L_S: f64 = 10.0;
/// Load at p = 0.0001: sqrt(1e-4 / 2).
const DEFAULT_L_MIN: f64 = core::f64::consts::FRAC_1_SQRT_2 * 0.01;
/// Load at p = 1: sqrt(1 / 2).
const DEFAULT_L_MAX: f64 = core::f64::consts::FRAC_1_SQRT_2;

/// Initial estimates, time constants and bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatorParams {
    /// C^(0), packets/s.
    pub capacity_pps: f64,
    /// L^(0), 1/packets.
    pub load: f64,
    /// Time constant of C^, seconds.
    pub tau_c_s: f64,
    /// Time constant of L^, seconds.
    pub tau_l_s: f64,
    /// Lower bound of C^, packets/s.
    pub c_min_pps: f64,
    /// Lower bound of the load used.
    pub l_min: f64,
    /// Upper bound of the load used.
    pub l_max: f64,
}

/// Estimators of capacity and load.
#[derive(Clone, Copy, Debug)]
pub struct Estimators {
    params: EstimatorParams,
    /// 1 - exp(-T / tau_c).
    gain_c: f64,
    /// 1 - exp(-T / tau_l).
    gain_l: f64,
    /// T, seconds.
    period_s: f64,
    busy_min_s: f64,
    capacity_pps: f64,
    load: f64,
    /// Probability assumed before the first sample, instead of the applied one.
    first: Option<f64>,
}

impl EstimatorParams {
    /// Defaults: 5 and 10 s, at least 1 packet/s, loads of p = 0.0001 to p = 1.
    pub fn new(capacity_pps: f64, load: f64) -> Self {
        EstimatorParams {
            capacity_pps,
            load,
            tau_c_s: DEFAULT_TAU_C_S,
            tau_l_s: DEFAULT_TAU_L_S,
            c_min_pps: 1.0,
            l_min: DEFAULT_L_MIN,
            l_max: DEFAULT_L_MAX,
        }
    }

    /// Parameters of every self-tuning algorithm.
    pub(crate) const PARAMS: [Param; 5] = [
        Param::positive(
            "tau_c",
            Unit::Seconds,
            DefaultValue::number(DEFAULT_TAU_C_S),
            "time constant of the capacity's estimate",
        ),
        Param::positive(
            "tau_l",
            Unit::Seconds,
            DefaultValue::number(DEFAULT_TAU_L_S),
            "time constant of the load's estimate",
        ),
        Param::positive("c_min", Unit::One, DefaultValue::number(1.0), "least capacity estimated, packets/s"),
        Param {
            name: "l_min",
            kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Inclusive(1.0) },
            default: DefaultValue::number(DEFAULT_L_MIN),
            doc: "least load used, 1/packets; above 0, or the law could not recover from p = 0",
        },
        Param {
            name: "l_max",
            kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Inclusive(1.0) },
            default: DefaultValue::number(DEFAULT_L_MAX),
            doc: "greatest load used, 1/packets",
        },
    ];

    /// Parameter L^(0).
    pub(crate) const LOAD: Param = Param::positive(
        "load",
        Unit::One,
        DefaultValue::Designed("the network's flows / (R0 C), between l_min and l_max"),
        "initial estimate of the load, L = N / (R C), 1/packets",
    );

    /// Parameter C^(0).
    pub(crate) const CAPACITY: Param = Param::positive(
        "capacity",
        Unit::BitsPerSecond,
        DefaultValue::Designed("the network's capacity"),
        "initial estimate of the capacity, C",
    );

    /// Parameters from the settings [`EstimatorParams::PARAMS`] and `load`, with default `designed_load`.
    pub(crate) fn from_settings(
        settings: &Settings<'_>,
        capacity_pps: f64,
        designed_load: f64,
    ) -> Result<Self, ParamError> {
        let mut params = EstimatorParams::new(capacity_pps, designed_load);
        for (name, field) in [
            ("tau_c", &mut params.tau_c_s),
            ("tau_l", &mut params.tau_l_s),
            ("c_min", &mut params.c_min_pps),
            ("l_min", &mut params.l_min),
            ("l_max", &mut params.l_max),
        ] {
            if let Some(x) = settings.number(name) {
                *field = x;
            }
        }
        params.load = match settings.number("load") {
            Some(load) => load,
            None => designed_load.min(params.l_max).max(params.l_min),
        };
        Ok(params)
    }

    pub(crate) fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("tau_c", Value::Number(self.tau_c_s));
        visit("tau_l", Value::Number(self.tau_l_s));
        visit("c_min", Value::Number(self.c_min_pps));
        visit("l_min", Value::Number(self.l_min));
        visit("l_max", Value::Number(self.l_max));
    }
}

impl Estimators {
    /// Copies the estimates of `old`.
    pub(crate) fn take_over(&mut self, old: &Estimators) {
        (self.capacity_pps, self.load, self.first) = (old.capacity_pps, old.load, old.first);
    }

    /// Bounds the load by that of probability `p`, p = 2 L^2.
    pub(crate) fn limit_load(&mut self, p: f64) {
        self.load = self.load.min(libm::sqrt(0.5 * p));
    }

    /// Estimators with period `period_s` seconds. A law that starts at an operating point gives its probability as
    /// `first`, which replaces the applied one at the first update.
    pub fn new(params: EstimatorParams, period_s: f64, first: Option<f64>) -> Result<Self, ParamError> {
        for (name, value, unit) in [
            ("capacity", params.capacity_pps, Unit::BitsPerSecond),
            ("load", params.load, Unit::One),
            ("tau_c", params.tau_c_s, Unit::Seconds),
            ("tau_l", params.tau_l_s, Unit::Seconds),
            ("c_min", params.c_min_pps, Unit::One),
            ("l_min", params.l_min, Unit::One),
        ] {
            Param::check_positive(name, value, unit)?;
        }
        if !(params.l_max >= params.l_min && params.l_max.is_finite()) {
            return Err(ParamError::relation("l_max", params.l_max, "must not be below l_min"));
        }
        Ok(Estimators {
            params,
            gain_c: -libm::expm1(-period_s / params.tau_c_s),
            gain_l: -libm::expm1(-period_s / params.tau_l_s),
            period_s,
            // Half a period counts, up to rounding.
            busy_min_s: BUSY_FRACTION * period_s * (1.0 - 1e-9),
            capacity_pps: params.capacity_pps,
            load: params.load,
            first,
        })
    }

    /// Updates both estimates after one period.
    pub fn update(&mut self, observation: &Observation) {
        self.update_with_pole_limit(observation, f64::INFINITY);
    }

    /// [`update`](Self::update) with a pole of the load's estimate of at most `pole`, rad/s.
    pub(crate) fn update_with_pole_limit(&mut self, observation: &Observation, pole: f64) {
        if observation.busy_s > 0.0 && observation.busy_s >= self.busy_min_s {
            self.capacity_pps += self.gain_c * (observation.departures_pkts / observation.busy_s - self.capacity_pps);
            self.capacity_pps = self.capacity_pps.max(self.params.c_min_pps);
        }
        let applied = self.first.take().unwrap_or(observation.applied.get());
        let gain = self.gain_l.min(-libm::expm1(-pole * self.period_s));
        self.load += gain * (libm::sqrt(applied / 2.0) - self.load);
    }

    /// C^, packets/s.
    pub const fn capacity_pps(&self) -> f64 {
        self.capacity_pps
    }

    /// State of the load's filter, L^, without bounds.
    pub const fn load_filter(&self) -> f64 {
        self.load
    }

    /// Load used, within its bounds.
    pub fn load(&self) -> f64 {
        self.load.min(self.params.l_max).max(self.params.l_min)
    }

    /// Parameters.
    pub const fn params(&self) -> &EstimatorParams {
        &self.params
    }

    /// Visits both estimates.
    pub fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("capacity_estimate", self.capacity_pps);
        visit("load_estimate", self.load);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_units::Probability;

    fn estimators() -> Estimators {
        // T = tau_c = tau_l: each update moves an estimate by 1 - 1/e = 0.632121 of the way.
        let params = EstimatorParams { tau_c_s: 1.0, tau_l_s: 1.0, ..EstimatorParams::new(1000.0, 0.1) };
        Estimators::new(params, 1.0, None).unwrap()
    }

    fn observation(departures_pkts: f64, busy_s: f64, p: f64) -> Observation {
        Observation { departures_pkts, busy_s, applied: Probability::clamp(p), ..Observation::default() }
    }

    #[test]
    fn the_capacity_follows_departures_per_busy_time_and_the_load_the_probability() {
        let mut estimators = estimators();
        // 400 packets in 0.8 s are 500/s: 1000 - 0.632121 * 500 = 683.94; sqrt(0.08 / 2) = 0.2: 0.1 + 0.0632121.
        estimators.update(&observation(400.0, 0.8, 0.08));
        assert!((estimators.capacity_pps() - 683.94).abs() < 0.01);
        assert!((estimators.load() - 0.163_212).abs() < 1e-6);
    }

    #[test]
    fn the_capacity_is_not_updated_while_the_link_is_mostly_idle() {
        let mut estimators = estimators();
        for (departures, busy) in [(0.0, 0.0), (10.0, 0.499)] {
            estimators.update(&observation(departures, busy, 0.02));
            assert_eq!(estimators.capacity_pps(), 1000.0);
        }
        // Half the period suffices: 10 in 0.5 s are 20/s; 1000 - 0.632121 * 980 = 380.52.
        estimators.update(&observation(10.0, 0.5, 0.02));
        assert!((estimators.capacity_pps() - 380.52).abs() < 0.01);
    }

    #[test]
    fn without_signals_the_load_used_has_a_lower_bound() {
        let mut estimators = estimators();
        for _ in 0..100 {
            estimators.update(&observation(0.0, 1.0, 0.0));
        }
        assert!(estimators.load_filter() < 1e-20 && estimators.load() == DEFAULT_L_MIN);
        // Without departures the capacity falls to its bound of 1 packet/s.
        assert_eq!(estimators.capacity_pps(), 1.0);
    }

    #[test]
    fn errors_name_the_invalid_parameter() {
        let good = EstimatorParams::new(1000.0, 0.1);
        let refused = |params| Estimators::new(params, 0.01, None).unwrap_err().param;
        assert_eq!(refused(EstimatorParams { load: 0.0, ..good }), "load");
        assert_eq!(refused(EstimatorParams { l_min: 0.5, l_max: 0.4, ..good }), "l_max");
        assert_eq!(refused(EstimatorParams { l_max: f64::NAN, ..good }), "l_max");
        assert_eq!(refused(EstimatorParams { tau_c_s: -1.0, ..good }), "tau_c");
    }
}
