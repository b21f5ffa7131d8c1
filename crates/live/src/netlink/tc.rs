//! Traffic control by netlink: devices, queueing disciplines, classes and filters, as far as `attach` needs them.
//!
//! Numbers are those of `linux/rtnetlink.h`, `pkt_sched.h` and `pkt_cls.h`.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{Answer, Netlink, Request, SET, attributes};

/// Parent of a root discipline.
pub(crate) const ROOT: Handle = Handle(0xffff_ffff);
/// Handle of `clsact`, and its parent.
const CLSACT: (u32, u32) = (0xffff_0000, 0xffff_fff1);
/// Parent of filters at the egress.
const EGRESS: u32 = 0xffff_fff3;
/// Parent of filters at the ingress.
const INGRESS: u32 = 0xffff_fff2;

const NLM_F_ECHO: i32 = 8;
const NEW: i32 = libc::NLM_F_CREATE | libc::NLM_F_EXCL;

/// Handle of a discipline, class or filter: `1:10`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handle(pub(crate) u32);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Device {
    pub(crate) index: u32,
    pub(crate) name: String,
    /// Kind of link layer (`ARPHRD_*`).
    pub(crate) hardware: u16,
    /// Largest packet without the link-layer header.
    pub(crate) mtu: u32,
    /// Default limit of a discipline, packets.
    pub(crate) queue_length: u32,
}

/// A queueing discipline or a class of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    pub(crate) kind: String,
    /// Handle; its major number is zero for the kernel's default discipline.
    pub(crate) handle: Handle,
    pub(crate) parent: Handle,
    /// Discipline in a class.
    pub(crate) leaf: Handle,
    /// Parameters, as the kernel packs them.
    pub(crate) options: Vec<u8>,
    pub(crate) stats: Stats,
}

/// Counters of a discipline or class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// Bytes that left.
    pub(crate) bytes: u64,
    /// Packets that left, each segment counted.
    pub(crate) packets: u64,
    /// Bytes that wait.
    pub(crate) backlog_bytes: u32,
    /// Packets that wait; a super-packet is one.
    pub(crate) backlog_pkts: u32,
    /// Packets discarded; wraps.
    pub(crate) drops: u32,
}

/// A filter that runs a BPF program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Filter {
    /// Name; empty for other kinds of filter.
    pub(crate) name: String,
    pub(crate) priority: u16,
    pub(crate) handle: u32,
    /// Id of the program in the kernel.
    pub(crate) program: u32,
}

/// A token bucket, the shaper of `attach --rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// Rate, bytes per second.
    pub(crate) rate: u64,
    pub(crate) burst: u32,
    /// Buffer, bytes.
    pub(crate) limit: u32,
    /// Bytes on the wire of each packet beyond what the kernel counts.
    pub(crate) overhead: u16,
}

impl Handle {
    pub(crate) const fn new(major: u16, minor: u16) -> Self {
        Handle((major as u32) << 16 | minor as u32)
    }

    pub(crate) const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Reads `1:10`, hexadecimal as `tc` writes it; `1:` is a discipline.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        let number = |text: &str| u16::from_str_radix(text, 16).ok();
        Some(Handle::new(number(major)?, if minor.is_empty() { 0 } else { number(minor)? }))
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minor = self.0 as u16;
        match (*self, minor) {
            (ROOT, _) => f.write_str("root"),
            (_, 0) => write!(f, "{:x}:", self.major()),
            _ => write!(f, "{:x}:{minor:x}", self.major()),
        }
    }
}

/// `struct tcmsg`.
fn message(device: u32, handle: u32, parent: u32, info: u32) -> [u8; 20] {
    let mut bytes = [0; 20];
    for (i, word) in [0, device, handle, parent, info].into_iter().enumerate() {
        bytes[4 * i..4 * i + 4].copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn c_string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|b| *b == 0).next().unwrap_or(&[])).into_owned()
}

/// Attributes behind a fixed structure of `size` bytes.
fn attributes_after(answer: &Answer, size: usize) -> impl Iterator<Item = (u16, &[u8])> {
    attributes(answer.body.get(size..).unwrap_or(&[]))
}

/// Finds the device called `name`.
pub(crate) fn device(netlink: &mut Netlink, name: &str) -> io::Result<Option<Device>> {
    const IFNAME: u16 = 3;
    let request = Request::new(libc::RTM_GETLINK, 0, &[0; 16]).put_text(IFNAME, name);
    let answers = match netlink.ask(&request) {
        // ERANGE: no device can have a name of this length.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ERANGE | libc::EINVAL)) => {
            return Ok(None);
        }
        other => other?,
    };
    Ok(answers.first().and_then(read_device))
}

fn read_device(answer: &Answer) -> Option<Device> {
    let hardware = u16::from_ne_bytes(answer.body.get(2..4)?.try_into().ok()?);
    let mut device =
        Device { index: read_u32(&answer.body, 4)?, name: String::new(), hardware, mtu: 1500, queue_length: 1000 };
    for (kind, value) in attributes_after(answer, 16) {
        match kind {
            3 => device.name = c_string(value),
            4 => device.mtu = read_u32(value, 0)?,
            13 => device.queue_length = read_u32(value, 0)?,
            _ => {}
        }
    }
    Some(device)
}

fn read_node(answer: &Answer) -> Option<Node> {
    let body = &answer.body;
    let mut node = Node {
        handle: Handle(read_u32(body, 8)?),
        parent: Handle(read_u32(body, 12)?),
        leaf: Handle(read_u32(body, 16)?),
        ..Node::default()
    };
    for (kind, value) in attributes_after(answer, 20) {
        match kind {
            1 => node.kind = c_string(value),
            2 => node.options = value.to_vec(),
            7 => node.stats = read_stats(value),
            _ => {}
        }
    }
    Some(node)
}

fn read_stats(nested: &[u8]) -> Stats {
    let mut stats = Stats::default();
    let mut packets = None;
    for (kind, value) in attributes(nested) {
        match kind {
            1 => {
                stats.bytes = read_u64(value, 0).unwrap_or(0);
                stats.packets = read_u32(value, 8).unwrap_or(0).into();
            }
            3 => {
                stats.backlog_pkts = read_u32(value, 0).unwrap_or(0);
                stats.backlog_bytes = read_u32(value, 4).unwrap_or(0);
                stats.drops = read_u32(value, 8).unwrap_or(0);
            }
            // The same count without the wrap at 2^32, from 5.5 on.
            8 => packets = read_u64(value, 0),
            _ => {}
        }
    }
    stats.packets = packets.unwrap_or(stats.packets);
    stats
}

pub(crate) fn disciplines(netlink: &mut Netlink, device: u32) -> io::Result<Vec<Node>> {
    let answers = netlink.dump(&Request::new(libc::RTM_GETQDISC, 0, &message(device, 0, 0, 0)))?;
    // The kernel answers with the disciplines of all devices.
    Ok(answers.iter().filter(|answer| read_u32(&answer.body, 4) == Some(device)).filter_map(read_node).collect())
}

pub(crate) fn classes(netlink: &mut Netlink, device: u32) -> io::Result<Vec<Node>> {
    let answers = netlink.dump(&Request::new(libc::RTM_GETTCLASS, 0, &message(device, 0, 0, 0)))?;
    Ok(answers.iter().filter(|answer| read_u32(&answer.body, 4) == Some(device)).filter_map(read_node).collect())
}

/// The discipline `handle` with its counters. The kernel has no other request for it than one whose answer goes to all
/// listeners for changes, too.
pub(crate) fn discipline(netlink: &mut Netlink, device: u32, handle: Handle) -> io::Result<Node> {
    get_node(netlink, &Request::new(libc::RTM_GETQDISC, NLM_F_ECHO, &message(device, handle.0, 0, 0)))
}

/// The class `handle` with its counters.
pub(crate) fn class(netlink: &mut Netlink, device: u32, handle: Handle) -> io::Result<Node> {
    get_node(netlink, &Request::new(libc::RTM_GETTCLASS, NLM_F_ECHO, &message(device, handle.0, 0, 0)))
}

fn get_node(netlink: &mut Netlink, request: &Request) -> io::Result<Node> {
    let answers = netlink.ask(request)?;
    answers.iter().find_map(read_node).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

/// Puts a token bucket at the root of `device`, or changes the one with this handle.
pub(crate) fn set_bucket(netlink: &mut Netlink, device: u32, handle: Handle, bucket: &Bucket) -> io::Result<()> {
    // struct tc_ratespec: cell_log, linklayer (Ethernet), overhead, cell_align, mpu, rate.
    let rate = |overhead: u16, rate: u64| {
        let mut spec = vec![0, 1];
        spec.extend(overhead.to_ne_bytes());
        spec.extend([0; 4]);
        spec.extend(u32::try_from(rate).unwrap_or(u32::MAX).to_ne_bytes());
        spec
    };
    let mut parameters = rate(bucket.overhead, bucket.rate);
    parameters.extend(rate(0, 0));
    for value in [bucket.limit, 0, 0] {
        parameters.extend(value.to_ne_bytes());
    }
    let request =
        Request::new(libc::RTM_NEWQDISC, SET, &message(device, handle.0, ROOT.0, 0)).put_text(1, "tbf").nest(2, |r| {
            let r = r.put(1, &parameters);
            let r = if bucket.rate > u64::from(u32::MAX) { r.put(4, &bucket.rate.to_ne_bytes()) } else { r };
            r.put_u32(6, bucket.burst)
        });
    netlink.ask(&request).map(drop)
}

/// Removes the root discipline of `device`: the kernel's default returns.
pub(crate) fn remove_root(netlink: &mut Netlink, device: u32, handle: Handle) -> io::Result<()> {
    netlink.ask(&Request::new(libc::RTM_DELQDISC, 0, &message(device, handle.0, ROOT.0, 0))).map(drop)
}

/// Adds a `clsact` to `device`. Returns false if there is one already.
pub(crate) fn add_clsact(netlink: &mut Netlink, device: u32) -> io::Result<bool> {
    let request = Request::new(libc::RTM_NEWQDISC, NEW, &message(device, CLSACT.0, CLSACT.1, 0)).put_text(1, "clsact");
    match netlink.ask(&request) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the `clsact` of `device`, with all its filters.
pub(crate) fn remove_clsact(netlink: &mut Netlink, device: u32) -> io::Result<()> {
    netlink.ask(&Request::new(libc::RTM_DELQDISC, 0, &message(device, CLSACT.0, CLSACT.1, 0))).map(drop)
}

/// Whether the `clsact` of `device` has no filter in either direction.
pub(crate) fn is_clsact_empty(netlink: &mut Netlink, device: u32) -> io::Result<bool> {
    Ok(filters(netlink, device, EGRESS)?.is_empty() && filters(netlink, device, INGRESS)?.is_empty())
}

/// Egress filters of `device`; none without a `clsact`.
pub(crate) fn egress_filters(netlink: &mut Netlink, device: u32) -> io::Result<Vec<Filter>> {
    filters(netlink, device, EGRESS)
}

fn filters(netlink: &mut Netlink, device: u32, parent: u32) -> io::Result<Vec<Filter>> {
    let request = Request::new(libc::RTM_GETTFILTER, 0, &message(device, 0, parent, 0));
    let answers = match netlink.dump(&request) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => return Ok(Vec::new()),
        other => other?,
    };
    Ok(answers.iter().filter_map(read_filter).collect())
}

fn read_filter(answer: &Answer) -> Option<Filter> {
    let handle = read_u32(&answer.body, 8)?;
    let priority = (read_u32(&answer.body, 16)? >> 16) as u16;
    let mut filter = Filter { name: String::new(), priority, handle, program: 0 };
    for (_, options) in attributes_after(answer, 20).filter(|(kind, _)| *kind == 2) {
        for (kind, value) in attributes(options) {
            match kind {
                7 => filter.name = c_string(value),
                11 => filter.program = read_u32(value, 0)?,
                _ => {}
            }
        }
    }
    // The chain of a filter is listed too, without a handle.
    (handle != 0).then_some(filter)
}

/// Attaches `program` at the egress of `device`, in place of the filter with the same priority, handle and kind.
pub(crate) fn set_egress_filter(
    netlink: &mut Netlink,
    device: u32,
    filter: &Filter,
    program: BorrowedFd<'_>,
) -> io::Result<()> {
    const DIRECT_ACTION: u32 = 1;
    let request =
        Request::new(libc::RTM_NEWTFILTER, SET, &message(device, filter.handle, EGRESS, filter_info(filter.priority)))
            .put_text(1, "bpf")
            .nest(2, |r| r.put_u32(6, program.as_raw_fd() as u32).put_text(7, &filter.name).put_u32(8, DIRECT_ACTION));
    netlink.ask(&request).map(drop)
}

/// Removes a filter from the egress of `device`.
pub(crate) fn remove_egress_filter(netlink: &mut Netlink, device: u32, filter: &Filter) -> io::Result<()> {
    let fixed = message(device, filter.handle, EGRESS, filter_info(filter.priority));
    netlink.ask(&Request::new(libc::RTM_DELTFILTER, 0, &fixed).put_text(1, "bpf")).map(drop)
}

/// Priority of a filter for all protocols, as in `tcm_info`.
fn filter_info(priority: u16) -> u32 {
    u32::from(priority) << 16 | u32::from((libc::ETH_P_ALL as u16).to_be())
}

/// Rate of a token bucket, or ceiling of an htb class, in bytes per second; and the limit in bytes if there is one.
pub(crate) fn shaped_rate(node: &Node) -> Option<(u64, Option<u64>)> {
    let find = |wanted: u16| attributes(&node.options).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let parameters = find(1)?;
    let (at, wide, limit) = match node.kind.as_str() {
        "tbf" => (8, 4, read_u32(parameters, 24).map(u64::from)),
        "htb" => (20, 7, None),
        _ => return None,
    };
    let rate = match find(wide).and_then(|value| read_u64(value, 0)) {
        Some(rate) => rate,
        None => read_u32(parameters, at)?.into(),
    };
    Some((rate, limit))
}

/// Whether an htb class has no child classes.
pub(crate) fn is_leaf(node: &Node) -> bool {
    // struct tc_htb_opt: rate and ceil of 12 bytes each, buffer, cbuffer, quantum, then level.
    let parameters = attributes(&node.options).find(|(kind, _)| *kind == 1);
    parameters.and_then(|(_, value)| read_u32(value, 36)) == Some(0)
}

/// Limit of a `pfifo` (packets) or `bfifo` (bytes).
pub(crate) fn fifo_limit(node: &Node) -> Option<u32> {
    read_u32(&node.options, 0)
}

/// Options of disciplines and classes as the kernel packs them (`linux/pkt_sched.h`), for tests.
#[cfg(test)]
pub(crate) mod packed {
    use super::Request;

    /// Attributes that `fill` adds.
    pub(crate) fn attributes(fill: impl FnOnce(Request) -> Request) -> Vec<u8> {
        fill(Request::new(0, 0, &[])).body
    }

    /// `struct tc_ratespec` of `bytes` per second.
    fn rate(bytes: u32) -> Vec<u8> {
        [&[0, 1, 0, 0, 0, 0, 0, 0][..], &bytes.to_ne_bytes()].concat()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// `struct tc_tbf_qopt`: rate, peak rate, limit, buffer and MTU.
    pub(crate) fn bucket(bytes: u32, limit: u32) -> Vec<u8> {
        [rate(bytes), rate(0), words(&[limit, 7, 9])].concat()
    }

    /// `struct tc_htb_opt`: rate, ceiling, two buffers, quantum, level and priority.
    pub(crate) fn class(ceiling: u32, level: u32) -> Vec<u8> {
        [rate(1), rate(ceiling), words(&[5, 6, 7, level, 8])].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::packed::attributes;
    use super::*;
    use crate::common::skipped;
    use crate::machine::namespace::tests::lacks;
    use crate::machine::namespace::{LOOPBACK, Namespace};
    use crate::netlink::tests::refusing;

    #[test]
    fn handles_are_written_as_tc_writes_them() {
        assert_eq!(Handle::new(1, 0x10).to_string(), "1:10");
        assert_eq!(Handle::new(0xa9e, 0).to_string(), "a9e:");
        assert_eq!(ROOT.to_string(), "root");
        assert_eq!(Handle::parse("1:10"), Some(Handle::new(1, 0x10)));
        assert_eq!(Handle::parse("ffff:"), Some(Handle::new(0xffff, 0)));
        for no in ["", "1", ":", "1:g", "10000:1", "1:2:3"] {
            assert_eq!(Handle::parse(no), None, "{no}");
        }
    }

    #[test]
    fn the_64_bit_packet_count_takes_precedence() {
        let basic = [7u64.to_ne_bytes().to_vec(), 3u32.to_ne_bytes().to_vec(), vec![0; 4]].concat();
        let queue = [5u32, 7000, 2, 0, 9].map(u32::to_ne_bytes).concat();
        let wide = ((1u64 << 32) + 3).to_ne_bytes().to_vec();
        let read = read_stats(&attributes(|all| all.put(1, &basic).put(3, &queue)));
        assert_eq!(read, Stats { bytes: 7, packets: 3, backlog_pkts: 5, backlog_bytes: 7000, drops: 2 });
        assert_eq!(read_stats(&attributes(|all| all.put(1, &basic).put(8, &wide))).packets, (1 << 32) + 3);
        assert_eq!(read_stats(&[1, 2, 3]), Stats::default());
    }

    /// An answer about device 7: `struct tcmsg` with handle 1:2, parent 3:4 and info 5:6, and attributes.
    fn answer(fill: impl FnOnce(Request) -> Request) -> Answer {
        let fixed = message(7, 0x0001_0002, 0x0003_0004, 0x0005_0006);
        assert_eq!(fixed[4..], [7u32, 0x0001_0002, 0x0003_0004, 0x0005_0006].map(u32::to_ne_bytes).concat());
        Answer { kind: libc::RTM_NEWQDISC, body: [&fixed[..], &attributes(fill)].concat() }
    }

    #[test]
    fn a_discipline_is_read_with_position_options_and_counters() {
        let queue = [5u32, 7000, 2, 0, 9].map(u32::to_ne_bytes).concat();
        let read =
            read_node(&answer(|all| all.put_text(1, "tbf").put(2, &[1, 2, 3]).nest(7, |stats| stats.put(3, &queue))));
        let read = read.unwrap();
        assert_eq!((read.kind.as_str(), &read.options[..]), ("tbf", &[1, 2, 3][..]));
        assert_eq!(read.handle, Handle::new(1, 2));
        assert_eq!((read.parent, read.leaf), (Handle::new(3, 4), Handle::new(5, 6)));
        assert_eq!(read.stats, Stats { backlog_pkts: 5, backlog_bytes: 7000, drops: 2, ..Stats::default() });
        assert_eq!(read_node(&Answer { kind: 0, body: vec![0; 19] }), None, "cut");
    }

    #[test]
    fn a_device_is_read_with_its_kind_and_sizes() {
        // struct ifinfomsg: family, padding, type, index, flags, which flags change.
        let fixed = [&[0, 0, 1, 0][..], &9u32.to_ne_bytes(), &[0; 8]].concat();
        let all = attributes(|all| all.put_text(3, "eth0").put_u32(4, 9000).put_u32(13, 77));
        let device = read_device(&Answer { kind: 0, body: [fixed.clone(), all].concat() }).unwrap();
        let name = String::from("eth0");
        assert_eq!(
            device,
            Device { index: 9, name, hardware: u16::from_ne_bytes([1, 0]), mtu: 9000, queue_length: 77 }
        );
        // Defaults for values that the kernel does not send.
        let silent = read_device(&Answer { kind: 0, body: fixed }).unwrap();
        assert_eq!((silent.mtu, silent.queue_length), (1500, 1000));
        assert_eq!(read_device(&Answer { kind: 0, body: vec![0; 7] }), None, "cut");
    }

    #[test]
    fn a_filter_is_read_with_name_and_program_and_its_chain_is_left_out() {
        let options = |all: Request| all.put_text(1, "bpf").nest(2, |bpf| bpf.put_text(7, "aqumen").put_u32(11, 42));
        let read = read_filter(&answer(options)).unwrap();
        assert_eq!(read, Filter { name: "aqumen".into(), priority: 5, handle: 0x0001_0002, program: 42 });
        // Attributes outside the options are ignored.
        let bare = read_filter(&answer(|all| all.nest(3, |other| other.put_text(7, "no").put_u32(11, 1)))).unwrap();
        assert_eq!((bare.name.as_str(), bare.program), ("", 0));
        let mut chain = answer(options);
        chain.body[8..12].fill(0);
        assert_eq!(read_filter(&chain), None);
    }

    #[test]
    fn the_rate_of_a_shaper_is_that_of_a_bucket_or_the_ceiling_of_a_class() {
        let rate = |kind: &str, fill: &dyn Fn(Request) -> Request| {
            shaped_rate(&Node { kind: kind.into(), options: attributes(fill), ..Node::default() })
        };
        let (bucket, class) = (packed::bucket(2_500_000, 9000), packed::class(1_250_000, 0));
        assert_eq!(rate("tbf", &|all| all.put(1, &bucket)), Some((2_500_000, Some(9000))));
        assert_eq!(rate("htb", &|all| all.put(1, &class)), Some((1_250_000, None)));
        // Above 34 Gbit/s a separate 64-bit attribute has the rate.
        let wide = 5_000_000_000u64.to_ne_bytes();
        assert_eq!(rate("tbf", &|all| all.put(1, &bucket).put(4, &wide)), Some((5_000_000_000, Some(9000))));
        assert_eq!(rate("htb", &|all| all.put(7, &wide).put(1, &class)), Some((5_000_000_000, None)));
        // The class's own rate is another attribute.
        assert_eq!(rate("htb", &|all| all.put(6, &wide).put(1, &class)), Some((1_250_000, None)));
        assert_eq!((rate("pfifo", &|all| all.put(1, &bucket)), rate("tbf", &|all| all)), (None, None));
        assert_eq!(rate("htb", &|all| all.put(1, &class[..20])), None, "cut");
    }

    #[test]
    fn a_leaf_is_a_class_of_the_lowest_level() {
        let at = |level| Node { options: attributes(|all| all.put(1, &packed::class(1, level))), ..Node::default() };
        assert!(is_leaf(&at(0)) && !is_leaf(&at(1)));
        assert!(!is_leaf(&Node::default()), "it does not say");
        assert_eq!(fifo_limit(&Node { options: 99u32.to_ne_bytes().to_vec(), ..Node::default() }), Some(99));
    }

    #[test]
    fn the_kernel_makes_the_requested_bucket() {
        if skipped("token buckets") {
            return;
        }
        let work = || {
            let mut netlink = Netlink::open().unwrap();
            let handle = Handle::new(0xa9e, 0);
            for rate in [2_500_000, 5_000_000_000] {
                let bucket = Bucket { rate, burst: 100_000, limit: 9_000_000, overhead: 26 };
                // The second call changes it.
                set_bucket(&mut netlink, LOOPBACK, handle, &bucket).unwrap();
                let found = discipline(&mut netlink, LOOPBACK, handle).unwrap();
                assert_eq!(found.kind, "tbf");
                assert_eq!(shaped_rate(&found), Some((rate, Some(9_000_000))));
                // struct tc_ratespec: the overhead of each packet in 16 bits, behind two bytes.
                let (_, parameters) = super::attributes(&found.options).find(|(kind, _)| *kind == 1).unwrap();
                assert_eq!(parameters[2..4], 26u16.to_ne_bytes());
                // The kernel reports the parent only in a dump.
                assert_eq!(disciplines(&mut netlink, LOOPBACK).unwrap(), [Node { parent: ROOT, ..found }]);
            }
            let class = classes(&mut netlink, LOOPBACK).unwrap().remove(0);
            assert_eq!(class.handle.major(), handle.major());
            assert!(disciplines(&mut netlink, LOOPBACK + 1).unwrap().is_empty(), "those of another device");
            assert!(classes(&mut netlink, LOOPBACK + 1).unwrap().is_empty());
            remove_root(&mut netlink, LOOPBACK, handle).unwrap();
            assert!(discipline(&mut netlink, LOOPBACK, handle).is_err());
            Ok(())
        };
        Namespace::new().unwrap().within(work).unwrap();
    }

    #[test]
    fn a_clsact_is_added_once_and_empty_without_filters() {
        if skipped("filters") || lacks("tc", "filters") {
            return;
        }
        let work = || {
            let mut netlink = Netlink::open().unwrap();
            assert!(egress_filters(&mut netlink, LOOPBACK).unwrap().is_empty(), "no clsact");
            assert!(add_clsact(&mut netlink, LOOPBACK).unwrap() && !add_clsact(&mut netlink, LOOPBACK).unwrap());
            assert!(is_clsact_empty(&mut netlink, LOOPBACK).unwrap());
            for side in ["egress", "ingress"] {
                let tc = |line: &str| {
                    let words = line.split(' ');
                    assert!(std::process::Command::new("tc").args(words).status().unwrap().success(), "tc {line}");
                };
                tc(&format!("filter add dev lo {side} prio 5 u32 match u32 0 0 classid 1:1"));
                assert!(!is_clsact_empty(&mut netlink, LOOPBACK).unwrap(), "{side}");
                let found = egress_filters(&mut netlink, LOOPBACK).unwrap();
                assert_eq!(found.iter().any(|filter| filter.priority == 5), side == "egress");
                tc(&format!("filter del dev lo {side}"));
            }
            remove_clsact(&mut netlink, LOOPBACK).unwrap();
            assert!(remove_clsact(&mut netlink, LOOPBACK).is_err(), "it is gone");
            assert!(add_clsact(&mut netlink, LOOPBACK + 1).is_err(), "no such device");
            Ok(())
        };
        Namespace::new().unwrap().within(work).unwrap();
    }

    #[test]
    fn absent_objects_are_no_errors_and_denied_requests_are() {
        let code = |error: io::Error| error.raw_os_error();
        // Kernels have several codes for an absent device, and for a device without clsact.
        for absent in [libc::ENODEV, libc::ERANGE, libc::EINVAL] {
            assert_eq!(device(&mut refusing(absent), "lo").unwrap(), None, "{absent}");
        }
        for absent in [libc::EINVAL, libc::ENOENT] {
            assert_eq!(egress_filters(&mut refusing(absent), 1).unwrap(), [], "{absent}");
        }
        assert!(!add_clsact(&mut refusing(libc::EEXIST), 1).unwrap());
        let refused = || refusing(libc::EPERM);
        assert_eq!(device(&mut refused(), "lo").map_err(code), Err(Some(libc::EPERM)));
        assert_eq!(egress_filters(&mut refused(), 1).map_err(code), Err(Some(libc::EPERM)));
        assert_eq!(add_clsact(&mut refused(), 1).map_err(code), Err(Some(libc::EPERM)));
        assert_eq!(disciplines(&mut refused(), 1).map_err(code), Err(Some(libc::EPERM)));
        assert_eq!(classes(&mut refused(), 1).map_err(code), Err(Some(libc::EPERM)));
    }
}
