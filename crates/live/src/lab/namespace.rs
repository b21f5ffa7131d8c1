//! Network namespaces without a name: a descriptor holds each, so that they are gone with the
//! process, even after kill -9.

use std::fs::{self, File};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::netlink::{Netlink, Request, SET, attributes};
use crate::{Failure, Tried};

/// A network namespace of our own.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

/// Where packets to `to` go, and what TCP is to know of the way.
#[derive(Clone, Debug)]
pub struct Route {
    /// The first address, and how many leading bits of it count.
    pub to: (IpAddr, u8),
    /// Index of the device; `None`: these addresses are this namespace's own.
    pub device: Option<u32>,
    /// Congestion window at the start, segments.
    pub initial_window: Option<u32>,
    /// Least retransmission timeout, milliseconds.
    pub min_rto_ms: Option<u32>,
    /// Whether connections ask for ECN.
    pub ecn: bool,
    /// What this end offers at most, bytes.
    pub receive_window: Option<u32>,
}

/// Index of the loopback device in every namespace.
pub const LOOPBACK: u32 = 1;

impl Namespace {
    /// A new namespace, with its loopback device up.
    pub fn new() -> Result<Self, Failure> {
        let made = thread::spawn(|| -> Result<OwnedFd, Failure> {
            // SAFETY: the thread ends with this closure, so that nothing else ever runs in the namespace by mistake;
            // descriptors and memory stay shared.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
                .or_refuse(|| "cannot make a network namespace (needs root or CAP_SYS_ADMIN)".into())?;
            let file = File::open("/proc/thread-self/ns/net").or_refuse(|| "/proc/thread-self/ns/net".into())?;
            Ok(file.into())
        });
        let handle = made.join().map_err(|_| Failure::refused("cannot make a network namespace"))??;
        let namespace = Namespace(handle);
        namespace.within(|| {
            set_link(&mut open()?, LOOPBACK, None, None).or_refuse(|| "cannot bring up the loopback device".into())
        })?;
        Ok(namespace)
    }

    /// The namespace called `name`, as `ip netns add` makes it, or at the path `name`, as of a process; `None`: that of
    /// the calling thread.
    pub fn existing(name: Option<&str>) -> Result<Self, Failure> {
        let path = match name {
            Some(path) if path.starts_with('/') => path.into(),
            Some(name) if name.is_empty() || name.contains('/') => {
                return Err(Failure::refused(format!(
                    "namespace {name:?}: neither the name of a network namespace nor a path"
                )));
            }
            Some(name) => format!("/run/netns/{name}"),
            None => "/proc/thread-self/ns/net".into(),
        };
        let what = || name.map_or(path.clone(), |name| format!("network namespace {name}"));
        let namespace = Namespace(File::open(&path).or_refuse(what)?.into());
        // Any file can be opened; only a network namespace can be entered.
        namespace.within(|| Ok(())).map_err(|failure| Failure::refused(format!("{}: {failure}", what())))?;
        Ok(namespace)
    }

    /// What `work` answers, done inside: sockets and devices that it makes belong to this namespace for good.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                rustix::thread::move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
                    .or_refuse(|| "cannot enter a network namespace (needs CAP_SYS_ADMIN)".into())?;
                work()
            });
            inside.join().map_err(|_| Failure::refused("work in a network namespace failed"))?
        })
    }

    /// Sets `net.*` values, for this namespace alone: `net.ipv4.tcp_ecn`.
    pub fn set_sysctls(&self, values: &[(String, String)]) -> Result<(), Failure> {
        self.within(|| {
            values.iter().try_for_each(|(name, value)| {
                let path = format!("/proc/sys/{}", name.replace('.', "/"));
                fs::write(path, value).or_refuse(|| format!("cannot set {name} to {value}"))
            })
        })
    }

    /// Brings `device` up, with room for `queue_pkts` packets in front of whoever reads it.
    pub fn bring_up(&self, device: u32, mtu: u32, queue_pkts: u32) -> Result<(), Failure> {
        self.within(|| {
            set_link(&mut open()?, device, Some(mtu), Some(queue_pkts))
                .or_refuse(|| "cannot bring up a TUN device".into())
        })
    }

    /// Adds `routes`.
    pub fn add_routes(&self, routes: &[Route]) -> Result<(), Failure> {
        self.within(|| {
            let mut netlink = open()?;
            routes.iter().try_for_each(|route| {
                netlink.ask(&route.request()).map(drop).or_refuse(|| format!("cannot add a route to {}", route.to.0))
            })
        })
    }
}

fn open() -> Result<Netlink, Failure> {
    Netlink::open().or_refuse(|| "cannot open a netlink socket".into())
}

/// Brings a device up; with its MTU and the length of its queue where they are given.
fn set_link(netlink: &mut Netlink, index: u32, mtu: Option<u32>, queue_pkts: Option<u32>) -> std::io::Result<()> {
    let up = libc::IFF_UP as u32;
    // ifinfomsg: family, padding, type, index, flags, which flags change.
    let mut fixed = [0; 16];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[8..12].copy_from_slice(&up.to_ne_bytes());
    fixed[12..16].copy_from_slice(&up.to_ne_bytes());
    let mut request = Request::new(libc::RTM_NEWLINK, 0, &fixed);
    if let Some(mtu) = mtu {
        request = request.put_u32(libc::IFLA_MTU, mtu);
    }
    if let Some(length) = queue_pkts {
        request = request.put_u32(libc::IFLA_TXQLEN, length);
    }
    netlink.ask(&request).map(drop)
}

/// Metrics of a route (`RTAX_*`) that libc does not name.
mod metric {
    /// Which of the others the kernel must not learn otherwise.
    pub(super) const LOCK: u16 = 1;
    pub(super) const WINDOW: u16 = 3;
    pub(super) const INITIAL_WINDOW: u16 = 11;
    pub(super) const FEATURES: u16 = 12;
    pub(super) const MIN_RTO: u16 = 13;
    /// Bit of `FEATURES`.
    pub(super) const FEATURE_ECN: u32 = 1;
}

impl Route {
    /// The addresses from `first` on, of which `bits` leading bits count, by `device`; `None`: they are our own.
    pub fn new(first: impl Into<IpAddr>, bits: u8, device: Option<u32>) -> Self {
        let to = (first.into(), bits);
        Route { to, device, initial_window: None, min_rto_ms: None, ecn: false, receive_window: None }
    }

    fn request(&self) -> Request {
        let (address, bits) = self.to;
        let local = self.device.is_none();
        let (family, address) = match address {
            IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
            IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
        };
        let (table, kind, scope) = if local {
            (libc::RT_TABLE_LOCAL, libc::RTN_LOCAL, libc::RT_SCOPE_HOST)
        } else {
            (libc::RT_TABLE_MAIN, libc::RTN_UNICAST, libc::RT_SCOPE_LINK)
        };
        // rtmsg: family, bits of destination and source, type of service, table, protocol, scope, type, flags.
        let mut fixed = [0; 12];
        fixed[..8].copy_from_slice(&[family as u8, bits, 0, 0, table, libc::RTPROT_STATIC, scope, kind]);
        let request = Request::new(libc::RTM_NEWROUTE, SET, &fixed)
            .put(libc::RTA_DST, &address)
            .put_u32(libc::RTA_OIF, self.device.unwrap_or(LOOPBACK));
        let metrics: Vec<(u16, u32)> = [
            // The kernel reads it only where it is locked.
            (metric::LOCK, self.min_rto_ms.map(|_| 1 << metric::MIN_RTO)),
            (metric::WINDOW, self.receive_window),
            (metric::INITIAL_WINDOW, self.initial_window),
            (metric::MIN_RTO, self.min_rto_ms),
            (metric::FEATURES, self.ecn.then_some(metric::FEATURE_ECN)),
        ]
        .into_iter()
        .filter_map(|(kind, value)| Some((kind, value?)))
        .collect();
        if metrics.is_empty() {
            return request;
        }
        request.nest(libc::RTA_METRICS, |nest| {
            metrics.iter().fold(nest, |nest, (kind, value)| nest.put_u32(*kind, *value))
        })
    }
}

/// Packets that devices, each of its namespace, discarded; as far as their kernel says.
pub fn discarded<'a>(devices: impl Iterator<Item = (&'a Namespace, u32)>) -> u64 {
    devices.map(|(namespace, device)| namespace.within(|| drops(device)).unwrap_or(0)).sum()
}

/// Packets that `device`, of the calling thread's namespace, discarded: on their way to us and from us.
fn drops(device: u32) -> Result<u64, Failure> {
    let mut fixed = [0; 16];
    fixed[4..8].copy_from_slice(&device.to_ne_bytes());
    let links = open()?
        .ask(&Request::new(libc::RTM_GETLINK, 0, &fixed))
        .or_refuse(|| "cannot read the counters of a TUN device".into())?;
    let stats = links.iter().flat_map(|link| attributes(link.body.get(16..).unwrap_or(&[])));
    let stats = stats.filter(|(kind, _)| *kind == libc::IFLA_STATS64).map(|(_, value)| value).next();
    // rtnl_link_stats64: packets, bytes, errors and drops, each received and sent.
    let number =
        |at: usize| stats.and_then(|stats| Some(u64::from_ne_bytes(stats.get(8 * at..8 * at + 8)?.try_into().ok()?)));
    Ok(number(6).unwrap_or(0) + number(7).unwrap_or(0))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;
    use crate::common::skipped;
    use crate::lab::tun::Tun;
    use crate::lab::world::{self, NET_BITS, RECEIVERS, SENDERS};
    use crate::netlink::tc;

    /// A namespace whose own are the addresses of all senders and receivers; `None` where a test of `what` cannot run.
    pub(in crate::lab) fn of_both_sides(what: &str) -> Option<Namespace> {
        (!skipped(what)).then(|| {
            let namespace = Namespace::new().unwrap();
            let own = |net| Route::new(Ipv4Addr::from(net), NET_BITS, None);
            namespace.add_routes(&[own(SENDERS), own(RECEIVERS)]).unwrap();
            namespace
        })
    }

    /// Whether a test of `what` cannot run here for want of a program of iproute2; then one line says so.
    pub(crate) fn lacks(program: &str, what: &str) -> bool {
        let lacks = std::process::Command::new(program).arg("-V").output().is_err();
        if lacks {
            assert!(std::env::var_os("CI").is_none(), "{what} needs {program}; with CI=true nothing may be skipped");
            eprintln!("Skipped, it needs {program} (Debian package iproute2): {what}.");
        }
        lacks
    }

    #[test]
    fn a_device_is_as_it_was_brought_up() {
        let Some(here) = of_both_sides("devices brought up") else { return };
        here.bring_up(LOOPBACK, 1234, 77).unwrap();
        let device = |name: &str| here.within(|| Ok(tc::device(&mut open()?, name).unwrap())).unwrap();
        let hardware = libc::ARPHRD_LOOPBACK;
        let name = String::from("lo");
        assert_eq!(device("lo"), Some(tc::Device { index: LOOPBACK, name, hardware, mtu: 1234, queue_length: 77 }));
        assert_eq!(device("absent"), None);
    }

    #[test]
    fn what_a_device_discarded_on_either_way_is_counted() {
        let Some(here) = of_both_sides("what a device discards") else { return };
        // The kernel's own packets of IPv6 stay away.
        here.set_sysctls(&[("net.ipv6.conf.default.disable_ipv6".into(), "1".into())]).unwrap();
        let tun = here.within(|| Tun::new("aqumen", false)).unwrap();
        here.bring_up(tun.index, 1500, 2).unwrap();
        here.add_routes(&[Route::new(Ipv4Addr::new(192, 0, 2, 0), 24, Some(tun.index))]).unwrap();
        let drops = || here.within(|| drops(tun.index)).unwrap();
        assert_eq!(drops(), 0);
        for _ in 0..3 {
            tun.write(&[0; 40]).expect_err("neither IPv4 nor IPv6");
        }
        assert_eq!(drops(), 3);
        let send = || {
            let socket = UdpSocket::bind((world::sender(0), 0)).unwrap();
            (0..7).for_each(|_| assert_eq!(socket.send_to(&[0; 10], "192.0.2.1:9").unwrap(), 10));
            Ok(())
        };
        here.within(send).unwrap();
        // Nobody reads, and there is room for two of the seven.
        assert_eq!(drops(), 3 + 5);
        let other = Namespace::new().unwrap();
        let devices = [(&here, tun.index), (&other, LOOPBACK), (&here, tun.index), (&other, 99)];
        assert_eq!(discarded(devices.into_iter()), 8 + 8);
    }

    #[test]
    fn what_is_set_of_a_namespace_is_set_there_and_nowhere_else() {
        let Some(here) = of_both_sides("settings of a namespace") else { return };
        let set = |value: &str| here.set_sysctls(&[("net.ipv4.ip_default_ttl".into(), value.into())]);
        let shown = || fs::read_to_string("/proc/sys/net/ipv4/ip_default_ttl").unwrap();
        let outside = shown();
        set("77").unwrap();
        assert_eq!((here.within(|| Ok(shown())).unwrap().trim(), shown()), ("77", outside));
        let refused = set("none").unwrap_err().to_string();
        assert!(refused.starts_with("cannot set net.ipv4.ip_default_ttl to none: "), "{refused}");
    }

    #[test]
    fn a_route_tells_its_tcp_what_was_said_and_nothing_else() {
        let Some(here) = of_both_sides("routes") else { return };
        if lacks("ip", "routes") {
            return;
        }
        let plain = Route::new(Ipv4Addr::new(192, 0, 2, 0), 25, Some(LOOPBACK));
        let told = |route: Route| {
            here.add_routes(&[route]).unwrap();
            let output =
                || Ok(std::process::Command::new("ip").args(["route", "show", "192.0.2.0/25"]).output().unwrap());
            let text = String::from_utf8(here.within(output).unwrap().stdout).unwrap();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        // As `ip route` writes them; the same route again is changed.
        let bare = "192.0.2.0/25 dev lo proto static scope link";
        assert_eq!(told(plain.clone()), bare);
        let first = Route { initial_window: Some(3), min_rto_ms: Some(50), ..plain.clone() };
        let text = told(first);
        assert!(text.contains("initcwnd 3") && text.contains("rto_min lock 50ms") && !text.contains("ecn"), "{text}");
        let second = Route { ecn: true, receive_window: Some(28_960), ..plain.clone() };
        let text = told(second);
        assert!(text.contains("features ecn") && text.contains("window 28960") && !text.contains("rto"), "{text}");
        assert_eq!(told(plain), bare);
        let refused = here.add_routes(&[Route::new(Ipv4Addr::new(192, 0, 2, 1), 25, Some(99))]).unwrap_err();
        assert!(refused.to_string().starts_with("cannot add a route to 192.0.2.1: "), "{refused}");
    }

    #[test]
    fn a_namespace_has_a_name_or_a_path() {
        let refused = |name| Namespace::existing(Some(name)).unwrap_err().to_string();
        for name in ["", "a/b"] {
            assert!(refused(name).contains("neither the name of a network namespace nor a path"), "{name}");
        }
        assert!(refused("no-such").starts_with("network namespace no-such: "), "{}", refused("no-such"));
        if !skipped("namespaces by path") {
            let own = "/proc/self/ns/net";
            let inode = |namespace: Namespace| {
                namespace.within(|| Ok(fs::read_link("/proc/thread-self/ns/net").unwrap())).unwrap()
            };
            let here = fs::read_link(own).unwrap();
            assert_eq!(
                [Namespace::existing(Some(own)), Namespace::existing(None)].map(|of| inode(of.unwrap())),
                [here.clone(), here.clone()]
            );
            assert_ne!(inode(Namespace::new().unwrap()), here);
            assert!(refused("/dev/null").starts_with("network namespace /dev/null: "));
        }
    }
}
