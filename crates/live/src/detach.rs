//! `aqumend detach`: ends the aqumend of a device, or removes what one that was killed left there.

use std::time::{Duration, Instant};

use lexopt::prelude::*;

use crate::telemetry::socket;
use crate::{Failure, Tried, attach};

const HELP: &str = "\
aqumend detach DEV: end the aqumend attached to DEV, or remove what a killed one left there; a shaper that is not ours stays
";
/// So long may an aqumend take to end.
const PATIENCE: Duration = Duration::from_secs(5);

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
    match socket::ask(&device, "detach").or_refuse(|| format!("{device}: its aqumend"))? {
        Some(answer) if answer == "ok" => await_end(&device),
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

fn await_end(device: &str) -> Result<(), Failure> {
    let asked = Instant::now();
    while !socket::is_gone(device) {
        if asked.elapsed() > PATIENCE {
            return Err(Failure::Check(format!("{device}: its aqumend was told to end and is still there")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
