//! The AQM of a link in the plan.

use aqumen_aqm::{AnyAqm, AnyQdisc, Catalogue, Limit, Network, ParamError, Qdisc, Value};

use crate::value::OwnedValue;

/// An AQM with its given values, and the nominal network from which it derives the others.
#[derive(Clone, Debug, PartialEq)]
pub struct AqmChoice {
    /// Name of the algorithm, profiles resolved.
    pub name: String,
    /// Given values.
    pub values: Vec<(String, OwnedValue)>,
    /// The nominal network and the link.
    pub network: Network,
    /// Catalogue that has the algorithm.
    pub catalogue: Catalogue,
}

impl AqmChoice {
    /// A built-in AQM.
    pub fn builtin(name: &str, values: Vec<(String, OwnedValue)>, network: Network) -> Self {
        AqmChoice { name: name.into(), values, network, catalogue: Catalogue::BUILT_IN }
    }

    /// Builds the AQM of one queue. `None` if the catalogue lacks the name.
    pub fn build(&self) -> Option<Result<AnyAqm, ParamError>> {
        self.catalogue.build(&self.name, &self.values(), &self.network)
    }

    /// Builds the queue discipline with the capacity `limit`, of one queue or of several. `None` if the catalogue lacks
    /// the name.
    pub fn build_qdisc(&self, limit: Limit) -> Option<Result<AnyQdisc, ParamError>> {
        self.catalogue.build_qdisc(&self.name, &self.values(), &self.network, limit)
    }

    /// Returns the effective parameters in a queue of capacity `limit`. `None` if the catalogue lacks the name.
    pub(crate) fn in_force(&self, limit: Limit) -> Option<Result<Vec<(&'static str, OwnedValue)>, ParamError>> {
        Some(self.build_qdisc(limit)?.map(|qdisc| {
            let mut params = Vec::new();
            qdisc.settings(&mut |name, value| params.push((name, OwnedValue::from_value(value))));
            params
        }))
    }

    fn values(&self) -> Vec<(&str, Value<'_>)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_value())).collect()
    }
}
