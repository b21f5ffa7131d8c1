//! What a call costs: engines know no clock, so that they run where there is none.

use aqumen_result::RunResult;
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// Runs `engine` on this thread and fills in what that cost.
pub(crate) fn measured<E>(engine: impl FnOnce() -> Result<RunResult, E>) -> Result<RunResult, E> {
    measured_by(ClockId::ThreadCPUTime, engine)
}

/// The same where it has threads of its own: what all threads of this process cost meanwhile.
pub(crate) fn measured_of_all<E>(engine: impl FnOnce() -> Result<RunResult, E>) -> Result<RunResult, E> {
    measured_by(ClockId::ProcessCPUTime, engine)
}

fn measured_by<E>(clock: ClockId, engine: impl FnOnce() -> Result<RunResult, E>) -> Result<RunResult, E> {
    let (cpu, wall) = (seconds(clock), Instant::now());
    let mut result = engine()?;
    result.cost.cpu_s = seconds(clock) - cpu;
    result.cost.wall_s = wall.elapsed().as_secs_f64();
    Ok(result)
}

/// CPU time of this thread, seconds.
pub(crate) fn cpu_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
