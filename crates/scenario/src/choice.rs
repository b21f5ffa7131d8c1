//! The AQM of a link in the plan.

use aqumen_aqm::{AnyAqm, AnyQdisc, Catalogue, Limit, Network, ParamError, Qdisc, Value};

use crate::value::OwnedValue;

/// An AQM by name with its values, and the network from which it designs what is left open.
#[derive(Clone, Debug, PartialEq)]
pub struct AqmChoice {
    /// Name of the algorithm, profiles resolved.
    pub name: String,
    /// The values given.
    pub values: Vec<(String, OwnedValue)>,
    /// The nominal network and the link.
    pub network: Network,
    /// Where the algorithm is found.
    pub catalogue: Catalogue,
}

impl AqmChoice {
    /// A built-in one.
    pub fn builtin(name: &str, values: Vec<(String, OwnedValue)>, network: Network) -> Self {
        AqmChoice { name: name.into(), values, network, catalogue: Catalogue::BUILT_IN }
    }

    /// The AQM of one queue, ready to run. `None` if there is none of that name.
    pub fn build(&self) -> Option<Result<AnyAqm, ParamError>> {
        self.catalogue.build(&self.name, &self.values(), &self.network)
    }

    /// The queue discipline with room for `limit`, ready to run, of one queue or of several. `None` if there is none of
    /// that name.
    pub fn build_qdisc(&self, limit: Limit) -> Option<Result<AnyQdisc, ParamError>> {
        self.catalogue.build_qdisc(&self.name, &self.values(), &self.network, limit)
    }

    /// The parameters in force where the queue has room for `limit`. `None` if there is no AQM of that name.
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
