//! `aqumend status`.

use crate::Failure;

pub(crate) fn command(_arguments: lexopt::Parser) -> Result<(), Failure> {
    Err(Failure::refused("status is not built yet"))
}
