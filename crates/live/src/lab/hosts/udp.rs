//! Datagrams of the kernel.
//!
//! A datagram carries its number, when it was sent, its message's number and how many datagrams that has; its source
//! address tells its flow. One that is too short for that is filled up.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt};

use crate::lab::kernel::Sockets;
use crate::lab::namespace::Namespace;
use crate::lab::world;
use crate::{Failure, Tried};

const PORT: u16 = 5002;
const FIRST_PORT: u16 = 10_000;
/// Number, time in microseconds, number of the message, its datagrams.
const STAMP_BYTES: usize = 16;
/// Room for datagrams that wait to be read.
const BUFFER_BYTES: usize = 16 << 20;

/// The sending end of a flow.
#[derive(Debug)]
pub struct Datagrams {
    socket: OwnedFd,
    number: u32,
    message: u32,
    payload_bytes: usize,
}

/// One socket receives the datagrams of all flows.
#[derive(Debug)]
pub struct Sink(OwnedFd);

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its flow.
    pub flow: u32,
    /// Its number, from 0 on.
    pub number: u32,
    /// How long it was under way when it was read, nanoseconds.
    pub delay: u64,
    /// Number of its message, from 0 on.
    pub message: u32,
    /// Datagrams that its message has.
    pub of: u32,
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
        Ok(Datagrams { socket, number: 0, message: 0, payload_bytes })
    }

    /// Sends a message, in as many datagrams as it needs.
    pub fn send(&mut self, bytes: u32, now: u64) {
        let mut left = bytes as usize;
        let of = (left.div_ceil(self.payload_bytes) as u32).max(1);
        let micros = (now / 1000) as u32;
        let mut packet = vec![0; self.payload_bytes];
        loop {
            let length = left.min(self.payload_bytes).max(STAMP_BYTES);
            for (to, word) in packet.chunks_exact_mut(4).zip([self.number, micros, self.message, of]) {
                to.copy_from_slice(&word.to_ne_bytes());
            }
            self.number = self.number.wrapping_add(1);
            // What the kernel does not take is lost, as on any host.
            let _ = net::send(&self.socket, &packet[..length], SendFlags::empty());
            left = left.saturating_sub(self.payload_bytes);
            if left == 0 {
                self.message = self.message.wrapping_add(1);
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

    /// The next datagram that arrived; `now` is the time.
    pub fn receive(&self, now: u64) -> Option<Datagram> {
        loop {
            let mut stamp = [0; STAMP_BYTES];
            // The length is that of the datagram, of which the stamp alone is copied.
            let (_, bytes, peer) = net::recvfrom(&self.0, &mut stamp[..], RecvFlags::TRUNC).ok()?;
            // What comes from elsewhere is none of ours.
            let Some(Ok(SocketAddr::V4(peer))) = peer.map(SocketAddr::try_from) else { continue };
            let Some(flow) = u32::from(*peer.ip()).checked_sub(u32::from(world::sender(0))) else { continue };
            let word = |at: usize| u32::from_ne_bytes([stamp[at], stamp[at + 1], stamp[at + 2], stamp[at + 3]]);
            // Microseconds since the start, which begin again after 71 minutes.
            let micros = ((now / 1000) as u32).wrapping_sub(word(4));
            let delay = 1000 * u64::from(micros) + now % 1000;
            return Some(Datagram {
                flow,
                number: word(0),
                delay,
                message: word(8),
                of: word(12),
                bytes: bytes as u32,
            });
        }
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
