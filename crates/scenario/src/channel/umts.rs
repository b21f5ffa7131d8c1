//! UMTS, one direction, for one user: HSDPA, or a dedicated channel of release 99.
//!
//! HSDPA sends one transport block each 2 ms (3GPP TS 25.211 section 5.3.3.13, a subframe of three slots). Its size
//! follows from the channel quality indicator by TS 25.214 table 7D (category 10). A block in error is repeated after
//! six intervals, 12 ms (TS 25.308 section 7, six processes). A dedicated channel (`dch`) has blocks of 10 ms at one
//! rate (usually 64, 128 or 384 kbit/s; TS 34.108 section 6.10). RLC in acknowledged mode repairs its errors (TS 25.322
//! section 11.3) after a status report, 100 ms here.
//!
//! Mean capacity: sum over CQI of pi(cqi) floor(share TBS / 8) 8 bit / 2 ms / E[transmissions]; with `dch` its
//! rate / E[transmissions].

use aqumen_units::{Rate, Span};

use super::ladder::{LEVELS_SPREAD_MAX, log_weights};
use super::loss::Probability;
use super::ranges::{lasts, within};
use super::slots::{Retransmission, Slotting};
use crate::error::KeyError;
use crate::field::{Name, table};

table! {
    /// UMTS.
    pub struct Umts("a UMTS channel") {
        /// The model: `umts`.
        pub model: Name,
        /// Rate of a dedicated channel of release 99; HSDPA if absent.
        pub dch: Option<Rate>,
        /// Mean channel quality indicator of HSDPA, 1 to 30.
        pub cqi: f64 = 18.0,
        /// Standard deviation of the indicator; 0 keeps it constant.
        pub spread: f64 = 3.0,
        /// Interval at which the indicator may move by one.
        pub coherence: Span = Span::from_millis(20),
        /// Fraction of the intervals' capacity that the scheduler gives this link.
        pub share: Probability = Probability(1.0),
        /// Probability that the first transmission of a block fails.
        pub bler: Probability = Probability(0.1),
        /// Probability that a retransmission fails.
        pub retx_bler: Probability = Probability(0.02),
        /// Most retransmissions of a block, 0 to 15; a block that still fails is lost.
        pub max_retx: u32 = 3,
    }
}

/// Transport block sizes at CQI 1 to 30, bits.
const BLOCK_BITS: [u32; 30] = [
    137, 173, 233, 317, 377, 461, 650, 792, 931, 1262, 1483, 1742, 2279, 2583, 3319, 3565, 4189, 4664, 5287, 5887,
    6554, 7168, 9719, 11418, 14411, 17237, 21754, 23370, 24222, 25558,
];

const HSDPA_TTI: Span = Span::from_millis(2);
const HARQ_ROUND: u32 = 6;
const DCH_TTI: Span = Span::from_millis(10);
const RLC_ROUND: u32 = 10;

impl Umts {
    /// Returns the equivalent slotted medium.
    pub fn slotting(&self) -> Slotting {
        let share = |bytes: f64| ((self.share.0 * bytes) as u32).max(1);
        let (slot, round, budgets, log_weights) = match self.dch {
            Some(rate) => (DCH_TTI, RLC_ROUND, vec![share(rate.amount_in(DCH_TTI).0 as f64)], vec![0.0]),
            None => {
                let budgets = BLOCK_BITS.iter().map(|bits| share(f64::from(*bits) / 8.0)).collect();
                (HSDPA_TTI, HARQ_ROUND, budgets, log_weights(BLOCK_BITS.len(), self.cqi - 1.0, self.spread))
            }
        };
        let (first, again, most) = (self.bler.0, self.retx_bler.0, self.max_retx);
        let retransmission = Some(Retransmission { round, first, again, most });
        Slotting { slot, budgets, log_weights, coherence: self.coherence, retransmission, handover: None }
    }

    pub(super) fn mean_bps(&self) -> f64 {
        self.slotting().mean_bps()
    }

    pub(super) fn check(&self) -> Result<(), KeyError> {
        if let Some(rate) = self.dch {
            within("dch", rate.as_bps() as f64, 1e3, 1e8).map_err(|_| ("dch", "must be 1kbit to 100Mbit".into()))?;
        }
        within("cqi", self.cqi, 1.0, 30.0)?;
        within("spread", self.spread, 0.0, LEVELS_SPREAD_MAX)?;
        within("max_retx", f64::from(self.max_retx), 0.0, 15.0)?;
        lasts("coherence", self.coherence)
    }
}
