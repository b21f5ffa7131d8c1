//! Whether a measured queue swings of itself or is only moved by packets: a run's spectrum against its predicted noise.
//!
//! A loop that is stable passes the noise of packets on, with a peak where its margin is small; one that is not cycles.
//! A peak alone does not tell them apart, nor does a correlation: noise in a narrow band repeats itself, too. What
//! does:
//!
//! - a cycle has a regular height, noise in a narrow band has not: the envelope of the latter has Rayleigh's
//!   distribution, whose deviation is .52 of its mean, that of a sine none;
//! - where noise was predicted (the loop is stable by theory), it explains a deviation about as large as it, and none
//!   much larger;
//! - where none could be (the loop is unstable by theory, or not known), a law that spends its time at p = 0 or 1 is no
//!   linear loop at rest, and a queue that repeats itself a period later has a cycle: its correlation with itself is
//!   above .6 there, of noise through a loop far from its boundary below.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::spectrum::{Complex, inverse, transform};

/// A peak's power is that within this factor of its frequency.
const NARROW: f64 = 1.3;
/// Share of the power that a cycle has in its peak.
const PEAK_SHARE: f64 = 0.5;
/// Deviation of an envelope in its means below which it is that of a cycle: half of Rayleigh's.
const REGULAR: f64 = 0.26;
/// Fewer cycles say nothing of an envelope.
const CYCLES_MIN: f64 = 20.0;
/// Deviations of the predicted noise that noise does not explain any more.
const NOISE_RATIO: f64 = 1.5;
/// Share of the time at p = 0 or 1 above which a law's answer is cut off.
pub const BOUND_SHARE: f64 = 0.08;
/// Correlation of the queue with itself above which it repeats itself where no noise was predicted.
const REPEATS: f64 = 0.6;
/// Periods that a run holds at least for a correlation to tell.
const PERIODS_MIN: usize = 5;
/// Fewer samples are no spectrum.
const SAMPLES_MIN: usize = 64;

/// What a measured queue does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Swing {
    /// Whether it swings of itself.
    pub oscillates: bool,
    /// What says so.
    pub why: String,
    /// Period of the peak of its spectrum, seconds, where half of the power lies there; else there is none.
    pub period_s: Option<f64>,
    /// Deviation of the queue, packets.
    pub std_pkts: f64,
    /// Share of its power around the peak.
    pub peak_share: f64,
    /// Deviation of the envelope around the peak over its mean: 0 of a sine, .52 of noise.
    pub irregularity: f64,
    /// Share of the time at p = 0 or 1.
    pub bound_share: f64,
    /// Largest correlation of the queue with itself at a later time: from where it first falls to zero up to a fifth of
    /// the run. 1 of what repeats itself for ever.
    #[serde(default)]
    pub autocorrelation: f64,
}

/// Judges a run's queue, sampled at equally spaced moments `t_s`, beside the share that is signalled there, as the AQM
/// has it; `None` where there is too little of it or it does not move. `noise_std_pkts` is the deviation predicted of a
/// stable loop; without one the loop counts as unstable by theory.
pub fn swing(t_s: &[f64], queue_pkts: &[f64], probability: &[f64], noise_std_pkts: Option<f64>) -> Option<Swing> {
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
    let (peak, share) = peak_of(&around, step);
    let (irregularity, cycles) = (irregularity_of(&around, step, peak), peak * step * n as f64);
    let at_bound = probability.iter().filter(|p| **p <= 0.0 || **p >= 1.0).count();
    let bound = at_bound as f64 / probability.len().max(1) as f64;
    let repeats = repeats(&around);
    let narrow = share > PEAK_SHARE;
    let (oscillates, why) = if narrow && cycles >= CYCLES_MIN && irregularity < REGULAR {
        (true, format!("a regular envelope: it varies by {irregularity:.2}, of noise by .52"))
    } else if let Some(noise) = noise_std_pkts {
        (deviation > NOISE_RATIO * noise, format!("a deviation of {:.2} times the predicted noise", deviation / noise))
    } else if repeats > REPEATS && bound <= BOUND_SHARE {
        (true, format!("a correlation of {repeats:.2} with itself a period later"))
    } else {
        (bound > BOUND_SHARE, format!("p = 0 or 1 for {:.0}% of the time", bound * 100.0))
    };
    Some(Swing {
        oscillates,
        why,
        period_s: narrow.then(|| 1.0 / peak),
        std_pkts: deviation,
        peak_share: share,
        irregularity,
        bound_share: bound,
        autocorrelation: repeats,
    })
}

/// Largest correlation of `around` with itself, from its first zero up to a fifth of its length; 0 where it has none.
fn repeats(around: &[f64]) -> f64 {
    let n = around.len();
    // Zeros behind it keep its end from its beginning.
    let padded: Vec<Complex> = around.iter().copied().chain(std::iter::repeat_n(0.0, n)).map(Complex::real).collect();
    let power: Vec<Complex> = transform(&padded).iter().map(|line| Complex::real(line.power())).collect();
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

/// Mean and deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n).sqrt())
}

/// Frequency of the largest peak of the spectrum, Hz, and the share of the power around it.
fn peak_of(around: &[f64], step: f64) -> (f64, f64) {
    let n = around.len();
    let length_s = step * n as f64;
    // Hann's window.
    let smooth = |i: usize| 0.5 - 0.5 * libm::cos(2.0 * PI * i as f64 / (n - 1) as f64);
    let windowed: Vec<Complex> = around.iter().enumerate().map(|(i, x)| Complex::real(x * smooth(i))).collect();
    let lines = transform(&windowed);
    let spectrum: Vec<(f64, f64)> = (0..=n / 2).map(|k| (k as f64 * (1.0 / length_s), lines[k].power())).collect();
    // What takes a third of the run is drift, not a cycle.
    let told = spectrum.iter().filter(|(frequency, _)| *frequency > 3.0 / length_s);
    let largest = told.fold((0.0, 0.0), |largest: (f64, f64), line| if line.1 > largest.1 { *line } else { largest });
    let power = |wanted: &dyn Fn(f64) -> bool| -> f64 {
        spectrum.iter().filter(|(frequency, _)| wanted(*frequency)).map(|(_, power)| power).sum()
    };
    let peak = largest.0;
    let near = power(&|frequency| frequency > peak / NARROW && frequency < peak * NARROW);
    (peak, near / power(&|frequency| frequency > 1.5 / length_s))
}

/// Deviation of the envelope around `peak` over its mean.
fn irregularity_of(around: &[f64], step: f64, peak: f64) -> f64 {
    let n = around.len();
    let signal: Vec<Complex> = around.iter().copied().map(Complex::real).collect();
    let mut lines = transform(&signal);
    // Positive frequencies alone: the signal that is left turns, and its distance from zero is the envelope.
    for (k, line) in lines.iter_mut().enumerate() {
        let frequency = k as f64 * (1.0 / (step * n as f64));
        let near = k < n.div_ceil(2) && frequency > peak / (NARROW * NARROW) && frequency < peak * (NARROW * NARROW);
        *line = if near { *line + *line } else { Complex::default() };
    }
    let envelope: Vec<f64> = inverse(&lines).iter().map(|z| z.power().sqrt()).collect();
    // The ends know of each other.
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

    /// Anything but regular.
    fn noise(t: f64) -> f64 {
        let x = libm::sin((t / STEP_S).round() * 12.9898) * 43_758.545_3;
        x - x.floor() - 0.5
    }

    #[test]
    fn a_cycle_in_noise_swings_and_has_its_period() {
        let (t, queue) = run(|t| 100.0 + 30.0 * (2.0 * PI * t / 4.1).sin() + 10.0 * noise(t));
        let seen = swing(&t, &queue, &[0.1; 9], Some(10.0)).expect("it moves");
        assert!(seen.oscillates && seen.irregularity < 0.1, "{seen:?}");
        assert!((seen.period_s.expect("a clear period") - 4.1).abs() < 0.1, "{seen:?}");
        // A sine of 30 has a variance of 450, even noise of +-5 one of 100 / 12.
        assert!((seen.std_pkts - (450.0 + 100.0 / 12.0f64).sqrt()).abs() < 0.3, "{seen:?}");
        assert!((seen.peak_share - 450.0 / (450.0 + 100.0 / 12.0)).abs() < 0.01, "{seen:?}");
        assert!(seen.why.starts_with("a regular envelope"));
    }

    #[test]
    fn a_wave_whose_height_comes_and_goes_is_judged_by_what_was_predicted() {
        // The product of two waves: an envelope |sin|, whose mean is 2 / pi and whose mean square 1 / 2; its deviation
        // is sqrt(1 / 2 - 4 / pi^2) pi / 2 = 0.48 of the mean.
        let (t, queue) = run(|t| 100.0 + 40.0 * (2.0 * PI * t / 4.0).sin() * (2.0 * PI * t / 80.0).sin());
        let (p, cut) =
            (vec![0.1; t.len()], queue.iter().map(|q| if *q < 80.0 { 0.0 } else { 0.1 }).collect::<Vec<_>>());
        let judged = |p: &[f64], noise| swing(&t, &queue, p, noise).expect("it moves");
        let calm = judged(&p, Some(20.0));
        assert!((calm.irregularity - 0.48).abs() < 0.05 && calm.peak_share > 0.5 && !calm.oscillates, "{calm:?}");
        // 40 / 2 = 20 is the deviation: as predicted, or twice that.
        assert_eq!(calm.why, "a deviation of 1.00 times the predicted noise");
        assert!(judged(&p, Some(10.0)).oscillates);
        // Where no noise was predicted, a law at its bounds tells, or that waves follow each other: cos(2 pi / 20) of
        // their power is left after one.
        let (within, beyond) = (judged(&p, None), judged(&cut, None));
        assert!(within.oscillates && within.why.starts_with("a correlation of 0."), "{within:?}");
        assert!((within.autocorrelation - 0.951).abs() < 0.05, "{within:?}");
        assert!(beyond.oscillates && beyond.why.starts_with("p = 0 or 1 for"), "{beyond:?}");
    }

    #[test]
    fn where_no_noise_was_predicted_a_queue_that_repeats_itself_swings() {
        // Waves whose height comes and goes, by eighths: no regular envelope, and within the bounds of p.
        let wave = |t: f64| (2.0 * PI * t / 4.0).sin() * (1.0 + 0.9 * (2.0 * PI * t / 32.0).sin());
        let judged = |deviation: f64, noise_std: Option<f64>| {
            let (t, queue) = run(|t| 100.0 + 20.0 * wave(t) + deviation * 12f64.sqrt() * noise(t));
            swing(&t, &queue, &[0.1; 9], noise_std).expect("it moves")
        };
        // The wave has a variance of 400 (1 + .81 / 2) / 2 = 281 and repeats itself after 32 s: of what noise of a
        // deviation of 8 adds, 281 / (281 + 64) = .81 are left; of 20, 281 / 681 = .41.
        let (some, much) = (judged(8.0, None), judged(20.0, None));
        assert!((some.autocorrelation - 0.81).abs() < 0.03 && (much.autocorrelation - 0.41).abs() < 0.04, "{much:?}");
        assert!(some.irregularity > REGULAR && some.oscillates, "{some:?}");
        assert_eq!(some.why, format!("a correlation of {:.2} with itself a period later", some.autocorrelation));
        assert!(!much.oscillates, "{much:?}");
        // Beside a prediction that explains it, it is noise.
        assert!(!judged(8.0, Some(345f64.sqrt())).oscillates);
    }

    #[test]
    fn drift_and_noise_alone_do_not_repeat_themselves() {
        let of = |queue: fn(f64) -> f64| {
            let (t, queue) = run(queue);
            swing(&t, &queue, &[0.1; 9], None).expect("it moves")
        };
        for seen in [of(|t| 100.0 + t), of(|t| 100.0 + 50.0 * (-t / 20.0).exp() + noise(t)), of(|t| 100.0 + noise(t))] {
            assert!(seen.autocorrelation < 0.1 && !seen.oscillates, "{seen:?}");
        }
    }

    #[test]
    fn a_few_waves_say_nothing_of_their_height() {
        // 200 s: 15 waves, or 25. Their deviation is that of the noise that was predicted, 20 / sqrt(2).
        let judged = |period_s: f64| {
            let (t, queue) = run(|t| 100.0 + 20.0 * (2.0 * PI * t / period_s).sin());
            swing(&t, &queue, &[0.1; 9], Some(200f64.sqrt())).expect("it moves")
        };
        let (few, enough) = (judged(200.0 / 15.0), judged(8.0));
        assert!(few.irregularity < 0.1 && few.peak_share > 0.9 && !few.oscillates, "{few:?}");
        assert!(enough.oscillates, "{enough:?}");
    }

    #[test]
    fn what_is_short_or_still_is_not_judged() {
        let (t, queue) = run(|_| 7.0);
        assert_eq!(swing(&t, &queue, &queue, None), None);
        // What the rounding of a large mean leaves is no movement.
        let (t, large) = run(|_| 1e6 / 7.0);
        assert_eq!(swing(&t, &large, &queue, None), None);
        assert_eq!(swing(&t[..63], &t[..63], &queue[..63], None), None);
        assert!(swing(&t[..64], &t[..64], &queue[..64], None).is_some());
    }
}
