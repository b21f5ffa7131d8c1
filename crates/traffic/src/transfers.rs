//! Finite transfers, in an open or a closed loop.

use aqumen_scenario::law::Law;
use aqumen_scenario::streams::Stream;
use aqumen_scenario::traffic::Transfers;
use aqumen_units::Instant;

use crate::draw::{Draws, exponential};
use crate::source::{Action, Source, Step, after};

/// Open loop: transfers begin at the moments of a Poisson process, whether or not the earlier ones are complete.
#[derive(Clone)]
pub(super) struct Poisson {
    size: Draws,
    gap_mean_ns: f64,
    fresh: bool,
}

impl Poisson {
    pub(super) fn new(spec: &Transfers, per_second: f64) -> Self {
        Poisson { size: Draws::new(&spec.size.0), gap_mean_ns: 1e9 / per_second, fresh: spec.new_connection }
    }
}

impl Source for Poisson {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        let at = after(now, self.gap_mean_ns * exponential(rng));
        Step::At(at, Action::Transfer { bytes: self.size.draw_size(rng), fresh: self.fresh, connection: 0 })
    }
}

/// Closed loop: a flow's next transfer begins a think time after the last was delivered. The first begins with the
/// flow.
#[derive(Clone)]
pub(super) struct Thinking {
    size: Draws,
    think: Draws,
    fresh: bool,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    Start,
    Requested,
    Delivered,
}

impl Thinking {
    pub(super) fn new(spec: &Transfers) -> Self {
        let think = spec.think.as_ref().map_or(Law::Fixed(0.0), |think| think.0.clone());
        Thinking {
            size: Draws::new(&spec.size.0),
            think: Draws::new(&think),
            fresh: spec.new_connection,
            stage: Stage::Start,
        }
    }
}

impl Source for Thinking {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        let think_ns = match self.stage {
            Stage::Start => 0.0,
            Stage::Requested => {
                self.stage = Stage::Delivered;
                return Step::Await;
            }
            Stage::Delivered => self.think.draw(rng),
        };
        self.stage = Stage::Requested;
        let action = Action::Transfer { bytes: self.size.draw_size(rng), fresh: self.fresh, connection: 0 };
        Step::At(after(now, think_ns), action)
    }
}
