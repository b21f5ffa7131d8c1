//! Errors of the queueing analysis.

use std::fmt;

/// Error of a model or a trace; no result has been computed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Generator that is invalid or not irreducible.
    Generator(String),
    /// Invalid arrival rates.
    Rates(String),
    /// Invalid queue, thresholds or simulation settings.
    Queue(String),
    /// Solution that needs more memory than is free.
    TooLarge {
        /// States of the chain.
        states: u64,
        /// Memory needed, bytes.
        needed: u64,
        /// Free memory, bytes.
        available: u64,
    },
    /// Solution that takes too long.
    TooLong {
        /// States of the chain.
        states: u64,
        /// Estimated time, hours.
        hours: f64,
    },
    /// Iteration without convergence.
    NotConverged {
        /// States of the chain.
        states: u64,
        /// Number of cycles.
        cycles: usize,
    },
    /// Cancelled by the progress callback.
    Cancelled,
    /// Unreadable trace, or one with too few packets.
    Trace(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Generator(message) | Error::Rates(message) | Error::Queue(message) | Error::Trace(message) => {
                f.write_str(message)
            }
            Error::TooLong { states, hours } => write!(
                f,
                "the chain has {states} states and takes about {hours:.0} hours, at most 1 is accepted; use fewer source states, fewer \
                 service stages or a smaller buffer"
            ),
            Error::NotConverged { states, cycles } => write!(
                f,
                "the iteration over {states} states does not converge within {cycles} cycles; use fewer source states, or a \
                 smaller buffer"
            ),
            Error::Cancelled => f.write_str("cancelled before the model was solved"),
            Error::TooLarge { states, needed, available } => {
                let gib = |bytes: u64| bytes as f64 / GIB;
                write!(
                    f,
                    "the chain has {states} states and needs {:.1} GiB of memory, of which {:.1} are free; use fewer source \
                     states, fewer service stages or a smaller buffer",
                    gib(*needed),
                    gib(*available)
                )
            }
        }
    }
}

impl std::error::Error for Error {}

/// Bytes of a GiB.
const GIB: f64 = 1_073_741_824.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reported_in_gibibytes() {
        let message = Error::TooLarge { states: 7, needed: 3 << 30, available: 3 << 29 }.to_string();
        assert!(
            message.starts_with("the chain has 7 states and needs 3.0 GiB of memory, of which 1.5 are free;"),
            "{message}"
        );
    }
}
