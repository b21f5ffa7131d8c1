//! Comparison with Linux: recordings of a kernel's disciplines are replayed through ours, with equal fates for every
//! packet. `vectors/README.md` describes the recordings.
//!
//! Where the kernel draws random numbers, ours get draws that reproduce the recorded fates. Each fate must be possible,
//! and the number of signals must agree with the probabilities.

use std::collections::BTreeSet;

use aqumen_aqm::registry::{self, AnyQdisc};
use aqumen_aqm::{Draw, DropReason, Fates, Handle, Limit, Network, Packet, Qdisc, Value};
use aqumen_units::{Ecn, Instant, Rate};

/// The link of the recordings: 2 Mbit/s, packets of 500 to 1000 bytes.
const NETWORK: Network = Network {
    capacity: Rate::from_bps(2_000_000),
    flows: 4.0,
    base_rtt_s: 0.1,
    target_pkts: 15.0,
    packet_bytes: 750.0,
    link_rate: Rate::from_bps(2_000_000),
    buffer_pkts: 500.0,
};
/// MTU of a device without link headers, which `tc` uses for CoDel, PIE and the quantum.
const MTU: Value<'_> = Value::Number(1500.0);
/// Quantile of the normal distribution that leaves out one case in a thousand on both sides together.
const Z: f64 = 3.29;

/// Event of a recording.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Time of the following events.
    Time(Instant),
    Arrival(Packet),
    Departure(Handle),
    /// New probability of PIE.
    Probability(f64),
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Sent,
    Marked,
    Dropped,
}

struct Recording {
    events: Vec<Event>,
    /// Fates in the order of arrival.
    fates: Vec<Fate>,
    /// Latest possible time of the set-up.
    set_up: Instant,
}

impl Recording {
    fn load(name: &str) -> Self {
        let folder = std::env::var("AQUMEN_KERNEL_RECORDINGS")
            .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/kernel").into());
        let text = std::fs::read_to_string(format!("{folder}/{name}.txt")).unwrap();
        let mut recording = Recording { events: Vec::new(), fates: Vec::new(), set_up: Instant::ZERO };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (at, words) = line.split_once(' ').unwrap();
            let at = Instant::from_nanos(at.parse().unwrap());
            recording.events.push(Event::Time(at));
            for word in words.split(' ') {
                let (kind, numbers) = word.split_at(1);
                let numbers: Vec<u64> = numbers.split(',').filter_map(|number| number.parse().ok()).collect();
                let (event, fate) = match (kind, &numbers[..]) {
                    ("s", []) => {
                        recording.set_up = at;
                        continue;
                    }
                    ("a", &[flow, bytes, ect]) => {
                        recording.fates.push(Fate::Dropped);
                        (Event::Arrival(packet(flow as u32, bytes as u32, ect == 1)), None)
                    }
                    ("d", &[number]) => (Event::Departure(number as u32), Some((number, Fate::Sent))),
                    ("m", &[number]) => (Event::Departure(number as u32), Some((number, Fate::Marked))),
                    ("p", &[parts]) => (Event::Probability(parts as f64 / 2f64.powi(64)), None),
                    _ => panic!("{name}: {word}"),
                };
                recording.events.push(event);
                if let Some((number, fate)) = fate {
                    recording.fates[number as usize] = fate;
                }
            }
        }
        assert!(recording.fates.len() > 1000, "{name}: {} packets show nothing", recording.fates.len());
        recording
    }

    fn count(&self, fate: Fate) -> usize {
        self.fates.iter().filter(|one| **one == fate).count()
    }
}

fn packet(flow: u32, bytes: u32, ect: bool) -> Packet {
    let ecn = if ect { Ecn::Ect0 } else { Ecn::NotEct };
    let hashes = (flow, flow, flow);
    Packet {
        bytes,
        ecn,
        segments: 1,
        flow_hash: hashes.0,
        source_hash: hashes.1,
        destination_hash: hashes.2,
        ..Packet::default()
    }
}

fn ours(profile: &str, values: &[(&str, Value<'_>)]) -> AnyQdisc {
    registry::build_qdisc(profile, values, &NETWORK, Limit::packets(15_000)).unwrap().unwrap()
}

/// Fates in the order of arrival, which is the handle.
struct Outcomes(Vec<Fate>);

impl Fates for Outcomes {
    fn marked(&mut self, handle: Handle) {
        self.0[handle as usize] = Fate::Marked;
    }

    fn dropped(&mut self, handle: Handle, _reason: DropReason) {
        self.0[handle as usize] = Fate::Dropped;
    }
}

/// Draws of a chosen number, counted.
struct Coin {
    next: f64,
    draws: usize,
    /// Draws that return 0 instead.
    low: BTreeSet<usize>,
}

impl Coin {
    /// Number at which no random event happens.
    const NEVER: f64 = 2.0;
    /// Largest number below 1, at which random rounding goes up.
    const UP: f64 = 1.0 - 1.0 / 131_072.0;
}

impl Draw for Coin {
    fn uniform(&mut self) -> f64 {
        self.draws += 1;
        if self.low.contains(&self.draws) { 0.0 } else { self.next }
    }
}

/// Replay of a recording through a discipline.
struct Replay<'a> {
    recording: &'a Recording,
    next: usize,
    qdisc: AnyQdisc,
    outcomes: Outcomes,
    coin: Coin,
    now: Instant,
    /// Ticks in which the timer fires after the departures.
    late: &'a [Instant],
}

impl<'a> Replay<'a> {
    fn new(recording: &'a Recording, qdisc: AnyQdisc) -> Self {
        let coin = Coin { next: Coin::NEVER, draws: 0, low: BTreeSet::new() };
        Replay { recording, next: 0, qdisc, outcomes: Outcomes(Vec::new()), coin, now: Instant::ZERO, late: &[] }
    }

    /// Handles due timers.
    fn fire(&mut self) {
        while let Some(due) = self.qdisc.next_timer().filter(|due| *due <= self.now) {
            self.qdisc.on_timer(due, &mut self.coin);
        }
    }

    /// Processes the next event; returns it, and whether the same packet was sent as in the kernel. `coin` gives the
    /// number drawn for an arrival.
    fn step(&mut self, coin: impl FnOnce(usize, &Coin) -> f64) -> Option<(Event, bool)> {
        let event = *self.recording.events.get(self.next)?;
        self.next += 1;
        let same = match event {
            Event::Time(at) => {
                self.fire();
                self.now = at;
                if !self.late.contains(&at) {
                    self.fire();
                }
                true
            }
            Event::Arrival(packet) => {
                self.fire();
                let number = self.outcomes.0.len();
                self.outcomes.0.push(Fate::Sent);
                self.coin.next = coin(number, &self.coin);
                self.qdisc.enqueue(number as u32, &packet, self.now, &mut self.coin, &mut self.outcomes);
                true
            }
            Event::Departure(number) => {
                self.qdisc.dequeue(self.now, &mut self.coin, &mut self.outcomes) == Some(number)
            }
            Event::Probability(_) => true,
        };
        Some((event, same))
    }
}

/// Checks that a recording has enough marks and drops.
fn assert_eventful(name: &str, recording: &Recording) {
    let (marked, dropped) = (recording.count(Fate::Marked), recording.count(Fate::Dropped));
    println!("{name}: {} packets, {marked} marked, {dropped} dropped", recording.fates.len());
    assert!(marked > 50 && dropped > 50, "{name}: {marked} marked and {dropped} dropped show nothing");
}

#[test]
fn codel_and_fq_codel_do_to_each_packet_what_the_kernels_do() {
    let interval = ("interval", Value::Number(0.098));
    let limit = ("limit", Value::Number(60.0));
    for (name, profile, values) in [
        ("codel", "codel-linux", &[limit, ("mtu", MTU), interval, ("ecn", Value::Flag(true))]),
        ("fq-codel", "fq-codel-linux", &[limit, ("mtu", MTU), ("quantum", MTU), interval]),
    ] {
        let recording = Recording::load(name);
        let mut replayed = Replay::new(&recording, ours(profile, values));
        while let Some((event, same)) = replayed.step(|_, _| Coin::NEVER) {
            assert!(same, "{name}: at {:?} the kernel sent another packet: {event:?}", replayed.now);
        }
        for (number, (own, theirs)) in replayed.outcomes.0.iter().zip(&recording.fates).enumerate() {
            assert_eq!(own, theirs, "{name}: packet {number}");
        }
        assert_eventful(name, &recording);
    }
}

/// Replays a recording through CAKE, with random rounding down in the draws `low`, until a fate differs from the
/// kernel's. Returns the number of equal events and of draws.
fn cake_agrees(recording: &Recording, low: &BTreeSet<usize>) -> (usize, usize) {
    let values = [
        ("rate", Value::Number(0.0)),
        ("interval", Value::Number(0.098)),
        ("tins", Value::Choice("besteffort")),
        ("isolation", Value::Choice("flows")),
        // Linux's, on a device whose full packets are 1500 B, too.
        ("quantum", Value::Number(1514.0)),
    ];
    let mut replayed = Replay::new(recording, ours("cake-linux", &values));
    (replayed.coin.next, replayed.coin.low) = (Coin::UP, low.clone());
    while let Some((event, same)) = replayed.step(|_, _| Coin::UP) {
        let fate = |number: Handle, fates: &[Fate]| fates[number as usize];
        let differs = matches!(event, Event::Departure(number)
            if fate(number, &replayed.outcomes.0) != fate(number, &recording.fates));
        if !same || differs {
            return (replayed.next - 1, replayed.coin.draws);
        }
    }
    let same = replayed.outcomes.0 == recording.fates;
    (if same { replayed.next } else { replayed.next - 1 }, replayed.coin.draws)
}

/// A quantum is 1514 B, or at random 1513 B in 1514 of 65 536 cases. The recording does not show which; the test
/// inserts a smaller quantum where it is needed to follow the kernel.
#[test]
fn cake_does_to_each_packet_what_the_kernels_does_but_for_a_byte_of_its_turns() {
    let recording = Recording::load("cake");
    let mut low = BTreeSet::new();
    let (mut reached, mut draws) = cake_agrees(&recording, &low);
    while reached < recording.events.len() {
        let try_low = |more: &[usize]| {
            let with: BTreeSet<usize> = low.iter().chain(more).copied().collect();
            let (reach, draws) = cake_agrees(&recording, &with);
            (reach > reached).then_some((with, reach, draws))
        };
        let last = |count: usize| (draws.saturating_sub(count)..=draws).rev();
        let pairs = || last(60).flat_map(|one| last(60).map(move |other| [one, other]));
        let before = last(400).find_map(|draw| try_low(&[draw])).or_else(|| pairs().find_map(|pair| try_low(&pair)));
        let at = recording.events[reached];
        (low, reached, draws) = before.unwrap_or_else(|| panic!("{at:?} is not what ours does, whatever the bytes"));
    }
    println!("cake: {} of {draws} turns a byte less", low.len());
    // That many fall low by chance, at most: most of them show nowhere.
    let expected = draws as f64 * 1514.0 / 65_536.0;
    assert!((low.len() as f64) < expected + Z * expected.sqrt(), "{} of {draws} turns", low.len());
    assert_eventful("cake", &recording);
}

/// Sum of probabilities with its variance, and the number of events observed.
#[derive(Default)]
struct Tally {
    expected: f64,
    variance: f64,
    seen: f64,
}

impl Tally {
    fn add(&mut self, chance: f64, seen: bool) {
        self.expected += chance;
        self.variance += chance * (1.0 - chance);
        self.seen += f64::from(u8::from(seen));
    }

    fn check(&self, name: &str) {
        let Tally { expected, variance, seen } = self;
        println!("{name}: {seen} signals by chance, {expected:.1} +- {:.1} expected", variance.sqrt());
        assert!(*seen > 50.0, "{name}: {seen} signals show nothing");
        assert!((seen - expected).abs() < Z * variance.sqrt(), "{name}: {seen} signals, {expected} expected");
    }
}

#[test]
fn pie_has_the_kernels_probability_and_allows_what_the_kernel_does_to_each_packet() {
    let recording = Recording::load("pie");
    // 15 ms are updates each 5 ticks of 4 ms, the first of them half a second after it was set up, in one of 16 ticks.
    let period = 20_000_000;
    let mut at = Instant::ZERO;
    let updates = recording.events.iter().filter_map(|event| {
        if let Event::Time(time) = event {
            at = *time;
        }
        matches!(event, Event::Probability(_)).then_some(at.as_nanos())
    });
    let updates: Vec<u64> = updates.collect();
    let first = recording.set_up.as_nanos() + 500_000_000;
    let start = first + (updates[0] - first) % period;
    assert!(updates.iter().all(|at| (at - start).is_multiple_of(period)));
    // Updates that leave the probability at 0 are not recorded, so the first update may be any before the first
    // recorded.
    let starts = (start..=updates[0]).step_by(period as usize);
    let ways: Vec<_> = starts.map(|start| in_some_order(&recording, start, period)).collect();
    let Some((tally, compared, late)) = ways.iter().find_map(|way| way.as_ref().ok()) else {
        panic!("when, ours, the kernel's: {:?}", ways.iter().filter_map(|way| way.as_ref().err()).collect::<Vec<_>>())
    };
    println!("pie: {compared} probabilities compared; {late} updates after what left in their tick");
    assert!(*compared > 100 && late * 20 < *compared, "{late} of {compared} updates came late");
    tally.check("pie");
}

/// [`pie`] with updates every `period` from `start` on (nanoseconds), and the number of updates after the departures of
/// their tick. The kernel's timer usually comes first; if its probability contradicts that, the other order must fit.
fn in_some_order(recording: &Recording, start: u64, period: u64) -> Result<(Tally, usize, usize), (Instant, f64, f64)> {
    let number = Value::Number;
    let values = [
        ("limit", number(500.0)),
        ("mean_packet", MTU),
        ("interval", number(period as f64 * 1e-9)),
        ("start", number(start as f64 * 1e-9)),
        ("ecn", Value::Flag(true)),
    ];
    let mut late = Vec::new();
    loop {
        match pie(recording, ours("pie-linux", &values), &late) {
            Ok((tally, compared)) => return Ok((tally, compared, late.len())),
            Err((at, _, _)) if late.last() != Some(&at) => late.push(at),
            Err(apart) => return Err(apart),
        }
    }
}

/// Tally of random signals and number of compared probabilities; or the first difference: time, our value, the
/// kernel's.
fn pie(recording: &Recording, qdisc: AnyQdisc, late: &[Instant]) -> Result<(Tally, usize), (Instant, f64, f64)> {
    let mut replayed = Replay { late, ..Replay::new(recording, qdisc) };
    let (mut tally, mut compared, mut theirs) = (Tally::default(), 0, None);
    loop {
        let draws = replayed.coin.draws;
        // The coin falls as the kernel's did, if one is tossed at all.
        let coin = |number: usize, _: &Coin| if recording.fates[number] == Fate::Sent { Coin::NEVER } else { 0.0 };
        let at = replayed.now;
        let Some((event, same)) = replayed.step(coin) else { return Ok((tally, compared)) };
        assert!(same, "at {at:?} the kernel sent another packet: {event:?}");
        if let Event::Probability(p) = event {
            theirs = Some(p);
        }
        if !matches!(event, Event::Arrival(_)) {
            continue;
        }
        // The law's probability, also during a burst allowance.
        let p = seen(&replayed.qdisc, "law_probability");
        if let Some(theirs) = theirs.take() {
            // The kernel's gains are whole numbers of 2^-56: where p is small not many, 280 000 for the lesser one.
            if (p - theirs).abs() > 1e-6 * theirs + 2e-11 {
                return Err((at, p, theirs));
            }
            compared += 1;
        }
        let number = replayed.outcomes.0.len() - 1;
        assert_eq!(replayed.outcomes.0[number], recording.fates[number], "packet {number}, p {p}");
        if replayed.coin.draws > draws {
            tally.add(p, recording.fates[number] != Fate::Sent);
        }
    }
}

#[test]
fn red_allows_what_the_kernel_does_to_each_packet_and_signals_as_often() {
    let recording = Recording::load("red");
    let number = Value::Number;
    let values = [
        ("min_th", number(15.0)),
        ("max_th", number(45.0)),
        ("mean_packet", number(750.0)),
        ("max_p", number(0.1)),
        ("weight", number(1.0 / 16.0)),
        ("ecn", Value::Flag(true)),
    ];
    // Linux draws one number per gap between signals, at its start. The number is unknown, but the end of the gap
    // bounds it: it lies between the spread probabilities of the signalled packet and of the packet before.
    let mut drawn: Vec<f64> = Vec::new();
    let tally = loop {
        let mut replayed = Replay::new(&recording, ours("red-linux", &values));
        let (mut tally, mut before, mut gap, mut different) = (Tally::default(), 0.0, 0, None);
        while let Some((event, _)) = replayed.step(|_, coin| drawn.get(coin.draws).copied().unwrap_or(Coin::NEVER)) {
            if !matches!(event, Event::Arrival(_)) {
                continue;
            }
            let number = replayed.outcomes.0.len() - 1;
            let spread = seen(&replayed.qdisc, "spread_probability");
            let (own, theirs) = (replayed.outcomes.0[number], recording.fates[number]);
            if own != theirs {
                different = Some((number, gap, before, spread, own, theirs));
                break;
            }
            let ended = replayed.coin.draws != gap;
            // Probability that a number above `before` is below `spread`.
            if gap > 0 && spread > before {
                tally.add((spread - before) / (1.0 - before), ended);
            }
            (gap, before) = (replayed.coin.draws, if ended { 0.0 } else { spread.max(before) });
        }
        let Some((number, gap, before, spread, own, theirs)) = different else { break tally };
        assert!(own == Fate::Sent && gap > 0 && spread > before, "packet {number}: {own:?}, the kernel's {theirs:?}");
        drawn.resize(gap, Coin::NEVER);
        drawn[gap - 1] = (before + spread) / 2.0;
    };
    tally.check("red");
}

/// A state variable of `qdisc`.
fn seen(qdisc: &AnyQdisc, wanted: &str) -> f64 {
    let mut seen = None;
    qdisc.observe(&mut |name, value| {
        if name == wanted {
            seen = Some(value);
        }
    });
    seen.unwrap()
}
