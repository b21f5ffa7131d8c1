//! Delay, jitter and losses of TCP's segments.
//!
//! Two consecutive segments of each 16 are sampled, at an offset that differs from flow to flow. Their delays form the
//! distribution; the change between the two is the jitter, whose mean is the mean of RFC 3550's running estimate.

use aqumen_network::measurement::edges;
use aqumen_result::{FlowMetrics, Histogram};
use aqumen_scenario::Plan;
use aqumen_transport::tcp::Segment;

use crate::fetch::fetch_at;

/// Measurements of the segments of all groups.
#[derive(Clone)]
pub(crate) struct Segments {
    groups: Vec<Group>,
    /// Last sampled segment of each flow, and its delay.
    latest: Vec<(u32, u64)>,
    /// Samples that arrive after the next edge: time, group, delay and change.
    early: Vec<(u64, u32, u64, Option<u64>)>,
    /// Edges of the measurement windows.
    edges: Vec<u64>,
}

#[derive(Clone, Default)]
struct Group {
    piece: Piece,
    pieces: Vec<Piece>,
    /// Lost segments by the piece in which they were sent.
    lost: Vec<u64>,
}

/// Measurements between two edges.
#[derive(Clone, Default)]
struct Piece {
    /// Delays, nanoseconds.
    delay: Histogram,
    /// Sum of the changes of the delay, nanoseconds.
    change: u64,
    /// Number of changes.
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

    /// Returns whether this segment is sampled.
    #[inline(always)]
    pub(crate) fn wants(flow: u32, segment: &Segment) -> bool {
        segment.seq.wrapping_add(flow.wrapping_mul(5)) & 15 < 2 && !segment.syn
    }

    /// [Fetches](crate::fetch) the state that [`arrive`](Self::arrive) needs.
    #[inline(always)]
    pub(crate) fn fetch(&self, flow: u32) {
        fetch_at(&self.latest, flow as usize);
    }

    /// Samples a segment of `flow` in `group` that reaches its receiver at `at`, perhaps after `next_edge`.
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

    /// Counts a lost segment of `group` in the piece in which it was sent: the loss ratio is over the segments sent.
    pub(crate) fn lose(&mut self, group: u32, segment: &Segment) {
        let sent = segment.sent_at.as_nanos();
        let piece = self.edges.partition_point(|edge| *edge <= sent);
        self.groups[group as usize].lost[piece] += 1;
    }

    /// Begins or ends a measurement window.
    pub(crate) fn edge(&mut self) {
        self.groups.iter_mut().for_each(|group| group.pieces.push(std::mem::take(&mut group.piece)));
    }

    /// Sets the next edge, and counts the early samples before it.
    pub(crate) fn set_next_edge(&mut self, edge: u64) {
        for (_, group, delay, change) in self.early.extract_if(.., |(at, ..)| *at < edge) {
            self.groups[group as usize].piece.arrive(delay, change);
        }
    }

    /// Adds the measurements of another worker.
    pub(crate) fn absorb(&mut self, others: Segments) {
        for (group, other) in self.groups.iter_mut().zip(others.groups) {
            group.pieces.iter_mut().zip(&other.pieces).for_each(|(piece, other)| piece.merge(other));
            group.lost.iter_mut().zip(&other.lost).for_each(|(lost, other)| *lost += other);
        }
    }

    /// Fills in the metrics of the segments of `group`, of which `sent` were sent, in the pieces with these numbers.
    pub(crate) fn fill(&self, metrics: &mut FlowMetrics, group: u32, pieces: impl Iterator<Item = usize>, sent: u64) {
        let of = &self.groups[group as usize];
        let (mut sum, mut lost) = (Piece::default(), 0);
        for k in pieces {
            sum.merge(&of.pieces[k]);
            lost += of.lost[k];
        }
        metrics.set_delay(&sum.delay);
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
