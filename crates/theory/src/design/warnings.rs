//! Warnings: what speaks against a design where it is to work.

use aqumen_aqm::{Aqm, QueueOperatingPoint};

use super::{Expectation, SIGNALS_OF_A_CYCLE};
use crate::equilibrium::solver::{AqmEquilibrium, OperatingConditions};
use crate::linear::{Controller, Margins, OperatingPoint};
use crate::nonlinear::cycle::LARGE_START;

/// Windows below this hardly ever repair a loss without a time-out: three duplicate acknowledgements need four packets.
const WINDOW_OF_TIMEOUTS: f64 = 4.0;

/// Warnings about an AQM's equilibrium; `seen`: the operating point in the AQM's units.
pub(super) fn at_equilibrium(
    equilibrium: &AqmEquilibrium,
    seen: &QueueOperatingPoint,
    conditions: &OperatingConditions,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let at = &equilibrium.at;
    let window = at.window_pkts;
    if !at.feasible {
        let queue = at.saturated_queue_pkts().unwrap_or(f64::NAN);
        warnings.push(format!(
            "out of reach: p0 = {:.3} is above 1; with every packet marked the queue settles at {queue:.1} packets",
            at.probability
        ));
    }
    if window < WINDOW_OF_TIMEOUTS {
        warnings.push(format!(
            "windows of {window:.2} packets: too small to repair a loss without a time-out, which the model does not have"
        ));
    }
    warnings.extend(equilibrium.built.theory().equilibrium_warning(seen));
    if let Some(target) = equilibrium.target_pkts.filter(|target| *target >= conditions.buffer_pkts) {
        warnings
            .push(format!("the target of {target} packets does not fit into a buffer of {}", conditions.buffer_pkts));
    }
    warnings
}

/// Warnings about the loop, from its margins and its expected behaviour.
pub(super) fn in_loop(equilibrium: &AqmEquilibrium, exact: &Margins, expected: &Expectation) -> Vec<String> {
    let mut warnings = Vec::new();
    if !exact.stable {
        let gains = match (exact.gain_margin_low, exact.gain_margin) {
            (None, None) => "at any gain".into(),
            (None, Some(high)) => format!("gain margin {high:.3}"),
            (Some(low), None) => format!("stable from {low:.3} times this gain on"),
            (Some(low), Some(high)) => format!("stable from {low:.3} to {high:.3} times this gain"),
        };
        let period = expected.oscillation_period_s.map_or(String::new(), |period| format!(" of about {period:.2} s"));
        let what = match expected.oscillates {
            Some(false) => {
                "an irregular, small oscillation, since PIE's safeguard exempts packets of a short queue,".into()
            }
            None => "a limit cycle or, since PIE's safeguard exempts packets of a short queue, a steady queue".into(),
            Some(true) => format!("a limit cycle{period}"),
        };
        warnings.push(format!("unstable: {gains}, {what} is to be expected"));
        if let Some(signals) = expected.oscillation_signals.filter(|signals| *signals < SIGNALS_OF_A_CYCLE) {
            warnings.push(format!(
                "{signals:.1} packets are signalled in a period: period and amplitude of the oscillation are random"
            ));
        }
        return warnings;
    }
    if let (Some(period), Some(deviation)) = (expected.coexisting_period_s, expected.coexisting_std_pkts) {
        warnings.push(format!(
            "stable for small perturbations only: from {LARGE_START:.0} times its equilibrium a limit cycle of about {period:.2} s stays, of {deviation:.0} packets"
        ));
    }
    if exact.gain_margin.is_some_and(|gain| gain < 1.8) || exact.phase_margin_deg.is_some_and(|phase| phase < 25.0) {
        warnings.push(format!(
            "little margin: gain {:.2}, phase {:.1} degrees",
            exact.gain_margin.unwrap_or(f64::INFINITY),
            exact.phase_margin_deg.unwrap_or(f64::NAN)
        ));
    }
    warnings.extend(exact.delay_margin_s.and_then(|delay| equilibrium.built.theory().delay_margin_warning(delay)));
    warnings
}

/// Changes of p after one signal, as multiples of p, above which p is at 0 after most signals.
const ONE_SIGNAL_MAX: f64 = 1.0;

/// Warning about a law whose answer to a single signal is larger than its probability. One signal halves a window,
/// which takes W/2 packets off the queue within a round trip; the law answers with |C(j/R0)| W/2, C its response.
/// Where that is more than p, p falls to 0 at each signal, and the linear loop is not that of packets.
pub(super) fn large_windows(controller: &Controller, at: &OperatingPoint) -> Option<String> {
    if !at.feasible {
        return None;
    }
    let answer = controller.response(1.0 / at.rtt_s);
    let times = 0.5 * at.window_pkts * libm::hypot(answer.re, answer.im) / at.probability;
    (times > ONE_SIGNAL_MAX).then(|| {
        format!(
            "one signal takes {:.0} packets off the queue, and the law answers with {times:.1} times its probability: \
             linear margins and noise say little about packets",
            0.5 * at.window_pkts
        )
    })
}
