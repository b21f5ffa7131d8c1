//! The loop closed: frequency response and margins.

use std::f64::consts::PI;

use num_complex::Complex64;
use serde::Serialize;

use super::complex::{abs, arg, cis, lag_s};
use super::controller::Controller;
use super::plant::Plant;
use crate::root_finding::halved;

/// Low frequency at which lags of windows are taken, in inverse round trips.
pub(crate) const LOW: f64 = 1e-3;

/// A plant: the answer of the queue to the share of signals, over frequency. It is stable by itself.
pub trait FrequencyResponse {
    /// Returns dq/dp at the frequency `w`, rad/s. A real plant has `response(-w) = conj(response(w))`: a sampled loop
    /// asks at negative frequencies, where half of the images of its spectrum lie.
    fn response(&self, w: f64) -> Complex64;
    /// dq/dp at rest, packets per unit of probability.
    fn dc_gain(&self) -> f64;
    /// The round trip, seconds.
    fn delay_s(&self) -> f64;
    /// Lag with which windows answer a probability, seconds: of several laws the longest.
    fn window_lag_s(&self) -> f64 {
        let r = self.delay_s();
        let w = LOW / r;
        lag_s(-self.response(w) * cis(w * r), w)
    }
}

impl FrequencyResponse for Plant {
    fn response(&self, w: f64) -> Complex64 {
        Plant::response(self, w)
    }

    fn dc_gain(&self) -> f64 {
        Plant::dc_gain(self)
    }

    fn delay_s(&self) -> f64 {
        self.delay_s
    }
}

/// A plant and its controller. The loop's response is L(jw) = - (dq/dp) (dp/dq), so that -1 is the critical point.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop<P = Plant> {
    /// The plant.
    pub plant: P,
    /// The controller.
    pub controller: Controller,
    /// How many images of the spectrum on each side a sampled controller sees; 0 leaves sampling's aliases out.
    pub images: u32,
}

/// How far a loop is from instability. `None` where there is no such crossing. No margin contradicts the verdict:
/// the gains that keep the loop stable hold one between them just when it is stable, and its angles and distances
/// are negative when it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Margins {
    /// Whether the closed loop is stable.
    pub stable: bool,
    /// Poles of the closed loop on or outside the boundary of stability, the winding number of den + num G.
    pub unstable_poles: u32,
    /// Smallest phase margin, degrees, to either side; negative where the loop is unstable.
    pub phase_margin_deg: Option<f64>,
    /// Upper end of the gains that are stable, as factors; below one, the loop is unstable. `None`: no gain is too
    /// large, or none is stable.
    pub gain_margin: Option<f64>,
    /// Their lower end, of a loop that is stable only with enough gain; above one, the loop is unstable.
    pub gain_margin_low: Option<f64>,
    /// Delay that may still be added, seconds.
    pub delay_margin_s: Option<f64>,
    /// Smallest distance of L from -1, whose inverse is the largest sensitivity; negative where the loop is unstable.
    pub modulus_margin: f64,
    /// Where |L| = 1 with the smallest phase margin, rad/s.
    pub crossover_rad_s: Option<f64>,
    /// Where the phase is -180 degrees at the gain margin, rad/s.
    pub phase_crossover_rad_s: Option<f64>,
}

/// How finely a loop's response is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resolution {
    /// Points per decade.
    pub per_decade: f64,
    /// The lowest frequency, as a share of 1 / R0.
    pub from: f64,
    /// |L| below which no more is looked for.
    pub down_to: f64,
    /// Bisections of a crossing.
    pub bisections: u32,
}

impl Resolution {
    /// For one loop.
    pub const FINE: Resolution = Resolution { per_decade: 200.0, from: 1e-6, down_to: 1e-3, bisections: 60 };
    /// For ten thousand.
    pub const COARSE: Resolution = Resolution { per_decade: 40.0, from: 1e-4, down_to: 0.05, bisections: 25 };
}

impl<P: FrequencyResponse> Loop<P> {
    /// The loop of `plant` and `controller`, with eight images on each side.
    pub fn new(plant: P, controller: Controller) -> Self {
        Loop { plant, controller, images: 8 }
    }

    /// The loop's response at `w`, rad/s. A sampled controller sees the plant through its hold, (1 - e^-sT)/(sT), and
    /// the images at multiples of the sampling frequency.
    pub fn response(&self, w: f64) -> Complex64 {
        -self.controller.response(w) * self.seen(w)
    }

    /// The plant as the controller sees it.
    fn seen(&self, w: f64) -> Complex64 {
        let Some(period) = self.controller.period_s() else { return self.plant.response(w) };
        if w == 0.0 {
            return Complex64::new(self.plant.dc_gain(), 0.0);
        }
        let numerator = Complex64::ONE - cis(-w * period);
        let image = |k: i64| {
            let w = w + 2.0 * PI / period * k as f64;
            self.plant.response(w) / Complex64::new(0.0, w * period)
        };
        let mut sum = image(0);
        for k in 1..=i64::from(self.images) {
            sum += image(k) + image(-k);
        }
        numerator * sum
    }

    /// Margins with [`Resolution::FINE`].
    pub fn margins(&self) -> Margins {
        self.margins_at(Resolution::FINE)
    }

    /// Margins from a walk along the response.
    pub fn margins_at(&self, resolution: Resolution) -> Margins {
        let walk = self.walk(resolution);
        let turned: f64 = walk.windows(2).map(|pair| turn(&pair[0], &pair[1])).sum();
        // A pole on the boundary itself is no stable one.
        let on_boundary = walk.iter().any(|at| at.characteristic() == Complex64::ZERO);
        let unstable_poles = libm::round(-turned / PI).max(if on_boundary { 1.0 } else { 0.0 }) as u32;
        let stable = unstable_poles == 0;
        let mut margins = Margins { stable, unstable_poles, modulus_margin: f64::INFINITY, ..Margins::default() };
        let (mut angle, mut critical) = (f64::INFINITY, Vec::new());
        for at in walk.iter().filter(|at| at.full && at.den != Complex64::ZERO) {
            margins.modulus_margin = margins.modulus_margin.min(abs(at.ratio() + 1.0));
        }
        for pair in walk.windows(2).filter(|pair| pair.iter().all(|at| at.full && at.den != Complex64::ZERO)) {
            let (w, next, l, following) = (pair[0].w, pair[1].w, pair[0].ratio(), pair[1].ratio());
            if (abs(l) - 1.0) * (abs(following) - 1.0) <= 0.0 && abs(l) != 1.0 {
                let at = bisect(w, next, resolution.bisections, |w| abs(self.response(w)) - 1.0);
                // The way to -1: by lagging, and by whichever is shorter.
                let lag = arg(self.response(at)) + PI;
                let nearest = lag.min(2.0 * PI - lag);
                if nearest < angle {
                    (angle, margins.crossover_rad_s) = (nearest, Some(at));
                }
                let delay = lag / at;
                margins.delay_margin_s = Some(margins.delay_margin_s.map_or(delay, |known: f64| known.min(delay)));
            }
            if l.im * following.im <= 0.0 && l.re.min(following.re) < 0.0 && l.im != 0.0 {
                let at = bisect(w, next, resolution.bisections, |w| self.response(w).im);
                let crossing = self.response(at);
                if crossing.re < 0.0 && crossing.im.abs() < 1e-3 * (1.0 + abs(crossing)) {
                    let poles = if following.im > l.im { 2 } else { -2 };
                    critical.push(Critical { gain: -1.0 / crossing.re, w: at, poles });
                }
            }
        }
        critical.extend(self.ends(&walk));
        critical.sort_by(|a, b| a.gain.total_cmp(&b.gain));
        let sign = if stable { 1.0 } else { -1.0 };
        margins.modulus_margin *= sign;
        margins.phase_margin_deg = angle.is_finite().then(|| sign * angle.to_degrees());
        if let Some((low, high)) = stable_gains(&critical, i64::from(unstable_poles)) {
            margins.gain_margin_low = low.map(|at| critical[at].gain);
            margins.gain_margin = high.map(|at| critical[at].gain);
            let nearest = if low.is_some_and(|at| critical[at].gain > 1.0) { low } else { high };
            margins.phase_crossover_rad_s = nearest.map(|at| critical[at].w);
        } else {
            margins.phase_crossover_rad_s = critical.first().map(|at| at.w);
        }
        if !stable {
            margins.delay_margin_s = None;
        }
        margins
    }

    /// Where L is real at the ends of the walk, at rest and at half the sampling frequency: one pole crosses there.
    fn ends(&self, walk: &[Sample]) -> Vec<Critical> {
        let of = |end: &Sample, beside: &Sample, leaving: bool| -> Option<Critical> {
            if !(end.full && beside.full && end.den != Complex64::ZERO && beside.den != Complex64::ZERO) {
                return None;
            }
            let (l, near) = (end.ratio(), beside.ratio());
            (l.re < 0.0 && l.im.abs() < 1e-3 * abs(l)).then(|| {
                let poles = if (near.im > 0.0) == leaving { 1 } else { -1 };
                Critical { gain: -1.0 / l.re, w: end.w, poles }
            })
        };
        let Some([first, second]) = walk.first_chunk::<2>() else { return Vec::new() };
        let Some([before, last]) = walk.last_chunk::<2>() else { return Vec::new() };
        let top = if self.controller.period_s().is_some() { of(last, before, false) } else { None };
        of(first, second, true).into_iter().chain(top).collect()
    }

    /// The characteristic function den + num G from rest to half the sampling frequency, or to where it no longer
    /// turns: outside the circle (right of the axis) it has no poles, since TCP's plants are stable, so that its zeros
    /// there are all it turns around: minus half a turn for each on the way from rest upwards.
    fn walk(&self, resolution: Resolution) -> Vec<Sample> {
        let r = self.plant.delay_s();
        let period = self.controller.period_s();
        let end = period.map_or(1e4 / r, |period| PI / period);
        let ratio = libm::pow(10.0, 1.0 / resolution.per_decade);
        let (most, delays) = self.controller.spread();
        // Neither the delays' phase nor a decade's detail may be jumped over.
        let step = 0.2 / (r + delays[0]);
        let step_of_den = if period.is_some() { 0.2 / delays[1] } else { f64::INFINITY };
        // Where the loop hardly answers any more, den alone tells the turns. A sampled plant falls with the frequency.
        let quiet_at = |at: &Sample| {
            let forward = if period.is_some() { most * abs(self.plant.response(at.w)) } else { abs(at.forward) };
            at.w * r > 3.0 && forward < resolution.down_to * abs(at.den)
        };
        let mut walk = vec![self.sample(0.0)];
        let mut w = (resolution.from / r).min(0.1 * end);
        let mut quiet = false;
        loop {
            let mut at = self.sample(w);
            quiet = if quiet && !quiet_at(&at) {
                w = (walk[walk.len() - 1].w + step).min(w);
                at = self.sample(w);
                false
            } else {
                quiet_at(&at)
            };
            if quiet {
                at.forward = Complex64::ZERO;
                at.full = false;
            }
            self.refine(&mut walk, at, 40);
            if w >= end {
                return walk;
            }
            w = (w * ratio).min(w + if quiet { step_of_den } else { step }).min(end);
        }
    }

    /// Adds `to`, and points before it until the characteristic turns by little from one to the next.
    fn refine(&self, walk: &mut Vec<Sample>, to: Sample, depth: u32) {
        let from = walk[walk.len() - 1];
        if depth > 0 && turn(&from, &to).abs() > 0.7 {
            self.refine(walk, self.sample(0.5 * (from.w + to.w)), depth - 1);
            self.refine(walk, to, depth - 1);
        } else {
            walk.push(to);
        }
    }

    /// The two parts of the characteristic function at `w`.
    fn sample(&self, w: f64) -> Sample {
        let (den, num) = self.controller.parts(w, 1.0 / self.plant.delay_s());
        Sample { w, den, forward: -num * self.seen(w), full: true }
    }
}

/// The characteristic function at one frequency.
#[derive(Clone, Copy, Debug)]
struct Sample {
    w: f64,
    /// The controller's denominator.
    den: Complex64,
    /// Numerator times plant.
    forward: Complex64,
    /// Whether `forward` is told, or too little to matter.
    full: bool,
}

impl Sample {
    fn characteristic(&self) -> Complex64 {
        self.den + self.forward
    }

    fn ratio(&self) -> Complex64 {
        self.forward / self.den
    }
}

/// How far the characteristic turns from one point to the next.
fn turn(from: &Sample, to: &Sample) -> f64 {
    arg(to.characteristic() * from.characteristic().conj())
}

/// A factor on the gain at which poles cross the boundary.
#[derive(Clone, Copy, Debug)]
struct Critical {
    gain: f64,
    w: f64,
    /// How many become unstable as the gain rises past it.
    poles: i64,
}

/// The ends of the stretch of gains nearest to one that is stable, as places in `critical`, which rises;
/// `unstable` poles are at one.
fn stable_gains(critical: &[Critical], unstable: i64) -> Option<(Option<usize>, Option<usize>)> {
    let here = critical.partition_point(|at| at.gain <= 1.0);
    // Stretch k ends at critical gain k and begins at the one before.
    let mut poles = vec![unstable; critical.len() + 1];
    for k in here..critical.len() {
        poles[k + 1] = poles[k] + critical[k].poles;
    }
    for k in (0..here).rev() {
        poles[k] = poles[k + 1] - critical[k].poles;
    }
    let away = |k: usize| match k.cmp(&here) {
        std::cmp::Ordering::Less => -libm::log(critical[k].gain),
        std::cmp::Ordering::Equal => 0.0,
        std::cmp::Ordering::Greater => libm::log(critical[k - 1].gain),
    };
    let best = (0..poles.len()).filter(|&k| poles[k] == 0).min_by(|&a, &b| away(a).total_cmp(&away(b)))?;
    Some((best.checked_sub(1), (best < critical.len()).then_some(best)))
}

/// A zero of `f` between `low` and `high`, where it changes its sign.
fn bisect(low: f64, high: f64, steps: u32, f: impl Fn(f64) -> f64) -> f64 {
    let sign = f(low).signum();
    let (low, high) = halved(|x| sign * f(x), (low, high), steps);
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::{Crossover, GapTail, PiController, SignalGaps, TcpPlant};
    use proptest::prelude::*;

    use super::super::point::OperatingPoint;
    use super::*;
    use crate::equilibrium::response::{Law, Sender};
    use crate::fluid::Model;
    use crate::noise::mean_field::MeanField;
    use crate::noise::signal_spacing::SignalSpacing;

    #[test]
    fn half_a_radian_per_delay_leaves_the_margins_that_the_rule_promises() {
        // PM = 90 - 0.5 (180/pi) - atan 0.5 = 90 - 28.648 - 26.565 = 34.787 degrees; the loop without the cancelled
        // pole is 0.559 e^{-jx} / (jx (1 + jx)), x = w R0: phase -180 where x + atan x = pi/2, x = 0.86033,
        // |L| = 0.559017 / (0.86033 * 1.319163) = 0.49256: GM = 2.0302.
        let at = OperatingPoint::new(Model::Hollot, 100.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
        let plant = TcpPlant::new(100.0, 1250.0, 0.28).unwrap();
        let pi = Controller::from_continuous_pi(PiController::design(&plant, Crossover::PerDelay(0.5)));
        let margins = Loop::new(Plant::textbook(&at), pi).margins();
        assert!(margins.stable);
        assert!((margins.phase_margin_deg.unwrap() - 34.787).abs() < 1e-3, "{margins:?}");
        assert!((margins.gain_margin.unwrap() - 2.0302).abs() < 1e-3);
        assert!((margins.crossover_rad_s.unwrap() - 0.5 / 0.28).abs() < 1e-6);
        assert!((margins.phase_crossover_rad_s.unwrap() - 0.86033 / 0.28).abs() < 1e-4);
        // 34.787 degrees at 1.7857 rad/s are 0.3400 s.
        assert!((margins.delay_margin_s.unwrap() - 0.34).abs() < 1e-4);
    }

    #[test]
    fn more_gain_than_the_gain_margin_is_unstable() {
        let at = OperatingPoint::new(Model::Hollot, 100.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
        let plant = TcpPlant::new(100.0, 1250.0, 0.28).unwrap();
        let design = PiController::design(&plant, Crossover::PerDelay(0.5));
        for (factor, stable) in [(1.0, true), (2.02, true), (2.04, false), (4.0, false)] {
            let pi = PiController { gain: design.gain * factor, ..design };
            let margins = Loop::new(Plant::textbook(&at), Controller::from_continuous_pi(pi)).margins();
            assert_eq!(margins.stable, stable, "{factor}: {margins:?}");
            assert!((margins.gain_margin.unwrap() * factor - 2.0302).abs() < 1e-3);
        }
    }

    #[test]
    fn the_gains_that_are_stable_are_those_nearest_to_one() {
        let stretch = |critical: &[(f64, i64)], unstable: i64| {
            let critical: Vec<Critical> =
                critical.iter().map(|(gain, poles)| Critical { gain: *gain, w: 1.0, poles: *poles }).collect();
            stable_gains(&critical, unstable)
        };
        assert_eq!((stretch(&[], 0), stretch(&[], 1)), (Some((None, None)), None));
        assert_eq!(stretch(&[(2.0, 2)], 0), Some((None, Some(0))));
        assert_eq!(stretch(&[(0.5, -2), (2.0, 2)], 0), Some((Some(0), Some(1))));
        // Unstable at one: below, above, and by whichever factor is smaller.
        assert_eq!(stretch(&[(0.5, 2)], 2), Some((None, Some(0))));
        assert_eq!(stretch(&[(2.0, -2), (4.0, 2)], 2), Some((Some(0), Some(1))));
        assert_eq!(stretch(&[(0.5, 2), (3.0, -2)], 2), Some((None, Some(0))));
        assert_eq!(stretch(&[(0.2, 2), (3.0, -2)], 2), Some((Some(1), None)));
        // Poles on the boundary itself are unstable, and no gain holds what more gain makes worse on either side.
        assert_eq!(stretch(&[(1.0, 2)], 2), Some((None, Some(0))));
        assert_eq!(stretch(&[(2.0, 1)], 1), None);
    }

    /// A queue that answers as one lag of a second, to either side.
    #[derive(Clone, Debug)]
    struct Lag(f64);

    impl FrequencyResponse for Lag {
        fn response(&self, w: f64) -> Complex64 {
            self.0 / Complex64::new(1.0, w)
        }

        fn dc_gain(&self) -> f64 {
            self.0
        }

        fn delay_s(&self) -> f64 {
            1.0
        }
    }

    #[test]
    fn a_pole_that_leaves_at_rest_is_one_and_so_is_one_at_half_the_sampling_frequency() {
        // What pushes itself on: s + 1 - k.
        for k in [0.5, 0.99, 1.01, 3.0] {
            let margins = Loop::new(Lag(1.0), Controller::Continuous { num: vec![k], den: vec![1.0] }).margins();
            assert_eq!((margins.stable, margins.unstable_poles), (k < 1.0, u32::from(k > 1.0)), "{k}: {margins:?}");
            assert!((margins.gain_margin.unwrap() * k - 1.0).abs() < 1e-9, "{k}: {margins:?}");
            assert_eq!((margins.gain_margin_low, margins.phase_crossover_rad_s), (None, Some(0.0)));
        }
        // Sampled each second and held: z - e^-1 + k (1 - e^-1), which is zero at z = -1 at k = 2.16395.
        let most = (1.0 + libm::exp(-1.0)) / (1.0 - libm::exp(-1.0));
        for k in [0.5, 2.1, 2.2, 4.0] {
            let controller = Controller::Sampled { num: vec![k], den: vec![1.0], period_s: 1.0 };
            let margins = Loop { images: 2000, ..Loop::new(Lag(-1.0), controller) }.margins();
            assert_eq!((margins.stable, margins.unstable_poles), (k < most, u32::from(k > most)), "{k}: {margins:?}");
            assert!((margins.gain_margin.unwrap() * k / most - 1.0).abs() < 1e-3, "{k}: {margins:?}");
            assert!((margins.phase_crossover_rad_s.unwrap() - PI).abs() < 1e-9);
        }
    }

    /// One plant of each kind.
    fn plants() -> Vec<(String, Box<dyn FrequencyResponse>)> {
        let mut plants: Vec<(String, Box<dyn FrequencyResponse>)> = Vec::new();
        for model in [Model::Hollot, Model::Ecn, Model::Drop, Model::Reno] {
            let at = OperatingPoint::new(model, 60.0, 2500.0, 300.0, 0.1, 80.0).unwrap();
            plants.push((format!("exact {model:?}"), Box::new(Plant::exact(&at))));
            plants.push((format!("textbook {model:?}"), Box::new(Plant::textbook(&at).with_delay(0.07))));
        }
        let at = OperatingPoint::new(Model::Reno, 60.0, 2500.0, 0.0, 0.1, 80.0).unwrap();
        let red = SignalGaps { least_pkts: 10.0, tail: GapTail::Uniform(10.0) };
        for roughly in [false, true] {
            let field = MeanField::from_reno(&at, roughly)
                .with_effectiveness(0.9)
                .spaced(Some(SignalSpacing::new(red, 2500.0)));
            plants.push((format!("windows of ns-2's Reno, roughly: {roughly}"), Box::new(field)));
        }
        let classes =
            [(Law::Reno, 0.02), (Law::Cubic, 0.01), (Law::Dctcp, 0.1), (Law::Prague, 0.15)].map(|(law, p)| {
                let sender = Sender { law, proportional: true, paced: law == Law::Prague, ..Sender::reno() };
                (sender, 10.0, [p, 1.0], 0.1, 9.0)
            });
        for class in &classes {
            plants.push((
                format!("windows of {:?}", class.0.law),
                Box::new(MeanField::from_one_queue(900.0, 1.0, &[*class])),
            ));
        }
        plants.push(("windows of four laws".into(), Box::new(MeanField::from_one_queue(3600.0, 1.0, &classes))));
        plants
    }

    #[test]
    fn every_plant_answers_at_a_negative_frequency_with_the_conjugate() {
        let plants = plants();
        proptest!(|(decade in -4.0..4.0f64)| {
            let w = libm::pow(10.0, decade);
            for (name, plant) in &plants {
                let (ahead, back) = (plant.response(w), plant.response(-w));
                prop_assert!((back - ahead.conj()).l1_norm() <= 1e-9 * ahead.l1_norm(), "{name}, {w}: {back} {ahead}");
            }
        });
    }

    #[test]
    fn a_zero_is_halved_in_on_whichever_way_the_function_goes() {
        for sign in [1.0, -1.0] {
            let zero = bisect(1.0, 4.0, 40, |x| sign * (x - 3.1));
            assert!((zero - 3.1).abs() < 1e-11, "{sign}: {zero}");
        }
        // One halving of 1 to 4 leaves 2.5 to 4.
        assert_eq!(bisect(1.0, 4.0, 1, |x| x - 3.1), 3.25);
    }
}
