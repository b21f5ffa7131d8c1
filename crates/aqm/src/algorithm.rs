//! What an algorithm says of itself in lists: its row. And a profile: an algorithm under another name.

use crate::{Param, Value};

/// An algorithm's row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Algorithm {
    /// The name users type.
    pub name: &'static str,
    /// The name users read.
    pub title: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    /// The paper or RFC it follows.
    pub reference: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
}

/// How many queues an algorithm looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// One: an [`Aqm`](crate::Aqm), which a [`Fifo`](crate::Fifo) hosts.
    Single,
    /// Several, with a scheduler: a [`Qdisc`](crate::Qdisc).
    Multi,
}

/// An algorithm under another name, with settings of its own that an operator can still override.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// The name users type.
    pub name: &'static str,
    /// The algorithm that it sets up.
    pub algorithm: &'static str,
    /// Its settings.
    pub settings: &'static [(&'static str, Value<'static>)],
    /// One line on where the settings come from.
    pub doc: &'static str,
}
