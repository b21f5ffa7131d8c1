//! Flows of transports other than TCP: the library's endpoints, over datagrams of the kernel.
//!
//! What an end sends leaves as a datagram that is as long on the wire. It carries its number alone: the packet waits
//! here until the kernel hands that over at the other end, with the ECN codepoint that it then has.

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aqumen_scenario::Protocol;
use aqumen_transport::{AnyEndpoint, Delivery, Endpoint, Message, Packet, Stats};
use aqumen_units::{Bytes, Ecn, Instant};
use rustix::net::{self, AddressFamily, SendFlags, SocketType, ipproto, sockopt};

use super::tcp::SOCKET;
use crate::lab::ip::UDP_HEADER_BYTES;
use crate::lab::kernel::Sockets;
use crate::lab::namespace::Namespace;
use crate::lab::world;
use crate::{Failure, Tried};

const PORT: u16 = 5002;
/// A datagram's number.
const STAMP_BYTES: usize = 4;
/// Room for datagrams that wait to be sent or read.
const BUFFER_BYTES: usize = 16 << 20;
/// Packets that may be under way from an end.
const UNDERWAY_MAX: usize = 1 << 16;
/// A packet that so many later ones have overtaken is lost.
const OVERTAKEN_MAX: u32 = 64;
/// Larger transfers are written as several messages.
const MESSAGE_BYTES_MAX: u64 = 1 << 30;
const NEVER: u64 = u64::MAX;

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Where the application writes.
    Source,
    /// Where its messages arrive.
    Sink,
}

/// Both ends of a flow.
#[derive(Debug)]
pub struct Ends {
    protocol: Protocol,
    tos: u8,
    source: End,
    sink: End,
    /// The latest moment that an end was told.
    now: Instant,
    /// Messages written.
    messages: u32,
}

#[derive(Debug)]
struct End {
    endpoint: AnyEndpoint,
    socket: OwnedFd,
    /// Codepoint of what the socket sends.
    ecn: Ecn,
    underway: Underway,
    /// When the earliest call for its timer comes.
    timer_at: u64,
}

/// Packets that an end has sent, by number, until they arrive.
#[derive(Debug, Default)]
struct Underway {
    /// Number of the first.
    first: u32,
    packets: VecDeque<Option<Packet>>,
}

impl Side {
    /// Both.
    pub const ALL: [Side; 2] = [Side::Source, Side::Sink];

    fn other(self) -> Side {
        match self {
            Side::Source => Side::Sink,
            Side::Sink => Side::Source,
        }
    }
}

impl Underway {
    /// Keeps `packet`; its number.
    fn send(&mut self, packet: Packet) -> u32 {
        if self.packets.len() == UNDERWAY_MAX {
            self.packets.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        self.packets.push_back(Some(packet));
        self.first.wrapping_add(self.packets.len() as u32 - 1)
    }

    /// The packet of this number, which has arrived; `None`: it was given up, or has arrived before.
    fn arrive(&mut self, number: u32) -> Option<Packet> {
        let place = number.wrapping_sub(self.first);
        let packet = self.packets.get_mut(place as usize)?.take();
        let overtaken = place.saturating_sub(OVERTAKEN_MAX) as usize;
        let arrived = self.packets.iter().skip(overtaken).take_while(|packet| packet.is_none()).count();
        self.packets.drain(..overtaken + arrived);
        self.first = self.first.wrapping_add((overtaken + arrived) as u32);
        packet
    }

    /// Gives all up.
    fn clear(&mut self) {
        self.first = self.first.wrapping_add(self.packets.len() as u32);
        self.packets.clear();
    }
}

impl Ends {
    /// The ends of `flow`, which goes by `protocol`; the caller is in the senders' namespace. `None` for TCP.
    pub fn open(
        flow: u32,
        protocol: &Protocol,
        sockets: &Sockets,
        receivers: &Namespace,
    ) -> Result<Option<Self>, Failure> {
        let Some((source, sink)) = protocol.endpoints() else { return Ok(None) };
        let (from, to) = (SocketAddrV4::new(world::sender(flow), PORT), SocketAddrV4::new(world::receiver(flow), PORT));
        let end = |endpoint, socket| End {
            endpoint,
            socket,
            ecn: Ecn::NotEct,
            underway: Underway::default(),
            timer_at: NEVER,
        };
        Ok(Some(Ends {
            protocol: *protocol,
            tos: sockets.tos,
            sink: end(sink, receivers.within(|| open(flow, to, from, sockets.tos))?),
            source: end(source, open(flow, from, to, sockets.tos)?),
            now: Instant::ZERO,
            messages: 0,
        }))
    }

    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Source => &mut self.source,
            Side::Sink => &mut self.sink,
        }
    }

    /// Its socket.
    pub fn socket(&self, side: Side) -> BorrowedFd<'_> {
        match side {
            Side::Source => self.source.socket.as_fd(),
            Side::Sink => self.sink.socket.as_fd(),
        }
    }

    /// `now`, nanoseconds, as an instant that is not before those that the ends know.
    fn at(&mut self, now: u64) -> Instant {
        self.now = self.now.max(Instant::from_nanos(now));
        self.now
    }

    /// Begins to send data of its own: `transfer`, or without end.
    pub fn start(&mut self, now: u64, transfer: Option<Bytes>) {
        match transfer {
            Some(bytes) if self.source.endpoint.stats().sent == 0 => self.transfer(now, bytes.0),
            Some(_) => {}
            None => {
                let now = self.at(now);
                self.source.endpoint.start(now);
            }
        }
    }

    /// Sends nothing more of its own.
    pub fn stop(&mut self, now: u64) {
        let now = self.at(now);
        self.source.endpoint.stop(now);
    }

    /// The application writes a message.
    pub fn write(&mut self, now: u64, bytes: u32) {
        let now = self.at(now);
        self.source.endpoint.write(now, Message { bytes, number: self.messages, created_at: now });
        self.messages += 1;
    }

    /// It writes the messages of a transfer.
    pub fn transfer(&mut self, now: u64, bytes: u64) {
        let mut left = bytes;
        while left > 0 {
            let bytes = left.min(MESSAGE_BYTES_MAX);
            self.write(now, bytes as u32);
            left -= bytes;
        }
    }

    /// A new connection is in place of this one. What was under way is nobody's.
    pub fn renew(&mut self) {
        let Some((source, sink)) = self.protocol.endpoints() else { return };
        (self.source.endpoint, self.sink.endpoint) = (source, sink);
        Side::ALL.into_iter().for_each(|side| self.end(side).underway.clear());
        self.messages = 0;
    }

    /// The next packet that has arrived at an end, which takes it.
    pub fn receive(&mut self, side: Side, now: u64) -> Option<Packet> {
        loop {
            let (number, ecn) = receive(&self.end(side).socket)?;
            let Some(mut packet) = self.end(side.other()).underway.arrive(number) else { continue };
            packet.ecn = ecn;
            let now = self.at(now);
            self.end(side).endpoint.on_packet(now, &packet);
            return Some(packet);
        }
    }

    /// The call for the timer of an end, asked for at `due`.
    pub fn on_timer(&mut self, side: Side, due: u64, now: u64) {
        let now = self.at(now);
        let end = self.end(side);
        if end.timer_at != due {
            return; // an earlier call took its place
        }
        end.timer_at = NEVER;
        if end.endpoint.next_timer().is_some_and(|due| due <= now) {
            end.endpoint.on_timer(now);
        }
    }

    /// Sends what an end has to send. When its timer is to be called, if that is not known yet.
    pub fn send(&mut self, side: Side, now: u64) -> Option<u64> {
        let (now, tos) = (self.at(now), self.tos);
        let end = self.end(side);
        while let Some(packet) = end.endpoint.poll_transmit(now) {
            end.send(packet, tos);
        }
        let due = end.endpoint.next_timer()?.as_nanos();
        if due >= end.timer_at {
            return None;
        }
        end.timer_at = due;
        Some(due)
    }

    /// The next message for the application at the sink.
    pub fn delivery(&mut self) -> Option<Delivery> {
        self.sink.endpoint.poll_delivery()
    }

    /// What the source has done, and the bytes that the sink delivered.
    pub fn stats(&self) -> (Stats, u64) {
        (self.source.endpoint.stats(), self.sink.endpoint.stats().delivered_bytes)
    }

    /// Whether its source has nothing left to do.
    pub fn is_idle(&self) -> bool {
        self.source.endpoint.is_idle()
    }

    /// The rate at which its application may produce, bit/s, if the transport tells.
    pub fn rate_bps(&self) -> Option<f64> {
        self.source.endpoint.rate_bps()
    }
}

impl End {
    fn send(&mut self, packet: Packet, tos: u8) {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        if self.ecn != packet.ecn && sockopt::set_ip_tos(&self.socket, tos | packet.ecn as u8).is_ok() {
            self.ecn = packet.ecn;
        }
        let length = usize::from(packet.bytes.saturating_sub(UDP_HEADER_BYTES)).max(STAMP_BYTES);
        let stamp = self.underway.send(packet).to_ne_bytes();
        let parts = [std::io::IoSlice::new(&stamp), std::io::IoSlice::new(&ZEROS[..length - STAMP_BYTES])];
        // What the kernel does not take is lost, as on any host.
        let _ = net::sendmsg(&self.socket, &parts, &mut net::SendAncillaryBuffer::default(), SendFlags::empty());
    }
}

/// A socket of `flow` from `own` to `other`.
fn open(flow: u32, own: SocketAddrV4, other: SocketAddrV4, tos: u8) -> Result<OwnedFd, Failure> {
    let socket = net::socket_with(AddressFamily::INET, SocketType::DGRAM, SOCKET, Some(ipproto::UDP))
        .or_refuse(|| "cannot open a socket".into())?;
    let set = |what: &str, done: rustix::io::Result<()>| done.or_refuse(|| format!("cannot set {what} of a socket"));
    set("IP_TOS", sockopt::set_ip_tos(&socket, tos))?;
    set("IP_RECVTOS", sockopt::set_ip_recvtos(&socket, true))?;
    set("SO_SNDBUFFORCE", sockopt::set_socket_send_buffer_size_force(&socket, BUFFER_BYTES))?;
    set("SO_RCVBUFFORCE", sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES))?;
    net::bind(&socket, &own).or_refuse(|| format!("cannot bind a socket of flow {flow}"))?;
    net::connect(&socket, &other).or_refuse(|| format!("cannot connect flow {flow}"))?;
    Ok(socket)
}

/// The number of the next datagram that arrived at `socket`, and its ECN codepoint.
fn receive(socket: &OwnedFd) -> Option<(u32, Ecn)> {
    let mut stamp = [0u8; STAMP_BYTES];
    let mut control = [0u64; 8];
    let mut part = libc::iovec { iov_base: stamp.as_mut_ptr().cast(), iov_len: STAMP_BYTES };
    loop {
        // SAFETY: all zeroes are a msghdr; its pointers are set to what outlives the call.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the message is as above, and the descriptor is open.
        let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
        if length == STAMP_BYTES as isize {
            // SAFETY: the kernel filled the control buffer; with IP_RECVTOS its one header is that of a byte.
            let tos = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref().map(|head| *libc::CMSG_DATA(head)) };
            return Some((u32::from_ne_bytes(stamp), Ecn::from_bits(tos.unwrap_or(0))));
        }
        let interrupted = || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
        if length < 0 && !interrupted() {
            return None;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::ops::Range;

    use super::*;
    use aqumen_transport::Body;
    use aqumen_transport::udp::Datagram;

    use crate::lab::kernel;
    use crate::lab::namespace::tests::of_both_sides;

    /// What `work` finds with the ends of a flow of `transport` that are `here`.
    pub(in crate::lab) fn with_ends<T: Send>(
        here: &Namespace,
        transport: &str,
        work: impl FnOnce(Ends) -> T + Send,
    ) -> T {
        let text = format!(
            "name = \"t\"\nduration = \"3s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"8Mbit\", delay = \"20ms\", buffer = \"50pkt\" }}\n\
             access = {{ rate = \"80Mbit\", delay = \"5ms\" }}\n[[flows]]\nname = \"f\"\n{transport}\n"
        );
        let plan = aqumen_scenario::Scenario::parse(&text, "t.toml").unwrap().plan(1, None).unwrap();
        let sockets = kernel::sockets(&plan).unwrap();
        let open = || Ends::open(0, &plan.groups[0].transport, &sockets[0], here);
        here.within(|| Ok(work(open()?.unwrap()))).unwrap()
    }

    /// Packets that arrive at the sink in these milliseconds, which are the test's own; `calls` are those for timers.
    pub(in crate::lab) fn arrivals(ends: &mut Ends, calls: &mut [Option<u64>; 2], times_ms: Range<u64>) -> u32 {
        let mut count = 0;
        for now in times_ms.map(|ms| ms * 1_000_000) {
            for (side, call) in Side::ALL.into_iter().zip(&mut *calls) {
                if let Some(due) = call.take_if(|due| *due <= now) {
                    ends.on_timer(side, due, now);
                }
                while ends.receive(side, now).is_some() {
                    count += u32::from(side == Side::Sink);
                }
                *call = ends.send(side, now).or(*call);
            }
        }
        count
    }

    #[test]
    fn a_source_that_stops_sends_nothing_more_of_its_own_until_it_starts_again() {
        let Some(here) = of_both_sides("a source that stops") else { return };
        with_ends(&here, "transport = \"rtp-nada\"", |mut ends| {
            let mut calls = [None; 2];
            let mut arrived = |ends: &mut Ends, times_ms| arrivals(ends, &mut calls, times_ms);
            ends.start(0, None);
            assert!(arrived(&mut ends, 0..1000) > 10);
            ends.stop(1_000_000_000);
            // What the encoder had made is paced out.
            arrived(&mut ends, 1000..1500);
            assert_eq!(arrived(&mut ends, 1500..3000), 0);
            ends.start(3_000_000_000, None);
            assert!(arrived(&mut ends, 3000..4000) > 10);
        });
    }

    #[test]
    fn what_is_no_datagram_of_the_flow_does_not_hide_those_that_are() {
        let local = |port| SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port);
        let sender = std::net::UdpSocket::bind(local(0)).unwrap();
        let std::net::SocketAddr::V4(from) = sender.local_addr().unwrap() else { panic!("IPv6") };
        let receiver = std::net::UdpSocket::bind(local(0)).unwrap();
        receiver.connect(from).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let to = receiver.local_addr().unwrap();
        let receiver = OwnedFd::from(receiver);
        assert_eq!(receive(&receiver), None);
        for datagram in [&[1][..], &7u32.to_ne_bytes(), &[], &8u32.to_ne_bytes()] {
            sender.send_to(datagram, to).unwrap();
        }
        let numbers: Vec<u32> = std::iter::from_fn(|| receive(&receiver)).map(|(number, _)| number).collect();
        assert_eq!(numbers, [7, 8]);
    }

    #[test]
    fn a_new_connection_knows_nothing_of_the_one_before() {
        let Some(here) = of_both_sides("new connections over datagrams") else { return };
        let transport = "transport = \"udp\"\ntraffic = { kind = \"transfers\", size = \"20kB\", rate = \"1/s\" }";
        with_ends(&here, transport, |mut ends| {
            let arrivals = |ends: &mut Ends| std::iter::from_fn(|| ends.receive(Side::Sink, 0)).count() as u64;
            ends.transfer(0, 20_000);
            ends.send(Side::Source, 0);
            let (sent, delivered) = ends.stats();
            // In packets of 1500 bytes at most 1472 are data.
            assert!(sent.sent >= 14 && delivered == 0, "{sent:?}");
            assert_eq!(arrivals(&mut ends), sent.sent);
            assert_eq!(ends.stats().1, 20_000);
            assert_eq!(ends.delivery().map(|delivery| delivery.message.bytes), Some(20_000));
            assert!(ends.is_idle());
            ends.transfer(0, 20_000);
            ends.send(Side::Source, 0);
            ends.renew();
            assert_eq!((arrivals(&mut ends), ends.stats()), (0, (Stats::default(), 0)));
            ends.transfer(0, 100);
            ends.send(Side::Source, 0);
            assert_eq!((arrivals(&mut ends), ends.stats().1), (1, 100));
            assert_eq!(ends.delivery().map(|delivery| delivery.message.number), Some(0));
        });
    }

    fn packet(seq: u32) -> Packet {
        let message = Message { bytes: 100, number: seq, created_at: Instant::ZERO };
        let body = Body::Datagram(Datagram { message, offset: 0, payload: 100 });
        Packet { bytes: 128, ecn: Ecn::NotEct, seq, sent_at: Instant::ZERO, body }
    }

    #[test]
    fn a_datagram_tells_its_number_and_the_codepoint_that_it_came_with() {
        let [source, sink] = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        source.connect(sink.local_addr().unwrap()).unwrap();
        sink.set_nonblocking(true).unwrap();
        sockopt::set_ip_recvtos(&sink, true).unwrap();
        let sink = OwnedFd::from(sink);
        for (number, ecn) in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].into_iter().enumerate() {
            let number = number as u32 + 0x0102_0300;
            sockopt::set_ip_tos(&source, 46 << 2 | ecn as u8).unwrap();
            source.send(&[&number.to_ne_bytes()[..], &[9; 100]].concat()).unwrap();
            assert_eq!(receive(&sink), Some((number, ecn)));
        }
        assert_eq!(receive(&sink), None);
    }

    #[test]
    fn packets_under_way_are_found_once_and_forgotten_when_overtaken() {
        let mut underway = Underway { first: u32::MAX - 1, ..Underway::default() };
        let numbers: Vec<u32> = (0..100).map(|seq| underway.send(packet(seq))).collect();
        assert_eq!(numbers[..3], [u32::MAX - 1, u32::MAX, 0]);
        let mut arrive = |seq: usize| underway.arrive(numbers[seq]).map(|packet| packet.seq);
        assert_eq!((arrive(1), arrive(0), arrive(1)), (Some(1), Some(0), None));
        // 66 is 64 after 2, which may yet come; 67 is not.
        assert_eq!((arrive(66), arrive(2)), (Some(66), Some(2)));
        assert_eq!((arrive(68), arrive(3), arrive(4)), (Some(68), None, Some(4)));
        underway.clear();
        assert_eq!(underway.arrive(numbers[99]), None);
        assert_eq!((underway.send(packet(0)), underway.packets.len()), (98, 1));
    }

    #[test]
    fn a_packet_is_as_long_on_the_wire_as_it_says_and_has_its_codepoint() {
        let Some(here) = of_both_sides("datagrams on the wire") else { return };
        let transport = "class = 46\ntransport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Mbit\" }";
        with_ends(&here, transport, |mut ends| {
            let fields = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect1, Ecn::Ect0, Ecn::Ce, Ecn::NotEct];
            for (seq, ecn) in (0..).zip(fields) {
                ends.source.send(Packet { ecn, ..packet(seq) }, ends.tos);
                let came = ends.receive(Side::Sink, 0).unwrap();
                assert_eq!((came.seq, came.ecn), (seq, ecn));
            }
            // 28 bytes are headers, and the number needs four.
            for (bytes, payload) in [(128, 100), (1500, 1472), (32, 4), (28, 4), (10, 4)] {
                ends.source.send(Packet { bytes, ..packet(9) }, ends.tos);
                let mut datagram = [0; 2000];
                let (length, _) = net::recv(&ends.sink.socket, &mut datagram[..], net::RecvFlags::empty()).unwrap();
                assert_eq!(length, payload, "a packet of {bytes} bytes");
            }
        });
    }

    #[test]
    fn a_transfer_with_an_end_is_sent_once_and_its_messages_are_numbered() {
        let Some(here) = of_both_sides("transfers with an end") else { return };
        let transport = "transport = \"udp\"\ntraffic = { kind = \"transfers\", size = \"20kB\", rate = \"1/s\" }";
        with_ends(&here, transport, |mut ends| {
            assert!(ends.is_idle() && ends.rate_bps().is_none());
            for _ in 0..2 {
                ends.start(0, Some(Bytes(5000)));
                assert_eq!(ends.is_idle(), ends.stats().0.sent > 0);
                ends.send(Side::Source, 0);
            }
            while ends.receive(Side::Sink, 0).is_some() {}
            assert_eq!(ends.stats().1, 5000);
            ends.transfer(0, 100);
            ends.transfer(0, 200);
            ends.send(Side::Source, 0);
            while ends.receive(Side::Sink, 0).is_some() {}
            let told = std::iter::from_fn(|| ends.delivery()).map(|told| (told.message.number, told.message.bytes));
            assert_eq!(told.collect::<Vec<_>>(), [(0, 5000), (1, 100), (2, 200)]);
        });
    }

    #[test]
    fn media_say_how_fast_their_application_may_be() {
        let Some(here) = of_both_sides("rates of media") else { return };
        let rate = with_ends(&here, "transport = \"rtp-nada\"", |ends| ends.rate_bps());
        // RFC 8698, table 1: from RMIN on, 150 kbit/s.
        assert!(rate >= Some(150e3), "{rate:?}");
    }
}
