//! Traffic demand of a group: packets that its applications send if the network has the capacity.

use aqumen_transport::rtp::Control;
use aqumen_units::Rate;

use crate::schema::Group;
use crate::traffic::{OfferedLoad, Traffic};
use crate::transport::Protocol;

/// Demand of a group during a run, and state changes of its sources.
pub(crate) struct Demand {
    /// Data packets; infinite for an unlimited transfer.
    pub(crate) packets: f64,
    /// Size of a packet on the wire, bits.
    pub(crate) bits: f64,
    /// Changes between ON and OFF, or of the state of a Markov chain.
    pub(crate) changes: f64,
}

/// Demand of `group` in `seconds`, with a round trip of `rtt_s`.
pub(crate) fn demand(group: &Group, seconds: f64, rtt_s: f64) -> Demand {
    let config = &group.transport.config;
    let payload = f64::from(config.payload_bytes().max(1));
    let count = f64::from(group.count);
    let of = |bytes: f64| (bytes / payload).ceil().max(1.0);
    // Datagrams leave at once; other transfers take a round trip to connect and one to arrive.
    let served_s = if config.reports_delivery() { 2.0 * rtt_s } else { 0.0 };
    let mut bytes = f64::from(config.packet_bytes());
    let packets = match &group.traffic {
        Traffic::Bulk if media_rate(group).is_none() => {
            group.transfer.map_or(f64::INFINITY, |bytes| group.flows() as f64 * of(bytes.0 as f64))
        }
        // Two more packets open and close a connection.
        Traffic::Transfers(kind) => {
            let transfers = match (&kind.think, kind.per_second()) {
                (None, Some(rate)) => rate * seconds,
                (Some(think), _) => count * (1.0 + seconds / (think.0.mean() / 1e9 + served_s)),
                (None, None) => f64::INFINITY,
            };
            transfers * (of(kind.size.0.mean()) + 2.0)
        }
        Traffic::Web(kind) => {
            let page_s = (kind.reading.0.mean() + kind.parsing.0.mean()) / 1e9 + served_s;
            let pages = (1.0 + seconds / page_s).min(kind.pages.map_or(f64::INFINITY, f64::from));
            let objects = kind.objects.0.mean() * (of(kind.embedded.0.mean()) + 2.0);
            count * pages * (of(kind.main.0.mean()) + objects + 2.0)
        }
        // At the best picture, as much as is watched and fetched ahead.
        Traffic::AdaptiveVideo(kind) => {
            let best = kind.ladder.last().map_or(0, |best| kind.segment_bytes(*best));
            let segments = (seconds + kind.buffer.as_secs_f64()) / kind.segment.as_secs_f64();
            let segments = segments.min(kind.segments().map_or(f64::INFINITY, |segments| segments as f64));
            count * (1.0 + segments * of(best as f64))
        }
        _ => source_load(group).map_or(f64::INFINITY, |messages| {
            let packets = messages.bytes / payload;
            // Frames differ in size: one packet of each is cut short.
            let packets = if frames(&group.traffic).is_some() { packets + 1.0 } else { packets.ceil() }.max(1.0);
            bytes += messages.bytes / packets - payload;
            count * seconds * messages.per_second * packets
        }),
    };
    let periods = |on: f64, off: f64| 2e9 * seconds / (on + off).max(1.0);
    let changes = match &group.traffic {
        Traffic::OnOff(kind) => periods(kind.on.0.mean(), kind.off.0.mean()),
        Traffic::SelfSimilar(kind) => {
            f64::from(kind.sources) * periods(kind.on.as_nanos() as f64, kind.off.as_nanos() as f64)
        }
        Traffic::Mmpp(kind) => {
            kind.chains().map_or(0.0, |chains| chains.iter().map(|chain| chain.per_second().1).sum::<f64>() * seconds)
        }
        _ => 0.0,
    };
    Demand { packets, bits: 8.0 * bytes, changes: count * changes }
}

/// Messages of an autonomous source; `None` if unknown.
fn source_load(group: &Group) -> Option<OfferedLoad> {
    match media_rate(group) {
        Some((rate, per_second)) => Some(OfferedLoad { per_second, bytes: rate.as_bps() as f64 / 8.0 / per_second }),
        None => group.traffic.offered().or_else(|| frames(&group.traffic)),
    }
}

/// Highest rate that RTP sets for the source of `group`, and its messages per second; `None` if the source alone
/// decides.
fn media_rate(group: &Group) -> Option<(Rate, f64)> {
    let Protocol::Rtp(rtp) = &group.transport.config else { return None };
    let rate = if rtp.control == Control::Fixed { rtp.initial_rate } else { rtp.max_rate };
    let per_second = match &group.traffic {
        Traffic::Bulk if group.transfer.is_none() => 1.0 / rtp.frame_interval.as_secs_f64(),
        Traffic::Cbr(kind) if rtp.control != Control::Fixed => rate.packets_per_sec(kind.packet),
        Traffic::Video(_) if rtp.control != Control::Fixed => frames(&group.traffic)?.per_second,
        _ => return None,
    };
    Some((rate, per_second))
}

/// Frames of a video: rate and mean size.
fn frames(traffic: &Traffic) -> Option<OfferedLoad> {
    let Traffic::Video(kind) = traffic else { return None };
    let (rate_bps, per_second) = match &kind.file {
        None => (kind.default_rate().as_bps() as f64, kind.default_fps()),
        Some(file) => {
            let length_s = file.trace.schedule(kind.fps).last().map_or(1.0, |last| *last as f64 / 1e9).max(1e-9);
            let own_bps = 8.0 * file.trace.total_bytes() as f64 / length_s;
            (kind.rate.map_or(own_bps, |rate| rate.as_bps() as f64), file.trace.bytes.len() as f64 / length_s)
        }
    };
    Some(OfferedLoad { per_second, bytes: rate_bps / 8.0 / per_second })
}
