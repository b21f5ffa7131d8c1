//! Scheduling and CPU time of threads.

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Priority above most programs, below the kernel's own threads.
static PRIORITY: libc::c_int = 10;

/// Makes the calling thread wake on time: no timer slack, and real-time scheduling if permitted. Returns whether it is.
pub fn wake_on_time() -> bool {
    // With timer slack a wake-up is up to 50 us late, which is tolerable.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    // The kernel's struct sched_param is one number. The system call directly: the function of musl does nothing.
    // SAFETY: zero is the calling thread, and the priority outlives the call.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const PRIORITY) };
    answer == 0
}

/// CPU time since the creation of this object.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    clock: ClockId,
    start_s: f64,
}

impl CpuTime {
    /// CPU time of the calling thread.
    pub fn for_thread() -> Self {
        Self::new(ClockId::ThreadCPUTime)
    }

    /// CPU time of this process with all its threads.
    pub fn for_process() -> Self {
        Self::new(ClockId::ProcessCPUTime)
    }

    fn new(clock: ClockId) -> Self {
        CpuTime { clock, start_s: read_s(clock) }
    }

    /// Elapsed CPU time, seconds.
    pub fn elapsed_s(&self) -> f64 {
        read_s(self.clock) - self.start_s
    }
}

fn read_s(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_wakes_on_time_where_it_is_allowed_to() {
        let (permitted, policy, slack) = thread::spawn(|| {
            let permitted = wake_on_time();
            // SAFETY: zero is the calling thread; the call only reads.
            (permitted, unsafe { libc::sched_getscheduler(0) }, rustix::thread::current_timer_slack().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!(permitted, policy == libc::SCHED_FIFO);
        // A real-time thread has no slack at all.
        assert!(slack <= 1, "{slack} ns");
    }

    #[test]
    fn cpu_time_counts_computation_only() {
        let compute_until_ms = |ms: i64| while clock_gettime(ClockId::ThreadCPUTime).tv_nsec < ms * 1_000_000 {};
        thread::spawn(move || {
            compute_until_ms(50);
            let (own, all) = (CpuTime::for_thread(), CpuTime::for_process());
            // No computation since, and what was before does not count.
            assert!(own.elapsed_s() < 0.05, "{} s", own.elapsed_s());
            compute_until_ms(150);
            let passed_s = own.elapsed_s();
            assert!((0.05..0.15).contains(&passed_s), "{passed_s} s");
            // Other threads compute too.
            assert!(all.elapsed_s() > 0.05, "{} s", all.elapsed_s());
        })
        .join()
        .unwrap();
    }
}
