//! Tables of the kinds of traffic: parameters and their checks.

use aqumen_units::{Bytes, Rate, Span};
use serde_json::json;

use super::files::{FrameFile, ModelFile, Part};
use crate::error::{KeyError, suggestion};
use crate::field::{Cursor, Field, Name, ValueError, table};
use crate::law::{Count, Law, Size, Time};
use crate::mmpp::{self, MarkovSource, Minisources, PacketRate, Preset, choice};
use crate::units::{self, show_span};

table! {
    /// Finite transfers. They arrive at random times, independent of each other (`rate` or `load`: open loop), or each
    /// flow starts its next transfer a think time after the last was delivered (`think`: closed loop).
    pub struct Transfers("transfers") {
        /// Bytes of a transfer.
        pub size: Size,
        /// Transfers per second of the group, as a Poisson process; a transfer that finds no idle flow is refused.
        pub rate: Option<PerSecond>,
        /// Mean offered load in place of a rate, without headers.
        pub load: Option<Rate>,
        /// Think time from the end of a transfer to the start of the flow's next one.
        pub think: Option<Time>,
        /// Whether each transfer opens a connection; otherwise the transfers of a flow share one connection.
        pub new_connection: bool = true,
    }
}

table! {
    /// A web session: pages with a main object and embedded objects, fetched one after another or over several parallel
    /// connections, with reading times between pages. Defaults are those of the IEEE 802.16m evaluation methodology.
    pub struct Web("a web session") {
        /// Pages of the session; unlimited if absent.
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
        /// Extent of a connection: `object`, `page` or `session`.
        pub connection: Connection = Connection::Page,
        /// Parallel objects of a page, each on a connection: 1 to 64. Today's browsers use up to 6.
        pub connections: u32 = 1,
    }
}

choice! {
    /// Extent of a connection.
    Connection("\"object\", \"page\" or \"session\"") {
        /// One object, as in HTTP/1.0.
        Object = "object",
        /// One page.
        Page = "page",
        /// The whole session.
        Session = "session",
    }
}

table! {
    /// Constant bit rate.
    pub struct Cbr("a constant rate") {
        /// Rate without headers.
        pub rate: Rate,
        /// Bytes of a packet, without headers.
        pub packet: Bytes = Bytes(1000),
    }
}

table! {
    /// Packets of a Poisson process.
    pub struct Poisson("a Poisson process") {
        /// Packets per second.
        pub rate: PacketRate,
        /// Bytes of a packet, without headers; truncated to a datagram.
        pub packet: Size = Size(Law::Fixed(1000.0)),
    }
}

table! {
    /// ON/OFF: a constant rate in ON periods.
    pub struct OnOff("an ON/OFF source") {
        /// Rate while ON, without headers.
        pub rate: Rate,
        /// Bytes of a packet, without headers.
        pub packet: Bytes = Bytes(1000),
        /// Duration of an ON period.
        pub on: Time,
        /// Duration of an OFF period.
        pub off: Time,
        /// Initial state: `stationary`, or `off`: a whole OFF period first, as in ns-2.
        pub begin: Begin = Begin::Stationary,
    }
}

choice! {
    /// Initial state of an ON/OFF source.
    Begin("\"stationary\" or \"off\"") {
        /// Stationary: in the middle of a period.
        Stationary = "stationary",
        /// A whole OFF period; then the first packet is sent at once.
        Off = "off",
    }
}

table! {
    /// Many ON/OFF sources in one flow, whose periods have heavy tails, so that their sum is self-similar: long-range
    /// dependent with the given Hurst parameter.
    pub struct SelfSimilar("a self-similar source") {
        /// Mean rate of the sum, without headers.
        pub rate: Rate,
        /// Bytes of a packet, without headers.
        pub packet: Bytes = Bytes(1000),
        /// Hurst parameter H, above 0.5, below 1: ON and OFF periods are Pareto of shape 3 - 2 H.
        pub hurst: f64 = 0.8,
        /// Number of ON/OFF sources.
        pub sources: u32 = 50,
        /// Mean ON period of one source.
        pub on: Span = Span::from_millis(200),
        /// Mean OFF period of one source.
        pub off: Span = Span::from_millis(400),
        /// Initial state of each source: `stationary`, or `off`: a whole OFF period first, as in ns-2.
        pub begin: Begin = Begin::Stationary,
    }
}

table! {
    /// Voice: frames at regular intervals during talk spurts.
    pub struct Voip("voice") {
        /// The codec: `g711`, `g722`, `g726` (32 kbit/s), `g729`, `g723` (6.3 kbit/s), `gsm`, `ilbc` (15.2 kbit/s).
        pub codec: Codec = Codec::G711,
        /// Duration of a talk spurt.
        pub talk: Time = Time(Law::Exponential { mean: 1004e6 }),
        /// Duration of a silence.
        pub silence: Time = Time(Law::Exponential { mean: 1587e6 }),
        /// Whether silence is suppressed; otherwise frames are sent all the time.
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
    /// A Markov-modulated Poisson process, as in the queueing analysis: one of `preset`, `model`, `rates` with
    /// `generator`, and `minisources`.
    pub struct Mmpp("a Markov-modulated Poisson process") {
        /// Predefined sources: `paper16` or `paper8`, those of the AAQM paper.
        pub preset: Option<Preset>,
        /// A model file of `aqumen mmpp`, relative to the scenario's file.
        pub model: Option<ModelFile>,
        /// Name of a single source of the preset or model; all together if absent.
        pub source: Option<Name>,
        /// The rate in each state.
        pub rates: Vec<PacketRate>,
        /// Generator matrix, per second: one row for each state, with sum 0.
        pub generator: Vec<Vec<f64>>,
        /// Superposition of equal ON/OFF sources.
        pub minisources: Option<Minisources>,
        /// Bytes of a packet, without headers; truncated to a datagram.
        pub packet: Size = Size(Law::Fixed(1000.0)),
    }
}

table! {
    /// Video frames of the sizes in a trace; without one, of random sizes.
    pub struct Video("video") {
        /// Trace file, relative to the scenario's file; random sizes (Weibull) if absent.
        pub file: Option<FrameFile>,
        /// Frames per second; from the times of the trace if absent, 30 without a trace.
        pub fps: Option<f64>,
        /// Mean rate to which the frames are scaled; that of the trace if absent, 4Mbit without one.
        pub rate: Option<Rate>,
        /// Whether the trace repeats; otherwise each frame is sent once.
        pub repeat: bool = true,
        /// Whether each flow starts at a random frame, or at the first.
        pub random_start: bool = true,
    }
}

table! {
    /// Adaptive video: segments that are downloaded during playback, each at a bit rate derived from the throughput of
    /// the previous ones.
    pub struct AdaptiveVideo("adaptive video") {
        /// Available bit rates, ascending. The default is a ladder of Netflix.
        pub ladder: Vec<Rate> = LADDER_KBPS.map(|kbps| Rate::from_bps(kbps * 1000)).to_vec(),
        /// Playback time of a segment.
        pub segment: Span = Span::from_secs(4),
        /// Largest playback buffer.
        pub buffer: Span = Span::from_secs(30),
        /// Playback buffer at which playback starts, also after a stall.
        pub play_at: Span = Span::from_secs(4),
        /// Number of past segments in the throughput estimate, their harmonic mean.
        pub memory: u32 = 5,
        /// Fraction of the estimate that the bit rate may use: above 0, at most 1.
        pub share: f64 = 0.8,
        /// Length of the video, in whole segments; unlimited if absent.
        pub length: Option<Span>,
    }
}

/// Bit rates of video, kbit/s: A. Aaron, Z. Li, M. Manohara, J. De Cock, D. Ronca, "Per-title encode optimization",
/// 2015.
const LADDER_KBPS: [u64; 10] = [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800];

/// Events per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSecond(pub f64);

/// Largest packet of an application, which fits into one datagram.
pub const PACKET_BYTES_MAX: u64 = 65_507;

/// Most packets, transfers or state changes of one source per second.
const PER_SECOND_MAX: f64 = 1e9;

/// Most ON periods per packet, on average.
const PERIODS_PER_PACKET_MAX: f64 = 1000.0;

/// Most state changes per packet, on average.
const CHANGES_PER_PACKET_MAX: f64 = 1e4;

const SOURCES_MAX: u32 = 10_000;
const CONNECTIONS_MAX: u32 = 64;
const FPS_MAX: f64 = 1000.0;
const RUNGS_MAX: usize = 100;
const MEMORY_MAX: u32 = 1000;

/// Largest mean size of a random frame: single frames may be 50 times as large.
const FRAME_BYTES_MEAN_MAX: f64 = 1e7;

impl Field for PerSecond {
    const WHAT: &'static str = "a number per second, such as \"20/s\"";
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let rate = at.quantity(units::FREQUENCY)?;
        if rate > 0.0 && rate <= PER_SECOND_MAX {
            return Ok(PerSecond(rate));
        }
        Err(at.error("must be above 0/s, at most 1e9/s, such as \"20/s\""))
    }
    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(format!("{}/s", self.0)))
    }
    fn schema() -> serde_json::Value {
        json!({"type": "string", "format": "per second", "examples": ["20/s"]})
    }
}

impl Transfers {
    pub(super) fn check(&self) -> Result<(), KeyError> {
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
    pub(super) fn check(&self) -> Result<(), KeyError> {
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
    pub(super) fn check(&self) -> Result<(), KeyError> {
        packet_rate("rate", self.rate, self.packet)
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        Vec::new()
    }
}

impl Poisson {
    pub(super) fn check(&self) -> Result<(), KeyError> {
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
    pub(super) fn check(&self) -> Result<(), KeyError> {
        packet_rate("rate", self.rate, self.packet)?;
        positive("on", &self.on.0)?;
        on_time(self.on.0.mean(), self.rate.packets_per_sec(self.packet))
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        vec![("on", Part::Time(&mut self.on)), ("off", Part::Time(&mut self.off))]
    }
}

impl SelfSimilar {
    pub(super) fn check(&self) -> Result<(), KeyError> {
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

    /// Packets per second of one source while ON.
    pub fn on_packets_per_s(&self) -> f64 {
        let share = self.on.as_secs_f64() / (self.on.as_secs_f64() + self.off.as_secs_f64());
        self.rate.packets_per_sec(self.packet) / (f64::from(self.sources) * share)
    }

    /// Shape of the periods: alpha = 3 - 2 H (Taqqu, Willinger, Sherman 1997, theorem 1).
    pub fn shape(&self) -> f64 {
        3.0 - 2.0 * self.hurst
    }
}

impl Voip {
    pub(super) fn check(&self) -> Result<(), KeyError> {
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
    pub(super) fn check(&self) -> Result<(), KeyError> {
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

    /// Independent sources of the flow.
    pub fn chains(&self) -> Result<Vec<MarkovSource>, KeyError> {
        if let Some(minisources) = &self.minisources {
            mmpp::check_minisources(minisources)?;
            return Ok(vec![MarkovSource::Minisources(minisources.clone())]);
        }
        let mut sources = match (self.preset, &self.model) {
            (Some(preset), _) => preset.sources(),
            (None, Some(model)) => model.sources.to_vec(),
            (None, None) => {
                let rates: Vec<f64> = self.rates.iter().map(|rate| rate.0).collect();
                return Ok(vec![MarkovSource::states(rates, self.generator.clone())?]);
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
    pub(super) fn check(&self) -> Result<(), KeyError> {
        match self.fps {
            Some(fps) if !(fps > 0.0 && fps <= FPS_MAX) => {
                return Err(("fps", format!("must be above 0, at most {FPS_MAX}")));
            }
            None if self.file.as_ref().is_some_and(|file| !file.trace.timed()) => {
                return Err((
                    "fps",
                    "missing; this trace has no times, so that the frames per second must be given".into(),
                ));
            }
            _ => {}
        }
        let of_a_trace = [("repeat", self.repeat), ("random_start", self.random_start)];
        match of_a_trace.into_iter().find(|(_, default)| self.file.is_none() && !default) {
            Some((key, _)) => Err((key, "applies to a trace file only".into())),
            None if self.file.is_none()
                && self.default_rate().as_bps() as f64 > FRAME_BYTES_MEAN_MAX * 8.0 * self.default_fps() =>
            {
                Err(("rate", format!("gives frames of more than {FRAME_BYTES_MEAN_MAX} bytes on average")))
            }
            None => Ok(()),
        }
    }

    /// Mean rate without a trace.
    pub fn default_rate(&self) -> Rate {
        self.rate.unwrap_or(Rate::from_bps(4_000_000))
    }

    /// Frames per second without a trace.
    pub fn default_fps(&self) -> f64 {
        self.fps.unwrap_or(30.0)
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, Part<'_>)> {
        self.file.iter_mut().map(|file| ("file", Part::Frames(file))).collect()
    }
}

impl AdaptiveVideo {
    pub(super) fn check(&self) -> Result<(), KeyError> {
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

    /// Number of segments of the video; `None` if unlimited.
    pub fn segments(&self) -> Option<u64> {
        self.length.map(|length| length.as_nanos().div_ceil(self.segment.as_nanos()))
    }

    /// Bytes of a segment at a bit rate, at least 1.
    pub fn segment_bytes(&self, rate: Rate) -> u64 {
        let bits = u128::from(rate.as_bps()) * u128::from(self.segment.as_nanos()) / 1_000_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX).max(1)
    }
}

fn packet_rate(key: &'static str, rate: Rate, packet: Bytes) -> Result<(), KeyError> {
    if packet.0 > PACKET_BYTES_MAX {
        return Err(("packet", format!("must be at most {PACKET_BYTES_MAX}B, the payload of a datagram")));
    }
    if rate.packets_per_sec(packet) > PER_SECOND_MAX {
        return Err((key, "gives more than 1e9 packets per second".into()));
    }
    Ok(())
}

fn packet_size(packet: &Size) -> Result<(), KeyError> {
    positive("packet", &packet.0)?;
    if packet.0.mean() > PACKET_BYTES_MAX as f64 {
        return Err(("packet", format!("must have a mean of at most {PACKET_BYTES_MAX}B, the payload of a datagram")));
    }
    Ok(())
}

/// ON periods much shorter than a packet would cost many draws per packet.
fn on_time(mean_ns: f64, packets_per_s: f64) -> Result<(), KeyError> {
    if mean_ns < 1e9 / packets_per_s / PERIODS_PER_PACKET_MAX {
        return Err(("on", "must have a mean of at least a thousandth of the time that a packet takes".into()));
    }
    Ok(())
}

fn positive(key: &'static str, law: &Law) -> Result<(), KeyError> {
    if law.mean() > 0.0 { Ok(()) } else { Err((key, "must have a mean above 0".into())) }
}
