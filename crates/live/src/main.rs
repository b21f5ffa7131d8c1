//! The program `aqumend`; the library does the work.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    aqumen_live::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("aqumend: needs Linux: its links, namespaces and marker are the Linux kernel's");
    ExitCode::from(2)
}
