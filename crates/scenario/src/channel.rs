//! Link models other than a wire of one rate: varying rates, media such as Wi-Fi and LTE, losses.
//!
//! The tables of a scenario file are here; `line` has their form in the plan. `capacity` has the rates of a wire,
//! `loss` the losses. Each model of a medium has its own file with its parameters, their sources, and its mean capacity
//! in closed form. `ladder`, `slots` and `ranges` serve several models.

mod capacity;
mod ladder;
mod loss;
mod lte;
mod ranges;
mod shared;
mod slots;
mod umts;
mod wifi;
mod wimax;

use serde_json::json;

use crate::error::{KeyError, suggestion};
use crate::field::{Cursor, Field, ValueError};

pub use capacity::{Capacity, LinkState, Step, Varying};
pub use ladder::{LEVELS_SPREAD_MAX, level_weights};
pub use loss::{Burst, Loss, Losses, Probability};
pub use lte::Lte;
pub use shared::SharedLink;
pub use slots::{Retransmission, Slotting};
pub use umts::Umts;
pub use wifi::Wifi;
pub use wimax::Wimax;

/// Declares the models of media: name, table, summary.
macro_rules! models {
    ($( $word:literal $model:ident $doc:literal; )*) => {
        /// A medium with its own capacity law.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Channel {
            $( #[doc = $doc] $model($model), )*
        }

        /// Names of the models.
        pub const MODELS: &[&str] = &[$( $word, )*];

        impl Channel {
            /// Mean capacity of the saturated link, bit/s.
            pub fn mean_bps(&self) -> f64 {
                match self {
                    $( Channel::$model(model) => model.mean_bps(), )*
                }
            }

            pub(crate) fn check(&self) -> Result<(), KeyError> {
                match self {
                    $( Channel::$model(model) => model.check(), )*
                }
            }

            /// Reads the model of this name from its table; `None` if no model has the name.
            fn named(name: &str, at: &Cursor<'_>) -> Option<Result<Self, ValueError>> {
                match name {
                    $( $word => Some($model::read(at).map(Channel::$model)), )*
                    _ => None,
                }
            }

            fn table(&self) -> Option<toml::Value> {
                match self {
                    $( Channel::$model(model) => model.write(), )*
                }
            }

            fn schemas() -> Vec<serde_json::Value> {
                vec![$( $model::schema(), )*]
            }
        }
    };
}

models! {
    "wifi" Wifi "IEEE 802.11 with contention and aggregation.";
    "wimax" Wimax "IEEE 802.16 with frames.";
    "umts" Umts "UMTS: HSDPA, or a dedicated channel.";
    "lte" Lte "LTE.";
    "shared" SharedLink "A part of a link that others share.";
}

impl Field for Channel {
    const WHAT: &'static str = "a table with a model, such as { model = \"wifi\" }";

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        let entries = at.entries()?;
        let Some(model) = at.node.get("model") else {
            // No other key of a model is similar to `model`.
            let instead = entries.iter().find(|(key, _)| ["kind", "type", "name", "preset"].contains(&key.as_str()));
            let instead = instead.map(|(key, _)| format!(" (in place of {key}?)")).unwrap_or_default();
            return Err(at.below("model", at.node).error(format!("missing{instead}; known: {}", MODELS.join(", "))));
        };
        let at_model = at.below("model", model);
        let name = String::read(&at_model)?;
        let unknown = || at_model.error(format!("no such model{}", suggestion(&name, MODELS.iter().copied())));
        Channel::named(&name, at).ok_or_else(unknown)?
    }

    fn write(&self) -> Option<toml::Value> {
        self.table()
    }

    fn schema() -> serde_json::Value {
        let of_model = MODELS.iter().zip(Channel::schemas()).map(|(model, mut schema)| {
            schema["properties"]["model"]["const"] = (*model).into();
            schema
        });
        json!({"oneOf": of_model.collect::<Vec<_>>()})
    }
}

/// Reads a value from the text of a file.
#[cfg(test)]
pub(crate) fn from_text<T: Field>(text: &str) -> T {
    let node = crate::tree::Node::parse(text, "t.toml").expect("TOML");
    T::read(&Cursor { node: &node, path: String::new() }).expect("it fits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wifi_capacity_is_the_rate_without_protocol_overhead() {
        // Packets in an aggregate, and bit/s, computed from the module's formulas: five contenders and no aggregation;
        // two streams of 40 MHz at scheme 3 with three contenders, aggregates of 8; four streams; scheme 0 with packets
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
            let wifi: Wifi = from_text(&format!("model = \"wifi\"\n{text}\n"));
            assert!((wifi.mean_bps() / bps - 1.0).abs() < 1e-9, "{text}: {}", wifi.mean_bps());
        }
        let any: Channel = from_text("model = \"wifi\"\ncontenders = 5\naggregate = 1\n");
        assert!((any.mean_bps() / 1_684_894.272_868_8 - 1.0).abs() < 1e-9);
        let wifi: Wifi = from_text("model = \"wifi\"\naggregate = 8\n");
        // DIFS is SIFS and two slots; a busy slot is 1 ms on air, SIFS, a block acknowledgement and DIFS.
        assert_eq!((wifi.slot_and_difs_ns(), wifi.busy_ns()), ((9_000, 34_000), 1_082_000));
        assert_eq!((wifi.fits(7, 8, 65_535), wifi.fits(7, 9, 1500), wifi.fits(7, 2, 65_536)), (false, false, false));
        // 260 bits a symbol: 1371 symbols are 5.484 ms, 356460 bits or 44554 B with service field and tail.
        assert_eq!((wifi.fits(7, 8, 44_554), wifi.fits(7, 8, 44_555)), (true, false));
        assert_eq!((wifi.air_bytes(1500), Wifi { aggregate: 1, ..wifi.clone() }.air_bytes(1500)), (1544, 1538));
        assert_eq!(wifi.windows(), [16, 32, 64, 128, 256, 512, 1024]);
    }

    #[test]
    fn slotted_media_have_the_block_sizes_of_their_standards() {
        // HSDPA at CQI 18, half of each block of 4664 bits: 291 B in 2 ms, over 1 + 0.2 + 0.2 * 0.5 transmissions.
        let umts: Umts = from_text(
            "model = \"umts\"\ncqi = 18\nspread = 0\nshare = 0.5\nbler = 0.2\nretx_bler = 0.5\nmax_retx = 2\n",
        );
        let slotting = umts.slotting();
        assert!((slotting.mean_bps() - 291.0 * 8.0 / 0.002 / 1.3).abs() < 1e-6, "{}", slotting.mean_bps());
        assert_eq!((slotting.budgets[0], slotting.budgets[29]), (8, 1597));
        let dch: Umts = from_text("model = \"umts\"\ndch = \"384kbit\"\nbler = 0\n");
        // 480 B in 10 ms.
        assert_eq!((dch.slotting().budgets, dch.slotting().mean_bps()), (vec![480], 384_000.0));
        // LTE at CQI 10: 2.7305 bits in 120 elements of 50 blocks, two layers, half: 2047 B each millisecond; 50 ms out
        // in a second.
        let lte: Lte = from_text(
            "model = \"lte\"\ncqi = 10\nspread = 0\nlayers = 2\nshare = 0.5\nbler = 0\nhandover_interval = \"950ms\"\n",
        );
        assert!((lte.slotting().mean_bps() - 2047.0 * 8e3 * 0.95).abs() < 1e-3, "{}", lte.slotting().mean_bps());
        // WiMAX, 64-QAM 2/3: 210 slots of 192 bits, 5040 B less 10 each 5 ms.
        let wimax: Wimax = from_text("model = \"wimax\"\nprofile = 5\nspread = 0\nshare = 0.5\n");
        assert_eq!(wimax.slotting().mean_bps(), 5030.0 * 8.0 / 0.005);
        // The overhead exceeds the slot: a budget of one byte remains.
        let none: Wimax = from_text("model = \"wimax\"\nslots = 1\n");
        assert_eq!(none.slotting().budgets[0], 1);
    }

    #[test]
    fn parameters_outside_their_range_are_refused_at_both_ends() {
        let refused = |result: Result<(), KeyError>| result.err().map(|(key, _)| key);
        let wifi = |text: &str| refused(from_text::<Wifi>(&format!("model = \"wifi\"\n{text}\n")).check());
        let umts = |text: &str| refused(from_text::<Umts>(&format!("model = \"umts\"\n{text}\n")).check());
        let lte = |text: &str| refused(from_text::<Lte>(&format!("model = \"lte\"\n{text}\n")).check());
        let wimax = |text: &str| refused(from_text::<Wimax>(&format!("model = \"wimax\"\n{text}\n")).check());
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
}
