//! `aqumend attach` (production): a marker in the kernel above the shaper of a device, an AQM of the library here.
//!
//! Reading order: `options` (what is asked for, with `rules` for packets), `shaper` (the queue below), `ceiling` (what
//! this machine can bring to it), `design` (for which network), `sampled` (which AQMs can do it), `marker` (the program
//! in the kernel), `recent` (means), `controller` (readings in, probability out), `start` (over a full queue),
//! `regulator` (all of that), `patience` (a kernel that does not answer), `pace` (when), `run` (the loop), `told` (what
//! it says of itself).
//! Everything fails open: an order holds for 200 ms, and the shaper's life is never ours unless `--rate` made it.

mod autorate;
mod ceiling;
mod controller;
mod design;
mod device;
mod marker;
mod options;
mod pace;
mod patience;
mod rate_log;
mod recent;
mod regulator;
mod rollback;
mod rules;
mod run;
mod sampled;
mod service;
mod shaper;
mod start;
mod told;
mod values;

use crate::netlink::Netlink;
use crate::{Failure, Tried};

pub(crate) fn command(arguments: lexopt::Parser) -> Result<(), Failure> {
    match options::Options::read(arguments)? {
        None => {
            print!("{}", options::HELP);
            Ok(())
        }
        Some(options) => run::run(options),
    }
}

/// Removes from `name` what an aqumend that was killed left there: what it was, each in a word.
pub(crate) fn remove_leftovers(name: &str) -> Result<Vec<&'static str>, Failure> {
    let mut netlink = Netlink::open().or_refuse(|| "netlink".into())?;
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
