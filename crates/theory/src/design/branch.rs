//! Hopf branches of the laws for which they are known: cycles that leave an equilibrium at the boundary of stability.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Equilibrium};
use aqumen_scenario::AqmChoice;

use crate::equilibrium::solver::OperatingConditions;
use crate::linear::{Controller, Margins, OperatingPoint};
use crate::nonlinear::hopf::{self, Hopf};

/// Laws that answer large swings as they do small ones, up to their bounds.
const LINEAR_LAWS: [&str; 4] = ["pi", "arm-pfc", "aqm-mo", "red"];
/// Stretches of RED's curve above its upper threshold.
const KNOTS: u32 = 16;

/// The cycles that leave the rest of a linear law where its loop becomes unstable.
pub(crate) fn branch(
    choice: &AqmChoice,
    built: &AnyAqm,
    (at, conditions): (&OperatingPoint, &OperatingConditions),
    controller: &Controller,
    margins: &Margins,
) -> Option<Hopf> {
    let line = match built.theory().equilibrium() {
        // The slope that RED has at rest is taken over a tenth of the way from its lower threshold.
        Equilibrium::OnCurve(red) => 1.1 * at.queue_pkts - 0.1 * red.curve.min_th() < red.curve.max_th(),
        _ => true,
    };
    (line && LINEAR_LAWS.contains(&choice.name.as_str()))
        .then(|| hopf::hopf(at, controller, margins, conditions.buffer_pkts, &beyond_line(built, at, controller)))?
}

/// Excess of RED's curve over its tangent at `at`, above the upper threshold: distances from the probability there,
/// and how much more.
fn beyond_line(aqm: &AnyAqm, at: &OperatingPoint, controller: &Controller) -> Vec<(f64, f64)> {
    let (Equilibrium::OnCurve(red), Controller::Continuous { num, .. }) = (aqm.theory().equilibrium(), controller)
    else {
        return Vec::new();
    };
    let (top, end) = (red.curve.max_th(), red.curve.end());
    let far = |average: f64| num[0] * (average - at.queue_pkts);
    let line_at_top = at.probability + far(top);
    // The share goes in small jumps: it is taken at some averages, and lines between.
    let knot = |k: u32| {
        let average = top + (end - top) * f64::from(k) / f64::from(KNOTS);
        let more = if k == 0 { 0.0 } else { red.probability(average) - (line_at_top + far(average) - far(top)) };
        (far(average), more)
    };
    (0..=KNOTS).map(knot).collect()
}
