//! What a link is beside a wire of one rate: rates that change or come from a file, media with a law of their own,
//! losses.
//!
//! Here stand the tables that a user writes and the values in them; `line` is what the plan holds of them. `capacity`
//! has a wire's rates, `loss` the losses; each model of a medium has a file with its parameters, their sources, and its
//! mean capacity in closed form. What several models are made of stands in `ladder`, `slots` and `ranges`.

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

use crate::error::{Fault, suggestion};
use crate::field::{At, Field, Misfit};

pub use capacity::{Capacity, LinkState, Step, Varying};
pub use ladder::{LEVELS_SPREAD_MAX, level_weights};
pub use loss::{Burst, Chance, Loss, Losses};
pub use lte::Lte;
pub use shared::Shared;
pub use slots::{Retransmission, Slotting};
pub use umts::Umts;
pub use wifi::Wifi;
pub use wimax::Wimax;

/// Every model of a medium: the word for it, its table, and what it is.
macro_rules! models {
    ($( $word:literal $model:ident $doc:literal; )*) => {
        /// A medium with a law of its own.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Channel {
            $( #[doc = $doc] $model($model), )*
        }

        /// The word for each model.
        pub const MODELS: &[&str] = &[$( $word, )*];

        impl Channel {
            /// Bits per second that it carries on average when there is always something to send.
            pub fn mean_bps(&self) -> f64 {
                match self {
                    $( Channel::$model(model) => model.mean_bps(), )*
                }
            }

            pub(crate) fn check(&self) -> Result<(), Fault> {
                match self {
                    $( Channel::$model(model) => model.check(), )*
                }
            }

            /// The model of this name, from its table; `None`: there is none.
            fn named(name: &str, at: &At<'_>) -> Option<Result<Self, Misfit>> {
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
    "shared" Shared "A part of a link that others share.";
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
        let unknown = || at_model.misfit(format!("no such model{}", suggestion(&name, MODELS.iter().copied())));
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
}
