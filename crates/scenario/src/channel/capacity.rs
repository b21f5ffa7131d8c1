//! Rate of a wire, constant or varying, and its up or down state.

use aqumen_units::{Rate, Span};
use serde_json::json;

use crate::field::{Cursor, Field, ValueError, table};
use crate::tree::Value;

/// The rate of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// One rate.
    Constant(Rate),
    /// Rates over time.
    Varying(Varying),
}

table! {
    /// Rates over time: one of `steps`, `csv` and `mahimahi`.
    pub struct Varying("rates over time") {
        /// Rates with their start times: `[["0s", "8Mbit"], ["10s", "4Mbit"]]`; the first starts at 0 s.
        pub steps: Vec<Step>,
        /// File of lines `time,rate`, in seconds and bit/s or with units; a rate of 0 stops the link.
        pub csv: Option<String>,
        /// Period after which steps or file repeat; without it the last rate stays.
        pub period: Option<Span>,
        /// File of delivery opportunities in Mahimahi's format: each line gives the millisecond at which 1504 bytes may
        /// leave.
        pub mahimahi: Option<String>,
    }
}

/// A rate and its start time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Start time.
    pub at: Span,
    /// The rate.
    pub rate: Rate,
}

/// Whether a link carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Down: no transmission starts; packets stay in the queue.
    Down,
    /// Up.
    Up,
}

impl Field for Capacity {
    const WHAT: &'static str = Rate::WHAT;

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Value::Table(_) => Varying::read(at).map(Capacity::Varying),
            _ => Rate::read(at).map(Capacity::Constant),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        match self {
            Capacity::Constant(rate) => rate.write(),
            Capacity::Varying(varying) => varying.write(),
        }
    }

    fn schema() -> serde_json::Value {
        json!({"anyOf": [Rate::schema(), Varying::schema()]})
    }
}

impl Field for Step {
    const WHAT: &'static str = "a time and a rate, such as [\"10s\", \"4Mbit\"]";

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Value::List(items) if items.len() == 2 => {
                Ok(Step { at: Span::read(&at.below(0, &items[0]))?, rate: Rate::read(&at.below(1, &items[1]))? })
            }
            _ => Err(at.error(format!("must be {}", Self::WHAT))),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::Array(vec![self.at.write()?, self.rate.write()?]))
    }

    fn schema() -> serde_json::Value {
        json!({"type": "array", "prefixItems": [Span::schema(), Rate::schema()], "minItems": 2, "maxItems": 2})
    }
}

impl Field for LinkState {
    const WHAT: &'static str = "\"down\" or \"up\"";

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Value::Text(text) if text == "down" => Ok(LinkState::Down),
            Value::Text(text) if text == "up" => Ok(LinkState::Up),
            _ => Err(at.error("must be \"down\" or \"up\"")),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(if *self == LinkState::Down { "down" } else { "up" }.into()))
    }

    fn schema() -> serde_json::Value {
        json!({"enum": ["down", "up"]})
    }
}
