//! Network namespaces without a name: a descriptor holds each, so that they end with the process, even after kill -9.

use std::fs::{self, File};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::netlink::{Netlink, Request, SET, attributes};
use crate::{Context, Error};

#[derive(Debug)]
pub(crate) struct Namespace(OwnedFd);

/// A route, with settings of TCP for its destinations.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// Destination: first address and prefix length.
    pub(crate) to: (IpAddr, u8),
    /// Index of the device; `None`: local addresses of this namespace.
    pub(crate) device: Option<u32>,
    /// Initial congestion window, segments.
    pub(crate) initial_window: Option<u32>,
    pub(crate) min_rto_ms: Option<u32>,
    /// Whether connections negotiate ECN.
    pub(crate) ecn: bool,
    /// Highest window that this end advertises, bytes.
    pub(crate) receive_window: Option<u32>,
}

/// Index of the loopback device in every namespace.
pub(crate) const LOOPBACK: u32 = 1;

impl Namespace {
    /// Makes a namespace, with its loopback device up.
    pub(crate) fn new() -> Result<Self, Error> {
        let thread = thread::spawn(|| -> Result<OwnedFd, Error> {
            // SAFETY: the thread ends with this closure, so that nothing else ever runs in the namespace by mistake;
            // descriptors and memory stay shared.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
                .context(|| "cannot make a network namespace (needs root or CAP_SYS_ADMIN)".into())?;
            let file = File::open("/proc/thread-self/ns/net").context(|| "/proc/thread-self/ns/net".into())?;
            Ok(file.into())
        });
        let handle = thread.join().map_err(|_| Error::setup("cannot make a network namespace"))??;
        let namespace = Namespace(handle);
        namespace.within(|| {
            set_link(&mut open()?, LOOPBACK, None, None).context(|| "cannot bring up the loopback device".into())
        })?;
        Ok(namespace)
    }

    /// Opens the namespace called `name`, as `ip netns add` makes it, or at the path `name`; `None`: that of the
    /// calling thread.
    pub(crate) fn open(name: Option<&str>) -> Result<Self, Error> {
        let path = match name {
            Some(path) if path.starts_with('/') => path.into(),
            Some(name) if name.is_empty() || name.contains('/') => {
                return Err(Error::setup(format!(
                    "namespace {name:?}: neither the name of a network namespace nor a path"
                )));
            }
            Some(name) => format!("/run/netns/{name}"),
            None => "/proc/thread-self/ns/net".into(),
        };
        let what = || name.map_or(path.clone(), |name| format!("network namespace {name}"));
        let namespace = Namespace(File::open(&path).context(what)?.into());
        // Any file can be opened; only a network namespace can be entered.
        namespace.within(|| Ok(())).map_err(|error| Error::setup(format!("{}: {error}", what())))?;
        Ok(namespace)
    }

    /// Runs `work` inside: sockets and devices that it makes stay in this namespace.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                rustix::thread::move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
                    .context(|| "cannot enter a network namespace (needs CAP_SYS_ADMIN)".into())?;
                work()
            });
            inside.join().map_err(|_| Error::setup("work in a network namespace failed"))?
        })
    }

    /// Sets `net.*` values, for this namespace alone: `net.ipv4.tcp_ecn`.
    pub(crate) fn set_sysctls(&self, values: &[(String, String)]) -> Result<(), Error> {
        self.within(|| {
            values.iter().try_for_each(|(name, value)| {
                let path = format!("/proc/sys/{}", name.replace('.', "/"));
                fs::write(path, value).context(|| format!("cannot set {name} to {value}"))
            })
        })
    }

    /// Brings `device` up, with a queue of `queue_pkts` packets before its reader.
    pub(crate) fn bring_up(&self, device: u32, mtu: u32, queue_pkts: u32) -> Result<(), Error> {
        self.within(|| {
            set_link(&mut open()?, device, Some(mtu), Some(queue_pkts))
                .context(|| "cannot bring up a TUN device".into())
        })
    }

    pub(crate) fn add_routes(&self, routes: &[Route]) -> Result<(), Error> {
        self.within(|| {
            let mut netlink = open()?;
            routes.iter().try_for_each(|route| {
                netlink.ask(&route.request()).map(drop).context(|| format!("cannot add a route to {}", route.to.0))
            })
        })
    }
}

fn open() -> Result<Netlink, Error> {
    Netlink::open().context(|| "cannot open a netlink socket".into())
}

/// Brings a device up; sets MTU and queue length where they are given.
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
    /// Bit mask of the metrics that the kernel must not learn otherwise.
    pub(super) const LOCK: u16 = 1;
    pub(super) const WINDOW: u16 = 3;
    pub(super) const INITIAL_WINDOW: u16 = 11;
    pub(super) const FEATURES: u16 = 12;
    pub(super) const MIN_RTO: u16 = 13;
    /// Bit of `FEATURES`.
    pub(super) const FEATURE_ECN: u32 = 1;
}

impl Route {
    /// Route to the addresses from `first` on with `bits` leading bits in common; without a device they are local.
    pub(crate) fn new(first: impl Into<IpAddr>, bits: u8, device: Option<u32>) -> Self {
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
            // The kernel reads it only if it is locked.
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

/// Packets that these devices dropped, each in its namespace; a counter that cannot be read counts as zero.
pub(crate) fn dropped_pkts<'a>(devices: impl Iterator<Item = (&'a Namespace, u32)>) -> u64 {
    devices.map(|(namespace, device)| namespace.within(|| drops(device)).unwrap_or(0)).sum()
}

/// Packets that `device`, of the calling thread's namespace, dropped in both directions.
fn drops(device: u32) -> Result<u64, Error> {
    let mut fixed = [0; 16];
    fixed[4..8].copy_from_slice(&device.to_ne_bytes());
    let links = open()?
        .ask(&Request::new(libc::RTM_GETLINK, 0, &fixed))
        .context(|| "cannot read the counters of a TUN device".into())?;
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
    use crate::machine::tun::Tun;
    use crate::netlink::tc;

    /// A namespace with the addresses of all senders and receivers; `None` where a test of `what` cannot run.
    pub(crate) fn namespace_with_addresses(what: &str) -> Option<Namespace> {
        (!skipped(what)).then(|| {
            let namespace = Namespace::new().unwrap();
            namespace.add_routes(&[Route::new(Ipv4Addr::new(10, 0, 0, 0), 8, None)]).unwrap();
            namespace
        })
    }

    /// Whether a test of `what` must be skipped because a program of iproute2 is missing; prints a message if so.
    pub(crate) fn lacks(program: &str, what: &str) -> bool {
        let lacks = std::process::Command::new(program).arg("-V").output().is_err();
        if lacks {
            assert!(std::env::var_os("CI").is_none(), "{what} needs {program}; with CI=true nothing may be skipped");
            eprintln!("Skipped, it needs {program} (Debian package iproute2): {what}.");
        }
        lacks
    }

    #[test]
    fn a_device_has_the_settings_that_it_was_brought_up_with() {
        let Some(here) = namespace_with_addresses("devices brought up") else { return };
        here.bring_up(LOOPBACK, 1234, 77).unwrap();
        let device = |name: &str| here.within(|| Ok(tc::device(&mut open()?, name).unwrap())).unwrap();
        let hardware = libc::ARPHRD_LOOPBACK;
        let name = String::from("lo");
        assert_eq!(device("lo"), Some(tc::Device { index: LOOPBACK, name, hardware, mtu: 1234, queue_length: 77 }));
        assert_eq!(device("absent"), None);
    }

    #[test]
    fn drops_of_a_device_are_counted_in_both_directions() {
        let Some(here) = namespace_with_addresses("what a device discards") else { return };
        // Without IPv6 packets of the kernel itself.
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
            let socket = UdpSocket::bind("10.0.0.1:0").unwrap();
            (0..7).for_each(|_| assert_eq!(socket.send_to(&[0; 10], "192.0.2.1:9").unwrap(), 10));
            Ok(())
        };
        here.within(send).unwrap();
        // There is no reader, and space for two of the seven.
        assert_eq!(drops(), 3 + 5);
        let other = Namespace::new().unwrap();
        let devices = [(&here, tun.index), (&other, LOOPBACK), (&here, tun.index), (&other, 99)];
        assert_eq!(dropped_pkts(devices.into_iter()), 8 + 8);
    }

    #[test]
    fn settings_apply_to_one_namespace_only() {
        let Some(here) = namespace_with_addresses("settings of a namespace") else { return };
        let set = |value: &str| here.set_sysctls(&[("net.ipv4.ip_default_ttl".into(), value.into())]);
        let current = || fs::read_to_string("/proc/sys/net/ipv4/ip_default_ttl").unwrap();
        let outside = current();
        set("77").unwrap();
        assert_eq!((here.within(|| Ok(current())).unwrap().trim(), current()), ("77", outside));
        let error = set("none").unwrap_err().to_string();
        assert!(error.starts_with("cannot set net.ipv4.ip_default_ttl to none: "), "{error}");
    }

    #[test]
    fn a_route_has_the_given_settings_and_no_others() {
        let Some(here) = namespace_with_addresses("routes") else { return };
        if lacks("ip", "routes") {
            return;
        }
        let plain = Route::new(Ipv4Addr::new(192, 0, 2, 0), 25, Some(LOOPBACK));
        let printed = |route: Route| {
            here.add_routes(&[route]).unwrap();
            let output =
                || Ok(std::process::Command::new("ip").args(["route", "show", "192.0.2.0/25"]).output().unwrap());
            let text = String::from_utf8(here.within(output).unwrap().stdout).unwrap();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        // As `ip route` prints them; adding a route again changes it.
        let bare = "192.0.2.0/25 dev lo proto static scope link";
        assert_eq!(printed(plain.clone()), bare);
        let first = Route { initial_window: Some(3), min_rto_ms: Some(50), ..plain.clone() };
        let text = printed(first);
        assert!(text.contains("initcwnd 3") && text.contains("rto_min lock 50ms") && !text.contains("ecn"), "{text}");
        let second = Route { ecn: true, receive_window: Some(28_960), ..plain.clone() };
        let text = printed(second);
        assert!(text.contains("features ecn") && text.contains("window 28960") && !text.contains("rto"), "{text}");
        assert_eq!(printed(plain), bare);
        let error = here.add_routes(&[Route::new(Ipv4Addr::new(192, 0, 2, 1), 25, Some(99))]).unwrap_err();
        assert!(error.to_string().starts_with("cannot add a route to 192.0.2.1: "), "{error}");
    }

    #[test]
    fn a_namespace_has_a_name_or_a_path() {
        let open_error = |name| Namespace::open(Some(name)).unwrap_err().to_string();
        for name in ["", "a/b"] {
            assert!(open_error(name).contains("neither the name of a network namespace nor a path"), "{name}");
        }
        assert!(open_error("no-such").starts_with("network namespace no-such: "), "{}", open_error("no-such"));
        if !skipped("namespaces by path") {
            let own = "/proc/self/ns/net";
            let inode = |namespace: Namespace| {
                namespace.within(|| Ok(fs::read_link("/proc/thread-self/ns/net").unwrap())).unwrap()
            };
            let here = fs::read_link(own).unwrap();
            assert_eq!(
                [Namespace::open(Some(own)), Namespace::open(None)].map(|of| inode(of.unwrap())),
                [here.clone(), here.clone()]
            );
            assert_ne!(inode(Namespace::new().unwrap()), here);
            assert!(open_error("/dev/null").starts_with("network namespace /dev/null: "));
        }
    }
}
