//! Flows of transports other than TCP: the library's endpoints over the kernel's datagrams.
//!
//! A packet leaves as a datagram of its length on the wire. The datagram carries the packet's number alone. The packet
//! itself waits here until the kernel delivers the datagram at the other endpoint, with the ECN codepoint that it then
//! has.

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aqumen_scenario::Protocol;
use aqumen_transport::{AnyEndpoint, Delivery, Endpoint, Message, Packet, Stats};
use aqumen_units::{Bytes, Ecn, Instant};
use rustix::net::{self, AddressFamily, SendFlags, SocketType, ipproto, sockopt};

use super::tcp::SOCKET;
use crate::lab::ip::UDP_HEADER_BYTES;
use crate::lab::kernel::SocketSettings;
use crate::lab::testbed;
use crate::machine::namespace::Namespace;
use crate::{Context, Error};

const PORT: u16 = 5002;
/// Length of a packet number in a datagram.
const STAMP_BYTES: usize = 4;
const BUFFER_BYTES: usize = 16 << 20;
/// Highest number of packets in flight from an endpoint.
const IN_FLIGHT_MAX: usize = 1 << 16;
/// Number of later packets after whose arrival a missing one counts as lost.
const REORDERING_MAX: u32 = 64;
/// Longest message; larger transfers are several messages.
const MESSAGE_BYTES_MAX: u64 = 1 << 30;
const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Side where the application writes.
    Source,
    /// Side where the messages arrive.
    Sink,
}

/// Both endpoints of a flow.
#[derive(Debug)]
pub(crate) struct EndpointPair {
    protocol: Protocol,
    tos: u8,
    source: UdpEndpoint,
    sink: UdpEndpoint,
    /// Latest time of an arrival or a departure.
    now: Instant,
    messages: u32,
}

#[derive(Debug)]
struct UdpEndpoint {
    endpoint: AnyEndpoint,
    socket: OwnedFd,
    /// ECN codepoint of the socket.
    ecn: Ecn,
    in_flight: InFlight,
    /// Earliest scheduled call of its timer.
    timer_at: u64,
}

/// Packets that an endpoint has sent, by number, until they arrive.
#[derive(Debug, Default)]
struct InFlight {
    /// Number of the first packet.
    first: u32,
    packets: VecDeque<Option<Packet>>,
}

impl Side {
    pub(crate) const ALL: [Side; 2] = [Side::Source, Side::Sink];

    fn other(self) -> Side {
        match self {
            Side::Source => Side::Sink,
            Side::Sink => Side::Source,
        }
    }
}

impl InFlight {
    /// Stores `packet`, and returns its number.
    fn send(&mut self, packet: Packet) -> u32 {
        if self.packets.len() == IN_FLIGHT_MAX {
            self.packets.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        self.packets.push_back(Some(packet));
        self.first.wrapping_add(self.packets.len() as u32 - 1)
    }

    /// Takes the packet of this number, which has arrived; `None` if it counts as lost, or has arrived before.
    fn arrive(&mut self, number: u32) -> Option<Packet> {
        let index = number.wrapping_sub(self.first);
        let packet = self.packets.get_mut(index as usize)?.take();
        let overtaken = index.saturating_sub(REORDERING_MAX) as usize;
        let arrived = self.packets.iter().skip(overtaken).take_while(|packet| packet.is_none()).count();
        self.packets.drain(..overtaken + arrived);
        self.first = self.first.wrapping_add((overtaken + arrived) as u32);
        packet
    }

    fn clear(&mut self) {
        self.first = self.first.wrapping_add(self.packets.len() as u32);
        self.packets.clear();
    }
}

impl EndpointPair {
    /// Opens the endpoints of `flow`; `None` for TCP. The caller is in the senders' namespace.
    pub(crate) fn open(
        flow: u32,
        protocol: &Protocol,
        sockets: &SocketSettings,
        receivers: &Namespace,
    ) -> Result<Option<Self>, Error> {
        let Some((source, sink)) = protocol.endpoints() else { return Ok(None) };
        let (from, to) =
            (SocketAddrV4::new(testbed::sender(flow), PORT), SocketAddrV4::new(testbed::receiver(flow), PORT));
        let end = |endpoint, socket| UdpEndpoint {
            endpoint,
            socket,
            ecn: Ecn::NotEct,
            in_flight: InFlight::default(),
            timer_at: NEVER,
        };
        Ok(Some(EndpointPair {
            protocol: *protocol,
            tos: sockets.tos,
            sink: end(sink, receivers.within(|| open(flow, to, from, sockets.tos))?),
            source: end(source, open(flow, from, to, sockets.tos)?),
            now: Instant::ZERO,
            messages: 0,
        }))
    }

    fn end(&mut self, side: Side) -> &mut UdpEndpoint {
        match side {
            Side::Source => &mut self.source,
            Side::Sink => &mut self.sink,
        }
    }

    pub(crate) fn socket(&self, side: Side) -> BorrowedFd<'_> {
        match side {
            Side::Source => self.source.socket.as_fd(),
            Side::Sink => self.sink.socket.as_fd(),
        }
    }

    /// `now`, nanoseconds, as an instant that is not before the latest one.
    fn instant(&mut self, now: u64) -> Instant {
        self.now = self.now.max(Instant::from_nanos(now));
        self.now
    }

    /// Starts to send: a finite `transfer`, or without end.
    pub(crate) fn start(&mut self, now: u64, transfer: Option<Bytes>) {
        match transfer {
            Some(bytes) if self.source.endpoint.stats().sent == 0 => self.transfer(now, bytes.0),
            Some(_) => {}
            None => {
                let now = self.instant(now);
                self.source.endpoint.start(now);
            }
        }
    }

    pub(crate) fn stop(&mut self, now: u64) {
        let now = self.instant(now);
        self.source.endpoint.stop(now);
    }

    /// Writes a message of the application.
    pub(crate) fn write(&mut self, now: u64, bytes: u32) {
        let now = self.instant(now);
        self.source.endpoint.write(now, Message { bytes, number: self.messages, created_at: now });
        self.messages += 1;
    }

    /// Writes the messages of a transfer.
    pub(crate) fn transfer(&mut self, now: u64, bytes: u64) {
        let mut left = bytes;
        while left > 0 {
            let bytes = left.min(MESSAGE_BYTES_MAX);
            self.write(now, bytes as u32);
            left -= bytes;
        }
    }

    /// Replaces the connection by a new one. Packets in flight are dropped.
    pub(crate) fn renew(&mut self) {
        let Some((source, sink)) = self.protocol.endpoints() else { return };
        (self.source.endpoint, self.sink.endpoint) = (source, sink);
        Side::ALL.into_iter().for_each(|side| self.end(side).in_flight.clear());
        self.messages = 0;
    }

    /// Takes the next packet that has arrived at a side, and passes it to the endpoint.
    pub(crate) fn receive(&mut self, side: Side, now: u64) -> Option<Packet> {
        loop {
            let (number, ecn) = receive(&self.end(side).socket)?;
            let Some(mut packet) = self.end(side.other()).in_flight.arrive(number) else { continue };
            packet.ecn = ecn;
            let now = self.instant(now);
            self.end(side).endpoint.on_packet(now, &packet);
            return Some(packet);
        }
    }

    /// Handles the timer call of a side that was scheduled for `due`.
    pub(crate) fn on_timer(&mut self, side: Side, due: u64, now: u64) {
        let now = self.instant(now);
        let end = self.end(side);
        if end.timer_at != due {
            return; // replaced by an earlier call
        }
        end.timer_at = NEVER;
        if end.endpoint.next_timer().is_some_and(|due| due <= now) {
            end.endpoint.on_timer(now);
        }
    }

    /// Sends what a side has to send. Returns the next call of its timer, unless one is scheduled before.
    pub(crate) fn send(&mut self, side: Side, now: u64) -> Option<u64> {
        let (now, tos) = (self.instant(now), self.tos);
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

    /// Next message for the application at the sink.
    pub(crate) fn delivery(&mut self) -> Option<Delivery> {
        self.sink.endpoint.poll_delivery()
    }

    /// Statistics of the source, and the bytes that the sink delivered.
    pub(crate) fn stats(&self) -> (Stats, u64) {
        (self.source.endpoint.stats(), self.sink.endpoint.stats().delivered_bytes)
    }

    /// Whether the source has nothing left to send.
    pub(crate) fn is_idle(&self) -> bool {
        self.source.endpoint.is_idle()
    }

    /// Rate at which the application may produce, bit/s, if the transport sets one.
    pub(crate) fn rate_bps(&self) -> Option<f64> {
        self.source.endpoint.rate_bps()
    }
}

impl UdpEndpoint {
    fn send(&mut self, packet: Packet, tos: u8) {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        if self.ecn != packet.ecn && sockopt::set_ip_tos(&self.socket, tos | packet.ecn as u8).is_ok() {
            self.ecn = packet.ecn;
        }
        let length = usize::from(packet.bytes.saturating_sub(UDP_HEADER_BYTES)).max(STAMP_BYTES);
        let stamp = self.in_flight.send(packet).to_ne_bytes();
        let parts = [std::io::IoSlice::new(&stamp), std::io::IoSlice::new(&ZEROS[..length - STAMP_BYTES])];
        // Datagrams that the kernel refuses are lost, as on any host.
        let _ = net::sendmsg(&self.socket, &parts, &mut net::SendAncillaryBuffer::default(), SendFlags::empty());
    }
}

/// Opens a socket of `flow` from `local` to `remote`.
fn open(flow: u32, local: SocketAddrV4, remote: SocketAddrV4, tos: u8) -> Result<OwnedFd, Error> {
    let socket = net::socket_with(AddressFamily::INET, SocketType::DGRAM, SOCKET, Some(ipproto::UDP))
        .context(|| "cannot open a socket".into())?;
    let set = |what: &str, done: rustix::io::Result<()>| done.context(|| format!("cannot set {what} of a socket"));
    set("IP_TOS", sockopt::set_ip_tos(&socket, tos))?;
    set("IP_RECVTOS", sockopt::set_ip_recvtos(&socket, true))?;
    set("SO_SNDBUFFORCE", sockopt::set_socket_send_buffer_size_force(&socket, BUFFER_BYTES))?;
    set("SO_RCVBUFFORCE", sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES))?;
    net::bind(&socket, &local).context(|| format!("cannot bind a socket of flow {flow}"))?;
    net::connect(&socket, &remote).context(|| format!("cannot connect flow {flow}"))?;
    Ok(socket)
}

/// Number and ECN codepoint of the next datagram at `socket`.
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
    use crate::lab::dumbbell;
    use aqumen_transport::Body;
    use aqumen_transport::udp::Datagram;

    use crate::lab::kernel;
    use crate::machine::namespace::tests::namespace_with_addresses;

    /// Calls `work` with the endpoints of a flow of `transport`, both in the namespace `here`.
    pub(in crate::lab) fn with_endpoints<T: Send>(
        here: &Namespace,
        transport: &str,
        work: impl FnOnce(EndpointPair) -> T + Send,
    ) -> T {
        let plan = dumbbell(&[], &format!("[[flows]]\nname = \"f\"\n{transport}\n"));
        let sockets = kernel::sockets(&plan).unwrap();
        let open = || EndpointPair::open(0, &plan.groups[0].transport, &sockets[0], here);
        here.within(|| Ok(work(open()?.unwrap()))).unwrap()
    }

    /// Number of packets that arrive at the sink in these milliseconds of simulated time; `calls`: the scheduled
    /// timers.
    pub(in crate::lab) fn arrivals(
        endpoints: &mut EndpointPair,
        calls: &mut [Option<u64>; 2],
        times_ms: Range<u64>,
    ) -> u32 {
        let mut count = 0;
        for now in times_ms.map(|ms| ms * 1_000_000) {
            for (side, call) in Side::ALL.into_iter().zip(&mut *calls) {
                if let Some(due) = call.take_if(|due| *due <= now) {
                    endpoints.on_timer(side, due, now);
                }
                while endpoints.receive(side, now).is_some() {
                    count += u32::from(side == Side::Sink);
                }
                *call = endpoints.send(side, now).or(*call);
            }
        }
        count
    }

    #[test]
    fn a_stopped_source_is_silent_until_it_starts_again() {
        let Some(here) = namespace_with_addresses("a source that stops") else { return };
        with_endpoints(&here, "transport = \"rtp-nada\"", |mut endpoints| {
            let mut calls = [None; 2];
            let mut arrived = |endpoints: &mut EndpointPair, times_ms| arrivals(endpoints, &mut calls, times_ms);
            endpoints.start(0, None);
            assert!(arrived(&mut endpoints, 0..1000) > 10);
            endpoints.stop(1_000_000_000);
            // The backlog of the encoder is paced out.
            arrived(&mut endpoints, 1000..1500);
            assert_eq!(arrived(&mut endpoints, 1500..3000), 0);
            endpoints.start(3_000_000_000, None);
            assert!(arrived(&mut endpoints, 3000..4000) > 10);
        });
    }

    #[test]
    fn foreign_datagrams_are_skipped() {
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
    fn a_new_connection_starts_from_zero() {
        let Some(here) = namespace_with_addresses("new connections over datagrams") else { return };
        let transport = "transport = \"udp\"\ntraffic = { kind = \"transfers\", size = \"20kB\", rate = \"1/s\" }";
        with_endpoints(&here, transport, |mut endpoints| {
            let arrivals =
                |endpoints: &mut EndpointPair| std::iter::from_fn(|| endpoints.receive(Side::Sink, 0)).count() as u64;
            endpoints.transfer(0, 20_000);
            endpoints.send(Side::Source, 0);
            let (sent, delivered) = endpoints.stats();
            // Packets of 1500 bytes carry at most 1472 bytes of data.
            assert!(sent.sent >= 14 && delivered == 0, "{sent:?}");
            assert_eq!(arrivals(&mut endpoints), sent.sent);
            assert_eq!(endpoints.stats().1, 20_000);
            assert_eq!(endpoints.delivery().map(|delivery| delivery.message.bytes), Some(20_000));
            assert!(endpoints.is_idle());
            endpoints.transfer(0, 20_000);
            endpoints.send(Side::Source, 0);
            endpoints.renew();
            assert_eq!((arrivals(&mut endpoints), endpoints.stats()), (0, (Stats::default(), 0)));
            endpoints.transfer(0, 100);
            endpoints.send(Side::Source, 0);
            assert_eq!((arrivals(&mut endpoints), endpoints.stats().1), (1, 100));
            assert_eq!(endpoints.delivery().map(|delivery| delivery.message.number), Some(0));
        });
    }

    fn packet(seq: u32) -> Packet {
        let message = Message { bytes: 100, number: seq, created_at: Instant::ZERO };
        let body = Body::Datagram(Datagram { message, offset: 0, payload: 100 });
        Packet { bytes: 128, ecn: Ecn::NotEct, seq, sent_at: Instant::ZERO, body }
    }

    #[test]
    fn a_datagram_has_its_number_and_ecn_codepoint() {
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
    fn packets_in_flight_are_taken_once_and_lost_when_overtaken() {
        let mut in_flight = InFlight { first: u32::MAX - 1, ..InFlight::default() };
        let numbers: Vec<u32> = (0..100).map(|seq| in_flight.send(packet(seq))).collect();
        assert_eq!(numbers[..3], [u32::MAX - 1, u32::MAX, 0]);
        let mut arrive = |seq: usize| in_flight.arrive(numbers[seq]).map(|packet| packet.seq);
        assert_eq!((arrive(1), arrive(0), arrive(1)), (Some(1), Some(0), None));
        // When 66 arrives, 2 is 64 behind and may still arrive; when 68 arrives, 3 is lost.
        assert_eq!((arrive(66), arrive(2)), (Some(66), Some(2)));
        assert_eq!((arrive(68), arrive(3), arrive(4)), (Some(68), None, Some(4)));
        in_flight.clear();
        assert_eq!(in_flight.arrive(numbers[99]), None);
        assert_eq!((in_flight.send(packet(0)), in_flight.packets.len()), (98, 1));
    }

    #[test]
    fn a_packet_has_its_length_and_codepoint_on_the_wire() {
        let Some(here) = namespace_with_addresses("datagrams on the wire") else { return };
        let transport = "class = 46\ntransport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Mbit\" }";
        with_endpoints(&here, transport, |mut endpoints| {
            let fields = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect1, Ecn::Ect0, Ecn::Ce, Ecn::NotEct];
            for (seq, ecn) in (0..).zip(fields) {
                endpoints.source.send(Packet { ecn, ..packet(seq) }, endpoints.tos);
                let arrived = endpoints.receive(Side::Sink, 0).unwrap();
                assert_eq!((arrived.seq, arrived.ecn), (seq, ecn));
            }
            // 28 bytes are headers, and the number needs four.
            for (bytes, payload) in [(128, 100), (1500, 1472), (32, 4), (28, 4), (10, 4)] {
                endpoints.source.send(Packet { bytes, ..packet(9) }, endpoints.tos);
                let mut datagram = [0; 2000];
                let (length, _) =
                    net::recv(&endpoints.sink.socket, &mut datagram[..], net::RecvFlags::empty()).unwrap();
                assert_eq!(length, payload, "a packet of {bytes} bytes");
            }
        });
    }

    #[test]
    fn a_finite_transfer_is_sent_once_in_numbered_messages() {
        let Some(here) = namespace_with_addresses("transfers with an end") else { return };
        let transport = "transport = \"udp\"\ntraffic = { kind = \"transfers\", size = \"20kB\", rate = \"1/s\" }";
        with_endpoints(&here, transport, |mut endpoints| {
            assert!(endpoints.is_idle() && endpoints.rate_bps().is_none());
            for _ in 0..2 {
                endpoints.start(0, Some(Bytes(5000)));
                assert_eq!(endpoints.is_idle(), endpoints.stats().0.sent > 0);
                endpoints.send(Side::Source, 0);
            }
            while endpoints.receive(Side::Sink, 0).is_some() {}
            assert_eq!(endpoints.stats().1, 5000);
            endpoints.transfer(0, 100);
            endpoints.transfer(0, 200);
            endpoints.send(Side::Source, 0);
            while endpoints.receive(Side::Sink, 0).is_some() {}
            let messages = std::iter::from_fn(|| endpoints.delivery())
                .map(|delivery| (delivery.message.number, delivery.message.bytes));
            assert_eq!(messages.collect::<Vec<_>>(), [(0, 5000), (1, 100), (2, 200)]);
        });
    }

    #[test]
    fn media_endpoints_limit_the_rate_of_their_application() {
        let Some(here) = namespace_with_addresses("rates of media") else { return };
        let rate = with_endpoints(&here, "transport = \"rtp-nada\"", |endpoints| endpoints.rate_bps());
        // RFC 8698, table 1: from RMIN on, 150 kbit/s.
        assert!(rate >= Some(150e3), "{rate:?}");
    }
}
