//! What a link is beside a wire of one rate: rates that change or come from a file, media with a law of their own,
//! losses.
//!
//! Here stand the tables that a user writes and the values in them; `line` is what the plan holds of them. Each model
//! of a medium has a file below with its parameters, their sources, and its mean capacity in closed form.

mod ladder;
mod lte;
mod shared;
mod slots;
mod umts;
mod wifi;
mod wimax;

use aqumen_units::{Rate, Span};
use serde_json::json;

use crate::error::suggestion;
use crate::field::{At, Field, Misfit, all_defaults, table};
use crate::tree::Value;

pub use ladder::{LEVELS_SPREAD_MAX, level_weights};
pub use lte::Lte;
pub use shared::Shared;
pub use slots::{Retransmission, Slotting};
pub use umts::Umts;
pub use wifi::Wifi;
pub use wimax::Wimax;

/// What is wrong with a value of a model: its key, and why.
pub(crate) type Fault = (&'static str, String);

/// The rate of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// One rate.
    Constant(Rate),
    /// Rates over time.
    Varying(Varying),
}

table! {
    /// Rates over time: one of `steps`, `csv` and `mahimahi`.
    pub struct Varying("rates over time") {
        /// Rates and when each begins: `[["0s", "8Mbit"], ["10s", "4Mbit"]]`; the first begins at 0 s.
        pub steps: Vec<Step>,
        /// File of lines `time,rate`, in seconds and bit/s or with units; a rate of 0 stops the link.
        pub csv: Option<String>,
        /// After how long steps or file begin again; without it the last rate stays.
        pub period: Option<Span>,
        /// File of delivery opportunities as Mahimahi has them: on each line the millisecond at which 1504 bytes may
        /// leave.
        pub mahimahi: Option<String>,
    }
}

/// A rate and when it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When it begins.
    pub at: Span,
    /// The rate.
    pub rate: Rate,
}

/// A medium with a law of its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Channel {
    /// IEEE 802.11 with contention and aggregation.
    Wifi(Wifi),
    /// IEEE 802.16 with frames.
    Wimax(Wimax),
    /// UMTS: HSDPA, or a dedicated channel.
    Umts(Umts),
    /// LTE.
    Lte(Lte),
    /// A part of a link that others share.
    Shared(Shared),
}

table! {
    /// What is lost on the wire, after the queue. The causes are independent of each other.
    pub struct Loss("losses on the wire") {
        /// Probability that a packet is lost.
        pub random: Chance = Chance(0.0),
        /// Probability that a bit is wrong; a packet is lost with the first: a long one more often.
        pub bit_errors: Chance = Chance(0.0),
        /// Losses that come in bursts.
        pub burst: Option<Burst>,
    }
}

table! {
    /// The Gilbert-Elliott model: a good and a bad state, each with its probability of loss. The state moves from
    /// packet to packet (`to_bad`, `to_good`) or with time (`mean_good`, `mean_bad`).
    pub struct Burst("a Gilbert-Elliott model") {
        /// Probability that a packet is lost in the good state.
        pub good: Chance = Chance(0.0),
        /// Probability that a packet is lost in the bad state.
        pub bad: Chance = Chance(1.0),
        /// Probability that the bad state follows the good one at the next packet.
        pub to_bad: Option<Chance>,
        /// Probability that the good state follows the bad one at the next packet.
        pub to_good: Option<Chance>,
        /// How long the good state lasts on average, exponentially distributed.
        pub mean_good: Option<Span>,
        /// How long the bad state lasts on average, exponentially distributed.
        pub mean_bad: Option<Span>,
    }
}

/// Losses as written: a table, or the probability of `random` alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Losses(pub Loss);

/// A probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chance(pub f64);

/// Whether a link carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// It begins no transmission; what waits goes on waiting.
    Down,
    /// It works.
    Up,
}

impl Default for Loss {
    fn default() -> Self {
        all_defaults()
    }
}

impl Loss {
    /// Whether nothing is ever lost.
    pub fn is_none(&self) -> bool {
        *self == Loss::default()
    }

    /// The share of packets of `bytes` that are lost in the long run.
    pub fn mean(&self, bytes: u32) -> f64 {
        let burst = self.burst.as_ref().map_or(0.0, Burst::mean);
        1.0 - (1.0 - self.random.0) * (1.0 - self.bit_error_loss(bytes)) * (1.0 - burst)
    }

    /// Probability that bit errors spoil a packet of `bytes`: 1 - (1 - ber)^(8 bytes).
    pub fn bit_error_loss(&self, bytes: u32) -> f64 {
        -libm::expm1(8.0 * f64::from(bytes) * libm::log1p(-self.bit_errors.0))
    }

    pub(crate) fn check(&self) -> Result<(), Fault> {
        let Some(burst) = &self.burst else { return Ok(()) };
        match (burst.to_bad, burst.to_good, burst.mean_good, burst.mean_bad) {
            (Some(_), Some(to_good), None, None) if to_good.0 > 0.0 => Ok(()),
            (Some(_), Some(_), None, None) => Err(("burst.to_good", "must be above 0, at most 1".into())),
            (None, None, Some(good), Some(bad)) if good > Span::ZERO && bad > Span::ZERO => Ok(()),
            (None, None, Some(_), Some(_)) => Err(("burst", "mean_good and mean_bad must be above 0s".into())),
            _ => Err(("burst", "needs either to_bad and to_good, or mean_good and mean_bad".into())),
        }
    }
}

impl Burst {
    /// Share of packets (or of time) in the bad state.
    pub fn bad_share(&self) -> f64 {
        match (self.to_bad, self.to_good, self.mean_good, self.mean_bad) {
            (Some(to_bad), Some(to_good), _, _) => to_bad.0 / (to_bad.0 + to_good.0),
            (_, _, Some(good), Some(bad)) => bad.as_secs_f64() / (good.as_secs_f64() + bad.as_secs_f64()),
            _ => 0.0,
        }
    }

    /// The share of packets that are lost in the long run.
    pub fn mean(&self) -> f64 {
        let bad = self.bad_share();
        (1.0 - bad) * self.good.0 + bad * self.bad.0
    }
}

impl Channel {
    /// Bits per second that it carries on average when there is always something to send.
    pub fn mean_bps(&self) -> f64 {
        match self {
            Channel::Wifi(wifi) => wifi.mean_bps(),
            Channel::Wimax(wimax) => wimax.slotting().mean_bps(),
            Channel::Umts(umts) => umts.slotting().mean_bps(),
            Channel::Lte(lte) => lte.slotting().mean_bps(),
            Channel::Shared(shared) => shared.mean_bps(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Fault> {
        match self {
            Channel::Wifi(wifi) => wifi.check(),
            Channel::Wimax(wimax) => wimax.check(),
            Channel::Umts(umts) => umts.check(),
            Channel::Lte(lte) => lte.check(),
            Channel::Shared(shared) => shared.check(),
        }
    }
}

/// A number that a model accepts from `low` to `high`.
pub(crate) fn within(key: &'static str, value: f64, low: f64, high: f64) -> Result<(), Fault> {
    if (low..=high).contains(&value) { Ok(()) } else { Err((key, format!("must be {low} to {high}"))) }
}

/// A time that must pass.
pub(crate) fn lasts(key: &'static str, value: Span) -> Result<(), Fault> {
    if value >= Span::from_micros(100) { Ok(()) } else { Err((key, "must be at least 100us".into())) }
}

impl Field for Capacity {
    const WHAT: &'static str = Rate::WHAT;

    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        match &at.node.value {
            Value::Table(_) => Varying::read(at).map(Capacity::Varying),
            _ => Rate::read(at).map(Capacity::Constant),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        match self {
            Capacity::Constant(rate) => rate.write(),
            Capacity::Varying(varying) => varying.write(),
        }
    }

    fn schema() -> serde_json::Value {
        json!({"anyOf": [Rate::schema(), Varying::schema()]})
    }
}

impl Field for Step {
    const WHAT: &'static str = "a time and a rate, such as [\"10s\", \"4Mbit\"]";

    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        match &at.node.value {
            Value::List(items) if items.len() == 2 => {
                Ok(Step { at: Span::read(&at.below(0, &items[0]))?, rate: Rate::read(&at.below(1, &items[1]))? })
            }
            _ => Err(at.misfit(format!("must be {}", Self::WHAT))),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::Array(vec![self.at.write()?, self.rate.write()?]))
    }

    fn schema() -> serde_json::Value {
        json!({"type": "array", "prefixItems": [Span::schema(), Rate::schema()], "minItems": 2, "maxItems": 2})
    }
}

impl Field for Channel {
    const WHAT: &'static str = "a table with a model, such as { model = \"wifi\" }";

    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        let entries = at.entries()?;
        let Some(model) = at.node.get("model") else {
            // No model has a key that is like it.
            let instead = entries.iter().find(|(key, _)| ["kind", "type", "name", "preset"].contains(&key.as_str()));
            let instead = instead.map(|(key, _)| format!(" (in place of {key}?)")).unwrap_or_default();
            return Err(at.below("model", at.node).misfit(format!("missing{instead}; known: {}", MODELS.join(", "))));
        };
        let at_model = at.below("model", model);
        let name = String::read(&at_model)?;
        match name.as_str() {
            "wifi" => Wifi::read(at).map(Channel::Wifi),
            "wimax" => Wimax::read(at).map(Channel::Wimax),
            "umts" => Umts::read(at).map(Channel::Umts),
            "lte" => Lte::read(at).map(Channel::Lte),
            "shared" => Shared::read(at).map(Channel::Shared),
            _ => Err(at_model.misfit(format!("no such model{}", suggestion(&name, MODELS.iter().copied())))),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        match self {
            Channel::Wifi(wifi) => wifi.write(),
            Channel::Wimax(wimax) => wimax.write(),
            Channel::Umts(umts) => umts.write(),
            Channel::Lte(lte) => lte.write(),
            Channel::Shared(shared) => shared.write(),
        }
    }

    fn schema() -> serde_json::Value {
        let schemas = [Wifi::schema(), Wimax::schema(), Umts::schema(), Lte::schema(), Shared::schema()];
        let of_model = MODELS.iter().zip(schemas).map(|(model, mut schema)| {
            schema["properties"]["model"]["const"] = (*model).into();
            schema
        });
        json!({"oneOf": of_model.collect::<Vec<_>>()})
    }
}

const MODELS: [&str; 5] = ["wifi", "wimax", "umts", "lte", "shared"];

impl Field for Losses {
    const WHAT: &'static str = "a probability, such as 0.01, or a table of random, bit_errors and burst";

    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        match &at.node.value {
            Value::Table(_) => Loss::read(at).map(Losses),
            _ => Ok(Losses(Loss { random: Chance::read(at)?, ..Loss::default() })),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        if self.0 == (Loss { random: self.0.random, ..Loss::default() }) {
            self.0.random.write()
        } else {
            self.0.write()
        }
    }

    fn schema() -> serde_json::Value {
        json!({"anyOf": [Chance::schema(), Loss::schema()]})
    }
}

impl Field for Chance {
    const WHAT: &'static str = "a probability, such as 0.01";

    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        match f64::read(at) {
            Ok(chance) if (0.0..=1.0).contains(&chance) => Ok(Chance(chance)),
            _ => Err(at.misfit("must be a probability, 0 to 1")),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        self.0.write()
    }

    fn schema() -> serde_json::Value {
        json!({"type": "number", "minimum": 0, "maximum": 1})
    }
}

impl Field for LinkState {
    const WHAT: &'static str = "\"down\" or \"up\"";

    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        match &at.node.value {
            Value::Text(text) if text == "down" => Ok(LinkState::Down),
            Value::Text(text) if text == "up" => Ok(LinkState::Up),
            _ => Err(at.misfit("must be \"down\" or \"up\"")),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::String(if *self == LinkState::Down { "down" } else { "up" }.into()))
    }

    fn schema() -> serde_json::Value {
        json!({"enum": ["down", "up"]})
    }
}

/// The value that a file of the text `text` is.
#[cfg(test)]
pub(crate) fn of_text<T: Field>(text: &str) -> T {
    let node = crate::tree::Node::parse(text, "t.toml").expect("TOML");
    T::read(&At { node: &node, path: String::new() }).expect("it fits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_errors_spoil_long_packets_more_often() {
        let loss = Loss { bit_errors: Chance(1e-5), ..Loss::default() };
        // 1 - (1 - 1e-5)^12000 = 1 - exp(12000 ln(0.99999)) = 1 - exp(-0.12000060) = 0.1130800; 320 bits: 0.0031949.
        assert!((loss.mean(1500) - 0.113_080).abs() < 1e-6, "{}", loss.mean(1500));
        assert!((loss.mean(40) - 0.003_194_9).abs() < 1e-7, "{}", loss.mean(40));
    }

    #[test]
    fn independent_causes_of_loss_add_up_as_probabilities() {
        // Bad 1/11 of the time: 0.5 / 11 are lost there. With 1 % at random: 1 - 0.99 (1 - 1/22) = 0.055.
        let burst =
            Burst { bad: Chance(0.5), to_bad: Some(Chance(0.01)), to_good: Some(Chance(0.1)), ..all_defaults() };
        let loss = Loss { random: Chance(0.01), burst: Some(burst), ..Loss::default() };
        assert!((loss.mean(1000) - 0.055).abs() < 1e-15);
    }

    #[test]
    fn wifi_carries_what_its_protocol_leaves() {
        // Packets in an aggregate, and bit/s, worked out from the module's formulas: five others and no aggregation;
        // two streams of 40 MHz at scheme 3 against three others, aggregates of 8; four streams; scheme 0 with packets
        // of 100 B.
        for (text, bps) in [
            ("contenders = 5\naggregate = 1", 1_684_894.272_868_8),
            (
                "mcs = 3\nstreams = 2\nwidth_mhz = 40\ncontenders = 3\ncontender_airtime = \"500us\"\naggregate = 8\n\
                 packet = \"1000B\"",
                21_896_073.135_910_65,
            ),
            ("streams = 4\nwidth_mhz = 40\naggregate = 64", 433_921_653.034_868_7),
            ("mcs = 0\naggregate = 64\npacket = \"100B\"", 4_356_112.169_888_37),
        ] {
            let wifi: Wifi = of_text(&format!("model = \"wifi\"\n{text}\n"));
            assert!((wifi.mean_bps() / bps - 1.0).abs() < 1e-9, "{text}: {}", wifi.mean_bps());
        }
        let any: Channel = of_text("model = \"wifi\"\ncontenders = 5\naggregate = 1\n");
        assert!((any.mean_bps() / 1_684_894.272_868_8 - 1.0).abs() < 1e-9);
        let wifi: Wifi = of_text("model = \"wifi\"\naggregate = 8\n");
        // DIFS is SIFS and two slots; a busy slot is 1 ms on air, SIFS, a block acknowledgement and DIFS.
        assert_eq!((wifi.slot_and_difs_ns(), wifi.busy_ns()), ((9_000, 34_000), 1_082_000));
        assert_eq!((wifi.fits(7, 8, 65_535), wifi.fits(7, 9, 1500), wifi.fits(7, 2, 65_536)), (false, false, false));
        // 260 bits a symbol: 1371 symbols are 5.484 ms, 356460 bits or 44554 B with service field and tail.
        assert_eq!((wifi.fits(7, 8, 44_554), wifi.fits(7, 8, 44_555)), (true, false));
        assert_eq!((wifi.air_bytes(1500), Wifi { aggregate: 1, ..wifi.clone() }.air_bytes(1500)), (1544, 1538));
        assert_eq!(wifi.windows(), [16, 32, 64, 128, 256, 512, 1024]);
    }

    #[test]
    fn slotted_media_carry_the_blocks_of_their_standards() {
        // HSDPA at CQI 18, half of each block of 4664 bits: 291 B in 2 ms, over 1 + 0.2 + 0.2 * 0.5 transmissions.
        let umts: Umts =
            of_text("model = \"umts\"\ncqi = 18\nspread = 0\nshare = 0.5\nbler = 0.2\nretx_bler = 0.5\nmax_retx = 2\n");
        let slotting = umts.slotting();
        assert!((slotting.mean_bps() - 291.0 * 8.0 / 0.002 / 1.3).abs() < 1e-6, "{}", slotting.mean_bps());
        assert_eq!((slotting.budgets[0], slotting.budgets[29]), (8, 1597));
        let dch: Umts = of_text("model = \"umts\"\ndch = \"384kbit\"\nbler = 0\n");
        // 480 B in 10 ms.
        assert_eq!((dch.slotting().budgets, dch.slotting().mean_bps()), (vec![480], 384_000.0));
        // LTE at CQI 10: 2.7305 bits in 120 elements of 50 blocks, two layers, half: 2047 B each millisecond; 50 ms out
        // in a second.
        let lte: Lte = of_text(
            "model = \"lte\"\ncqi = 10\nspread = 0\nlayers = 2\nshare = 0.5\nbler = 0\nhandover_interval = \"950ms\"\n",
        );
        assert!((lte.slotting().mean_bps() - 2047.0 * 8e3 * 0.95).abs() < 1e-3, "{}", lte.slotting().mean_bps());
        // WiMAX, 64-QAM 2/3: 210 slots of 192 bits, 5040 B less 10 each 5 ms.
        let wimax: Wimax = of_text("model = \"wimax\"\nprofile = 5\nspread = 0\nshare = 0.5\n");
        assert_eq!(wimax.slotting().mean_bps(), 5030.0 * 8.0 / 0.005);
        // So little that nothing would be left: a byte.
        let none: Wimax = of_text("model = \"wimax\"\nslots = 1\n");
        assert_eq!(none.slotting().budgets[0], 1);
    }

    #[test]
    fn what_a_medium_cannot_be_is_refused_at_either_end() {
        let refused = |result: Result<(), Fault>| result.err().map(|(key, _)| key);
        let wifi = |text: &str| refused(of_text::<Wifi>(&format!("model = \"wifi\"\n{text}\n")).check());
        let umts = |text: &str| refused(of_text::<Umts>(&format!("model = \"umts\"\n{text}\n")).check());
        let lte = |text: &str| refused(of_text::<Lte>(&format!("model = \"lte\"\n{text}\n")).check());
        let wimax = |text: &str| refused(of_text::<Wimax>(&format!("model = \"wimax\"\n{text}\n")).check());
        for right in ["mcs = 0", "mcs = 7", "streams = 4", "width_mhz = 40", "contenders = 100", "aggregate = 64"] {
            assert_eq!(wifi(right), None, "{right}");
        }
        for wrong in
            ["mcs = 7.1", "streams = 5", "width_mhz = 80", "contenders = 101", "aggregate = 65", "aggregate = 0"]
        {
            assert_eq!(wifi(wrong), wrong.split(' ').next(), "{wrong}");
        }
        assert_eq!((wifi("packet = \"65kB\""), wifi("packet = \"65001B\"")), (None, Some("packet")));
        for right in ["cqi = 1", "cqi = 30", "max_retx = 15", "dch = \"1kbit\"", "dch = \"100Mbit\"", "spread = 10"] {
            assert_eq!(umts(right), None, "{right}");
        }
        for wrong in
            ["cqi = 0.9", "cqi = 31", "max_retx = 16", "dch = \"999bit\"", "dch = \"101Mbit\"", "spread = 10.1"]
        {
            assert_eq!(umts(wrong), wrong.split(' ').next(), "{wrong}");
        }
        assert_eq!([lte("resource_blocks = 6"), lte("resource_blocks = 110"), lte("layers = 8")], [None; 3]);
        assert_eq!([lte("resource_blocks = 5"), lte("resource_blocks = 111")], [Some("resource_blocks"); 2]);
        assert_eq!([lte("layers = 9"), lte("cqi = 16")], [Some("layers"), Some("cqi")]);
        assert_eq!([wimax("slots = 2000"), wimax("profile = 7")], [None; 2]);
        assert_eq!(
            [wimax("slots = 2001"), wimax("slots = 0"), wimax("profile = 7.5")],
            ["slots", "slots", "profile"].map(Some)
        );
        assert_eq!([lte("coherence = \"0s\""), wimax("coherence = \"0s\"")], [Some("coherence"); 2]);
    }

    #[test]
    fn bursts_by_mean_times_lose_their_share_and_need_both_of_a_pair() {
        let times = |good, bad| Burst {
            good: Chance(0.1),
            bad: Chance(0.9),
            mean_good: Some(Span::from_secs(good)),
            mean_bad: Some(Span::from_secs(bad)),
            ..all_defaults()
        };
        // Bad for 1 s of 4: 0.75 * 0.1 + 0.25 * 0.9.
        assert_eq!(times(3, 1).bad_share(), 0.25);
        assert!((times(3, 1).mean() - 0.3).abs() < 1e-12);
        let check = |burst| Loss { burst: Some(burst), ..Loss::default() }.check().err().map(|(key, _)| key);
        assert_eq!((check(times(3, 1)), check(times(0, 1)), check(times(3, 0))), (None, Some("burst"), Some("burst")));
        let steps = |to_bad, to_good| Burst { to_bad, to_good, ..all_defaults() };
        assert_eq!(check(steps(Some(Chance(0.0)), Some(Chance(1.0)))), None);
        assert_eq!(check(steps(Some(Chance(0.1)), Some(Chance(0.0)))), Some("burst.to_good"));
        assert_eq!(check(steps(Some(Chance(0.1)), None)), Some("burst"));
        assert_eq!(
            (Loss::default().is_none(), Loss { random: Chance(0.1), ..Loss::default() }.is_none()),
            (true, false)
        );
    }
}
