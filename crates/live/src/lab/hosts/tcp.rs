//! Connections of the kernel's TCP: sending and receiving sockets, and the kernel's statistics.

use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sockopt};

use crate::lab::kernel::{SocketSettings, TcpSettings};
use crate::lab::testbed;
use crate::machine::namespace::Namespace;
use crate::{Context, Error};

/// Flags of all sockets: non-blocking, closed on exec.
pub(super) const SOCKET: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);
/// Port of the receivers.
pub(crate) const PORT: u16 = 5001;
/// Source port of a flow's first connection; the following ones count up.
const FIRST_PORT: u16 = 10_000;
const PORTS: u32 = 50_000;
/// Unsent data that the kernel buffers for a sender: little, so that a paused application soon falls silent.
const UNSENT_BYTES: u32 = 128 * 1024;
/// Bytes per write or read.
const CHUNK: usize = 256 * 1024;

/// Sending side of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    pub(crate) flow: u32,
    /// Bytes that the application has offered so far; `u64::MAX`: without end.
    pub(crate) offered: u64,
    written: u64,
}

/// Kernel statistics of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TcpInfo {
    /// Data segments sent, retransmissions included.
    pub(crate) sent: u64,
    pub(crate) retransmitted: u64,
    /// Retransmission timeouts; `None` on kernels before 6.7, which do not report them.
    pub(crate) timeouts: Option<u64>,
    /// Smoothed round-trip time, nanoseconds; 0 before the first sample.
    pub(crate) rtt_ns: u64,
}

/// Receiving side of a connection.
#[derive(Debug)]
pub(crate) struct Inbound {
    socket: OwnedFd,
    pub(crate) flow: u32,
    pub(crate) port: u16,
    /// Bytes that arrived in order.
    pub(crate) received: u64,
    /// Limit of its advertised window.
    window_bytes: Option<u32>,
}

/// Outcome of reading or writing a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoOutcome {
    Bytes(u64),
    /// The connection is closed by the other end, or has failed.
    Closed,
}

/// Opens the socket on which all receivers listen: every address of their namespace is local.
pub(crate) fn listen(receivers: &Namespace) -> Result<OwnedFd, Error> {
    receivers.within(|| {
        let socket = open()?;
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT);
        net::bind(&socket, &any).context(|| "cannot bind a socket".into())?;
        net::listen(&socket, 4096).context(|| "cannot listen".into())?;
        Ok(socket)
    })
}

pub(crate) fn accept(listener: &OwnedFd) -> Option<Inbound> {
    loop {
        match net::acceptfrom_with(listener, SOCKET) {
            Ok((socket, peer)) => {
                let peer = SocketAddr::try_from(peer?).ok()?;
                let SocketAddr::V4(peer) = peer else { return None };
                let flow = u32::from(*peer.ip()).checked_sub(u32::from(testbed::sender(0)))?;
                return Some(Inbound { socket, flow, port: peer.port(), received: 0, window_bytes: None });
            }
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(_) => return None,
        }
    }
}

pub(super) fn open() -> Result<OwnedFd, Error> {
    net::socket_with(AddressFamily::INET, SocketType::STREAM, SOCKET, Some(ipproto::TCP))
        .context(|| "cannot open a socket".into())
}

impl Connection {
    /// Opens connection number `number` of `flow`. Returns it with its port. The caller is in the senders' namespace.
    pub(crate) fn open(
        flow: u32,
        number: u32,
        sockets: &SocketSettings,
        tcp: &TcpSettings,
    ) -> Result<(Self, u16), Error> {
        let socket = open()?;
        let set = |what: &str, done: rustix::io::Result<()>| done.context(|| format!("cannot set {what} of a socket"));
        set("the congestion control", sockopt::set_tcp_congestion(&socket, tcp.congestion))?;
        set("TCP_NODELAY", sockopt::set_tcp_nodelay(&socket, true))?;
        set("SO_REUSEADDR", sockopt::set_socket_reuseaddr(&socket, true))?;
        set("IP_TOS", sockopt::set_ip_tos(&socket, sockets.tos))?;
        set_number(&socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, u32::from(sockets.packet_bytes) - 40)?;
        set_number(&socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, UNSENT_BYTES)?;
        // The run ends before the kernel gives up.
        set_number(&socket, libc::IPPROTO_TCP, libc::TCP_SYNCNT, 127)?;
        if tcp.pacing {
            // A limit above every rate makes TCP pace by itself.
            set_number(&socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u32::MAX - 1)?;
        }
        let port = FIRST_PORT + (number % PORTS) as u16;
        net::bind(&socket, &SocketAddrV4::new(testbed::sender(flow), port))
            .context(|| format!("cannot bind a socket of flow {flow}"))?;
        match net::connect(&socket, &SocketAddrV4::new(testbed::receiver(flow), PORT)) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(Error::setup(format!("cannot connect flow {flow}: {error}"))),
        }
        Ok((Connection { socket, flow, offered: 0, written: 0 }, port))
    }

    /// Writes as much of the offered data as the kernel accepts.
    pub(crate) fn write(&mut self) -> IoOutcome {
        static ZEROS: [u8; CHUNK] = [0; CHUNK];
        let before = self.written;
        while self.written < self.offered {
            let length = (self.offered - self.written).min(CHUNK as u64) as usize;
            match net::send(&self.socket, &ZEROS[..length], SendFlags::NOSIGNAL) {
                Ok(taken) => self.written += taken as u64,
                Err(Errno::INTR) => {}
                // Not connected yet, or full: an event tells when it can continue.
                Err(Errno::AGAIN | Errno::NOTCONN) => break,
                Err(_) => return IoOutcome::Closed,
            }
        }
        IoOutcome::Bytes(self.written - before)
    }

    /// Withdraws offered data that the kernel does not have yet.
    pub(crate) fn pause(&mut self) {
        self.offered = self.written;
    }

    pub(crate) fn info(&self) -> TcpInfo {
        let mut raw = [0u8; 248];
        let mut length = raw.len() as libc::socklen_t;
        // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes to `raw`, which has as many.
        let answer = unsafe {
            let fd = self.socket.as_raw_fd();
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, raw.as_mut_ptr().cast(), &raw mut length)
        };
        if answer < 0 {
            return TcpInfo::default();
        }
        TcpInfo::read(&raw[..length as usize])
    }
}

impl TcpInfo {
    /// Reads `struct tcp_info` of linux/tcp.h, which only grows at its end.
    fn read(raw: &[u8]) -> Self {
        let number =
            |at: usize| -> Option<u64> { Some(u32::from_ne_bytes(raw.get(at..)?.first_chunk().copied()?).into()) };
        let timeouts = raw.get(240..).and_then(<[u8]>::first_chunk).map(|bytes| u16::from_ne_bytes(*bytes).into());
        TcpInfo {
            sent: number(156).unwrap_or(0),
            retransmitted: number(100).unwrap_or(0),
            timeouts,
            rtt_ns: 1000 * number(68).unwrap_or(0),
        }
    }
}

impl Inbound {
    /// Limits the advertised window to `bytes`. The route has set its initial value.
    pub(crate) fn offer_at_most(&mut self, bytes: u32) -> Result<(), Error> {
        // A buffer of fixed size stays as it is. It has space for the overhead of segments, so that the window alone
        // limits.
        let buffer = bytes.saturating_mul(4).saturating_add(1 << 16).min(1 << 30);
        set_number(&self.socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer)?;
        self.window_bytes = Some(bytes);
        self.clamp()
    }

    /// Sets the limit of the window. Since Linux 6.9 the kernel resets it from the buffer when it learns the overhead
    /// of a segment.
    fn clamp(&self) -> Result<(), Error> {
        let Some(bytes) = self.window_bytes else { return Ok(()) };
        set_number(&self.socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes)
    }

    pub(crate) fn read(&mut self) -> IoOutcome {
        // An error means that the connection has failed.
        let _ = self.clamp();
        let mut read = 0;
        let mut buffer = [MaybeUninit::<u8>::uninit(); 1];
        loop {
            // SAFETY: with MSG_TRUNC TCP counts and discards up to this length and writes nothing to the buffer.
            let answer =
                unsafe { libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), CHUNK, libc::MSG_TRUNC) };
            match usize::try_from(answer) {
                Ok(0) => break,
                Ok(length) => {
                    read += length as u64;
                    self.received += length as u64;
                    if length < CHUNK {
                        return IoOutcome::Bytes(read);
                    }
                }
                Err(_) => match std::io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) => return IoOutcome::Bytes(read),
                    _ => break,
                },
            }
        }
        if read > 0 { IoOutcome::Bytes(read) } else { IoOutcome::Closed }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsFd for Inbound {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn set_number(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: u32) -> Result<(), Error> {
    // SAFETY: the descriptor is open, and the kernel reads the four bytes of `value`.
    let answer = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), 4) };
    if answer == 0 {
        return Ok(());
    }
    Err(Error::setup(format!("cannot set socket option {name}: {}", std::io::Error::last_os_error())))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;
    use crate::machine::namespace::tests::namespace_with_addresses;

    #[test]
    fn a_paused_connection_sends_only_what_the_kernel_has() {
        let Some(here) = namespace_with_addresses("a paused connection") else { return };
        let tcp = TcpSettings {
            congestion: "reno",
            ecn: false,
            pacing: false,
            initial_window: 10,
            min_rto_ms: None,
            timestamps: true,
            restarts: true,
            receive_window_bytes: None,
        };
        let sockets = SocketSettings { tcp: None, packet_bytes: 1500, tos: 0 };
        let listener = listen(&here).unwrap();
        let (mut connection, port) = here.within(|| Connection::open(6, 3, &sockets, &tcp)).unwrap();
        let mut inbound = accept(&listener).unwrap();
        assert_eq!((inbound.flow, inbound.port), (6, port));
        connection.offered = u64::MAX;
        let IoOutcome::Bytes(taken) = connection.write() else { panic!("closed") };
        assert!(taken > 0);
        connection.pause();
        let mut arrived = |all: u64| {
            (0..5000).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                assert_ne!(inbound.read(), IoOutcome::Closed);
                inbound.received >= all
            }) && inbound.received == all
        };
        assert!(arrived(taken));
        // The kernel has space again, and the application no data.
        assert_eq!(connection.write(), IoOutcome::Bytes(0));
        connection.offered += 1000;
        assert_eq!(connection.write(), IoOutcome::Bytes(1000));
        assert!(arrived(taken + 1000));
        // Segments have 1500 - 52 bytes of data at most.
        let info = connection.info();
        assert!(info.sent * 1448 >= taken + 1000 && info.rtt_ns > 0, "{taken} bytes and 1000: {info:?}");
    }

    #[test]
    fn a_receiver_reports_data_and_the_end_of_the_connection() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, peer) = listener.accept().unwrap();
        receiver.set_nonblocking(true).unwrap();
        let mut inbound =
            Inbound { socket: receiver.into(), flow: 0, port: peer.port(), received: 0, window_bytes: None };
        assert_eq!(inbound.read(), IoOutcome::Bytes(0));
        let mut read_until = |all: u64| {
            while inbound.received < all {
                assert_ne!(inbound.read(), IoOutcome::Closed);
            }
            inbound.received
        };
        sender.write_all(&[0; 3000]).unwrap();
        assert_eq!(read_until(3000), 3000);
        sender.write_all(&[0; 10]).unwrap();
        sender.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_until(3010), 3010);
        let closed = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            inbound.read() == IoOutcome::Closed
        });
        assert!(closed && inbound.received == 3010);
    }

    #[test]
    fn statistics_are_read_as_far_as_the_kernel_has_them() {
        // linux/tcp.h: the smoothed round trip in microseconds at 68, retransmissions at 100, segments with data at
        // 156, time-outs in 16 bits at 240.
        let mut raw = [0; 248];
        for (at, number) in [(68, 0x0102_0304u32), (100, 0x1112_1314), (156, 0x2122_2324)] {
            raw[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        raw[240..242].copy_from_slice(&0x3132u16.to_ne_bytes());
        let all = TcpInfo::read(&raw);
        assert_eq!((all.sent, all.retransmitted), (0x2122_2324, 0x1112_1314));
        assert_eq!((all.rtt_ns, all.timeouts), (0x0102_0304 * 1000, Some(0x3132)));
        // Kernels before 6.7 return 240 bytes.
        let timeouts = [240, 241, 242].map(|length| TcpInfo::read(&raw[..length]).timeouts);
        assert_eq!(timeouts, [None, None, Some(0x3132)]);
        assert_eq!(TcpInfo::read(&raw[..240]), TcpInfo { timeouts: None, ..all });
        assert_eq!(TcpInfo::read(&[]), TcpInfo::default());
    }
}
