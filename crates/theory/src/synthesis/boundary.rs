//! The boundary of stability over two quantities of a network, followed as a curve: where a pair of roots crosses the
//! axis, 1 + L(jw; x, y) = 0 holds for two quantities and a frequency, two equations for three unknowns.
//!
//! A coarse map finds where a curve may be begun; Newton's method takes it there, the null space of the slopes tells
//! its direction, and each step is corrected across it (continuation by arc length), so that a curve may turn back in
//! either quantity. It ends at the edge of the box, where its frequency is none (a root at zero, a sampled loop at half
//! the sampling frequency), or where other roots have crossed before. The side on which cycles stand
//! ([`crate::nonlinear::hopf`]) is told at each of its points.
//!
//! Not of RED and its kin: the longest gap between their signals is a whole number of packets, so that their gain jumps
//! from one to the next, and stability with it.

use std::f64::consts::PI;

use aqumen_aqm::{Aqm, Equilibrium};
use aqumen_scenario::AqmChoice;

use crate::Error;
use crate::equilibrium::solver::{AqmEquilibrium, OperatingConditions};
use crate::linear::Resolution;
use crate::synthesis::maps::{Axis, ParametricLoop, each, map};

/// A point of a boundary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The first quantity.
    pub x: f64,
    /// The second.
    pub y: f64,
    /// Period of the swing that neither grows nor dies out, seconds.
    pub period_s: f64,
    /// Whether cycles stand on its unstable side; `None` where it is not known.
    pub supercritical: Option<bool>,
}

/// Values of each axis of the coarse map.
const GRID: usize = 12;
/// Longest and shortest step along a curve, in shares of the box.
const STEP: f64 = 0.03;
const SHORTEST: f64 = 1e-4;
/// Steps of one curve at most.
const POINTS: usize = 2000;
/// Newton steps, and how near to -1 the loop has to be.
const NEWTON: u32 = 12;
const NEAR: f64 = 1e-10;
/// By what share of itself the gain margin may differ from one on the boundary.
const ON: f64 = 1e-3;
/// Frequencies, in inverse round trips, below which a root is taken to be at zero.
const AT_REST: f64 = 1e-3;

/// Two quantities as shares of their ranges' logarithms, and the logarithm of a frequency.
type Spot = [f64; 3];

/// A box of two quantities, and the loops in it.
struct Ranges<'a> {
    over: &'a ParametricLoop<'a>,
    axes: [(Axis, [f64; 2]); 2],
}

/// The boundary of `choice` over two quantities, each from and to, in pieces.
pub fn boundary(
    choice: &AqmChoice,
    conditions: &OperatingConditions,
    x: (Axis, [f64; 2]),
    y: (Axis, [f64; 2]),
    threads: usize,
) -> Result<Vec<Vec<Crossing>>, Error> {
    for (_, [from, to]) in [x, y] {
        if !(from > 0.0 && to > from && to.is_finite()) {
            return Err(Error::Unsupported(format!("a range from {from} to {to}: from above 0, to above from")));
        }
    }
    if matches!(AqmEquilibrium::new(choice, conditions)?.built.theory().equilibrium(), Equilibrium::OnCurve(_)) {
        let name = &choice.name;
        return Err(Error::Unsupported(format!(
            "{name} signals a share that goes in jumps, so that its boundary is no curve: a map shows it"
        )));
    }
    let over = ParametricLoop::new(choice, conditions)?;
    let ranges = Ranges { over: &over, axes: [x, y] };
    let shares: Vec<f64> = (0..GRID).map(|k| k as f64 / (GRID - 1) as f64).collect();
    let [across, up] = [0, 1].map(|axis| shares.iter().map(|share| ranges.value(axis, *share)).collect::<Vec<f64>>());
    let coarse = map(choice, conditions, (x.0, &across), (y.0, &up), threads)?;
    let stable = |i: usize, j: usize| coarse.points[j * GRID + i].margins.stable;
    let mut curves: Vec<Vec<Spot>> = Vec::new();
    for j in 0..GRID {
        for i in 0..GRID {
            for (k, l) in [(i + 1, j), (i, j + 1)] {
                if k < GRID && l < GRID && stable(i, j) != stable(k, l) {
                    let Some(spot) = ranges.between([shares[i], shares[j]], [shares[k], shares[l]], stable(i, j))
                    else {
                        continue;
                    };
                    if !curves.iter().any(|curve| passes(curve, &spot)) {
                        curves.push(ranges.follow(spot));
                    }
                }
            }
        }
    }
    let told = |curve: &Vec<Spot>| each(curve.len(), threads, |k| ranges.told(choice, &curve[k]));
    curves.iter().map(told).collect()
}

/// Whether `curve` passes by `spot` within a step.
fn passes(curve: &[Spot], spot: &Spot) -> bool {
    curve.iter().any(|at| (0..2).map(|k| (at[k] - spot[k]) * (at[k] - spot[k])).sum::<f64>() < STEP * STEP)
}

impl Ranges<'_> {
    /// The value of an axis at a share of its range.
    fn value(&self, axis: usize, share: f64) -> f64 {
        let [from, to] = self.axes[axis].1;
        from * libm::pow(to / from, share)
    }

    fn values(&self, spot: &Spot) -> [(Axis, f64); 2] {
        [0, 1].map(|axis| (self.axes[axis].0, self.value(axis, spot[axis])))
    }

    /// 1 + L there.
    fn miss(&self, spot: &Spot) -> Option<[f64; 2]> {
        let (_, closed) = self.over.at(&self.values(spot)).ok()?;
        let miss = closed.response(libm::exp(spot[2])) + 1.0;
        (miss.re.is_finite() && miss.im.is_finite()).then_some([miss.re, miss.im])
    }

    /// Slopes of 1 + L in the three unknowns: of its real, of its imaginary part.
    fn slopes(&self, spot: &Spot) -> Option<[Spot; 2]> {
        let mut slopes = [[0.0; 3]; 2];
        for k in 0..3 {
            let beside = |by: f64| {
                let mut beside = *spot;
                beside[k] += by;
                self.miss(&beside)
            };
            let (more, less) = (beside(1e-5)?, beside(-1e-5)?);
            for part in 0..2 {
                slopes[part][k] = (more[part] - less[part]) / 2e-5;
            }
        }
        Some(slopes)
    }

    /// Where a curve crosses the line between two points of the box of which one is stable.
    fn between(&self, mut from: [f64; 2], mut to: [f64; 2], from_stable: bool) -> Option<Spot> {
        let middle = |from: &[f64; 2], to: &[f64; 2]| [0.5 * (from[0] + to[0]), 0.5 * (from[1] + to[1])];
        let margins = |at: &[f64; 2]| {
            let (_, closed) = self.over.at(&self.values(&[at[0], at[1], 0.0])).ok()?;
            Some(closed.margins_at(Resolution::COARSE))
        };
        for _ in 0..16 {
            let half = middle(&from, &to);
            if margins(&half)?.stable == from_stable { from = half } else { to = half }
        }
        let half = middle(&from, &to);
        let w = margins(&half)?.phase_crossover_rad_s.filter(|w| *w > 0.0)?;
        let spot = [half[0], half[1], libm::log(w)];
        let along = cross(&self.slopes(&spot)?)?;
        self.corrected(&spot, &along).filter(|spot| self.is_end(spot).is_none())
    }

    /// The nearest point of the curve across `along`.
    fn corrected(&self, guess: &Spot, along: &Spot) -> Option<Spot> {
        let mut spot = *guess;
        for _ in 0..NEWTON {
            let [re, im] = self.miss(&spot)?;
            if re.hypot(im) < NEAR {
                return Some(spot);
            }
            let off = dot(along, &[spot[0] - guess[0], spot[1] - guess[1], spot[2] - guess[2]]);
            let [first, second] = self.slopes(&spot)?;
            // Cramer's rule, by cross products.
            let across = product(&first, &second);
            let all = dot(&across, along);
            if all.abs() < 1e-12 {
                return None;
            }
            let (one, other) = (product(&second, along), product(along, &first));
            for k in 0..3 {
                spot[k] -= (re * one[k] + im * other[k] + off * across[k]) / all;
            }
        }
        None
    }

    /// Why a curve ends there, if it does: it has left the box, has no frequency, or other roots have crossed before.
    fn is_end(&self, spot: &Spot) -> Option<()> {
        let outside = |share: f64| !(-1e-9..=1.0 + 1e-9).contains(&share);
        let Ok((at, closed)) = self.over.at(&self.values(spot)) else { return Some(()) };
        let w = libm::exp(spot[2]);
        let top = closed.controller.period_s().map_or(f64::INFINITY, |period| PI / period);
        let margins = closed.margins_at(Resolution::COARSE);
        let on = |gain: Option<f64>| gain.is_some_and(|gain| (gain - 1.0).abs() < ON);
        let first = on(margins.gain_margin) || on(margins.gain_margin_low);
        (outside(spot[0]) || outside(spot[1]) || w * at.rtt_s < AT_REST || w >= top || !first).then_some(())
    }

    /// The curve through `start`, from one end to the other.
    fn follow(&self, start: Spot) -> Vec<Spot> {
        let mut curve = vec![start];
        for sign in [1.0, -1.0] {
            let (mut spot, mut step) = (start, STEP);
            let Some(mut along) = self.slopes(&start).and_then(|slopes| cross(&slopes)) else { return curve };
            along = along.map(|part| sign * part);
            let mut half = Vec::new();
            while half.len() < POINTS && step > SHORTEST {
                let guess = [0, 1, 2].map(|k| spot[k] + step * along[k]);
                // A curve that turns by more than a little within a step is taken in shorter ones.
                let next = self.corrected(&guess, &along).and_then(|next| {
                    let onwards = cross(&self.slopes(&next)?)?.map(|part| sign * part);
                    (dot(&onwards, &along) > 0.95).then_some((next, onwards))
                });
                match next {
                    Some((next, onwards)) if self.is_end(&next).is_none() => {
                        half.push(next);
                        (spot, along, step) = (next, onwards, (1.3 * step).min(STEP));
                        // Round a closed curve: a first step leads further than this, one of the last within.
                        let off = [0, 1, 2].map(|k| spot[k] - start[k]);
                        if dot(&off, &off) < (0.6 * step) * (0.6 * step) {
                            curve.extend(half);
                            return curve;
                        }
                    }
                    _ => step *= 0.5,
                }
            }
            if sign > 0.0 {
                half.reverse();
                half.append(&mut curve);
                curve = half;
            } else {
                curve.append(&mut half);
            }
        }
        curve
    }

    fn told(&self, choice: &AqmChoice, spot: &Spot) -> Result<Crossing, Error> {
        let values = self.values(spot);
        let supercritical = self.over.side_of_cycles(choice, &values)?;
        let [(_, x), (_, y)] = values;
        Ok(Crossing { x, y, period_s: 2.0 * PI / libm::exp(spot[2]), supercritical })
    }
}

fn dot(one: &Spot, other: &Spot) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn product(one: &Spot, other: &Spot) -> Spot {
    [0, 1, 2].map(|k| one[(k + 1) % 3] * other[(k + 2) % 3] - one[(k + 2) % 3] * other[(k + 1) % 3])
}

/// The direction in which neither of two quantities changes.
fn cross([one, other]: &[Spot; 2]) -> Option<Spot> {
    let across = product(one, other);
    let length = dot(&across, &across).sqrt();
    (length > 0.0 && length.is_finite()).then(|| across.map(|part| part / length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CONDITIONS, NETWORK, choice};

    #[test]
    fn a_curve_ends_at_the_edge_of_its_box_and_where_it_has_no_frequency() {
        let choice = choice("pi", &[], NETWORK);
        let over = ParametricLoop::new(&choice, &CONDITIONS).unwrap();
        let (at, closed) = over.at(&[]).unwrap();
        let margins = closed.margins_at(Resolution::COARSE);
        let (gain, w) = (margins.gain_margin.unwrap(), margins.phase_crossover_rad_s.unwrap());
        let period_s = closed.controller.period_s().unwrap();
        // The boundary at 200 ms, as a share of the way from one to another round trip, and in gain.
        let ends = |rtt: [f64; 2], gains: [f64; 2], w: f64| {
            let share = |value: f64, [from, to]: [f64; 2]| (value / from).ln() / (to / from).ln();
            let ranges = Ranges { over: &over, axes: [(Axis::Rtt, rtt), (Axis::Gain, gains)] };
            ranges.is_end(&[share(0.2, rtt), share(gain, gains), w.ln()]).is_some()
        };
        let (across, up) = ([0.1, 0.4], [0.5 * gain, 2.0 * gain]);
        assert!(!ends(across, up, w));
        for [from, to] in [[0.21, 0.4], [0.1, 0.19]] {
            assert!(ends([from, to], up, w) && ends(across, [5.0 * from * gain, 5.0 * to * gain], w), "{from} {to}");
        }
        // A thousandth of a round trip of 280 ms from below, half the sampling frequency from above.
        assert!((at.rtt_s - 0.28).abs() < 1e-9);
        assert!(ends(across, up, 0.99e-3 / 0.28) && !ends(across, up, 1.01e-3 / 0.28));
        assert!(ends(across, up, 1.01 * PI / period_s) && !ends(across, up, 0.99 * PI / period_s));
        // Off the boundary there is no root on the axis.
        let ranges = Ranges { over: &over, axes: [(Axis::Rtt, across), (Axis::Gain, up)] };
        assert!(ranges.is_end(&[0.5, 0.4, w.ln()]).is_some());
    }

    #[test]
    fn a_curve_passes_where_one_of_its_points_is_within_a_step_at_any_frequency() {
        let curve = [[0.1, 0.2, 3.0], [0.5, 0.6, 3.0]];
        // A triangle of three, four and five: a fifth of a step is all of it.
        for (share, passed) in [(0.0, true), (0.19, true), (0.21, false)] {
            let (x, y) = (3.0 * share * STEP, 4.0 * share * STEP);
            for [across, up] in [[x, y], [-x, y], [x, -y]] {
                assert_eq!(passes(&curve, &[0.5 + across, 0.6 + up, -1.0]), passed, "{share} {across} {up}");
            }
        }
        assert!(!passes(&curve, &[0.3, 0.4, 3.0]) && !passes(&[], &[0.1, 0.2, 3.0]));
    }
}
