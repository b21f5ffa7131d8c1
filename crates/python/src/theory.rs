//! What needs no packets: the fluid engine, linear analysis and design.

use std::sync::Arc;

use aqumen_scenario::{AqmChoice, Plan};
use aqumen_theory::Error;
use aqumen_theory::boundary::{self, Crossing};
use aqumen_theory::cycle;
use aqumen_theory::design::{self, Depth, Noise, OperatingConditions};
use aqumen_theory::fluid::{self, Model, Options};
use aqumen_theory::linear::{self, Controller, Loop, Margins, OperatingPoint, Plant};
use aqumen_theory::maps::{self, Axis, NonlinearCheck};
use aqumen_theory::robust::{self, Objective, WorstCase};
use aqumen_theory::{engine, predict};
use pyo3::prelude::*;

use crate::cost::measured;
use crate::error::{Cancelled, refuse};
use crate::interrupt::{Worker, apart, listening};
use crate::many;
use crate::memory::Guard;
use crate::own::Known;
use crate::result::RunResult;
use crate::scenario::{Scenario, plan};

/// Runs `scenario` on the fluid engine with the AQM of a SPEC. `model` is `hollot`, `ecn`, `reno`, `drop`, or left out:
/// `reno` for ECN-capable flows, `drop` for others.
///
/// `progress` hears the fraction done now and then; `False` from it stops the run with `Cancelled`.
#[pyfunction]
#[pyo3(signature = (scenario, aqm, seed, model = None, progress = None))]
pub(crate) fn run_fluid(
    py: Python<'_>,
    scenario: &Scenario,
    aqm: Option<&str>,
    seed: u64,
    model: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<RunResult> {
    let (scenario, aqm, options) = (scenario.0.clone(), aqm.map(String::from), options(model)?);
    let run = move |worker: &Worker| {
        let plan = plan(&scenario, seed, aqm.as_deref())?;
        let (watch, mut guard) = (scenario.watch(), Guard::new(&scenario));
        let mut hear = |fraction| watch.calm() && guard.allows(fraction) && worker.hear(fraction);
        let found = measured(|| fluid::run(&plan, options, &mut hear)).map_err(error);
        watch.settle(guard.settle(found))
    };
    listening(py, progress, run).map(RunResult)
}

/// Runs each (SPEC, seed) of `jobs` on the fluid engine, `threads` at a time; else as `run_many`.
#[pyfunction]
pub(crate) fn run_fluid_many(
    py: Python<'_>,
    scenario: &Scenario,
    jobs: Vec<(Option<String>, u64)>,
    model: Option<&str>,
    threads: usize,
    on_done: Py<PyAny>,
) -> PyResult<()> {
    let options = options(model)?;
    let engine = move |plan: &Plan, go_on: &mut dyn FnMut(f64) -> bool| {
        measured(|| fluid::run(plan, options, go_on)).map_err(error)
    };
    many::run_many(py, &scenario.0, jobs, threads, &on_done, Arc::new(engine))
}

fn options(model: Option<&str>) -> PyResult<Options> {
    let model = match model {
        None => None,
        Some("hollot") => Some(Model::Hollot),
        Some("ecn") => Some(Model::Ecn),
        Some("reno") => Some(Model::Reno),
        Some("drop") => Some(Model::Drop),
        Some(other) => {
            return Err(refuse(format!("unknown fluid model `{other}`; choose from: hollot, ecn, reno, drop")));
        }
    };
    Ok(Options { model, ..Options::default() })
}

fn error(error: Error) -> PyErr {
    match error {
        Error::Cancelled => Cancelled::new_err(error.to_string()),
        error => refuse(error),
    }
}

/// A controller as Python gets and gives it: numerator, denominator, and the period in seconds for a sampled one (then
/// in powers of 1/z, else of s; constant terms first).
type Parts = (Vec<f64>, Vec<f64>, Option<f64>);

/// An AQM at a network, ready for questions: its gains, its loop, its margins.
#[pyclass(frozen, module = "aqumen._core")]
pub(crate) struct Analysis {
    json: String,
    scenario: Known<aqumen_scenario::Scenario>,
    choice: AqmChoice,
    conditions: OperatingConditions,
    at: OperatingPoint,
    controller: Option<Controller>,
}

#[pymethods]
impl Analysis {
    /// What `aqumen design --json` prints.
    #[getter]
    fn json(&self) -> String {
        self.json.clone()
    }

    /// The controller, from queue in packets to probability; `None` for an AQM that is none.
    fn controller(&self) -> Option<Parts> {
        self.controller.as_ref().map(|controller| match controller {
            Controller::Sampled { num, den, period_s } => (num.clone(), den.clone(), Some(*period_s)),
            Controller::Continuous { num, den } => (num.clone(), den.clone(), None),
        })
    }

    /// dx/dt = A x + A_d x(t - R0) + b p + b_d p(t - R0), x = (window, queue): A, A_d, b, b_d, R0.
    #[allow(clippy::type_complexity, reason = "a tuple is what Python unpacks")]
    fn plant(&self, exact: bool) -> ([[f64; 2]; 2], [[f64; 2]; 2], [f64; 2], [f64; 2], f64) {
        let plant = self.plant_of(exact);
        (plant.now, plant.delayed, plant.input_now, plant.input_delayed, plant.delay_s)
    }

    /// Response of the plant at frequencies in rad/s: real and imaginary parts of dq/dp.
    fn plant_response(&self, w: Vec<f64>, exact: bool) -> (Vec<f64>, Vec<f64>) {
        let plant = self.plant_of(exact);
        w.into_iter().map(|w| plant.response(w)).map(|z| (z.re, z.im)).unzip()
    }

    /// Response of the open loop under a controller, its own by default.
    #[pyo3(signature = (w, exact, controller = None))]
    fn loop_response(&self, w: Vec<f64>, exact: bool, controller: Option<Parts>) -> PyResult<(Vec<f64>, Vec<f64>)> {
        let closed = self.closed(exact, controller)?;
        Ok(w.into_iter().map(|w| closed.response(w)).map(|z| (z.re, z.im)).unzip())
    }

    /// Margins under a controller, its own by default, as JSON.
    #[pyo3(signature = (exact, controller = None))]
    fn margins_json(&self, exact: bool, controller: Option<Parts>) -> PyResult<String> {
        serde_json::to_string(&self.closed(exact, controller)?.margins()).map_err(refuse)
    }

    /// Power of the queue at frequencies in rad/s, as packets make it in Reno's windows under random marks.
    fn noise_power(&self, w: Vec<f64>) -> PyResult<Vec<f64>> {
        design::noise_power(&self.choice, &self.conditions, &w).map_err(error)
    }

    /// Poles of the sampled loop with the textbook's plant, times `gain`; `None` where the controller is not sampled.
    #[pyo3(signature = (gain = 1.0))]
    fn sampled_poles(&self, gain: f64) -> Option<(Vec<f64>, Vec<f64>)> {
        let scaled = self.controller.as_ref()?.scaled(gain);
        let polynomial = linear::closed_loop(&self.at, &scaled, self.at.rtt_s)?;
        Some(linear::roots(&polynomial).into_iter().map(|z| (z.re, z.im)).unzip())
    }

    /// The loop over all pairs of values of two axes, each one of `flows`, `rtt`, `capacity` (packets/s), `target`,
    /// `gain`.
    fn map(
        &self,
        py: Python<'_>,
        x: (String, Vec<f64>),
        y: (String, Vec<f64>),
        threads: usize,
        cycles: bool,
    ) -> PyResult<MapColumns> {
        let axes = (axis(&x.0)?, axis(&y.0)?);
        let (choice, conditions) = (self.choice.clone(), self.conditions);
        let (own, all) = (self.scenario.clone(), move || {
            let map = maps::map(&choice, &conditions, (axes.0, &x.1), (axes.1, &y.1), threads)?;
            let beside =
                if cycles { maps::nonlinear_checks(&choice, &conditions, &map, axes, threads)? } else { Vec::new() };
            Ok((map, beside))
        });
        let (map, beside) = apart(py, move || own.watching(|| all().map_err(error)))?;
        let found = |of: fn(&NonlinearCheck) -> Option<f64>| -> Vec<f64> {
            beside.iter().map(|point| of(point).unwrap_or(f64::NAN)).collect()
        };
        let column = |of: fn(&Margins) -> Option<f64>| -> Vec<f64> {
            map.points.iter().map(|point| of(&point.margins).unwrap_or(f64::NAN)).collect()
        };
        let noise = |of: fn(&Noise) -> Option<f64>| -> Vec<f64> {
            map.points.iter().map(|point| of(&point.noise).unwrap_or(f64::NAN)).collect()
        };
        Ok((
            map.points.iter().map(|point| point.feasible).collect(),
            map.points.iter().map(|point| point.margins.stable).collect(),
            map.points.iter().map(|point| point.noise.valid).collect(),
            vec![
                column(|margins| margins.gain_margin),
                column(|margins| margins.phase_margin_deg),
                column(|margins| Some(margins.modulus_margin)),
                noise(|noise| noise.queue_std_pkts),
                noise(|noise| noise.qacd_pkts),
                noise(|noise| noise.queue_p95_pkts),
                noise(|noise| noise.utilization_lost),
            ],
            vec![
                found(|point| point.coexisting.map(|(deviation, _)| deviation)),
                found(|point| point.coexisting.map(|(_, period)| period)),
                found(|point| point.supercritical.map(f64::from)),
            ],
        ))
    }

    /// The boundary of stability over two quantities, each from and to, in pieces: columns of both quantities, of the
    /// period, and of 1 where cycles stand beyond it, 0 where before it, NaN where that is not known.
    #[allow(clippy::type_complexity, reason = "a tuple is what Python unpacks")]
    fn boundary(
        &self,
        py: Python<'_>,
        x: (String, [f64; 2]),
        y: (String, [f64; 2]),
        threads: usize,
    ) -> PyResult<Vec<[Vec<f64>; 4]>> {
        let axes = ((axis(&x.0)?, x.1), (axis(&y.0)?, y.1));
        let (own, choice, conditions) = (self.scenario.clone(), self.choice.clone(), self.conditions);
        let all = move || boundary::boundary(&choice, &conditions, axes.0, axes.1, threads).map_err(error);
        let pieces = apart(py, move || own.watching(all))?;
        let columns = |piece: Vec<Crossing>| {
            let column = |of: fn(&Crossing) -> f64| piece.iter().map(of).collect();
            [
                column(|at| at.x),
                column(|at| at.y),
                column(|at| at.period_s),
                column(|at| at.supercritical.map_or(f64::NAN, f64::from)),
            ]
        };
        Ok(pieces.into_iter().map(columns).collect())
    }

    /// What the nonlinear equations settle on over the last third, from `start` times the equilibrium, or from it with
    /// an AQM that has seen nothing yet: mean and standard deviation of the queue, and its period, if it has one.
    #[pyo3(signature = (duration_s, flows = None, rtt = None, capacity = None, start = None))]
    fn check(
        &self,
        py: Python<'_>,
        duration_s: f64,
        flows: Option<f64>,
        rtt: Option<f64>,
        capacity: Option<f64>,
        start: Option<f64>,
    ) -> PyResult<(f64, f64, Option<f64>)> {
        let mut conditions = self.conditions;
        conditions.flows = flows.unwrap_or(conditions.flows);
        conditions.base_rtt_s = rtt.unwrap_or(conditions.base_rtt_s);
        conditions.capacity_pps = capacity.unwrap_or(conditions.capacity_pps);
        let (own, choice) = (self.scenario.clone(), self.choice.clone());
        let run = move || own.watching(|| cycle::check(&choice, &conditions, duration_s, start).map_err(error));
        apart(py, run).map(|cycle| (cycle.mean_pkts, cycle.std_pkts, cycle.period_s))
    }

    /// The PI that is best over ranges of flows, base RTT (seconds) and capacity (packets/s), each from and to: a, b,
    /// K, z; what it is worth, and what the usual design is. `aim` is `margin` with the slowest crossover, `speed` or
    /// `noise` with the margin, and the share of the speed that is kept for little noise.
    #[allow(clippy::type_complexity, reason = "a tuple is what Python unpacks")]
    fn robust_pi(
        &self,
        py: Python<'_>,
        flows: [f64; 2],
        rtt: [f64; 2],
        capacity: [f64; 2],
        frequency: f64,
        aim: (String, f64, f64),
    ) -> PyResult<([f64; 4], [f64; 3], [f64; 3])> {
        let (range, aim) = (robust::NetworkRange { flows, rtt_s: rtt, capacity_pps: capacity }, aim_of(&aim)?);
        let (conditions, queue_pkts) = (self.conditions, self.at.queue_pkts);
        let found = apart(py, move || robust::pi(&conditions, &range, queue_pkts, frequency, aim).map_err(error))?;
        let (gains, pi) = (found.gains, found.controller);
        Ok(([gains.a(), gains.b(), pi.gain, pi.zero], row(found.worth), row(found.usual)))
    }

    /// The AQM with its gain and speed best over the same ranges: names and values, what it is worth, what it is as it
    /// was given.
    #[allow(clippy::type_complexity, reason = "a tuple is what Python unpacks")]
    fn robust(
        &self,
        py: Python<'_>,
        flows: [f64; 2],
        rtt: [f64; 2],
        capacity: [f64; 2],
        aim: (String, f64, f64),
    ) -> PyResult<(Vec<(&'static str, f64)>, [f64; 3], [f64; 3])> {
        let (range, aim) = (robust::NetworkRange { flows, rtt_s: rtt, capacity_pps: capacity }, aim_of(&aim)?);
        let (own, choice, conditions) = (self.scenario.clone(), self.choice.clone(), self.conditions);
        let tune = move || own.watching(|| robust::tune(&choice, &conditions, &range, aim).map_err(error));
        let tuned = apart(py, tune)?;
        Ok((tuned.found, row(tuned.worth), row(tuned.given)))
    }
}

/// Worst modulus margin, slowest crossover, largest QACD.
fn row(worth: WorstCase) -> [f64; 3] {
    [worth.margin, worth.slowest_rad_s, worth.qacd_pkts]
}

fn aim_of((name, value, speed): &(String, f64, f64)) -> PyResult<Objective> {
    let share = |name: &str, x: f64| match x > 0.0 && x < 1.0 || name == "speed" && x == 1.0 {
        true => Ok(x),
        false => Err(refuse(format!("{name} = {x}: must be above 0 and below 1"))),
    };
    match name.as_str() {
        "margin" if *value > 0.0 && value.is_finite() => Ok(Objective::Margin { slowest_rad_s: *value }),
        "margin" => Err(refuse(format!("the slowest crossover is {value} rad/s: must be above 0"))),
        "speed" => Ok(Objective::Speed { margin: share("modulus margin", *value)? }),
        "noise" => Ok(Objective::Noise { margin: share("modulus margin", *value)?, speed: share("speed", *speed)? }),
        other => Err(refuse(format!("unknown aim `{other}`; choose from: margin, speed, noise"))),
    }
}

impl Analysis {
    fn plant_of(&self, exact: bool) -> Plant {
        if exact { Plant::exact(&self.at) } else { Plant::textbook(&self.at) }
    }

    fn closed(&self, exact: bool, controller: Option<Parts>) -> PyResult<Loop> {
        let controller = match controller {
            Some((num, den, Some(period_s))) => Controller::Sampled { num, den, period_s },
            Some((num, den, None)) => Controller::Continuous { num, den },
            None => self.controller.clone().ok_or_else(|| refuse("this AQM is no linear controller"))?,
        };
        Ok(Loop::new(self.plant_of(exact), controller))
    }
}

/// The AQM of a SPEC for the network of a scenario's `[nominal]`, whose base RTT is the round-trip time at the target
/// if `at_target`. `model` as in `run_fluid`, by default `hollot`.
#[pyfunction]
#[pyo3(signature = (scenario, aqm, at_target, model = None))]
pub(crate) fn analyse(
    py: Python<'_>,
    scenario: &Scenario,
    aqm: &str,
    at_target: bool,
    model: Option<&str>,
) -> PyResult<Analysis> {
    let (scenario, aqm, options) = (scenario.0.clone(), aqm.to_string(), options(model)?);
    apart(py, move || scenario.watching(|| analysis(&scenario, &aqm, at_target, options.model)))
}

fn analysis(
    scenario: &Known<aqumen_scenario::Scenario>,
    aqm: &str,
    at_target: bool,
    model: Option<Model>,
) -> PyResult<Analysis> {
    let mut choice = plan(scenario, 1, Some(aqm))?
        .links
        .into_iter()
        .find(|link| link.record)
        .ok_or_else(|| refuse("the scenario records no link"))?
        .aqm;
    let network = &mut choice.network;
    if at_target {
        network.base_rtt_s -= network.target_pkts / network.capacity_pps();
        if network.base_rtt_s <= 0.0 {
            return Err(refuse(format!(
                "a queue of {} packets alone takes longer than the whole round trip",
                network.target_pkts
            )));
        }
    }
    let conditions = OperatingConditions {
        model: model.unwrap_or(Model::Hollot),
        flows: network.flows,
        capacity_pps: network.capacity_pps(),
        unresponsive_pps: 0.0,
        base_rtt_s: network.base_rtt_s,
        buffer_pkts: network.buffer_pkts,
        sender: aqumen_theory::response::Sender::reno(),
    };
    let analysis = design::analyse(&choice, &conditions).map_err(error)?;
    let (at, controller) = design::linearise(&choice, &conditions).map_err(error)?;
    let json = serde_json::to_string(&analysis).map_err(refuse)?;
    Ok(Analysis { json, scenario: scenario.clone(), choice, conditions, at, controller })
}

/// What the equations say of `scenario` at rest, without running anything.
#[pyfunction]
pub(crate) fn run_theory(py: Python<'_>, scenario: &Scenario, aqm: Option<&str>, seed: u64) -> PyResult<RunResult> {
    let (scenario, aqm) = (scenario.0.clone(), aqm.map(String::from));
    apart(py, move || {
        let plan = plan(&scenario, seed, aqm.as_deref())?;
        scenario.watching(|| measured(|| engine::run(&plan)).map(RunResult).map_err(error))
    })
}

/// The predictions behind `run_theory`, link by link and window by window, as JSON; without `loops` only where queues
/// come to rest, which takes no time.
#[pyfunction]
#[pyo3(signature = (scenario, aqm, seed, loops = true))]
pub(crate) fn predict_json(
    py: Python<'_>,
    scenario: &Scenario,
    aqm: Option<&str>,
    seed: u64,
    loops: bool,
) -> PyResult<String> {
    let (scenario, aqm) = (scenario.0.clone(), aqm.map(String::from));
    let depth = if loops { Depth::Loop } else { Depth::Equilibrium };
    apart(py, move || {
        let plan = plan(&scenario, seed, aqm.as_deref())?;
        let prediction = scenario.watching(|| predict::predict_to(depth, &plan).map_err(error))?;
        serde_json::to_string(&prediction).map_err(refuse)
    })
}

/// A map's columns: feasible, stable, noise valid; gain margin, phase margin in degrees, modulus margin, deviation of
/// the queue, QACD, 95th percentile, utilization lost; deviation and period of a coexisting cycle, whether cycles stand
/// beyond the boundary, all empty where not asked for; row by row, NaN where there is none.
type MapColumns = (Vec<bool>, Vec<bool>, Vec<bool>, Vec<Vec<f64>>, Vec<Vec<f64>>);

fn axis(name: &str) -> PyResult<Axis> {
    match name {
        "flows" => Ok(Axis::Flows),
        "rtt" => Ok(Axis::Rtt),
        "capacity" => Ok(Axis::Capacity),
        "target" => Ok(Axis::Target),
        "gain" => Ok(Axis::Gain),
        other => Err(refuse(format!("unknown axis `{other}`; choose from: flows, rtt, capacity, target, gain"))),
    }
}
