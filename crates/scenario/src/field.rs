//! How a value of the schema is read, written and described. [`table!`] makes all three for a table from one
//! declaration.

use aqumen_units::{Bytes, Rate, Span};
use serde_json::json;

use crate::Error;
use crate::error::suggestion;
use crate::tree::{Node, Value};
use crate::units::{self, Quantity};

/// A value that did not fit: its dotted path, the value if it is to be shown, and what is wrong.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) value: Option<String>,
    pub(crate) message: String,
}

impl Misfit {
    /// The error that it is in `file`.
    pub(crate) fn in_file(self, file: &str) -> Error {
        let Misfit { path: key, line, value, message } = self;
        Error { file: file.into(), line, key, value, message }
    }
}

/// A node and the dotted path that leads to it.
#[derive(Clone)]
pub(crate) struct At<'a> {
    pub(crate) node: &'a Node,
    pub(crate) path: String,
}

impl<'a> At<'a> {
    /// The entry or element called `step`.
    pub(crate) fn below(&self, step: impl std::fmt::Display, node: &'a Node) -> At<'a> {
        let path = if self.path.is_empty() { step.to_string() } else { format!("{}.{step}", self.path) };
        At { node, path }
    }

    /// This value does not fit.
    pub(crate) fn misfit(&self, message: impl Into<String>) -> Misfit {
        Misfit {
            path: self.path.clone(),
            line: self.node.line,
            value: match &self.node.value {
                Value::Table(_) => None,
                value => Some(value.show()),
            },
            message: message.into(),
        }
    }

    /// The entries of a table.
    pub(crate) fn entries(&self) -> Result<&'a [(String, Node)], Misfit> {
        match &self.node.value {
            Value::Table(entries) => Ok(entries),
            _ => Err(self.misfit("must be a table")),
        }
    }

    /// Refuses entries that are not `known`.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Misfit> {
        for (key, node) in self.entries()? {
            if !known.contains(&key.as_str()) {
                let mut misfit =
                    self.below(key, node).misfit(format!("unknown key{}", suggestion(key, known.iter().copied())));
                misfit.value = None;
                return Err(misfit);
            }
        }
        Ok(())
    }

    /// The entry `key`, or what stands for it when it is absent.
    pub(crate) fn field<T: Field>(&self, key: &str, default: Option<T>) -> Result<T, Misfit> {
        match self.node.get(key) {
            Some(node) => T::read(&self.below(key, node)),
            None => default.or_else(T::absent).ok_or_else(|| {
                let mut misfit = self.below(key, self.node).misfit(format!("missing; it must be {}", T::WHAT));
                misfit.value = None;
                misfit
            }),
        }
    }

    /// A number of `quantity` in base units. With units only, unless the quantity has none.
    pub(crate) fn quantity(&self, quantity: Quantity) -> Result<f64, Misfit> {
        match &self.node.value {
            Value::Text(text) => quantity.read(text).map_err(|message| self.misfit(message)),
            Value::Integer(_) | Value::Float(_) => {
                let text = self.node.value.show();
                if quantity.is_bare() {
                    quantity.read(&text).map_err(|message| self.misfit(message))
                } else {
                    let message = quantity.read(&text).map_or_else(|message| message, |_| String::new());
                    Err(self.misfit(message))
                }
            }
            _ => Err(self.misfit(format!("must be a {}, such as \"{}\"", quantity.name, quantity.example))),
        }
    }
}

/// A value of the schema.
pub(crate) trait Field: Sized {
    /// What it is, for the message that it is missing: "a rate, such as ...".
    const WHAT: &'static str;
    /// Reads it.
    fn read(at: &At<'_>) -> Result<Self, Misfit>;
    /// Writes it; `None` if it is not to be written.
    fn write(&self) -> Option<toml::Value>;
    /// Its JSON Schema.
    fn schema() -> serde_json::Value;
    /// What stands for it when it is absent; `None` if it must be there.
    fn absent() -> Option<Self> {
        None
    }
}

/// The table in which every field takes its default.
pub(crate) fn all_defaults<T: Field>() -> T {
    let empty = Node { value: Value::Table(Vec::new()), line: 0 };
    T::read(&At { node: &empty, path: String::new() }).unwrap_or_else(|misfit| panic!("{}: no default", misfit.path))
}

/// Declares a table of the schema once: its fields with their documentation, types and defaults. A field without
/// default must be given, unless it is an `Option` or a `Vec`.
macro_rules! table {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident ($what:literal) {
            $( $(#[doc = $field_doc:literal])* pub $field:ident: $type:ty $(= $default:expr)?, )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $(#[doc = $field_doc])* pub $field: $type, )*
        }

        impl $crate::field::Field for $name {
            const WHAT: &'static str = $what;

            fn read(at: &$crate::field::At<'_>) -> Result<Self, $crate::field::Misfit> {
                at.only(&[$(stringify!($field)),*])?;
                Ok($name { $( $field: at.field(stringify!($field), $crate::field::default!($($default)?))?, )* })
            }

            fn write(&self) -> Option<toml::Value> {
                let mut table = toml::Table::new();
                $(
                    let default: Option<$type> = $crate::field::default!($($default)?);
                    if default.as_ref() != Some(&self.$field)
                        && let Some(value) = self.$field.write()
                    {
                        table.insert(stringify!($field).into(), value);
                    }
                )*
                Some(toml::Value::Table(table))
            }

            fn schema() -> serde_json::Value {
                let mut properties = serde_json::Map::new();
                let mut required: Vec<&str> = Vec::new();
                $({
                    let mut schema = <$type as $crate::field::Field>::schema();
                    let doc = [$($field_doc),*].join("");
                    schema["description"] = doc.trim().into();
                    let default: Option<$type> = $crate::field::default!($($default)?);
                    match default.as_ref().and_then(|value| value.write()) {
                        Some(value) => schema["default"] = $crate::field::as_json(&value),
                        None => {
                            if default.is_none() && <$type as $crate::field::Field>::absent().is_none() {
                                required.push(stringify!($field));
                            }
                        }
                    }
                    properties.insert(stringify!($field).into(), schema);
                })*
                serde_json::json!({
                    "type": "object", "properties": properties, "required": required, "additionalProperties": false,
                })
            }
        }
    };
}
pub(crate) use table;

macro_rules! default {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}
pub(crate) use default;

/// A TOML value as JSON.
pub(crate) fn as_json(value: &toml::Value) -> serde_json::Value {
    match value {
        toml::Value::String(text) => json!(text),
        toml::Value::Integer(number) => json!(number),
        toml::Value::Float(number) => json!(number),
        toml::Value::Boolean(yes) => json!(yes),
        toml::Value::Datetime(date) => json!(date.to_string()),
        toml::Value::Array(items) => items.iter().map(as_json).collect(),
        toml::Value::Table(table) => {
            serde_json::Value::Object(table.iter().map(|(key, value)| (key.clone(), as_json(value))).collect())
        }
    }
}

impl<T: Field> Field for Option<T> {
    const WHAT: &'static str = T::WHAT;
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        T::read(at).map(Some)
    }
    fn write(&self) -> Option<toml::Value> {
        self.as_ref().and_then(T::write)
    }
    fn schema() -> serde_json::Value {
        T::schema()
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Field> Field for Vec<T> {
    const WHAT: &'static str = "a list";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        let Value::List(items) = &at.node.value else {
            return Err(at.misfit("must be a list"));
        };
        items.iter().enumerate().map(|(i, item)| T::read(&at.below(i, item))).collect()
    }
    fn write(&self) -> Option<toml::Value> {
        if self.is_empty() {
            return None;
        }
        Some(toml::Value::Array(self.iter().filter_map(T::write).collect()))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "array", "items": T::schema()})
    }
    fn absent() -> Option<Self> {
        Some(Vec::new())
    }
}

/// Named values, in the order in which they were written.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(pub Vec<(String, T)>);

impl<T> Named<T> {
    /// The value called `name`.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl<T: Field> Field for Named<T> {
    const WHAT: &'static str = "a table";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        let mut named = Vec::new();
        for (key, node) in at.entries()? {
            let below = at.below(key, node);
            check_name(key).map_err(|message| Misfit { value: None, ..below.misfit(message) })?;
            named.push((key.clone(), T::read(&below)?));
        }
        Ok(Named(named))
    }
    fn write(&self) -> Option<toml::Value> {
        if self.0.is_empty() {
            return None;
        }
        let table = self.0.iter().filter_map(|(name, value)| Some((name.clone(), value.write()?))).collect();
        Some(toml::Value::Table(table))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "object", "additionalProperties": T::schema()})
    }
    fn absent() -> Option<Self> {
        Some(Named(Vec::new()))
    }
}

/// A name of a group, link, node, window or profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Name(pub String);

fn check_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.len() <= 64 && name.chars().all(fits) {
        Ok(())
    } else {
        Err("must be a name of at most 64 letters, digits, - and _".into())
    }
}

impl Field for Name {
    const WHAT: &'static str = "a name, such as \"ftp\"";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        let name = String::read(at)?;
        check_name(&name).map_err(|message| at.misfit(message))?;
        Ok(Name(name))
    }
    fn write(&self) -> Option<toml::Value> {
        self.0.write()
    }
    fn schema() -> serde_json::Value {
        json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"})
    }
}

impl Field for String {
    const WHAT: &'static str = "a text";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        match &at.node.value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(at.misfit("must be a text in quotes")),
        }
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(self.clone()))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "string"})
    }
}

impl Field for bool {
    const WHAT: &'static str = "true or false";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        match &at.node.value {
            Value::Bool(yes) => Ok(*yes),
            _ => Err(at.misfit("must be true or false")),
        }
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::Boolean(*self))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "boolean"})
    }
}

/// A count, 0 to 4294967295.
impl Field for u32 {
    const WHAT: &'static str = "a whole number, such as 100";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        match &at.node.value {
            Value::Integer(number) => {
                u32::try_from(*number).map_err(|_| at.misfit(format!("must be 0 to {}", u32::MAX)))
            }
            _ => Err(at.misfit("must be a whole number, such as 100")),
        }
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::Integer(i64::from(*self)))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "integer", "minimum": 0, "maximum": u32::MAX})
    }
}

/// A plain number.
impl Field for f64 {
    const WHAT: &'static str = "a number";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        match &at.node.value {
            Value::Integer(number) => Ok(*number as f64),
            Value::Float(number) if number.is_finite() => Ok(*number),
            _ => Err(at.misfit("must be a finite number")),
        }
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::Float(*self))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "number"})
    }
}

/// The longest time a scenario may name, and so the longest run: one day.
pub const TIME_MAX: Span = Span::from_secs(86_400);

/// The highest rate: 10 Tbit/s.
pub const RATE_MAX: Rate = Rate::from_bps(10_000_000_000_000);

impl Field for Span {
    const WHAT: &'static str = "a time, such as \"280ms\"";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        let nanos = at.quantity(units::TIME)?;
        if !(0.0..=TIME_MAX.as_nanos() as f64).contains(&nanos) {
            return Err(at.misfit(format!("must be a time of at least 0s, at most {}", units::show_span(TIME_MAX))));
        }
        Ok(Span::from_nanos((nanos + 0.5) as u64))
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(units::show_span(*self)))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "string", "format": "time", "examples": ["280ms"]})
    }
}

impl Field for Rate {
    const WHAT: &'static str = "a rate, such as \"8Mbit\"";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        let bps = at.quantity(units::RATE)?;
        if bps.is_nan() || bps <= 0.0 {
            return Err(at.misfit("must be a rate above 0, such as \"8Mbit\""));
        }
        if bps < 0.5 || bps > RATE_MAX.as_bps() as f64 {
            return Err(at.misfit(format!("must be a rate of 1bit to {}", units::show_rate(RATE_MAX))));
        }
        Ok(Rate::from_bps((bps + 0.5) as u64))
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(units::show_rate(*self)))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "string", "format": "rate", "examples": ["8Mbit"]})
    }
}

/// The largest size: 1 EB.
const BYTES_MAX: f64 = 1e18;

impl Field for Bytes {
    const WHAT: &'static str = "a size, such as \"1000B\"";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        let bytes = at.quantity(units::BYTES)?;
        if !(0.5..=BYTES_MAX).contains(&bytes) {
            return Err(at.misfit("must be a size of 1B to 1e9GB, such as \"1000B\""));
        }
        Ok(Bytes((bytes + 0.5) as u64))
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(units::show_bytes(*self)))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "string", "format": "size", "examples": ["1000B"]})
    }
}

/// A number of packets, perhaps a fraction of one (a target).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packets(pub f64);

/// The largest number of packets: a thousand million.
pub(crate) const PACKETS_MAX: f64 = 1e9;

impl Field for Packets {
    const WHAT: &'static str = "a number of packets, such as \"100pkt\"";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        let packets = at.quantity(units::PACKETS)?;
        if !(packets > 0.0 && packets <= PACKETS_MAX) {
            return Err(at.misfit("must be a number of packets above 0, at most 1e9pkt, such as \"100pkt\""));
        }
        Ok(Packets(packets))
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(format!("{}pkt", self.0)))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "string", "format": "packets", "examples": ["100pkt"]})
    }
}

/// The room of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// In packets.
    Packets(u32),
    /// In bytes.
    Bytes(Bytes),
}

impl Field for Buffer {
    const WHAT: &'static str = "a buffer of at least one packet, such as \"300pkt\"";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        if let Value::Text(text) = &at.node.value
            && units::BYTES.read(text).is_ok()
        {
            return Bytes::read(at).map(Buffer::Bytes);
        }
        let packets = at.quantity(units::PACKETS)?;
        if (1.0..=PACKETS_MAX).contains(&packets) && packets % 1.0 == 0.0 {
            Ok(Buffer::Packets(packets as u32))
        } else {
            Err(at.misfit("must be a whole number of packets, 1pkt to 1e9pkt, such as \"300pkt\""))
        }
    }
    fn write(&self) -> Option<toml::Value> {
        match self {
            Buffer::Packets(packets) => Some(toml::Value::String(format!("{packets}pkt"))),
            Buffer::Bytes(bytes) => bytes.write(),
        }
    }
    fn schema() -> serde_json::Value {
        json!({"type": "string", "format": "packets or size", "examples": ["300pkt", "450kB"]})
    }
}

/// A part of the run: from, and until (`None`: its end).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Where it begins.
    pub start: Span,
    /// Where it ends.
    pub end: Option<Span>,
}

impl Field for Interval {
    const WHAT: &'static str = "an interval, such as [\"10s\", \"100s\"], or its start";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        match &at.node.value {
            Value::List(_) => {
                let ends = Vec::<Span>::read(at)?;
                match ends[..] {
                    [start, end] if start < end => Ok(Interval { start, end: Some(end) }),
                    [_, _] => Err(at.misfit("an interval must end after it starts")),
                    _ => Err(at.misfit("an interval has two ends, such as [\"10s\", \"100s\"]")),
                }
            }
            _ => Ok(Interval { start: Span::read(at)?, end: None }),
        }
    }
    fn write(&self) -> Option<toml::Value> {
        match self.end {
            None => self.start.write(),
            Some(end) => vec![self.start, end].write(),
        }
    }
    fn schema() -> serde_json::Value {
        let both = json!({"type": "array", "items": Span::schema(), "minItems": 2, "maxItems": 2});
        json!({"anyOf": [Span::schema(), both]})
    }
}

/// Name, unit and choices of a parameter, from its schema.
pub(crate) fn param(name: &str, schema: &serde_json::Value) -> serde_json::Value {
    json!({"name": name, "unit": unit(schema), "choices": schema["enum"]})
}

/// The kind of value in a word or two.
fn unit(schema: &serde_json::Value) -> String {
    if let Some(choices) = schema["anyOf"].as_array() {
        let law = choices.iter().any(|choice| !choice["properties"]["law"].is_null());
        let other = if law { "law" } else { "table" };
        return choices.first().map_or(other.into(), |first| format!("{} or {other}", unit(first)));
    }
    match (schema["format"].as_str(), schema["type"].as_str()) {
        _ if schema["enum"].is_array() => "choice".into(),
        (Some(format), _) => format.into(),
        (None, Some("boolean")) => "flag".into(),
        (None, Some("array")) => "list".into(),
        (None, Some("object")) => "table".into(),
        (None, Some("string")) => "text".into(),
        (None, kind) => kind.unwrap_or("value").into(),
    }
}
