//! Values of options: name-value pairs, and the error of a wrong value.

use crate::{Failure, shown};

/// Makes the error of a wrong value: option, value, accepted values.
pub(super) fn wrong(option: &str, value: &str, accepted: impl std::fmt::Display) -> Failure {
    Failure::refused(format!("--{option} {}: {accepted}", shown(&format!("{value:?}"))))
}

/// Splits `a=1,b=2` into pairs.
pub(super) fn pairs<'a>(
    option: &'static str,
    text: &'a str,
) -> impl Iterator<Item = Result<(&'a str, &'a str), Failure>> {
    text.split(',')
        .filter(|pair| !pair.is_empty())
        .map(move |pair| pair.split_once('=').ok_or_else(|| wrong(option, pair, "must be NAME=VALUE")))
}
