//! What happened to the packets and messages of each group whose transport is not TCP, as its receivers saw it.

use aqumen_result::emodel::{self, Codec};
use aqumen_result::{FlowMetrics, Histogram, Jitter, Runs};
use aqumen_scenario::{Plan, Traffic};
use aqumen_transport::{Delivery, Packet};
use aqumen_units::{Instant, Span};

/// The measurements of all groups.
pub(crate) struct Classes {
    groups: Vec<Class>,
    /// What each flow's receiver remembers from packet to packet.
    receptions: Vec<Reception>,
}

/// One group.
struct Class {
    media: Media,
    piece: ClassPiece,
    /// Finished pieces, in order.
    pieces: Vec<ClassPiece>,
}

/// What a receiver remembers.
#[derive(Clone, Copy, Default)]
struct Reception {
    jitter: Jitter,
    /// One more than the highest number of a packet, and of a message, that arrived.
    next_packet: u32,
    next_message: u32,
}

/// What a group's receivers saw in one piece.
#[derive(Clone, Debug, Default)]
struct ClassPiece {
    /// Packets that arrived, and the bytes of them.
    arrived: u64,
    bytes: u64,
    /// Packets up to the highest number that arrived.
    expected: u64,
    /// Packets that were missing one directly after the other.
    losses: Runs,
    /// One-way delays, nanoseconds.
    delay: Histogram,
    /// Sum of the estimates of jitter after each arrival, nanoseconds.
    jitter: f64,
    /// Frames up to the highest number of one that arrived, and those of them that were whole in time.
    frames: u64,
    whole_frames: u64,
}

/// What an application makes of its packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Media {
    /// Nothing that depends on their time.
    None,
    /// A call: the codec, and the time that its packets cover.
    Voice(Codec, Span),
    /// Frames, of which those count that are complete so long after they were made.
    Video(Span),
}

impl Classes {
    pub(crate) fn new(plan: &Plan) -> Self {
        let class = |media| Class { media, piece: ClassPiece::default(), pieces: Vec::new() };
        Classes {
            groups: plan.groups.iter().map(|group| class(Media::of(&group.traffic))).collect(),
            receptions: vec![Reception::default(); plan.flows.len()],
        }
    }

    /// A packet of `flow` arrives at its receiver.
    pub(crate) fn on_arrival(&mut self, plan: &Plan, flow: u32, packet: &Packet, now: Instant) {
        let reception = &mut self.receptions[flow as usize];
        let piece = &mut self.groups[plan.flows[flow as usize].group as usize].piece;
        // RFC 3550 appendix A.3: expected are all up to the highest number. One that comes after a higher one was counted
        // as missing, and only arrives.
        if let Some(missing) = packet.seq.checked_sub(reception.next_packet) {
            piece.losses.record(missing.into());
            piece.expected += u64::from(missing) + 1;
            reception.next_packet = packet.seq + 1;
        }
        let delay = (now - packet.sent_at).as_nanos();
        piece.arrived += 1;
        piece.bytes += u64::from(packet.bytes);
        piece.delay.record(delay);
        piece.jitter += reception.jitter.arrived(delay);
    }

    /// A message of `flow` reached the application.
    pub(crate) fn on_delivery(&mut self, plan: &Plan, flow: u32, delivery: &Delivery) {
        let class = &mut self.groups[plan.flows[flow as usize].group as usize];
        let Media::Video(deadline) = class.media else { return };
        let (message, next) = (&delivery.message, &mut self.receptions[flow as usize].next_message);
        if let Some(missing) = message.number.checked_sub(*next) {
            class.piece.frames += u64::from(missing) + 1;
            *next = message.number + 1;
        }
        let whole = delivery.bytes == message.bytes && delivery.complete_at <= message.created_at + deadline;
        class.piece.whole_frames += u64::from(whole);
    }

    /// The packets of `flow` are numbered from 0 again.
    pub(crate) fn on_new_connection(&mut self, flow: u32) {
        self.receptions[flow as usize] = Reception::default();
    }

    pub(crate) fn edge(&mut self) {
        self.groups.iter_mut().for_each(|class| class.pieces.push(std::mem::take(&mut class.piece)));
    }

    /// Fills in what happened to `group` in the pieces with these numbers, `length_s` seconds in all.
    pub(crate) fn fill(
        &self,
        metrics: &mut FlowMetrics,
        group: u32,
        pieces: impl Iterator<Item = usize>,
        length_s: f64,
    ) {
        let class = &self.groups[group as usize];
        let mut sum = ClassPiece::default();
        pieces.for_each(|k| sum.merge(&class.pieces[k]));
        if sum.expected > 0 {
            sum.fill(metrics, class.media, length_s);
        }
    }
}

impl Media {
    fn of(traffic: &Traffic) -> Self {
        match traffic {
            _ => Media::None,
        }
    }
}

impl ClassPiece {
    fn merge(&mut self, later: &ClassPiece) {
        self.arrived += later.arrived;
        self.bytes += later.bytes;
        self.expected += later.expected;
        self.losses.merge(&later.losses);
        self.delay.merge(&later.delay);
        self.jitter += later.jitter;
        self.frames += later.frames;
        self.whole_frames += later.whole_frames;
    }

    fn fill(&self, metrics: &mut FlowMetrics, media: Media, length_s: f64) {
        let seconds = |ns: f64| ns * 1e-9;
        let delay = |q| self.delay.quantile(q).map(seconds);
        metrics.throughput_bps = Some(self.bytes as f64 * 8.0 / length_s);
        metrics.delay_mean_s = self.delay.mean().map(seconds);
        metrics.delay_p50_s = delay(0.50);
        metrics.delay_p95_s = delay(0.95);
        metrics.delay_p99_s = delay(0.99);
        metrics.jitter_mean_s = Some(seconds(self.jitter / self.arrived as f64));
        // Late ones that were counted as missing in the piece before may make more arrivals than were expected.
        let loss = self.expected.saturating_sub(self.arrived) as f64 / self.expected as f64;
        metrics.loss_ratio = Some(loss);
        metrics.loss_burst_mean_pkts = self.losses.mean();
        match media {
            Media::None => {}
            Media::Voice(codec, packet) => {
                let rating = self.rating(codec, packet, loss);
                metrics.r_factor = Some(rating);
                metrics.mos = Some(emodel::mean_opinion_score(rating));
            }
            Media::Video(_) => {
                metrics.frames = Some(self.frames);
                let lost = self.frames.saturating_sub(self.whole_frames);
                metrics.frame_loss_ratio = (self.frames > 0).then(|| lost as f64 / self.frames as f64);
            }
        }
    }

    /// The E-model's rating of a call whose receiver delays what it plays so far that one packet in a hundred at most comes too
    /// late: from mouth to ear it takes the 99th percentile of the delay and the filling of a packet.
    fn rating(&self, codec: Codec, packet: Span, loss: f64) -> f64 {
        let patience_ns = self.delay.quantile(0.99).unwrap_or(0.0);
        let late = self.delay.share_above(patience_ns);
        let burst_ratio = emodel::burst_ratio(self.losses.mean(), loss);
        let mouth_to_ear_s = patience_ns * 1e-9 + packet.as_secs_f64();
        emodel::rating(codec, mouth_to_ear_s, loss + (1.0 - loss) * late, burst_ratio)
    }
}
