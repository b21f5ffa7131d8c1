//! Recording: a line of JSON that describes the attachment, then a line of numbers for each sample.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use super::{Sample, Status};

/// Columns of a sample's line, in order.
pub(crate) const COLUMNS: [&str; 12] = [
    "t_s",
    "backlog_bytes",
    "backlog_pkts",
    "sojourn_s",
    "probability",
    "marked_pkts",
    "early_dropped_pkts",
    "overflow_dropped_pkts",
    "rate_bps",
    "missed_steps",
    "age_s",
    "link_bps",
];

/// Replaces the conversions of strftime(3) in `path` by the local time.
fn expand_time(path: &Path) -> io::Result<PathBuf> {
    let name = path.as_os_str().as_bytes();
    if !name.contains(&b'%') {
        return Ok(path.into());
    }
    let format = CString::new(name)?;
    let mut text = vec![0u8; libc::PATH_MAX as usize];
    // SAFETY: the time and the broken-down time outlive the calls; strftime writes no more than the length of `text`.
    let length = unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut local = std::mem::zeroed();
        libc::localtime_r(&raw const now, &raw mut local);
        libc::strftime(text.as_mut_ptr().cast(), text.len(), format.as_ptr(), &raw const local)
    };
    if length == 0 {
        return Err(io::Error::other("its name is too long"));
    }
    text.truncate(length);
    Ok(OsString::from_vec(text).into())
}

#[derive(Debug)]
pub(crate) struct Recording {
    file: BufWriter<File>,
}

/// Beginning of every recording.
const TAG: &[u8] = b"{\"aqumend\":\"recording\"";

impl Recording {
    /// Opens the file of this name, in which conversions of strftime(3) stand for the local time. An existing recording
    /// is continued; any other file is an error.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        // Symbolic links are not followed, and pipes not waited for: another user may have made them.
        let mut file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(expand_time(path)?)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::ELOOP) => io::Error::other("it is a symbolic link"),
                _ => error,
            })?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::other("another aqumend records to it"))?;
        let mut start = Vec::new();
        Read::by_ref(&mut file).take(TAG.len() as u64).read_to_end(&mut start)?;
        if !TAG.starts_with(&start) {
            return Err(io::Error::other("it exists, and is no recording"));
        }
        // A truncated recording may end within a line.
        let end = file.seek(SeekFrom::End(0))?;
        let mut last = [b'\n'];
        if end > 0 {
            file.read_exact_at(&mut last, end - 1)?;
        }
        let mut file = BufWriter::new(file);
        if last != [b'\n'] {
            writeln!(file)?;
        }
        Ok(Recording { file })
    }

    /// Writes the first line of a part.
    pub(crate) fn begin(&mut self, status: &Status) -> io::Result<()> {
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let head = serde_json::json!({"aqumend": "recording", "columns": COLUMNS, "status": status, "unix_s": unix_s});
        writeln!(self.file, "{head}")
    }

    pub(crate) fn add(&mut self, s: &Sample) -> io::Result<()> {
        writeln!(
            self.file,
            "[{:.6},{},{:.3},{:.6},{:.9},{},{},{},{:.0},{},{:.6},{:.0}]",
            s.t_s,
            s.backlog_bytes,
            s.backlog_pkts,
            s.sojourn_s,
            s.probability,
            s.marked_pkts,
            s.early_dropped_pkts,
            s.overflow_dropped_pkts,
            s.rate_bps,
            s.missed_steps,
            s.age_s,
            s.link_bps
        )
    }

    /// Writes all buffered data.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_number_for_each_column() {
        let path = std::env::temp_dir().join(format!("aqumen-recording-{}", std::process::id()));
        let mut recording = Recording::open(&path).unwrap();
        let second = Recording::open(&path).unwrap_err().to_string();
        assert_eq!(second, "another aqumend records to it");
        recording.begin(&Status::default()).unwrap();
        recording.add(&Sample { t_s: 0.01, probability: 1e-7, ..Sample::default() }).unwrap();
        recording.end().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["columns"].as_array().unwrap().len(), COLUMNS.len());
        assert_eq!(lines[1].as_array().unwrap().len(), COLUMNS.len());
        assert_eq!((lines[1][0].as_f64(), lines[1][4].as_f64()), (Some(0.01), Some(1e-7)));
    }

    /// Directory of a test, which is removed with this object.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("aqumen-{name}-{}", std::process::id()));
            std::fs::create_dir(&folder).unwrap();
            Folder(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_truncated_recording_is_continued() {
        let folder = Folder::new("goes-on");
        let path = folder.0.join("record");
        let part = || {
            let mut recording = Recording::open(&path).unwrap();
            recording.begin(&Status::default()).unwrap();
            recording.add(&Sample { t_s: 0.5, ..Sample::default() }).unwrap();
            recording.end().unwrap();
            std::fs::read(&path).unwrap()
        };
        let whole = part();
        // Truncated within its first line, within a sample, and not at all.
        for cut in [7, whole.len() - 9, whole.len()] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let text = String::from_utf8(part()).unwrap();
            let valid = text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).count();
            assert_eq!(
                valid,
                if cut == 7 {
                    2
                } else if cut == whole.len() {
                    4
                } else {
                    3
                },
                "{text}"
            );
        }
    }

    #[test]
    fn other_files_are_left_unchanged() {
        let folder = Folder::new("stays");
        let at = |name: &str| folder.0.join(name);
        let error = |name: &str| Recording::open(&at(name)).unwrap_err().to_string();
        std::fs::write(at("mine"), "mine").unwrap();
        std::os::unix::fs::symlink(at("mine"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("nothing"), at("dangling")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(error("mine"), "it exists, and is no recording");
        assert_eq!(
            (error("link").as_str(), error("dangling").as_str()),
            ("it is a symbolic link", "it is a symbolic link")
        );
        assert_eq!(error("pipe"), "it is no regular file");
        assert!(!at("nothing").exists() && std::fs::read(at("mine")).unwrap() == b"mine");
    }

    #[test]
    fn a_name_may_have_parts_of_the_time() {
        let year = || expand_time(Path::new("/x/%Y")).unwrap().to_str().unwrap()[3..].parse::<u32>().unwrap();
        assert!((2026..3000).contains(&year()));
        assert_eq!(expand_time(Path::new("/x/eth0.jsonl")).unwrap(), Path::new("/x/eth0.jsonl"));
        assert_eq!(expand_time(Path::new("5%%")).unwrap(), Path::new("5%"));
        let second = expand_time(Path::new("%Y-%m-%d.%H%M%S")).unwrap();
        assert_eq!(second.to_str().unwrap().len(), "2026-11-28.101500".len());
        assert!(expand_time(Path::new(&"%Y".repeat(3000))).is_err());
    }
}
