//! Timeliness of this machine: a late live run may be the program's fault, or the machine's.
//!
//! Disk writes, or a neighbour of a virtual machine, keep any thread of the highest priority from its CPU for
//! milliseconds; then a live run shows nothing. A probe beside the run, which only sleeps, distinguishes the two.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use aqumen_live::machine::thread::wake_on_time;

/// Lateness of one sleep in a hundred above which the machine disturbs live runs, which may be 2 ms late. On a calm
/// machine it is 0.1 ms.
pub(crate) const DISTURBED: Duration = Duration::from_millis(1);

/// Calls `run` with the probe running. Returns its result, and the 99th percentile of the lateness of sleeps of a
/// millisecond.
pub(crate) fn with_probe<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let over = AtomicBool::new(false);
    // The probe ends also if `run` panics.
    struct StopProbe<'a>(&'a AtomicBool);
    impl Drop for StopProbe<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    thread::scope(|scope| {
        let probe = scope.spawn(|| {
            wake_on_time();
            let (step, mut late) = (Duration::from_millis(1), Vec::new());
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                thread::sleep(step);
                late.push(began.elapsed().saturating_sub(step));
            }
            late.sort_unstable();
            late.get(late.len() * 99 / 100).copied().unwrap_or_default()
        });
        let stop = StopProbe(&over);
        let answer = run();
        drop(stop);
        (answer, probe.join().unwrap())
    })
}

/// Waits until pending disk writes are done and threads wake on time; a minute at most.
pub(crate) fn wait_until_calm() {
    rustix::fs::sync();
    let end = Instant::now() + Duration::from_secs(60);
    while with_probe(|| thread::sleep(Duration::from_secs(1))).1 > DISTURBED && Instant::now() < end {}
}
