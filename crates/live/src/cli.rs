//! Command line: dispatch of commands, and the exit code.
//!
//! A command is a function of the remaining arguments. It writes data to stdout and messages to stderr.

use std::process::ExitCode;

use lexopt::prelude::*;

use crate::{Error, attach, detach, report, shorten, status, top};
#[cfg(feature = "laboratory")]
use crate::{lab, link};

/// A command: name, help text and function.
type Command = (&'static str, &'static str, fn(lexopt::Parser) -> Result<(), Error>);

const COMMANDS: &[Command] = &[
    #[cfg(feature = "laboratory")]
    ("run", "laboratory: a scenario with the kernel's own TCP, in separate namespaces", lab::command::run),
    #[cfg(feature = "laboratory")]
    ("link", "laboratory: the links of a scenario between two TUN devices", link::command),
    ("attach", "production: keep the queue of a shaper on a device short", attach::command),
    ("status", "the state of each attachment", status::command),
    ("detach", "end an attachment", detach::command),
    ("top", "watch the state of the attachments", top::command),
    ("report", "draw a recording of an attachment", report::command),
];

/// Runs the program.
pub fn main() -> ExitCode {
    match run(lexopt::Parser::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("aqumend: {error}");
            error.code()
        }
    }
}

fn run(mut arguments: lexopt::Parser) -> Result<(), Error> {
    match arguments.next()? {
        Some(Long("version")) => {
            println!("aqumend {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Some(Long("help") | Short('h')) | None => {
            print!("{}", help());
            Ok(())
        }
        Some(Value(name)) => {
            let command = COMMANDS.iter().find(|(known, ..)| name == *known);
            let (_, _, command) = command.ok_or_else(|| {
                let known = COMMANDS.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
                Error::setup(format!("unknown command {}; choose from: {known}", shorten(&name.to_string_lossy())))
            })?;
            command(arguments)
        }
        Some(other) => Err(other.unexpected().into()),
    }
}

fn help() -> String {
    let mut text =
        String::from("aqumend: the AQMs of Aqumen on Linux\n\nUsage: aqumend COMMAND [OPTIONS]\n\nCommands:\n");
    for (name, what, _) in COMMANDS {
        text += &format!("  {name:<8} {what}\n");
    }
    text + "\nSee aqumend COMMAND --help. Exit codes: 0 success, 1 a check failed, 2 the command could not start, 3 it lost its device, shaper or marker.\n"
}
