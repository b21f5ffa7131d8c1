//! The live page, and a recording drawn as the same page.
//!
//! Live it asks for new samples twice a second and draws the last minute of them; a recording lies inside the file. It
//! needs nothing from anywhere else.

use std::io::{self, BufRead};

use serde_json::{Value, json};

use super::recording::COLUMNS;

/// The live page.
pub(crate) const HTML: &str = include_str!("page.html");
/// Where a recording goes.
const NO_RECORDING: &str = "const RECORDED = null;";
/// More samples than these are thinned out: nobody sees more in a picture.
const SAMPLES_MAX: usize = 20_000;

/// The page of a recording, or what is wrong with it.
pub(crate) fn of_recording(recording: impl BufRead) -> io::Result<String> {
    let mut lines = recording.lines();
    let wrong = |number: usize, why: &str| io::Error::other(format!("line {number}: {why}"));
    let head: Value = serde_json::from_str(&lines.next().transpose()?.unwrap_or_default())
        .map_err(|_| wrong(1, "not a recording of aqumend attach --record"))?;
    // One of an older version has fewer columns.
    let columns: Vec<String> = serde_json::from_value(head["columns"].clone()).unwrap_or_default();
    if head["aqumend"] != "recording"
        || columns.is_empty()
        || !COLUMNS.starts_with(&columns.iter().map(String::as_str).collect::<Vec<_>>())
    {
        return Err(wrong(1, "not a recording of this version of aqumend"));
    }
    let mut samples = Vec::new();
    for (i, line) in lines.enumerate() {
        match serde_json::from_str::<Vec<f64>>(&line?) {
            Ok(row) if row.len() == columns.len() => samples.push(row),
            // A recording that was cut off ends in the middle of a line.
            _ if i > 0 => break,
            _ => return Err(wrong(i + 2, "must be a number for each column")),
        }
    }
    let step = samples.len().div_ceil(SAMPLES_MAX).max(1);
    let shown = samples.iter().enumerate().filter(|(i, _)| i % step == 0 || i + 1 == samples.len());
    let shown: Vec<Value> = shown
        .map(|(_, row)| columns.iter().zip(row).map(|(name, value)| (name.to_string(), json!(value))).collect())
        .collect();
    let mut status = head["status"].clone();
    status["regulating"] = json!(true);
    // Inside a script nothing may look like its end.
    let data = json!({"status": status, "samples": shown}).to_string().replace('<', "\\u003c");
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
    fn a_recording_lies_inside_its_page() {
        let row = "[0.01,1000,1.0,0.004,0.25,1,2,3,20000000,0,0.0001,20000000]";
        let page = of_recording(format!("{}\n{row}\n{row}\n[0.0", head()).as_bytes()).unwrap();
        assert_eq!(page.matches("\"probability\":0.25").count(), 2, "what was cut off is left out");
        assert_eq!(page.matches("</script>").count(), 1, "a name cannot end the script");
        assert!(!page.contains(NO_RECORDING));
    }

    #[test]
    fn a_recording_without_the_newest_columns_is_drawn_too() {
        let head = head().replace(",\"link_bps\"]", "]");
        let row = "[0.01,1000,1.0,0.004,0.25,1,2,3,20000000,0,0.0001]";
        assert!(of_recording(format!("{head}\n{row}\n").as_bytes()).unwrap().contains("\"probability\":0.25"));
        let other = head.replace("\"t_s\"", "\"hours\"");
        assert!(of_recording(format!("{other}\n{row}\n").as_bytes()).is_err());
    }

    #[test]
    fn what_is_no_recording_is_told() {
        for (text, message) in [("", "line 1: not a recording"), ("{}", "line 1: not a recording of this version")] {
            assert!(of_recording(text.as_bytes()).unwrap_err().to_string().contains(message));
        }
        assert!(of_recording(format!("{}\n[1,2]\n", head()).as_bytes()).unwrap_err().to_string().contains("line 2"));
    }

    #[test]
    fn a_recording_says_that_it_is_one_and_has_columns() {
        for other in
            [head().replace("\"recording\"", "\"status\""), head().replace("[\"t_s\"", "[], \"was\": [\"t_s\"")]
        {
            let why = of_recording(other.as_bytes()).unwrap_err().to_string();
            assert_eq!(why, "line 1: not a recording of this version of aqumend", "{other}");
        }
    }

    #[test]
    fn as_many_samples_as_can_be_seen_are_all_drawn() {
        let drawn = |samples: usize| {
            let rows: String = (0..samples).map(|i| format!("[{i},0,0,0,0,0,0,0,0,0,0,0]\n")).collect();
            let page = of_recording(format!("{}\n{rows}", head()).as_bytes()).unwrap();
            page.matches("\"t_s\":").count() - 1
        };
        // One more, and each second one is drawn.
        assert_eq!([drawn(SAMPLES_MAX), drawn(SAMPLES_MAX + 1)], [20_000, 10_001]);
        // The last one always is: of 20 002 the even ones and number 20 001.
        assert_eq!(drawn(SAMPLES_MAX + 2), 10_002);
    }

    #[test]
    fn a_long_recording_is_thinned_out() {
        let rows: String = (0..50_000).map(|i| format!("[{i},0,0,0,0,0,0,0,0,0,0,0]\n")).collect();
        let page = of_recording(format!("{}\n{rows}", head()).as_bytes()).unwrap();
        let shown = page.matches("\"t_s\":").count() - 1;
        assert!((16_000..20_002).contains(&shown), "{shown}");
        assert!(page.contains("\"t_s\":49999.0"));
    }
}
