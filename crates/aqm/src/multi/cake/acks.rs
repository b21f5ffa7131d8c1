//! CAKE's filter of acknowledgements: one that arrives makes older ones of its connection superfluous, which then need
//! not be sent. Two are left at least, or with `aggressive` the last.
//!
//! Only acknowledgements without data and SACK blocks come in question, and no duplicates, from whose number a sender
//! counts losses. A change of the ECN-Echo flag is kept.

use crate::PureAck;
use crate::multi::store::Store;

/// How much the filter drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckFilter {
    /// Nothing.
    Off,
    /// The first of two or more that are superfluous.
    On,
    /// A single one, too, if it stands right before the one that makes it so.
    Aggressive,
}

impl AckFilter {
    pub(super) const NAMES: &'static [&'static str] = &["off", "on", "aggressive"];

    pub(super) fn named(name: &str) -> AckFilter {
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

    /// The place in `queue` of a packet that its last one makes superfluous: Linux, cake_ack_filter.
    pub(super) fn superfluous(self, store: &Store, queue: usize) -> Option<u32> {
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
            // Dropping it would lose the news that the flag changed.
            if eligible.is_some_and(|(_, first)| first.ece != ack.ece) {
                (eligible, found) = (None, found - 1);
            }
            let ahead = newest.number.wrapping_sub(ack.number);
            if ahead == 0 || ahead > u32::MAX / 2 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi::testing::flow;
    use crate::{Limit, Packet};
    use aqumen_units::Instant;

    fn ack(number: u32) -> Packet {
        Packet { ack: Some(PureAck { connection: 0, number, ece: false }), ..flow(1, 40) }
    }

    fn echo(number: u32) -> Packet {
        Packet { ack: Some(PureAck { connection: 0, number, ece: true }), ..flow(1, 40) }
    }

    /// Which of these packets, numbered from 0, the last makes superfluous.
    fn superfluous(filter: AckFilter, packets: &[Packet]) -> Option<u32> {
        let mut store = Store::new(1, Limit::packets(100));
        for (handle, packet) in (0..).zip(packets) {
            store.push(0, handle, packet, Instant::ZERO);
        }
        let place = filter.superfluous(&store, 0)?;
        store.places(0).find(|(at, _)| *at == place).map(|(_, waiting)| waiting.handle)
    }

    #[test]
    fn the_first_of_two_superfluous_ones_goes() {
        assert_eq!(superfluous(AckFilter::Off, &[ack(1), ack(2), ack(3)]), None);
        assert_eq!(superfluous(AckFilter::On, &[ack(1), ack(3)]), None);
        assert_eq!(superfluous(AckFilter::On, &[ack(1), ack(2), ack(3)]), Some(0));
        // Across the end of the sequence numbers.
        assert_eq!(superfluous(AckFilter::On, &[ack(u32::MAX - 1), ack(u32::MAX), ack(0)]), Some(0));
        assert_eq!(superfluous(AckFilter::Aggressive, &[ack(1), ack(3)]), Some(0));
    }

    #[test]
    fn duplicates_newer_ones_and_other_packets_stay() {
        assert_eq!(superfluous(AckFilter::On, &[ack(3), ack(3), ack(3), ack(3)]), None);
        assert_eq!(superfluous(AckFilter::On, &[ack(4), ack(5), ack(3)]), None);
        let data = flow(1, 1000);
        assert_eq!(superfluous(AckFilter::On, &[ack(1), data, ack(2), data, ack(3)]), Some(0));
        assert_eq!(superfluous(AckFilter::On, &[ack(1), ack(2), data]), None);
        // Aggressive: not from behind another packet.
        assert_eq!(superfluous(AckFilter::Aggressive, &[ack(1), data, ack(3)]), None);
        let other = Packet { flow_hash: 2, ..ack(1) };
        assert_eq!(superfluous(AckFilter::On, &[other, other, ack(3)]), None);
        let earlier = Packet { ack: Some(PureAck { connection: 1, ..ack(1).ack.unwrap() }), ..ack(1) };
        assert_eq!(superfluous(AckFilter::On, &[earlier, earlier, ack(3)]), None);
    }

    #[test]
    fn a_change_of_the_echo_is_kept() {
        // 1 says that nothing was marked before 2: it stays, and 2 is then the first of two with an echo.
        assert_eq!(superfluous(AckFilter::On, &[ack(1), echo(2), echo(3)]), None);
        assert_eq!(superfluous(AckFilter::On, &[ack(1), echo(2), echo(3), echo(4)]), Some(1));
        assert_eq!(superfluous(AckFilter::Aggressive, &[ack(1), echo(2)]), None);
    }
}
