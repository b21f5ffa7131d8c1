//! Integration tests of this crate, in one program, which links faster than one for each file.

mod cells;
mod common;
mod costs;
mod custom_traffic;
mod errors;
mod estimates;
mod figures;
mod format;
mod mmpp;
mod plans;
mod traffic;
mod transports;
