//! The transport of a flow group: a preset of the transport crate, and what differs from it.

use aqumen_transport::tcp::{TcpConfig, Variant};
use aqumen_units::Span;
use serde_json::json;

use crate::error::suggestion;
use crate::field::{At, Field, Misfit};
use crate::tree::Value;
use crate::units;

/// A preset, and the values that were given beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    /// Name of the preset.
    pub preset: String,
    /// The configuration that results.
    pub config: TcpConfig,
}

/// A preset: its name, and the configuration it stands for.
pub type Preset = (&'static str, fn() -> TcpConfig);

/// The presets.
pub const PRESETS: &[Preset] = &[("ns2", TcpConfig::ns2), ("modern", TcpConfig::modern)];

const VARIANTS: &[(&str, Variant)] = &[("reno", Variant::Reno), ("newreno", Variant::NewReno), ("sack", Variant::Sack)];

/// What kind of value a setting takes, with the accessors of its field.
enum Kind {
    Variant,
    Flag(fn(&mut TcpConfig) -> &mut bool),
    Size(fn(&mut TcpConfig) -> &mut u16),
    Segments(fn(&mut TcpConfig) -> &mut u32),
    /// Segments, or `none`.
    SegmentsOrNone(fn(&mut TcpConfig) -> &mut Option<u32>),
    Time(fn(&mut TcpConfig) -> &mut Span),
    /// A time, or `none`.
    TimeOrNone(fn(&mut TcpConfig) -> &mut Option<Span>),
    Burst,
    WindowFloor,
}

/// A setting: its key, its field of [`TcpConfig`], one line on what it does.
struct Setting {
    key: &'static str,
    /// Name of the field; it names the value in the plan.
    field: &'static str,
    kind: Kind,
    doc: &'static str,
}

macro_rules! settings {
    ($( $key:literal $field:ident $kind:ident: $doc:literal; )*) => {
        &[$( Setting {
            key: $key,
            field: concat!(stringify!($field), settings!(@suffix $kind)),
            kind: settings!(@kind $kind $field),
            doc: $doc,
        }, )*]
    };
    (@suffix Time) => { "_s" };
    (@suffix TimeOrNone) => { "_s" };
    (@suffix $other:ident) => { "" };
    (@kind Variant $field:ident) => { Kind::Variant };
    (@kind Burst $field:ident) => { Kind::Burst };
    (@kind WindowFloor $field:ident) => { Kind::WindowFloor };
    (@kind $kind:ident $field:ident) => { Kind::$kind(|config| &mut config.$field) };
}

/// Every setting, in the order of [`TcpConfig`].
const SETTINGS: &[Setting] = settings! {
    "variant" variant Variant: "how losses are repaired";
    "ecn" ecn Flag: "whether data packets are ECN-capable";
    "packet" packet_bytes Size: "size on the wire of a full data packet";
    "header" header_bytes Size: "of which headers; a SYN is as large";
    "ack" ack_bytes Size: "size on the wire of an acknowledgement";
    "initial_window" initial_window Segments: "congestion window at the start";
    "receive_window" receive_window Segments: "what the receiver offers at most";
    "delayed_ack" delayed_ack TimeOrNone: "how long an acknowledgement may be held back; \"none\": one for each segment";
    "min_rto" min_rto Time: "lower bound of the retransmission timeout";
    "max_rto" max_rto Time: "upper bound of the retransmission timeout";
    "initial_rto" initial_rto Time: "retransmission timeout before the first round-trip sample";
    "rto_tick" rto_tick Time: "granularity of the clock that measures round trips";
    "max_burst" max_burst Burst: "most segments that leave in answer to one acknowledgement; \"none\": no limit";
    "limited_transmit" limited_transmit Flag: "whether the first two duplicate acknowledgements let a segment go";
    "growth_limit" growth_limit Segments: "most segments by which one acknowledgement counts towards window growth";
    "restart_window" restart_window SegmentsOrNone: "window after a pause; \"none\": unchanged";
    "syn" syn Flag: "whether the connection opens with a SYN";
    "timestamps" timestamps Flag: "whether each acknowledgement gives a round-trip sample";
    "send_overhead" send_overhead Time: "upper bound of the random delay before sends";
    "min_window" min_window WindowFloor: "smallest window after a reaction to marks, 0 to 2 segments";
    "halve_flight" halve_flight Flag: "whether a reduction halves what is in flight; else the window";
    "validate_window" validate_window Flag: "whether the window grows only while it limits the sender";
    "exit_by_flight" exit_by_flight Flag: "whether NewReno leaves recovery with what is in flight plus one";
    "recovery_burst" recovery_burst Flag: "whether NewReno sends at most two segments for a duplicate acknowledgement in recovery";
    "ect_retransmissions" ect_retransmissions Flag: "whether retransmissions are ECN-capable";
    "cwr_retransmissions" cwr_retransmissions Flag: "whether a retransmission may carry CWR";
    "timeout_after_mark_keeps_threshold" timeout_after_mark_keeps_threshold Flag:
        "whether a timeout in the window of a reaction to a mark leaves the threshold alone";
    "mark_after_timeout_counts" mark_after_timeout_counts Flag: "whether a mark echoed after a timeout counts";
    "ecn_backoff" ecn_backoff Flag: "whether the timer stays backed off while marks come back to a window of one";
    "forget_rtt" forget_rtt Flag: "whether the smoothed round trip is discarded after four backoffs";
    "full_segments" full_segments Flag: "whether a transfer is rounded up to whole segments";
};

impl Transport {
    fn of_preset(at: &At<'_>) -> Result<Self, Misfit> {
        let preset = String::read(at)?;
        match PRESETS.iter().find(|(name, _)| *name == preset) {
            Some((_, config)) => Ok(Transport { preset, config: config() }),
            None => {
                let known = suggestion(&preset, PRESETS.iter().map(|(name, _)| *name));
                Err(at.misfit(format!("no such transport{known}")))
            }
        }
    }

    /// The transport as the plan's JSON has it: every field of [`TcpConfig`], times in seconds.
    pub(crate) fn to_json(preset: &str, config: &TcpConfig) -> serde_json::Value {
        let mut config = *config;
        let mut fields = serde_json::Map::new();
        fields.insert("preset".into(), preset.into());
        for setting in SETTINGS {
            let value = match setting.kind {
                Kind::Variant => json!(variant_name(config.variant)),
                Kind::Flag(field) => json!(field(&mut config)),
                Kind::Size(field) => json!(field(&mut config)),
                Kind::Segments(field) => json!(field(&mut config)),
                Kind::SegmentsOrNone(field) => json!(field(&mut config)),
                Kind::Time(field) => json!(seconds(*field(&mut config))),
                Kind::TimeOrNone(field) => json!(field(&mut config).map(seconds)),
                Kind::Burst => json!(config.max_burst),
                Kind::WindowFloor => json!(config.min_window),
            };
            fields.insert(setting.field.into(), value);
        }
        serde_json::Value::Object(fields)
    }
}

fn seconds(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e9
}

fn variant_name(variant: Variant) -> &'static str {
    VARIANTS.iter().find(|(_, known)| *known == variant).map_or("?", |(name, _)| name)
}

fn is_none(at: &At<'_>) -> bool {
    matches!(&at.node.value, Value::Text(text) if text == "none")
}

/// A whole number of packets from `least` to `most`.
fn segments(at: &At<'_>, least: u32, most: u32) -> Result<u32, Misfit> {
    let packets = at.quantity(units::PACKETS)?;
    if packets % 1.0 == 0.0 && (f64::from(least)..=f64::from(most)).contains(&packets) {
        Ok(packets as u32)
    } else {
        Err(at.misfit(format!("must be a whole number of packets, {least}pkt to {most}pkt")))
    }
}

impl Kind {
    fn read(&self, at: &At<'_>, config: &mut TcpConfig) -> Result<(), Misfit> {
        match self {
            Kind::Variant => {
                let name = String::read(at)?;
                match VARIANTS.iter().find(|(known, _)| *known == name) {
                    Some((_, variant)) => config.variant = *variant,
                    None => {
                        let known = suggestion(&name, VARIANTS.iter().map(|(name, _)| *name));
                        return Err(at.misfit(format!("no such variant{known}")));
                    }
                }
            }
            Kind::Flag(field) => *field(config) = bool::read(at)?,
            Kind::Size(field) => {
                let bytes = at.quantity(units::BYTES)?;
                if !((1.0..=65_535.0).contains(&bytes) && bytes % 1.0 == 0.0) {
                    return Err(at.misfit("must be a whole number of bytes, 1B to 65535B"));
                }
                *field(config) = bytes as u16;
            }
            Kind::Segments(field) => *field(config) = segments(at, 1, 1 << 30)?,
            Kind::SegmentsOrNone(field) => {
                *field(config) = if is_none(at) { None } else { Some(segments(at, 1, 1 << 30)?) };
            }
            Kind::Time(field) => *field(config) = Span::read(at)?,
            Kind::TimeOrNone(field) => *field(config) = if is_none(at) { None } else { Some(Span::read(at)?) },
            Kind::Burst => config.max_burst = if is_none(at) { 0 } else { segments(at, 1, 254)? as u8 },
            Kind::WindowFloor => {
                let packets = at.quantity(units::PACKETS)?;
                if !(0.0..=2.0).contains(&packets) {
                    return Err(at.misfit("must be 0pkt to 2pkt"));
                }
                config.min_window = packets;
            }
        }
        Ok(())
    }

    /// The value in `config` as written in a scenario.
    fn write(&self, config: &mut TcpConfig) -> Option<toml::Value> {
        let packets = |n: f64| Some(toml::Value::String(format!("{n}pkt")));
        let none = Some(toml::Value::String("none".into()));
        match self {
            Kind::Variant => Some(toml::Value::String(variant_name(config.variant).into())),
            Kind::Flag(field) => field(config).write(),
            Kind::Size(field) => Some(toml::Value::String(format!("{}B", field(config)))),
            Kind::Segments(field) => packets(f64::from(*field(config))),
            Kind::SegmentsOrNone(field) => field(config).map_or(none, |n| packets(f64::from(n))),
            Kind::Time(field) => field(config).write(),
            Kind::TimeOrNone(field) => field(config).map_or(none, |span| span.write()),
            Kind::Burst if config.max_burst == 0 => none,
            Kind::Burst => packets(f64::from(config.max_burst)),
            Kind::WindowFloor => packets(config.min_window),
        }
    }

    fn schema(&self) -> serde_json::Value {
        let text = |format: &str| json!({"type": "string", "format": format});
        match self {
            Kind::Variant => json!({"enum": VARIANTS.iter().map(|(name, _)| *name).collect::<Vec<_>>()}),
            Kind::Flag(_) => bool::schema(),
            Kind::Size(_) => text("size"),
            Kind::Segments(_) | Kind::WindowFloor => text("packets"),
            Kind::SegmentsOrNone(_) | Kind::Burst => text("packets or none"),
            Kind::Time(_) => text("time"),
            Kind::TimeOrNone(_) => text("time or none"),
        }
    }
}

impl Field for Transport {
    const WHAT: &'static str = "a transport, such as \"modern\"";

    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        let Value::Table(entries) = &at.node.value else {
            return Transport::of_preset(at);
        };
        let known: Vec<&str> = std::iter::once("preset").chain(SETTINGS.iter().map(|setting| setting.key)).collect();
        at.only(&known)?;
        let Some(preset) = at.node.get("preset") else {
            return Err(at.misfit("preset is missing; it must be ns2 or modern"));
        };
        let mut transport = Transport::of_preset(&at.below("preset", preset))?;
        for (key, node) in entries {
            if let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) {
                setting.kind.read(&at.below(key, node), &mut transport.config)?;
            }
        }
        transport.config.validate().map_err(|error| {
            // The transport names its field; the user wrote the key.
            let key =
                SETTINGS.iter().find(|s| s.field.trim_end_matches("_s") == error.field).map_or(error.field, |s| s.key);
            let node = at.node.get(key).unwrap_or(at.node);
            at.below(key, node).misfit(format!("must be {}", error.range))
        })?;
        Ok(transport)
    }

    fn write(&self) -> Option<toml::Value> {
        let (_, preset) = PRESETS.iter().find(|(name, _)| *name == self.preset)?;
        let (mut config, mut preset) = (self.config, preset());
        let mut table = toml::Table::new();
        table.insert("preset".into(), toml::Value::String(self.preset.clone()));
        for setting in SETTINGS {
            let value = setting.kind.write(&mut config);
            if value != setting.kind.write(&mut preset) {
                table.insert(setting.key.into(), value?);
            }
        }
        if table.len() == 1 { Some(toml::Value::String(self.preset.clone())) } else { Some(toml::Value::Table(table)) }
    }

    fn schema() -> serde_json::Value {
        let presets: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
        let preset = json!({"enum": presets, "description": "name of the preset"});
        let mut properties = serde_json::Map::new();
        properties.insert("preset".into(), preset.clone());
        for setting in SETTINGS {
            let mut schema = setting.kind.schema();
            let show = |config: fn() -> TcpConfig| match setting.kind.write(&mut config()) {
                Some(toml::Value::String(text)) => text,
                Some(value) => value.to_string(),
                None => String::new(),
            };
            let defaults: Vec<String> =
                PRESETS.iter().map(|(name, config)| format!("{name}: {}", show(*config))).collect();
            schema["description"] = format!("{} ({})", setting.doc, defaults.join(", ")).into();
            properties.insert(setting.key.into(), schema);
        }
        let table =
            json!({"type": "object", "properties": properties, "required": ["preset"], "additionalProperties": false});
        json!({"anyOf": [preset, table]})
    }
}
