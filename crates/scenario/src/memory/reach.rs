//! What can come to a link, and what it carries.

use aqumen_units::Rate;

use crate::field::Buffer;
use crate::line::Medium;
use crate::network::Core;
use crate::schema::{Side, Spec};
use crate::sends::Sends;

/// So many standard deviations cover what sources that send of themselves do more than their mean.
pub(crate) const DEVIATIONS: f64 = 4.0;

/// Bits a second of data that can come to `link`: what access links and the links before it carry.
pub(crate) fn inflow(spec: &Spec, core: &Core, link: usize) -> f64 {
    inflow_of(spec, core, link, |i| accesses(spec, core, i))
}

/// Bits a second that can come to `link`, if group `i` sends so many.
fn inflow_of(spec: &Spec, core: &Core, link: usize, sends: impl Fn(usize) -> f64) -> f64 {
    let mut before: Vec<u32> = Vec::new();
    let mut sum = 0.0;
    for (i, way) in core.ways.iter().enumerate() {
        match way.path.iter().position(|other| *other as usize == link) {
            None => {}
            Some(0) => sum += sends(i),
            Some(at) => before.push(way.path[at - 1]),
        }
    }
    before.sort_unstable();
    before.dedup();
    let fastest = |link: &u32| rates(spec, core, *link as usize).fold(0, u64::max) as f64;
    sum + before.iter().map(fastest).sum::<f64>()
}

/// Bits a second that the sources of group `i` can send.
pub(crate) fn accesses(spec: &Spec, core: &Core, i: usize) -> f64 {
    let access = core.ways[i].access.as_ref();
    access.map_or(f64::INFINITY, |access| access.rate.as_bps() as f64 * f64::from(core.hosts(spec, i, Side::Source)))
}

/// The rates that a link has during the run, bit/s.
pub(crate) fn rates(spec: &Spec, core: &Core, link: usize) -> impl Iterator<Item = u64> {
    let link = &core.links[link];
    let events = spec.events.iter().filter_map(|event| event.capacity).map(Rate::as_bps);
    link.carries.rates.iter().map(|(_, rate)| rate.as_bps()).chain([link.rate.as_bps()]).chain(events)
}

/// Bits a second that the narrowest link on the way of group `i` carries at the most.
pub(crate) fn narrowest(spec: &Spec, core: &Core, i: usize) -> f64 {
    let rates = core.ways[i].path.iter().map(|link| rates(spec, core, *link as usize).fold(0, u64::max));
    rates.min().map_or(f64::INFINITY, |rate| rate as f64)
}

/// Packets that a link with this buffer has room for, of so many bytes each.
pub(crate) fn room(buffer: Buffer, packet_bytes: f64) -> f64 {
    match buffer {
        Buffer::Packets(packets) => f64::from(packets),
        Buffer::Bytes(bytes) => bytes.0 as f64 / packet_bytes,
    }
}

/// Packets of group `i` that the shortest buffer on its way has room for; infinity where no queue forms.
pub(crate) fn shortest_room(spec: &Spec, core: &Core, i: usize) -> f64 {
    let packet_bytes = f64::from(spec.flows[i].transport.config.packet_bytes());
    let forms = core.ways[i].path.iter().filter(|link| queue_forms(spec, core, **link as usize));
    forms.map(|link| room(core.links[*link as usize].buffer, packet_bytes)).fold(f64::INFINITY, f64::min)
}

/// Whether packets wait at the link: more can come than it carries.
pub(crate) fn queue_forms(spec: &Spec, core: &Core, link: usize) -> bool {
    carries_less(spec, core, link, inflow(spec, core, link))
}

/// Whether more than a few packets do: what is sent at one time is more than it carries.
pub(crate) fn queue_grows(spec: &Spec, core: &Core, link: usize) -> bool {
    let sends = |i: usize| {
        let peak = Sends::of(&spec.flows[i]).map_or(f64::INFINITY, |sends| sends.peak_bps);
        accesses(spec, core, i).min(spec.flows[i].flows() as f64 * peak)
    };
    carries_less(spec, core, link, inflow_of(spec, core, link, sends))
}

/// Whether `link` does not carry so many bits a second all the time.
fn carries_less(spec: &Spec, core: &Core, link: usize, bps: f64) -> bool {
    let at = &core.links[link].carries;
    let always =
        at.medium == Medium::Wire && at.outages.is_empty() && spec.events.iter().all(|event| event.state.is_none());
    !always || bps > rates(spec, core, link).fold(u64::MAX, u64::min) as f64
}
