//! The model file of the queueing analysis: sources before a queue. `docs/formats/mmpp.md` describes the format.
//!
//! [`File`] is the TOML file, read and checked; the solver reports its errors through [`File::error`], with file, line
//! and key. [`MarkovSource`] is a source in the form that the packet engine and the analysis use.

mod markov_chain;

use std::path::{Path, PathBuf};

use aqumen_units::{Bytes, Rate, Span};
use serde_json::json;

use crate::Error;
use crate::error::suggestion;
use crate::field::{Buffer, Cursor, Field, Name, NameMap, ValueError, table};
use crate::files::{decode_utf8, read_file};
use crate::tree::{Node, Value, locate};
use crate::units;

pub use markov_chain::MarkovSource;
pub(crate) use markov_chain::check_minisources;

table! {
    /// A model as written.
    pub struct Spec("a model") {
        /// Name of the model; it appears in results.
        pub name: Name,
        /// One-line title.
        pub title: Option<String>,
        /// Notes for readers: source of the values, deviations.
        pub description: Option<String>,
        /// Predefined sources: `paper16` or `paper8`, those of the AAQM paper.
        pub preset: Option<Preset>,
        /// The server and its buffer.
        pub queue: Queue,
        /// Sources of packets, in addition to those of a preset.
        pub sources: Vec<Source>,
        /// Early drops or marks by a threshold function; none if absent.
        pub early: Option<Early>,
        /// Admission for a given loss: the largest load, or the smallest threshold; not computed if absent.
        pub admit: Option<Admit>,
        /// Packet simulation for comparison with the prediction.
        pub simulate: Simulate = Simulate::default(),
    }
}

table! {
    /// The server and its buffer. The service rate is `service`, or `link` with `packet`.
    pub struct Queue("the queue") {
        /// Capacity of the system in packets, the one in service included.
        pub buffer: Buffer,
        /// Service rate of the busy server.
        pub service: Option<PacketRate>,
        /// Rate of the link that serves.
        pub link: Option<Rate>,
        /// Mean packet size on that link; that of the captures if absent.
        pub packet: Option<Bytes>,
        /// Erlang stages of a service: 1 is exponential, many are nearly constant. If absent, fitted to the packet
        /// sizes of the captures, else 1.
        pub stages: Option<u32>,
    }
}

table! {
    /// A source: one of `rates` with `generator`, `rate`, `minisources`, `trace`.
    pub struct Source("a source") {
        /// Its name.
        pub name: Name,
        /// A Poisson process of this rate.
        pub rate: Option<PacketRate>,
        /// A Markov-modulated Poisson process: the rate in each state.
        pub rates: Vec<PacketRate>,
        /// Generator matrix, per second: one row for each state, with sum 0.
        pub generator: Vec<Vec<f64>>,
        /// Superposition of equal ON/OFF sources.
        pub minisources: Option<Minisources>,
        /// Capture or list of times to which a source is fitted.
        pub trace: Option<Trace>,
    }
}

table! {
    /// Equal, independent ON/OFF sources with exponential times.
    pub struct Minisources("minisources") {
        /// Number of sources.
        pub count: u32,
        /// Mean time ON.
        pub on: Span,
        /// Mean time OFF.
        pub off: Span,
        /// Rate of one source while it is ON.
        pub rate: PacketRate,
        /// `exact`: count + 1 states; `two-state`: two states with the same index of dispersion, whose losses may
        /// differ much.
        pub model: MiniModel = MiniModel::Exact,
    }
}

table! {
    /// A trace of packets.
    pub struct Trace("a trace") {
        /// File: pcap, pcapng, or text with a time in seconds in the first column and optionally a size in bytes in the
        /// second; relative to the model file.
        pub file: String,
        /// Largest number of components of the fit, each with its own time scale: 1 to 3.
        pub components: u32 = 3,
        /// Interface of a pcapng file, from 0; all if absent.
        pub interface: Option<u32>,
    }
}

table! {
    /// Early drops or marks as a function of the queue length on arrival.
    pub struct Early("early drops or marks") {
        /// `drop`, or `mark`: marked packets enter the queue; the sources do not respond.
        pub action: Action = Action::Drop,
        /// Threshold of all sources: packets, or a fraction of the buffer.
        pub threshold: Option<Threshold>,
        /// Thresholds of single sources by name.
        pub thresholds: NameMap<Threshold>,
        /// Search for the smallest thresholds that meet a target loss, in place of given thresholds.
        pub adapt: Option<Adapt>,
    }
}

table! {
    /// Search grid of thresholds, as fractions of the buffer.
    pub struct Adapt("a search for thresholds") {
        /// Largest loss ratio of each source.
        pub loss: f64 = 0.01,
        /// Lowest threshold.
        pub lowest: f64 = 0.25,
        /// Highest threshold.
        pub highest: f64 = 0.95,
        /// Step of the grid.
        pub step: f64 = 0.01,
    }
}

table! {
    /// Admission for a given loss.
    pub struct Admit("an admission problem") {
        /// `load`: largest common factor on the rates of all sources; `threshold`: smallest threshold of early drops,
        /// common to all sources.
        pub find: Find,
        /// Largest loss ratio of each source.
        pub loss: f64,
    }
}

table! {
    /// The packet simulation.
    pub struct Simulate("a simulation") {
        /// Duration of one run after its warm-up.
        pub duration: Span = Span::from_secs(1000),
        /// Warm-up, which is not measured.
        pub warmup: Span = Span::from_secs(50),
        /// Number of independent runs, with seeds 1, 2, ...
        pub seeds: u32 = 20,
    }
}

impl Default for Simulate {
    fn default() -> Self {
        Simulate { duration: Span::from_secs(1000), warmup: Span::from_secs(50), seeds: 20 }
    }
}

/// Packets per second, 0 included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketRate(pub f64);

/// Highest packet rate.
const PACKET_RATE_MAX: f64 = 1e12;

impl Field for PacketRate {
    const WHAT: &'static str = "a packet rate, such as \"975pkt/s\"";
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let rate = at.quantity(units::PACKET_RATE)?;
        if !(0.0..=PACKET_RATE_MAX).contains(&rate) {
            return Err(at.error("must be a packet rate of at least 0pkt/s, at most 1e6Mpkt/s"));
        }
        Ok(PacketRate(rate))
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(format!("{}pkt/s", self.0)))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "string", "format": "packet rate", "examples": ["975pkt/s"]})
    }
}

/// A threshold of the queue length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// In packets.
    Packets(f64),
    /// As a fraction of the buffer.
    Fraction(f64),
}

impl Threshold {
    /// The threshold in packets for this buffer.
    pub fn packets(&self, buffer: u32) -> f64 {
        match self {
            Threshold::Packets(packets) => *packets,
            Threshold::Fraction(share) => share * f64::from(buffer),
        }
    }
}

impl Field for Threshold {
    const WHAT: &'static str = "a threshold, such as \"15pkt\" or 0.75 of the buffer";
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        if let Value::Integer(_) | Value::Float(_) = at.node.value {
            let share = f64::read(at)?;
            if (0.0..=1.0).contains(&share) {
                return Ok(Threshold::Fraction(share));
            }
            return Err(at.error("as a share of the buffer it must be 0 to 1; packets are written \"15pkt\""));
        }
        let packets = at.quantity(units::PACKETS)?;
        if !(0.0..=1e9).contains(&packets) {
            return Err(at.error("must be at least 0pkt, such as \"15pkt\", or a share of the buffer, such as 0.75"));
        }
        Ok(Threshold::Packets(packets))
    }
    fn write(&self) -> Option<toml::Value> {
        Some(match self {
            Threshold::Packets(packets) => toml::Value::String(format!("{packets}pkt")),
            Threshold::Fraction(share) => toml::Value::Float(*share),
        })
    }
    fn schema() -> serde_json::Value {
        let packets = json!({"type": "string", "format": "packets", "examples": ["15pkt"]});
        json!({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, packets]})
    }
}

/// Declares an enumeration of names.
macro_rules! choice {
    ($(#[doc = $doc:literal])* $name:ident ($what:literal) { $( $(#[doc = $word_doc:literal])* $variant:ident = $word:literal, )* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $( $(#[doc = $word_doc])* $variant, )*
        }

        impl Field for $name {
            const WHAT: &'static str = $what;
            fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
                let names = [$($word),*];
                match String::read(at)?.as_str() {
                    $( $word => Ok($name::$variant), )*
                    other => Err(at.error(format!("no such choice{}", suggestion(other, names)))),
                }
            }
            fn write(&self) -> Option<toml::Value> {
                match self {
                    $( $name::$variant => $word.to_string().write(), )*
                }
            }
            fn schema() -> serde_json::Value {
                json!({"enum": [$($word),*]})
            }
        }
    };
}

pub(crate) use choice;

choice! {
    /// Predefined sources.
    Preset("a preset: \"paper16\" or \"paper8\"") {
        /// Video, multimedia, www and ftp with two states each: 16 states.
        Paper16 = "paper16",
        /// Video, multimedia, and www merged with ftp, two states each: 8 states.
        Paper8 = "paper8",
    }
}

choice! {
    /// Model of the minisources.
    MiniModel("\"exact\" or \"two-state\"") {
        /// Birth-death chain of the number of sources that are ON.
        Exact = "exact",
        /// Two states with the same moments.
        TwoState = "two-state",
    }
}

choice! {
    /// Quantity to find for a bound on loss.
    Find("\"load\" or \"threshold\"") {
        /// The largest load.
        Load = "load",
        /// The smallest threshold.
        Threshold = "threshold",
    }
}

choice! {
    /// Action of the threshold function on a packet.
    Action("\"drop\" or \"mark\"") {
        /// Drop.
        Drop = "drop",
        /// Mark.
        Mark = "mark",
    }
}

impl Spec {
    /// The model as TOML, which reads back as the same model; defaults are omitted.
    pub fn to_toml(&self) -> String {
        match self.write() {
            Some(toml::Value::Table(table)) => table.to_string(),
            _ => String::new(),
        }
    }
}

/// A model file that has been read.
#[derive(Clone, Debug)]
pub struct File {
    file: String,
    tree: Node,
    spec: Spec,
}

/// Largest buffer in packets, and most stages, minisources, sources and runs.
const BUFFER_MAX: u32 = 10_000_000;
const STAGES_MAX: u32 = 10_000;
const MINISOURCES_MAX: u32 = 4095;
const SOURCES_MAX: usize = 64;
const SEEDS_MAX: u32 = 10_000;

impl File {
    /// Reads the file at `path` with `overrides` (key and value).
    pub fn load(path: impl AsRef<Path>, overrides: &[(&str, &str)]) -> Result<File, Error> {
        let file = path.as_ref().display().to_string();
        let bytes = read_file(path.as_ref(), &file, "a model")?;
        File::parse_with(decode_utf8(&bytes, &file, "a model")?, &file, overrides)
    }

    /// Reads `text`; `file` is its name in messages, and trace files are relative to it.
    pub fn parse(text: &str, file: &str) -> Result<File, Error> {
        File::parse_with(text, file, &[])
    }

    /// Reads `text` with `overrides`.
    pub fn parse_with(text: &str, file: &str, overrides: &[(&str, &str)]) -> Result<File, Error> {
        let mut tree = Node::parse(text, file)?;
        for (key, value) in overrides {
            tree.set(key, value, file)?;
        }
        let spec = Spec::read(&Cursor { node: &tree, path: String::new() }).map_err(|error| error.in_file(file))?;
        check(&spec).map_err(|wrong| locate(&tree, file, wrong))?;
        Ok(File { file: file.into(), tree, spec })
    }

    /// The contents of the model.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// An error about the value at the dotted `key`.
    pub fn error(&self, key: &str, message: impl Into<String>) -> Error {
        locate(&self.tree, &self.file, (key.into(), message.into()))
    }

    /// Path of a trace, relative to the model file.
    pub fn trace_path(&self, trace: &Trace) -> PathBuf {
        Path::new(&self.file).parent().unwrap_or(Path::new("")).join(&trace.file)
    }

    /// The JSON Schema of a model file, as text that ends with a newline.
    pub fn json_schema() -> String {
        let mut schema = Spec::schema();
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = "Aqumen queueing model".into();
        let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.push('\n');
        text
    }
}

fn check(spec: &Spec) -> Result<(), (String, String)> {
    let wrong = |path: String, message: String| Err((path, message));
    let queue = &spec.queue;
    match queue.buffer {
        Buffer::Bytes(_) => return wrong("queue.buffer".into(), "must be in packets, such as \"20pkt\"".into()),
        Buffer::Packets(packets) if packets > BUFFER_MAX => {
            return wrong("queue.buffer".into(), format!("must be at most {BUFFER_MAX}pkt"));
        }
        Buffer::Packets(_) => {}
    }
    let traced = spec.sources.iter().any(|source| source.trace.is_some());
    match (queue.service, queue.link, queue.packet) {
        (Some(PacketRate(0.0)), ..) => return wrong("queue.service".into(), "must be above 0pkt/s".into()),
        (None, None, _) => {
            let message =
                "service is missing; write service = \"975pkt/s\", or link = \"10Mbit\" with packet = \"1282B\"";
            return wrong("queue".into(), message.into());
        }
        (Some(_), Some(_), _) => return wrong("queue.link".into(), "give service or link, not both".into()),
        (Some(_), None, Some(_)) => return wrong("queue.packet".into(), "belongs to link".into()),
        (None, Some(_), None) if !traced => {
            return wrong("queue".into(), "packet is missing; link needs it, such as packet = \"1282B\"".into());
        }
        _ => {}
    }
    if let Some(stages) = queue.stages
        && !(1..=STAGES_MAX).contains(&stages)
    {
        return wrong("queue.stages".into(), format!("must be 1 to {STAGES_MAX}"));
    }
    if spec.sources.is_empty() && spec.preset.is_none() {
        return wrong("sources".into(), "a model needs a source, or preset = \"paper16\"".into());
    }
    if spec.sources.len() > SOURCES_MAX {
        return wrong("sources".into(), format!("{} sources; at most {SOURCES_MAX}", spec.sources.len()));
    }
    let mut names: Vec<&str> = spec.preset.map_or(&[][..], Preset::names).to_vec();
    for (i, source) in spec.sources.iter().enumerate() {
        let at = format!("sources.{i}");
        if names.contains(&source.name.0.as_str()) {
            return wrong(format!("{at}.name"), "there is another source of this name".into());
        }
        names.push(&source.name.0);
        check_source(source)
            .map_err(|(key, message)| (if key.is_empty() { at.clone() } else { format!("{at}.{key}") }, message))?;
    }
    if let Some(early) = &spec.early {
        check_early(early, &names).map_err(|(key, message)| (format!("early{key}"), message))?;
    }
    if let Some(admit) = &spec.admit {
        if !(admit.loss > 0.0 && admit.loss < 1.0) {
            return wrong("admit.loss".into(), "must be above 0 and below 1, such as 0.01".into());
        }
        if admit.find == Find::Threshold && spec.early.is_some() {
            return wrong("admit.find".into(), "excludes early".into());
        }
        if spec.early.as_ref().is_some_and(|early| early.adapt.is_some()) {
            return wrong("admit".into(), "give admit or early.adapt, not both".into());
        }
    }
    let simulate = &spec.simulate;
    if simulate.duration == Span::ZERO {
        return wrong("simulate.duration".into(), "must be above 0s, such as \"1000s\"".into());
    }
    if !(2..=SEEDS_MAX).contains(&simulate.seeds) {
        let message = format!("must be 2 to {SEEDS_MAX}: one run has no confidence interval");
        return wrong("simulate.seeds".into(), message);
    }
    Ok(())
}

fn check_source(source: &Source) -> Result<(), (&'static str, String)> {
    let kinds = [
        source.rate.is_some(),
        !source.rates.is_empty() || !source.generator.is_empty(),
        source.minisources.is_some(),
        source.trace.is_some(),
    ];
    if kinds.iter().filter(|given| **given).count() != 1 {
        return Err(("", "must have one of rate, rates with generator, minisources and trace".into()));
    }
    if source.rates.is_empty() != source.generator.is_empty() {
        return Err(("", "rates and generator belong together".into()));
    }
    if let Some(mini) = &source.minisources {
        if !(1..=MINISOURCES_MAX).contains(&mini.count) {
            return Err(("minisources.count", format!("must be 1 to {MINISOURCES_MAX}")));
        }
        for (key, time) in [("minisources.on", mini.on), ("minisources.off", mini.off)] {
            if time == Span::ZERO {
                return Err((key, "must be above 0s".into()));
            }
        }
    }
    if let Some(trace) = &source.trace
        && !(1..=3).contains(&trace.components)
    {
        return Err(("trace.components", "must be 1 to 3".into()));
    }
    Ok(())
}

fn check_early(early: &Early, names: &[&str]) -> Result<(), (String, String)> {
    for (name, _) in &early.thresholds.0 {
        if !names.contains(&name.as_str()) {
            let known = suggestion(name, names.iter().copied());
            return Err((format!(".thresholds.{name}"), format!("no such source{known}")));
        }
    }
    let given = early.threshold.is_some() || !early.thresholds.0.is_empty();
    match &early.adapt {
        None if !given => Err((String::new(), "threshold is missing; give threshold, thresholds or adapt".into())),
        Some(_) if given => Err((".adapt".into(), "give thresholds or adapt, not both".into())),
        Some(_) if early.action == Action::Mark => {
            Err((".adapt".into(), "adapt needs action = \"drop\"; marks do not change losses".into()))
        }
        Some(adapt) => {
            let ordered = 0.0 <= adapt.lowest && adapt.lowest <= adapt.highest && adapt.highest <= 1.0;
            if !ordered {
                return Err((".adapt".into(), "must have 0 <= lowest <= highest <= 1".into()));
            }
            if adapt.step < 1e-4 {
                return Err((".adapt.step".into(), "must be at least 0.0001".into()));
            }
            if !(0.0..1.0).contains(&adapt.loss) {
                return Err((".adapt.loss".into(), "must be at least 0, below 1".into()));
            }
            Ok(())
        }
        None => Ok(()),
    }
}
