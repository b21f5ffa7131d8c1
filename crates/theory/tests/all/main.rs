//! All tests of this crate from outside, in one program: to link one is quicker than to link a dozen.

mod answers;
mod classes;
mod design;
mod engine;
mod fluid;
mod linear;
mod maps;
mod mmpp_common;
mod mmpp_files;
mod mmpp_properties;
mod mmpp_simulation;
mod mmpp_vectors;
mod predict;
mod unresponsive;
mod vectors;
