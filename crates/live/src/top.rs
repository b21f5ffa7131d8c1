//! `aqumend top`: the status of everything attached, again and again.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use lexopt::prelude::*;

use crate::lab::command::whole_number;
use crate::telemetry::socket;
use crate::{Failure, Tried, shown, status};

const HELP: &str = "\
aqumend top [DEV] [--interval TIME] [--count N]: watch what is attached, to DEV alone if it is named; ends with Ctrl-C. Exit code 1 if
nothing is attached to DEV
";

pub(crate) fn command(mut arguments: lexopt::Parser) -> Result<(), Failure> {
    let mut device = None;
    let (mut interval, mut count) = (Duration::from_secs(1), usize::MAX);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(());
            }
            Long("interval") => {
                let value = arguments.value()?.string()?;
                let span =
                    aqumen_scenario::read_span(&value).or_refuse(|| format!("--interval {:?}", shown(&value)))?;
                interval = Duration::from_nanos(span.as_nanos().clamp(50_000_000, 3_600_000_000_000));
            }
            Long("count") => count = whole_number(&mut arguments, "count")?,
            Value(name) if device.is_none() => device = Some(name.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let mut out = io::stdout().lock();
    let clear = if out.is_terminal() { "\x1b[H\x1b[2J" } else { "" };
    for pause in std::iter::once(Duration::ZERO).chain(std::iter::repeat(interval)).take(count) {
        std::thread::sleep(pause);
        let devices = device.as_ref().map_or_else(socket::devices, |device| Ok(vec![device.clone()]))?;
        let all = status::read(&devices)?;
        if let Some(device) = device.as_ref().filter(|_| all.is_empty()) {
            return Err(Failure::Check(format!("{}: nothing is attached", shown(device))));
        }
        let mut text = String::from(clear);
        all.iter().for_each(|one| text += &(status::line(one) + "\n"));
        if all.is_empty() {
            text += "nothing is attached in this network namespace\n";
        }
        // Whoever reads may leave.
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    Ok(())
}
