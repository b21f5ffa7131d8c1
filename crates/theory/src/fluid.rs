//! The fluid engine: averages of windows and queues as delay differential equations.
//!
//! With t_d = t - R(t), R(t) = base RTT + sum of q / C along the path, and subscript d for "at t_d":
//!
//! ```text
//! hollot:     dW/dt = 1/R - (W/2) (W_d/R_d) p_d                        dq/dt = N W/R + u0 - C
//! ecn:        dW/dt = (1 - p_d) W_d/(R_d W) - (W/2) (W_d/R_d) p_d      dq/dt = N W/R + u0 - C
//! drop:       dW/dt as ecn                                             dq/dt = (1 - p) (N W/R + u0) - C
//! ```
//!
//! `hollot` is Misra, Gong, Towsley (2000) as the ARM-PFC paper prints it in eq. (1); `ecn` counts acknowledgements,
//! which matters when p is not small; in `drop` the queue does not see what the AQM discards. At a full buffer the
//! excess is lost, p_ov = 1 - C / inflow, and senders see 1 - (1-p)(1-p_ov). The AQM is the same object as in the
//! packet engine, stepped at its own periods; between two steps p is held. RED follows the law that its decisions obey
//! on average; an algorithm without any law is asked for evenly spaced packets.
//!
//! UDP of a known mean rate is a class without a window: a constant inflow while it is on, of
//! which every AQM drops its p.
//!
//! [`run`] takes a plan; [`Network`] and [`Fluid`] are the equations by themselves. Reading order: `model`
//! (what there is), `integrate` (how it moves), `control` (how an AQM drives it), `classes` (from plan to
//! model), `report` (what comes out).

mod classes;
mod control;
mod history;
mod integrate;
mod model;
mod packets;
mod report;

use aqumen_result::RunResult;
use aqumen_scenario::Plan;

pub(crate) use classes::{Load, base_rtt_s, known_applications, only_wires, packet_bytes, time_on, unresponsive};
pub use classes::{control, network};
pub use control::{Control, RedLaw, SignalProcess};
pub use integrate::Fluid;
pub use model::{Class, Join, Model, Network, Queue};
pub(crate) use report::aqm_report;

use crate::Error;

/// How to run a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// The window model of every class. Without one: `reno` for ECN-capable flows, `drop` for others.
    pub model: Option<Model>,
    /// The step, seconds. Without one it is halved until the answer stays.
    pub step_s: Option<f64>,
}

/// The longest step, seconds.
pub const STEP_MAX_S: f64 = 4e-3;
/// The step is halved until means and deviations of the queues move by less than this share of the buffer.
pub const TOLERANCE: f64 = 1e-3;
/// How often the step may be halved.
const HALVINGS_MAX: u32 = 7;
/// More steps than this are refused.
const STEPS_MAX: f64 = 2e8;

/// Runs `plan` on the fluid engine; what that costs in time the caller measures. `progress` hears the share done now
/// and then; `false` stops the run.
pub fn run(plan: &Plan, options: Options, progress: &mut dyn FnMut(f64) -> bool) -> Result<RunResult, Error> {
    let mut steps = 0;
    let mut attempt = |step_s: f64, share: (f64, f64)| -> Result<RunResult, Error> {
        let mut fluid = Fluid::new(network(plan, options.model)?, step_s)?;
        let run = report::measure(plan, &mut fluid, &mut |done| progress(share.0 + share.1 * done));
        steps += fluid.steps();
        run
    };
    let mut step_s = match options.step_s {
        Some(step_s) if step_s > 0.0 => step_s,
        Some(_) => return Err(Error::Unsupported("the step must be above 0 s".into())),
        None => first_step_s(&network(plan, options.model)?),
    };
    if plan.duration.as_secs_f64() / step_s > STEPS_MAX {
        return Err(Error::Unsupported(format!(
            "a step of {step_s} s takes more than {STEPS_MAX} steps; the base RTT is too short for this duration"
        )));
    }
    let mut result = attempt(step_s, (0.0, if options.step_s.is_some() { 1.0 } else { 0.3 }))?;
    if options.step_s.is_none() {
        for halving in 0..HALVINGS_MAX {
            step_s /= 2.0;
            let last = 0.3 + 0.7 * (1.0 - 0.5f64.powi(halving as i32));
            let finer = attempt(step_s, (last, 0.35 * 0.5f64.powi(halving as i32)))?;
            let moved = report::largest_change(plan, &result, &finer);
            result = finer;
            if moved < TOLERANCE {
                break;
            }
        }
    }
    result.cost.events = steps;
    Ok(result)
}

/// A step that resolves the shortest round trip in twenty.
fn first_step_s(network: &Network) -> f64 {
    network.classes.iter().map(|class| class.base_rtt_s / 20.0).fold(STEP_MAX_S, f64::min)
}
