//! WiMAX (IEEE 802.16, mobile), one direction, for one user.
//!
//! Time is divided into frames of 5 ms (IEEE 802.16-2009 section 8.4.5; the WiMAX Forum's profile). At the start of a
//! frame the base station grants this link its fraction of the slots of 48 data subcarriers. The bits of a slot follow
//! from the burst profile, QPSK 1/2 to 64-QAM 5/6 (section 8.4.9.4). A packet that arrives later waits for the next
//! frame; a packet that does not fit is fragmented (section 6.3.3.3). Each grant loses a header of 6 bytes and a
//! checksum of 4 (section 6.3.2.1).
//! 420 slots are 10 MHz with 28 of 47 symbols for data downlink: 14 pairs of symbols x 30 subchannels.
//!
//! Mean capacity: sum over profiles of pi(profile) (floor(share slots bits / 8) - 10) 8 bit / 5 ms.

use aqumen_units::Span;

use super::ladder::{LEVELS_SPREAD_MAX, log_weights};
use super::loss::Probability;
use super::ranges::{lasts, within};
use super::slots::Slotting;
use crate::error::KeyError;
use crate::field::{Name, table};

table! {
    /// WiMAX.
    pub struct Wimax("a WiMAX channel") {
        /// The model: `wimax`.
        pub model: Name,
        /// Slots of a frame in this direction, 1 to 2000.
        pub slots: u32 = 420,
        /// Fraction of the slots that the base station grants this link.
        pub share: Probability = Probability(1.0),
        /// Mean burst profile, 0 (QPSK 1/2) to 7 (64-QAM 5/6).
        pub profile: f64 = 5.0,
        /// Standard deviation of the profile; 0 keeps it constant.
        pub spread: f64 = 1.0,
        /// Interval at which the profile may move by one.
        pub coherence: Span = Span::from_millis(50),
    }
}

/// Bits of a slot: QPSK 1/2, 3/4; 16-QAM 1/2, 3/4; 64-QAM 1/2, 2/3, 3/4, 5/6.
const SLOT_BITS: [u32; 8] = [48, 72, 96, 144, 144, 192, 216, 240];

const FRAME: Span = Span::from_millis(5);

/// Header and checksum of a grant, bytes.
const GRANT_OVERHEAD: u32 = 10;

impl Wimax {
    /// Returns the equivalent slotted medium.
    pub fn slotting(&self) -> Slotting {
        let slots = f64::from(self.slots) * self.share.0;
        let budget = |bits: &u32| ((slots * f64::from(*bits) / 8.0) as u32).saturating_sub(GRANT_OVERHEAD).max(1);
        Slotting {
            slot: FRAME,
            budgets: SLOT_BITS.iter().map(budget).collect(),
            log_weights: log_weights(SLOT_BITS.len(), self.profile, self.spread),
            coherence: self.coherence,
            retransmission: None,
            handover: None,
        }
    }

    pub(super) fn mean_bps(&self) -> f64 {
        self.slotting().mean_bps()
    }

    pub(super) fn check(&self) -> Result<(), KeyError> {
        within("slots", f64::from(self.slots), 1.0, 2000.0)?;
        within("profile", self.profile, 0.0, 7.0)?;
        within("spread", self.spread, 0.0, LEVELS_SPREAD_MAX)?;
        lasts("coherence", self.coherence)
    }
}
