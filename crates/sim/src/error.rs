//! Why a run could not start or end.

use std::fmt;
use std::path::PathBuf;

use aqumen_aqm::ParamError;

/// Why a run could not start or end.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A link names an AQM that does not exist.
    UnknownAqm {
        /// The link.
        link: String,
        /// The name.
        aqm: String,
    },
    /// An AQM's parameters do not fit.
    Aqm {
        /// The link.
        link: String,
        /// The AQM.
        aqm: String,
        /// What is wrong.
        source: Box<ParamError>,
    },
    /// The packet trace could not be written.
    Trace {
        /// Its file.
        file: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The host asked to stop.
    Cancelled,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownAqm { link, aqm } => write!(f, "link {link}: there is no AQM called {aqm}"),
            Error::Aqm { link, aqm, source } => write!(f, "link {link}: {aqm}: {source}"),
            Error::Trace { file, source } => write!(f, "{}: {source}", file.display()),
            Error::Cancelled => f.write_str("the run was stopped"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Aqm { source, .. } => Some(&**source),
            Error::Trace { source, .. } => Some(source),
            Error::UnknownAqm { .. } | Error::Cancelled => None,
        }
    }
}
