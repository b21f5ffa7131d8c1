//! Reading of a capture, with the fraction read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use aqumen_capture::{Input, Reader};

use crate::error::Error;

/// Packets between two progress reports.
pub(super) const LOOK_PKTS: u64 = 4096;

/// A capture that is being read.
pub(super) struct Source<R> {
    pub(super) reader: Reader<Input<R>>,
    /// Its name, for messages.
    pub(super) file: String,
    /// Bytes of the file.
    length: u64,
}

impl Source<File> {
    /// Opens the capture at `path`.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let wrong = |message: String| Error::Capture { file: path.display().to_string(), message };
        let file = File::open(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let metadata = file.metadata().map_err(|error| wrong(format!("cannot be read: {error}")))?;
        if metadata.is_dir() {
            return Err(wrong("cannot be read: it is a directory".into()));
        }
        Source::new(file, path.display().to_string(), metadata.len())
    }
}

impl<R: Read> Source<R> {
    /// Reads the beginning of a capture of `length` bytes.
    pub(super) fn new(input: R, file: String, length: u64) -> Result<Self, Error> {
        let opened = Input::new(input).map_err(|error| format!("cannot be read: {error}"));
        match opened.and_then(|input| Reader::new(input).map_err(|error| error.to_string())) {
            Ok(reader) => Ok(Source { reader, file, length }),
            Err(message) => Err(Error::Capture { file, message }),
        }
    }

    /// Makes an error about the capture.
    pub(super) fn wrong(&self, message: String) -> Error {
        Error::Capture { file: self.file.clone(), message }
    }

    /// Returns the fraction of the file that was read.
    pub(super) fn share(&self) -> f64 {
        let position = self.reader.input().packed().unwrap_or_else(|| self.reader.position());
        (position as f64 / self.length.max(1) as f64).min(1.0)
    }

    /// Most bytes that the capture can have, unpacked.
    pub(super) fn bytes_max(&self) -> u64 {
        self.reader.input().unpacked_max(self.length)
    }
}
