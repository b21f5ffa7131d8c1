//! What goes wrong, in one line, with the exit code that says whose fault it is.

use std::fmt;
use std::process::ExitCode;

/// Why the program ends early.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// A check failed (exit code 1).
    Check(String),
    /// It could not begin: the command line, a file, a capability, the kernel (exit code 2). Nothing is left behind.
    Refused(String),
    /// It ran, and what it stood on went away (exit code 3). Traffic flows.
    Lost(String),
}

impl Failure {
    /// [`Failure::Refused`] with `message`.
    pub fn refused(message: impl Into<String>) -> Self {
        Failure::Refused(message.into())
    }

    /// [`Failure::Lost`] with `message`.
    pub fn lost(message: impl Into<String>) -> Self {
        Failure::Lost(message.into())
    }

    /// The exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Check(_) => 1,
            Failure::Refused(_) => 2,
            Failure::Lost(_) => 3,
        })
    }
}

/// Longest echo of what somebody gave, characters.
const ECHO_CHARS_MAX: usize = 80;
/// Quotes, brackets and the like that a message may have around it.
const AROUND_CHARS_MAX: usize = 8;

/// `text` as a message may echo it: a long one is cut off.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(ECHO_CHARS_MAX) {
        None => text.into(),
        Some(_) => text.chars().take(ECHO_CHARS_MAX - 3).chain("...".chars()).collect(),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Check(message) | Failure::Refused(message) | Failure::Lost(message)) = self;
        // One line, whatever a file name or a kernel's message brings in; no word of our own is so long.
        let long = |word: &str| word.chars().count() > ECHO_CHARS_MAX + AROUND_CHARS_MAX;
        let message: Vec<String> =
            message.split(' ').map(|word| if long(word) { shown(word) } else { word.into() }).collect();
        message.join(" ").chars().try_for_each(|c| match c {
            '\n' | '\r' => f.write_str(" "),
            c if c.is_control() => write!(f, "{}", c.escape_default()),
            c => write!(f, "{c}"),
        })
    }
}

impl std::error::Error for Failure {}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        use lexopt::Error as E;
        let cut = |text: std::ffi::OsString| shown(&text.to_string_lossy()).into();
        let error = match error {
            E::UnexpectedArgument(value) => E::UnexpectedArgument(cut(value)),
            E::UnexpectedOption(option) => E::UnexpectedOption(shown(&option)),
            E::UnexpectedValue { option, value } => E::UnexpectedValue { option: shown(&option), value: cut(value) },
            E::MissingValue { option } => E::MissingValue { option: option.as_deref().map(shown) },
            E::NonUnicodeValue(value) => E::NonUnicodeValue(cut(value)),
            other => other,
        };
        Failure::Refused(format!("{error}; see aqumend --help"))
    }
}

impl From<aqumen_scenario::Error> for Failure {
    fn from(error: aqumen_scenario::Error) -> Self {
        Failure::Refused(error.to_string())
    }
}

/// What was tried, and what the kernel answered.
pub trait Tried<T> {
    /// Refuses with "`what`: the kernel's word".
    fn or_refuse(self, what: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> Tried<T> for Result<T, E> {
    fn or_refuse(self, what: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure::Refused(format!("{}: {error}", what())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_to_blame_is_told_by_the_exit_code() {
        let code = |failure: Failure| format!("{:?}", failure.code());
        let wanted = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(code(Failure::Check("late".into())), wanted(1));
        assert_eq!(code(Failure::refused("no such device")), wanted(2));
        assert_eq!(code(Failure::lost("the device went away")), wanted(3));
    }

    #[test]
    fn a_message_echoes_at_most_eighty_characters() {
        assert_eq!(shown(&"\u{e9}".repeat(80)), "\u{e9}".repeat(80));
        assert_eq!(shown(&"\u{e9}".repeat(81)), "\u{e9}".repeat(77) + "...");
        let long = Failure::refused(format!("{}: no such file", "x".repeat(5000)));
        assert_eq!(long.to_string(), format!("{}... no such file", "x".repeat(77)));
        let whole = Failure::refused(format!("({:?}): no such file", "x".repeat(80)));
        assert_eq!(whole.to_string(), format!("(\"{}\"): no such file", "x".repeat(80)));
        let words = "a word ".repeat(1000);
        let unexpected = Failure::from(lexopt::Error::UnexpectedArgument(words.clone().into()));
        assert!(unexpected.to_string().len() < 150, "{unexpected}");
        let unexpected = Failure::from(lexopt::Error::UnexpectedOption(format!("--{words}")));
        assert!(unexpected.to_string().len() < 150, "{unexpected}");
    }

    #[test]
    fn a_failure_is_one_line_whatever_stands_in_it() {
        assert_eq!(Failure::refused("a\nb\r\u{1b}[31mc \u{e9}").to_string(), "a b \\u{1b}[31mc \u{e9}");
        let tried: Result<(), _> = Err("No such file").or_refuse(|| "eth9".into());
        assert_eq!(tried, Err(Failure::Refused("eth9: No such file".into())));
        assert_eq!(Ok::<_, String>(7).or_refuse(|| unreachable!()), Ok(7));
    }
}
