//! What the sources of a group put on the wire if the network has room for it: packets and bits a second, the most that
//! it becomes, how unevenly it comes, and whether it answers what becomes of it.

use aqumen_transport::rtp::{Control, RtpConfig};
use aqumen_units::Rate;

use crate::mmpp::Chain;
use crate::schema::Group;
use crate::traffic::{Offered, Traffic};
use crate::transport::Protocol;

/// What one flow of a group sends, on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sends {
    /// Messages a second, and packets of each; those with which it starts.
    pub(crate) messages: f64,
    pub(crate) packets: f64,
    /// Bits a second in the long run, and while it sends; those with which it starts. Where a control tells it its rate
    /// the first are the highest.
    pub(crate) bps: f64,
    pub(crate) peak_bps: f64,
    pub(crate) first_bps: f64,
    /// The variance of the number of packets in a second.
    pub(crate) variance: f64,
    /// Bytes of a packet, the smallest mean that they have.
    pub(crate) packet_bytes: f64,
    /// Packets a second that come whatever becomes of them.
    pub(crate) regardless: f64,
}

impl Sends {
    /// What a flow of `group` sends; `None` where that follows from the network alone, or from what nobody knows.
    pub(crate) fn of(group: &Group) -> Option<Sends> {
        let traffic = &group.traffic;
        if let Some(rtp) = told(group) {
            let (least, most) = match rtp.control {
                Control::Fixed => (rtp.initial_rate, rtp.initial_rate),
                _ => (rtp.min_rate, rtp.max_rate),
            };
            let at = |rate| Some(wire(group, at_rate(traffic, rtp, rate)?));
            let (least, first, most) = (at(least)?, at(rtp.initial_rate)?, at(most)?);
            return Some(Sends {
                first_bps: first.bps,
                packet_bytes: least.packet_bytes.min(most.packet_bytes),
                regardless: least.messages * least.packets,
                ..most
            });
        }
        let each = traffic.offered().or_else(|| frames(traffic)).or_else(|| requests(group))?;
        let sends = wire(group, each);
        let regardless = if answers(group) { 0.0 } else { sends.messages * sends.packets };
        Some(Sends { regardless, ..sends })
    }

    /// Packets in so many seconds, and one.
    pub(crate) fn in_seconds(&self, seconds: f64) -> f64 {
        self.messages * self.packets * seconds + 1.0
    }
}

/// Whether flows of `group` slow down where the network has less room.
pub(crate) fn answers(group: &Group) -> bool {
    match &group.transport.config {
        // What an application writes by itself leaves as it is written.
        Protocol::Rtp(rtp) => rtp.control != Control::Fixed && follows(&group.traffic),
        other => other.adapts(),
    }
}

/// The RTP that tells the sources of `group` their rate, or makes the media by itself.
pub(crate) fn told(group: &Group) -> Option<&RtpConfig> {
    let Protocol::Rtp(rtp) = &group.transport.config else { return None };
    let makes = group.traffic == Traffic::Bulk && group.transfer.is_none();
    (makes || rtp.control != Control::Fixed && follows(&group.traffic)).then_some(rtp)
}

/// Whether a source sends at the rate that it is told.
fn follows(traffic: &Traffic) -> bool {
    matches!(traffic, Traffic::Bulk | Traffic::Cbr(_) | Traffic::Video(_) | Traffic::Own(_))
}

/// What a source that is told `rate` writes.
fn at_rate(traffic: &Traffic, rtp: &RtpConfig, rate: Rate) -> Option<Offered> {
    let bytes_per_s = rate.as_bps() as f64 / 8.0;
    let per_second = match traffic {
        Traffic::Bulk => 1.0 / rtp.frame_interval.as_secs_f64(),
        Traffic::Cbr(kind) => bytes_per_s / kind.packet.0 as f64,
        Traffic::Video(_) => frames(traffic)?.per_second,
        _ => return None,
    };
    Some(Offered { per_second, bytes: bytes_per_s / per_second })
}

/// Frames of a video: how many a second, and their mean size.
pub(crate) fn frames(traffic: &Traffic) -> Option<Offered> {
    let Traffic::Video(kind) = traffic else { return None };
    let (bytes_per_s, per_second) = match &kind.file {
        None => (kind.rate_of_law().as_bps() as f64 / 8.0, kind.fps_of_law()),
        Some(file) => {
            let schedule = file.trace.schedule(kind.fps);
            let length_s = schedule.last().map_or(1.0, |last| *last as f64 / 1e9).max(1e-9);
            let own = file.trace.total_bytes() as f64 / length_s;
            (kind.rate.map_or(own, |rate| rate.as_bps() as f64 / 8.0), file.trace.bytes.len() as f64 / length_s)
        }
    };
    Some(Offered { per_second, bytes: bytes_per_s / per_second })
}

/// Transfers and pages of a flow over a transport that lets each leave at once: what it asks for if each is there as
/// soon as it is asked for. Over others it follows from the network.
fn requests(group: &Group) -> Option<Offered> {
    if answers(group) {
        return None;
    }
    let seconds = |nanos: f64| (nanos / 1e9).max(1e-9);
    match &group.traffic {
        Traffic::Transfers(kind) => {
            let per_second = match &kind.think {
                Some(think) => 1.0 / seconds(think.0.mean()),
                None => kind.per_second()? / group.flows() as f64,
            };
            Some(Offered { per_second, bytes: kind.size.0.mean() })
        }
        Traffic::Web(kind) => {
            let objects = 1.0 + kind.objects.0.mean();
            let bytes = (kind.main.0.mean() + kind.objects.0.mean() * kind.embedded.0.mean()) / objects;
            let per_second = objects / seconds(kind.reading.0.mean() + kind.parsing.0.mean());
            Some(Offered { per_second, bytes })
        }
        _ => None,
    }
}

/// Messages cut into packets.
fn wire(group: &Group, each: Offered) -> Sends {
    let config = &group.transport.config;
    let payload = f64::from(config.payload_bytes().max(1));
    let headers = f64::from(config.packet_bytes()) - payload;
    // Frames differ: one packet of each is cut short.
    let packets =
        if frames(&group.traffic).is_some() { each.bytes / payload + 1.0 } else { (each.bytes / payload).ceil() };
    let packets = packets.max(1.0);
    let bytes = each.bytes + packets * headers;
    let bps = 8.0 * each.per_second * bytes;
    Sends {
        messages: each.per_second,
        packets,
        bps,
        peak_bps: bps * peak_to_mean(&group.traffic),
        first_bps: bps,
        variance: scatter(&group.traffic, each.per_second) * packets * packets,
        packet_bytes: bytes / packets,
        regardless: 0.0,
    }
}

/// The variance of the number of messages of a source that sends of itself, per second: that of a Poisson process, or
/// of one that is ON and OFF for exponential times; none if they are evenly spaced. Frames of different sizes count as
/// so many messages of their mean.
fn scatter(traffic: &Traffic, per_second: f64) -> f64 {
    match traffic {
        Traffic::Cbr(_) | Traffic::Bulk => 0.0,
        Traffic::OnOff(kind) => {
            let (on, off) = (kind.on.0.mean() / 1e9, kind.off.0.mean() / 1e9);
            let peak = kind.rate.packets_per_sec(kind.packet);
            2.0 * (peak * on * off).powi(2) / (on + off).powi(3)
        }
        Traffic::Voip(kind) if kind.suppress => {
            let (on, off) = (kind.talk.0.mean() / 1e9, kind.silence.0.mean() / 1e9);
            let peak = 1.0 / kind.codec.frame().1.as_secs_f64();
            2.0 * (peak * on * off).powi(2) / (on + off).powi(3)
        }
        Traffic::Voip(_) => 0.0,
        // Bursts of any length: as if each second were all or nothing, of a source of a few.
        Traffic::SelfSimilar(kind) => per_second * per_second * (FEW_SOURCES / f64::from(kind.sources)).min(1.0),
        Traffic::Mmpp(_) => per_second * per_second,
        // The squares of the sizes of frames are up to a few times that of their mean.
        Traffic::Video(_) => FRAMES * per_second,
        Traffic::Transfers(_) | Traffic::Web(_) => SIZES * per_second,
        _ => per_second,
    }
}

/// Of sizes of frames, the mean square over the square of the mean: 2.5 by the law that has no trace, and of traces
/// whose pictures that stand alone are ten times the others, one in twelve.
const FRAMES: f64 = 4.0;

/// Of self-similar sources so many go together: each sends all it does in a part of the time, and long.
const FEW_SOURCES: f64 = 10.0;

/// The same of sizes of transfers and objects: 6.5 of the main object of a page by default.
const SIZES: f64 = 10.0;

/// How many times its mean a source sends while it sends.
fn peak_to_mean(traffic: &Traffic) -> f64 {
    match traffic {
        Traffic::Cbr(_) | Traffic::Bulk => 1.0,
        Traffic::OnOff(kind) => 1.0 + kind.off.0.mean() / kind.on.0.mean(),
        Traffic::Voip(kind) if kind.suppress => 1.0 + kind.silence.0.mean() / kind.talk.0.mean(),
        Traffic::Voip(_) => 1.0,
        Traffic::SelfSimilar(kind) => 1.0 + kind.off.as_secs_f64() / kind.on.as_secs_f64(),
        // All chains of which there are in that state that brings the most.
        Traffic::Mmpp(kind) => kind.chains().map_or(f64::INFINITY, |chains| {
            let most: f64 = chains.iter().map(Chain::most_per_second).sum();
            most / chains.iter().map(|chain| chain.per_second().0).sum::<f64>()
        }),
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    /// What a flow with this traffic sends over UDP, whose packets have 28 bytes of headers.
    fn sends(traffic: &str) -> Sends {
        let text = format!(
            "name = \"t\"\nduration = \"1s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"8Mbit\", delay = \"20ms\", buffer = \"50pkt\" }}\n\
             access = {{ rate = \"80Mbit\", delay = \"5ms\" }}\n\
             [[flows]]\nname = \"f\"\ntransport = \"udp\"\ntraffic = {traffic}\n"
        );
        let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
        Sends::of(&scenario.spec().flows[0]).expect("it follows from the traffic")
    }

    #[test]
    fn sources_that_pause_send_more_than_their_mean_while_they_send() {
        let bits = |packets_per_s: f64, bytes: f64| packets_per_s * (bytes + 28.0) * 8.0;
        for (traffic, mean, peak) in [
            ("{ kind = \"cbr\", rate = \"8Mbit\", packet = \"1000B\" }", bits(1000.0, 1000.0), bits(1000.0, 1000.0)),
            // A quarter of the time.
            (
                "{ kind = \"on-off\", rate = \"8Mbit\", packet = \"1000B\", on = \"100ms\", off = \"300ms\" }",
                bits(250.0, 1000.0),
                bits(1000.0, 1000.0),
            ),
            // Ten that are ON a quarter of the time.
            (
                "{ kind = \"self-similar\", rate = \"1Mbit\", packet = \"1000B\", sources = 10, on = \"1s\", off = \"3s\" }",
                bits(125.0, 1000.0),
                bits(500.0, 1000.0),
            ),
            // 160 bytes each 20 ms of talk.
            (
                "{ kind = \"voip\", codec = \"g711\", talk = \"1s\", silence = \"4s\" }",
                bits(10.0, 160.0),
                bits(50.0, 160.0),
            ),
            ("{ kind = \"voip\", codec = \"g711\", suppress = false }", bits(50.0, 160.0), bits(50.0, 160.0)),
            // A third of ten sources is ON.
            (
                "{ kind = \"mmpp\", packet = \"500B\", \
                 minisources = { count = 10, on = \"1s\", off = \"2s\", rate = \"6pkt/s\" } }",
                bits(20.0, 500.0),
                bits(60.0, 500.0),
            ),
        ] {
            let sends = sends(traffic);
            let seen = [sends.bps, sends.peak_bps];
            assert!(
                seen.iter().zip([mean, peak]).all(|(seen, due)| (seen / due - 1.0).abs() < 1e-9),
                "{traffic}: {seen:?}"
            );
        }
    }

    #[test]
    fn on_and_off_times_scatter_what_comes_as_a_telegraph_process_does() {
        // At rate R with probability p, forgetting at c: 2 R^2 p (1 - p) / c a second in the long run.
        let telegraph = |rate: f64, on_s: f64, off_s: f64| {
            let (p, c) = (on_s / (on_s + off_s), 1.0 / on_s + 1.0 / off_s);
            2.0 * rate * rate * p * (1.0 - p) / c
        };
        let on_off =
            sends("{ kind = \"on-off\", rate = \"8Mbit\", packet = \"1000B\", on = \"100ms\", off = \"300ms\" }");
        let call = sends("{ kind = \"voip\", codec = \"g711\", talk = \"1s\", silence = \"4s\" }");
        assert!((on_off.variance / telegraph(1000.0, 0.1, 0.3) - 1.0).abs() < 1e-9, "{}", on_off.variance);
        assert!((call.variance / telegraph(50.0, 1.0, 4.0) - 1.0).abs() < 1e-9, "{}", call.variance);
        // A message of three packets comes or does not: nine times the variance of single ones.
        let single = sends("{ kind = \"poisson\", rate = \"100pkt/s\", packet = \"1000B\" }").variance;
        let triple = sends("{ kind = \"poisson\", rate = \"100pkt/s\", packet = \"4000B\" }").variance;
        assert_eq!([single, triple], [100.0, 900.0]);
        assert_eq!(sends("{ kind = \"cbr\", rate = \"8Mbit\" }").variance, 0.0);
    }
}
