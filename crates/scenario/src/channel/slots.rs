//! Slotted media, shared by UMTS, LTE and WiMAX. Time is divided into slots (transmission time intervals, frames) whose
//! size in bytes depends on the level of the radio channel. Blocks in error are repeated in later slots.

use aqumen_units::Span;

use super::ladder::level_weights;

/// A slotted medium.
#[derive(Clone, Debug, PartialEq)]
pub struct Slotting {
    /// Length of a slot.
    pub slot: Span,
    /// Bytes of the queue that a slot carries at each level.
    pub budgets: Vec<u32>,
    /// Logarithms of the levels' stationary probabilities, up to a common term.
    pub log_weights: Vec<f64>,
    /// Interval at which the level may move by one.
    pub coherence: Span,
    /// Retransmission of blocks in error; `None` without block errors.
    pub retransmission: Option<Retransmission>,
    /// Handovers: mean time between them, and duration of the interruption.
    pub handover: Option<(Span, Span)>,
}

/// Stop-and-wait retransmission of blocks: several in parallel (HARQ), or after a status report (RLC).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retransmission {
    /// Slots from one transmission of a block to its next.
    pub round: u32,
    /// Probability that the first transmission fails.
    pub first: f64,
    /// Probability that a retransmission fails.
    pub again: f64,
    /// Most retransmissions of a block, after which it is lost.
    pub most: u32,
}

impl Slotting {
    /// Capacity of the saturated link at `level` without handovers, bit/s: budget / (slot E[transmissions of a block]).
    pub fn level_bps(&self, level: usize) -> f64 {
        let transmissions = self.retransmission.map_or(1.0, |arq| arq.mean_transmissions());
        8.0 * f64::from(self.budgets[level]) / (self.slot.as_secs_f64() * transmissions)
    }

    /// Fraction of time without a handover: T / (T + t).
    pub fn availability(&self) -> f64 {
        self.handover.map_or(1.0, |(every, lasts)| every.as_secs_f64() / (every.as_secs_f64() + lasts.as_secs_f64()))
    }

    /// Mean capacity of the saturated link, bit/s.
    pub fn mean_bps(&self) -> f64 {
        let weights = level_weights(&self.log_weights);
        let mean: f64 = weights.iter().enumerate().map(|(level, weight)| weight * self.level_bps(level)).sum();
        mean * self.availability()
    }
}

impl Retransmission {
    /// Mean number of transmissions of a block: 1 + first (1 + again + again^2 + ...), `most` terms in the bracket.
    pub fn mean_transmissions(&self) -> f64 {
        let (mut sum, mut reached) = (1.0, self.first);
        for _ in 0..self.most {
            sum += reached;
            reached *= self.again;
        }
        sum
    }

    /// Fraction of blocks that are lost: first again^most.
    pub fn residual(&self) -> f64 {
        (0..self.most).fold(self.first, |reached, _| reached * self.again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmissions_take_slots() {
        let arq = Retransmission { round: 8, first: 0.1, again: 0.5, most: 2 };
        assert_eq!(arq.mean_transmissions(), 1.0 + 0.1 + 0.05);
        assert!((arq.residual() - 0.025).abs() < 1e-15);
        let slotting = Slotting {
            slot: Span::from_millis(1),
            budgets: vec![115, 230],
            log_weights: vec![0.0, 0.0],
            coherence: Span::from_millis(10),
            retransmission: Some(arq),
            handover: Some((Span::from_secs(9), Span::from_secs(1))),
        };
        // 115 B and 230 B in 1 ms, half of the time each: 1.38 Mbit/s; over 1.15 transmissions; 0.9 of the time.
        assert!((slotting.mean_bps() - 1.08e6).abs() < 1e-6, "{}", slotting.mean_bps());
    }
}
