//! Datagrams, and what a group's receivers saw of them.
//!
//! A datagram carries its flow, its number and when it was sent. One that is too short for that is filled up.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aqumen_result::{FlowMetrics, Histogram, Jitter, Runs};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt};

use crate::lab::kernel::Sockets;
use crate::lab::namespace::Namespace;
use crate::lab::world;
use crate::{Failure, Tried};

const PORT: u16 = 5002;
const FIRST_PORT: u16 = 10_000;
/// Flow, number, time.
const STAMP_BYTES: usize = 16;
/// Room for datagrams that wait to be read.
const BUFFER_BYTES: usize = 16 << 20;

/// The sending end of a flow.
#[derive(Debug)]
pub struct Datagrams {
    socket: OwnedFd,
    flow: u32,
    number: u32,
    payload_bytes: usize,
}

/// One socket receives the datagrams of all flows.
#[derive(Debug)]
pub struct Sink(OwnedFd);

/// What a receiver remembers from packet to packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reception {
    jitter: Jitter,
    /// One more than the highest number that arrived.
    next: u32,
}

/// What a group's receivers saw between two edges of windows.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    arrived: u64,
    /// Bytes of packets, headers included.
    bytes: u64,
    /// Packets up to the highest number that arrived.
    expected: u64,
    losses: Runs,
    /// One-way delays, nanoseconds.
    delay: Histogram,
    /// Sum of the estimates of jitter after each arrival, nanoseconds.
    jitter: f64,
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its flow.
    pub flow: u32,
    number: u32,
    sent_at: u64,
    /// Its payload.
    pub bytes: u32,
}

impl Datagrams {
    /// The sending end of `flow`; the caller is in the senders' namespace.
    pub fn open(flow: u32, sockets: &Sockets) -> Result<Self, Failure> {
        let socket = open()?;
        sockopt::set_ip_tos(&socket, sockets.tos).or_refuse(|| "cannot set IP_TOS".into())?;
        net::bind(&socket, &SocketAddrV4::new(world::sender(flow), FIRST_PORT))
            .or_refuse(|| format!("cannot bind a socket of flow {flow}"))?;
        net::connect(&socket, &SocketAddrV4::new(world::receiver(flow), PORT))
            .or_refuse(|| format!("cannot connect flow {flow}"))?;
        let payload_bytes = usize::from(sockets.packet_bytes - sockets.header_bytes).max(STAMP_BYTES);
        Ok(Datagrams { socket, flow, number: 0, payload_bytes })
    }

    /// Sends a message, in as many datagrams as it needs.
    pub fn send(&mut self, bytes: u32, now: u64) {
        let mut left = bytes as usize;
        let mut packet = vec![0; self.payload_bytes];
        loop {
            let length = left.min(self.payload_bytes).max(STAMP_BYTES);
            packet[..4].copy_from_slice(&self.flow.to_ne_bytes());
            packet[4..8].copy_from_slice(&self.number.to_ne_bytes());
            packet[8..16].copy_from_slice(&now.to_ne_bytes());
            self.number = self.number.wrapping_add(1);
            // What the kernel does not take is lost, as on any host.
            let _ = net::send(&self.socket, &packet[..length], SendFlags::empty());
            left = left.saturating_sub(self.payload_bytes);
            if left == 0 {
                return;
            }
        }
    }
}

impl Sink {
    /// The receiving end of all flows.
    pub fn open(receivers: &Namespace) -> Result<Self, Failure> {
        receivers.within(|| {
            let socket = open()?;
            sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES)
                .or_refuse(|| "cannot set SO_RCVBUFFORCE".into())?;
            net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT))
                .or_refuse(|| "cannot bind a socket".into())?;
            Ok(Sink(socket))
        })
    }

    /// The next datagram that arrived.
    pub fn receive(&self) -> Option<Datagram> {
        let mut stamp = [0; STAMP_BYTES];
        // The length is that of the datagram, of which the stamp alone is copied.
        let (_, bytes) = net::recv(&self.0, &mut stamp[..], RecvFlags::TRUNC).ok()?;
        let word = |at: usize| u32::from_ne_bytes([stamp[at], stamp[at + 1], stamp[at + 2], stamp[at + 3]]);
        let sent_at = u64::from_ne_bytes(stamp[8..].try_into().ok()?);
        Some(Datagram { flow: word(0), number: word(4), sent_at, bytes: bytes as u32 })
    }
}

impl AsFd for Sink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn open() -> Result<OwnedFd, Failure> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, Some(ipproto::UDP))
        .or_refuse(|| "cannot open a socket".into())
}

impl Seen {
    /// `datagram`, of packets with headers of `header_bytes`, arrived at `now`.
    pub fn on_arrival(&mut self, reception: &mut Reception, datagram: &Datagram, header_bytes: u16, now: u64) {
        // RFC 3550 appendix A.3: expected are all up to the highest number. One that comes after a higher one was counted as
        // missing, and only arrives.
        if let Some(missing) = datagram.number.checked_sub(reception.next) {
            self.losses.record(missing.into());
            self.expected += u64::from(missing) + 1;
            reception.next = datagram.number + 1;
        }
        let delay = now.saturating_sub(datagram.sent_at);
        self.arrived += 1;
        self.bytes += u64::from(datagram.bytes) + u64::from(header_bytes);
        self.delay.record(delay);
        self.jitter += reception.jitter.arrived(delay);
    }

    /// Adds what was seen later.
    pub fn merge(&mut self, later: &Seen) {
        self.arrived += later.arrived;
        self.bytes += later.bytes;
        self.expected += later.expected;
        self.losses.merge(&later.losses);
        self.delay.merge(&later.delay);
        self.jitter += later.jitter;
    }

    /// Fills in the figures of a window of `length_s` seconds.
    pub fn fill(&self, metrics: &mut FlowMetrics, length_s: f64) {
        if self.expected == 0 {
            return;
        }
        let seconds = |ns: f64| ns * 1e-9;
        let delay = |q| self.delay.quantile(q).map(seconds);
        metrics.throughput_bps = Some(self.bytes as f64 * 8.0 / length_s);
        metrics.delay_mean_s = self.delay.mean().map(seconds);
        metrics.delay_p50_s = delay(0.50);
        metrics.delay_p95_s = delay(0.95);
        metrics.delay_p99_s = delay(0.99);
        metrics.jitter_mean_s = Some(seconds(self.jitter / self.arrived as f64));
        metrics.loss_ratio = Some(self.expected.saturating_sub(self.arrived) as f64 / self.expected as f64);
        metrics.loss_burst_mean_pkts = self.losses.mean();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_up_to_the_highest_number_is_lost() {
        let (mut seen, mut reception) = (Seen::default(), Reception::default());
        // Of 0 to 9 lost: 2, 5, 6; 8 comes after 9. Each is sent at 20 ms times its number and takes 10 ms.
        for number in [0, 1, 3, 4, 7, 9, 8] {
            let sent_at = 20_000_000 * u64::from(number);
            let datagram = Datagram { flow: 0, number, sent_at, bytes: 100 };
            seen.on_arrival(&mut reception, &datagram, 28, sent_at + 10_000_000);
        }
        let mut metrics = FlowMetrics::default();
        seen.fill(&mut metrics, 1.0);
        assert!((metrics.loss_ratio.unwrap() - 0.3).abs() < 1e-12);
        assert_eq!((metrics.loss_burst_mean_pkts, metrics.jitter_mean_s), (Some(4.0 / 3.0), Some(0.0)));
        assert_eq!(metrics.throughput_bps, Some(7.0 * 128.0 * 8.0));
    }
}
