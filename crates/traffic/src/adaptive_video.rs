//! Adaptive video: a player that fetches segments one after another on one connection while the viewer watches.
//!
//! The player fetches while its buffer has space for a segment. It takes the highest bit rate within a fraction of the
//! measured rate: the harmonic mean over the last segments, from the request of each to its last byte (J.
//! Jiang, V. Sekar, H. Zhang, "Improving fairness, efficiency, and stability in HTTP-based adaptive video streaming
//! with FESTIVE", CoNEXT 2012, section 4.3). The first segment has the lowest bit rate. Deviations: no randomised
//! requests and no gradual increase, which FESTIVE adds for fairness between players; the mean is over fewer segments.
//! While its flow is stopped the player requests nothing, and the viewer continues to watch.

use std::collections::VecDeque;

use aqumen_result::{Playback, SegmentedVideo};
use aqumen_scenario::Traffic;
use aqumen_scenario::streams::Stream;
use aqumen_scenario::traffic;
use aqumen_units::{Instant, Rate, Span};

use crate::source::{Action, Source, Step};

/// Returns the video of `traffic`, if it comes in segments.
pub fn film(traffic: &Traffic) -> Option<SegmentedVideo> {
    let Traffic::AdaptiveVideo(spec) = traffic else { return None };
    let (segment_ns, play_at_ns) = (spec.segment.as_nanos(), spec.play_at.as_nanos());
    Some(SegmentedVideo { segment_ns, play_at_ns, segments: spec.segments() })
}

/// The player of one viewer.
#[derive(Clone)]
pub(super) struct AdaptiveVideo {
    spec: traffic::AdaptiveVideo,
    playback: Playback,
    /// Nanoseconds per bit of the last segments.
    pace: VecDeque<f64>,
    /// Size of the segment being fetched.
    bytes: u64,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    Start,
    /// The request of the segment has been planned.
    Planned,
    /// The segment was requested at this moment.
    Requested(Instant),
}

impl AdaptiveVideo {
    pub(super) fn new(spec: &traffic::AdaptiveVideo, film: SegmentedVideo) -> Self {
        AdaptiveVideo {
            spec: spec.clone(),
            playback: Playback::new(film),
            pace: VecDeque::new(),
            bytes: 0,
            stage: Stage::Start,
        }
    }

    /// Returns the bit rate of the next segment.
    fn rung(&self) -> Option<Rate> {
        let lowest = self.spec.ladder.first().copied();
        if self.pace.is_empty() {
            return lowest;
        }
        let bps = 1e9 * self.pace.len() as f64 / self.pace.iter().sum::<f64>();
        let fits = |rate: &&Rate| rate.as_bps() as f64 <= self.spec.share * bps;
        self.spec.ladder.iter().rev().find(fits).copied().or(lowest)
    }

    /// Notes the arrival of the segment that was requested at `requested_at`.
    fn arrived(&mut self, requested_at: Instant, now: Instant) {
        self.playback.on_segment(now.as_nanos());
        if self.pace.len() == self.spec.memory as usize {
            self.pace.pop_front();
        }
        let took_ns = now.saturating_since(requested_at).as_nanos().max(1);
        self.pace.push_back(took_ns as f64 / (self.bytes as f64 * 8.0));
    }
}

impl Source for AdaptiveVideo {
    fn next(&mut self, now: Instant, _: &mut Stream) -> Step {
        match self.stage {
            Stage::Planned => {
                self.stage = Stage::Requested(now);
                return Step::Await;
            }
            Stage::Requested(requested_at) => self.arrived(requested_at, now),
            Stage::Start => {}
        }
        let (Some(rate), false) = (self.rung(), self.playback.has_all()) else { return Step::End };
        self.stage = Stage::Planned;
        self.bytes = self.spec.segment_bytes(rate);
        // The buffered video and one more segment must fit; while playback stalls the buffer has space.
        let space = self.spec.buffer - self.spec.segment;
        let wait = Span::from_nanos(self.playback.buffered_ns().saturating_sub(space.as_nanos()));
        let action = Action::Transfer { bytes: self.bytes, fresh: false, connection: 0 };
        Step::At(now.saturating_add(wait), action)
    }
}
