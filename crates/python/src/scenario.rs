//! Scenario for Python.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aqumen_scenario::cost::Runner;
use aqumen_scenario::design::NetworkParameters;
use aqumen_scenario::memory::headroom;
use aqumen_scenario::{Files, Link, Traffic};
use aqumen_traffic::{Action, Requests};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::catalogue;
use crate::custom::{Catalogue, WithCustomCode};
use crate::error::refuse;
use crate::interrupt::run_on_thread;
use crate::objects::to_python;
use crate::own;

/// Checked, immutable scenario: `set` returns another one.
#[pyclass(frozen, module = "aqumen._core")]
pub(crate) struct Scenario(pub(crate) WithCustomCode<aqumen_scenario::Scenario>);

/// Request of a source: seconds since the last response, kind, bytes, whether a connection is opened.
type RequestTuple = (f64, &'static str, u64, bool);

#[pymethods]
impl Scenario {
    /// Reads and checks the file at `path`, with the names of a catalogue.
    #[staticmethod]
    #[pyo3(signature = (path, catalogue = None))]
    fn load(path: PathBuf, catalogue: Option<&Catalogue>) -> PyResult<Self> {
        match catalogue {
            None => aqumen_scenario::Scenario::load_with_extensions(path, own::extensions())
                .map(WithCustomCode::plain)
                .map(Scenario)
                .map_err(refuse),
            Some(catalogue) => {
                wrap(&catalogue.0, || aqumen_scenario::Scenario::load_with_extensions(path, (*catalogue.0).clone()))
            }
        }
    }

    /// Checks `text`; `file` is its name in messages. `files`: contents of the files that it names; read from disk if
    /// not given.
    #[staticmethod]
    #[pyo3(signature = (text, file = "scenario", catalogue = None, files = None))]
    fn parse(
        text: &str,
        file: &str,
        catalogue: Option<&Catalogue>,
        files: Option<BTreeMap<String, Vec<u8>>>,
    ) -> PyResult<Self> {
        let files = match files {
            None => Files::on_disk(file),
            Some(files) => Files::as_read(file, files),
        };
        match catalogue {
            None => aqumen_scenario::Scenario::parse_with_extensions(text, file, files, own::extensions())
                .map(WithCustomCode::plain)
                .map(Scenario)
                .map_err(refuse),
            Some(catalogue) => {
                let extensions = (*catalogue.0).clone();
                wrap(&catalogue.0, || aqumen_scenario::Scenario::parse_with_extensions(text, file, files, extensions))
            }
        }
    }

    /// Makes the network of a design from its numbers, as written in a scenario.
    #[staticmethod]
    #[pyo3(signature = (capacity, flows, round_trip, at_target, packet, target = None, buffer = None, catalogue = None))]
    #[allow(clippy::too_many_arguments, reason = "the numbers of a network")]
    fn from_network(
        capacity: &str,
        flows: f64,
        round_trip: &str,
        at_target: bool,
        packet: &str,
        target: Option<&str>,
        buffer: Option<&str>,
        catalogue: Option<&Catalogue>,
    ) -> PyResult<Self> {
        let network = NetworkParameters { capacity, flows, round_trip, at_target, packet, target, buffer };
        match catalogue {
            None => network.scenario(own::extensions()).map(WithCustomCode::plain).map(Scenario).map_err(refuse),
            Some(catalogue) => wrap(&catalogue.0, || network.scenario((*catalogue.0).clone())),
        }
    }

    /// Returns itself: a scenario never changes.
    fn __deepcopy__(slf: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// Name of the file.
    #[getter]
    fn file(&self) -> String {
        self.0.file().into()
    }

    /// Name of the scenario.
    #[getter]
    fn name(&self) -> String {
        self.0.spec().name.0.clone()
    }

    /// Title, one line.
    #[getter]
    fn title(&self) -> String {
        self.0.spec().title.clone().unwrap_or_else(|| self.name())
    }

    /// Returns the scenario with the values at dotted keys replaced, checked after all replacements.
    fn set(&self, changes: Vec<(String, String)>) -> PyResult<Self> {
        let changes: Vec<(&str, &str)> = changes.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        wrap(&self.0, || self.0.with_all(&changes))
    }

    /// Returns the scenario up to `end`, a time such as `40s`.
    fn until(&self, end: &str) -> PyResult<Self> {
        wrap(&self.0, || self.0.until(end))
    }

    /// Returns the scenario with the names of a catalogue.
    fn with_catalogue(&self, catalogue: &Catalogue) -> PyResult<Self> {
        wrap(&catalogue.0, || self.0.with_extensions((*catalogue.0).clone()))
    }

    /// Ids of the cells of its sweep; empty without one.
    fn cells(&self) -> Vec<String> {
        self.0.cells()
    }

    /// Names of its variants, which can be added to any cell.
    fn variants(&self) -> Vec<String> {
        self.0.spec().variants.0.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the cell of an id: names of points and variants, separated by commas.
    fn cell(&self, id: &str) -> PyResult<Self> {
        wrap(&self.0, || self.0.cell(id))
    }

    /// Returns the scenario as TOML, which parses to an equal scenario.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    /// Contents of the files that it names, by their names in it.
    fn files<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        self.0.files().into_iter().map(|(name, bytes)| (name, PyBytes::new(py, &bytes))).collect()
    }

    /// Returns the explicit plan for `seed`, with the AQM of a SPEC on the links under test.
    fn plan<'py>(&self, py: Python<'py>, seed: u64, aqm: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let (scenario, aqm) = (self.0.clone(), aqm.map(String::from));
        let json = run_on_thread(py, move || {
            let plan = plan(&scenario, seed, aqm.as_deref())?;
            scenario.watching(|| plan.to_json().map_err(refuse))
        })?;
        to_python(py, &json)
    }

    /// Returns for each group of the plan for `seed` the requests of its sources of finite transfers; `None` for other
    /// traffic. Each source is a list of seconds since the last response, "page", "transfer" or "read", bytes, and
    /// whether a connection is opened.
    #[pyo3(signature = (seed))]
    fn requests(&self, py: Python<'_>, seed: u64) -> PyResult<Vec<Option<Vec<Vec<RequestTuple>>>>> {
        let source = |ahead: &Requests| -> Vec<RequestTuple> {
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
        let groups = run_on_thread(py, move || Ok(aqumen_traffic::requests(&plan(&scenario, seed, None)?)))?;
        Ok(groups.iter().map(|group| group.as_ref().map(|all| all.iter().map(source).collect())).collect())
    }

    /// Returns the names that a SPEC may start with: this scenario's profiles, then the built-in ones and the
    /// algorithms.
    fn aqm_names(&self) -> Vec<String> {
        let profiles = self.0.spec().aqms.0.iter().map(|(name, _)| name.clone());
        let built_in = catalogue::names().map(String::from);
        let custom = self.0.catalogue().custom().map(|entry| entry.name.to_string());
        let custom = custom.filter(|name| !catalogue::names().any(|built_in| built_in == name));
        profiles.chain(custom).chain(built_in).collect()
    }

    /// Returns the groups with custom traffic, each with its kind.
    fn custom_traffic(&self) -> Vec<(String, String)> {
        let groups = self.0.spec().flows.iter().filter_map(|group| match &group.traffic {
            Traffic::Custom(custom) => Some((group.name.0.clone(), custom.name.clone())),
            _ => None,
        });
        groups.collect()
    }

    /// Refuses a SPEC that this scenario cannot run.
    fn check_aqm(&self, py: Python<'_>, spec: &str) -> PyResult<()> {
        let (scenario, spec) = (self.0.clone(), spec.to_string());
        run_on_thread(py, move || plan(&scenario, 1, Some(&spec)).map(drop))
    }

    /// Memory that the queue discipline of a SPEC reserves on the first link under test, and memory per flow, bytes;
    /// `None` for a custom one.
    fn qdisc_memory(&self, py: Python<'_>, spec: &str) -> PyResult<Option<(usize, usize)>> {
        let (scenario, spec) = (self.0.clone(), spec.to_string());
        run_on_thread(py, move || {
            let plan = plan(&scenario, 1, Some(&spec))?;
            let memory = |link: &Link| match link.aqm.build_qdisc(link.limit) {
                Some(Ok(qdisc)) if !qdisc.is_custom() => Some((qdisc.memory_bytes(), qdisc.flow_bytes())),
                _ => None,
            };
            Ok(plan.links.iter().find(|link| link.record).and_then(memory))
        })
    }

    /// Refuses a run of the SPEC, on `packet`, `fluid` or `theory` (with `loops`), that takes too long. Returns a line
    /// with the estimated time of `runs` such runs, if that is long.
    #[pyo3(signature = (engine, aqm, runs, loops = true))]
    fn check_cost(&self, engine: &str, aqm: Option<&str>, runs: u64, loops: bool) -> PyResult<Option<String>> {
        let aqm = aqm.map(|text| self.0.aqm(text)).transpose().map_err(refuse)?;
        self.0.check_cost(runner(engine, loops), aqm.as_ref(), runs).map_err(refuse)
    }

    /// Returns the estimated time of a run of the SPEC on one core, seconds.
    #[pyo3(signature = (engine = "packet", aqm = None))]
    fn time_estimate(&self, engine: &str, aqm: Option<&str>) -> PyResult<f64> {
        let aqm = aqm.map(|text| self.0.aqm(text)).transpose().map_err(refuse)?;
        Ok(self.0.cost(runner(engine, true), aqm.as_ref()).map_err(refuse)?.seconds())
    }

    /// Refuses a scenario if the free memory does not suffice to start `runs` runs.
    fn check_memory(&self, runs: u64) -> PyResult<()> {
        check_memory(&self.0, runs)
    }
}

/// Wraps the scenario that `make` reads, with the custom code of `catalogue`.
fn wrap<T>(
    catalogue: &WithCustomCode<T>,
    make: impl FnOnce() -> Result<aqumen_scenario::Scenario, aqumen_scenario::Error>,
) -> PyResult<Scenario> {
    catalogue.watching(|| make().map(|scenario| Scenario(WithCustomCode::like(catalogue, scenario))).map_err(refuse))
}

/// Refuses a scenario if the free memory does not suffice to start `runs` runs.
fn check_memory(scenario: &aqumen_scenario::Scenario, runs: u64) -> PyResult<()> {
    headroom().map_or(Ok(()), |headroom| scenario.check_memory(runs, headroom.left).map_err(refuse))
}

/// Returns the plan for `seed` with the AQM of a SPEC; `None`: the AQM that the scenario names.
pub(crate) fn plan(
    scenario: &WithCustomCode<aqumen_scenario::Scenario>,
    seed: u64,
    aqm: Option<&str>,
) -> PyResult<aqumen_scenario::Plan> {
    let aqm = aqm.map(|text| scenario.aqm(text)).transpose().map_err(refuse)?;
    check_memory(scenario, 1)?;
    scenario.watching(|| scenario.plan(seed, aqm.as_ref()).map_err(refuse))
}

/// Parses the name of an engine; prediction with `loops` or without.
fn runner(engine: &str, loops: bool) -> Runner {
    match engine {
        "fluid" => Runner::Fluid,
        "theory" => Runner::Theory { loops },
        "ns2" => Runner::Ns2,
        "ns3" => Runner::Ns3,
        _ => Runner::Packet,
    }
}
