//! What happened to the packets, messages, transfers and pages of each group, as its receivers saw it.

use aqumen_result::emodel::{self, Codec};
use aqumen_result::{Completions, FlowMetrics, Histogram, Jitter, Runs};
use aqumen_scenario::{Group, Plan};
use aqumen_units::{Bytes, Rate};

/// The measurements of all groups.
pub(crate) struct Classes {
    groups: Vec<Class>,
    /// What each flow's receiver remembers from packet to packet.
    receptions: Vec<Reception>,
}

/// One group.
struct Class {
    /// Whether any of its flows transfers something finite.
    transfers: bool,
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
pub(crate) struct ClassPiece {
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
    /// Frames up to the highest number of which anything arrived, and those of them that were shown whole.
    frames: u64,
    whole_frames: u64,
    transfers: Completions,
    refused: u64,
    /// Times to load a page, nanoseconds.
    pages: Histogram,
}

/// What an application makes of its packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Media {
    /// Nothing that depends on their time.
    None,
    /// A call: the codec, and the time that its packets hold, nanoseconds.
    Voice { codec: Codec, packet_ns: u64 },
    /// Frames, of which those count that are complete so many nanoseconds after they were made.
    Video { deadline_ns: u64 },
}

impl Classes {
    pub(crate) fn new(plan: &Plan) -> Self {
        Classes {
            groups: plan.groups.iter().map(|group| Class::new(plan, group)).collect(),
            receptions: vec![Reception::default(); plan.flows.len()],
        }
    }

    /// Packet number `seq` of `flow`, of `bytes` on the wire, sent at `sent_at`, arrives at its receiver.
    pub(crate) fn on_arrival(&mut self, plan: &Plan, flow: u32, seq: u32, bytes: u16, sent_at: u64, now: u64) {
        let reception = &mut self.receptions[flow as usize];
        let piece = &mut self.groups[plan.flows[flow as usize].group as usize].piece;
        // RFC 3550 appendix A.3: expected are all up to the highest number. One that comes after a higher one was counted
        // as missing, and only arrives.
        if seq >= reception.next_packet {
            piece.losses.record((seq - reception.next_packet).into());
            piece.expected += u64::from(seq - reception.next_packet) + 1;
            reception.next_packet = seq + 1;
        }
        let delay = now - sent_at;
        piece.arrived += 1;
        piece.bytes += u64::from(bytes);
        piece.delay.record(delay);
        piece.jitter += reception.jitter.arrived(delay);
    }

    /// Message `number` of `flow` reached the application `nanos` after it was made, `whole` or with parts missing.
    pub(crate) fn on_delivery(&mut self, plan: &Plan, flow: u32, number: u32, nanos: u64, whole: bool) {
        let group = plan.flows[flow as usize].group as usize;
        let Media::Video { deadline_ns } = self.groups[group].media else { return };
        let reception = &mut self.receptions[flow as usize];
        let piece = &mut self.groups[group].piece;
        if number >= reception.next_message {
            piece.frames += u64::from(number - reception.next_message) + 1;
            reception.next_message = number + 1;
        }
        piece.whole_frames += u64::from(whole && nanos <= deadline_ns);
    }

    /// A transfer of `bytes` over `flow` took `nanos`.
    pub(crate) fn on_transfer_done(&mut self, plan: &Plan, flow: u32, bytes: u64, nanos: u64) {
        let piece = &mut self.groups[plan.flows[flow as usize].group as usize].piece;
        piece.transfers.record(bytes, nanos, ideal_ns(plan, flow, bytes));
    }

    /// A page was loaded over `flow` in `nanos`.
    pub(crate) fn on_page_done(&mut self, plan: &Plan, flow: u32, nanos: u64) {
        self.groups[plan.flows[flow as usize].group as usize].piece.pages.record(nanos);
    }

    /// An arrival of the application of `group` found no flow idle.
    pub(crate) fn on_refused(&mut self, group: u32) {
        self.groups[group as usize].piece.refused += 1;
    }

    pub(crate) fn edge(&mut self) {
        self.groups.iter_mut().for_each(|class| class.pieces.push(std::mem::take(&mut class.piece)));
    }

    /// Fills in what happened to `group` in the pieces with these numbers, `length_s` seconds.
    pub(crate) fn fill(&self, metrics: &mut FlowMetrics, group: usize, pieces: impl Iterator<Item = usize>, length_s: f64) {
        let mut sum = ClassPiece::default();
        pieces.for_each(|k| sum.merge(&self.groups[group].pieces[k]));
        sum.fill_packets(metrics, self.groups[group].media, length_s);
        if self.groups[group].transfers {
            sum.fill_transfers(metrics);
        }
    }
}

impl Class {
    fn new(plan: &Plan, group: &Group) -> Self {
        let flows = &plan.flows[group.flows.start as usize..group.flows.end as usize];
        Class {
            transfers: flows.iter().any(|flow| flow.transfer.is_some()),
            media: Media::None,
            piece: ClassPiece::default(),
            pieces: Vec::new(),
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
        self.transfers.merge(&later.transfers);
        self.refused += later.refused;
        self.pages.merge(&later.pages);
    }

    /// Packets and messages, where any arrived.
    fn fill_packets(&self, metrics: &mut FlowMetrics, media: Media, length_s: f64) {
        if self.expected == 0 {
            return;
        }
        let seconds = |ns: f64| ns * 1e-9;
        let delay = |q| self.delay.quantile(q).map(seconds);
        metrics.throughput_bps = Some(self.bytes as f64 * 8.0 / length_s);
        metrics.delay_mean_s = self.delay.mean().map(seconds);
        metrics.delay_p50_s = delay(0.50);
        metrics.delay_p95_s = delay(0.95);
        metrics.delay_p99_s = delay(0.99);
        metrics.jitter_mean_s = Some(seconds(self.jitter / self.arrived as f64));
        let lost = self.expected.saturating_sub(self.arrived);
        metrics.loss_ratio = Some(lost as f64 / self.expected as f64);
        metrics.loss_run_mean_pkts = self.losses.mean();
        match media {
            Media::None => {}
            Media::Voice { codec, packet_ns } => {
                metrics.r_factor = self.rating(codec, packet_ns, metrics.loss_ratio);
                metrics.mos = metrics.r_factor.map(emodel::mean_opinion_score);
            }
            Media::Video { .. } => {
                metrics.frames = Some(self.frames);
                let lost = self.frames.saturating_sub(self.whole_frames);
                metrics.frame_loss_ratio = (self.frames > 0).then(|| lost as f64 / self.frames as f64);
            }
        }
    }

    /// Transfers and pages.
    fn fill_transfers(&self, metrics: &mut FlowMetrics) {
        let load = |q| self.pages.quantile(q).map(|ns| ns * 1e-9);
        metrics.refused = Some(self.refused);
        metrics.completions = self.transfers.metrics();
        metrics.pages = Some(self.pages.total());
        metrics.page_load_mean_s = self.pages.mean().map(|ns| ns * 1e-9);
        metrics.page_load_p50_s = load(0.50);
        metrics.page_load_p95_s = load(0.95);
        metrics.page_load_p99_s = load(0.99);
    }

    /// The E-model's rating of a call whose receiver delays what it plays so far that one packet in a hundred at most comes too
    /// late: from mouth to ear it takes the 99th percentile of the delay and the filling of a packet.
    fn rating(&self, codec: Codec, packet_ns: u64, loss: Option<f64>) -> Option<f64> {
        let (loss, patience_ns) = (loss?, self.delay.quantile(0.99)?);
        let late = self.delay.share_above(patience_ns);
        let burst_ratio = emodel::burst_ratio(self.losses.mean(), loss);
        let mouth_to_ear_s = (patience_ns + packet_ns as f64) * 1e-9;
        Some(emodel::rating(codec, mouth_to_ear_s, loss + (1.0 - loss) * late, burst_ratio))
    }
}

/// How long a transfer of `bytes` takes where there is nobody else: a round trip over the links, and the bytes at the rate of
/// the slowest on the way there; nanoseconds, above 0.
fn ideal_ns(plan: &Plan, flow: u32, bytes: u64) -> f64 {
    let flow = &plan.flows[flow as usize];
    let links = |path: &[u32]| path.iter().map(|&link| &plan.links[link as usize]).collect::<Vec<_>>();
    let way: u64 = [&flow.path, &flow.return_path].iter().flat_map(|path| links(path)).map(|link| link.delay.as_nanos()).sum();
    let slowest: Option<Rate> = links(&flow.path).iter().map(|link| link.rates[0].1).min();
    let sending = slowest.map_or(0, |rate| rate.time_for(Bytes(bytes)).as_nanos());
    (way + sending).max(1) as f64
}
