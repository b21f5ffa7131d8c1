//! Why a link could not be made.

use std::fmt;

use aqumen_aqm::ParamError;
use aqumen_scenario::Link;

/// Why a link could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// It names an AQM that does not exist.
    UnknownAqm {
        /// The link.
        link: String,
        /// The name.
        aqm: String,
    },
    /// Its AQM's parameters do not fit.
    Aqm {
        /// The link.
        link: String,
        /// The AQM.
        aqm: String,
        /// What is wrong.
        source: Box<ParamError>,
    },
}

impl Error {
    pub(crate) fn aqm(link: &Link, source: ParamError) -> Self {
        Error::Aqm { link: link.name.clone(), aqm: link.aqm.name.clone(), source: Box::new(source) }
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
