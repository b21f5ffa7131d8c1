//! How far two engines are apart in the queue of one AQM. Curves are compared as averages: over the seeds, and over the
//! last second, since no two engines agree about single round trips.

use crate::transient::{SMOOTH_S, median_step, trailing_means};

/// The queues of several runs, sampled at the same moments `t_s`, averaged over the runs and over the last second. As
/// long as the shortest of them.
pub fn averaged(t_s: &[f64], queues: &[Vec<f64>]) -> Vec<f64> {
    let n = queues.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |i: usize| queues.iter().map(|queue| queue[i]).sum::<f64>() / queues.len() as f64;
    let means: Vec<f64> = (0..n).map(mean).collect();
    trailing_means(&means, median_step(t_s).unwrap_or(SMOOTH_S))
}

/// The root mean square of the distance between two curves over the samples after `start_s` and up to and including
/// `stop_s`. `None` without a sample in between.
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
        // Steps of half a second: two samples to the average. Means over the runs 2, 4, 6, 8.
        let t = [0.5, 1.0, 1.5, 2.0];
        let runs = [vec![1.0, 3.0, 5.0, 7.0], vec![3.0, 5.0, 7.0, 9.0, 11.0]];
        assert_eq!(averaged(&t, &runs), [2.0, 3.0, 5.0, 7.0]);
        assert_eq!(averaged(&t, &[]), [0.0; 0]);
        // One sample: nothing to tell a step from.
        assert_eq!(averaged(&[1.0], &[vec![5.0]]), [5.0]);
    }

    #[test]
    fn the_distance_counts_the_samples_of_the_window() {
        // Apart by 3 and 4 at 2 and 3 s: the root of 12.5. What is at the start is before it.
        let (t, one) = ([1.0, 2.0, 3.0, 4.0], [0.0; 4]);
        let other = [100.0, -3.0, 4.0, 100.0];
        assert_eq!(curve_rms(&t, &one, &other, 1.0, 3.0), Some(12.5f64.sqrt()));
        assert_eq!(curve_rms(&t, &one, &other[..2], 1.0, 4.0), Some(3.0));
        assert_eq!(curve_rms(&t, &one, &other, 4.0, 9.0), None);
    }
}
