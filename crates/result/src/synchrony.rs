//! Global synchronisation of flows.
//!
//! The variance of the sum of independent windows is the sum of their variances (the basis of the small-buffer rule of
//! Appenzeller, Keslassy and McKeown, "Sizing router buffers", SIGCOMM 2004, section 3). For windows in phase it is the
//! square of the sum of their standard deviations. The index locates the flows between the two.

/// Accumulator of window samples of a fixed set of flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Synchrony {
    /// Sum and sum of squares of each flow's window.
    sums: Vec<f64>,
    squares: Vec<f64>,
    /// Sum and sum of squares of the total window.
    total: [f64; 2],
    samples: u64,
}

/// Flows added in parallel (SIMD).
const LANES: usize = 4;

impl Synchrony {
    /// Adds the windows of all flows at one time, always in the same order.
    pub fn sample(&mut self, windows: &[f64]) {
        self.sample_moments([windows]);
    }

    /// Adds samples of several times at once, which is faster.
    pub fn sample_moments<const N: usize>(&mut self, moments: [&[f64]; N]) {
        let flows = moments.first().map_or(0, |windows| windows.len());
        self.resize(flows);
        let moments = moments.map(|windows| windows[..flows].as_chunks::<LANES>());
        let (sums, last_sums) = self.sums.as_chunks_mut::<LANES>();
        let (squares, last_squares) = self.squares.as_chunks_mut::<LANES>();
        let lanes = moments.map(|(windows, _)| &windows[..sums.len()]);
        let mut totals = [0.0; N];
        for (some, (sums, squares)) in sums.iter_mut().zip(squares).enumerate() {
            let lanes = lanes.map(|windows| &windows[some]);
            add(sums, squares, lanes);
            for (total, windows) in totals.iter_mut().zip(lanes) {
                windows.iter().for_each(|window| *total += window);
            }
        }
        for (flow, (sum, square)) in last_sums.iter_mut().zip(last_squares).enumerate() {
            for (total, (_, last)) in totals.iter_mut().zip(moments) {
                *total += last[flow];
                *sum += last[flow];
                *square += last[flow] * last[flow];
            }
        }
        for sum in totals {
            self.total[0] += sum;
            self.total[1] += sum * sum;
            self.samples += 1;
        }
    }

    /// Adds the samples of `later`, of the same flows.
    pub fn merge(&mut self, later: &Synchrony) {
        self.resize(self.sums.len().max(later.sums.len()));
        let mine = self.sums.iter_mut().zip(&later.sums).chain(self.squares.iter_mut().zip(&later.squares));
        mine.chain(self.total.iter_mut().zip(&later.total)).for_each(|(mine, theirs)| *mine += theirs);
        self.samples += later.samples;
    }

    fn resize(&mut self, flows: usize) {
        self.sums.resize(flows, 0.0);
        self.squares.resize(flows, 0.0);
    }

    /// Synchronisation index (V - sum v) / ((sum s)^2 - sum v), with V the variance of the sum, v the flows' variances
    /// and s their standard deviations. It is the mean correlation of all pairs of flows, weighted by their deviations:
    /// 0 for independent flows, 1 in phase, negative in antiphase.
    ///
    /// `None` for fewer than two flows whose windows vary, or fewer than ten samples.
    pub fn index(&self) -> Option<f64> {
        if self.samples < 10 {
            return None;
        }
        let n = self.samples as f64;
        let variance = |[sum, squares]: [f64; 2]| (squares / n - (sum / n) * (sum / n)).max(0.0);
        let (mut variances, mut deviations, mut moving) = (0.0, 0.0, 0);
        for (&sum, &squares) in self.sums.iter().zip(&self.squares) {
            // Rounding errors of a constant window are no variation.
            let v = Some(variance([sum, squares])).filter(|v| *v > 1e-9 * squares / n).unwrap_or(0.0);
            moving += u32::from(v > 0.0);
            variances += v;
            deviations += v.sqrt();
        }
        (moving > 1).then(|| (variance(self.total) - variances) / (deviations * deviations - variances))
    }
}

/// Adds the windows of some flows at several times, and their squares.
#[inline(always)]
fn add<const N: usize>(sums: &mut [f64; LANES], squares: &mut [f64; LANES], moments: [&[f64; LANES]; N]) {
    // Local copies allow vectorisation.
    let (mut sum, mut square) = (*sums, *squares);
    for windows in moments {
        for (window, (sum, square)) in windows.iter().zip(sum.iter_mut().zip(&mut square)) {
            *sum += window;
            *square += window * window;
        }
    }
    (*sums, *squares) = (sum, square);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn index(flows: &[&[f64]]) -> Option<f64> {
        let mut seen = Synchrony::default();
        (0..flows[0].len()).for_each(|k| seen.sample(&flows.iter().map(|flow| flow[k]).collect::<Vec<_>>()));
        seen.index()
    }

    #[test]
    fn flows_in_phase_have_index_one_and_in_antiphase_a_negative_one() {
        let saw: Vec<f64> = (0..40).map(|k| (k % 10) as f64).collect();
        let twice: Vec<f64> = saw.iter().map(|x| 2.0 * x + 5.0).collect();
        let mirrored: Vec<f64> = saw.iter().map(|x| 20.0 - x).collect();
        let rest = vec![7.0; 40];
        assert!((index(&[&saw, &twice, &rest]).unwrap() - 1.0).abs() < 1e-12);
        assert!((index(&[&saw, &mirrored]).unwrap() + 1.0).abs() < 1e-12);
        // Any number of flows.
        (2..=9).for_each(|n| assert!((index(&vec![&saw[..]; n]).unwrap() - 1.0).abs() < 1e-12, "{n}"));
        assert_eq!(index(&[&saw, &rest]), None);
        assert_eq!(index(&[&saw[..9], &twice[..9]]), None);
    }

    #[test]
    fn independent_flows_have_index_zero() {
        // All four pairs of (0 or 1, 0 or 1) equally often: no correlation.
        let one = [0.0, 0.0, 1.0, 1.0].repeat(10);
        let other = [0.0, 1.0, 0.0, 1.0].repeat(10);
        assert!(index(&[&one, &other]).unwrap().abs() < 1e-12);
        // With a third that copies the first, one of three pairs has correlation 1 and all deviations are equal.
        assert!((index(&[&one, &other, &one]).unwrap() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn samples_added_together_equal_samples_added_one_by_one() {
        let moments: Vec<Vec<f64>> = (0..8).map(|k| (0..7).map(|i| 1.0 / f64::from(3 * k + i + 1)).collect()).collect();
        let (mut one_by_one, mut together) = (Synchrony::default(), Synchrony::default());
        moments.iter().for_each(|windows| one_by_one.sample(windows));
        together.sample_moments::<8>(std::array::from_fn(|k| &moments[k][..]));
        assert_eq!(one_by_one, together, "to the last bit");
    }

    proptest! {
        #[test]
        fn the_index_lies_within_its_bounds_and_parts_add_up(
            windows in prop::collection::vec(prop::array::uniform4(1.0f64..100.0), 20..60), cut in 1usize..19,
        ) {
            let (mut whole, mut first, mut second) = (Synchrony::default(), Synchrony::default(), Synchrony::default());
            for (k, sample) in windows.iter().enumerate() {
                whole.sample(sample);
                if k < cut { &mut first } else { &mut second }.sample(sample);
            }
            first.merge(&second);
            let (a, b) = (whole.index().unwrap(), first.index().unwrap());
            prop_assert!((a - b).abs() < 1e-9);
            // Bounds of a weighted mean correlation.
            prop_assert!((-1.0..=1.0 + 1e-12).contains(&a), "{a}");
        }
    }

    #[test]
    fn ten_samples_of_two_flows_are_enough() {
        let up: Vec<f64> = (0..10).map(f64::from).collect();
        let down: Vec<f64> = up.iter().map(|x| 9.0 - x).collect();
        assert!((index(&[&up, &up]).unwrap() - 1.0).abs() < 1e-12);
        // Opposite flows of unequal amplitude, deviations s and 2 s: V = s^2, (1 - 5) / (9 - 5) = -1.
        let twice: Vec<f64> = down.iter().map(|x| 2.0 * x).collect();
        assert!((index(&[&up, &twice]).unwrap() + 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_constant_window_does_not_count() {
        let saw: Vec<f64> = (0..30).map(|k| f64::from(k % 7)).collect();
        for rest in [0.1, 1.0 / 3.0, 123.456, 1e6 / 7.0] {
            let still = vec![rest; 30];
            assert_eq!(index(&[&saw, &still]), None, "{rest}");
            assert!((index(&[&saw, &saw, &still]).unwrap() - 1.0).abs() < 1e-5, "{rest}");
        }
        // A thousandth of a packet about 10 is variation.
        let slight: Vec<f64> = saw.iter().map(|x| 10.0 + 1e-3 * x).collect();
        assert!((index(&[&saw, &slight]).unwrap() - 1.0).abs() < 1e-6);
    }
}
