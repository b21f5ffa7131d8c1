//! Python module `aqumen._core`: bindings of the Rust engines, without logic.
//!
//! `scenario` and `result` are the two classes of inputs and outputs; `packets` is the packet engine, `many` runs
//! several runs at a time, `memory` ends runs that exhaust memory. `catalogue` lists AQMs, transports, traffic and
//! experiments; `theory` is the control-theoretic analysis, `mmpp` the queueing analysis, `statistics` statistics of
//! runs and samples, `beside` the comparison of predictions with measurements. `replay` replays captures; `ranking` and
//! `experience` rank AQMs by metrics and by users' experience. `interrupt` handles Ctrl-C, `error` has the exceptions,
//! `own` custom AQMs and sources.

mod beside;
mod catalogue;
mod cost;
mod error;
mod experience;
mod interrupt;
mod many;
mod memory;
mod mmpp;
mod own;
mod packets;
mod ranking;
mod record;
mod replay;
mod result;
mod scenario;
mod statistics;
mod theory;

use pyo3::prelude::*;

/// Compiled core of Aqumen; the package `aqumen` is its public interface.
#[pymodule]
mod _core {
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
    use crate::own::{Catalogue, LawView, PacketView, QueueView};
    #[pymodule_export]
    use crate::packets::{run, run_many};
    #[pymodule_export]
    use crate::ranking::{averaged, curve_rms, goals_json, letter_groups, rank};
    #[pymodule_export]
    use crate::record::QueueRecord;
    #[pymodule_export]
    use crate::replay::{Replay, survey};
    #[pymodule_export]
    use crate::result::RunResult;
    #[pymodule_export]
    use crate::scenario::{Scenario, json_schema};
    #[pymodule_export]
    use crate::statistics::{range_of, student_quantile, summary, transient};
    #[pymodule_export]
    use crate::theory::{Analysis, analyse, predict_json, run_fluid, run_fluid_many, run_theory};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("ALIKE", aqumen_result::ALIKE)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
