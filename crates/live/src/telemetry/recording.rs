//! A recording: a line of JSON that says what was attached, then a line of numbers for each sample.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::{Sample, Status};

/// The columns of a sample's line, in order.
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

/// A recording on its way to disk.
#[derive(Debug)]
pub(crate) struct Recording {
    file: BufWriter<File>,
}

impl Recording {
    /// A new file of that name; one that is there is an error.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Recording { file: BufWriter::new(File::create_new(path)?) })
    }

    /// Its first line.
    pub(crate) fn begin(&mut self, status: &Status) -> io::Result<()> {
        let head = serde_json::json!({"aqumend": "recording", "columns": COLUMNS, "status": status});
        writeln!(self.file, "{head}")
    }

    /// A sample.
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

    /// Everything on disk.
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
        let mut recording = Recording::create(&path).unwrap();
        assert!(Recording::create(&path).is_err(), "a file that is there stays");
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
}
