//! The Rust engines as the Python module `aqumen._core`: glue alone, no logic.

use pyo3::prelude::*;

/// The compiled core of Aqumen; the package `aqumen` is its public face.
#[pymodule]
mod _core {
    use super::*;

    /// The version of the compiled core, for instance `0.1.0`.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}
