//! `aqumend status`: what is attached in this network namespace, and how it fares.

use lexopt::prelude::*;
use serde_json::{Value as Json, json};

use crate::telemetry::{SCHEMA, socket};
use crate::{Failure, Tried};

const HELP: &str = "\
aqumend status [DEV] [--json]: what is attached, and how it fares; exit code 1 if nothing is attached to DEV, or what is attached does
not answer
";

pub(crate) fn command(mut arguments: lexopt::Parser) -> Result<(), Failure> {
    let (mut device, mut as_json) = (None, false);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(());
            }
            Long("json") => as_json = true,
            Value(name) if device.is_none() => device = Some(name.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let devices = match &device {
        Some(device) => vec![device.clone()],
        None => socket::devices()?,
    };
    let all = read(&devices)?;
    if as_json {
        println!("{}", json!({"schema": SCHEMA, "attached": all}));
    } else {
        all.iter().filter(|one| one["silent"] != true).for_each(|one| println!("{}", line(one)));
        if all.is_empty() && device.is_none() {
            println!("nothing is attached in this network namespace");
        }
    }
    match device {
        Some(device) if all.is_empty() => Err(Failure::Check(format!("{device}: nothing is attached"))),
        _ => {
            let silent: Vec<String> = all.iter().filter(|one| one["silent"] == true).map(line).collect();
            if silent.is_empty() { Ok(()) } else { Err(Failure::Check(silent.join("; "))) }
        }
    }
}

/// The status of each of `devices` that has an aqumend; of one that does not answer, that.
pub(crate) fn read(devices: &[String]) -> Result<Vec<Json>, Failure> {
    let mut all = Vec::new();
    for device in devices {
        match socket::ask(device, "status") {
            Ok(None) => {}
            Ok(Some(text)) => all.push(serde_json::from_str(&text).or_refuse(|| format!("{device}: its status"))?),
            // The others are still to be told of.
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                let warning = format!("its aqumend: {error}");
                all.push(json!({"device": device, "silent": true, "regulating": false, "warnings": [warning]}));
            }
            Err(error) => return Err(Failure::refused(format!("{device}: its aqumend: {error}"))),
        }
    }
    Ok(all)
}

/// A status as people read it: means over the last second.
pub(crate) fn line(status: &Json) -> String {
    let text = |key: &str| status[key].as_str().unwrap_or("?").to_owned();
    if status["silent"] == true {
        return format!("{}: {}", text("device"), status["warnings"][0].as_str().unwrap_or("?"));
    }
    let number = |path: &str| status.pointer(path).and_then(Json::as_f64).unwrap_or(f64::NAN);
    let regulating = if status["regulating"] == true { "" } else { ", NOT REGULATING" };
    let mut lines = format!(
        "{}: {} above {} {} ({:.2} Mbit/s): {:.1} ms in the queue (target {:.1}), p {:.4}, {:.2} Mbit/s, marked {}, dropped {} early and {} for want of room{regulating}",
        text("device"),
        text("aqm"),
        status["shaper"]["kind"].as_str().unwrap_or("?"),
        status["shaper"]["handle"].as_str().unwrap_or("?"),
        number("/shaper/rate_bps") / 1e6,
        1e3 * number("/last_second/sojourn_s"),
        1e3 * number("/target_s"),
        number("/last_second/probability"),
        number("/last_second/rate_bps") / 1e6,
        number("/totals/marked_pkts"),
        number("/totals/early_dropped_pkts"),
        number("/totals/overflow_dropped_pkts"),
    );
    for warning in status["warnings"].as_array().into_iter().flatten() {
        lines += &format!("\n  warning: {}", warning.as_str().unwrap_or("?"));
    }
    lines
}
