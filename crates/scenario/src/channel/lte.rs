//! LTE, one direction, for one user.
//!
//! One transport block is sent each 1 ms (3GPP TS 36.211 section 4.1). Its size follows from the channel quality
//! indicator, with the efficiencies of TS 36.213 table 7.2.3-1, over 120 of the 168 resource elements of a pair of
//! resource blocks. The others hold control symbols (3) and reference signals of two ports (TS 36.211 sections 6.10,
//! 6.7). A block in error is repeated 8 ms later (TS 36.321 section 5.3.2, eight processes), at most `max_retx` times;
//! then its packets are lost. A handover interrupts transmission for about 50 ms (TR 36.912 annex B: 10.5 ms at least;
//! with the search and system information of TS 36.133 section 5.1 up to 130 ms).
//!
//! Mean capacity:
//! sum over CQI of pi(cqi) floor(15 efficiency RB layers share) 8 bit / 1 ms / E[transmissions] x T / (T + t).

use aqumen_units::Span;

use super::ladder::{LEVELS_SPREAD_MAX, log_weights};
use super::loss::Probability;
use super::ranges::{lasts, within};
use super::slots::{Retransmission, Slotting};
use crate::error::KeyError;
use crate::field::{Name, table};

table! {
    /// LTE.
    pub struct Lte("an LTE channel") {
        /// The model: `lte`.
        pub model: Name,
        /// Resource blocks of the cell, 6 to 110: 50 are 10 MHz.
        pub resource_blocks: u32 = 50,
        /// Spatial layers, 1 to 8.
        pub layers: u32 = 1,
        /// Fraction of each block that the scheduler gives this link.
        pub share: Probability = Probability(1.0),
        /// Mean channel quality indicator, 1 to 15.
        pub cqi: f64 = 10.0,
        /// Standard deviation of the indicator; 0 keeps it constant.
        pub spread: f64 = 2.0,
        /// Interval at which the indicator may move by one.
        pub coherence: Span = Span::from_millis(10),
        /// Probability that the first transmission of a block fails.
        pub bler: Probability = Probability(0.1),
        /// Probability that a retransmission fails.
        pub retx_bler: Probability = Probability(0.02),
        /// Most retransmissions of a block, 0 to 15; a block that still fails is lost.
        pub max_retx: u32 = 3,
        /// Mean time between handovers, exponentially distributed; none if absent.
        pub handover_interval: Option<Span>,
        /// Interruption by a handover.
        pub handover_outage: Span = Span::from_millis(50),
    }
}

/// Bits per resource element at CQI 1 to 15.
const EFFICIENCY: [f64; 15] = [
    0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023, 4.5234, 5.1152,
    5.5547,
];

/// Resource elements for data in a pair of resource blocks.
const DATA_ELEMENTS: f64 = 120.0;

/// Transmission time interval.
const TTI: Span = Span::from_millis(1);

/// HARQ round trip, intervals.
const HARQ_ROUND: u32 = 8;

impl Lte {
    /// Returns the equivalent slotted medium.
    pub fn slotting(&self) -> Slotting {
        let elements = DATA_ELEMENTS * f64::from(self.resource_blocks) * f64::from(self.layers) * self.share.0;
        Slotting {
            slot: TTI,
            budgets: EFFICIENCY.iter().map(|bits| ((bits * elements / 8.0) as u32).max(1)).collect(),
            log_weights: log_weights(EFFICIENCY.len(), self.cqi - 1.0, self.spread),
            coherence: self.coherence,
            retransmission: Some(Retransmission {
                round: HARQ_ROUND,
                first: self.bler.0,
                again: self.retx_bler.0,
                most: self.max_retx,
            }),
            handover: self.handover_interval.map(|every| (every, self.handover_outage)),
        }
    }

    pub(super) fn mean_bps(&self) -> f64 {
        self.slotting().mean_bps()
    }

    pub(super) fn check(&self) -> Result<(), KeyError> {
        within("resource_blocks", f64::from(self.resource_blocks), 6.0, 110.0)?;
        within("layers", f64::from(self.layers), 1.0, 8.0)?;
        within("cqi", self.cqi, 1.0, 15.0)?;
        within("spread", self.spread, 0.0, LEVELS_SPREAD_MAX)?;
        within("max_retx", f64::from(self.max_retx), 0.0, 15.0)?;
        lasts("coherence", self.coherence)?;
        lasts("handover_outage", self.handover_outage)?;
        self.handover_interval.map_or(Ok(()), |interval| lasts("handover_interval", interval))
    }
}
