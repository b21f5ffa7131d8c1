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
        "tbf" => of_bucket(device, root, &nodes, options),
        "htb" => of_class(netlink, device, root, &nodes, options),
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
    })
}

fn of_class(
    netlink: &mut Netlink,
    device: &Device,
    root: &Node,
    nodes: &[Node],
    options: &Options,
) -> Result<Shaper, Failure> {
    let classes = tc::classes(netlink, device.index).or_refuse(|| format!("{}: its classes", device.name))?;
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
                "--leaf {wanted}: no leaf class of htb {} on {}; there are: {}",
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

/// Removes a token bucket of ours that a killed process left on `device`. Whether there was one.
pub(crate) fn remove_leftover(netlink: &mut Netlink, device: &Device) -> Result<bool, Failure> {
    let at = || format!("{}: a token bucket left by a killed aqumend", device.name);
    let nodes = tc::disciplines(netlink, device.index).or_refuse(at)?;
    if !nodes.iter().any(|node| node.parent == ROOT && node.handle == OURS && node.kind == "tbf") {
        return Ok(false);
    }
    tc::remove_root(netlink, device.index, OURS).or_refuse(at)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket_of(line: &str, mbit: u64) -> Bucket {
        let read = Options::read(lexopt::Parser::from_args(line.split(' ')));
        let options = read.unwrap_or_else(|error| panic!("{error}")).expect("it asks for no help");
        let device = Device { index: 1, name: "eth0".into(), hardware: 1, mtu: 1500, queue_length: 1000 };
        bucket(&options, Rate::from_bps(mbit * 1_000_000), &device)
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
        };
        let room = |bytes, packets| shaper(bytes, packets).limit_in_packets(500.0);
        assert_eq!([room(Some(5000), None), room(None, Some(7)), room(Some(5000), Some(7))], [10.0, 7.0, 7.0]);
        assert_eq!(room(None, None), 1e9);
    }
}
