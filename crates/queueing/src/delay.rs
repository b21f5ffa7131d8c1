//! Distribution of a packet's delay: waiting and service.
//!
//! An accepted packet that finds k stages waits for these and then for its own m: its delay is Erlang distributed with
//! k + m stages, each exponential with rate m mu. The delay of all accepted packets is a mixture of these.

use crate::sum::{CompensatedSum, sum};

/// Mixture of Erlang distributions with a common stage rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Delay {
    /// Stages of the packet's own service, m.
    stages: usize,
    /// Stages per second, m mu.
    stage_rate: f64,
    /// below[k]: fraction of accepted packets that find at most k stages.
    below: Vec<f64>,
    /// above[k]: fraction that finds more than k.
    above: Vec<f64>,
    mean_s: f64,
    variance_s2: f64,
}

impl Delay {
    /// Distribution for `found[k]` accepted packets per second that find k stages, k = 0, 1, ...; NaN if none is
    /// accepted.
    pub(crate) fn new(found: &[f64], stages: usize, stage_rate: f64) -> Self {
        let accepted = sum(found.iter().copied());
        let share = |k: usize| found[k] / accepted;
        let mean = sum((0..found.len()).map(|k| share(k) * (k + stages) as f64));
        // Var = E[n] + Var[n] stages squared: nothing cancels.
        let spread = sum((0..found.len()).map(|k| {
            let off = (k + stages) as f64 - mean;
            share(k) * off * off
        }));
        let mut running = CompensatedSum::default();
        let below = (0..found.len())
            .map(|k| {
                running.add(share(k));
                running.value().min(1.0)
            })
            .collect();
        let mut above = vec![0.0; found.len()];
        let mut running = CompensatedSum::default();
        for k in (1..found.len()).rev() {
            running.add(share(k));
            above[k - 1] = running.value();
        }
        let variance_s2 = (mean + spread) / (stage_rate * stage_rate);
        Delay { stages, stage_rate, below, above, mean_s: mean / stage_rate, variance_s2 }
    }

    /// Mean, seconds.
    pub fn mean_s(&self) -> f64 {
        self.mean_s
    }

    /// Variance, seconds squared.
    pub fn variance_s2(&self) -> f64 {
        self.variance_s2
    }

    /// Standard deviation, seconds.
    pub fn std_s(&self) -> f64 {
        self.variance_s2.sqrt()
    }

    /// Probability of a delay of at most `t_s`.
    pub fn cdf(&self, t_s: f64) -> f64 {
        self.poisson_mean(
            t_s,
            |done| if done < self.stages { 0.0 } else { value_at(&self.below, done - self.stages, 1.0) },
        )
    }

    /// Probability of a delay above `t_s`, precise in the tail.
    pub fn survival(&self, t_s: f64) -> f64 {
        self.poisson_mean(
            t_s,
            |done| if done < self.stages { 1.0 } else { value_at(&self.above, done - self.stages, 0.0) },
        )
    }

    /// Quantile `p` of the delay, seconds; NaN outside 0 <= p < 1.
    pub fn quantile(&self, p: f64) -> f64 {
        if !(0.0..1.0).contains(&p) || self.mean_s.is_nan() {
            return f64::NAN;
        }
        if p == 0.0 {
            return 0.0;
        }
        // The smaller tail is compared, so that 0.999999 is as precise as 0.000001.
        let short = |t_s: f64| if p < 0.5 { self.cdf(t_s) < p } else { self.survival(t_s) > 1.0 - p };
        let (mut low, mut high) = (0.0, self.mean_s);
        while short(high) {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if middle <= low || middle >= high {
                break;
            }
            if short(middle) { low = middle } else { high = middle }
        }
        high
    }

    /// Mean of `value` over the Poisson distributed number of stages that end within `t_s`, summed outwards from the
    /// mode, without logarithms.
    fn poisson_mean(&self, t_s: f64, value: impl Fn(usize) -> f64) -> f64 {
        let expected = self.stage_rate * t_s;
        if expected.is_nan() || self.mean_s.is_nan() {
            return f64::NAN;
        }
        if expected <= 0.0 {
            return value(0);
        }
        // All stages have ended, with certainty to the last bit.
        let most = (self.below.len() + self.stages) as f64;
        if expected > 2.0 * most + 1000.0 {
            return value(usize::MAX);
        }
        let mode = expected.floor();
        let (mut weight, mut total) = (CompensatedSum::default(), CompensatedSum::default());
        let mut take = |term: f64, count: f64| {
            weight.add(term);
            total.add(term * value(count as usize));
        };
        take(1.0, mode);
        for (step, from) in [(1.0, mode), (-1.0, mode)] {
            let (mut term, mut count) = (1.0f64, from);
            while term > 1e-40 && (step > 0.0 || count > 0.0) {
                term *= if step > 0.0 { expected / (count + 1.0) } else { count / expected };
                count += step;
                take(term, count);
            }
        }
        total.value() / weight.value()
    }
}

fn value_at(values: &[f64], k: usize, beyond: f64) -> f64 {
    // Beyond the last stage that a packet finds.
    if k + 1 >= values.len() { beyond } else { values[k] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(Erlang with n stages of this rate > t), term by term.
    fn erlang(n: usize, rate: f64, t: f64) -> f64 {
        let x = rate * t;
        let terms = (0..n).scan((-x).exp(), |term, k| {
            let current = *term;
            *term *= x / (k + 1) as f64;
            Some(current)
        });
        terms.sum()
    }

    #[test]
    fn moments_and_tails_of_a_mixture_of_erlangs_are_sums_over_its_components() {
        // 5 packets a second find no stage, 2 find two, 3 find five; each adds three of 40/s.
        let delay = Delay::new(&[5.0, 0.0, 2.0, 0.0, 0.0, 3.0], 3, 40.0);
        let parts = [(0.5, 3), (0.2, 5), (0.3, 8)];
        let mean: f64 = parts.iter().map(|(share, n)| share * *n as f64 / 40.0).sum();
        // Each part has the mean n / 40 and the variance n / 1600.
        let square: f64 = parts.iter().map(|(share, n)| share * (*n as f64 + (n * n) as f64) / 1600.0).sum();
        assert!((delay.mean_s() - mean).abs() < 1e-14 && (delay.variance_s2() - (square - mean * mean)).abs() < 1e-14);
        assert!((delay.std_s() - delay.variance_s2().sqrt()).abs() < 1e-15);
        for t in [1e-3, 0.02, 0.11, 0.4, 2.0] {
            let longer: f64 = parts.iter().map(|(share, n)| share * erlang(*n, 40.0, t)).sum();
            assert!((delay.survival(t) / longer - 1.0).abs() < 1e-12, "{t}: {} {longer}", delay.survival(t));
            assert!((delay.cdf(t) - (1.0 - longer)).abs() < 1e-14, "{t}");
        }
        for p in [1e-9, 0.3, 0.5, 0.7, 1.0 - 1e-9] {
            let t = delay.quantile(p);
            assert!((delay.cdf(t) - p).abs() < 1e-15 + 1e-12 * p, "{p}: {t}");
            assert!(delay.cdf(t * (1.0 - 1e-6)) < p, "{p}: {t}");
        }
        assert_eq!((delay.cdf(1e6), delay.survival(1e6)), (1.0, 0.0));
        assert!(delay.cdf(f64::NAN).is_nan());
    }

    #[test]
    fn a_delay_of_a_million_stages_is_normal() {
        // Each packet finds 999 999 stages and adds one: a mean of 1e6 stages, a standard deviation of 1000.
        let mut found = vec![0.0; 1_000_000];
        found[999_999] = 1.0;
        let delay = Delay::new(&found, 1, 1.0);
        for z in [-1.5f64, 0.0, 1.5, 3.0] {
            let above = 0.5 * libm::erfc(z / std::f64::consts::SQRT_2);
            assert!((delay.survival(1e6 + 1e3 * z) - above).abs() < 1e-3, "{z}");
        }
    }

    #[test]
    fn the_delay_is_undefined_if_no_packet_is_accepted() {
        let delay = Delay::new(&[0.0, 0.0], 1, 1.0);
        assert!(delay.mean_s().is_nan() && delay.cdf(1.0).is_nan() && delay.quantile(0.5).is_nan());
    }

    #[test]
    fn quantiles_are_precise_for_very_slow_services() {
        // Service times of an hour and of 30 000 years, no waiting: e^-t/mean.
        for mean_s in [3600.0, 1e12] {
            let delay = Delay::new(&[1.0], 1, 1.0 / mean_s);
            for p in [0.01f64, 0.5, 0.9, 0.999] {
                let expected = -mean_s * (1.0 - p).ln();
                assert!((delay.quantile(p) / expected - 1.0).abs() < 1e-10, "{p}: {}", delay.quantile(p));
            }
        }
    }
}
