//! Carries packets between two TUN devices and a network of links, and says how late it was.
//!
//! At each wake-up all that is due happens, each at its own instant; only reads and writes are late. A packet arrives
//! when it is read, and all segments of a super-packet at once.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};

use aqumen_network::Identity;
use aqumen_result::Histogram;

use super::clock::Clock;
use super::gso::{self, Joiner, Partial, Segments};
use super::ip;
use super::network::{End, Network, Packet};
use super::tun::Tun;
use crate::Failure;

/// Says which way a packet goes.
pub trait Sorter {
    /// The route of a packet that came from device `side`, 0 or 1, and what disciplines tell it by; `None`: it is not
    /// ours, and is discarded.
    fn sort(&mut self, side: usize, packet: &[u8]) -> Option<(u32, Identity)>;
}

/// Two devices, and the links between them.
pub struct Pump<'a, S> {
    network: Network<'a>,
    sorter: S,
    desk: Desk,
}

/// Where packets are taken in and given out.
struct Desk {
    tuns: [Tun; 2],
    clock: Clock,
    /// The time, if nothing but the reading of a packet came since the clock was read: reading it costs
    /// as much as a discipline does.
    moment: Option<u64>,
    shelf: Shelf,
    /// What waits to be joined before it is written to each device.
    joiners: [Joiner; 2],
    lateness: Lateness,
    /// Room for a super-packet that is read; none if there are no such.
    room: Vec<u8>,
}

/// How late packets were written, and how often the program slept too long.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// From when a packet came out of the network until it had been written, nanoseconds.
    pub writes: Histogram,
    /// Times that the program woke more than [`MISSED_NS`] after something was due.
    pub missed_steps: u64,
    /// Packets that the kernel did not take.
    pub refused_pkts: u64,
}

/// A wake-up so late counts as a missed step, nanoseconds.
pub const MISSED_NS: u64 = 1_000_000;

/// Bytes of packets under way.
struct Shelf {
    bytes: Vec<u8>,
    /// The checksum of each that is still to be filled in.
    partial: Vec<Partial>,
    /// Room for a packet.
    room: usize,
    free: Vec<u32>,
}

/// Packets read from one device before the other has its turn.
const BATCH: usize = 32;
/// A device that is no longer there.
const GONE: PollFlags = PollFlags::ERR.union(PollFlags::HUP);
/// Longest sleep, nanoseconds: whoever wants the program to stop waits no longer.
const SLEEP_NS: u64 = 20_000_000;
/// Shortest sleep: where packets leave more often, some are written at each waking, as late as a waking is anyway.
const NAP_NS: u64 = 40_000;

impl<'a, S: Sorter> Pump<'a, S> {
    /// Between `tuns`, whose packets are `mtu` bytes at most.
    pub fn new(network: Network<'a>, tuns: [Tun; 2], mtu: usize, sorter: S, clock: Clock) -> Self {
        let any_super = tuns.iter().any(|tun| tun.super_packets);
        let desk = Desk {
            tuns,
            clock,
            moment: None,
            shelf: Shelf::new(mtu),
            joiners: Default::default(),
            lateness: Lateness::default(),
            room: vec![0; if any_super { gso::LARGEST_BYTES } else { 0 }],
        };
        Pump { network, sorter, desk }
    }

    /// Carries packets until `end`, or until `go_on` says no, which is asked now and then; when it ended.
    pub fn run(&mut self, end: u64, mut go_on: impl FnMut(u64) -> bool) -> Result<u64, Failure> {
        let mut ask_at = 0;
        let ended = loop {
            let now = self.desk.clock.now();
            if now >= end {
                break end;
            }
            if now >= ask_at {
                if !go_on(now) {
                    break now;
                }
                ask_at = now + SLEEP_NS;
            }
            if self.turn()? == 0 {
                self.sleep(end).map_err(lost)?;
            }
        };
        // What is still to happen up to the end happens, though nobody sees it come out.
        self.network.advance(ended, &mut |_, _, _| {});
        if ended < end {
            self.network.stop(ended);
        }
        Ok(ended)
    }

    /// All that is due happens, and what waits at the devices is read, up to a batch of each;
    /// how many packets there were.
    pub fn turn(&mut self) -> Result<usize, Failure> {
        let Pump { network, desk, .. } = self;
        let now = desk.clock.now();
        desk.moment = Some(now);
        network.advance(now, &mut |when, packet, end| desk.finish(when, &packet, end));
        desk.flush();
        let read = [self.read(0).map_err(lost)?, self.read(1).map_err(lost)?];
        Ok(read.into_iter().sum())
    }

    /// The links, how late packets were, and the devices.
    pub fn into_parts(self) -> (Network<'a>, Lateness, [Tun; 2]) {
        (self.network, self.desk.lateness, self.desk.tuns)
    }

    /// Reads packets of device `side`, up to a batch; how many there were.
    fn read(&mut self, side: usize) -> io::Result<usize> {
        for read in 0..BATCH {
            let there = if self.desk.tuns[side].super_packets { self.read_super(side)? } else { self.read_one(side)? };
            if !there {
                self.desk.flush();
                return Ok(read);
            }
        }
        self.desk.flush();
        Ok(BATCH)
    }

    /// Reads a packet of device `side`, if one waits.
    fn read_one(&mut self, side: usize) -> io::Result<bool> {
        let slot = self.desk.shelf.take();
        match self.desk.tuns[side].read(self.desk.shelf.packet_mut(slot))? {
            Some(length) => {
                self.enter(side, slot, length, [0; 2]);
                Ok(true)
            }
            None => {
                self.desk.shelf.give_back(slot);
                Ok(false)
            }
        }
    }

    /// Reads a packet of device `side`, if one waits; a super-packet enters as its segments.
    fn read_super(&mut self, side: usize) -> io::Result<bool> {
        let mut room = std::mem::take(&mut self.desk.room);
        let length = self.desk.tuns[side].read(&mut room);
        if let Ok(Some(length)) = length
            && let Some((header, packet)) = gso::Header::read(&room[..length])
        {
            let segments = Segments::of(&header, packet);
            for number in 0..segments.map_or(1, |segments| segments.count()) {
                let slot = self.desk.shelf.take();
                let to = self.desk.shelf.packet_mut(slot);
                let length = match &segments {
                    Some(segments) => segments.write(number, to),
                    None => to.get_mut(..packet.len()).map(|to| {
                        to.copy_from_slice(packet);
                        packet.len()
                    }),
                };
                match length {
                    Some(length) => self.enter(side, slot, length, header.partial),
                    // Longer than the device lets packets be: there is no such.
                    None => self.desk.shelf.give_back(slot),
                }
            }
        }
        self.desk.room = room;
        length.map(|length| length.is_some())
    }

    /// The packet in `slot`, from device `side`, sets out.
    #[inline]
    fn enter(&mut self, side: usize, slot: u32, length: usize, partial: Partial) {
        let Pump { network, sorter, desk } = self;
        desk.shelf.partial[slot as usize] = partial;
        let bytes = &desk.shelf.packet_mut(slot)[..length];
        let Some(((route, who), ecn)) = sorter.sort(side, bytes).zip(ip::ecn(bytes)) else {
            return desk.shelf.give_back(slot);
        };
        let ack = ip::pure_ack(bytes);
        let packet = Packet { slot, bytes: length as u32, ecn, ack, who, route, passed: 0 };
        let now = desk.moment.take().unwrap_or_else(|| desk.clock.now());
        network.enter(now, packet, &mut |when, packet, end| desk.finish(when, &packet, end));
    }

    /// Sleeps until a packet comes or something is due.
    fn sleep(&mut self, end: u64) -> io::Result<()> {
        let Desk { tuns, clock, lateness, .. } = &mut self.desk;
        let due = self.network.next().min(end);
        let now = clock.now();
        let wait = clock.wait(waking(now, due));
        let mut waits = [PollFd::new(&tuns[0], PollFlags::IN), PollFd::new(&tuns[1], PollFlags::IN)];
        match poll(&mut waits, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if waits.iter().any(|waited| waited.revents().intersects(GONE)) {
            return Err(io::Error::other("it was removed"));
        }
        lateness.woke(clock.now(), due);
        Ok(())
    }
}

/// When to wake, if something is due then.
fn waking(now: u64, due: u64) -> u64 {
    due.clamp(now + NAP_NS, now + SLEEP_NS)
}

fn lost(error: io::Error) -> Failure {
    Failure::lost(format!("a TUN device went away: {error}"))
}

impl Desk {
    /// The packet is out of the network: it is written where it goes, or waits to be joined, and its room is free.
    #[inline]
    fn finish(&mut self, when: u64, packet: &Packet, end: End) {
        if end == End::Out {
            let partial = self.shelf.partial[packet.slot as usize];
            let bytes = &mut self.shelf.packet_mut(packet.slot)[..packet.bytes as usize];
            if ip::ecn(bytes) != Some(packet.ecn) {
                ip::set_ce(bytes);
            }
            // Even routes lead from the first device to the second.
            let to = if packet.route.is_multiple_of(2) { 1 } else { 0 };
            if self.tuns[to].super_packets {
                if self.joiners[to].add(bytes, partial, when) {
                    self.flush();
                }
            } else {
                self.lateness.refused_pkts += u64::from(self.tuns[to].write(bytes).is_err());
                let now = self.clock.now();
                self.lateness.wrote(now, when);
                self.moment = Some(now);
            }
        }
        self.shelf.give_back(packet.slot);
    }

    /// What waits to be joined is written.
    #[inline]
    fn flush(&mut self) {
        let Desk { tuns, joiners, lateness, clock, .. } = self;
        for (tun, joiner) in tuns.iter().zip(joiners) {
            joiner.flush(|bytes, since| {
                let now = clock.now();
                since.iter().for_each(|when| lateness.wrote(now, *when));
                if tun.write(bytes).is_err() {
                    lateness.refused_pkts += since.len() as u64;
                }
            });
        }
    }
}

impl Shelf {
    fn new(room: usize) -> Self {
        Shelf { bytes: Vec::new(), partial: Vec::new(), room, free: Vec::new() }
    }

    #[inline]
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let slot = (self.bytes.len() / self.room) as u32;
            self.bytes.resize(self.bytes.len() + self.room, 0);
            self.partial.push([0; 2]);
            slot
        })
    }

    #[inline]
    fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    #[inline]
    fn packet_mut(&mut self, slot: u32) -> &mut [u8] {
        let at = slot as usize * self.room;
        &mut self.bytes[at..at + self.room]
    }
}

impl Lateness {
    /// The program woke at `now` for what was due then.
    fn woke(&mut self, now: u64, due: u64) {
        self.missed_steps += u64::from(now > due.saturating_add(MISSED_NS));
    }

    /// A packet that came out of the network at `when` had been written at `now`.
    #[inline]
    fn wrote(&mut self, now: u64, when: u64) {
        self.writes.record(now.saturating_sub(when));
    }

    /// Lateness of writes that the share `q` does not exceed, seconds.
    pub fn quantile_s(&self, q: f64) -> Option<f64> {
        self.writes.quantile(q).map(|ns| ns * 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::DropReason;
    use aqumen_scenario::{Plan, Scenario};
    use aqumen_units::Ecn;

    use super::*;
    use crate::common::skipped;
    use crate::lab::ceiling::{BURST, Rig};
    use crate::lab::namespace::tests::of_both_sides;
    use crate::lab::world::ByFlow;

    #[test]
    fn a_packet_has_its_room_until_it_is_given_back() {
        let mut shelf = Shelf::new(3);
        let slots: Vec<u32> = (0..3).map(|_| shelf.take()).collect();
        assert_eq!(slots, [0, 1, 2]);
        for slot in &slots {
            shelf.packet_mut(*slot).fill(*slot as u8 + 1);
        }
        assert_eq!(shelf.bytes, [1, 1, 1, 2, 2, 2, 3, 3, 3]);
        shelf.give_back(1);
        // What is free is used before there is more.
        assert_eq!((shelf.take(), shelf.take(), shelf.partial.len()), (1, 3, 4));
    }

    #[test]
    fn lateness_is_told_in_seconds() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile_s(0.5), None);
        (0..100).for_each(|_| lateness.writes.record(2_000_000));
        assert!((lateness.quantile_s(0.5).unwrap() / 2e-3 - 1.0).abs() < 0.1);
    }

    #[test]
    fn it_sleeps_until_what_is_due_but_not_for_ever_nor_for_nothing() {
        // 40 us at least and 20 ms at most.
        let wakes =
            [0, 1_000_000, 1_040_000, 1_040_001, 21_000_000, 21_000_001, u64::MAX].map(|due| waking(1_000_000, due));
        assert_eq!(wakes, [1_040_000, 1_040_000, 1_040_000, 1_040_001, 21_000_000, 21_000_000, 21_000_000]);
    }

    #[test]
    fn more_than_a_millisecond_too_late_is_a_step_missed() {
        let mut lateness = Lateness::default();
        for (now, missed) in [(5_000_000, 0), (6_000_000, 0), (6_000_001, 1), (9_000_000, 2), (1_000, 2)] {
            lateness.woke(now, 5_000_000);
            assert_eq!(lateness.missed_steps, missed, "{now}");
        }
        lateness.woke(u64::MAX, u64::MAX - 5);
        assert_eq!(lateness.missed_steps, 2);
    }

    #[test]
    fn a_write_is_late_by_the_time_since_its_packet_came_out() {
        let mut lateness = Lateness::default();
        lateness.wrote(7_000_000, 4_000_000);
        assert!((lateness.quantile_s(1.0).unwrap() / 3e-3 - 1.0).abs() < 0.1);
    }

    /// Eight flows of datagrams over a line on which nothing waits long.
    fn plan() -> Plan {
        let text = "name = \"t\"\nduration = \"1s\"\naqm = \"droptail\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = { rate = \"10Gbit\", delay = \"1us\", buffer = \"1000pkt\" }\n\
             access = { rate = \"100Gbit\", delay = \"1us\" }\n[[flows]]\nname = \"f\"\ncount = 8\n\
             transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Mbit\" }\n";
        Scenario::parse(text, "t.toml").unwrap().plan(1, None).unwrap()
    }

    #[test]
    fn what_waits_at_a_device_is_carried_to_the_other_a_batch_at_a_turn() {
        if skipped("packets from one device to another") {
            return;
        }
        let (mut rig, other) = (Rig::new().unwrap(), Rig::new().unwrap());
        let plan = plan();
        let network = Network::new(&plan).unwrap();
        let tuns = std::mem::replace(&mut rig.tuns, other.tuns);
        let mut pump = Pump::new(network, tuns, 1500, ByFlow::new(&plan), Clock::starting_in(0));
        rig.burst().unwrap();
        // 128 packets are four batches of 32; the kernel may have packets of IPv6 of its own.
        let read: Vec<usize> = (0..5).map(|_| pump.turn().unwrap()).collect();
        assert!(read[..4].iter().all(|read| (32..40).contains(read)) && read[4] < 8, "{read:?}");
        // Another burst while it runs; it ends when it is to.
        rig.burst().unwrap();
        let end = pump.desk.clock.now() + 200_000_000;
        let mut asked = 0;
        assert_eq!(
            pump.run(end, |_| {
                asked += 1;
                true
            }),
            Ok(end)
        );
        assert!(asked > 1, "it is asked now and then");
        // Packets that left have given their room back.
        assert_eq!(pump.desk.shelf.free.len(), pump.desk.shelf.partial.len());
        let (network, lateness, _) = pump.into_parts();
        assert_eq!((lateness.writes.total(), lateness.refused_pkts), (2 * BURST as u64, 0));
        let (_, link) = network.links.iter().find(|(number, _)| plan.links[*number as usize].record).unwrap();
        assert_eq!(link.totals().departures, 2 * BURST as u64);
    }

    #[test]
    fn whoever_says_no_ends_it() {
        if skipped("a pump that is stopped") {
            return;
        }
        let (plan, rig) = (plan(), Rig::new().unwrap());
        let network = Network::new(&plan).unwrap();
        let mut pump = Pump::new(network, rig.tuns, 1500, ByFlow::new(&plan), Clock::starting_in(0));
        let mut said = 0;
        // Else it would end by itself after five seconds.
        let ended = pump.run(5_000_000_000, |now| {
            said = now;
            now < 50_000_000
        });
        assert_eq!(ended, Ok(said));
    }

    #[test]
    fn what_a_device_refuses_is_counted_and_what_was_dropped_is_not_written() {
        let Some(here) = of_both_sides("packets that a device refuses") else { return };
        for super_packets in [false, true] {
            let make = |name: &'static str| here.within(move || Tun::new(name, super_packets)).unwrap();
            // The second is not up: the kernel takes nothing from it.
            let tuns = [make("up"), make("down")];
            here.bring_up(tuns[0].index, 1500, 10).unwrap();
            let plan = plan();
            let network = Network::new(&plan).unwrap();
            let mut pump = Pump::new(network, tuns, 1500, ByFlow::new(&plan), Clock::starting_in(0));
            let mut finish = |route: u32, end: End, ecn: Ecn| {
                let slot = pump.desk.shelf.take();
                let bytes = pump.desk.shelf.packet_mut(slot);
                bytes[..20].copy_from_slice(&[0x45, 2, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
                let who = Identity::default();
                pump.desk.finish(0, &Packet { slot, bytes: 20, ecn, ack: None, who, route, passed: 0 }, end);
                pump.desk.flush();
                let written = pump.desk.lateness.writes.total();
                // What came out marked is written so.
                (written, pump.desk.lateness.refused_pkts, pump.desk.shelf.packet_mut(slot)[1])
            };
            // Even routes lead to the second device.
            assert_eq!(finish(1, End::Out, Ecn::Ect0), (1, 0, 2));
            assert_eq!(finish(0, End::Out, Ecn::Ect0), (2, 1, 2));
            assert_eq!(finish(2, End::Out, Ecn::Ce), (3, 2, 3));
            assert_eq!(finish(3, End::Out, Ecn::Ce), (4, 2, 3));
            assert_eq!(finish(0, End::Lost, Ecn::Ect0), (4, 2, 2));
            assert_eq!(finish(0, End::Dropped(DropReason::Overflow), Ecn::Ect0), (4, 2, 2));
            assert_eq!(pump.desk.shelf.partial.len(), 1, "the room of each is free again");
        }
    }
}
