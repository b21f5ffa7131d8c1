//! Slotted media: a slot carries the bytes that wait at its start; a packet that does not fit continues in the next
//! slot. UMTS, LTE and WiMAX draw their slots from radio conditions, a Mahimahi file lists them.
//!
//! Packets leave the queue at the start of their slot, a nanosecond apart, so that their order is defined. The link
//! time of a packet is its fraction of the slot.

use std::sync::Arc;

use aqumen_aqm::Draw;
use aqumen_scenario::Opportunities;
use aqumen_scenario::channel::{Retransmission, Slotting};
use aqumen_scenario::streams::Stream;
use aqumen_units::Instant;

use super::medium::{Channel, Request, Transmission};
use super::offered::OfferedCapacity;
use super::radio::Radio;
use super::random::Use;

/// Source of slots.
trait Slots: Send {
    /// Returns the first usable slot at `from` or later that was not returned before.
    fn next(&mut self, from: u64) -> Slot;
    /// Sends a block in `slot`; returns the time of its reception, and whether it is lost.
    fn transmit(&mut self, slot: &Slot) -> (u64, bool);
    /// Returns the bits offered between the edges of the windows.
    fn offered_bits(&mut self) -> Vec<f64>;
}

/// A slot.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Number.
    number: u64,
    /// Start, nanoseconds.
    at: u64,
    /// Time until the next slot, nanoseconds.
    length: u64,
    /// Bytes that the slot carries.
    bytes: u32,
}

/// A slotted medium.
#[derive(Clone)]
struct SlottedMedium<S> {
    slots: S,
    /// Current or next slot.
    slot: Slot,
    /// Bytes left in the slot.
    left: u32,
    /// Reception of the block in this slot and whether it is lost, once something is sent in it.
    opened: Option<(u64, bool)>,
    /// End of the last packet's transmission.
    free_at: u64,
}

/// Makes a medium whose slots follow radio conditions.
pub(super) fn radio(slotting: &Slotting, offered: OfferedCapacity, stream: &dyn Fn(Use) -> Stream) -> Box<dyn Channel> {
    let level_bps = (0..slotting.budgets.len()).map(|level| slotting.level_bps(level)).collect();
    let radio = Radio::new(&slotting.log_weights, level_bps, slotting.coherence, slotting.handover, offered, stream);
    let processes = slotting.retransmission.map_or(0, |arq| arq.round);
    SlottedMedium::boxed(RadioSlots {
        length: slotting.slot.as_nanos(),
        budgets: slotting.budgets.clone(),
        radio,
        retransmission: slotting.retransmission,
        busy_through: vec![None; processes as usize],
        after: 0,
        rng: stream(Use::Access),
    })
}

/// Makes a medium whose slots are those of a Mahimahi file.
pub(super) fn trace(
    trace: Arc<Opportunities>,
    edges: &[u64],
    outages: &[(Instant, Option<Instant>)],
) -> Box<dyn Channel> {
    SlottedMedium::boxed(TraceSlots { trace, next: 0, edges: edges.to_vec(), outages: outages.to_vec() })
}

impl<S: Slots + Clone + 'static> SlottedMedium<S> {
    fn boxed(mut slots: S) -> Box<dyn Channel> {
        let slot = slots.next(0);
        Box::new(SlottedMedium { slots, slot, left: slot.bytes, opened: None, free_at: 0 })
    }

    fn next_slot(&mut self, from: u64) {
        self.slot = self.slots.next(from);
        self.left = self.slot.bytes;
        self.opened = None;
    }
}

impl<S: Slots + Clone + 'static> Channel for SlottedMedium<S> {
    fn ready(&mut self, at: u64) -> u64 {
        // A slot that has begun continues while packets follow one another.
        let follows = self.opened.is_some() && at <= self.free_at;
        if follows && self.left == 0 {
            // The next slot may begin at the same time.
            self.next_slot(self.slot.at);
        } else if !follows && (self.opened.is_some() || self.slot.at < at) {
            self.next_slot(at);
        }
        self.slot.at.max(at)
    }

    fn transmit(&mut self, packet: Request) -> Transmission {
        let (mut received, mut lost) = (0, false);
        let (mut rest, mut airtime) = (packet.bytes, 0.0);
        loop {
            if self.left == 0 {
                self.next_slot(self.slot.at);
            }
            let slots = &mut self.slots;
            let (at, error) = *self.opened.get_or_insert_with(|| slots.transmit(&self.slot));
            (received, lost) = (received.max(at), lost | error);
            let part = rest.min(self.left);
            airtime += self.slot.length as f64 * f64::from(part) / f64::from(self.slot.bytes);
            self.left -= part;
            rest -= part;
            if rest == 0 {
                break;
            }
        }
        let end = packet.start.max(self.slot.at) + 1;
        self.free_at = end;
        Transmission { end, airtime: airtime as u64, received: received.max(end), lost }
    }

    fn offered_bits(&mut self) -> Vec<f64> {
        self.slots.offered_bits()
    }
}

#[derive(Clone)]
struct RadioSlots {
    length: u64,
    budgets: Vec<u32>,
    radio: Radio,
    retransmission: Option<Retransmission>,
    /// Last slot that each HARQ process needs for its block.
    busy_through: Vec<Option<u64>>,
    /// Number of the first slot that was not returned yet.
    after: u64,
    rng: Stream,
}

impl Slots for RadioSlots {
    fn next(&mut self, from: u64) -> Slot {
        let mut number = from.div_ceil(self.length).max(self.after);
        loop {
            let at = number * self.length;
            let clear = self.radio.clear_from(at);
            if clear > at {
                number = clear.div_ceil(self.length);
                continue;
            }
            let round = self.busy_through.len() as u64;
            if round > 0 && self.busy_through[(number % round) as usize].is_some_and(|through| number <= through) {
                number += 1;
                continue;
            }
            self.after = number + 1;
            let level = self.radio.level(at);
            return Slot { number, at, length: self.length, bytes: self.budgets[level] };
        }
    }

    fn transmit(&mut self, slot: &Slot) -> (u64, bool) {
        let end = slot.at + slot.length;
        let Some(arq) = self.retransmission else { return (end, false) };
        let (mut repeats, mut failure) = (0, arq.first);
        loop {
            if self.rng.uniform() >= failure {
                break;
            }
            if repeats == arq.most {
                repeats += 1;
                break;
            }
            repeats += 1;
            failure = arq.again;
        }
        let lost = repeats > arq.most;
        let last = slot.number + u64::from(repeats.min(arq.most)) * u64::from(arq.round);
        self.busy_through[(slot.number % u64::from(arq.round)) as usize] = Some(last);
        ((last + 1) * self.length, lost)
    }

    fn offered_bits(&mut self) -> Vec<f64> {
        self.radio.offered_bits()
    }
}

#[derive(Clone)]
struct TraceSlots {
    trace: Arc<Opportunities>,
    /// Number of the first opportunity that was not returned yet.
    next: u64,
    edges: Vec<u64>,
    outages: Vec<(Instant, Option<Instant>)>,
}

impl Slots for TraceSlots {
    fn next(&mut self, from: u64) -> Slot {
        let number = self.trace.first_from(from).max(self.next);
        self.next = number + 1;
        let at = self.trace.time(number);
        Slot { number, at, length: self.trace.time(number + 1) - at, bytes: Opportunities::BYTES }
    }

    fn transmit(&mut self, slot: &Slot) -> (u64, bool) {
        (slot.at, false)
    }

    fn offered_bits(&mut self) -> Vec<f64> {
        let in_run = |from: u64, until: u64| self.trace.first_from(until) - self.trace.first_from(from);
        let mut from = 0;
        let piece = |&edge: &u64| {
            let down: u64 = self
                .outages
                .iter()
                .map(|(down, up)| (down.as_nanos().max(from), up.map_or(edge, |up| up.as_nanos().min(edge))))
                .filter(|(down, up)| down < up)
                .map(|(down, up)| in_run(down, up))
                .sum();
            let opportunities = in_run(from, edge) - down;
            from = edge;
            8.0 * f64::from(Opportunities::BYTES) * opportunities as f64
        };
        self.edges.iter().map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_scenario::streams::Kind;
    use aqumen_units::Span;

    const MS: u64 = 1_000_000;

    fn stream(use_of: Use) -> Stream {
        Stream::new(1, Kind::Link, use_of as u64)
    }

    /// Slots of 2 ms that carry 1000 bytes each.
    fn slotting(retransmission: Option<Retransmission>) -> Slotting {
        Slotting {
            slot: Span::from_millis(2),
            budgets: vec![1000],
            log_weights: vec![0.0],
            coherence: Span::from_millis(10),
            retransmission,
            handover: None,
        }
    }

    fn medium(slotting: &Slotting) -> Box<dyn Channel> {
        radio(slotting, OfferedCapacity::new(&[], &[]), &stream)
    }

    /// A packet that was there from the beginning goes out as soon as it can, from `at` on.
    fn send(medium: &mut dyn Channel, at: u64, bytes: u32) -> (u64, Transmission) {
        let start = medium.ready(at);
        (start, medium.transmit(Request { start, arrived: 0, bytes }))
    }

    #[test]
    fn packets_share_a_slot_and_go_on_in_the_next() {
        let mut medium = medium(&slotting(None));
        // 400 and 600 bytes fill the slot at 2 ms; 1500 take the one at 4 ms and half of that at 6 ms; 500 the rest;
        // what comes later waits for the slot at 8 ms, or the one at 20 ms, since the others pass.
        let mut at = MS;
        for (bytes, start, end, received, airtime) in [
            (400, 2 * MS, 2 * MS + 1, 4 * MS, 800_000),
            (600, 2 * MS + 1, 2 * MS + 2, 4 * MS, 1_200_000),
            (1500, 4 * MS, 6 * MS + 1, 8 * MS, 3_000_000),
            (500, 6 * MS + 1, 6 * MS + 2, 8 * MS, 1_000_000),
            (1, 8 * MS, 8 * MS + 1, 10 * MS, 2_000),
        ] {
            let (began, passage) = send(&mut *medium, at, bytes);
            assert_eq!((began, passage), (start, Transmission { end, airtime, received, lost: false }), "{bytes}");
            at = passage.end;
        }
        // The slot at 8 ms had room, but nothing was there to follow.
        assert_eq!(send(&mut *medium, 8 * MS + 2, 999).0, 10 * MS);
        assert_eq!(send(&mut *medium, 19 * MS, 1).0, 20 * MS);
        // At the very start of a slot it is not too late.
        assert_eq!(send(&mut *medium, 22 * MS, 1).0, 22 * MS);
    }

    #[test]
    fn a_block_in_error_goes_again_and_keeps_its_process_busy() {
        // One of four fails, of its repeats half, at most two; each 3 slots later.
        let arq = Retransmission { round: 3, first: 0.25, again: 0.5, most: 2 };
        let mut medium = medium(&slotting(Some(arq)));
        let n = 30_000;
        // Packets of a whole slot each: which slot each took, and when it had come through.
        let mut taken = vec![];
        let (mut at, mut counts, mut lost) = (0, [0u32; 3], 0u32);
        for _ in 0..n {
            let (start, passage) = send(&mut *medium, at, 1000);
            let slot = start / (2 * MS);
            // Once through: at the end of the slot, or 3 or 6 slots later.
            let repeats = (passage.received / (2 * MS) - 1 - slot) / 3;
            assert_eq!(passage.received, (slot + 1 + 3 * repeats) * 2 * MS);
            counts[repeats as usize] += 1;
            lost += u32::from(passage.lost);
            assert!(!passage.lost || repeats == 2, "it is given up after the last repeat only");
            taken.extend((0..=repeats).map(|k| slot + 3 * k));
            at = passage.end;
        }
        // No slot carries two blocks, and none is left out.
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[0] < pair[1]));
        let last = taken[taken.len() - 20];
        assert!(taken.iter().take_while(|slot| **slot <= last).count() as u64 == last + 1, "all were used");
        for (seen, p) in [(counts[0], 0.75), (counts[1], 0.125), (counts[2], 0.125), (lost, 0.0625)] {
            let (share, error) = (f64::from(seen) / f64::from(n), (p * (1.0 - p) / f64::from(n)).sqrt());
            assert!((share - p).abs() < 3.29 * error, "{share}, not {p}");
        }
    }

    #[test]
    fn no_slot_begins_during_a_handover() {
        let handover = Some((Span::from_millis(500), Span::from_millis(31)));
        let mut medium = medium(&Slotting { handover, ..slotting(None) });
        let mut walk =
            Radio::new(&[0.0], vec![1.0], Span::from_millis(10), handover, OfferedCapacity::new(&[], &[]), &stream);
        let (mut at, mut next) = (0, 0);
        for _ in 0..5000 {
            // Each slot in which no handover is under way when it begins carries a packet.
            while walk.clear_from(next) > next {
                next += 2 * MS;
            }
            let (start, passage) = send(&mut *medium, at, 1000);
            assert_eq!(start, next);
            (at, next) = (passage.end, next + 2 * MS);
        }
    }

    #[test]
    fn a_trace_offers_its_opportunities_that_no_outage_covers() {
        // At 2, 5 and 5 ms, again each 5 ms: three in 5 ms.
        let opportunities = Arc::new(Opportunities { at: vec![2 * MS, 5 * MS, 5 * MS], period: 5 * MS });
        let at = |ms: u64| Instant::from_nanos(ms * MS);
        let offered = |edges: &[u64], outages: &[(Instant, Option<Instant>)]| -> Vec<f64> {
            let edges: Vec<u64> = edges.iter().map(|ms| ms * MS).collect();
            let mut medium = trace(opportunities.clone(), &edges, outages);
            medium.offered_bits().iter().map(|bits| bits / (8.0 * 1504.0)).collect()
        };
        // Up to 11 ms: 2, 5, 5, 7, 10, 10; then 12, 15, 15, 17.
        assert_eq!(offered(&[11, 18], &[]), [6.0, 4.0]);
        // Down from 5 until 7 ms, and from 12 on: 2, 7, 10, 10; none.
        assert_eq!(offered(&[11, 18], &[(at(5), Some(at(7))), (at(12), None)]), [4.0, 0.0]);
        // An outage across an edge: without 10, 10, and 12.
        assert_eq!(offered(&[11, 18], &[(at(8), Some(at(13)))]), [4.0, 3.0]);
        // None before the first edge counts behind it.
        assert_eq!(offered(&[11, 18], &[(at(1), Some(at(3)))]), [5.0, 4.0]);
    }
}
