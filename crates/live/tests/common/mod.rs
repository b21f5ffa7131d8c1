//! Helpers of the laboratory's tests.

use std::path::Path;

/// Whether a test of `what` must be skipped; prints a message if so.
pub(crate) fn skipped(what: &str) -> bool {
    let missing = if rustix::process::geteuid().as_raw() != 0 {
        "root"
    } else if !Path::new("/dev/net/tun").exists() {
        "/dev/net/tun"
    } else {
        return false;
    };
    assert!(std::env::var_os("CI").is_none(), "{what} needs {missing}; with CI=true nothing may be skipped");
    eprintln!("Skipped, it needs {missing}: {what}.");
    true
}
