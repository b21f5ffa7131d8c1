//! The discrete Fourier transform of any length: powers of two by halves, all others as a convolution with a chirp,
//! which is a product of transforms of a power of two (L. Bluestein, "A linear filtering approach to the computation of
//! discrete Fourier transform", IEEE Transactions on Audio and Electroacoustics 18(4), 1970).

use std::f64::consts::PI;
use std::ops::{Add, Mul, Sub};

/// A complex number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Complex {
    pub(crate) re: f64,
    pub(crate) im: f64,
}

impl Complex {
    pub(crate) fn real(re: f64) -> Self {
        Complex { re, im: 0.0 }
    }

    /// e^(i angle).
    fn turned(angle: f64) -> Self {
        Complex { re: libm::cos(angle), im: libm::sin(angle) }
    }

    fn conjugate(self) -> Self {
        Complex { re: self.re, im: -self.im }
    }

    fn scaled(self, by: f64) -> Self {
        Complex { re: self.re * by, im: self.im * by }
    }

    /// |z|^2.
    pub(crate) fn power(self) -> f64 {
        self.re * self.re + self.im * self.im
    }
}

impl Add for Complex {
    type Output = Complex;

    fn add(self, other: Complex) -> Complex {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Sub for Complex {
    type Output = Complex;

    fn sub(self, other: Complex) -> Complex {
        Complex { re: self.re - other.re, im: self.im - other.im }
    }
}

impl Mul for Complex {
    type Output = Complex;

    fn mul(self, other: Complex) -> Complex {
        Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

/// X(k) = sum of x(i) e^(-2 pi j i k / n) over i.
pub(crate) fn transform(x: &[Complex]) -> Vec<Complex> {
    let n = x.len();
    if n <= 1 || n.is_power_of_two() {
        let mut out = x.to_vec();
        by_halves(&mut out);
        return out;
    }
    // i k = (i^2 + k^2 - (k - i)^2) / 2.
    let chirp: Vec<Complex> =
        (0..n as u128).map(|i| Complex::turned(-PI * (i * i % (2 * n as u128)) as f64 / n as f64)).collect();
    let m = (2 * n - 1).next_power_of_two();
    let (mut a, mut b) = (vec![Complex::default(); m], vec![Complex::default(); m]);
    for (i, (&x, &chirp)) in x.iter().zip(&chirp).enumerate() {
        a[i] = x * chirp;
        b[i] = chirp.conjugate();
        b[(m - i) % m] = chirp.conjugate();
    }
    by_halves(&mut a);
    by_halves(&mut b);
    let product: Vec<Complex> = a.iter().zip(&b).map(|(&a, &b)| a * b).collect();
    inverse(&product).iter().zip(&chirp).map(|(&x, &chirp)| x * chirp).collect()
}

/// The signal whose transform `x` is.
pub(crate) fn inverse(x: &[Complex]) -> Vec<Complex> {
    let turned: Vec<Complex> = x.iter().map(|x| x.conjugate()).collect();
    transform(&turned).iter().map(|x| x.conjugate().scaled(1.0 / turned.len() as f64)).collect()
}

/// The transform of a power of two of values, in place.
fn by_halves(x: &mut [Complex]) {
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
    let turns: Vec<Complex> = (0..n / 2).map(|i| Complex::turned(-2.0 * PI * i as f64 / n as f64)).collect();
    let mut half = 1;
    while half < n {
        let stride = n / (2 * half);
        for block in x.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for ((low, high), &turn) in low.iter_mut().zip(high).zip(turns.iter().step_by(stride)) {
                let (one, other) = (*low, *high * turn);
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

    /// The sum as it is defined.
    fn defined(x: &[Complex]) -> Vec<Complex> {
        let n = x.len();
        let turn = |i: usize, k: usize| Complex::turned(-2.0 * PI * (i * k % n) as f64 / n as f64);
        (0..n).map(|k| x.iter().enumerate().fold(Complex::default(), |sum, (i, &x)| sum + x * turn(i, k))).collect()
    }

    fn assert_near(one: &[Complex], other: &[Complex]) {
        assert_eq!(one.len(), other.len());
        for (one, other) in one.iter().zip(other) {
            assert!((*one - *other).power().sqrt() < 1e-9, "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_wave_is_one_line_of_its_spectrum() {
        // cos(2 pi 3 i / 12): lines of n / 2 = 6 at 3 and at 12 - 3.
        let wave: Vec<Complex> = (0..12).map(|i| Complex::real((PI * f64::from(i) / 2.0).cos())).collect();
        let lines = |k| Complex::real(if k == 3 || k == 9 { 6.0 } else { 0.0 });
        assert_near(&transform(&wave), &(0..12).map(lines).collect::<Vec<_>>());
        assert_eq!(transform(&[]), []);
        assert_eq!(transform(&[Complex::real(7.0)]), [Complex::real(7.0)]);
    }

    proptest! {
        #[test]
        fn any_length_is_transformed_as_defined_and_back(values in prop::collection::vec((-1.0..1.0, -1.0..1.0), 1..70)) {
            let x: Vec<Complex> = values.iter().map(|&(re, im)| Complex { re, im }).collect();
            assert_near(&transform(&x), &defined(&x));
            assert_near(&inverse(&transform(&x)), &x);
        }
    }
}
