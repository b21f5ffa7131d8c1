//! Comparison of predictions with measurements, and detection of oscillations, by `aqumen_result`.

use aqumen_result::{Measured, Predicted, Seen, Swing};
use pyo3::prelude::*;

use crate::error::refuse;

/// Compares a prediction with a measurement and explains the differences. All as JSON: a window of `predict_json`, the
/// metrics of a link in a window, the result of `swing_json`; `timeouts` of all flows.
#[pyfunction]
pub(crate) fn beside_json(
    predicted: &str,
    measured: &str,
    swing: Option<&str>,
    timeouts: Option<u64>,
    loops: bool,
) -> PyResult<String> {
    let predicted: Predicted = serde_json::from_str(predicted).map_err(refuse)?;
    let measured: Measured = serde_json::from_str(measured).map_err(refuse)?;
    let swing: Option<Swing> = swing.map(serde_json::from_str).transpose().map_err(refuse)?;
    let seen = Seen { swing: swing.as_ref(), timeouts, loops };
    serde_json::to_string(&aqumen_result::beside(&predicted, &measured, &seen)).map_err(refuse)
}

/// Detects oscillation of a measured queue, sampled at equal intervals; `None` if there are too few samples or the
/// queue is constant.
#[pyfunction]
pub(crate) fn swing_json(
    t_s: Vec<f64>,
    queue_pkts: Vec<f64>,
    probability: Vec<f64>,
    noise_std_pkts: Option<f64>,
) -> PyResult<Option<String>> {
    let seen = aqumen_result::swing(&t_s, &queue_pkts, &probability, noise_std_pkts);
    seen.map(|seen| serde_json::to_string(&seen).map_err(refuse)).transpose()
}
