//! Custom kinds of traffic: the trait of a custom source, the description of a kind, and reading a scenario that names
//! it. Kinds are passed along with a scenario; there is no global registry.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use dyn_clone::DynClone;

use aqumen_aqm::Param;
use aqumen_units::{Instant, Span};

use crate::field::{Cursor, Field, ValueError};
use crate::streams::Stream;
use crate::tree::Value;
use crate::value::{self, OwnedValue, RawValue};

/// A custom source, which hands bytes to the transport of its flow.
pub trait CustomSource: DynClone + Send {
    /// Returns the delay of the next bytes after the previous ones (of the first: after the start) and their number;
    /// `None` ends the source. The call is made at `now`, when the previous bytes have been handed over, and again
    /// after a pause of the flow. `rng` is the only source of randomness.
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Option<(Span, NonZeroU32)>;
}

dyn_clone::clone_trait_object!(CustomSource);

/// A custom kind of traffic.
#[derive(Clone)]
pub struct CustomKind {
    /// Name in scenarios.
    pub name: &'static str,
    /// Numeric parameters.
    pub params: &'static [Param],
    make: Arc<Make>,
}

/// Makes a source from the given values, or returns a message.
type Make = dyn Fn(&[(String, f64)]) -> Result<Box<dyn CustomSource>, String> + Send + Sync;

impl CustomKind {
    /// The kind `name`; `make` makes its sources from the values of a scenario.
    pub fn new(
        name: &'static str,
        params: &'static [Param],
        make: impl Fn(&[(String, f64)]) -> Result<Box<dyn CustomSource>, String> + Send + Sync + 'static,
    ) -> Self {
        CustomKind { name, params, make: Arc::new(make) }
    }
}

/// Custom traffic as a scenario names it.
#[derive(Clone, Debug)]
pub struct CustomTraffic {
    /// Name of the kind.
    pub name: String,
    written: Vec<(String, RawValue)>,
    values: Vec<(String, f64)>,
    /// `None` until the kind has been resolved.
    kind: Option<CustomKind>,
}

impl CustomTraffic {
    /// Reads the table or name of a kind that is not built in.
    pub(super) fn read(name: String, at: &Cursor<'_>) -> Result<Self, ValueError> {
        let written = at.entries()?.iter().map(|(key, node)| {
            let at = at.below(key, node);
            match node.value {
                Value::Table(_) | Value::List(_) => Err(at.error("must be a number, a text or true or false")),
                _ => Ok((key.clone(), RawValue::read(&at)?)),
            }
        });
        Ok(CustomTraffic { name, written: written.collect::<Result<_, _>>()?, values: Vec::new(), kind: None })
    }

    /// Parameters as a table, with `kind`.
    pub(super) fn parameters(&self) -> Option<toml::Value> {
        let table = self.written.iter().filter_map(|(key, value)| Some((key.clone(), value.write()?)));
        Some(toml::Value::Table(table.collect()))
    }

    /// Resolves the kind and its parameters; the error is a key and a message.
    pub(super) fn resolve(&mut self, kind: &CustomKind) -> Result<(), (String, String)> {
        self.values.clear();
        for (key, written) in &self.written {
            let read = value::read(kind.name, kind.params.iter(), "its file", key, written);
            match read.map_err(|message| (key.clone(), message))? {
                OwnedValue::Number(x) => self.values.push((key.clone(), x)),
                _ => return Err((key.clone(), "must be a number".into())),
            }
        }
        // Errors of a source are reported now and not during the run.
        (kind.make)(&self.values).map_err(|message| ("kind".into(), message))?;
        self.kind = Some(kind.clone());
        Ok(())
    }

    /// Makes a source; `None` before the kind has been resolved, or if the source cannot be made, which was reported
    /// then.
    pub fn source(&self) -> Option<Box<dyn CustomSource>> {
        (self.kind.as_ref()?.make)(&self.values).ok()
    }
}

impl PartialEq for CustomKind {
    /// Whether both are the same object.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.make, &other.make)
    }
}

impl PartialEq for CustomTraffic {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.written == other.written && self.kind == other.kind
    }
}

impl fmt::Debug for CustomKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
