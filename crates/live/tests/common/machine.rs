//! Whether this machine wakes a thread on time: what a live run is late by may be ours, or the machine's.
//!
//! A disk that is written to, or a neighbour of a virtual machine, keeps any thread of the highest priority from its
//! CPU for milliseconds; then a live run shows nothing. A probe beside the run, which only sleeps, tells the two apart.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use aqumen_live::lab::thread::wake_on_time;

/// A live run may be 2 ms late. Where one sleep in a hundred ends half of that too late, the machine disturbs it; on a
/// quiet one it is a tenth of a millisecond.
pub(crate) const DISTURBED: Duration = Duration::from_millis(1);

/// What `run` answers, and how late the worst of a hundred sleeps of a millisecond ended meanwhile.
pub(crate) fn beside<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let over = AtomicBool::new(false);
    // The probe ends also where `run` panics.
    struct Ends<'a>(&'a AtomicBool);
    impl Drop for Ends<'_> {
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
        let ends = Ends(&over);
        let answer = run();
        drop(ends);
        (answer, probe.join().unwrap())
    })
}

/// Waits until what waits for the disk is written and this machine wakes threads on time; a minute at most.
pub(crate) fn calm() {
    rustix::fs::sync();
    let end = Instant::now() + Duration::from_secs(60);
    while beside(|| thread::sleep(Duration::from_secs(1))).1 > DISTURBED && Instant::now() < end {}
}
