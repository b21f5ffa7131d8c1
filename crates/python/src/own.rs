//! Custom AQMs in Rust that are compiled in. A crate with AQMs of its own builds this module with its catalogue, by the
//! macro [`extension!`](crate::extension); the catalogue then takes the place of the built-in one everywhere.

use std::sync::OnceLock;

use aqumen_aqm::Catalogue;
use aqumen_scenario::Extensions;
use pyo3::prelude::*;

static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();

/// Takes the catalogue, once, as the module is loaded: nothing has been read with another one.
pub fn compile_in(catalogue: Catalogue) {
    CATALOGUE.get_or_init(|| catalogue);
}

/// The built-in AQMs, and those compiled in.
pub(crate) fn catalogue() -> &'static Catalogue {
    CATALOGUE.get_or_init(|| Catalogue::BUILT_IN)
}

/// The names of a scenario without Python classes.
pub(crate) fn extensions() -> Extensions {
    catalogue().clone().into()
}

/// Returns the names of the custom AQMs that are compiled in.
#[pyfunction]
pub(crate) fn compiled_aqms() -> Vec<&'static str> {
    catalogue().custom().map(|algorithm| algorithm.name).collect()
}

/// Makes a library of the crate that calls it: `aqumen` with the AQMs of a catalogue. The dependency must be called
/// `aqumen-core`, and the library be of the type `cdylib`.
///
/// ```ignore
/// aqumen_core::extension!(mine::catalogue());
/// ```
#[macro_export]
macro_rules! extension {
    ($catalogue:expr) => {
        #[$crate::pyo3::pymodule]
        #[pyo3(crate = "aqumen_core::pyo3")]
        mod _own {
            #[pymodule_export]
            use $crate::_core;

            #[pymodule_init]
            fn init(_module: &$crate::pyo3::Bound<'_, $crate::pyo3::types::PyModule>) -> $crate::pyo3::PyResult<()> {
                use super::*;
                let catalogue = $catalogue;
                $crate::compile_in(
                    catalogue.map_err(|error| $crate::pyo3::exceptions::PyImportError::new_err(error.to_string()))?,
                );
                Ok(())
            }
        }
    };
}
