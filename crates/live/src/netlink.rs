//! Routing netlink: requests about links, addresses, routes, queueing disciplines and filters.
//!
//! A [`Request`] is a header, a fixed structure (`ifinfomsg`, `tcmsg`, ...) as bytes, and attributes. [`Netlink::ask`]
//! sends one and waits for the acknowledgement; [`Netlink::dump`] collects all answers of a dump. Numbers are in the
//! machine's byte order.

pub(crate) mod tc;

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Socket of routing netlink in the network namespace where it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// Message to the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    kind: u16,
    flags: u16,
    body: Vec<u8>,
}

/// Message from the kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Kind (`nlmsg_type`).
    pub(crate) kind: u16,
    /// Fixed structure, then attributes.
    pub(crate) body: Vec<u8>,
}

/// Flags of a request that makes an object, or changes the existing one.
pub(crate) const SET: i32 = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;

const HEADER: usize = 16;
/// Buffer of an answer: the kernel fills at most a page, or 32 KiB for dumps.
const BUFFER: usize = 64 * 1024;

impl Netlink {
    /// Opens a socket in the calling thread's network namespace.
    pub(crate) fn open() -> io::Result<Self> {
        // Protocol 0 is routing netlink.
        let socket = net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        // A kernel that does not answer must not block the caller for ever.
        net::sockopt::set_socket_timeout(
            &socket,
            net::sockopt::Timeout::Recv,
            Some(std::time::Duration::from_secs(2)),
        )?;
        Ok(Netlink { socket, sequence: 0, buffer: vec![0; BUFFER] })
    }

    /// Sends `request` and waits for its acknowledgement. Returns the answers before it.
    pub(crate) fn ask(&mut self, request: &Request) -> io::Result<Vec<Answer>> {
        self.exchange(request, libc::NLM_F_ACK as u16)
    }

    /// Returns all answers to a dump of `request`.
    pub(crate) fn dump(&mut self, request: &Request) -> io::Result<Vec<Answer>> {
        self.exchange(request, libc::NLM_F_DUMP as u16)
    }

    fn exchange(&mut self, request: &Request, flags: u16) -> io::Result<Vec<Answer>> {
        self.sequence += 1;
        let message = request.bytes(flags, self.sequence);
        net::send(&self.socket, &message, SendFlags::empty())?;
        let mut answers = Vec::new();
        loop {
            let (length, _) = net::recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            let mut rest = &self.buffer[..length];
            while rest.len() >= HEADER {
                let (length, kind, sequence) = (u32_at(rest, 0) as usize, u16_at(rest, 4), u32_at(rest, 8));
                if length < HEADER || length > rest.len() {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "a netlink message of impossible length"));
                }
                let body = &rest[HEADER..length];
                rest = &rest[length.next_multiple_of(4).min(rest.len())..];
                // Late answer to an earlier request, which timed out.
                if sequence != self.sequence {
                    continue;
                }
                match i32::from(kind) {
                    libc::NLMSG_ERROR if body.len() >= 4 => {
                        return match i32::from_ne_bytes(body[..4].try_into().expect("four bytes")) {
                            0 => Ok(answers),
                            error => Err(io::Error::from_raw_os_error(-error)),
                        };
                    }
                    libc::NLMSG_DONE => return Ok(answers),
                    libc::NLMSG_NOOP => {}
                    _ => answers.push(Answer { kind, body: body.to_vec() }),
                }
            }
        }
    }
}

impl Request {
    /// A request of `kind` (`RTM_*`) with `flags` (`NLM_F_*`) and its fixed structure.
    pub(crate) fn new(kind: u16, flags: i32, fixed: &[u8]) -> Self {
        let mut request = Request { kind, flags: flags as u16, body: fixed.to_vec() };
        request.align();
        request
    }

    pub(crate) fn put(mut self, kind: u16, value: &[u8]) -> Self {
        self.body.extend(((4 + value.len()) as u16).to_ne_bytes());
        self.body.extend(kind.to_ne_bytes());
        self.body.extend(value);
        self.align();
        self
    }

    pub(crate) fn put_u32(self, kind: u16, value: u32) -> Self {
        self.put(kind, &value.to_ne_bytes())
    }

    /// Adds a zero-terminated string.
    pub(crate) fn put_text(self, kind: u16, text: &str) -> Self {
        self.put(kind, &[text.as_bytes(), &[0]].concat())
    }

    /// Adds an attribute of nested attributes, which `fill` adds.
    pub(crate) fn nest(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.body.len();
        self.body.extend([0, 0]);
        self.body.extend(kind.to_ne_bytes());
        let mut request = fill(self);
        let length = (request.body.len() - start) as u16;
        request.body[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        request
    }

    fn align(&mut self) {
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    fn bytes(&self, flags: u16, sequence: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.body.len());
        bytes.extend(((HEADER + self.body.len()) as u32).to_ne_bytes());
        bytes.extend(self.kind.to_ne_bytes());
        bytes.extend((self.flags | flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(&self.body);
        bytes
    }
}

/// Attributes in `bytes`: kind (without the flags of nesting and byte order) and value.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest.get(..4)?, 0));
        let kind = u16_at(rest, 2) & 0x3fff;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn attributes_read_back_as_they_were_written() {
        let request = Request::new(16, 0, &[7; 3]).put(1, b"abc").nest(2, |r| r.put_u32(3, 9).put_text(4, "lo"));
        assert_eq!(&request.body[..4], [7, 7, 7, 0], "the fixed structure is padded to four bytes");
        let outer: Vec<_> = attributes(&request.body[4..]).collect();
        assert_eq!(outer[0], (1, &b"abc"[..]));
        assert_eq!(outer[1].0, 2);
        let inner: Vec<_> = attributes(outer[1].1).collect();
        assert_eq!(inner, [(3, &9u32.to_ne_bytes()[..]), (4, &b"lo\0"[..])]);
    }

    #[test]
    fn flags_of_an_attribute_are_no_part_of_its_kind() {
        // linux/netlink.h: NLA_F_NESTED is bit 15, NLA_F_NET_BYTEORDER bit 14.
        let request = Request::new(16, 0, &[]).put(0x8005, &[1; 4]).put(0x4006, &[2; 4]).put(0xc000 | 0x1234, &[]);
        let read: Vec<_> = attributes(&request.body).map(|(kind, value)| (kind, value.len())).collect();
        assert_eq!(read, [(5, 4), (6, 4), (0x1234, 0)]);
    }

    #[test]
    fn a_request_is_a_header_and_its_contents() {
        // struct nlmsghdr: length, type, flags, sequence number, port.
        let bytes = Request::new(16, SET, &[7; 5]).bytes(libc::NLM_F_ACK as u16, 9);
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
        let words = [&24u32.to_ne_bytes()[..], &16u16.to_ne_bytes(), &flags.to_ne_bytes(), &9u32.to_ne_bytes()];
        assert_eq!(bytes, [&words.concat()[..], &[0; 4], &[7; 5], &[0; 3]].concat());
    }

    #[test]
    fn truncated_attributes_end_the_list() {
        assert_eq!(attributes(&[8, 0, 1, 0, 1]).count(), 0);
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0, "shorter than its own header");
        assert_eq!(attributes(&[0]).count(), 0);
    }

    /// Socket at which the answer `datagram` of a kernel waits.
    fn answering(datagram: &[u8]) -> Netlink {
        let (socket, kernel) = std::os::unix::net::UnixDatagram::pair().unwrap();
        kernel.send(datagram).unwrap();
        // The other end stays open until the test process ends.
        std::mem::forget(kernel);
        Netlink { socket: socket.into(), sequence: 0, buffer: vec![0; BUFFER] }
    }

    /// Socket at which the first request fails with `error`.
    pub(crate) fn refusing(error: i32) -> Netlink {
        answering(&message(HEADER + 4, libc::NLMSG_ERROR, 1, &(-error).to_ne_bytes()))
    }

    /// Result of a request that a kernel answers with `datagram`.
    fn answered(datagram: &[u8]) -> io::Result<Vec<Answer>> {
        answering(datagram).ask(&Request::new(16, 0, &[]))
    }

    /// Message with `length` in its header.
    fn message(length: usize, kind: libc::c_int, sequence: u32, body: &[u8]) -> Vec<u8> {
        let head = [&(length as u32).to_ne_bytes()[..], &(kind as u16).to_ne_bytes(), &[0; 2]].concat();
        [head, sequence.to_ne_bytes().to_vec(), vec![0; 4], body.to_vec()].concat()
    }

    #[test]
    fn messages_of_impossible_length_are_refused() {
        let kind = 16;
        for length in [0, HEADER - 1, HEADER + 5] {
            let error = answered(&message(length, kind, 1, &[1; 4])).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{length}");
        }
        let end = message(HEADER, libc::NLMSG_DONE, 1, &[]);
        let answers = answered(&[message(HEADER + 4, kind, 1, &[1; 4]), end].concat()).unwrap();
        assert_eq!(answers, [Answer { kind: 16, body: vec![1; 4] }]);
    }

    #[test]
    fn only_an_acknowledgement_with_a_code_ends_a_request() {
        let code = |code: i32, sequence| message(HEADER + 4, libc::NLMSG_ERROR, sequence, &code.to_ne_bytes());
        assert_eq!(answered(&code(0, 1)).unwrap(), []);
        assert_eq!(answered(&code(-libc::EPERM, 1)).unwrap_err().raw_os_error(), Some(libc::EPERM));
        let nothing = message(HEADER, libc::NLMSG_NOOP, 1, &[]);
        assert_eq!(answered(&[nothing, code(0, 1)].concat()).unwrap(), []);
        let late = [code(-libc::EPERM, 9), message(HEADER, libc::NLMSG_ERROR, 1, &[]), code(0, 1)].concat();
        assert_eq!(answered(&late).unwrap().len(), 1);
    }

    #[test]
    fn the_kernel_lists_the_loopback_device() {
        let mut netlink = Netlink::open().unwrap();
        let links = netlink.dump(&Request::new(libc::RTM_GETLINK, 0, &[0; 16])).unwrap();
        let named_lo =
            |answer: &Answer| attributes(&answer.body[16..]).any(|(kind, value)| kind == 3 && value == b"lo\0");
        assert!(links.iter().any(named_lo));
    }
}
