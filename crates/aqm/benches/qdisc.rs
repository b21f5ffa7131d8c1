//! Nanoseconds per packet and bytes of state of every queue discipline, with 1000 flows.
//!
//! `cargo bench -p aqumen-aqm --bench qdisc` prints a table, with `-- --json` the same as JSON. Without `--bench` (as
//! in tests) it runs briefly, to show that it still works.
//!
//! A packet is one `enqueue` and one `dequeue` with its `transmitted`, over 3000 packets of 1000 flows in random
//! order that wait throughout, at 100 Mbit/s. Timers run when they are due and are in the figure. Best of several
//! rounds: what the code costs, not what the machine was doing besides. Bytes of state are those of the
//! discipline with its pools and tables.

use std::hint::black_box;
use std::time::Instant as Clock;

use aqumen_aqm::registry::{self, QueueKind};
use aqumen_aqm::{Draw, DropReason, Fates, Handle, Limit, Network, Packet, Qdisc};
use aqumen_units::{Ecn, Instant, Rate, Span};

const NETWORK: Network = Network {
    capacity: Rate::from_bps(100_000_000),
    flows: 1000.0,
    base_rtt_s: 0.1,
    target_pkts: 1000.0,
    packet_bytes: 1000.0,
    link_rate: Rate::from_bps(100_000_000),
    buffer_pkts: 10_000.0,
};

const FLOWS: u32 = 1000;
const WAITING: u32 = 3000;
/// 1000 B at 100 Mbit/s.
const PACKET_TIME: Span = Span::from_micros(80);

/// PCG-like step: cheap enough not to hide the discipline, but it is in the figures.
struct Random(u64);

impl Random {
    #[inline]
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

impl Draw for Random {
    #[inline]
    fn uniform(&mut self) -> f64 {
        self.bits() as f64 * (1.0 / (1u64 << 31) as f64)
    }
}

/// Counts what is lost, so that as many packets can be put in its place.
#[derive(Default)]
struct DropCounter(u32);

impl Fates for DropCounter {
    #[inline]
    fn marked(&mut self, _handle: Handle) {}

    #[inline]
    fn dropped(&mut self, _handle: Handle, _reason: DropReason) {
        self.0 += 1;
    }
}

struct Row {
    name: &'static str,
    packet_ns: f64,
    state_bytes: usize,
}

fn measure(name: &'static str, packets: u32, rounds: u32) -> Row {
    let limit = Limit::packets(10_000);
    let mut qdisc = registry::build_qdisc(name, &[], &NETWORK, limit).expect("registered").expect("defaults fit");
    let state_bytes = qdisc.memory_bytes();
    let (mut rng, mut choose, mut lost, mut now) = (Random(1), Random(2), DropCounter::default(), Instant::ZERO);
    let packet = |flow: u32, number: u32| Packet {
        bytes: 1000,
        ecn: if number.is_multiple_of(2) { Ecn::Ect0 } else { Ecn::Ect1 },
        segments: 1,
        flow_hash: flow,
        source_hash: flow,
        destination_hash: flow,
        ..Packet::default()
    };
    let mut number = 0;
    let mut best = f64::INFINITY;
    for round in 0..=rounds {
        let (start, mut done) = (Clock::now(), 0u32);
        while done < packets {
            now += PACKET_TIME;
            if qdisc.next_timer().is_some_and(|due| due <= now) {
                qdisc.on_timer(now, &mut rng);
            }
            // One packet for the one that leaves, more while the queue is short: losses are made up for.
            let arriving = 1 + u32::from(qdisc.backlog().packets < WAITING);
            for _ in 0..arriving {
                let flow = (choose.bits() % u64::from(FLOWS)) as u32;
                qdisc.enqueue(number, black_box(&packet(flow, number)), now, &mut rng, &mut lost);
                number = number.wrapping_add(1);
            }
            if black_box(qdisc.dequeue(now, &mut rng, &mut lost)).is_some() {
                qdisc.transmitted(PACKET_TIME, now);
            }
            done += arriving;
        }
        // The first round fills the queues.
        if round > 0 {
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(done));
        }
    }
    Row { name, packet_ns: best, state_bytes }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let (packets, rounds) = if has("--bench") { (500_000, 10) } else { (5000, 1) };
    let several = registry::algorithms().filter(|row| row.kind() == QueueKind::Multi).map(|row| row.name);
    // DropTail's single queue is the yardstick.
    let rows: Vec<Row> =
        std::iter::once("droptail").chain(several).map(|name| measure(name, packets, rounds)).collect();
    if has("--json") {
        let rows: Vec<String> = rows.iter().map(json).collect();
        println!("[{}]", rows.join(","));
    } else {
        println!("{:<12} {:>12} {:>12}", "discipline", "packet ns", "state bytes");
        for row in &rows {
            println!("{:<12} {:>12.1} {:>12}", row.name, row.packet_ns, row.state_bytes);
        }
    }
}

fn json(row: &Row) -> String {
    format!(r#"{{"discipline":"{}","packet_ns":{:.2},"state_bytes":{}}}"#, row.name, row.packet_ns, row.state_bytes)
}
