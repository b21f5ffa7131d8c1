//! How self-similar a series is: the Hurst parameter, from the energies of its wavelet coefficients.
//!
//! P. Abry and D. Veitch, "Wavelet analysis of long-range-dependent traffic", IEEE Transactions on Information Theory
//! 44 (1), 1998, with Haar's wavelet, which is blind to the mean. Over the octaves j, the logarithm of the mean energy
//! rises by 2 H - 1 an octave: not at all for what forgets quickly (H = 1/2), steeply for what does not.

/// The finest octave that counts: differences of sums over 2^3 samples. What happens faster is that of single sources
/// and of the packets, not that of long memory.
const FINEST: u32 = 4;
/// Coefficients that an octave must have to count.
const FEWEST: usize = 8;
/// Octaves from which there is a slope.
const OCTAVES: usize = 3;

/// The Hurst parameter of `values`, taken at equal steps: 0.5 for what has no memory, towards 1 for what is
/// self-similar. `None` for fewer than 512 values, or a series that does not move.
pub fn hurst(values: &[f64]) -> Option<f64> {
    let mut sums = values.to_vec();
    let mut points = Vec::new();
    for octave in 1u32.. {
        let pairs = sums.chunks_exact(2);
        let n = pairs.len();
        if n < FEWEST {
            break;
        }
        let energy = pairs.clone().map(|pair| (pair[0] - pair[1]) * (pair[0] - pair[1]) / 2.0).sum::<f64>() / n as f64;
        if octave >= FINEST {
            if energy <= 0.0 {
                return None;
            }
            // Abry and Veitch (eq. 14 and 15): the logarithm of a mean of n squares lies low by g, and has this
            // variance.
            let half = n as f64 / 2.0;
            let low = (digamma(half) - libm::log(half)) / core::f64::consts::LN_2;
            let variance = trigamma(half) / (core::f64::consts::LN_2 * core::f64::consts::LN_2);
            points.push((f64::from(octave), libm::log2(energy) - low, 1.0 / variance));
        }
        sums = pairs.map(|pair| (pair[0] + pair[1]) * core::f64::consts::FRAC_1_SQRT_2).collect();
    }
    (points.len() >= OCTAVES).then(|| (slope(&points) + 1.0) / 2.0)
}

/// The slope of y over x, by least squares with weights.
fn slope(points: &[(f64, f64, f64)]) -> f64 {
    let sum = |of: fn(&(f64, f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let (w, wx, wy) = (sum(|p| p.2), sum(|p| p.2 * p.0), sum(|p| p.2 * p.1));
    let (wxx, wxy) = (sum(|p| p.2 * p.0 * p.0), sum(|p| p.2 * p.0 * p.1));
    (w * wxy - wx * wy) / (w * wxx - wx * wx)
}

/// The derivative of ln gamma, and its derivative, for x of 4 and more: Abramowitz, Stegun: Handbook of mathematical
/// functions, 6.3.18 and 6.4.12.
fn digamma(x: f64) -> f64 {
    libm::log(x) - 1.0 / (2.0 * x) - 1.0 / (12.0 * x * x) + 1.0 / (120.0 * x * x * x * x)
}

fn trigamma(x: f64) -> f64 {
    1.0 / x + 1.0 / (2.0 * x * x) + 1.0 / (6.0 * x * x * x) - 1.0 / (30.0 * x * x * x * x * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_derivatives_of_ln_gamma_are_those_of_sums_over_whole_numbers() {
        // psi(4) = 1 + 1/2 + 1/3 - gamma, psi'(4) = pi^2/6 - 1 - 1/4 - 1/9; the series leave out 1/(252 x^6) and 1/(42
        // x^7).
        assert!((digamma(4.0) - (11.0 / 6.0 - 0.577_215_664_901_532_9)).abs() < 1.1e-6, "{}", digamma(4.0));
        let expected = std::f64::consts::PI.powi(2) / 6.0 - 49.0 / 36.0;
        assert!((trigamma(4.0) - expected).abs() < 1.6e-6, "{} {expected}", trigamma(4.0));
    }

    /// Fractional Gaussian noise, exactly: each value from all before it (J. R. M. Hosking, "Modeling persistence in
    /// hydrological time series using fractional differencing", Water Resources Research 20 (12), 1984, section 3.3).
    fn noise(h: f64, n: usize, seed: u64) -> Vec<f64> {
        let rho = |k: usize| {
            let k = k as f64;
            ((k + 1.0).powf(2.0 * h) - 2.0 * k.powf(2.0 * h) + (k - 1.0).abs().powf(2.0 * h)) / 2.0
        };
        let mut state = seed;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        let mut normal = || (-2.0 * uniform().ln()).sqrt() * (core::f64::consts::TAU * uniform()).cos();
        let (mut values, mut phi, mut variance) = (vec![normal()], Vec::<f64>::new(), 1.0);
        for t in 1..n {
            let foreseen: f64 = phi.iter().enumerate().map(|(j, phi)| phi * rho(t - 1 - j)).sum();
            let reflection = (rho(t) - foreseen) / variance;
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
            // Of four series the mean is known to 0.05.
            let seen: f64 = (1..=4).map(|seed| hurst(&noise(h, 2048, seed)).unwrap()).sum::<f64>() / 4.0;
            assert!((seen - h).abs() < 0.08, "{h}: {seen}");
        }
    }

    #[test]
    fn neither_level_nor_scale_matters() {
        let values = noise(0.8, 1024, 7);
        let other: Vec<f64> = values.iter().map(|x| 1000.0 + 30.0 * x).collect();
        assert!((hurst(&values).unwrap() - hurst(&other).unwrap()).abs() < 1e-9);
    }

    #[test]
    fn too_short_or_still_says_nothing() {
        let values = noise(0.7, 512, 3);
        assert!(hurst(&values).is_some());
        assert_eq!((hurst(&values[..511]), hurst(&[]), hurst(&[5.0; 4096])), (None, None, None));
    }
}
