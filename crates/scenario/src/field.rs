//! Reading, writing and schema of the values of a scenario. [`table!`] derives all three for a table from one
//! declaration.

use aqumen_units::{Bytes, Rate, Span};
use serde_json::json;

use crate::Error;
use crate::error::suggestion;
use crate::tree::{Node, Value};
use crate::units::{self, Quantity};

/// An invalid value: its dotted path, the value unless it is a table, and a message.
#[derive(Debug)]
pub(crate) struct ValueError {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) value: Option<String>,
    pub(crate) message: String,
}

impl ValueError {
    /// Converts to an error in `file`.
    pub(crate) fn in_file(self, file: &str) -> Error {
        let ValueError { path: key, line, value, message } = self;
        Error { file: file.into(), line, key, value, message }
    }
}

/// A node and the dotted path that leads to it.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) node: &'a Node,
    pub(crate) path: String,
}

impl<'a> Cursor<'a> {
    /// Cursor of the entry or element `step`.
    pub(crate) fn below(&self, step: impl std::fmt::Display, node: &'a Node) -> Cursor<'a> {
        let path = if self.path.is_empty() { step.to_string() } else { format!("{}.{step}", self.path) };
        Cursor { node, path }
    }

    /// Returns an error about this value.
    pub(crate) fn error(&self, message: impl Into<String>) -> ValueError {
        ValueError {
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
    pub(crate) fn entries(&self) -> Result<&'a [(String, Node)], ValueError> {
        match &self.node.value {
            Value::Table(entries) => Ok(entries),
            _ => Err(self.error("must be a table")),
        }
    }

    /// Refuses entries that are not `known`.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), ValueError> {
        for (key, node) in self.entries()? {
            if !known.contains(&key.as_str()) {
                let mut error =
                    self.below(key, node).error(format!("unknown key{}", suggestion(key, known.iter().copied())));
                error.value = None;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Reads the entry `key`, or returns its default.
    pub(crate) fn field<T: Field>(&self, key: &str, default: Option<T>) -> Result<T, ValueError> {
        match self.node.get(key) {
            Some(node) => T::read(&self.below(key, node)),
            None => default.or_else(T::absent).ok_or_else(|| {
                let mut error = self.below(key, self.node).error(format!("missing; it must be {}", T::WHAT));
                error.value = None;
                error
            }),
        }
    }

    /// Reads a number of `quantity` in base units. A unit is required unless the quantity has none.
    pub(crate) fn quantity(&self, quantity: Quantity) -> Result<f64, ValueError> {
        match &self.node.value {
            Value::Text(text) => quantity.read(text).map_err(|message| self.error(message)),
            Value::Integer(_) | Value::Float(_) => {
                let text = self.node.value.show();
                if quantity.is_bare() {
                    quantity.read(&text).map_err(|message| self.error(message))
                } else {
                    let message = quantity.read(&text).map_or_else(|message| message, |_| String::new());
                    Err(self.error(message))
                }
            }
            _ => Err(self.error(format!("must be a {}, such as \"{}\"", quantity.name, quantity.example))),
        }
    }
}

/// A value of the schema.
pub(crate) trait Field: Sized {
    /// Description in messages: "a rate, such as ...".
    const WHAT: &'static str;
    /// Reads the value.
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError>;
    /// Writes the value; `None` omits it.
    fn write(&self) -> Option<toml::Value>;
    /// JSON Schema of the value.
    fn schema() -> serde_json::Value;
    /// Value of an absent key; `None` if the key is required.
    fn absent() -> Option<Self> {
        None
    }
}

/// Returns the table with all defaults.
pub(crate) fn all_defaults<T: Field>() -> T {
    let empty = Node { value: Value::Table(Vec::new()), line: 0 };
    T::read(&Cursor { node: &empty, path: String::new() }).unwrap_or_else(|error| panic!("{}: no default", error.path))
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

            fn read(at: &$crate::field::Cursor<'_>) -> Result<Self, $crate::field::ValueError> {
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

/// Converts a TOML value to JSON.
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
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
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
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let Value::List(items) = &at.node.value else {
            return Err(at.error("must be a list"));
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

/// Values by name, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct NameMap<T>(pub Vec<(String, T)>);

impl<T> NameMap<T> {
    /// The value called `name`.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl<T: Field> Field for NameMap<T> {
    const WHAT: &'static str = "a table";
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let mut named = Vec::new();
        for (key, node) in at.entries()? {
            let below = at.below(key, node);
            check_name(key).map_err(|message| ValueError { value: None, ..below.error(message) })?;
            named.push((key.clone(), T::read(&below)?));
        }
        Ok(NameMap(named))
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
        Some(NameMap(Vec::new()))
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
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let name = String::read(at)?;
        check_name(&name).map_err(|message| at.error(message))?;
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
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(at.error("must be a text in quotes")),
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
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Value::Bool(yes) => Ok(*yes),
            _ => Err(at.error("must be true or false")),
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
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Value::Integer(number) => {
                u32::try_from(*number).map_err(|_| at.error(format!("must be 0 to {}", u32::MAX)))
            }
            _ => Err(at.error("must be a whole number, such as 100")),
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
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Value::Integer(number) => Ok(*number as f64),
            Value::Float(number) if number.is_finite() => Ok(*number),
            _ => Err(at.error("must be a finite number")),
        }
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::Float(*self))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "number"})
    }
}

/// Longest time of a scenario, and so the longest run: one day.
pub const TIME_MAX: Span = Span::from_secs(86_400);

/// The highest rate: 10 Tbit/s.
pub const RATE_MAX: Rate = Rate::from_bps(10_000_000_000_000);

impl Field for Span {
    const WHAT: &'static str = "a time, such as \"280ms\"";
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let nanos = at.quantity(units::TIME)?;
        if !(0.0..=TIME_MAX.as_nanos() as f64).contains(&nanos) {
            return Err(at.error(format!("must be a time of at least 0s, at most {}", units::show_span(TIME_MAX))));
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
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let bps = at.quantity(units::RATE)?;
        if bps.is_nan() || bps <= 0.0 {
            return Err(at.error("must be a rate above 0, such as \"8Mbit\""));
        }
        if bps < 0.5 || bps > RATE_MAX.as_bps() as f64 {
            return Err(at.error(format!("must be a rate of 1bit to {}", units::show_rate(RATE_MAX))));
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
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let bytes = at.quantity(units::BYTES)?;
        if !(0.5..=BYTES_MAX).contains(&bytes) {
            return Err(at.error("must be a size of 1B to 1e9GB, such as \"1000B\""));
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

/// A number of packets, not necessarily whole (a target).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packets(pub f64);

/// The largest number of packets: a thousand million.
pub(crate) const PACKETS_MAX: f64 = 1e9;

impl Field for Packets {
    const WHAT: &'static str = "a number of packets, such as \"100pkt\"";
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let packets = at.quantity(units::PACKETS)?;
        if !(packets > 0.0 && packets <= PACKETS_MAX) {
            return Err(at.error("must be a number of packets above 0, at most 1e9pkt, such as \"100pkt\""));
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

/// Capacity of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// In packets.
    Packets(u32),
    /// In bytes.
    Bytes(Bytes),
}

impl Field for Buffer {
    const WHAT: &'static str = "a buffer of at least one packet, such as \"300pkt\"";
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        if let Value::Text(text) = &at.node.value
            && units::BYTES.read(text).is_ok()
        {
            return Bytes::read(at).map(Buffer::Bytes);
        }
        let packets = at.quantity(units::PACKETS)?;
        if (1.0..=PACKETS_MAX).contains(&packets) && packets % 1.0 == 0.0 {
            Ok(Buffer::Packets(packets as u32))
        } else {
            Err(at.error("must be a whole number of packets, 1pkt to 1e9pkt, such as \"300pkt\""))
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

/// A part of the run; without an end it lasts to the end of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Start.
    pub start: Span,
    /// End.
    pub end: Option<Span>,
}

impl Field for Interval {
    const WHAT: &'static str = "an interval, such as [\"10s\", \"100s\"], or its start";
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Value::List(_) => {
                let ends = Vec::<Span>::read(at)?;
                match ends[..] {
                    [start, end] if start < end => Ok(Interval { start, end: Some(end) }),
                    [_, _] => Err(at.error("an interval must end after it starts")),
                    _ => Err(at.error("an interval has two ends, such as [\"10s\", \"100s\"]")),
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

/// Describes a parameter by name, unit and choices, from its schema.
pub(crate) fn param(name: &str, schema: &serde_json::Value) -> serde_json::Value {
    json!({"name": name, "unit": unit(schema), "choices": schema["enum"]})
}

/// Name of a value's kind.
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
