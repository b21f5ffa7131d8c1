//! What can be wrong with a model.

use std::fmt;

/// Why a model cannot be solved or a trace cannot be fitted. Nothing has been computed then.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A generator is none, or its chain does not lead from each state to all others.
    Generator(String),
    /// Arrival rates that are no rates.
    Rates(String),
    /// The queue, its thresholds or the simulation make no sense.
    Queue(String),
    /// The solution needs more memory than there is, bytes.
    TooLarge {
        /// States of the chain.
        states: u64,
        /// Bytes it takes.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// The solution takes far too long.
    TooLong {
        /// States of the chain.
        states: u64,
        /// Hours that it takes, about.
        hours: f64,
    },
    /// The iteration did not settle.
    Unsettled {
        /// States of the chain.
        states: u64,
        /// Cycles that were made.
        cycles: usize,
    },
    /// Whoever was told how much is left asked for no more.
    Stopped,
    /// A trace that cannot be read or says too little.
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
                "the chain has {states} states and takes about {hours:.0} hours, where 1 is accepted; use fewer source states, fewer \
                 service stages or a smaller buffer"
            ),
            Error::Unsettled { states, cycles } => write!(
                f,
                "the chain has {states} states and does not settle within {cycles} cycles; use fewer source states, or a \
                 smaller buffer"
            ),
            Error::Stopped => f.write_str("stopped before it was solved"),
            Error::TooLarge { states, needed, available } => {
                let gib = |bytes: u64| bytes as f64 / GIB;
                write!(
                    f,
                    "the chain has {states} states and takes {:.1} GiB of memory, but {:.1} are free; use fewer source \
                     states, fewer service stages or a smaller buffer",
                    gib(*needed),
                    gib(*available)
                )
            }
        }
    }
}

impl std::error::Error for Error {}

/// Bytes.
const GIB: f64 = 1_073_741_824.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_in_units_of_1024_times_1024_times_1024_bytes() {
        let said = Error::TooLarge { states: 7, needed: 3 << 30, available: 3 << 29 }.to_string();
        assert!(said.starts_with("the chain has 7 states and takes 3.0 GiB of memory, but 1.5 are free;"), "{said}");
    }
}
