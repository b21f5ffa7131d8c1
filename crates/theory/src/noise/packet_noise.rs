//! How far packets move a queue around its rest, in the figures that a run measures: deviation, QACD, 95th percentile,
//! what is lost while the queue is empty, the spectrum; and when a linear answer does not hold.

use std::f64::consts::PI;

use serde::Serialize;

use crate::linear::noise::{self, Fineness};
use crate::linear::{Loop, OperatingPoint};
use crate::noise::mean_field::MeanField;
use crate::noise::sources::{SOURCES, SourcePowers};

/// Packet noise around the equilibrium: of Reno's windows under random marks (model `reno`, whatever the model of the
/// margins), or of the many windows of a sender that has a response function, or whose signals are spaced.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Noise {
    /// Whether the figures hold.
    pub valid: bool,
    /// Why they do not.
    pub why: Option<String>,
    /// Mean window, packets, and share of the packets that is signalled at rest.
    pub window_pkts: Option<f64>,
    /// Share of the packets that is signalled.
    pub probability: Option<f64>,
    /// Standard deviation of the queue, packets.
    pub queue_std_pkts: Option<f64>,
    /// Root of the mean square of its distance from the target, packets.
    pub qacd_pkts: Option<f64>,
    /// The length that it stays below for 95 % of the time, packets.
    pub queue_p95_pkts: Option<f64>,
    /// Share of the capacity that is lost while it is empty.
    pub utilization_lost: Option<f64>,
    /// Power of the queue over frequency.
    pub spectrum: Option<Spectrum>,
    /// Variance of the queue by source; its sum is the square of `queue_std_pkts`. Empty where it is not known.
    pub budget: Vec<NoiseSource>,
}

/// Part of a queue's variance that one source brings about, through the loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NoiseSource {
    /// One of [`SOURCES`], `paths` or `transfers`.
    pub source: &'static str,
    /// Its variance, packets^2; negative where it makes signals more even.
    pub variance_pkts2: f64,
    /// Its part of the whole variance.
    pub share: f64,
}

/// Power of the queue at some frequencies; its integral over w from zero on, over pi, is the variance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spectrum {
    /// Frequencies, rad/s.
    pub w_rad_s: Vec<f64>,
    /// Power there, packets^2 per rad/s.
    pub power_pkts2_s: Vec<f64>,
    /// Where it is largest, rad/s.
    pub peak_rad_s: f64,
}

/// Power of the queue around `at` over frequency in rad/s, in the stable loop `closed`: by the closed form, or, of
/// signals that are spaced, from many windows; those `roughly` from a table.
pub(crate) fn power<'a>(at: &'a OperatingPoint, closed: &'a Loop, roughly: bool) -> impl Fn(f64) -> f64 + 'a {
    let spaced = (at.dispersion != 1.0).then(|| MeanField::from_reno(at, roughly));
    move |w| match &spaced {
        None => noise::power(closed, at, w),
        Some(field) => field.power(w) / (closed.response(w) + 1.0).norm_sqr(),
    }
}

/// Powers of the sources of that noise.
fn source_powers<'a>(at: &'a OperatingPoint, closed: &'a Loop) -> impl Fn(f64) -> SourcePowers + 'a {
    let spaced = (at.dispersion != 1.0).then(|| MeanField::from_reno(at, false));
    move |w| {
        let answered = (closed.response(w) + 1.0).norm_sqr();
        let powers = spaced.as_ref().map_or_else(
            || {
                let [halvings, arrivals] = noise::without_loop(at, w);
                [halvings, 0.0, arrivals, 0.0, 0.0]
            },
            |field| field.source_powers(w),
        );
        powers.map(|power| power / answered)
    }
}

/// The 95th percentile of a normal variable in its deviations.
pub(crate) const Z95: f64 = 1.644_853_626_951_472_6;
/// Deviations in shares of the mean above which the queue runs empty too often for a linear answer.
const DEVIATION_MAX: f64 = 0.5;
/// Windows below these are time-outs' more than halvings': where signals are marks, and where they are losses.
const WINDOW_MIN: f64 = 2.0;
pub(crate) const WINDOW_MIN_LOSSES: f64 = 5.0;
/// Frequencies of a spectrum: first and last in units of 1 / R, and their number.
const TOLD: (f64, f64, u32) = (1e-2, 30.0, 60);

/// Target and buffer limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueueBounds {
    /// Where it is to be, packets.
    pub(crate) target_pkts: Option<f64>,
    /// Its room, packets.
    pub(crate) buffer_pkts: f64,
}

/// The smallest window at which a linear answer holds, packets.
fn least_window(at: &OperatingPoint) -> f64 {
    if at.losses { WINDOW_MIN_LOSSES } else { WINDOW_MIN }
}

impl Noise {
    /// No figures.
    pub(crate) fn none(why: String) -> Self {
        Noise {
            valid: false,
            why: Some(why),
            window_pkts: None,
            probability: None,
            queue_std_pkts: None,
            qacd_pkts: None,
            queue_p95_pkts: None,
            utilization_lost: None,
            spectrum: None,
            budget: Vec::new(),
        }
    }

    /// Marks the metrics as invalid, with the reason.
    pub(crate) fn doubted(self, why: String) -> Self {
        Noise { valid: false, why: Some(why), ..self }
    }

    /// No figures of NewReno under losses.
    pub(crate) fn from_losses() -> Self {
        Noise::none("NewReno repairs losses without SACK, one a round trip: no model has the noise of that".into())
    }

    /// Packet noise around `at`; `closed`: the loop, and whether it is stable. At fine resolution with the spectrum.
    pub(crate) fn around(
        held: QueueBounds,
        at: &OperatingPoint,
        closed: Option<(bool, &Loop)>,
        fineness: Fineness,
    ) -> Self {
        let fine = fineness == Fineness::FINE;
        let known = closed.is_some_and(|(stable, _)| stable) && at.feasible && at.window_pkts >= least_window(at);
        let (Some((_, closed)), true) = (closed, known) else {
            return Noise::with_power(held, at, closed.map(|(stable, _)| (stable, |_| 0.0)), fineness);
        };
        // Images of the spectrum add little to noise.
        let plain = Loop { images: 0, ..closed.clone() };
        let power = power(at, &plain, !fine);
        let noise = Noise::with_power(held, at, Some((true, &power)), fineness);
        if !fine {
            return noise;
        }
        noise.with_spectrum_of(at, closed.controller.period_s(), power).with_budget(at, source_powers(at, &plain))
    }

    /// Packet noise from a power spectrum of the queue, and whether its loop is stable.
    pub(crate) fn with_power(
        held: QueueBounds,
        at: &OperatingPoint,
        power: Option<(bool, impl Fn(f64) -> f64)>,
        fineness: Fineness,
    ) -> Self {
        let rest = |why: String| Noise {
            window_pkts: Some(at.window_pkts),
            probability: Some(at.probability.min(1.0)),
            ..Noise::none(why)
        };
        if !at.feasible {
            return rest("every packet is signalled".into());
        }
        let power = power.map(|(stable, power)| {
            (
                stable,
                if stable && at.window_pkts >= least_window(at) {
                    noise::deviation_of(power, at.rtt_s, fineness)
                } else {
                    0.0
                },
            )
        });
        Noise::with_deviation(held, at, power)
    }

    /// Packet noise from a known deviation, and whether its loop is stable; `None` without a controller.
    pub(crate) fn with_deviation(held: QueueBounds, at: &OperatingPoint, known: Option<(bool, f64)>) -> Self {
        let rest = |why: String| Noise {
            window_pkts: Some(at.window_pkts),
            probability: Some(at.probability.min(1.0)),
            ..Noise::none(why)
        };
        if at.window_pkts < least_window(at) {
            let window = at.window_pkts;
            return rest(format!("windows of {window:.2} packets: time-outs rule, which the models do not have"));
        }
        let Some((stable, deviation)) = known else { return rest("there is no linear controller".into()) };
        if !stable {
            return rest("the loop is unstable: the nonlinear equations give its oscillation".into());
        }
        let queue = at.queue_pkts;
        let why = if deviation > DEVIATION_MAX * queue {
            Some("the queue runs empty too often for a linear answer".into())
        } else if queue + 2.0 * deviation > held.buffer_pkts {
            Some("the buffer overflows too often for a linear answer".into())
        } else {
            None
        };
        Noise {
            valid: why.is_none(),
            why,
            queue_std_pkts: Some(deviation),
            qacd_pkts: held.target_pkts.map(|target| libm::hypot(queue - target, deviation)),
            queue_p95_pkts: Some((queue + Z95 * deviation).min(held.buffer_pkts)),
            // While the queue is empty the path is not full: what is under way is short of C T_p.
            utilization_lost: Some(noise::shortfall(queue, deviation) / (at.capacity_pps * at.base_rtt_s).max(1.0)),
            window_pkts: Some(at.window_pkts),
            probability: Some(at.probability),
            ..Noise::none(String::new())
        }
    }

    /// Adds the variance of another source to all figures but the spectrum.
    pub(crate) fn with_more(
        mut self,
        buffer_pkts: f64,
        at: &OperatingPoint,
        variance: f64,
        source: &'static str,
    ) -> Self {
        let Some(known) = self.queue_std_pkts.filter(|_| variance > 0.0) else { return self };
        let held = QueueBounds { target_pkts: None, buffer_pkts };
        let more = Noise::with_deviation(held, at, Some((true, (known * known + variance).sqrt())));
        self.queue_std_pkts = more.queue_std_pkts;
        self.queue_p95_pkts = more.queue_p95_pkts;
        self.utilization_lost = more.utilization_lost;
        self.qacd_pkts = self.qacd_pkts.map(|qacd| (qacd * qacd + variance).sqrt());
        if !self.budget.is_empty() {
            self.budget.push(NoiseSource { source, variance_pkts2: variance, share: 0.0 });
            let all: f64 = self.budget.iter().map(|part| part.variance_pkts2).sum();
            self.budget.iter_mut().for_each(|part| part.share = part.variance_pkts2 / all);
        }
        if self.valid {
            (self.valid, self.why) = (more.valid, more.why);
        }
        self
    }

    /// Adds the spectrum from a power of the queue and the period of its control law.
    pub(crate) fn with_spectrum_of(
        mut self,
        at: &OperatingPoint,
        period_s: Option<f64>,
        power: impl Fn(f64) -> f64,
    ) -> Self {
        if self.queue_std_pkts.is_some() {
            let (from, to, points) = TOLD;
            // Beyond half the sampling frequency a sampled loop shows images.
            let top = period_s.map_or(to / at.rtt_s, |period| (to / at.rtt_s).min(PI / period));
            let ratio = libm::pow(top * at.rtt_s / from, 1.0 / f64::from(points - 1));
            let w_rad_s: Vec<f64> =
                std::iter::successors(Some(from / at.rtt_s), |w| Some(w * ratio)).take(points as usize).collect();
            let power_pkts2_s: Vec<f64> = w_rad_s.iter().map(|&w| power(w)).collect();
            let largest = (0..w_rad_s.len()).max_by(|&a, &b| power_pkts2_s[a].total_cmp(&power_pkts2_s[b]));
            let peak_rad_s = largest.map_or(f64::NAN, |k| w_rad_s[k]);
            self.spectrum = Some(Spectrum { w_rad_s, power_pkts2_s, peak_rad_s });
        }
        self
    }

    /// Adds the variance by source from the power of each; sources without any are left out.
    pub(crate) fn with_budget(mut self, at: &OperatingPoint, powers: impl Fn(f64) -> SourcePowers) -> Self {
        if self.queue_std_pkts.is_none() {
            return self;
        }
        let sampled: Vec<(f64, SourcePowers)> =
            noise::frequencies(at.rtt_s, Fineness::FINE).map(|w| (w, powers(w))).collect();
        let variance = |k: usize| noise::variance_over(sampled.iter().map(|(w, powers)| (*w, powers[k])));
        let variances: Vec<f64> = (0..SOURCES.len()).map(variance).collect();
        let all: f64 = variances.iter().sum();
        let part = |(source, variance_pkts2)| NoiseSource { source, variance_pkts2, share: variance_pkts2 / all };
        self.budget = SOURCES.into_iter().zip(variances).filter(|(_, variance)| *variance != 0.0).map(part).collect();
        self
    }

    /// The distance from the target, or from the rest where there is none; infinite where nothing is known.
    pub(crate) fn distance_pkts(&self) -> f64 {
        self.qacd_pkts.or(self.queue_std_pkts).unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::Model;

    fn at() -> OperatingPoint {
        OperatingPoint::new(Model::Reno, 40.0, 2000.0, 0.0, 0.1, 100.0).unwrap()
    }

    fn told(target: Option<f64>, buffer_pkts: f64, deviation: f64) -> Noise {
        Noise::with_deviation(QueueBounds { target_pkts: target, buffer_pkts }, &at(), Some((true, deviation)))
    }

    #[test]
    fn a_deviation_tells_distance_percentile_and_what_an_empty_queue_loses() {
        let noise = told(Some(97.0), 400.0, 40.0);
        assert!(noise.valid && noise.why.is_none());
        // 3 beside the target: 3^2 + 40^2; a normal 95th percentile; 2.5 deviations above empty over C T = 200.
        assert!((noise.qacd_pkts.unwrap() - 1609f64.sqrt()).abs() < 1e-9);
        assert!((noise.queue_p95_pkts.unwrap() - (100.0 + 1.644_854 * 40.0)).abs() < 1e-4);
        let short = 40.0 * (0.017_528 - 2.5 * 0.006_209_7);
        assert!((noise.utilization_lost.unwrap() - short / 200.0).abs() < 1e-5, "{noise:?}");
        assert_eq!((noise.window_pkts, noise.probability), (Some(at().window_pkts), Some(at().probability)));
        // No more than the buffer holds, and none of it where the queue runs empty or over too often.
        assert_eq!(told(None, 120.0, 10.0).queue_p95_pkts, Some(100.0 + Z95 * 10.0));
        assert_eq!(told(None, 110.0, 10.0).queue_p95_pkts, Some(110.0));
        let why = |buffer: f64, deviation: f64| told(None, buffer, deviation).why.unwrap_or_default();
        assert!(why(400.0, 51.0).contains("runs empty") && why(190.0, 46.0).contains("overflows"));
        assert_eq!((why(400.0, 49.0), why(200.0, 46.0)), (String::new(), String::new()));
        assert!(told(None, 400.0, 40.0).qacd_pkts.is_none());
        assert_eq!((told(None, 400.0, 40.0).distance_pkts(), noise.distance_pkts()), (40.0, 1609f64.sqrt()));
        assert_eq!(Noise::none("nothing".into()).distance_pkts(), f64::INFINITY);
    }

    #[test]
    fn more_variance_adds_to_that_of_the_loop_in_every_figure() {
        // 30^2 + 700 = 40^2.
        let (more, known) =
            (told(Some(97.0), 400.0, 30.0).with_more(400.0, &at(), 700.0, "paths"), told(Some(97.0), 400.0, 40.0));
        for (one, other) in [
            (more.queue_std_pkts, known.queue_std_pkts),
            (more.qacd_pkts, known.qacd_pkts),
            (more.queue_p95_pkts, known.queue_p95_pkts),
            (more.utilization_lost, known.utilization_lost),
        ] {
            assert!((one.unwrap() - other.unwrap()).abs() < 1e-9, "{more:?} {known:?}");
        }
        assert!(more.valid);
        // What is too much with it holds no longer, and what held no figures still has none.
        let much = told(None, 400.0, 30.0).with_more(400.0, &at(), 2000.0, "paths");
        assert!(!much.valid && much.why.unwrap().contains("runs empty"));
        let none = Noise::none("nothing".into());
        assert_eq!(none.clone().with_more(400.0, &at(), 700.0, "paths"), none);
        assert_eq!(told(None, 400.0, 30.0).with_more(400.0, &at(), 0.0, "paths"), told(None, 400.0, 30.0));
    }

    #[test]
    fn a_spectrum_is_told_up_to_half_the_sampling_frequency_and_says_where_it_is_largest() {
        let bump = |w: f64| 1.0 / (1.0 + (w - 3.0) * (w - 3.0));
        let of = |period: Option<f64>| told(None, 400.0, 30.0).with_spectrum_of(&at(), period, bump).spectrum.unwrap();
        let (free, sampled) = (of(None), of(Some(0.2)));
        // R = .15 s: from .01 / R to 30 / R, and to pi / .2 = 15.7.
        assert!((free.w_rad_s[0] - 0.01 / 0.15).abs() < 1e-9 && (free.w_rad_s[59] - 200.0).abs() < 1e-6);
        assert!((sampled.w_rad_s[59] - PI / 0.2).abs() < 1e-6 && sampled.w_rad_s.len() == 60);
        assert!((free.peak_rad_s / 3.0 - 1.0).abs() < 0.1 && free.power_pkts2_s[7] == bump(free.w_rad_s[7]));
    }

    #[test]
    fn what_spaced_signals_make_of_a_queue_is_the_noise_of_many_windows_in_its_loop() {
        use crate::linear::{Controller, Plant};
        let spaced = OperatingPoint { dispersion: 1.0 / 27.0, ..at() };
        let field = MeanField::from_reno(&spaced, false);
        for slope in [0.0, 1e-4, 4e-4] {
            let controller = Controller::Continuous { num: vec![slope], den: vec![1.0] };
            let closed = Loop::new(Plant::exact(&spaced), controller);
            for w in [0.05, 1.0, 20.0] {
                let seen = power(&spaced, &closed, false)(w);
                // Feedback divides swings by 1 + L, their power by its square.
                let expected = field.power(w) / crate::linear::complex::abs(closed.response(w) + 1.0).powi(2);
                assert!((seen / expected - 1.0).abs() < 1e-9, "{slope} {w}: {seen} {expected}");
                // Without feedback even signals move a queue less than tosses.
                assert!(slope > 0.0 || seen < MeanField::from_reno(&at(), false).power(w), "{w}: {seen}");
            }
        }
    }
}
