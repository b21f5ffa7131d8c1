//! User-defined sources: each returns the wait until its next packet, and the packet's size.

use aqumen_scenario::streams::Stream;
use aqumen_scenario::traffic::CustomSource;
use aqumen_units::Instant;

use crate::source::{Action, Source, Step};

/// A user-defined source.
#[derive(Clone)]
pub(super) struct Custom(pub(super) Box<dyn CustomSource>);

impl Source for Custom {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        match self.0.next(now, rng) {
            Some((wait, bytes)) => Step::At(now.saturating_add(wait), Action::Write(bytes.get())),
            None => Step::End,
        }
    }
}
