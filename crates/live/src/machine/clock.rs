//! Clock of a run: nanoseconds since its start, by the machine's monotonic clock.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Clock that shows zero at the start of a run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero_ns: u64,
}

impl Clock {
    /// Clock that reaches zero in `delay_ns`, and shows zero until then.
    pub fn starting_in(delay_ns: u64) -> Self {
        Clock { zero_ns: monotonic_ns() + delay_ns }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub fn now(&self) -> u64 {
        monotonic_ns().saturating_sub(self.zero_ns)
    }

    /// Time until `at`, for system calls that wait; zero if it has passed.
    pub fn wait(&self, at: u64) -> Timespec {
        let wait = (self.zero_ns.saturating_add(at)).saturating_sub(monotonic_ns());
        Timespec { tv_sec: (wait / 1_000_000_000) as i64, tv_nsec: (wait % 1_000_000_000) as _ }
    }
}

/// Monotonic clock of the machine, which the marker in the kernel uses too.
#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32).as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_nanoseconds_since_its_start_and_zero_before() {
        let early = Clock::starting_in(3_600_000_000_000);
        assert_eq!(early.now(), 0);
        let (before, clock) = (monotonic_ns(), Clock::starting_in(0));
        let (now, after) = (clock.now(), monotonic_ns());
        assert!(now <= after - before, "{now} of {} ns", after - before);
        assert!(Clock { zero_ns: before - 5 }.now() >= 5);
    }

    #[test]
    fn a_wait_is_split_into_seconds_and_nanoseconds() {
        let clock = Clock { zero_ns: 7 };
        for at in [u64::MAX / 4, u64::MAX / 4 + 123_456_789] {
            let before = monotonic_ns();
            let wait = clock.wait(at);
            let after = monotonic_ns();
            assert!((0..1_000_000_000).contains(&wait.tv_nsec), "{wait:?}");
            let ns = wait.tv_sec as u64 * 1_000_000_000 + wait.tv_nsec as u64;
            assert!((at + 7 - after..=at + 7 - before).contains(&ns), "{ns} ns until {at}");
        }
        // A time in the past needs no wait.
        let over = clock.wait(0);
        assert_eq!((over.tv_sec, over.tv_nsec), (0, 0));
    }
}
