//! Registry entries of algorithms, and profiles: named settings of an algorithm.

use crate::{Param, Value};

/// Registry entry of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Algorithm {
    /// Identifier that users type.
    pub name: &'static str,
    /// Name in tables and plots.
    pub title: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Paper or RFC that it follows.
    pub reference: &'static str,
    /// Parameters.
    pub params: &'static [Param],
}

/// Number of queues that an algorithm manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// One: an [`Aqm`](crate::Aqm), which a [`Fifo`](crate::Fifo) hosts.
    Single,
    /// Several with a scheduler: a [`Qdisc`](crate::Qdisc).
    Multi,
}

/// Named settings of an algorithm, which an operator can override.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Identifier that users type.
    pub name: &'static str,
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Settings.
    pub settings: &'static [(&'static str, Value<'static>)],
    /// One line on the source of the settings.
    pub doc: &'static str,
}
