//! Carries packets between two TUN devices and a network of links, and says how late it was.
//!
//! At each wake-up all that is due happens, each at its own instant; only reads and writes are late. A packet arrives when it is
//! read.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};

use aqumen_network::Identity;
use aqumen_result::Histogram;

use super::clock::Clock;
use super::ip;
use super::network::{End, Network, Packet};
use super::tun::Tun;
use crate::Failure;

/// Says which way a packet goes.
pub trait Sorter {
    /// The route of a packet that came from device `side`, 0 or 1, and what disciplines tell it by; `None`: it is not ours, and is
    /// discarded.
    fn sort(&mut self, side: usize, packet: &[u8]) -> Option<(u32, Identity)>;
}

/// Two devices, and the links between them.
pub struct Pump<'a, S> {
    network: Network<'a>,
    tuns: [Tun; 2],
    sorter: S,
    clock: Clock,
    shelf: Shelf,
    lateness: Lateness,
}

/// How late packets were written, and how often the program slept too long.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// From when a packet came out of the network until it was written, nanoseconds.
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
    /// Room for a packet.
    room: usize,
    free: Vec<u32>,
}

/// Packets read from one device before the other has its turn.
const BATCH: usize = 32;
/// Longest sleep, nanoseconds: whoever wants the program to stop waits no longer.
const SLEEP_NS: u64 = 20_000_000;

impl<'a, S: Sorter> Pump<'a, S> {
    /// Between `tuns`, whose packets are `mtu` bytes at most.
    pub fn new(network: Network<'a>, tuns: [Tun; 2], mtu: usize, sorter: S, clock: Clock) -> Self {
        Pump { network, tuns, sorter, clock, shelf: Shelf::new(mtu), lateness: Lateness::default() }
    }

    /// Carries packets until `end`, or until `go_on` says no, which is asked now and then.
    pub fn run(&mut self, end: u64, mut go_on: impl FnMut(u64) -> bool) -> Result<(), Failure> {
        let lost = |error: io::Error| Failure::lost(format!("a TUN device went away: {error}"));
        let mut ask_at = 0;
        loop {
            let now = self.clock.now();
            if now >= end {
                break;
            }
            if now >= ask_at {
                if !go_on(now) {
                    break;
                }
                ask_at = now + SLEEP_NS;
            }
            self.advance(now);
            let read = self.read(0).map_err(lost)? + self.read(1).map_err(lost)?;
            if read == 0 {
                self.sleep(end).map_err(lost)?;
            }
        }
        // What is still to happen up to the end happens, though nobody sees it come out.
        self.network.advance(end.min(self.clock.now()), &mut |_, _, _| {});
        Ok(())
    }

    /// The links, how late packets were, and the devices.
    pub fn into_parts(self) -> (Network<'a>, Lateness, [Tun; 2]) {
        (self.network, self.lateness, self.tuns)
    }

    fn advance(&mut self, until: u64) {
        let Pump { network, tuns, clock, shelf, lateness, .. } = self;
        network.advance(until, &mut |when, packet, end| finish(tuns, clock, shelf, lateness, when, &packet, end));
    }

    /// Reads packets of device `side`, up to a batch; how many there were.
    fn read(&mut self, side: usize) -> io::Result<usize> {
        let Pump { network, tuns, sorter, clock, shelf, lateness } = self;
        for read in 0..BATCH {
            let slot = shelf.take();
            let Some(length) = tuns[side].read(shelf.packet_mut(slot))? else {
                shelf.give_back(slot);
                return Ok(read);
            };
            let bytes = &shelf.packet_mut(slot)[..length];
            let sorted = sorter.sort(side, bytes).zip(ip::ecn(bytes));
            let Some(((route, who), ecn)) = sorted else {
                shelf.give_back(slot);
                continue;
            };
            let ack = ip::pure_ack(bytes);
            let packet = Packet { slot, bytes: length as u32, ecn, ack, who, route, passed: 0 };
            let now = clock.now();
            network
                .enter(now, packet, &mut |when, packet, end| finish(tuns, clock, shelf, lateness, when, &packet, end));
        }
        Ok(BATCH)
    }

    /// Sleeps until a packet comes or something is due.
    fn sleep(&mut self, end: u64) -> io::Result<()> {
        let due = self.network.next().min(end);
        let wait = self.clock.wait(due.min(self.clock.now() + SLEEP_NS));
        let mut waits = [PollFd::new(&self.tuns[0], PollFlags::IN), PollFd::new(&self.tuns[1], PollFlags::IN)];
        match poll(&mut waits, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if waits.iter().any(|waited| waited.revents().intersects(PollFlags::ERR | PollFlags::HUP)) {
            return Err(io::Error::other("it was removed"));
        }
        self.lateness.missed_steps += u64::from(self.clock.now() > due.saturating_add(MISSED_NS));
        Ok(())
    }
}

/// The packet is out of the network: it is written where it goes, and its room is free.
#[inline]
fn finish(
    tuns: &[Tun; 2],
    clock: &Clock,
    shelf: &mut Shelf,
    lateness: &mut Lateness,
    when: u64,
    packet: &Packet,
    end: End,
) {
    if end == End::Out {
        let bytes = &mut shelf.packet_mut(packet.slot)[..packet.bytes as usize];
        if ip::ecn(bytes) != Some(packet.ecn) {
            ip::set_ce(bytes);
        }
        lateness.writes.record(clock.now().saturating_sub(when));
        // Even routes lead from the first device to the second.
        let to = if packet.route.is_multiple_of(2) { 1 } else { 0 };
        if tuns[to].write(bytes).is_err() {
            lateness.refused_pkts += 1;
        }
    }
    shelf.give_back(packet.slot);
}

impl Shelf {
    fn new(room: usize) -> Self {
        Shelf { bytes: Vec::new(), room, free: Vec::new() }
    }

    #[inline]
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let slot = (self.bytes.len() / self.room) as u32;
            self.bytes.resize(self.bytes.len() + self.room, 0);
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
    /// Lateness of writes that the share `q` does not exceed, seconds.
    pub fn quantile_s(&self, q: f64) -> Option<f64> {
        self.writes.quantile(q).map(|ns| ns * 1e-9)
    }
}
