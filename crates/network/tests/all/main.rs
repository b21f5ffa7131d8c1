//! All tests of this crate from outside, in one program: to link one is quicker than to link several.

mod driver;
mod link;
mod oracle;
mod ports;
mod traces;
