//! Relative cost of kinds of runs: CPU time per packet that crosses a recorded link, as the ratio to the run
//! that it is to be compared with, all in one process, round by round.
//!
//! `cargo bench -p aqumen-sim --bench kinds [-- ROUNDS]`. Of three rounds (or as many as are asked
//! for) the least of each counts.

use std::path::{Path, PathBuf};

use aqumen_scenario::{Plan, Scenario};
use aqumen_sim::{Options, run};
use rustix::time::{ClockId, clock_gettime};

/// A run, and the one beside which it is set.
struct Kind {
    name: &'static str,
    beside: Option<&'static str>,
    /// From the root of the repository.
    file: &'static str,
    aqm: Option<&'static str>,
    changes: &'static [(&'static str, &'static str)],
    /// More groups of flows.
    more: &'static str,
    traced: bool,
    /// Where the run is cut, if that is before its end.
    until: Option<&'static str>,
}

/// One flow each of constant rate, of web pages, of SCTP and of RTP.
const FOUR: &str = r#"
[[flows]]
name = "call"
transport = "udp"
traffic = { kind = "cbr", rate = "100kbit" }
[[flows]]
name = "web"
transport = "modern"
traffic = "web"
[[flows]]
name = "sctp"
transport = "sctp"
[[flows]]
name = "rtp"
transport = "rtp"
"#;

const EXP1: &str = "experiments/arm-pfc/exp1.toml";
const N1000: &str = "benchmarks/exp1-n1000.toml";

const fn kind(name: &'static str, file: &'static str) -> Kind {
    Kind { name, beside: None, file, aqm: None, changes: &[], more: "", traced: false, until: None }
}

const KINDS: [Kind; 14] = [
    Kind { aqm: Some("pi"), ..kind("exp1", EXP1) },
    Kind {
        aqm: Some("pi"),
        changes: &[("record.interval", "10ms")],
        beside: Some("exp1"),
        ..kind("exp1, samples each 10 ms", EXP1)
    },
    Kind { aqm: Some("codel"), beside: Some("exp1"), ..kind("exp1, CoDel", EXP1) },
    Kind { aqm: Some("pie"), beside: Some("exp1"), ..kind("exp1, PIE", EXP1) },
    Kind { aqm: Some("fq-codel"), beside: Some("exp1"), ..kind("exp1, FQ-CoDel", EXP1) },
    Kind { aqm: Some("pi"), traced: true, beside: Some("exp1"), ..kind("exp1, traced", EXP1) },
    kind("1000 flows", N1000),
    Kind { more: FOUR, beside: Some("1000 flows"), ..kind("1000 flows and four others", N1000) },
    Kind { beside: Some("exp1"), ..kind("exp7", "experiments/arm-pfc/exp7.toml") },
    Kind { beside: Some("exp1"), ..kind("paqm/load", "experiments/paqm/load.toml") },
    Kind { beside: Some("exp1"), ..kind("aqm-mo/rtt", "experiments/aqm-mo/rtt.toml") },
    Kind { beside: Some("exp1"), ..kind("aaqm/load", "experiments/aaqm/load.toml") },
    Kind { beside: Some("exp1"), until: Some("8s"), ..kind("self-tuning/full", "experiments/self-tuning/full.toml") },
    Kind { beside: Some("exp1"), ..kind("examples/traffic/mix", "examples/traffic/mix.toml") },
];

fn main() {
    let rounds = std::env::args().find_map(|arg| arg.parse::<u32>().ok()).unwrap_or(3);
    let plans: Vec<Plan> = KINDS.iter().map(Kind::plan).collect();
    let mut least = vec![f64::INFINITY; KINDS.len()];
    for _ in 0..rounds {
        for ((kind, plan), least) in KINDS.iter().zip(&plans).zip(&mut least) {
            *least = least.min(ns_per_packet(plan, kind.traced));
        }
    }
    println!("{:<28}{:>16}{:>10}  beside", "run", "ns per packet", "ratio");
    for (kind, ns) in KINDS.iter().zip(&least) {
        let base = KINDS.iter().position(|other| Some(other.name) == kind.beside);
        let ratio = base.map_or(String::new(), |base| format!("{:.2}", ns / least[base]));
        println!("{:<28}{ns:>16.1}{ratio:>10}  {}", kind.name, kind.beside.unwrap_or_default());
    }
}

impl Kind {
    fn plan(&self) -> Plan {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(self.file);
        let scenario = Scenario::load(&file, self.changes).unwrap_or_else(|error| panic!("{error}"));
        let scenario = match self.more {
            "" => scenario,
            more => {
                let text = format!("{}{more}", std::fs::read_to_string(&file).expect("it could be read"));
                Scenario::parse(&text, self.file).unwrap_or_else(|error| panic!("{error}"))
            }
        };
        let scenario = match self.until {
            Some(until) => scenario.until(until).unwrap_or_else(|error| panic!("{error}")),
            None => scenario,
        };
        let aqm = self.aqm.map(|aqm| scenario.aqm(aqm).unwrap_or_else(|error| panic!("{error}")));
        scenario.plan(1, aqm.as_ref()).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn ns_per_packet(plan: &Plan, traced: bool) -> f64 {
    let file: Option<PathBuf> =
        traced.then(|| std::env::temp_dir().join(format!("aqumen-bench-{}.pcapng", std::process::id())));
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let begin = now();
    let result = run(plan, Options { trace: file.as_deref(), ..Options::default() }, &mut |_| true);
    let took = now() - begin;
    if let Some(file) = file {
        let _ = std::fs::remove_file(file);
    }
    took / result.expect("the scenario is sound").cost.bottleneck_packets as f64
}
