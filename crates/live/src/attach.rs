//! `aqumend attach`.

mod marker;

use crate::Failure;

pub(crate) fn command(_arguments: lexopt::Parser) -> Result<(), Failure> {
    Err(Failure::refused("attach is not built yet"))
}
