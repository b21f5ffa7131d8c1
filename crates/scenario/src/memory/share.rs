//! What a group brings to the network at one time, by its sources, its windows and its law of sending.

use aqumen_transport::tcp::{Ack, Congestion, TcpConfig, Variant};

use crate::cost::{base_rtt_s, offered};
use crate::law::Law;
use crate::memory::filling::Flows;
use crate::memory::kept::{DELIVERY, GROWN};
use crate::memory::reach::{DEVIATIONS, accesses, narrowest};
use crate::memory::windows;
use crate::network::Core;
use crate::schema::{Group, Spec};
use crate::sends::{Sends, answers, told};
use crate::traffic::Traffic;

/// So many times the mean of their law are flows' transfers that are under way together.
const MANY_TIMES: f64 = 10.0;

/// How many times what the narrowest link carries comes of rates that are told, until they hear that packets are lost.
const OVERSHOOT: f64 = 2.0;

/// BBR goes on whatever is lost: as many round trips' worth. More where flows start apart: `scripts/memory-draw` shows
/// what that leaves out.
const HELD_UP: f64 = 3.0;

/// What a group brings.
pub(crate) struct Share {
    /// Packets at one time at the most, of all its flows.
    pub(crate) admitted: f64,
    /// Those that may wait at access links.
    pub(crate) at_access: f64,
    /// What is kept of one that waits beside the port's part, and of one under way, bytes.
    pub(crate) each: f64,
    /// What is kept of those that arrived beyond one that is lost again, as a part of those under way.
    pub(crate) held_up: f64,
    /// If its flows answer signals: their windows.
    pub(crate) flows: Option<Flows>,
    /// Packets a second that come whatever becomes of them.
    pub(crate) per_second: f64,
    /// Bits a second that its sources send, and while all of them do; the variance of the packets in a second.
    pub(crate) bps: f64,
    pub(crate) peak_bps: f64,
    pub(crate) variance: f64,
    pub(crate) packet_bytes: f64,
    /// Packets that a flow sends at one moment.
    pub(crate) together: f64,
}

/// What group `i` brings.
pub(crate) fn share(spec: &Spec, core: &Core, i: usize) -> Share {
    let group = &spec.flows[i];
    let config = &group.transport.config;
    let (duration_s, rtt_s) = (spec.duration.as_secs_f64(), base_rtt_s(spec, core, i));
    let (count, packet_bytes) = (group.flows() as f64, f64::from(config.packet_bytes()));
    let first = f64::from(config.initial_window_pkts());
    let window = if group.traffic == Traffic::Bulk { config.window_of_full_pkts() } else { config.window_pkts() };
    let window = window.map_or(f64::INFINITY, f64::from);
    let (sends, answers) = (Sends::of(group), answers(group));
    let asked = match &sends {
        Some(sends) => count * sends.in_seconds(duration_s) + DEVIATIONS * (count * sends.variance * duration_s).sqrt(),
        None => offered(group, duration_s, rtt_s).packets,
    };
    // What datagrams lose they no longer wait for.
    let mut admitted = if answers { asked.min(count * window.min(at_once(group))) } else { asked };
    let narrowest = narrowest(spec, core, i);
    let mut most_bps = f64::INFINITY;
    if let (true, Some(sends)) = (told(group).is_some(), &sends) {
        // A rate that starts as it may and grows until packets are lost does not go far beyond what the way carries.
        most_bps = f64::max(count * sends.first_bps, OVERSHOOT * narrowest);
    } else if answers {
        // An acknowledgement lets in what it acknowledges, and no more than as much again.
        let carried = narrowest.min(accesses(spec, core, i));
        let acknowledged = carried * duration_s / (8.0 * sends.map_or(packet_bytes, |sends| sends.packet_bytes));
        let rounds = (duration_s / rtt_s).floor();
        // Slow start, or a packet in each round trip.
        let ledbat = config.tcp().is_some_and(|tcp| tcp.congestion == Congestion::Ledbat);
        let grown = if ledbat { first + rounds + 1.0 } else { first * 2f64.powf(rounds.min(60.0) + 1.0) };
        admitted = admitted.min(count * grown).min(count * first + acknowledged);
    }
    let (anyway, beyond_links) = windows::most(spec, core, i);
    let at_access = admitted.min(anyway + count * first);
    let admitted = admitted.min(beyond_links + count * first);
    let window = (admitted / count).max(first);
    // What a receiver does that answers at once is worked out ahead; what it tells beyond a gap has a place of its own.
    let ahead = |tcp: &TcpConfig| match tcp.delayed_ack {
        Some(_) => 0,
        None if tcp.variant == Variant::Sack => DELIVERY + size_of::<Ack>(),
        None => DELIVERY,
    };
    let by_value = config.tcp().map_or(size_of::<aqumen_transport::Packet>(), ahead);
    let flows = Flows {
        count: group.flows().min(u64::from(u32::MAX)) as u32,
        first: first as u32,
        most: window.min(1e9) as u32,
        ecn: config.ecn(),
    };
    Share {
        together: if answers { first } else { 1.0 },
        admitted,
        at_access,
        each: GROWN * (config.kept_bytes() + by_value) as f64,
        held_up: if config.tcp().is_some_and(|tcp| tcp.congestion.samples_delivery()) { HELD_UP } else { 0.0 },
        flows: answers.then_some(flows),
        per_second: sends.map_or(0.0, |sends| count * sends.regardless),
        bps: sends.map_or(f64::INFINITY, |sends| (count * sends.bps).min(most_bps)),
        variance: sends.map_or(0.0, |sends| count * sends.variance),
        peak_bps: sends.map_or(f64::INFINITY, |sends| count * sends.peak_bps),
        packet_bytes: sends.map_or(packet_bytes, |sends| sends.packet_bytes),
    }
}

/// Packets of one flow at the most that its application has asked for and not yet got: one transfer at a time, one
/// object, one segment of a film.
fn at_once(group: &Group) -> f64 {
    let payload = f64::from(group.transport.config.payload_bytes().max(1));
    // With those that open and close.
    let of = |size: &Law| (largest(size) / payload).ceil() + 2.0;
    match &group.traffic {
        Traffic::Transfers(kind) => of(&kind.size.0),
        // A session has a flow for each of its connections, and its main object comes alone.
        Traffic::Web(kind) => of(&kind.embedded.0).max(of(&kind.main.0) / f64::from(kind.connections)),
        Traffic::AdaptiveVideo(kind) => {
            kind.ladder.last().map_or(0.0, |best| (kind.segment_bytes(*best) as f64 / payload).ceil() + 2.0)
        }
        _ => f64::INFINITY,
    }
}

/// What a size is at the most, bytes, as far as many together are concerned: of a law many times its mean.
fn largest(size: &Law) -> f64 {
    if let Law::Fixed(bytes) = size { *bytes } else { MANY_TIMES * size.mean() }
}
