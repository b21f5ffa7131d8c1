//! Disagreement between engines: the distance between the queues of one AQM. Curves are averaged over seeds and over
//! the last second, as no two engines agree about single round trips.

use crate::transient::{SMOOTH_S, median_step, trailing_means};

/// Mean over several runs and over the last second of queues sampled at the times `t_s`, up to the end of the shortest.
pub fn mean_curve(t_s: &[f64], queues: &[Vec<f64>]) -> Vec<f64> {
    let n = queues.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |i: usize| queues.iter().map(|queue| queue[i]).sum::<f64>() / queues.len() as f64;
    let means: Vec<f64> = (0..n).map(mean).collect();
    trailing_means(&means, median_step(t_s).unwrap_or(SMOOTH_S))
}

/// Root mean square distance between two curves over the samples in (`start_s`, `stop_s`]; `None` without samples.
pub fn curve_rms(t_s: &[f64], one: &[f64], other: &[f64], start_s: f64, stop_s: f64) -> Option<f64> {
    let inside = t_s.iter().zip(one.iter().zip(other)).filter(|&(&t, _)| t > start_s && t <= stop_s);
    let squares: Vec<f64> = inside.map(|(_, (one, other))| (other - one) * (other - one)).collect();
    (!squares.is_empty()).then(|| (squares.iter().sum::<f64>() / squares.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_means_over_runs_and_over_the_last_second() {
        // Steps of half a second: two samples per average. Means over the runs: 2, 4, 6, 8.
        let t = [0.5, 1.0, 1.5, 2.0];
        let runs = [vec![1.0, 3.0, 5.0, 7.0], vec![3.0, 5.0, 7.0, 9.0, 11.0]];
        assert_eq!(mean_curve(&t, &runs), [2.0, 3.0, 5.0, 7.0]);
        assert_eq!(mean_curve(&t, &[]), [0.0; 0]);
        // A single sample defines no step.
        assert_eq!(mean_curve(&[1.0], &[vec![5.0]]), [5.0]);
    }

    #[test]
    fn the_distance_counts_the_samples_of_the_window() {
        // Distances of 3 and 4 at 2 and 3 s: the root of 12.5. The sample at the start is excluded.
        let (t, one) = ([1.0, 2.0, 3.0, 4.0], [0.0; 4]);
        let other = [100.0, -3.0, 4.0, 100.0];
        assert_eq!(curve_rms(&t, &one, &other, 1.0, 3.0), Some(12.5f64.sqrt()));
        assert_eq!(curve_rms(&t, &one, &other[..2], 1.0, 4.0), Some(3.0));
        assert_eq!(curve_rms(&t, &one, &other, 4.0, 9.0), None);
    }
}
