//! Fairness between flows.

/// Jain's fairness index of `rates`, (sum x)^2 / (n sum x^2): 1 for equal rates, 1/n if one flow has everything. `None`
/// if all rates are 0. Jain, Chiu, Hawe: A quantitative measure of fairness, DEC TR-301, 1984.
pub fn jain(rates: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for rate in rates {
        n += 1.0;
        sum += rate;
        squares += rate * rate;
    }
    jain_of_sums(n, sum, squares)
}

/// [`jain`] from the number, sum and sum of squares of the rates.
pub fn jain_of_sums(n: f64, sum: f64, squares: f64) -> Option<f64> {
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// Slope of ln(throughput) over ln(round-trip time) by least squares, for flows given as (round-trip time, throughput).
/// 0 is RTT-fair; equal windows give -1, and the square-root law's throughput of c / RTT^2 with drops common to all
/// flows gives -2 (Lakshman, Madhow, 1997).
///
/// `None` for fewer than three flows with throughput, or round-trip times within 10 %.
pub fn rtt_slope(flows: &[(f64, f64)]) -> Option<f64> {
    let points: Vec<(f64, f64)> = flows
        .iter()
        .filter(|(rtt, rate)| *rtt > 0.0 && *rate > 0.0)
        .map(|&(x, y)| (libm::log(x), libm::log(y)))
        .collect();
    let n = points.len() as f64;
    let low = points.iter().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let high = points.iter().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    if points.len() < 3 || high - low < libm::log(1.1) {
        return None;
    }
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / n, sum.1 + point.1 / n));
    let (xy, xx) = points
        .iter()
        .fold((0.0, 0.0), |sum, point| (sum.0 + (point.0 - x) * (point.1 - y), sum.1 + (point.0 - x) * (point.0 - x)));
    Some(xy / xx)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_rates_are_fair() {
        assert_eq!(jain([3.0; 7]), Some(1.0));
        assert_eq!(jain([0.0, 0.0, 5.0, 0.0]), Some(0.25));
        // 1, 2, 3: 36 / (3 * 14).
        assert_eq!(jain([1.0, 2.0, 3.0]), Some(36.0 / 42.0));
        assert_eq!((jain([0.0, 0.0]), jain([])), (None, None));
    }

    #[test]
    fn a_power_law_has_its_exponent_as_slope() {
        for slope in [0.0, -1.0, -2.0] {
            let flows: Vec<_> = [0.02, 0.05, 0.1, 0.4].map(|rtt| (rtt, 7e6 * libm::pow(rtt, slope))).into();
            assert!((rtt_slope(&flows).unwrap() - slope).abs() < 1e-12);
        }
        // Log-log points (0, 0), (1, -1), (2, -1): slope = sum (x - 1)(y + 2/3) / 2 = (-2/3 - 1/3) / 2.
        let e = core::f64::consts::E;
        let slope = rtt_slope(&[(1.0, 1.0), (e, 1.0 / e), (e * e, 1.0 / e)]).unwrap();
        assert!((slope + 0.5).abs() < 1e-12, "{slope}");
    }

    #[test]
    fn a_slope_needs_three_flows_and_different_round_trip_times() {
        assert_eq!(rtt_slope(&[(0.1, 1.0), (0.2, 1.0)]), None);
        assert_eq!(rtt_slope(&[(0.1, 1.0), (0.104, 2.0), (0.109, 3.0)]), None);
        assert_eq!(rtt_slope(&[(0.1, 1.0), (0.2, 0.0), (0.3, 3.0)]), None);
    }

    proptest! {
        #[test]
        fn the_index_lies_between_one_over_n_and_one(rates in prop::collection::vec(1e-3f64..1e9, 1..30)) {
            let index = jain(rates.iter().copied()).unwrap();
            prop_assert!(index <= 1.0 + 1e-12 && index >= 1.0 / rates.len() as f64 - 1e-12);
        }
    }

    #[test]
    fn the_slope_through_scattered_points_is_that_of_least_squares() {
        // ln-ln points (1, 2), (2, 0), (3, 1), (6, -3): means 3 and 0; sum of products -2*2 - 1*0 + 0 - 3*3 = -13, of
        // squares 14.
        let points: Vec<_> =
            [(1.0, 2.0), (2.0, 0.0), (3.0, 1.0), (6.0, -3.0)].map(|(x, y)| (libm::exp(x), libm::exp(y))).into();
        assert!((rtt_slope(&points).unwrap() + 13.0 / 14.0).abs() < 1e-12);
        // Flows without a round-trip time or throughput are ignored.
        let more = [&points[..], &[(0.0, 5.0), (3.0, 0.0)]].concat();
        assert_eq!(rtt_slope(&more), rtt_slope(&points));
    }
}
