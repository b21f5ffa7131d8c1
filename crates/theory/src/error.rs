//! Why an engine of this crate could not answer.

use std::fmt;

use aqumen_aqm::ParamError;

/// Why an engine of this crate could not answer.
#[derive(Clone, Debug, PartialEq)]
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
        /// Cause.
        source: Box<ParamError>,
    },
    /// An algorithm that decides packet by packet, and of which no averaged law is known.
    NoLaw {
        /// The link.
        link: String,
        /// The AQM.
        aqm: String,
    },
    /// An algorithm that has no linear law to analyse.
    NoSlope {
        /// The AQM.
        aqm: String,
        /// Why.
        why: &'static str,
    },
    /// Something that these models do not have; in words, with what to do.
    Unsupported(String),
    /// The host asked to stop.
    Cancelled,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownAqm { link, aqm } => write!(
                f,
                "link {link}: no AQM with one queue is called {aqm}; disciplines of several queues need engine packet"
            ),
            Error::Aqm { link, aqm, source } => write!(f, "link {link}: {aqm}: {source}"),
            Error::NoLaw { link, aqm } => {
                write!(f, "link {link}: {aqm} decides packet by packet and has no averaged law; use engine packet")
            }
            Error::NoSlope { aqm, why } => {
                write!(f, "{aqm} has no linear law: {why}; engines packet and fluid run it")
            }
            Error::Unsupported(words) => f.write_str(words),
            Error::Cancelled => f.write_str("the run was stopped"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Aqm { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::testing::{NETWORK, choice};

    #[test]
    fn what_an_aqm_refused_is_the_source_of_the_error() {
        let source = choice("pi", &[("frequency", -1.0)], NETWORK).build().unwrap().unwrap_err();
        let error = Error::Aqm { link: "l".into(), aqm: "pi".into(), source: Box::new(source.clone()) };
        assert_eq!(error.source().unwrap().to_string(), source.to_string());
        assert!(error.to_string().ends_with(&source.to_string()));
        assert!(Error::Cancelled.source().is_none());
    }
}
