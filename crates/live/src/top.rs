//! `aqumend top`: the status of the attachments, again and again.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crate::arguments::{Command, Opt, store, whole_number};
use crate::telemetry::socket;
use crate::{Context, Error, shorten, status};

struct Options {
    device: Option<String>,
    interval: Duration,
    count: usize,
}

pub(crate) fn command(arguments: lexopt::Parser) -> Result<(), Error> {
    let command = Command {
        name: "top",
        head: "aqumend top [DEV] [OPTIONS]: watch the attachment to DEV, or all; ends with Ctrl-C. Exit code 1 if nothing is attached to DEV\n",
        operand: |options: &mut Options| &mut options.device,
        options: vec![
            Opt::new("interval TIME", "time between two updates; default 1s", |options, value| {
                let span = aqumen_scenario::read_span(value).context(|| format!("--interval {:?}", shorten(value)))?;
                let interval = Duration::from_nanos(span.as_nanos().clamp(50_000_000, 3_600_000_000_000));
                store(&mut options.interval, interval)
            }),
            Opt::new("count N", "end after N updates", |options, value| {
                store(&mut options.count, whole_number("count", value)?)
            }),
        ],
    };
    let mut options = Options { device: None, interval: Duration::from_secs(1), count: usize::MAX };
    if !command.read(arguments, &mut options)? {
        return Ok(());
    }
    let Options { device, interval, count } = options;
    let mut out = io::stdout().lock();
    let clear = if out.is_terminal() { "\x1b[H\x1b[2J" } else { "" };
    for pause in std::iter::once(Duration::ZERO).chain(std::iter::repeat(interval)).take(count) {
        std::thread::sleep(pause);
        let devices = device.as_ref().map_or_else(socket::devices, |device| Ok(vec![device.clone()]))?;
        let all = status::read(&devices)?;
        if let Some(device) = device.as_ref().filter(|_| all.is_empty()) {
            return Err(Error::Check(format!("{}: nothing is attached", shorten(device))));
        }
        let mut text = String::from(clear);
        all.iter().for_each(|one| text += &(status::line(one) + "\n"));
        if all.is_empty() {
            text += "nothing is attached in this network namespace\n";
        }
        // The reader may have ended.
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    Ok(())
}
