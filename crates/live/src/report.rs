//! `aqumend report`: a recording of `attach --record` as a page.

use std::fs::File;
use std::io::{self, BufReader, Write};

use crate::arguments::Command;
use crate::telemetry::page;
use crate::{Context, Error, shorten};

pub(crate) fn command(arguments: lexopt::Parser) -> Result<(), Error> {
    let command = Command {
        name: "report",
        head: "aqumend report RECORDING > PAGE.html: draw a recording of attach --record",
        operand: |path: &mut Option<String>| path,
        options: Vec::new(),
    };
    let mut path = None;
    if !command.read(arguments, &mut path)? {
        return Ok(());
    }
    let path = path.ok_or_else(|| Error::setup("which recording? aqumend report RECORDING > PAGE.html"))?;
    let page = File::open(&path).and_then(|file| page::recording_page(BufReader::new(file)));
    let page = page.context(|| shorten(&path))?;
    io::stdout().write_all(page.as_bytes()).context(|| "stdout".into())
}
