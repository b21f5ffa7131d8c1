//! The marker: a BPF program at a device's egress, with its orders and counters.
//!
//! From Linux 6.6 on a TCX link attaches it, which ends with its owner in every case. Before, it is a filter of
//! `clsact`, which outlives its owner: it then passes everything, and the next `attach` replaces it. The filter's name
//! tells that it is ours, and whether the `clsact` is too.

use std::io;
use std::os::fd::AsFd;

use aqumen_aqm::{PacketCounts, PacketRule, StPi2Params};
use aya::maps::{Array, MapData, PerCpuArray};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader};

use super::rules::Rules;
use crate::netlink::Netlink;
use crate::netlink::tc::{self, Device, Filter};
use crate::{Context, Error};

/// Probability one in the marker's units.
const ONE: f64 = (1u32 << 31) as f64;
/// Weights of flows' rates: steps an octave, octaves below the mean rate, and their number.
const WEIGHTS_PER_OCTAVE: u32 = 8;
const OCTAVES_BELOW: i32 = 12;
const WEIGHTS: u32 = 256;
/// Weight one in the marker's units.
const WEIGHT_ONE: f64 = (1u32 << 16) as f64;
const PROGRAM: &str = "aqumen_marker";
const PRIORITY: u16 = 0xa9e;
const HANDLE: u32 = 0xa9e;
/// Names of our filters: on a `clsact` of another program, and on our own.
const NAMES: [&str; 2] = ["aqumen", "aqumen+clsact"];

/// Orders of the controller; `struct orders` of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Orders {
    deadline_ns: u64,
    chance: u32,
    ecn: u32,
    scalable: u32,
    hold: u32,
    step: u32,
    epoch: u32,
    packet_bytes: u32,
    kib_ns: u32,
    recent_bytes: u64,
    fair_bytes: u64,
    wait_ns: u64,
    read_ns: u64,
}

/// Counters of the marker, in packets as they pass it and in segments as on the wire; `struct counts` of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
    /// State of the marker's random generator on that processor; meaningless in a sum.
    pub(crate) coin: u64,
    pub(crate) marked: u64,
    pub(crate) marked_segments: u64,
    pub(crate) dropped: u64,
    pub(crate) dropped_segments: u64,
    pub(crate) dropped_bytes: u64,
    /// Selected packets that passed because they are exempt.
    pub(crate) spared: u64,
    /// Selected packets that passed because the order had expired.
    pub(crate) unregulated: u64,
    /// The remaining counters are those of a marker that signals flow by flow; see [`PacketCounts`].
    pub(crate) squares: u64,
    /// Modulo 2^64.
    pub(crate) recent: u64,
    pub(crate) flows: u64,
    pub(crate) handshakes: u64,
    pub(crate) handshakes_ns: u64,
    /// State of the present order on that processor; meaningless in a sum.
    pub(crate) order_ns: u64,
    pub(crate) order_bytes: u64,
}

/// Constants of a loaded marker; `struct setup` of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setup {
    /// Packets that are never marked or dropped.
    pub(crate) spare: Rules,
    /// Packets that are regulated and counted; all packets if there are no such rules.
    pub(crate) only: Rules,
    pub(crate) link_header: u32,
    /// Whether signals are added up flow by flow, as ST-PI2 does.
    pub(crate) by_flow: u32,
}

// SAFETY: all three are `repr(C)` integers without padding, and any bits make a value.
unsafe impl aya::Pod for Orders {}
// SAFETY: as above.
unsafe impl aya::Pod for Counts {}
// SAFETY: as above.
unsafe impl aya::Pod for Setup {}

/// Hook of the kernel at which the marker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// TCX link (Linux 6.6).
    Tcx,
    /// Filter of `clsact` (Linux 4.5).
    Clsact,
}

pub(crate) struct Marker {
    ebpf: Ebpf,
    orders: Array<MapData, Orders>,
    counts: PerCpuArray<MapData, Counts>,
    attachment: Option<Attachment>,
}

/// Device and filter to which a marker is attached.
#[derive(Clone, Debug)]
struct Attachment {
    device: Device,
    /// `None` for a TCX link, which aya owns.
    filter: Option<Filter>,
}

impl Orders {
    /// Orders to choose with probability `p` until `deadline_ns` of the monotonic clock.
    pub(crate) fn new(p: f64, ecn: bool, deadline_ns: u64) -> Self {
        Orders { deadline_ns, chance: (p * ONE).round() as u32, ecn: ecn.into(), ..Orders::default() }
    }

    /// Orders to signal flow by flow by `rule` until `deadline_ns`.
    pub(crate) fn by_flow(rule: &PacketRule, deadline_ns: u64) -> Self {
        Orders {
            scalable: (rule.scalable * ONE).round() as u32,
            hold: rule.hold_steps,
            step: rule.step,
            epoch: rule.epoch,
            packet_bytes: rule.packet_bytes.round() as u32,
            recent_bytes: rule.recent_bytes.round() as u64,
            fair_bytes: rule.fair_bytes.round() as u64,
            ..Orders::new(rule.classic, !rule.drops, deadline_ns)
        }
    }

    /// Adds the wait in the queue as of `read_ns`, on a link of `link_bps`.
    pub(crate) fn with_wait(self, wait_s: f64, link_bps: f64, read_ns: u64) -> Self {
        let kib_ns = (8.0 * 1024.0 * 1e9 / link_bps).min(f64::from(u32::MAX)) as u32;
        Orders { wait_ns: (1e9 * wait_s).round() as u64, read_ns, kib_ns, ..self }
    }
}

impl Marker {
    /// Loads the program. It is not attached yet, and passes everything.
    pub(crate) fn load(setup: &Setup) -> Result<Self, Error> {
        let object = aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/marker.bpf.o"));
        let mut ebpf = EbpfLoader::new().override_global("SETUP", setup, true).load(object).map_err(load_error)?;
        let program: &mut SchedClassifier =
            ebpf.program_mut(PROGRAM).expect("the object has the program").try_into().map_err(load_error)?;
        program.load().map_err(load_error)?;
        let mut map = |name: &str| ebpf.take_map(name).expect("the object has the map");
        let orders = Array::try_from(map("ORDERS")).map_err(load_error)?;
        let counts = PerCpuArray::try_from(map("COUNTS")).map_err(load_error)?;
        Ok(Marker { ebpf, orders, counts, attachment: None })
    }

    /// Sets the weights of flows' signals to those of `params`.
    pub(crate) fn set_weights(&mut self, params: &StPi2Params) -> Result<(), Error> {
        let map = self.ebpf.take_map("RATE_WEIGHTS").expect("the object has the map");
        let mut weights: Array<MapData, u32> = Array::try_from(map).map_err(load_error)?;
        for at in 0..WEIGHTS {
            let octave = (at / WEIGHTS_PER_OCTAVE) as i32 - OCTAVES_BELOW;
            let part = (f64::from(at % WEIGHTS_PER_OCTAVE) + 0.5) / f64::from(WEIGHTS_PER_OCTAVE);
            let weight = params.weight(2f64.powi(octave) * (1.0 + part));
            weights.set(at, (weight * WEIGHT_ONE).round() as u32, 0).map_err(load_error)?;
        }
        Ok(())
    }

    fn program(&mut self) -> &mut SchedClassifier {
        self.ebpf.program_mut(PROGRAM).expect("loaded").try_into().expect("a classifier")
    }

    /// Attaches the program at the egress of `device`, in place of one that a killed process left. Without a given
    /// `hook`, TCX is used where the kernel has it.
    pub(crate) fn attach(&mut self, netlink: &mut Netlink, device: &Device, hook: Option<Hook>) -> Result<Hook, Error> {
        if hook != Some(Hook::Clsact) {
            let options = TcAttachOptions::TcxOrder(LinkOrder::default());
            match self.program().attach_with_options(&device.name, TcAttachType::Egress, options) {
                Ok(_) => {
                    self.attachment = Some(Attachment { device: device.clone(), filter: None });
                    remove_leftover(netlink, device)?;
                    return Ok(Hook::Tcx);
                }
                Err(error) if hook == Some(Hook::Tcx) => {
                    return Err(Error::setup(format!(
                        "{}: cannot attach the marker by TCX (Linux 6.6, CONFIG_NET_XGRESS): {}",
                        device.name,
                        error_chain(&error)
                    )));
                }
                Err(_) => {}
            }
        }
        let at = || {
            format!("{}: cannot attach the marker to clsact (CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_BPF)", device.name)
        };
        let added = tc::add_clsact(netlink, device.index).context(at)?;
        let filters = tc::egress_filters(netlink, device.index).context(at)?;
        let leftover = filters.iter().find(|filter| is_ours(filter));
        if let Some(other) = filters.iter().find(|f| (f.priority, f.handle) == (PRIORITY, HANDLE) && !is_ours(f)) {
            return Err(Error::setup(format!(
                "{}: a filter that is not ours ({:?}) has priority {PRIORITY} and handle {HANDLE:#x}; remove it",
                device.name, other.name
            )));
        }
        let our_clsact = added || leftover.is_some_and(|leftover| leftover.name == NAMES[1]);
        let filter =
            Filter { name: NAMES[usize::from(our_clsact)].into(), priority: PRIORITY, handle: HANDLE, program: 0 };
        let fd = self.program().fd().map_err(load_error)?.try_clone().map_err(load_error)?;
        if let Err(error) = tc::set_egress_filter(netlink, device.index, &filter, fd.as_fd()) {
            if added {
                let _ = tc::remove_clsact(netlink, device.index);
            }
            return Err(Error::setup(format!("{}: {error}", at())));
        }
        self.attachment = Some(Attachment { device: device.clone(), filter: Some(filter) });
        Ok(Hook::Clsact)
    }

    /// Whether the program is still attached.
    pub(crate) fn is_attached(&mut self, netlink: &mut Netlink) -> io::Result<bool> {
        let Some(attachment) = self.attachment.clone() else { return Ok(false) };
        let id = self.program().info().map_err(io::Error::other)?.id();
        Ok(match &attachment.filter {
            None => tcx_programs(attachment.device.index)?.contains(&id),
            Some(_) => {
                let filters = tc::egress_filters(netlink, attachment.device.index)?;
                filters.iter().any(|filter| is_ours(filter) && filter.program == id)
            }
        })
    }

    /// Detaches the program: removes its filter, and the `clsact` if it is ours and has no other filter.
    pub(crate) fn detach(&mut self, netlink: &mut Netlink) {
        if let Some(Attachment { device, filter: Some(filter) }) = self.attachment.take() {
            // The device may be gone, and its filters with it.
            let _ = remove(netlink, &device, &filter);
        }
        // A TCX link ends with the program's descriptors, at the latest with this object.
        let _ = self.program().unload();
    }

    pub(crate) fn order(&mut self, orders: Orders) -> Result<(), Error> {
        self.orders.set(0, orders, 0).map_err(|error| Error::runtime(format!("the marker's map is gone: {error}")))
    }

    /// Counters since the program was loaded, summed over processors.
    pub(crate) fn counts(&self) -> Result<Counts, Error> {
        let each =
            self.counts.get(&0, 0).map_err(|error| Error::runtime(format!("the marker's map is gone: {error}")))?;
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
            squares: self.squares + other.squares,
            recent: self.recent.wrapping_add(other.recent),
            flows: self.flows + other.flows,
            handshakes: self.handshakes + other.handshakes,
            handshakes_ns: self.handshakes_ns + other.handshakes_ns,
            order_ns: 0,
            order_bytes: 0,
        }
    }

    /// Counts of single packets and flows since `last`.
    pub(crate) fn packets_since(&self, last: &Counts) -> PacketCounts {
        PacketCounts {
            bytes: self.bytes.saturating_sub(last.bytes) as f64,
            squares: self.squares.saturating_sub(last.squares) as f64,
            recent: self.recent.wrapping_sub(last.recent) as f64,
            flows: self.flows.saturating_sub(last.flows) as u32,
            handshakes: self.handshakes.saturating_sub(last.handshakes) as u32,
            handshakes_s: 1e-9 * self.handshakes_ns.saturating_sub(last.handshakes_ns) as f64,
        }
    }
}

/// Ids of the programs attached by TCX at the egress of a device. The query of aya needs CAP_SYS_ADMIN.
fn tcx_programs(device: u32) -> io::Result<Vec<u32>> {
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
    // SAFETY: the kernel reads and writes `query`, of the given size, and up to `count` numbers at
    // `programs`; both outlive the call.
    let done = unsafe { libc::syscall(libc::SYS_bpf, PROG_QUERY, &raw mut query, size_of::<Query>()) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    programs.truncate(query.count as usize);
    Ok(programs)
}

/// Removes the filter of a marker that a killed process left on `device`. Returns whether there was one.
pub(crate) fn remove_leftover(netlink: &mut Netlink, device: &Device) -> Result<bool, Error> {
    let at = || format!("{}: a filter left by a killed aqumend", device.name);
    let filters = tc::egress_filters(netlink, device.index).context(at)?;
    let Some(leftover) = filters.iter().find(|filter| is_ours(filter)) else { return Ok(false) };
    remove(netlink, device, leftover).context(at)?;
    Ok(true)
}

fn is_ours(filter: &Filter) -> bool {
    NAMES.contains(&filter.name.as_str())
}

fn remove(netlink: &mut Netlink, device: &Device, filter: &Filter) -> io::Result<()> {
    match tc::remove_egress_filter(netlink, device.index, filter) {
        // Another program removed the filter; the `clsact` may still be ours.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
        other => other?,
    }
    if filter.name == NAMES[1] && tc::is_clsact_empty(netlink, device.index)? {
        tc::remove_clsact(netlink, device.index)?;
    }
    Ok(())
}

fn load_error(error: impl std::error::Error) -> Error {
    let message = error_chain(&error);
    let hint = if message.contains("Operation not permitted") || message.contains("Permission denied") {
        "needs the capabilities CAP_BPF and CAP_NET_ADMIN"
    } else if message.contains("Function not implemented") {
        "this kernel lacks CONFIG_BPF_SYSCALL"
    } else {
        "the kernel refuses the marker"
    };
    Error::setup(format!("{hint}: {message}"))
}

/// Message of an error with its causes, which aya's own message omits.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_message = cause.to_string();
        if !message.contains(&cause_message) {
            message = format!("{message}: {cause_message}");
        }
        source = cause.source();
    }
    // The verifier's log is of use only to developers of the program.
    message.truncate(message.find(" Verifier output").unwrap_or(message.len()));
    message
}

#[cfg(test)]
mod tests;
