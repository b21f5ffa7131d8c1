//! Detection of oscillations in a measured queue, as opposed to noise.
//!
//! A stable loop filters packet noise, with a spectral peak where its margin is small; an unstable loop has a limit
//! cycle. Neither a peak nor a correlation distinguishes them, as narrow-band noise repeats itself too. The criteria
//! are:
//!
//! - A cycle has a constant amplitude. The envelope of narrow-band noise has a Rayleigh distribution, with a standard
//!   deviation of 0.52 of its mean.
//! - Predicted noise (theory: stable loop) explains a standard deviation of about its own size, not a much larger one.
//! - Without predicted noise (theory: unstable, or unknown) the loop oscillates if its law is at p = 0 or 1 for a
//!   substantial time, or if the queue's autocorrelation a period later exceeds 0.6. Noise through a loop far from its
//!   stability boundary stays below.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use num_complex::Complex64;

use crate::spectrum::{inverse, transform};

/// The peak covers frequencies within this factor.
const NARROW: f64 = 1.3;
/// Least fraction of the power in the peak of a cycle.
const PEAK_FRACTION: f64 = 0.5;
/// Largest relative deviation of a cycle's envelope: half of a Rayleigh envelope's.
const IRREGULARITY_MAX: f64 = 0.26;
/// Least number of cycles for a judgement by the envelope.
const CYCLES_MIN: f64 = 20.0;
/// Ratio to the predicted noise from which on noise is no explanation.
const NOISE_RATIO: f64 = 1.5;
/// Fraction of the time at p = 0 or 1 above which a law saturates.
pub const SATURATION_FRACTION: f64 = 0.08;
/// Autocorrelation above which a queue without predicted noise oscillates.
const AUTOCORRELATION_MIN: f64 = 0.6;
/// Least number of periods in a run for the autocorrelation.
const PERIODS_MIN: usize = 5;
/// Least number of samples for a spectrum.
const SAMPLES_MIN: usize = 64;

/// Oscillation of a measured queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Oscillation {
    /// Whether the queue oscillates.
    pub oscillates: bool,
    /// Criterion of the decision.
    pub why: String,
    /// Period of the spectral peak, seconds, if it holds at least half of the power.
    pub period_s: Option<f64>,
    /// Standard deviation of the queue, packets.
    pub std_pkts: f64,
    /// Fraction of the power around the peak.
    pub peak_share: f64,
    /// Relative deviation of the envelope around the peak: 0 for a sine, 0.52 for noise.
    pub irregularity: f64,
    /// Fraction of the time at p = 0 or 1.
    pub bound_share: f64,
    /// Largest autocorrelation at lags from its first zero up to a fifth of the run; 1 for a periodic signal.
    #[serde(default)]
    pub autocorrelation: f64,
}

/// Analyses a run's queue, sampled at equal steps `t_s`, with the AQM's signal probability. `noise_std_pkts` is the
/// standard deviation predicted for a stable loop; `None` if theory predicts an unstable one. Returns `None` for too
/// few samples or a constant queue.
pub fn detect_oscillation(
    t_s: &[f64],
    queue_pkts: &[f64],
    probability: &[f64],
    noise_std_pkts: Option<f64>,
) -> Option<Oscillation> {
    let n = t_s.len().min(queue_pkts.len());
    if n < SAMPLES_MIN {
        return None;
    }
    let (mean, deviation) = moments(&queue_pkts[..n]);
    if deviation <= 1e-9 * mean.max(1.0) {
        return None;
    }
    let around: Vec<f64> = queue_pkts[..n].iter().map(|queue| queue - mean).collect();
    let step = t_s[1] - t_s[0];
    let (peak, fraction) = find_peak(&around, step);
    let (irregularity, cycles) = (irregularity_around(&around, step, peak), peak * step * n as f64);
    let at_bound = probability.iter().filter(|p| **p <= 0.0 || **p >= 1.0).count();
    let bound = at_bound as f64 / probability.len().max(1) as f64;
    let autocorrelation = autocorrelation(&around);
    let narrow = fraction > PEAK_FRACTION;
    let (oscillates, why) = if narrow && cycles >= CYCLES_MIN && irregularity < IRREGULARITY_MAX {
        (true, format!("a regular envelope: its relative deviation is {irregularity:.2}, of noise 0.52"))
    } else if let Some(noise) = noise_std_pkts {
        (
            deviation > NOISE_RATIO * noise,
            format!("a standard deviation of {:.2} times the predicted noise", deviation / noise),
        )
    } else if autocorrelation > AUTOCORRELATION_MIN && bound <= SATURATION_FRACTION {
        (true, format!("an autocorrelation of {autocorrelation:.2} a period later"))
    } else {
        (bound > SATURATION_FRACTION, format!("p = 0 or 1 for {:.0}% of the time", bound * 100.0))
    };
    Some(Oscillation {
        oscillates,
        why,
        period_s: narrow.then(|| 1.0 / peak),
        std_pkts: deviation,
        peak_share: fraction,
        irregularity,
        bound_share: bound,
        autocorrelation,
    })
}

/// Largest autocorrelation of `around` from its first zero up to a fifth of its length; 0 without a zero.
fn autocorrelation(around: &[f64]) -> f64 {
    let n = around.len();
    // Zero padding makes the correlation linear instead of circular.
    let padded: Vec<Complex64> =
        around.iter().copied().chain(std::iter::repeat_n(0.0, n)).map(Complex64::from).collect();
    let power: Vec<Complex64> = transform(&padded).iter().map(|line| Complex64::from(line.norm_sqr())).collect();
    let products = inverse(&power);
    // Power of the first k values.
    let mut sums = vec![0.0; n + 1];
    for (k, x) in around.iter().enumerate() {
        sums[k + 1] = sums[k] + x * x;
    }
    let at = |lag: usize| products[lag].re / (sums[n - lag] * (sums[n] - sums[lag])).sqrt().max(f64::MIN_POSITIVE);
    let later = (1..=n / PERIODS_MIN).map(at).skip_while(|correlation| *correlation > 0.0);
    later.fold(0.0, f64::max)
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n).sqrt())
}

/// Frequency of the largest spectral peak, Hz, and the fraction of the power around it.
fn find_peak(around: &[f64], step: f64) -> (f64, f64) {
    let n = around.len();
    let length_s = step * n as f64;
    // Hann window.
    let smooth = |i: usize| 0.5 - 0.5 * libm::cos(2.0 * PI * i as f64 / (n - 1) as f64);
    let windowed: Vec<Complex64> = around.iter().enumerate().map(|(i, x)| Complex64::from(x * smooth(i))).collect();
    let lines = transform(&windowed);
    let spectrum: Vec<(f64, f64)> = (0..=n / 2).map(|k| (k as f64 * (1.0 / length_s), lines[k].norm_sqr())).collect();
    // Periods above a third of the run are drift.
    let candidates = spectrum.iter().filter(|(frequency, _)| *frequency > 3.0 / length_s);
    let largest =
        candidates.fold((0.0, 0.0), |largest: (f64, f64), line| if line.1 > largest.1 { *line } else { largest });
    let power = |wanted: &dyn Fn(f64) -> bool| -> f64 {
        spectrum.iter().filter(|(frequency, _)| wanted(*frequency)).map(|(_, power)| power).sum()
    };
    let peak = largest.0;
    let near = power(&|frequency| frequency > peak / NARROW && frequency < peak * NARROW);
    (peak, near / power(&|frequency| frequency > 1.5 / length_s))
}

/// Relative deviation of the envelope around `peak`.
fn irregularity_around(around: &[f64], step: f64, peak: f64) -> f64 {
    let n = around.len();
    let signal: Vec<Complex64> = around.iter().copied().map(Complex64::from).collect();
    let mut lines = transform(&signal);
    // Analytic signal: positive frequencies only. Its magnitude is the envelope.
    for (k, line) in lines.iter_mut().enumerate() {
        let frequency = k as f64 * (1.0 / (step * n as f64));
        let near = k < n.div_ceil(2) && frequency > peak / (NARROW * NARROW) && frequency < peak * (NARROW * NARROW);
        *line = if near { *line + *line } else { Complex64::ZERO };
    }
    let envelope: Vec<f64> = inverse(&lines).iter().map(|z| z.norm_sqr().sqrt()).collect();
    // The ends of the run affect each other.
    let cut = (n / 10).min((1.0 / (peak * step)) as usize);
    let (mean, deviation) = moments(&envelope[cut..n - cut]);
    deviation / mean
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_S: f64 = 0.02;

    fn run(queue: impl Fn(f64) -> f64) -> (Vec<f64>, Vec<f64>) {
        (0..10_001).map(|i| f64::from(i) * STEP_S).map(|t| (t, queue(t))).unzip()
    }

    /// Deterministic noise.
    fn noise(t: f64) -> f64 {
        let x = libm::sin((t / STEP_S).round() * 12.9898) * 43_758.545_3;
        x - x.floor() - 0.5
    }

    #[test]
    fn a_cycle_in_noise_oscillates_and_has_its_period() {
        let (t, queue) = run(|t| 100.0 + 30.0 * (2.0 * PI * t / 4.1).sin() + 10.0 * noise(t));
        let seen = detect_oscillation(&t, &queue, &[0.1; 9], Some(10.0)).expect("it moves");
        assert!(seen.oscillates && seen.irregularity < 0.1, "{seen:?}");
        assert!((seen.period_s.expect("a clear period") - 4.1).abs() < 0.1, "{seen:?}");
        // A sine of 30 has a variance of 450, uniform noise of +-5 one of 100 / 12.
        assert!((seen.std_pkts - (450.0 + 100.0 / 12.0f64).sqrt()).abs() < 0.3, "{seen:?}");
        assert!((seen.peak_share - 450.0 / (450.0 + 100.0 / 12.0)).abs() < 0.01, "{seen:?}");
        assert!(seen.why.starts_with("a regular envelope"));
    }

    #[test]
    fn a_modulated_wave_is_judged_by_the_prediction() {
        // The product of two sines: an envelope |sin| with mean 2 / pi and mean square 1 / 2; its standard deviation is
        // sqrt(1 / 2 - 4 / pi^2) pi / 2 = 0.48 of the mean.
        let (t, queue) = run(|t| 100.0 + 40.0 * (2.0 * PI * t / 4.0).sin() * (2.0 * PI * t / 80.0).sin());
        let (p, cut) =
            (vec![0.1; t.len()], queue.iter().map(|q| if *q < 80.0 { 0.0 } else { 0.1 }).collect::<Vec<_>>());
        let judged = |p: &[f64], noise| detect_oscillation(&t, &queue, p, noise).expect("it moves");
        let calm = judged(&p, Some(20.0));
        assert!((calm.irregularity - 0.48).abs() < 0.05 && calm.peak_share > 0.5 && !calm.oscillates, "{calm:?}");
        // The standard deviation is 40 / 2 = 20: as predicted, or twice that.
        assert_eq!(calm.why, "a standard deviation of 1.00 times the predicted noise");
        assert!(judged(&p, Some(10.0)).oscillates);
        // Without predicted noise a saturated law decides, or the correlation of successive waves: cos(2 pi / 20) of
        // the power remains after one.
        let (within, beyond) = (judged(&p, None), judged(&cut, None));
        assert!(within.oscillates && within.why.starts_with("an autocorrelation of 0."), "{within:?}");
        assert!((within.autocorrelation - 0.951).abs() < 0.05, "{within:?}");
        assert!(beyond.oscillates && beyond.why.starts_with("p = 0 or 1 for"), "{beyond:?}");
    }

    #[test]
    fn without_predicted_noise_a_correlated_queue_oscillates() {
        // Waves whose amplitude varies by up to 90 %: no regular envelope, and p within its bounds.
        let wave = |t: f64| (2.0 * PI * t / 4.0).sin() * (1.0 + 0.9 * (2.0 * PI * t / 32.0).sin());
        let judged = |deviation: f64, noise_std: Option<f64>| {
            let (t, queue) = run(|t| 100.0 + 20.0 * wave(t) + deviation * 12f64.sqrt() * noise(t));
            detect_oscillation(&t, &queue, &[0.1; 9], noise_std).expect("it moves")
        };
        // The wave has a variance of 400 (1 + .81 / 2) / 2 = 281 and a period of 32 s. With noise of standard deviation
        // 8 the correlation is 281 / (281 + 64) = .81; with 20, 281 / 681 = .41.
        let (some, much) = (judged(8.0, None), judged(20.0, None));
        assert!((some.autocorrelation - 0.81).abs() < 0.03 && (much.autocorrelation - 0.41).abs() < 0.04, "{much:?}");
        assert!(some.irregularity > IRREGULARITY_MAX && some.oscillates, "{some:?}");
        assert_eq!(some.why, format!("an autocorrelation of {:.2} a period later", some.autocorrelation));
        assert!(!much.oscillates, "{much:?}");
        // With a matching noise prediction it counts as noise.
        assert!(!judged(8.0, Some(345f64.sqrt())).oscillates);
    }

    #[test]
    fn drift_and_noise_have_no_autocorrelation() {
        let of = |queue: fn(f64) -> f64| {
            let (t, queue) = run(queue);
            detect_oscillation(&t, &queue, &[0.1; 9], None).expect("it moves")
        };
        for seen in [of(|t| 100.0 + t), of(|t| 100.0 + 50.0 * (-t / 20.0).exp() + noise(t)), of(|t| 100.0 + noise(t))] {
            assert!(seen.autocorrelation < 0.1 && !seen.oscillates, "{seen:?}");
        }
    }

    #[test]
    fn a_few_waves_are_not_judged_by_their_envelope() {
        // 200 s: 15 waves, or 25. Their standard deviation is that of the predicted noise, 20 / sqrt(2).
        let judged = |period_s: f64| {
            let (t, queue) = run(|t| 100.0 + 20.0 * (2.0 * PI * t / period_s).sin());
            detect_oscillation(&t, &queue, &[0.1; 9], Some(200f64.sqrt())).expect("it moves")
        };
        let (few, enough) = (judged(200.0 / 15.0), judged(8.0));
        assert!(few.irregularity < 0.1 && few.peak_share > 0.9 && !few.oscillates, "{few:?}");
        assert!(enough.oscillates, "{enough:?}");
    }

    #[test]
    fn short_or_constant_series_are_not_judged() {
        let (t, queue) = run(|_| 7.0);
        assert_eq!(detect_oscillation(&t, &queue, &queue, None), None);
        // Rounding errors of a large mean are no movement.
        let (t, large) = run(|_| 1e6 / 7.0);
        assert_eq!(detect_oscillation(&t, &large, &queue, None), None);
        assert_eq!(detect_oscillation(&t[..63], &t[..63], &queue[..63], None), None);
        assert!(detect_oscillation(&t[..64], &t[..64], &queue[..64], None).is_some());
    }
}
