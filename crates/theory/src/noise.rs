//! Noise of packets around an operating point: many windows at once, spaced signals, and the nonlinear parts of RED and
//! PIE as describing functions.

pub(crate) mod density;
pub(crate) mod describing_function;
pub(crate) mod mean_field;
pub(crate) mod packet_noise;
pub(crate) mod pie_safeguard;
pub(crate) mod population;
pub(crate) mod signal_spacing;
pub(crate) mod sources;
pub(crate) mod spaced_signals;
