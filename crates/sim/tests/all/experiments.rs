//! Every experiment of the papers starts: its beginning is run, and all that it names does something.

use std::path::PathBuf;

use aqumen_scenario::Scenario;
use aqumen_sim::{Options, run};

const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");

/// Every scenario file; beside them stand the papers' claims and the verdicts.
fn files() -> Vec<PathBuf> {
    let inside = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = inside(EXPERIMENTS.into()).filter(|path| path.is_dir());
    let mut files: Vec<_> =
        folders.flat_map(inside).filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    // Beside the scenarios stand the papers' claims and what came of them.
    files.retain(|path| !path.file_stem().is_some_and(|stem| stem == "claims" || stem == "verdicts"));
    files.sort();
    files
}

/// Each algorithm of the registry on experiment 1: it holds a queue of TCP within the buffer and the link busy.
#[test]
fn every_algorithm_runs_on_experiment_1() {
    let scenario = Scenario::load(format!("{EXPERIMENTS}/arm-pfc/exp1.toml"), &[("duration", "10s")]).unwrap();
    let names: Vec<_> = aqumen_aqm::registry::algorithms().map(|algorithm| algorithm.name).collect();
    for wanted in [
        "droptail red ared ared-feng pi rem avq blue arm-pfc arm-pfc-adaptive paqm aqm-mo aaqm stpi stred st-arm-pfc",
        "st-aqm-mo codel pie fq-codel fq-pie pi2 dualpi2 cobalt cake sfq drr",
    ]
    .iter()
    .flat_map(|line| line.split(' '))
    {
        assert!(names.contains(&wanted), "no {wanted} in {names:?}");
    }
    for name in names {
        let plan = scenario.plan(1, Some(&scenario.aqm(name).unwrap())).unwrap();
        let result = run(&plan, Options::default(), &mut |_| true).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(result.aqm.name, name);
        let link = &result.links["bottleneck"]["steady"];
        let utilization = link.utilization.unwrap();
        assert!((0.5..=1.000_001).contains(&utilization), "{name}: {utilization}");
        assert!(link.queue_mean_pkts > 0.5 && link.queue_mean_pkts <= 300.0, "{name}: {link:?}");
        // Conservation over the whole run: what came has gone, or waits, or is under way.
        let all = &result.links["bottleneck"]["all"];
        let gone = all.departures_pkts + all.early_dropped_pkts + all.overflow_dropped_pkts;
        assert!(all.arrivals_pkts >= gone && all.arrivals_pkts <= gone + 301, "{name}: {all:?}");
        let signals = all.marked_pkts + all.early_dropped_pkts + all.overflow_dropped_pkts;
        assert!(signals > 0, "{name} never signalled");
        let flows = &result.flows["ftp"]["steady"];
        assert!(flows.goodput_bps > 0.45 * 8e6 && flows.goodput_bps < 8e6, "{name}: {flows:?}");
        assert!(flows.rtt_mean_s.unwrap() > 0.17, "{name}: {flows:?}");
    }
}

/// Utilisation before the flood of `everyday/flood`, and from three seconds after it on.
#[test]
fn an_integral_without_anti_windup_starves_the_link_after_a_flood() {
    let scenario = Scenario::load(format!("{EXPERIMENTS}/everyday/flood.toml"), &[]).unwrap();
    let used = |aqm: &str| {
        let plan = scenario.plan(1, Some(&scenario.aqm(aqm).unwrap())).unwrap();
        let result = run(&plan, Options::default(), &mut |_| true).unwrap();
        ["before", "after"].map(|window| result.links["bottleneck"][window].utilization.unwrap())
    };
    let none = used("pi");
    assert!(none[0] > 0.95 && none[1] < 0.5, "{none:?}");
    for aqm in ["pi-conditional", "pi-back-calculation"] {
        let [before, after] = used(aqm);
        assert!(before > 0.95 && after > 0.95, "{aqm}: {before} {after}");
    }
}

/// Flows over UDP of 250 packets/s each, all of 972 bytes and a header of 28, before a link that sends 1000 a second.
fn equal_packets(flows: u32, buffer: &str) -> Scenario {
    let text = format!(
        "name = \"equal\"\nduration = \"5s\"\n[topology]\npreset = \"dumbbell\"\n\
         [topology.bottleneck]\nrate = \"8Mbit\"\ndelay = \"10ms\"\nbuffer = \"{buffer}\"\n\
         [topology.access]\nrate = \"100Mbit\"\ndelay = \"1ms\"\n\
         [[flows]]\nname = \"f\"\ncount = {flows}\ntransport = \"udp\"\n\
         traffic = {{ kind = \"poisson\", rate = \"250pkt/s\", packet = \"972B\" }}\n\
         [nominal]\npacket = \"1000B\"\n"
    );
    Scenario::parse(&text, "equal.toml").unwrap()
}

#[test]
fn a_buffer_in_bytes_is_one_in_packets_of_that_size() {
    let names = aqumen_aqm::registry::algorithms().map(|algorithm| algorithm.name);
    for name in names.chain(aqumen_aqm::registry::PROFILES.iter().map(|profile| profile.name)) {
        let [packets, bytes] = ["200pkt", "200kB"].map(|buffer| {
            let scenario = equal_packets(5, buffer);
            let plan = scenario.plan(1, Some(&scenario.aqm(name).unwrap())).unwrap();
            run(&plan, Options::default(), &mut |_| true).unwrap().links["bottleneck"].clone()
        });
        assert_eq!(packets, bytes, "{name}");
    }
}

#[test]
fn avq_says_so_when_its_virtual_capacity_is_gone() {
    // It falls by alpha (1250 - 980) = 810 packets/s in a second, from 800; 750 packets/s it would let rise.
    let notes = |flows: u32| {
        let scenario = equal_packets(flows, "200pkt");
        let plan = scenario.plan(1, Some(&scenario.aqm("avq:alpha=3").unwrap())).unwrap();
        run(&plan, Options::default(), &mut |_| true).unwrap().notes
    };
    let told = notes(5);
    assert_eq!(told.len(), 1, "{told:?}");
    let since =
        told[0].strip_prefix("bottleneck: AVQ's virtual capacity fell to 0 at ").unwrap_or_else(|| panic!("{told:?}"));
    let since: f64 = since.split(' ').next().unwrap().parse().unwrap();
    assert!((0.7..1.4).contains(&since), "{told:?}");
    assert_eq!(notes(3), [""; 0]);
}

#[test]
fn pi_designs_itself_in_every_experiment() {
    for file in files() {
        let scenario = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
        let variants = scenario.spec().variants.0.iter().map(|(name, _)| name.clone());
        let ids: Vec<String> = scenario.cells().into_iter().chain(variants).collect();
        // Where an event gives an AQM other gains, only that one runs.
        let ids = ids.iter().filter(|id| !id.contains("-retuned"));
        let cells = ids.map(|id| scenario.cell(id).unwrap());
        for cell in std::iter::once(scenario.clone()).chain(cells) {
            let pi = cell.aqm("pi").unwrap();
            cell.plan(1, Some(&pi)).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
    }
}

#[test]
fn every_experiment_starts_and_all_of_it_sends() {
    let files = files();
    assert!(files.len() >= 30, "{files:?}");
    for file in files {
        let whole = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
        // Two seconds from the first start on, into which the groups that come later are moved:
        // `until` would leave them out.
        let starts = || whole.spec().flows.iter().map(|group| (&group.name.0, group.start.high.as_secs_f64()));
        let first = starts().map(|(_, start)| start).fold(f64::INFINITY, f64::min);
        let duration = format!("{}ms", (first * 1e3) as u64 + 2000);
        let late: Vec<String> =
            starts().filter(|(_, start)| *start > first).map(|(name, _)| format!("flows.{name}.start")).collect();
        let mut changes = vec![("events", "[]"), ("windows", "{}"), ("duration", duration.as_str())];
        changes.extend(late.iter().map(|key| (key.as_str(), "0s")));
        let pauses: Vec<String> =
            whole.spec().flows.iter().map(|group| format!("flows.{}.off", group.name.0)).collect();
        changes.extend(pauses.iter().map(|key| (key.as_str(), "[]")));
        let half = format!("{}ms", (first * 1e3) as u64 + 1000);
        let stops: Vec<String> = whole
            .spec()
            .flows
            .iter()
            .filter(|group| group.stop.is_some())
            .map(|group| format!("flows.{}.stop", group.name.0))
            .collect();
        changes.extend(stops.iter().map(|key| (key.as_str(), half.as_str())));
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

#[test]
fn a_run_cut_short_is_the_beginning_of_the_whole_one() {
    let numbers = |scenario: &Scenario| {
        let result = run(&scenario.plan(3, None).unwrap(), Options::default(), &mut |_| true).unwrap();
        result.series["bottleneck"].queue_pkts.clone()
    };
    // Flows stop and resume at 40 and 70 s; a later group of flows comes at 4 s, which is beyond the end.
    let file = format!("{EXPERIMENTS}/arm-pfc/exp2.toml");
    let text = std::fs::read_to_string(&file).unwrap()
        + r#"
        [[flows]]
        name = "late"
        count = 5
        transport = "ns2"
        start = "4s"
        "#;
    let changes = [
        ("duration", "6s"),
        ("windows", r#"{ steady = "1s", middle = ["2s", "5s"], last = "5s" }"#),
        (
            "events",
            r#"[{ at = "2s", stop = "ftp", count = 30 }, { at = "5s", resume = "ftp" }, { at = "5500ms", stop = "late" }]"#,
        ),
    ];
    let whole = Scenario::from_bytes(text.as_bytes(), &file, &changes).unwrap();
    let short = whole.until("3s").unwrap();
    let (all, beginning) = (numbers(&whole), numbers(&short));
    assert!(beginning.len() > 20);
    assert_eq!(beginning, all[..beginning.len()]);
    assert_eq!(short.spec().flows.len(), 1);
    assert_eq!(short.spec().events.len(), 1);
    let windows: Vec<_> = short.spec().windows.0.iter().map(|(name, at)| (name.as_str(), at.end)).collect();
    assert_eq!(windows, [("steady", None), ("middle", None)]);
}

#[test]
fn a_run_is_cut_only_within_its_length() {
    let whole = Scenario::load(format!("{EXPERIMENTS}/arm-pfc/exp1.toml"), &[]).unwrap();
    for (end, said) in [
        ("100s", "cannot be truncated at 100s: must be above 0 and before the end of the run, 100s"),
        ("0s", "cannot be truncated at 0s"),
        ("40", "needs a unit"),
        ("soon", "soon"),
    ] {
        let error = whole.until(end).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    // Its flows start within a second: some of them do not begin in half a second, and the result says so.
    let half = whole.until(".5s").unwrap().plan(1, None).unwrap();
    assert_eq!(half.notes.len(), 1, "{:?}", half.notes);
    assert!(half.notes[0].ends_with("of 120 flows begin after the end of the run"), "{:?}", half.notes);
    // Nobody wrote an interval of the series, which is longer than this run.
    assert_eq!(
        whole.until("20ms").unwrap().plan(1, None).unwrap().sample_interval,
        aqumen_units::Span::from_millis(20)
    );
    let written = whole.with("record.interval", "50ms").unwrap().until("20ms").unwrap();
    assert_eq!(written.plan(1, None).unwrap().sample_interval, aqumen_units::Span::from_millis(20));
    let late = Scenario::load(format!("{EXPERIMENTS}/aaqm/load.toml"), &[]).unwrap();
    let error = late.until("20s").unwrap_err().to_string();
    assert!(error.ends_with("until: cannot be truncated at 20s: no flow begins before 25s"), "{error}");
}
