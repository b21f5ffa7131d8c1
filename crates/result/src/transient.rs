//! Transient response of a queue to an event: settling time and overshoot, from its series.
//!
//! Settling uses the mean over the last second, since a TCP round trip varies the queue more than any AQM can prevent;
//! overshoot uses the samples.

/// Half width of the band around the target, relative to the target.
pub const BAND: f64 = 0.3;
/// Time that the queue must stay in the band, seconds.
pub const HOLD_S: f64 = 5.0;
/// Averaging time before the comparison with the band, seconds.
pub const SMOOTH_S: f64 = 1.0;

/// Transient response of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transient {
    /// Seconds from the event until the queue stays within the band for [`HOLD_S`]; `None` if it never does.
    pub settling_s: Option<f64>,
    /// Largest sample above the target until then, packets; 0 if there is none.
    pub overshoot_pkts: f64,
}

/// Settling and overshoot of the samples `queue_pkts`, at the equally spaced times `t_s`, in (`start_s`, `stop_s`].
/// `None` without samples.
pub fn transient(t_s: &[f64], queue_pkts: &[f64], target_pkts: f64, start_s: f64, stop_s: f64) -> Option<Transient> {
    let first = t_s.partition_point(|&t| t <= start_s);
    let end = t_s.partition_point(|&t| t <= stop_s).min(queue_pkts.len());
    let (t, queue) = (t_s.get(first..end)?, queue_pkts.get(first..end)?);
    if t.is_empty() {
        return None;
    }
    let step = median_step(t).unwrap_or(stop_s - start_s);
    let means = trailing_means(queue, step);
    let mut since = 0; // first sample of the current time in the band
    let settled = (0..t.len()).find_map(|i| {
        if (means[i] - target_pkts).abs() > BAND * target_pkts {
            since = i + 1;
            return None;
        }
        (t[i] - t[since] >= HOLD_S - 1e-9).then_some(since)
    });
    let judged = &queue[..settled.map_or(queue.len(), |at| at + 1)];
    let peak = judged.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(Transient { settling_s: settled.map(|at| t[at] - start_s), overshoot_pkts: (peak - target_pkts).max(0.0) })
}

/// Means of each of `values`, at steps of `step` seconds, with those of the last [`SMOOTH_S`].
pub(crate) fn trailing_means(values: &[f64], step: f64) -> Vec<f64> {
    let width = (libm::rint(SMOOTH_S / step) as usize).max(1);
    let sums: Vec<f64> = std::iter::once(0.0)
        .chain(values.iter().scan(0.0, |sum, x| {
            *sum += x;
            Some(*sum)
        }))
        .collect();
    let mean = |i: usize| {
        let from = (i + 1).saturating_sub(width);
        (sums[i + 1] - sums[from]) / (i + 1 - from) as f64
    };
    (0..values.len()).map(mean).collect()
}

/// Median of the steps between the times `t`.
pub(crate) fn median_step(t: &[f64]) -> Option<f64> {
    let mut steps: Vec<f64> = t.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_by(f64::total_cmp);
    let (low, high) = (steps.len().checked_sub(1)? / 2, steps.len() / 2);
    Some((steps[low] + steps[high]) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transient of a queue with each level for some seconds, sampled every 0.1 s.
    fn judged(pieces: &[(u32, f64)]) -> Transient {
        let queue: Vec<f64> = pieces.iter().flat_map(|&(s, level)| vec![level; 10 * s as usize]).collect();
        let t: Vec<f64> = (1..=queue.len()).map(|k| k as f64 * 0.1).collect();
        transient(&t, &queue, 100.0, 0.0, queue.len() as f64 * 0.1 + 0.05).unwrap()
    }

    #[test]
    fn a_queue_settles_when_its_average_does() {
        // Empty for 2 s, then 100: at 2 + k/10 s the mean over the last second is 10 k packets, within 30 % of 100 from
        // k = 7 on.
        let seen = judged(&[(2, 0.0), (20, 100.0)]);
        assert!((seen.settling_s.unwrap() - 2.7).abs() < 1e-9);
        assert_eq!(seen.overshoot_pkts, 0.0);
        // 250 for 3 s: an overshoot of 150; the mean then falls by 15 packets a sample, to 130 at 3.8 s.
        let seen = judged(&[(3, 250.0), (10, 100.0), (5, 125.0)]);
        assert!((seen.settling_s.unwrap() - 3.8).abs() < 1e-9);
        assert_eq!(seen.overshoot_pkts, 150.0);
    }

    #[test]
    fn a_band_that_is_left_within_five_seconds_does_not_count() {
        // In the band for 4 s, out for 2, then in for good: the mean falls from 200 at 6 s to 130 at 6.7 s.
        let seen = judged(&[(4, 100.0), (2, 200.0), (10, 100.0)]);
        assert!((seen.settling_s.unwrap() - 6.7).abs() < 1e-9);
        assert_eq!(judged(&[(30, 180.0)]), Transient { settling_s: None, overshoot_pkts: 80.0 });
    }

    #[test]
    fn without_samples_there_is_no_transient() {
        assert_eq!(transient(&[1.0, 2.0], &[5.0, 5.0], 10.0, 2.0, 9.0), None);
        // A single sample never holds for five seconds.
        let one = transient(&[1.0, 2.0], &[5.0, 15.0], 10.0, 1.0, 9.0);
        assert_eq!(one, Some(Transient { settling_s: None, overshoot_pkts: 5.0 }));
    }

    #[test]
    fn the_band_includes_its_edges_and_time_starts_at_the_event() {
        // Sampled every 2 s, without averaging: 130 and 70 are within 30 % of 100, 131 and 69 are not.
        let t: Vec<f64> = (1..=10).map(|k| 2.0 * f64::from(k)).collect();
        let settling = |first: f64, rest: f64| {
            let mut queue = vec![rest; 10];
            queue[4] = first;
            transient(&t, &queue, 100.0, 7.0, 20.0).unwrap().settling_s
        };
        // After 7 s the samples are at 8, 10, 12, ... s; the queue is out of the band at 10 s at most.
        assert_eq!([settling(130.0, 100.0), settling(70.0, 130.0)], [Some(1.0); 2]);
        assert_eq!([settling(131.0, 100.0), settling(69.0, 70.0)], [Some(5.0); 2]);
        assert_eq!(settling(100.0, 131.0), None);
    }

    #[test]
    fn the_average_is_over_one_second_and_the_peak_ends_with_settling() {
        // 0.25 s a sample, four per average: 180, 180, 100, 100, ... has the means 180, 180, 153.3, 140, 120, 100.
        let t: Vec<f64> = (1..=40).map(|k| 0.25 * f64::from(k)).collect();
        let mut queue = vec![100.0; 40];
        queue[..2].fill(180.0);
        // A later peak belongs to the next event; a single sample of 219 raises the average to 129.75 only.
        queue[30] = 219.0;
        let seen = transient(&t, &queue, 100.0, 0.0, 10.0).unwrap();
        assert_eq!(seen, Transient { settling_s: Some(1.25), overshoot_pkts: 80.0 });
        // Uneven steps: their median determines the number per second.
        let mut uneven = t.clone();
        uneven[39] = 60.0;
        assert_eq!(transient(&uneven, &queue, 100.0, 0.0, 100.0), Some(seen));
    }

    #[test]
    fn the_median_step_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median_step(&[0.0, 1.0, 4.0]), Some(2.0));
        assert_eq!(median_step(&[0.0, 5.0, 6.0, 8.0]), Some(2.0));
        assert_eq!((median_step(&[3.0]), median_step(&[])), (None, None));
    }
    #[test]
    fn a_single_sample_never_settles() {
        // Without a step the whole window is one.
        let seen = transient(&[3.0], &[50.0], 40.0, 2.0, 4.0).unwrap();
        assert_eq!((seen.settling_s, seen.overshoot_pkts), (None, 10.0));
    }
}
