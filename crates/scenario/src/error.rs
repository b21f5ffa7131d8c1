//! Errors of a scenario, in exactly one line with file, line and key.

use std::fmt;

/// An error with its place.
///
/// ```
/// use aqumen_scenario::Scenario;
///
/// let error = Scenario::parse("name = \"exp1\"\nduration = \"100\"\n", "exp1.toml").unwrap_err();
/// assert_eq!(error.to_string(), "exp1.toml:2: duration = \"100\": needs a unit, such as \"100ms\" or \"100s\"");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The file, or another source such as `--aqm`; empty if there is none.
    pub file: String,
    /// Line number from 1; 0 if unknown.
    pub line: usize,
    /// Dotted key; empty for the whole file.
    pub key: String,
    /// The value found, as it was written.
    pub value: Option<String>,
    /// Problem, and accepted values.
    pub message: String,
}

impl Error {
    /// An error about a whole file, or without a file.
    pub(crate) fn for_file(file: &str, message: impl Into<String>) -> Self {
        Error { file: file.into(), line: 0, key: String::new(), value: None, message: message.into() }
    }

    /// An error about the AQM of a SPEC.
    pub(crate) fn for_aqm(text: &str, message: impl Into<String>) -> Self {
        Error { key: "aqm".into(), value: Some(format!("\"{text}\"")), ..Error::for_file("", message) }
    }
}

/// Dotted path and message.
pub(crate) type PathError = (String, String);

/// Key of a table and message.
pub(crate) type KeyError = (&'static str, String);

/// Longest list of names in a message, characters.
const LIST_CHARS_MAX: usize = 200;
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

/// Escapes characters that could break the line or disturb a terminal.
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

/// Truncates a long text for a message.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.into(),
    }
}

/// Suggests the nearest of `known`, and lists them all as far as a line permits.
pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    suggestion_in(name, known, None)
}

/// As [`suggestion`]; a truncated list refers to `command`.
pub(crate) fn suggestion_listed<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, command: &str) -> String {
    suggestion_in(name, known, Some(command))
}

fn suggestion_in<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, command: Option<&str>) -> String {
    // Profiles may have the names of built-in AQMs.
    let mut all: Vec<&str> = Vec::new();
    known.into_iter().for_each(|name| {
        if !all.contains(&name) {
            all.push(name)
        }
    });
    // Names are compared case-insensitively; less than half of the letters may differ, or one.
    let lower = name.to_lowercase();
    let nearest = all
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count().saturating_sub(1) / 2).max(1))
        .min_by_key(|(distance, _)| *distance);
    let list = listed(&all, command);
    match nearest {
        _ if all.is_empty() => "; there is none".into(),
        Some((_, nearest)) if all.len() > 1 => format!("; did you mean {nearest}? known: {list}"),
        _ => format!("; known: {list}"),
    }
}

/// Joins `names`; a long list is truncated, with the number omitted and the command that lists all.
fn listed(names: &[&str], command: Option<&str>) -> String {
    let whole = names.join(", ");
    if whole.chars().count() <= LIST_CHARS_MAX {
        return whole;
    }
    let mut space = LIST_CHARS_MAX;
    let fits = |name: &&&str| {
        let left = space.checked_sub(name.chars().count() + 2);
        space = left.unwrap_or(0);
        left.is_some()
    };
    let shown: Vec<&str> = names.iter().take_while(fits).copied().collect();
    let lists = command.map_or(String::new(), |command| format!("; {command} lists all"));
    format!("{}, ... and {} more{lists}", shown.join(", "), names.len() - shown.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_ends_at_a_word_and_names_the_command() {
        let names: Vec<String> = (0..60).map(|i| format!("name-{i}")).collect();
        let text = suggestion_listed("nam-7", names.iter().map(String::as_str), "aqumen list names");
        let (hint, list) = text.split_once(" known: ").unwrap();
        assert_eq!(hint, "; did you mean name-7?");
        let (shown, rest) = list.split_once(", ... and ").unwrap();
        assert!(
            shown.chars().count() <= LIST_CHARS_MAX && shown.split(", ").all(|name| names.iter().any(|n| n == name))
        );
        assert_eq!(rest, format!("{} more; aqumen list names lists all", 60 - shown.split(", ").count()));
    }

    #[test]
    fn a_short_list_is_whole_and_names_each_once() {
        assert_eq!(suggestion("x", ["pi", "red", "pi"]), "; known: pi, red");
        assert_eq!(suggestion("x", []), "; there is none");
    }

    #[test]
    fn a_name_that_shares_half_of_its_letters_with_another_is_not_taken_for_it() {
        assert_eq!(suggestion("wave", ["cake", "pi"]), "; known: cake, pi");
        assert_eq!(suggestion("thru", ["through", "pi"]), "; did you mean through? known: through, pi");
        assert_eq!(suggestion("pj", ["cake", "pi"]), "; did you mean pi? known: cake, pi");
    }
}
