//! The thread that carries packets: it wakes when it wants to.

use std::num::NonZeroU64;

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

/// CPU time that the calling thread took, seconds.
pub fn cpu_s() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}
