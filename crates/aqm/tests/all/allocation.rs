//! Disciplines allocate memory only at construction.

use allocation_counter::measure;
use aqumen_aqm::registry;
use aqumen_aqm::{AnyQdisc, DropReason, Fates, Handle, Limit, Packet, Qdisc};
use aqumen_units::{Ecn, Instant, Span};

use crate::random::{NETWORK, Random};

#[derive(Default)]
struct Counts {
    marked: u32,
    dropped: u32,
}

impl Fates for Counts {
    fn marked(&mut self, _handle: Handle) {
        self.marked += 1;
    }

    fn dropped(&mut self, _handle: Handle, _reason: DropReason) {
        self.dropped += 1;
    }
}

#[test]
fn handling_packets_allocates_nothing() {
    for row in registry::algorithms() {
        let mut qdisc = registry::build_qdisc(row.name, &[], &NETWORK, Limit::packets(300)).unwrap().unwrap();
        let (mut rng, mut fates) = (Random(1), Counts::default());
        let allocations = measure(|| {
            // Three packets come for two that leave, of 500 flows: the buffer fills and overflows, and timers run.
            for number in 0..30_000u32 {
                let now = Instant::ZERO + Span::from_micros(270) * u64::from(number);
                if qdisc.next_timer().is_some_and(|due| due <= now) {
                    qdisc.on_timer(now, &mut rng);
                }
                let flow = number * 7 % 500;
                let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][number as usize % 3];
                let packet = Packet {
                    bytes: 500 + number % 1000,
                    ecn,
                    segments: 1,
                    flow_hash: flow,
                    source_hash: flow / 3,
                    destination_hash: flow / 5,
                    ..Packet::default()
                };
                qdisc.enqueue(number, &packet, now, &mut rng, &mut fates);
                if number % 3 != 0 && qdisc.dequeue(now, &mut rng, &mut fates).is_some() {
                    qdisc.transmitted(Span::from_micros(200), now);
                }
            }
        });
        assert!(fates.dropped > 1000, "{}: {} dropped", row.name, fates.dropped);
        assert_eq!(allocations.count_total, 0, "{}", row.name);
    }
    // The counter counts.
    assert!(measure(|| drop(std::hint::black_box(vec![0u8; 100]))).count_total > 0);
}

#[test]
fn memory_bytes_is_the_allocated_memory() {
    for row in registry::algorithms() {
        let unsaid = [10, 300, 5000].map(|packets| {
            let mut made = None;
            let limit = Limit::packets(packets);
            let held = measure(|| made = Some(registry::build_qdisc(row.name, &[], &NETWORK, limit).unwrap().unwrap()));
            // Beside itself, which lies on the stack.
            let told = made.as_ref().unwrap().memory_bytes() - size_of::<AnyQdisc>();
            held.bytes_current - told as i64
        });
        // A queue does not speak for its algorithm, of which the largest lie in memory of their own.
        let most = match row.name {
            // Its tables of 2048 flows and 256 handshakes.
            "st-pi2" => 2048 * 32 + 256 * 24,
            name if name.contains("arm-pfc") => 2000,
            _ => 0,
        };
        assert!(unsaid.iter().all(|bytes| *bytes == unsaid[0]) && unsaid[0] <= most, "{}: {unsaid:?}", row.name);
        assert!(unsaid[0] >= 0, "{}: {unsaid:?}", row.name);
    }
}
