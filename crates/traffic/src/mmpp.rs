//! Markov-modulated Poisson processes, one or several at a time.

use aqumen_scenario::mmpp::{MarkovSource, Minisources};
use aqumen_scenario::streams::Draw;
use aqumen_scenario::streams::Stream;
use aqumen_scenario::traffic;
use aqumen_units::Instant;

use crate::draw::exponential;
use crate::packets::PacketSize;
use crate::source::{Clock, Source, Step};

/// Independent processes in one flow.
#[derive(Clone)]
pub(super) struct Mmpp {
    processes: Vec<Process>,
    packet: PacketSize,
    clock: Clock,
    /// Time of the next packet of each process, on the source's clock; empty before the start.
    next_ns: Vec<u64>,
    /// Process that sends the next packet.
    sender: usize,
}

/// One process. It starts in its stationary law.
#[derive(Clone)]
struct Process {
    chain: MarkovSource,
    /// State, from 0; for minisources the number that are ON. `None` before the start.
    state: Option<usize>,
}

impl Mmpp {
    /// Makes the processes of `spec`, which the scenario has checked.
    pub(super) fn new(spec: &traffic::Mmpp) -> Self {
        let chains = spec.chains().unwrap_or_default();
        Mmpp {
            processes: chains.into_iter().map(|chain| Process { chain, state: None }).collect(),
            packet: PacketSize::new(&spec.packet.0),
            clock: Clock::default(),
            next_ns: Vec::new(),
            sender: 0,
        }
    }
}

impl Source for Mmpp {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        let now_ns = self.clock.resume(now);
        let mut wait = |process: &mut Process| now_ns.saturating_add((process.wait_ns(rng) + 0.5) as u64);
        if self.next_ns.is_empty() {
            self.next_ns = self.processes.iter_mut().map(wait).collect();
        } else {
            self.next_ns[self.sender] = wait(&mut self.processes[self.sender]);
        }
        let first = self.next_ns.iter().enumerate().min_by_key(|(_, at_ns)| **at_ns);
        let Some((sender, at_ns)) = first else { return Step::End };
        self.sender = sender;
        Step::At(self.clock.plan(*at_ns), self.packet.write(rng))
    }
}

impl Process {
    /// Draws the time until the next packet.
    fn wait_ns(&mut self, rng: &mut Stream) -> f64 {
        let mut state = self.state.unwrap_or_else(|| self.chain_start(rng));
        let mut wait_s = 0.0;
        loop {
            let (send, leave) = self.rates(state);
            // The sum is zero only for minisources that stay silent for ever, which a scenario refuses.
            wait_s += exponential(rng) / (send + leave);
            let drawn = rng.uniform() * (send + leave);
            if drawn < send {
                break;
            }
            state = self.leave(state, drawn - send);
        }
        self.state = Some(state);
        wait_s * 1e9
    }

    fn chain_start(&self, rng: &mut Stream) -> usize {
        match &self.chain {
            MarkovSource::States { shares, .. } => pick(shares.iter().copied(), rng.uniform()),
            MarkovSource::Minisources(mini) => {
                let share = mini.on.as_secs_f64() / (mini.on.as_secs_f64() + mini.off.as_secs_f64());
                (0..mini.count).filter(|_| rng.uniform() < share).count()
            }
        }
    }

    /// Returns packets per second and changes of state per second in `state`.
    fn rates(&self, state: usize) -> (f64, f64) {
        match &self.chain {
            MarkovSource::States { rates, generator, .. } => (rates[state], -generator[state][state]),
            MarkovSource::Minisources(mini) => {
                let [off, on] = changes(mini, state);
                (state as f64 * mini.rate.0, off + on)
            }
        }
    }

    /// Returns the state after `state`; `drawn` is uniform below the rate of leaving.
    fn leave(&self, state: usize, drawn: f64) -> usize {
        match &self.chain {
            MarkovSource::States { generator, .. } => {
                let out = -generator[state][state];
                let others =
                    generator[state].iter().enumerate().map(|(to, rate)| if to == state { 0.0 } else { *rate });
                pick(others, drawn / out)
            }
            MarkovSource::Minisources(mini) => {
                let [off, _] = changes(mini, state);
                // Where none is ON, none can go OFF.
                if drawn < off { state - 1 } else { (state + 1).min(mini.count as usize) }
            }
        }
    }
}

/// Transitions to OFF and to ON per second while `on` of the minisources are ON.
fn changes(mini: &Minisources, on: usize) -> [f64; 2] {
    let on = on as f64;
    [on / mini.on.as_secs_f64(), (f64::from(mini.count) - on) / mini.off.as_secs_f64()]
}

/// Returns the index that `u` in [0, 1) falls on, with probabilities in proportion to `weights`.
fn pick(weights: impl Iterator<Item = f64> + Clone, u: f64) -> usize {
    let mut left = u * weights.clone().sum::<f64>();
    let mut last = 0;
    for (i, weight) in weights.enumerate().filter(|(_, weight)| *weight > 0.0) {
        last = i;
        left -= weight;
        if left < 0.0 {
            break;
        }
    }
    // Rounding may leave a little over: the last index with a weight takes it.
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_left_for_each_other_as_often_as_its_rates_say() {
        // Out of the first state 1 to the second and 3 to the third, of 4: a quarter, and the rest.
        let generator = vec![vec![-4.0, 1.0, 3.0], vec![2.0, -2.0, 0.0], vec![0.5, 0.5, -1.0]];
        let chain = MarkovSource::States { rates: vec![1.0; 3], generator, shares: vec![1.0 / 3.0; 3] };
        let process = Process { chain, state: Some(0) };
        let to = |drawn: f64| process.leave(0, drawn);
        assert_eq!([0.0, 0.5, 0.99, 1.01, 2.0, 3.99].map(to), [1, 1, 1, 2, 2, 2]);
        assert_eq!([0.1, 1.9].map(|drawn| process.leave(1, drawn)), [0, 0]);
    }

    #[test]
    fn an_index_without_weight_is_never_picked() {
        let of = |u: f64| pick([0.0, 0.5, 0.0, 0.5, 0.0].into_iter(), u);
        assert_eq!([0.0, 0.49, 0.5, 0.99, 1.0].map(of), [1, 1, 3, 3, 3]);
    }

    #[test]
    fn minisources_go_on_and_off_one_at_a_time() {
        let seconds = aqumen_units::Span::from_secs;
        let (rate, model) = (aqumen_scenario::mmpp::PacketRate(5.0), aqumen_scenario::mmpp::MiniModel::Exact);
        let chain = MarkovSource::Minisources(Minisources { count: 3, on: seconds(2), off: seconds(4), rate, model });
        let process = Process { chain, state: None };
        // Of `on` each sends 5 packets/s and goes OFF 0.5 times a second; the others go ON 0.25 times.
        let rates: Vec<_> = (0..4).map(|on| process.rates(on)).collect();
        assert_eq!(rates, [(0.0, 0.75), (5.0, 1.0), (10.0, 1.25), (15.0, 1.5)]);
        assert_eq!([0.0, 0.74].map(|drawn| process.leave(0, drawn)), [1, 1]);
        assert_eq!([0.0, 0.49, 0.51, 0.99].map(|drawn| process.leave(1, drawn)), [0, 0, 2, 2]);
        // Rounding may leave a little over: there are no more than three.
        assert_eq!([0.0, 1.49, 1.5].map(|drawn| process.leave(3, drawn)), [2, 2, 3]);
    }
}
