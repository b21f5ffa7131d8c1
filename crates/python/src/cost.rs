//! Measurement of the cost of a run. Engines use no clock, so that they run on any platform.

use aqumen_result::RunResult;
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// Runs `engine` on this thread and records its cost.
pub(crate) fn measured<E>(engine: impl FnOnce() -> Result<RunResult, E>) -> Result<RunResult, E> {
    measured_by(ClockId::ThreadCPUTime, engine)
}

/// As `measured`, for an engine with threads of its own: the CPU time of the whole process.
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
