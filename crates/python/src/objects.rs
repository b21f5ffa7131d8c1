//! Conversion of results to Python objects.

use pyo3::prelude::*;
use pythonize::Pythonizer;
use serde::Serialize;

use crate::error::refuse;

/// Converts `data` to dicts, lists, strings and numbers, as `json.loads` reads its JSON text: keys in the order of the
/// fields, and `None` for a number that is not finite.
pub(crate) fn to_python<'py>(py: Python<'py>, data: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(data).map_err(refuse)?;
    let mut reader = serde_json::Deserializer::from_str(&text);
    serde_transcode::transcode(&mut reader, Pythonizer::new(py)).map_err(refuse)
}
