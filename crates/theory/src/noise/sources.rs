//! Sources of the noise of packets, of which a noise budget is made.

/// Sources of noise, in the order of [`SourcePowers`]:
/// - `halvings`: which packets are signalled, a toss for each,
/// - `windows`: differences between windows, their growth by whole packets, delayed acknowledgements,
/// - `arrivals`: packets that arrive at random at a queue of mean windows,
/// - `spacing`: signals that are spaced, compared with tosses,
/// - `nonlinearity`: signals of PIE's safeguard beyond its linear part.
pub const SOURCES: [&str; 5] = ["halvings", "windows", "arrivals", "spacing", "nonlinearity"];
/// Power of each of [`SOURCES`] at one frequency, packets^2 per rad/s.
pub(crate) type SourcePowers = [f64; SOURCES.len()];
