//! Periodic timer of an algorithm, driven by its host.

use aqumen_units::{Instant, Span};

/// A periodic timer, due first one period after the epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    period: Span,
    due: Instant,
}

impl Timer {
    /// A timer of `period`, at least a nanosecond.
    pub(crate) fn new(period: Span) -> Self {
        let period = period.max(Span::from_nanos(1));
        Timer { period, due: Instant::ZERO.saturating_add(period) }
    }

    /// Sets the first due time to `span` after the epoch, at least one period.
    pub(crate) fn first_after(self, span: Span) -> Self {
        Timer { due: Instant::ZERO.saturating_add(span.max(self.period)), ..self }
    }

    /// Restarts the timer: due `span` after `now`, at least one period.
    pub(crate) fn start_after(&mut self, now: Instant, span: Span) {
        self.due = now.saturating_add(span.max(self.period));
    }

    /// Continues from the last due time of `old`.
    pub(crate) fn follow(&mut self, old: &Timer) {
        let last = Instant::from_nanos(old.due.as_nanos() - old.period.as_nanos());
        self.due = last.saturating_add(self.period);
    }

    /// Resumes at `due`, the next due time of a timer with the same phase.
    pub(crate) fn resume_at(&mut self, due: Instant) {
        self.due = self.due.max(due);
    }

    /// Next due time.
    pub(crate) const fn due(&self) -> Instant {
        self.due
    }

    pub(crate) const fn period(&self) -> Span {
        self.period
    }

    /// Whether the timer is due; advances it if so. A late call counts once and keeps the phase.
    pub(crate) fn tick(&mut self, now: Instant) -> bool {
        if now < self.due {
            return false;
        }
        let periods = (now - self.due).as_nanos() / self.period.as_nanos() + 1;
        self.due = self.due.saturating_add(self.period.saturating_mul(periods));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_call_counts_once_and_keeps_the_phase() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let mut timer = Timer::new(Span::from_millis(10));
        assert!(!timer.tick(at(9)));
        assert!(timer.tick(at(10)));
        assert!(!timer.tick(at(10)));
        // Due at 20; called at 47: the next is 50.
        assert!(timer.tick(at(47)));
        assert_eq!(timer.due(), at(50));
    }
}
