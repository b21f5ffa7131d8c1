//! Trace of a queue in another program, with the metrics of the engines.

use aqumen_result::{Loss, QueueTrace, Transmission};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::error::refuse;
use crate::objects::to_python;

/// Queue and link of a trace.
#[pyclass(frozen, module = "aqumen._core")]
pub(crate) struct QueueRecord(QueueTrace);

#[pymethods]
impl QueueRecord {
    /// Times are in seconds. Rows of `taken`: start and end of transmission, bytes, waiting time, 1 if marked here; of
    /// `lost`: time, number by arrival from 1, 1 if the AQM discarded it; of `changes`: time, packets waiting from then
    /// on. `rates` are (from, bit/s).
    #[new]
    #[pyo3(signature = (arrived, taken, lost, changes, rates, target_pkts, sample_interval_s))]
    fn new(
        arrived: PyReadonlyArray1<'_, f64>,
        taken: PyReadonlyArray2<'_, f64>,
        lost: PyReadonlyArray2<'_, f64>,
        changes: PyReadonlyArray2<'_, f64>,
        rates: Vec<(f64, f64)>,
        target_pkts: Option<f64>,
        sample_interval_s: f64,
    ) -> PyResult<Self> {
        let taken_of = |[at, end, bytes, wait_s, marked]: [f64; 5]| Transmission {
            at: nanos(at),
            end: nanos(end),
            bytes: bytes as u64,
            wait_s,
            marked: marked != 0.0,
        };
        let lost_of =
            |[at, number, early]: [f64; 3]| Loss { at: nanos(at), number: number as u64, early: early != 0.0 };
        Ok(QueueRecord(QueueTrace {
            arrivals: arrived.as_array().iter().map(|&at| nanos(at)).collect(),
            taken: rows(&taken)?.into_iter().map(taken_of).collect(),
            lost: rows(&lost)?.into_iter().map(lost_of).collect(),
            changes: rows(&changes)?.into_iter().map(|[at, length]| (nanos(at), length as u32)).collect(),
            rates: rates.into_iter().map(|(from, bps)| (nanos(from), bps as u64)).collect(),
            target_pkts,
            sample_interval: nanos(sample_interval_s).max(1),
        }))
    }

    /// Returns the metrics of the link from `start_s` up to but not including `end_s`.
    #[pyo3(signature = (start_s, end_s, queue_integral, sampled_pkts))]
    fn metrics<'py>(
        &self,
        py: Python<'py>,
        start_s: f64,
        end_s: f64,
        queue_integral: Option<f64>,
        sampled_pkts: Vec<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.metrics(nanos(start_s), nanos(end_s), queue_integral, &sampled_pkts))
    }
}

/// Rows of a table of `N` columns.
fn rows<const N: usize>(table: &PyReadonlyArray2<'_, f64>) -> PyResult<Vec<[f64; N]>> {
    let table = table.as_array();
    if table.ncols() != N {
        return Err(refuse(format!("the table has {} columns; it must have {N}", table.ncols())));
    }
    Ok(table.rows().into_iter().map(|row| std::array::from_fn(|column| row[column])).collect())
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
