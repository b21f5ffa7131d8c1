//! Errors of a replay.

use std::fmt;

/// Reason why a capture could not be replayed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The capture cannot be read, or what is in it cannot be replayed.
    Capture {
        /// File of the capture.
        file: String,
        /// Description of the error.
        message: String,
    },
    /// The AQM does not fit the queue.
    Aqm {
        /// The SPEC.
        spec: String,
        /// Description of the error.
        message: String,
    },
    /// The packets that leave could not be written.
    Out {
        /// The file.
        file: String,
        /// Description of the error.
        message: String,
    },
    /// The host asked to stop.
    Cancelled,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Capture { file, message } => write!(f, "{file}: {message}"),
            Error::Aqm { spec, message } => write!(f, "aqm = \"{spec}\": {message}"),
            Error::Out { file, message } => write!(f, "cannot write {file}: {message}"),
            Error::Cancelled => f.write_str("the replay was stopped"),
        }
    }
}

impl std::error::Error for Error {}
