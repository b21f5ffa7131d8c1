//! Catalogue of algorithms by name: built-in and custom ones. A scenario carries it to its plans and engines. Nothing
//! is registered globally, so concurrent runs may have different catalogues.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::registry::{self, Algorithm, AnyAqm, AnyQdisc, PROFILES, Profile};
use crate::{Aqm, CustomAqm, Limit, Network, ParamError, SampledAqm, SampledLaw, Settings, Value};

/// Algorithms by name; cheap to clone.
#[derive(Clone, Default)]
pub struct Catalogue {
    custom: Option<Arc<Vec<Entry>>>,
}

/// A custom algorithm.
#[derive(Clone)]
struct Entry {
    algorithm: Algorithm,
    build: Arc<Build>,
}

type Build = dyn Fn(&Settings<'_>, &Network) -> Result<AnyAqm, ParamError> + Send + Sync;

impl Catalogue {
    /// The built-in algorithms and profiles.
    pub const BUILT_IN: Catalogue = Catalogue { custom: None };

    /// Adds a custom single-queue algorithm: its registry entry, and a constructor that takes checked settings. A
    /// custom algorithm of that name is replaced; the name of a built-in one is an error.
    ///
    /// ```
    /// use aqumen_aqm::{AnyAqm, Algorithm, Catalogue, DropTail};
    /// let mine = Algorithm { name: "mine", title: "Mine", summary: "does nothing", reference: "-", params: &[] };
    /// let catalogue = Catalogue::BUILT_IN.with(mine, |_, _| Ok(AnyAqm::custom(DropTail::default()))).unwrap();
    /// assert_eq!(catalogue.find("mine").map(|algorithm| algorithm.title), Some("Mine"));
    /// ```
    pub fn with(
        &self,
        algorithm: Algorithm,
        build: impl Fn(&Settings<'_>, &Network) -> Result<AnyAqm, ParamError> + Send + Sync + 'static,
    ) -> Result<Self, NameTakenError> {
        if registry::find(algorithm.name).is_some() {
            return Err(NameTakenError(algorithm.name));
        }
        let mut custom: Vec<Entry> =
            self.entries().filter(|entry| entry.algorithm.name != algorithm.name).cloned().collect();
        custom.push(Entry { algorithm, build: Arc::new(build) });
        Ok(Catalogue { custom: Some(Arc::new(custom)) })
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.custom.iter().flat_map(|custom| custom.iter())
    }

    /// Every algorithm: built-in single-queue ones, built-in multi-queue ones, custom ones.
    pub fn algorithms(&self) -> impl Iterator<Item = &Algorithm> {
        registry::algorithms().map(|algorithm| -> &Algorithm { algorithm }).chain(self.custom())
    }

    /// The custom algorithms.
    pub fn custom(&self) -> impl Iterator<Item = &Algorithm> {
        self.entries().map(|entry| &entry.algorithm)
    }

    /// Every profile.
    pub fn profiles(&self) -> &'static [Profile] {
        PROFILES
    }

    /// Registry entry of the algorithm called `name`, or of the algorithm of the profile called `name`.
    pub fn find(&self, name: &str) -> Option<&Algorithm> {
        registry::find(name).or_else(|| self.custom().find(|algorithm| algorithm.name == name))
    }

    /// Builds the single-queue algorithm or profile called `name` with the operator's `values`; `network` supplies the
    /// rest. `None` if there is no such name.
    pub fn build(
        &self,
        name: &str,
        values: &[(&str, Value<'_>)],
        network: &Network,
    ) -> Option<Result<AnyAqm, ParamError>> {
        let Some(entry) = self.entries().find(|entry| entry.algorithm.name == name) else {
            return registry::build(name, values, network);
        };
        registry::build_with(name, values, |_, values| {
            Some(Settings::check(values, entry.algorithm.params).and_then(|settings| (entry.build)(&settings, network)))
        })
    }

    /// Builds the queue discipline of the algorithm or profile called `name`, of one queue or several, with capacity
    /// `limit`. `None` if there is no such name.
    pub fn build_qdisc(
        &self,
        name: &str,
        values: &[(&str, Value<'_>)],
        network: &Network,
        limit: Limit,
    ) -> Option<Result<AnyQdisc, ParamError>> {
        match self.entries().any(|entry| entry.algorithm.name == name) {
            true => Some(self.build(name, values, network)?.map(|aqm| AnyQdisc::fifo(aqm, limit))),
            false => registry::build_qdisc(name, values, network, limit),
        }
    }
}

impl AnyAqm {
    /// A custom algorithm.
    pub fn custom<A: Aqm + Clone + Send + 'static>(aqm: A) -> Self {
        AnyAqm::Custom(CustomAqm::new(aqm))
    }

    /// A custom control law, applied to each packet by a coin toss. With `ecn`, ECN-capable packets are marked instead
    /// of dropped.
    pub fn custom_law<L: SampledLaw + Clone + Send + 'static>(law: L, ecn: bool) -> Self {
        AnyAqm::custom(SampledAqm::new(law, ecn))
    }
}

/// Error: a built-in algorithm or profile has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameTakenError(pub &'static str);

impl fmt::Display for NameTakenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an AQM called {} is built in; choose another name for yours", self.0)
    }
}

impl core::error::Error for NameTakenError {}

impl PartialEq for Catalogue {
    /// Whether both hold the same algorithms; custom ones compare by identity of their constructor.
    fn eq(&self, other: &Self) -> bool {
        self.entries().count() == other.entries().count()
            && self.entries().zip(other.entries()).all(|(a, b)| Arc::ptr_eq(&a.build, &b.build))
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.custom().map(|algorithm| algorithm.name)).finish()
    }
}
