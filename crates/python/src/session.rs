//! A packet run in progress, and many of them at once as environments of an agent.

use std::sync::{Mutex, PoisonError};

use aqumen_sim::{Options, Progress, Stop};
use aqumen_units::{Instant, Span};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::custom::WithCustomCode;
use crate::error::{refuse, run_error};
use crate::result::{CdfArrays, RunResult, SeriesArrays};
use crate::scenario::Scenario;

/// Packet run that stops where its user wants.
#[pyclass(module = "aqumen._core")]
pub(crate) struct Session {
    scenario: WithCustomCode<aqumen_scenario::Scenario>,
    /// `None` once it is finished.
    session: Mutex<Option<aqumen_sim::Session>>,
}

/// Time, interval, packets and bytes waiting, counts since the last look (see `aqumen.session.Observation`).
type ObservationNumbers = [f64; 12];

/// Group, window in segments, goodput in bit/s, retransmissions and timeouts.
type FlowNumbers = (u32, Option<f64>, f64, u64, u64);

#[pymethods]
impl Session {
    /// Begins a run of `scenario` with the AQM of a SPEC. `packets`: the contents of queues can be read.
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, aqm: Option<&str>, seed: u64, packets: bool) -> PyResult<Self> {
        let scenario = scenario.0.clone();
        let session = py.detach(|| begin(&scenario, aqm, seed, packets))?;
        Ok(Session { scenario, session: Mutex::new(Some(session)) })
    }

    /// Returns the time that the run has reached, seconds.
    #[getter]
    fn now_s(&mut self) -> PyResult<f64> {
        self.with(|session| Ok(session.now().as_secs_f64()))
    }

    /// Returns the end of the run, seconds.
    #[getter]
    fn end_s(&mut self) -> PyResult<f64> {
        self.with(|session| Ok(session.end().as_secs_f64()))
    }

    /// Returns number and name of each recorded link.
    fn links(&mut self) -> PyResult<Vec<(u32, String)>> {
        self.with(|session| {
            let links = (0u32..).zip(&session.plan().links).filter(|(_, link)| link.record);
            Ok(links.map(|(number, link)| (number, link.name.to_string())).collect())
        })
    }

    /// Returns the names of the flow groups.
    fn groups(&mut self) -> PyResult<Vec<String>> {
        self.with(|session| Ok(session.plan().groups.iter().map(|group| group.name.clone()).collect()))
    }

    /// Runs up to `until_s`; returns why it stops there: "sample", "control", "event" or "end".
    fn advance_to(&mut self, py: Python<'_>, until_s: f64) -> PyResult<&'static str> {
        let until = Instant::ZERO + Span::from_secs_f64(until_s);
        self.run(py, move |session, progress| session.advance_to(until, progress)).map(shown)
    }

    /// Runs to the end of the next transmission at `link`.
    fn advance_packet(&mut self, py: Python<'_>, link: u32) -> PyResult<&'static str> {
        self.run(py, move |session, progress| session.advance_packet(link, progress)).map(shown)
    }

    /// Observes the queue of `link` since the last call.
    fn observe(&mut self, link: u32) -> PyResult<ObservationNumbers> {
        self.with(|session| session.observe(link).map(|seen| seen.numbers()).map_err(run_error))
    }

    /// Returns flow, bytes and mark of each packet that waits at `link`.
    fn contents(&mut self, link: u32) -> PyResult<Vec<(u32, u32, bool)>> {
        let packets = self.with(|session| session.contents(link).map_err(run_error))?;
        Ok(packets.into_iter().map(|packet| (packet.flow, packet.bytes, packet.marked)).collect())
    }

    /// Returns each flow since the last call.
    fn flows(&mut self) -> PyResult<Vec<FlowNumbers>> {
        self.with(|session| {
            let flows = session.flows().into_iter();
            Ok(flows
                .map(|flow| (flow.group, flow.window_pkts, flow.goodput_bps, flow.retransmitted, flow.timeouts))
                .collect())
        })
    }

    /// Distribution of the sojourn times at `link` since the last call: seconds, and the fraction at or below.
    fn sojourns<'py>(&mut self, py: Python<'py>, link: u32) -> PyResult<CdfArrays<'py>> {
        let points = self.with(|session| session.histogram(link).map_err(run_error))?.cumulative();
        let (seconds, fraction): (Vec<f64>, Vec<f64>) = points.into_iter().map(|(ns, p)| (ns * 1e-9, p)).unzip();
        Ok((seconds.into_pyarray(py), fraction.into_pyarray(py)))
    }

    /// Returns the samples of `link` so far: seconds, packets waiting, probability.
    fn series<'py>(&mut self, py: Python<'py>, link: u32) -> PyResult<SeriesArrays<'py>> {
        self.with(|session| {
            let series = session.series(link).map_err(run_error)?;
            let array = |values: &Vec<f64>| values.clone().into_pyarray(py);
            Ok((array(&series.t_s), array(&series.queue_pkts), array(&series.probability)))
        })
    }

    /// Replaces the AQM of `link` by a constant probability.
    fn set_probability(&mut self, link: u32, p: f64) -> PyResult<()> {
        self.with(|session| session.set_probability(link, p).map_err(run_error))
    }

    /// Replaces the AQM of `link` by that of a SPEC.
    fn set_aqm(&mut self, py: Python<'_>, link: u32, spec: &str) -> PyResult<()> {
        self.run(py, |session, progress| session.set_aqm(link, spec, progress))
    }

    /// Adds an event, a TOML table. The run is repeated up to now.
    fn push(&mut self, py: Python<'_>, event: &str) -> PyResult<()> {
        self.run(py, |session, progress| session.push(event, progress))
    }

    /// Draws from the random numbers of `seed` from now on.
    fn reseed(&mut self, seed: u64) -> PyResult<()> {
        self.with(|session| {
            session.reseed(seed);
            Ok(())
        })
    }

    /// Returns a copy that continues from the same state.
    fn copy(&mut self) -> PyResult<Session> {
        let scenario = self.scenario.clone();
        let copy = scenario.watching(|| self.with(|session| Ok(session.clone())))?;
        Ok(Session { scenario, session: Mutex::new(Some(copy)) })
    }

    /// Returns the scenario with the events that were pushed and the probabilities that were set.
    fn scenario(&mut self) -> PyResult<Scenario> {
        let played = self.with(|session| session.scenario().map_err(run_error))?;
        Ok(Scenario(WithCustomCode::like(&self.scenario, played)))
    }

    /// Runs to the end and returns the result. The session is over then.
    fn finish(&mut self, py: Python<'_>) -> PyResult<RunResult> {
        let end = self.with(|session| Ok(session.end()))?;
        if self.with(|session| Ok(session.now() < end))? {
            self.run(py, move |session, progress| session.advance_to(end, progress))?;
        }
        let session = self.session.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let session = session.ok_or_else(over)?;
        self.scenario.watching(|| session.finish(&mut |_| true).map(RunResult).map_err(run_error))
    }
}

impl Session {
    fn with<T>(&mut self, act: impl FnOnce(&mut aqumen_sim::Session) -> PyResult<T>) -> PyResult<T> {
        let session = self.session.get_mut().unwrap_or_else(PoisonError::into_inner);
        act(session.as_mut().ok_or_else(over)?)
    }

    /// Runs without the GIL; Ctrl-C and errors of custom code end it, and the session stays usable.
    fn run<T: Send>(
        &mut self,
        py: Python<'_>,
        act: impl FnOnce(&mut aqumen_sim::Session, &mut dyn Progress) -> Result<T, aqumen_sim::Error> + Send,
    ) -> PyResult<T> {
        let watch = self.scenario.watch();
        self.with(|session| {
            let mut signal = None;
            let answer = py.detach(|| {
                act(session, &mut |_| {
                    signal = Python::attach(|py| py.check_signals()).err();
                    signal.is_none() && watch.is_ok()
                })
            });
            watch.settle(answer.map_err(|error| signal.take().unwrap_or_else(|| run_error(error))))
        })
    }
}

fn over() -> PyErr {
    refuse("the run is over: the session has been finished")
}

fn shown(stop: Stop) -> &'static str {
    match stop {
        Stop::Sample => "sample",
        Stop::Control => "control",
        Stop::Event => "event",
        Stop::End => "end",
    }
}

fn begin(
    scenario: &WithCustomCode<aqumen_scenario::Scenario>,
    aqm: Option<&str>,
    seed: u64,
    packets: bool,
) -> PyResult<aqumen_sim::Session> {
    let aqm = aqm.map(|text| scenario.aqm(text)).transpose().map_err(refuse)?;
    let options = Options { every_service: packets, ..Options::default() };
    let inner = aqumen_scenario::Scenario::clone(scenario);
    scenario.watching(|| aqumen_sim::Session::new(inner, seed, aqm, options).map_err(run_error))
}

/// Runs that an agent steps together. It sets the probability of one link of each, or parameters of its AQM.
#[pyclass(module = "aqumen._core")]
pub(crate) struct Environments {
    runs: Mutex<Vec<Option<Environment>>>,
    period: Span,
    /// Number of periods in an observation.
    history: usize,
    /// Delay that counts 1 in an observation, seconds.
    delay_scale_s: f64,
    /// Parameters that the agent sets; without them it sets the probability.
    aqm: Option<ParameterActions>,
}

/// SPEC of an AQM, and name and unit of each parameter that an agent sets.
type ParameterActions = (String, Vec<(String, String)>);

struct Environment {
    session: aqumen_sim::Session,
    link: u32,
    /// Rate of the link at the start, bytes per second, and nominal packet size.
    rate: f64,
    packet_bytes: f64,
    /// Features of the last periods, the oldest first.
    memory: Vec<f32>,
}

/// Observations (a row each), the numbers behind them, and which runs are over.
type Steps<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<bool>>);

#[pymethods]
impl Environments {
    /// Makes room for `count` environments, which are stepped by `period_s` at a time.
    #[new]
    fn new(count: usize, period_s: f64, history: usize, delay_scale_s: f64, aqm: Option<ParameterActions>) -> Self {
        let runs = Mutex::new((0..count).map(|_| None).collect());
        Environments { runs, period: Span::from_secs_f64(period_s), history, delay_scale_s, aqm }
    }

    /// Begins environment `index` anew, whose agent is at the link called `link`. Returns the first observation.
    fn reset<'py>(
        &mut self,
        py: Python<'py>,
        index: usize,
        scenario: &Scenario,
        seed: u64,
        link: &str,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let scenario = scenario.0.clone();
        let aqm = self.aqm.as_ref().map(|(spec, _)| &spec[..]);
        let mut session = py.detach(|| begin(&scenario, aqm, seed, false))?;
        let link = session.link(link).map_err(run_error)?;
        session.observe(link).map_err(run_error)?;
        let network = &session.plan().links[link as usize].aqm.network;
        let (rate, packet_bytes) = (network.link_rate.as_bps() as f64 / 8.0, network.packet_bytes);
        let memory = vec![0.0; self.history * FEATURES];
        let first = memory.clone();
        let runs = self.runs.get_mut().unwrap_or_else(PoisonError::into_inner);
        *runs.get_mut(index).ok_or_else(|| refuse(format!("no environment {index}")))? =
            Some(Environment { session, link, rate, packet_bytes, memory });
        Ok(first.into_pyarray(py))
    }

    /// Sets the probability of the only environment and runs it for a period. Returns the observation, the numbers
    /// behind it, and whether the run is over.
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        p: f64,
    ) -> PyResult<(Bound<'py, PyArray1<f32>>, ObservationNumbers, bool)> {
        let (period, scale) = (self.period, self.delay_scale_s);
        let runs = self.runs.get_mut().unwrap_or_else(PoisonError::into_inner);
        let run = runs.first_mut().ok_or_else(|| refuse("no environment"))?;
        let (numbers, over) = py.detach(|| step(run, None, &[p], period, scale)).map_err(refuse)?;
        let memory = run.iter().flat_map(|run| run.memory.iter().copied());
        Ok((PyArray1::from_iter(py, memory), numbers, over))
    }

    /// Sets the probability, or the parameters, of each environment (a row each) and runs all of them for a period.
    fn step_many<'py>(&mut self, py: Python<'py>, actions: PyReadonlyArray2<'py, f64>) -> PyResult<Steps<'py>> {
        let (period, scale, aqm) = (self.period, self.delay_scale_s, self.aqm.as_ref());
        let width = aqm.map_or(1, |(_, names)| names.len());
        let runs = self.runs.get_mut().unwrap_or_else(PoisonError::into_inner);
        let actions = actions.as_slice().map_err(refuse)?;
        if actions.len() != runs.len() * width {
            let (given, wanted) = (actions.len(), runs.len() * width);
            return Err(refuse(format!("{given} numbers in the actions: must be {wanted}")));
        }
        let rows: Result<Vec<_>, String> = py.detach(|| {
            let runs = runs.par_iter_mut().zip(actions.par_chunks(width));
            runs.map(|(run, action)| step(run, aqm, action, period, scale)).collect()
        });
        let rows = rows.map_err(refuse)?;
        let features: Vec<f32> = runs.iter().flatten().flat_map(|run| run.memory.iter().copied()).collect();
        let numbers: Vec<f64> = rows.iter().flat_map(|(numbers, _)| *numbers).collect();
        let over: Vec<bool> = rows.iter().map(|(_, over)| *over).collect();
        let n = rows.len();
        let features = Array2::from_shape_vec((n, features.len() / n.max(1)), features).map_err(refuse)?;
        let numbers = Array2::from_shape_vec((n, numbers.len() / n.max(1)), numbers).map_err(refuse)?;
        Ok((features.into_pyarray(py), numbers.into_pyarray(py), over.into_pyarray(py)))
    }
}

/// Numbers of a period that an agent sees, in the order of `aqumen.gym.FEATURES`.
const FEATURES: usize = 6;

/// Sets the probability of an environment, or the parameters of its AQM, and runs it for `period`.
fn step(
    run: &mut Option<Environment>,
    aqm: Option<&ParameterActions>,
    action: &[f64],
    period: Span,
    delay_scale_s: f64,
) -> Result<(ObservationNumbers, bool), String> {
    let Environment { session, link, rate, packet_bytes, memory } =
        run.as_mut().ok_or("an environment is stepped before its reset")?;
    let said = |error: aqumen_sim::Error| error.to_string();
    match (aqm, action) {
        (None, [p]) => session.set_probability(*link, *p).map_err(said)?,
        (None, _) => return Err("the action is one probability".into()),
        (Some((spec, names)), values) => {
            let mut text = spec.clone();
            for ((name, unit), value) in names.iter().zip(values) {
                let separator = if text.contains(':') { ',' } else { ':' };
                text += &format!("{separator}{name}={value:?}{unit}");
            }
            session.set_aqm(*link, &text, &mut |_: f64| true).map_err(said)?;
        }
    }
    let stop = session.advance_to(session.now().saturating_add(period), &mut |_: f64| true).map_err(said)?;
    let seen = session.observe(*link).map_err(said)?;
    let capacity_pkts = *rate * period.as_secs_f64() / *packet_bytes;
    let features: [f64; FEATURES] = [
        seen.queue_bytes / *rate / delay_scale_s,
        seen.sojourn_s / delay_scale_s,
        seen.arrivals_pkts / capacity_pkts,
        seen.departures_pkts / capacity_pkts,
        seen.idle_s / seen.interval_s.max(1e-12),
        seen.applied.get(),
    ];
    memory.copy_within(FEATURES.., 0);
    let last = memory.len() - FEATURES;
    memory[last..].iter_mut().zip(features).for_each(|(slot, feature)| *slot = feature as f32);
    Ok((seen.numbers(), stop == Stop::End))
}
