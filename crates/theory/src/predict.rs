//! Predictions for a scenario at equilibrium, window by window, without a run.
//!
//! Every flow is counted at the link that leaves it the least capacity; the flows counted at a link, its capacity and
//! their base RTT are taken as averages over the window. Unresponsive load that gets in takes its part of the capacity.
//! The operating point there is the answer; whether the loop is stable there says how far to trust it.

mod at_link;
mod coupled;
mod groups;
mod laws;
mod link;
mod paths;
mod shared;
mod start;
#[cfg(test)]
mod testing;
mod transfers;
pub(crate) mod users;

use aqumen_scenario::Plan;
use indexmap::IndexMap;

use self::at_link::at_link;
pub use self::link::{LinkPrediction, Prediction};
use self::shared::at_several;
pub use self::start::Start;
use self::transfers::ShortTransfers;
use crate::Error;
use crate::design::{Analysis, Depth, analyse_to};
use crate::equilibrium::response::Sender;
use crate::equilibrium::solver::OperatingConditions;
use crate::fluid::unresponsive;

/// Predicts each recorded link of `plan` in each window; of links that are more
/// than a wire nothing is known.
pub fn predict(plan: &Plan) -> Result<Prediction, Error> {
    predict_to(Depth::Loop, plan)
}

/// As [`predict`], with analyses that go no further than `depth`.
pub fn predict_to(depth: Depth, plan: &Plan) -> Result<Prediction, Error> {
    crate::fluid::known_applications(plan, |group| ShortTransfers::new(group).is_some())?;
    for group in plan.groups.iter().filter(|group| unresponsive(group).is_none()) {
        Sender::from_protocol(&group.transport).map_err(|why| {
            let law = group.transport.congestion().unwrap_or("none");
            Error::Unsupported(format!("group {}: congestion = \"{law}\": {why}; use engine packet", group.name))
        })?;
    }
    let mut together: Vec<Vec<(usize, LinkPrediction)>> = Vec::new();
    for window in &plan.windows {
        together.push(at_several(plan, window, depth)?);
    }
    let mut prediction = Prediction::new();
    for (number, link) in plan.links.iter().enumerate().filter(|(_, link)| link.record && link.line.is_none()) {
        let mut windows = IndexMap::new();
        // Windows often see one network.
        let mut known: Vec<(OperatingConditions, Analysis)> = Vec::new();
        for (window, together) in plan.windows.iter().zip(&together) {
            if let Some((_, found)) = together.iter().find(|(several, _)| *several == number) {
                windows.insert(window.name.clone(), found.clone());
                continue;
            }
            let mut analysed = |place: &OperatingConditions| match known.iter().find(|(seen, _)| seen == place) {
                Some((_, analysis)) => Ok(analysis.clone()),
                None => {
                    let analysis = analyse_to(depth, &link.aqm, place)?;
                    known.push((*place, analysis.clone()));
                    Ok(analysis)
                }
            };
            let mut found = at_link(plan, number, window, &mut analysed)?;
            let settling_s = found.analysis.as_ref().and_then(|analysis| analysis.expected.settling_s);
            found.start = settling_s.map(|settling_s| Start::new(plan, number, window, settling_s));
            windows.insert(window.name.clone(), found);
        }
        prediction.insert(link.name.to_string(), windows);
    }
    Ok(prediction)
}
