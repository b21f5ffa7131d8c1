//! What an application sends and when.
//!
//! A [`Source`] is pure: the host keeps the clock and the random stream (kind `Traffic`, the flow's number; the group's first
//! flow for a source that serves a whole group), carries out each [`Action`] at its moment, and asks again. [`build`] makes the
//! source of a scenario's [`Traffic`]; `docs/traffic.md` has the formulas.
//!
//! - `draw` draws from the laws of sizes, times and counts;
//! - `transfers` are finite transfers, `web` sessions of pages;
//! - `packets` are sources of packets: constant rate, Poisson, ON/OFF, self-similar; `mmpp` Markov-modulated ones;
//! - `media` are voice and video;
//! - `ahead` works out what a source will ask for, for other engines.

mod ahead;
mod draw;
mod media;
mod mmpp;
mod packets;
mod transfers;
mod web;

use aqumen_scenario::Traffic;
use aqumen_scenario::streams::Stream;
use aqumen_units::{Instant, Span};

pub use ahead::{Ahead, ahead};
pub use draw::Draws;

/// One application.
pub trait Source {
    /// What the application does next, seen at `now`: when it starts, after each action was carried out, and, after
    /// [`Step::Await`], when something that it asked for has been delivered. `now` may be later than the moment of the action (the flow was
    /// paused): the application goes on from there.
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step;

    /// The transfer on a connection has been delivered; [`next`](Source::next) follows.
    fn on_delivered(&mut self, _lane: u32) {}

    /// The transport adapts, and this is the rate that it allows now. Applications that cannot adapt do not care.
    fn on_rate(&mut self, _bits_per_second: f64) {}
}

/// What an application does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// This action, then, no earlier than `now`.
    At(Instant, Action),
    /// Nothing until something that it asked for has been delivered: a transfer on any of its connections.
    Await,
    /// Nothing more.
    End,
}

/// What an application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Hands over a message, datagram or frame of so many bytes on the flow's connection.
    Write(u32),
    /// Begins a finite transfer.
    Transfer {
        /// Its size.
        bytes: u64,
        /// Whether it opens a connection of its own: TCP with a new SYN and initial window.
        fresh: bool,
        /// Which of the flow's connections carries it, from 0. Sources that use one at a time use the first.
        connection: u32,
    },
    /// Asks for a page: what follows up to [`EndPage`](Action::EndPage) belongs to it.
    BeginPage,
    /// Has all of the page.
    EndPage,
}

/// The source of `traffic`; `None` for a bulk transfer, which the flow's transport does by itself.
pub fn build(traffic: &Traffic) -> Option<Box<dyn Source + Send>> {
    Some(match traffic {
        Traffic::Bulk => return None,
        Traffic::Transfers(spec) => match spec.per_second() {
            Some(rate) => Box::new(transfers::Poisson::new(spec, rate)),
            None => Box::new(transfers::Thinking::new(spec)),
        },
        Traffic::Web(spec) => Box::new(web::Web::new(spec)),
        Traffic::Cbr(spec) => Box::new(packets::Cbr::new(spec)),
        Traffic::Poisson(spec) => Box::new(packets::Poisson::new(spec)),
        Traffic::OnOff(spec) => Box::new(packets::OnOff::new(spec)),
        Traffic::SelfSimilar(spec) => Box::new(packets::SelfSimilar::new(spec)),
        Traffic::Voip(spec) => Box::new(media::Voip::new(spec)),
        Traffic::Mmpp(spec) => Box::new(mmpp::Mmpp::new(spec)),
        Traffic::Video(spec) => Box::new(media::Video::new(spec)),
    })
}

/// `nanos` after `now`, to the nearest nanosecond.
fn after(now: Instant, nanos: f64) -> Instant {
    now.saturating_add(Span::from_nanos((nanos + 0.5) as u64))
}

/// The clock of a source that keeps moments of its own: it stands still while the flow is paused.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// What the host's clock shows when this one shows zero.
    zero: Instant,
    /// The moment planned last, on this clock; `None` before the start.
    planned_ns: Option<u64>,
}

impl Clock {
    /// The source is asked at `now`: what this clock shows then.
    fn resume(&mut self, now: Instant) -> u64 {
        let shown_ns = self.planned_ns.unwrap_or(0);
        self.zero = Instant::from_nanos(now.as_nanos().saturating_sub(shown_ns));
        shown_ns
    }

    /// The next action comes at `at_ns` on this clock.
    fn plan(&mut self, at_ns: u64) -> Instant {
        self.planned_ns = Some(at_ns);
        self.zero.saturating_add(Span::from_nanos(at_ns))
    }
}
