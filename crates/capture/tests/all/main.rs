//! All tests of this crate from outside, in one program: to link one is quicker than to link a dozen.

mod arbitrary;
mod common;
mod headers;
mod reader;
mod writer;
