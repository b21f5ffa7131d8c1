//! Errors of making a link.

use std::fmt;

use aqumen_aqm::ParamError;
use aqumen_scenario::Link;

/// Reason why a link cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No AQM has this name.
    UnknownAqm {
        /// Name of the link.
        link: String,
        /// Name of the AQM.
        aqm: String,
    },
    /// The AQM refuses its parameters.
    Aqm {
        /// Name of the link.
        link: String,
        /// Name of the AQM.
        aqm: String,
        /// Parameter error.
        source: Box<ParamError>,
    },
}

impl Error {
    pub(crate) fn aqm(link: &Link, source: ParamError) -> Self {
        Error::Aqm { link: link.name.to_string(), aqm: link.aqm.name.clone(), source: Box::new(source) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownAqm { link, aqm } => write!(f, "link {link}: there is no AQM called {aqm}"),
            Error::Aqm { link, aqm, source } => write!(f, "link {link}: {aqm}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Aqm { source, .. } => Some(&**source),
            Error::UnknownAqm { .. } => None,
        }
    }
}
