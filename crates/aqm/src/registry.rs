//! Algorithms and profiles by name, and their construction from an operator's values.

use alloc::{boxed::Box, vec::Vec};

use aqumen_units::Span;

use crate::any_qdisc::{self, MULTI_QUEUE};
use crate::{
    Aqm, Fifo, Limit, Network, PERIOD_MIN, ParamError, Requirement, Threshold, ThresholdAqm, Value, any_aqm, threshold,
};

pub use crate::algorithm::{Algorithm, Profile, QueueKind};
pub use crate::any_aqm::{ALGORITHMS, AnyAqm};
pub use crate::any_qdisc::AnyQdisc;
pub use crate::profiles::PROFILES;

/// Builds the single-queue algorithm or profile called `name`. The operator's `values` override a profile's; `network`
/// supplies the rest. `None` if there is no such name.
pub fn build(name: &str, values: &[(&str, Value<'_>)], network: &Network) -> Option<Result<AnyAqm, ParamError>> {
    build_with(name, values, |name, own| any_aqm::build(name, own, network))
}

/// [`build`] with constructor `algorithm`: adds a profile's values, the threshold function and the check of the period.
pub(crate) fn build_with(
    name: &str,
    values: &[(&str, Value<'_>)],
    algorithm: impl Fn(&str, &[(&str, Value<'_>)]) -> Option<Result<AnyAqm, ParamError>>,
) -> Option<Result<AnyAqm, ParamError>> {
    let build = |values: &[(&str, Value<'_>)]| {
        with_profile(name, values, |name, values| {
            let threshold = Threshold::from_values(values);
            let own: Vec<_> = values.iter().copied().filter(|(name, _)| !threshold::is_threshold_param(name)).collect();
            let built = algorithm(name, &own)?;
            Some(built.and_then(|aqm| {
                Ok(match threshold? {
                    None => aqm,
                    Some(threshold) => AnyAqm::Threshold(Box::new(ThresholdAqm::new(aqm, threshold))),
                })
            }))
        })
    };
    let period = |aqm: AnyAqm| {
        // Only an algorithm with a timer has a period.
        aqm.next_timer()?;
        AnyQdisc::Fifo(Fifo::new(aqm, Limit::packets(1))).update_period()
    };
    Some(check_period(values, period, build(values)?, build))
}

/// Returns `built`, the result of `build(values)`, or an error if its timer period is below [`PERIOD_MIN`]. The error
/// names the first value without which the period is long enough.
fn check_period<T>(
    values: &[(&str, Value<'_>)],
    period: impl Fn(T) -> Option<Span>,
    built: Result<T, ParamError>,
    build: impl Fn(&[(&str, Value<'_>)]) -> Option<Result<T, ParamError>>,
) -> Result<T, ParamError> {
    let built = built?;
    let too_short = |values: &[(&str, Value<'_>)]| {
        build(values).and_then(Result::ok).and_then(&period).filter(|period| *period < PERIOD_MIN)
    };
    let Some(period) = too_short(values) else { return Ok(built) };
    let is_cause = |i: &usize| {
        let mut others = values.to_vec();
        others.remove(*i);
        build(&others).is_some_and(|other| other.is_ok()) && too_short(&others).is_none()
    };
    let (name, value) = (0..values.len()).find(is_cause).map_or(("", Value::Number(0.0)), |i| values[i]);
    Err(ParamError::new(name, value, Requirement::Period(period.as_nanos())))
}

/// Builds the queue discipline of the algorithm or profile called `name`, of one queue or several, with capacity
/// `limit`. `None` if there is no such name.
pub fn build_qdisc(
    name: &str,
    values: &[(&str, Value<'_>)],
    network: &Network,
    limit: Limit,
) -> Option<Result<AnyQdisc, ParamError>> {
    match build(name, values, network) {
        Some(aqm) => Some(aqm.map(|aqm| AnyQdisc::fifo(aqm, limit))),
        None => build_checked(values, |values| {
            with_profile(name, values, |name, values| any_qdisc::build(name, values, network, limit))
        }),
    }
}

/// Returns the discipline that `build` makes of `values`, with the check of its period.
pub(crate) fn build_checked(
    values: &[(&str, Value<'_>)],
    build: impl Fn(&[(&str, Value<'_>)]) -> Option<Result<AnyQdisc, ParamError>>,
) -> Option<Result<AnyQdisc, ParamError>> {
    Some(check_period(values, AnyQdisc::update_period, build(values)?, build))
}

/// Calls `build` with `name` and `values`; for a profile, with its algorithm and its settings overridden by `values`.
fn with_profile<T>(name: &str, values: &[(&str, Value<'_>)], build: impl FnOnce(&str, &[(&str, Value<'_>)]) -> T) -> T {
    match find_profile(name) {
        None => build(name, values),
        Some(profile) => {
            let all: Vec<_> = profile.settings.iter().chain(values).copied().collect();
            build(profile.algorithm, &all)
        }
    }
}

/// All built-in algorithms in display order: single-queue ones, then those of several queues.
pub fn algorithms() -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS.iter().chain(MULTI_QUEUE)
}

impl Algorithm {
    /// Number of queues that it manages, if it is built in. [`Catalogue::kind`](crate::Catalogue::kind) knows custom
    /// ones too.
    pub fn kind(&self) -> QueueKind {
        if MULTI_QUEUE.iter().any(|algorithm| algorithm.name == self.name) {
            QueueKind::Multi
        } else {
            QueueKind::Single
        }
    }
}

/// The profile called `name`.
pub fn find_profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

/// Registry entry of the algorithm called `name`, or of the algorithm of the profile called `name`.
pub fn find(name: &str) -> Option<&'static Algorithm> {
    let name = find_profile(name).map_or(name, |profile| profile.algorithm);
    algorithms().find(|algorithm| algorithm.name == name)
}
