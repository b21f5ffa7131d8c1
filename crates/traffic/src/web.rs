//! Web sessions: pages of objects, one object after another or over several connections at a time.
//!
//! An object takes the idle connection of the lowest number. All draws are made in the order of the requests, so that
//! the requests of a session do not depend on how fast they are served.

use aqumen_scenario::streams::Stream;
use aqumen_scenario::traffic::{self, Connection};
use aqumen_units::Instant;

use crate::draw::Draws;
use crate::source::{Action, Source, Step, after};

/// A session.
#[derive(Clone)]
pub(super) struct Web {
    main: Draws,
    objects: Draws,
    embedded: Draws,
    parsing: Draws,
    reading: Draws,
    connection: Connection,
    pages_left: Option<u32>,
    stage: Stage,
    connections: Connections,
}

/// Next thing that the session does.
#[derive(Clone, Copy)]
enum Stage {
    /// The first page.
    Start,
    /// The main object.
    Main,
    /// Wait for the main object, after which `left` embedded ones follow.
    Parse { left: u64 },
    /// Embedded objects, of which `left` have not been requested. `parsed`: the parsing time has passed.
    Embedded { left: u64, parsed: bool },
    /// The page is complete.
    Read,
}

/// Connections of a session, a bit for each.
#[derive(Clone)]
struct Connections {
    /// Connections that exist.
    all: u64,
    busy: u64,
    /// Connections that this page has opened.
    open: u64,
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
            connections: Connections { all: u64::MAX >> (64 - spec.connections), busy: 0, open: 0 },
        }
    }

    /// Begins the next page `wait_ns` from now; ends the session after the last page.
    fn page(&mut self, now: Instant, wait_ns: f64) -> Step {
        if self.pages_left == Some(0) {
            return Step::End;
        }
        self.pages_left = self.pages_left.map(|left| left - 1);
        self.stage = Stage::Main;
        Step::At(after(now, wait_ns), Action::BeginPage)
    }

    /// Requests an object on an idle connection.
    fn object(&mut self, bytes: u64) -> Action {
        let connection = (self.connections.all & !self.connections.busy).trailing_zeros();
        let opened = self.connections.open & 1 << connection != 0;
        self.connections.busy |= 1 << connection;
        self.connections.open |= 1 << connection;
        let fresh = match self.connection {
            Connection::Object => true,
            Connection::Page => !opened,
            // The host opens a connection that is not open yet.
            Connection::Session => false,
        };
        Action::Transfer { bytes, fresh, connection }
    }
}

impl Source for Web {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        match self.stage {
            Stage::Start => self.page(now, 0.0),
            Stage::Main => {
                let left = (self.objects.draw(rng) + 0.5) as u64;
                self.stage = Stage::Parse { left };
                let bytes = self.main.draw_size(rng);
                self.connections.open = 0;
                Step::At(now, self.object(bytes))
            }
            Stage::Parse { left } => {
                self.stage = Stage::Embedded { left, parsed: false };
                Step::Await
            }
            Stage::Embedded { left, parsed } if left > 0 && self.connections.busy != self.connections.all => {
                let wait_ns = if parsed { 0.0 } else { self.parsing.draw(rng) };
                let bytes = self.embedded.draw_size(rng);
                self.stage = Stage::Embedded { left: left - 1, parsed: true };
                Step::At(after(now, wait_ns), self.object(bytes))
            }
            Stage::Embedded { .. } if self.connections.busy != 0 => Step::Await,
            Stage::Embedded { .. } => {
                self.stage = Stage::Read;
                Step::At(now, Action::EndPage)
            }
            Stage::Read => {
                let wait_ns = self.reading.draw(rng);
                self.page(now, wait_ns)
            }
        }
    }

    fn on_delivered(&mut self, connection: u32) {
        self.connections.busy &= !(1 << connection);
    }
}
