//! Sources from outside: they say how long to wait and what to send.

use aqumen_scenario::streams::Stream;
use aqumen_scenario::traffic::OwnSource;
use aqumen_units::Instant;

use crate::source::{Action, Source, Step};

/// A source from outside.
pub(super) struct Outside(pub(super) Box<dyn OwnSource>);

impl Source for Outside {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        match self.0.next(now, rng) {
            Some((wait, bytes)) => Step::At(now.saturating_add(wait), Action::Write(bytes.get())),
            None => Step::End,
        }
    }
}
