//! The thread that carries packets: it wakes when it wants to.

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Above what threads of programs usually have, below the kernel's own.
const PRIORITY: libc::c_int = 10;

/// Makes the calling thread wake on time: no timer slack, and real-time scheduling if that is allowed. Whether it was.
pub fn wake_on_time() -> bool {
    // Without it a wake-up is up to 50 us late; that it cannot be set costs no more than that.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    // SAFETY: zero is the calling thread; the kernel reads the one number in `sched_param`.
    let answer = unsafe {
        let parameters = libc::sched_param { sched_priority: PRIORITY };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters)
    };
    answer == 0
}

/// CPU time that passes, from when this was made on.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    clock: ClockId,
    before_s: f64,
}

impl CpuTime {
    /// Of the calling thread.
    pub fn of_thread() -> Self {
        Self::by(ClockId::ThreadCPUTime)
    }

    /// Of this process, with all its threads.
    pub fn of_process() -> Self {
        Self::by(ClockId::ProcessCPUTime)
    }

    fn by(clock: ClockId) -> Self {
        CpuTime { clock, before_s: shown_s(clock) }
    }

    /// So much has passed, seconds.
    pub fn passed_s(&self) -> f64 {
        shown_s(self.clock) - self.before_s
    }
}

fn shown_s(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_wakes_on_time_where_it_is_allowed_to() {
        let (said, policy, slack) = thread::spawn(|| {
            let said = wake_on_time();
            // SAFETY: zero is the calling thread, of which the kernel only tells.
            (said, unsafe { libc::sched_getscheduler(0) }, rustix::thread::current_timer_slack().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!(said, policy == libc::SCHED_FIFO);
        // A thread of real time has no slack at all.
        assert!(slack <= 1, "{slack} ns");
    }

    #[test]
    fn cpu_time_is_what_was_computed_meanwhile() {
        let compute_until_ms = |ms: i64| while clock_gettime(ClockId::ThreadCPUTime).tv_nsec < ms * 1_000_000 {};
        thread::spawn(move || {
            compute_until_ms(50);
            let (own, all) = (CpuTime::of_thread(), CpuTime::of_process());
            // Nothing is computed: not what was before.
            assert!(own.passed_s() < 0.05, "{} s", own.passed_s());
            compute_until_ms(150);
            let passed_s = own.passed_s();
            assert!((0.05..0.15).contains(&passed_s), "{passed_s} s");
            // Other threads compute too.
            assert!(all.passed_s() > 0.05, "{} s", all.passed_s());
        })
        .join()
        .unwrap();
    }
}
