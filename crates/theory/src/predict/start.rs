//! When the start before a window is over: the last change of the network, and how long the slowest mode takes.

use aqumen_scenario::{Plan, Window};
use aqumen_units::Instant;
use serde::Serialize;

/// The start before a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Start {
    /// Time at which it is over, seconds: 5 % are left of what the last change moved.
    pub over_s: f64,
    /// Time at which the window begins, seconds.
    pub window_begins_s: f64,
    /// Fraction of the window before the start is over.
    pub in_window: f64,
}

impl Start {
    /// The start before `window` at link `number`, of a loop that settles in `settling_s`.
    pub(super) fn new(plan: &Plan, number: usize, window: &Window, settling_s: f64) -> Self {
        let over_s = last_change(plan, number, window.start).as_secs_f64() + settling_s;
        let (begins_s, ends_s) = (window.start.as_secs_f64(), window.end.as_secs_f64());
        let part = (over_s - begins_s) / (ends_s - begins_s);
        Start { over_s, window_begins_s: begins_s, in_window: if part > 0.0 { part.min(1.0) } else { 0.0 } }
    }
}

/// Last time up to `until` at which a flow at link `number` starts or stops, or its rate changes.
fn last_change(plan: &Plan, number: usize, until: Instant) -> Instant {
    let here = plan.flows.iter().filter(|flow| flow.path.iter().any(|&link| link as usize == number));
    let flows = here.flat_map(|flow| flow.on.iter().flat_map(|&(from, to)| [Some(from), to])).flatten();
    let rates = plan.links[number].rates.iter().map(|&(at, _)| at);
    flows.chain(rates).filter(|at| *at <= until).max().unwrap_or(Instant::ZERO)
}
