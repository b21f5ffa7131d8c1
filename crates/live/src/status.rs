//! `aqumend status`: what is attached in this network namespace, and how it fares.

use lexopt::prelude::*;
use serde_json::{Value as Json, json};

use crate::telemetry::{SCHEMA, socket};
use crate::{Failure, Tried, shown};

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
        Some(device) if all.is_empty() => Err(Failure::Check(format!("{}: nothing is attached", shown(&device)))),
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
            Err(error) => return Err(Failure::refused(format!("{}: its aqumend: {error}", shown(device)))),
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
    // A link whose rate changes has another than its shaper.
    let (shaper_bps, link_bps) = (number("/shaper/rate_bps"), number("/now/link_bps"));
    let apart = (link_bps / shaper_bps - 1.0).abs() > 0.05;
    let link = if apart { format!(", lets through {:.2}", link_bps / 1e6) } else { String::new() };
    let mut lines = format!(
        "{}: {} above {} {} ({:.2} Mbit/s{link}): {:.1} ms in the queue (target {:.1}), p {:.4}, {:.2} Mbit/s, marked {}, dropped {} early and {} for want of room{regulating}",
        text("device"),
        text("aqm"),
        status["shaper"]["kind"].as_str().unwrap_or("?"),
        status["shaper"]["handle"].as_str().unwrap_or("?"),
        shaper_bps / 1e6,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Json {
        json!({
            "device": "eth0",
            "aqm": "pi",
            "regulating": true,
            "shaper": {"kind": "tbf", "handle": "a9e:", "rate_bps": 20_000_000},
            "target_s": 0.02,
            "now": {"link_bps": 20_900_000},
            "last_second": {"sojourn_s": 0.0184, "probability": 0.0123, "rate_bps": 19_500_000},
            "totals": {"marked_pkts": 7, "early_dropped_pkts": 8, "overflow_dropped_pkts": 9},
            "warnings": [],
        })
    }

    #[test]
    fn a_status_is_a_line_in_peoples_units() {
        let said = "eth0: pi above tbf a9e: (20.00 Mbit/s): 18.4 ms in the queue (target 20.0), p 0.0123, 19.50 Mbit/s, \
                    marked 7, dropped 8 early and 9 for want of room";
        assert_eq!(line(&status()), said);
        let mut idle = status();
        idle["regulating"] = json!(false);
        idle["warnings"] = json!(["one", "two"]);
        assert_eq!(line(&idle), format!("{said}, NOT REGULATING\n  warning: one\n  warning: two"));
    }

    #[test]
    fn a_link_that_lets_through_another_rate_than_its_shaper_is_told() {
        // A twentieth is the same rate; more on either side is another.
        for (link_bps, told) in [(20_900_000, false), (21_100_000, true), (19_100_000, false), (12_000_000, true)] {
            let mut status = status();
            status["now"]["link_bps"] = json!(link_bps);
            assert_eq!(line(&status).contains("lets through"), told, "{link_bps}");
        }
        let mut slow = status();
        slow["now"]["link_bps"] = json!(12_000_000);
        assert!(line(&slow).contains("(20.00 Mbit/s, lets through 12.00)"), "{}", line(&slow));
    }

    #[test]
    fn one_that_does_not_answer_is_told_by_its_warning() {
        let silent = json!({"device": "eth1", "silent": true, "regulating": false, "warnings": ["it hangs"]});
        assert_eq!(line(&silent), "eth1: it hangs");
        assert_eq!(line(&json!({"device": "eth1", "silent": true})), "eth1: ?");
    }

    #[test]
    fn only_one_that_is_slow_is_told_beside_the_others() {
        assert_eq!(read(&["nobody-is-here".into()]), Ok(vec![]));
        // No device has so long a name: the kernel says so at once.
        let long = "d".repeat(200);
        assert!(
            read(std::slice::from_ref(&long))
                .unwrap_err()
                .to_string()
                .starts_with(&format!("{}: its aqumend", shown(&long)))
        );
    }
}
