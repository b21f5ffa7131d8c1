//! Row of a run for tables of many runs: its defined metrics as flat columns, with 12 significant digits.
//!
//! A column is `METRIC` of the first recorded link in the window `steady`; `LINK:METRIC` of another link,
//! `GROUP.METRIC` of a flow group, `...@WINDOW` in another window.

use aqumen_result::RunResult;
use indexmap::IndexMap;
use serde_json::{Number, Value};

use crate::digest::Digest;

/// Metrics by link or group, window and key.
type Metrics = IndexMap<String, IndexMap<String, IndexMap<String, Value>>>;

/// Returns the digest of the columns, and the row as JSON: `h` is that digest, `bits` that of all results, `v` are the
/// values, `cost` is CPU time and time in seconds, events, and packets of the bottleneck.
pub(crate) fn row(result: &RunResult) -> serde_json::Result<(String, String)> {
    let (mut shape, mut values, mut all) = (Digest::new(), Vec::new(), Digest::new());
    all.add(serde_json::to_string(&(&result.windows, &result.aqm, &result.notes))?.as_bytes());
    each_column(result, &mut all, |column, value| {
        shape.add(column.as_bytes());
        shape.add(b"\0");
        values.push(rounded(value));
    })?;
    let (shape, cost) = (&shape.hex()[..16], result.cost);
    let values = serde_json::to_string(&values)?;
    let cost = serde_json::to_string(&(cost.cpu_s, cost.wall_s, cost.events, cost.bottleneck_packets))?;
    let row = format!(r#"{{"h":"{shape}","bits":"{}","v":{values},"cost":{cost}}}"#, &all.hex()[..16]);
    Ok((shape.into(), row))
}

/// Returns the names of the columns.
pub(crate) fn columns(result: &RunResult) -> serde_json::Result<Vec<String>> {
    let mut names = Vec::new();
    each_column(result, &mut Digest::new(), |column, _| names.push(column.into()))?;
    Ok(names)
}

/// Calls `add` with the name and value of each defined metric; `all` is the digest of the metrics' JSON.
fn each_column(result: &RunResult, all: &mut Digest, mut add: impl FnMut(&str, &Number)) -> serde_json::Result<()> {
    let main = if result.windows.contains_key("steady") { "steady" } else { "all" };
    let (links, flows) = (serde_json::to_string(&result.links)?, serde_json::to_string(&result.flows)?);
    for (text, is_link) in [(links, true), (flows, false)] {
        all.add(text.as_bytes());
        let metrics: Metrics = serde_json::from_str(&text)?;
        for (i, (name, windows)) in metrics.iter().enumerate() {
            let place = match (is_link, i) {
                (true, 0) => String::new(),
                (true, _) => format!("{name}:"),
                (false, _) => format!("{name}."),
            };
            for (window, metrics) in windows {
                let at = if window == main { String::new() } else { format!("@{window}") };
                for (key, value) in metrics {
                    if let Value::Number(value) = value {
                        add(&format!("{place}{key}{at}"), value);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns a number with 12 significant digits; a whole one without a point.
fn rounded(value: &Number) -> Number {
    let Some(exact) = value.as_f64().filter(|_| value.is_f64()) else { return value.clone() };
    if exact.fract() == 0.0 && exact.abs() < 1e12 {
        return (exact as i64).into();
    }
    let short = format!("{exact:.11e}").parse().unwrap_or(exact);
    Number::from_f64(short).unwrap_or_else(|| value.clone())
}
