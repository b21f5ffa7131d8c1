//! `aqumend status`: the state of the attachments in this network namespace.

use serde_json::{Value as Json, json};

use crate::arguments::{Command, Opt, store};
use crate::telemetry::{SCHEMA, socket};
use crate::{Context, Error, shorten};

#[derive(Default)]
struct Options {
    device: Option<String>,
    json: bool,
}

pub(crate) fn command(arguments: lexopt::Parser) -> Result<(), Error> {
    let command = Command {
        name: "status",
        head: "aqumend status [DEV] [--json]: the state of the attachment to DEV, or of all; exit code 1 if nothing is attached to DEV,\n\
               or what is attached does not answer\n",
        operand: |options: &mut Options| &mut options.device,
        options: vec![Opt::new("json", "print JSON", |options, _| store(&mut options.json, true))],
    };
    let mut options = Options::default();
    if !command.read(arguments, &mut options)? {
        return Ok(());
    }
    let Options { device, json: as_json } = options;
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
        Some(device) if all.is_empty() => Err(Error::Check(format!("{}: nothing is attached", shorten(&device)))),
        _ => {
            let silent: Vec<String> = all.iter().filter(|one| one["silent"] == true).map(line).collect();
            if silent.is_empty() { Ok(()) } else { Err(Error::Check(silent.join("; "))) }
        }
    }
}

/// Status of each of `devices` with an aqumend; for one that does not answer, a warning that says so.
pub(crate) fn read(devices: &[String]) -> Result<Vec<Json>, Error> {
    let mut all = Vec::new();
    for device in devices {
        match socket::ask(device, "status") {
            Ok(None) => {}
            Ok(Some(text)) => all.push(serde_json::from_str(&text).context(|| format!("{device}: its status"))?),
            // The other devices are still reported.
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                let warning = format!("its aqumend: {error}");
                all.push(json!({"device": device, "silent": true, "regulating": false, "warnings": [warning]}));
            }
            Err(error) => return Err(Error::setup(format!("{}: its aqumend: {error}", shorten(device)))),
        }
    }
    Ok(all)
}

/// Status as a line of text, with means over the last second.
pub(crate) fn line(status: &Json) -> String {
    let text = |key: &str| status[key].as_str().unwrap_or("?").to_owned();
    if status["silent"] == true {
        return format!("{}: {}", text("device"), status["warnings"][0].as_str().unwrap_or("?"));
    }
    let number = |path: &str| status.pointer(path).and_then(Json::as_f64).unwrap_or(f64::NAN);
    let regulating = if status["regulating"] == true { "" } else { ", NOT REGULATING" };
    // The rate of the link may differ from the shaper's.
    let (shaper_bps, link_bps) = (number("/shaper/rate_bps"), number("/now/link_bps"));
    let apart = (link_bps / shaper_bps - 1.0).abs() > 0.05;
    let link = if apart { format!(", measured {:.2}", link_bps / 1e6) } else { String::new() };
    let mut lines = format!(
        "{}: {} above {} {} ({:.2} Mbit/s{link}): {:.1} ms in the queue (target {:.1}), p {:.4}, {:.2} Mbit/s, marked {}, dropped {} early and {} by overflow{regulating}",
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
    fn a_status_line_has_common_units() {
        let expected = "eth0: pi above tbf a9e: (20.00 Mbit/s): 18.4 ms in the queue (target 20.0), p 0.0123, 19.50 Mbit/s, \
                    marked 7, dropped 8 early and 9 by overflow";
        assert_eq!(line(&status()), expected);
        let mut idle = status();
        idle["regulating"] = json!(false);
        idle["warnings"] = json!(["one", "two"]);
        assert_eq!(line(&idle), format!("{expected}, NOT REGULATING\n  warning: one\n  warning: two"));
    }

    #[test]
    fn a_measured_rate_other_than_the_shapers_is_shown() {
        // Up to a twentieth it is the same rate.
        for (link_bps, warned) in [(20_900_000, false), (21_100_000, true), (19_100_000, false), (12_000_000, true)] {
            let mut status = status();
            status["now"]["link_bps"] = json!(link_bps);
            assert_eq!(line(&status).contains("measured"), warned, "{link_bps}");
        }
        let mut slow = status();
        slow["now"]["link_bps"] = json!(12_000_000);
        assert!(line(&slow).contains("(20.00 Mbit/s, measured 12.00)"), "{}", line(&slow));
    }

    #[test]
    fn a_silent_aqumend_is_shown_by_its_warning() {
        let silent = json!({"device": "eth1", "silent": true, "regulating": false, "warnings": ["it hangs"]});
        assert_eq!(line(&silent), "eth1: it hangs");
        assert_eq!(line(&json!({"device": "eth1", "silent": true})), "eth1: ?");
    }

    #[test]
    fn devices_without_an_aqumend_are_left_out() {
        assert_eq!(read(&["nobody-is-here".into()]), Ok(vec![]));
        // The kernel refuses a device name of this length at once.
        let long = "d".repeat(200);
        assert!(
            read(std::slice::from_ref(&long))
                .unwrap_err()
                .to_string()
                .starts_with(&format!("{}: its aqumend", shorten(&long)))
        );
    }
}
