//! `aqumend link` (laboratory): a link in user space between two TUN devices.

use crate::Failure;

pub(crate) fn command(_arguments: lexopt::Parser) -> Result<(), Failure> {
    Err(Failure::refused("link is not built yet"))
}
