//! The time of a run: nanoseconds since its start, by the machine's monotonic clock.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A clock that showed zero at the start of a run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero_ns: u64,
}

impl Clock {
    /// A clock that will show zero in `delay_ns`; until then it shows zero too.
    pub fn starting_in(delay_ns: u64) -> Self {
        Clock { zero_ns: monotonic_ns() + delay_ns }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub fn now(&self) -> u64 {
        monotonic_ns().saturating_sub(self.zero_ns)
    }

    /// How long to wait until `at`, for system calls that wait; nothing if that is over.
    pub fn wait(&self, at: u64) -> Timespec {
        let wait = (self.zero_ns.saturating_add(at)).saturating_sub(monotonic_ns());
        Timespec { tv_sec: (wait / 1_000_000_000) as i64, tv_nsec: (wait % 1_000_000_000) as _ }
    }
}

#[inline]
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
