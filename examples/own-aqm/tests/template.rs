//! The files that `aqumen new aqm --rust` writes compile, and the tests of its law pass.

#[allow(dead_code, reason = "a library")]
#[path = "../../../python/aqumen/cli/rust/law.rs"]
mod law;

#[allow(dead_code, reason = "a program")]
#[path = "../../../python/aqumen/cli/rust/main.rs"]
mod program;
