//! Packet noise of an AQM that spaces its signals (RED, PIE): fewer signals hold the windows,
//! and the loop of many windows answers their noise.
//!
//! *Signals that are lost.* No window is halved twice in a round trip: of tosses for each packet p W come for nothing
//! while the answer to a signal is on its way. A flow's packets come one after the other, since acknowledgements clock
//! them: the W of that time are those behind the signalled one in its burst, and those before its place in the next
//! burst, N W packets later. With m(x) the chance of a signal x packets after another, as a share of any packet's
//! ([`Gaps::again`]), and the signal anywhere in its burst,
//!
//! ```text
//! lost = p' W integral_0^1 (1 - y) (m(W y) + m(N W - W y)) dy
//! p' = p (1 + lost) / (1 + p W)
//! ```
//!
//! p the share that tosses take. m(W y) is nothing in a burst shorter than the least gap, and with so few flows that a
//! round trip is shorter nothing is lost at all. Each signal that counts is worth as much more: see
//! `MeanField::needing`.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Equilibrium, MaxPSteps, SignalGaps};

use crate::linear::noise::Fineness;
use crate::linear::{Controller, Loop, OperatingPoint};
use crate::noise::describing_function::{ClosedWithNoise, Curve, DescribingFunction, IN_DOUBT};
use crate::noise::mean_field::MeanField;
use crate::noise::pie_safeguard::PieSafeguard;
use crate::noise::signal_spacing::SignalSpacing;
use crate::noise::sources::SourcePowers;

/// Places at which the packets of a burst are looked at.
const PLACES: u32 = 32;
/// Rounds until the share agrees with what is lost at it; each halves what is missing.
const ROUNDS: u32 = 30;

/// Share of the packets that is signalled in fact, in that of tosses which holds the same windows of ns-2's Reno.
pub(crate) fn needed(at: &OperatingPoint, gaps: impl Fn(f64) -> Option<SignalGaps>) -> f64 {
    let OperatingPoint { probability, window_pkts, capacity_pps, rtt_s, .. } = *at;
    let (by_tosses, round_pkts) = (probability * window_pkts, capacity_pps * rtt_s);
    let mut needed = 1.0;
    for _ in 0..ROUNDS {
        let Some(gaps) = gaps(probability * needed) else { return 1.0 };
        let again = |k: u32| {
            let y = (f64::from(k) + 0.5) / f64::from(PLACES);
            (1.0 - y) * (gaps.renewal_density(window_pkts * y) + gaps.renewal_density(round_pkts - window_pkts * y))
        };
        let lost = by_tosses * needed * (0..PLACES).map(again).sum::<f64>() / f64::from(PLACES);
        needed = 0.5 * (needed + (1.0 + lost) / (1.0 + by_tosses));
    }
    needed
}

/// Queue under packet noise.
pub(crate) struct QueueNoise {
    /// Where it rests, with the share that is signalled in fact.
    pub(crate) at: OperatingPoint,
    /// The period of a sampled law, seconds.
    pub(crate) period_s: Option<f64>,
    /// Why its figures do not hold.
    pub(crate) doubt: Option<String>,
    shape: Shape,
}

/// AQM linearised at its operating point.
#[derive(Clone, Copy)]
pub(crate) struct LinearisedAqm<'a> {
    pub(crate) aqm: &'a AnyAqm,
    pub(crate) controller: &'a Controller,
    /// A factor on RED's curve.
    pub(crate) gain: f64,
    /// MaxPSteps of its maximum probability.
    pub(crate) steps: Option<MaxPSteps>,
}

/// By how much a deviation may go with the gain (see [`IN_DOUBT`]) and be told: the tolerance that predictions are held
/// to.
const FACTOR_MAX: f64 = 1.15;

/// Reason to reject a deviation that changes by this factor within the uncertainty of the gain.
fn doubt_of(factor: Option<f64>) -> Option<String> {
    let by = match factor {
        Some(factor) if factor <= FACTOR_MAX => return None,
        Some(factor) => format!("change this by a factor of {factor:.2}"),
        None => "make the loop oscillate".into(),
    };
    let percent = 100.0 * (IN_DOUBT - 1.0);
    Some(format!(
        "next to the boundary of stability: {percent:.0} % of the gain, within the model's uncertainty, would {by}"
    ))
}

/// Reason to reject a deviation where a larger one is consistent, too.
const BOTH: &str = "steps of max_p sustain a larger oscillation as well, which noise may excite for a while";

enum Shape {
    Loop(Box<Loop<MeanField>>),
    PieSafeguard(Box<PieSafeguard>),
}

impl QueueNoise {
    /// Whether it is for `aqm`: its signals are spaced, or answer an average, or packets of a short queue are spared.
    pub(crate) fn applies_to(aqm: &AnyAqm) -> bool {
        let theory = aqm.theory();
        let on_curve = matches!(theory.equilibrium(), Equilibrium::OnCurve(_));
        on_curve || theory.safeguard().is_some() || theory.signal_gaps(0.01).is_some()
    }

    /// Around `at`, of ns-2's Reno; the error says why there is nothing to tell.
    pub(crate) fn from_reno(said: &LinearisedAqm<'_>, at: &OperatingPoint, fineness: Fineness) -> Result<Self, String> {
        let needed = needed(at, |p| said.aqm.theory().signal_gaps(p));
        let field = MeanField::from_reno(at, fineness != Fineness::FINE).with_effectiveness(needed);
        QueueNoise::around(said, at, (field, needed))
    }

    /// Queue noise for the given mean field; `needed`: signal probability relative to Bernoulli signals.
    pub(crate) fn around(
        said: &LinearisedAqm<'_>,
        at: &OperatingPoint,
        (field, needed): (MeanField, f64),
    ) -> Result<Self, String> {
        let LinearisedAqm { aqm, controller, gain, steps } = *said;
        let at = OperatingPoint { probability: needed * at.probability, ..*at };
        let gaps = aqm.theory().signal_gaps(at.probability);
        let field = field.spaced(gaps.map(|gaps| SignalSpacing::new(gaps, at.capacity_pps)));
        if let (Equilibrium::OnCurve(law), Controller::Continuous { num, den }) =
            (aqm.theory().equilibrium(), controller)
        {
            // MaxPSteps bring max_p, and the slope with it, to where the share is that which is signalled.
            let curve = if steps.is_some() { Curve::Line(num[0] * needed) } else { Curve::Red(law, gain) };
            let averaged = DescribingFunction { curve, steps, probability: at.probability };
            let time_s = den.get(1).copied().unwrap_or(0.0);
            let what = if steps.is_some() { "steps of max_p" } else { "signals" };
            let found = averaged.close_around(&field, time_s, |w| field.power(w));
            let ClosedWithNoise { closed, doubt, stays } =
                found.ok_or_else(|| format!("noise makes its {what} oscillate"))?;
            let doubt = if stays { Some(BOTH.into()) } else { doubt_of(doubt) };
            return Ok(QueueNoise { at, period_s: None, doubt, shape: Shape::Loop(Box::new(closed)) });
        }
        let period_s = controller.period_s();
        let spares = aqm
            .theory()
            .safeguard()
            .filter(|s| aqm.theory().signal_process().law_probability(at.probability) < s.probability);
        let shape = match spares {
            Some(spares) => {
                let spared = PieSafeguard::around(&spares, &at, controller.clone(), field);
                Shape::PieSafeguard(Box::new(spared.ok_or("noise makes its signals oscillate")?))
            }
            // Images of the spectrum add little to noise.
            None => Shape::Loop(Box::new(Loop { images: 0, ..Loop::new(field, controller.clone()) })),
        };
        Ok(QueueNoise { at, period_s, doubt: None, shape })
    }

    /// Power of the queue at `w`, rad/s.
    pub(crate) fn power(&self, w: f64) -> f64 {
        match &self.shape {
            Shape::Loop(closed) => closed.plant.power(w) / (closed.response(w) + 1.0).norm_sqr(),
            Shape::PieSafeguard(spared) => spared.power(w),
        }
    }

    /// Powers of the sources at `w`, rad/s.
    pub(crate) fn source_powers(&self, w: f64) -> SourcePowers {
        match &self.shape {
            Shape::Loop(closed) => {
                let answered = (closed.response(w) + 1.0).norm_sqr();
                closed.plant.source_powers(w).map(|power| power / answered)
            }
            Shape::PieSafeguard(spared) => spared.source_powers(w),
        }
    }
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::GapTail;

    use super::*;
    use crate::fluid::Model;

    fn at(flows: f64) -> OperatingPoint {
        // Windows of 8: p = 1.7156 / 80 = .02145, p W = .1716.
        OperatingPoint::new(Model::Reno, flows, 1000.0, 0.0, 0.0, 8.0 * flows).unwrap()
    }

    fn even(p: f64) -> Option<SignalGaps> {
        Some(SignalGaps { least_pkts: 2.0 / (3.0 * p), tail: GapTail::Uniform(2.0 / (3.0 * p)) })
    }

    #[test]
    fn tosses_lose_what_the_closed_form_counts() {
        let tosses = |p: f64| Some(SignalGaps { least_pkts: 0.0, tail: GapTail::Exponential(1.0 / p) });
        assert!((needed(&at(40.0), tosses) - 1.0).abs() < 1e-3, "{}", needed(&at(40.0), tosses));
        assert_eq!(needed(&at(40.0), |_| None), 1.0);
    }

    #[test]
    fn gaps_are_those_of_the_share_that_is_signalled_in_fact() {
        let asked = std::cell::Cell::new(f64::NAN);
        let at = at(40.0);
        let found = needed(&at, |p| {
            asked.set(p);
            even(p)
        });
        assert!(found < 0.95 && (asked.get() / (at.probability * found) - 1.0).abs() < 1e-6, "{asked:?} {found}");
    }

    #[test]
    fn even_signals_of_many_flows_lose_half_and_those_of_few_none() {
        // None in the burst itself, half of all in the next one: p' = p (1 + p' W / 2) / (1 + p W),
        // p'/p = 1 / (1.1716 - .0858) = .921.
        assert!((needed(&at(400.0), even) - 0.921).abs() < 2e-3, "{}", needed(&at(400.0), even));
        // Three flows, 24 packets a round trip: no gap is shorter than 31. 1 / 1.1716.
        assert!((needed(&at(3.0), even) - 0.8536).abs() < 1e-3, "{}", needed(&at(3.0), even));
    }

    #[test]
    fn a_doubt_says_which_gain_does_what() {
        assert_eq!((doubt_of(Some(1.0)), doubt_of(Some(1.15))), (None, None));
        let [some, swings] = [Some(1.4), None].map(|factor| doubt_of(factor).unwrap());
        assert!(
            some.contains(": 5 % of the gain") && some.ends_with("would change this by a factor of 1.40"),
            "{some}"
        );
        assert!(swings.ends_with("would make the loop oscillate"), "{swings}");
    }
}
