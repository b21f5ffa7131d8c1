//! `--autorate`: estimates the link rate from departures while the queue is backlogged.
//!
//! A radio link sends in bursts and pauses: the cell serves others, a grant comes late. A pause is neither a rate nor
//! congestion. The estimate is therefore bytes over the time from burst to burst, in a window that spans several
//! bursts. A pause longer than the window leaves it unchanged. When the link becomes faster, the AQM still signals for
//! the lower rate, and a backlog is rare. Then the throughput is a lower bound on the rate. The AQM is redesigned when
//! the estimate has changed by 10 %.

use aqumen_units::Rate;

use super::decayed_ratio::DecayedRatio;
use super::options::Range;

/// Time constant of the estimate, in seconds with a backlog.
const WINDOW_S: f64 = 1.0;
/// Backlogged time after which the estimate is used, seconds.
const WARMUP_S: f64 = 0.5;
/// Longest part of a pause that counts as transmission time, seconds.
const PAUSE_MAX_S: f64 = 0.1;
/// Smallest relative change that is reported.
const CHANGE_MIN: f64 = 0.1;

/// Estimator of a link's rate.
#[derive(Clone, Debug)]
pub(crate) struct Autorate {
    range: Range,
    /// Rate that the AQM is designed for, bit/s.
    design_bps: f64,
    /// Bits over seconds with a backlog.
    backlogged: DecayedRatio,
    /// Bits over all seconds.
    carried: DecayedRatio,
    pause_s: f64,
}

impl Autorate {
    pub(crate) fn new(rate: Rate, range: Range) -> Self {
        let empty = DecayedRatio::new(WINDOW_S);
        Autorate { range, design_bps: rate.as_bps() as f64, backlogged: empty, carried: empty, pause_s: 0.0 }
    }

    /// Adds an interval with its departures; `backlogged`: the queue was backlogged throughout. Returns the new rate if
    /// it changed.
    pub(crate) fn update(&mut self, interval_s: f64, departed_bytes: u64, backlogged: bool) -> Option<Rate> {
        let bits = 8.0 * departed_bytes as f64;
        self.carried.add(interval_s, bits, interval_s);
        if !backlogged {
            self.pause_s = 0.0;
            let carried_bps = bps(&self.carried).filter(|bps| *bps > self.design_bps)?;
            let rate = self.adopt(carried_bps)?;
            // The backlogged time before the change had another rate.
            self.backlogged.numerator = self.design_bps * self.backlogged.denominator;
            return Some(rate);
        }
        if departed_bytes == 0 {
            self.pause_s += interval_s;
            return None;
        }
        // A short pause belongs to the rate; of a long one only a part counts.
        let time_s = interval_s + self.pause_s.min(PAUSE_MAX_S);
        self.backlogged.add(time_s, bits, time_s);
        self.pause_s = 0.0;
        bps(&self.backlogged).and_then(|bps| self.adopt(bps))
    }

    /// Adopts `bps`, limited to the range, if it differs enough.
    fn adopt(&mut self, bps: f64) -> Option<Rate> {
        let floor = self.range.floor.map_or(0.0, |rate| rate.as_bps() as f64);
        let ceiling = self.range.ceiling.map_or(f64::INFINITY, |rate| rate.as_bps() as f64);
        let limited_bps = bps.max(floor).min(ceiling).max(8000.0);
        if (limited_bps / self.design_bps - 1.0).abs() < CHANGE_MIN {
            return None;
        }
        self.design_bps = limited_bps;
        Some(Rate::from_bps(limited_bps as u64))
    }

    /// Present estimate, bit/s.
    #[cfg(test)]
    pub(crate) fn rate_bps(&self) -> f64 {
        self.design_bps
    }
}

/// Ratio in bit/s, once enough time has passed.
fn bps(ratio: &DecayedRatio) -> Option<f64> {
    (ratio.denominator >= WARMUP_S).then(|| ratio.value())
}

#[cfg(test)]
mod tests;
