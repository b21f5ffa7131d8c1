//! `aqumend detach`.

use crate::Failure;

pub(crate) fn command(_arguments: lexopt::Parser) -> Result<(), Failure> {
    Err(Failure::refused("detach is not built yet"))
}
