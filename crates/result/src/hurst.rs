//! Hurst parameter of a series, from the energies of its wavelet coefficients.
//!
//! P. Abry and D. Veitch, "Wavelet analysis of long-range-dependent traffic", IEEE Transactions on Information Theory
//! 44 (1), 1998, with Haar's wavelet, which ignores the mean. The logarithm of the mean energy rises by 2 H - 1 per
//! octave: not at all for short memory (H = 1/2), steeply for long memory.
//!
//! Arrivals at a queue are departures and losses plus the growth of the queue. The growth cancels in the long run: its
//! energy halves per octave, the slope of H = 0, or falls faster where the queue oscillates. At a full link without
//! losses there is nothing else. Therefore only octaves with little energy of the queue's growth count.

/// Finest octave used: differences of sums over 2^3 samples. Faster variations are those of single sources and packets.
const MIN_OCTAVE: u32 = 4;
/// Least number of coefficients of an octave.
const MIN_COEFFICIENTS: usize = 8;
/// Least number of octaves for a slope.
const MIN_OCTAVES: usize = 3;
/// Largest ratio of the energy of the queue's growth to that of departures and losses. The ratio at least halves per
/// octave for traffic with memory, so its effect on the slope is small.
const MAX_QUEUE_RATIO: f64 = 0.25;
/// Quantiles of the normal distribution: 0.99 and 0.975.
const Z_99: f64 = 2.326;
const Z_975: f64 = 1.960;

/// Hurst parameter of `values` at equal steps: 0.5 without memory, towards 1 for self-similar traffic. `None` for fewer
/// than 512 values, a constant series, and one that is not self-similar at these scales (no line fits the energies, or
/// one outside H = 0 to 1).
pub fn hurst(values: &[f64]) -> Option<f64> {
    from_energies(&energies(values))
}

/// Hurst parameter of the traffic that `arrived` at a queue in equal steps, without the effect of the queue; `left`
/// counts departures and losses. `None` also if fewer than three octaves remain.
pub fn hurst_at_queue(arrived: &[f64], left: &[f64]) -> Option<f64> {
    let grown: Vec<f64> = arrived.iter().zip(left).map(|(arrived, left)| arrived - left).collect();
    let (of_queue, of_rest) = (energies(&grown), energies(left));
    let disturbed = of_queue.iter().zip(&of_rest).rposition(|(queue, rest)| queue.mean > MAX_QUEUE_RATIO * rest.mean);
    from_energies(&energies(arrived)[disturbed.map_or(0, |last| last + 1)..])
}

/// Mean energy of an octave.
struct Energy {
    octave: f64,
    mean: f64,
    coefficients: usize,
}

fn energies(values: &[f64]) -> Vec<Energy> {
    let mut sums = values.to_vec();
    let mut found = Vec::new();
    for octave in 1u32.. {
        let pairs = sums.chunks_exact(2);
        let n = pairs.len();
        if n < MIN_COEFFICIENTS {
            break;
        }
        let sum: f64 = pairs.clone().map(|pair| (pair[0] - pair[1]) * (pair[0] - pair[1]) / 2.0).sum();
        if octave >= MIN_OCTAVE {
            found.push(Energy { octave: f64::from(octave), mean: sum / n as f64, coefficients: n });
        }
        sums = pairs.map(|pair| (pair[0] + pair[1]) * core::f64::consts::FRAC_1_SQRT_2).collect();
    }
    found
}

fn from_energies(energies: &[Energy]) -> Option<f64> {
    if energies.iter().any(|each| each.mean <= 0.0) {
        return None;
    }
    let points: Vec<_> = energies.iter().map(Point::new).collect();
    // D. Veitch, P. Abry and M. S. Taqqu, "On the automatic selection of the onset of scaling", Fractals 11 (4), 2003:
    // the line starts at the finest octave from which on it fits.
    let line = (0..)
        .map_while(|from| points.get(from..).filter(|rest| rest.len() >= MIN_OCTAVES))
        .map(Line::through)
        .find(|line| line.chi_squared <= line.limit)?;
    let (h, half) = ((line.slope + 1.0) / 2.0, Z_975 * line.deviation / 2.0);
    // Significantly above 1 is a drifting level; otherwise H = 1.
    (h > 0.0 && h - half <= 1.0).then_some(h.min(1.0))
}

/// An octave, the logarithm of its energy, and the variance of the logarithm.
struct Point {
    x: f64,
    y: f64,
    variance: f64,
}

impl Point {
    /// Abry and Veitch (eq. 14 and 15): bias g and variance of the logarithm of a mean of n squares.
    fn new(energy: &Energy) -> Self {
        let half = energy.coefficients as f64 / 2.0;
        let low = (digamma(half) - libm::log(half)) / core::f64::consts::LN_2;
        let variance = trigamma(half) / (core::f64::consts::LN_2 * core::f64::consts::LN_2);
        Point { x: energy.octave, y: libm::log2(energy.mean) - low, variance }
    }
}

/// Line fitted by weighted least squares.
struct Line {
    slope: f64,
    /// Standard deviation of the slope.
    deviation: f64,
    /// Sum of squared residuals, each over its variance, and its 99 % quantile.
    chi_squared: f64,
    limit: f64,
}

impl Line {
    fn through(points: &[Point]) -> Self {
        let sum = |of: &dyn Fn(&Point) -> f64| points.iter().map(|p| of(p) / p.variance).sum::<f64>();
        let weight = sum(&|_| 1.0);
        let (x, y) = (sum(&|p| p.x) / weight, sum(&|p| p.y) / weight);
        let spread = sum(&|p| (p.x - x) * (p.x - x));
        let slope = sum(&|p| (p.x - x) * (p.y - y)) / spread;
        let off = |p: &Point| p.y - y - slope * (p.x - x);
        // Quantile of chi squared by E. B. Wilson and M. M. Hilferty, "The distribution of chi-square", PNAS 17, 1931.
        let free = points.len() as f64 - 2.0;
        let part = 2.0 / (9.0 * free);
        let root = 1.0 - part + Z_99 * libm::sqrt(part);
        let chi_squared = sum(&|p| off(p) * off(p));
        Line { slope, deviation: 1.0 / libm::sqrt(spread), chi_squared, limit: free * root * root * root }
    }
}

/// Digamma and trigamma functions for x of at least 4: Abramowitz, Stegun: Handbook of mathematical functions, 6.3.18
/// and 6.4.12.
fn digamma(x: f64) -> f64 {
    libm::log(x) - 1.0 / (2.0 * x) - 1.0 / (12.0 * x * x) + 1.0 / (120.0 * x * x * x * x)
}

fn trigamma(x: f64) -> f64 {
    1.0 / x + 1.0 / (2.0 * x * x) + 1.0 / (6.0 * x * x * x) - 1.0 / (30.0 * x * x * x * x * x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Lcg;

    #[test]
    fn the_derivatives_of_ln_gamma_are_those_of_sums_over_whole_numbers() {
        // psi(4) = 1 + 1/2 + 1/3 - gamma, psi'(4) = pi^2/6 - 1 - 1/4 - 1/9; the series omit 1/(252 x^6) and 1/(42 x^7).
        assert!((digamma(4.0) - (11.0 / 6.0 - 0.577_215_664_901_532_9)).abs() < 1.1e-6, "{}", digamma(4.0));
        let expected = std::f64::consts::PI.powi(2) / 6.0 - 49.0 / 36.0;
        assert!((trigamma(4.0) - expected).abs() < 1.6e-6, "{} {expected}", trigamma(4.0));
    }

    /// Exact fractional Gaussian noise by recursion (J. R. M. Hosking, "Modeling persistence in hydrological time
    /// series using fractional differencing", Water Resources Research 20 (12), 1984, section 3.3).
    fn noise(h: f64, n: usize, seed: u64) -> Vec<f64> {
        let rho = |k: usize| {
            let k = k as f64;
            ((k + 1.0).powf(2.0 * h) - 2.0 * k.powf(2.0 * h) + (k - 1.0).abs().powf(2.0 * h)) / 2.0
        };
        let mut rng = Lcg(seed);
        let mut uniform = || ((rng.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let mut normal = || (-2.0 * uniform().ln()).sqrt() * (core::f64::consts::TAU * uniform()).cos();
        let (mut values, mut phi, mut variance) = (vec![normal()], Vec::<f64>::new(), 1.0);
        for t in 1..n {
            let predicted: f64 = phi.iter().enumerate().map(|(j, phi)| phi * rho(t - 1 - j)).sum();
            let reflection = (rho(t) - predicted) / variance;
            let before = phi.clone();
            phi.iter_mut().zip(before.iter().rev()).for_each(|(phi, other)| *phi -= reflection * other);
            phi.push(reflection);
            variance *= 1.0 - reflection * reflection;
            let mean: f64 = phi.iter().zip(values.iter().rev()).map(|(phi, value)| phi * value).sum();
            values.push(mean + variance.sqrt() * normal());
        }
        values
    }

    #[test]
    fn noise_of_a_known_parameter_has_it() {
        for h in [0.5, 0.6, 0.75, 0.9] {
            // The mean of four series has a standard error of 0.05.
            let seen: f64 = (1..=4).map(|seed| hurst(&noise(h, 2048, seed)).unwrap()).sum::<f64>() / 4.0;
            assert!((seen - h).abs() < 0.08, "{h}: {seen}");
        }
    }

    #[test]
    fn estimates_from_short_series_are_unbiased() {
        for h in [0.5, 0.75] {
            let seen: Vec<f64> = (1..=100).filter_map(|seed| hurst(&noise(h, 512, seed))).collect();
            assert!(seen.len() >= 92, "{h}: {}", seen.len());
            assert!(seen.iter().all(|seen| 0.0 < *seen && *seen <= 1.0));
            // One deviates by 0.2, their mean by 0.02; 3.3 of these are 99.9 %.
            let mean = seen.iter().sum::<f64>() / seen.len() as f64;
            assert!((mean - h).abs() < 0.066, "{h}: {mean}");
        }
    }

    /// Local Whittle estimator (P. M. Robinson, "Gaussian semiparametric estimation of long range dependence", Annals
    /// of Statistics 23 (5), 1995): the H from 0.01 to 0.99 that fits the periodogram at the lowest m frequencies best.
    fn whittle(values: &[f64], m: usize) -> f64 {
        let n = values.len() as f64;
        let frequency = |j: usize| core::f64::consts::TAU * j as f64 / n;
        let power: Vec<f64> = (1..=m)
            .map(|j| {
                let part = |of: fn(f64) -> f64| {
                    (0..).zip(values).map(|(t, x)| x * of(frequency(j) * f64::from(t))).sum::<f64>()
                };
                part(f64::cos).powi(2) + part(f64::sin).powi(2)
            })
            .collect();
        let likelihood = |h: f64| {
            let scaled = (1..).zip(&power).map(|(j, power)| power * frequency(j).powf(2.0 * h - 1.0)).sum::<f64>();
            let logs = (1..=m).map(|j| frequency(j).ln()).sum::<f64>() / m as f64;
            (scaled / m as f64).ln() - (2.0 * h - 1.0) * logs
        };
        let candidates = (1..100).map(|h| f64::from(h) / 100.0);
        candidates.min_by(|a, b| likelihood(*a).total_cmp(&likelihood(*b))).unwrap()
    }

    #[test]
    fn the_local_whittle_estimator_agrees() {
        for (h, seed) in [(0.5, 1), (0.6, 2), (0.75, 3), (0.9, 4)] {
            let values = noise(h, 4096, seed);
            // The octaves from 2^4 on are the frequencies up to n / 2^4. Both deviate by about 0.03.
            let (own, other) = (hurst(&values).unwrap(), whittle(&values, 4096 / 16));
            assert!((own - other).abs() < 0.1, "{h}: {own}, {other}");
        }
    }

    /// Growth per step of a queue that oscillates by `amplitude` with a period of 50 steps and has noise of 20 packets
    /// with a correlation time of four steps.
    fn growth(n: usize, amplitude: f64, seed: u64) -> Vec<f64> {
        let (noise_values, mut wander, mut before) = (noise(0.5, n + 1, seed), 0.0, 0.0);
        (0..=n)
            .map(|t| {
                wander = 0.75 * wander + 20.0 * noise_values[t];
                let queue = wander + amplitude * (core::f64::consts::TAU * t as f64 / 50.0).sin();
                queue - std::mem::replace(&mut before, queue)
            })
            .skip(1)
            .collect()
    }

    fn sum(one: &[f64], other: &[f64]) -> Vec<f64> {
        one.iter().zip(other).map(|(one, other)| one + other).collect()
    }

    #[test]
    fn arrivals_at_a_full_link_are_not_self_similar() {
        for (n, seed) in [(901, 1), (901, 2), (901, 3), (2048, 4), (4096, 5)] {
            for amplitude in [0.0, 30.0, 100.0] {
                // The link sends 100 packets per step, one more or less by rounding.
                let sent: Vec<f64> = (0..n).map(|t| 100.0 + f64::from(u8::from(t % 7 == 0))).collect();
                let arrived = sum(&sent, &growth(n, amplitude, seed));
                assert_eq!(hurst_at_queue(&arrived, &sent), None, "{n} {amplitude}");
                // The other estimator is at the end of its range.
                assert!(whittle(&arrived, n / 64) < 0.1, "{n} {amplitude}");
            }
        }
    }

    #[test]
    fn octaves_without_queue_dynamics_show_the_traffic() {
        for h in [0.6, 0.8] {
            // The traffic of a step deviates by 30 packets, like the queue, so the finest octaves are alike. The mean
            // of four series has a standard error of 0.04.
            let seen = (1..=4).map(|seed| {
                let left: Vec<f64> = noise(h, 4096, seed).iter().map(|x| 100.0 + 30.0 * x).collect();
                assert_eq!(hurst_at_queue(&left, &left), hurst(&left));
                hurst_at_queue(&sum(&left, &growth(4096, 30.0, seed)), &left).unwrap()
            });
            let seen = seen.sum::<f64>() / 4.0;
            assert!((seen - h).abs() < 0.13, "{h}: {seen}");
        }
    }

    #[test]
    fn a_level_that_drifts_is_not_self_similar() {
        let drifting: Vec<f64> = (0..).zip(noise(0.5, 2048, 9)).map(|(t, x)| 0.1 * f64::from(t) + x).collect();
        assert_eq!(hurst(&drifting), None);
    }

    #[test]
    fn neither_level_nor_scale_matters() {
        let values = noise(0.8, 1024, 7);
        let other: Vec<f64> = values.iter().map(|x| 1000.0 + 30.0 * x).collect();
        assert!((hurst(&values).unwrap() - hurst(&other).unwrap()).abs() < 1e-9);
        // In packets, and in thousands of packets.
        let left: Vec<f64> = noise(0.8, 4096, 1).iter().map(|x| 100.0 + 30.0 * x).collect();
        let arrived = sum(&left, &growth(4096, 30.0, 1));
        let thousands = [&arrived, &left].map(|each| each.iter().map(|x| 1e-3 * x).collect::<Vec<_>>());
        let (one, other) = (hurst_at_queue(&arrived, &left), hurst_at_queue(&thousands[0], &thousands[1]));
        assert!((one.unwrap() - other.unwrap()).abs() < 1e-9, "{one:?} {other:?}");
    }

    #[test]
    fn short_and_constant_series_have_no_parameter() {
        let values = noise(0.7, 512, 3);
        assert!(hurst(&values).is_some());
        assert_eq!((hurst(&values[..511]), hurst(&[]), hurst(&[5.0; 4096])), (None, None, None));
    }
    #[test]
    fn a_line_goes_through_points_by_their_weights() {
        let points: Vec<Point> = [(1.0, 3.0, 0.5), (2.0, 5.0, 0.25), (4.0, 9.0, 1.0)]
            .map(|(x, y, variance)| Point { x, y, variance })
            .into();
        // The points lie on y = 1 + 2 x. Weights 2, 4, 1: mean of x 2, spread 2 + 0 + 4.
        let line = Line::through(&points);
        assert!(
            (line.slope - 2.0).abs() < 1e-12 && line.chi_squared.abs() < 1e-12,
            "{} {}",
            line.slope,
            line.chi_squared
        );
        assert!((line.deviation - 1.0 / 6f64.sqrt()).abs() < 1e-12, "{}", line.deviation);
        // Raising the second by 3 raises the mean by 12 / 7 and not the slope: 1.2857^2 4 + 1.7143^2 (2 + 1) = 15.43.
        let mut off = points;
        off[1].y += 3.0;
        let line = Line::through(&off);
        assert!((line.slope - 2.0).abs() < 1e-12, "{}", line.slope);
        assert!((line.chi_squared - 108.0 / 7.0).abs() < 1e-9, "{}", line.chi_squared);
        // The 99 % quantile of chi squared with one degree of freedom is 6.635; the formula is 2 % off there.
        assert!((line.limit / 6.635 - 1.0).abs() < 0.03, "{}", line.limit);
    }
}
