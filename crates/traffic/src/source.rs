//! The interface of traffic sources, and the clock of sources that schedule several processes.

use aqumen_scenario::streams::Stream;
use aqumen_units::{Instant, Span};
use dyn_clone::DynClone;

/// One application.
pub trait Source: DynClone + Send {
    /// Returns the next step of the application. The host calls it when the flow starts, after each action, and, after
    /// [`Step::Await`], when a transfer has been delivered. `now` is later than the action's moment if the flow was
    /// paused: the application continues from `now`.
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step;

    /// Repeats the write of `bytes` at `at` as long as the next step is an equal write before `until`. Returns the
    /// number of writes and the step that follows. The host calls it in place of [`next`](Source::next) where it needs
    /// only their number.
    fn repeat(&mut self, at: Instant, bytes: u32, until: Instant, rng: &mut Stream) -> (u64, Step) {
        let (mut at, mut writes) = (at, 1);
        loop {
            match self.next(at, rng) {
                Step::At(next, Action::Write(more)) if next < until && more == bytes => {
                    at = at.max(next);
                    writes += 1;
                }
                Step::At(next, action) => return (writes, Step::At(at.max(next), action)),
                step => return (writes, step),
            }
        }
    }

    /// Reports that the transfer on a connection has been delivered; [`next`](Source::next) follows.
    fn on_delivered(&mut self, _lane: u32) {}

    /// Reports the rate that an adaptive transport allows now. Applications that cannot adapt ignore it.
    fn on_rate(&mut self, _bits_per_second: f64) {}
}

dyn_clone::clone_trait_object!(Source);

/// Next step of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An action at a moment that is not before `now`.
    At(Instant, Action),
    /// Nothing until a transfer on any of its connections has been delivered.
    Await,
    /// Nothing more.
    End,
}

/// Action of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends a message, datagram or frame of this many bytes on the flow's connection.
    Write(u32),
    /// Begins a finite transfer.
    Transfer {
        /// Size.
        bytes: u64,
        /// Whether the transfer opens a new connection: TCP with SYN and initial window.
        fresh: bool,
        /// Number of the flow's connection, from 0.
        connection: u32,
    },
    /// Begins a page: the transfers up to [`EndPage`](Action::EndPage) belong to it.
    BeginPage,
    /// Ends a page, which is complete.
    EndPage,
}

/// Returns the moment `nanos` after `now`, to the nearest nanosecond.
pub(crate) fn after(now: Instant, nanos: f64) -> Instant {
    now.saturating_add(Span::from_nanos((nanos + 0.5) as u64))
}

/// Clock of a source that schedules several processes. It stops while the flow is paused.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// Host's time at which this clock shows zero.
    zero: Instant,
    /// Last planned moment, on this clock; `None` before the start.
    planned_ns: Option<u64>,
}

impl Clock {
    /// Returns the time on this clock at the host's `now`, which is the last planned moment.
    pub(crate) fn resume(&mut self, now: Instant) -> u64 {
        let shown_ns = self.planned_ns.unwrap_or(0);
        self.zero = Instant::from_nanos(now.as_nanos().saturating_sub(shown_ns));
        shown_ns
    }

    /// Plans the next action at `at_ns` on this clock; returns the host's time.
    pub(crate) fn plan(&mut self, at_ns: u64) -> Instant {
        self.planned_ns = Some(at_ns);
        self.zero.saturating_add(Span::from_nanos(at_ns))
    }
}
