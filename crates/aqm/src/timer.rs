//! A periodic timer of an algorithm that is stepped by its host.

use aqumen_units::{Instant, Span};

/// Due one period after the epoch, and so on.
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

    /// The same, due first so long after the epoch.
    pub(crate) fn first_after(self, span: Span) -> Self {
        Timer { due: Instant::ZERO.saturating_add(span.max(self.period)), ..self }
    }

    /// It is due first so long after `now`.
    pub(crate) fn start_after(&mut self, now: Instant, span: Span) {
        self.due = now.saturating_add(span.max(self.period));
    }

    /// It goes on from the last time at which `old` was due.
    pub(crate) fn follow(&mut self, old: &Timer) {
        let last = Instant::from_nanos(old.due.as_nanos() - old.period.as_nanos());
        self.due = last.saturating_add(self.period);
    }

    /// It is due next when another of the same period is, whose beat it keeps.
    pub(crate) fn catch_up(&mut self, due: Instant) {
        self.due = self.due.max(due);
    }

    /// When it is due next.
    pub(crate) const fn due(&self) -> Instant {
        self.due
    }

    pub(crate) const fn period(&self) -> Span {
        self.period
    }

    /// Whether it is due; if so the next time is set. A late call counts as one, and the phase stays.
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
