//! PIE's measurement of the departure rate, and the delay that follows from it.

use aqumen_units::Instant;

/// Section 5.2: bytes over which the departure rate is measured, and the weight of one measurement, 2^14 / 2^16.
const RATE_BYTES: u64 = 1 << 14;
const RATE_WEIGHT: f64 = 0.25;

/// RFC 8033 section 5.2: average time in which `RATE_BYTES` depart from a long queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateMeter {
    /// Start of the current measurement, and bytes departed since.
    measuring: Option<(Instant, u64)>,
    /// Average time for `RATE_BYTES`, seconds; `None` before the first measurement.
    time_s: Option<f64>,
}

impl RateMeter {
    /// Counts a departing packet of `bytes` with `backlog_bytes` behind it.
    pub fn on_dequeue(&mut self, bytes: u32, backlog_bytes: u64, now: Instant) {
        // A measurement begins only if the queue is long enough to complete it.
        if self.measuring.is_none() && backlog_bytes >= RATE_BYTES {
            self.measuring = Some((now, 0));
            return;
        }
        let Some((began, left)) = &mut self.measuring else { return };
        *left += bytes as u64;
        if *left >= RATE_BYTES {
            let time_s = now.saturating_since(*began).as_secs_f64() * RATE_BYTES as f64 / *left as f64;
            self.time_s = Some(match self.time_s {
                None => time_s,
                Some(average) => RATE_WEIGHT * time_s + (1.0 - RATE_WEIGHT) * average,
            });
            self.measuring = (backlog_bytes >= RATE_BYTES).then_some((now, 0));
        }
    }

    /// Estimated queueing delay of `backlog_bytes`, seconds; 0 before the first measurement.
    pub fn delay_s(&self, backlog_bytes: u64) -> f64 {
        self.time_s.map_or(0.0, |time_s| backlog_bytes as f64 * time_s / RATE_BYTES as f64)
    }
}
