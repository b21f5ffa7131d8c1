//! The picture of a film that comes in segments: when it begins to move, where it stands still. The same [`Playback`]
//! serves the player, which decides what to fetch next, and the metrics, which tell what came of it.

/// A film in segments of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Film {
    /// How much of the film a segment holds, nanoseconds, above 0.
    pub segment_ns: u64,
    /// How much must be there for the film to begin, and to go on after a stall.
    pub play_at_ns: u64,
    /// How many segments it has; without end if absent.
    pub segments: Option<u64>,
}

/// A film that is being watched. Moments are in nanoseconds and do not go back.
#[derive(Clone, Debug)]
pub struct Playback {
    film: Film,
    state: State,
    /// Up to when it is accounted for.
    now: u64,
    /// Segments that have come.
    delivered: u64,
    /// How much of the film is there and has not been shown.
    buffered_ns: u64,
    /// When the picture began to move first.
    pub began_at: Option<u64>,
    /// From when to when the picture stood still after that; the last one may not have ended.
    pub stalls: Vec<(u64, Option<u64>)>,
    /// When the film was over.
    pub over_at: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is not enough to begin, or to go on.
    Waiting,
    Playing,
    Over,
}

impl Playback {
    /// `film` before its first segment.
    pub fn new(film: Film) -> Self {
        let (state, stalls) = (State::Waiting, Vec::new());
        Playback { film, state, now: 0, delivered: 0, buffered_ns: 0, began_at: None, stalls, over_at: None }
    }

    /// Nothing came up to `now`: the picture moves as long as there is film.
    pub fn advance(&mut self, now: u64) {
        let passed = now.saturating_sub(self.now);
        if self.state == State::Playing {
            let dry_at = self.now + self.buffered_ns;
            self.buffered_ns = self.buffered_ns.saturating_sub(passed);
            if self.buffered_ns == 0 && self.has_all() {
                (self.state, self.over_at) = (State::Over, Some(dry_at));
            } else if dry_at < now {
                // A segment that comes at the very moment comes in time.
                self.state = State::Waiting;
                self.stalls.push((dry_at, None));
            }
        }
        self.now = self.now.max(now);
    }

    /// A segment is there.
    pub fn on_segment(&mut self, now: u64) {
        self.advance(now);
        self.delivered += 1;
        self.buffered_ns += self.film.segment_ns;
        if self.state == State::Waiting && (self.buffered_ns >= self.film.play_at_ns || self.has_all()) {
            self.state = State::Playing;
            match self.stalls.last_mut() {
                Some((_, until)) => *until = Some(self.now),
                None => self.began_at = Some(self.now),
            }
        }
    }

    /// How much of the film is there and has not been shown, nanoseconds.
    pub fn buffered_ns(&self) -> u64 {
        self.buffered_ns
    }

    /// Whether the last segment has come.
    pub fn has_all(&self) -> bool {
        self.film.segments.is_some_and(|segments| self.delivered >= segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    /// Segments of 4 s; 8 s to begin.
    const FILM: Film = Film { segment_ns: 4 * S, play_at_ns: 8 * S, segments: None };

    #[test]
    fn the_picture_stands_still_from_the_last_frame_until_there_is_enough_again() {
        let mut playback = Playback::new(FILM);
        // Begins at 3 s with 8 s of film, gets 4 more at 5 s: dry at 15 s. Segments at 18 and 20 s: goes on at 20 s
        // with 8 s.
        [1, 3, 5, 18, 20].iter().for_each(|at| playback.on_segment(at * S));
        assert_eq!((playback.began_at, &playback.stalls[..]), (Some(3 * S), &[(15 * S, Some(20 * S))][..]));
        playback.advance(22 * S);
        assert_eq!(playback.buffered_ns(), 6 * S);
        // One that comes as the last frame is shown comes in time; then nothing comes any more.
        playback.on_segment(28 * S);
        playback.advance(100 * S);
        assert_eq!(playback.stalls, [(15 * S, Some(20 * S)), (32 * S, None)]);
    }

    #[test]
    fn a_film_that_is_over_does_not_stall() {
        // Three segments, of which the last comes while the film waits for more than it has left.
        let mut playback = Playback::new(Film { segments: Some(3), ..FILM });
        [1, 2, 30].iter().for_each(|at| playback.on_segment(at * S));
        assert_eq!((playback.stalls.clone(), playback.has_all()), (vec![(10 * S, Some(30 * S))], true));
        playback.advance(40 * S);
        assert_eq!((playback.over_at, playback.stalls.len()), (Some(34 * S), 1));
        // And one that is shorter than what is wanted to begin begins all the same.
        let mut short = Playback::new(Film { segments: Some(1), ..FILM });
        short.on_segment(S);
        assert_eq!(short.began_at, Some(S));
    }
}
