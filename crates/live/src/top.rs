//! `aqumend top`.

use crate::Failure;

pub(crate) fn command(_arguments: lexopt::Parser) -> Result<(), Failure> {
    Err(Failure::refused("top is not built yet"))
}
