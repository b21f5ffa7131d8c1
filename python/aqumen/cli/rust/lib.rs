//! Aqumen with the AQM `my-law`.

mod law;

pub use law::{Law, catalogue};

// Tests of the law need no Python.
#[cfg(not(test))]
aqumen_core::extension!(catalogue());
