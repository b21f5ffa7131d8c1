//! What is wrong with a scenario, in exactly one line that names file, line and key.

use std::fmt;

/// What is wrong, and where.
///
/// ```
/// use aqumen_scenario::Scenario;
///
/// let error = Scenario::parse("name = \"exp1\"\nduration = \"100\"\n", "exp1.toml").unwrap_err();
/// assert_eq!(error.to_string(), "exp1.toml:2: duration = \"100\": needs a unit, such as \"100ms\"");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The file, or another source such as `--aqm`; empty if there is none.
    pub file: String,
    /// The line, from 1; 0 if the value stands in no line.
    pub line: usize,
    /// The dotted key; empty if the whole file is meant.
    pub key: String,
    /// The value found, as it was written.
    pub value: Option<String>,
    /// What is wrong with it, and what would be right.
    pub message: String,
}

impl Error {
    /// An error about a whole file, or about no file at all.
    pub(crate) fn of_file(file: &str, message: impl Into<String>) -> Self {
        Error { file: file.into(), line: 0, key: String::new(), value: None, message: message.into() }
    }

    /// An error about the AQM of a SPEC.
    pub(crate) fn of_aqm(text: &str, message: impl Into<String>) -> Self {
        Error { key: "aqm".into(), value: Some(format!("\"{text}\"")), ..Error::of_file("", message) }
    }
}

/// Longest value shown.
const VALUE_CHARS_MAX: usize = 60;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}", one_line(&self.file))?;
            if self.line > 0 {
                write!(f, ":{}", self.line)?;
            }
            f.write_str(": ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}", one_line(&self.key))?;
            if let Some(value) = &self.value {
                write!(f, " = {}", shortened(&one_line(value)))?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{}", one_line(&self.message))
    }
}

impl std::error::Error for Error {}

/// `text` with everything escaped that could break the line or disturb a terminal.
fn one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}') {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.into(),
    }
}

/// " (did you mean NEAREST?)" if one of `known` is close to `name`, and the list of all.
pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    // Names are compared without regard to case, at most half of the letters wrong.
    let lower = name.to_lowercase();
    let nearest = known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.chars().count() / 2)
        .min_by_key(|(distance, _)| *distance);
    let list = known.join(", ");
    match nearest {
        _ if known.is_empty() => "; there is none".into(),
        Some((_, nearest)) if known.len() > 1 => format!("; did you mean {nearest}? known: {list}"),
        _ => format!("; known: {list}"),
    }
}
