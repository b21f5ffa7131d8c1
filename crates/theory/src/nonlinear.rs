//! Nonlinear dynamics: Hopf bifurcations, and the oscillations of the full equations.

pub mod cycle;
pub mod hopf;
