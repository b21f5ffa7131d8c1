//! Replay of captures to a queue: a survey sets open settings, and each AQM runs with them.

use std::path::PathBuf;
use std::sync::Arc;

use aqumen_replay::{self as replay, Answer, Error, Setup};
use aqumen_scenario::replay::Settings;
use aqumen_scenario::{AqmSpec, Extensions, RawValue};
use pyo3::prelude::*;

use crate::cost::cpu_seconds;
use crate::custom::{Catalogue, WithCustomCode};
use crate::error::{Cancelled, refuse};
use crate::interrupt::run_with_progress;
use crate::objects::to_python;
use crate::own;

/// A capture and the queue to which its packets are offered.
#[pyclass(frozen, module = "aqumen._core")]
pub(crate) struct Replay {
    capture: PathBuf,
    setup: Arc<Setup>,
    catalogue: WithCustomCode<Extensions>,
}

/// Setting from Python.
#[derive(FromPyObject)]
pub(crate) enum SettingValue {
    Text(String),
    Number(f64),
}

/// Surveys the capture and sets what `settings` leave open.
#[pyfunction]
#[pyo3(signature = (capture, settings, progress = None, catalogue = None))]
pub(crate) fn survey(
    py: Python<'_>,
    capture: PathBuf,
    settings: Vec<(String, SettingValue)>,
    progress: Option<Py<PyAny>>,
    catalogue: Option<&Catalogue>,
) -> PyResult<Replay> {
    let raw = settings.into_iter().map(|(key, value)| match value {
        SettingValue::Text(text) => (key, RawValue::Text(text)),
        SettingValue::Number(number) => (key, RawValue::Number(number)),
    });
    let settings = Settings::read_from(&raw.collect::<Vec<_>>()).map_err(refuse)?;
    let path = capture.clone();
    let setup = run_with_progress(py, progress, move |worker| {
        replay::survey(&path, &settings, &mut |fraction| worker.report_fraction(fraction)).map_err(error)
    })?;
    let catalogue = catalogue.map_or_else(|| WithCustomCode::plain(own::extensions()), |catalogue| catalogue.0.clone());
    Ok(Replay { setup: Arc::new(setup), capture, catalogue })
}

#[pymethods]
impl Replay {
    /// Returns the settings in force.
    #[getter]
    fn setup<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.setup.report())
    }

    /// Refuses a SPEC that does not fit the queue.
    fn check_aqm(&self, spec: &str) -> PyResult<()> {
        let aqm = AqmSpec::from_catalogue(spec, &self.catalogue.aqms).map_err(refuse)?;
        self.catalogue.watching(|| replay::check_aqm(&self.setup, &aqm).map_err(refuse))
    }

    /// Refuses a SPEC whose updates take too long on this capture. Returns a line with the estimated time, if that is
    /// long.
    #[pyo3(signature = (spec, progress = None))]
    fn check_cost(&self, py: Python<'_>, spec: &str, progress: Option<Py<PyAny>>) -> PyResult<Option<String>> {
        let aqm = AqmSpec::from_catalogue(spec, &self.catalogue.aqms).map_err(refuse)?;
        let (capture, setup) = (self.capture.clone(), self.setup.clone());
        run_with_progress(py, progress, move |worker| {
            replay::check_cost(&capture, &setup, &aqm, &mut |fraction| worker.report_fraction(fraction)).map_err(error)
        })
    }

    /// Replays the capture to a queue with the AQM of a SPEC; departing packets are written to `out`, a pcapng. Returns
    /// the JSON that `aqumen replay --json` prints.
    #[pyo3(signature = (spec, out = None, progress = None))]
    fn run(&self, py: Python<'_>, spec: &str, out: Option<PathBuf>, progress: Option<Py<PyAny>>) -> PyResult<String> {
        let aqm = AqmSpec::from_catalogue(spec, &self.catalogue.aqms).map_err(refuse)?;
        let (capture, setup, catalogue) = (self.capture.clone(), self.setup.clone(), self.catalogue.clone());
        run_with_progress(py, progress, move |worker| {
            let cpu = cpu_seconds();
            let watch = catalogue.watch();
            let report = &mut |fraction: f64| watch.is_ok() && worker.report_fraction(fraction);
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
