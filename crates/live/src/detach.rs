//! `aqumend detach`: ends the aqumend of a device, or removes what a killed one left there.

use std::time::Duration;

use crate::arguments::Command;
use crate::telemetry::socket;
use crate::{Context, Error, attach, shorten};

/// Number of checks whether an aqumend has ended, one for each `PAUSE`: five seconds.
const CHECKS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) fn command(arguments: lexopt::Parser) -> Result<(), Error> {
    let command = Command {
        name: "detach",
        head: "aqumend detach DEV: end the aqumend attached to DEV, or remove what a killed one left there; an existing shaper is left alone",
        operand: |device: &mut Option<String>| device,
        options: Vec::new(),
    };
    let mut device = None;
    if !command.read(arguments, &mut device)? {
        return Ok(());
    }
    let device = device.ok_or_else(|| Error::setup("which device? aqumend detach DEV"))?;
    match socket::ask(&device, "detach").context(|| format!("{}: its aqumend", shorten(&device)))? {
        Some(answer) if answer == "ok" => await_end(&device, CHECKS),
        Some(answer) => Err(Error::setup(format!("{device}: {answer}"))),
        None => {
            let removed = attach::remove_leftovers(&device)?;
            if removed.is_empty() {
                return Err(Error::setup(format!("{device}: no aqumend is attached, and none left anything")));
            }
            eprintln!("{device}: no aqumend was attached; removed what one left: {}", removed.join(", "));
            Ok(())
        }
    }
}

fn await_end(device: &str, checks: u32) -> Result<(), Error> {
    for _ in 0..checks {
        if socket::is_gone(device) {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Err(Error::Check(format!("{device}: its aqumend was asked to end and still runs")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aqumend_that_does_not_end_is_reported() {
        let device = format!("stays-{}", std::process::id());
        let listener = socket::listen(&device).unwrap();
        let error = Error::Check(format!("{device}: its aqumend was asked to end and still runs"));
        assert_eq!(await_end(&device, 3), Err(error));
        drop(listener);
        assert_eq!(await_end(&device, 3), Ok(()));
    }
}
