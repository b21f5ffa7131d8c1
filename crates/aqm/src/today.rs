//! What today's routers and hosts run on one queue: CoDel, PIE, PI2, COBALT. Their relatives with several queues are in
//! [`multi`](crate::multi).

pub(crate) mod cobalt;
pub(crate) mod codel;
pub(crate) mod pi2;
pub(crate) mod pie;
