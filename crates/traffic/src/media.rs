//! Voice and video.

use std::sync::Arc;

use aqumen_scenario::streams::Draw;
use aqumen_scenario::streams::Stream;
use aqumen_scenario::traffic::{self, Frames};
use aqumen_units::{Instant, Span};

use crate::draw::{Draws, exponential};
use crate::source::{Action, Source, Step, after};

/// A codec with one frame per interval, which is sent if the speaker talks at its end. The talk state starts in its
/// stationary law.
#[derive(Clone)]
pub(super) struct Voip {
    bytes: u32,
    interval_ns: f64,
    /// Silence is suppressed.
    suppress: bool,
    talk: Draws,
    silence: Draws,
    started: bool,
    /// Whether the speaker talks, and the rest of that state after the last frame; `None` before the start.
    state: Option<(bool, f64)>,
}

impl Voip {
    pub(super) fn new(spec: &traffic::Voip) -> Self {
        let (bytes, interval) = spec.codec.frame();
        Voip {
            bytes,
            interval_ns: interval.as_nanos() as f64,
            suppress: spec.suppress,
            talk: Draws::new(&spec.talk.0),
            silence: Draws::new(&spec.silence.0),
            started: false,
            state: None,
        }
    }

    /// Returns the number of frames until the next one that is sent.
    fn frames(&mut self, rng: &mut Stream) -> f64 {
        if !self.suppress {
            return 1.0;
        }
        let (mut talks, mut left_ns) = self.state.unwrap_or_else(|| {
            let talks = rng.uniform() * (self.talk.mean() + self.silence.mean()) < self.talk.mean();
            (talks, if talks { &self.talk } else { &self.silence }.draw_residual(rng))
        });
        // Time from the last frame to the begin of this state.
        let mut begun_ns = 0.0;
        // Next frame to examine.
        let mut frame = 1.0;
        loop {
            let end_ns = begun_ns + left_ns;
            if talks && frame * self.interval_ns < end_ns {
                self.state = Some((true, end_ns - frame * self.interval_ns));
                return frame;
            }
            // The first frame that ends after this state.
            frame = (libm::floor(end_ns / self.interval_ns) + 1.0).max(frame);
            begun_ns = end_ns;
            talks = !talks;
            left_ns = if talks { &self.talk } else { &self.silence }.draw(rng);
        }
    }
}

impl Source for Voip {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        // The first frame ends at a random point of an interval: calls that start together are not synchronised.
        let begin = if self.started { 0.0 } else { rng.uniform() - 1.0 };
        self.started = true;
        let frames = self.frames(rng);
        Step::At(after(now, (frames + begin) * self.interval_ns), Action::Write(self.bytes))
    }
}

/// Frames of a trace.
#[derive(Clone)]
pub(super) struct Video {
    frames: Arc<Frames>,
    /// Time of each frame from the first one; the last entry is the length of the trace.
    schedule_ns: Vec<u64>,
    /// Factor on the frame sizes.
    scale: f64,
    repeat: bool,
    random_start: bool,
    /// Last frame sent; `None` before the start.
    at: Option<usize>,
    /// Frames passed.
    passed: usize,
    mean_bps: f64,
}

impl Video {
    pub(super) fn new(spec: &traffic::Video, trace: &Arc<Frames>) -> Self {
        let frames = Arc::clone(trace);
        let schedule_ns = frames.schedule(spec.fps);
        let seconds = schedule_ns.last().map_or(1.0, |end| *end as f64 / 1e9);
        let mean_bps = frames.total_bytes() as f64 * 8.0 / seconds;
        Video {
            frames,
            schedule_ns,
            scale: spec.rate.map_or(1.0, |rate| rate.as_bps() as f64 / mean_bps),
            repeat: spec.repeat,
            random_start: spec.random_start,
            at: None,
            passed: 0,
            mean_bps,
        }
    }
}

impl Source for Video {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        let count = self.frames.bytes.len();
        let mut wait_ns = 0;
        loop {
            if self.passed == count && !self.repeat {
                return Step::End;
            }
            let frame = match self.at {
                None if self.random_start => ((rng.uniform() * count as f64) as usize).min(count - 1),
                None => 0,
                Some(last) => {
                    wait_ns += self.schedule_ns[last + 1] - self.schedule_ns[last];
                    (last + 1) % count
                }
            };
            self.at = Some(frame);
            self.passed = if self.passed == count { 1 } else { self.passed + 1 };
            let bytes = self.frames.bytes[frame];
            // An encoder may have skipped a frame.
            if bytes > 0 {
                let bytes = (f64::from(bytes) * self.scale + 0.5).max(1.0) as u32;
                return Step::At(now.saturating_add(Span::from_nanos(wait_ns)), Action::Write(bytes));
            }
        }
    }

    fn on_rate(&mut self, bits_per_second: f64) {
        self.scale = bits_per_second.max(0.0) / self.mean_bps;
    }
}

/// Frames of independent random sizes, at equal intervals: Weibull of the shape that the evaluation
/// methodology of IEEE 802.11ax has for video (IEEE 802.11-14/0571, appendix 2), scaled to the rate. Frames of
/// several flows are not synchronised.
#[derive(Clone)]
pub(super) struct RandomVideo {
    fps: f64,
    interval_ns: f64,
    /// Scale of the law, bytes.
    scale: f64,
    started: bool,
}

/// Shape of the law of sizes.
const SHAPE: f64 = 0.8099;

impl RandomVideo {
    pub(super) fn new(spec: &traffic::Video) -> Self {
        let fps = spec.default_fps();
        let mut video = RandomVideo { fps, interval_ns: 1e9 / fps, scale: 0.0, started: false };
        video.on_rate(spec.default_rate().as_bps() as f64);
        video
    }
}

impl Source for RandomVideo {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        let wait = if self.started { 1.0 } else { rng.uniform() };
        self.started = true;
        // P(X > x) = exp(-(x / scale)^shape).
        let bytes = self.scale * libm::pow(exponential(rng), 1.0 / SHAPE);
        Step::At(after(now, wait * self.interval_ns), Action::Write((bytes + 0.5).max(1.0) as u32))
    }

    fn on_rate(&mut self, bits_per_second: f64) {
        // The mean of the law is its scale times Gamma(1 + 1 / shape).
        self.scale = bits_per_second.max(0.0) / 8.0 / self.fps / libm::tgamma(1.0 + 1.0 / SHAPE);
    }
}
