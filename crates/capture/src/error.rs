//! Why a capture cannot be read.

use std::fmt;

/// What is wrong with a capture, and where.
#[derive(Debug)]
pub struct Error {
    /// Byte of the file at which the faulty block or record begins; `None` if the file as a whole is meant.
    pub offset: Option<u64>,
    /// What is wrong.
    pub message: String,
}

impl Error {
    pub(crate) fn whole(message: impl Into<String>) -> Self {
        Error { offset: None, message: message.into() }
    }

    pub(crate) fn at(offset: u64, message: impl Into<String>) -> Self {
        Error { offset: Some(offset), message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "at byte {offset}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}
