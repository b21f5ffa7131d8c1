//! Media in slots: what waits at the start of a slot goes out with it, as many bytes as it carries; a
//! packet that does not fit goes on in the next. UMTS, LTE and WiMAX draw their slots from radio
//! conditions, a file of Mahimahi lists them.
//!
//! Packets leave the queue at the start of their slot, one nanosecond after the other, so that their order is clear;
//! the time that each takes of the link is its share of the slot.

use std::sync::Arc;

use aqumen_aqm::Draw;
use aqumen_scenario::Opportunities;
use aqumen_scenario::channel::{Retransmission, Slotting};
use aqumen_scenario::streams::Stream;
use aqumen_units::Instant;

use super::radio::Radio;
use super::{Accepted, Channel, Offered, Passage, Use};

/// Where slots come from.
trait Slots: Send {
    /// The first usable slot at `from` or later that was not given before.
    fn next(&mut self, from: u64) -> Slot;
    /// Something goes out in `slot`: when it has come through, and whether it gets lost.
    fn transmit(&mut self, slot: &Slot) -> (u64, bool);
    /// Bits offered between the edges of the windows.
    fn offered_bits(&mut self) -> Vec<f64>;
}

/// A slot.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Its number.
    number: u64,
    /// When it starts.
    at: u64,
    /// Until the next one, nanoseconds.
    length: u64,
    /// What it carries.
    bytes: u32,
}

struct Slotted<S> {
    slots: S,
    /// The slot in use or next.
    slot: Slot,
    /// What is left of it, bytes.
    left: u32,
    /// Once something goes out in it: when that has come through, and whether it gets lost.
    opened: Option<(u64, bool)>,
    /// When the last packet was on its way.
    free_at: u64,
}

/// The slots of radio conditions.
pub(super) fn radio(slotting: &Slotting, offered: Offered, stream: &dyn Fn(Use) -> Stream) -> Box<dyn Channel> {
    let level_bps = (0..slotting.budgets.len()).map(|level| slotting.level_bps(level)).collect();
    let radio = Radio::new(&slotting.log_weights, level_bps, slotting.coherence, slotting.handover, offered, stream);
    let processes = slotting.retransmission.map_or(0, |arq| arq.round);
    Slotted::boxed(RadioSlots {
        length: slotting.slot.as_nanos(),
        budgets: slotting.budgets.clone(),
        radio,
        retransmission: slotting.retransmission,
        busy_through: vec![None; processes as usize],
        after: 0,
        rng: stream(Use::Access),
    })
}

/// The slots of a file of Mahimahi.
pub(super) fn trace(
    trace: Arc<Opportunities>,
    edges: &[u64],
    outages: &[(Instant, Option<Instant>)],
) -> Box<dyn Channel> {
    Slotted::boxed(TraceSlots { trace, next: 0, edges: edges.to_vec(), outages: outages.to_vec() })
}

impl<S: Slots + 'static> Slotted<S> {
    fn boxed(mut slots: S) -> Box<dyn Channel> {
        let slot = slots.next(0);
        Box::new(Slotted { slots, slot, left: slot.bytes, opened: None, free_at: 0 })
    }

    fn turn(&mut self, from: u64) {
        self.slot = self.slots.next(from);
        self.left = self.slot.bytes;
        self.opened = None;
    }
}

impl<S: Slots + 'static> Channel for Slotted<S> {
    fn ready(&mut self, at: u64) -> u64 {
        // A slot that has begun goes on as long as one packet follows the other.
        let follows = self.opened.is_some() && at <= self.free_at;
        if follows && self.left == 0 {
            // The next one may have begun at the same moment.
            self.turn(self.slot.at);
        } else if !follows && (self.opened.is_some() || self.slot.at < at) {
            self.turn(at);
        }
        self.slot.at.max(at)
    }

    fn transmit(&mut self, packet: Accepted) -> Passage {
        let (mut through, mut lost) = (0, false);
        let (mut rest, mut airtime) = (packet.bytes, 0.0);
        loop {
            if self.left == 0 {
                self.turn(self.slot.at);
            }
            let slots = &mut self.slots;
            let (at, error) = *self.opened.get_or_insert_with(|| slots.transmit(&self.slot));
            (through, lost) = (through.max(at), lost | error);
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
        Passage { end, airtime: airtime as u64, through: through.max(end), lost }
    }

    fn offered_bits(&mut self) -> Vec<f64> {
        self.slots.offered_bits()
    }
}

struct RadioSlots {
    length: u64,
    budgets: Vec<u32>,
    radio: Radio,
    retransmission: Option<Retransmission>,
    /// The last slot that each process needs for the block that it sends.
    busy_through: Vec<Option<u64>>,
    /// Number of the first slot that was not given yet.
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

struct TraceSlots {
    trace: Arc<Opportunities>,
    /// Number of the first opportunity that was not given yet.
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
