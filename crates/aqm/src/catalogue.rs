//! The catalogue: algorithms by name, those built in and someone's own. It is passed along, in a scenario, its plans
//! and so the engines; nothing is registered anywhere else, and two runs side by side may know different ones.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::registry::{self, Algorithm, AnyAqm, AnyQdisc, PROFILES, Profile};
use crate::{Aqm, Limit, Network, Own, ParamError, Sampled, SampledLaw, Settings, Value};

/// Algorithms by name. A copy costs nothing.
#[derive(Clone, Default)]
pub struct Catalogue {
    own: Option<Arc<Vec<Entry>>>,
}

/// An algorithm from outside.
#[derive(Clone)]
struct Entry {
    row: Algorithm,
    build: Arc<Build>,
}

type Build = dyn Fn(&Settings<'_>, &Network) -> Result<AnyAqm, ParamError> + Send + Sync;

impl Catalogue {
    /// The algorithms and profiles that are built in, and no other.
    pub const BUILT_IN: Catalogue = Catalogue { own: None };

    /// These, and an algorithm of one queue from outside: what `row` says of it, and what builds it from
    /// settings that fit the row. One of the same name that came from outside before makes way; the name
    /// of a built-in one is refused.
    ///
    /// ```
    /// use aqumen_aqm::{AnyAqm, Algorithm, Catalogue, DropTail};
    /// let row = Algorithm { name: "mine", title: "Mine", summary: "does nothing", reference: "-", params: &[] };
    /// let catalogue = Catalogue::BUILT_IN.with(row, |_, _| Ok(AnyAqm::own(DropTail::default()))).unwrap();
    /// assert_eq!(catalogue.find("mine").map(|row| row.title), Some("Mine"));
    /// ```
    pub fn with(
        &self,
        row: Algorithm,
        build: impl Fn(&Settings<'_>, &Network) -> Result<AnyAqm, ParamError> + Send + Sync + 'static,
    ) -> Result<Self, NameTaken> {
        if registry::find(row.name).is_some() {
            return Err(NameTaken(row.name));
        }
        let mut own: Vec<Entry> = self.entries().filter(|entry| entry.row.name != row.name).cloned().collect();
        own.push(Entry { row, build: Arc::new(build) });
        Ok(Catalogue { own: Some(Arc::new(own)) })
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.own.iter().flat_map(|own| own.iter())
    }

    /// Every algorithm: the built-in ones, of one queue and then of several, and those from outside.
    pub fn algorithms(&self) -> impl Iterator<Item = &Algorithm> {
        registry::algorithms().map(|row| -> &Algorithm { row }).chain(self.own())
    }

    /// The algorithms from outside.
    pub fn own(&self) -> impl Iterator<Item = &Algorithm> {
        self.entries().map(|entry| &entry.row)
    }

    /// Every profile.
    pub fn profiles(&self) -> &'static [Profile] {
        PROFILES
    }

    /// The row of the algorithm called `name`, or that the profile of this name sets up.
    pub fn find(&self, name: &str) -> Option<&Algorithm> {
        registry::find(name).or_else(|| self.own().find(|row| row.name == name))
    }

    /// The algorithm of one queue, or the profile of one, called `name` with the operator's `values`, designed for
    /// `network` where they leave it open. `None` if there is no such name.
    pub fn build(
        &self,
        name: &str,
        values: &[(&str, Value<'_>)],
        network: &Network,
    ) -> Option<Result<AnyAqm, ParamError>> {
        let Some(entry) = self.entries().find(|entry| entry.row.name == name) else {
            return registry::build(name, values, network);
        };
        registry::build_of(name, values, |_, own| {
            Some(Settings::check(own, entry.row.params).and_then(|settings| (entry.build)(&settings, network)))
        })
    }

    /// The queue discipline that the algorithm or profile called `name` makes, whichever its kind, with room for
    /// `limit`. `None` if there is no such name.
    pub fn build_qdisc(
        &self,
        name: &str,
        values: &[(&str, Value<'_>)],
        network: &Network,
        limit: Limit,
    ) -> Option<Result<AnyQdisc, ParamError>> {
        match self.entries().any(|entry| entry.row.name == name) {
            true => Some(self.build(name, values, network)?.map(|aqm| AnyQdisc::of(aqm, limit))),
            false => registry::build_qdisc(name, values, network, limit),
        }
    }
}

impl AnyAqm {
    /// An algorithm from outside.
    pub fn own<A: Aqm + Send + 'static>(aqm: A) -> Self {
        AnyAqm::Own(Own::new(aqm))
    }

    /// A control law from outside, with a coin flip for each packet. With `ecn`, a chosen packet that can carry a mark
    /// is marked instead of dropped.
    pub fn own_law<L: SampledLaw + Send + 'static>(law: L, ecn: bool) -> Self {
        AnyAqm::own(Sampled::new(law, ecn))
    }
}

/// A name that a built-in algorithm or profile has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameTaken(pub &'static str);

impl fmt::Display for NameTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an AQM called {} is built in; give your own another name", self.0)
    }
}

impl core::error::Error for NameTaken {}

impl PartialEq for Catalogue {
    /// Whether they know the same algorithms: from outside, the very same.
    fn eq(&self, other: &Self) -> bool {
        self.entries().count() == other.entries().count()
            && self.entries().zip(other.entries()).all(|(a, b)| Arc::ptr_eq(&a.build, &b.build))
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.own().map(|row| row.name)).finish()
    }
}
