//! Packet simulation of the model: every arrival and every service, independent of the analytical solution.
//!
//! Each source has its own random stream for state changes and packets; service times are Erlang distributed.
//! Independent runs, one for each seed, give confidence intervals to compare with the prediction.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use aqumen_aqm::Draw;
use aqumen_result::Summary;
use aqumen_scenario::streams::{Kind, Stream as Random};

use crate::early::Action;
use crate::measures::Measures;
use crate::model::Model;

/// Settings of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Runs {
    /// Measurement time of a run, seconds.
    pub duration_s: f64,
    /// Warm-up time before it, seconds.
    pub warmup_s: f64,
    /// Number of runs, with seeds 1, 2, ...
    pub seeds: u32,
}

/// Comparison of one measure: prediction and simulation.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Name of the measure.
    pub measure: &'static str,
    /// Index of the source; `None` for the queue or all packets.
    pub source: Option<usize>,
    /// Prediction; NaN if not defined.
    pub predicted: f64,
    /// Mean and 95 % confidence interval of the runs; `None` if no run has a value.
    pub simulated: Option<Summary>,
}

impl Comparison {
    /// Returns whether the prediction is within the confidence interval; `None` without an interval.
    pub fn inside(&self) -> Option<bool> {
        let [low, high] = self.simulated?.ci95?;
        // A measure that is equal in all runs has an interval of zero width.
        let slack = 1e-9 * self.predicted.abs();
        Some(low - slack <= self.predicted && self.predicted <= high + slack)
    }
}

/// Packet counters of one source, or of all.
#[derive(Clone, Copy, Debug, Default)]
struct PacketCounts {
    offered: u64,
    overflowed: u64,
    dropped: u64,
    marked: u64,
    served: u64,
    late: u64,
    delay_s: f64,
    delay_s2: f64,
}

/// Counters of one run.
#[derive(Clone, Debug)]
struct RunCounts {
    sources: Vec<PacketCounts>,
    occupancy_pkts_s: f64,
    busy_s: f64,
}

/// Simulates `model` and compares each measure with its prediction. The seeds are distributed over the cores; the
/// result is independent of their number.
pub fn simulate(model: &Model, predicted: &Measures, runs: &Runs) -> Vec<Comparison> {
    let late_s: Vec<f64> = predicted.sources.iter().map(|source| source.delay.quantile(0.99)).collect();
    let seeds = runs.seeds as usize;
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(seeds);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= seeds {
                return done;
            }
            done.push((i, run(model, &late_s, runs, i as u64 + 1)));
        }
    };
    let mut counted: Vec<(usize, RunCounts)> = std::thread::scope(|scope| {
        // A single worker needs no thread, which some platforms lack.
        if threads <= 1 {
            return work();
        }
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a run does not panic")).collect()
    });
    counted.sort_by_key(|(i, _)| *i);
    let counted: Vec<RunCounts> = counted.into_iter().map(|(_, counted)| counted).collect();
    compare(predicted, &counted, runs.duration_s)
}

fn compare(predicted: &Measures, counted: &[RunCounts], duration_s: f64) -> Vec<Comparison> {
    let mut all = Vec::new();
    let mut add = |measure, source, predicted, value: &dyn Fn(&RunCounts) -> f64| {
        let values: Vec<f64> = counted.iter().map(value).filter(|x| !x.is_nan()).collect();
        all.push(Comparison { measure, source, predicted, simulated: Summary::from_values(&values) });
    };
    add("utilization", None, predicted.utilization, &|c| c.busy_s / duration_s);
    add("occupancy_mean_pkts", None, predicted.occupancy_mean_pkts, &|c| c.occupancy_pkts_s / duration_s);
    let streams = predicted.sources.iter().enumerate().map(|(s, stream)| (Some(s), stream));
    for (source, stream) in std::iter::once((None, &predicted.total)).chain(streams) {
        let ratio = |part: fn(&PacketCounts) -> u64, whole: fn(&PacketCounts) -> u64| {
            move |c: &RunCounts| {
                let count = c.counts(source);
                part(&count) as f64 / whole(&count) as f64
            }
        };
        let offered = |c: &PacketCounts| c.offered;
        add("offered_pps", source, stream.offered_pps, &|c| c.counts(source).offered as f64 / duration_s);
        add("loss_ratio", source, stream.loss_ratio, &ratio(|c| c.overflowed + c.dropped, offered));
        add("overflow_drop_ratio", source, stream.overflow_drop_ratio, &ratio(|c| c.overflowed, offered));
        add("early_drop_ratio", source, stream.early_drop_ratio, &ratio(|c| c.dropped, offered));
        add("mark_ratio", source, stream.mark_ratio, &ratio(|c| c.marked, offered));
        add("delay_mean_s", source, stream.delay.mean_s(), &|c| {
            c.counts(source).delay_s / c.counts(source).served as f64
        });
        add("delay_std_s", source, stream.delay.std_s(), &|c| {
            let count = c.counts(source);
            let mean = count.delay_s / count.served as f64;
            (count.delay_s2 / count.served as f64 - mean * mean).max(0.0).sqrt()
        });
        if source.is_some() {
            add("delay_above_p99_ratio", source, 0.01, &ratio(|c| c.late, |c| c.served));
        }
    }
    all
}

impl RunCounts {
    fn counts(&self, source: Option<usize>) -> PacketCounts {
        match source {
            Some(s) => self.sources[s],
            None => self.sources.iter().fold(PacketCounts::default(), |sum, c| PacketCounts {
                offered: sum.offered + c.offered,
                overflowed: sum.overflowed + c.overflowed,
                dropped: sum.dropped + c.dropped,
                marked: sum.marked + c.marked,
                served: sum.served + c.served,
                late: sum.late + c.late,
                delay_s: sum.delay_s + c.delay_s,
                delay_s2: sum.delay_s2 + c.delay_s2,
            }),
        }
    }
}

/// State of a source in a simulation.
struct Sender<'a> {
    source: &'a super::Source,
    random: Random,
    state: usize,
    /// Time of its next event: a packet or a state change.
    next_s: f64,
}

impl<'a> Sender<'a> {
    fn start(source: &'a super::Source, mut random: Random) -> Self {
        let state = sample_index(source.stationary_distribution(), random.uniform());
        let mut sender = Sender { source, random, state, next_s: 0.0 };
        sender.schedule();
        sender
    }

    fn schedule(&mut self) {
        let rate = self.source.rates()[self.state] - self.source.generator[(self.state, self.state)];
        self.next_s += if rate > 0.0 { exponential(&mut self.random) / rate } else { f64::INFINITY };
    }

    /// Executes the event at `next_s`; returns whether it is a packet.
    fn step(&mut self) -> bool {
        let (send, leave) = (self.source.rates()[self.state], -self.source.generator[(self.state, self.state)]);
        let drawn = self.random.uniform() * (send + leave);
        let sends = drawn < send;
        if !sends {
            let mut to: Vec<f64> = self.source.generator.row(self.state).to_vec();
            to[self.state] = 0.0;
            self.state = sample_index(&to, (drawn - send) / leave);
        }
        self.schedule();
        sends
    }
}

/// Calls `visit` with the time of each packet that `source` sends within `duration_s`, nanoseconds from the start.
pub fn arrivals(source: &super::Source, seed: u64, duration_s: f64, mut visit: impl FnMut(i64)) {
    let mut sender = Sender::start(source, Random::new(seed, Kind::Traffic, 0));
    while sender.next_s < duration_s {
        let at_s = sender.next_s;
        if sender.step() {
            visit((at_s * 1e9) as i64);
        }
    }
}

/// Index selected by `u` in [0, 1), in proportion to `weights` of any sum.
fn sample_index(weights: &[f64], u: f64) -> usize {
    let mut left = u * weights.iter().sum::<f64>();
    for (i, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return i;
        }
    }
    // Rounding can leave a remainder: the last index of positive weight.
    weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0)
}

/// Exponential variate with mean 1.
fn exponential(random: &mut Random) -> f64 {
    -libm::log(1.0 - random.uniform())
}

fn run(model: &Model, late_s: &[f64], runs: &Runs, seed: u64) -> RunCounts {
    let queue = model.queue();
    let early = model.early();
    let stage_rate = queue.service_rate * f64::from(queue.stages);
    let mut senders: Vec<Sender<'_>> = model
        .sources()
        .iter()
        .enumerate()
        .map(|(s, source)| Sender::start(source, Random::new(seed, Kind::Traffic, s as u64)))
        .collect();
    let (mut service, mut coin) = (Random::new(seed, Kind::Link, 0), Random::new(seed, Kind::Aqm, 0));
    let mut serve = || (0..queue.stages).map(|_| exponential(&mut service)).sum::<f64>() / stage_rate;
    // Arrival times and sources of the packets present; the first is in service.
    let mut present: VecDeque<(f64, usize)> = VecDeque::with_capacity((queue.capacity as usize).min(1 << 20));
    let mut service_ends_s = f64::INFINITY;
    let (start_s, end_s) = (runs.warmup_s, runs.warmup_s + runs.duration_s);
    let mut last_s = start_s;
    let mut counted =
        RunCounts { sources: vec![PacketCounts::default(); senders.len()], occupancy_pkts_s: 0.0, busy_s: 0.0 };
    loop {
        let s = (0..senders.len()).min_by(|&a, &b| senders[a].next_s.total_cmp(&senders[b].next_s)).unwrap_or(0);
        let now_s = senders[s].next_s.min(service_ends_s);
        let until_s = now_s.min(end_s);
        if until_s > last_s {
            let span_s = until_s - last_s;
            counted.occupancy_pkts_s += span_s * present.len() as f64;
            counted.busy_s += if present.is_empty() { 0.0 } else { span_s };
            last_s = until_s;
        }
        if now_s >= end_s {
            return counted;
        }
        if service_ends_s <= senders[s].next_s {
            let (arrived_s, source) = present.pop_front().expect("a service that ends had a packet");
            service_ends_s = if present.is_empty() { f64::INFINITY } else { now_s + serve() };
            if now_s >= start_s {
                let (count, delay_s) = (&mut counted.sources[source], now_s - arrived_s);
                count.served += 1;
                count.delay_s += delay_s;
                count.delay_s2 += delay_s * delay_s;
                count.late += u64::from(delay_s > late_s[source]);
            }
            continue;
        }
        if !senders[s].step() {
            continue;
        }
        let mut warmup_counts = PacketCounts::default();
        let count = if now_s >= start_s { &mut counted.sources[s] } else { &mut warmup_counts };
        count.offered += 1;
        if present.len() >= queue.capacity as usize {
            count.overflowed += 1;
            continue;
        }
        let chance = early[s][present.len()];
        if chance > 0.0 && coin.uniform() < chance {
            match model.action() {
                Action::Drop => {
                    count.dropped += 1;
                    continue;
                }
                Action::Mark => count.marked += 1,
            }
        }
        present.push_back((now_s, s));
        if present.len() == 1 {
            service_ends_s = now_s + serve();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_selected_in_proportion_to_their_weights() {
        let weights = [1.0, 3.0, 0.0, 4.0];
        let mut times = [0u32; 4];
        (0..800).for_each(|k| times[sample_index(&weights, (f64::from(k) + 0.5) / 800.0)] += 1);
        assert_eq!(times, [100, 300, 0, 400]);
        assert_eq!(
            (sample_index(&weights, 0.0), sample_index(&weights, 0.125), sample_index(&weights, 1.0)),
            (0, 1, 3)
        );
        // A remainder from rounding selects the last index of positive weight.
        assert_eq!(sample_index(&[1.0, 2.0, 0.0], 1.0 + 1e-15), 1);
        assert_eq!(sample_index(&[0.0, 0.0], 0.5), 0);
    }

    #[test]
    fn counters_cover_the_time_after_the_warm_up_and_add_up_over_the_sources() {
        use crate::{Queue, Source};
        let sources = [("a", 70.0), ("b", 60.0)].map(|(name, rate)| Source::poisson(name, rate).unwrap());
        let queue = Queue { capacity: 10, service_rate: 100.0, stages: 1 };
        let model = Model::new(queue, sources.to_vec()).unwrap();
        let model = model.with_thresholds(Action::Drop, vec![Some(5.0), Some(7.0)]).unwrap();
        let runs = Runs { duration_s: 200.0, warmup_s: 20.0, seeds: 1 };
        let counted = run(&model, &[0.05; 2], &runs, 1);
        let [a, b, all] = [Some(0), Some(1), None].map(|source| counted.counts(source));
        let sums: [fn(&PacketCounts) -> u64; 5] =
            [|c| c.offered, |c| c.overflowed, |c| c.dropped, |c| c.served, |c| c.late];
        for of in sums {
            assert!(of(&a) > 0 && of(&b) > 0 && of(&all) == of(&a) + of(&b), "{counted:?}");
        }
        // Flow balance up to ten packets at either end; by Little's law the integral of the occupancy is the sum of all
        // delays.
        let gone = all.overflowed + all.dropped + all.served;
        assert!(all.offered.abs_diff(gone) <= 10 && all.marked == 0, "{all:?}");
        assert!((all.delay_s / counted.occupancy_pkts_s - 1.0).abs() < 1e-2, "{counted:?}");
        assert!((all.offered as f64 / (130.0 * 200.0) - 1.0).abs() < 0.05, "{all:?}");
    }

    #[test]
    fn a_prediction_equal_to_an_interval_of_zero_width_is_inside() {
        let of = |predicted: f64, values: &[f64]| {
            Comparison { measure: "x", source: None, predicted, simulated: Summary::from_values(values) }.inside()
        };
        assert_eq!((of(2.0, &[2.0, 2.0, 2.0]), of(2.1, &[2.0, 2.0, 2.0])), (Some(true), Some(false)));
        assert_eq!(
            (of(2.0, &[1.0, 2.0, 3.0]), of(9.0, &[1.0, 2.0, 3.0]), of(-5.0, &[1.0, 2.0, 3.0])),
            (Some(true), Some(false), Some(false))
        );
        // Up to rounding, at any magnitude.
        for size in [1e9, 2.0, -1e-9] {
            let near = [1.0 - 1e-10, 1.0 + 1e-10, 1.0 - 1e-8, 1.0 + 1e-8].map(|by| of(size * by, &[size; 3]));
            assert_eq!(near, [Some(true), Some(true), Some(false), Some(false)], "{size}");
        }
        assert_eq!((of(2.0, &[]), of(2.0, &[2.0])), (None, None));
    }
}
