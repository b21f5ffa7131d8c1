//! Errors of a run.

use std::fmt;
use std::path::PathBuf;

/// Reason why a run could not start or finish.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A link cannot be made.
    Link(aqumen_network::Error),
    /// The packet trace could not be written.
    Trace {
        /// File of the trace.
        file: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The host asked to stop.
    Cancelled,
    /// The run is over.
    Over,
    /// A session was asked for something that it cannot do.
    Session(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Link(error) => error.fmt(f),
            Error::Trace { file, source } => write!(f, "{}: {source}", file.display()),
            Error::Cancelled => f.write_str("the run was stopped"),
            Error::Over => f.write_str("the run is over"),
            Error::Session(message) => f.write_str(message),
        }
    }
}

impl From<aqumen_network::Error> for Error {
    fn from(error: aqumen_network::Error) -> Self {
        Error::Link(error)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Link(error) => error.source(),
            Error::Trace { source, .. } => Some(source),
            Error::Cancelled | Error::Over | Error::Session(_) => None,
        }
    }
}
