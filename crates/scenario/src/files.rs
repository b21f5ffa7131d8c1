//! Files that a scenario names: on disk beside the scenario, or in memory.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Error;

/// Source of the files that a scenario names.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Folder of the scenario's file.
    folder: PathBuf,
    given: Option<Arc<BTreeMap<String, Vec<u8>>>>,
    /// Contents of the files read so far, by the names that the scenario uses.
    read: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

/// Largest file.
const FILE_BYTES_MAX: u64 = 16 << 20;

impl Files {
    /// Files on disk; names are relative to the folder of the scenario's `file`.
    pub fn on_disk(file: &str) -> Self {
        Files { folder: Path::new(file).parent().unwrap_or(Path::new("")).into(), ..Files::default() }
    }

    /// Files in memory, by the names that the scenario uses.
    pub fn in_memory(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Files { given: Some(Arc::new(files.into_iter().collect())), ..Files::default() }
    }

    /// Files in memory that a scenario read before from beside its `file`, which messages name.
    pub fn as_read(file: &str, files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Files { folder: Files::on_disk(file).folder, ..Files::in_memory(files) }
    }

    /// Returns this source with nothing read yet.
    pub(crate) fn unread(&self) -> Self {
        Files { read: Arc::default(), ..self.clone() }
    }

    /// Contents of the files read so far, by the names that the scenario uses.
    pub(crate) fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the text of the file `name` and its path for messages; `what` names its kind, such as "a trace".
    pub(crate) fn text(&self, name: &str, what: &str) -> Result<(PathBuf, String), String> {
        let path = self.folder.join(name);
        let shown = path.display().to_string();
        let bytes = match &self.given {
            Some(given) => given.get(name).cloned().ok_or_else(|| format!("{shown}: was not given"))?,
            None => {
                require_regular(&path)?;
                read_file(&path, &shown, what).map_err(|error| error.to_string())?
            }
        };
        self.read.lock().unwrap_or_else(PoisonError::into_inner).insert(name.into(), bytes.clone());
        let text = String::from_utf8(bytes).map_err(|_| format!("{shown}: not UTF-8 text"))?;
        Ok((path, text))
    }
}

/// Reads the file at `path`; `what` names its kind, such as "a scenario".
pub(crate) fn read_file(path: &Path, file: &str, what: &str) -> Result<Vec<u8>, Error> {
    let fail = |message: String| Error::for_file(file, message);
    let handle = std::fs::File::open(path).map_err(|error| fail(format!("cannot read: {error}")))?;
    // Devices and pipes have no size, so the limit is applied while reading.
    let mut bytes = Vec::new();
    let read = handle.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| fail(format!("cannot read: {error}")))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(fail(format!("{what} has at most {} MiB; this file has more", FILE_BYTES_MAX >> 20)));
    }
    Ok(bytes)
}

/// Decodes the bytes of `file` as text.
pub(crate) fn decode_utf8<'a>(bytes: &'a [u8], file: &str, what: &str) -> Result<&'a str, Error> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = &bytes[..error.valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        Error { line, ..Error::for_file(file, format!("not UTF-8 text; {what} is a TOML file")) }
    })?;
    if text.contains('\0') {
        return Err(Error::for_file(file, format!("a binary file; {what} is a TOML file")));
    }
    Ok(text)
}

/// Refuses other than regular files: a pipe or a terminal would block.
fn require_regular(path: &Path) -> Result<(), String> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(metadata) if metadata.is_dir() => Err(format!("{shown}: a folder, not a regular file")),
        Ok(_) => Err(format!("{shown}: not a file")),
        Err(error) => Err(format!("{shown}: cannot read: {error}")),
    }
}

/// Returns the lines with content, with their numbers.
pub(crate) fn content(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', '%', ';']))
}
