//! The transport of a flow group: a preset of the transport crate, and what differs from it.

mod settings;
mod tcp;
mod udp;

use aqumen_transport::tcp::TcpConfig;
use aqumen_transport::udp::UdpConfig;
use serde_json::json;

use crate::error::suggestion;
use crate::field::{At, Field, Misfit};
use crate::tree::Value;

/// A preset, and the values that were given beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    /// Name of the preset.
    pub preset: String,
    /// The configuration that results.
    pub config: Protocol,
}

/// A transport protocol with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Protocol {
    /// TCP.
    Tcp(TcpConfig),
    /// UDP.
    Udp(UdpConfig),
}

/// A preset: its name, and the configuration it stands for.
pub type Preset = (&'static str, fn() -> Protocol);

/// The presets.
pub const PRESETS: &[Preset] = &[
    ("ns2", || Protocol::Tcp(TcpConfig::ns2())),
    ("modern", || Protocol::Tcp(TcpConfig::modern())),
    ("udp", || Protocol::Udp(UdpConfig::standard())),
];

impl Protocol {
    /// Size on the wire of a full packet of data, bytes.
    pub fn packet_bytes(&self) -> u16 {
        match self {
            Protocol::Tcp(config) => config.packet_bytes,
            Protocol::Udp(config) => config.packet_bytes,
        }
    }

    /// Of which headers, bytes.
    pub fn header_bytes(&self) -> u16 {
        match self {
            Protocol::Tcp(config) => config.header_bytes,
            Protocol::Udp(config) => config.header_bytes,
        }
    }

    /// Data in a full packet, bytes.
    pub fn payload_bytes(&self) -> u16 {
        self.packet_bytes() - self.header_bytes()
    }

    /// Whether its packets can be marked instead of dropped.
    pub fn ecn(&self) -> bool {
        match self {
            Protocol::Tcp(config) => config.ecn,
            Protocol::Udp(_) => false,
        }
    }

    /// Size on the wire of what the sink sends back, bytes; 0: nothing.
    pub fn ack_bytes(&self) -> u16 {
        match self {
            Protocol::Tcp(config) => config.ack_bytes,
            Protocol::Udp(_) => 0,
        }
    }

    /// Most packets of data that a flow can have under way; `None`: no bound.
    pub fn window_pkts(&self) -> Option<u32> {
        match self {
            Protocol::Tcp(config) => Some(config.receive_window),
            Protocol::Udp(_) => None,
        }
    }

    /// Packets that leave at once at the start of a flow.
    pub fn initial_window_pkts(&self) -> u32 {
        match self {
            Protocol::Tcp(config) => config.initial_window,
            Protocol::Udp(_) => 1,
        }
    }

    /// The parameters, if this is TCP.
    #[inline]
    pub fn tcp(&self) -> Option<&TcpConfig> {
        match self {
            Protocol::Tcp(config) => Some(config),
            Protocol::Udp(_) => None,
        }
    }

    /// The protocol as the plan's JSON has it: every field, times in seconds.
    pub(crate) fn to_json(self, preset: &str) -> serde_json::Value {
        let mut fields = serde_json::Map::new();
        fields.insert("preset".into(), preset.into());
        match self {
            Protocol::Tcp(config) => settings::to_json(config, &mut fields),
            Protocol::Udp(config) => settings::to_json(config, &mut fields),
        }
        serde_json::Value::Object(fields)
    }
}

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
}

impl Field for Transport {
    const WHAT: &'static str = "a transport, such as \"modern\"";

    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        let Value::Table(_) = &at.node.value else {
            return Transport::of_preset(at);
        };
        let Some(preset) = at.node.get("preset") else {
            let known: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
            return Err(at.misfit(format!("preset is missing; it must be one of {}", known.join(", "))));
        };
        let mut transport = Transport::of_preset(&at.below("preset", preset))?;
        match &mut transport.config {
            Protocol::Tcp(config) => settings::read(at, config)?,
            Protocol::Udp(config) => settings::read(at, config)?,
        }
        Ok(transport)
    }

    fn write(&self) -> Option<toml::Value> {
        let (_, preset) = PRESETS.iter().find(|(name, _)| *name == self.preset)?;
        let different = match (self.config, preset()) {
            (Protocol::Tcp(config), Protocol::Tcp(preset)) => settings::write(config, preset),
            (Protocol::Udp(config), Protocol::Udp(preset)) => settings::write(config, preset),
            _ => return None,
        };
        let preset = toml::Value::String(self.preset.clone());
        if different.is_empty() {
            return Some(preset);
        }
        let mut table = toml::Table::from_iter([("preset".to_string(), preset)]);
        table.extend(different);
        Some(toml::Value::Table(table))
    }

    fn schema() -> serde_json::Value {
        let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
        let mut tcp = Vec::new();
        let mut udp = Vec::new();
        for (name, config) in PRESETS {
            match config() {
                Protocol::Tcp(config) => tcp.push((*name, config)),
                Protocol::Udp(config) => udp.push((*name, config)),
            }
        }
        let preset = json!({"enum": names, "description": "name of the preset"});
        json!({"anyOf": [preset, table(&tcp), table(&udp)]})
    }
}

/// The JSON Schema of the table that stands on one of `presets`, all of one protocol.
fn table<C: settings::Config>(presets: &[(&str, C)]) -> serde_json::Value {
    let names: Vec<&str> = presets.iter().map(|(name, _)| *name).collect();
    let mut properties = serde_json::Map::new();
    properties.insert("preset".into(), json!({"enum": names, "description": "name of the preset"}));
    properties.extend(settings::schema(presets));
    json!({"type": "object", "properties": properties, "required": ["preset"], "additionalProperties": false})
}
