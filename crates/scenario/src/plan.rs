//! The plan: a scenario expanded for one seed. Every node, link and flow is explicit, with its delay and start time, so
//! that all engines run the same network.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use aqumen_aqm::{Limit, Network};
use aqumen_units::{Bytes, Instant, Rate, Span};
use smallvec::SmallVec;

use crate::Traffic;
use crate::choice::AqmChoice;
use crate::line::Line;
use crate::transport::Protocol;

/// A scenario expanded for one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The scenario's name.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// Duration of the run.
    pub duration: Span,
    /// Names of the nodes; links name them by index.
    pub nodes: Vec<PlanName>,
    /// Directed links.
    pub links: Vec<Link>,
    /// Flow groups, in order; each owns a range of `flows`.
    pub groups: Vec<Group>,
    /// Flows.
    pub flows: Vec<Flow>,
    /// Named intervals over which metrics are taken.
    pub windows: Vec<Window>,
    /// Sampling interval of the series.
    pub sample_interval: Span,
    /// The nominal network of the first link under test.
    pub nominal: Network,
    /// The network of that link as it is, whatever its AQM is told.
    pub actual: Network,
    /// Notes for readers of the results, one line each.
    pub notes: Vec<String>,
}

impl Plan {
    /// Whether `flow` is an unlimited TCP transfer.
    pub fn is_endless(&self, flow: &Flow) -> bool {
        let group = &self.groups[flow.group as usize];
        flow.transfer.is_none() && group.traffic == Traffic::Bulk && group.transport.tcp().is_some()
    }

    /// PlanName, start and end of each window, seconds.
    pub fn window_bounds(&self) -> impl Iterator<Item = (String, [f64; 2])> {
        let ends = |window: &Window| [window.start.as_secs_f64(), window.end.as_secs_f64()];
        self.windows.iter().map(move |window| (window.name.clone(), ends(window)))
    }

    /// Returns the index of the first link whose AQM cannot be built, and a message.
    pub(crate) fn unfit_aqm(&self, written: usize) -> Option<(usize, String)> {
        self.links[..written].iter().enumerate().find_map(|(i, link)| match link.aqm.build_qdisc(link.limit) {
            Some(Ok(_)) => None,
            Some(Err(error)) => Some((i, error.to_string())),
            None => Some((i, format!("no AQM \"{}\"", link.aqm.name))),
        })
    }

    /// Time at which the application of `flow` stops for good, nanoseconds; `u64::MAX` if it never stops.
    pub fn stop_ns(&self, flow: u32) -> u64 {
        let last = self.flows[flow as usize].on.last();
        last.and_then(|(_, until)| *until).map_or(u64::MAX, |until| until.as_nanos())
    }

    /// Ideal completion time of a transfer on the path of `flow` without competing traffic: propagation delay, plus the
    /// bytes at the rate of the slowest link; nanoseconds, above 0.
    pub fn ideal_completion_ns(&self, flow: u32, bytes: u64) -> f64 {
        let links = || self.flows[flow as usize].path.iter().map(|&link| &self.links[link as usize]);
        let delay: u64 = links().map(|link| link.delay.as_nanos()).sum();
        let slowest = links().map(|link| link.rates[0].1).min();
        let sending = slowest.map_or(0, |rate| rate.time_for(Bytes(bytes)).as_nanos());
        (delay + sending).max(1) as f64
    }
}

/// PlanName of a node or link. Those of the hosts of a group share its text: a large plan has millions of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanName {
    /// The whole name, or the name of the group.
    text: Arc<str>,
    /// Number of the flow in the group, and what it names.
    part: Option<(u32, Part)>,
}

/// Part of the access of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Source,
    Sink,
    SourceOut,
    SourceIn,
    SinkOut,
    SinkIn,
}

impl PlanName {
    /// PlanName of a part of the access of flow `number` of a group.
    pub(crate) fn of_part(group: &Arc<str>, number: u32, part: Part) -> Self {
        PlanName { text: group.clone(), part: Some((number, part)) }
    }
}

impl From<&str> for PlanName {
    fn from(text: &str) -> Self {
        PlanName { text: text.into(), part: None }
    }
}

impl From<String> for PlanName {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl fmt::Display for PlanName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        let Some((number, part)) = self.part else { return Ok(()) };
        let part = match part {
            Part::Source => "source",
            Part::Sink => "sink",
            Part::SourceOut => "source-out",
            Part::SourceIn => "source-in",
            Part::SinkOut => "sink-out",
            Part::SinkIn => "sink-in",
        };
        write!(f, ".{number}.{part}")
    }
}

impl PartialEq<str> for PlanName {
    fn eq(&self, text: &str) -> bool {
        match self.part {
            None => *self.text == *text,
            Some(_) => text.starts_with(&*self.text) && self.to_string().as_str() == text,
        }
    }
}

impl PartialEq<&str> for PlanName {
    fn eq(&self, text: &&str) -> bool {
        *self == **text
    }
}

/// A directed link: queue, transmitter and propagation delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name, unique in the plan.
    pub name: PlanName,
    /// Node at its start, whose queue it serves.
    pub from: u32,
    /// Node at its end.
    pub to: u32,
    /// Propagation delay.
    pub delay: Span,
    /// Everything else, which the access links of a group share. A change of one link copies it.
    pub settings: Arc<LinkSettings>,
}

impl Deref for Link {
    type Target = LinkSettings;

    fn deref(&self) -> &LinkSettings {
        &self.settings
    }
}

impl DerefMut for Link {
    fn deref_mut(&mut self) -> &mut LinkSettings {
        Arc::make_mut(&mut self.settings)
    }
}

/// Properties of a link but its place and its propagation delay.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSettings {
    /// Rates with their start times, in order; the first starts at 0. The rate at the start of a transmission applies.
    pub rates: Vec<(Instant, Rate)>,
    /// Medium, losses and changes over time; `None` for a plain wire.
    pub line: Option<Box<Line>>,
    /// Capacity of the queue.
    pub limit: Limit,
    /// The AQM of the queue.
    pub aqm: AqmChoice,
    /// Target queue length in packets, from which `qacd_pkts` is measured, if the scenario has one.
    pub target_pkts: Option<f64>,
    /// Whether metrics and series are recorded. A link that is not recorded may be computed without events.
    pub record: bool,
}

/// Flows that share a transport and are reported together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// PlanName of the transport's preset.
    pub preset: String,
    /// The transport of its flows.
    pub transport: Protocol,
    /// Traffic of its applications.
    pub traffic: Traffic,
    /// Range of its flows.
    pub flows: Range<u32>,
    /// Traffic class of their packets.
    pub class: u8,
}

/// Numbers of the links between two hosts, in order.
pub type LinkPath = SmallVec<[u32; 4]>;

/// One flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Number of its group.
    pub group: u32,
    /// Source host: hosts are numbered over the whole plan.
    pub source: u32,
    /// Destination host.
    pub destination: u32,
    /// Links of the data, in order.
    pub path: LinkPath,
    /// Links of the acknowledgements, in order.
    pub return_path: LinkPath,
    /// Intervals in which the application offers data: from, and until (`None`: the end of the run). In order,
    /// disjoint.
    pub on: SmallVec<[(Instant, Option<Instant>); 1]>,
    /// Bytes to transfer; `None` without limit.
    pub transfer: Option<Bytes>,
}

/// A named interval over which metrics are taken: from `start` to `end`, exclusive.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// Start.
    pub start: Instant,
    /// End.
    pub end: Instant,
}

impl Link {
    /// Whether the link needs no queue object: not recorded, a plain wire, and no AQM.
    pub fn is_plain(&self) -> bool {
        self.line.is_none() && self.is_unobserved()
    }

    /// Whether the queue is unobserved, whatever the medium: not recorded, and never with an AQM.
    pub fn is_unobserved(&self) -> bool {
        let ever_aqm = self.line.iter().any(|line| !line.aqms.is_empty());
        !self.record && !ever_aqm && self.aqm.name == "droptail" && self.aqm.values.is_empty()
    }

    /// Smallest propagation delay during the run.
    pub fn delay_min(&self) -> Span {
        let later = self.line.iter().flat_map(|line| &line.delays).map(|(_, delay)| *delay);
        later.fold(self.delay, Span::min)
    }
}
