//! The command line: which command, and the exit code.
//!
//! A command is a function of the rest of the arguments; it writes data to stdout and talk to stderr. Exit codes: 0
//! done, 1 a check failed, 2 could not begin, 3 what it stood on went away.

use std::process::ExitCode;

use lexopt::prelude::*;

use crate::{Failure, attach, detach, lab, link, report, shown, status, top};

/// One command: its name, what `--help` says of it, and what it does.
type Command = (&'static str, &'static str, fn(lexopt::Parser) -> Result<(), Failure>);

const COMMANDS: [Command; 7] = [
    ("run", "laboratory: a scenario with the kernel's own TCP, in namespaces of its own", lab::command::run),
    ("link", "laboratory: a link of a scenario between two TUN devices", link::command),
    ("attach", "production: keep the queue of a shaper on a device short", attach::command),
    ("status", "what is attached, and how it fares", status::command),
    ("detach", "take the marker off a device", detach::command),
    ("top", "watch it", top::command),
    ("report", "draw a recording of it", report::command),
];

/// Runs the program.
pub fn main() -> ExitCode {
    match run(lexopt::Parser::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("aqumend: {failure}");
            failure.code()
        }
    }
}

fn run(mut arguments: lexopt::Parser) -> Result<(), Failure> {
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
                let known = COMMANDS.map(|(name, ..)| name).join(", ");
                Failure::refused(format!("unknown command {}; known: {known}", shown(&name.to_string_lossy())))
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
    text + "\naqumend COMMAND --help says more. Exit codes: 0 done, 1 a check failed, 2 could not begin, 3 lost what it stood on.\n"
}
