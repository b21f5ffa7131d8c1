//! Building blocks of controller design: plant model, target, and the estimators of self-tuning AQMs.

pub(crate) mod estimators;
pub(crate) mod passive_rtt;
pub(crate) mod plant;
pub(crate) mod rls;
pub(crate) mod self_tuning;
pub(crate) mod target;
