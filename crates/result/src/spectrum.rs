//! Discrete Fourier transform of any length: radix 2 for powers of two; otherwise as a convolution with a chirp,
//! computed by transforms of a power of two (L. Bluestein, "A linear filtering approach to the computation of discrete
//! Fourier transform", IEEE Transactions on Audio and Electroacoustics 18(4), 1970).

use std::f64::consts::PI;

use num_complex::Complex64;

/// e^(i angle).
fn unit(angle: f64) -> Complex64 {
    Complex64::new(libm::cos(angle), libm::sin(angle))
}

/// Transform X(k) = sum of x(i) e^(-2 pi j i k / n) over i.
pub(crate) fn transform(x: &[Complex64]) -> Vec<Complex64> {
    let n = x.len();
    if n <= 1 || n.is_power_of_two() {
        let mut out = x.to_vec();
        radix_2(&mut out);
        return out;
    }
    // i k = (i^2 + k^2 - (k - i)^2) / 2.
    let chirp: Vec<Complex64> =
        (0..n as u128).map(|i| unit(-PI * (i * i % (2 * n as u128)) as f64 / n as f64)).collect();
    let m = (2 * n - 1).next_power_of_two();
    let (mut a, mut b) = (vec![Complex64::ZERO; m], vec![Complex64::ZERO; m]);
    for (i, (&x, &chirp)) in x.iter().zip(&chirp).enumerate() {
        a[i] = x * chirp;
        b[i] = chirp.conj();
        b[(m - i) % m] = chirp.conj();
    }
    radix_2(&mut a);
    radix_2(&mut b);
    let product: Vec<Complex64> = a.iter().zip(&b).map(|(&a, &b)| a * b).collect();
    inverse(&product).iter().zip(&chirp).map(|(&x, &chirp)| x * chirp).collect()
}

/// Inverse transform.
pub(crate) fn inverse(x: &[Complex64]) -> Vec<Complex64> {
    let conjugates: Vec<Complex64> = x.iter().map(|x| x.conj()).collect();
    transform(&conjugates).iter().map(|x| x.conj().scale(1.0 / conjugates.len() as f64)).collect()
}

/// Transform of a power of two of values, in place.
fn radix_2(x: &mut [Complex64]) {
    let n = x.len();
    if n <= 1 {
        return;
    }
    let shift = usize::BITS - n.ilog2();
    for i in 0..n {
        let other = i.reverse_bits() >> shift;
        if i < other {
            x.swap(i, other);
        }
    }
    let factors: Vec<Complex64> = (0..n / 2).map(|i| unit(-2.0 * PI * i as f64 / n as f64)).collect();
    let mut half = 1;
    while half < n {
        let stride = n / (2 * half);
        for block in x.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for ((low, high), &factor) in low.iter_mut().zip(high).zip(factors.iter().step_by(stride)) {
                let (one, other) = (*low, *high * factor);
                (*low, *high) = (one + other, one - other);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The sum by its definition.
    fn by_definition(x: &[Complex64]) -> Vec<Complex64> {
        let n = x.len();
        let turn = |i: usize, k: usize| unit(-2.0 * PI * (i * k % n) as f64 / n as f64);
        (0..n).map(|k| x.iter().enumerate().fold(Complex64::ZERO, |sum, (i, &x)| sum + x * turn(i, k))).collect()
    }

    fn assert_near(one: &[Complex64], other: &[Complex64]) {
        assert_eq!(one.len(), other.len());
        for (one, other) in one.iter().zip(other) {
            assert!((*one - *other).norm_sqr().sqrt() < 1e-9, "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_wave_is_one_line_of_its_spectrum() {
        // cos(2 pi 3 i / 12): lines of n / 2 = 6 at 3 and at 12 - 3.
        let wave: Vec<Complex64> = (0..12).map(|i| Complex64::from((PI * f64::from(i) / 2.0).cos())).collect();
        let lines = |k| Complex64::from(if k == 3 || k == 9 { 6.0 } else { 0.0 });
        assert_near(&transform(&wave), &(0..12).map(lines).collect::<Vec<_>>());
        assert_eq!(transform(&[]), []);
        assert_eq!(transform(&[Complex64::from(7.0)]), [Complex64::from(7.0)]);
    }

    proptest! {
        #[test]
        fn any_length_is_transformed_as_defined_and_back(values in prop::collection::vec((-1.0..1.0, -1.0..1.0), 1..70)) {
            let x: Vec<Complex64> = values.iter().map(|&(re, im)| Complex64::new(re, im)).collect();
            assert_near(&transform(&x), &by_definition(&x));
            assert_near(&inverse(&transform(&x)), &x);
        }
    }
}
