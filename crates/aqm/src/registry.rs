//! The algorithms and profiles by name, and how one is built from what an operator gave.

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

/// The algorithm of one queue, or the profile of one, called `name` with the operator's `values`, designed for
/// `network` where they leave it open. The operator's values override a profile's. `None` if there is no such name.
pub fn build(name: &str, values: &[(&str, Value<'_>)], network: &Network) -> Option<Result<AnyAqm, ParamError>> {
    build_with(name, values, |name, own| any_aqm::build(name, own, network))
}

/// What `algorithm` builds of a name and of values of its row, with a profile's values, the threshold function's and a
/// check of the period around it.
pub(crate) fn build_with(
    name: &str,
    values: &[(&str, Value<'_>)],
    algorithm: impl Fn(&str, &[(&str, Value<'_>)]) -> Option<Result<AnyAqm, ParamError>>,
) -> Option<Result<AnyAqm, ParamError>> {
    let of = |values: &[(&str, Value<'_>)]| {
        with_profile(name, values, |name, values| {
            let over = Threshold::from_values(values);
            let own: Vec<_> = values.iter().copied().filter(|(name, _)| !threshold::is_threshold_param(name)).collect();
            let built = algorithm(name, &own)?;
            Some(built.and_then(|aqm| {
                Ok(match over? {
                    None => aqm,
                    Some(threshold) => AnyAqm::Threshold(Box::new(ThresholdAqm::new(aqm, threshold))),
                })
            }))
        })
    };
    let period = |aqm: AnyAqm| {
        // One without a timer needs no queue around it.
        aqm.next_timer()?;
        AnyQdisc::Fifo(Fifo::new(aqm, Limit::packets(1))).update_period()
    };
    Some(with_a_period(values, period, of(values)?, of))
}

/// `built` of `values`, or what makes its updates come closer than [`PERIOD_MIN`]: the first of `values` without which
/// `of` builds one whose updates do not. `period` is how far they are apart.
fn with_a_period<T>(
    values: &[(&str, Value<'_>)],
    period: impl Fn(T) -> Option<Span>,
    built: Result<T, ParamError>,
    of: impl Fn(&[(&str, Value<'_>)]) -> Option<Result<T, ParamError>>,
) -> Result<T, ParamError> {
    let built = built?;
    let too_short = |values: &[(&str, Value<'_>)]| {
        of(values).and_then(Result::ok).and_then(&period).filter(|period| *period < PERIOD_MIN)
    };
    let Some(period) = too_short(values) else { return Ok(built) };
    let to_blame = |i: &usize| {
        let mut others = values.to_vec();
        others.remove(*i);
        of(&others).is_some_and(|other| other.is_ok()) && too_short(&others).is_none()
    };
    let (name, value) = (0..values.len()).find(to_blame).map_or(("", Value::Number(0.0)), |i| values[i]);
    Err(ParamError::new(name, value, Requirement::Period(period.as_nanos())))
}

/// The queue discipline that the algorithm or profile called `name` makes, whichever its kind, with room for `limit`.
/// `None` if there is no such name.
pub fn build_qdisc(
    name: &str,
    values: &[(&str, Value<'_>)],
    network: &Network,
    limit: Limit,
) -> Option<Result<AnyQdisc, ParamError>> {
    match build(name, values, network) {
        Some(aqm) => Some(aqm.map(|aqm| AnyQdisc::fifo(aqm, limit))),
        None => {
            let of = |values: &[(&str, Value<'_>)]| {
                with_profile(name, values, |name, values| any_qdisc::build(name, values, network, limit))
            };
            Some(with_a_period(values, AnyQdisc::update_period, of(values)?, of))
        }
    }
}

/// Calls `build` with the algorithm behind `name` and the values of the profile on the way, which `values` override.
fn with_profile<T>(name: &str, values: &[(&str, Value<'_>)], build: impl FnOnce(&str, &[(&str, Value<'_>)]) -> T) -> T {
    match find_profile(name) {
        None => build(name, values),
        Some(profile) => {
            let all: Vec<_> = profile.settings.iter().chain(values).copied().collect();
            build(profile.algorithm, &all)
        }
    }
}

/// Every algorithm: those of one queue, then those of several, each in the order in which lists show them.
pub fn algorithms() -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS.iter().chain(MULTI_QUEUE)
}

impl Algorithm {
    /// How many queues it looks after.
    pub fn kind(&self) -> QueueKind {
        if MULTI_QUEUE.iter().any(|row| row.name == self.name) { QueueKind::Multi } else { QueueKind::Single }
    }
}

/// The profile called `name`.
pub fn find_profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

/// The row of the algorithm called `name`, or that the profile of this name sets up.
pub fn find(name: &str) -> Option<&'static Algorithm> {
    let name = find_profile(name).map_or(name, |profile| profile.algorithm);
    algorithms().find(|algorithm| algorithm.name == name)
}
