//! Every experiment of the papers starts: its beginning is run, and all that it names does something.

use std::path::PathBuf;

use aqumen_scenario::Scenario;
use aqumen_sim::{Options, run};

const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");

/// Every scenario file.
fn files() -> Vec<PathBuf> {
    let inside = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = inside(EXPERIMENTS.into()).filter(|path| path.is_dir());
    let mut files: Vec<_> =
        folders.flat_map(inside).filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    files
}

#[test]
fn every_experiment_starts_and_all_of_it_sends() {
    let files = files();
    assert!(files.len() > 30, "{files:?}");
    for file in files {
        let whole = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
        // Two seconds from the first start on, into which the groups that come later are moved.
        let starts = || whole.spec().flows.iter().map(|group| (&group.name.0, group.start.high.as_secs_f64()));
        let first = starts().map(|(_, start)| start).fold(f64::INFINITY, f64::min);
        let duration = format!("{}ms", (first * 1e3) as u64 + 2000);
        let late: Vec<String> =
            starts().filter(|(_, start)| *start > first).map(|(name, _)| format!("flows.{name}.start")).collect();
        let mut changes = vec![("events", "[]"), ("windows", "{}"), ("duration", duration.as_str())];
        changes.extend(late.iter().map(|key| (key.as_str(), "0s")));
        let scenario = Scenario::load(&file, &changes).unwrap_or_else(|error| panic!("{error}"));
        let result = run(&scenario.plan(1, None).unwrap(), Options::default(), &mut |_| true).unwrap();
        for (name, link) in &result.links {
            assert!(link["all"].departures_pkts > 0, "{}: nothing crossed {name}", file.display());
        }
        for (name, group) in &result.flows {
            assert!(group["all"].goodput_bps > 0.0, "{}: {name} delivered nothing", file.display());
        }
    }
}
