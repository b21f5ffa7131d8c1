//! The noise of an AQM that signals nothing while the queue was short at its last update (PIE), which linear equations
//! do not have: a share that is p while the delay is above half of its target, and nothing below.
//!
//! Let the queue be normal with standard deviation s, and half of the target z deviations below its mean. A fraction
//! Q(z) of the packets is then exempt, so the law's equilibrium is p' = p / (1 - Q). Linearised statistically around it
//! (R. C. Booton, 1954; J. J. Bussgang, 1952):
//!
//! ```text
//! p' phi(z) / s                     is the slope of the share in the delay, beside what the law says times 1 - Q
//! p'^2 sum_n c_n^2 rho^n / n!       is the correlation of what that leaves, n from 2 on, c_n = phi(z) He_(n-1)(z),
//!                                   rho that of the queue, He_n Hermite's polynomials
//! ```
//!
//! The slope quiets slow swings and stirs those of a few round trips, what is left stirs all of them; s and rho are
//! those that come of both. The delay is that of a packet which came as long ago, and is held for an update.

use std::f64::consts::{PI, SQRT_2};
use std::sync::LazyLock;

use aqumen_aqm::SafeguardLimits;
use num_complex::Complex64;

use crate::linear::complex::{arg, cis, hold};
use crate::linear::{Controller, OperatingPoint};
use crate::noise::mean_field::MeanField;
use crate::noise::sources::SourcePowers;

/// Frequencies in inverse round trips and times in round trips: from, decades, points a decade.
const FREQUENCIES: (f64, u32, u32) = (1e-3, 5, 25);
const TIMES: (f64, u32, u32) = (0.02, 4, 25);
/// Powers of the correlation that are counted.
const ORDERS: usize = 5;
/// Rounds until deviation and correlation agree with what they bring about; what is missing halves. By which share of
/// itself the deviation is missed when no more are needed, and by which it may be in the end.
const ROUNDS: u32 = 60;
const AGREES: f64 = 1e-5;
const MISSED: f64 = 0.01;

/// Queue under the noise of PIE's safeguard.
#[derive(Clone, Debug)]
pub(crate) struct PieSafeguard {
    field: MeanField,
    controller: Controller,
    /// By how much the delay that is seen lags behind the queue, seconds.
    late_s: f64,
    /// Fraction of packets not exempt by PIE's safeguard, 1 - Q(z), and the slope of the probability in the queue, per
    /// packet.
    not_exempt: f64,
    slope: f64,
    /// Frequencies, rad/s, and the power there of what signals do beyond both.
    w: Vec<f64>,
    beyond: Vec<f64>,
}

/// Rising numbers by the same factor.
fn spread((from, decades, points): (f64, u32, u32)) -> Vec<f64> {
    (0..=decades * points).map(|k| from * libm::pow(10.0, f64::from(k) / f64::from(points))).collect()
}

/// Weights with which values at `x` make up the integral from zero on of the lines between them times cos(x y); flat
/// below the first.
fn cosines(x: &[f64], y: f64) -> Vec<f64> {
    let mut weights = vec![0.0; x.len()];
    for (k, pair) in x.windows(2).enumerate() {
        let [low, high] = [pair[0], pair[1]];
        let h = high - low;
        // By parts: the slope times (cos(high y) - cos(low y)) / y^2, what stands at the ends below.
        if h * y < 1e-3 {
            let middle = 0.5 * h * libm::cos(0.5 * (low + high) * y);
            weights[k] += middle;
            weights[k + 1] += middle;
        } else {
            let part = (libm::cos(high * y) - libm::cos(low * y)) / (h * y * y);
            weights[k] -= part + libm::sin(low * y) / y;
            weights[k + 1] += part + libm::sin(high * y) / y;
        }
    }
    if let Some(first) = x.first() {
        weights[0] += if first * y < 1e-6 { *first } else { libm::sin(first * y) / y };
    }
    weights
}

/// From powers to a correlation and back, in round trips.
struct FourierGrid {
    w: Vec<f64>,
    to_times: Vec<Vec<f64>>,
    to_powers: Vec<Vec<f64>>,
}

static GRID: LazyLock<FourierGrid> = LazyLock::new(|| {
    let w = spread(FREQUENCIES);
    let times: Vec<f64> = std::iter::once(0.0).chain(spread(TIMES)).collect();
    let to_times = times.iter().map(|t| cosines(&w, *t)).collect();
    let to_powers = w.iter().map(|w| cosines(&times, *w)).collect();
    FourierGrid { w, to_times, to_powers }
});

fn dot(weights: &[f64], values: &[f64]) -> f64 {
    weights.iter().zip(values).map(|(weight, value)| weight * value).sum()
}

/// He_(n-1)(z)^2 / n!, for n from 2 to [`ORDERS`].
fn shares(z: f64) -> [f64; ORDERS - 1] {
    let (mut before, mut here, mut factorial) = (1.0, z, 1.0);
    std::array::from_fn(|k| {
        let n = (k + 2) as f64;
        factorial *= n;
        let share = here * here / factorial;
        (before, here) = (here, z * here - (n - 1.0) * before);
        share
    })
}

impl PieSafeguard {
    /// `None` where the loop is unstable, or no deviation agrees with itself.
    pub(crate) fn around(
        spares: &SafeguardLimits,
        at: &OperatingPoint,
        controller: Controller,
        field: MeanField,
    ) -> Option<Self> {
        let OperatingPoint { queue_pkts, capacity_pps, probability, rtt_s, .. } = *at;
        let distance = queue_pkts - spares.delay_s * capacity_pps;
        let FourierGrid { w, to_times, to_powers } = &*GRID;
        let w: Vec<f64> = w.iter().map(|w| w / rtt_s).collect();
        let late_s = if spares.sojourn { queue_pkts / capacity_pps } else { 0.0 };
        let beyond = vec![0.0; w.len()];
        let mut spared = PieSafeguard { field, controller, late_s, not_exempt: 1.0, slope: 0.0, w, beyond };
        let plain: Vec<(Complex64, f64, [Complex64; 2])> =
            spared.w.iter().map(|w| (spared.field.at(*w), spared.said(*w))).map(|((g, s), c)| (g, s, c)).collect();
        let power = |spared: &PieSafeguard| -> Vec<f64> {
            let at = plain.iter().zip(&spared.beyond);
            at.map(|((g, s, said), beyond)| spared.closed(*g, *s + beyond * g.norm_sqr(), *said)).collect()
        };
        let deviation_of = |power: &[f64]| (dot(&to_times[0], power) / (PI * rtt_s)).sqrt();
        let mut deviation = deviation_of(&power(&spared)).min(queue_pkts);
        let mut missed = f64::INFINITY;
        for _ in 0..ROUNDS {
            let z = distance / deviation;
            let density = libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt();
            spared.not_exempt = 1.0 - 0.5 * libm::erfc(z / SQRT_2);
            let said = probability / spared.not_exempt;
            spared.slope = said * density / deviation;
            let power = power(&spared);
            let own = deviation_of(&power);
            if !own.is_finite() {
                return None;
            }
            let variance = own * own;
            let shares = shares(z);
            let left: Vec<f64> = to_times
                .iter()
                .map(|weights| {
                    let rho = dot(weights, &power) / (PI * rtt_s * variance);
                    let all = shares.iter().rev().fold(0.0, |sum, share| rho * (share + sum));
                    said * said * density * density * rho * all
                })
                .collect();
            for (beyond, weights) in spared.beyond.iter_mut().zip(to_powers) {
                *beyond = 0.5 * (*beyond + (2.0 * rtt_s * dot(weights, &left)).max(0.0));
            }
            missed = own / deviation - 1.0;
            if missed.abs() < AGREES {
                break;
            }
            deviation = 0.5 * (deviation + own.min(2.0 * queue_pkts));
        }
        // Around -1 a stable loop, of an integrator at most, does not turn once.
        let open = plain.iter().map(|(g, _, said)| 1.0 - spared.weighed(*said) * *g);
        let turned: f64 = open.clone().zip(open.skip(1)).map(|(one, next)| arg(next * one.conj())).sum();
        (missed.abs() < MISSED && turned.abs() < PI).then_some(spared)
    }

    /// Responses to the queue of the law, and of a probability with a slope of one.
    fn said(&self, w: f64) -> [Complex64; 2] {
        let seen = cis(-w * self.late_s);
        let Some(period_s) = self.controller.period_s() else { return [self.controller.response(w) * seen, seen] };
        let held = seen * hold(w * period_s);
        [self.controller.response(w) * held, held]
    }

    fn weighed(&self, [law, one]: [Complex64; 2]) -> Complex64 {
        law * self.not_exempt + one * self.slope
    }

    fn closed(&self, answer: Complex64, power: f64, said: [Complex64; 2]) -> f64 {
        power / (1.0 - self.weighed(said) * answer).norm_sqr()
    }

    /// Power of the queue at `w`, rad/s.
    pub(crate) fn power(&self, w: f64) -> f64 {
        let (answer, noise) = self.field.at(w);
        self.closed(answer, noise + self.beyond(w) * answer.norm_sqr(), self.said(w))
    }

    /// Powers of the sources at `w`, rad/s.
    pub(crate) fn source_powers(&self, w: f64) -> SourcePowers {
        let (answer, _) = self.field.at(w);
        let [halvings, windows, arrivals, spacing, _] = self.field.source_powers(w);
        let powers = [halvings, windows, arrivals, spacing, self.beyond(w) * answer.norm_sqr()];
        powers.map(|power| self.closed(answer, power, self.said(w)))
    }

    /// Power of what signals do beyond both at `w`, rad/s.
    fn beyond(&self, w: f64) -> f64 {
        let [first, last] = [self.w[0], self.w[self.w.len() - 1]];
        let place = (libm::log(w / first) / libm::log(last / first) * (self.w.len() - 1) as f64).max(0.0);
        let point = (place as usize).min(self.w.len() - 2);
        let part = (place - point as f64).min(1.0);
        self.beyond[point] * (1.0 - part) + self.beyond[point + 1] * part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::Model;

    #[test]
    fn the_cosines_of_an_exponential_are_a_lorentzian() {
        // The integral of e^-x cos(x y) is 1 / (1 + y^2).
        let x = spread((1e-3, 5, 25));
        let values: Vec<f64> = x.iter().map(|x| libm::exp(-x)).collect();
        for y in [0.0, 1e-3, 0.3, 1.0, 4.0, 30.0] {
            let (seen, known) = (dot(&cosines(&x, y), &values), 1.0 / (1.0 + y * y));
            assert!((seen - known).abs() < 2e-3 * known.max(0.05), "{y}: {seen} {known}");
        }
    }

    #[test]
    fn what_a_threshold_leaves_of_a_normal_variable_is_its_variance_less_the_line() {
        // At z = 1: Q (1 - Q) = .15866 (.84134) = .13348, of which phi^2 = .05855 is the line's. He_1 to He_4 are 1, 0,
        // -2, -2: phi^2 (1/2 + 0 + 4/24 + 4/120) = .05855 (.7), and the rest is of higher orders.
        let all: f64 = shares(1.0).iter().sum();
        assert!((all - 0.7).abs() < 1e-12, "{all}");
        assert!(0.05855 * (1.0 + all) < 0.13348);
    }

    fn at(queue_pkts: f64) -> OperatingPoint {
        OperatingPoint::new(Model::Reno, 50.0, 2500.0, 0.0, 0.1, queue_pkts).unwrap()
    }

    /// A law that says so much per packet, and per packet and second, of a queue that is seen at once, or for a period.
    fn law(slope: f64, integral: f64, period_s: Option<f64>) -> Controller {
        match period_s {
            None => Controller::Continuous { num: vec![integral, slope], den: vec![0.0, 1.0] },
            Some(period_s) => {
                let num = vec![slope + integral * period_s, -slope];
                Controller::Sampled { num, den: vec![1.0, -1.0], period_s }
            }
        }
    }

    fn spares(delay_s: f64, sojourn: bool) -> SafeguardLimits {
        SafeguardLimits { delay_s, probability: 0.2, burst: aqumen_units::Span::ZERO, sojourn }
    }

    /// The integral of `power` over the frequencies that the queue has, over pi: on lines, from zero on.
    fn variance(rtt_s: f64, power: impl Fn(f64) -> f64) -> f64 {
        let points: Vec<(f64, f64)> =
            (0..=2500).map(|k| 1e-3 / rtt_s * libm::pow(10.0, f64::from(k) / 500.0)).map(|w| (w, power(w))).collect();
        let within: f64 = points.windows(2).map(|p| 0.5 * (p[0].1 + p[1].1) * (p[1].0 - p[0].0)).sum();
        (points[0].0 * points[0].1 + within) / PI
    }

    #[test]
    fn the_deviation_is_the_one_that_what_is_spared_brings_about() {
        for (sojourn, period_s) in [(false, None), (true, None), (false, Some(0.03)), (true, Some(0.03))] {
            let at = at(50.0);
            let controller = law(2e-5, 4e-5, period_s);
            let spared =
                PieSafeguard::around(&spares(0.01, sojourn), &at, controller, MeanField::from_reno(&at, true)).unwrap();
            let deviation = variance(at.rtt_s, |w| spared.power(w)).sqrt();
            // Half of the target of 50 packets lies 25 below the mean.
            let z = 25.0 / deviation;
            let share = 0.5 * libm::erfc(z / SQRT_2);
            assert!(share > 0.02 && share < 0.4, "{deviation}");
            assert!((spared.not_exempt / (1.0 - share) - 1.0).abs() < 2e-3, "{} {share}", spared.not_exempt);
            let density = libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt();
            let slope = at.probability / (1.0 - share) * density / deviation;
            assert!((spared.slope / slope - 1.0).abs() < 0.01, "{} {slope}", spared.slope);
            // What is left beyond the line sums up to p'^2 (Q (1 - Q) - phi^2), less what high orders add.
            let lines = spared.w.windows(2).zip(spared.beyond.windows(2));
            let beyond: f64 = lines.map(|(w, power)| 0.5 * (power[0] + power[1]) * (w[1] - w[0])).sum::<f64>() / PI;
            let said = at.probability / (1.0 - share);
            let all = said * said * (share * (1.0 - share) - density * density);
            assert!(beyond > 0.5 * all && beyond < 1.05 * all, "{beyond} {all}");
        }
    }

    #[test]
    fn where_nothing_is_spared_the_queue_is_that_of_the_law_alone() {
        for period_s in [None, Some(0.03)] {
            let at = at(400.0);
            let controller = law(1e-5, 1e-5, period_s);
            let field = MeanField::from_reno(&at, true);
            let plain =
                crate::linear::Loop { images: 0, ..crate::linear::Loop::new(field.clone(), controller.clone()) };
            let spared = PieSafeguard::around(&spares(0.001, false), &at, controller, field.clone()).unwrap();
            for w in [0.01, 0.3, 2.0, 9.0] {
                let expected = field.power(w) / (1.0 + plain.response(w)).norm_sqr();
                assert!((spared.power(w) / expected - 1.0).abs() < 1e-6, "{w}: {} {expected}", spared.power(w));
            }
        }
    }

    #[test]
    fn a_delay_that_is_seen_late_turns_what_is_said_and_a_hold_turns_it_by_half_a_period() {
        let at = at(50.0);
        let of = |sojourn, period_s| {
            let controller = law(2e-5, 4e-5, period_s);
            PieSafeguard::around(&spares(0.01, sojourn), &at, controller, MeanField::from_reno(&at, true)).unwrap()
        };
        // 50 packets of 2500 a second: 20 ms. At 5 rad/s .1 rad.
        let [[law_now, one_now], [law_late, one_late]] = [of(false, None).said(5.0), of(true, None).said(5.0)];
        assert!((arg(one_late * one_now.conj()) + 0.1).abs() < 1e-9 && (one_late.norm_sqr() - 1.0).abs() < 1e-12);
        assert!((law_late / law_now - one_late / one_now).l1_norm() < 1e-12);
        // Held for 30 ms: sin(.075) / .075 of it, .075 rad late.
        let held = of(false, Some(0.03)).said(5.0)[1];
        assert!((arg(held) + 0.075).abs() < 1e-9 && (held.norm_sqr().sqrt() - 0.075f64.sin() / 0.075).abs() < 1e-9);
    }

    #[test]
    fn a_loop_that_swings_by_itself_has_no_answer() {
        let at = at(50.0);
        let around = |gain: f64| {
            PieSafeguard::around(
                &spares(0.01, false),
                &at,
                law(2e-5 * gain, 4e-5 * gain, None),
                MeanField::from_reno(&at, true),
            )
        };
        assert!(around(1.0).is_some() && around(100.0).is_none());
    }

    #[test]
    fn in_slow_motion_the_same_is_spared_and_swings_last_as_many_times_longer() {
        for period_s in [None, Some(0.03)] {
            let around = |times: f64| {
                let at = OperatingPoint::new(Model::Reno, 50.0, 2500.0 / times, 0.0, 0.1 * times, 50.0).unwrap();
                let controller = law(2e-5, 4e-5 / times, period_s.map(|period_s| period_s * times));
                PieSafeguard::around(&spares(0.01 * times, true), &at, controller, MeanField::from_reno(&at, true))
                    .unwrap()
            };
            let known = around(1.0);
            for times in [1e3, 1e-3] {
                let slow = around(times);
                assert!(
                    (slow.not_exempt / known.not_exempt - 1.0).abs() < 1e-6
                        && (slow.slope / known.slope - 1.0).abs() < 1e-6
                );
                for w in [1e-3, 0.3, 4.0, 40.0] {
                    let (power, lasting) = (known.power(w), slow.power(w / times));
                    assert!((lasting / power / times - 1.0).abs() < 1e-6, "{w}: {lasting} {power}");
                }
            }
        }
    }

    #[test]
    fn shares_of_a_threshold_are_those_of_hermites_polynomials() {
        for z in [-1.5f64, 0.0, 0.7, 2.0] {
            let known = [z, z * z - 1.0, z.powi(3) - 3.0 * z, z.powi(4) - 6.0 * z * z + 3.0];
            for (seen, (he, factorial)) in shares(z).into_iter().zip(known.into_iter().zip([2.0, 6.0, 24.0, 120.0])) {
                assert!((seen - he * he / factorial).abs() < 1e-12, "{z}: {seen} {he}");
            }
        }
    }
}
