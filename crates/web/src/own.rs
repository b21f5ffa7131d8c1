//! A control law written in the page: the mirror of [`SampledLaw`] in JavaScript, called through two functions of the
//! worker. Each instance has a number; the worker keeps the state.

use aqumen_aqm::{Algorithm, AnyAqm, Catalogue, MAX_LOOPS, NameTakenError, Observation, Param, ParamError, SampledLaw};
use aqumen_scenario::Extensions;
use aqumen_units::{Probability, Span};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// Makes an instance for a network of this capacity (packets/s), number of flows, base round-trip time and target;
    /// returns its number and its period in seconds.
    #[wasm_bindgen(js_name = aqumenOwnMake)]
    fn make(capacity_pps: f64, flows: f64, base_rtt_s: f64, target_pkts: f64) -> Vec<f64>;
    /// Copies an instance; returns the number of the copy.
    #[wasm_bindgen(js_name = aqumenOwnCopy)]
    fn copy(number: f64) -> f64;
    /// Steps an instance with the numbers of an observation; returns the probability, from 0 to 1.
    #[wasm_bindgen(js_name = aqumenOwnStep)]
    fn step(number: f64, observation: &[f64]) -> f64;
}

/// Instance of the page's law.
struct OwnLaw {
    number: f64,
    period: Span,
}

impl Clone for OwnLaw {
    fn clone(&self) -> Self {
        OwnLaw { number: copy(self.number), period: self.period }
    }
}

impl SampledLaw for OwnLaw {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(self.period), None]
    }

    fn step(&mut self, _which: usize, seen: &Observation) -> Probability {
        Probability::clamp(step(self.number, &seen.numbers()))
    }
}

/// Returns the built-in AQMs and the page's law as `own`.
pub(crate) fn catalogue() -> Result<Extensions, NameTakenError> {
    let algorithm = Algorithm {
        name: "own",
        title: "Law of the page",
        summary: "the control law in the editor of the page",
        reference: "-",
        params: &[Param::ECN],
    };
    let build = |settings: &aqumen_aqm::Settings<'_>, network: &aqumen_aqm::Network| -> Result<AnyAqm, ParamError> {
        let made = make(network.capacity_pps(), network.flows, network.base_rtt_s, network.target_pkts);
        let law = OwnLaw { number: made[0], period: Span::from_secs_f64(made[1]) };
        Ok(AnyAqm::custom_law(law, settings.flag("ecn").unwrap_or(true)))
    };
    Ok(Catalogue::BUILT_IN.with(algorithm, build)?.into())
}
