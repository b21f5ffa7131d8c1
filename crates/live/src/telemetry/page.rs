//! The live page, and a recording drawn as the same page.
//!
//! The live page requests new samples twice a second and draws the last minute; a recording is embedded in the file.
//! Neither loads anything else.

use std::io::{self, BufRead};

use serde_json::{Value, json};

use super::recording::COLUMNS;

pub(crate) const HTML: &str = include_str!("page.html");
/// Placeholder of a recording in the page.
const NO_RECORDING: &str = "const RECORDED = null;";
/// Highest number of samples drawn: more cannot be seen.
const SAMPLES_MAX: usize = 20_000;

/// Part of a recording: number of columns, status, and start time.
struct Part {
    columns: usize,
    status: Value,
    unix_s: Option<f64>,
}

impl Part {
    /// Reads the first line of a part.
    fn read(line: &str) -> Result<Self, &'static str> {
        let head: Value = serde_json::from_str(line).map_err(|_| "not a recording of aqumend attach --record")?;
        // Older versions have fewer columns.
        let columns: Vec<String> = serde_json::from_value(head["columns"].clone()).unwrap_or_default();
        let known = COLUMNS.starts_with(&columns.iter().map(String::as_str).collect::<Vec<_>>());
        if head["aqumend"] != "recording" || columns.is_empty() || !known {
            return Err("not a recording of this version of aqumend");
        }
        Ok(Part { columns: columns.len(), status: head["status"].clone(), unix_s: head["unix_s"].as_f64() })
    }
}

/// Page of a recording. Its parts follow each other as in time.
pub(crate) fn recording_page(recording: impl BufRead) -> io::Result<String> {
    let mut lines = recording.lines();
    let error = |number: usize, why: &str| io::Error::other(format!("line {number}: {why}"));
    let first = Part::read(&lines.next().transpose()?.unwrap_or_default()).map_err(|why| error(1, why))?;
    let (began_s, mut part, mut since_s) = (first.unix_s, first, 0.0);
    let mut samples: Vec<Vec<f64>> = Vec::new();
    for (i, line) in lines.enumerate() {
        let line = line?;
        if line.starts_with('{') {
            // A truncated first line has no samples.
            let Ok(next) = Part::read(&line) else { continue };
            let apart_s = next.unix_s.zip(began_s).map_or(0.0, |(next, began)| next - began);
            (since_s, part) = (samples.last().map_or(0.0, |last| last[0]).max(apart_s), next);
            continue;
        }
        match serde_json::from_str::<Vec<f64>>(&line) {
            Ok(mut row) if row.len() == part.columns => {
                row[0] += since_s;
                samples.push(row);
            }
            // Truncated lines are skipped.
            _ if i > 0 => {}
            _ => return Err(error(i + 2, "must be a number for each column")),
        }
    }
    let step = samples.len().div_ceil(SAMPLES_MAX).max(1);
    let drawn = samples.iter().enumerate().filter(|(i, _)| i % step == 0 || i + 1 == samples.len());
    let drawn: Vec<Value> = drawn
        .map(|(_, row)| COLUMNS.iter().zip(row).map(|(name, value)| (name.to_string(), json!(value))).collect())
        .collect();
    let mut status = part.status;
    status["regulating"] = json!(true);
    // Inside a script nothing may look like its end.
    let data = json!({"status": status, "samples": drawn}).to_string().replace('<', "\\u003c");
    Ok(HTML.replace(NO_RECORDING, &format!("const RECORDED = {data};")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Status;

    fn head() -> String {
        let status = Status { aqm: "</script>".into(), ..Status::default() };
        json!({"aqumend": "recording", "columns": COLUMNS, "status": status}).to_string()
    }

    #[test]
    fn a_recording_is_embedded_in_its_page() {
        let row = "[0.01,1000,1.0,0.004,0.25,1,2,3,20000000,0,0.0001,20000000]";
        let page = recording_page(format!("{}\n{row}\n{row}\n[0.0", head()).as_bytes()).unwrap();
        assert_eq!(page.matches("\"probability\":0.25").count(), 2, "a truncated line is left out");
        assert_eq!(page.matches("</script>").count(), 1, "a name cannot end the script");
        assert!(!page.contains(NO_RECORDING));
    }

    #[test]
    fn the_parts_of_a_recording_follow_each_other_in_time() {
        let row = "[0.5,1000,1.0,0.004,0.25,1,2,3,20000000,0,0.0001,20000000]\n";
        let part = |unix_s: f64| head().replacen('{', &format!("{{\"unix_s\":{unix_s},"), 1) + "\n";
        // Truncated within a sample; then 100 s after the beginning; then the clock was set back.
        let recording = format!("{}{row}[0.6,10\n{}{row}{}{row}", part(1000.0), part(1100.0), part(900.0));
        let page = recording_page(recording.as_bytes()).unwrap();
        let times: Vec<&str> =
            page.split("\"t_s\":").skip(1).map(|rest| rest.split(['}', ',']).next().unwrap()).collect();
        assert_eq!(times, ["0.5", "100.5", "101.0", "0.0"], "the last one is the status");
    }

    #[test]
    fn a_recording_without_the_newest_columns_is_drawn_too() {
        let head = head().replace(",\"link_bps\"]", "]");
        let row = "[0.01,1000,1.0,0.004,0.25,1,2,3,20000000,0,0.0001]";
        assert!(recording_page(format!("{head}\n{row}\n").as_bytes()).unwrap().contains("\"probability\":0.25"));
        let other = head.replace("\"t_s\"", "\"hours\"");
        assert!(recording_page(format!("{other}\n{row}\n").as_bytes()).is_err());
    }

    #[test]
    fn other_files_are_refused() {
        for (text, message) in [("", "line 1: not a recording"), ("{}", "line 1: not a recording of this version")] {
            assert!(recording_page(text.as_bytes()).unwrap_err().to_string().contains(message));
        }
        assert!(recording_page(format!("{}\n[1,2]\n", head()).as_bytes()).unwrap_err().to_string().contains("line 2"));
    }

    #[test]
    fn a_recording_has_its_tag_and_columns() {
        for other in
            [head().replace("\"recording\"", "\"status\""), head().replace("[\"t_s\"", "[], \"was\": [\"t_s\"")]
        {
            let why = recording_page(other.as_bytes()).unwrap_err().to_string();
            assert_eq!(why, "line 1: not a recording of this version of aqumend", "{other}");
        }
    }

    #[test]
    fn recordings_within_the_limit_are_drawn_completely() {
        let drawn = |samples: usize| {
            let rows: String = (0..samples).map(|i| format!("[{i},0,0,0,0,0,0,0,0,0,0,0]\n")).collect();
            let page = recording_page(format!("{}\n{rows}", head()).as_bytes()).unwrap();
            page.matches("\"t_s\":").count() - 1
        };
        // Beyond the limit every second sample is drawn.
        assert_eq!([drawn(SAMPLES_MAX), drawn(SAMPLES_MAX + 1)], [20_000, 10_001]);
        // The last sample is always drawn: of 20 002 the even ones and number 20 001.
        assert_eq!(drawn(SAMPLES_MAX + 2), 10_002);
    }

    #[test]
    fn a_long_recording_is_thinned_out() {
        let rows: String = (0..50_000).map(|i| format!("[{i},0,0,0,0,0,0,0,0,0,0,0]\n")).collect();
        let page = recording_page(format!("{}\n{rows}", head()).as_bytes()).unwrap();
        let drawn = page.matches("\"t_s\":").count() - 1;
        assert!((16_000..20_002).contains(&drawn), "{drawn}");
        assert!(page.contains("\"t_s\":49999.0"));
    }
}
