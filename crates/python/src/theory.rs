//! Control-theoretic analysis: the fluid engine, linear analysis, design, and predictions.

use std::sync::Arc;

use aqumen_scenario::{AqmChoice, PRESETS, Plan};
use aqumen_theory::Error;
use aqumen_theory::boundary::{self, Crossing};
use aqumen_theory::cycle;
use aqumen_theory::design::{self, Depth, NetworkPlant, Noise, OpenLoop, OperatingConditions};
use aqumen_theory::fluid::{self, Model, Options};
use aqumen_theory::linear::{self, Controller, FrequencyResponse, Loop, Margins, OperatingPoint};
use aqumen_theory::maps::{self, Axis, NonlinearCheck};
use aqumen_theory::response::Sender;
use aqumen_theory::robust::{self, Objective, WorstCase};
use aqumen_theory::{engine, predict as prediction};
use pyo3::prelude::*;

use crate::cost::measured;
use crate::custom::WithCustomCode;
use crate::error::{Cancelled, refuse};
use crate::interrupt::{Worker, run_on_thread, run_with_progress};
use crate::many;
use crate::memory::Guard;
use crate::objects::to_python;
use crate::result::RunResult;
use crate::scenario::{Scenario, plan};

/// Runs `scenario` on the fluid engine with the AQM of a SPEC. `model` is `hollot`, `ecn`, `reno` or `drop`; by default
/// `reno` for ECN-capable flows, `drop` for others.
///
/// `progress` is called with the completed fraction; `False` from it stops the run with `Cancelled`.
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
        let mut report = |fraction| watch.is_ok() && guard.allows(fraction) && worker.report_fraction(fraction);
        let found = measured(|| fluid::run(&plan, options, &mut report)).map_err(error);
        watch.settle(guard.settle(found))
    };
    run_with_progress(py, progress, run).map(RunResult)
}

/// Runs each (SPEC, seed) of `jobs` on the fluid engine, `threads` at a time; otherwise as `run_many`.
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
    let engine = move |plan: &Plan, proceed: &mut dyn FnMut(f64) -> bool| {
        measured(|| fluid::run(plan, options, proceed)).map_err(error)
    };
    many::run_many(py, many::jobs_of(&scenario.0, jobs), threads, &on_done, Arc::new(engine))
}

fn options(model: Option<&str>) -> PyResult<Options> {
    let model = match model {
        None => None,
        Some("hollot") => Some(Model::Hollot),
        Some("ecn") => Some(Model::Ecn),
        Some("reno") => Some(Model::Reno),
        Some("drop") => Some(Model::Drop),
        Some(other) => {
            return Err(refuse(format!("invalid fluid model '{other}'; choose from: hollot, ecn, reno, drop")));
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

/// Controller: numerator, denominator, and the sampling period in seconds. With a period the coefficients are of powers
/// of 1/z, otherwise of s; constant terms first.
type ControllerTuple = (Vec<f64>, Vec<f64>, Option<f64>);

/// Linear analysis of an AQM in a network: gains, loop and margins.
#[pyclass(frozen, module = "aqumen._core")]
pub(crate) struct Analysis {
    json: String,
    scenario: WithCustomCode<aqumen_scenario::Scenario>,
    choice: AqmChoice,
    conditions: OperatingConditions,
    at: OperatingPoint,
    controller: Option<Controller>,
    /// The exact plant; `None` where no signal probability holds the queue.
    plant: Option<NetworkPlant>,
}

#[pymethods]
impl Analysis {
    /// Returns the JSON that `aqumen design --json` prints.
    #[getter]
    fn json(&self) -> String {
        self.json.clone()
    }

    /// Returns the controller, from queue in packets to probability; `None` for an AQM that is not a linear controller.
    fn controller(&self) -> Option<ControllerTuple> {
        self.controller.as_ref().map(|controller| match controller {
            Controller::Sampled { num, den, period_s } => (num.clone(), den.clone(), Some(*period_s)),
            Controller::Continuous { num, den } => (num.clone(), den.clone(), None),
        })
    }

    /// Returns A, A_d, b, b_d and R0 of the plant dx/dt = A x + A_d x(t - R0) + b p + b_d p(t - R0), x = (window,
    /// queue). The many windows of a sender have none.
    #[allow(clippy::type_complexity, reason = "a tuple is what Python unpacks")]
    fn plant(&self, exact: bool) -> PyResult<([[f64; 2]; 2], [[f64; 2]; 2], [f64; 2], [f64; 2], f64)> {
        let plant = self.plant_of(exact)?;
        let plant = plant.equations().ok_or_else(|| {
            refuse("the many windows of this sender have no two equations: use its frequency response, exact=False, sender ns2, or a model")
        })?;
        Ok((plant.now, plant.delayed, plant.input_now, plant.input_delayed, plant.delay_s))
    }

    /// Returns the frequency response of the plant, dq/dp, at `w` in rad/s: real and imaginary parts.
    fn plant_response(&self, w: Vec<f64>, exact: bool) -> PyResult<(Vec<f64>, Vec<f64>)> {
        let plant = self.plant_of(exact)?;
        Ok(w.into_iter().map(|w| plant.response(w)).map(|z| (z.re, z.im)).unzip())
    }

    /// Returns the frequency response of the open loop with a controller, by default that of the AQM.
    #[pyo3(signature = (w, exact, controller = None))]
    fn loop_response(
        &self,
        w: Vec<f64>,
        exact: bool,
        controller: Option<ControllerTuple>,
    ) -> PyResult<(Vec<f64>, Vec<f64>)> {
        let open_loop = self.open_loop(exact, controller)?;
        Ok(w.into_iter().map(|w| open_loop.response(w)).map(|z| (z.re, z.im)).unzip())
    }

    /// Returns the margins of the loop with a controller, by default that of the AQM.
    #[pyo3(signature = (exact, controller = None))]
    fn margins<'py>(
        &self,
        py: Python<'py>,
        exact: bool,
        controller: Option<ControllerTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.open_loop(exact, controller)?.margins())
    }

    /// Returns the power spectrum of the queue at `w` in rad/s: noise of packets of Reno flows under random marks.
    fn noise_power(&self, w: Vec<f64>) -> PyResult<Vec<f64>> {
        design::noise_power(&self.choice, &self.conditions, &w).map_err(error)
    }

    /// Returns the poles of the sampled closed loop with the textbook plant and the controller scaled by `gain`; `None`
    /// if the controller is not sampled.
    #[pyo3(signature = (gain = 1.0))]
    fn sampled_poles(&self, gain: f64) -> Option<(Vec<f64>, Vec<f64>)> {
        let scaled = self.controller.as_ref()?.scaled(gain);
        let polynomial = linear::closed_loop(&self.at, &scaled, self.at.rtt_s)?;
        Some(linear::roots(&polynomial).into_iter().map(|z| (z.re, z.im)).unzip())
    }

    /// Analyses the loop over all pairs of values of two axes: `flows`, `rtt`, `capacity` (packets/s), `target` or
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
        let (scenario, analyse) = (self.scenario.clone(), move || {
            let map = maps::map(&choice, &conditions, (axes.0, &x.1), (axes.1, &y.1), threads)?;
            let checks =
                if cycles { maps::nonlinear_checks(&choice, &conditions, &map, axes, threads)? } else { Vec::new() };
            Ok((map, checks))
        });
        let (map, checks) = run_on_thread(py, move || scenario.watching(|| analyse().map_err(error)))?;
        let check = |of: fn(&NonlinearCheck) -> Option<f64>| -> Vec<f64> {
            checks.iter().map(|point| of(point).unwrap_or(f64::NAN)).collect()
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
                check(|point| point.coexisting.map(|(deviation, _)| deviation)),
                check(|point| point.coexisting.map(|(_, period)| period)),
                check(|point| point.supercritical.map(f64::from)),
            ],
        ))
    }

    /// Returns the stability boundary over the ranges of two quantities, in pieces. Columns: both quantities, the
    /// period, and whether the Hopf bifurcation is supercritical (1, 0, or NaN if unknown).
    #[allow(clippy::type_complexity, reason = "a tuple is what Python unpacks")]
    fn boundary(
        &self,
        py: Python<'_>,
        x: (String, [f64; 2]),
        y: (String, [f64; 2]),
        threads: usize,
    ) -> PyResult<Vec<[Vec<f64>; 4]>> {
        let axes = ((axis(&x.0)?, x.1), (axis(&y.0)?, y.1));
        let (scenario, choice, conditions) = (self.scenario.clone(), self.choice.clone(), self.conditions);
        let trace = move || boundary::boundary(&choice, &conditions, axes.0, axes.1, threads).map_err(error);
        let pieces = run_on_thread(py, move || scenario.watching(trace))?;
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

    /// Integrates the nonlinear equations from `start` times the equilibrium, or, without it, from the equilibrium with
    /// an AQM in its initial state. Returns mean and standard deviation of the queue over the last third, and its
    /// period, if any.
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
        let (scenario, choice) = (self.scenario.clone(), self.choice.clone());
        let run = move || scenario.watching(|| cycle::check(&choice, &conditions, duration_s, start).map_err(error));
        run_on_thread(py, run).map(|cycle| (cycle.mean_pkts, cycle.std_pkts, cycle.period_s))
    }

    /// Designs the best PI for ranges of flows, base RTT (seconds) and capacity (packets/s). Returns a, b, K and z, its
    /// worst case, and that of the usual design. `aim` is `margin` with the slowest crossover, or `speed` or `noise`
    /// with the modulus margin; its third value is the fraction of the speed that `noise` preserves.
    #[allow(clippy::type_complexity, reason = "a tuple is what Python unpacks")]
    #[allow(clippy::too_many_arguments, reason = "the ranges of a network")]
    fn robust_pi(
        &self,
        py: Python<'_>,
        flows: [f64; 2],
        rtt: [f64; 2],
        capacity: [f64; 2],
        frequency: f64,
        aim: (String, f64, f64),
        others: Vec<PyRef<'_, Analysis>>,
    ) -> PyResult<([f64; 4], [f64; 3], [f64; 3])> {
        let (range, aim) = (robust::NetworkRange { flows, rtt_s: rtt, capacity_pps: capacity }, objective(&aim)?);
        let (conditions, queue_pkts) = (self.with_others(&others), self.at.queue_pkts);
        let found =
            run_on_thread(py, move || robust::pi(&conditions, &range, queue_pkts, frequency, aim).map_err(error))?;
        let (gains, pi) = (found.gains, found.controller);
        Ok(([gains.a(), gains.b(), pi.gain, pi.zero], worst_case(found.worth), worst_case(found.usual)))
    }

    /// Tunes gain and speed of the AQM for the same ranges. Returns names and values of its parameters, its worst case,
    /// and that of the parameters given.
    #[allow(clippy::type_complexity, reason = "a tuple is what Python unpacks")]
    fn robust(
        &self,
        py: Python<'_>,
        flows: [f64; 2],
        rtt: [f64; 2],
        capacity: [f64; 2],
        aim: (String, f64, f64),
        others: Vec<PyRef<'_, Analysis>>,
    ) -> PyResult<(Vec<(&'static str, f64)>, [f64; 3], [f64; 3])> {
        let (range, aim) = (robust::NetworkRange { flows, rtt_s: rtt, capacity_pps: capacity }, objective(&aim)?);
        let (scenario, choice, conditions) = (self.scenario.clone(), self.choice.clone(), self.with_others(&others));
        let tune = move || scenario.watching(|| robust::tune(&choice, &conditions, &range, aim).map_err(error));
        let tuned = run_on_thread(py, tune)?;
        Ok((tuned.found, worst_case(tuned.worth), worst_case(tuned.given)))
    }
}

/// Returns smallest modulus margin, slowest crossover and largest QACD.
fn worst_case(worst: WorstCase) -> [f64; 3] {
    [worst.margin, worst.slowest_rad_s, worst.qacd_pkts]
}

fn objective((name, value, speed): &(String, f64, f64)) -> PyResult<Objective> {
    let fraction = |name: &str, x: f64| match x > 0.0 && x < 1.0 || name == "speed" && x == 1.0 {
        true => Ok(x),
        false => Err(refuse(format!("{name} = {x}: must be above 0 and below 1"))),
    };
    match name.as_str() {
        "margin" if *value > 0.0 && value.is_finite() => Ok(Objective::Margin { slowest_rad_s: *value }),
        "margin" => Err(refuse(format!("the slowest crossover is {value} rad/s: must be above 0"))),
        "speed" => Ok(Objective::Speed { margin: fraction("modulus margin", *value)? }),
        "noise" => {
            Ok(Objective::Noise { margin: fraction("modulus margin", *value)?, speed: fraction("speed", *speed)? })
        }
        other => Err(refuse(format!("invalid aim '{other}'; choose from: margin, speed, noise"))),
    }
}

impl Analysis {
    fn plant_of(&self, exact: bool) -> PyResult<NetworkPlant> {
        if !exact {
            return Ok(NetworkPlant::textbook(&self.at));
        }
        self.plant
            .clone()
            .ok_or_else(|| refuse("no signal probability holds the queue at the target: there is no plant"))
    }

    /// Conditions of this analysis and of the same network with other senders.
    fn with_others(&self, others: &[PyRef<'_, Analysis>]) -> Vec<OperatingConditions> {
        std::iter::once(self.conditions).chain(others.iter().map(|other| other.conditions)).collect()
    }

    fn open_loop(&self, exact: bool, controller: Option<ControllerTuple>) -> PyResult<Loop<NetworkPlant>> {
        let controller = match controller {
            Some((num, den, Some(period_s))) => Controller::Sampled { num, den, period_s },
            Some((num, den, None)) => Controller::Continuous { num, den },
            None => self.controller.clone().ok_or_else(|| refuse("this AQM is not a linear controller"))?,
        };
        Ok(Loop::new(self.plant_of(exact)?, controller))
    }
}

/// Analyses the AQM of a SPEC in the nominal network of `scenario`, whose base RTT is the round-trip time at the target
/// if `at_target`, with flows of the TCP preset `sender` that hear marks, or with the mean window of a `model` as in
/// `run_fluid`.
#[pyfunction]
#[pyo3(signature = (scenario, aqm, at_target, model = None, sender = None))]
pub(crate) fn analyse(
    py: Python<'_>,
    scenario: &Scenario,
    aqm: &str,
    at_target: bool,
    model: Option<&str>,
    sender: Option<&str>,
) -> PyResult<Analysis> {
    let (scenario, aqm, options) = (scenario.0.clone(), aqm.to_string(), options(model)?);
    let sender = sender.map(preset).transpose()?;
    run_on_thread(py, move || scenario.watching(|| analysis(&scenario, &aqm, at_target, options.model, sender)))
}

/// Sender of a TCP preset, under marks.
fn preset(name: &str) -> PyResult<Sender> {
    let preset = PRESETS.iter().find(|(known, _)| *known == name);
    let protocol = preset.ok_or_else(|| {
        refuse(format!("unknown sender `{name}`; choose from: linux, cubic, dctcp, prague, modern, linux-reno, ns2"))
    })?;
    let sender = Sender::from_protocol(&protocol.1()).map_err(|why| refuse(format!("sender {name}: {why}")))?;
    Ok(Sender { losses: false, ..sender })
}

fn analysis(
    scenario: &WithCustomCode<aqumen_scenario::Scenario>,
    aqm: &str,
    at_target: bool,
    model: Option<Model>,
    sender: Option<Sender>,
) -> PyResult<Analysis> {
    let mut choice = plan(scenario, 1, Some(aqm))?
        .links
        .into_iter()
        .find(|link| link.record)
        .ok_or_else(|| refuse("the scenario records no link"))?
        .aqm
        .clone();
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
        model: model.unwrap_or(if sender.is_some() { Model::Reno } else { Model::Hollot }),
        flows: network.flows,
        capacity_pps: network.capacity_pps(),
        unresponsive_pps: 0.0,
        transfer_rtts: 0.0,
        base_rtt_s: network.base_rtt_s,
        buffer_pkts: network.buffer_pkts,
        sender: sender.unwrap_or(Sender::reno()),
    };
    let analysis = design::analyse(&choice, &conditions).map_err(error)?;
    let OpenLoop { at, controller, plant } = design::open_loop(&choice, &conditions).map_err(error)?;
    let json = serde_json::to_string(&analysis).map_err(refuse)?;
    Ok(Analysis { json, scenario: scenario.clone(), choice, conditions, at, controller, plant })
}

/// Predicts the result of a run of `scenario` at equilibrium.
#[pyfunction]
pub(crate) fn run_theory(py: Python<'_>, scenario: &Scenario, aqm: Option<&str>, seed: u64) -> PyResult<RunResult> {
    let (scenario, aqm) = (scenario.0.clone(), aqm.map(String::from));
    run_on_thread(py, move || {
        let plan = plan(&scenario, seed, aqm.as_deref())?;
        scenario.watching(|| measured(|| engine::run(&plan)).map(RunResult).map_err(error))
    })
}

/// Returns the predictions of `run_theory` by link and window; without `loops` only operating points, which is fast.
#[pyfunction]
#[pyo3(signature = (scenario, aqm, seed, loops = true))]
pub(crate) fn predict<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    aqm: Option<&str>,
    seed: u64,
    loops: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (scenario, aqm) = (scenario.0.clone(), aqm.map(String::from));
    let depth = if loops { Depth::Loop } else { Depth::Equilibrium };
    let prediction = run_on_thread(py, move || {
        let plan = plan(&scenario, seed, aqm.as_deref())?;
        scenario.watching(|| prediction::predict_to(depth, &plan).map_err(error))
    })?;
    to_python(py, &prediction)
}

/// Columns of a map, row by row: feasible, stable, noise valid; gain margin, phase margin in degrees, modulus margin,
/// standard deviation of the queue, QACD, 95th percentile, utilization lost; deviation and period of a coexisting limit
/// cycle, and whether the Hopf bifurcation is supercritical, all three empty without `cycles`. NaN: undefined.
type MapColumns = (Vec<bool>, Vec<bool>, Vec<bool>, Vec<Vec<f64>>, Vec<Vec<f64>>);

fn axis(name: &str) -> PyResult<Axis> {
    match name {
        "flows" => Ok(Axis::Flows),
        "rtt" => Ok(Axis::Rtt),
        "capacity" => Ok(Axis::Capacity),
        "target" => Ok(Axis::Target),
        "gain" => Ok(Axis::Gain),
        "rtt_estimate" => Ok(Axis::RttEstimate),
        "capacity_estimate" => Ok(Axis::CapacityEstimate),
        "flows_estimate" => Ok(Axis::FlowsEstimate),
        other => Err(refuse(format!("invalid axis '{other}'; choose from: flows, rtt, capacity, target, gain"))),
    }
}
