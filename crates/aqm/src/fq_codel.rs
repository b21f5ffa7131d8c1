//! FQ-CoDel (RFC 8290): flow queueing with CoDel in each queue, the default of many Linux distributions. The scheduler is in
//! [`fq`](crate::fq), CoDel in [`codel`](crate::codel).
//!
//! Deviations:
//! - `limit` is the link's buffer unless given; the RFC's default is 10240 packets.
//! - `memory` (Linux) counts packets' bytes on the wire; Linux counts the memory that their buffers take.
//! - When the limit is passed the fattest queue gives way until all fits, in batches; a batch is half its packets (RFC 8290 section
//!   4.1), not half its bytes as in Linux. Linux adds the packets lost to CoDel's count; the RFC does not.
//! - CoDel spares a queue of its own with an MTU or less; Linux asks the same of all queues together.
//! - Linux takes an empty new queue out of the lists at once if there are no old queues; section 4.2 moves it to the old ones.

use crate::codel::{self, Codel};
use crate::fq::{self, FlowQueues, FqParams};
use crate::registry::Algorithm;
use crate::{Limit, Network, ParamError, Settings};

/// The registry's row.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "fq-codel",
    title: "FQ-CoDel",
    summary: "flow queueing with CoDel in each queue: flows share the link, and sparse ones hardly wait",
    reference: "Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet: The Flow Queue CoDel packet scheduler and AQM algorithm, RFC 8290, 2018",
    params: &fq::params::<{ fq::PARAMS.len() + codel::ALGORITHM.params.len() }>(codel::ALGORITHM.params),
};

/// Flow queueing with CoDel.
pub type FqCodel = FlowQueues<Codel>;

impl FqCodel {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network, limit: Limit) -> Result<Self, ParamError> {
        Ok(FlowQueues::new(FqParams::from_settings(settings)?, Codel::from_settings(settings, network)?, limit))
    }
}
