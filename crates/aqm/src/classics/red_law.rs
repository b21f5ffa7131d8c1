//! RED's curve, and RED's mean behaviour over many packets, for the fluid and the linear model.

use crate::{GapTail, Param, ParamError, SignalGaps, Transfer, Unit};

/// Base probability p_b as a function of the average queue, in packets or bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedCurve {
    min_th: f64,
    max_th: f64,
    max_p: f64,
    slope: f64,
    /// Probability at max_th: max_p, or an older value if the steep part is stale (ns-2).
    steep_start: f64,
    steep_slope: f64,
    gentle: bool,
}

/// Mean behaviour of RED over many packets.
///
/// The average follows the queue with pole K = -r ln(1 - w), where r is the arrival rate (the capacity while the link
/// idles). RED spreads its signals: at base probability p_b the gap between two signals is uniform between 1/p_b and
/// 2/p_b packets with `wait`, between 1 and 1/p_b without. The signal probability is therefore about p_b / 1.5 or 2
/// p_b, not p_b.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedLaw {
    /// Curve over the average queue in packets.
    pub curve: RedCurve,
    /// -ln(1 - w) per arrival.
    pub decay: f64,
    /// Whether at least 1/p_b packets pass between two signals.
    pub wait: bool,
    /// Whether ECN-capable packets are marked.
    pub ecn: bool,
    /// Base probability above which ECN-capable packets are dropped, and average from which every packet is dropped.
    pub mark_limit: (f64, f64),
}

impl RedCurve {
    /// Curve that rises from 0 at `min_th` to `max_p` at `max_th`, and on to 1 at 2 `max_th` if `gentle`, with a jump
    /// if not. Requires 0 <= `min_th` <= `max_th`, `max_th` > 0, `max_p` in [0, 1].
    pub fn new(min_th: f64, max_th: f64, max_p: f64, gentle: bool) -> Result<Self, ParamError> {
        Param::check_positive("max_th", max_th, Unit::Packets)?;
        if !(min_th >= 0.0 && min_th <= max_th) {
            return Err(ParamError::relation("min_th", min_th, "must be at least 0 and not above max_th"));
        }
        if !(0.0..=1.0).contains(&max_p) {
            return Err(ParamError::relation("max_p", max_p, "must be at least 0, at most 1"));
        }
        Ok(RedCurve::from_parts(min_th, max_th, max_p, gentle))
    }

    fn from_parts(min_th: f64, max_th: f64, max_p: f64, gentle: bool) -> Self {
        // ns-2: equal thresholds count as 1 apart.
        let width = if max_th > min_th { max_th - min_th } else { 1.0 };
        RedCurve {
            min_th,
            max_th,
            max_p,
            slope: max_p / width,
            steep_start: max_p,
            // An adapted max_p may exceed 1; the curve is then constant above max_th.
            steep_slope: (1.0 - max_p).max(0.0) / max_th,
            gentle,
        }
    }

    /// The curve with another `max_p`, at least 0. Above 1, the probability reaches 1 below max_th.
    pub fn with_max_p(&self, max_p: f64) -> Self {
        RedCurve::from_parts(self.min_th, self.max_th, max_p, self.gentle)
    }

    /// The curve with another `max_p` between the thresholds only; it jumps at max_th (ns-2).
    pub fn with_max_p_below_max_th(&self, max_p: f64) -> Self {
        RedCurve { steep_start: self.steep_start, steep_slope: self.steep_slope, ..self.with_max_p(max_p) }
    }

    /// The curve over an average in another unit; one old unit is `factor` new ones.
    pub fn scaled(&self, factor: f64) -> Self {
        RedCurve::from_parts(self.min_th * factor, self.max_th * factor, self.max_p, self.gentle)
    }

    /// Base probability at `average`.
    #[inline]
    pub fn probability(&self, average: f64) -> f64 {
        let p = if average < self.min_th {
            0.0
        } else if average < self.max_th {
            self.slope * (average - self.min_th)
        } else if self.gentle {
            self.steep_start + self.steep_slope * (average - self.max_th)
        } else {
            1.0
        };
        p.min(1.0)
    }

    /// Average with base probability `p`; the last one before a jump past `p`.
    pub fn average_at(&self, p: f64) -> f64 {
        if self.min_th < self.max_th && p < self.max_p {
            self.min_th + p.max(0.0) / self.slope
        } else if p >= self.steep_start && self.gentle && self.steep_slope > 0.0 {
            self.max_th + (p - self.steep_start) / self.steep_slope
        } else {
            self.max_th * (1.0 - f64::EPSILON)
        }
    }

    /// Lower threshold, where signals begin.
    pub const fn min_th(&self) -> f64 {
        self.min_th
    }

    /// Upper threshold, where the probability reaches `max_p`.
    pub const fn max_th(&self) -> f64 {
        self.max_th
    }

    /// Base probability at `max_th`.
    pub const fn max_p(&self) -> f64 {
        self.max_p
    }

    /// Whether the probability rises linearly above `max_th` instead of jumping.
    pub const fn is_gentle(&self) -> bool {
        self.gentle
    }

    /// Slope between the thresholds, L_RED = max_p / (max_th - min_th).
    pub const fn slope(&self) -> f64 {
        self.slope
    }

    /// Average from which every packet is signalled.
    pub fn end(&self) -> f64 {
        if self.gentle { 2.0 * self.max_th } else { self.max_th }
    }
}

impl RedLaw {
    /// Signal probability at `average`.
    pub fn probability(&self, average: f64) -> f64 {
        self.gap(average).map_or(0.0, |(mean, _)| 1.0 / mean)
    }

    /// Dispersion at signal probability `p`: see [`crate::Theory::dispersion`].
    pub fn dispersion(&self, p: f64) -> f64 {
        match self.gap(self.average_at(p)) {
            Some((mean, variance)) if mean > 1.0 => variance / (mean * mean) / (1.0 - 1.0 / mean),
            // Every packet is signalled.
            Some(_) => 0.0,
            None => 1.0,
        }
    }

    /// Gaps at signal probability `p`, in the continuous approximation: see [`crate::Theory::signal_gaps`]. `None` at
    /// probabilities 0 and 1.
    pub fn signal_gaps(&self, p: f64) -> Option<SignalGaps> {
        let average = self.average_at(p);
        let ((mean, _), base) = (self.gap(average)?, self.curve.probability(average));
        (mean > 1.0).then(|| {
            let least_pkts = if self.wait { 1.0 / base } else { 1.0 };
            SignalGaps { least_pkts, tail: GapTail::Uniform(if self.wait { 1.0 / base } else { 1.0 / base - 1.0 }) }
        })
    }

    /// Mean and variance of the gap between two signals at `average`, packets; `None` without signals.
    fn gap(&self, average: f64) -> Option<(f64, f64)> {
        let base = self.curve.probability(average);
        if base <= 0.0 {
            return None;
        }
        // No signal up to packet `from`, then probability 1 / (span - j) at the j-th further packet: the survival
        // probabilities are 1 - j / span, and their sum is the mean gap.
        let (from, span) = if self.wait {
            let from = libm::ceil(1.0 / base);
            (from, 2.0 / base - from)
        } else {
            (1.0, 1.0 / base - 1.0)
        };
        let n = libm::floor(span);
        if n <= 0.0 {
            return Some((from, 0.0));
        }
        let further = n - n * (n + 1.0) / (2.0 * span);
        // The mean square is the sum of (2 j - 1) (1 - j / span).
        let square = n * n - n * (n + 1.0) * (4.0 * n - 1.0) / (6.0 * span);
        Some((from + further, (square - further * further).max(0.0)))
    }

    /// Average with signal probability `p`; the end of the curve if there is none.
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

    /// Whether a signal at `average` drops ECN-capable packets.
    pub fn drops_ect(&self, average: f64) -> bool {
        !self.ecn || average >= self.mark_limit.1 || self.curve.probability(average) > self.mark_limit.0
    }
}

impl RedLaw {
    /// Transfer function C(s) = L / (s / K + 1) at signal probability `probability` and `capacity_pps` arrivals per
    /// second.
    pub fn linear(&self, probability: f64, capacity_pps: f64) -> Transfer {
        let average = self.average_at(probability);
        // Gaps are whole packets, so the signal probability has small jumps; the slope is taken over several of them.
        let h = (0.1 * (average - self.curve.min_th())).max(1e-6 * average.max(1.0));
        let gain = (self.probability(average + h) - self.probability(average - h)) / (2.0 * h);
        Transfer { num: alloc::vec![gain], den: alloc::vec![1.0, 1.0 / (self.decay * capacity_pps)], period_s: None }
    }
}
