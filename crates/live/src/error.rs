//! Errors: one line each, with an exit code.

use std::fmt;
use std::process::ExitCode;

/// Error that ends the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// A check failed (exit code 1).
    Check(String),
    /// The command could not start: the command line, a file, a capability, the kernel (exit code 2). Nothing is left
    /// behind.
    Setup(String),
    /// A device, shaper or other resource was lost while running (exit code 3). Traffic flows.
    Runtime(String),
}

impl Error {
    /// Makes an [`Error::Setup`] with `message`.
    pub fn setup(message: impl Into<String>) -> Self {
        Error::Setup(message.into())
    }

    /// Makes an [`Error::Runtime`] with `message`.
    pub fn runtime(message: impl Into<String>) -> Self {
        Error::Runtime(message.into())
    }

    /// Exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Error::Check(_) => 1,
            Error::Setup(_) => 2,
            Error::Runtime(_) => 3,
        })
    }
}

/// Longest quotation of user input, characters.
const ECHO_CHARS_MAX: usize = 80;
/// Quotes, brackets and the like around a quotation.
const AROUND_CHARS_MAX: usize = 8;

/// Shortens `text` for a message.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(ECHO_CHARS_MAX) {
        None => text.into(),
        Some(_) => text.chars().take(ECHO_CHARS_MAX - 3).chain("...".chars()).collect(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::Check(message) | Error::Setup(message) | Error::Runtime(message)) = self;
        // One line, whatever a file name or a message of the kernel contains. No word of our own is that long.
        let long = |word: &str| word.chars().count() > ECHO_CHARS_MAX + AROUND_CHARS_MAX;
        let message: Vec<String> =
            message.split(' ').map(|word| if long(word) { shorten(word) } else { word.into() }).collect();
        message.join(" ").chars().try_for_each(|c| match c {
            '\n' | '\r' => f.write_str(" "),
            c if c.is_control() => write!(f, "{}", c.escape_default()),
            c => write!(f, "{c}"),
        })
    }
}

impl std::error::Error for Error {}

impl From<lexopt::Error> for Error {
    fn from(error: lexopt::Error) -> Self {
        use lexopt::Error as E;
        let cut = |text: std::ffi::OsString| shorten(&text.to_string_lossy()).into();
        let error = match error {
            E::UnexpectedArgument(value) => E::UnexpectedArgument(cut(value)),
            E::UnexpectedOption(option) => E::UnexpectedOption(shorten(&option)),
            E::UnexpectedValue { option, value } => E::UnexpectedValue { option: shorten(&option), value: cut(value) },
            E::MissingValue { option } => E::MissingValue { option: option.as_deref().map(shorten) },
            E::NonUnicodeValue(value) => E::NonUnicodeValue(cut(value)),
            other => other,
        };
        Error::Setup(format!("{error}; see aqumend --help"))
    }
}

impl From<aqumen_scenario::Error> for Error {
    fn from(error: aqumen_scenario::Error) -> Self {
        Error::Setup(error.to_string())
    }
}

/// Adds context to an error of the kernel or of a library.
pub trait Context<T> {
    /// Turns an error into a setup error "`context`: error".
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|error| Error::Setup(format!("{}: {error}", what())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_exit_code() {
        let code = |error: Error| format!("{:?}", error.code());
        let wanted = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(code(Error::Check("late".into())), wanted(1));
        assert_eq!(code(Error::setup("no such device")), wanted(2));
        assert_eq!(code(Error::runtime("the device went away")), wanted(3));
    }

    #[test]
    fn a_message_quotes_at_most_eighty_characters() {
        assert_eq!(shorten(&"\u{e9}".repeat(80)), "\u{e9}".repeat(80));
        assert_eq!(shorten(&"\u{e9}".repeat(81)), "\u{e9}".repeat(77) + "...");
        let long = Error::setup(format!("{}: no such file", "x".repeat(5000)));
        assert_eq!(long.to_string(), format!("{}... no such file", "x".repeat(77)));
        let whole = Error::setup(format!("({:?}): no such file", "x".repeat(80)));
        assert_eq!(whole.to_string(), format!("(\"{}\"): no such file", "x".repeat(80)));
        let words = "a word ".repeat(1000);
        let unexpected = Error::from(lexopt::Error::UnexpectedArgument(words.clone().into()));
        assert!(unexpected.to_string().len() < 150, "{unexpected}");
        let unexpected = Error::from(lexopt::Error::UnexpectedOption(format!("--{words}")));
        assert!(unexpected.to_string().len() < 150, "{unexpected}");
    }

    #[test]
    fn an_error_is_one_line_whatever_it_contains() {
        assert_eq!(Error::setup("a\nb\r\u{1b}[31mc \u{e9}").to_string(), "a b \\u{1b}[31mc \u{e9}");
        let result: Result<(), _> = Err("No such file").context(|| "eth9".into());
        assert_eq!(result, Err(Error::Setup("eth9: No such file".into())));
        assert_eq!(Ok::<_, String>(7).context(|| unreachable!()), Ok(7));
    }
}
