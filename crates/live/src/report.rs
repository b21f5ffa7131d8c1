//! `aqumend report`: a recording of `attach --record` as a page.

use std::fs::File;
use std::io::{self, BufReader, Write};

use lexopt::prelude::*;

use crate::telemetry::page;
use crate::{Failure, Tried, shown};

const HELP: &str = "\
aqumend report RECORDING > PAGE.html: draw what attach --record wrote
";

pub(crate) fn command(mut arguments: lexopt::Parser) -> Result<(), Failure> {
    let mut path = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(());
            }
            Value(name) if path.is_none() => path = Some(std::path::PathBuf::from(name)),
            other => return Err(other.unexpected().into()),
        }
    }
    let path = path.ok_or_else(|| Failure::refused("which recording? aqumend report RECORDING > PAGE.html"))?;
    let at = || shown(&path.display().to_string());
    let page = File::open(&path).and_then(|file| page::of_recording(BufReader::new(file))).or_refuse(at)?;
    io::stdout().write_all(page.as_bytes()).or_refuse(|| "stdout".into())
}
