//! The transport of a flow group: a preset of the transport crate, and what differs from it.

mod rtp;
mod sctp;
pub(crate) mod settings;
mod tcp;
mod udp;

use aqumen_transport::rtp::RtpConfig;
use aqumen_transport::sctp::SctpConfig;
use aqumen_transport::tcp::{LossDetection, Reduction, TcpConfig, Variant};
use aqumen_transport::udp::UdpConfig;
use serde_json::json;

use crate::error::suggestion_listed;
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
    /// RTP with RTCP.
    Rtp(RtpConfig),
    /// SCTP.
    Sctp(SctpConfig),
}

/// A preset: its name, and the configuration it stands for.
pub type Preset = (&'static str, fn() -> Protocol);

/// The presets.
pub const PRESETS: &[Preset] = &[
    ("ns2", || Protocol::Tcp(TcpConfig::ns2())),
    ("modern", || Protocol::Tcp(TcpConfig::modern())),
    ("linux", || Protocol::Tcp(TcpConfig::linux())),
    ("linux-reno", || Protocol::Tcp(TcpConfig::linux_reno())),
    ("linux-bbr", || Protocol::Tcp(TcpConfig::linux_bbr())),
    ("cubic", || Protocol::Tcp(TcpConfig::cubic())),
    ("cubic-ns2", || Protocol::Tcp(TcpConfig::cubic_ns2())),
    ("dctcp", || Protocol::Tcp(TcpConfig::dctcp())),
    ("prague", || Protocol::Tcp(TcpConfig::prague())),
    ("bbr", || Protocol::Tcp(TcpConfig::bbr())),
    ("vegas", || Protocol::Tcp(TcpConfig::vegas())),
    ("ledbat", || Protocol::Tcp(TcpConfig::ledbat())),
    ("udp", || Protocol::Udp(UdpConfig::standard())),
    ("rtp", || Protocol::Rtp(RtpConfig::standard())),
    ("rtp-tfrc", || Protocol::Rtp(RtpConfig::tfrc())),
    ("rtp-nada", || Protocol::Rtp(RtpConfig::nada())),
    ("sctp", || Protocol::Sctp(SctpConfig::standard())),
    ("sctp-ns2", || Protocol::Sctp(SctpConfig::ns2())),
];

impl Protocol {
    /// Size on the wire of a full packet of data, bytes.
    pub fn packet_bytes(&self) -> u16 {
        match self {
            Protocol::Tcp(config) => config.packet_bytes,
            Protocol::Udp(config) => config.packet_bytes,
            Protocol::Rtp(config) => config.packet_bytes,
            Protocol::Sctp(config) => config.packet_bytes,
        }
    }

    /// Of which headers, bytes.
    pub fn header_bytes(&self) -> u16 {
        match self {
            Protocol::Tcp(config) => config.header_bytes,
            Protocol::Udp(config) => config.header_bytes,
            Protocol::Rtp(config) => config.header_bytes,
            Protocol::Sctp(config) => config.header_bytes,
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
            Protocol::Rtp(config) => config.ecn,
            Protocol::Sctp(config) => config.ecn,
        }
    }

    /// Size on the wire of what the sink usually sends back, bytes; 0: nothing.
    pub fn ack_bytes(&self) -> u16 {
        match self {
            Protocol::Tcp(config) => config.ack_bytes,
            Protocol::Udp(_) => 0,
            Protocol::Rtp(_) => aqumen_transport::rtp::REPORT_BYTES,
            // A SACK without blocks is as large as the headers of data.
            Protocol::Sctp(config) => config.header_bytes,
        }
    }

    /// Most packets of data that a flow can have under way; `None`: no bound.
    pub fn window_pkts(&self) -> Option<u32> {
        match self {
            Protocol::Tcp(config) => Some(config.receive_window),
            Protocol::Udp(_) | Protocol::Rtp(_) => None,
            // The window counts the headers of chunks: that of empty messages admits most packets.
            Protocol::Sctp(config) => {
                Some(config.receive_window_bytes / u32::from(aqumen_transport::sctp::CHUNK_HEADER))
            }
        }
    }

    /// Packets that leave at once at the start of a flow.
    pub fn initial_window_pkts(&self) -> u32 {
        match self {
            Protocol::Tcp(config) => config.initial_window,
            Protocol::Udp(_) | Protocol::Rtp(_) => 1,
            Protocol::Sctp(config) => config.first_window().div_ceil(config.chunk_bytes()),
        }
    }

    /// The parameters, if this is TCP.
    #[inline]
    pub fn tcp(&self) -> Option<&TcpConfig> {
        match self {
            Protocol::Tcp(config) => Some(config),
            Protocol::Udp(_) | Protocol::Rtp(_) | Protocol::Sctp(_) => None,
        }
    }

    /// The name of TCP's congestion control, as a scenario writes it; `None` for other transports.
    pub fn congestion(&self) -> Option<&'static str> {
        self.tcp().map(tcp::congestion_name)
    }

    /// Whether a mark is answered in proportion to what arrives (PRR, where losses are found by time), not at once.
    pub fn answers_marks_in_proportion(&self) -> bool {
        self.tcp().is_some_and(|config| {
            config.variant == Variant::Sack
                && config.loss_detection == LossDetection::Rack
                && config.reduction == Reduction::Proportional
        })
    }

    /// The protocol as the plan's JSON has it: every field, times in seconds.
    pub(crate) fn to_json(self, preset: &str) -> serde_json::Value {
        let mut fields = serde_json::Map::new();
        fields.insert("preset".into(), preset.into());
        match self {
            Protocol::Tcp(config) => settings::to_json(config, &mut fields),
            Protocol::Udp(config) => settings::to_json(config, &mut fields),
            Protocol::Rtp(config) => settings::to_json(config, &mut fields),
            Protocol::Sctp(config) => settings::to_json(config, &mut fields),
        }
        serde_json::Value::Object(fields)
    }
}

/// A group that names no transport has what most hosts have.
impl Default for Transport {
    fn default() -> Self {
        Transport { preset: "linux".into(), config: Protocol::Tcp(TcpConfig::linux()) }
    }
}

impl Transport {
    fn of_preset(at: &At<'_>) -> Result<Self, Misfit> {
        let preset = String::read(at)?;
        match PRESETS.iter().find(|(name, _)| *name == preset) {
            Some((_, config)) => Ok(Transport { preset, config: config() }),
            None => {
                let known = suggestion_listed(&preset, PRESETS.iter().map(|(name, _)| *name), "aqumen list transports");
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
            Protocol::Rtp(config) => settings::read(at, config)?,
            Protocol::Sctp(config) => settings::read(at, config)?,
        }
        Ok(transport)
    }

    fn write(&self) -> Option<toml::Value> {
        let (_, preset) = PRESETS.iter().find(|(name, _)| *name == self.preset)?;
        let different = match (self.config, preset()) {
            (Protocol::Tcp(config), Protocol::Tcp(preset)) => settings::write(config, preset),
            (Protocol::Udp(config), Protocol::Udp(preset)) => settings::write(config, preset),
            (Protocol::Rtp(config), Protocol::Rtp(preset)) => settings::write(config, preset),
            (Protocol::Sctp(config), Protocol::Sctp(preset)) => settings::write(config, preset),
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
        let (mut tcp, mut udp, mut rtp, mut sctp) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (name, config) in PRESETS {
            match config() {
                Protocol::Tcp(config) => tcp.push((*name, config)),
                Protocol::Udp(config) => udp.push((*name, config)),
                Protocol::Rtp(config) => rtp.push((*name, config)),
                Protocol::Sctp(config) => sctp.push((*name, config)),
            }
        }
        let preset = json!({"enum": names, "description": "name of the preset"});
        json!({"anyOf": [preset, table(&tcp), table(&udp), table(&rtp), table(&sctp)]})
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
