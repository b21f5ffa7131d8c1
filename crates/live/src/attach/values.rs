//! Values of options: name-value pairs, and the error of an invalid value.

use crate::{Error, shorten};

/// Error of an invalid value: option, value, accepted values.
pub(super) fn invalid(option: &str, value: &str, accepted: impl std::fmt::Display) -> Error {
    Error::setup(format!("--{option} {}: {accepted}", shorten(&format!("{value:?}"))))
}

/// Splits `a=1,b=2` into pairs.
pub(super) fn pairs<'a>(
    option: &'static str,
    text: &'a str,
) -> impl Iterator<Item = Result<(&'a str, &'a str), Error>> {
    text.split(',')
        .filter(|pair| !pair.is_empty())
        .map(move |pair| pair.split_once('=').ok_or_else(|| invalid(option, pair, "must be NAME=VALUE")))
}
