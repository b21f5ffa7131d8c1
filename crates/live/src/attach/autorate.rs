//! `--autorate`: what rate a link has now, from what leaves while something waits.
//!
//! A radio sends in bursts and falls silent: a cell serves others, a grant comes late. Silence is no rate, and no
//! congestion either, so the estimate is of bytes over the time from burst to burst, over a window long enough to hold
//! several, and a silence longer than the window leaves it as it was. A link that has become faster may have no backlog
//! for long, since the AQM still signals for the slower one: what it carries in a window is then the least that its
//! rate can be. The AQM is designed anew when the estimate has moved by a tenth.

use aqumen_units::Rate;

use super::options::Range;
use super::recent::Recent;

/// Over how much time with a backlog the rate is taken, seconds.
const WINDOW_S: f64 = 1.0;
/// After so much of it the rate is known.
const KNOWN_S: f64 = 0.5;
/// A longer silence is one of the radio.
const SILENCE_S: f64 = 0.1;
/// A rate that moved by less is the same.
const STEP: f64 = 0.1;

/// Follows a rate.
#[derive(Clone, Debug)]
pub(crate) struct Autorate {
    range: Range,
    /// What the AQM is designed for, bit/s.
    used_bps: f64,
    /// Bits in the time in which something waited.
    waiting: Recent,
    /// Of all time.
    carried: Recent,
    silent_s: f64,
}

impl Autorate {
    /// Begins at `rate`.
    pub(crate) fn new(rate: Rate, range: Range) -> Self {
        let nothing = Recent::new(WINDOW_S);
        Autorate { range, used_bps: rate.as_bps() as f64, waiting: nothing, carried: nothing, silent_s: 0.0 }
    }

    /// In `interval_s` so many bytes left; `waited`: something waited all along. The new rate, if it is another.
    pub(crate) fn see(&mut self, interval_s: f64, departed_bytes: u64, waited: bool) -> Option<Rate> {
        let bits = 8.0 * departed_bytes as f64;
        self.carried.add(interval_s, bits, interval_s);
        if !waited {
            self.silent_s = 0.0;
            let carried_bps = bps(&self.carried).filter(|bps| *bps > self.used_bps)?;
            let rate = self.adopt(carried_bps)?;
            // What waited before waited at another rate.
            self.waiting.what = self.used_bps * self.waiting.within;
            return Some(rate);
        }
        if departed_bytes == 0 {
            self.silent_s += interval_s;
            return None;
        }
        // A short gap belongs to the rate; a long one says nothing of it but for as much as a short one.
        let time_s = interval_s + self.silent_s.min(SILENCE_S);
        self.waiting.add(time_s, bits, time_s);
        self.silent_s = 0.0;
        bps(&self.waiting).and_then(|bps| self.adopt(bps))
    }

    /// Takes `bps`, within the range, if that is another rate.
    fn adopt(&mut self, bps: f64) -> Option<Rate> {
        let floor = self.range.floor.map_or(0.0, |rate| rate.as_bps() as f64);
        let ceiling = self.range.ceiling.map_or(f64::INFINITY, |rate| rate.as_bps() as f64);
        let seen_bps = bps.max(floor).min(ceiling).max(8000.0);
        if (seen_bps / self.used_bps - 1.0).abs() < STEP {
            return None;
        }
        self.used_bps = seen_bps;
        Some(Rate::from_bps(seen_bps as u64))
    }

    /// bit/s.
    #[cfg(test)]
    pub(crate) fn rate_bps(&self) -> f64 {
        self.used_bps
    }
}

/// bit/s of bits in seconds, once there was time enough.
fn bps(recent: &Recent) -> Option<f64> {
    (recent.within >= KNOWN_S).then(|| recent.mean())
}

#[cfg(test)]
mod tests;
