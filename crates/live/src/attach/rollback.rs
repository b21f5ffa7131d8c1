//! `--rollback`: let everything pass when things get worse than before.
//!
//! For ten seconds the marker lets everything pass while delay and throughput are measured: that is before. Then
//! each ten seconds are compared with it. Throughput counts only while the AQM signals: without signals it is
//! the traffic that asks for less. Without `return` that is the end; with it, before is measured anew after so long.

use super::options::Rollback;

const WINDOW_S: f64 = 10.0;
/// Signals in this share of the samples make a window one in which the AQM worked.
const WORKED: f64 = 0.5;

/// Compares what is with what was.
#[derive(Debug)]
pub(crate) struct Comparison {
    limits: Rollback,
    before: Option<Sums>,
    window: Sums,
    /// So long everything passes still, seconds.
    away_s: f64,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Let everything pass: before is being measured.
    Wait,
    /// Regulate.
    Go,
    /// Let everything pass for a while, and say why.
    Away(String),
    /// Leave, and say why.
    Worse(String),
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
        Comparison { limits, before: None, window: Sums::default(), away_s: 0.0 }
    }

    /// Nothing was read for a while: the window begins anew.
    pub(crate) fn forget_window(&mut self) {
        self.window = Sums::default();
    }

    /// `interval_s` passed with this delay and so many bits sent under probability `p`.
    pub(crate) fn see(&mut self, interval_s: f64, sojourn_s: f64, bits: f64, p: f64) -> Verdict {
        if self.away_s > 0.0 {
            self.away_s -= interval_s;
            return Verdict::Wait;
        }
        let sums = &mut self.window;
        sums.time_s += interval_s;
        sums.delay += sojourn_s * interval_s;
        sums.bits += bits;
        sums.signalled_s += if p > 0.0 { interval_s } else { 0.0 };
        if sums.time_s < WINDOW_S {
            return if self.before.is_none() { Verdict::Wait } else { Verdict::Go };
        }
        let window = std::mem::take(&mut self.window);
        match &self.before {
            None => {
                self.before = Some(window);
                Verdict::Go
            }
            Some(before) => match (self.limits.judge(before, &window), self.limits.return_s) {
                (Verdict::Worse(why), Some(return_s)) => {
                    (self.before, self.away_s) = (None, return_s);
                    Verdict::Away(why)
                }
                (verdict, _) => verdict,
            },
        }
    }
}

impl Rollback {
    fn judge(&self, before: &Sums, now: &Sums) -> Verdict {
        let (delay_s, was_s) = (now.delay / now.time_s, before.delay / before.time_s);
        if self.delay_s.is_some_and(|limit| delay_s > was_s + limit) {
            return Verdict::Worse(format!("mean delay {:.1} ms, {:.1} ms before", 1e3 * delay_s, 1e3 * was_s));
        }
        let (rate, was) = (now.bits / now.time_s, before.bits / before.time_s);
        let worked = now.signalled_s > WORKED * now.time_s;
        if worked && self.throughput.is_some_and(|share| rate < (1.0 - share) * was) {
            return Verdict::Worse(format!("throughput {:.2} Mbit/s, {:.2} before", rate / 1e6, was / 1e6));
        }
        Verdict::Go
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last verdict after so many seconds.
    fn run(comparison: &mut Comparison, seconds: u32, sojourn_s: f64, bps: f64, p: f64) -> Verdict {
        let mut verdict = Verdict::Go;
        for _ in 0..seconds * 100 + 1 {
            verdict = comparison.see(0.01, sojourn_s, bps * 0.01, p);
            if matches!(verdict, Verdict::Worse(_)) {
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
        assert_eq!(run(&mut comparison, 9, 0.1, 20e6, 0.0), Verdict::Wait);
        assert_eq!(run(&mut comparison, 1, 0.1, 20e6, 0.0), Verdict::Go);
    }

    #[test]
    fn more_delay_than_before_ends_it_and_less_does_not() {
        let mut comparison = limits(Some(0.02), None);
        run(&mut comparison, 10, 0.1, 20e6, 0.0);
        assert_eq!(run(&mut comparison, 10, 0.119, 20e6, 0.1), Verdict::Go);
        assert!(
            matches!(run(&mut comparison, 20, 0.13, 20e6, 0.1), Verdict::Worse(why) if why.starts_with("mean delay"))
        );
    }

    #[test]
    fn throughput_counts_while_the_aqm_signals() {
        let mut comparison = limits(None, Some(0.1));
        run(&mut comparison, 10, 0.1, 20e6, 0.0);
        assert_eq!(run(&mut comparison, 20, 0.0, 1e6, 0.0), Verdict::Go, "nobody asks for more");
        assert!(
            matches!(run(&mut comparison, 20, 0.0, 17e6, 0.1), Verdict::Worse(why) if why.starts_with("throughput"))
        );
    }

    #[test]
    fn it_comes_back_after_a_while_and_measures_before_anew() {
        let limits = Rollback { delay_s: Some(0.02), throughput: None, return_s: Some(60.0) };
        let mut comparison = Comparison::new(limits);
        let mut see =
            |seconds: u32, sojourn_s: f64| (0..seconds).map(|_| comparison.see(1.0, sojourn_s, 0.0, 0.1)).last();
        assert_eq!((see(10, 0.1), see(9, 0.2)), (Some(Verdict::Go), Some(Verdict::Go)));
        assert_eq!(see(1, 0.2), Some(Verdict::Away("mean delay 200.0 ms, 100.0 ms before".into())));
        // A minute, and ten seconds in which the delay is another than it was.
        assert_eq!((see(69, 0.15), see(1, 0.15)), (Some(Verdict::Wait), Some(Verdict::Go)));
        assert_eq!(see(10, 0.16), Some(Verdict::Go));
    }

    #[test]
    fn ten_seconds_are_a_window() {
        let mut comparison = limits(Some(0.02), None);
        assert_eq!(comparison.see(10.0, 0.0, 0.0, 0.0), Verdict::Go);
    }

    #[test]
    fn at_the_limit_nothing_has_become_worse() {
        // In numbers that have no rounding: a window of 16 s with 0.125 s of delay and 1 Mbit/s.
        let judged = |limits: Rollback, delay_s: f64, bps: f64, p: [f64; 2]| {
            let mut comparison = Comparison::new(limits);
            assert_eq!(comparison.see(16.0, 0.125, 16e6, 0.0), Verdict::Go);
            comparison.see(8.0, delay_s, 8.0 * bps, p[0]);
            comparison.see(8.0, delay_s, 8.0 * bps, p[1])
        };
        let by_delay = Rollback { delay_s: Some(0.25), throughput: None, return_s: None };
        assert_eq!(judged(by_delay, 0.375, 1e6, [1.0; 2]), Verdict::Go);
        assert_eq!(judged(by_delay, 0.5, 1e6, [1.0; 2]), Verdict::Worse("mean delay 500.0 ms, 125.0 ms before".into()));
        let by_throughput = Rollback { delay_s: None, throughput: Some(0.5), return_s: None };
        assert_eq!(judged(by_throughput, 9.0, 5e5, [1.0; 2]), Verdict::Go);
        let worse = Verdict::Worse("throughput 0.25 Mbit/s, 1.00 before".into());
        assert_eq!(judged(by_throughput, 9.0, 2.5e5, [1.0; 2]), worse);
        // Half of the time is not most of it.
        assert_eq!(judged(by_throughput, 9.0, 2.5e5, [0.0, 1.0]), Verdict::Go);
    }
}
