//! CAKE's tins: traffic classes. Each has priority up to a fraction of the link's rate, and COBALT parameters for that
//! rate.
//!
//! ```text
//! packet's DSCP ──> tin            rate of a tin: the link's / 2^shift
//! next packet:  the last tin within its rate, else the tin that is within its rate soonest
//! no rate:      deficit round robin between the tins, with quanta in proportion to their rates
//! ```

use aqumen_units::{Bytes, Instant, Rate, Span};

use super::hosts::Hosts;
use crate::CobaltParams;
use crate::multi::queue_list::QueueList;

/// Linux: smallest quantum, bytes.
const QUANTUM_MIN: u64 = 300;
/// Linux: largest quantum, bytes.
const QUANTUM_MAX: u64 = 1514;
/// Linux: rate in bytes per second over the quantum.
const TURNS_PER_SECOND: u64 = 4096;
/// Linux: lowest rate of a tin, bytes per second.
const RATE_MIN: u64 = 64;
/// Linux: quantum of a tin with the whole link, without a rate.
const TIN_QUANTUM: i64 = 1024;

/// Indices of a tin's lists of queues, and their number.
pub(super) const SPARSE: usize = 0;
pub(super) const BULK: usize = 1;
pub(super) const DECAYING: usize = 2;
const SETS: usize = 3;

/// Classification by DSCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tins {
    /// One class.
    BestEffort,
    /// Best effort, background (a sixteenth of the link), latency-sensitive (a quarter).
    Diffserv3,
    /// Best effort, background (a sixteenth), streaming (half), latency-sensitive (a quarter).
    Diffserv4,
}

impl Tins {
    pub(super) const NAMES: &'static [&'static str] = &["diffserv3", "diffserv4", "besteffort"];

    pub(super) fn from_name(name: &str) -> Tins {
        match name {
            "besteffort" => Tins::BestEffort,
            "diffserv4" => Tins::Diffserv4,
            _ => Tins::Diffserv3,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Tins::BestEffort => "besteffort",
            Tins::Diffserv3 => "diffserv3",
            Tins::Diffserv4 => "diffserv4",
        }
    }

    /// Shift of each tin: its rate is the link's times 2^-shift.
    pub(super) const fn shifts(self) -> &'static [u32] {
        match self {
            Tins::BestEffort => &[0],
            Tins::Diffserv3 => &[0, 4, 2],
            Tins::Diffserv4 => &[0, 4, 1, 2],
        }
    }

    /// Tin of a DSCP; unknown values are best effort.
    pub(super) const fn tin(self, dscp: u8) -> usize {
        match (self, dscp) {
            (Tins::BestEffort, _) => 0,
            // LE (RFC 8622) and CS1.
            (_, 1 | 8) => 1,
            // VA, EF, CS6, CS7.
            (Tins::Diffserv3, 44 | 46 | 48 | 56) => 2,
            // "Minimise delay" of RFC 1349.
            (_, 4) => 2,
            (Tins::Diffserv3, _) => 0,
            // CS4, CS5, VA, EF, CS6, CS7.
            (Tins::Diffserv4, 32 | 40 | 44 | 46 | 48 | 56) => 3,
            // CS2, AF2x, CS3, AF3x, AF4x.
            (Tins::Diffserv4, 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38) => 2,
            (Tins::Diffserv4, _) => 0,
        }
    }
}

/// One tin.
#[derive(Clone, Debug)]
pub(super) struct Tin {
    pub(super) cobalt: CobaltParams,
    /// Transmission time of a full packet at its rate; 0 without a rate.
    pub(super) full_packet: Span,
    /// Bytes that a queue may send per round.
    pub(super) quantum: u32,
    /// Sparse, bulk and decaying queues.
    pub(super) lists: [QueueList; SETS],
    /// Number of bulk flows; the list of bulk queues also contains those in `SparseWait`.
    pub(super) bulk: u32,
    /// Packets in its queues.
    pub(super) waiting: u32,
    pub(super) sources: Hosts,
    pub(super) destinations: Hosts,
    rate: Option<Rate>,
    /// Time until which the tin has used up its rate.
    next: Instant,
    share: i64,
    deficit: i64,
}

/// Settings common to all tins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Settings {
    /// COBALT's parameters for a fast link.
    pub(super) cobalt: CobaltParams,
    /// A full packet, bytes.
    pub(super) mtu: u32,
    /// Quantum; `None`: by the rate.
    pub(super) quantum: Option<u32>,
}

impl Tin {
    /// Empty tin with its fraction of `rate`.
    pub(super) fn new(settings: &Settings, rate: Option<Rate>, shift: u32, places: usize) -> Self {
        let mut tin = Tin {
            cobalt: settings.cobalt,
            full_packet: Span::ZERO,
            quantum: 1,
            lists: [QueueList::EMPTY; SETS],
            bulk: 0,
            waiting: 0,
            sources: Hosts::new(places),
            destinations: Hosts::new(places),
            rate: None,
            next: Instant::ZERO,
            share: (TIN_QUANTUM >> shift).max(1),
            deficit: 0,
        };
        tin.configure(settings, rate, shift);
        tin
    }

    /// Linux, `cake_set_rate`: the target is at least 1.5 transmission times of a full packet; the interval grows with
    /// it; sojourn times up to four such times are exempt.
    pub(super) fn configure(&mut self, settings: &Settings, rate: Option<Rate>, shift: u32) {
        let Settings { cobalt, mtu, quantum } = *settings;
        self.rate = rate.map(|rate| Rate::from_bps((rate.as_bps() >> shift).max(8 * RATE_MIN)));
        self.full_packet = self.rate.map_or(Span::ZERO, |rate| rate.time_for(Bytes(mtu as u64)));
        let target = cobalt.target.max(Span::from_nanos(self.full_packet.as_nanos().saturating_mul(3) / 2));
        let grown = cobalt.interval.as_nanos().saturating_add(target.as_nanos() - cobalt.target.as_nanos());
        let interval = Span::from_nanos(grown.max(target.as_nanos().saturating_mul(2)));
        self.cobalt = CobaltParams { target, interval, least: self.full_packet.saturating_mul(4), ..cobalt };
        // A full packet without link header is also one turn.
        let most = QUANTUM_MAX.min(mtu as u64).max(QUANTUM_MIN);
        let by_rate = self.rate.map_or(most, |rate| (rate.as_bps() / 8 / TURNS_PER_SECOND).clamp(QUANTUM_MIN, most));
        self.quantum = quantum.unwrap_or(by_rate as u32).max(1);
    }

    /// Whether it has sparse or bulk queues.
    pub(super) fn is_active(&self) -> bool {
        self.lists[SPARSE].len() + self.lists[BULK].len() > 0
    }

    /// Ends an idle period; unused rate is forfeited.
    pub(super) fn wake(&mut self, now: Instant) {
        self.next = self.next.max(now);
    }

    /// Charges `bytes` of a sent packet.
    pub(super) fn charge(&mut self, bytes: u32, now: Instant) {
        self.deficit -= bytes as i64;
        self.spend_time(bytes, now);
    }

    /// Advances the time at which the tin is within its rate: Linux, `cake_advance_shaper`.
    pub(super) fn spend_time(&mut self, bytes: u32, now: Instant) {
        let Some(rate) = self.rate else { return };
        let time = rate.time_for(Bytes(bytes as u64));
        self.next =
            if self.next < now { self.next.saturating_add(time) } else { self.next.max(now.saturating_add(time)) };
    }
}

/// Selects the tin to serve; at least one is active: Linux, `cake_dequeue`.
pub(super) fn choose(tins: &mut [Tin], current: usize, now: Instant) -> usize {
    if tins.len() == 1 {
        return 0;
    }
    if tins[0].rate.is_none() {
        return round_robin(tins, current);
    }
    let (mut best, mut wait) = (0, u64::MAX);
    for (number, tin) in tins.iter().enumerate().filter(|(_, tin)| tin.is_active()) {
        let its = tin.next.saturating_since(now).as_nanos();
        if its <= wait {
            (best, wait) = (number, its);
        }
    }
    best
}

/// Deficit round robin between the tins, from `current` on.
fn round_robin(tins: &mut [Tin], current: usize) -> usize {
    // Skips rounds in which every active tin has a negative deficit.
    let rounds = |tin: &Tin| (-tin.deficit).max(0) as u64 / tin.share as u64;
    let idle = tins.iter().filter(|tin| tin.is_active()).map(rounds).min().unwrap_or(0) as i64;
    if idle > 1 {
        for tin in tins.iter_mut().filter(|tin| tin.deficit <= 0) {
            tin.deficit = (tin.deficit + (idle - 1) * tin.share).min(tin.share);
        }
    }
    let mut at = current;
    while tins[at].deficit < 0 || !tins[at].is_active() {
        if tins[at].deficit <= 0 {
            tins[at].deficit += tins[at].share;
        }
        at = (at + 1) % tins.len();
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn settings() -> Settings {
        Settings { cobalt: CobaltParams::default(), mtu: 1514, quantum: None }
    }

    fn at_rate(bps: u64) -> Tin {
        Tin::new(&settings(), Some(Rate::from_bps(bps)), 0, 8)
    }

    #[test]
    fn target_interval_and_quantum_follow_from_the_rate() {
        // 2 Mbit/s: a packet of 1514 B takes 6.056 ms; target 9.084 ms; interval 100 + 4.084 = 104.084 ms; 250 000 /
        // 4096 = 61 B, so 300; four packets 24.224 ms.
        let slow = at_rate(2_000_000);
        let CobaltParams { target, interval, least, .. } = slow.cobalt;
        assert_eq!((target.as_nanos(), interval.as_nanos()), (9_084_000, 104_084_000));
        assert_eq!((least.as_nanos(), slow.quantum), (24_224_000, 300));
        // 256 kbit/s: 47.3125 ms, target 70.96875 ms, twice which is less than 100 + 65.96875 ms. At 64 kbit/s 189.25
        // ms, 283.875 ms, and twice that is more than 378.875 ms.
        assert_eq!(at_rate(256_000).cobalt.interval.as_nanos(), 165_968_750);
        assert_eq!(at_rate(64_000).cobalt.interval.as_nanos(), 567_750_000);
        // Linux reckons with 64 bytes a second at least: 1514 B take 23.65625 s.
        assert_eq!([1, 512].map(|bps| at_rate(bps).full_packet.as_nanos()), [23_656_250_000; 2]);
        // 20 Mbit/s: 0.9084 ms is below 5 ms; 2 500 000 / 4096 = 610 B. From 4096 * 1514 * 8 = 49.6 Mbit/s on 1514 B.
        let fast = at_rate(20_000_000);
        assert_eq!((fast.cobalt.target, fast.quantum), (Span::from_millis(5), 610));
        assert_eq!([at_rate(49_600_000).quantum, at_rate(49_620_000).quantum], [1513, 1514]);
        // A full packet of 1500 B is one turn, not two; larger ones change nothing.
        let with_mtu = |mtu| Tin::new(&Settings { mtu, ..settings() }, Some(Rate::from_bps(1_000_000_000)), 0, 8);
        assert_eq!([with_mtu(1500).quantum, with_mtu(9014).quantum, with_mtu(100).quantum], [1500, 1514, 300]);
        // Without a rate: unchanged.
        let unlimited = Tin::new(&settings(), None, 0, 8);
        assert_eq!((unlimited.cobalt, unlimited.quantum), (CobaltParams::default(), 1514));
    }

    #[test]
    fn codepoints_find_their_tins() {
        let of = |tins: Tins, dscps: &[u8]| dscps.iter().map(|&dscp| tins.tin(dscp)).collect::<Vec<_>>();
        // CS0, LE, CS1, TOS4, AF11, CS2, AF21, AF41, CS4, CS5, VA, EF, CS6, CS7; a class that is no codepoint.
        let dscps = [0, 1, 8, 4, 10, 16, 18, 34, 32, 40, 44, 46, 48, 56, 200];
        assert_eq!(of(Tins::BestEffort, &dscps), [0; 15]);
        assert_eq!(of(Tins::Diffserv3, &dscps), [0, 1, 1, 2, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 0]);
        assert_eq!(of(Tins::Diffserv4, &dscps), [0, 1, 1, 2, 0, 2, 2, 2, 3, 3, 3, 3, 3, 3, 0]);
    }

    #[test]
    fn the_last_tin_within_its_rate_is_served_or_else_the_soonest_one() {
        // 8 Mbit/s: 1 us a byte; the third tin has a quarter of it.
        let tin = |shift| Tin::new(&settings(), Some(Rate::from_bps(8_000_000)), shift, 8);
        let mut tins = [tin(0), tin(4), tin(2)];
        let mut links = crate::multi::queue_list::ListLinks::new(3);
        for (queue, tin) in tins.iter_mut().enumerate() {
            tin.lists[super::BULK].push(&mut links, queue);
        }
        let at = |us: u64| Instant::from_nanos(1000 * us);
        assert_eq!(choose(&mut tins, 0, at(0)), 2);
        // 1000 B take 4 ms of a quarter, 16 ms of a sixteenth, 1 ms of all.
        tins[2].charge(1000, at(0));
        assert_eq!(choose(&mut tins, 0, at(1000)), 1);
        tins[1].charge(1000, at(1000));
        assert_eq!(choose(&mut tins, 0, at(2000)), 0);
        tins[0].charge(1000, at(2000));
        // The first had used nothing before: free from 1 ms on; the others from 16 and 4 ms on.
        assert_eq!(choose(&mut tins, 0, at(2500)), 0);
        assert_eq!(choose(&mut tins, 0, at(4000)), 2);
    }

    #[test]
    fn without_a_rate_tins_share_by_their_weights() {
        let tin = |shift| Tin::new(&settings(), None, shift, 8);
        let mut tins = [tin(0), tin(4), tin(2)];
        let mut links = crate::multi::queue_list::ListLinks::new(3);
        for (queue, tin) in tins.iter_mut().enumerate() {
            tin.lists[super::BULK].push(&mut links, queue);
        }
        let (mut current, mut bytes) = (0, [0u64; 3]);
        for _ in 0..42_000 {
            current = choose(&mut tins, current, Instant::ZERO);
            tins[current].charge(1000, Instant::ZERO);
            bytes[current] += 1000;
        }
        // 1024 : 64 : 256 of 1344.
        let total: u64 = bytes.iter().sum();
        for (got, weight) in bytes.iter().zip([1024.0, 64.0, 256.0]) {
            assert!((*got as f64 / total as f64 - weight / 1344.0).abs() < 0.01, "{bytes:?}");
        }
    }
}
