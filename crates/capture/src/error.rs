//! Errors of a capture file.

use std::fmt;

/// Error of a capture file, with its position.
#[derive(Debug)]
pub struct Error {
    /// Offset of the faulty block or record in the file, bytes; `None` if the error concerns the whole file.
    pub offset: Option<u64>,
    /// Description of the error.
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
