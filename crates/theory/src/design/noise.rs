//! Packet noise around the equilibrium of a design.

use aqumen_aqm::Aqm;
use aqumen_scenario::AqmChoice;

use super::closed::{ClosedLoop, LinearLoop};
use crate::Error;
use crate::equilibrium::solver::{AqmEquilibrium, OperatingConditions, alone};
use crate::fluid::Model;
use crate::linear::noise::Fineness;
use crate::linear::{Controller, Loop, OperatingPoint, Plant, Resolution};
use crate::noise::mean_field::MeanField;
use crate::noise::packet_noise::{self, Noise, QueueBounds};
use crate::noise::spaced_signals::{LinearisedAqm, QueueNoise};

impl AqmEquilibrium {
    /// The queue that its figures are of.
    fn held(&self, conditions: &OperatingConditions) -> QueueBounds {
        QueueBounds { target_pkts: self.target_pkts, buffer_pkts: conditions.buffer_pkts }
    }

    /// Linearisation of the AQM with `controller`.
    fn linearised<'a>(&'a self, controller: &'a Controller) -> LinearisedAqm<'a> {
        LinearisedAqm { aqm: &self.built, controller, gain: 1.0, steps: self.adapted.and_then(|adapted| adapted.steps) }
    }
}

/// Whether packets of a short queue are spared at the rest of many windows, so that noise may calm a loop that is
/// unstable to small swings.
pub(super) fn is_safeguarded(equilibrium: &AqmEquilibrium, closed: &LinearLoop) -> bool {
    let theory = equilibrium.built.theory();
    let said = theory.signal_process().law_probability(equilibrium.at.probability);
    matches!(closed, LinearLoop::Many(_)) && theory.safeguard().is_some_and(|spares| said < spares.probability)
}

/// Packet noise of `choice` at `conditions`. `closed`: the loop, and whether it is stable.
pub(super) fn noise_around(
    choice: &AqmChoice,
    conditions: &OperatingConditions,
    equilibrium: &AqmEquilibrium,
    closed: Option<(bool, &LinearLoop)>,
) -> Noise {
    if conditions.model != Model::Reno {
        return noise_of(choice, conditions, Fineness::FINE);
    }
    let (held, at) = (equilibrium.held(conditions), &equilibrium.at);
    let Some((stable, closed)) = closed else { return Noise::around(held, at, None, Fineness::FINE) };
    let calmed = !stable && is_safeguarded(equilibrium, closed);
    if (stable || calmed) && QueueNoise::applies_to(&equilibrium.built) {
        let said = equilibrium.linearised(closed.controller());
        let around = match closed {
            LinearLoop::Mean(_) => QueueNoise::from_reno(&said, at, Fineness::FINE),
            LinearLoop::Many(closed) => QueueNoise::around(&said, at, (closed.plant.clone(), 1.0)),
        };
        return heard(held, around, Fineness::FINE);
    }
    match closed {
        LinearLoop::Mean(closed) => Noise::around(held, at, Some((stable, closed)), Fineness::FINE),
        LinearLoop::Many(closed) => {
            let plain = Loop { images: 0, ..(**closed).clone() };
            let powers = |w: f64| {
                let answered = (plain.response(w) + 1.0).norm_sqr();
                plain.plant.source_powers(w).map(|power| power / answered)
            };
            around_many(held, at, stable, closed).with_budget(at, powers)
        }
    }
}

/// Packet noise of a mean-field loop.
pub(crate) fn around_many(held: QueueBounds, at: &OperatingPoint, stable: bool, closed: &Loop<MeanField>) -> Noise {
    // Images of the spectrum add little to noise.
    let plain = Loop { images: 0, ..closed.clone() };
    let power = |w: f64| plain.plant.power(w) / (plain.response(w) + 1.0).norm_sqr();
    let noise = Noise::with_power(held, at, Some((stable, &power)), Fineness::FINE);
    noise.with_spectrum_of(at, plain.controller.period_s(), power)
}

/// Packet noise of an AQM whose signals are not Bernoulli trials.
pub(crate) fn heard(held: QueueBounds, heard: Result<QueueNoise, String>, fineness: Fineness) -> Noise {
    let heard = match heard {
        Ok(heard) => heard,
        Err(why) => return Noise::none(why),
    };
    let power = |w: f64| heard.power(w);
    let noise = Noise::with_power(held, &heard.at, Some((true, &power)), fineness);
    let noise = match fineness == Fineness::FINE {
        true => {
            noise.with_spectrum_of(&heard.at, heard.period_s, power).with_budget(&heard.at, |w| heard.source_powers(w))
        }
        false => noise,
    };
    match heard.doubt {
        Some(why) if noise.valid => noise.doubted(why),
        _ => noise,
    }
}

/// Packet noise of `choice` at `conditions`: of its sender, or of Reno's windows in the models of a mean window.
pub(crate) fn noise_of_sender(choice: &AqmChoice, conditions: &OperatingConditions, fineness: Fineness) -> Noise {
    if !conditions.has_many_windows() {
        return noise_of(choice, conditions, fineness);
    }
    match AqmEquilibrium::new(choice, conditions) {
        Err(error) => Noise::none(error.to_string()),
        Ok(equilibrium) => {
            let closed = ClosedLoop::new(&equilibrium, choice, conditions);
            let linear = closed.as_ref().map(|closed| (closed.is_stable(), &closed.linear));
            noise_around(choice, conditions, &equilibrium, linear)
        }
    }
}

/// Packet noise of `choice` at `conditions`, always with Reno's windows.
fn noise_of(choice: &AqmChoice, conditions: &OperatingConditions, fineness: Fineness) -> Noise {
    if conditions.model == Model::Drop {
        return Noise::from_losses();
    }
    let other_model = conditions.model != Model::Reno;
    let conditions = OperatingConditions { model: Model::Reno, ..*conditions };
    let equilibrium = match AqmEquilibrium::new(choice, &conditions) {
        Ok(equilibrium) => equilibrium,
        Err(error) => return Noise::none(error.to_string()),
    };
    let (held, at) = (equilibrium.held(&conditions), &equilibrium.at);
    let Some((controller, _)) = Controller::from_built(&equilibrium.built, choice, at) else {
        return Noise::around(held, at, None, fineness);
    };
    let closed = Loop::new(Plant::exact(at), controller);
    let stable = closed.margins_at(Resolution::COARSE).stable;
    if stable && QueueNoise::applies_to(&equilibrium.built) {
        return heard(held, QueueNoise::from_reno(&equilibrium.linearised(&closed.controller), at, fineness), fineness);
    }
    let noise = Noise::around(held, at, Some((stable, &closed)), fineness);
    if stable || !other_model {
        return noise;
    }
    // The margins beside it may say otherwise: they are those of another model.
    Noise { why: noise.why.map(|why| format!("in model reno, which predicts the noise: {why}")), ..noise }
}

/// Power of the queue at frequencies in rad/s under packet noise around the equilibrium of `choice` at `conditions`.
/// Model `reno` stands for those of a mean window.
pub fn noise_power(choice: &AqmChoice, conditions: &OperatingConditions, w: &[f64]) -> Result<Vec<f64>, Error> {
    let conditions = OperatingConditions { model: Model::Reno, ..*conditions };
    let (choice, _) = &alone(choice)?;
    let equilibrium = AqmEquilibrium::new(choice, &conditions)?;
    let at = &equilibrium.at;
    let closed = ClosedLoop::new(&equilibrium, choice, &conditions).ok_or_else(|| {
        Error::Unsupported("this AQM is no linear controller, or no probability holds the queue".into())
    })?;
    if QueueNoise::applies_to(&equilibrium.built) {
        let linearised = equilibrium.linearised(closed.linear.controller());
        let heard = match &closed.linear {
            LinearLoop::Mean(_) => QueueNoise::from_reno(&linearised, at, Fineness::FINE),
            LinearLoop::Many(closed) => QueueNoise::around(&linearised, at, (closed.plant.clone(), 1.0)),
        };
        let heard = heard.map_err(Error::Unsupported)?;
        return Ok(w.iter().map(|w| heard.power(*w)).collect());
    }
    Ok(match &closed.linear {
        LinearLoop::Mean(closed) => {
            let closed = Loop { images: 0, ..closed.clone() };
            let power = packet_noise::power(at, &closed, false);
            w.iter().map(|w| power(*w)).collect()
        }
        LinearLoop::Many(closed) => {
            let plain = Loop { images: 0, ..(**closed).clone() };
            w.iter().map(|&w| plain.plant.power(w) / (plain.response(w) + 1.0).norm_sqr()).collect()
        }
    })
}
