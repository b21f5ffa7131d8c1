//! The Rust engines as the Python module `aqumen._core`: glue alone, no logic.
//!
//! `catalogue` lists what there is, the papers' experiments among it, `many` runs several runs at a time, `theory` is
//! what needs no packets, `beside` prediction beside measurement, `mmpp` the queueing analysis, `replay` captures
//! before a queue, `ranking` several runs beside one another, `experience` the same by what people feel; `interrupt`
//! answers Ctrl-C meanwhile, `error` is what Python raises, `own` are the user's own AQMs and sources.

mod beside;
mod catalogue;
mod cost;
mod error;
mod experience;
mod interrupt;
mod many;
mod mmpp;
mod own;
mod ranking;
mod record;
mod replay;
mod theory;

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use aqumen_scenario::cost::Runner;
use aqumen_scenario::design::Numbers;
use aqumen_scenario::{Link, Outside, Traffic};
use aqumen_sim::Options;
use aqumen_traffic::{Action, Ahead};

use cost::measured;
use error::{refuse, run_error, unknown};
use interrupt::{Worker, apart, listening};
use own::{Catalogue, Known};

/// The compiled core of Aqumen; the package `aqumen` is its public face.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::{RunResult, Scenario, json_schema, run, run_many, student_quantile, summary, transient};
    #[pymodule_export]
    use crate::beside::{beside_json, swing_json};
    #[pymodule_export]
    use crate::catalogue::{
        experiments, list_aqms_json, list_traffic_json, list_transports_json, metric_keys, quantity,
    };
    #[pymodule_export]
    use crate::error::{Cancelled, ScenarioError};
    #[pymodule_export]
    use crate::experience::experienced;
    #[pymodule_export]
    use crate::mmpp::{mmpp_json_schema, mmpp_solve, mmpp_solve_text};
    #[pymodule_export]
    use crate::own::{Catalogue, PacketView, QueueView, Seen};
    #[pymodule_export]
    use crate::ranking::{averaged, curve_rms, goals_json, rank};
    #[pymodule_export]
    use crate::record::QueueRecord;
    #[pymodule_export]
    use crate::replay::{Replay, survey};
    #[pymodule_export]
    use crate::theory::{Analysis, analyse, predict_json, run_fluid, run_fluid_many, run_theory};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("ALIKE", aqumen_result::ALIKE)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// A checked scenario. It never changes: `set` gives another.
#[pyclass(frozen, module = "aqumen._core")]
struct Scenario(Known<aqumen_scenario::Scenario>);

/// The result of one run.
#[pyclass(frozen, module = "aqumen._core")]
struct RunResult(aqumen_result::RunResult);

/// Values, and the share at or below each.
type CdfArrays<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// A name, and values.
type Named<'py> = (&'static str, Bound<'py, PyArray1<f64>>);

/// Something that a source asks for: seconds since the last was served, what, bytes, whether a connection is opened.
type Asked = (f64, &'static str, u64, bool);

/// A link's sampling instants, queue lengths and probabilities.
type SeriesArrays<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl Scenario {
    /// Reads and checks the file at `path`, with what a catalogue has.
    #[staticmethod]
    #[pyo3(signature = (path, own = None))]
    fn load(path: PathBuf, own: Option<&Catalogue>) -> PyResult<Self> {
        match own {
            None => aqumen_scenario::Scenario::load(path, &[]).map(Known::plain).map(Scenario).map_err(refuse),
            Some(own) => wrap(&own.0, || aqumen_scenario::Scenario::load_knowing(path, (*own.0).clone())),
        }
    }

    /// Checks `text`; `file` is its name in messages.
    #[staticmethod]
    #[pyo3(signature = (text, file = "scenario", own = None))]
    fn parse(text: &str, file: &str, own: Option<&Catalogue>) -> PyResult<Self> {
        match own {
            None => aqumen_scenario::Scenario::parse(text, file).map(Known::plain).map(Scenario).map_err(refuse),
            Some(own) => {
                let files = aqumen_scenario::Files::beside(file);
                wrap(&own.0, || aqumen_scenario::Scenario::parse_knowing(text, file, files, (*own.0).clone()))
            }
        }
    }

    /// The network of a design, by its numbers as they are written in a scenario.
    #[staticmethod]
    #[pyo3(signature = (capacity, flows, round_trip, at_target, packet, target = None, buffer = None, own = None))]
    #[allow(clippy::too_many_arguments, reason = "the numbers of a network")]
    fn of_network(
        capacity: &str,
        flows: f64,
        round_trip: &str,
        at_target: bool,
        packet: &str,
        target: Option<&str>,
        buffer: Option<&str>,
        own: Option<&Catalogue>,
    ) -> PyResult<Self> {
        let numbers = Numbers { capacity, flows, round_trip, at_target, packet, target, buffer };
        match own {
            None => numbers.scenario(Outside::default()).map(Known::plain).map(Scenario).map_err(refuse),
            Some(own) => wrap(&own.0, || numbers.scenario((*own.0).clone())),
        }
    }

    /// Name of the file that it was read from.
    #[getter]
    fn file(&self) -> String {
        self.0.file().into()
    }

    /// The scenario's name.
    #[getter]
    fn name(&self) -> String {
        self.0.spec().name.0.clone()
    }

    /// One line that says what it is.
    #[getter]
    fn title(&self) -> String {
        self.0.spec().title.clone().unwrap_or_else(|| self.name())
    }

    /// The same scenario with the values at dotted keys replaced, checked when all are in place.
    fn set(&self, changes: Vec<(String, String)>) -> PyResult<Self> {
        let changes: Vec<(&str, &str)> = changes.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        wrap(&self.0, || self.0.with_all(&changes))
    }

    /// The scenario up to `end`, a time such as `40s`.
    fn until(&self, end: &str) -> PyResult<Self> {
        wrap(&self.0, || self.0.until(end))
    }

    /// The same scenario with what a catalogue has.
    fn knowing(&self, own: &Catalogue) -> PyResult<Self> {
        wrap(&own.0, || self.0.knowing((*own.0).clone()))
    }

    /// Ids of the cells of its sweep; empty without one.
    fn cells(&self) -> Vec<String> {
        self.0.cells()
    }

    /// Names of its variants, which can be added to any cell.
    fn variants(&self) -> Vec<String> {
        self.0.spec().variants.0.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The cell of an id: points and variants with commas between.
    fn cell(&self, id: &str) -> PyResult<Self> {
        wrap(&self.0, || self.0.cell(id))
    }

    /// The scenario as TOML; it reads back as the same scenario.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    /// The explicit plan for `seed` as JSON, with the AQM of a SPEC on the links under test.
    #[pyo3(signature = (seed, aqm))]
    fn plan_json(&self, py: Python<'_>, seed: u64, aqm: Option<&str>) -> PyResult<String> {
        let (scenario, aqm) = (self.0.clone(), aqm.map(String::from));
        apart(py, move || {
            let plan = plan(&scenario, seed, aqm.as_deref())?;
            scenario.watching(|| Ok(plan.to_json().map_err(refuse)?.to_string()))
        })
    }

    /// For each group of the plan for `seed` what its sources of finite transfers ask for; `None` for other traffic.
    /// Each source is a list of seconds since the last was served, "page", "transfer" or "read", bytes, and whether a
    /// connection is opened.
    #[pyo3(signature = (seed))]
    fn requests(&self, py: Python<'_>, seed: u64) -> PyResult<Vec<Option<Vec<Vec<Asked>>>>> {
        let source = |ahead: &Ahead| -> Vec<Asked> {
            let steps = ahead.iter().map(|(wait, action)| (wait.as_nanos() as f64 / 1e9, *action));
            steps
                .map(|(wait_s, action)| match action {
                    Action::BeginPage => (wait_s, "page", 0, false),
                    Action::EndPage => (wait_s, "read", 0, false),
                    Action::Transfer { bytes, fresh, .. } => (wait_s, "transfer", bytes, fresh),
                    Action::Write(bytes) => (wait_s, "write", u64::from(bytes), false),
                })
                .collect()
        };
        let scenario = self.0.clone();
        let groups = apart(py, move || Ok(aqumen_traffic::ahead(&plan(&scenario, seed, None)?)))?;
        Ok(groups.iter().map(|group| group.as_ref().map(|all| all.iter().map(source).collect())).collect())
    }

    /// Names that a SPEC may start with: this scenario's profiles, then the built-in ones and the algorithms.
    fn aqm_names(&self) -> Vec<String> {
        let own = self.0.spec().aqms.0.iter().map(|(name, _)| name.clone());
        let built_in = catalogue::names().map(String::from);
        own.chain(self.0.catalogue().own().map(|row| row.name.to_string())).chain(built_in).collect()
    }

    /// The kinds of traffic from outside that it names, each with the group that sends it.
    fn own_traffic(&self) -> Vec<(String, String)> {
        let groups = self.0.spec().flows.iter().filter_map(|group| match &group.traffic {
            Traffic::Own(own) => Some((group.name.0.clone(), own.name.clone())),
            _ => None,
        });
        groups.collect()
    }

    /// Refuses a SPEC that this scenario cannot run.
    fn check_aqm(&self, py: Python<'_>, spec: &str) -> PyResult<()> {
        let (scenario, spec) = (self.0.clone(), spec.to_string());
        apart(py, move || plan(&scenario, 1, Some(&spec)).map(drop))
    }

    /// Bytes that the queue discipline of a SPEC reserves on the first link under test, and of these what a flow takes;
    /// `None` for one from outside, which keeps what it likes.
    fn qdisc_memory(&self, py: Python<'_>, spec: &str) -> PyResult<Option<(usize, usize)>> {
        let (scenario, spec) = (self.0.clone(), spec.to_string());
        apart(py, move || {
            let plan = plan(&scenario, 1, Some(&spec))?;
            let of = |link: &Link| match link.aqm.build_qdisc(link.limit) {
                Some(Ok(qdisc)) if !qdisc.is_own() => Some((qdisc.memory_bytes(), qdisc.flow_bytes())),
                _ => None,
            };
            Ok(plan.links.iter().find(|link| link.record).and_then(of))
        })
    }

    /// An upper estimate of the memory that one run of the SPEC takes, bytes; `None`: the scenario's own.
    #[pyo3(signature = (engine = "packet", aqm = None))]
    fn memory_estimate(&self, py: Python<'_>, engine: &str, aqm: Option<&str>) -> PyResult<u64> {
        let (scenario, runner) = (self.0.clone(), runner(engine, true));
        let aqm = aqm.map(|text| self.0.aqm(text)).transpose().map_err(refuse)?;
        apart(py, move || Ok(scenario.memory_estimate(runner, aqm.as_ref())))
    }

    /// Refuses a run of the SPEC, on `packet`, `fluid` or `theory` (with `loops`), that takes far too long. A line that
    /// says how long `runs` such runs take, where that is long.
    #[pyo3(signature = (engine, aqm, runs, loops = true))]
    fn check_cost(&self, engine: &str, aqm: Option<&str>, runs: u64, loops: bool) -> PyResult<Option<String>> {
        let aqm = aqm.map(|text| self.0.aqm(text)).transpose().map_err(refuse)?;
        self.0.check_cost(runner(engine, loops), aqm.as_ref(), runs).map_err(refuse)
    }

    /// Refuses a scenario of which `runs` of the SPEC at a time need more memory than the machine has free.
    #[pyo3(signature = (runs, engine = "packet", aqm = None))]
    fn check_memory(&self, py: Python<'_>, runs: u64, engine: &str, aqm: Option<&str>) -> PyResult<()> {
        let (scenario, runner) = (self.0.clone(), runner(engine, true));
        let aqm = aqm.map(|text| self.0.aqm(text)).transpose().map_err(refuse)?;
        apart(py, move || scenario.check_memory(runner, aqm.as_ref(), runs, None).map_err(refuse))
    }
}

#[pymethods]
impl RunResult {
    /// What `aqumen run --json` prints.
    #[getter]
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(refuse)
    }

    /// Sampling instants in seconds, packets waiting, probability in force.
    fn series<'py>(&self, py: Python<'py>, link: &str) -> PyResult<SeriesArrays<'py>> {
        let series = self.0.series.get(link).ok_or_else(|| unknown(link))?;
        let array = |values: &Vec<f64>| values.clone().into_pyarray(py);
        Ok((array(&series.t_s), array(&series.queue_pkts), array(&series.probability)))
    }

    /// What the AQM shows of its state at those instants, by name.
    fn state<'py>(&self, py: Python<'py>, link: &str) -> PyResult<Vec<Named<'py>>> {
        let series = self.0.series.get(link).ok_or_else(|| unknown(link))?;
        let shown = series.state.keys().filter_map(|&name| Some((name, series.state(name)?.into_pyarray(py))));
        Ok(shown.collect())
    }

    /// Distribution of the sojourn times: seconds, and the share of packets that waited no longer.
    fn sojourn_cdf<'py>(&self, py: Python<'py>, link: &str, window: &str) -> PyResult<CdfArrays<'py>> {
        let windows = self.0.sojourn.get(link).ok_or_else(|| unknown(link))?;
        let points = windows.get(window).ok_or_else(|| unknown(window))?.cumulative();
        let (seconds, share): (Vec<f64>, Vec<f64>) = points.into_iter().map(|(ns, share)| (ns * 1e-9, share)).unzip();
        Ok((seconds.into_pyarray(py), share.into_pyarray(py)))
    }

    /// Distribution of the queue length: packets, and the share of time in which no more waited.
    fn queue_cdf<'py>(&self, py: Python<'py>, link: &str, window: &str) -> PyResult<CdfArrays<'py>> {
        let windows = self.0.queue.get(link).ok_or_else(|| unknown(link))?;
        let points = windows.get(window).ok_or_else(|| unknown(window))?.cumulative();
        // A bin ends with the whole number before its edge.
        let (packets, share): (Vec<f64>, Vec<f64>) =
            points.into_iter().map(|(edge, share)| (edge - 1.0, share)).unzip();
        Ok((packets.into_pyarray(py), share.into_pyarray(py)))
    }
}

/// Runs `scenario` on the packet engine with the AQM of a SPEC.
///
/// `progress` hears the fraction done now and then; `False` from it stops the run with `Cancelled`.
#[pyfunction]
#[pyo3(signature = (scenario, aqm, seed, pcap = None, progress = None))]
fn run(
    py: Python<'_>,
    scenario: &Scenario,
    aqm: Option<&str>,
    seed: u64,
    pcap: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<RunResult> {
    let (scenario, aqm) = (scenario.0.clone(), aqm.map(String::from));
    let run = move |worker: &Worker| {
        let plan = plan(&scenario, seed, aqm.as_deref())?;
        let options = Options { trace: pcap.as_deref(), ..Options::default() };
        let watch = scenario.watch();
        let engine = |hear: &mut dyn FnMut(f64) -> bool| {
            measured(|| aqumen_sim::run(&plan, options, &mut |fraction| watch.calm() && hear(fraction)))
        };
        let found = if own::calls(&plan) { worker.with_lock(engine) } else { engine(&mut |done| worker.hear(done)) };
        watch.settle(found.map_err(run_error))
    };
    listening(py, progress, run).map(RunResult)
}

/// Runs each (SPEC, seed) of `jobs` on the packet engine, `threads` at a time.
///
/// `on_done` is called with the number of each finished job and its result, in order of completion, on the caller's
/// thread. `False` or an exception from it stops the rest.
#[pyfunction]
fn run_many(
    py: Python<'_>,
    scenario: &Scenario,
    jobs: Vec<(Option<String>, u64)>,
    threads: usize,
    on_done: Py<PyAny>,
) -> PyResult<()> {
    let engine = |plan: &aqumen_scenario::Plan, go_on: &mut dyn FnMut(f64) -> bool| {
        measured(|| aqumen_sim::run(plan, Options::default(), &mut |fraction| go_on(fraction))).map_err(run_error)
    };
    many::run_many(py, &scenario.0, jobs, threads, &on_done, Arc::new(engine))
}

/// Mean, standard deviation, Student's 95 % interval and number of `values`, one per run.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "a tuple is what Python unpacks")]
fn summary(values: Vec<f64>) -> PyResult<(f64, Option<f64>, Option<(f64, f64)>, usize)> {
    let summary = aqumen_result::Summary::of(&values).ok_or_else(|| PyValueError::new_err("no values to summarise"))?;
    Ok((summary.mean, summary.std, summary.ci95.map(|[low, high]| (low, high)), summary.n))
}

/// The value below which Student's t with `freedom` degrees of freedom falls with `probability`.
#[pyfunction]
fn student_quantile(probability: f64, freedom: f64) -> PyResult<f64> {
    if !(probability > 0.0 && probability < 1.0 && freedom > 0.0 && freedom.is_finite()) {
        return Err(PyValueError::new_err("a quantile needs a probability in (0, 1) and degrees of freedom above 0"));
    }
    Ok(aqumen_result::student_quantile(probability, freedom))
}

/// Settling time in seconds, if it settles, and overshoot in packets of a sampled queue after `start_s` and until
/// `stop_s`. `None` without a sample in between.
#[pyfunction]
fn transient(
    t_s: Vec<f64>,
    queue_pkts: Vec<f64>,
    target_pkts: f64,
    start_s: f64,
    stop_s: f64,
) -> Option<(Option<f64>, f64)> {
    let seen = aqumen_result::transient(&t_s, &queue_pkts, target_pkts, start_s, stop_s)?;
    Some((seen.settling_s, seen.overshoot_pkts))
}

/// The JSON Schema of a scenario file.
#[pyfunction]
fn json_schema() -> String {
    aqumen_scenario::Scenario::json_schema()
}

/// The scenario that `make` reads, with the own AQMs of `known`.
fn wrap<T>(
    known: &Known<T>,
    make: impl FnOnce() -> Result<aqumen_scenario::Scenario, aqumen_scenario::Error>,
) -> PyResult<Scenario> {
    known.watching(|| make().map(|scenario| Scenario(Known::like(known, scenario))).map_err(refuse))
}

/// The plan for `seed` with the AQM of a SPEC; `None`: the scenario's own.
fn plan(scenario: &Known<aqumen_scenario::Scenario>, seed: u64, aqm: Option<&str>) -> PyResult<aqumen_scenario::Plan> {
    let aqm = aqm.map(|text| scenario.aqm(text)).transpose().map_err(refuse)?;
    scenario.watching(|| scenario.plan(seed, aqm.as_ref()).map_err(refuse))
}

/// What an engine is called; prediction with `loops` or without.
fn runner(engine: &str, loops: bool) -> Runner {
    match engine {
        "fluid" => Runner::Fluid,
        "theory" => Runner::Theory { loops },
        "ns2" => Runner::Ns2,
        "ns3" => Runner::Ns3,
        _ => Runner::Packet,
    }
}
