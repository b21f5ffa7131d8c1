//! The shaper under the marker: the `tbf` or `htb` leaf that is there, or a token bucket
//! that `--rate` makes and removes.
//!
//! A shaper of the user's is read and never touched. Ours has a handle of its own, by which a
//! later `aqumend` knows it again.

use std::io;

use aqumen_units::Rate;

use super::options::Options;
use crate::netlink::Netlink;
use crate::netlink::tc::{self, Bucket, Device, Handle, Node, ROOT, Stats};
use crate::{Failure, Tried};

/// The handle of the token bucket that `--rate` makes.
const OURS: Handle = Handle::new(0xa9e, 0);
/// Below so much time at the rate, a burst loses tokens whenever a timer is late.
const BURST_S: f64 = 0.01;
/// What may wait if nothing is said.
const BUFFER_S: f64 = 0.2;
/// Disciplines that mark or drop by themselves: two AQMs over one queue work against each other.
const AQMS: [&str; 11] =
    ["codel", "fq_codel", "pie", "fq_pie", "red", "gred", "choke", "cake", "sfb", "hhf", "dualpi2"];

/// A shaper whose queue can be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shaper {
    /// `tbf` or `htb`.
    pub(crate) kind: String,
    /// Of the discipline, or of the leaf class.
    pub(crate) handle: Handle,
    /// Whether it is a class.
    pub(super) class: bool,
    /// What it lets through.
    pub(crate) rate: Rate,
    /// Bytes that may wait, if the limit is one of bytes.
    pub(crate) limit_bytes: Option<u64>,
    /// Packets that may wait, likewise.
    pub(crate) limit_pkts: Option<u32>,
    /// Ours, to be made and to be removed at the end.
    pub(crate) ours: Option<Bucket>,
    /// The other leaf classes, whose traffic passes the marker too.
    pub(crate) others: Vec<Handle>,
}

/// The bucket that `options` ask for on `device`.
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

/// The shaper to look after; nothing is made yet.
pub(crate) fn find(netlink: &mut Netlink, device: &Device, options: &Options) -> Result<Shaper, Failure> {
    let nodes = tc::disciplines(netlink, device.index).or_refuse(|| format!("{}: its disciplines", device.name))?;
    let classes = tc::classes(netlink, device.index).or_refuse(|| format!("{}: its classes", device.name))?;
    among(&nodes, &classes, device, options)
}

/// The same, where these disciplines and classes are there.
fn among(nodes: &[Node], classes: &[Node], device: &Device, options: &Options) -> Result<Shaper, Failure> {
    let root = nodes.iter().find(|node| node.parent == ROOT && node.handle.major() != 0);
    if let Some(rate) = options.rate {
        if let Some(other) = root.filter(|root| root.handle != OURS) {
            return Err(Failure::refused(format!(
                "{}: --rate would replace {} {}; leave --rate out to use it, or remove it: tc qdisc del dev {} root",
                device.name, other.kind, other.handle, device.name
            )));
        }
        let bucket = bucket(options, rate, device);
        return Ok(Shaper {
            kind: "tbf".into(),
            handle: OURS,
            class: false,
            rate,
            limit_bytes: Some(bucket.limit.into()),
            limit_pkts: None,
            ours: Some(bucket),
            others: Vec::new(),
        });
    }
    // One of ours that a killed process left is as good as none: without --rate it is not known how long it is to stay.
    let Some(root) = root.filter(|root| root.handle != OURS) else {
        return Err(Failure::refused(format!(
            "{}: no shaper (tbf or htb) at its root; give --rate RATE, a little below what the link carries",
            device.name
        )));
    };
    match root.kind.as_str() {
        "tbf" => of_bucket(device, root, nodes, options),
        "htb" => of_class(device, root, nodes, classes, options),
        kind if AQMS.contains(&kind) => Err(Failure::refused(format!(
            "{}: {kind} {} at its root is an AQM already; remove it and give --rate, or leave it",
            device.name, root.handle
        ))),
        kind => Err(Failure::refused(format!(
            "{}: {kind} {} at its root is no shaper (tbf or htb); remove it and give --rate",
            device.name, root.handle
        ))),
    }
}

fn of_bucket(device: &Device, root: &Node, nodes: &[Node], options: &Options) -> Result<Shaper, Failure> {
    if let Some(leaf) = options.leaf {
        return Err(Failure::refused(format!(
            "--leaf {leaf}: {} at the root of {} has no classes",
            root.kind, device.name
        )));
    }
    no_aqm_below(device, nodes, Handle::new(root.handle.major(), 1))?;
    let (bytes, limit) = rate_of(device, root)?;
    Ok(Shaper {
        kind: "tbf".into(),
        handle: root.handle,
        class: false,
        rate: Rate::from_bps(8 * bytes),
        limit_bytes: limit,
        limit_pkts: None,
        ours: None,
        others: Vec::new(),
    })
}

fn of_class(
    device: &Device,
    root: &Node,
    nodes: &[Node],
    classes: &[Node],
    options: &Options,
) -> Result<Shaper, Failure> {
    let leaves: Vec<&Node> =
        classes.iter().filter(|class| class.handle.major() == root.handle.major() && tc::is_leaf(class)).collect();
    let listed = || leaves.iter().map(|leaf| leaf.handle.to_string()).collect::<Vec<_>>().join(", ");
    let leaf = match (options.leaf, &leaves[..]) {
        (None, [leaf]) => leaf,
        (None, []) => {
            return Err(Failure::refused(format!(
                "{}: htb {} has no class, so it shapes nothing",
                device.name, root.handle
            )));
        }
        (None, _) => {
            return Err(Failure::refused(format!(
                "{}: htb {} has several leaf classes ({}); the marker sees the traffic of all: name the one that queues with --leaf",
                device.name,
                root.handle,
                listed()
            )));
        }
        (Some(wanted), _) => leaves.iter().find(|leaf| leaf.handle == wanted).ok_or_else(|| {
            Failure::refused(format!(
                "--leaf {wanted}: no leaf class of htb {} on {}; choose from: {}",
                root.handle,
                device.name,
                listed()
            ))
        })?,
    };
    no_aqm_below(device, nodes, leaf.handle)?;
    let below = nodes.iter().find(|node| node.parent == leaf.handle);
    let (limit_bytes, limit_pkts) = match below {
        Some(node) if node.kind == "bfifo" => (tc::fifo_limit(node).map(u64::from), None),
        Some(node) if node.kind.starts_with("pfifo") => (None, tc::fifo_limit(node)),
        // The kernel puts a pfifo there, as long as the device's queue.
        _ => (None, Some(device.queue_length.max(1))),
    };
    let (bytes, _) = rate_of(device, leaf)?;
    Ok(Shaper {
        kind: "htb".into(),
        handle: leaf.handle,
        class: true,
        rate: Rate::from_bps(8 * bytes),
        limit_bytes,
        limit_pkts,
        ours: None,
        others: leaves.iter().map(|other| other.handle).filter(|other| *other != leaf.handle).collect(),
    })
}

fn rate_of(device: &Device, node: &Node) -> Result<(u64, Option<u64>), Failure> {
    tc::shaped_rate(node).filter(|(rate, _)| *rate > 0).ok_or_else(|| {
        Failure::refused(format!("{}: the kernel does not say the rate of {} {}", device.name, node.kind, node.handle))
    })
}

fn no_aqm_below(device: &Device, nodes: &[Node], parent: Handle) -> Result<(), Failure> {
    match nodes.iter().find(|node| node.parent == parent && AQMS.contains(&node.kind.as_str())) {
        None => Ok(()),
        Some(aqm) => Err(Failure::refused(format!(
            "{}: {} below {parent} is an AQM already; put a pfifo there, or leave it",
            device.name, aqm.kind
        ))),
    }
}

impl Shaper {
    /// What its queue looks like now.
    pub(crate) fn read(&self, netlink: &mut Netlink, device: &Device) -> io::Result<Stats> {
        let node = if self.class {
            tc::class(netlink, device.index, self.handle)
        } else {
            tc::discipline(netlink, device.index, self.handle)
        };
        node.map(|node| node.stats)
    }

    /// Packets of `packet_bytes` that may wait.
    pub(crate) fn limit_in_packets(&self, packet_bytes: f64) -> f64 {
        let bytes = self.limit_bytes.map_or(f64::INFINITY, |limit| limit as f64 / packet_bytes);
        bytes.min(self.limit_pkts.map_or(f64::INFINITY, f64::from)).min(1e9)
    }

    /// Makes it, if it is to be ours; one that a killed process left is changed.
    pub(crate) fn make(&self, netlink: &mut Netlink, device: &Device) -> Result<(), Failure> {
        let Some(bucket) = &self.ours else { return Ok(()) };
        tc::set_bucket(netlink, device.index, OURS, bucket).map_err(|error| {
            Failure::refused(match error.raw_os_error() {
                Some(libc::EPERM) => format!("{}: a shaper needs the capability CAP_NET_ADMIN", device.name),
                Some(libc::ENOENT) => "this kernel has no token bucket (CONFIG_NET_SCH_TBF)".into(),
                _ => format!("{}: a token bucket: {error}", device.name),
            })
        })
    }

    /// Removes it, if it is ours.
    pub(crate) fn remove(&self, netlink: &mut Netlink, device: &Device) {
        if self.ours.is_some() {
            // Gone already, or the device is: nothing of ours is left.
            let _ = tc::remove_root(netlink, device.index, self.handle);
        }
    }
}

fn is_ours(node: &Node) -> bool {
    node.parent == ROOT && node.handle == OURS && node.kind == "tbf"
}

/// Removes a token bucket of ours that a killed process left on `device`. Whether there was one.
pub(crate) fn remove_leftover(netlink: &mut Netlink, device: &Device) -> Result<bool, Failure> {
    let at = || format!("{}: a token bucket left by a killed aqumend", device.name);
    let nodes = tc::disciplines(netlink, device.index).or_refuse(at)?;
    if !nodes.iter().any(is_ours) {
        return Ok(false);
    }
    tc::remove_root(netlink, device.index, OURS).or_refuse(at)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::tc::packed;

    fn device() -> Device {
        Device { index: 1, name: "eth0".into(), hardware: 1, mtu: 1500, queue_length: 1000 }
    }

    fn bucket_of(line: &str, mbit: u64) -> Bucket {
        let options = Options::of_line(line);
        bucket(&options, Rate::from_bps(mbit * 1_000_000), &device())
    }

    #[test]
    fn a_bucket_holds_ten_milliseconds_and_lets_wait_two_hundred() {
        // 800 Mbit/s are 10^8 bytes/s: 1 MB at once, 20 MB wait.
        let wide = bucket_of("eth0 --aqm pi --rate 800Mbit", 800);
        assert_eq!((wide.rate, wide.burst, wide.limit, wide.overhead), (100_000_000, 1_000_000, 20_000_000, 0));
        // 1 Mbit/s: no less than two of the largest packets of 1600 bytes at once, and 64 that wait.
        let narrow = bucket_of("eth0 --aqm pi --rate 1Mbit --overhead 26B", 1);
        assert_eq!((narrow.rate, narrow.burst, narrow.limit, narrow.overhead), (125_000, 3200, 102_400, 26));
        // What is said goes before; what the kernel has no number for is the largest that it has.
        assert_eq!(bucket_of("eth0 --aqm pi --rate 1Mbit --buffer 9kB", 1).limit, 9000);
        assert_eq!(bucket_of("eth0 --aqm pi --rate 1Mbit", 400_000).limit, u32::MAX);
    }

    #[test]
    fn the_room_of_a_shaper_is_the_lesser_of_its_limits() {
        let shaper = |limit_bytes, limit_pkts| Shaper {
            kind: "tbf".into(),
            handle: OURS,
            class: false,
            rate: Rate::from_bps(8),
            limit_bytes,
            limit_pkts,
            ours: None,
            others: Vec::new(),
        };
        let room = |bytes, packets| shaper(bytes, packets).limit_in_packets(500.0);
        assert_eq!([room(Some(5000), None), room(None, Some(7)), room(Some(5000), Some(7))], [10.0, 7.0, 7.0]);
        assert_eq!(room(None, None), 1e9);
    }

    fn node(kind: &str, handle: &str, parent: Handle, options: Vec<u8>) -> Node {
        Node { kind: kind.into(), handle: Handle::parse(handle).unwrap(), parent, options, ..Node::default() }
    }

    /// A token bucket at the root: 2.5 MB/s and room for 9 kB.
    fn bucket_at(handle: &str) -> Node {
        node("tbf", handle, ROOT, packed::attributes(|all| all.put(1, &packed::bucket(2_500_000, 9000))))
    }

    /// A class of htb 1: that lets through so many bytes a second.
    fn class(handle: &str, bytes: u32, level: u32) -> Node {
        node("htb", handle, ROOT, packed::attributes(|all| all.put(1, &packed::class(bytes, level))))
    }

    fn found(line: &str, nodes: &[Node], classes: &[Node]) -> Result<Shaper, String> {
        among(nodes, classes, &device(), &Options::of_line(line)).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_bucket_that_is_there_is_used_as_it_is() {
        let shaper = found("eth0 --aqm pi", &[bucket_at("1:")], &[]).unwrap();
        assert_eq!((shaper.kind.as_str(), shaper.handle, shaper.class), ("tbf", Handle::new(1, 0), false));
        // 2.5 MB/s are 20 Mbit/s.
        assert_eq!((shaper.rate.as_bps(), shaper.limit_bytes, shaper.limit_pkts), (20_000_000, Some(9000), None));
        assert!(shaper.ours.is_none());
        let below = |kind, parent| [bucket_at("1:"), node(kind, "2:", parent, vec![])];
        let why = found("eth0 --aqm pi", &below("fq_codel", Handle::new(1, 1)), &[]).unwrap_err();
        assert_eq!(why, "eth0: fq_codel below 1:1 is an AQM already; put a pfifo there, or leave it");
        assert!(found("eth0 --aqm pi", &below("pfifo", Handle::new(1, 1)), &[]).is_ok());
        assert!(found("eth0 --aqm pi", &below("fq_codel", Handle::new(3, 1)), &[]).is_ok(), "below another");
        let why = found("eth0 --aqm pi --leaf 1:1", &[bucket_at("1:")], &[]).unwrap_err();
        assert_eq!(why, "--leaf 1:1: tbf at the root of eth0 has no classes");
        let silent = node("tbf", "1:", ROOT, packed::attributes(|all| all.put(1, &packed::bucket(0, 9000))));
        let why = found("eth0 --aqm pi", &[silent], &[]).unwrap_err();
        assert_eq!(why, "eth0: the kernel does not say the rate of tbf 1:");
    }

    #[test]
    fn a_bucket_of_our_own_takes_the_place_of_none_but_our_own() {
        let line = "eth0 --aqm pi --rate 8Mbit --buffer 50kB";
        let shaper = found(line, &[], &[]).unwrap();
        assert_eq!((shaper.kind.as_str(), shaper.handle, shaper.class), ("tbf", OURS, false));
        assert_eq!((shaper.rate.as_bps(), shaper.limit_bytes, shaper.limit_pkts), (8_000_000, Some(50_000), None));
        assert_eq!(shaper.ours.map(|bucket| bucket.rate), Some(1_000_000));
        // One that a killed process left, and what the kernel put there by itself.
        assert!(found(line, &[bucket_at("a9e:")], &[]).is_ok());
        assert!(found(line, &[node("pfifo_fast", "0:", ROOT, vec![])], &[]).is_ok());
        let why = found(line, &[bucket_at("1:")], &[]).unwrap_err();
        assert!(why.starts_with("eth0: --rate would replace tbf 1:; "), "{why}");
        // Without a rate one that was left is none, nor is what the kernel put there, nor what hangs elsewhere.
        for other in [bucket_at("a9e:"), bucket_at("0:"), node("tbf", "1:", Handle::new(1, 1), vec![])] {
            let why = found("eth0 --aqm pi", std::slice::from_ref(&other), &[]).unwrap_err();
            assert!(why.starts_with("eth0: no shaper (tbf or htb) at its root"), "{other:?}: {why}");
        }
        for (kind, why) in [("fq_codel", "is an AQM already"), ("pfifo", "is no shaper")] {
            let told = found("eth0 --aqm pi", &[node(kind, "1:", ROOT, vec![])], &[]).unwrap_err();
            assert!(told.starts_with(&format!("eth0: {kind} 1: at its root {why}")), "{told}");
        }
    }

    #[test]
    fn the_leaf_of_a_hierarchy_is_the_only_one_or_the_one_that_is_named() {
        let root = || node("htb", "1:", ROOT, vec![]);
        // One that is no leaf, and one of another hierarchy.
        let others = [class("1:1", 9_000_000, 1), class("2:7", 9_000_000, 0)];
        let classes = |leaves: &[&str]| -> Vec<Node> {
            others.iter().cloned().chain(leaves.iter().map(|leaf| class(leaf, 1_250_000, 0))).collect()
        };
        let one = found("eth0 --aqm pi", &[root()], &classes(&["1:10"])).unwrap();
        assert_eq!((one.kind.as_str(), one.handle, one.class), ("htb", Handle::new(1, 0x10), true));
        // 1.25 MB/s are 10 Mbit/s; the kernel's own fifo is as long as the device's queue.
        assert_eq!((one.rate.as_bps(), one.limit_bytes, one.limit_pkts), (10_000_000, None, Some(1000)));
        let two = classes(&["1:10", "1:20"]);
        let named = found("eth0 --aqm pi --leaf 1:20", &[root()], &two).unwrap();
        assert_eq!((named.handle, named.others), (Handle::new(1, 0x20), vec![Handle::new(1, 0x10)]));
        assert!(one.others.is_empty());
        let why = found("eth0 --aqm pi", &[root()], &two).unwrap_err();
        assert!(why.starts_with("eth0: htb 1: has several leaf classes (1:10, 1:20)"), "{why}");
        let why = found("eth0 --aqm pi --leaf 1:1", &[root()], &two).unwrap_err();
        assert_eq!(why, "--leaf 1:1: no leaf class of htb 1: on eth0; choose from: 1:10, 1:20");
        let why = found("eth0 --aqm pi", &[root()], &others).unwrap_err();
        assert_eq!(why, "eth0: htb 1: has no class, so it shapes nothing");
    }

    #[test]
    fn what_hangs_in_a_leaf_says_how_much_may_wait() {
        let limits = |kind: &str, parent: &str, limit: u32| {
            let below = node(kind, "10:", Handle::parse(parent).unwrap(), limit.to_ne_bytes().to_vec());
            let nodes = [node("htb", "1:", ROOT, vec![]), below];
            found("eth0 --aqm pi", &nodes, &[class("1:10", 1_250_000, 0)])
                .map(|shaper| (shaper.limit_bytes, shaper.limit_pkts))
        };
        assert_eq!(limits("bfifo", "1:10", 90_000), Ok((Some(90_000), None)));
        assert_eq!(limits("pfifo", "1:10", 400), Ok((None, Some(400))));
        assert_eq!(limits("pfifo_head_drop", "1:10", 300), Ok((None, Some(300))));
        // Of others the device's queue is the best that is known; what hangs in another leaf is none of ours.
        assert_eq!(
            [limits("sfq", "1:10", 9), limits("pfifo", "1:20", 9)],
            [Ok((None, Some(1000))), Ok((None, Some(1000)))]
        );
        assert!(limits("codel", "1:10", 9).unwrap_err().contains("codel below 1:10 is an AQM already"));
    }

    #[test]
    fn what_a_killed_process_left_is_known_by_place_handle_and_kind() {
        assert!(is_ours(&bucket_at("a9e:")));
        let others =
            [bucket_at("1:"), node("htb", "a9e:", ROOT, vec![]), node("tbf", "a9e:", Handle::new(1, 1), vec![])];
        assert!(!others.iter().any(is_ours));
    }
}
