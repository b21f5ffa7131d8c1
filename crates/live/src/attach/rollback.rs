//! `--rollback`: passes everything when delay or throughput become worse than before the attachment.
//!
//! For ten seconds the marker passes everything while delay and throughput are measured: the baseline. Then each ten
//! seconds are compared with it. Throughput counts only while the AQM signals: without signals a lower rate means less
//! demand. Without `return` the program then detaches; with it, a new baseline is measured after that time.

use super::options::Rollback;

const WINDOW_S: f64 = 10.0;
/// Fraction of a window with a positive probability above which the AQM was active in it.
const ACTIVE_FRACTION: f64 = 0.5;

/// Comparison of each window with the baseline.
#[derive(Debug)]
pub(crate) struct Comparison {
    limits: Rollback,
    baseline: Option<Sums>,
    window: Sums,
    /// Remaining time in which everything passes, seconds.
    pause_s: f64,
}

/// Decision after a reading.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Pass everything: the baseline is being measured.
    Measure,
    Regulate,
    /// Pass everything for a while, for this reason.
    Pause(String),
    /// Detach, for this reason.
    Detach(String),
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    time_s: f64,
    delay: f64,
    bits: f64,
    signalled_s: f64,
}

impl Comparison {
    pub(crate) fn new(limits: Rollback) -> Self {
        Comparison { limits, baseline: None, window: Sums::default(), pause_s: 0.0 }
    }

    /// Discards the present window, after a gap in the readings.
    pub(crate) fn reset_window(&mut self) {
        self.window = Sums::default();
    }

    /// Adds an interval with its delay, departures and probability.
    pub(crate) fn update(&mut self, interval_s: f64, sojourn_s: f64, bits: f64, p: f64) -> Verdict {
        if self.pause_s > 0.0 {
            self.pause_s -= interval_s;
            return Verdict::Measure;
        }
        let sums = &mut self.window;
        sums.time_s += interval_s;
        sums.delay += sojourn_s * interval_s;
        sums.bits += bits;
        sums.signalled_s += if p > 0.0 { interval_s } else { 0.0 };
        if sums.time_s < WINDOW_S {
            return if self.baseline.is_none() { Verdict::Measure } else { Verdict::Regulate };
        }
        let window = std::mem::take(&mut self.window);
        match &self.baseline {
            None => {
                self.baseline = Some(window);
                Verdict::Regulate
            }
            Some(baseline) => match (self.limits.judge(baseline, &window), self.limits.return_s) {
                (Verdict::Detach(why), Some(return_s)) => {
                    (self.baseline, self.pause_s) = (None, return_s);
                    Verdict::Pause(why)
                }
                (verdict, _) => verdict,
            },
        }
    }
}

impl Rollback {
    fn judge(&self, baseline: &Sums, now: &Sums) -> Verdict {
        let (delay_s, baseline_s) = (now.delay / now.time_s, baseline.delay / baseline.time_s);
        if self.delay_s.is_some_and(|limit| delay_s > baseline_s + limit) {
            return Verdict::Detach(format!("mean delay {:.1} ms, {:.1} ms before", 1e3 * delay_s, 1e3 * baseline_s));
        }
        let (rate, baseline_rate) = (now.bits / now.time_s, baseline.bits / baseline.time_s);
        let active = now.signalled_s > ACTIVE_FRACTION * now.time_s;
        if active && self.throughput.is_some_and(|fraction| rate < (1.0 - fraction) * baseline_rate) {
            return Verdict::Detach(format!("throughput {:.2} Mbit/s, {:.2} before", rate / 1e6, baseline_rate / 1e6));
        }
        Verdict::Regulate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Last verdict after `seconds`.
    fn run(comparison: &mut Comparison, seconds: u32, sojourn_s: f64, bps: f64, p: f64) -> Verdict {
        let mut verdict = Verdict::Regulate;
        for _ in 0..seconds * 100 + 1 {
            verdict = comparison.update(0.01, sojourn_s, bps * 0.01, p);
            if matches!(verdict, Verdict::Detach(_)) {
                break;
            }
        }
        verdict
    }

    fn limits(delay_s: Option<f64>, throughput: Option<f64>) -> Comparison {
        Comparison::new(Rollback { delay_s, throughput, return_s: None })
    }

    #[test]
    fn the_first_ten_seconds_only_measure() {
        let mut comparison = limits(Some(0.02), None);
        assert_eq!(run(&mut comparison, 9, 0.1, 20e6, 0.0), Verdict::Measure);
        assert_eq!(run(&mut comparison, 1, 0.1, 20e6, 0.0), Verdict::Regulate);
    }

    #[test]
    fn only_more_delay_than_before_detaches() {
        let mut comparison = limits(Some(0.02), None);
        run(&mut comparison, 10, 0.1, 20e6, 0.0);
        assert_eq!(run(&mut comparison, 10, 0.119, 20e6, 0.1), Verdict::Regulate);
        assert!(
            matches!(run(&mut comparison, 20, 0.13, 20e6, 0.1), Verdict::Detach(why) if why.starts_with("mean delay"))
        );
    }

    #[test]
    fn throughput_counts_while_the_aqm_signals() {
        let mut comparison = limits(None, Some(0.1));
        run(&mut comparison, 10, 0.1, 20e6, 0.0);
        assert_eq!(run(&mut comparison, 20, 0.0, 1e6, 0.0), Verdict::Regulate, "there is no demand");
        assert!(
            matches!(run(&mut comparison, 20, 0.0, 17e6, 0.1), Verdict::Detach(why) if why.starts_with("throughput"))
        );
    }

    #[test]
    fn after_the_pause_a_new_baseline_is_measured() {
        let limits = Rollback { delay_s: Some(0.02), throughput: None, return_s: Some(60.0) };
        let mut comparison = Comparison::new(limits);
        let mut run =
            |seconds: u32, sojourn_s: f64| (0..seconds).map(|_| comparison.update(1.0, sojourn_s, 0.0, 0.1)).last();
        assert_eq!((run(10, 0.1), run(9, 0.2)), (Some(Verdict::Regulate), Some(Verdict::Regulate)));
        assert_eq!(run(1, 0.2), Some(Verdict::Pause("mean delay 200.0 ms, 100.0 ms before".into())));
        // A minute of pause, and ten seconds with another delay.
        assert_eq!((run(69, 0.15), run(1, 0.15)), (Some(Verdict::Measure), Some(Verdict::Regulate)));
        assert_eq!(run(10, 0.16), Some(Verdict::Regulate));
    }

    #[test]
    fn ten_seconds_are_a_window() {
        let mut comparison = limits(Some(0.02), None);
        assert_eq!(comparison.update(10.0, 0.0, 0.0, 0.0), Verdict::Regulate);
    }

    #[test]
    fn a_change_by_the_limit_is_accepted() {
        // In numbers that have no rounding: a window of 16 s with 0.125 s of delay and 1 Mbit/s.
        let judged = |limits: Rollback, delay_s: f64, bps: f64, p: [f64; 2]| {
            let mut comparison = Comparison::new(limits);
            assert_eq!(comparison.update(16.0, 0.125, 16e6, 0.0), Verdict::Regulate);
            comparison.update(8.0, delay_s, 8.0 * bps, p[0]);
            comparison.update(8.0, delay_s, 8.0 * bps, p[1])
        };
        let by_delay = Rollback { delay_s: Some(0.25), throughput: None, return_s: None };
        assert_eq!(judged(by_delay, 0.375, 1e6, [1.0; 2]), Verdict::Regulate);
        assert_eq!(
            judged(by_delay, 0.5, 1e6, [1.0; 2]),
            Verdict::Detach("mean delay 500.0 ms, 125.0 ms before".into())
        );
        let by_throughput = Rollback { delay_s: None, throughput: Some(0.5), return_s: None };
        assert_eq!(judged(by_throughput, 9.0, 5e5, [1.0; 2]), Verdict::Regulate);
        let worse = Verdict::Detach("throughput 0.25 Mbit/s, 1.00 before".into());
        assert_eq!(judged(by_throughput, 9.0, 2.5e5, [1.0; 2]), worse);
        // Half of the time is not most of it.
        assert_eq!(judged(by_throughput, 9.0, 2.5e5, [0.0, 1.0]), Verdict::Regulate);
    }
}
