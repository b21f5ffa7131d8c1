//! Catalogue of algorithms by name: built-in and custom ones. A scenario carries it to its plans and engines. Nothing
//! is registered globally, so concurrent runs may have different catalogues.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::registry::{self, Algorithm, AnyAqm, AnyQdisc, PROFILES, Profile, QueueKind};
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

/// Constructor of a custom algorithm.
enum Build {
    Aqm(Box<BuildAqm>),
    Qdisc(Box<BuildQdisc>),
}

type BuildAqm = dyn Fn(&Settings<'_>, &Network) -> Result<AnyAqm, ParamError> + Send + Sync;
type BuildQdisc = dyn Fn(&Settings<'_>, &Network, Limit) -> Result<AnyQdisc, ParamError> + Send + Sync;

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
        self.with_entry(algorithm, Build::Aqm(Box::new(build)))
    }

    /// Adds a custom discipline of several queues: its registry entry, and a constructor that takes checked settings
    /// and the capacity of all queues. A custom algorithm of that name is replaced; the name of a built-in one is an
    /// error.
    ///
    /// ```
    /// use aqumen_aqm::{Algorithm, AnyQdisc, Catalogue, Drr};
    /// let fair = Algorithm { name: "fair", title: "Fair", summary: "DRR of 8 queues", reference: "-", params: &[] };
    /// let catalogue = Catalogue::BUILT_IN
    ///     .with_qdisc(fair, |_, _, limit| Ok(AnyQdisc::custom(Drr::new(8, 1514, false, limit))))
    ///     .unwrap();
    /// assert_eq!(catalogue.find("fair").map(|algorithm| algorithm.title), Some("Fair"));
    /// ```
    pub fn with_qdisc(
        &self,
        algorithm: Algorithm,
        build: impl Fn(&Settings<'_>, &Network, Limit) -> Result<AnyQdisc, ParamError> + Send + Sync + 'static,
    ) -> Result<Self, NameTakenError> {
        self.with_entry(algorithm, Build::Qdisc(Box::new(build)))
    }

    fn with_entry(&self, algorithm: Algorithm, build: Build) -> Result<Self, NameTakenError> {
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

    /// Entry of the custom algorithm called `name`.
    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries().find(|entry| entry.algorithm.name == name)
    }

    /// Number of queues that `algorithm`, one of this catalogue, manages.
    pub fn kind(&self, algorithm: &Algorithm) -> QueueKind {
        match self.entry(algorithm.name) {
            None => algorithm.kind(),
            Some(entry) => match *entry.build {
                Build::Aqm(_) => QueueKind::Single,
                Build::Qdisc(_) => QueueKind::Multi,
            },
        }
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
    /// rest. `None` if there is no such name, or if it has several queues.
    pub fn build(
        &self,
        name: &str,
        values: &[(&str, Value<'_>)],
        network: &Network,
    ) -> Option<Result<AnyAqm, ParamError>> {
        let Some(entry) = self.entry(name) else {
            return registry::build(name, values, network);
        };
        let Build::Aqm(build) = &*entry.build else { return None };
        registry::build_with(name, values, |_, values| {
            Some(Settings::check(values, entry.algorithm.params).and_then(|settings| build(&settings, network)))
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
        let Some(entry) = self.entry(name) else {
            return registry::build_qdisc(name, values, network, limit);
        };
        match &*entry.build {
            Build::Aqm(_) => Some(self.build(name, values, network)?.map(|aqm| AnyQdisc::fifo(aqm, limit))),
            Build::Qdisc(build) => registry::build_checked(values, |values| {
                let settings = Settings::check(values, entry.algorithm.params);
                Some(settings.and_then(|settings| build(&settings, network, limit)))
            }),
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
