//! How much windows have under way before something ends their growth: a full buffer, a lossy wire.

use crate::cost::round_trip;
use crate::memory::reach::{accesses, narrowest, shortest_room};
use crate::network::Core;
use crate::schema::Spec;
use crate::transport::Protocol;

/// Slow start doubles windows until their senders hear of a loss: once more after it has come to that.
const HEARD: f64 = 2.0;

/// Packets that the flows of group `i` have under way at the most: whatever becomes of them at links, and where a
/// buffer of theirs overflows.
pub(crate) fn most(spec: &Spec, core: &Core, i: usize) -> (f64, f64) {
    let hears = match &spec.flows[i].transport.config {
        Protocol::Tcp(tcp) => !tcp.congestion.samples_delivery(),
        other => matches!(other, Protocol::Sctp(_)),
    };
    // A pipe that changes its length is another.
    if !hears || spec.events.iter().any(|event| event.delay.is_some()) {
        return (f64::INFINITY, f64::INFINITY);
    }
    let lost = until_lost(spec, core, i);
    (lost, lost.min(until_full(spec, core, i)))
}

/// Until a buffer on the way is full, if they come to it faster than it empties.
fn until_full(spec: &Spec, core: &Core, i: usize) -> f64 {
    let narrowest = narrowest(spec, core, i);
    if accesses(spec, core, i) <= narrowest {
        return f64::INFINITY;
    }
    let packet_bytes = f64::from(spec.flows[i].transport.config.packet_bytes());
    let pipe = narrowest * round_trip(spec, core, i, true).as_secs_f64() / (8.0 * packet_bytes);
    HEARD * (pipe + shortest_room(spec, core, i))
}

/// Until one of them is lost on a wire: of each flow as many in the mean as are sent for each that is.
fn until_lost(spec: &Spec, core: &Core, i: usize) -> f64 {
    if spec.events.iter().any(|event| event.loss.is_some()) {
        return f64::INFINITY;
    }
    let (config, count) = (&spec.flows[i].transport.config, spec.flows[i].flows() as f64);
    let losses = core.ways[i].path.iter().filter_map(|link| core.links[*link as usize].loss.as_ref());
    let lost = losses.map(|loss| loss.mean(config.packet_bytes().into())).fold(0.0, f64::max);
    count * (HEARD / lost + f64::from(config.initial_window_pkts()))
}
