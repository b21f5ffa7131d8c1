//! Transport of a flow group: a preset of the transport crate, and changed settings.

mod rtp;
mod sctp;
pub(crate) mod settings;
mod tcp;
mod udp;

use aqumen_transport::rtp::{RtpConfig, RtpSink, RtpSource};
use aqumen_transport::sctp::{SctpConfig, SctpSink, SctpSource};
use aqumen_transport::tcp::{LossDetection, Reduction, TcpConfig, Variant};
use aqumen_transport::udp::{UdpConfig, UdpSink, UdpSource};
use aqumen_transport::{AnyEndpoint, Config};
use serde_json::json;
use settings::Settings;

use crate::error::suggestion_listed;
use crate::field::{Cursor, Field, ValueError};
use crate::tree::Value;

/// A preset with changed settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    /// Name of the preset.
    pub preset: String,
    /// Resulting configuration.
    pub config: Protocol,
}

/// Declares the protocols: variant, name, configuration, endpoints, summary, reference; and the constructors of their
/// presets.
macro_rules! protocols {
    ($( $(#[doc = $doc:literal])* $variant:ident $kind:literal $config:ident ($($source:ident $sink:ident)?) $summary:literal $reference:literal {
        $( $preset:literal $make:ident; )*
    } )*) => {
        /// A transport protocol with its parameters.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Protocol {
            $( $(#[doc = $doc])* $variant($config), )*
        }

        /// The presets.
        pub const PRESETS: &[Preset] = &[ $($( ($preset, || Protocol::$variant($config::$make())), )*)* ];

        /// Name, summary and reference of each protocol.
        const ABOUT: &[(&str, &str, &str)] = &[ $( ($kind, $summary, $reference), )* ];

        impl Protocol {
            /// Name of the protocol.
            pub fn kind(&self) -> &'static str {
                match self {
                    $( Protocol::$variant(_) => $kind, )*
                }
            }

            /// The parameters.
            fn config(&self) -> &dyn Parameters {
                match self {
                    $( Protocol::$variant(config) => config, )*
                }
            }

            /// Returns the endpoints of a new connection, source and sink; `None` for TCP, whose endpoints have other
            /// types.
            pub fn endpoints(&self) -> Option<Endpoints> {
                match self {
                    $( Protocol::$variant(_config) => protocols!(@ends _config $($source $sink)?), )*
                }
            }

            fn config_mut(&mut self) -> &mut dyn Parameters {
                match self {
                    $( Protocol::$variant(config) => config, )*
                }
            }
        }
    };
    (@ends $config:ident) => { None };
    (@ends $config:ident $source:ident $sink:ident) => {
        Some((AnyEndpoint::from($source::new($config)), AnyEndpoint::from($sink::new($config))))
    };
}

protocols! {
    /// TCP.
    Tcp "tcp" TcpConfig () "TCP" "RFC 9293" {
        "ns2" ns2;
        "modern" modern;
        "linux" linux;
        "linux-reno" linux_reno;
        "linux-bbr" linux_bbr;
        "cubic" cubic;
        "cubic-ns2" cubic_ns2;
        "dctcp" dctcp;
        "prague" prague;
        "bbr" bbr;
        "vegas" vegas;
        "ledbat" ledbat;
    }
    /// UDP.
    Udp "udp" UdpConfig (UdpSource UdpSink) "UDP: datagrams, sent as they are written" "RFC 768" {
        "udp" standard;
    }
    /// RTP with RTCP.
    Rtp "rtp" RtpConfig (RtpSource RtpSink) "RTP with RTCP receiver reports" "RFC 3550" {
        "rtp" standard;
        "rtp-tfrc" tfrc;
        "rtp-nada" nada;
    }
    /// SCTP.
    Sctp "sctp" SctpConfig (SctpSource SctpSink) "SCTP" "RFC 9260" {
        "sctp" standard;
        "sctp-ns2" ns2;
    }
}

/// Endpoints of a connection, source and sink.
pub type Endpoints = (AnyEndpoint, AnyEndpoint);

/// Name of a preset, and its configuration.
pub type Preset = (&'static str, fn() -> Protocol);

/// Parameters of any protocol.
trait Parameters: Config + Settings {}

impl<C: Config + Settings> Parameters for C {}

impl Protocol {
    /// Size on the wire of a full packet of data, bytes.
    pub fn packet_bytes(&self) -> u16 {
        self.config().packet_bytes()
    }

    /// Header bytes of a full packet.
    pub fn header_bytes(&self) -> u16 {
        self.config().header_bytes()
    }

    /// Data in a full packet, bytes.
    pub fn payload_bytes(&self) -> u16 {
        self.config().payload_bytes()
    }

    /// Whether packets are ECN-capable.
    pub fn ecn(&self) -> bool {
        self.config().ecn()
    }

    /// Whether the transport adapts its rate to the network; otherwise it sends what the application writes.
    pub fn adapts(&self) -> bool {
        self.config().adapts()
    }

    /// Whether a source learns of the delivery of all its data. Datagrams are not acknowledged.
    pub fn reports_delivery(&self) -> bool {
        matches!(self, Protocol::Tcp(_) | Protocol::Sctp(_))
    }

    /// Usual size on the wire of a packet from the sink, bytes; 0 without feedback.
    pub fn ack_bytes(&self) -> u16 {
        self.config().ack_bytes()
    }

    /// Most data packets in flight per flow; `None` without bound.
    pub fn window_pkts(&self) -> Option<u32> {
        self.config().window_pkts()
    }

    /// Packets sent at once at the start of a flow.
    pub fn initial_window_pkts(&self) -> u32 {
        self.config().initial_window_pkts()
    }

    /// The parameters, if this is TCP.
    #[inline]
    pub fn tcp(&self) -> Option<&TcpConfig> {
        if let Protocol::Tcp(config) = self { Some(config) } else { None }
    }

    /// The name of TCP's congestion control, as a scenario writes it; `None` for other transports.
    pub fn congestion(&self) -> Option<&'static str> {
        self.tcp().map(tcp::congestion_name)
    }

    /// Summary and reference of the protocol.
    pub(crate) fn about(&self) -> (&'static str, &'static str) {
        let about = ABOUT.iter().find(|(kind, ..)| *kind == self.kind());
        about.map_or(("", ""), |(_, summary, reference)| (summary, reference))
    }

    /// Every setting with its value, for lists.
    pub(crate) fn rows(&self) -> Vec<serde_json::Value> {
        self.config().rows()
    }

    /// Whether receivers report blocks that have arrived out of order (SACK), which senders use.
    pub fn has_sack(&self) -> bool {
        match self {
            Protocol::Tcp(config) => config.variant == Variant::Sack,
            Protocol::Sctp(_) => true,
            Protocol::Udp(_) | Protocol::Rtp(_) => false,
        }
    }

    /// Whether the window is reduced proportionally after a mark (PRR, with loss detection by time), not at once.
    pub fn reduces_proportionally(&self) -> bool {
        self.tcp().is_some_and(|config| {
            config.variant == Variant::Sack
                && config.loss_detection == LossDetection::Rack
                && config.reduction == Reduction::Proportional
        })
    }

    /// The protocol as JSON for the plan: every field, times in seconds.
    pub(crate) fn to_json(self, preset: &str) -> serde_json::Value {
        let mut fields = serde_json::Map::new();
        fields.insert("preset".into(), preset.into());
        self.config().to_json(&mut fields);
        serde_json::Value::Object(fields)
    }
}

/// The default is the transport of most hosts.
impl Default for Transport {
    fn default() -> Self {
        Transport { preset: "linux".into(), config: Protocol::Tcp(TcpConfig::linux()) }
    }
}

impl Transport {
    fn from_preset(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let preset = String::read(at)?;
        match PRESETS.iter().find(|(name, _)| *name == preset) {
            Some((_, config)) => Ok(Transport { preset, config: config() }),
            None => {
                let known = suggestion_listed(&preset, PRESETS.iter().map(|(name, _)| *name), "aqumen list transports");
                Err(at.error(format!("no such transport{known}")))
            }
        }
    }
}

impl Field for Transport {
    const WHAT: &'static str = "a transport, such as \"modern\"";

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let Value::Table(_) = &at.node.value else {
            return Self::from_preset(at);
        };
        let Some(preset) = at.node.get("preset") else {
            let known: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
            return Err(at.error(format!("preset is missing; it must be one of {}", known.join(", "))));
        };
        let mut transport = Self::from_preset(&at.below("preset", preset))?;
        transport.config.config_mut().read(at)?;
        Ok(transport)
    }

    fn write(&self) -> Option<toml::Value> {
        let (_, preset) = PRESETS.iter().find(|(name, _)| *name == self.preset)?;
        let different = settings::differences(self.config.config(), preset().config());
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
        let preset = json!({"enum": names, "description": "name of the preset"});
        let mut choices = vec![preset];
        for (kind, ..) in ABOUT {
            let all: Vec<(&str, Protocol)> = PRESETS.iter().map(|(name, make)| (*name, make())).collect();
            let of_kind: Vec<_> = all.iter().filter(|(_, protocol)| protocol.kind() == *kind).collect();
            choices.push(table(&of_kind));
        }
        json!({"anyOf": choices})
    }
}

/// JSON Schema of the table of `presets`, all of one protocol.
fn table(presets: &[&(&str, Protocol)]) -> serde_json::Value {
    let names: Vec<&str> = presets.iter().map(|(name, _)| *name).collect();
    let mut properties = serde_json::Map::new();
    properties.insert("preset".into(), json!({"enum": names, "description": "name of the preset"}));
    let configs: Vec<(&str, &dyn Settings)> =
        presets.iter().map(|(name, protocol)| -> (&str, &dyn Settings) { (*name, protocol.config()) }).collect();
    properties.extend(settings::schema(&configs));
    json!({"type": "object", "properties": properties, "required": ["preset"], "additionalProperties": false})
}
