//! The shaper below the marker: an existing `tbf` or `htb` leaf, or a token bucket that `--rate` creates and removes.
//!
//! An existing shaper is read and never changed. Our bucket has a fixed handle, by which a later `aqumend` recognises
//! it.

use std::io;

use aqumen_units::Rate;

use super::options::Options;
use crate::netlink::Netlink;
use crate::netlink::tc::{self, Bucket, Device, Handle, Node, ROOT, Stats};
use crate::{Context, Error};

/// Handle of the token bucket that `--rate` creates.
const OWN_HANDLE: Handle = Handle::new(0xa9e, 0);
/// Burst of the bucket, as time at its rate: a shorter one loses tokens when a timer is late.
const BURST_S: f64 = 0.01;
/// Default buffer of the bucket, as time at its rate.
const BUFFER_S: f64 = 0.2;
/// Disciplines that mark or drop by themselves: two AQMs on one queue disturb each other.
const AQMS: [&str; 11] =
    ["codel", "fq_codel", "pie", "fq_pie", "red", "gred", "choke", "cake", "sfb", "hhf", "dualpi2"];

/// A shaper whose queue can be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shaper {
    /// `tbf` or `htb`.
    pub(crate) kind: String,
    /// Handle of the discipline or of the leaf class.
    pub(crate) handle: Handle,
    /// Whether the shaper is a class.
    pub(super) is_class: bool,
    pub(crate) rate: Rate,
    /// Buffer in bytes, if the limit is one of bytes.
    pub(crate) limit_bytes: Option<u64>,
    /// Buffer in packets, if the limit is one of packets.
    pub(crate) limit_pkts: Option<u32>,
    /// Token bucket to create, and to remove at the end; `None` for an existing shaper.
    pub(crate) own_bucket: Option<Bucket>,
    /// Other leaf classes, whose traffic passes the marker too.
    pub(crate) other_leaves: Vec<Handle>,
}

/// Token bucket that `options` ask for on `device`.
fn bucket(options: &Options, rate: Rate, device: &Device) -> Bucket {
    let bytes = rate.as_bps() / 8;
    let largest = u64::from(device.mtu) + 100;
    let within = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    Bucket {
        rate: bytes,
        burst: within(((bytes as f64 * BURST_S) as u64).max(2 * largest)),
        limit: within(options.buffer.map_or(((bytes as f64 * BUFFER_S) as u64).max(64 * largest), |buffer| buffer.0)),
        overhead: options.overhead,
    }
}

/// Finds the shaper to regulate. Creates nothing.
pub(crate) fn find(netlink: &mut Netlink, device: &Device, options: &Options) -> Result<Shaper, Error> {
    let nodes = tc::disciplines(netlink, device.index).context(|| format!("{}: its disciplines", device.name))?;
    let classes = tc::classes(netlink, device.index).context(|| format!("{}: its classes", device.name))?;
    choose(&nodes, &classes, device, options)
}

/// Chooses the shaper among existing disciplines and classes.
fn choose(nodes: &[Node], classes: &[Node], device: &Device, options: &Options) -> Result<Shaper, Error> {
    let root = nodes.iter().find(|node| node.parent == ROOT && node.handle.major() != 0);
    if let Some(rate) = options.rate {
        if let Some(other) = root.filter(|root| root.handle != OWN_HANDLE) {
            return Err(Error::setup(format!(
                "{}: --rate would replace {} {}; leave --rate out to use it, or remove it: tc qdisc del dev {} root",
                device.name, other.kind, other.handle, device.name
            )));
        }
        let bucket = bucket(options, rate, device);
        return Ok(Shaper {
            kind: "tbf".into(),
            handle: OWN_HANDLE,
            is_class: false,
            rate,
            limit_bytes: Some(bucket.limit.into()),
            limit_pkts: None,
            own_bucket: Some(bucket),
            other_leaves: Vec::new(),
        });
    }
    // A bucket that a killed process left does not count: without --rate its lifetime is unknown.
    let Some(root) = root.filter(|root| root.handle != OWN_HANDLE) else {
        return Err(Error::setup(format!(
            "{}: no shaper (tbf or htb) at its root; give --rate RATE, a little below the link's rate",
            device.name
        )));
    };
    match root.kind.as_str() {
        "tbf" => existing_bucket(device, root, nodes, options),
        "htb" => existing_class(device, root, nodes, classes, options),
        kind if AQMS.contains(&kind) => Err(Error::setup(format!(
            "{}: {kind} {} at its root is an AQM already; remove it and give --rate",
            device.name, root.handle
        ))),
        kind => Err(Error::setup(format!(
            "{}: {kind} {} at its root is no shaper (tbf or htb); remove it and give --rate",
            device.name, root.handle
        ))),
    }
}

fn existing_bucket(device: &Device, root: &Node, nodes: &[Node], options: &Options) -> Result<Shaper, Error> {
    if let Some(leaf) = options.leaf {
        return Err(Error::setup(format!(
            "--leaf {leaf}: {} at the root of {} has no classes",
            root.kind, device.name
        )));
    }
    refuse_aqm_below(device, nodes, Handle::new(root.handle.major(), 1))?;
    let (bytes, limit) = configured_rate(device, root)?;
    Ok(Shaper {
        kind: "tbf".into(),
        handle: root.handle,
        is_class: false,
        rate: Rate::from_bps(8 * bytes),
        limit_bytes: limit,
        limit_pkts: None,
        own_bucket: None,
        other_leaves: Vec::new(),
    })
}

fn existing_class(
    device: &Device,
    root: &Node,
    nodes: &[Node],
    classes: &[Node],
    options: &Options,
) -> Result<Shaper, Error> {
    let leaves: Vec<&Node> =
        classes.iter().filter(|class| class.handle.major() == root.handle.major() && tc::is_leaf(class)).collect();
    let listed = || leaves.iter().map(|leaf| leaf.handle.to_string()).collect::<Vec<_>>().join(", ");
    let leaf = match (options.leaf, &leaves[..]) {
        (None, [leaf]) => leaf,
        (None, []) => {
            return Err(Error::setup(format!(
                "{}: htb {} has no class, so it shapes nothing",
                device.name, root.handle
            )));
        }
        (None, _) => {
            return Err(Error::setup(format!(
                "{}: htb {} has several leaf classes ({}); the marker sees the traffic of all: select the one that queues by --leaf",
                device.name,
                root.handle,
                listed()
            )));
        }
        (Some(wanted), _) => leaves.iter().find(|leaf| leaf.handle == wanted).ok_or_else(|| {
            Error::setup(format!(
                "--leaf {wanted}: no leaf class of htb {} on {}; choose from: {}",
                root.handle,
                device.name,
                listed()
            ))
        })?,
    };
    refuse_aqm_below(device, nodes, leaf.handle)?;
    let below = nodes.iter().find(|node| node.parent == leaf.handle);
    let (limit_bytes, limit_pkts) = match below {
        Some(node) if node.kind == "bfifo" => (tc::fifo_limit(node).map(u64::from), None),
        Some(node) if node.kind.starts_with("pfifo") => (None, tc::fifo_limit(node)),
        // The kernel's default is a pfifo as long as the device's queue.
        _ => (None, Some(device.queue_length.max(1))),
    };
    let (bytes, _) = configured_rate(device, leaf)?;
    Ok(Shaper {
        kind: "htb".into(),
        handle: leaf.handle,
        is_class: true,
        rate: Rate::from_bps(8 * bytes),
        limit_bytes,
        limit_pkts,
        own_bucket: None,
        other_leaves: leaves.iter().map(|other| other.handle).filter(|other| *other != leaf.handle).collect(),
    })
}

fn configured_rate(device: &Device, node: &Node) -> Result<(u64, Option<u64>), Error> {
    tc::shaped_rate(node).filter(|(rate, _)| *rate > 0).ok_or_else(|| {
        Error::setup(format!("{}: the kernel reports no rate of {} {}", device.name, node.kind, node.handle))
    })
}

fn refuse_aqm_below(device: &Device, nodes: &[Node], parent: Handle) -> Result<(), Error> {
    match nodes.iter().find(|node| node.parent == parent && AQMS.contains(&node.kind.as_str())) {
        None => Ok(()),
        Some(aqm) => Err(Error::setup(format!(
            "{}: {} below {parent} is an AQM already; replace it by a pfifo",
            device.name, aqm.kind
        ))),
    }
}

impl Shaper {
    /// Reads the counters of its queue.
    pub(crate) fn stats(&self, netlink: &mut Netlink, device: &Device) -> io::Result<Stats> {
        let node = if self.is_class {
            tc::class(netlink, device.index, self.handle)
        } else {
            tc::discipline(netlink, device.index, self.handle)
        };
        node.map(|node| node.stats)
    }

    /// Buffer in packets of `packet_bytes`.
    pub(crate) fn limit_in_packets(&self, packet_bytes: f64) -> f64 {
        let bytes = self.limit_bytes.map_or(f64::INFINITY, |limit| limit as f64 / packet_bytes);
        bytes.min(self.limit_pkts.map_or(f64::INFINITY, f64::from)).min(1e9)
    }

    /// Creates the bucket, or changes one that a killed process left. Does nothing for an existing shaper.
    pub(crate) fn create(&self, netlink: &mut Netlink, device: &Device) -> Result<(), Error> {
        let Some(bucket) = &self.own_bucket else { return Ok(()) };
        tc::set_bucket(netlink, device.index, OWN_HANDLE, bucket).map_err(|error| {
            Error::setup(match error.raw_os_error() {
                Some(libc::EPERM) => format!("{}: a shaper needs the capability CAP_NET_ADMIN", device.name),
                Some(libc::ENOENT) => "this kernel has no token bucket (CONFIG_NET_SCH_TBF)".into(),
                _ => format!("{}: a token bucket: {error}", device.name),
            })
        })
    }

    /// Removes the bucket that was created.
    pub(crate) fn remove(&self, netlink: &mut Netlink, device: &Device) {
        if self.own_bucket.is_some() {
            // An error means that bucket or device is gone already.
            let _ = tc::remove_root(netlink, device.index, self.handle);
        }
    }
}

fn is_ours(node: &Node) -> bool {
    node.parent == ROOT && node.handle == OWN_HANDLE && node.kind == "tbf"
}

/// Removes our token bucket that a killed process left on `device`. Returns whether there was one.
pub(crate) fn remove_leftover(netlink: &mut Netlink, device: &Device) -> Result<bool, Error> {
    let at = || format!("{}: a token bucket left by a killed aqumend", device.name);
    let nodes = tc::disciplines(netlink, device.index).context(at)?;
    if !nodes.iter().any(is_ours) {
        return Ok(false);
    }
    tc::remove_root(netlink, device.index, OWN_HANDLE).context(at)?;
    Ok(true)
}

/// Device with packets of 1500 bytes, and its HTB leaf 1:10 with a limit of `limit_pkts`.
#[cfg(test)]
pub(super) fn example(mbit: u64, limit_pkts: u32) -> (Device, Shaper) {
    let device = Device { index: 1, name: "eth0".into(), hardware: 1, mtu: 1486, queue_length: 1000 };
    let shaper = Shaper {
        kind: "htb".into(),
        handle: Handle::new(1, 0x10),
        is_class: true,
        rate: Rate::from_bps(mbit * 1_000_000),
        limit_bytes: None,
        limit_pkts: Some(limit_pkts),
        own_bucket: None,
        other_leaves: Vec::new(),
    };
    (device, shaper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::tc::packed;

    fn device() -> Device {
        Device { mtu: 1500, ..example(1, 0).0 }
    }

    fn bucket_of(line: &str, mbit: u64) -> Bucket {
        let options = Options::from_line(line);
        bucket(&options, Rate::from_bps(mbit * 1_000_000), &device())
    }

    #[test]
    fn a_bucket_has_a_burst_of_10_ms_and_a_buffer_of_200_ms() {
        // 800 Mbit/s are 10^8 bytes/s: a burst of 1 MB, a buffer of 20 MB.
        let wide = bucket_of("eth0 --aqm pi --rate 800Mbit", 800);
        assert_eq!((wide.rate, wide.burst, wide.limit, wide.overhead), (100_000_000, 1_000_000, 20_000_000, 0));
        // 1 Mbit/s: a burst of at least two of the largest packets of 1600 bytes, a buffer of 64.
        let narrow = bucket_of("eth0 --aqm pi --rate 1Mbit --overhead 26B", 1);
        assert_eq!((narrow.rate, narrow.burst, narrow.limit, narrow.overhead), (125_000, 3200, 102_400, 26));
        // The options take precedence; numbers beyond the kernel's range are limited to it.
        assert_eq!(bucket_of("eth0 --aqm pi --rate 1Mbit --buffer 9kB", 1).limit, 9000);
        assert_eq!(bucket_of("eth0 --aqm pi --rate 1Mbit", 400_000).limit, u32::MAX);
    }

    #[test]
    fn the_buffer_is_the_smaller_of_both_limits() {
        let shaper = |limit_bytes, limit_pkts| Shaper { limit_bytes, limit_pkts, ..example(1, 0).1 };
        let room = |bytes, packets| shaper(bytes, packets).limit_in_packets(500.0);
        assert_eq!([room(Some(5000), None), room(None, Some(7)), room(Some(5000), Some(7))], [10.0, 7.0, 7.0]);
        assert_eq!(room(None, None), 1e9);
    }

    fn node(kind: &str, handle: &str, parent: Handle, options: Vec<u8>) -> Node {
        Node { kind: kind.into(), handle: Handle::parse(handle).unwrap(), parent, options, ..Node::default() }
    }

    /// Token bucket at the root: 2.5 MB/s, and a buffer of 9 kB.
    fn bucket_at(handle: &str) -> Node {
        node("tbf", handle, ROOT, packed::attributes(|all| all.put(1, &packed::bucket(2_500_000, 9000))))
    }

    /// Class of htb 1: with a ceiling of `bytes` per second.
    fn class(handle: &str, bytes: u32, level: u32) -> Node {
        node("htb", handle, ROOT, packed::attributes(|all| all.put(1, &packed::class(bytes, level))))
    }

    fn found(line: &str, nodes: &[Node], classes: &[Node]) -> Result<Shaper, String> {
        choose(nodes, classes, &device(), &Options::from_line(line)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_existing_bucket_is_used_unchanged() {
        let shaper = found("eth0 --aqm pi", &[bucket_at("1:")], &[]).unwrap();
        assert_eq!((shaper.kind.as_str(), shaper.handle, shaper.is_class), ("tbf", Handle::new(1, 0), false));
        // 2.5 MB/s are 20 Mbit/s.
        assert_eq!((shaper.rate.as_bps(), shaper.limit_bytes, shaper.limit_pkts), (20_000_000, Some(9000), None));
        assert!(shaper.own_bucket.is_none());
        let below = |kind, parent| [bucket_at("1:"), node(kind, "2:", parent, vec![])];
        let error = found("eth0 --aqm pi", &below("fq_codel", Handle::new(1, 1)), &[]).unwrap_err();
        assert_eq!(error, "eth0: fq_codel below 1:1 is an AQM already; replace it by a pfifo");
        assert!(found("eth0 --aqm pi", &below("pfifo", Handle::new(1, 1)), &[]).is_ok());
        assert!(found("eth0 --aqm pi", &below("fq_codel", Handle::new(3, 1)), &[]).is_ok(), "below another");
        let error = found("eth0 --aqm pi --leaf 1:1", &[bucket_at("1:")], &[]).unwrap_err();
        assert_eq!(error, "--leaf 1:1: tbf at the root of eth0 has no classes");
        let silent = node("tbf", "1:", ROOT, packed::attributes(|all| all.put(1, &packed::bucket(0, 9000))));
        let error = found("eth0 --aqm pi", &[silent], &[]).unwrap_err();
        assert_eq!(error, "eth0: the kernel reports no rate of tbf 1:");
    }

    #[test]
    fn our_bucket_replaces_only_our_own() {
        let line = "eth0 --aqm pi --rate 8Mbit --buffer 50kB";
        let shaper = found(line, &[], &[]).unwrap();
        assert_eq!((shaper.kind.as_str(), shaper.handle, shaper.is_class), ("tbf", OWN_HANDLE, false));
        assert_eq!((shaper.rate.as_bps(), shaper.limit_bytes, shaper.limit_pkts), (8_000_000, Some(50_000), None));
        assert_eq!(shaper.own_bucket.map(|bucket| bucket.rate), Some(1_000_000));
        // A bucket that a killed process left, and the kernel's default.
        assert!(found(line, &[bucket_at("a9e:")], &[]).is_ok());
        assert!(found(line, &[node("pfifo_fast", "0:", ROOT, vec![])], &[]).is_ok());
        let error = found(line, &[bucket_at("1:")], &[]).unwrap_err();
        assert!(error.starts_with("eth0: --rate would replace tbf 1:; "), "{error}");
        // Without --rate, neither a leftover bucket nor the kernel's default nor an inner bucket is a shaper.
        for other in [bucket_at("a9e:"), bucket_at("0:"), node("tbf", "1:", Handle::new(1, 1), vec![])] {
            let error = found("eth0 --aqm pi", std::slice::from_ref(&other), &[]).unwrap_err();
            assert!(error.starts_with("eth0: no shaper (tbf or htb) at its root"), "{other:?}: {error}");
        }
        for (kind, reason) in [("fq_codel", "is an AQM already"), ("pfifo", "is no shaper")] {
            let error = found("eth0 --aqm pi", &[node(kind, "1:", ROOT, vec![])], &[]).unwrap_err();
            assert!(error.starts_with(&format!("eth0: {kind} 1: at its root {reason}")), "{error}");
        }
    }

    #[test]
    fn the_leaf_is_the_only_one_or_the_one_of_the_option() {
        let root = || node("htb", "1:", ROOT, vec![]);
        // An inner class, and a class of another hierarchy.
        let others = [class("1:1", 9_000_000, 1), class("2:7", 9_000_000, 0)];
        let classes = |leaves: &[&str]| -> Vec<Node> {
            others.iter().cloned().chain(leaves.iter().map(|leaf| class(leaf, 1_250_000, 0))).collect()
        };
        let one = found("eth0 --aqm pi", &[root()], &classes(&["1:10"])).unwrap();
        assert_eq!((one.kind.as_str(), one.handle, one.is_class), ("htb", Handle::new(1, 0x10), true));
        // 1.25 MB/s are 10 Mbit/s; the kernel's own fifo is as long as the device's queue.
        assert_eq!((one.rate.as_bps(), one.limit_bytes, one.limit_pkts), (10_000_000, None, Some(1000)));
        let two = classes(&["1:10", "1:20"]);
        let named = found("eth0 --aqm pi --leaf 1:20", &[root()], &two).unwrap();
        assert_eq!((named.handle, named.other_leaves), (Handle::new(1, 0x20), vec![Handle::new(1, 0x10)]));
        assert!(one.other_leaves.is_empty());
        let error = found("eth0 --aqm pi", &[root()], &two).unwrap_err();
        assert!(error.starts_with("eth0: htb 1: has several leaf classes (1:10, 1:20)"), "{error}");
        let error = found("eth0 --aqm pi --leaf 1:1", &[root()], &two).unwrap_err();
        assert_eq!(error, "--leaf 1:1: no leaf class of htb 1: on eth0; choose from: 1:10, 1:20");
        let error = found("eth0 --aqm pi", &[root()], &others).unwrap_err();
        assert_eq!(error, "eth0: htb 1: has no class, so it shapes nothing");
    }

    #[test]
    fn the_discipline_of_a_leaf_sets_its_buffer() {
        let limits = |kind: &str, parent: &str, limit: u32| {
            let below = node(kind, "10:", Handle::parse(parent).unwrap(), limit.to_ne_bytes().to_vec());
            let nodes = [node("htb", "1:", ROOT, vec![]), below];
            found("eth0 --aqm pi", &nodes, &[class("1:10", 1_250_000, 0)])
                .map(|shaper| (shaper.limit_bytes, shaper.limit_pkts))
        };
        assert_eq!(limits("bfifo", "1:10", 90_000), Ok((Some(90_000), None)));
        assert_eq!(limits("pfifo", "1:10", 400), Ok((None, Some(400))));
        assert_eq!(limits("pfifo_head_drop", "1:10", 300), Ok((None, Some(300))));
        // For other disciplines the device's queue length is the best estimate; those of other leaves are ignored.
        assert_eq!(
            [limits("sfq", "1:10", 9), limits("pfifo", "1:20", 9)],
            [Ok((None, Some(1000))), Ok((None, Some(1000)))]
        );
        assert!(limits("codel", "1:10", 9).unwrap_err().contains("codel below 1:10 is an AQM already"));
    }

    #[test]
    fn a_leftover_is_recognised_by_position_handle_and_kind() {
        assert!(is_ours(&bucket_at("a9e:")));
        let others =
            [bucket_at("1:"), node("htb", "a9e:", ROOT, vec![]), node("tbf", "a9e:", Handle::new(1, 1), vec![])];
        assert!(!others.iter().any(is_ours));
    }
}
