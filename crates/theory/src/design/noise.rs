//! What packets do around the rest of a design.

use aqumen_aqm::Aqm;
use aqumen_scenario::AqmChoice;

use super::closed::Around;
use crate::Error;
use crate::equilibrium::solver::{Place, Rested, alone};
use crate::fluid::Model;
use crate::linear::noise::Fineness;
use crate::linear::{Controller, Loop, OperatingPoint, Plant, Resolution};
use crate::noise::mean_field::Field;
use crate::noise::packet_noise::{self, Held, Noise};
use crate::noise::spaced_signals::{Heard, Said};

impl Rested {
    /// The queue that its figures are of.
    fn held(&self, place: &Place) -> Held {
        Held { target_pkts: self.target_pkts, buffer_pkts: place.buffer_pkts }
    }

    /// What it answers by `controller`.
    fn said<'a>(&'a self, controller: &'a Controller) -> Said<'a> {
        Said { aqm: &self.built, controller, gain: 1.0, steps: self.moved.and_then(|moved| moved.steps) }
    }
}

/// Whether packets of a short queue are spared at the rest of many windows, so that noise may calm a loop that is
/// unstable to small swings.
pub(super) fn spares_at_rest(rested: &Rested, closed: &Around) -> bool {
    let theory = rested.built.theory();
    let said = theory.share().law(rested.at.probability);
    matches!(closed, Around::Many(_)) && theory.spares().is_some_and(|spares| said < spares.probability)
}

/// What packets do around the rest of `choice` at `place`, in a loop and whether it is stable.
pub(super) fn noise_around(
    choice: &AqmChoice,
    place: &Place,
    rested: &Rested,
    closed: Option<(bool, &Around)>,
) -> Noise {
    if place.model != Model::Reno {
        return noise_of(choice, place, Fineness::FINE);
    }
    let (held, at) = (rested.held(place), &rested.at);
    let Some((stable, closed)) = closed else { return Noise::around(held, at, None, Fineness::FINE) };
    let calmed = !stable && spares_at_rest(rested, closed);
    if (stable || calmed) && Heard::is_for(&rested.built) {
        let said = rested.said(closed.controller());
        let around = match closed {
            Around::Mean(_) => Heard::of_reno(&said, at, Fineness::FINE),
            Around::Many(closed) => Heard::around(&said, at, (closed.plant.clone(), 1.0)),
        };
        return heard(held, around, Fineness::FINE);
    }
    match closed {
        Around::Mean(closed) => Noise::around(held, at, Some((stable, closed)), Fineness::FINE),
        Around::Many(closed) => around_many(held, at, stable, closed),
    }
}

/// What packets do around the rest of many windows.
pub(crate) fn around_many(held: Held, at: &OperatingPoint, stable: bool, closed: &Loop<Field>) -> Noise {
    // Images of the spectrum add little to noise.
    let plain = Loop { images: 0, ..closed.clone() };
    let power = |w: f64| plain.plant.power(w) / (plain.response(w) + 1.0).norm_sqr();
    let noise = Noise::with_power(held, at, Some((stable, &power)), Fineness::FINE);
    noise.with_spectrum_of(at, plain.controller.period_s(), power)
}

/// What packets do around the rest of an AQM whose signals are not tosses.
pub(crate) fn heard(held: Held, heard: Result<Heard, String>, fineness: Fineness) -> Noise {
    let heard = match heard {
        Ok(heard) => heard,
        Err(why) => return Noise::none(why),
    };
    let power = |w: f64| heard.power(w);
    let noise = Noise::with_power(held, &heard.at, Some((true, &power)), fineness);
    let noise =
        if fineness == Fineness::FINE { noise.with_spectrum_of(&heard.at, heard.period_s, power) } else { noise };
    match heard.doubt {
        Some(why) if noise.valid => noise.doubted(why),
        _ => noise,
    }
}

/// What packets do around the rest of `choice` at `place`, as Reno's windows have it whatever the model there.
pub(crate) fn noise_of(choice: &AqmChoice, place: &Place, fineness: Fineness) -> Noise {
    if place.model == Model::Drop {
        return Noise::of_losses();
    }
    let other_model = place.model != Model::Reno;
    let place = Place { model: Model::Reno, ..*place };
    let rested = match Rested::of(choice, &place) {
        Ok(rested) => rested,
        Err(error) => return Noise::none(error.to_string()),
    };
    let (held, at) = (rested.held(&place), &rested.at);
    let Some((controller, _)) = Controller::of_built(&rested.built, choice, at) else {
        return Noise::around(held, at, None, fineness);
    };
    let closed = Loop::new(Plant::exact(at), controller);
    let stable = closed.margins_at(Resolution::COARSE).stable;
    if stable && Heard::is_for(&rested.built) {
        return heard(held, Heard::of_reno(&rested.said(&closed.controller), at, fineness), fineness);
    }
    let noise = Noise::around(held, at, Some((stable, &closed)), fineness);
    if stable || !other_model {
        return noise;
    }
    // The margins beside it may say otherwise: they are those of another model.
    Noise { why: noise.why.map(|why| format!("in model reno, by which noise is told: {why}")), ..noise }
}

/// Power of the queue at frequencies in rad/s as packets make it around the rest of `choice` at `place`, in Reno's
/// windows.
pub fn noise_power(choice: &AqmChoice, place: &Place, w: &[f64]) -> Result<Vec<f64>, Error> {
    let place = Place { model: Model::Reno, ..*place };
    let (choice, _) = &alone(choice)?;
    let rested = Rested::of(choice, &place)?;
    let at = &rested.at;
    let (controller, _) = Controller::of_built(&rested.built, choice, at)
        .ok_or_else(|| Error::Unsupported("this AQM is no linear controller".into()))?;
    if Heard::is_for(&rested.built) {
        let heard = Heard::of_reno(&rested.said(&controller), at, Fineness::FINE).map_err(Error::Unsupported)?;
        return Ok(w.iter().map(|w| heard.power(*w)).collect());
    }
    let closed = Loop { images: 0, ..Loop::new(Plant::exact(at), controller) };
    let power = packet_noise::power(at, &closed, false);
    Ok(w.iter().map(|w| power(*w)).collect())
}
