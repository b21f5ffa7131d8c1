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
    /// What each sender had acknowledged at the last sample, and its window.
    acknowledged: Vec<u32>,
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
    /// Of each flow, segments.
    segments: Vec<u32>,
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
    payload_bytes: u16,
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
        let flows: Vec<Watched> = flows.into_iter().map(|flow| Watched::new(plan, flow)).collect();
        let all_on_from = flows.iter().map(|flow| flow.on_from.unwrap_or(u64::MAX)).max();
        Share {
            interval: steps as u64 * step,
            positions,
            acknowledged: vec![0; n],
            latest: vec![0.0; n],
            recent: Recent { segments: vec![0; n], news: VecDeque::new(), sum: 0, squares: 0 },
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
        let mut news = if self.samples > self.steps { self.recent.forget(&self.flows) } else { Vec::new() };
        for &flow in touched {
            let position = self.positions[flow as usize];
            let Some(before) = self.acknowledged.get_mut(position as usize) else { continue };
            let Standing { window, acknowledged } = standing(flow);
            self.latest[position as usize] = window.min(self.flows[position as usize].receive_window);
            news.push((position, acknowledged.wrapping_sub(*before)));
            *before = acknowledged;
        }
        debug_assert!(self.is_up_to_date(standing), "a flow moved that nobody touched");
        self.windows.extend_from_slice(&self.latest);
        self.recent.add(&self.flows, news);
        if self.windows.len() == TOGETHER * self.flows.len() {
            self.sum_up();
        }
        if self.samples < self.steps {
            return;
        }
        let from = now - self.interval;
        let (index, on) = if self.all_on_from <= from {
            (self.recent.jain(&self.flows), self.flows.len())
        } else {
            let mut on = 0;
            let those_on = self.flows.iter().zip(&self.recent.segments);
            let those_on = those_on.filter(|(flow, _)| flow.is_on(plan, from, now)).inspect(|_| on += 1);
            (jain(those_on.map(rate)), on)
        };
        if let Some(index) = index.filter(|_| on > 1) {
            self.trace.push((now, index));
        }
    }

    fn is_up_to_date(&self, standing: &impl Fn(u32) -> Standing) -> bool {
        self.flows.iter().zip(self.latest.iter().zip(&self.acknowledged)).all(|(flow, (latest, before))| {
            let Standing { window, acknowledged } = standing(flow.number);
            window.min(flow.receive_window) == *latest && acknowledged == *before
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
    fn forget(&mut self, flows: &[Watched]) -> Vec<(u32, u32)> {
        let mut oldest = self.news.pop_front().unwrap_or_default();
        for (position, segments) in oldest.drain(..) {
            let had = self.segments[position as usize];
            self.set(flows, position, had.wrapping_sub(segments));
        }
        oldest
    }

    /// A sample brings `news`.
    fn add(&mut self, flows: &[Watched], news: Vec<(u32, u32)>) {
        for &(position, segments) in &news {
            let had = self.segments[position as usize];
            self.set(flows, position, had.wrapping_add(segments));
        }
        self.news.push_back(news);
    }

    fn set(&mut self, flows: &[Watched], position: u32, segments: u32) {
        let payload = u64::from(flows[position as usize].payload_bytes);
        let own = &mut self.segments[position as usize];
        let (had, has) = (u64::from(*own) * payload, u64::from(segments) * payload);
        *own = segments;
        self.sum = self.sum - had + has;
        let squares = self.squares.wrapping_sub(had.wrapping_mul(had));
        self.squares = squares.wrapping_add(has.wrapping_mul(has));
    }

    /// Jain's index of all `flows`.
    fn jain(&self, flows: &[Watched]) -> Option<f64> {
        if self.sum < 1 << 32 && self.squares < EXACT {
            jain_of_sums(flows.len() as f64, self.sum as f64, self.squares as f64)
        } else {
            jain(flows.iter().zip(&self.segments).map(rate))
        }
    }
}

/// Payload that was acknowledged.
fn rate((flow, segments): (&Watched, &u32)) -> f64 {
    f64::from(*segments) * f64::from(flow.payload_bytes)
}

impl Watched {
    fn new(plan: &Plan, number: u32) -> Self {
        let flow = &plan.flows[number as usize];
        let transport = &plan.groups[flow.group as usize].transport;
        let payload_bytes = transport.payload_bytes();
        let receive_window = transport.tcp().map_or(f64::INFINITY, |tcp| f64::from(tcp.receive_window));
        let on_from = if let [(from, None)] = flow.on[..] { Some(from.as_nanos()) } else { None };
        Watched { number, receive_window, payload_bytes, on_from }
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
