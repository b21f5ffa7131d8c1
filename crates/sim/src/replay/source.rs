//! The capture that is read: opening it, and how far in it one is.

use std::fs::File;
use std::path::Path;

use aqumen_capture::Reader;

use super::error::Error;

/// Packets between two looks at the progress.
pub(super) const LOOK_PKTS: u64 = 4096;

/// The capture at `path`, and its length in bytes.
pub(super) fn open(path: &Path) -> Result<(Reader<File>, u64), Error> {
    let wrong = |message: String| Error::Capture { file: path.display().to_string(), message };
    let file = File::open(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let metadata = file.metadata().map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if metadata.is_dir() {
        return Err(wrong("cannot be read: it is a directory".into()));
    }
    let reader = Reader::new(file).map_err(|error| wrong(error.to_string()))?;
    Ok((reader, metadata.len()))
}

/// The part of a capture of `length` bytes that lies before `position`.
pub(super) fn share(position: u64, length: u64) -> f64 {
    (position as f64 / length.max(1) as f64).min(1.0)
}
