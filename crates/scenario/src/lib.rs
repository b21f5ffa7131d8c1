//! The scenario: what a user writes once and every engine runs.

mod plan;
pub mod streams;

pub use plan::{AqmChoice, Flow, Group, Link, OwnedValue, Plan, Window};
