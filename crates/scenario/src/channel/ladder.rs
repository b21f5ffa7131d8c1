//! Link adaptation: the radio channel selects one level of a ladder of modulation and coding schemes. The level is a
//! Markov chain that may move to a neighbour once per `coherence` time. Its stationary law is a discrete normal
//! distribution about a mean level.

/// Largest accepted spread of levels.
pub const LEVELS_SPREAD_MAX: f64 = 10.0;

/// Returns the logarithms of the stationary probabilities of `levels` levels about `mean`, with standard deviation
/// `spread`, up to a common term: -(level - mean)^2 / (2 spread^2). A spread of 0 keeps the nearest level.
pub(crate) fn log_weights(levels: usize, mean: f64, spread: f64) -> Vec<f64> {
    let distance = |level: usize| {
        let away = level as f64 - mean;
        away * away
    };
    if spread == 0.0 {
        let nearest = (0..levels).min_by(|a, b| distance(*a).total_cmp(&distance(*b)));
        return (0..levels).map(|level| if Some(level) == nearest { 0.0 } else { f64::NEG_INFINITY }).collect();
    }
    (0..levels).map(|level| -distance(level) / (2.0 * spread * spread)).collect()
}

/// Returns the normalised stationary probabilities.
pub fn level_weights(log_weights: &[f64]) -> Vec<f64> {
    let highest = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = log_weights.iter().map(|log| libm::exp(log - highest)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_spread_about_their_mean() {
        assert_eq!(level_weights(&log_weights(4, 1.6, 0.0)), [0.0, 0.0, 1.0, 0.0]);
        // exp(-1/2) on either side of the middle: 0.60653 / (1 + 2 * 0.60653) = 0.27407.
        let weights = level_weights(&log_weights(3, 1.0, 1.0));
        assert!((weights[0] - 0.274_068_6).abs() < 1e-6 && weights[0] == weights[2], "{weights:?}");
    }
}
