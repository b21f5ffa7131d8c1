//! A host for traffic sources without a network: it carries out their actions, and delivers a transfer after 10 ms.

use aqumen_scenario::streams::{Kind, Stream};
use aqumen_scenario::{Scenario, Traffic};
use aqumen_traffic::{Action, Step, build};
use aqumen_units::{Instant, Span};

/// A packet with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Packet {
    pub(crate) at_ns: u64,
    pub(crate) bytes: u32,
}

/// The traffic that a scenario writes as `value`.
pub(crate) fn traffic(value: &str) -> Traffic {
    let text = format!(
        "name = \"t\"\nduration = \"1s\"\n[topology]\nnodes = [\"a\", \"b\"]\n\
         [[topology.links]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"0s\"\naqm = \"test\"\n\
         [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\ntransport = \"modern\"\ntraffic = {value}\n"
    );
    let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
    scenario.spec().flows[0].traffic.clone()
}

/// Runs a source for `duration_s`; returns its actions with their times.
pub(crate) fn steps(traffic: &Traffic, seed: u64, duration_s: f64) -> Vec<(u64, Action)> {
    run(traffic, seed, duration_s, None)
}

/// The packets of a source that writes packets.
pub(crate) fn packets(traffic: &Traffic, seed: u64, duration_s: f64) -> Vec<Packet> {
    written(run(traffic, seed, duration_s, None))
}

/// Returns the packets of a source that is paused between two moments.
pub(crate) fn packets_with_pause(traffic: &Traffic, seed: u64, duration_s: f64, from_s: f64, to_s: f64) -> Vec<Packet> {
    written(run(traffic, seed, duration_s + to_s - from_s, Some([from_s, to_s].map(nanos))))
}

fn written(done: Vec<(u64, Action)>) -> Vec<Packet> {
    let packet = |(at_ns, action)| match action {
        Action::Write(bytes) => Packet { at_ns, bytes },
        other => panic!("{other:?} of a source of packets"),
    };
    done.into_iter().map(packet).collect()
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn run(traffic: &Traffic, seed: u64, duration_s: f64, pause: Option<[u64; 2]>) -> Vec<(u64, Action)> {
    let mut source = build(traffic).expect("not a bulk transfer");
    let mut rng = Stream::new(seed, Kind::Traffic, 0);
    let (mut now, mut done) = (Instant::ZERO, Vec::new());
    // Transfers in progress: moment of delivery and connection.
    let mut due: Vec<(Instant, u32)> = Vec::new();
    loop {
        match source.next(now, &mut rng) {
            Step::At(at, action) => {
                assert!(at >= now, "{action:?} in the past");
                now = match pause {
                    Some([from, to]) if (from..to).contains(&at.as_nanos()) => Instant::from_nanos(to),
                    _ => at,
                };
                if now.as_nanos() >= nanos(duration_s) {
                    return done;
                }
                if let Action::Transfer { connection, .. } = action {
                    due.push((now + Span::from_millis(10), connection));
                }
                done.push((now.as_nanos(), action));
            }
            Step::Await => {
                assert!(!due.is_empty(), "waits for nothing");
                let (at, connection) = due.remove(0);
                now = now.max(at);
                source.on_delivered(connection);
            }
            Step::End => return done,
        }
    }
}
