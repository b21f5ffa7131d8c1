//! Linear analysis: the loop of TCP, queue and AQM around its operating point, with the delay as it is (no Pade).
//!
//! `point` finds the operating point, `plant` linearises the fluid models there, `controller` takes the AQM's part,
//! `loops` closes the loop and takes its margins, `sampled` finds the poles of the sampled loop.

mod complex;
mod controller;
mod loops;
mod plant;
mod point;
mod sampled;

pub use controller::{Controller, Probe};
pub use loops::{Loop, Margins, Resolution};
pub use num_complex::Complex64;
pub use plant::Plant;
pub use point::OperatingPoint;
pub use sampled::{closed_loop, roots, spectral_radius};
