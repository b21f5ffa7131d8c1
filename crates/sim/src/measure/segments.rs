//! What becomes of TCP's segments on their way: how long they take, and how many are lost.
//!
//! Two segments in a row of each 16 are looked at, which ones differs from flow to flow. Their delays make the
//! distribution, and the change from the one to the other is the jitter: of RFC 3550's running estimate it is the mean.

use aqumen_network::measurement::edges;
use aqumen_result::{FlowMetrics, Histogram};
use aqumen_scenario::Plan;
use aqumen_transport::tcp::Segment;

use crate::fetch::fetch_at;

/// Of all groups.
pub(crate) struct Segments {
    groups: Vec<Group>,
    /// The segment of each flow that was looked at last, and its delay.
    latest: Vec<(u32, u64)>,
    /// Those that arrive after the next edge: when, group, delay and change.
    early: Vec<(u64, u32, u64, Option<u64>)>,
    /// Where windows begin and end.
    edges: Vec<u64>,
}

#[derive(Default)]
struct Group {
    piece: Piece,
    pieces: Vec<Piece>,
    /// By the piece in which they were sent.
    lost: Vec<u64>,
}

/// Between two edges.
#[derive(Clone, Default)]
struct Piece {
    /// Nanoseconds.
    delay: Histogram,
    /// Sum of the changes of the delay, nanoseconds, and how many.
    change: u64,
    changes: u64,
}

impl Segments {
    pub(crate) fn new(plan: &Plan) -> Self {
        let edges = edges(plan);
        Segments {
            groups: plan.groups.iter().map(|_| Group { lost: vec![0; edges.len() + 1], ..Group::default() }).collect(),
            latest: vec![(u32::MAX, 0); plan.flows.len()],
            early: Vec::new(),
            edges,
        }
    }

    /// Whether this segment is one of those that are looked at.
    #[inline(always)]
    pub(crate) fn wants(flow: u32, segment: &Segment) -> bool {
        segment.seq.wrapping_add(flow.wrapping_mul(5)) & 15 < 2 && !segment.syn
    }

    /// [Fetches](crate::fetch) what [`arrive`](Self::arrive) needs.
    #[inline(always)]
    pub(crate) fn fetch(&self, flow: u32) {
        fetch_at(&self.latest, flow as usize);
    }

    /// A segment of `flow`, which is of `group`, that is looked at reaches its receiver at `at`, which may lie beyond
    /// `next_edge`.
    #[cold]
    pub(crate) fn arrive(&mut self, flow: u32, group: u32, at: u64, segment: &Segment, next_edge: u64) {
        let delay = at.saturating_sub(segment.sent_at.as_nanos());
        let (seq, before) = std::mem::replace(&mut self.latest[flow as usize], (segment.seq, delay));
        let change = (seq.wrapping_add(1) == segment.seq).then(|| delay.abs_diff(before));
        if at >= next_edge {
            self.early.push((at, group, delay, change));
        } else {
            self.groups[group as usize].piece.arrive(delay, change);
        }
    }

    /// A segment of `group` is lost, at a queue or on a wire. It counts where it was sent: of those a loss can be a
    /// share.
    pub(crate) fn lose(&mut self, group: u32, segment: &Segment) {
        let sent = segment.sent_at.as_nanos();
        let piece = self.edges.partition_point(|edge| *edge <= sent);
        self.groups[group as usize].lost[piece] += 1;
    }

    /// A window begins or ends.
    pub(crate) fn edge(&mut self) {
        self.groups.iter_mut().for_each(|group| group.pieces.push(std::mem::take(&mut group.piece)));
    }

    /// The next edge is at `edge`: what was seen early and comes before it has its place now.
    pub(crate) fn set_next_edge(&mut self, edge: u64) {
        for (_, group, delay, change) in self.early.extract_if(.., |(at, ..)| *at < edge) {
            self.groups[group as usize].piece.arrive(delay, change);
        }
    }

    /// Adds what others have seen of the same segments' ways, each of a part of them.
    pub(crate) fn absorb(&mut self, others: Segments) {
        for (group, other) in self.groups.iter_mut().zip(others.groups) {
            group.pieces.iter_mut().zip(&other.pieces).for_each(|(piece, other)| piece.merge(other));
            group.lost.iter_mut().zip(&other.lost).for_each(|(lost, other)| *lost += other);
        }
    }

    /// Fills in what became of the segments of `group`, of which `sent` left, in the pieces with these numbers.
    pub(crate) fn fill(&self, metrics: &mut FlowMetrics, group: u32, pieces: impl Iterator<Item = usize>, sent: u64) {
        let of = &self.groups[group as usize];
        let (mut sum, mut lost) = (Piece::default(), 0);
        for k in pieces {
            sum.merge(&of.pieces[k]);
            lost += of.lost[k];
        }
        metrics.tell_delay(&sum.delay);
        metrics.jitter_mean_s = (sum.changes > 0).then(|| sum.change as f64 * 1e-9 / sum.changes as f64);
        metrics.loss_ratio = (sent > 0).then(|| lost as f64 / sent as f64);
    }
}

impl Piece {
    fn arrive(&mut self, delay: u64, change: Option<u64>) {
        self.delay.record(delay);
        self.change += change.unwrap_or(0);
        self.changes += u64::from(change.is_some());
    }

    fn merge(&mut self, later: &Piece) {
        self.delay.merge(&later.delay);
        self.change += later.change;
        self.changes += later.changes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_scenario::Scenario;
    use aqumen_units::Instant;

    #[test]
    fn a_segment_counts_from_the_edge_on_at_which_it_arrives() {
        let text = "name = \"t\"\nduration = \"30ms\"\n[windows]\nfirst = [\"0s\", \"10ms\"]\nthen = [\"10ms\", \"20ms\"]\n\
             [topology]\npreset = \"dumbbell\"\n\
             bottleneck = { rate = \"8Mbit\", delay = \"1ms\", buffer = \"9pkt\" }\n\
             access = { rate = \"80Mbit\", delay = \"1ms\" }\n[[flows]]\nname = \"f\"\n";
        let plan = Scenario::parse(text, "t").unwrap_or_else(|error| panic!("{error}")).plan(1, None).unwrap();
        let ms = |n: u64| n * 1_000_000;
        // What counts as a whole begins after a tenth.
        assert_eq!(edges(&plan), [3, 10, 20, 30].map(ms));
        let config = plan.groups[0].transport.tcp().unwrap();
        let mut sender = aqumen_transport::tcp::Sender::new(config, None);
        sender.start(config, Instant::ZERO);
        let segment = sender.poll_transmit(config, Instant::ZERO).expect("the first");
        let mut segments = Segments::new(&plan);
        // Told before the first edge: 5 ms after it was sent, 10, 12, 20 and 24 ms.
        for at in [5, 10, 12, 20, 24] {
            segments.arrive(0, 0, ms(at), &segment, ms(3));
        }
        for next in [10, 20, 30] {
            segments.edge();
            segments.set_next_edge(ms(next));
        }
        segments.edge();
        let mean_ms = |piece: usize| {
            let mut metrics = FlowMetrics::default();
            segments.fill(&mut metrics, 0, piece..piece + 1, 5);
            (metrics.delay_mean_s.expect("some arrived") * 1e3).round()
        };
        assert_eq!([1, 2, 3].map(mean_ms), [5.0, 11.0, 22.0]);
    }
}
