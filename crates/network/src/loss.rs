//! Losses on the wire: random losses, bit errors and bursts.

use aqumen_aqm::Draw;
use aqumen_scenario::channel::{Burst, Loss};
use aqumen_scenario::streams::Stream;
use aqumen_units::Instant;

use crate::channel::exponential;

/// The losses of a link over time.
#[derive(Clone, Debug)]
pub struct Losses {
    /// Loss settings with the moment from which they apply.
    changes: Vec<(u64, Loss)>,
    /// Number of changes that have begun.
    begun: usize,
    /// Whether the Gilbert-Elliott model is in its bad state.
    bad: bool,
    /// End of the current state, if states last for times.
    until: u64,
    /// Last packet size, and its probability of a bit error.
    cached: (u32, f64),
    rng: Stream,
}

impl Losses {
    /// Makes losses that begin at these moments, drawn from `rng`.
    pub fn new(changes: &[(Instant, Loss)], rng: Stream) -> Self {
        let changes = changes.iter().map(|(at, loss)| (at.as_nanos(), loss.clone())).collect();
        Losses { changes, begun: 0, bad: false, until: 0, cached: (0, 0.0), rng }
    }

    /// Draws whether a packet of `bytes` is lost. Calls are in the order of `start`, the start of its transmission.
    pub fn lose(&mut self, start: u64, bytes: u32) -> bool {
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
        // Each cause draws, so that the streams do not depend on each other.
        [in_burst, loss.random.0, spoiled].into_iter().fold(false, |lost, p| lost | (p > 0.0 && self.rng.uniform() < p))
    }

    pub(crate) fn reseed(&mut self, rng: Stream) {
        self.rng = rng;
    }

    /// Begins the next loss settings at `at`, in the good state.
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

/// Advances the state of `burst` to a packet that is sent at `now`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Use;
    use aqumen_scenario::channel::Probability;
    use aqumen_units::Span;

    const N: u64 = 200_000;

    /// Whether each of `N` packets of `bytes`, sent each millisecond, is lost.
    fn fates(loss: Loss, bytes: u32) -> Vec<bool> {
        let mut losses = Losses::new(&[(Instant::ZERO, loss)], Use::Loss.stream(1, 0));
        (0..N).map(|k| losses.lose(k * 1_000_000, bytes)).collect()
    }

    fn share(fates: &[bool]) -> f64 {
        fates.iter().filter(|lost| **lost).count() as f64 / fates.len() as f64
    }

    fn bursts(burst: Burst) -> Loss {
        Loss { burst: Some(burst), ..Loss::default() }
    }

    fn chances(good: f64, bad: f64) -> Burst {
        let (good, bad) = (Probability(good), Probability(bad));
        Burst { good, bad, to_bad: None, to_good: None, mean_good: None, mean_bad: None }
    }

    /// Asserts that the fraction of losses is within 3.29 standard errors (99.9 %) of `p`.
    fn assert_independent(loss: Loss, bytes: u32) {
        let p = loss.mean(bytes);
        let got = share(&fates(loss, bytes));
        assert!((got - p).abs() < 3.29 * (p * (1.0 - p) / N as f64).sqrt(), "{got}, not {p}");
    }

    #[test]
    fn random_losses_and_bit_errors_come_as_often_as_they_should() {
        assert_independent(Loss { random: Probability(0.02), ..Loss::default() }, 1500);
        let noisy = Loss { bit_errors: Probability(1e-5), ..Loss::default() };
        assert_independent(noisy.clone(), 1500);
        assert_independent(noisy, 40);
    }

    #[test]
    fn bursts_have_the_rate_and_length_of_the_gilbert_elliott_model() {
        // Gilbert: all is lost in the bad state. Share to_bad / (to_bad + to_good) = 1/11; runs of losses are geometric
        // with mean 1 / to_good = 10 and standard deviation sqrt(90).
        let burst = Burst { to_bad: Some(Probability(0.01)), to_good: Some(Probability(0.1)), ..chances(0.0, 1.0) };
        let loss = bursts(burst);
        let fates_of = fates(loss.clone(), 1000);
        // The state is an autoregression of correlation 1 - 0.01 - 0.1 = 0.89: the variance of its mean is (1 + 0.89) /
        // (1 - 0.89) times that of independent packets.
        let (p, got) = (1.0 / 11.0, share(&fates_of));
        assert!((loss.mean(1000) - p).abs() < 1e-12);
        let error = (p * (1.0 - p) / N as f64 * 1.89 / 0.11).sqrt();
        assert!((got - p).abs() < 3.29 * error, "{got}, not {p}");
        let runs = fates_of.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let length = fates_of.iter().filter(|lost| **lost).count() as f64 / runs;
        assert!((length - 10.0).abs() < 3.29 * (90.0 / runs).sqrt(), "{length}");
    }

    #[test]
    fn both_states_lose_with_their_own_probability() {
        let burst = Burst { to_bad: Some(Probability(0.02)), to_good: Some(Probability(0.08)), ..chances(0.01, 0.5) };
        // 0.8 x 0.01 + 0.2 x 0.5 = 0.108. Variance of the state's part 0.49^2 x 0.16 x (1 + 0.9) / (1 -
        // 0.9), of the coins at most 0.25.
        let (p, got) = (0.108, share(&fates(bursts(burst.clone()), 1000)));
        assert!((burst.mean() - p).abs() < 1e-12);
        let error = ((0.49 * 0.49 * 0.16 * 19.0 + 0.25) / N as f64).sqrt();
        assert!((got - p).abs() < 3.29 * error, "{got}, not {p}");
    }

    #[test]
    fn states_can_last_for_times_instead_of_packets() {
        let times = (Some(Span::from_millis(900)), Some(Span::from_millis(100)));
        let burst = Burst { mean_good: times.0, mean_bad: times.1, ..chances(0.0, 1.0) };
        let (p, got) = (0.1, share(&fates(bursts(burst.clone()), 1000)));
        assert!((burst.mean() - p).abs() < 1e-12);
        // Correlation exp(-t / 90 ms): the variance of the mean over 200 s is 2 x 0.09 s / 200 s times p (1 - p).
        let error = (p * (1.0 - p) * 2.0 * 0.09 / 200.0f64).sqrt();
        assert!((got - p).abs() < 3.29 * error, "{got}, not {p}");
    }

    #[test]
    fn losses_that_last_for_times_begin_in_the_good_state() {
        // From 10 s on, 900 ms on average pass before the first; of 1000 runs the mean deviates by 1 / sqrt(1000).
        let times = (Some(Span::from_millis(900)), Some(Span::from_millis(100)));
        let burst = Burst { mean_good: times.0, mean_bad: times.1, ..chances(0.0, 1.0) };
        let first = |seed| {
            let from = Instant::from_nanos(10_000_000_000);
            let mut losses = Losses::new(&[(from, bursts(burst.clone()))], Use::Loss.stream(seed, 0));
            (9_000..100_000).find(|ms| losses.lose(ms * 1_000_000, 1000)).expect("some are lost") - 10_000
        };
        let mean = (0..1000).map(first).sum::<u64>() as f64 / 1000.0;
        // The first packet after is half a millisecond later.
        assert!((mean - 900.5).abs() < 3.29 * 900.0 / 1000f64.sqrt(), "{mean}");
    }

    #[test]
    fn losses_begin_and_end_when_they_should() {
        let all = Loss { random: Probability(1.0), ..Loss::default() };
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let changes = [(at(10), all), (at(20), Loss::default())];
        let mut losses = Losses::new(&changes, Use::Loss.stream(1, 0));
        let lost: Vec<u64> = (0..30).filter(|ms| losses.lose(ms * 1_000_000, 1000)).collect();
        assert_eq!(lost, (10..20).collect::<Vec<u64>>());
    }
}
