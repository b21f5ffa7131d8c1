//! Replay of captures to a queue: a survey sets open settings, and each AQM runs with them.

use std::path::PathBuf;
use std::sync::Arc;

use aqumen_replay::{self as replay, Answer, Error, Setup};
use aqumen_scenario::replay::Settings;
use aqumen_scenario::{AqmSpec, RawValue};
use pyo3::prelude::*;

use crate::cost::cpu_seconds;
use crate::error::{Cancelled, refuse};
use crate::interrupt::listening;
use crate::own::{Catalogue, WithCustomCode};

/// A capture and the queue to which its packets are offered.
#[pyclass(frozen, module = "aqumen._core")]
pub(crate) struct Replay {
    capture: PathBuf,
    setup: Arc<Setup>,
    own: WithCustomCode<aqumen_scenario::Extensions>,
}

/// Setting from Python.
#[derive(FromPyObject)]
pub(crate) enum SettingValue {
    Text(String),
    Number(f64),
}

/// Surveys the capture and sets what `settings` leave open.
#[pyfunction]
#[pyo3(signature = (capture, settings, progress = None, own = None))]
pub(crate) fn survey(
    py: Python<'_>,
    capture: PathBuf,
    settings: Vec<(String, SettingValue)>,
    progress: Option<Py<PyAny>>,
    own: Option<&Catalogue>,
) -> PyResult<Replay> {
    let written = settings.into_iter().map(|(key, given)| match given {
        SettingValue::Text(text) => (key, RawValue::Text(text)),
        SettingValue::Number(number) => (key, RawValue::Number(number)),
    });
    let settings = Settings::read_from(&written.collect::<Vec<_>>()).map_err(refuse)?;
    let path = capture.clone();
    let setup = listening(py, progress, move |worker| {
        replay::survey(&path, &settings, &mut |fraction| worker.hear(fraction)).map_err(error)
    })?;
    let own = own.map_or_else(|| WithCustomCode::plain(aqumen_scenario::Extensions::default()), |own| own.0.clone());
    Ok(Replay { setup: Arc::new(setup), capture, own })
}

#[pymethods]
impl Replay {
    /// Returns the settings in force.
    #[getter]
    fn setup_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.setup.report()).map_err(refuse)
    }

    /// Refuses a SPEC that does not fit the queue.
    fn check_aqm(&self, spec: &str) -> PyResult<()> {
        let aqm = AqmSpec::from_catalogue(spec, &self.own.aqms).map_err(refuse)?;
        self.own.watching(|| replay::check_aqm(&self.setup, &aqm).map_err(refuse))
    }

    /// Refuses a SPEC whose updates take too long on this capture. Returns a line with the estimated time, if that is
    /// long.
    #[pyo3(signature = (spec, progress = None))]
    fn check_cost(&self, py: Python<'_>, spec: &str, progress: Option<Py<PyAny>>) -> PyResult<Option<String>> {
        let aqm = AqmSpec::from_catalogue(spec, &self.own.aqms).map_err(refuse)?;
        let (capture, setup) = (self.capture.clone(), self.setup.clone());
        listening(py, progress, move |worker| {
            replay::check_cost(&capture, &setup, &aqm, &mut |fraction| worker.hear(fraction)).map_err(error)
        })
    }

    /// Replays the capture to a queue with the AQM of a SPEC; departing packets are written to `out`, a pcapng.
    #[pyo3(signature = (spec, out = None, progress = None))]
    fn run(&self, py: Python<'_>, spec: &str, out: Option<PathBuf>, progress: Option<Py<PyAny>>) -> PyResult<String> {
        let aqm = AqmSpec::from_catalogue(spec, &self.own.aqms).map_err(refuse)?;
        let (capture, setup, own) = (self.capture.clone(), self.setup.clone(), self.own.clone());
        listening(py, progress, move |worker| {
            let cpu = cpu_seconds();
            let watch = own.watch();
            let report = &mut |fraction: f64| watch.calm() && worker.hear(fraction);
            let answer = replay::replay(&capture, &setup, &aqm, out.as_deref(), report).map_err(error);
            let answer = watch.settle(answer)?;
            serde_json::to_string(&Answer { cpu_s: cpu_seconds() - cpu, ..answer }).map_err(refuse)
        })
    }
}

fn error(error: Error) -> PyErr {
    match error {
        Error::Cancelled => Cancelled::new_err(error.to_string()),
        error => refuse(error),
    }
}
