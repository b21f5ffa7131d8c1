//! The table of each kind of traffic: its parameters, and what they must be.

use aqumen_units::{Bytes, Rate, Span};
use serde_json::json;

use super::files::{FrameFile, ModelFile, Part};
use crate::error::{Fault, suggestion};
use crate::field::{At, Field, Misfit, Name, table};
use crate::law::{Count, Law, Size, Time};
use crate::mmpp::{self, Chain, Minisources, PacketRate, Preset, choice};
use crate::units::{self, show_span};

table! {
    /// Finite transfers. New ones come at random moments, whatever has become of the others (`rate` or `load`: open
    /// loop), or each flow asks for its next one a time after the last was delivered (`think`: closed loop).
    pub struct Transfers("transfers") {
        /// Bytes of a transfer.
        pub size: Size,
        /// Transfers per second that the group begins, as a Poisson process; one that finds no idle flow is refused.
        pub rate: Option<PerSecond>,
        /// In place of rate: the mean of what the group asks for, headers not counted.
        pub load: Option<Rate>,
        /// Time from the end of a transfer to the begin of the flow's next one.
        pub think: Option<Time>,
        /// Whether each transfer opens a connection; else those of a flow follow one another on one.
        pub new_connection: bool = true,
    }
}

table! {
    /// A web session: pages of a main object and the embedded objects that it names, one after another or over several
    /// connections at a time, with time to read between them. Defaults are those of the IEEE 802.16m evaluation
    /// methodology.
    pub struct Web("a web session") {
        /// Pages of the session; without end if absent.
        pub pages: Option<u32>,
        /// Bytes of the main object.
        pub main: Size = Size(Law::Lognormal { mean: 10_710.0, std: 25_032.0, min: 100.0, max: Some(2e6) }),
        /// Number of embedded objects, rounded to whole ones.
        pub objects: Count = Count(Law::Pareto { mean: 5.64, shape: 1.1, max: Some(53.0) }),
        /// Bytes of an embedded object.
        pub embedded: Size = Size(Law::Lognormal { mean: 7758.0, std: 126_168.0, min: 50.0, max: Some(2e6) }),
        /// Time from the main object to the request for the first embedded one.
        pub parsing: Time = Time(Law::Exponential { mean: 130e6 }),
        /// Time from one page to the next.
        pub reading: Time = Time(Law::Exponential { mean: 30e9 }),
        /// What has a connection of its own: `object`, `page` or `session`.
        pub connection: Connection = Connection::Page,
        /// Objects of a page that are under way at a time, each on a connection: 1 to 64. Browsers of today use up
        /// to 6.
        pub connections: u32 = 1,
    }
}

choice! {
    /// What has a connection of its own.
    Connection("\"object\", \"page\" or \"session\"") {
        /// Each object, as in HTTP/1.0.
        Object = "object",
        /// Each page.
        Page = "page",
        /// The whole session.
        Session = "session",
    }
}

table! {
    /// Constant bit rate.
    pub struct Cbr("a constant rate") {
        /// The rate, headers not counted.
        pub rate: Rate,
        /// Bytes of a packet, headers not counted.
        pub packet: Bytes = Bytes(1000),
    }
}

table! {
    /// Packets at the moments of a Poisson process.
    pub struct Poisson("a Poisson process") {
        /// Packets per second.
        pub rate: PacketRate,
        /// Bytes of a packet, headers not counted; more than fit into a datagram are cut.
        pub packet: Size = Size(Law::Fixed(1000.0)),
    }
}

table! {
    /// ON/OFF: a constant rate in periods ON.
    pub struct OnOff("an ON/OFF source") {
        /// The rate while it is ON, headers not counted.
        pub rate: Rate,
        /// Bytes of a packet, headers not counted.
        pub packet: Bytes = Bytes(1000),
        /// How long it is ON.
        pub on: Time,
        /// How long it is OFF.
        pub off: Time,
        /// How it begins: `stationary`, as if it had always been running, or `off`, with a whole period OFF, as in
        /// ns-2.
        pub begin: Begin = Begin::Stationary,
    }
}

choice! {
    /// How an ON/OFF source begins.
    Begin("\"stationary\" or \"off\"") {
        /// In the middle of a period, as if it had always been running.
        Stationary = "stationary",
        /// With a whole period OFF; then the first packet goes at once.
        Off = "off",
    }
}

table! {
    /// Many ON/OFF sources in one flow, whose times have so heavy tails that their sum is self-similar: long-range
    /// dependent with the given Hurst parameter.
    pub struct SelfSimilar("a self-similar source") {
        /// Mean rate of all together, headers not counted.
        pub rate: Rate,
        /// Bytes of a packet, headers not counted.
        pub packet: Bytes = Bytes(1000),
        /// Hurst parameter H, above 0.5, below 1: times ON and OFF are Pareto of shape 3 - 2 H.
        pub hurst: f64 = 0.8,
        /// Number of ON/OFF sources.
        pub sources: u32 = 50,
        /// Mean time ON of one.
        pub on: Span = Span::from_millis(200),
        /// Mean time OFF of one.
        pub off: Span = Span::from_millis(400),
        /// How each begins: `stationary`, as if it had always been running, or `off`, with a whole period OFF, as in
        /// ns-2.
        pub begin: Begin = Begin::Stationary,
    }
}

table! {
    /// Voice: a frame each so many milliseconds while somebody talks.
    pub struct Voip("voice") {
        /// The codec: `g711`, `g722`, `g726` (32 kbit/s), `g729`, `g723` (6.3 kbit/s), `gsm`, `ilbc` (15.2 kbit/s).
        pub codec: Codec = Codec::G711,
        /// How long a talk spurt lasts.
        pub talk: Time = Time(Law::Exponential { mean: 1004e6 }),
        /// How long a silence lasts.
        pub silence: Time = Time(Law::Exponential { mean: 1587e6 }),
        /// Whether silence is suppressed; else a frame is sent in any case.
        pub suppress: bool = true,
    }
}

choice! {
    /// Codecs of voice.
    Codec("a codec, such as \"g711\"") {
        /// 64 kbit/s: 160 B each 20 ms.
        G711 = "g711",
        /// 64 kbit/s: 160 B each 20 ms.
        G722 = "g722",
        /// 32 kbit/s: 80 B each 20 ms.
        G726 = "g726",
        /// 8 kbit/s: two frames of 10 B each 20 ms.
        G729 = "g729",
        /// 6.3 kbit/s: 24 B each 30 ms.
        G723 = "g723",
        /// 13 kbit/s: 33 B each 20 ms.
        Gsm = "gsm",
        /// 15.2 kbit/s: 38 B each 20 ms.
        Ilbc = "ilbc",
    }
}

impl Codec {
    /// Bytes of a packet's frames, and the time that they cover. RFC 3551 section 4.5, RFC 3951 section 3.
    pub fn frame(self) -> (u32, Span) {
        let (bytes, millis) = match self {
            Codec::G711 | Codec::G722 => (160, 20),
            Codec::G726 => (80, 20),
            Codec::G729 => (20, 20),
            Codec::G723 => (24, 30),
            Codec::Gsm => (33, 20),
            Codec::Ilbc => (38, 20),
        };
        (bytes, Span::from_millis(millis))
    }
}

table! {
    /// A Markov-modulated Poisson process, the same as in the queueing analysis. One of `preset`, `model`, `rates` with
    /// `generator`, and `minisources` says which.
    pub struct Mmpp("a Markov-modulated Poisson process") {
        /// Sources that need not be written: `paper16` or `paper8`, those of the AAQM paper.
        pub preset: Option<Preset>,
        /// A model file of `aqumen mmpp`, relative to the scenario's file.
        pub model: Option<ModelFile>,
        /// The one source of the preset or model that the flow sends; all together if absent.
        pub source: Option<Name>,
        /// The rate in each state.
        pub rates: Vec<PacketRate>,
        /// Its transitions between the states per second, one row for each state, each with sum 0.
        pub generator: Vec<Vec<f64>>,
        /// Many equal ON/OFF sources.
        pub minisources: Option<Minisources>,
        /// Bytes of a packet, headers not counted; more than fit into a datagram are cut.
        pub packet: Size = Size(Law::Fixed(1000.0)),
    }
}

table! {
    /// Video: frames of the sizes in a trace; without one, frames of random sizes.
    pub struct Video("video") {
        /// The trace, relative to the scenario's file; random sizes (Weibull) if absent.
        pub file: Option<FrameFile>,
        /// Frames per second; those of the times in the trace if absent, 30 without a trace.
        pub fps: Option<f64>,
        /// Mean rate to which the frames are scaled; that of the trace if absent, 4Mbit without one.
        pub rate: Option<Rate>,
        /// Whether the trace begins anew at its end; else each frame is sent once.
        pub repeat: bool = true,
        /// Whether each flow begins at a random frame; else at the first.
        pub random_start: bool = true,
    }
}

table! {
    /// A film that is watched while it is fetched, one segment after another, each at the bit rate that those before it
    /// suggest.
    pub struct AdaptiveVideo("a film in segments") {
        /// The bit rates that there are, rising. The default is a ladder of Netflix.
        pub ladder: Vec<Rate> = LADDER_KBPS.map(|kbps| Rate::from_bps(kbps * 1000)).to_vec(),
        /// How much of the film a segment holds.
        pub segment: Span = Span::from_secs(4),
        /// How much of the film is fetched ahead at most.
        pub buffer: Span = Span::from_secs(30),
        /// How much of it must be there for the picture to begin, and to go on after a stall.
        pub play_at: Span = Span::from_secs(4),
        /// The last so many segments tell the rate: the harmonic mean of theirs.
        pub memory: u32 = 5,
        /// What share of that rate a bit rate may take: above 0, at most 1.
        pub share: f64 = 0.8,
        /// Length of the film, in whole segments; without end if absent.
        pub length: Option<Span>,
    }
}

/// Bit rates of films, kbit/s: A. Aaron, Z. Li, M. Manohara, J. De Cock, D. Ronca, "Per-title encode
/// optimization", 2015.
const LADDER_KBPS: [u64; 10] = [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800];

/// Events per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSecond(pub f64);

/// Largest packet of an application: what fits into one datagram.
pub const PACKET_BYTES_MAX: u64 = 65_507;

/// Most packets, transfers or changes of state of one source per second.
const PER_SECOND_MAX: f64 = 1e9;

/// Most periods ON that one packet may stretch over, on average.
const PERIODS_PER_PACKET_MAX: f64 = 1000.0;

/// Most changes of state between two packets, on average.
const CHANGES_PER_PACKET_MAX: f64 = 1e4;

const SOURCES_MAX: u32 = 10_000;
const CONNECTIONS_MAX: u32 = 64;
const FPS_MAX: f64 = 1000.0;
const RUNGS_MAX: usize = 100;
const MEMORY_MAX: u32 = 1000;

/// Largest mean size of a random frame: single ones may be 50 times as large.
const FRAME_BYTES_MEAN_MAX: f64 = 1e7;

impl Field for PerSecond {
    const WHAT: &'static str = "a number per second, such as \"20/s\"";
    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        let rate = at.quantity(units::FREQUENCY)?;
        if rate > 0.0 && rate <= PER_SECOND_MAX {
            return Ok(PerSecond(rate));
        }
        Err(at.misfit("must be above 0/s, at most 1e9/s, such as \"20/s\""))
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(format!("{}/s", self.0)))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "string", "format": "per second", "examples": ["20/s"]})
    }
}

impl Transfers {
    pub(super) fn check(&self) -> Result<(), Fault> {
        let given = [self.rate.is_some(), self.load.is_some(), self.think.is_some()];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err(("", "must have one of rate, load and think".into()));
        }
        positive("size", &self.size.0)?;
        if self.per_second().is_some_and(|rate| rate > PER_SECOND_MAX) {
            return Err(("load", "gives more than 1e9 transfers per second".into()));
        }
        Ok(())
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        let think = self.think.iter_mut().map(|think| ("think", Part::Time(think)));
        std::iter::once(("size", Part::Size(&mut self.size))).chain(think).collect()
    }

    /// Transfers per second of the group, in an open loop.
    pub fn per_second(&self) -> Option<f64> {
        let of_load = |load: Rate| load.as_bps() as f64 / (8.0 * self.size.0.mean());
        self.rate.map(|PerSecond(rate)| rate).or_else(|| self.load.map(of_load))
    }
}

impl Web {
    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.pages == Some(0) {
            return Err(("pages", "must be at least 1".into()));
        }
        if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            return Err(("connections", format!("must be 1 to {CONNECTIONS_MAX}")));
        }
        positive("main", &self.main.0)?;
        positive("embedded", &self.embedded.0)
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        vec![
            ("main", Part::Size(&mut self.main)),
            ("objects", Part::Count(&mut self.objects)),
            ("embedded", Part::Size(&mut self.embedded)),
            ("parsing", Part::Time(&mut self.parsing)),
            ("reading", Part::Time(&mut self.reading)),
        ]
    }
}

impl Cbr {
    pub(super) fn check(&self) -> Result<(), Fault> {
        packet_rate("rate", self.rate, self.packet)
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        Vec::new()
    }
}

impl Poisson {
    pub(super) fn check(&self) -> Result<(), Fault> {
        if !(self.rate.0 > 0.0 && self.rate.0 <= PER_SECOND_MAX) {
            return Err(("rate", "must be above 0pkt/s, at most 1000Mpkt/s".into()));
        }
        packet_size(&self.packet)
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        vec![("packet", Part::Size(&mut self.packet))]
    }
}

impl OnOff {
    pub(super) fn check(&self) -> Result<(), Fault> {
        packet_rate("rate", self.rate, self.packet)?;
        positive("on", &self.on.0)?;
        on_time(self.on.0.mean(), self.rate.packets_per_sec(self.packet))
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        vec![("on", Part::Time(&mut self.on)), ("off", Part::Time(&mut self.off))]
    }
}

impl SelfSimilar {
    pub(super) fn check(&self) -> Result<(), Fault> {
        if !(self.hurst > 0.5 && self.hurst < 1.0) {
            return Err(("hurst", "must be above 0.5, below 1".into()));
        }
        if !(1..=SOURCES_MAX).contains(&self.sources) {
            return Err(("sources", format!("must be 1 to {SOURCES_MAX}")));
        }
        packet_rate("rate", self.rate, self.packet)?;
        if self.off == Span::ZERO {
            return Err(("off", "must be above 0s".into()));
        }
        on_time(self.on.as_nanos() as f64, self.on_packets_per_s())
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        Vec::new()
    }

    /// Packets per second of one source while it is ON.
    pub fn on_packets_per_s(&self) -> f64 {
        let share = self.on.as_secs_f64() / (self.on.as_secs_f64() + self.off.as_secs_f64());
        self.rate.packets_per_sec(self.packet) / (f64::from(self.sources) * share)
    }

    /// Shape of the times: alpha = 3 - 2 H (Taqqu, Willinger, Sherman 1997, theorem 1).
    pub fn shape(&self) -> f64 {
        3.0 - 2.0 * self.hurst
    }
}

impl Voip {
    pub(super) fn check(&self) -> Result<(), Fault> {
        positive("talk", &self.talk.0)?;
        let (_, frame) = self.codec.frame();
        if self.talk.0.mean() < frame.as_nanos() as f64 / PERIODS_PER_PACKET_MAX {
            return Err(("talk", "must have a mean of at least a thousandth of a frame".into()));
        }
        Ok(())
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        vec![("talk", Part::Time(&mut self.talk)), ("silence", Part::Time(&mut self.silence))]
    }
}

impl Mmpp {
    pub(super) fn check(&self) -> Result<(), Fault> {
        let inline = !self.rates.is_empty() || !self.generator.is_empty();
        let given = [self.preset.is_some(), self.model.is_some(), inline, self.minisources.is_some()];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err(("", "must have one of preset, model, rates with generator, and minisources".into()));
        }
        packet_size(&self.packet)?;
        let chains = self.chains()?;
        if let (Some(Name(name)), true) = (&self.source, self.preset.is_none() && self.model.is_none()) {
            return Err(("source", format!("{name} belongs to a preset or a model")));
        }
        for chain in chains {
            let (packets, changes) = chain.per_second();
            if packets <= 0.0 {
                return Err(("", "a source never sends: all its rates are 0".into()));
            }
            if packets.max(changes) > PER_SECOND_MAX || changes > CHANGES_PER_PACKET_MAX * packets {
                return Err(("", "at most 1e9 packets per second, and 10000 changes of state for a packet".into()));
            }
        }
        Ok(())
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        let model = self.model.iter_mut().map(|model| ("model", Part::Model(model)));
        std::iter::once(("packet", Part::Size(&mut self.packet))).chain(model).collect()
    }

    /// The sources that the flow sends, independent of one another.
    pub fn chains(&self) -> Result<Vec<Chain>, Fault> {
        if let Some(minisources) = &self.minisources {
            mmpp::check_minisources(minisources)?;
            return Ok(vec![Chain::Minisources(minisources.clone())]);
        }
        let mut sources = match (self.preset, &self.model) {
            (Some(preset), _) => preset.sources(),
            (None, Some(model)) => model.sources.to_vec(),
            (None, None) => {
                let rates: Vec<f64> = self.rates.iter().map(|rate| rate.0).collect();
                return Ok(vec![Chain::states(rates, self.generator.clone())?]);
            }
        };
        if let Some(Name(name)) = &self.source {
            if sources.iter().all(|source| source.name.0 != *name) {
                let known = suggestion(name, sources.iter().map(|source| source.name.0.as_str()));
                return Err(("source", format!("no such source{known}")));
            }
            sources.retain(|source| source.name.0 == *name);
        }
        let of_source = |source: &mmpp::Source| {
            source.chain().map_err(|(key, message)| ("model", format!("{}: {key}: {message}", source.name.0)))
        };
        sources.iter().map(of_source).collect()
    }
}

impl Video {
    pub(super) fn check(&self) -> Result<(), Fault> {
        match self.fps {
            Some(fps) if !(fps > 0.0 && fps <= FPS_MAX) => {
                return Err(("fps", format!("must be above 0, at most {FPS_MAX}")));
            }
            None if self.file.as_ref().is_some_and(|file| !file.trace.timed()) => {
                return Err(("fps", "missing; this trace has no times, so say how many frames per second".into()));
            }
            _ => {}
        }
        let of_a_trace = [("repeat", self.repeat), ("random_start", self.random_start)];
        match of_a_trace.into_iter().find(|(_, default)| self.file.is_none() && !default) {
            Some((key, _)) => Err((key, "belongs to a file; random frames have no beginning and no end".into())),
            None if self.file.is_none()
                && self.rate_of_law().as_bps() as f64 > FRAME_BYTES_MEAN_MAX * 8.0 * self.fps_of_law() =>
            {
                Err(("rate", format!("gives frames of more than {FRAME_BYTES_MEAN_MAX} bytes on average")))
            }
            None => Ok(()),
        }
    }

    /// Mean rate without a trace.
    pub fn rate_of_law(&self) -> Rate {
        self.rate.unwrap_or(Rate::from_bps(4_000_000))
    }

    /// Frames per second without a trace.
    pub fn fps_of_law(&self) -> f64 {
        self.fps.unwrap_or(30.0)
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        self.file.iter_mut().map(|file| ("file", Part::Frames(file))).collect()
    }
}

impl AdaptiveVideo {
    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.ladder.is_empty() || !self.ladder.is_sorted_by(|low, high| low < high) {
            return Err(("ladder", "must have one bit rate or more, each above the one before".into()));
        }
        if self.ladder.len() > RUNGS_MAX {
            return Err(("ladder", format!("must have at most {RUNGS_MAX} bit rates")));
        }
        let segments_max = self.buffer.as_nanos() / self.segment.as_nanos().max(1);
        if self.segment == Span::ZERO || segments_max == 0 {
            return Err(("segment", format!("must be above 0s, at most the buffer, {}", show_span(self.buffer))));
        }
        let whole = self.segment * segments_max;
        if self.play_at > whole {
            return Err(("play_at", format!("must be at most {}, the whole segments in the buffer", show_span(whole))));
        }
        if !(1..=MEMORY_MAX).contains(&self.memory) {
            return Err(("memory", format!("must be 1 to {MEMORY_MAX}")));
        }
        if !(self.share > 0.0 && self.share <= 1.0) {
            return Err(("share", "must be above 0, at most 1".into()));
        }
        if self.length == Some(Span::ZERO) {
            return Err(("length", "must be above 0s".into()));
        }
        Ok(())
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        Vec::new()
    }

    /// How many segments the film has; `None`: without end.
    pub fn segments(&self) -> Option<u64> {
        self.length.map(|length| length.as_nanos().div_ceil(self.segment.as_nanos()))
    }

    /// Bytes of a segment at a bit rate, at least 1.
    pub fn segment_bytes(&self, rate: Rate) -> u64 {
        let bits = u128::from(rate.as_bps()) * u128::from(self.segment.as_nanos()) / 1_000_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX).max(1)
    }
}

fn packet_rate(key: &'static str, rate: Rate, packet: Bytes) -> Result<(), Fault> {
    if packet.0 > PACKET_BYTES_MAX {
        return Err(("packet", format!("must be at most {PACKET_BYTES_MAX}B, what fits into a datagram")));
    }
    if rate.packets_per_sec(packet) > PER_SECOND_MAX {
        return Err((key, "gives more than 1e9 packets per second".into()));
    }
    Ok(())
}

fn packet_size(packet: &Size) -> Result<(), Fault> {
    positive("packet", &packet.0)?;
    if packet.0.mean() > PACKET_BYTES_MAX as f64 {
        return Err(("packet", format!("must have a mean of at most {PACKET_BYTES_MAX}B, what fits into a datagram")));
    }
    Ok(())
}

/// Periods ON much shorter than a packet would be drawn by the thousand for each.
fn on_time(mean_ns: f64, packets_per_s: f64) -> Result<(), Fault> {
    if mean_ns < 1e9 / packets_per_s / PERIODS_PER_PACKET_MAX {
        return Err(("on", "must have a mean of at least a thousandth of the time that a packet takes".into()));
    }
    Ok(())
}

fn positive(key: &'static str, law: &Law) -> Result<(), Fault> {
    if law.mean() > 0.0 { Ok(()) } else { Err((key, "must have a mean above 0".into())) }
}
