//! What every source is, and what it answers; the clock of those that keep moments of their own.

use aqumen_scenario::streams::Stream;
use aqumen_units::{Instant, Span};

/// One application.
pub trait Source: Send {
    /// What the application does next, seen at `now`: when it starts, after each action was carried out, and, after
    /// [`Step::Await`], when something that it asked for has been delivered. `now` may be later than the moment of the
    /// action (the flow was paused): the application goes on from there.
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

/// `nanos` after `now`, to the nearest nanosecond.
pub(crate) fn after(now: Instant, nanos: f64) -> Instant {
    now.saturating_add(Span::from_nanos((nanos + 0.5) as u64))
}

/// The clock of a source that keeps moments of its own: it stands still while the flow is paused.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// What the host's clock shows when this one shows zero.
    zero: Instant,
    /// The moment planned last, on this clock; `None` before the start.
    planned_ns: Option<u64>,
}

impl Clock {
    /// The source is asked at `now`: what this clock shows then.
    pub(crate) fn resume(&mut self, now: Instant) -> u64 {
        let shown_ns = self.planned_ns.unwrap_or(0);
        self.zero = Instant::from_nanos(now.as_nanos().saturating_sub(shown_ns));
        shown_ns
    }

    /// The next action comes at `at_ns` on this clock.
    pub(crate) fn plan(&mut self, at_ns: u64) -> Instant {
        self.planned_ns = Some(at_ns);
        self.zero.saturating_add(Span::from_nanos(at_ns))
    }
}
