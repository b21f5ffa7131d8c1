//! Behaviour to expect of a design in a run: mean queue and oscillation.

use aqumen_result::SATURATION_FRACTION;
use aqumen_scenario::AqmChoice;
use serde::Serialize;

use super::LoopMargins;
use crate::Error;
use crate::equilibrium::solver::{AqmEquilibrium, OperatingConditions};
#[cfg(doc)]
use crate::nonlinear::cycle::LARGE_START;
use crate::nonlinear::cycle::{self, coexisting};

/// Behaviour to expect in a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Expectation {
    /// Mean queue, packets.
    pub queue_pkts: f64,
    /// Steady-state offset from the target, packets; null without a target.
    pub offset_pkts: Option<f64>,
    /// Share of the packets that are marked or lost; null where none holds the windows.
    pub probability: f64,
    /// How long a start lasts, seconds: until 5 % are left of a deviation in the slowest mode, of the probability, an
    /// oscillation, or the windows. Null for an unstable loop, or where no loop is known.
    pub settling_s: Option<f64>,
    /// Period of the oscillation that is to be expected, seconds, from a run of the nonlinear equations where there is
    /// one, else from where the phase is -180 degrees; null for a stable loop.
    pub oscillation_period_s: Option<f64>,
    /// Standard deviation of the queue in that oscillation, packets, from a run of the nonlinear equations; a sine
    /// swings by 1.41 times as much to either side.
    pub oscillation_std_pkts: Option<f64>,
    /// Packets that are signalled in a period of the oscillation: of M that chance takes as many more or fewer as the
    /// root of M, so that below [`SIGNALS_OF_A_CYCLE`] no two cycles are alike, in packets, and some runs have no
    /// period.
    pub oscillation_signals: Option<f64>,
    /// Period, seconds, of the limit cycle that coexists with a stable equilibrium: the nonlinear equations stay on it
    /// from [`LARGE_START`] times their equilibrium. Null where they return to it.
    pub coexisting_period_s: Option<f64>,
    /// Standard deviation of the queue in that cycle, packets.
    pub coexisting_std_pkts: Option<f64>,
    /// Whether packets are to be seen swinging of themselves: an unstable loop, or a stable one beside which a cycle
    /// stands above the noise, which then neither leaves the queue at its rest nor hides the cycle. Not where an AQM
    /// that spares packets of a short queue (PIE) ends the growth of a swing before its law is at a bound: noise hides
    /// that. Null where no loop is known, or of senders other than ns-2's Reno whether noise calms such an AQM.
    pub oscillates: Option<bool>,
}

/// Signals of which chance takes away, or adds, a third.
pub const SIGNALS_OF_A_CYCLE: f64 = 9.0;

impl Expectation {
    /// Expectation for `choice` at `conditions`, from its equilibrium and margins.
    pub(super) fn new(
        choice: &AqmChoice,
        conditions: &OperatingConditions,
        equilibrium: &mut AqmEquilibrium,
        margins: Option<&LoopMargins>,
    ) -> Result<Self, Error> {
        let at = equilibrium.at;
        let mut expected = Expectation::from_loop(conditions, equilibrium, margins);
        // The nonlinear equations are those of ns-2's Reno.
        let nonlinear = !conditions.has_many_windows();
        if let Some(period) = expected.oscillation_period_s {
            // Long enough for the start to be over, of which the last third is looked at.
            let duration = (60.0 * period).clamp(60.0, 600.0);
            if nonlinear && cycle::is_quick(&mut equilibrium.built, conditions, duration) {
                let cycle = cycle::cycle(choice, conditions, duration)?;
                expected.oscillation_std_pkts = Some(cycle.std_pkts);
                // The linear period is that of a small swing at the boundary of stability.
                expected.oscillation_period_s = cycle.period_s.or(Some(period));
                if cycle.spared > 0.0 && cycle.at_bound < SATURATION_FRACTION {
                    expected.oscillates = Some(false);
                }
            }
        }
        let signalled = |period: f64| at.tcp_pps() * at.probability.min(1.0) * period;
        expected.oscillation_signals = expected.oscillation_period_s.map(signalled);
        if let Some(margins) = margins.filter(|_| nonlinear && at.feasible)
            && let Some([real, _]) = margins.rightmost_root
            && let Some(cycle) = coexisting(choice, conditions, &at, (&margins.exact, real), &mut equilibrium.built)?
        {
            expected.coexisting_period_s = cycle.period_s;
            expected.coexisting_std_pkts = Some(cycle.std_pkts);
        }
        Ok(expected)
    }

    /// As the linear loop has it.
    fn from_loop(
        conditions: &OperatingConditions,
        equilibrium: &AqmEquilibrium,
        margins: Option<&LoopMargins>,
    ) -> Self {
        let at = &equilibrium.at;
        let queue_pkts = at.saturated_queue_pkts().unwrap_or(at.queue_pkts).clamp(0.0, conditions.buffer_pkts);
        let unstable = margins.filter(|margins| !margins.exact.stable);
        Expectation {
            queue_pkts,
            offset_pkts: equilibrium.target_pkts.map(|target| queue_pkts - target),
            probability: at.probability.min(1.0),
            settling_s: None,
            oscillation_period_s: unstable
                .and_then(|margins| margins.rightmost_root.map(|root| root[1]).or(margins.exact.phase_crossover_rad_s))
                .filter(|w| *w > 0.0)
                .map(|w| 2.0 * std::f64::consts::PI / w),
            oscillation_std_pkts: None,
            oscillation_signals: None,
            coexisting_period_s: None,
            coexisting_std_pkts: None,
            oscillates: margins.map(|margins| !margins.exact.stable),
        }
    }
}
