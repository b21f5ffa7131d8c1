//! All tests of this crate from outside, in one program: to link one is quicker than to link a dozen.

mod cells;
mod common;
mod costs;
mod errors;
mod figures;
mod foreseen;
mod format;
mod mmpp;
mod own_traffic;
mod plans;
mod traffic;
mod transports;
