//! What the applications of a flow group send: `traffic` of a group, by a kind and its parameters.
//!
//! Each kind is a table of the schema. [`kinds`] lists them with their parameters for documentation and command line.
//! `crates/sim` makes the sources; `docs/traffic.md` has formulas and references.

mod files;
mod frames;
mod own;
mod tables;

use serde_json::json;

use crate::error::{Fault, suggestion_listed};
use crate::field::{At, Field, Misfit, as_json};
use crate::files::Files;
use crate::law::Law;
use crate::tree::{Node, Value};

use files::Part;
pub use files::{FrameFile, ModelFile};
pub use frames::Frames;
pub use own::{Own, OwnKind, OwnSource};
pub use tables::{
    AdaptiveVideo, Begin, Cbr, Codec, Connection, Mmpp, OnOff, PACKET_BYTES_MAX, PerSecond, Poisson, SelfSimilar,
    Transfers, Video, Voip, Web,
};

/// What the applications of a flow group send.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// One transfer that starts with the flow, endless unless the group says how much.
    Bulk,
    /// Finite transfers, one after another.
    Transfers(Transfers),
    /// Pages of objects.
    Web(Web),
    /// Packets of one size at one rate.
    Cbr(Cbr),
    /// Packets at the moments of a Poisson process.
    Poisson(Poisson),
    /// Packets at one rate in periods ON, none in periods OFF.
    OnOff(OnOff),
    /// The sum of many ON/OFF sources with heavy tails.
    SelfSimilar(SelfSimilar),
    /// Voice with talk spurts.
    Voip(Voip),
    /// A Markov-modulated Poisson process.
    Mmpp(Mmpp),
    /// Frames of a trace, or of a law of sizes.
    Video(Video),
    /// A film in segments, whose bit rate follows what comes.
    AdaptiveVideo(AdaptiveVideo),
    /// A kind from outside.
    Own(Own),
}

/// Whose the arrivals are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each flow has a source of its own.
    Flow,
    /// The group has one source; each transfer takes an idle flow of the group and is refused if there is none.
    Group,
}

/// What an application sends in the long run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offered {
    /// Messages per second: packets of the application, frames of voice.
    pub per_second: f64,
    /// Mean size of one, bytes, headers not counted.
    pub bytes: f64,
}

/// A kind of traffic, for lists and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What it consists of: transfers, packets or frames.
    pub sends: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
    read: fn(&At<'_>) -> Result<Traffic, Misfit>,
    schema: fn() -> serde_json::Value,
}

/// Every kind: name, variant of [`Traffic`] with its table, what it sends, summary, reference.
macro_rules! kinds {
    ($( $name:literal $variant:ident $sends:literal: $summary:literal, $reference:literal; )*) => {
        const KINDS: &[Kind] = &[
            Kind {
                name: "bulk",
                sends: "transfers",
                summary: "one transfer that starts with the flow, endless unless the group has transfer",
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
                    Traffic::Own(own) => &own.name,
                    $( Traffic::$variant(_) => $name, )*
                }
            }

            /// What its values must be, one against another. Files have been read.
            pub(crate) fn check(&self) -> Result<(), Fault> {
                match self {
                    Traffic::Bulk | Traffic::Own(_) => Ok(()),
                    $( Traffic::$variant(kind) => kind.check(), )*
                }
            }

            /// What may need a file, with its key.
            fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
                match self {
                    Traffic::Bulk | Traffic::Own(_) => Vec::new(),
                    $( Traffic::$variant(kind) => kind.parts(), )*
                }
            }

            fn parameters(&self) -> Option<toml::Value> {
                match self {
                    Traffic::Bulk => None,
                    Traffic::Own(own) => own.parameters(),
                    $( Traffic::$variant(kind) => kind.write(), )*
                }
            }
        }
    };
}

kinds! {
    "transfers" Transfers "transfers": "finite transfers, at random moments or a think time after the last", "Barford, Crovella 1998";
    "web" Web "transfers": "web sessions: pages of a main object and embedded ones, with time to read", "IEEE 802.16m-08/004, section 10.1";
    "cbr" Cbr "packets": "packets of one size at one rate", "-";
    "poisson" Poisson "packets": "packets at the moments of a Poisson process, sizes of any law", "Kleinrock 1975";
    "on-off" OnOff "packets": "one rate in periods ON, silence in periods OFF, of any law", "Willinger, Taqqu, Sherman, Wilson 1997";
    "self-similar" SelfSimilar "packets": "the sum of many ON/OFF sources with heavy tails: long-range dependent",
        "Taqqu, Willinger, Sherman 1997";
    "voip" Voip "frames": "voice: a codec's frames while somebody talks", "ITU-T P.59; RFC 3551";
    "mmpp" Mmpp "packets": "a Markov-modulated Poisson process, the same as in the queueing analysis",
        "Fischer, Meier-Hellstern 1993";
    "video" Video "frames": "frames of the sizes in a trace, or of a law of their sizes",
        "Fitzek, Reisslein 2001; IEEE 802.11-14/0571";
    "adaptive-video" AdaptiveVideo "transfers": "a film in segments, each at the bit rate that those before it suggest",
        "Jiang, Sekar, Zhang 2012";
}

/// Kinds of traffic from outside, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnKinds(Vec<OwnKind>);

impl OwnKinds {
    /// None.
    pub const NONE: OwnKinds = OwnKinds(Vec::new());

    /// These, and `kind`. One of the same name that came from outside before makes way; the name of a built-in kind is
    /// refused.
    pub fn with(&self, kind: OwnKind) -> Result<Self, String> {
        if KINDS.iter().any(|known| known.name == kind.name) {
            return Err(format!("a kind of traffic called {} is built in; give your own another name", kind.name));
        }
        let others = self.0.iter().filter(|known| known.name != kind.name);
        Ok(OwnKinds(others.cloned().chain([kind.clone()]).collect()))
    }
}

/// Every kind of traffic that is built in.
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
    /// Whether it asks for something finite, of which it can be said how long it took.
    pub fn asks(&self) -> bool {
        matches!(self, Traffic::Transfers(_) | Traffic::Web(_) | Traffic::AdaptiveVideo(_))
    }

    /// Whose the arrivals are.
    pub fn scope(&self) -> Scope {
        match self {
            Traffic::Transfers(transfers) if transfers.think.is_none() => Scope::Group,
            _ => Scope::Flow,
        }
    }

    /// Flows that one of the group's `count` takes: the connections of a web session.
    pub fn connections(&self) -> u32 {
        match self {
            Traffic::Web(web) => web.connections,
            _ => 1,
        }
    }

    /// What a flow offers on average over periods ON and OFF, if it sends of itself whatever the network does; `None`
    /// for transfers, segments among them, for video, whose rate is that of its frames, and for kinds from outside, of
    /// which nothing is known.
    pub fn offered(&self) -> Option<Offered> {
        // The share of the time that a source is ON; laws of time are in nanoseconds.
        let share = |on: f64, off: f64| on / (on + off);
        let of = |per_second: f64, bytes: f64| Some(Offered { per_second, bytes });
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
            // Its chains have been checked with the scenario.
            Traffic::Mmpp(kind) => {
                let chains = kind.chains().ok()?;
                of(chains.iter().map(|chain| chain.per_second().0).sum(), kind.packet.0.mean())
            }
            Traffic::Bulk
            | Traffic::Transfers(_)
            | Traffic::Web(_)
            | Traffic::Video(_)
            | Traffic::AdaptiveVideo(_)
            | Traffic::Own(_) => None,
        }
    }

    /// The shape of the heaviest tail of its times ON and OFF, if it begins in the middle of one whose rest has no
    /// mean: that of a Pareto law without bound is infinite up to a shape of 2.
    pub(crate) fn endless_start(&self) -> Option<f64> {
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

    /// Reads the files that it names, among `files`.
    pub(crate) fn load(&mut self, files: &Files) -> Result<(), Fault> {
        self.parts().into_iter().try_for_each(|(key, part)| part.load(files).map_err(|message| (key, message)))
    }

    /// Looks it up among `own` if it is not built in; the key at fault, and what is wrong there.
    pub(crate) fn look_up(&mut self, own: &OwnKinds) -> Result<(), (String, String)> {
        let Traffic::Own(traffic) = self else { return Ok(()) };
        match own.0.iter().find(|known| known.name == traffic.name) {
            Some(kind) => traffic.be(kind),
            None => {
                let names = KINDS.iter().map(|known| known.name).chain(own.0.iter().map(|known| known.name));
                let known = suggestion_listed(&traffic.name, names, "aqumen list traffic");
                Err(("kind".into(), format!("no such kind of traffic{known}")))
            }
        }
    }

    /// The traffic as the plan's JSON has it: as it is written in a scenario, and a digest of the files that it names,
    /// since one name may stand for different files.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let mut json = self.write().as_ref().map_or(serde_json::Value::Null, as_json);
        if self.clone().parts().iter().any(|(_, part)| part.is_file()) {
            // FNV-1a over all that was read.
            let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            let digest = format!("{self:?}").bytes().fold(0xcbf2_9ce4_8422_2325, step);
            json["files"] = format!("{digest:016x}").into();
        }
        json
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
        let at = At { node: &rest, path: at.path.clone() };
        match KINDS.iter().find(|known| known.name == name) {
            Some(found) => (found.read)(&at),
            // It is looked up among those from outside later on.
            None => Own::read(name, &at).map(Traffic::Own),
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
