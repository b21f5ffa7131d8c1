//! The loop that an AQM closes around its rest, and its margins.

use aqumen_aqm::Aqm;
use aqumen_aqm::registry::AnyAqm;
use aqumen_scenario::AqmChoice;
use serde::Serialize;

use crate::Error;
use crate::equilibrium::sender::Sender;
use crate::equilibrium::solver::{AqmEquilibrium, OperatingConditions, alone, coupling_of};
use crate::linear::{
    Complex64, Controller, FrequencyResponse, Loop, Margins, OperatingPoint, Plant, Resolution, rightmost, settling_s,
    spectral_radius,
};
use crate::noise::mean_field::MeanField;

/// Margins of the loop with the textbook's plant, which the design rules shape; beside them those with the exact plant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoopMargins {
    /// With the textbook's plant.
    #[serde(flatten)]
    pub textbook: Margins,
    /// With the exact linearisation of the fluid model.
    pub exact: Margins,
    /// Largest pole of the sampled loop with the textbook's plant; null for a controller that is not sampled.
    pub spectral_radius: Option<f64>,
    /// Rightmost root with the exact plant, real and imaginary part, 1/s; of a sampled loop ln z / T.
    pub rightmost_root: Option<[f64; 2]>,
    /// How the controller was found: `equation` or `probe`.
    pub controller: &'static str,
}

/// Plant of a network around an equilibrium, from signal probability to queue.
#[derive(Clone, Debug)]
pub struct NetworkPlant(PlantKind);

#[derive(Clone, Debug)]
enum PlantKind {
    Mean(Plant),
    Many(Box<MeanField>),
}

impl NetworkPlant {
    /// Plant at `at`; `None` where senders that have many windows cannot fill the link with any signal probability.
    pub(crate) fn new(aqm: &AnyAqm, conditions: &OperatingConditions, at: &OperatingPoint) -> Option<Self> {
        match conditions.has_many_windows() {
            false => Some(NetworkPlant(PlantKind::Mean(Plant::exact(at)))),
            true if !at.feasible => None,
            true => Some(NetworkPlant(PlantKind::Many(Box::new(field_of(aqm, conditions, at))))),
        }
    }

    /// Plant at `at` with Bernoulli signals, as of PI.
    pub(crate) fn of_bernoulli_signals(conditions: &OperatingConditions, at: &OperatingPoint) -> Option<Self> {
        match conditions.has_many_windows() {
            false => Some(NetworkPlant(PlantKind::Mean(Plant::exact(at)))),
            true if !at.feasible => None,
            true => {
                let class = (conditions.sender, at.flows, [at.probability, 1.0], at.rtt_s, at.window_pkts);
                let field = MeanField::from_one_queue(at.capacity_pps, 1.0, &[class]);
                Some(NetworkPlant(PlantKind::Many(Box::new(field))))
            }
        }
    }

    /// The two equations of a mean window; `None` of many windows.
    pub fn equations(&self) -> Option<&Plant> {
        if let PlantKind::Mean(plant) = &self.0 { Some(plant) } else { None }
    }

    /// The textbook's plant at `at`.
    pub fn textbook(at: &OperatingPoint) -> Self {
        NetworkPlant(PlantKind::Mean(Plant::textbook(at)))
    }

    /// The many windows of a sender.
    pub(crate) fn field(&self) -> Option<&MeanField> {
        if let PlantKind::Many(field) = &self.0 { Some(field) } else { None }
    }
}

impl FrequencyResponse for NetworkPlant {
    fn response(&self, w: f64) -> Complex64 {
        match &self.0 {
            PlantKind::Mean(plant) => plant.response(w),
            PlantKind::Many(field) => field.response(w),
        }
    }

    fn dc_gain(&self) -> f64 {
        match &self.0 {
            PlantKind::Mean(plant) => plant.dc_gain(),
            PlantKind::Many(field) => field.dc_gain(),
        }
    }

    fn delay_s(&self) -> f64 {
        match &self.0 {
            PlantKind::Mean(plant) => plant.delay_s,
            PlantKind::Many(field) => field.delay_s(),
        }
    }

    fn window_lag_s(&self) -> f64 {
        match &self.0 {
            PlantKind::Mean(plant) => plant.window_lag_s(),
            PlantKind::Many(field) => field.window_lag_s(),
        }
    }
}

/// Operating point, controller and plant of an AQM in a network.
#[derive(Clone, Debug)]
pub struct OpenLoop {
    /// The equilibrium.
    pub at: OperatingPoint,
    /// The AQM's controller; `None` if it is not linear.
    pub controller: Option<Controller>,
    /// The plant; `None` where no signal probability lets many windows fill the link.
    pub plant: Option<NetworkPlant>,
}

/// Operating point, controller and plant of `choice` at `conditions`.
pub fn open_loop(choice: &AqmChoice, conditions: &OperatingConditions) -> Result<OpenLoop, Error> {
    let (choice, _) = &alone(choice)?;
    let AqmEquilibrium { built, at, .. } = AqmEquilibrium::new(choice, conditions)?;
    let law_at = match conditions.has_many_windows() {
        true => at_law(&built, &conditions.sender, &at),
        false => at,
    };
    let controller = Controller::from_built(&built, choice, &law_at).map(|(controller, _)| controller);
    Ok(OpenLoop { plant: NetworkPlant::new(&built, conditions, &at), at, controller })
}

/// The loop with the exact plant.
pub(super) struct ClosedLoop {
    pub(super) linear: LinearLoop,
    /// Whether its controller was found by a probe, not from its equations.
    probed: bool,
}

/// Plant model of the loop.
pub(super) enum LinearLoop {
    /// The linearised equations of a mean window.
    Mean(Loop),
    /// The many windows of a sender with a response function.
    Many(Box<Loop<MeanField>>),
}

impl ClosedLoop {
    /// Closed loop around the equilibrium of `choice` at `conditions`; `None` of an AQM that is no linear controller.
    pub(super) fn new(
        equilibrium: &AqmEquilibrium,
        choice: &AqmChoice,
        conditions: &OperatingConditions,
    ) -> Option<Self> {
        let AqmEquilibrium { built, at, .. } = equilibrium;
        let many = conditions.has_many_windows();
        if many && !at.feasible {
            return None;
        }
        let (controller, probe) = Controller::from_built(built, choice, &at_law(built, &conditions.sender, at))?;
        let linear = match many {
            true => LinearLoop::Many(Box::new(Loop::new(field_of(built, conditions, at), controller))),
            false => LinearLoop::Mean(Loop::new(Plant::exact(at), controller)),
        };
        Some(ClosedLoop { linear, probed: probe.is_some() })
    }

    /// Whether it is stable.
    pub(super) fn is_stable(&self) -> bool {
        match &self.linear {
            LinearLoop::Mean(closed) => closed.margins_at(Resolution::COARSE).stable,
            LinearLoop::Many(closed) => closed.margins_at(Resolution::COARSE).stable,
        }
    }

    /// Settling time of a loop with these margins, seconds; `None` of an unstable one.
    pub(super) fn settling_s(&self, margins: &Margins) -> Option<f64> {
        match &self.linear {
            LinearLoop::Mean(closed) => settling_s(closed, margins),
            LinearLoop::Many(closed) => settling_s(closed, margins),
        }
    }

    /// Its margins, and beside them those with the textbook's plant at `at`.
    pub(super) fn margins(&self, at: &OperatingPoint) -> LoopMargins {
        let controller = self.linear.controller();
        // Of many windows the rightmost root is not looked for.
        let (exact, root) = match &self.linear {
            LinearLoop::Mean(closed) => (closed.margins(), rightmost(closed)),
            LinearLoop::Many(closed) => (closed.margins(), None),
        };
        LoopMargins {
            textbook: Loop::new(Plant::textbook(at), controller.clone()).margins(),
            exact,
            spectral_radius: spectral_radius(at, controller, at.rtt_s),
            rightmost_root: root.map(|root| [root.re, root.im]),
            controller: if self.probed { "probe" } else { "equation" },
        }
    }
}

impl LinearLoop {
    pub(super) fn controller(&self) -> &Controller {
        match self {
            LinearLoop::Mean(closed) => &closed.controller,
            LinearLoop::Many(closed) => &closed.controller,
        }
    }
}

/// The operating point as a law sees it that marks `sender`'s packets with k times the root of what it says.
fn at_law(aqm: &AnyAqm, sender: &Sender, at: &OperatingPoint) -> OperatingPoint {
    let probability = coupling_of(aqm, sender).map_or(at.probability, |k| (at.probability / k) * (at.probability / k));
    OperatingPoint { probability, ..*at }
}

/// Many windows of one sender at an operating point.
fn field_of(aqm: &AnyAqm, conditions: &OperatingConditions, at: &OperatingPoint) -> MeanField {
    let OperatingConditions { ref sender, transfer_rtts, .. } = *conditions;
    // p_L = k sqrt(p): its slope is k / (2 sqrt(p)) = k^2 / (2 p_L).
    let slope = coupling_of(aqm, sender).map_or(1.0, |k| 0.5 * k * k / at.probability);
    let dispersion = aqm.theory().dispersion(at_law(aqm, sender, at).probability);
    MeanField::from_one_queue(
        at.capacity_pps,
        dispersion,
        &[(*sender, at.flows, [at.probability, slope], at.rtt_s, at.window_pkts)],
    )
    .with_transfers(at.unresponsive_pps / at.capacity_pps, transfer_rtts * at.rtt_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::equilibrium::response::Law;
    use crate::fluid::Model;
    use crate::testing::{CONDITIONS, NETWORK, built, choice};

    #[test]
    fn a_coupled_law_answers_by_the_slope_of_its_root() {
        let [pi2, pi] = ["pi2", "pi"].map(|name| built(&choice(name, &[], NETWORK)));
        let prague = Sender { law: Law::Prague, proportional: true, min_window: 2.0, paced: true, ..Sender::reno() };
        let at = OperatingPoint::new(Model::Reno, 100.0, 1250.0, 0.0, 0.2, 100.0).unwrap().with_sender(&prague);
        let of_prague = OperatingConditions { sender: prague, ..CONDITIONS };
        // p_L = 2 sqrt(p): the law says p = (p_L / 2)^2, a little more of it is 2 / (2 sqrt(p)) = 2 / p_L more of p_L.
        let law = at_law(&pi2, &prague, &at).probability;
        assert!((law - at.probability * at.probability / 4.0).abs() < 1e-15);
        assert_eq!(at_law(&pi, &prague, &at).probability, at.probability);
        let [coupled, plain] = [&pi2, &pi].map(|aqm| field_of(aqm, &of_prague, &at).dc_gain());
        assert!((coupled / plain / (2.0 / at.probability) - 1.0).abs() < 1e-9, "{coupled} {plain} {at:?}");
        // Reno's packets are marked with what it says.
        assert_eq!(at_law(&pi2, &Sender::reno(), &at).probability, at.probability);
    }
}
