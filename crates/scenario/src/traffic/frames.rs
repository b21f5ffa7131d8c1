//! Video traces in the text formats of the archives of TU Berlin (TKN) and Arizona State University (ASU).
//!
//! - terse: one size in bytes per line;
//! - two columns: time and size;
//! - verbose: number, type, time, size in bytes, and further columns; or number, time, type, size.
//!
//! Lines that begin with `#`, `%` or `;` are comments. Times are display times, in milliseconds; in seconds if the mean
//! interval of frames is shorter than one. With B frames the lines are in coding order and their times are not sorted:
//! the k-th line is sent at the k-th time.

use crate::files::content;

/// The frames of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frames {
    /// Bytes of each frame, in the order of coding.
    pub bytes: Vec<u32>,
    /// Send time of each frame, nanoseconds from the first; empty if the trace has no times.
    at_ns: Vec<u64>,
}

/// Largest frame.
const FRAME_BYTES_MAX: f64 = 1e9;

/// Longest trace, nanoseconds: a day.
const LENGTH_NS_MAX: f64 = 86_400e9;

/// Line number from 1, and message.
type WrongLine = (usize, String);

impl Frames {
    pub(super) fn parse(text: &str) -> Result<Self, WrongLine> {
        let (mut bytes, mut times) = (Vec::new(), Vec::new());
        let mut layout = None;
        for (number, line) in content(text) {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let here = Layout::from_columns(&columns).ok_or_else(|| {
                (number, "must be a size; time and size; or number, type, time and size of a frame".to_string())
            })?;
            if *layout.get_or_insert(here) != here {
                return Err((number, "has different columns than the previous lines".into()));
            }
            let (time, size) = here.columns();
            let size = number_at(&columns, size).filter(|size| *size <= FRAME_BYTES_MAX);
            let size = size.ok_or((number, "the size must be a number of bytes, at most 1e9".to_string()))?;
            bytes.push((size + 0.5) as u32);
            if let Some(time) = time {
                let time = number_at(&columns, time);
                times.push(time.ok_or((number, "the time must be a number of milliseconds, at least 0".to_string()))?);
            }
        }
        if bytes.iter().all(|bytes| *bytes == 0) {
            return Err((1, "has no frame above 0 bytes".into()));
        }
        let at_ns = moments(times).ok_or((1, "the times must differ, and span a day at most".to_string()))?;
        Ok(Frames { bytes, at_ns })
    }

    /// Whether the trace has times.
    pub fn timed(&self) -> bool {
        !self.at_ns.is_empty()
    }

    /// Returns the send time of each frame, nanoseconds from the first, and last the time at which the trace may
    /// repeat; `fps` overrides the times of the trace.
    pub fn schedule(&self, fps: Option<f64>) -> Vec<u64> {
        let frames = self.bytes.len();
        if let Some(fps) = fps {
            return (0..=frames).map(|i| (i as f64 * 1e9 / fps + 0.5) as u64).collect();
        }
        let last = self.at_ns.last().copied().unwrap_or(0);
        let mut at_ns = self.at_ns.clone();
        at_ns.push(last + last / (frames as u64 - 1).max(1));
        at_ns
    }

    /// Bytes of all frames.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.iter().map(|bytes| u64::from(*bytes)).sum()
    }
}

/// Columns of a line.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    Terse,
    TimeSize,
    NumberTypeTimeSize,
    NumberTimeTypeSize,
}

impl Layout {
    fn from_columns(columns: &[&str]) -> Option<Layout> {
        let is_type = |i: usize| columns[i].starts_with(|c: char| c.is_ascii_alphabetic());
        match columns.len() {
            1 => Some(Layout::Terse),
            2 => Some(Layout::TimeSize),
            3 => None,
            _ if is_type(1) => Some(Layout::NumberTypeTimeSize),
            _ if is_type(2) => Some(Layout::NumberTimeTypeSize),
            _ => None,
        }
    }

    /// Columns of time and size, from 0.
    fn columns(self) -> (Option<usize>, usize) {
        match self {
            Layout::Terse => (None, 0),
            Layout::TimeSize => (Some(0), 1),
            Layout::NumberTypeTimeSize => (Some(2), 3),
            Layout::NumberTimeTypeSize => (Some(1), 3),
        }
    }
}

/// Reads a number of at least 0.
fn number_at(columns: &[&str], i: usize) -> Option<f64> {
    columns[i].parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0)
}

/// Converts display times to sorted nanoseconds from the first.
fn moments(mut times: Vec<f64>) -> Option<Vec<u64>> {
    let Some(steps) = times.len().checked_sub(1) else { return Some(Vec::new()) };
    times.sort_by(f64::total_cmp);
    let length = times[steps] - times[0];
    if length <= 0.0 {
        return None;
    }
    // Video has fewer than a thousand frames a second.
    let unit_ns = if length < steps as f64 { 1e9 } else { 1e6 };
    if length * unit_ns > LENGTH_NS_MAX {
        return None;
    }
    Some(times.iter().map(|time| ((time - times[0]) * unit_ns + 0.5) as u64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formats_of_the_archives_are_read() {
        let tkn = "# number type time length\n0 I 0 534\n1 P 120 1542\n2 B 40 134\n3 B 80 390\n";
        let asu = "0 0.0 I 534 40.1\n1 0.12 P 1542 39.0\n2 0.04 B 134 38.2\n3 0.08 B 390 38.4\n";
        for text in [tkn, asu] {
            let frames = Frames::parse(text).unwrap();
            assert_eq!(frames.bytes, [534, 1542, 134, 390]);
            assert_eq!(frames.schedule(None), [0, 40_000_000, 80_000_000, 120_000_000, 160_000_000]);
        }
        let terse = Frames::parse("534\r\n1542\n").unwrap();
        assert!(!terse.timed());
        assert_eq!(terse.schedule(Some(25.0)), [0, 40_000_000, 80_000_000]);
        assert_eq!(Frames::parse("0 10\n33.4 20\n").unwrap().schedule(None), [0, 33_400_000, 66_800_000]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let wrong = |text: &str| Frames::parse(text).unwrap_err();
        assert_eq!(wrong("534\n1 P 40 12\n"), (2, "has different columns than the previous lines".into()));
        assert_eq!(wrong("\n-3\n").0, 2);
        assert_eq!(wrong("0 I 0 x\n"), (1, "the size must be a number of bytes, at most 1e9".into()));
        assert_eq!(wrong("1 2 3\n").0, 1);
        assert_eq!(wrong("# nothing\n"), (1, "has no frame above 0 bytes".into()));
        assert_eq!(wrong("5 10\n5 20\n"), (1, "the times must differ, and span a day at most".into()));
    }

    #[test]
    fn size_and_time_unit_of_a_trace() {
        let frames = Frames::parse("0 10\n40 20\n80 30\n").unwrap();
        assert_eq!((frames.total_bytes(), frames.schedule(None)), (60, vec![0, 40_000_000, 80_000_000, 120_000_000]));
        // Less than a millisecond apart: seconds, relative to the first frame.
        let seconds = Frames::parse("5 10\n5.04 20\n5.08 30\n").unwrap();
        assert_eq!(seconds.schedule(None), [0, 40_000_000, 80_000_000, 120_000_000]);
        // A millisecond apart is a millisecond; a day is the longest, and three columns are invalid.
        assert_eq!(Frames::parse("0 1\n1 1\n").unwrap().schedule(None), [0, 1_000_000, 2_000_000]);
        assert!(Frames::parse("0 1\n86400000 1\n").is_ok());
        assert!(Frames::parse("0 1\n86400001 1\n").is_err());
        assert!(Frames::parse("0 1 2\n").is_err());
    }
}
