//! Measurements at the receivers of each group whose transport is not TCP: losses, delay, jitter, calls and video.

use aqumen_result::emodel::{self, Codec};
use aqumen_result::{ArrivalState, FlowMetrics, ReceptionStats};
use aqumen_scenario::{Plan, Traffic, traffic};
use aqumen_transport::{Delivery, Packet};
use aqumen_units::{Instant, Span};

/// Measurements of all groups.
#[derive(Clone, Debug)]
pub struct Receptions {
    groups: Vec<Group>,
    /// State of each flow's receiver; empty where all flows use TCP.
    receivers: Vec<ReceiverState>,
}

/// Measurements of one group.
#[derive(Clone, Debug)]
struct Group {
    media: Media,
    piece: Piece,
    /// Finished pieces, in order.
    pieces: Vec<Piece>,
}

/// State of a receiver from packet to packet.
#[derive(Clone, Copy, Debug, Default)]
struct ReceiverState {
    packets: ArrivalState,
    /// Highest number of a message that arrived, plus one.
    next_message: u32,
}

/// Counts of a group's receivers in one piece.
#[derive(Clone, Debug, Default)]
struct Piece {
    packets: ReceptionStats,
    /// Frames up to the highest number that arrived.
    frames: u64,
    /// Frames that were complete in time.
    whole_frames: u64,
}

/// Medium of an application, which decides how its packets are rated.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Media {
    /// No medium: packets are not rated.
    None,
    /// Voice: the codec, and the speech time per packet.
    Voice(Codec, Span),
    /// Video: a frame counts if it is complete within this time.
    Video(Span),
}

/// Largest one-way delay of conversational video: ITU-T G.1010, table I.1.
const FRAME_DEADLINE: Span = Span::from_millis(400);

impl Receptions {
    /// Begins the measurements of the groups of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let group = |media| Group { media, piece: Piece::default(), pieces: Vec::new() };
        let any = plan.groups.iter().any(|group| group.transport.tcp().is_none());
        Receptions {
            groups: plan.groups.iter().map(|of| group(Media::from_traffic(&of.traffic))).collect(),
            receivers: vec![ReceiverState::default(); if any { plan.flows.len() } else { 0 }],
        }
    }

    /// Counts a packet of `flow` at its receiver.
    #[inline]
    pub fn on_arrival(&mut self, plan: &Plan, flow: u32, packet: &Packet, now: Instant) {
        let reception = &mut self.receivers[flow as usize].packets;
        let piece = &mut self.groups[plan.flows[flow as usize].group as usize].piece;
        piece.packets.on_arrival(reception, packet.seq, packet.bytes.into(), (now - packet.sent_at).as_nanos());
    }

    /// Counts a message of `flow` that reached the application.
    pub fn on_delivery(&mut self, plan: &Plan, flow: u32, delivery: &Delivery) {
        let group = &mut self.groups[plan.flows[flow as usize].group as usize];
        let Media::Video(deadline) = group.media else { return };
        let (message, next) = (&delivery.message, &mut self.receivers[flow as usize].next_message);
        if let Some(missing) = message.number.checked_sub(*next) {
            group.piece.frames += u64::from(missing) + 1;
            *next = message.number + 1;
        }
        let whole = delivery.bytes == message.bytes && delivery.complete_at <= message.created_at + deadline;
        group.piece.whole_frames += u64::from(whole);
    }

    /// Restarts the numbers of packets and messages of `flow` at 0.
    pub fn on_new_connection(&mut self, flow: u32) {
        self.receivers[flow as usize] = ReceiverState::default();
    }

    /// Begins or ends a measurement window.
    pub fn edge(&mut self) {
        self.groups.iter_mut().for_each(|group| group.pieces.push(std::mem::take(&mut group.piece)));
    }

    /// Fills in the metrics of `group` in the pieces with these numbers, `length_s` seconds in all.
    pub fn fill(&self, metrics: &mut FlowMetrics, group: u32, pieces: impl Iterator<Item = usize>, length_s: f64) {
        let group = &self.groups[group as usize];
        let mut sum = Piece::default();
        pieces.for_each(|k| sum.merge(&group.pieces[k]));
        sum.fill(metrics, group.media, length_s);
    }
}

impl Media {
    fn from_traffic(traffic: &Traffic) -> Self {
        match traffic {
            Traffic::Voip(voip) => {
                let codec = match voip.codec {
                    traffic::Codec::G711 => Codec::G711,
                    traffic::Codec::G729 => Codec::G729A,
                    traffic::Codec::G723 => Codec::G723,
                    // G.113 lists no Ie and Bpl for the others, or they are wideband, which G.107 does not rate.
                    _ => return Media::None,
                };
                let (_, packet) = voip.codec.frame();
                Media::Voice(codec, packet)
            }
            Traffic::Video(_) => Media::Video(FRAME_DEADLINE),
            _ => Media::None,
        }
    }
}

impl Piece {
    fn merge(&mut self, later: &Piece) {
        self.packets.merge(&later.packets);
        self.frames += later.frames;
        self.whole_frames += later.whole_frames;
    }

    fn fill(&self, metrics: &mut FlowMetrics, media: Media, length_s: f64) {
        if self.packets.loss_ratio().is_none() {
            return;
        }
        self.packets.fill(metrics, length_s);
        match media {
            Media::None => {}
            Media::Voice(codec, packet) => {
                metrics.r_factor = emodel::call_rating(codec, packet.as_secs_f64(), &self.packets);
                metrics.mos = metrics.r_factor.map(emodel::mean_opinion_score);
            }
            Media::Video(_) => {
                metrics.frames = Some(self.frames);
                let lost = self.frames.saturating_sub(self.whole_frames);
                metrics.frame_loss_ratio = (self.frames > 0).then(|| lost as f64 / self.frames as f64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use aqumen_scenario::Scenario;
    use aqumen_transport::udp::Datagram;
    use aqumen_transport::{Body, Message};
    use aqumen_units::Ecn;

    use super::*;

    const MS: u64 = 1_000_000;

    /// One flow of this traffic.
    fn plan(traffic: &str) -> Plan {
        let text = format!(
            r#"
            name = "one"
            duration = "1s"
            [topology]
            preset = "dumbbell"
            bottleneck = {{ rate = "1Mbit", delay = "1ms", buffer = "9pkt" }}
            access = {{ rate = "1Gbit", delay = "1ms" }}
            [[flows]]
            name = "one"
            transport = "udp"
            traffic = {traffic}
            "#
        );
        Scenario::parse(&text, "one").unwrap().plan(1, None).unwrap()
    }

    /// One flow whose packets mean `media`.
    fn receptions(media: Media) -> (Plan, Receptions) {
        let plan = plan(r#"{ kind = "cbr", rate = "100kbit" }"#);
        let mut receptions = Receptions::new(&plan);
        receptions.groups[0].media = media;
        (plan, receptions)
    }

    #[test]
    fn calls_and_films_are_judged_as_such_and_nothing_else_is() {
        let of = |traffic: &str| Media::from_traffic(&plan(traffic).groups[0].traffic);
        assert!(matches!(of(r#"{ kind = "voip", codec = "g723" }"#), Media::Voice(Codec::G723, _)));
        assert!(matches!(of(r#"{ kind = "voip", codec = "gsm" }"#), Media::None));
        assert!(matches!(of(r#"{ kind = "video", rate = "1Mbit" }"#), Media::Video(FRAME_DEADLINE)));
        assert!(matches!(of(r#"{ kind = "cbr", rate = "1Mbit" }"#), Media::None));
    }

    fn message(number: u32) -> Message {
        Message { bytes: 100, number, created_at: Instant::from_nanos(1000 * MS * u64::from(number)) }
    }

    /// Packet `seq`, sent each 20 ms, after `delay_ms` on its way.
    fn arrive(plan: &Plan, receptions: &mut Receptions, seq: u32, delay_ms: u64) {
        let sent_at = Instant::from_nanos(20 * MS * u64::from(seq));
        let body = Body::Datagram(Datagram { message: message(seq), offset: 0, payload: 100 });
        let packet = Packet { bytes: 128, ecn: Ecn::NotEct, seq, sent_at, body };
        receptions.on_arrival(plan, 0, &packet, sent_at + Span::from_millis(delay_ms));
    }

    fn metrics(mut receptions: Receptions) -> FlowMetrics {
        receptions.edge();
        let mut metrics = FlowMetrics::default();
        receptions.fill(&mut metrics, 0, 0..1, 1.0);
        metrics
    }

    #[test]
    fn packets_missing_below_the_highest_number_are_lost() {
        let (plan, mut receptions) = receptions(Media::None);
        // Of 0 to 9 lost: 2, 5, 6; 8 comes after 9, with a delay of 26 ms where all others have 10 ms.
        [0, 1, 3, 4, 7, 9].iter().for_each(|&seq| arrive(&plan, &mut receptions, seq, 10));
        arrive(&plan, &mut receptions, 8, 26);
        let seen = metrics(receptions);
        assert!((seen.loss_ratio.unwrap() - 0.3).abs() < 1e-12);
        // Gaps of 1, 2 and 1 when they were noticed.
        assert_eq!(seen.loss_burst_mean_pkts, Some(4.0 / 3.0));
        // |D| = 16 ms once, the last time: J = 1 ms after the last of seven packets.
        assert!((seen.jitter_mean_s.unwrap() - 1e-3 / 7.0).abs() < 1e-12);
        assert_eq!((seen.throughput_bps, seen.mos), (Some(7.0 * 128.0 * 8.0), None));
    }

    #[test]
    fn a_new_connection_counts_from_nothing() {
        let (plan, mut receptions) = receptions(Media::None);
        (0..5).for_each(|seq| arrive(&plan, &mut receptions, seq, 10));
        receptions.on_new_connection(0);
        (0..5).for_each(|seq| arrive(&plan, &mut receptions, seq, 90));
        let seen = metrics(receptions);
        assert_eq!((seen.loss_ratio, seen.jitter_mean_s), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn a_call_is_rated_by_delay_and_loss() {
        let (plan, mut receptions) = receptions(Media::Voice(Codec::G711, Span::from_millis(20)));
        // 2 of 100 lost, one by one; 80 ms and 20 ms of filling: Id of 100 ms is 2.69, Ie,eff = 95 * 2 / (2 / 0.98 +
        // 25.1) = 7.000, for single losses come in bursts of 1, independent ones of 1 / 0.98.
        (0..100).filter(|seq| *seq != 30 && *seq != 60).for_each(|seq| arrive(&plan, &mut receptions, seq, 80));
        let seen = metrics(receptions);
        assert!((seen.r_factor.unwrap() - (93.355 - 2.69 - 7.000)).abs() < 0.05, "{:?}", seen.r_factor);
        // R = 83.66: 1 + 2.928 + 83.66 * 23.66 * 16.34 * 7e-6 = 4.155.
        assert!((seen.mos.unwrap() - 4.155).abs() < 0.003, "{:?}", seen.mos);
    }

    #[test]
    fn frames_that_miss_a_packet_or_come_late_are_lost() {
        let (plan, mut receptions) = receptions(Media::Video(Span::from_millis(400)));
        let mut deliver = |number, delay_ms, bytes| {
            arrive(&plan, &mut receptions, number, 10);
            let complete_at = message(number).created_at + Span::from_millis(delay_ms);
            receptions.on_delivery(&plan, 0, &Delivery { message: message(number), complete_at, bytes });
        };
        // Of frames 0 to 5, 1 and 2 never came, 3 was late, 4 came in part.
        deliver(0, 30, 100);
        deliver(3, 401, 100);
        deliver(4, 30, 60);
        deliver(5, 400, 100);
        let seen = metrics(receptions);
        assert_eq!((seen.frames, seen.frame_loss_ratio), (Some(6), Some(4.0 / 6.0)));
    }
}
