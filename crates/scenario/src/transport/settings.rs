//! Settings of a transport: key, field, reading, writing and description.

use aqumen_units::{Rate, Span};
use serde_json::json;

use crate::error::suggestion_listed;
use crate::field::{Cursor, Field, ValueError, as_json};
use crate::tree::Value;
use crate::units;

/// Type of a setting of `C`, with accessors of its field.
pub(crate) enum Kind<C> {
    /// One of these names, by index.
    Choice(&'static [&'static str], fn(&C) -> usize, fn(&mut C, usize)),
    Flag(fn(&mut C) -> &mut bool),
    Size(fn(&mut C) -> &mut u16),
    Rate(fn(&mut C) -> &mut Rate),
    /// 1 to 65535.
    Count(fn(&mut C) -> &mut u16),
    /// A window in bytes.
    Window(fn(&mut C) -> &mut u32),
    /// A window in bytes, or `none`.
    WindowOrNone(fn(&mut C) -> &mut Option<u32>),
    Segments(fn(&mut C) -> &mut u32),
    /// Segments, or `none`.
    SegmentsOrNone(fn(&mut C) -> &mut Option<u32>),
    Time(fn(&mut C) -> &mut Span),
    /// A time, or `none`.
    TimeOrNone(fn(&mut C) -> &mut Option<Span>),
    /// Segments, 1 to 254, or `none`, which is 0.
    Burst(fn(&mut C) -> &mut u8),
    /// A window in segments, not necessarily whole, 0 to 2.
    WindowFloor(fn(&mut C) -> &mut f64),
}

/// A setting of `C`.
pub(crate) struct Setting<C: 'static> {
    /// Key in a scenario.
    pub(crate) key: &'static str,
    /// Name of the field of `C`.
    pub(crate) field: &'static str,
    pub(crate) kind: Kind<C>,
    /// One-line description.
    pub(crate) doc: &'static str,
}

/// Declares settings: key, field of the configuration, kind, description. A `Quirk` is a flag among the `quirks`.
macro_rules! settings {
    ($( $key:literal $field:ident $kind:tt $(($($choice:tt)*))?: $doc:literal; )*) => {
        &[$( $crate::transport::settings::Setting {
            key: $key,
            field: stringify!($field),
            kind: $crate::transport::settings::settings!(@kind $kind $field $(($($choice)*))?),
            doc: $doc,
        }, )*]
    };
    (@kind Choice $field:ident ($names:expr, $get:expr, $set:expr)) => {
        $crate::transport::settings::Kind::Choice($names, $get, $set)
    };
    (@kind Quirk $field:ident) => { $crate::transport::settings::Kind::Flag(|config| &mut config.quirks.$field) };
    (@kind $kind:ident $field:ident) => { $crate::transport::settings::Kind::$kind(|config| &mut config.$field) };
}
pub(crate) use settings;

/// Table of the settings of a transport.
pub(crate) trait Table: Copy + PartialEq + 'static {
    /// Every setting, in the order of the fields.
    const SETTINGS: &'static [Setting<Self>];
    /// Checks every field; returns the first invalid one and its accepted values.
    fn check(&self) -> Result<(), (&'static str, &'static str)>;
}

/// Operations on settings, independent of the transport.
pub(crate) trait Settings {
    /// Reads the settings in the table at `at` over these, without `preset`.
    fn read(&mut self, at: &Cursor<'_>) -> Result<(), ValueError>;

    /// Key and value of every setting as written in a scenario, in the order of the fields.
    fn written(&self) -> Vec<(&'static str, Option<toml::Value>)>;

    /// Adds every field as JSON for the plan: times in seconds with the suffix `_s`, rates with `_bps`.
    fn to_json(&self, fields: &mut serde_json::Map<String, serde_json::Value>);

    /// JSON Schema and description of each setting, in the order of the fields.
    fn described(&self) -> Vec<(serde_json::Value, &'static str)>;

    /// Every setting with its value, for lists.
    fn rows(&self) -> Vec<serde_json::Value> {
        let rows = self.written().into_iter().zip(self.described()).map(|((key, value), (schema, doc))| {
            let mut row = crate::field::param(key, &schema);
            row["default"] = value.as_ref().map_or(serde_json::Value::Null, as_json);
            row["doc"] = doc.into();
            row
        });
        rows.collect()
    }
}

impl<C: Table> Settings for C {
    fn read(&mut self, at: &Cursor<'_>) -> Result<(), ValueError> {
        let keys = C::SETTINGS.iter().map(|setting| setting.key);
        let known: Vec<&str> = std::iter::once("preset").chain(keys).collect();
        at.only(&known)?;
        for (key, node) in at.entries()? {
            if let Some(setting) = C::SETTINGS.iter().find(|setting| setting.key == key) {
                setting.kind.read(&at.below(key, node), self)?;
            }
        }
        self.check().map_err(|(field, range)| {
            // The transport names its field, the message the key.
            let key = C::SETTINGS.iter().find(|setting| setting.field == field).map_or(field, |setting| setting.key);
            let node = at.node.get(key).unwrap_or(at.node);
            at.below(key, node).error(format!("must be {range}"))
        })
    }

    fn written(&self) -> Vec<(&'static str, Option<toml::Value>)> {
        let mut config = *self;
        C::SETTINGS.iter().map(|setting| (setting.key, setting.kind.write(&mut config))).collect()
    }

    fn to_json(&self, fields: &mut serde_json::Map<String, serde_json::Value>) {
        let mut config = *self;
        for setting in C::SETTINGS {
            let suffix = match setting.kind {
                Kind::Time(_) | Kind::TimeOrNone(_) => "_s",
                Kind::Rate(_) => "_bps",
                _ => "",
            };
            fields.insert(format!("{}{suffix}", setting.field), setting.kind.to_json(&mut config));
        }
    }

    fn described(&self) -> Vec<(serde_json::Value, &'static str)> {
        C::SETTINGS.iter().map(|setting| (setting.kind.schema(), setting.doc)).collect()
    }
}

/// The settings in which `config` differs from `preset`, of the same transport.
pub(crate) fn differences<S: Settings + ?Sized>(config: &S, preset: &S) -> toml::Table {
    let both = config.written().into_iter().zip(preset.written());
    let different = both.filter(|((_, value), (_, usual))| value != usual);
    different.filter_map(|((key, value), _)| Some((key.to_string(), value?))).collect()
}

/// JSON Schema of each setting; `presets` give the defaults.
pub(crate) fn schema(presets: &[(&str, &dyn Settings)]) -> serde_json::Map<String, serde_json::Value> {
    let written: Vec<_> = presets.iter().map(|(name, config)| (*name, config.written())).collect();
    let described = presets.first().map(|(_, config)| config.described()).unwrap_or_default();
    let mut properties = serde_json::Map::new();
    for (i, (mut schema, doc)) in described.into_iter().enumerate() {
        let show = |value: &Option<toml::Value>| match value {
            Some(toml::Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        let defaults: Vec<(&str, String)> = written.iter().map(|(name, all)| (*name, show(&all[i].1))).collect();
        schema["description"] = format!("{doc} ({})", summary(&defaults)).into();
        properties.insert(written[0].1[i].0.into(), schema);
    }
    properties
}

/// Summarises the values of the presets: "ns2: 2pkt, others: 10pkt".
fn summary(defaults: &[(&str, String)]) -> String {
    let count = |value: &String| defaults.iter().filter(|(_, other)| other == value).count();
    let most = defaults.iter().map(|(_, value)| count(value)).max().unwrap_or(0);
    // The first of the most frequent values, if more than one preset has it.
    let usual = defaults.iter().map(|(_, value)| value).find(|value| most > 1 && count(value) == most);
    let mut parts: Vec<String> = defaults
        .iter()
        .filter(|(_, value)| Some(value) != usual)
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    match usual {
        Some(usual) if parts.is_empty() => return usual.clone(),
        Some(usual) => parts.push(format!("others: {usual}")),
        None => {}
    }
    parts.join(", ")
}

impl<C> Kind<C> {
    fn read(&self, at: &Cursor<'_>, config: &mut C) -> Result<(), ValueError> {
        match self {
            Kind::Choice(names, _, set) => {
                let name = String::read(at)?;
                match names.iter().position(|known| *known == name) {
                    Some(index) => set(config, index),
                    None => {
                        let key = at.path.rsplit('.').next().unwrap_or_default();
                        let known = suggestion_listed(&name, names.iter().copied(), "aqumen list transports");
                        return Err(at.error(format!("no such {key}{known}")));
                    }
                }
            }
            Kind::Flag(field) => *field(config) = bool::read(at)?,
            Kind::Size(field) => {
                let bytes = at.quantity(units::BYTES)?;
                if !((1.0..=65_535.0).contains(&bytes) && bytes % 1.0 == 0.0) {
                    return Err(at.error("must be a whole number of bytes, 1B to 65535B"));
                }
                *field(config) = bytes as u16;
            }
            Kind::Rate(field) => *field(config) = Rate::read(at)?,
            Kind::Count(field) => {
                *field(config) = u16::try_from(u32::read(at)?).map_err(|_| at.error("must be 1 to 65535"))?;
            }
            Kind::Window(field) => *field(config) = window(at)?,
            Kind::WindowOrNone(field) => *field(config) = if is_none(at) { None } else { Some(window(at)?) },
            Kind::Segments(field) => *field(config) = segments(at, 1, 1 << 30)?,
            Kind::SegmentsOrNone(field) => {
                *field(config) = if is_none(at) { None } else { Some(segments(at, 1, 1 << 30)?) };
            }
            Kind::Time(field) => *field(config) = Span::read(at)?,
            Kind::TimeOrNone(field) => *field(config) = if is_none(at) { None } else { Some(Span::read(at)?) },
            Kind::Burst(field) => *field(config) = if is_none(at) { 0 } else { segments(at, 1, 254)? as u8 },
            Kind::WindowFloor(field) => {
                let packets = at.quantity(units::PACKETS)?;
                if !(0.0..=2.0).contains(&packets) {
                    return Err(at.error("must be 0pkt to 2pkt"));
                }
                *field(config) = packets;
            }
        }
        Ok(())
    }

    /// The value in `config` as written in a scenario.
    fn write(&self, config: &mut C) -> Option<toml::Value> {
        let packets = |n: f64| Some(toml::Value::String(format!("{n}pkt")));
        let none = Some(toml::Value::String("none".into()));
        match self {
            Kind::Choice(names, get, _) => Some(toml::Value::String(names[get(config)].into())),
            Kind::Flag(field) => field(config).write(),
            Kind::Size(field) => Some(toml::Value::String(format!("{}B", field(config)))),
            Kind::Rate(field) => field(config).write(),
            Kind::Count(field) => u32::from(*field(config)).write(),
            Kind::Window(field) => Some(toml::Value::String(format!("{}B", field(config)))),
            Kind::WindowOrNone(field) => match field(config) {
                Some(bytes) => Some(toml::Value::String(format!("{bytes}B"))),
                None => none,
            },
            Kind::Segments(field) => packets(f64::from(*field(config))),
            Kind::SegmentsOrNone(field) => field(config).map_or(none, |n| packets(f64::from(n))),
            Kind::Time(field) => field(config).write(),
            Kind::TimeOrNone(field) => field(config).map_or(none, |span| span.write()),
            Kind::Burst(field) => match *field(config) {
                0 => none,
                n => packets(f64::from(n)),
            },
            Kind::WindowFloor(field) => packets(*field(config)),
        }
    }

    fn to_json(&self, config: &mut C) -> serde_json::Value {
        match self {
            Kind::Choice(names, get, _) => json!(names[get(config)]),
            Kind::Flag(field) => json!(field(config)),
            Kind::Size(field) => json!(field(config)),
            Kind::Rate(field) => json!(field(config).as_bps()),
            Kind::Count(field) => json!(field(config)),
            Kind::Window(field) => json!(field(config)),
            Kind::WindowOrNone(field) => json!(field(config)),
            Kind::Segments(field) => json!(field(config)),
            Kind::SegmentsOrNone(field) => json!(field(config)),
            Kind::Time(field) => json!(seconds(*field(config))),
            Kind::TimeOrNone(field) => json!(field(config).map(seconds)),
            Kind::Burst(field) => json!(field(config)),
            Kind::WindowFloor(field) => json!(field(config)),
        }
    }

    fn schema(&self) -> serde_json::Value {
        let text = |format: &str| json!({"type": "string", "format": format});
        match self {
            Kind::Choice(names, ..) => json!({"enum": names}),
            Kind::Flag(_) => bool::schema(),
            Kind::Size(_) => text("size"),
            Kind::Rate(_) => text("rate"),
            Kind::Count(_) => json!({"type": "integer"}),
            Kind::Window(_) => text("size"),
            Kind::WindowOrNone(_) => text("size or none"),
            Kind::Segments(_) | Kind::WindowFloor(_) => text("packets"),
            Kind::SegmentsOrNone(_) | Kind::Burst(_) => text("packets or none"),
            Kind::Time(_) => text("time"),
            Kind::TimeOrNone(_) => text("time or none"),
        }
    }
}

fn seconds(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e9
}

fn is_none(at: &Cursor<'_>) -> bool {
    matches!(&at.node.value, Value::Text(text) if text == "none")
}

/// Reads a window in bytes; the transport checks it further.
fn window(at: &Cursor<'_>) -> Result<u32, ValueError> {
    let bytes = at.quantity(units::BYTES)?;
    if bytes % 1.0 == 0.0 && (1.0..=f64::from(1 << 30)).contains(&bytes) {
        Ok(bytes as u32)
    } else {
        Err(at.error("must be a whole number of bytes, 1B to 1073741824B"))
    }
}

/// Reads a whole number of packets from `least` to `most`.
fn segments(at: &Cursor<'_>, least: u32, most: u32) -> Result<u32, ValueError> {
    let packets = at.quantity(units::PACKETS)?;
    if packets % 1.0 == 0.0 && (f64::from(least)..=f64::from(most)).contains(&packets) {
        Ok(packets as u32)
    } else {
        Err(at.error(format!("must be a whole number of packets, {least}pkt to {most}pkt")))
    }
}
