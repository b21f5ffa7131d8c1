//! Sharing of a link by endless TCP transfers: synchrony of their windows, fairness over sliding intervals, and time to
//! fairness after a flow starts.
//!
//! At most [`SAMPLED_FLOWS`] flows, spread evenly over those that cross the link, are sampled with the series. The cost
//! does not grow with the number of flows, and packets cost nothing. Throughput is the rate of acknowledged data.

use std::collections::VecDeque;

use aqumen_result::{Synchrony, jain, jain_of_sums};
use aqumen_scenario::{Plan, Window};

/// Most flows that are sampled.
const SAMPLED_FLOWS: usize = 256;
/// Length of the sliding interval, rounded up to a whole number of sampling intervals, nanoseconds.
const INTERVAL: u64 = 1_000_000_000;
/// Least fairness index of converged flows.
const CONVERGED: f64 = 0.9;

/// State of an endless TCP transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TransferState {
    /// Congestion window, segments.
    pub(crate) window: f64,
    /// Segments acknowledged.
    pub(crate) acknowledged: u32,
}

/// Sharing of one link.
#[derive(Clone)]
pub(crate) struct Sharing {
    flows: Vec<SampledFlow>,
    /// Length of the sliding interval, nanoseconds.
    interval: u64,
    /// Index in `flows` of each flow of the plan, or `NONE`.
    positions: Vec<u32>,
    /// Window of each flow at the last sample.
    latest: Vec<f64>,
    recent: SlidingInterval,
    /// Samples per interval.
    steps: usize,
    /// Samples so far.
    samples: usize,
    piece: Synchrony,
    pub(crate) pieces: Vec<Synchrony>,
    /// End of each interval, and Jain's index of the flows that were on throughout, if they were two or more.
    trace: Vec<(u64, f64)>,
    /// Times at which flows start or resume, ascending.
    starts: Vec<u64>,
    /// Time from which all flows offer data to the end; `u64::MAX` if there is none.
    all_on_from: u64,
    /// Windows at the last samples that are not in `piece` yet.
    windows: Vec<f64>,
}

/// Acknowledged data within the last interval.
#[derive(Clone)]
struct SlidingInterval {
    /// Bytes of each flow, and payload per segment.
    flows: Vec<(u64, u64)>,
    /// Flow and segments acknowledged at each sample, the oldest first.
    samples: VecDeque<Vec<(u32, u32)>>,
    /// Sum of the bytes of all flows.
    sum: u64,
    /// Sum of their squares modulo 2^64: exact while `sum` is below 2^32.
    squares: u64,
}

/// Index of a flow that is not sampled.
const NONE: u32 = u32::MAX;

/// Number of samples that are added at once.
const TOGETHER: usize = 8;

/// Bound below which integers and their sums are exact in floating point, in any order.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;

/// A sampled flow.
#[derive(Clone)]
struct SampledFlow {
    number: u32,
    /// Receive window, segments.
    receive_window: f64,
    /// Segments acknowledged at the last sample.
    acknowledged: u32,
    /// Time from which it offers data to the end of the run, if there is one.
    on_from: Option<u64>,
}

impl Sharing {
    /// Begins the measurement of link number `link`.
    pub(crate) fn new(plan: &Plan, link: u32) -> Self {
        let crossing: Vec<u32> = (0u32..)
            .zip(&plan.flows)
            .filter(|(_, flow)| plan.is_endless(flow) && flow.path.contains(&link))
            .map(|(number, _)| number)
            .collect();
        let n = crossing.len().min(SAMPLED_FLOWS);
        let flows: Vec<u32> = (0..n).map(|k| crossing[k * crossing.len() / n]).collect();
        let step = plan.sample_interval.as_nanos().max(1);
        let steps = INTERVAL.div_ceil(step) as usize;
        let mut starts: Vec<u64> =
            flows.iter().flat_map(|&flow| &plan.flows[flow as usize].on).map(|(from, _)| from.as_nanos()).collect();
        starts.sort_unstable();
        let mut positions = vec![NONE; if n > 1 { plan.flows.len() } else { 0 }];
        flows.iter().zip(0u32..).filter(|_| n > 1).for_each(|(&flow, position)| positions[flow as usize] = position);
        let payload = |flow: &u32| {
            let group = &plan.groups[plan.flows[*flow as usize].group as usize];
            (0, u64::from(group.transport.payload_bytes()))
        };
        let payloads = flows.iter().map(payload).collect();
        let flows: Vec<SampledFlow> = flows.into_iter().map(|flow| SampledFlow::new(plan, flow)).collect();
        let all_on_from = flows.iter().map(|flow| flow.on_from.unwrap_or(u64::MAX)).max();
        Sharing {
            interval: steps as u64 * step,
            positions,
            latest: vec![0.0; n],
            recent: SlidingInterval { flows: payloads, samples: VecDeque::new(), sum: 0, squares: 0 },
            flows,
            steps,
            samples: 0,
            piece: Synchrony::default(),
            pieces: Vec::new(),
            trace: Vec::new(),
            starts,
            all_on_from: all_on_from.unwrap_or(u64::MAX),
            windows: Vec::with_capacity(TOGETHER * n),
        }
    }

    /// Returns the sampled flows.
    pub(crate) fn sampled(&self) -> impl Iterator<Item = u32> {
        self.flows.iter().map(|flow| flow.number)
    }

    /// Samples the flows. Only flows in `changed` may have changed since the last sample.
    pub(crate) fn sample(&mut self, plan: &Plan, now: u64, changed: &[u32], standing: &impl Fn(u32) -> TransferState) {
        if self.flows.len() < 2 {
            return;
        }
        self.samples += 1;
        let mut sample = if self.samples > self.steps { self.recent.forget() } else { Vec::new() };
        for &flow in changed {
            let position = self.positions[flow as usize];
            let Some(watched) = self.flows.get_mut(position as usize) else { continue };
            let TransferState { window, acknowledged } = standing(flow);
            self.latest[position as usize] = window.min(watched.receive_window);
            sample.push((position, acknowledged.wrapping_sub(watched.acknowledged)));
            watched.acknowledged = acknowledged;
        }
        debug_assert!(self.is_up_to_date(standing), "a flow moved that nobody changed");
        self.windows.extend_from_slice(&self.latest);
        self.recent.add(sample);
        if self.windows.len() == TOGETHER * self.flows.len() {
            self.sum_up();
        }
        if self.samples < self.steps {
            return;
        }
        let from = now - self.interval;
        let (index, on) = if self.all_on_from <= from {
            (self.recent.jain(), self.flows.len())
        } else {
            let mut on = 0;
            let those_on = self.flows.iter().zip(&self.recent.flows);
            let those_on = those_on.filter(|(flow, _)| flow.is_on(plan, from, now)).inspect(|_| on += 1);
            (jain(those_on.map(|(_, recent)| rate(recent))), on)
        };
        if let Some(index) = index.filter(|_| on > 1) {
            self.trace.push((now, index));
        }
    }

    fn is_up_to_date(&self, standing: &impl Fn(u32) -> TransferState) -> bool {
        self.flows.iter().zip(&self.latest).all(|(flow, latest)| {
            let TransferState { window, acknowledged } = standing(flow.number);
            window.min(flow.receive_window) == *latest && acknowledged == flow.acknowledged
        })
    }

    /// Adds the windows of the last samples to the current piece.
    fn sum_up(&mut self) {
        let flows = self.flows.len();
        if flows > 0 && self.windows.len() == TOGETHER * flows {
            let all = &self.windows[..];
            self.piece.sample_moments::<TOGETHER>(std::array::from_fn(|k| &all[k * flows..][..flows]));
        } else {
            self.windows.chunks(flows.max(1)).for_each(|windows| self.piece.sample(windows));
        }
        self.windows.clear();
    }

    pub(crate) fn edge(&mut self) {
        self.sum_up();
        self.pieces.push(std::mem::take(&mut self.piece));
    }

    /// Returns the mean index over the intervals in `window`.
    pub(crate) fn fairness_mean(&self, window: &Window) -> Option<f64> {
        let (n, sum) = self.within(window).fold((0.0, 0.0), |(n, sum), (_, index)| (n + 1.0, sum + index));
        (n > 0.0).then(|| sum / n)
    }

    /// Returns the seconds from the last start of a flow in `window` to the end of the first later interval with an
    /// index of 0.9 or more. `None` if no flow starts there or the index stays below.
    pub(crate) fn convergence_s(&self, window: &Window) -> Option<f64> {
        let (start, end) = (window.start.as_nanos(), window.end.as_nanos());
        let last = *self.starts.iter().rfind(|&&at| start <= at && at < end)?;
        let (at, _) = self.within(window).find(|&(at, index)| at - self.interval >= last && index >= CONVERGED)?;
        Some((at - last) as f64 * 1e-9)
    }

    fn within(&self, window: &Window) -> impl Iterator<Item = (u64, f64)> + '_ {
        let (start, end) = (window.start.as_nanos(), window.end.as_nanos());
        self.trace.iter().copied().filter(move |&(at, _)| start + self.interval <= at && at <= end)
    }
}

impl SlidingInterval {
    /// Removes the oldest sample, and returns its memory.
    fn forget(&mut self) -> Vec<(u32, u32)> {
        let mut oldest = self.samples.pop_front().unwrap_or_default();
        for (position, segments) in oldest.drain(..) {
            let (bytes, payload) = &mut self.flows[position as usize];
            let (old, had) = (u64::from(segments) * *payload, *bytes);
            *bytes -= old;
            self.sum -= old;
            // a^2 - b^2 = (a - b)(a + b).
            self.squares = self.squares.wrapping_sub(old.wrapping_mul(had.wrapping_add(*bytes)));
        }
        oldest
    }

    /// Adds a sample.
    fn add(&mut self, sample: Vec<(u32, u32)>) {
        for &(position, segments) in &sample {
            let (bytes, payload) = &mut self.flows[position as usize];
            let (new, had) = (u64::from(segments) * *payload, *bytes);
            *bytes += new;
            self.sum += new;
            self.squares = self.squares.wrapping_add(new.wrapping_mul(had.wrapping_add(*bytes)));
        }
        self.samples.push_back(sample);
    }

    /// Returns Jain's index of all flows.
    fn jain(&self) -> Option<f64> {
        if self.sum < 1 << 32 && self.squares < EXACT {
            jain_of_sums(self.flows.len() as f64, self.sum as f64, self.squares as f64)
        } else {
            jain(self.flows.iter().map(rate))
        }
    }
}

/// Returns the acknowledged payload.
fn rate((bytes, _): &(u64, u64)) -> f64 {
    *bytes as f64
}

impl SampledFlow {
    fn new(plan: &Plan, number: u32) -> Self {
        let flow = &plan.flows[number as usize];
        let transport = &plan.groups[flow.group as usize].transport;
        let receive_window = transport.tcp().map_or(f64::INFINITY, |tcp| f64::from(tcp.receive_window));
        let on_from = if let [(from, None)] = flow.on[..] { Some(from.as_nanos()) } else { None };
        SampledFlow { number, receive_window, acknowledged: 0, on_from }
    }

    /// Returns whether its application offered data throughout.
    #[inline]
    fn is_on(&self, plan: &Plan, from: u64, until: u64) -> bool {
        self.on_from.map_or_else(|| is_on(plan, self.number, from, until), |start| start <= from)
    }
}

/// Returns whether the application of `flow` offered data throughout.
fn is_on(plan: &Plan, flow: u32, from: u64, until: u64) -> bool {
    let on = &plan.flows[flow as usize].on;
    let next = on.partition_point(|(start, _)| start.as_nanos() <= from);
    next > 0 && on[next - 1].1.is_none_or(|end| end.as_nanos() >= until)
}
