//! Deployed single-queue algorithms: CoDel, PIE, PI2, COBALT. Variants with several queues are in
//! [`multi`](crate::multi).

pub(crate) mod cobalt;
pub(crate) mod codel;
pub(crate) mod pi2;
pub(crate) mod pie;
