//! The rightmost root of a loop with its delay: how fast a disturbance dies out or grows, and how quickly it swings.
//!
//! Zeros to the right of a line are counted by the turns of the characteristic function along it, so that none can be
//! missed; the line is moved until the first one is caught between two, and Newton's method finds it. The
//! characteristic function is multiplied by the plant's denominator, so that it has no poles to the left of the axis
//! either. Of a sampled loop the root is s = ln z / T; the plant's images have poles there, which the factors 1 - e^{(p
//! - s) T} of its dominant poles p take away.

use std::f64::consts::PI;

use num_complex::Complex64;

use super::complex::{abs, arg, exp, polynomial};
use super::controller::Controller;
use super::loops::Loop;

/// How far from the axis roots are looked for, in shares of 1 / R0: to the right, to the left.
const RIGHT: f64 = 64.0;
const LEFT: f64 = 6.0;
/// How closely a root is caught before Newton's method, in the same.
const CAUGHT: f64 = 0.01;
/// Images of the spectrum on each side.
const IMAGES: i64 = 4;

/// The root of the closed loop with the largest real part, 1/s, of a pair the one above the axis; `None` if there is
/// none within six inverse round trips left of the axis.
pub fn rightmost(closed: &Loop) -> Option<Complex64> {
    let line = Line::new(closed);
    let unit = 1.0 / closed.plant.delay_s;
    let mut high = unit;
    while line.right_of(high) > 0 {
        high *= 2.0;
        if high > RIGHT * unit {
            return None;
        }
    }
    let mut low = -0.25 * unit;
    while line.right_of(low) == 0 {
        (high, low) = (high.min(low), 2.0 * low);
        if low < -LEFT * unit {
            return None;
        }
    }
    while high - low > CAUGHT * unit {
        let middle = 0.5 * (low + high);
        if line.right_of(middle) > 0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let middle = 0.5 * (low + high);
    // Where a step of Newton's method is the shortest: the function itself is small far from a root as well.
    let places = line.walk(middle).into_iter().map(|(w, _)| Complex64::new(middle, w));
    let nearest = places.min_by(|a, b| abs(line.step(*a)).total_cmp(&abs(line.step(*b))))?;
    let found = line.newton(nearest);
    Some(Complex64::new(found.re, found.im.abs()))
}

/// Lines of equal real part, along which a loop's characteristic function turns.
struct Line<'a> {
    closed: &'a Loop,
    poles: Vec<Complex64>,
}

impl<'a> Line<'a> {
    fn new(closed: &'a Loop) -> Self {
        Line { closed, poles: closed.plant.dominant_poles() }
    }

    /// The characteristic function at `s`.
    fn at(&self, s: Complex64) -> Complex64 {
        let plant = &self.closed.plant;
        match &self.closed.controller {
            Controller::Continuous { num, den } => {
                let (above, below) = plant.parts(s);
                polynomial(den, s) * below - polynomial(num, s) * above
            }
            Controller::Sampled { num, den, period_s } => {
                let back = exp(-s * *period_s);
                let image = |k: i64| {
                    let s = s + Complex64::new(0.0, 2.0 * PI / period_s * k as f64);
                    plant.at(s) / (s * *period_s)
                };
                let seen = (1..=IMAGES).fold(image(0), |sum, k| sum + image(k) + image(-k));
                let own =
                    self.poles.iter().fold(Complex64::ONE, |own, p| own * (Complex64::ONE - exp((p - s) * *period_s)));
                own * (polynomial(den, back) - polynomial(num, back) * (Complex64::ONE - back) * seen)
            }
        }
    }

    /// Characteristic function over (s - `real` + 1 / R0)^n in continuous time, so that it stays bounded far away.
    fn scaled(&self, real: f64, w: f64) -> Complex64 {
        let s = Complex64::new(real, w);
        let value = self.at(s);
        let Controller::Continuous { den, .. } = &self.closed.controller else { return value };
        let order = 2 + den.iter().rposition(|c| *c != 0.0).unwrap_or(0);
        let unit = Complex64::new(1.0, w * self.closed.plant.delay_s);
        (0..order).fold(value, |value, _| value / unit)
    }

    /// Frequencies from zero upwards, and the scaled function there.
    fn walk(&self, real: f64) -> Vec<(f64, Complex64)> {
        let r = self.closed.plant.delay_s;
        let period = self.closed.controller.period_s();
        let end = period.map_or(300.0 / r, |period| PI / period);
        let step = 0.2 / (r + self.closed.controller.spread().1[0]);
        let first = 1e-9 / r;
        let mut walk = vec![(first, self.scaled(real, first))];
        let ahead = |w: &f64| (1.1 * w).min(w + step);
        for w in std::iter::successors(Some(1e-3 / r), |w| Some(ahead(w))).take_while(|w| *w < end).chain([end]) {
            self.refine(real, &mut walk, (w, self.scaled(real, w)), 30);
        }
        walk
    }

    fn refine(&self, real: f64, walk: &mut Vec<(f64, Complex64)>, to: (f64, Complex64), depth: u32) {
        let from = walk[walk.len() - 1];
        if depth > 0 && arg(to.1 * from.1.conj()).abs() > 0.7 {
            let w = 0.5 * (from.0 + to.0);
            self.refine(real, walk, (w, self.scaled(real, w)), depth - 1);
            self.refine(real, walk, to, depth - 1);
        } else {
            walk.push(to);
        }
    }

    /// How many roots lie to the right of `real`.
    fn right_of(&self, real: f64) -> u32 {
        let turned: f64 = self.walk(real).windows(2).map(|pair| arg(pair[1].1 * pair[0].1.conj())).sum();
        libm::round(-turned / PI).max(0.0) as u32
    }

    /// A step of Newton's method.
    fn step(&self, s: Complex64) -> Complex64 {
        let small = 1e-6 / self.closed.plant.delay_s;
        self.at(s) * (2.0 * small) / (self.at(s + small) - self.at(s - small))
    }

    /// Where Newton's method comes to: rounding may keep it from standing still.
    fn newton(&self, s: Complex64) -> Complex64 {
        (0..50).fold(s, |s, _| s - self.step(s))
    }
}
