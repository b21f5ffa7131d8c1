//! How endless TCP transfers share a link over time: whether they move together, how even their throughputs are over
//! sliding intervals, and how soon they are after one of them started.
//!
//! All is sampled with the series, of [`WATCHED`] flows at most, spread evenly over those that cross the link: the cost
//! does not grow with the number of flows, and nothing is added to what a packet costs. Throughput is what the senders
//! see acknowledged.

use std::collections::VecDeque;

use aqumen_result::{Synchrony, jain, jain_of_sums};
use aqumen_scenario::{Plan, Window};

/// Flows that are watched at most.
const WATCHED: usize = 256;
/// Length of the sliding interval, rounded up to a whole number of sampling intervals, nanoseconds.
const INTERVAL: u64 = 1_000_000_000;
/// The index from which on flows count as converged.
const CONVERGED: f64 = 0.9;

/// Where an endless TCP transfer is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Standing {
    /// What congestion lets it have under way, segments.
    pub(crate) window: f64,
    /// Segments acknowledged.
    pub(crate) acknowledged: u32,
}

/// The sharing of one link.
pub(crate) struct Share {
    flows: Vec<Watched>,
    /// Length of the sliding interval, nanoseconds.
    interval: u64,
    /// Which of `flows` a flow of the plan is, or `NONE`.
    positions: Vec<u32>,
    /// The window of each at the last sample.
    latest: Vec<f64>,
    recent: Recent,
    /// Samples in an interval, and samples so far.
    steps: usize,
    samples: usize,
    piece: Synchrony,
    pub(crate) pieces: Vec<Synchrony>,
    /// End of each interval, and Jain's index of the flows that were on throughout, of which there were two or more.
    trace: Vec<(u64, f64)>,
    /// When flows start or go on, rising.
    starts: Vec<u64>,
    /// From when on all of them offer data to the end of the run; `u64::MAX` if that is to be looked up.
    all_on_from: u64,
    /// The windows at the last samples, one after the other, which are not in `piece` yet.
    windows: Vec<f64>,
}

/// What was acknowledged within the last interval.
struct Recent {
    /// Of each flow, bytes, and how many a segment has.
    flows: Vec<(u64, u64)>,
    /// What came at each sample, the oldest first: flow, by its position among those watched, and segments.
    news: VecDeque<Vec<(u32, u32)>>,
    /// Sum of the bytes of all flows, and of their squares modulo 2^64: right while `sum` is less than 2^32.
    sum: u64,
    squares: u64,
}

/// Not watched here.
const NONE: u32 = u32::MAX;

/// So many samples are summed up at once.
const TOGETHER: usize = 8;

/// Whole numbers below it are exact in floating point, and so are their sums below it, in whatever order.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;

/// A flow that is watched.
struct Watched {
    number: u32,
    /// What its receiver takes, segments.
    receive_window: f64,
    /// What its sender had acknowledged at the last sample, segments.
    acknowledged: u32,
    /// From when on it offers data to the end of the run; `None` if that is to be looked up.
    on_from: Option<u64>,
}

impl Share {
    /// Of the link with this number.
    pub(crate) fn new(plan: &Plan, link: u32) -> Self {
        let crossing: Vec<u32> = (0u32..)
            .zip(&plan.flows)
            .filter(|(_, flow)| plan.is_endless(flow) && flow.path.contains(&link))
            .map(|(number, _)| number)
            .collect();
        let n = crossing.len().min(WATCHED);
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
        let flows: Vec<Watched> = flows.into_iter().map(|flow| Watched::new(plan, flow)).collect();
        let all_on_from = flows.iter().map(|flow| flow.on_from.unwrap_or(u64::MAX)).max();
        Share {
            interval: steps as u64 * step,
            positions,
            latest: vec![0.0; n],
            recent: Recent { flows: payloads, news: VecDeque::new(), sum: 0, squares: 0 },
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

    /// The flows that are watched.
    pub(crate) fn watched(&self) -> impl Iterator<Item = u32> {
        self.flows.iter().map(|flow| flow.number)
    }

    /// It is time to sample; only flows in `touched` may stand otherwise than at the last time.
    pub(crate) fn sample(&mut self, plan: &Plan, now: u64, touched: &[u32], standing: &impl Fn(u32) -> Standing) {
        if self.flows.len() < 2 {
            return;
        }
        self.samples += 1;
        let mut news = if self.samples > self.steps { self.recent.forget() } else { Vec::new() };
        for &flow in touched {
            let position = self.positions[flow as usize];
            let Some(watched) = self.flows.get_mut(position as usize) else { continue };
            let Standing { window, acknowledged } = standing(flow);
            self.latest[position as usize] = window.min(watched.receive_window);
            news.push((position, acknowledged.wrapping_sub(watched.acknowledged)));
            watched.acknowledged = acknowledged;
        }
        debug_assert!(self.is_up_to_date(standing), "a flow moved that nobody touched");
        self.windows.extend_from_slice(&self.latest);
        self.recent.add(news);
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

    fn is_up_to_date(&self, standing: &impl Fn(u32) -> Standing) -> bool {
        self.flows.iter().zip(&self.latest).all(|(flow, latest)| {
            let Standing { window, acknowledged } = standing(flow.number);
            window.min(flow.receive_window) == *latest && acknowledged == flow.acknowledged
        })
    }

    /// Adds the windows of the last samples to the piece in progress.
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

    /// The mean of the index over the intervals that lie in `window`.
    pub(crate) fn fairness_mean(&self, window: &Window) -> Option<f64> {
        let (n, sum) = self.within(window).fold((0.0, 0.0), |(n, sum), (_, index)| (n + 1.0, sum + index));
        (n > 0.0).then(|| sum / n)
    }

    /// Seconds from the last start of a flow in `window` until the end of the first interval that begins no sooner and
    /// in which the index is 0.9 or more. `None` if no flow starts there, or the index never is.
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

impl Recent {
    /// The oldest sample no longer counts. Its memory is for another.
    fn forget(&mut self) -> Vec<(u32, u32)> {
        let mut oldest = self.news.pop_front().unwrap_or_default();
        for (position, segments) in oldest.drain(..) {
            let (bytes, payload) = &mut self.flows[position as usize];
            let (old, had) = (u64::from(segments) * *payload, *bytes);
            *bytes -= old;
            self.sum -= old;
            // A difference of two squares is that of the numbers, times their sum.
            self.squares = self.squares.wrapping_sub(old.wrapping_mul(had.wrapping_add(*bytes)));
        }
        oldest
    }

    /// A sample brings `news`.
    fn add(&mut self, news: Vec<(u32, u32)>) {
        for &(position, segments) in &news {
            let (bytes, payload) = &mut self.flows[position as usize];
            let (new, had) = (u64::from(segments) * *payload, *bytes);
            *bytes += new;
            self.sum += new;
            self.squares = self.squares.wrapping_add(new.wrapping_mul(had.wrapping_add(*bytes)));
        }
        self.news.push_back(news);
    }

    /// Jain's index of all flows.
    fn jain(&self) -> Option<f64> {
        if self.sum < 1 << 32 && self.squares < EXACT {
            jain_of_sums(self.flows.len() as f64, self.sum as f64, self.squares as f64)
        } else {
            jain(self.flows.iter().map(rate))
        }
    }
}

/// Payload that was acknowledged.
fn rate((bytes, _): &(u64, u64)) -> f64 {
    *bytes as f64
}

impl Watched {
    fn new(plan: &Plan, number: u32) -> Self {
        let flow = &plan.flows[number as usize];
        let transport = &plan.groups[flow.group as usize].transport;
        let receive_window = transport.tcp().map_or(f64::INFINITY, |tcp| f64::from(tcp.receive_window));
        let on_from = if let [(from, None)] = flow.on[..] { Some(from.as_nanos()) } else { None };
        Watched { number, receive_window, acknowledged: 0, on_from }
    }

    /// Whether its application offered data throughout.
    #[inline]
    fn is_on(&self, plan: &Plan, from: u64, until: u64) -> bool {
        self.on_from.map_or_else(|| is_on(plan, self.number, from, until), |start| start <= from)
    }
}

/// Whether the application of `flow` offered data throughout.
fn is_on(plan: &Plan, flow: u32, from: u64, until: u64) -> bool {
    let on = &plan.flows[flow as usize].on;
    let next = on.partition_point(|(start, _)| start.as_nanos() <= from);
    next > 0 && on[next - 1].1.is_none_or(|end| end.as_nanos() >= until)
}
