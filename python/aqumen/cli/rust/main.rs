//! The command line `aqumen` with the AQM `my-law`: `cargo run --release -- compare arm-pfc/exp1 --aqm my-law,pi`.

use std::env::{self, consts};
use std::io;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let error = match library() {
        Ok(library) => start(&library),
        Err(error) => error,
    };
    eprintln!("my-law: {error}");
    ExitCode::from(2)
}

/// Returns the path of the library, which cargo builds beside this program.
fn library() -> io::Result<String> {
    let name = format!("{}{}{}", consts::DLL_PREFIX, env!("CARGO_PKG_NAME").replace('-', "_"), consts::DLL_SUFFIX);
    let path = env::current_exe()?.with_file_name(name);
    match path.is_file() {
        true => Ok(path.display().to_string()),
        false => Err(io::Error::other(format!("{}: no such file; `cargo build --release` makes it", path.display()))),
    }
}

/// Becomes `aqumen`, or `python3 -m aqumen`, with the library; returns why it cannot.
fn start(library: &str) -> io::Error {
    let mut error = io::Error::other("");
    for words in [&["aqumen"][..], &["python3", "-m", "aqumen"]] {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(env::args_os().skip(1)).env("AQUMEN_CORE", library);
        error = become_command(&mut command);
        if error.kind() != io::ErrorKind::NotFound {
            break;
        }
    }
    io::Error::other(format!("cannot start aqumen: {error}; install it, or activate its environment"))
}

#[cfg(unix)]
fn become_command(command: &mut Command) -> io::Error {
    use std::os::unix::process::CommandExt;
    command.exec()
}

#[cfg(not(unix))]
fn become_command(command: &mut Command) -> io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(2)),
        Err(error) => error,
    }
}
