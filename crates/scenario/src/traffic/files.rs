//! Files of traffic: points of a law, a queueing model, a trace of video frames. They are read with the scenario,
//! relative to its file, and become part of the plan.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::frames::Frames;
use crate::field::{Cursor, Field, ValueError};
use crate::files::{Files, content};
use crate::law::{Count, Law, POINTS_MAX, Size, Time, check_points};
use crate::mmpp;

/// A trace of video frames.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameFile {
    /// Name as written.
    pub name: String,
    /// The frames.
    pub trace: Arc<Frames>,
}

/// A model file of the queueing analysis.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    /// Name as written.
    pub name: String,
    /// Sources, those of its preset first.
    pub sources: Arc<[mmpp::Source]>,
}

/// A part of a kind that may be in a file.
pub(super) enum Part<'a> {
    Size(&'a mut Size),
    Time(&'a mut Time),
    Count(&'a mut Count),
    Model(&'a mut ModelFile),
    Frames(&'a mut FrameFile),
}

impl Part<'_> {
    /// Whether the part is in a file.
    pub(super) fn is_file(&self) -> bool {
        let in_file = |law: &Law| matches!(law, Law::Empirical { file: Some(_), .. });
        match self {
            Part::Size(Size(law)) | Part::Time(Time(law)) | Part::Count(Count(law)) => in_file(law),
            Part::Model(_) | Part::Frames(_) => true,
        }
    }

    /// Reads the file that the part names, if any, from `files`.
    pub(super) fn load(self, files: &Files) -> Result<(), String> {
        match self {
            // Units of the file: bytes, seconds, or a plain number.
            Part::Size(Size(law)) => load_points(law, 1.0, files),
            Part::Time(Time(law)) => load_points(law, 1e9, files),
            Part::Count(Count(law)) => load_points(law, 1.0, files),
            Part::Model(model) => {
                let (path, text) = files.text(&model.name, "a model")?;
                let file = mmpp::File::parse(&text, &path.display().to_string()).map_err(|error| error.to_string())?;
                model.sources = file.spec().all_sources().into();
                Ok(())
            }
            Part::Frames(frames) => {
                let (path, text) = files.text(&frames.name, "a trace of frames")?;
                let parsed = Frames::parse(&text).map_err(|(line, message)| at_line(&path, line, &message))?;
                frames.trace = Arc::new(parsed);
                Ok(())
            }
        }
    }
}

fn load_points(law: &mut Law, scale: f64, files: &Files) -> Result<(), String> {
    let Law::Empirical { file: Some(file), points } = law else { return Ok(()) };
    let (path, text) = files.text(file, "a law")?;
    let (mut read, mut lines) = (Vec::new(), Vec::new());
    for (number, line) in content(&text) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        // Some programs write a count between the two columns.
        let (value, share) = match columns[..] {
            [value, share] | [value, _, share] => (value, share),
            _ => return Err(at_line(&path, number, "must have two columns, value and probability")),
        };
        let number_of = |text: &str| text.parse::<f64>().ok().filter(|x| (0.0..=1e15).contains(x));
        let (Some(value), Some(share)) = (number_of(value), number_of(share)) else {
            return Err(at_line(&path, number, "must have two numbers, value and probability"));
        };
        read.push((value * scale, share));
        lines.push(number);
        if read.len() > POINTS_MAX {
            return Err(at_line(&path, number, &format!("at most {POINTS_MAX} points")));
        }
    }
    check_points(&read).map_err(|(i, message)| at_line(&path, lines.get(i).copied().unwrap_or_default(), &message))?;
    *points = read.into();
    Ok(())
}

fn at_line(path: &Path, line: usize, message: &str) -> String {
    format!("{}:{line}: {message}", path.display())
}

/// Declares how a file name is read and written.
macro_rules! file_field {
    ($name:ident, $what:literal, $empty:expr) => {
        impl Field for $name {
            const WHAT: &'static str = $what;
            fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
                let name = String::read(at)?;
                let make = $empty;
                Ok(make(name))
            }
            fn write(&self) -> Option<toml::Value> {
                self.name.write()
            }
            fn schema() -> serde_json::Value {
                json!({"type": "string", "format": "file"})
            }
        }
    };
}

file_field!(FrameFile, "the name of a trace of video frames", |name| FrameFile { name, trace: Arc::default() });
file_field!(ModelFile, "the name of a model file", |name| ModelFile { name, sources: Arc::new([]) });
