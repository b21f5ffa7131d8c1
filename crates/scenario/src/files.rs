//! The files that a scenario names: from beside its own on the disk, or handed in by a caller that has no disk.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Error;

/// Where the files that a scenario names are found.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Where the scenario's own file stands.
    folder: PathBuf,
    given: Option<Arc<BTreeMap<String, Vec<u8>>>>,
}

/// Largest file.
const FILE_BYTES_MAX: u64 = 16 << 20;

impl Files {
    /// Those on the disk; names are relative to the folder of the scenario's `file`.
    pub fn beside(file: &str) -> Self {
        Files { folder: Path::new(file).parent().unwrap_or(Path::new("")).into(), given: None }
    }

    /// These and no others, by the names that the scenario gives them.
    pub fn given(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Files { folder: PathBuf::new(), given: Some(Arc::new(files.into_iter().collect())) }
    }

    /// The text of the file that the scenario calls `name` and that is to be `what`, "a trace", and its path for
    /// messages.
    pub(crate) fn text(&self, name: &str, what: &str) -> Result<(PathBuf, String), String> {
        let path = self.folder.join(name);
        let shown = path.display().to_string();
        let bytes = match &self.given {
            Some(given) => given.get(name).cloned().ok_or_else(|| format!("{shown}: was not given"))?,
            None => {
                regular(&path)?;
                bytes_of_file(&path, &shown, what).map_err(|error| error.to_string())?
            }
        };
        let text = String::from_utf8(bytes).map_err(|_| format!("{shown}: not UTF-8 text"))?;
        Ok((path, text))
    }
}

/// The bytes of the file at `path`, which is to be `what`: "a scenario".
pub(crate) fn bytes_of_file(path: &Path, file: &str, what: &str) -> Result<Vec<u8>, Error> {
    let fail = |message: String| Error::of_file(file, message);
    let handle = std::fs::File::open(path).map_err(|error| fail(format!("cannot read: {error}")))?;
    // A device or a pipe tells no size, so the limit is applied while reading.
    let mut bytes = Vec::new();
    let read = handle.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| fail(format!("cannot read: {error}")))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(fail(format!("{what} has at most {} MiB; this file has more", FILE_BYTES_MAX >> 20)));
    }
    Ok(bytes)
}

/// The text that `bytes` of `file` are.
pub(crate) fn text_of_bytes<'a>(bytes: &'a [u8], file: &str, what: &str) -> Result<&'a str, Error> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = &bytes[..error.valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        Error { line, ..Error::of_file(file, format!("not UTF-8 text; {what} is a TOML file")) }
    })?;
    if text.contains('\0') {
        return Err(Error::of_file(file, format!("a binary file; {what} is a TOML file")));
    }
    Ok(text)
}

/// Only plain files: a pipe or a terminal would keep a reader waiting.
fn regular(path: &Path) -> Result<(), String> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(metadata) if metadata.is_dir() => Err(format!("{shown}: a folder, not a regular file")),
        Ok(_) => Err(format!("{shown}: not a file")),
        Err(error) => Err(format!("{shown}: cannot read: {error}")),
    }
}

/// The lines that say something, with their numbers.
pub(crate) fn content(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', '%', ';']))
}
