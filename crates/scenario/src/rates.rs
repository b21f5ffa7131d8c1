//! Rates over time, expanded: repeated steps, and trace files.

use std::sync::Arc;

use aqumen_units::{Instant, Rate, Span};

use crate::channel::{Capacity, Varying};
use crate::error::PathError;
use crate::field::{RATE_MAX, TIME_MAX};
use crate::files::Files;
use crate::line::{Medium, Opportunities};
use crate::units;

/// Rates and outages of a link.
#[derive(Clone, Debug)]
pub(crate) struct RateSchedule {
    /// Rates with their start times; the first starts at 0.
    pub(crate) rates: Vec<(Instant, Rate)>,
    /// Outages.
    pub(crate) outages: Vec<(Instant, Option<Instant>)>,
    pub(crate) medium: Medium,
}

/// Most changes of one link's rate in a run.
const CHANGES_MAX: usize = 1_000_000;

/// A start time and a rate, 0 for an outage.
type Change = (Span, u64);

/// Expands `capacity`, which is at `path`, over a run of `duration`, with the files that it names.
pub(crate) fn resolve(
    capacity: &Capacity,
    path: &str,
    duration: Span,
    files: &Files,
) -> Result<RateSchedule, PathError> {
    let varying = match capacity {
        Capacity::Constant(rate) => {
            return Ok(RateSchedule { rates: vec![(Instant::ZERO, *rate)], outages: Vec::new(), medium: Medium::Wire });
        }
        Capacity::Varying(varying) => varying,
    };
    let wrong = |key: &str, message: String| Err((format!("{path}.{key}"), message));
    let given = [!varying.steps.is_empty(), varying.csv.is_some(), varying.mahimahi.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err((path.into(), "must have one of steps, csv and mahimahi".into()));
    }
    let (key, changes) = match varying {
        Varying { mahimahi: Some(_), period: Some(_), .. } => {
            return wrong("period", "belongs to steps and csv; a file of Mahimahi repeats by itself".into());
        }
        Varying { mahimahi: Some(file), .. } => {
            let trace = mahimahi(files, file).map_err(|message| (format!("{path}.mahimahi"), message))?;
            let mean = Rate::from_bps((trace.mean_bps() + 0.5) as u64);
            return Ok(RateSchedule {
                rates: vec![(Instant::ZERO, mean)],
                outages: Vec::new(),
                medium: Medium::Opportunities(Arc::new(trace)),
            });
        }
        Varying { csv: Some(file), .. } => {
            ("csv", csv(files, file).map_err(|message| (format!("{path}.csv"), message))?)
        }
        _ => ("steps", varying.steps.iter().map(|step| (step.at, step.rate.as_bps())).collect()),
    };
    if changes[0].0 != Span::ZERO {
        return wrong(key, "the first must begin at 0s".into());
    }
    if let Some(pair) = changes.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
        return wrong(key, format!("must be in order of time; {} is out of order", units::show_span(pair[1].0)));
    }
    if changes.iter().all(|(_, bps)| *bps == 0) {
        return wrong(key, "must have a rate above 0".into());
    }
    let last = changes[changes.len() - 1].0;
    let period = match varying.period {
        Some(period) if period <= last => {
            return wrong(
                "period",
                format!("must be longer than {}, when the last one begins", units::show_span(last)),
            );
        }
        period => period.unwrap_or(Span::MAX),
    };
    spread_out(&changes, period, duration).ok_or_else(|| {
        (format!("{path}.period"), format!("gives more than {CHANGES_MAX} changes of the rate; make it longer"))
    })
}

/// Repeats the changes to the end of the run. `None` if there are too many.
fn spread_out(changes: &[Change], period: Span, duration: Span) -> Option<RateSchedule> {
    let mut resolved = RateSchedule { rates: Vec::new(), outages: Vec::new(), medium: Medium::Wire };
    let mut begin = Span::ZERO;
    let mut count = 0;
    'run: loop {
        for &(at, bps) in changes {
            let at = Span::from_nanos(begin.as_nanos().saturating_add(at.as_nanos()));
            if at >= duration && at > Span::ZERO {
                break 'run;
            }
            count += 1;
            if count > CHANGES_MAX {
                return None;
            }
            let at = Instant::ZERO + at;
            if let Some((_, until)) = resolved.outages.last_mut()
                && until.is_none()
            {
                if bps == 0 {
                    continue;
                }
                *until = Some(at);
            }
            if bps == 0 {
                resolved.outages.push((at, None));
            } else {
                resolved.rates.push((at, Rate::from_bps(bps)));
            }
        }
        begin = begin.as_nanos().checked_add(period.as_nanos()).map(Span::from_nanos)?;
        if begin >= duration {
            break;
        }
    }
    // Before the first rate there is an outage, so that the placeholder has no effect.
    if resolved.rates.first().is_none_or(|(at, _)| *at != Instant::ZERO) {
        let first = changes.iter().map(|(_, bps)| *bps).find(|bps| *bps > 0).unwrap_or(1);
        resolved.rates.insert(0, (Instant::ZERO, Rate::from_bps(first)));
    }
    Some(resolved)
}

/// Returns the lines with content, with their numbers; `#` starts a comment.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .zip(1..)
        .map(|(line, number)| (number, line.split('#').next().unwrap_or("").trim()))
        .filter(|(_, line)| !line.is_empty())
}

/// Reads a file of `time,rate`. The first line may have the names of the columns.
fn csv(files: &Files, name: &str) -> Result<Vec<Change>, String> {
    let (path, text) = files.text(name, "a trace")?;
    let mut changes = Vec::new();
    for (number, line) in lines(&text) {
        let fail = |message: &str| format!("{}:{number}: {message}", path.display());
        let Some((time, rate)) = line.split_once(',') else {
            return Err(fail("must be time,rate, such as 0.5,8000000"));
        };
        let read = |text: &str, quantity: units::Quantity, scale: f64| match text.trim().parse::<f64>() {
            Ok(number) => Some(number * scale),
            Err(_) => quantity.read(text).ok(),
        };
        match (read(time, units::TIME, 1e9), read(rate, units::RATE, 1.0)) {
            (Some(nanos), Some(bps)) => {
                if !(0.0..=TIME_MAX.as_nanos() as f64).contains(&nanos) {
                    return Err(fail(&format!("the time must be 0s to {}", units::show_span(TIME_MAX))));
                }
                if !(bps == 0.0 || (1.0..=RATE_MAX.as_bps() as f64).contains(&bps)) {
                    return Err(fail(&format!("the rate must be 0, or 1bit to {}", units::show_rate(RATE_MAX))));
                }
                changes.push((Span::from_nanos((nanos + 0.5) as u64), (bps + 0.5) as u64));
            }
            // Names of the columns.
            (None, None) if changes.is_empty() => {}
            _ => return Err(fail("must be time,rate, such as 0.5,8000000")),
        }
    }
    if changes.is_empty() { Err(format!("{}: has no line time,rate", path.display())) } else { Ok(changes) }
}

/// Reads a Mahimahi file.
fn mahimahi(files: &Files, name: &str) -> Result<Opportunities, String> {
    let (path, text) = files.text(name, "a trace")?;
    let mut at: Vec<u64> = Vec::new();
    for (number, line) in lines(&text) {
        let fail = |message: String| format!("{}:{number}: {message}", path.display());
        let millis: u64 = line.parse().map_err(|_| fail("must be a whole number of milliseconds".into()))?;
        if millis > TIME_MAX.as_nanos() / 1_000_000 {
            return Err(fail(format!("must be at most {} ms", TIME_MAX.as_nanos() / 1_000_000)));
        }
        if at.last().is_some_and(|last| *last > millis * 1_000_000) {
            return Err(fail("must not be earlier than the previous line".into()));
        }
        at.push(millis * 1_000_000);
    }
    match at.last().copied() {
        Some(period) if period > 0 => Ok(Opportunities { at, period }),
        Some(_) => Err(format!("{}: the last millisecond must be above 0", path.display())),
        None => Err(format!("{}: has no opportunity", path.display())),
    }
}
