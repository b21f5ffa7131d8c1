//! Kinds of traffic from outside: what a source of one's own must answer, what a kind says of itself, and how a
//! scenario that names it is read. They are passed along with a scenario; nothing is registered anywhere.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use aqumen_aqm::Param;
use aqumen_units::{Instant, Span};

use crate::field::{At, Field, Misfit};
use crate::streams::Stream;
use crate::tree::Value;
use crate::value::{self, OwnedValue, Written};

/// A source from outside: it sends packets, or whatever the flow's transport makes of so many bytes at once.
pub trait OwnSource: Send {
    /// How long after the bytes before (of the first: after the start) the next are handed over, and how many; `None`:
    /// no more. It is asked at `now`, when those before have been handed over, and anew after a pause of the flow;
    /// chances come from `rng` alone.
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Option<(Span, NonZeroU32)>;
}

/// A kind of traffic from outside.
#[derive(Clone)]
pub struct OwnKind {
    /// The name that scenarios give it.
    pub name: &'static str,
    /// Its parameters, numbers all.
    pub params: &'static [Param],
    make: Arc<Make>,
}

/// Makes a source from the values given; what is wrong where it cannot.
type Make = dyn Fn(&[(String, f64)]) -> Result<Box<dyn OwnSource>, String> + Send + Sync;

impl OwnKind {
    /// The kind called `name`, whose sources `make` makes of those values that a scenario gives.
    pub fn new(
        name: &'static str,
        params: &'static [Param],
        make: impl Fn(&[(String, f64)]) -> Result<Box<dyn OwnSource>, String> + Send + Sync + 'static,
    ) -> Self {
        OwnKind { name, params, make: Arc::new(make) }
    }
}

/// Traffic from outside, as a scenario names it.
#[derive(Clone, Debug)]
pub struct Own {
    /// The kind's name.
    pub name: String,
    written: Vec<(String, Written)>,
    values: Vec<(String, f64)>,
    /// `None` until it has been looked up.
    kind: Option<OwnKind>,
}

impl Own {
    /// What stands at `at` under a name that is not built in.
    pub(super) fn read(name: String, at: &At<'_>) -> Result<Self, Misfit> {
        let written = at.entries()?.iter().map(|(key, node)| {
            let at = at.below(key, node);
            match node.value {
                Value::Table(_) | Value::List(_) => Err(at.misfit("must be a number, a text or true or false")),
                _ => Ok((key.clone(), Written::read(&at)?)),
            }
        });
        Ok(Own { name, written: written.collect::<Result<_, _>>()?, values: Vec::new(), kind: None })
    }

    /// Its parameters as a table, with `kind`.
    pub(super) fn parameters(&self) -> Option<toml::Value> {
        let table = self.written.iter().filter_map(|(key, value)| Some((key.clone(), value.write()?)));
        Some(toml::Value::Table(table.collect()))
    }

    /// Takes `kind` for it, whose parameters it gives; the key at fault, and what is wrong there.
    pub(super) fn be(&mut self, kind: &OwnKind) -> Result<(), (String, String)> {
        self.values.clear();
        for (key, written) in &self.written {
            let read = value::read(kind.name, kind.params.iter(), "its file", key, written);
            match read.map_err(|message| (key.clone(), message))? {
                OwnedValue::Number(x) => self.values.push((key.clone(), x)),
                _ => return Err((key.clone(), "must be a number".into())),
            }
        }
        // What cannot be made is told now, and not in the middle of a run.
        (kind.make)(&self.values).map_err(|message| ("kind".into(), message))?;
        self.kind = Some(kind.clone());
        Ok(())
    }

    /// A source of this kind; `None` before it has been looked up, or where it cannot be made, which was told then.
    pub fn source(&self) -> Option<Box<dyn OwnSource>> {
        (self.kind.as_ref()?.make)(&self.values).ok()
    }
}

impl PartialEq for OwnKind {
    /// Whether it is the very same.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.make, &other.make)
    }
}

impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.written == other.written && self.kind == other.kind
    }
}

impl fmt::Debug for OwnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
