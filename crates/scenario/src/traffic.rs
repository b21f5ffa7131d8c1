//! Traffic of the applications of a flow group: a kind and its parameters.
//!
//! Each kind is a table of the schema. [`kinds`] lists them with their parameters for documentation and command line.
//! `crates/traffic` has the sources; `docs/traffic.md` has formulas and references.

mod custom;
mod files;
mod frames;
mod tables;

use serde_json::json;

use crate::error::{KeyError, suggestion_listed};
use crate::field::{Cursor, Field, ValueError, as_json};
use crate::files::Files;
use crate::law::Law;
use crate::tree::{Node, Value};

pub use custom::{CustomKind, CustomSource, CustomTraffic};
use files::Part;
pub use files::{FrameFile, ModelFile};
pub use frames::Frames;
pub use tables::{
    AdaptiveVideo, Begin, Cbr, Codec, Connection, Mmpp, OnOff, PACKET_BYTES_MAX, PerSecond, Poisson, SelfSimilar,
    Transfers, Video, Voip, Web,
};

/// Traffic of the applications of a flow group.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// One transfer that starts with the flow, unlimited unless the group has a size.
    Bulk,
    /// Finite transfers, one after another.
    Transfers(Transfers),
    /// Pages of objects.
    Web(Web),
    /// Packets of one size at one rate.
    Cbr(Cbr),
    /// Packets of a Poisson process.
    Poisson(Poisson),
    /// Packets at one rate in periods ON, none in periods OFF.
    OnOff(OnOff),
    /// The sum of many ON/OFF sources with heavy tails.
    SelfSimilar(SelfSimilar),
    /// Voice with talk spurts.
    Voip(Voip),
    /// A Markov-modulated Poisson process.
    Mmpp(Mmpp),
    /// Video frames of a trace, or of random sizes.
    Video(Video),
    /// Adaptive video: segments at a bit rate that follows the throughput.
    AdaptiveVideo(AdaptiveVideo),
    /// A custom kind.
    Custom(CustomTraffic),
}

/// Owner of the arrival process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each flow has its own source.
    Flow,
    /// The group has one source; each transfer takes an idle flow of the group and is refused if there is none.
    Group,
}

/// Long-run traffic of an application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfferedLoad {
    /// Messages per second: application packets or voice frames.
    pub per_second: f64,
    /// Mean size of a message, bytes, without headers.
    pub bytes: f64,
}

/// A kind of traffic, for lists and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Unit of traffic: transfers, packets or frames.
    pub sends: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Source of the model.
    pub reference: &'static str,
    read: fn(&Cursor<'_>) -> Result<Traffic, ValueError>,
    schema: fn() -> serde_json::Value,
}

/// Declares the kinds: name, variant of [`Traffic`] with its table, unit, summary, reference.
macro_rules! kinds {
    ($( $name:literal $variant:ident $sends:literal: $summary:literal, $reference:literal; )*) => {
        const KINDS: &[Kind] = &[
            Kind {
                name: "bulk",
                sends: "transfers",
                summary: "one transfer that starts with the flow, unlimited unless the group has transfer",
                reference: "-",
                read: |at| at.only(&[]).map(|()| Traffic::Bulk),
                schema: || json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
            },
            $( Kind {
                name: $name,
                sends: $sends,
                summary: $summary,
                reference: $reference,
                read: |at| $variant::read(at).map(Traffic::$variant),
                schema: $variant::schema,
            }, )*
        ];

        impl Traffic {
            /// The name of its kind.
            pub fn kind(&self) -> &str {
                match self {
                    Traffic::Bulk => "bulk",
                    Traffic::Custom(own) => &own.name,
                    $( Traffic::$variant(_) => $name, )*
                }
            }

            /// Checks the values against each other, after files have been read.
            pub(crate) fn check(&self) -> Result<(), KeyError> {
                match self {
                    Traffic::Bulk | Traffic::Custom(_) => Ok(()),
                    $( Traffic::$variant(kind) => kind.check(), )*
                }
            }

            /// Parts that may be in files, with their keys.
            fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
                match self {
                    Traffic::Bulk | Traffic::Custom(_) => Vec::new(),
                    $( Traffic::$variant(kind) => kind.parts(), )*
                }
            }

            fn parameters(&self) -> Option<toml::Value> {
                match self {
                    Traffic::Bulk => None,
                    Traffic::Custom(own) => own.parameters(),
                    $( Traffic::$variant(kind) => kind.write(), )*
                }
            }
        }
    };
}

kinds! {
    "transfers" Transfers "transfers": "finite transfers, at random times or a think time after the previous one", "Barford, Crovella 1998";
    "web" Web "transfers": "web sessions: pages of a main object and embedded ones, with reading times", "IEEE 802.16m-08/004, section 10.1";
    "cbr" Cbr "packets": "packets of one size at one rate", "-";
    "poisson" Poisson "packets": "packets of a Poisson process, sizes of any law", "Kleinrock 1975";
    "on-off" OnOff "packets": "one rate in ON periods, none in OFF periods, of any law", "Willinger, Taqqu, Sherman, Wilson 1997";
    "self-similar" SelfSimilar "packets": "the sum of many ON/OFF sources with heavy tails: long-range dependent",
        "Taqqu, Willinger, Sherman 1997";
    "voip" Voip "frames": "voice: frames of a codec during talk spurts", "ITU-T P.59; RFC 3551";
    "mmpp" Mmpp "packets": "a Markov-modulated Poisson process, as in the queueing analysis",
        "Fischer, Meier-Hellstern 1993";
    "video" Video "frames": "video frames of a trace, or of random sizes",
        "Fitzek, Reisslein 2001; IEEE 802.11-14/0571";
    "adaptive-video" AdaptiveVideo "transfers": "adaptive video: segments at a bit rate that follows the throughput",
        "Jiang, Sekar, Zhang 2012";
}

/// Custom kinds of traffic, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CustomKinds(Vec<CustomKind>);

impl CustomKinds {
    /// No kinds.
    pub const NONE: CustomKinds = CustomKinds(Vec::new());

    /// Adds `kind` and replaces a custom kind of the same name. The names of built-in kinds are refused.
    pub fn with(&self, kind: CustomKind) -> Result<Self, String> {
        if KINDS.iter().any(|known| known.name == kind.name) {
            return Err(format!("{} is a built-in kind of traffic; choose another name", kind.name));
        }
        let others = self.0.iter().filter(|known| known.name != kind.name);
        Ok(CustomKinds(others.cloned().chain([kind.clone()]).collect()))
    }
}

/// All built-in kinds of traffic.
pub fn kinds() -> &'static [Kind] {
    KINDS
}

impl Kind {
    /// The JSON Schema of its table, without `kind`.
    pub(crate) fn schema(&self) -> serde_json::Value {
        (self.schema)()
    }
}

impl Traffic {
    /// Whether the traffic consists of finite requests, whose completion times are measured.
    pub fn has_requests(&self) -> bool {
        matches!(self, Traffic::Transfers(_) | Traffic::Web(_) | Traffic::AdaptiveVideo(_))
    }

    /// Owner of the arrival process.
    pub fn scope(&self) -> Scope {
        match self {
            Traffic::Transfers(transfers) if transfers.think.is_none() => Scope::Group,
            _ => Scope::Flow,
        }
    }

    /// Flows that each of the group's `count` uses: the connections of a web session.
    pub fn connections(&self) -> u32 {
        match self {
            Traffic::Web(web) => web.connections,
            _ => 1,
        }
    }

    /// Mean traffic offered by a flow over ON and OFF periods, if the source does not depend on the network; `None` for
    /// transfers, adaptive video, video (whose rate is that of its frames) and custom kinds.
    pub fn offered(&self) -> Option<OfferedLoad> {
        // The fraction of time in which a source is ON; laws of time are in nanoseconds.
        let share = |on: f64, off: f64| on / (on + off);
        let of = |per_second: f64, bytes: f64| Some(OfferedLoad { per_second, bytes });
        match self {
            Traffic::Cbr(kind) => of(kind.rate.packets_per_sec(kind.packet), kind.packet.0 as f64),
            Traffic::Poisson(kind) => of(kind.rate.0, kind.packet.0.mean()),
            Traffic::OnOff(kind) => {
                let on = share(kind.on.0.mean(), kind.off.0.mean());
                of(on * kind.rate.packets_per_sec(kind.packet), kind.packet.0 as f64)
            }
            Traffic::SelfSimilar(kind) => of(kind.rate.packets_per_sec(kind.packet), kind.packet.0 as f64),
            Traffic::Voip(kind) => {
                let (bytes, frame) = kind.codec.frame();
                let talks = if kind.suppress { share(kind.talk.0.mean(), kind.silence.0.mean()) } else { 1.0 };
                of(talks / frame.as_secs_f64(), f64::from(bytes))
            }
            // The Markov chains have been checked with the scenario.
            Traffic::Mmpp(kind) => {
                let chains = kind.chains().ok()?;
                of(chains.iter().map(|chain| chain.per_second().0).sum(), kind.packet.0.mean())
            }
            Traffic::Bulk
            | Traffic::Transfers(_)
            | Traffic::Web(_)
            | Traffic::Video(_)
            | Traffic::AdaptiveVideo(_)
            | Traffic::Custom(_) => None,
        }
    }

    /// Pareto shape of the heaviest tail of the ON and OFF times, if the source starts in a period whose residual time
    /// has no mean: the residual of an unbounded Pareto law has an infinite mean up to a shape of 2.
    pub(crate) fn infinite_residual_shape(&self) -> Option<f64> {
        let shape = match self {
            Traffic::OnOff(OnOff { on, off, begin: Begin::Stationary, .. }) => [on, off]
                .into_iter()
                .filter_map(|time| match time.0 {
                    Law::Pareto { shape, max: None, .. } => Some(shape),
                    _ => None,
                })
                .fold(f64::INFINITY, f64::min),
            Traffic::SelfSimilar(kind) if kind.begin == Begin::Stationary => kind.shape(),
            _ => return None,
        };
        (shape <= 2.0).then_some(shape)
    }

    /// Reads the files that the traffic names, from `files`.
    pub(crate) fn load(&mut self, files: &Files) -> Result<(), KeyError> {
        self.parts().into_iter().try_for_each(|(key, part)| part.load(files).map_err(|message| (key, message)))
    }

    /// Resolves a custom kind among `custom`; the error is a key and a message.
    pub(crate) fn resolve_custom(&mut self, own: &CustomKinds) -> Result<(), (String, String)> {
        let Traffic::Custom(traffic) = self else { return Ok(()) };
        match own.0.iter().find(|known| known.name == traffic.name) {
            Some(kind) => traffic.resolve(kind),
            None => {
                let names = KINDS.iter().map(|known| known.name).chain(own.0.iter().map(|known| known.name));
                let known = suggestion_listed(&traffic.name, names, "aqumen list traffic");
                Err(("kind".into(), format!("no such kind of traffic{known}")))
            }
        }
    }

    /// The traffic as JSON for the plan: its table in the scenario, and a digest of the files that it names, since the
    /// same name may denote different files.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let mut json = self.write().as_ref().map_or(serde_json::Value::Null, as_json);
        if self.clone().parts().iter().any(|(_, part)| part.is_file()) {
            // FNV-1a over the contents.
            let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            let digest = format!("{self:?}").bytes().fold(0xcbf2_9ce4_8422_2325, step);
            json["files"] = format!("{digest:016x}").into();
        }
        json
    }
}

impl Field for Traffic {
    const WHAT: &'static str = "a kind of traffic, such as \"bulk\", or a table with kind";

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        // The string "voip" is short for { kind = "voip" }.
        let (kind, rest) = match &at.node.value {
            Value::Table(entries) => {
                let rest = entries.iter().filter(|(key, _)| key != "kind").cloned().collect();
                let kind = at.node.get("kind").ok_or_else(|| at.error("kind is missing; such as kind = \"cbr\""))?;
                (at.below("kind", kind), Node { value: Value::Table(rest), line: at.node.line })
            }
            _ => (at.clone(), Node { value: Value::Table(Vec::new()), line: at.node.line }),
        };
        let name = String::read(&kind)?;
        let at = Cursor { node: &rest, path: at.path.clone() };
        match KINDS.iter().find(|known| known.name == name) {
            Some(found) => (found.read)(&at),
            // A custom kind is resolved later.
            None => CustomTraffic::read(name, &at).map(Traffic::Custom),
        }
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
            let mut schema = kind.schema();
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
