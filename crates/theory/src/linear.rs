//! Linear analysis: the loop of TCP, queue and AQM around its operating point, with the delay as it is (no Pade).
//!
//! `point` finds the operating point, `plant` linearises the fluid models there, `controller` takes the AQM's part,
//! `loops` closes the loop and takes its margins, `noise` says what packets make the queue do in it, `sampled` finds
//! the poles of the sampled loop with the textbook's plant, `roots` the rightmost root of any loop, `settling` how long
//! a start lasts.

pub(crate) mod complex;
mod controller;
mod loops;
pub mod noise;
mod plant;
mod point;
mod roots;
mod sampled;
mod settling;

pub use controller::{Controller, Probe};
pub(crate) use loops::LOW;
pub use loops::{FrequencyResponse, Loop, Margins, Resolution};
pub use num_complex::Complex64;
pub use plant::Plant;
pub use point::OperatingPoint;
pub use roots::rightmost;
pub use sampled::{closed_loop, roots, spectral_radius};
pub use settling::settling_s;
