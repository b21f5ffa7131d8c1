//! What the applications of a flow group send: `traffic` of a group, by a kind and its parameters.
//!
//! Each kind is a table of the schema. [`kinds`] lists them with their parameters for documentation and command line.
//! `crates/sim` makes the sources; `docs/traffic.md` has formulas and references.

use aqumen_units::{Bytes, Rate};
use serde_json::json;

use crate::error::suggestion;
use crate::field::{At, Field, Misfit, as_json, table};
use crate::law::{Law, Size, Time};
use crate::tree::{Node, Value};
use crate::units;

/// What the applications of a flow group send.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// One transfer that starts with the flow, endless unless the group says how much.
    Bulk,
    /// Finite transfers, one after another.
    Transfers(Transfers),
    /// Packets of one size at one rate.
    Cbr(Cbr),
    /// Packets at one rate in periods ON, none in periods OFF.
    OnOff(OnOff),
}

/// Whose the arrivals are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each flow has a source of its own.
    Flow,
    /// The group has one source; each transfer takes an idle flow of the group and is refused if there is none.
    Group,
}

table! {
    /// Finite transfers. New ones come at random moments, whatever has become of the others (`rate` or `load`: open loop), or
    /// each flow asks for its next one a time after the last was delivered (`think`: closed loop).
    pub struct Transfers("transfers") {
        /// Bytes of a transfer.
        pub size: Size,
        /// Transfers per second that the group begins, as a Poisson process; one that finds no idle flow is refused.
        pub rate: Option<PerSecond>,
        /// In place of rate: the mean of what the group asks for, payload.
        pub load: Option<Rate>,
        /// Time from the end of a transfer to the begin of the flow's next one.
        pub think: Option<Time>,
        /// Whether each transfer opens a connection; else those of a flow follow one another on one.
        pub new_connection: bool = true,
    }
}

table! {
    /// Constant bit rate.
    pub struct Cbr("a constant rate") {
        /// The rate, headers not counted.
        pub rate: Rate,
        /// Bytes of a packet, headers not counted.
        pub packet: Bytes = Bytes(1000),
    }
}

table! {
    /// ON/OFF: a constant rate in periods ON.
    pub struct OnOff("an ON/OFF source") {
        /// The rate while it is ON, headers not counted.
        pub rate: Rate,
        /// Bytes of a packet, headers not counted.
        pub packet: Bytes = Bytes(1000),
        /// How long it is ON.
        pub on: Time,
        /// How long it is OFF.
        pub off: Time,
    }
}

/// Events per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSecond(pub f64);

/// Largest packet of an application: what fits into one datagram.
const PACKET_BYTES_MAX: u64 = 65_507;

/// Most packets, transfers or changes of state of one source per second.
const PER_SECOND_MAX: f64 = 1e9;

impl Field for PerSecond {
    const WHAT: &'static str = "a number per second, such as \"20/s\"";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        let rate = at.quantity(units::FREQUENCY)?;
        if rate > 0.0 && rate <= PER_SECOND_MAX {
            return Ok(PerSecond(rate));
        }
        Err(at.misfit("must be above 0/s, at most 1e9/s, such as \"20/s\""))
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(format!("{}/s", self.0)))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "string", "format": "per second", "examples": ["20/s"]})
    }
}

/// Most periods ON that one packet may stretch over, on average.
const PERIODS_PER_PACKET_MAX: f64 = 1000.0;

/// A key and what is wrong there.
type Wrong = (&'static str, String);

impl Transfers {
    fn check(&self) -> Result<(), Wrong> {
        let given = [self.rate.is_some(), self.load.is_some(), self.think.is_some()];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err(("", "must have one of rate, load and think".into()));
        }
        positive("size", &self.size.0)?;
        if self.per_second().is_some_and(|rate| rate > PER_SECOND_MAX) {
            return Err(("load", "gives more than 1e9 transfers per second".into()));
        }
        Ok(())
    }

    /// Transfers per second of the group, in an open loop.
    pub fn per_second(&self) -> Option<f64> {
        let of_load = |load: Rate| load.as_bps() as f64 / (8.0 * self.size.0.mean());
        self.rate.map(|PerSecond(rate)| rate).or_else(|| self.load.map(of_load))
    }
}

impl Cbr {
    fn check(&self) -> Result<(), Wrong> {
        packet_rate(self.rate, self.packet)
    }
}

impl OnOff {
    fn check(&self) -> Result<(), Wrong> {
        packet_rate(self.rate, self.packet)?;
        positive("on", &self.on.0)?;
        // Periods shorter than that would be drawn by the thousand for one packet.
        let packet_ns = 1e9 / self.rate.packets_per_sec(self.packet);
        if self.on.0.mean() < packet_ns / PERIODS_PER_PACKET_MAX {
            return Err((
                "on",
                "must have a mean of at least a thousandth of the time that a packet takes at the rate".into(),
            ));
        }
        Ok(())
    }
}

fn packet_rate(rate: Rate, packet: Bytes) -> Result<(), Wrong> {
    if packet.0 > PACKET_BYTES_MAX {
        return Err(("packet", format!("must be at most {PACKET_BYTES_MAX}B, what fits into a datagram")));
    }
    if rate.packets_per_sec(packet) > PER_SECOND_MAX {
        return Err(("rate", "gives more than 1e9 packets per second".into()));
    }
    Ok(())
}

fn positive(key: &'static str, law: &Law) -> Result<(), Wrong> {
    if law.mean() > 0.0 { Ok(()) } else { Err((key, "must have a mean above 0".into())) }
}

/// A kind of traffic, for lists and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
    read: fn(&At<'_>) -> Result<Traffic, Misfit>,
    schema: fn() -> serde_json::Value,
}

/// Every kind: name, summary, reference, variant of [`Traffic`] with its table.
macro_rules! kinds {
    ($( $name:literal $variant:ident: $summary:literal, $reference:literal; )*) => {
        const KINDS: &[Kind] = &[
            Kind {
                name: "bulk",
                summary: "one transfer that starts with the flow, endless unless the group has transfer",
                reference: "-",
                read: |at| at.only(&[]).map(|()| Traffic::Bulk),
                schema: || json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
            },
            $( Kind {
                name: $name,
                summary: $summary,
                reference: $reference,
                read: |at| {
                    let kind = $variant::read(at)?;
                    kind.check().map_err(|(key, message)| match at.node.get(key) {
                        Some(node) => at.below(key, node).misfit(message),
                        None => at.misfit(message),
                    })?;
                    Ok(Traffic::$variant(kind))
                },
                schema: $variant::schema,
            }, )*
        ];

        impl Traffic {
            /// The name of its kind.
            pub fn kind(&self) -> &'static str {
                match self {
                    Traffic::Bulk => "bulk",
                    $( Traffic::$variant(_) => $name, )*
                }
            }

            fn parameters(&self) -> Option<toml::Value> {
                match self {
                    Traffic::Bulk => None,
                    $( Traffic::$variant(kind) => kind.write(), )*
                }
            }
        }
    };
}

kinds! {
    "transfers" Transfers: "finite transfers, Poisson in time or after a think time", "Barford, Crovella 1998";
    "cbr" Cbr: "packets of one size at one rate", "-";
    "on-off" OnOff: "one rate in periods ON, silence in periods OFF, of any law", "Willinger et al. 1997";
}

/// Every kind of traffic.
pub fn kinds() -> &'static [Kind] {
    KINDS
}

impl Traffic {
    /// Whose the arrivals are.
    pub fn scope(&self) -> Scope {
        match self {
            Traffic::Transfers(transfers) if transfers.think.is_none() => Scope::Group,
            _ => Scope::Flow,
        }
    }

    /// The traffic as the plan's JSON has it: as it is written in a scenario.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        self.write().as_ref().map_or(serde_json::Value::Null, as_json)
    }
}

impl Field for Traffic {
    const WHAT: &'static str = "a kind of traffic, such as \"bulk\", or a table with kind";

    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        // "voip" is short for { kind = "voip" }.
        let (kind, rest) = match &at.node.value {
            Value::Table(entries) => {
                let rest = entries.iter().filter(|(key, _)| key != "kind").cloned().collect();
                let kind = at.node.get("kind").ok_or_else(|| at.misfit("kind is missing; such as kind = \"cbr\""))?;
                (at.below("kind", kind), Node { value: Value::Table(rest), line: at.node.line })
            }
            _ => (at.clone(), Node { value: Value::Table(Vec::new()), line: at.node.line }),
        };
        let name = String::read(&kind)?;
        let Some(found) = KINDS.iter().find(|known| known.name == name) else {
            let known = suggestion(&name, KINDS.iter().map(|known| known.name));
            return Err(kind.misfit(format!("no such kind of traffic{known}")));
        };
        (found.read)(&At { node: &rest, path: at.path.clone() })
    }

    fn write(&self) -> Option<toml::Value> {
        let kind = toml::Value::String(self.kind().into());
        match self.parameters() {
            Some(toml::Value::Table(parameters)) if !parameters.is_empty() => {
                let mut table = toml::Table::new();
                table.insert("kind".into(), kind);
                table.extend(parameters);
                Some(toml::Value::Table(table))
            }
            _ => Some(kind),
        }
    }

    fn schema() -> serde_json::Value {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let mut choices = vec![json!({"enum": names, "description": "name of the kind"})];
        for kind in KINDS {
            let mut schema = (kind.schema)();
            schema["description"] = kind.summary.into();
            schema["properties"]["kind"] = json!({"const": kind.name});
            if let Some(required) = schema["required"].as_array_mut() {
                required.insert(0, "kind".into());
            }
            choices.push(schema);
        }
        json!({"anyOf": choices})
    }
}
