//! `aqumend attach` (production): a marker in the kernel before the shaper of a device, controlled by an AQM of the
//! library.
//!
//! - `options`, `rules`, `values`: the command line;
//! - `device`, `shaper`, `capacity`: the queue to regulate, and the packet rate of this machine;
//! - `design`, `sampled`: the nominal network, and the AQMs that can attach;
//! - `marker`: the BPF program;
//! - `controller`, `decayed_ratio`, `startup`, `autorate`, `rollback`, `regulator`: from readings to a probability;
//! - `run`, `timing`, `retry`, `service`: the control loop; `messages`, `rate_log`: its output.
//!
//! Everything fails open: an order expires after 200 ms, and only a shaper that `--rate` created is removed.

mod autorate;
mod capacity;
mod controller;
mod decayed_ratio;
mod design;
mod device;
mod marker;
mod messages;
mod options;
mod rate_log;
mod regulator;
mod retry;
mod rollback;
mod rules;
mod run;
mod sampled;
mod service;
mod shaper;
mod startup;
mod timing;
mod values;

use crate::netlink::Netlink;
use crate::{Context, Error};

pub(crate) fn command(arguments: lexopt::Parser) -> Result<(), Error> {
    match options::Options::read(arguments)? {
        None => Ok(()),
        Some(options) => run::run(options),
    }
}

/// Removes the leftovers of a killed aqumend from the device `name`. Returns a name for each.
pub(crate) fn remove_leftovers(name: &str) -> Result<Vec<&'static str>, Error> {
    let mut netlink = Netlink::open().context(|| "netlink".into())?;
    let device = device::find(&mut netlink, name)?;
    let mut removed = Vec::new();
    if marker::remove_leftover(&mut netlink, &device)? {
        removed.push("its marker");
    }
    if shaper::remove_leftover(&mut netlink, &device)? {
        removed.push("its token bucket");
    }
    Ok(removed)
}
