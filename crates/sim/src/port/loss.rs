//! Losses on the wire: at random, by bit errors, in bursts.

use aqumen_aqm::Draw;
use aqumen_scenario::channel::{Burst, Loss};
use aqumen_scenario::streams::Stream;
use aqumen_units::Instant;

use crate::channel::exponential;

/// The losses of a link over time.
pub(super) struct Losses {
    /// From each moment on.
    changes: Vec<(u64, Loss)>,
    /// Changes that are in force.
    begun: usize,
    /// Whether the Gilbert-Elliott model is in its bad state.
    bad: bool,
    /// With states that last for times: when this one ends.
    until: u64,
    /// The last size asked for, and the probability that bit errors spoil it.
    cached: (u32, f64),
    rng: Stream,
}

impl Losses {
    pub(super) fn new(changes: &[(Instant, Loss)], rng: Stream) -> Self {
        let changes = changes.iter().map(|(at, loss)| (at.as_nanos(), loss.clone())).collect();
        Losses { changes, begun: 0, bad: false, until: 0, cached: (0, 0.0), rng }
    }

    /// Whether a packet of `bytes` is lost whose transmission starts at `start`, which never goes back.
    pub(super) fn strikes(&mut self, start: u64, bytes: u32) -> bool {
        while self.changes.get(self.begun).is_some_and(|(from, _)| *from <= start) {
            self.begin(self.changes[self.begun].0);
        }
        let Some(now) = self.begun.checked_sub(1) else { return false };
        let loss = &self.changes[now].1;
        if self.cached.0 != bytes {
            self.cached = (bytes, loss.bit_error_loss(bytes));
        }
        let spoiled = self.cached.1;
        let in_burst = match &loss.burst {
            Some(burst) => {
                step(burst, start, &mut self.bad, &mut self.until, &mut self.rng);
                if self.bad { burst.bad.0 } else { burst.good.0 }
            }
            None => 0.0,
        };
        // Every cause draws, whatever the others did to the packet.
        [in_burst, loss.random.0, spoiled].into_iter().fold(false, |lost, p| lost | (p > 0.0 && self.rng.uniform() < p))
    }

    /// The next losses begin at `at`, in the good state.
    fn begin(&mut self, at: u64) {
        let loss = &self.changes[self.begun].1;
        self.begun += 1;
        self.bad = false;
        self.cached = (0, 0.0);
        if let Some(mean) = loss.burst.as_ref().and_then(|burst| burst.mean_good) {
            self.until = at + exponential(&mut self.rng, mean.as_nanos() as f64) as u64;
        }
    }
}

/// Moves the state of `burst` to a packet that is sent at `now`.
fn step(burst: &Burst, now: u64, bad: &mut bool, until: &mut u64, rng: &mut Stream) {
    if let (Some(mean_good), Some(mean_bad)) = (burst.mean_good, burst.mean_bad) {
        while *until <= now {
            *bad = !*bad;
            let mean = if *bad { mean_bad } else { mean_good };
            *until += exponential(rng, mean.as_nanos() as f64) as u64 + 1;
        }
    } else if let (Some(to_bad), Some(to_good)) = (burst.to_bad, burst.to_good) {
        let leaves = if *bad { to_good.0 } else { to_bad.0 };
        if rng.uniform() < leaves {
            *bad = !*bad;
        }
    }
}
