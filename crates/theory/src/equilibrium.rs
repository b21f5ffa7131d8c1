//! Equilibrium of a queue: senders, their windows at a signal probability, and the operating point that an AQM reaches.

pub(crate) mod markov_chain;
pub mod response;
pub(crate) mod sender;
pub(crate) mod solver;
pub(crate) mod window;
