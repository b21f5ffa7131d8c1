//! How the equations move: Heun's method over steps that end wherever something happens, with the past interpolated.
//!
//! Each step ends at the latest where a control law steps, a flow starts or stops, a capacity changes, or the caller
//! wants to look; in between, equal steps no longer than asked for. A signal takes the path's whole round-trip time
//! from the queue to its effect on that queue, wherever on the path the queue is; fluid takes no time from one queue to
//! the next but the waiting itself, and leaves a queue in the mix in which it entered.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::f64::consts::LN_2;

use aqumen_result::Histogram;

use super::control::{Driver, Totals, View};
use super::history::{Cursor, History};
use super::model::{Class, Join, Model, Network, Queue};
use super::packets::StepThroughput;
use crate::Error;
use crate::equilibrium::window::{LEAD, gained};

/// Share of a round trip over which the slope of a window is taken that runs ahead of its queue.
const LEAD_OVER: f64 = 0.125;

/// A network in motion.
#[derive(Debug)]
pub struct Fluid {
    classes: Vec<ClassState>,
    queues: Vec<QueueState>,
    /// Pending events, the last first.
    schedule: Vec<(u64, Event)>,
    now_ns: u64,
    step_ns: u64,
    steps: u64,
    /// Windows, then queues, then average queues.
    state: Vec<f64>,
    history: History,
    /// How far back anyone ever looks, seconds.
    reach_s: f64,
    /// Whether an AQM looks at packets, which it signals one by one.
    one_by_one: bool,
    cursors: Vec<Cursor>,
    scratch: Scratch,
}

#[derive(Debug, Default)]
struct Scratch {
    first: Vec<f64>,
    second: Vec<f64>,
    trial: Vec<f64>,
    row: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Capacity { queue: usize, pps: f64 },
    Leave { class: usize, flow: usize },
    Join { class: usize, flow: usize },
}

#[derive(Debug)]
struct ClassState {
    class: Class,
    /// Flows that are on.
    flows: f64,
    /// Which of the class's joins are on.
    on: Vec<bool>,
    /// Packets delivered to each flow since the start, and at how many a flow is done.
    delivered_each: f64,
    /// When a flow came or went last, seconds: since then its mean window has been that of the same flows.
    since_s: f64,
    ends: BinaryHeap<Reverse<(TotalOrder, usize)>>,
    hops: Vec<Hop>,
    rate: Rates,
    seen: ClassTotals,
}

/// A class at a queue.
#[derive(Clone, Copy, Debug)]
struct Hop {
    queue: usize,
    /// Size of its packets in mean packets of the queue.
    weight: f64,
    /// Mean packets of the queue per second: that arrive, that enter.
    arrives: f64,
    enters: f64,
    /// Its share of what enters; of what leaves.
    share: f64,
    leaves_share: f64,
    /// Where the share is kept in the history, when another queue follows.
    channel: Option<usize>,
    cursor: usize,
}

/// Current rates of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    rtt_s: f64,
    sent: f64,
    lost: f64,
    delivered: f64,
}

/// Totals of a class since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ClassTotals {
    pub(crate) sent: f64,
    pub(crate) lost: f64,
    pub(crate) delivered: f64,
    /// Integral of the round-trip time over the packets sent.
    pub(crate) rtt_pkts_s: f64,
}

#[derive(Debug)]
struct QueueState {
    queue: Queue,
    driver: Driver,
    capacity: f64,
    rate: QueueRates,
    seen: QueueTotals,
    /// Sojourn times of arrivals, and the part of a packet not counted yet.
    sojourn: Histogram,
    uncounted: f64,
    /// Arrivals, departures and overflow at the end of the last step.
    met: [f64; 3],
}

/// Current rates of a queue, mean packets per second.
#[derive(Clone, Copy, Debug, Default)]
struct QueueRates {
    arrivals: f64,
    marked: f64,
    early: f64,
    overflow: f64,
    departures: f64,
    /// Share of the packets that are marked or lost.
    signal: f64,
}

/// Totals of a queue since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct QueueTotals {
    /// Integral of the queue length over time, and of its square.
    pub(crate) area: f64,
    pub(crate) area_squared: f64,
    pub(crate) arrivals: f64,
    pub(crate) marked: f64,
    pub(crate) early: f64,
    pub(crate) overflow: f64,
    pub(crate) departures: f64,
    pub(crate) busy_s: f64,
    /// Queue lengths at the law's instants: sum, sum of squares, number.
    pub(crate) sampled: [f64; 3],
}

/// A number with a total order.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TotalOrder(f64);

impl Eq for TotalOrder {}

impl PartialOrd for TotalOrder {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TotalOrder {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Fluid {
    /// The network at rest before its start, to be moved in steps of at most `step_s` seconds.
    pub fn new(network: Network, step_s: f64) -> Result<Self, Error> {
        check(&network, step_s)?;
        let n_classes = network.classes.len();
        // At equal times in this order: capacities, and flows of a class by their start, so that who leaves is no part
        // of the mean window that those who come find. Taken from the end.
        let mut schedule = Vec::new();
        for (j, queue) in network.queues.iter().enumerate() {
            schedule.extend(queue.rates.iter().map(|&(at, pps)| (at, Event::Capacity { queue: j, pps })));
        }
        for (k, class) in network.classes.iter().enumerate() {
            for (flow, join) in class.joins.iter().enumerate() {
                schedule.push((join.from_ns, Event::Join { class: k, flow }));
                schedule.extend(join.until_ns.map(|until| (until, Event::Leave { class: k, flow })));
            }
        }
        schedule.sort_by_key(|&(at, _)| at);
        schedule.reverse();

        let reach_s = reach_s(&network);
        let mut channels = 3 * n_classes;
        let mut cursors = 2 * n_classes;
        let queue_bytes: Vec<f64> = network.queues.iter().map(|queue| queue.packet_bytes).collect();
        let classes: Vec<ClassState> = network
            .classes
            .into_iter()
            .map(|class| {
                let last = class.path.len().saturating_sub(1);
                let hop = |(h, &queue): (usize, &usize)| {
                    let kept = h < last;
                    let hop = Hop {
                        queue,
                        weight: class.packet_bytes / queue_bytes[queue],
                        arrives: 0.0,
                        enters: 0.0,
                        share: 0.0,
                        leaves_share: 0.0,
                        channel: kept.then_some(channels),
                        cursor: cursors,
                    };
                    channels += kept as usize;
                    cursors += kept as usize;
                    hop
                };
                let hops = class.path.iter().enumerate().map(hop).collect();
                ClassState {
                    flows: 0.0,
                    on: vec![false; class.joins.len()],
                    delivered_each: 0.0,
                    since_s: 0.0,
                    ends: BinaryHeap::new(),
                    hops,
                    rate: Rates::default(),
                    seen: ClassTotals::default(),
                    class,
                }
            })
            .collect();
        let ect = classes.iter().any(|class| class.class.model != Model::Drop);
        let queues: Vec<QueueState> = network
            .queues
            .into_iter()
            .map(|mut queue| {
                let control = std::mem::replace(&mut queue.control, super::Control::None);
                QueueState {
                    driver: Driver::new(control, network.sample_at_start, queue.buffer_pkts, queue.packet_bytes, ect),
                    capacity: queue.rates[0].1,
                    queue,
                    rate: QueueRates::default(),
                    seen: QueueTotals::default(),
                    sojourn: Histogram::default(),
                    uncounted: 0.0,
                    met: [0.0; 3],
                }
            })
            .collect();
        let mut state: Vec<f64> = classes.iter().map(|c| c.class.initial_window).collect();
        state.extend(queues.iter().map(|q| q.queue.initial_pkts));
        state.extend(queues.iter().map(|q| q.queue.initial_average_pkts));
        let zeros = vec![0.0; state.len()];
        let mut fluid = Fluid {
            schedule,
            now_ns: 0,
            step_ns: ((step_s * 1e9).round() as u64).max(1),
            steps: 0,
            history: History::new(channels),
            reach_s,
            one_by_one: queues.iter().any(|queue| queue.driver.looks_at_packets()),
            cursors: vec![Cursor::default(); cursors],
            scratch: Scratch { first: zeros.clone(), second: zeros.clone(), trial: zeros, row: vec![0.0; channels] },
            state,
            classes,
            queues,
        };
        fluid.begin();
        Ok(fluid)
    }

    /// Moves on to `until_ns` and does all that is due there.
    pub fn advance(&mut self, until_ns: u64) {
        self.happen();
        while self.now_ns < until_ns {
            // An algorithm whose timer stands still must not stop the clock.
            let stop = self.next_stop().max(self.now_ns + 1).min(until_ns);
            let span = stop - self.now_ns;
            let parts = span.div_ceil(self.step_ns);
            self.step(span.div_ceil(parts), stop);
            if self.now_ns == stop {
                self.happen();
            }
        }
    }

    /// The present moment, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Steps made so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Packets that wait in queue `queue`.
    pub fn queue_pkts(&self, queue: usize) -> f64 {
        self.state[self.classes.len() + queue]
    }

    /// The window of class `class`, packets.
    pub fn window_pkts(&self, class: usize) -> f64 {
        self.state[class]
    }

    /// Flows of class `class` that are on.
    pub fn flows(&self, class: usize) -> f64 {
        self.classes[class].flows
    }

    /// The probability at queue `queue` as traces show it.
    pub(crate) fn shown_probability(&self, queue: usize) -> f64 {
        let average = self.state[self.classes.len() + self.queues.len() + queue];
        self.queues[queue].driver.shown_probability(average)
    }

    /// Whether queue `queue` spares packets that its law would signal.
    pub(crate) fn is_sparing(&self, queue: usize) -> bool {
        self.queues[queue].driver.is_sparing()
    }

    /// The probability in force at queue `queue`.
    pub fn probability(&self, queue: usize) -> f64 {
        self.probability_at(queue, &self.state)
    }

    /// The round-trip time of class `class` at the moment, seconds.
    pub fn round_trip_s(&self, class: usize) -> f64 {
        self.rtt(class, &self.state)
    }

    /// Number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.classes.len()
    }

    pub(crate) fn group(&self, class: usize) -> u32 {
        self.classes[class].class.group
    }

    pub(crate) fn members(&self, class: usize) -> f64 {
        self.classes[class].class.members
    }

    /// Packets that queue `queue` could have sent from one moment to another.
    pub(crate) fn capacity_pkts(&self, queue: usize, from_ns: u64, to_ns: u64) -> f64 {
        let rates = &self.queues[queue].queue.rates;
        let part = |(k, &(at, pps)): (usize, &(u64, f64))| {
            let until = rates.get(k + 1).map_or(to_ns, |next| next.0).min(to_ns);
            pps * until.saturating_sub(at.max(from_ns)) as f64 * 1e-9
        };
        rates.iter().enumerate().map(part).sum()
    }

    pub(crate) fn class_totals(&self, class: usize) -> ClassTotals {
        self.classes[class].seen
    }

    pub(crate) fn queue_totals(&self, queue: usize) -> QueueTotals {
        self.queues[queue].seen
    }

    /// Sojourn times of what came in since the last call, nanoseconds.
    pub(crate) fn take_sojourn(&mut self, queue: usize) -> Histogram {
        std::mem::take(&mut self.queues[queue].sojourn)
    }

    fn probability_at(&self, queue: usize, state: &[f64]) -> f64 {
        self.queues[queue].driver.probability(state[self.classes.len() + self.queues.len() + queue])
    }

    /// The round-trip time of a class in a state.
    fn rtt(&self, class: usize, state: &[f64]) -> f64 {
        let (class, first) = (&self.classes[class], self.classes.len());
        class
            .hops
            .iter()
            .fold(class.class.base_rtt_s, |rtt, hop| rtt + state[first + hop.queue] / self.queues[hop.queue].capacity)
    }

    /// The row that stands for all that was before the start: the first windows, the laws' first probabilities.
    fn begin(&mut self) {
        while let Some(&(0, event @ Event::Capacity { .. })) = self.schedule.last() {
            self.schedule.pop();
            self.occur(event);
        }
        let state = std::mem::take(&mut self.state);
        for k in 0..self.classes.len() {
            let rtt = self.rtt(k, &state);
            let passes =
                self.classes[k].hops.iter().fold(1.0, |p, hop| p * (1.0 - self.probability_at(hop.queue, &state)));
            self.scratch.row[3 * k..3 * k + 3].copy_from_slice(&[state[k], rtt, 1.0 - passes]);
        }
        self.state = state;
        self.history.push(-1.0, &self.scratch.row);
    }

    fn next_stop(&self) -> u64 {
        let event = self.schedule.last().map_or(u64::MAX, |&(at, _)| at);
        self.queues.iter().map(|queue| queue.driver.due_ns()).min().unwrap_or(u64::MAX).min(event)
    }

    /// Does all that is due now: events, then control laws.
    fn happen(&mut self) {
        while let Some(&(at, event)) = self.schedule.last() {
            if at > self.now_ns {
                break;
            }
            self.schedule.pop();
            self.occur(event);
        }
        let first = self.classes.len();
        for j in 0..self.queues.len() {
            let queue = &mut self.queues[j];
            if queue.driver.due_ns() > self.now_ns {
                continue;
            }
            let waiting = self.state[first + j];
            let seen = &queue.seen;
            let view = View {
                queue_pkts: waiting,
                packet_bytes: queue.queue.packet_bytes,
                sojourn_s: waiting / queue.capacity,
                totals: Totals {
                    arrivals: seen.arrivals,
                    accepted: seen.arrivals - seen.early - seen.overflow,
                    departures: seen.departures,
                    busy_s: seen.busy_s,
                },
            };
            if queue.driver.sample(self.now_ns, view) {
                let sampled = &mut queue.seen.sampled;
                *sampled = [sampled[0] + waiting, sampled[1] + waiting * waiting, sampled[2] + 1.0];
            }
        }
    }

    fn occur(&mut self, event: Event) {
        match event {
            Event::Capacity { queue, pps } => self.queues[queue].capacity = pps,
            Event::Join { class: k, flow } => {
                let class = &mut self.classes[k];
                let Join { flows, transfer_pkts, .. } = class.class.joins[flow];
                class.on[flow] = true;
                class.since_s = self.now_ns as f64 * 1e-9;
                // The average window now counts the newcomers'.
                let sum = self.state[k] * class.flows + class.class.initial_window * flows;
                class.flows += flows;
                self.state[k] = sum / class.flows;
                if let Some(packets) = transfer_pkts {
                    class.ends.push(Reverse((TotalOrder(class.delivered_each + packets), flow)));
                }
            }
            Event::Leave { class, flow } => self.classes[class].leave(flow, self.now_ns),
        }
    }

    /// One Heun step of `step_ns`, not beyond `stop`.
    fn step(&mut self, step_ns: u64, stop: u64) {
        let end_ns = (self.now_ns + step_ns).min(stop);
        let (t, h) = (self.now_ns as f64 * 1e-9, (end_ns - self.now_ns) as f64 * 1e-9);
        let mut scratch = std::mem::take(&mut self.scratch);
        let state = std::mem::take(&mut self.state);

        self.slopes(t, &state, &mut scratch.first);
        self.remember(t, &state, &mut scratch.row);
        self.account(0.5 * h);
        for ((trial, &now), &slope) in scratch.trial.iter_mut().zip(&state).zip(&scratch.first) {
            *trial = now + h * slope;
        }
        self.project(&mut scratch.trial);
        self.slopes(t + h, &scratch.trial, &mut scratch.second);
        self.account(0.5 * h);
        let next = &mut scratch.trial;
        for (((next, &now), &first), &second) in next.iter_mut().zip(&state).zip(&scratch.first).zip(&scratch.second) {
            *next = now + 0.5 * h * (first + second);
        }
        self.settle(h, end_ns, &state, next);
        self.state = std::mem::replace(next, state);
        self.scratch = scratch;
        self.now_ns = end_ns;
        self.steps += 1;
        self.finish_transfers(h);
        self.history.forget(end_ns as f64 * 1e-9 - self.reach_s, &mut self.cursors);
    }

    /// The slopes of a state at `t`, and on the way all rates.
    fn slopes(&mut self, t: f64, state: &[f64], slopes: &mut [f64]) {
        let (n_classes, n_queues) = (self.classes.len(), self.queues.len());
        for k in 0..n_classes {
            let rtt = self.rtt(k, state);
            let class = &mut self.classes[k];
            let at = self.history.find(t - rtt, &mut self.cursors[k]);
            let (old_window, old_rtt) = (self.history.linear(at, 3 * k), self.history.linear(at, 3 * k + 1));
            let p = self.history.held(at, 3 * k + 2);
            let window = state[k];
            let acknowledged = old_window / old_rtt;
            let cut = 0.5 * window * acknowledged * p;
            let slope = match class.class.model {
                Model::Hollot => 1.0 / rtt - cut,
                Model::Ecn | Model::Drop => (1.0 - p) * acknowledged / window - cut,
                // No window is halved more than once a round trip. Signals that come one by one are all of the packets
                // of a step, or none: those are not that many.
                Model::Reno if self.one_by_one => acknowledged / window * gained(window, p),
                Model::Reno => (acknowledged / window * gained(window, p)).max(-LN_2 * window / old_rtt),
            };
            let held = class.flows == 0.0
                || class.class.rate_pps.is_some()
                || window <= class.class.min_window && slope < 0.0
                || window >= class.class.max_window && slope > 0.0;
            slopes[k] = if held { 0.0 } else { slope };
            let ahead = if class.class.model == Model::Reno {
                // The window's slope over a while, so that it is one where signals come one by one.
                let while_s = (rtt * LEAD_OVER).min(t - class.since_s);
                let at = self.history.find(t - while_s, &mut self.cursors[n_classes + k]);
                if while_s > 1e-9 { LEAD * (window - self.history.linear(at, 3 * k)) / while_s } else { 0.0 }
            } else {
                0.0
            };
            let sent_each = class.class.rate_pps.unwrap_or((window / rtt + ahead).max(0.0));
            class.rate = Rates { rtt_s: rtt, sent: class.flows * sent_each, ..Rates::default() };
            if let Some(hop) = class.hops.first_mut() {
                hop.arrives = class.rate.sent * hop.weight;
            }
        }
        for j in 0..n_queues {
            let (waiting, average) = (state[n_classes + j], state[n_classes + n_queues + j]);
            slopes[n_classes + j] = self.pass(j, t, waiting, average);
            let queue = &self.queues[j];
            let decay = queue.driver.decay();
            slopes[n_classes + n_queues + j] = if decay == 0.0 {
                0.0
            } else {
                let arrivals = if waiting > 0.0 { queue.rate.arrivals } else { queue.capacity };
                decay * arrivals * (waiting - average)
            };
        }
    }

    /// Computes the rates through queue `j`; returns its slope. What leaves goes to the next queue of each class, which
    /// reads it now if it comes later in the list, at the next evaluation if it came earlier.
    fn pass(&mut self, j: usize, t: f64, waiting: f64, average: f64) -> f64 {
        let queue = &mut self.queues[j];
        let p = queue.driver.probability(average);
        let loses_marks = queue.driver.loses_marks(average);
        let keeps = |model| match model {
            Model::Drop => 1.0 - p,
            Model::Hollot | Model::Ecn | Model::Reno if loses_marks => 1.0 - p,
            Model::Hollot | Model::Ecn | Model::Reno => 1.0,
        };
        // Unresponsive traffic carries no marks unless everybody does.
        let drops = |class: &ClassState| class.class.model == Model::Drop && class.class.rate_pps.is_none();
        let everybody_drops = loses_marks || self.classes.iter().any(drops);
        let unresponsive = queue.queue.unresponsive_pps;
        let (mut arrivals, mut enters) = (unresponsive, unresponsive * if everybody_drops { 1.0 - p } else { 1.0 });
        let mut marked = if everybody_drops { 0.0 } else { unresponsive * p };
        for class in &mut self.classes {
            let keep = keeps(class.class.model);
            for hop in class.hops.iter_mut().filter(|hop| hop.queue == j) {
                arrivals += hop.arrives;
                hop.enters = hop.arrives * keep;
                enters += hop.enters;
                if keep == 1.0 {
                    marked += hop.arrives * p;
                }
            }
        }
        let early = arrivals - enters;
        let room = if waiting >= queue.queue.buffer_pkts { (queue.capacity / enters).min(1.0) } else { 1.0 };
        let departures = if waiting > 0.0 { queue.capacity } else { queue.capacity.min(enters * room) };
        queue.rate = QueueRates {
            arrivals,
            marked: marked * room,
            early,
            overflow: enters * (1.0 - room),
            departures,
            signal: 1.0 - (1.0 - p) * room,
        };
        let (rate, capacity) = (queue.rate, queue.capacity);
        for class in &mut self.classes {
            let keep = keeps(class.class.model);
            let mut downstream = None;
            for hop in &mut class.hops {
                if let Some(leaves) = downstream.take() {
                    hop.arrives = leaves * hop.weight;
                }
                if hop.queue != j {
                    continue;
                }
                class.rate.lost += hop.arrives * (1.0 - keep * room) / hop.weight;
                hop.share = if enters > 0.0 { hop.enters / enters } else { 0.0 };
                hop.leaves_share = match hop.channel {
                    Some(channel) if waiting > 0.0 => {
                        let at = self.history.find(t - waiting / capacity, &mut self.cursors[hop.cursor]);
                        self.history.linear(at, channel)
                    }
                    _ => hop.share,
                };
                let leaves = rate.departures * hop.leaves_share / hop.weight;
                match hop.channel {
                    Some(_) => downstream = Some(leaves),
                    None => class.rate.delivered = leaves,
                }
            }
        }
        let slope = enters * room - rate.departures;
        if waiting <= 0.0 && slope < 0.0 { 0.0 } else { slope }
    }

    /// Keeps the state at `t`, and the signals that leave the queues from then on.
    fn remember(&mut self, t: f64, state: &[f64], row: &mut [f64]) {
        for (k, class) in self.classes.iter().enumerate() {
            let passes = class.hops.iter().fold(1.0, |passes, hop| passes * (1.0 - self.queues[hop.queue].rate.signal));
            row[3 * k..3 * k + 3].copy_from_slice(&[state[k], class.rate.rtt_s, 1.0 - passes]);
            for hop in &class.hops {
                if let Some(channel) = hop.channel {
                    row[channel] = hop.share;
                }
            }
        }
        self.history.push(t, row);
    }

    /// Adds the present rates to the totals, over `h` seconds.
    fn account(&mut self, h: f64) {
        for class in &mut self.classes {
            let (rate, seen) = (&class.rate, &mut class.seen);
            seen.sent += h * rate.sent;
            seen.lost += h * rate.lost;
            // A flow whose path has no queue gets all it sends.
            seen.delivered += h * if class.hops.is_empty() { rate.sent } else { rate.delivered };
            seen.rtt_pkts_s += h * rate.sent * rate.rtt_s;
        }
        for queue in &mut self.queues {
            let (rate, seen) = (&queue.rate, &mut queue.seen);
            seen.arrivals += h * rate.arrivals;
            seen.marked += h * rate.marked;
            seen.early += h * rate.early;
            seen.overflow += h * rate.overflow;
            seen.departures += h * rate.departures;
            seen.busy_s += h * rate.departures / queue.capacity;
        }
    }

    /// Brings a state back into its bounds.
    fn project(&self, state: &mut [f64]) {
        for (window, class) in state.iter_mut().zip(&self.classes) {
            *window = window.clamp(class.class.min_window, class.class.max_window);
        }
        for (waiting, queue) in state[self.classes.len()..].iter_mut().zip(&self.queues) {
            *waiting = waiting.clamp(0.0, queue.queue.buffer_pkts);
        }
    }

    /// Ends a step: bounds, areas, and the balance of every queue. What a bound cuts off is lost or not sent.
    fn settle(&mut self, h: f64, end_ns: u64, before: &[f64], after: &mut [f64]) {
        let first = self.classes.len();
        let now_ns = self.now_ns;
        for (j, queue) in self.queues.iter_mut().enumerate() {
            let (old, new) = (before[first + j], &mut after[first + j]);
            let (limit, seen) = (queue.queue.buffer_pkts, &mut queue.seen);
            seen.overflow += (*new - limit).max(0.0);
            seen.departures += new.min(0.0);
            let new = new.clamp(0.0, limit);
            queue.uncounted += h * (queue.rate.arrivals - queue.rate.early - queue.rate.overflow);
            let whole = libm::floor(queue.uncounted);
            if whole >= 1.0 {
                queue.sojourn.record_many((new / queue.capacity * 1e9) as u64, whole as u64);
                queue.uncounted -= whole;
            }
            let passed = StepThroughput {
                arrivals: seen.arrivals - queue.met[0],
                departures: seen.departures - queue.met[1],
                overflow: seen.overflow - queue.met[2],
            };
            queue.met = [seen.arrivals, seen.departures, seen.overflow];
            queue.driver.meet(now_ns, end_ns, passed, new, new / queue.capacity);
            seen.area += 0.5 * h * (old + new);
            seen.area_squared += h * (old * old + old * new + new * new) / 3.0;
        }
        self.project(after);
    }

    /// Ends flows that have got all they wanted.
    fn finish_transfers(&mut self, h: f64) {
        for class in &mut self.classes {
            if class.ends.is_empty() || class.flows == 0.0 {
                continue;
            }
            let rate = if class.hops.is_empty() { class.rate.sent } else { class.rate.delivered };
            class.delivered_each += h * rate / class.flows;
            while let Some(&Reverse((TotalOrder(end), flow))) = class.ends.peek() {
                if end > class.delivered_each {
                    break;
                }
                class.ends.pop();
                class.leave(flow, self.now_ns);
            }
        }
    }
}

impl ClassState {
    fn leave(&mut self, flow: usize, now_ns: u64) {
        self.since_s = now_ns as f64 * 1e-9;
        // A flow may have ended of itself.
        if std::mem::replace(&mut self.on[flow], false) {
            self.flows = (self.flows - self.class.joins[flow].flows).max(0.0);
        }
    }
}

/// The longest round trip that can come about, seconds: every queue of a way is full, at the
/// least capacity that it ever has.
fn reach_s(network: &Network) -> f64 {
    let full_s =
        |queue: &Queue| queue.buffer_pkts / queue.rates.iter().map(|rate| rate.1).fold(f64::INFINITY, f64::min);
    let round_trip_s =
        |class: &Class| class.path.iter().fold(class.base_rtt_s, |rtt, &queue| rtt + full_s(&network.queues[queue]));
    network.classes.iter().map(round_trip_s).fold(0.0, f64::max)
}

fn check(network: &Network, step_s: f64) -> Result<(), Error> {
    let refuse = |words: String| Err(Error::Unsupported(words));
    if !(step_s > 0.0 && step_s.is_finite()) {
        return refuse(format!("a step of {step_s} s: must be above 0"));
    }
    for (j, queue) in network.queues.iter().enumerate() {
        if queue.rates.first().is_none_or(|first| first.0 != 0)
            || queue.rates.iter().any(|&(_, pps)| pps.is_nan() || pps <= 0.0)
        {
            return refuse(format!("queue {j}: its capacity must be known from the start and stay above 0"));
        }
        if !(queue.buffer_pkts > 0.0 && queue.packet_bytes > 0.0 && queue.initial_pkts >= 0.0) {
            return refuse(format!("queue {j}: buffer and packet size must be above 0"));
        }
    }
    for (k, class) in network.classes.iter().enumerate() {
        if class.base_rtt_s.is_nan() || class.base_rtt_s < 2.0 * step_s {
            return refuse(format!(
                "class {k}: a step of {step_s} s is too long for a base RTT of {} s",
                class.base_rtt_s
            ));
        }
        if !(class.min_window > 0.0 && class.min_window <= class.initial_window && class.initial_window.is_finite()) {
            return refuse(format!("class {k}: its windows must be above 0, the first not below the smallest"));
        }
        if class.rate_pps.is_some_and(|rate| !(rate >= 0.0 && rate.is_finite())) {
            return refuse(format!("class {k}: its rate must be at least 0 and finite"));
        }
        if class.path.iter().any(|&queue| queue >= network.queues.len()) {
            return refuse(format!("class {k}: there is no such queue on its path"));
        }
    }
    Ok(())
}
