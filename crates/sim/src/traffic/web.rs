//! Web sessions: pages of objects, one object after another.

use aqumen_scenario::streams::Stream;
use aqumen_scenario::traffic::{self, Connection};
use aqumen_units::Instant;

use super::draw::Draws;
use super::{Action, Source, Step, after};

/// A session.
pub(super) struct Web {
    main: Draws,
    objects: Draws,
    embedded: Draws,
    parsing: Draws,
    reading: Draws,
    connection: Connection,
    pages_left: Option<u32>,
    stage: Stage,
}

/// What comes next.
#[derive(Clone, Copy)]
enum Stage {
    /// The first page.
    Start,
    /// The main object.
    Main,
    /// Wait for an object, after which so many embedded ones remain; `main`: it is the main object.
    Wait { main: bool, left: u64 },
    /// An object is there.
    Got { main: bool, left: u64 },
    /// The page is complete.
    Read,
}

impl Web {
    pub(super) fn new(spec: &traffic::Web) -> Self {
        Web {
            main: Draws::new(&spec.main.0),
            objects: Draws::new(&spec.objects.0),
            embedded: Draws::new(&spec.embedded.0),
            parsing: Draws::new(&spec.parsing.0),
            reading: Draws::new(&spec.reading.0),
            connection: spec.connection,
            pages_left: spec.pages,
            stage: Stage::Start,
        }
    }

    /// The next page begins `wait_ns` from now; the session ends after its last.
    fn page(&mut self, now: Instant, wait_ns: f64) -> Step {
        if self.pages_left == Some(0) {
            return Step::End;
        }
        self.pages_left = self.pages_left.map(|left| left - 1);
        self.stage = Stage::Main;
        Step::At(after(now, wait_ns), Action::BeginPage)
    }
}

impl Source for Web {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        match self.stage {
            Stage::Start => self.page(now, 0.0),
            Stage::Main => {
                let left = (self.objects.draw(rng) + 0.5) as u64;
                self.stage = Stage::Wait { main: true, left };
                let fresh = self.connection != Connection::Session;
                Step::At(now, Action::Transfer { bytes: self.main.draw_size(rng), fresh })
            }
            Stage::Wait { main, left } => {
                self.stage = Stage::Got { main, left };
                Step::Await
            }
            Stage::Got { left: 0, .. } => {
                self.stage = Stage::Read;
                Step::At(now, Action::EndPage)
            }
            Stage::Got { main, left } => {
                let wait_ns = if main { self.parsing.draw(rng) } else { 0.0 };
                self.stage = Stage::Wait { main: false, left: left - 1 };
                let fresh = self.connection == Connection::Object;
                Step::At(after(now, wait_ns), Action::Transfer { bytes: self.embedded.draw_size(rng), fresh })
            }
            Stage::Read => {
                let wait_ns = self.reading.draw(rng);
                self.page(now, wait_ns)
            }
        }
    }
}
