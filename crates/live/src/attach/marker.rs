//! The marker in the kernel: loaded, hung at a device's egress, given its orders, and asked what it counted.
//!
//! From Linux 6.6 on it hangs by a TCX link, which goes with its owner whatever ends it. Before, it is a filter of
//! `clsact`, which stays: after a kill it lets everything pass, and the next `attach` takes its place. The filter's
//! name says that it is ours and whether the `clsact` is.

use std::io;
use std::os::fd::AsFd;

use aya::maps::{Array, MapData, PerCpuArray};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader};

use super::rules::Rules;
use crate::netlink::Netlink;
use crate::netlink::tc::{self, Device, Filter};
use crate::{Failure, Tried};

/// Where probabilities of the marker are one.
const ONE: f64 = (1u32 << 31) as f64;
const PROGRAM: &str = "aqumen_marker";
const PRIORITY: u16 = 0xa9e;
const HANDLE: u32 = 0xa9e;
/// The names of our filters: over a `clsact` of others, and over our own.
const NAMES: [&str; 2] = ["aqumen", "aqumen+clsact"];

/// What the controller orders; `struct orders` of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Orders {
    deadline_ns: u64,
    chance: u32,
    ecn: u32,
}

/// What the marker did, in packets as they pass it and in segments as they are on the wire;
/// `struct counts` of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
    /// State of the marker's coin on that processor; means nothing in a sum.
    pub(crate) coin: u64,
    pub(crate) marked: u64,
    pub(crate) marked_segments: u64,
    pub(crate) dropped: u64,
    pub(crate) dropped_segments: u64,
    pub(crate) dropped_bytes: u64,
    /// Chosen, and passed all the same.
    pub(crate) spared: u64,
    /// Chosen, and passed because the order was too old.
    pub(crate) unregulated: u64,
}

/// What never changes while the marker is loaded; `struct setup` of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setup {
    /// Packets that are never marked or dropped.
    pub(crate) spare: Rules,
    /// Packets that are regulated, and counted, where there are any such rules.
    pub(crate) only: Rules,
    pub(crate) link_header: u32,
    /// Zero, as in [`Rules`].
    pub(crate) unused: u32,
}

// SAFETY: all three are `repr(C)` integers without padding, and any bits make a value.
unsafe impl aya::Pod for Orders {}
// SAFETY: as above.
unsafe impl aya::Pod for Counts {}
// SAFETY: as above.
unsafe impl aya::Pod for Setup {}

/// How the marker hangs at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By a TCX link: Linux 6.6.
    Tcx,
    /// As a filter of `clsact`: Linux 4.5.
    Clsact,
}

/// The marker.
pub(crate) struct Marker {
    ebpf: Ebpf,
    orders: Array<MapData, Orders>,
    counts: PerCpuArray<MapData, Counts>,
    hung: Option<Hung>,
}

/// Where it hangs.
#[derive(Clone, Debug)]
struct Hung {
    device: Device,
    /// `None` for a TCX link, which aya holds.
    filter: Option<Filter>,
}

impl Orders {
    /// Choose with probability `p` until `deadline_ns` of the monotonic clock.
    pub(crate) fn new(p: f64, ecn: bool, deadline_ns: u64) -> Self {
        Orders { deadline_ns, chance: (p * ONE).round() as u32, ecn: ecn.into() }
    }
}

impl Marker {
    /// Loads it into the kernel; it hangs nowhere yet and passes everything.
    pub(crate) fn load(setup: &Setup) -> Result<Self, Failure> {
        let object = aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/marker.bpf.o"));
        let mut ebpf = EbpfLoader::new().override_global("SETUP", setup, true).load(object).map_err(refused)?;
        let program: &mut SchedClassifier =
            ebpf.program_mut(PROGRAM).expect("the object has the program").try_into().map_err(refused)?;
        program.load().map_err(refused)?;
        let mut map = |name: &str| ebpf.take_map(name).expect("the object has the map");
        let orders = Array::try_from(map("ORDERS")).map_err(refused)?;
        let counts = PerCpuArray::try_from(map("COUNTS")).map_err(refused)?;
        Ok(Marker { ebpf, orders, counts, hung: None })
    }

    fn program(&mut self) -> &mut SchedClassifier {
        self.ebpf.program_mut(PROGRAM).expect("loaded").try_into().expect("a classifier")
    }

    /// Hangs it at the egress of `device`, in the place of one that a killed process left. Without a way said, TCX
    /// where the kernel has it.
    pub(crate) fn hang(&mut self, netlink: &mut Netlink, device: &Device, way: Option<Way>) -> Result<Way, Failure> {
        if way != Some(Way::Clsact) {
            let options = TcAttachOptions::TcxOrder(LinkOrder::default());
            match self.program().attach_with_options(&device.name, TcAttachType::Egress, options) {
                Ok(_) => {
                    self.hung = Some(Hung { device: device.clone(), filter: None });
                    remove_leftover(netlink, device)?;
                    return Ok(Way::Tcx);
                }
                Err(error) if way == Some(Way::Tcx) => {
                    return Err(Failure::refused(format!(
                        "{}: the marker cannot hang by TCX (Linux 6.6, CONFIG_NET_XGRESS): {}",
                        device.name,
                        word_of(&error)
                    )));
                }
                Err(_) => {}
            }
        }
        let at = || {
            format!("{}: the marker cannot hang at clsact (CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_BPF)", device.name)
        };
        let made = tc::add_clsact(netlink, device.index).or_refuse(at)?;
        let there = tc::egress_filters(netlink, device.index).or_refuse(at)?;
        let left = there.iter().find(|filter| is_ours(filter));
        if let Some(other) = there.iter().find(|f| (f.priority, f.handle) == (PRIORITY, HANDLE) && !is_ours(f)) {
            return Err(Failure::refused(format!(
                "{}: a filter that is not ours ({:?}) has priority {PRIORITY} and handle {HANDLE:#x}; remove it",
                device.name, other.name
            )));
        }
        let our_clsact = made || left.is_some_and(|left| left.name == NAMES[1]);
        let filter =
            Filter { name: NAMES[usize::from(our_clsact)].into(), priority: PRIORITY, handle: HANDLE, program: 0 };
        let fd = self.program().fd().map_err(refused)?.try_clone().map_err(refused)?;
        if let Err(error) = tc::set_egress_filter(netlink, device.index, &filter, fd.as_fd()) {
            if made {
                let _ = tc::remove_clsact(netlink, device.index);
            }
            return Err(Failure::refused(format!("{}: {error}", at())));
        }
        self.hung = Some(Hung { device: device.clone(), filter: Some(filter) });
        Ok(Way::Clsact)
    }

    /// Whether it still hangs where it was hung.
    pub(crate) fn is_hung(&mut self, netlink: &mut Netlink) -> io::Result<bool> {
        let Some(hung) = self.hung.clone() else { return Ok(false) };
        let id = self.program().info().map_err(io::Error::other)?.id();
        Ok(match &hung.filter {
            None => hung_by_tcx(hung.device.index)?.contains(&id),
            Some(_) => {
                let filters = tc::egress_filters(netlink, hung.device.index)?;
                filters.iter().any(|filter| is_ours(filter) && filter.program == id)
            }
        })
    }

    /// Takes it off: its filter, and the `clsact` if that was ours and nobody else hangs on it.
    pub(crate) fn take_off(&mut self, netlink: &mut Netlink) {
        if let Some(Hung { device, filter: Some(filter) }) = self.hung.take() {
            // The device may be gone, and all with it.
            let _ = remove(netlink, &device, &filter);
        }
        // A TCX link goes with the program's descriptors, at the latest when this object does.
        let _ = self.program().unload();
    }

    /// Gives new orders.
    pub(crate) fn order(&mut self, orders: Orders) -> Result<(), Failure> {
        self.orders.set(0, orders, 0).map_err(|error| Failure::lost(format!("the marker's map is gone: {error}")))
    }

    /// What it did since it was loaded.
    pub(crate) fn counts(&self) -> Result<Counts, Failure> {
        let each =
            self.counts.get(&0, 0).map_err(|error| Failure::lost(format!("the marker's map is gone: {error}")))?;
        Ok(each.iter().fold(Counts::default(), |sum, one| sum.plus(one)))
    }
}

impl Counts {
    fn plus(&self, other: &Counts) -> Counts {
        Counts {
            packets: self.packets + other.packets,
            segments: self.segments + other.segments,
            bytes: self.bytes + other.bytes,
            coin: 0,
            marked: self.marked + other.marked,
            marked_segments: self.marked_segments + other.marked_segments,
            dropped: self.dropped + other.dropped,
            dropped_segments: self.dropped_segments + other.dropped_segments,
            dropped_bytes: self.dropped_bytes + other.dropped_bytes,
            spared: self.spared + other.spared,
            unregulated: self.unregulated + other.unregulated,
        }
    }
}

/// The numbers of the programs that hang by TCX at the egress of a device. aya asks for more than their numbers, which
/// needs CAP_SYS_ADMIN.
fn hung_by_tcx(device: u32) -> io::Result<Vec<u32>> {
    /// `union bpf_attr` of `BPF_PROG_QUERY`.
    #[repr(C)]
    #[derive(Default)]
    struct Query {
        target: u32,
        attach_type: u32,
        query_flags: u32,
        attach_flags: u32,
        programs: u64,
        count: u32,
        padding: u32,
        rest: [u64; 4],
    }
    const PROG_QUERY: libc::c_int = 16;
    const TCX_EGRESS: u32 = 47;
    let mut programs = vec![0u32; 64];
    let mut query = Query {
        target: device,
        attach_type: TCX_EGRESS,
        programs: programs.as_mut_ptr() as u64,
        count: programs.len() as u32,
        ..Query::default()
    };
    // SAFETY: the kernel reads and writes `query`, of the size that it is told, and up to `count` numbers at
    // `programs`; both outlive the call.
    let done = unsafe { libc::syscall(libc::SYS_bpf, PROG_QUERY, &raw mut query, size_of::<Query>()) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    programs.truncate(query.count as usize);
    Ok(programs)
}

/// Takes a marker's filter that a killed process left off `device`. Whether there was one.
pub(crate) fn remove_leftover(netlink: &mut Netlink, device: &Device) -> Result<bool, Failure> {
    let at = || format!("{}: a filter left by a killed aqumend", device.name);
    let filters = tc::egress_filters(netlink, device.index).or_refuse(at)?;
    let Some(left) = filters.iter().find(|filter| is_ours(filter)) else { return Ok(false) };
    remove(netlink, device, left).or_refuse(at)?;
    Ok(true)
}

fn is_ours(filter: &Filter) -> bool {
    NAMES.contains(&filter.name.as_str())
}

fn remove(netlink: &mut Netlink, device: &Device, filter: &Filter) -> io::Result<()> {
    match tc::remove_egress_filter(netlink, device.index, filter) {
        // Somebody else took it off; the `clsact` may still be ours.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
        other => other?,
    }
    if filter.name == NAMES[1] && tc::is_clsact_empty(netlink, device.index)? {
        tc::remove_clsact(netlink, device.index)?;
    }
    Ok(())
}

fn refused(error: impl std::error::Error) -> Failure {
    let word = word_of(&error);
    let hint = if word.contains("Operation not permitted") || word.contains("Permission denied") {
        "needs the capabilities CAP_BPF and CAP_NET_ADMIN"
    } else if word.contains("Function not implemented") {
        "this kernel lacks CONFIG_BPF_SYSCALL"
    } else {
        "the kernel refuses the marker"
    };
    Failure::refused(format!("{hint}: {word}"))
}

/// An error with what caused it: aya's own words leave that out.
fn word_of(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        let cause_words = cause.to_string();
        if !words.contains(&cause_words) {
            words = format!("{words}: {cause_words}");
        }
        at = cause.source();
    }
    // The verifier's account of every instruction is for who changes the program.
    words.truncate(words.find(" Verifier output").unwrap_or(words.len()));
    words
}

#[cfg(test)]
mod tests;
