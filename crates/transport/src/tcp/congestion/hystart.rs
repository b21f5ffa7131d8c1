//! HyStart++ (RFC 9406): leaves slow start when the round trip grows, before anything is lost.
//!
//! Each round (a window of data) has a smallest round trip. If it exceeds that of the round before by an eighth, at
//! least 4 ms and at most 16 ms, growth slows to a quarter (conservative slow start, CSS). If the round trip falls back
//! within five rounds the alarm was false; else slow start ends.
//!
//! ```text
//!   slow start --- round trip grew ---> CSS --- five rounds ---> congestion avoidance
//!        ^----------- it fell back -------+
//! ```
//!
//! Parameters are those of section 4.3. Only the first slow start of a connection uses it, as section 4.3 advises.
//!
//! Deviation: how much one acknowledgement counts is [`growth_limit`](crate::tcp::TcpConfig::growth_limit), not L = 8.

use aqumen_units::Span;

use super::controller::Acked;

const MIN_RTT_THRESH: Span = Span::from_millis(4);
const MAX_RTT_THRESH: Span = Span::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

/// State of HyStart++.
#[derive(Clone, Debug)]
pub(super) struct Hystart {
    /// Smallest round trip of the round before and of this one.
    last: Span,
    current: Span,
    samples: u32,
    /// The round ends when this segment is acknowledged (windowEnd).
    end: u32,
    css: Option<Css>,
}

#[derive(Clone, Copy, Debug)]
struct Css {
    /// Smallest round trip when it began.
    baseline: Span,
    rounds: u32,
}

/// What slow start is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Advice {
    /// Grow by this fraction of what was acknowledged.
    Grow(f64),
    /// Slow start is over.
    Leave,
}

impl Hystart {
    pub(super) fn new() -> Self {
        Hystart { last: Span::MAX, current: Span::MAX, samples: 0, end: 0, css: None }
    }

    /// An acknowledgement in slow start (section 4.2).
    pub(super) fn on_ack(&mut self, acked: &Acked) -> Advice {
        if self.end == 0 {
            self.end = acked.high;
        }
        if let Some(rtt) = acked.rtt {
            self.current = self.current.min(rtt);
            self.samples += 1;
        }
        if self.samples >= N_RTT_SAMPLE {
            match self.css {
                None if self.last != Span::MAX => {
                    let threshold = (self.last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                    if self.current >= self.last + threshold {
                        self.css = Some(Css { baseline: self.current, rounds: 0 });
                    }
                }
                Some(css) if self.current < css.baseline => self.css = None,
                _ => {}
            }
        }
        if acked.una >= self.end {
            self.end = acked.high;
            self.last = self.current;
            self.current = Span::MAX;
            self.samples = 0;
            if let Some(css) = &mut self.css {
                // The round in which it began counts.
                css.rounds += 1;
                if css.rounds >= CSS_ROUNDS {
                    return Advice::Leave;
                }
            }
        }
        Advice::Grow(if self.css.is_some() { 1.0 / CSS_GROWTH_DIVISOR } else { 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::controller::tests::acked;
    use super::*;

    extern crate std;
    use std::vec::Vec;

    const FULL: Advice = Advice::Grow(1.0);
    const QUARTER: Advice = Advice::Grow(0.25);

    /// Rounds of ten acknowledgements with one round trip each: the advice of the last of each.
    fn rounds(rtts_ms: &[u64]) -> Vec<Advice> {
        let mut hystart = Hystart::new();
        let mut una = 0;
        let mut advice = Vec::new();
        for &rtt in rtts_ms {
            for _ in 0..10 {
                una += 1;
                let one = Acked { una, high: una / 10 * 10 + 10, rtt: Some(Span::from_millis(rtt)), ..acked() };
                advice.push(hystart.on_ack(&one));
            }
        }
        advice.chunks(10).map(|round| round[9]).collect()
    }

    #[test]
    fn the_threshold_is_an_eighth_between_4_and_16_ms() {
        // After 80 ms: 10 ms. After 89 ms: 11.125 ms.
        assert_eq!(rounds(&[80, 89, 100]), [FULL, FULL, FULL]);
        assert_eq!(rounds(&[80, 89, 101]), [FULL, FULL, QUARTER]);
        assert_eq!(rounds(&[80, 90]), [FULL, QUARTER]);
        // 16 ms: an eighth would be 2 ms, the least is 4.
        assert_eq!(rounds(&[16, 19]), [FULL, FULL]);
        assert_eq!(rounds(&[16, 20]), [FULL, QUARTER]);
        // 400 ms: an eighth would be 50 ms, the most is 16.
        assert_eq!(rounds(&[400, 415]), [FULL, FULL]);
        assert_eq!(rounds(&[400, 416]), [FULL, QUARTER]);
    }

    #[test]
    fn five_rounds_of_css_end_slow_start_and_a_shorter_round_trip_ends_css() {
        let steady = rounds(&[80, 100, 100, 100, 100, 100]);
        assert_eq!(steady, [FULL, QUARTER, QUARTER, QUARTER, QUARTER, Advice::Leave]);
        // The baseline is 100 ms: 99 is less, and slow start goes on at full pace.
        assert_eq!(rounds(&[80, 100, 99]), [FULL, QUARTER, FULL]);
    }
}
