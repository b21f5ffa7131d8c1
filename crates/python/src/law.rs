//! A sampled control law by itself, stepped by Python.

use std::sync::{Mutex, PoisonError};

use aqumen_aqm::{AnyAqm, Aqm, Observation};
use aqumen_units::{Instant, Probability, Span};
use pyo3::prelude::*;

use crate::custom::WithCustomCode;
use crate::error::refuse;
use crate::scenario::Scenario;

/// Sampled law of the first link under test.
#[pyclass(module = "aqumen._core")]
pub(crate) struct Law {
    scenario: WithCustomCode<aqumen_scenario::Scenario>,
    aqm: Mutex<AnyAqm>,
    /// Period of each loop, seconds.
    #[pyo3(get)]
    periods_s: Vec<f64>,
    /// Probability before the first step.
    #[pyo3(get)]
    initial: f64,
    /// Whether ECN-capable packets are marked instead of dropped.
    #[pyo3(get)]
    ecn: bool,
}

#[pymethods]
impl Law {
    /// Makes the law of a SPEC for the nominal network of a scenario.
    #[new]
    fn new(scenario: &Scenario, spec: Option<&str>) -> PyResult<Self> {
        let scenario = scenario.0.clone();
        let chosen = spec.map(|spec| scenario.aqm(spec)).transpose().map_err(refuse)?;
        let plan = scenario.plan(1, chosen.as_ref()).map_err(refuse)?;
        let link = plan.links.into_iter().find(|link| link.record);
        let choice = link.ok_or_else(|| refuse("the scenario records no link"))?.aqm.clone();
        let built = scenario.watching(|| choice.build().transpose().map_err(refuse))?;
        let not_sampled = || refuse(format!("{}: not a sampled control law, such as pi or arm-pfc", choice.name));
        let mut aqm = built.ok_or_else(not_sampled)?;
        let coin = aqm.coin().ok_or_else(not_sampled)?;
        let law = aqm.law_mut().ok_or_else(not_sampled)?;
        let periods_s = law.periods().into_iter().flatten().map(Span::as_secs_f64).collect();
        let initial = law.initial().get();
        Ok(Law { scenario, aqm: Mutex::new(aqm), periods_s, initial, ecn: coin.ecn })
    }

    /// Steps loop `which`; returns the probability until the next step. The numbers are those of an observation, in
    /// the order of `aqumen.session.Observation`.
    fn step(&mut self, which: usize, seen: [f64; 12]) -> PyResult<f64> {
        if which >= self.periods_s.len() {
            return Err(refuse(format!("loop {which}: the law has {}", self.periods_s.len())));
        }
        let [now, interval_s, queue_pkts, queue_bytes, arrivals_pkts, accepted_pkts, rest @ ..] = seen;
        let [departures_pkts, departures_bytes, busy_s, idle_s, sojourn_s, applied] = rest;
        let observation = Observation {
            now: Instant::ZERO + Span::from_secs_f64(now.max(0.0)),
            interval_s,
            queue_pkts,
            queue_bytes,
            arrivals_pkts,
            accepted_pkts,
            departures_pkts,
            departures_bytes,
            busy_s,
            idle_s,
            sojourn_s,
            applied: Probability::clamp(applied),
        };
        let aqm = self.aqm.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.scenario.watching(|| {
            let stepped = aqm.law_mut().map(|law| law.step(which, &observation).get());
            stepped.ok_or_else(|| refuse("the law is gone"))
        })
    }

    /// Sets the integrator of a law that has one; returns whether it has.
    fn set_integral(&mut self, p: f64) -> bool {
        let aqm = self.aqm.get_mut().unwrap_or_else(PoisonError::into_inner);
        aqm.law_mut().is_some_and(|law| {
            let has = law.integral().is_some();
            law.set_integral(p);
            has
        })
    }

    fn __deepcopy__(&mut self, _memo: &Bound<'_, PyAny>) -> Self {
        let aqm = self.aqm.get_mut().unwrap_or_else(PoisonError::into_inner).clone();
        Law {
            scenario: self.scenario.clone(),
            aqm: Mutex::new(aqm),
            periods_s: self.periods_s.clone(),
            initial: self.initial,
            ecn: self.ecn,
        }
    }
}
