//! Values of parameters, as written and as read.

use aqumen_aqm::{Kind, Param, Requirement, Settings, Value};

use crate::error::{suggestion, suggestion_listed};
use crate::field::{Cursor, Field, ValueError};
use crate::tree::Value as Node;
use crate::units::Quantity;

/// A value as written, before its parameter is known.
#[derive(Clone, Debug, PartialEq)]
pub enum RawValue {
    /// A text: a number with a unit, or a name.
    Text(String),
    /// A bare number.
    Number(f64),
    /// A flag.
    Flag(bool),
}

/// A parameter's value that owns its text.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedValue {
    /// A number in the parameter's unit.
    Number(f64),
    /// A flag.
    Flag(bool),
    /// A name.
    Choice(String),
}

impl OwnedValue {
    /// A copy of `value`.
    pub fn from_value(value: Value<'_>) -> Self {
        match value {
            Value::Number(x) => OwnedValue::Number(x),
            Value::Flag(yes) => OwnedValue::Flag(yes),
            Value::Choice(name) => OwnedValue::Choice(name.into()),
        }
    }

    /// The value, borrowed.
    pub fn as_value(&self) -> Value<'_> {
        match self {
            OwnedValue::Number(x) => Value::Number(*x),
            OwnedValue::Flag(yes) => Value::Flag(*yes),
            OwnedValue::Choice(name) => Value::Choice(name),
        }
    }
}

/// Reads the value of the parameter `key` of `owner` by its kind and unit, and checks its range. The command `lists`
/// prints all parameters.
pub(crate) fn read<'a>(
    of: &str,
    params: impl Iterator<Item = &'a Param> + Clone,
    lists: &str,
    key: &str,
    written: &RawValue,
) -> Result<OwnedValue, String> {
    let Some(param) = params.clone().find(|param| param.name == key) else {
        let known = suggestion_listed(key, params.map(|param| param.name), lists);
        return Err(format!("not a parameter of {of}{known}"));
    };
    let value = match param.kind {
        Kind::Number { unit, .. } => {
            let (quantity, scale) = Quantity::for_unit(unit);
            let text = match written {
                RawValue::Text(text) => text.clone(),
                RawValue::Number(number) => number.to_string(),
                RawValue::Flag(_) => return Err(format!("must be a {}, such as {}", quantity.name, quantity.example)),
            };
            OwnedValue::Number(quantity.read(&text)? / scale)
        }
        Kind::Flag => match written {
            RawValue::Flag(yes) => OwnedValue::Flag(*yes),
            RawValue::Text(text) if text == "true" => OwnedValue::Flag(true),
            RawValue::Text(text) if text == "false" => OwnedValue::Flag(false),
            _ => return Err("must be true or false".into()),
        },
        Kind::Choice(names) => match written {
            RawValue::Text(text) => OwnedValue::Choice(text.clone()),
            _ => return Err(format!("must be one of {}", names.join(", "))),
        },
    };
    in_range(param, &value).map(|()| value)
}

fn in_range(param: &Param, value: &OwnedValue) -> Result<(), String> {
    let given = [(param.name, value.as_value())];
    match Settings::check(&given, std::slice::from_ref(param)) {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.requirement {
            Requirement::OneOf(names) => {
                let name = match value {
                    OwnedValue::Choice(name) => name.as_str(),
                    _ => "",
                };
                format!("invalid value{}", suggestion(name, names.iter().copied()))
            }
            requirement => requirement.to_string(),
        }),
    }
}

impl Field for RawValue {
    const WHAT: &'static str = "a value";

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Node::Text(text) => Ok(RawValue::Text(text.clone())),
            Node::Bool(yes) => Ok(RawValue::Flag(*yes)),
            Node::Integer(_) | Node::Float(_) => f64::read(at).map(RawValue::Number),
            _ => Err(at.error("must be a number, a text or true or false")),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        match self {
            RawValue::Text(text) => text.write(),
            RawValue::Number(number) => number.write(),
            RawValue::Flag(yes) => yes.write(),
        }
    }

    fn schema() -> serde_json::Value {
        serde_json::json!({"type": ["number", "string", "boolean"]})
    }
}
