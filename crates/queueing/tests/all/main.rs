//! All tests of this crate from outside, in one program: to link one is quicker than to link several.

mod common;
mod files;
mod properties;
mod simulation;
mod vectors;
