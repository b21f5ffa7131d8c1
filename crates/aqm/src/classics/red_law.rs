//! RED as the average over its packets sees it: for fluids, and for the linear answer.

use crate::{RedCurve, RedParams, Transfer};

/// RED as the average over its packets sees it.
///
/// The average follows the queue with K = -r ln(1 - w), r being the arrivals per second (the capacity while the link idles,
/// when the average falls as if it were full). Signals are spread out: with the curve at p_b, the gap between two is spread
/// evenly from 1/p_b to 2/p_b packets with `wait`, from 1 to 1/p_b without, so that their share of the packets is about
/// p_b / 1.5 or 2 p_b, not p_b.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedLaw {
    /// Over the average queue in packets.
    pub curve: RedCurve,
    /// -ln(1 - w) per arrival.
    pub decay: f64,
    /// At least 1/p_b packets pass between two signals.
    pub wait: bool,
    /// Whether signals are marks where a packet can carry one.
    pub ecn: bool,
    /// The probability above which signals are losses all the same, and the average from which every packet is lost.
    pub mark_limit: (f64, f64),
}

impl RedLaw {
    /// The averaged law of RED with these parameters.
    pub fn new(params: &RedParams) -> Self {
        RedLaw {
            curve: params.curve,
            decay: -libm::log1p(-params.weight.min(1.0 - 1e-12)),
            wait: params.wait,
            ecn: params.ecn,
            mark_limit: (if params.use_mark_p { params.mark_p.get() } else { 1.0 }, params.curve.end()),
        }
    }

    /// Share of the packets that are signalled while the average is `average`.
    pub fn probability(&self, average: f64) -> f64 {
        let base = self.curve.probability(average);
        if base <= 0.0 {
            return 0.0;
        }
        // Nothing up to `from` packets, then a chance of 1 / (span - j) at the j-th further packet: the chances that none
        // was signalled are 1 - j / span, and their sum is the mean gap.
        let (from, span) = if self.wait {
            let from = libm::ceil(1.0 / base);
            (from, 2.0 / base - from)
        } else {
            (1.0, 1.0 / base - 1.0)
        };
        let n = libm::floor(span);
        let further = if n > 0.0 { n - n * (n + 1.0) / (2.0 * span) } else { 0.0 };
        1.0 / (from + further)
    }

    /// The average that holds the share `p`; the curve's end if none does.
    pub fn average_at(&self, p: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.curve.end());
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if self.probability(middle) < p {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// Whether a signal is a loss although the packet could carry a mark.
    pub fn loses(&self, average: f64) -> bool {
        !self.ecn || average >= self.mark_limit.1 || self.curve.probability(average) > self.mark_limit.0
    }
}

impl RedLaw {
    /// C(s) = L / (s / K + 1): RED between its thresholds, where it signals the share `probability` of `capacity_pps` arrivals a second.
    pub fn linear(&self, probability: f64, capacity_pps: f64) -> Transfer {
        let average = self.average_at(probability);
        // The share goes in small jumps, since gaps are whole packets: the slope is taken over several of them.
        let h = (0.1 * (average - self.curve.min_th())).max(1e-6 * average.max(1.0));
        let gain = (self.probability(average + h) - self.probability(average - h)) / (2.0 * h);
        Transfer { num: alloc::vec![gain], den: alloc::vec![1.0, 1.0 / (self.decay * capacity_pps)], period_s: None }
    }
}
