//! Figures of several runs, or of a sampled queue.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Range of the values of a metric, by its key.
#[pyfunction]
pub(crate) fn range_of(metric: &str) -> (f64, f64) {
    aqumen_result::range_of(metric).into()
}

/// Mean, standard deviation, 95 % interval and number of `values`, one per run, which lie between `low` and `high`.
#[pyfunction]
#[pyo3(signature = (values, low=f64::NEG_INFINITY, high=f64::INFINITY))]
#[allow(clippy::type_complexity, reason = "a tuple is what Python unpacks")]
pub(crate) fn summary(
    values: Vec<f64>,
    low: f64,
    high: f64,
) -> PyResult<(f64, Option<f64>, Option<(f64, f64)>, usize)> {
    let summary = aqumen_result::Summary::within(&values, [low, high]);
    let summary = summary.ok_or_else(|| PyValueError::new_err("no values to summarise"))?;
    Ok((summary.mean, summary.std, summary.ci95.map(|[low, high]| (low, high)), summary.n))
}

/// The value below which Student's t with `freedom` degrees of freedom falls with `probability`.
#[pyfunction]
pub(crate) fn student_quantile(probability: f64, freedom: f64) -> PyResult<f64> {
    if !(probability > 0.0 && probability < 1.0 && freedom > 0.0 && freedom.is_finite()) {
        return Err(PyValueError::new_err("a quantile needs a probability in (0, 1) and degrees of freedom above 0"));
    }
    Ok(aqumen_result::student_quantile(probability, freedom))
}

/// Settling time in seconds, if it settles, and overshoot in packets of a sampled queue after `start_s` and until
/// `stop_s`. `None` without a sample in between.
#[pyfunction]
pub(crate) fn transient(
    t_s: Vec<f64>,
    queue_pkts: Vec<f64>,
    target_pkts: f64,
    start_s: f64,
    stop_s: f64,
) -> Option<(Option<f64>, f64)> {
    let seen = aqumen_result::transient(&t_s, &queue_pkts, target_pkts, start_s, stop_s)?;
    Some((seen.settling_s, seen.overshoot_pkts))
}
