//! Playback of segmented video: start and stalls. Used by the player, which selects segments, and by the metrics.

/// A video in segments of equal duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentedVideo {
    /// Duration of a segment, nanoseconds, above 0.
    pub segment_ns: u64,
    /// Buffered duration at which playback starts, and resumes after a stall.
    pub play_at_ns: u64,
    /// Number of segments; endless if absent.
    pub segments: Option<u64>,
}

/// Playback of a video. Times are in nanoseconds and do not decrease.
#[derive(Clone, Debug)]
pub struct Playback {
    video: SegmentedVideo,
    state: State,
    /// Time up to which the playback has been computed.
    now: u64,
    /// Number of delivered segments.
    delivered: u64,
    /// Buffered duration.
    buffered_ns: u64,
    /// Start of the playback.
    pub began_at: Option<u64>,
    /// Start and end of each stall; the last one may be in progress.
    pub stalls: Vec<(u64, Option<u64>)>,
    /// End of the playback.
    pub over_at: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Too little is buffered to start or resume.
    Waiting,
    Playing,
    Over,
}

impl Playback {
    /// Playback of `video` before its first segment.
    pub fn new(video: SegmentedVideo) -> Self {
        let (state, stalls) = (State::Waiting, Vec::new());
        Playback { video, state, now: 0, delivered: 0, buffered_ns: 0, began_at: None, stalls, over_at: None }
    }

    /// Advances the playback up to `now`, without new segments.
    pub fn advance(&mut self, now: u64) {
        let passed = now.saturating_sub(self.now);
        if self.state == State::Playing {
            let dry_at = self.now + self.buffered_ns;
            self.buffered_ns = self.buffered_ns.saturating_sub(passed);
            if self.buffered_ns == 0 && self.has_all() {
                (self.state, self.over_at) = (State::Over, Some(dry_at));
            } else if dry_at < now {
                // A segment that arrives at this very time is in time.
                self.state = State::Waiting;
                self.stalls.push((dry_at, None));
            }
        }
        self.now = self.now.max(now);
    }

    /// Adds a segment.
    pub fn on_segment(&mut self, now: u64) {
        self.advance(now);
        self.delivered += 1;
        self.buffered_ns += self.video.segment_ns;
        if self.state == State::Waiting && (self.buffered_ns >= self.video.play_at_ns || self.has_all()) {
            self.state = State::Playing;
            match self.stalls.last_mut() {
                Some((_, until)) => *until = Some(self.now),
                None => self.began_at = Some(self.now),
            }
        }
    }

    /// Buffered duration, nanoseconds.
    pub fn buffered_ns(&self) -> u64 {
        self.buffered_ns
    }

    /// Whether the last segment has arrived.
    pub fn has_all(&self) -> bool {
        self.video.segments.is_some_and(|segments| self.delivered >= segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    /// Segments of 4 s; playback starts with 8 s.
    const VIDEO: SegmentedVideo = SegmentedVideo { segment_ns: 4 * S, play_at_ns: 8 * S, segments: None };

    #[test]
    fn a_stall_lasts_from_an_empty_to_a_refilled_buffer() {
        let mut playback = Playback::new(VIDEO);
        // Starts at 3 s with 8 s, gets 4 more at 5 s: empty at 15 s. Segments at 18 and 20 s: resumes at 20 s with 8 s.
        [1, 3, 5, 18, 20].iter().for_each(|at| playback.on_segment(at * S));
        assert_eq!((playback.began_at, &playback.stalls[..]), (Some(3 * S), &[(15 * S, Some(20 * S))][..]));
        playback.advance(22 * S);
        assert_eq!(playback.buffered_ns(), 6 * S);
        // A segment at the last picture is in time; then nothing arrives any more.
        playback.on_segment(28 * S);
        playback.advance(100 * S);
        assert_eq!(playback.stalls, [(15 * S, Some(20 * S)), (32 * S, None)]);
    }

    #[test]
    fn a_completed_video_does_not_stall() {
        // Three segments; the last one arrives during a stall that waits for more than remains.
        let mut playback = Playback::new(SegmentedVideo { segments: Some(3), ..VIDEO });
        [1, 2, 30].iter().for_each(|at| playback.on_segment(at * S));
        assert_eq!((playback.stalls.clone(), playback.has_all()), (vec![(10 * S, Some(30 * S))], true));
        playback.advance(40 * S);
        assert_eq!((playback.over_at, playback.stalls.len()), (Some(34 * S), 1));
        // A video shorter than the start threshold starts at its end.
        let mut short = Playback::new(SegmentedVideo { segments: Some(1), ..VIDEO });
        short.on_segment(S);
        assert_eq!(short.began_at, Some(S));
    }
}
