//! Bindings for browsers by wasm-bindgen: linear analysis of an AQM on a scenario. A page loads this module when it
//! first shows a frequency response.

use aqumen_scenario::{AqmChoice, Files, Scenario};
use aqumen_theory::design::{self, OperatingConditions};
use aqumen_theory::fluid::Model;
use aqumen_theory::linear::{Controller, Loop, OperatingPoint, Plant};
use aqumen_theory::maps::{self, Axis};
use serde_json::json;
use wasm_bindgen::prelude::*;

/// Returns an exception with the message of `error`.
fn refuse(error: impl std::fmt::Display) -> JsError {
    JsError::new(&error.to_string())
}

/// Linear loop of an AQM, designed for the nominal network of a scenario, under conditions that may have moved since.
#[wasm_bindgen]
pub struct Analysis {
    choice: AqmChoice,
    conditions: OperatingConditions,
    at: OperatingPoint,
    open_loop: Loop,
}

#[wasm_bindgen]
impl Analysis {
    /// Linearises the AQM of a SPEC on the first link under test of `text`, with `flows` flows at `rate_bps`.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &str, aqm: &str, flows: f64, rate_bps: f64) -> Result<Analysis, JsError> {
        let scenario = Scenario::parse_with(text, "scenario", Files::in_memory([])).map_err(refuse)?;
        let spec = scenario.aqm(aqm).map_err(refuse)?;
        let plan = scenario.plan(1, Some(&spec)).map_err(refuse)?;
        let link = plan.links.into_iter().find(|link| link.record);
        let choice = link.ok_or_else(|| JsError::new("no link is recorded"))?.aqm.clone();
        let network = &choice.network;
        let conditions = OperatingConditions {
            model: Model::Reno,
            flows,
            capacity_pps: rate_bps / 8.0 / network.packet_bytes,
            unresponsive_pps: 0.0,
            transfer_rtts: 0.0,
            base_rtt_s: network.base_rtt_s,
            buffer_pkts: network.buffer_pkts,
            sender: aqumen_theory::response::Sender::reno(),
        };
        let (at, controller) = design::linearise(&choice, &conditions).map_err(refuse)?;
        let controller: Controller = controller
            .ok_or_else(|| JsError::new("this AQM is not a linear controller: it has no frequency response"))?;
        let open_loop = Loop::new(Plant::exact(&at), controller);
        Ok(Analysis { choice, conditions, at, open_loop })
    }

    /// Returns JSON: the margins, the round-trip time and the queue at the operating point.
    pub fn margins(&self) -> String {
        json!({ "margins": self.open_loop.margins(), "rtt_s": self.at.rtt_s, "queue_pkts": self.at.queue_pkts })
            .to_string()
    }

    /// Returns the frequency response of the open loop at `w` in rad/s: all real parts, then all imaginary parts.
    pub fn response(&self, w: Vec<f64>) -> Vec<f64> {
        let (re, im): (Vec<f64>, Vec<f64>) =
            w.into_iter().map(|w| self.open_loop.response(w)).map(|z| (z.re, z.im)).unzip();
        re.into_iter().chain(im).collect()
    }

    /// Returns the stability over all pairs of a number of flows and a base round-trip time (seconds), flows first: 0
    /// for an unstable loop, 1 for a stable one, 2 where there is no operating point.
    pub fn map(&self, flows: Vec<f64>, rtt_s: Vec<f64>) -> Result<Vec<u8>, JsError> {
        let map = maps::map(&self.choice, &self.conditions, (Axis::Flows, &flows), (Axis::Rtt, &rtt_s), 1);
        let points = map.map_err(refuse)?.points;
        Ok(points.iter().map(|point| if point.feasible { point.margins.stable.into() } else { 2 }).collect())
    }

    /// Returns the base round-trip time of the network, seconds.
    pub fn base_rtt_s(&self) -> f64 {
        self.conditions.base_rtt_s
    }
}
