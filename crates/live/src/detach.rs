//! `aqumend detach`: ends the aqumend of a device, or removes what one that was killed left there.

use std::time::Duration;

use lexopt::prelude::*;

use crate::telemetry::socket;
use crate::{Failure, Tried, attach, shown};

const HELP: &str = "\
aqumend detach DEV: end the aqumend attached to DEV, or remove what a killed one left there; a shaper that is not ours stays
";
/// So often is looked whether an aqumend has ended, each after `PAUSE`: for five seconds.
const LOOKS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) fn command(mut arguments: lexopt::Parser) -> Result<(), Failure> {
    let mut device = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(());
            }
            Value(name) if device.is_none() => device = Some(name.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let device = device.ok_or_else(|| Failure::refused("which device? aqumend detach DEV"))?;
    match socket::ask(&device, "detach").or_refuse(|| format!("{}: its aqumend", shown(&device)))? {
        Some(answer) if answer == "ok" => await_end(&device, LOOKS),
        Some(answer) => Err(Failure::refused(format!("{device}: {answer}"))),
        None => {
            let removed = attach::remove_leftovers(&device)?;
            if removed.is_empty() {
                return Err(Failure::refused(format!("{device}: no aqumend is attached, and none left anything")));
            }
            eprintln!("{device}: no aqumend was attached; removed what one left: {}", removed.join(", "));
            Ok(())
        }
    }
}

fn await_end(device: &str, looks: u32) -> Result<(), Failure> {
    for _ in 0..looks {
        if socket::is_gone(device) {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Err(Failure::Check(format!("{device}: its aqumend was told to end and is still there")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aqumend_that_stays_though_it_was_told_to_end_is_reported() {
        let device = format!("stays-{}", std::process::id());
        let there = socket::listen(&device).unwrap();
        let why = Failure::Check(format!("{device}: its aqumend was told to end and is still there"));
        assert_eq!(await_end(&device, 3), Err(why));
        drop(there);
        assert_eq!(await_end(&device, 3), Ok(()));
    }
}
