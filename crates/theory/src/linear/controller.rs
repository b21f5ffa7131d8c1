//! The AQM's part of the loop: from the queue to the probability.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Observation, PiController, PiGains, SignalProcess, Transfer};
use aqumen_scenario::AqmChoice;
use aqumen_units::{Instant, Probability};
use num_complex::Complex64;

use super::complex::{cis, polynomial};
use super::point::OperatingPoint;

/// A linear controller, from queue (packets) to probability.
#[derive(Clone, Debug, PartialEq)]
pub enum Controller {
    /// D(z) = num(z^-1) / den(z^-1), constant terms first, once a period, its answer held in between.
    Sampled {
        /// Numerator.
        num: Vec<f64>,
        /// Denominator.
        den: Vec<f64>,
        /// Period, seconds.
        period_s: f64,
    },
    /// C(s) = num(s) / den(s), constant terms first.
    Continuous {
        /// Numerator.
        num: Vec<f64>,
        /// Denominator.
        den: Vec<f64>,
    },
}

/// How a control law of which no transfer function is known was linearised: by its answer to an impulse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Samples until the law equilibrium at the operating point.
    pub settled: usize,
    /// Samples of the answer that were kept.
    pub kept: usize,
}

/// Samples after which a law must rest.
const SETTLE_MAX: usize = 200_000;
/// Samples of an answer at most.
const ANSWER_MAX: usize = 20_000;
/// Samples without a move after which an answer has ended: more than any law's own delay.
const STILL: usize = 500;

impl Controller {
    /// D(e^{jwT}) of a sampled controller, the hold left out; C(jw) of another.
    pub fn response(&self, w: f64) -> Complex64 {
        let s = Complex64::new(0.0, w);
        match self {
            Controller::Sampled { num, den, period_s } => {
                let back = cis(-w * period_s);
                polynomial(num, back) / polynomial(den, back)
            }
            Controller::Continuous { num, den } => polynomial(num, s) / polynomial(den, s),
        }
    }

    /// Denominator and numerator at e^{jwT}, or at jw over (jw + `corner`)^n, n the denominator's
    /// order, so that both stay finite.
    pub(crate) fn parts(&self, w: f64, corner: f64) -> (Complex64, Complex64) {
        match self {
            Controller::Sampled { num, den, period_s } => {
                let back = cis(-w * period_s);
                (polynomial(den, back), polynomial(num, back))
            }
            Controller::Continuous { num, den } => {
                let s = Complex64::new(0.0, w);
                let order = den.iter().rposition(|c| *c != 0.0).unwrap_or(0);
                let scale = (0..order).fold(Complex64::ONE, |scale, _| scale * (s / corner + 1.0));
                (polynomial(den, s) / scale, polynomial(num, s) / scale)
            }
        }
    }

    /// A bound on the numerator's size; how much delay numerator and denominator together, and the denominator alone,
    /// have in them, seconds. Of a sampled controller.
    pub(crate) fn spread(&self) -> (f64, [f64; 2]) {
        let Controller::Sampled { num, den, period_s } = self else { return (0.0, [0.0; 2]) };
        let most = |c: &[f64]| c.iter().map(|c| c.abs()).sum::<f64>();
        let moment = |c: &[f64]| c.iter().enumerate().map(|(k, c)| k as f64 * c.abs()).sum::<f64>();
        let mean = |c: &[f64]| if most(c) > 0.0 { period_s * moment(c) / most(c) } else { 0.0 };
        (most(num), [mean(num) + mean(den), mean(den)])
    }

    /// Returns the controller with `factor` times the gain.
    pub fn scaled(&self, factor: f64) -> Self {
        let times = |num: &[f64]| num.iter().map(|c| c * factor).collect();
        match self {
            Controller::Sampled { num, den, period_s } => {
                Controller::Sampled { num: times(num), den: den.clone(), period_s: *period_s }
            }
            Controller::Continuous { num, den } => Controller::Continuous { num: times(num), den: den.clone() },
        }
    }

    /// The period of a sampled controller.
    pub fn period_s(&self) -> Option<f64> {
        match self {
            Controller::Sampled { period_s, .. } => Some(*period_s),
            _ => None,
        }
    }

    /// The velocity form p += a e - b e_old.
    pub fn from_pi(gains: PiGains, frequency: f64) -> Self {
        gains.transfer(frequency).into()
    }

    /// C(s) = K (1 + s / z) / s.
    pub fn from_continuous_pi(pi: PiController) -> Self {
        Controller::Continuous { num: vec![pi.gain, pi.gain / pi.zero], den: vec![0.0, 1.0] }
    }

    /// The controller of any AQM with a control law of one loop, found by asking the law alone: it is driven to the
    /// operating point and answers an impulse of the queue.
    pub fn probed(choice: &AqmChoice, at: &OperatingPoint) -> Option<(Self, Probe)> {
        probe(choice, at)
    }

    /// The controller of an AQM at an operating point, and how it was found where no transfer function is known. `None`
    /// for one that does not control (DropTail), that has no law, or whose law does not come to rest there.
    pub fn from_choice(choice: &AqmChoice, at: &OperatingPoint) -> Option<(Self, Option<Probe>)> {
        Controller::from_built(&choice.build()?.ok()?, choice, at)
    }

    /// Returns the controller of an AQM that was built from `choice`.
    pub fn from_built(aqm: &AnyAqm, choice: &AqmChoice, at: &OperatingPoint) -> Option<(Self, Option<Probe>)> {
        match aqm.theory().linear(&at.to_aqm(choice.network.packet_bytes)) {
            Some(transfer) => Some((transfer.into(), None)),
            None => Controller::probed(choice, at).map(|(controller, probe)| (controller, Some(probe))),
        }
    }
}

impl From<Transfer> for Controller {
    fn from(Transfer { num, den, period_s }: Transfer) -> Self {
        match period_s {
            Some(period_s) => Controller::Sampled { num, den, period_s },
            None => Controller::Continuous { num, den },
        }
    }
}

/// Drives a law to the operating point and takes its answer to an impulse of the queue, in both directions, for the
/// mean. The answer's increments are the numerator over 1 - z^-1, so that an integrator's answer may end.
fn probe(choice: &AqmChoice, at: &OperatingPoint) -> Option<(Controller, Probe)> {
    // Both answers begin in the very same state, so that what it lacks of rest cancels.
    let answer = |sign: f64| -> Option<(Driven, usize, Vec<f64>)> {
        let mut driven = Driven::new(choice.build()?.ok()?, at)?;
        // Queue above the equilibrium while the probability is too low: any law with an integrator comes to rest.
        let settled = driven.settle(SETTLE_MAX)?;
        let increments = driven.increments(sign);
        Some((driven, settled, increments))
    };
    let ((driven, settled, up), (_, _, down)) = (answer(1.0)?, answer(-1.0)?);
    let slope = driven.share.slope(at.probability);
    let one = |answer: &[f64], k: usize| answer.get(k).copied().unwrap_or(0.0);
    let num = (0..up.len().max(down.len())).map(|k| 0.5 * slope * (one(&up, k) + one(&down, k))).collect();
    let (num, den) = shortened(num, vec![1.0, -1.0])?;
    let kept = num.len();
    Some((Controller::Sampled { num, den, period_s: driven.period_s }, Probe { settled, kept }))
}

/// Coefficients below this share of the largest are noise of the arithmetic.
const NOISE: f64 = 1e-9;
/// FrequencyResponse this short are left as they are.
const SHORT: usize = 32;

/// A long numerator whose end decays as r^k is the answer of a slow pole r: it goes to the denominator, as long as that
/// makes the numerator shorter by half. `None` of a numerator that is nothing.
fn shortened(mut num: Vec<f64>, mut den: Vec<f64>) -> Option<(Vec<f64>, Vec<f64>)> {
    let largest = num.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    if !(largest > 0.0 && largest.is_finite()) {
        return None;
    }
    let end = |num: &[f64]| num.iter().rposition(|x| x.abs() > NOISE * largest).map_or(0, |last| last + 1);
    num.truncate(end(&num));
    while num.len() > SHORT {
        // Where the noise does not blur the ratio yet, and the quick poles have died out.
        let clear = num.iter().rposition(|x| x.abs() > 1e3 * NOISE * largest).unwrap_or(0);
        let tail = &num[clear / 2..=clear];
        let product: f64 = tail.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let square: f64 = tail[..tail.len() - 1].iter().map(|x| x * x).sum();
        let pole = product / square;
        if !(0.0..1.0).contains(&pole) {
            break;
        }
        let mut shorter: Vec<f64> = Vec::with_capacity(num.len());
        shorter.push(num[0]);
        shorter.extend(num.windows(2).map(|pair| pair[1] - pole * pair[0]));
        shorter.truncate(end(&shorter));
        if shorter.len() > num.len() / 2 {
            break;
        }
        num = shorter;
        let at = |k: usize| den.get(k).copied().unwrap_or(0.0);
        den = (0..=den.len()).map(|k| at(k) - if k > 0 { pole * at(k - 1) } else { 0.0 }).collect();
    }
    Some((num, den))
}

/// A law with the world around it at rest but for the queue.
struct Driven {
    aqm: AnyAqm,
    at: OperatingPoint,
    packet_bytes: f64,
    period_s: f64,
    period_ns: u64,
    now_ns: u64,
    queue_pkts: f64,
    applied: f64,
    share: SignalProcess,
}

impl Driven {
    fn new(mut aqm: AnyAqm, at: &OperatingPoint) -> Option<Self> {
        let share = aqm.theory().signal_process();
        let law = aqm.law_mut()?;
        // Two loops are no single transfer function.
        let [Some(period), None] = law.periods() else { return None };
        let applied = law.initial().get();
        let (period_s, period_ns) = (period.as_secs_f64(), period.as_nanos().max(1));
        let queue_pkts = at.queue_pkts;
        Some(Driven { aqm, at: *at, packet_bytes: 1000.0, period_s, period_ns, now_ns: 0, queue_pkts, applied, share })
    }

    fn step(&mut self, queue_pkts: f64) -> f64 {
        self.now_ns += self.period_ns;
        let passed = self.at.capacity_pps * self.period_s;
        // A queue that grew took in more than it let go.
        let accepted = passed + queue_pkts - self.queue_pkts;
        self.queue_pkts = queue_pkts;
        let seen = Observation {
            now: Instant::from_nanos(self.now_ns),
            interval_s: self.period_s,
            queue_pkts,
            queue_bytes: queue_pkts * self.packet_bytes,
            arrivals_pkts: accepted,
            accepted_pkts: accepted,
            departures_pkts: passed,
            departures_bytes: passed * self.packet_bytes,
            busy_s: self.period_s,
            idle_s: 0.0,
            sojourn_s: queue_pkts / self.at.capacity_pps,
            applied: Probability::clamp(self.applied),
        };
        if let Some(law) = self.aqm.law_mut() {
            self.applied = law.step(0, &seen).get();
        }
        self.applied
    }

    /// By how much each sample moves the probability after an impulse of the queue, upwards or downwards, per packet;
    /// until nothing moves any more.
    fn increments(&mut self, sign: f64) -> Vec<f64> {
        let rest = self.at.queue_pkts;
        let height = sign * 1e-3 * rest.max(1.0);
        let (mut before, mut largest, mut still) = (self.applied, 0.0f64, 0);
        let mut increments = Vec::new();
        while increments.len() < ANSWER_MAX && still < STILL {
            let p = self.step(if increments.is_empty() { rest + height } else { rest });
            let moved = (p - before) / height;
            largest = largest.max(moved.abs());
            still = if moved.abs() <= NOISE * largest { still + 1 } else { 0 };
            increments.push(moved);
            before = p;
        }
        increments
    }

    /// Samples until probability and queue rest at the operating point.
    fn settle(&mut self, most: usize) -> Option<usize> {
        let (q0, p0) = (self.at.queue_pkts, self.share.law_probability(self.at.probability));
        let mut calm = 0;
        for k in 0..most {
            let error = ((p0 - self.applied) / p0).clamp(-1.0, 1.0);
            self.step(q0 * (1.0 + 0.2 * error));
            calm = if error.abs() < 1e-6 { calm + 1 } else { 0 };
            if calm > 2000 {
                return Some(k);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first samples of num / den in powers of 1/z.
    fn answer(num: &[f64], den: &[f64], samples: usize) -> Vec<f64> {
        let mut out: Vec<f64> = Vec::new();
        for k in 0..samples {
            let past: f64 = (1..den.len().min(k + 1)).map(|j| den[j] * out[k - j]).sum();
            out.push((num.get(k).copied().unwrap_or(0.0) - past) / den[0]);
        }
        out
    }

    #[test]
    fn a_decaying_end_becomes_a_pole_and_the_answer_stays() {
        // 2 .99^k + 3 .9^k: both go, the slow one first.
        let num: Vec<f64> = (0..3000).map(|k| 2.0 * 0.99f64.powi(k) + 3.0 * 0.9f64.powi(k)).collect();
        let (short, den) = shortened(num.clone(), vec![1.0, -1.0]).unwrap();
        assert!(short.len() <= 250 && den.len() >= 3, "{} {den:?}", short.len());
        for (k, (a, b)) in answer(&short, &den, 800).iter().zip(answer(&num, &[1.0, -1.0], 800)).enumerate() {
            assert!((a / b - 1.0).abs() < 1e-6, "{k}: {a} {b}");
        }
    }

    #[test]
    fn coefficients_spread_over_as_much_time_as_their_sizes_say() {
        // Every .1 s: of 1 and 3 three quarters a period late, of 2, 1 and 1 a quarter of one and of two.
        let law = |num: Vec<f64>| Controller::Sampled { num, den: vec![2.0, -1.0, 1.0], period_s: 0.1 };
        let (most, [both, den]) = law(vec![1.0, -3.0]).spread();
        assert!(most == 4.0 && (den - 0.075).abs() < 1e-12 && (both - 0.15).abs() < 1e-12, "{both} {den}");
        // What says nothing says it at once.
        assert_eq!(law(vec![0.0, 0.0]).spread(), (0.0, [den; 2]));
    }

    #[test]
    fn what_is_short_or_does_not_decay_is_left_and_nothing_is_no_controller() {
        let kept = vec![1.0, -0.5, 0.25];
        assert_eq!(shortened(kept.clone(), vec![1.0, -1.0]), Some((kept, vec![1.0, -1.0])));
        let swings: Vec<f64> = (0..100).map(|k| if k % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert_eq!(shortened(swings.clone(), vec![1.0]), Some((swings, vec![1.0])));
        assert_eq!(shortened(vec![0.0; 10], vec![1.0]), None);
        assert_eq!(shortened(vec![1.0, f64::INFINITY], vec![1.0]), None);
        // As it is with up to 32 coefficients; 33 of .9^k are one pole.
        let decaying = |n: i32| shortened((0..n).map(|k| 0.9f64.powi(k)).collect(), vec![1.0]).unwrap();
        let ([short, one], [long, pole]) = (decaying(32).into(), decaying(33).into());
        assert_eq!((short.len(), one.len()), (32, 1));
        assert!(long.len() == 1 && pole.len() == 2 && (pole[1] + 0.9).abs() < 1e-9, "{long:?} {pole:?}");
        // What follows below a billionth of the largest is noise.
        assert_eq!(shortened(vec![1.0, 1e-10, 0.0], vec![1.0]), Some((vec![1.0], vec![1.0])));
    }

    /// A law that says a weighted sum of what it sees, from its rest on, and is asked at whole periods.
    #[derive(Clone)]
    struct Sum {
        rest: f64,
        weights: [f64; 5],
        asked: u64,
    }

    impl aqumen_aqm::SampledLaw for Sum {
        fn periods(&self) -> [Option<aqumen_units::Span>; aqumen_aqm::MAX_LOOPS] {
            [Some(aqumen_units::Span::from_millis(10)), None]
        }

        fn step(&mut self, _which: usize, seen: &Observation) -> Probability {
            assert!((seen.interval_s - 0.01).abs() < 1e-12 && seen.busy_s == seen.interval_s && seen.idle_s == 0.0);
            assert!((seen.departures_pkts - 12.5).abs() < 1e-9 && (seen.departures_bytes - 12_500.0).abs() < 1e-6);
            let values = [
                seen.queue_pkts - 100.0,
                seen.queue_bytes - 100_000.0,
                seen.arrivals_pkts - 12.5,
                seen.accepted_pkts - 12.5,
                seen.sojourn_s - 0.08,
            ];
            self.asked += 1;
            assert_eq!(seen.now.as_nanos(), 10_000_000 * self.asked);
            Probability::clamp(self.rest + values.iter().zip(self.weights).map(|(x, weight)| x * weight).sum::<f64>())
        }

        fn initial(&self) -> Probability {
            Probability::clamp(self.rest)
        }
    }

    #[test]
    fn what_a_law_is_shown_of_an_impulse_is_that_of_one_queue() {
        let at = OperatingPoint::new(crate::fluid::Model::Hollot, 100.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
        let answer = |weights: [f64; 5]| {
            let aqm = AnyAqm::custom_law(Sum { rest: at.probability, weights, asked: 0 }, true);
            let mut driven = Driven::new(aqm, &at).unwrap();
            driven.step(100.0);
            let all = driven.increments(1.0);
            [all[0], all[1], all[2]]
        };
        let near = |seen: [f64; 3], known: [f64; 3]| {
            assert!(seen.iter().zip(known).all(|(a, b)| (a - b).abs() < 1e-6), "{seen:?} {known:?}");
        };
        // A packet more in the queue, a sample later none: in bytes a thousand, in delay 1/1250 s.
        near(answer([1e-2, 0.0, 0.0, 0.0, 0.0]), [1e-2, -1e-2, 0.0]);
        near(answer([0.0, 1e-5, 0.0, 0.0, 0.0]), [1e-2, -1e-2, 0.0]);
        near(answer([0.0, 0.0, 0.0, 0.0, 12.5]), [1e-2, -1e-2, 0.0]);
        // What came grew the queue: one more, then one less, then as usual.
        near(answer([0.0, 0.0, 1e-2, 0.0, 0.0]), [1e-2, -2e-2, 1e-2]);
        near(answer([0.0, 0.0, 0.0, 1e-2, 0.0]), [1e-2, -2e-2, 1e-2]);
    }
}
