//! All tests of this crate from outside, in one program: to link one is quicker than to link a dozen.

mod answers;
mod classes;
mod design;
mod engine;
mod fluid;
mod linear;
mod maps;
mod predict;
mod unresponsive;
mod vectors;
