//! The plan: a scenario made explicit for one seed. Every node, link and flow stands there by itself, with its own
//! delay and start time, so that two engines that run one plan run the same network.

use std::ops::Range;

use aqumen_aqm::{Limit, Network};
use aqumen_units::{Bytes, Instant, Rate, Span};

use crate::Traffic;
use crate::choice::AqmChoice;
use crate::line::Line;
use crate::transport::Protocol;

/// A scenario made explicit for one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The scenario's name.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// How long the run lasts.
    pub duration: Span,
    /// Names of the nodes; links name them by index.
    pub nodes: Vec<String>,
    /// Directed links.
    pub links: Vec<Link>,
    /// Flow groups, in order; each owns a range of `flows`.
    pub groups: Vec<Group>,
    /// Flows.
    pub flows: Vec<Flow>,
    /// Named intervals over which metrics are taken.
    pub windows: Vec<Window>,
    /// How often queue and probability are recorded for the series.
    pub sample_interval: Span,
    /// The nominal network of the first link under test.
    pub nominal: Network,
    /// What a reader of the results should know: one line each.
    pub notes: Vec<String>,
}

impl Plan {
    /// Whether `flow` is a TCP transfer without end.
    pub fn is_endless(&self, flow: &Flow) -> bool {
        let group = &self.groups[flow.group as usize];
        flow.transfer.is_none() && group.traffic == Traffic::Bulk && group.transport.tcp().is_some()
    }

    /// Name and ends of each window, seconds.
    pub fn window_ends(&self) -> impl Iterator<Item = (String, [f64; 2])> {
        let ends = |window: &Window| [window.start.as_secs_f64(), window.end.as_secs_f64()];
        self.windows.iter().map(move |window| (window.name.clone(), ends(window)))
    }

    /// The first AQM that cannot be built for its link: the link's index, and why.
    pub(crate) fn unfit_aqm(&self, written: usize) -> Option<(usize, String)> {
        self.links[..written].iter().enumerate().find_map(|(i, link)| match link.aqm.build_qdisc(link.limit) {
            Some(Ok(_)) => None,
            Some(Err(error)) => Some((i, error.to_string())),
            None => Some((i, format!("no AQM \"{}\"", link.aqm.name))),
        })
    }

    /// When the application of `flow` ends for good, nanoseconds; of one that does not, later than any run.
    pub fn ends_ns(&self, flow: u32) -> u64 {
        let last = self.flows[flow as usize].on.last();
        last.and_then(|(_, until)| *until).map_or(u64::MAX, |until| until.as_nanos())
    }

    /// How long the bytes of a transfer take on the way of `flow` where there is nobody else: the delay of the links,
    /// and the bytes at the rate of the slowest; nanoseconds, above 0.
    pub fn alone_ns(&self, flow: u32, bytes: u64) -> f64 {
        let links = || self.flows[flow as usize].path.iter().map(|&link| &self.links[link as usize]);
        let delay: u64 = links().map(|link| link.delay.as_nanos()).sum();
        let slowest = links().map(|link| link.rates[0].1).min();
        let sending = slowest.map_or(0, |rate| rate.time_for(Bytes(bytes)).as_nanos());
        (delay + sending).max(1) as f64
    }
}

/// A directed link: a queue, a transmitter, a propagation delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name, unique in the plan.
    pub name: String,
    /// Node whose queue it drains.
    pub from: u32,
    /// Node it leads to.
    pub to: u32,
    /// Propagation delay.
    pub delay: Span,
    /// Rate from each moment on, in order of time; the first entry is at the start. A packet is transmitted at the rate
    /// in force when its transmission starts.
    pub rates: Vec<(Instant, Rate)>,
    /// What it has beside rates, a delay and an AQM; `None` for a plain wire.
    pub line: Option<Box<Line>>,
    /// Room of the queue.
    pub limit: Limit,
    /// The AQM of the queue.
    pub aqm: AqmChoice,
    /// Target queue length in packets, from which `qacd_pkts` is taken, where the scenario says one.
    pub target_pkts: Option<f64>,
    /// Whether metrics and series are wanted. A link that is not recorded may be computed without events.
    pub record: bool,
}

/// Flows that share a transport and are reported together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The preset on which its transport stands.
    pub preset: String,
    /// The transport of its flows.
    pub transport: Protocol,
    /// What its applications send.
    pub traffic: Traffic,
    /// Its flows.
    pub flows: Range<u32>,
    /// Traffic class of their packets.
    pub class: u8,
}

/// One flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its group.
    pub group: u32,
    /// The host that it comes from: hosts are numbered over the whole plan.
    pub source: u32,
    /// The host that it goes to.
    pub destination: u32,
    /// Links that its data cross, in order.
    pub path: Vec<u32>,
    /// Links that its acknowledgements cross, in order.
    pub return_path: Vec<u32>,
    /// When its application offers data: from, and until (`None`: the end of the run). In order, without overlap.
    pub on: Vec<(Instant, Option<Instant>)>,
    /// Bytes to transfer; `None` for an endless transfer.
    pub transfer: Option<Bytes>,
}

/// A named interval over which metrics are taken: from `start` up to, not including, `end`.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub start: Instant,
    /// Where it ends.
    pub end: Instant,
}

impl Link {
    /// Whether nobody would notice if this link had no queue object: not recorded, a plain wire, and no AQM.
    pub fn is_plain(&self) -> bool {
        self.line.is_none() && self.is_unwatched()
    }

    /// Whether nobody hears of its queue, whatever its medium: not recorded, and never an AQM.
    pub fn is_unwatched(&self) -> bool {
        let ever_aqm = self.line.iter().any(|line| !line.aqms.is_empty());
        !self.record && !ever_aqm && self.aqm.name == "droptail" && self.aqm.values.is_empty()
    }

    /// The least propagation delay that it ever has.
    pub fn delay_min(&self) -> Span {
        let later = self.line.iter().flat_map(|line| &line.delays).map(|(_, delay)| *delay);
        later.fold(self.delay, Span::min)
    }
}
