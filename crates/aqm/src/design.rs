//! What designs are made of: the plant that gains are designed for, the target, and what self-tuning AQMs estimate.

pub(crate) mod estimators;
pub(crate) mod plant;
pub(crate) mod rls;
pub(crate) mod self_tuning;
pub(crate) mod target;
