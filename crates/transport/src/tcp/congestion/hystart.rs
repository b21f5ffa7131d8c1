//! HyStart++ (RFC 9406): leaves slow start when the round-trip time grows, before losses occur.
//!
//! Each round (a window of data) has a smallest round-trip time. If it exceeds that of the previous round by an eighth,
//! at least 4 ms and at most 16 ms, growth slows to a quarter (conservative slow start, CSS). Slow start resumes if the
//! round-trip time falls back within five rounds; otherwise it ends.
//!
//! ```text
//!   slow start --- round trip grew ---> CSS --- five rounds ---> congestion avoidance
//!        ^----------- fell back ----------+
//! ```
//!
//! Parameters are those of section 4.3, which also limits HyStart++ to the first slow start of a connection.
//!
//! Deviation: [`growth_limit`](crate::tcp::TcpConfig::growth_limit) replaces L = 8.

use aqumen_units::Span;

use super::controller::AckSample;

const MIN_RTT_THRESH: Span = Span::from_millis(4);
const MAX_RTT_THRESH: Span = Span::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

/// State of HyStart++.
#[derive(Clone, Debug)]
pub(super) struct Hystart {
    /// Smallest round-trip time of the previous round and of this one.
    last: Span,
    current: Span,
    samples: u32,
    /// Segment whose acknowledgement ends the round (windowEnd).
    end: u32,
    css: Option<Css>,
}

#[derive(Clone, Copy, Debug)]
struct Css {
    /// Smallest round-trip time at the start of CSS.
    baseline: Span,
    rounds: u32,
}

/// Growth of slow start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Advice {
    /// Grow by this fraction of the acknowledged segments.
    Grow(f64),
    /// Leave slow start.
    Leave,
}

impl Hystart {
    pub(super) fn new() -> Self {
        Hystart { last: Span::MAX, current: Span::MAX, samples: 0, end: 0, css: None }
    }

    /// Processes an acknowledgement in slow start (section 4.2).
    pub(super) fn on_ack(&mut self, acked: &AckSample) -> Advice {
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
                // The round in which CSS began counts.
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

    /// Rounds of ten acknowledgements with one round-trip time each: the last advice of each round.
    fn rounds(rtts_ms: &[u64]) -> Vec<Advice> {
        let mut hystart = Hystart::new();
        let mut una = 0;
        let mut advice = Vec::new();
        for &rtt in rtts_ms {
            for _ in 0..10 {
                una += 1;
                let one = AckSample { una, high: una / 10 * 10 + 10, rtt: Some(Span::from_millis(rtt)), ..acked() };
                advice.push(hystart.on_ack(&one));
            }
        }
        advice.chunks(10).map(|round| round[9]).collect()
    }

    #[test]
    fn the_threshold_is_an_eighth_between_4_and_16_ms() {
        // After 80 ms the threshold is 10 ms, after 89 ms 11.125 ms.
        assert_eq!(rounds(&[80, 89, 100]), [FULL, FULL, FULL]);
        assert_eq!(rounds(&[80, 89, 101]), [FULL, FULL, QUARTER]);
        assert_eq!(rounds(&[80, 90]), [FULL, QUARTER]);
        // 16 ms: an eighth is 2 ms, the minimum 4.
        assert_eq!(rounds(&[16, 19]), [FULL, FULL]);
        assert_eq!(rounds(&[16, 20]), [FULL, QUARTER]);
        // 400 ms: an eighth is 50 ms, the maximum 16.
        assert_eq!(rounds(&[400, 415]), [FULL, FULL]);
        assert_eq!(rounds(&[400, 416]), [FULL, QUARTER]);
    }

    #[test]
    fn five_rounds_of_css_end_slow_start_and_a_shorter_round_trip_ends_css() {
        let steady = rounds(&[80, 100, 100, 100, 100, 100]);
        assert_eq!(steady, [FULL, QUARTER, QUARTER, QUARTER, QUARTER, Advice::Leave]);
        // The baseline is 100 ms: at 99 ms full growth resumes.
        assert_eq!(rounds(&[80, 100, 99]), [FULL, QUARTER, FULL]);
    }
}
