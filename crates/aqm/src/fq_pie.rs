//! FQ-PIE: flow queueing with PIE in each queue, after the FreeBSD implementation by Al-Saadi and Armitage and Linux's `sch_fq_pie`.
//! The scheduler is in [`fq`](crate::fq), PIE in [`pie`](crate::pie).
//!
//! Deviations:
//! - No RFC describes it. The scheduler is that of RFC 8290, also when the limit is passed: the fattest queue gives way, where
//!   Linux refuses the arriving packet.
//! - PIE's parameters and safeguards are its own (RFC 8033), so `derandomize` is on, and packets are marked up to a probability
//!   of 0.1.
//! - All queues are updated at the same times; Linux spreads them over the interval.
//! - `on_off`: "a third of the buffer" means of the buffer of all queues together.

use crate::fq::{self, FlowQueues, FqParams};
use crate::pie::{self, Pie};
use crate::registry::Algorithm;
use crate::{Limit, Network, ParamError, Settings};

/// The registry's row.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "fq-pie",
    title: "FQ-PIE",
    summary: "flow queueing with PIE in each queue",
    reference: "Al-Saadi, Armitage: Dummynet AQM v0.2: CoDel, FQ-CoDel, PIE and FQ-PIE for FreeBSD's ipfw/dummynet framework, 2016",
    params: &fq::params::<{ fq::PARAMS.len() + pie::ALGORITHM.params.len() }>(pie::ALGORITHM.params),
};

/// Flow queueing with PIE.
pub type FqPie = FlowQueues<Pie>;

impl FqPie {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network, limit: Limit) -> Result<Self, ParamError> {
        Ok(FlowQueues::new(FqParams::from_settings(settings)?, Pie::from_settings(settings, network)?, limit))
    }
}
