//! CAKE's acknowledgement filter: an arriving acknowledgement makes older ones of its connection redundant. At least
//! two remain, or with `aggressive` one.
//!
//! The filter drops only acknowledgements without data, and no duplicates, which senders count to detect losses. One
//! with SACK blocks is dropped only if the arriving one reports all of them. Changes of the ECN-Echo flag are
//! preserved.

use crate::multi::store::Store;
use crate::{Coverage, PureAck};

/// Mode of the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AckFilter {
    /// No filter.
    Off,
    /// Drops the first of two or more redundant acknowledgements.
    On,
    /// Also drops a single one, if it is directly before the arriving one.
    Aggressive,
}

impl AckFilter {
    pub(super) const NAMES: &'static [&'static str] = &["off", "on", "aggressive"];

    pub(super) fn from_name(name: &str) -> AckFilter {
        match name {
            "on" => AckFilter::On,
            "aggressive" => AckFilter::Aggressive,
            _ => AckFilter::Off,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            AckFilter::Off => "off",
            AckFilter::On => "on",
            AckFilter::Aggressive => "aggressive",
        }
    }

    /// Slot of a packet of `queue` that the last packet makes redundant: Linux, `cake_ack_filter`.
    pub(super) fn redundant(self, store: &Store, queue: usize) -> Option<u32> {
        if self == AckFilter::Off {
            return None;
        }
        let (last_place, last) = store.last(queue)?;
        let (flow, newest) = (last.packet.flow_hash, last.packet.ack?);
        let mut eligible: Option<(u32, PureAck)> = None;
        let (mut found, mut before_last) = (0, None);
        for (place, waiting) in store.places(queue).take_while(|(place, _)| *place != last_place) {
            before_last = Some(place);
            let Some(ack) = waiting.packet.ack else { continue };
            if waiting.packet.flow_hash != flow || ack.connection != newest.connection {
                continue;
            }
            // Dropping it would hide a change of the flag.
            if eligible.is_some_and(|(_, first)| first.ece != ack.ece) {
                (eligible, found) = (None, found - 1);
            }
            if !makes_redundant(&newest, &ack) {
                continue;
            }
            let (first, _) = *eligible.get_or_insert((place, ack));
            if found > 0 {
                return Some(first);
            }
            found += 1;
        }
        let (place, ack) = eligible?;
        let alone = self == AckFilter::Aggressive && before_last == Some(place) && ack.ece == newest.ece;
        alone.then_some(place)
    }
}

/// Whether `newest` contains all of `ack`'s information, and more: Linux, `cake_tcph_sack_compare` and its use.
fn makes_redundant(newest: &PureAck, ack: &PureAck) -> bool {
    let ahead = newest.number.wrapping_sub(ack.number);
    match ack.sack.covered_by(newest.sack) {
        None => false,
        Some(Coverage::Superset) => ahead <= u32::MAX / 2,
        Some(Coverage::Equal) => ahead != 0 && ahead <= u32::MAX / 2,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::multi::testing::flow;
    use crate::{Limit, Packet, SackDigest};
    use aqumen_units::Instant;

    fn ack(number: u32) -> Packet {
        sack(number, &[])
    }

    fn sack(number: u32, blocks: &[(u32, u32)]) -> Packet {
        let sack = SackDigest::from_blocks(blocks, number);
        Packet { ack: Some(PureAck { number, sack, ..PureAck::default() }), ..flow(1, 40) }
    }

    fn echo(number: u32) -> Packet {
        Packet { ack: Some(PureAck { number, ece: true, ..PureAck::default() }), ..flow(1, 40) }
    }

    /// Which of these packets, numbered from 0, the last makes redundant.
    fn redundant(filter: AckFilter, packets: &[Packet]) -> Option<u32> {
        let mut store = Store::new(1, Limit::packets(100));
        for (handle, packet) in (0..).zip(packets) {
            store.push(0, handle, packet, Instant::ZERO);
        }
        let place = filter.redundant(&store, 0)?;
        store.places(0).find(|(at, _)| *at == place).map(|(_, waiting)| waiting.handle)
    }

    #[test]
    fn the_first_of_two_superfluous_ones_goes() {
        assert_eq!(redundant(AckFilter::Off, &[ack(1), ack(2), ack(3)]), None);
        assert_eq!(redundant(AckFilter::On, &[ack(1), ack(3)]), None);
        assert_eq!(redundant(AckFilter::On, &[ack(1), ack(2), ack(3)]), Some(0));
        // Across the end of the sequence numbers.
        assert_eq!(redundant(AckFilter::On, &[ack(u32::MAX - 1), ack(u32::MAX), ack(0)]), Some(0));
        assert_eq!(redundant(AckFilter::Aggressive, &[ack(1), ack(3)]), Some(0));
    }

    #[test]
    fn duplicates_newer_ones_and_other_packets_stay() {
        assert_eq!(redundant(AckFilter::On, &[ack(3), ack(3), ack(3), ack(3)]), None);
        assert_eq!(redundant(AckFilter::On, &[ack(4), ack(5), ack(3)]), None);
        let data = flow(1, 1000);
        assert_eq!(redundant(AckFilter::On, &[ack(1), data, ack(2), data, ack(3)]), Some(0));
        assert_eq!(redundant(AckFilter::On, &[ack(1), ack(2), data]), None);
        // Aggressive: not from behind another packet.
        assert_eq!(redundant(AckFilter::Aggressive, &[ack(1), data, ack(3)]), None);
        let other = Packet { flow_hash: 2, ..ack(1) };
        assert_eq!(redundant(AckFilter::On, &[other, other, ack(3)]), None);
        let earlier = Packet { ack: Some(PureAck { connection: 1, ..ack(1).ack.unwrap() }), ..ack(1) };
        assert_eq!(redundant(AckFilter::On, &[earlier, earlier, ack(3)]), None);
    }

    /// Whether Linux drops the first of these before the last, as it does with `aggressive` where they are two.
    fn drops(older: Packet, newer: Packet) -> bool {
        redundant(AckFilter::Aggressive, &[older, newer]).is_some()
    }

    #[test]
    fn blocks_are_kept_unless_the_newest_reports_them_all() {
        // Linux's table: blocks of the older, of the newer; what becomes of the older where the newer acknowledges as
        // much, and where it acknowledges more.
        let none: &[(u32, u32)] = &[];
        for (older, newer, as_much, more) in [
            (none, none, false, true),
            // Only the newer has blocks: a duplicate tells less than it.
            (none, &[(12, 14)], true, true),
            // Only the older has.
            (&[(12, 14)], none, false, false),
            // The same, a longer one, one more.
            (&[(12, 14)], &[(12, 14)], false, true),
            (&[(12, 14)], &[(12, 15)], true, true),
            (&[(12, 14)], &[(18, 20), (12, 14)], true, true),
            // One of two is gone: it was acknowledged.
            (&[(12, 14), (18, 20)], &[(18, 20)], false, false),
            // Another altogether.
            (&[(12, 14)], &[(18, 30)], false, false),
            // Two that grew together.
            (&[(18, 20), (12, 14)], &[(12, 20)], true, true),
            // A duplicate is reported once.
            (&[(3, 4), (12, 14)], &[(12, 14)], false, false),
        ] {
            let found = [5, 7].map(|number| drops(sack(5, older), sack(number, newer)));
            assert_eq!(found, [as_much, more], "{older:?} {newer:?}");
        }
        // Beside three blocks there may be others that have no room: what the newest reports is not known to be all.
        assert!(!drops(sack(5, &[(12, 14)]), sack(7, &[(12, 14), (16, 17), (19, 20)])));
        assert!(drops(sack(5, &[(12, 14), (16, 17), (19, 20)]), sack(7, &[(12, 17), (19, 20)])));
    }

    #[test]
    fn one_with_blocks_tells_of_the_echo_too() {
        // 1 says that nothing was marked before; 2 was, though it stays for its blocks.
        let marked = sack(2, &[(12, 14)]);
        let marked = Packet { ack: Some(PureAck { ece: true, ..marked.ack.unwrap() }), ..marked };
        assert_eq!(redundant(AckFilter::On, &[ack(1), marked, ack(3), ack(4)]), None);
        assert_eq!(redundant(AckFilter::On, &[ack(1), sack(2, &[(12, 14)]), ack(3), ack(4)]), Some(0));
    }

    #[test]
    fn nothing_is_dropped_that_linux_keeps() {
        // A receiver to which 40 segments come, in one half of the rounds in any order and some twice, in the other one
        // in eight of them a while later, sent once more: of each two of its acknowledgements the blocks themselves are
        // compared.
        let mut state = 1u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let (mut dropped, mut compared) = (0, 0);
        for round in 0..300 {
            let (mut next, mut here, mut recent, mut sent) = (0u32, [false; 64], Vec::new(), Vec::new());
            let lost = |below: &mut dyn FnMut(u64) -> u64| if below(8) == 0 { 12 } else { 0 };
            let mut arrivals: Vec<(u64, u32)> = (0..40).map(|seq| (lost(&mut below) + seq, seq as u32)).collect();
            arrivals.sort_unstable();
            for (arrival, (_, in_turn)) in (0..).zip(arrivals) {
                let seq = if round % 2 == 0 { arrival + below(8) as u32 } else { in_turn };
                here[seq as usize] = true;
                while here[next as usize] {
                    next += 1;
                }
                recent.insert(0, seq);
                recent.retain(|seq| *seq >= next);
                let mut blocks: Vec<(u32, u32)> = Vec::new();
                for seq in &recent {
                    let first = (0..=*seq).rev().take_while(|at| here[*at as usize]).last().unwrap();
                    let end = (*seq..).find(|at| !here[*at as usize]).unwrap();
                    if !blocks.contains(&(first, end)) && blocks.len() < 3 {
                        blocks.push((first, end));
                    }
                }
                sent.push((next, blocks));
            }
            for (k, (number, blocks)) in sent.iter().enumerate() {
                for (earlier, old) in &sent[..k] {
                    let covers = |a: &(u32, u32)| blocks.iter().any(|b| b.0 <= a.0 && a.1 <= b.1);
                    let bytes = |blocks: &[(u32, u32)]| blocks.iter().map(|block| block.1 - block.0).sum::<u32>();
                    let more = bytes(blocks) > bytes(old);
                    let linux =
                        (blocks.is_empty() <= old.is_empty()) && old.iter().all(covers) && (more || number > earlier);
                    let ours = drops(sack(*earlier, old), sack(*number, blocks));
                    assert!(linux || !ours, "{earlier} {old:?} {number} {blocks:?}");
                    dropped += u32::from(ours && round % 2 == 1);
                    compared += u32::from(linux && round % 2 == 1);
                }
            }
        }
        // Where segments are lost three in four of what it drops go here, too.
        assert!(4 * dropped > 3 * compared, "{dropped} of {compared}");
    }

    #[test]
    fn a_change_of_the_echo_is_kept() {
        // 1 says that nothing was marked before 2: it stays, and 2 is then the first of two with an echo.
        assert_eq!(redundant(AckFilter::On, &[ack(1), echo(2), echo(3)]), None);
        assert_eq!(redundant(AckFilter::On, &[ack(1), echo(2), echo(3), echo(4)]), Some(1));
        assert_eq!(redundant(AckFilter::Aggressive, &[ack(1), echo(2)]), None);
    }
}
