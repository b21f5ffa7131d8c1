//! AQMs by SPEC: `pi`, `pi-x1000`, `pi:a=1.822e-5,frequency=150Hz,target=100pkt`; and the profiles of a scenario.

use aqumen_aqm::{Algorithm, Catalogue, Network, QueueKind, threshold};

use crate::Error;
use crate::choice::AqmChoice;
use crate::error::{shortened, suggestion_listed};
use crate::field::{Cursor, Field, NameMap, ValueError};
use crate::tree::Value;
use crate::value::{self, OwnedValue, RawValue};

/// An AQM given by a SPEC: an algorithm with values, its profiles resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct AqmSpec {
    /// The SPEC as written.
    pub label: String,
    /// Name of the algorithm.
    pub algorithm: String,
    /// Given values, each once, in the units of the algorithm's parameters.
    pub values: Vec<(String, OwnedValue)>,
    /// Catalogue that has the algorithm.
    pub catalogue: Catalogue,
}

/// A profile of a scenario: an algorithm or another profile, with values.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The algorithm or profile on which this one is based.
    pub algorithm: String,
    /// The values as written.
    pub values: Vec<(String, RawValue)>,
}

/// A change of an AQM during the run.
#[derive(Clone, Debug, PartialEq)]
pub enum AqmChange {
    /// Another AQM, or the same with other parameters: a SPEC.
    Spec(String),
    /// Parameters that change; the others are retained.
    Params(Vec<(String, RawValue)>),
}

/// Key (`None`: the profile itself) and message.
type ProfileError = (Option<String>, String);

impl AqmSpec {
    /// Reads a SPEC of the built-in AQMs and profiles.
    pub fn builtin(text: &str) -> Result<Self, Error> {
        AqmSpec::from_catalogue(text, &Catalogue::BUILT_IN)
    }

    /// Reads a SPEC of the AQMs and profiles of `catalogue`.
    pub fn from_catalogue(text: &str, catalogue: &Catalogue) -> Result<Self, Error> {
        AqmSpec::parse(text, &NameMap(Vec::new()), catalogue).map_err(|message| Error::for_aqm(text, message))
    }

    /// The AQM on a link of `network`.
    pub fn on(&self, network: Network) -> AqmChoice {
        AqmChoice {
            name: self.algorithm.clone(),
            values: self.values.clone(),
            network,
            catalogue: self.catalogue.clone(),
        }
    }

    /// Reads a SPEC with the `profiles` of a scenario. The error has no place.
    pub(crate) fn parse(text: &str, profiles: &NameMap<Profile>, catalogue: &Catalogue) -> Result<Self, String> {
        let (name, given) = match text.split_once(':') {
            Some((name, given)) => (name.trim(), given),
            None => (text.trim(), ""),
        };
        let (algorithm, mut values) = resolve(name, profiles, catalogue).map_err(|(_, message)| message)?;
        for pair in given.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(format!("\"{pair}\" must be PARAMETER=VALUE, such as \"target=100pkt\""));
            };
            let (key, value) = (key.trim(), value.trim());
            let read = read_value(catalogue, algorithm, key, &RawValue::Text(value.into()))
                .map_err(|message| format!("{key} = {value}: {message}"))?;
            put(&mut values, key, read);
        }
        let (label, algorithm) = (text.trim().into(), algorithm.name.into());
        Ok(AqmSpec { label, algorithm, values, catalogue: catalogue.clone() })
    }

    /// Returns this AQM after `change`. The error is the key (`None`: the change itself) and a message.
    pub(crate) fn changed(&self, change: &AqmChange, profiles: &NameMap<Profile>) -> Result<Self, ProfileError> {
        let params = match change {
            AqmChange::Spec(text) => {
                return AqmSpec::parse(text, profiles, &self.catalogue).map_err(|message| (None, message));
            }
            AqmChange::Params(params) => params,
        };
        let Some(algorithm) = algorithm(&self.algorithm, &self.catalogue) else {
            return Err((None, format!("no AQM \"{}\"", self.algorithm)));
        };
        let mut changed = self.clone();
        for (key, written) in params {
            let value =
                read_value(&self.catalogue, algorithm, key, written).map_err(|message| (Some(key.clone()), message))?;
            put(&mut changed.values, key, value);
        }
        Ok(changed)
    }
}

/// Checks every profile.
pub(crate) fn check_profiles(profiles: &NameMap<Profile>, catalogue: &Catalogue) -> Result<(), (String, ProfileError)> {
    for (name, _) in &profiles.0 {
        if algorithm(name, catalogue).is_some() {
            let message = "is the name of an algorithm; a profile needs another name".to_string();
            return Err((name.clone(), (None, message)));
        }
        // An error in a base profile is reported at that profile.
        if let Err(fault) = resolve(name, profiles, catalogue) {
            return Err((name.clone(), fault));
        }
    }
    Ok(())
}

fn algorithm<'a>(name: &str, catalogue: &'a Catalogue) -> Option<&'a Algorithm> {
    catalogue.algorithms().find(|algorithm| algorithm.name == name)
}

type ResolvedProfile<'a> = (&'a Algorithm, Vec<(String, OwnedValue)>);

/// Resolves `name` to an algorithm and values; values of nearer profiles override.
fn resolve<'a>(
    name: &str,
    profiles: &NameMap<Profile>,
    catalogue: &'a Catalogue,
) -> Result<ResolvedProfile<'a>, ProfileError> {
    let mut chain: Vec<(&str, &Profile)> = Vec::new();
    let mut at = name;
    while let Some(profile) = profiles.get(at) {
        if chain.iter().any(|(visited, _)| *visited == at) {
            return Err((
                Some("algorithm".into()),
                format!("refers back to {at}: a profile cannot be based on itself"),
            ));
        }
        chain.push((at, profile));
        at = &profile.algorithm;
    }
    let builtin = catalogue.profiles().iter().find(|profile| profile.name == at);
    let Some(algorithm) = algorithm(builtin.map_or(at, |profile| profile.algorithm), catalogue) else {
        let known = (profiles.0.iter().map(|(name, _)| name.as_str()))
            .chain(catalogue.algorithms().map(|algorithm| algorithm.name))
            .chain(catalogue.profiles().iter().map(|profile| profile.name));
        let key = if chain.is_empty() { None } else { Some("algorithm".into()) };
        return Err((key, format!("no AQM \"{}\"{}", shortened(at), suggestion_listed(at, known, "aqumen list aqms"))));
    };
    let mut values = Vec::new();
    for (key, value) in builtin.map_or(&[][..], |profile| profile.settings) {
        put(&mut values, key, OwnedValue::from_value(*value));
    }
    for (name, profile) in chain.iter().rev() {
        for (key, written) in &profile.values {
            let value = read_value(catalogue, algorithm, key, written).map_err(|message| {
                let below = *name != chain[0].0;
                (Some(key.clone()), if below { format!("{message} (in profile {name})") } else { message })
            })?;
            put(&mut values, key, value);
        }
    }
    Ok((algorithm, values))
}

fn put(values: &mut Vec<(String, OwnedValue)>, key: &str, value: OwnedValue) {
    match values.iter_mut().find(|(known, _)| known == key) {
        Some(entry) => entry.1 = value,
        None => values.push((key.into(), value)),
    }
}

/// Reads a value of a parameter of the algorithm.
fn read_value(
    catalogue: &Catalogue,
    algorithm: &Algorithm,
    key: &str,
    written: &RawValue,
) -> Result<OwnedValue, String> {
    // Algorithms of one queue also have the parameters of the threshold function.
    let common = if catalogue.kind(algorithm) == QueueKind::Single { threshold::PARAMS } else { &[] };
    value::read(algorithm.name, algorithm.params.iter().chain(common), "aqumen list aqms", key, written)
}

impl Field for Profile {
    const WHAT: &'static str = "a profile: algorithm = \"pi\" and values";

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let mut values = Vec::new();
        for (key, node) in at.entries()? {
            if key != "algorithm" {
                values.push((key.clone(), RawValue::read(&at.below(key, node))?));
            }
        }
        Ok(Profile { algorithm: at.field("algorithm", None)?, values })
    }

    fn write(&self) -> Option<toml::Value> {
        let mut table = toml::Table::new();
        table.insert("algorithm".into(), self.algorithm.write()?);
        for (key, value) in &self.values {
            table.insert(key.clone(), value.write()?);
        }
        Some(toml::Value::Table(table))
    }

    fn schema() -> serde_json::Value {
        let mut algorithm = String::schema();
        algorithm["description"] = "an algorithm, a profile built in, or another profile of the scenario".into();
        serde_json::json!({
            "type": "object", "properties": {"algorithm": algorithm}, "required": ["algorithm"],
            "additionalProperties": RawValue::schema(),
        })
    }
}

impl Field for AqmChange {
    const WHAT: &'static str = "a SPEC, such as \"pi:target=50pkt\", or a table of parameters";

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Value::Text(text) => Ok(AqmChange::Spec(text.clone())),
            Value::Table(entries) if !entries.is_empty() => {
                let read = |(key, node): &(String, crate::tree::Node)| {
                    Ok((key.clone(), RawValue::read(&at.below(key, node))?))
                };
                Ok(AqmChange::Params(entries.iter().map(read).collect::<Result<_, ValueError>>()?))
            }
            _ => Err(at.error(format!("must be {}", Self::WHAT))),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        match self {
            AqmChange::Spec(text) => text.write(),
            AqmChange::Params(params) => {
                let table = params.iter().filter_map(|(key, value)| Some((key.clone(), value.write()?)));
                Some(toml::Value::Table(table.collect()))
            }
        }
    }

    fn schema() -> serde_json::Value {
        let table = serde_json::json!({"type": "object", "additionalProperties": RawValue::schema()});
        serde_json::json!({"anyOf": [String::schema(), table]})
    }
}
