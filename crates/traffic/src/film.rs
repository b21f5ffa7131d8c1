//! A film that is watched while it is fetched, one segment after another on one connection.
//!
//! The player fetches as long as its buffer has room for a segment. It takes the highest bit rate within a share of
//! what it got: the harmonic mean of the rates of the last segments, from the request of each to its last byte (J.
//! Jiang, V. Sekar, H. Zhang, "Improving fairness, efficiency, and stability in HTTP-based adaptive video streaming
//! with FESTIVE", CoNEXT 2012, section 4.3). The first segment comes at the lowest. Deviations: no randomised requests
//! and no step-by-step rise, which FESTIVE adds for the sake of other players; the mean is over fewer segments. While
//! its flow is stopped the player asks for nothing, and the viewer goes on watching.

use std::collections::VecDeque;

use aqumen_result::{Film, Playback};
use aqumen_scenario::Traffic;
use aqumen_scenario::streams::Stream;
use aqumen_scenario::traffic;
use aqumen_units::{Instant, Rate, Span};

use crate::source::{Action, Source, Step};

/// The film that `traffic` is, if it is one in segments.
pub fn film(traffic: &Traffic) -> Option<Film> {
    let Traffic::AdaptiveVideo(spec) = traffic else { return None };
    let (segment_ns, play_at_ns) = (spec.segment.as_nanos(), spec.play_at.as_nanos());
    Some(Film { segment_ns, play_at_ns, segments: spec.segments() })
}

/// The player of one viewer.
pub(super) struct AdaptiveVideo {
    spec: traffic::AdaptiveVideo,
    playback: Playback,
    /// Time per bit of the last segments, nanoseconds.
    pace: VecDeque<f64>,
    /// The segment under way, bytes.
    bytes: u64,
    stage: Stage,
}

enum Stage {
    Start,
    /// The segment has been planned.
    Planned,
    /// It was asked for at this moment.
    Asked(Instant),
}

impl AdaptiveVideo {
    pub(super) fn new(spec: &traffic::AdaptiveVideo, film: Film) -> Self {
        AdaptiveVideo {
            spec: spec.clone(),
            playback: Playback::new(film),
            pace: VecDeque::new(),
            bytes: 0,
            stage: Stage::Start,
        }
    }

    /// The bit rate of the next segment.
    fn rung(&self) -> Option<Rate> {
        let lowest = self.spec.ladder.first().copied();
        if self.pace.is_empty() {
            return lowest;
        }
        let bps = 1e9 * self.pace.len() as f64 / self.pace.iter().sum::<f64>();
        let fits = |rate: &&Rate| rate.as_bps() as f64 <= self.spec.share * bps;
        self.spec.ladder.iter().rev().find(fits).copied().or(lowest)
    }

    /// The segment that was asked for at `asked_at` is here.
    fn arrived(&mut self, asked_at: Instant, now: Instant) {
        self.playback.on_segment(now.as_nanos());
        if self.pace.len() == self.spec.memory as usize {
            self.pace.pop_front();
        }
        let took_ns = now.saturating_since(asked_at).as_nanos().max(1);
        self.pace.push_back(took_ns as f64 / (self.bytes as f64 * 8.0));
    }
}

impl Source for AdaptiveVideo {
    fn next(&mut self, now: Instant, _: &mut Stream) -> Step {
        match self.stage {
            Stage::Planned => {
                self.stage = Stage::Asked(now);
                return Step::Await;
            }
            Stage::Asked(asked_at) => self.arrived(asked_at, now),
            Stage::Start => {}
        }
        let (Some(rate), false) = (self.rung(), self.playback.has_all()) else { return Step::End };
        self.stage = Stage::Planned;
        self.bytes = self.spec.segment_bytes(rate);
        // What is there and one more segment must fit; as long as the picture stands still there is room.
        let room = self.spec.buffer - self.spec.segment;
        let wait = Span::from_nanos(self.playback.buffered_ns().saturating_sub(room.as_nanos()));
        let action = Action::Transfer { bytes: self.bytes, fresh: false, connection: 0 };
        Step::At(now.saturating_add(wait), action)
    }
}
