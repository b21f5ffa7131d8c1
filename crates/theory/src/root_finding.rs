//! Where a falling function is zero.

/// Brackets the root of a decreasing `miss` by `halvings` bisections of an interval.
pub(crate) fn halved(mut miss: impl FnMut(f64) -> f64, (mut low, mut high): (f64, f64), halvings: u32) -> (f64, f64) {
    for _ in 0..halvings {
        let middle = 0.5 * (low + high);
        if miss(middle).is_sign_positive() { low = middle } else { high = middle }
    }
    (low, high)
}

/// Bisection in the logarithm, between two ends above zero.
pub(crate) fn halved_ratio(mut miss: impl FnMut(f64) -> f64, (low, high): (f64, f64), halvings: u32) -> (f64, f64) {
    let (low, high) = halved(|log| miss(libm::exp(log)), (libm::log(low), libm::log(high)), halvings);
    (libm::exp(low), libm::exp(high))
}

/// Root of a decreasing, expensive `miss` between two ends to tolerance `near`: secant from `x` with initial `slope`,
/// then bisection. `None` without a root.
pub(crate) fn falling(
    miss: impl Fn(f64) -> f64,
    (mut low, mut high): (f64, f64),
    (mut x, mut slope): (f64, f64),
    near: f64,
) -> Option<f64> {
    // Along the line through the last two.
    let mut last = None;
    for _ in 0..8 {
        let here = miss(x);
        if here.abs() < near {
            return Some(x);
        }
        if let Some((before, missed)) = last {
            slope = (here - missed) / (x - before);
        }
        if !(slope < -0.1 && slope > -3.0) {
            break;
        }
        last = Some((x, here));
        x -= here / slope;
        if !(low..=high).contains(&x) {
            break;
        }
    }
    // What that does not find lies next to an end, or nowhere.
    if miss(low) < 0.0 || miss(high) > 0.0 {
        return None;
    }
    while high - low > near {
        let middle = 0.5 * (low + high);
        if miss(middle).is_sign_positive() { low = middle } else { high = middle }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_is_halved_in_on() {
        // Of 1 to 4 one halving leaves 2.5 to 4, two 2.5 to 3.25; of 1 to 16 by ratios 1 to 4, then 2 to 4.
        let line = |x: f64| 3.1 - x;
        let [none, one, two, many] = [0, 1, 2, 40].map(|halvings| halved(line, (1.0, 4.0), halvings));
        assert_eq!((none, one, two), ((1.0, 4.0), (2.5, 4.0), (2.5, 3.25)));
        assert!(many.0 <= 3.1 && 3.1 <= many.1 && many.1 - many.0 < 1e-11, "{many:?}");
        let [(low, high), (lower, upper)] = [1, 2].map(|halvings| halved_ratio(line, (1.0, 16.0), halvings));
        let near = |seen: f64, known: f64| assert!((seen / known - 1.0).abs() < 1e-12, "{seen} {known}");
        near(low, 1.0);
        near(high, 4.0);
        near(lower, 2.0);
        near(upper, 4.0);
    }

    #[test]
    fn a_zero_is_found_in_a_few_looks_where_it_is_expected_and_by_halving_where_not() {
        let looks = |miss: &dyn Fn(f64) -> f64, u: f64, slope: f64| {
            let count = std::cell::Cell::new(0);
            let counted = |u: f64| {
                count.set(count.get() + 1);
                miss(u)
            };
            (falling(counted, (-20.0, 0.0), (u, slope), 1e-7), count.get())
        };
        // A line: the second look by the slope that was told, or the third by that of the first two.
        let line = |u: f64| -0.5 * (u + 6.0);
        assert_eq!(looks(&line, -4.0, -0.5), (Some(-6.0), 2));
        let (found, count) = looks(&line, -4.0, -0.7);
        assert!((found.unwrap() + 6.0).abs() < 1e-9 && count == 3, "{found:?} {count}");
        let bent = |u: f64| -0.5 * (u + 6.0) - 0.02 * (u + 6.0) * (u + 6.0);
        let (found, count) = looks(&bent, -4.0, -0.5);
        assert!((found.unwrap() + 6.0).abs() < 1e-6 && count <= 6, "{found:?} {count}");
        // Too steep, too flat, or bound for what lies outside: 28 halvings of 20 to 1e-7, after a look at both ends.
        for (slope, zero) in [(-5.0, -6.0), (-0.05, -6.0), (-0.5, -19.5)] {
            let miss = move |u: f64| slope * (u - zero) * if slope == -0.5 && u > zero + 1.0 { 2.0 } else { 1.0 };
            let (found, count) = looks(&miss, -4.0, slope);
            assert!((found.unwrap() - zero).abs() < 2e-7 && (30..=33).contains(&count), "{slope}: {found:?} {count}");
        }
        assert_eq!(looks(&|u: f64| -0.5 * (u + 21.0), -4.0, -0.5).0, None);
        assert_eq!(looks(&|u: f64| -0.5 * (u - 1.0), -4.0, -0.5).0, None);
    }
}
