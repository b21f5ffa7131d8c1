//! Replays the arrivals of a recorded run through a bare discipline: every packet has the same fate, for every
//! discipline.
//!
//! The run is a real one, of the kernel's TCP and of datagrams without ECN, with all its lateness. The fates at the
//! link in virtual time depend on the arrival times alone.

#![cfg(target_os = "linux")]

use aqumen_aqm::registry::{self, AnyQdisc};
use aqumen_aqm::{DropReason, Fates, Handle, Qdisc};
use aqumen_live::lab::network::LinkEvent;
use aqumen_live::lab::run::{RunOptions, run_with};
use aqumen_network::Fate;
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_scenario::{Plan, Scenario};
use aqumen_units::{Bytes, Ecn, Instant};

mod common;

/// Fate of a packet, collected in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Outcome {
    marked: bool,
    dropped: Option<DropReason>,
    /// Start of its transmission.
    start: Option<u64>,
}

/// A discipline before a wire of one rate, without optimisations.
struct BareLink {
    qdisc: AnyQdisc,
    rng: Stream,
    outcomes: Outcomes,
    /// Packet in transmission: start and end.
    serving: Option<(u64, u64)>,
}

/// Outcomes by number of arrival, which is the handle.
struct Outcomes(Vec<Outcome>);

impl Fates for Outcomes {
    fn marked(&mut self, handle: Handle) {
        self.0[handle as usize].marked = true;
    }

    fn dropped(&mut self, handle: Handle, reason: DropReason) {
        self.0[handle as usize].dropped = Some(reason);
    }
}

impl BareLink {
    fn serve(&mut self, now: u64, plan: &Plan, arrivals: &[LinkEvent]) {
        let Some(handle) = self.qdisc.dequeue(Instant::from_nanos(now), &mut self.rng, &mut self.outcomes) else {
            return;
        };
        self.outcomes.0[handle as usize].start = Some(now);
        let bytes = Bytes(u64::from(arrivals[handle as usize].packet.bytes));
        self.serving = Some((now, now + plan.links[0].rates[0].1.time_for(bytes).as_nanos()));
    }

    /// Processes timers, then the end of a transmission, up to and including `until`.
    fn advance(&mut self, until: u64, plan: &Plan, arrivals: &[LinkEvent]) {
        loop {
            let timer = self.qdisc.next_timer().map_or(u64::MAX, |at| at.as_nanos());
            let end = self.serving.map_or(u64::MAX, |(_, end)| end);
            let now = timer.min(end);
            if now > until {
                return;
            }
            if timer <= end {
                self.qdisc.on_timer(Instant::from_nanos(now), &mut self.rng);
            } else if let Some((start, end)) = self.serving.take() {
                let duration = Instant::from_nanos(end) - Instant::from_nanos(start);
                self.qdisc.transmitted(duration, Instant::from_nanos(now));
                self.serve(now, plan, arrivals);
            }
        }
    }
}

/// Outcomes of `arrivals` in the bare discipline.
fn replay(plan: &Plan, arrivals: &[LinkEvent], until: u64) -> Vec<Outcome> {
    let link = &plan.links[0];
    let mut bare = BareLink {
        qdisc: link.aqm.build_qdisc(link.limit).unwrap().unwrap(),
        rng: Stream::new(plan.seed, Kind::Aqm, 0),
        outcomes: Outcomes(vec![Outcome::default(); arrivals.len()]),
        serving: None,
    };
    for (handle, arrival) in arrivals.iter().enumerate() {
        bare.advance(arrival.at, plan, arrivals);
        let metadata = arrival.packet.identity.metadata(&arrival.packet);
        let now = Instant::from_nanos(arrival.at);
        bare.qdisc.enqueue(handle as Handle, &metadata, now, &mut bare.rng, &mut bare.outcomes);
        if bare.serving.is_none() && bare.qdisc.backlog().packets > 0 {
            bare.serve(arrival.at, plan, arrivals);
        }
    }
    bare.advance(until, plan, arrivals);
    bare.outcomes.0
}

/// Arrivals at the first link, with the outcome of each.
fn arrivals_and_outcomes(events: &[LinkEvent]) -> (Vec<LinkEvent>, Vec<Outcome>) {
    let (mut arrivals, mut outcomes) = (Vec::new(), Vec::new());
    // A packet keeps its slot until it leaves the network.
    let mut in_slot = std::collections::HashMap::new();
    for event in events.iter().filter(|event| event.link == 0) {
        match event.fate {
            None => {
                in_slot.insert(event.packet.slot, arrivals.len());
                arrivals.push(*event);
                outcomes.push(Outcome::default());
            }
            Some(fate) => {
                let number = in_slot[&event.packet.slot];
                let arrival: &LinkEvent = &arrivals[number];
                let outcome: &mut Outcome = &mut outcomes[number];
                match fate {
                    Fate::Delivered { start, .. } => outcome.start = Some(start),
                    Fate::Dropped(reason) => outcome.dropped = Some(reason),
                    Fate::Lost { .. } => panic!("nothing is lost on this wire"),
                }
                // A second mark on a packet that arrived with CE is not visible.
                outcome.marked = event.packet.ecn == Ecn::Ce && arrival.packet.ecn != Ecn::Ce;
            }
        }
    }
    (arrivals, outcomes)
}

/// Plan of 800 ms of load with marks, early drops and overflow.
fn plan(aqm: &str) -> Plan {
    let text = r#"
        name = "fates"
        duration = "800ms"
        aqm = "droptail"
        [windows]
        steady = "200ms"
        [topology]
        preset = "dumbbell"
        bottleneck = { rate = "20Mbit", delay = "2ms", buffer = "120pkt" }
        access = { rate = "1Gbit", delay = "1ms" }
        [[flows]]
        name = "ftp"
        count = 4
        start = ["0s", "100ms"]
        transport = "linux"
        [[flows]]
        name = "bulk"
        count = 2
        start = ["0s", "100ms"]
        transport = "linux-reno"
        [[flows]]
        name = "datagrams"
        count = 3
        start = ["100ms", "200ms"]
        transport = "udp"
        traffic = { kind = "poisson", rate = "400pkt/s", packet = { law = "uniform", min = "100B", max = "1400B" } }
        [nominal]
        target = "40pkt"
    "#;
    let scenario = Scenario::parse(text, "fates").unwrap();
    let aqm = scenario.aqm(aqm).unwrap();
    scenario.plan(1, Some(&aqm)).unwrap()
}

#[test]
fn arrivals_of_a_run_have_the_same_fates_in_a_bare_discipline() {
    if common::skipped("same fates in a live run and in a bare discipline") {
        return;
    }
    let names: Vec<&str> = registry::algorithms().map(|algorithm| algorithm.name).collect();
    check(&names, false);
}

#[test]
fn segments_of_super_packets_have_the_same_fates_too() {
    if common::skipped("same fates of segments of super-packets") {
        return;
    }
    check(&["pi", "red", "codel", "fq-codel", "dualpi2", "cake"], true);
}

/// Compares these algorithms, several at a time: a run mostly waits.
fn check(algorithms: &[&str], super_packets: bool) {
    let (mut packets, mut marked, mut dropped) = (0, 0, 0);
    for some in algorithms.chunks(4) {
        let counts: Vec<[usize; 3]> = std::thread::scope(|scope| {
            let runs: Vec<_> = some.iter().map(|name| scope.spawn(|| same_fates(name, super_packets))).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        for [compared, marked_here, dropped_here] in counts {
            packets += compared;
            marked += marked_here;
            dropped += dropped_here;
        }
    }
    println!("{packets} packets, {marked} marked, {dropped} dropped: no difference");
    let enough = 15 * algorithms.len();
    assert!(marked > enough && dropped > enough, "{marked} marked and {dropped} dropped are too few");
}

/// Number of packets compared, and how many of them were marked and dropped.
fn same_fates(algorithm: &str, super_packets: bool) -> [usize; 3] {
    let plan = plan(algorithm);
    let (result, events) = run_with(&plan, RunOptions { super_packets, record: true }, |_| true).unwrap();
    assert_eq!(result.host.failed_connections, 0, "{algorithm}");
    let (arrivals, outcomes) = arrivals_and_outcomes(&events);
    let replayed = replay(&plan, &arrivals, plan.duration.as_nanos());
    let mut compared = 0;
    for (number, (outcome, replayed)) in outcomes.iter().zip(&replayed).enumerate() {
        // Packets in the queue or in transmission at the end have no outcome yet.
        if outcome.start.is_none() && outcome.dropped.is_none() {
            continue;
        }
        let came_marked = arrivals[number].packet.ecn == Ecn::Ce;
        let replayed = Outcome { marked: replayed.marked && !came_marked, ..*replayed };
        assert_eq!(*outcome, replayed, "{algorithm}: packet {number} of {}", arrivals.len());
        compared += 1;
    }
    assert!(compared > 500, "{algorithm}: only {compared} packets");
    let count = |condition: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| condition(outcome)).count();
    [compared, count(|outcome| outcome.marked), count(|outcome| outcome.dropped.is_some())]
}
