//! Carries packets between two TUN devices and a network of links, and measures its lateness.
//!
//! At each wake-up all due events are processed, each at its own time; only reads and writes are late. A packet arrives
//! when it is read, all segments of a super-packet at once.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};

use aqumen_network::Identity;
use aqumen_result::Histogram;

use super::gso::{self, Joiner, PartialChecksum, Segments};
use super::ip;
use super::network::{Network, Outcome, Packet};
use crate::Error;
use crate::machine::clock::Clock;
use crate::machine::tun::Tun;

/// Classifier of packets by route.
pub trait Classifier {
    /// Route of a packet from device `side` (0 or 1), and its identity for flow queueing; `None`: a foreign packet,
    /// which is discarded.
    fn classify(&mut self, side: usize, packet: &[u8]) -> Option<(u32, Identity)>;
}

/// Two devices, and the links between them.
pub struct Forwarder<'a, S> {
    network: Network<'a>,
    classifier: S,
    devices: Devices,
}

/// Input and output of packets.
struct Devices {
    tuns: [Tun; 2],
    clock: Clock,
    /// Last reading of the clock, if only a packet was read since: another reading costs as much as a discipline.
    last_reading: Option<u64>,
    pool: PacketPool,
    /// Packets to be joined before they are written, by device.
    joiners: [Joiner; 2],
    lateness: Lateness,
    /// Buffer for a super-packet; empty without super-packets.
    buffer: Vec<u8>,
}

/// Lateness of writes, and the number of late wake-ups.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// Time from a packet's exit from the network until it was written, nanoseconds.
    pub writes: Histogram,
    /// Wake-ups more than [`MISSED_NS`] late.
    pub missed_steps: u64,
    /// Packets that the kernel refused.
    pub refused_pkts: u64,
}

/// Lateness of a wake-up that counts as a missed step, nanoseconds.
pub const MISSED_NS: u64 = 1_000_000;

/// Buffers of packets in flight.
struct PacketPool {
    bytes: Vec<u8>,
    /// Partial checksum of each packet.
    partial: Vec<PartialChecksum>,
    packet_bytes: usize,
    free: Vec<u32>,
}

/// Packets read from one device before the other is served.
const BATCH: usize = 32;
/// Events of a device that was removed.
const GONE: PollFlags = PollFlags::ERR.union(PollFlags::HUP);
/// Longest sleep, nanoseconds: the delay of a request to stop.
const SLEEP_NS_MAX: u64 = 20_000_000;
/// Shortest sleep, nanoseconds: packets that leave more often are written together, no later than a wake-up is anyway.
const SLEEP_NS_MIN: u64 = 40_000;

impl<'a, S: Classifier> Forwarder<'a, S> {
    /// Forwards between `tuns`, whose packets have at most `mtu` bytes.
    pub fn new(network: Network<'a>, tuns: [Tun; 2], mtu: usize, classifier: S, clock: Clock) -> Self {
        let any_super = tuns.iter().any(|tun| tun.super_packets);
        let devices = Devices {
            tuns,
            clock,
            last_reading: None,
            pool: PacketPool::new(mtu),
            joiners: Default::default(),
            lateness: Lateness::default(),
            buffer: vec![0; if any_super { gso::LARGEST_BYTES } else { 0 }],
        };
        Forwarder { network, classifier, devices }
    }

    /// Carries packets until `end`, or until `go_on` returns false. Returns the time of the end.
    pub fn run(&mut self, end: u64, mut go_on: impl FnMut(u64) -> bool) -> Result<u64, Error> {
        let mut check_at = 0;
        let ended = loop {
            let now = self.devices.clock.now();
            if now >= end {
                break end;
            }
            if now >= check_at {
                if !go_on(now) {
                    break now;
                }
                check_at = now + SLEEP_NS_MAX;
            }
            if self.step()? == 0 {
                self.sleep(end).map_err(lost)?;
            }
        };
        // The remaining events happen, though their packets are not written.
        self.network.advance(ended, &mut |_, _, _| {});
        if ended < end {
            self.network.stop(ended);
        }
        Ok(ended)
    }

    /// Processes all due events, and reads up to a batch from each device. Returns the number of packets read.
    pub fn step(&mut self) -> Result<usize, Error> {
        let Forwarder { network, devices, .. } = self;
        let now = devices.clock.now();
        devices.last_reading = Some(now);
        network.advance(now, &mut |exit, packet, outcome| devices.finish(exit, &packet, outcome));
        devices.flush();
        let read = [self.read(0).map_err(lost)?, self.read(1).map_err(lost)?];
        Ok(read.into_iter().sum())
    }

    /// Links, lateness and devices.
    pub fn into_parts(self) -> (Network<'a>, Lateness, [Tun; 2]) {
        (self.network, self.devices.lateness, self.devices.tuns)
    }

    /// Reads up to a batch of packets from device `side`. Returns their number.
    fn read(&mut self, side: usize) -> io::Result<usize> {
        for read in 0..BATCH {
            let is_read =
                if self.devices.tuns[side].super_packets { self.read_super(side)? } else { self.read_one(side)? };
            if !is_read {
                self.devices.flush();
                return Ok(read);
            }
        }
        self.devices.flush();
        Ok(BATCH)
    }

    /// Reads a packet from device `side`. Returns whether there was one.
    fn read_one(&mut self, side: usize) -> io::Result<bool> {
        let slot = self.devices.pool.allocate();
        match self.devices.tuns[side].read(self.devices.pool.packet_mut(slot))? {
            Some(length) => {
                self.enter(side, slot, length, [0; 2]);
                Ok(true)
            }
            None => {
                self.devices.pool.release(slot);
                Ok(false)
            }
        }
    }

    /// Reads a packet from device `side`; a super-packet enters as its segments. Returns whether there was one.
    fn read_super(&mut self, side: usize) -> io::Result<bool> {
        let mut buffer = std::mem::take(&mut self.devices.buffer);
        let length = self.devices.tuns[side].read(&mut buffer);
        if let Ok(Some(length)) = length
            && let Some((header, packet)) = gso::Header::read(&buffer[..length])
        {
            let segments = Segments::new(&header, packet);
            for number in 0..segments.map_or(1, |segments| segments.count()) {
                let slot = self.devices.pool.allocate();
                let to = self.devices.pool.packet_mut(slot);
                let length = match &segments {
                    Some(segments) => segments.write(number, to),
                    None => to.get_mut(..packet.len()).map(|to| {
                        to.copy_from_slice(packet);
                        packet.len()
                    }),
                };
                match length {
                    Some(length) => self.enter(side, slot, length, header.partial),
                    // Longer than the device's MTU, which does not occur.
                    None => self.devices.pool.release(slot),
                }
            }
        }
        self.devices.buffer = buffer;
        length.map(|length| length.is_some())
    }

    /// Starts the packet in `slot`, from device `side`.
    #[inline]
    fn enter(&mut self, side: usize, slot: u32, length: usize, partial: PartialChecksum) {
        let Forwarder { network, classifier, devices } = self;
        devices.pool.partial[slot as usize] = partial;
        let bytes = &devices.pool.packet_mut(slot)[..length];
        let Some(((route, identity), ecn)) = classifier.classify(side, bytes).zip(ip::ecn(bytes)) else {
            return devices.pool.release(slot);
        };
        let ack = ip::pure_ack(bytes);
        let packet = Packet { slot, bytes: length as u32, ecn, ack, identity, route, passed: 0 };
        let now = devices.last_reading.take().unwrap_or_else(|| devices.clock.now());
        network.enter(now, packet, &mut |exit, packet, outcome| devices.finish(exit, &packet, outcome));
    }

    /// Sleeps until a packet arrives or an event is due.
    fn sleep(&mut self, end: u64) -> io::Result<()> {
        let Devices { tuns, clock, lateness, .. } = &mut self.devices;
        let due = self.network.next().min(end);
        let now = clock.now();
        let wait = clock.wait(wake_time(now, due));
        let mut polled = [PollFd::new(&tuns[0], PollFlags::IN), PollFd::new(&tuns[1], PollFlags::IN)];
        match poll(&mut polled, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if polled.iter().any(|descriptor| descriptor.revents().intersects(GONE)) {
            return Err(io::Error::other("the device was removed"));
        }
        lateness.woke(clock.now(), due);
        Ok(())
    }
}

/// Time to wake for an event at `due`.
fn wake_time(now: u64, due: u64) -> u64 {
    due.clamp(now + SLEEP_NS_MIN, now + SLEEP_NS_MAX)
}

fn lost(error: io::Error) -> Error {
    Error::runtime(format!("a TUN device is lost: {error}"))
}

impl Devices {
    /// Handles a packet that left the network: writes it or adds it to those to be joined, and releases its buffer.
    #[inline]
    fn finish(&mut self, exit: u64, packet: &Packet, outcome: Outcome) {
        if outcome == Outcome::Delivered {
            let partial = self.pool.partial[packet.slot as usize];
            let bytes = &mut self.pool.packet_mut(packet.slot)[..packet.bytes as usize];
            if ip::ecn(bytes) != Some(packet.ecn) {
                ip::set_ce(bytes);
            }
            // Even routes lead from the first device to the second.
            let to = if packet.route.is_multiple_of(2) { 1 } else { 0 };
            if self.tuns[to].super_packets {
                if self.joiners[to].add(bytes, partial, exit) {
                    self.flush();
                }
            } else {
                self.lateness.refused_pkts += u64::from(self.tuns[to].write(bytes).is_err());
                let now = self.clock.now();
                self.lateness.wrote(now, exit);
                self.last_reading = Some(now);
            }
        }
        self.pool.release(packet.slot);
    }

    /// Writes the packets that wait to be joined.
    #[inline]
    fn flush(&mut self) {
        let Devices { tuns, joiners, lateness, clock, .. } = self;
        for (tun, joiner) in tuns.iter().zip(joiners) {
            joiner.flush(|bytes, exits| {
                let now = clock.now();
                exits.iter().for_each(|exit| lateness.wrote(now, *exit));
                if tun.write(bytes).is_err() {
                    lateness.refused_pkts += exits.len() as u64;
                }
            });
        }
    }
}

impl PacketPool {
    fn new(packet_bytes: usize) -> Self {
        PacketPool { bytes: Vec::new(), partial: Vec::new(), packet_bytes, free: Vec::new() }
    }

    #[inline]
    fn allocate(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let slot = (self.bytes.len() / self.packet_bytes) as u32;
            self.bytes.resize(self.bytes.len() + self.packet_bytes, 0);
            self.partial.push([0; 2]);
            slot
        })
    }

    #[inline]
    fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }

    #[inline]
    fn packet_mut(&mut self, slot: u32) -> &mut [u8] {
        let at = slot as usize * self.packet_bytes;
        &mut self.bytes[at..at + self.packet_bytes]
    }
}

impl Lateness {
    /// Records a wake-up at `now` for an event at `due`.
    fn woke(&mut self, now: u64, due: u64) {
        self.missed_steps += u64::from(now > due.saturating_add(MISSED_NS));
    }

    /// Records the write at `now` of a packet that left the network at `exit`.
    #[inline]
    fn wrote(&mut self, now: u64, exit: u64) {
        self.writes.record(now.saturating_sub(exit));
    }

    /// Quantile `q` of the lateness of writes, seconds.
    pub fn quantile_s(&self, q: f64) -> Option<f64> {
        self.writes.quantile(q).map(|ns| ns * 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::DropReason;
    use aqumen_scenario::Plan;
    use aqumen_units::Ecn;

    use super::*;
    use crate::common::skipped;
    use crate::lab::capacity::{BURST, Rig};
    use crate::lab::dumbbell;
    use crate::lab::testbed::FlowClassifier;
    use crate::machine::namespace::tests::namespace_with_addresses;

    #[test]
    fn released_slots_are_reused() {
        let mut pool = PacketPool::new(3);
        let slots: Vec<u32> = (0..3).map(|_| pool.allocate()).collect();
        assert_eq!(slots, [0, 1, 2]);
        for slot in &slots {
            pool.packet_mut(*slot).fill(*slot as u8 + 1);
        }
        assert_eq!(pool.bytes, [1, 1, 1, 2, 2, 2, 3, 3, 3]);
        pool.release(1);
        // Free slots are used before new ones.
        assert_eq!((pool.allocate(), pool.allocate(), pool.partial.len()), (1, 3, 4));
    }

    #[test]
    fn lateness_quantiles_are_in_seconds() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile_s(0.5), None);
        (0..100).for_each(|_| lateness.writes.record(2_000_000));
        assert!((lateness.quantile_s(0.5).unwrap() / 2e-3 - 1.0).abs() < 0.1);
    }

    #[test]
    fn a_sleep_ends_with_the_next_event_within_limits() {
        // 40 us at least and 20 ms at most.
        let wakes =
            [0, 1_000_000, 1_040_000, 1_040_001, 21_000_000, 21_000_001, u64::MAX].map(|due| wake_time(1_000_000, due));
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
    fn a_write_is_late_by_the_time_since_its_packet_left_the_network() {
        let mut lateness = Lateness::default();
        lateness.wrote(7_000_000, 4_000_000);
        assert!((lateness.quantile_s(1.0).unwrap() / 3e-3 - 1.0).abs() < 0.1);
    }

    /// Eight flows of datagrams over a link without congestion.
    fn plan() -> Plan {
        let fast = &[
            ("topology.bottleneck.rate", "10Gbit"),
            ("topology.bottleneck.delay", "1us"),
            ("topology.bottleneck.buffer", "1000pkt"),
            ("topology.access.rate", "100Gbit"),
            ("topology.access.delay", "1us"),
        ];
        let flows = "count = 8\ntransport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Mbit\" }\n";
        dumbbell(fast, &format!("[[flows]]\nname = \"f\"\n{flows}"))
    }

    #[test]
    fn waiting_packets_are_carried_in_batches() {
        if skipped("packets from one device to another") {
            return;
        }
        let (mut rig, other) = (Rig::new().unwrap(), Rig::new().unwrap());
        let plan = plan();
        let network = Network::new(&plan).unwrap();
        let tuns = std::mem::replace(&mut rig.tuns, other.tuns);
        let mut forwarder = Forwarder::new(network, tuns, 1500, FlowClassifier::new(&plan), Clock::starting_in(0));
        rig.burst().unwrap();
        // 128 packets are four batches of 32; the kernel may add IPv6 packets.
        let read: Vec<usize> = (0..5).map(|_| forwarder.step().unwrap()).collect();
        assert!(read[..4].iter().all(|read| (32..40).contains(read)) && read[4] < 8, "{read:?}");
        // Another burst while it runs, until the end.
        rig.burst().unwrap();
        let end = forwarder.devices.clock.now() + 200_000_000;
        let mut calls = 0;
        assert_eq!(
            forwarder.run(end, |_| {
                calls += 1;
                true
            }),
            Ok(end)
        );
        assert!(calls > 1, "go_on is called repeatedly");
        // Packets that left have released their slots.
        assert_eq!(forwarder.devices.pool.free.len(), forwarder.devices.pool.partial.len());
        let (network, lateness, _) = forwarder.into_parts();
        assert_eq!((lateness.writes.total(), lateness.refused_pkts), (2 * BURST as u64, 0));
        let (_, link) = network.links.iter().find(|(number, _)| plan.links[*number as usize].record).unwrap();
        assert_eq!(link.totals().departures, 2 * BURST as u64);
    }

    #[test]
    fn a_run_ends_when_go_on_returns_false() {
        if skipped("a forwarder that is stopped") {
            return;
        }
        let (plan, rig) = (plan(), Rig::new().unwrap());
        let network = Network::new(&plan).unwrap();
        let mut forwarder = Forwarder::new(network, rig.tuns, 1500, FlowClassifier::new(&plan), Clock::starting_in(0));
        let mut last = 0;
        // Otherwise it ends after five seconds.
        let ended = forwarder.run(5_000_000_000, |now| {
            last = now;
            now < 50_000_000
        });
        assert_eq!(ended, Ok(last));
    }

    #[test]
    fn refused_packets_are_counted_and_dropped_ones_are_not_written() {
        let Some(here) = namespace_with_addresses("packets that a device refuses") else { return };
        for super_packets in [false, true] {
            let make = |name: &'static str| here.within(move || Tun::new(name, super_packets)).unwrap();
            // The second device is down: the kernel refuses its packets.
            let tuns = [make("up"), make("down")];
            here.bring_up(tuns[0].index, 1500, 10).unwrap();
            let plan = plan();
            let network = Network::new(&plan).unwrap();
            let mut forwarder = Forwarder::new(network, tuns, 1500, FlowClassifier::new(&plan), Clock::starting_in(0));
            let mut finish = |route: u32, end: Outcome, ecn: Ecn| {
                let slot = forwarder.devices.pool.allocate();
                let bytes = forwarder.devices.pool.packet_mut(slot);
                bytes[..20].copy_from_slice(&[0x45, 2, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
                let identity = Identity::default();
                forwarder.devices.finish(
                    0,
                    &Packet { slot, bytes: 20, ecn, ack: None, identity, route, passed: 0 },
                    end,
                );
                forwarder.devices.flush();
                let written = forwarder.devices.lateness.writes.total();
                // A packet that left marked is written marked.
                (written, forwarder.devices.lateness.refused_pkts, forwarder.devices.pool.packet_mut(slot)[1])
            };
            // Even routes lead to the second device.
            assert_eq!(finish(1, Outcome::Delivered, Ecn::Ect0), (1, 0, 2));
            assert_eq!(finish(0, Outcome::Delivered, Ecn::Ect0), (2, 1, 2));
            assert_eq!(finish(2, Outcome::Delivered, Ecn::Ce), (3, 2, 3));
            assert_eq!(finish(3, Outcome::Delivered, Ecn::Ce), (4, 2, 3));
            assert_eq!(finish(0, Outcome::Lost, Ecn::Ect0), (4, 2, 2));
            assert_eq!(finish(0, Outcome::Dropped(DropReason::Overflow), Ecn::Ect0), (4, 2, 2));
            assert_eq!(forwarder.devices.pool.partial.len(), 1, "each slot is free again");
        }
    }
}
