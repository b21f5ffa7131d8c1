//! Bindings for browsers by wasm-bindgen: [`session`] runs the packet engine step by step, [`catalogue`] lists what a
//! form offers, [`own`] is a control law in JavaScript. Numbers cross the border as typed arrays, descriptions as JSON,
//! scenarios as TOML.

mod catalogue;
mod own;
mod session;

pub use catalogue::{aqms, transports};
pub use session::Run;
use wasm_bindgen::JsError;

/// Returns an exception with the message of `error`.
fn refuse(error: impl std::fmt::Display) -> JsError {
    JsError::new(&error.to_string())
}
