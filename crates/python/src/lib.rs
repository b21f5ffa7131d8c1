//! Python module `aqumen._core`: bindings of the Rust engines, without logic. ARCHITECTURE.md lists its files.

mod catalogue;
mod cost;
mod custom;
mod digest;
mod error;
mod experience;
mod interrupt;
mod law;
mod many;
mod memory;
mod mmpp;
mod objects;
mod own;
mod packets;
mod prediction;
mod ranking;
mod record;
mod replay;
mod result;
mod row;
mod scenario;
mod session;
mod statistics;
mod theory;

use pyo3::prelude::*;

pub use own::compile_in;
pub use pyo3;

/// Compiled core of Aqumen; the package `aqumen` is its public interface.
#[pymodule]
pub mod _core {
    #[pymodule_export]
    use crate::catalogue::{experiments, list_aqms, list_traffic, list_transports, metric_keys, quantity};
    #[pymodule_export]
    use crate::custom::{Catalogue, LawView, PacketView, QueueView};
    #[pymodule_export]
    use crate::error::{Cancelled, ScenarioError};
    #[pymodule_export]
    use crate::experience::rank_by_experience;
    #[pymodule_export]
    use crate::law::Law;
    #[pymodule_export]
    use crate::mmpp::{mmpp_solve, mmpp_solve_text};
    #[pymodule_export]
    use crate::own::compiled_aqms;
    #[pymodule_export]
    use crate::packets::{run, run_each, run_many};
    #[pymodule_export]
    use crate::prediction::{compare_prediction, oscillation};
    #[pymodule_export]
    use crate::ranking::{curve_rms, goals, letter_groups, mean_curve, rank};
    #[pymodule_export]
    use crate::record::QueueRecord;
    #[pymodule_export]
    use crate::replay::{Replay, survey};
    #[pymodule_export]
    use crate::result::RunResult;
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::session::{Environments, Session};
    #[pymodule_export]
    use crate::statistics::{range_of, student_quantile, student_tail, summary, transient};
    #[pymodule_export]
    use crate::theory::{Analysis, analyse, predict, run_fluid, run_fluid_many, run_theory};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("ALIKE", aqumen_result::TIE_RATIO)?;
        module.add("ENGINES", crate::digest::engines())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
