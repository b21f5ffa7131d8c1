//! The schema of a scenario: every table and key that a user can write, with its documentation, type and default.

use aqumen_units::{Bytes, Rate, Span};
use serde_json::json;

use crate::channel::{LinkState, Losses};
use crate::field::{At, Field, Interval, Misfit, Name, Named, Packets, all_defaults, table};
pub use crate::links::{Access, Bottleneck, GraphLink, Reverse};
use crate::parking_lot::ParkingLot;
use crate::spec::{AqmChange, Profile};
use crate::spread::Spread;
use crate::sweep::{Axis, Changes};
use crate::traffic::Traffic;
use crate::transport::Transport;

table! {
    /// A scenario as written.
    pub struct Spec("a scenario") {
        /// Name of the scenario; it appears in results.
        pub name: Name,
        /// One line that says what is shown.
        pub title: Option<String>,
        /// What a reader should know: source, intention, deviations.
        pub description: Option<String>,
        /// How long the run lasts.
        pub duration: Span,
        /// AQM of the links under test when the command line names none: a SPEC.
        pub aqm: String = "droptail".into(),
        /// Nodes and links.
        pub topology: Topology,
        /// Groups of flows.
        pub flows: Vec<Group>,
        /// Changes during the run.
        pub events: Vec<Event>,
        /// Named windows over which metrics are taken, beside `all` and one for each event; `steady` moves that one.
        pub windows: Named<Interval>,
        /// What is recorded.
        pub record: Record = Record::default(),
        /// The network from which AQMs that are given no gains design themselves.
        pub nominal: Nominal = Nominal::default(),
        /// AQM profiles by name: an algorithm, or another profile, with values.
        pub aqms: Named<Profile>,
        /// Named changes: dotted keys, as for `--set`, and their values. A cell names those that it wants.
        pub variants: Named<Changes>,
        /// Axes by name, along which values change. A cell names a point of each.
        pub sweep: Named<Axis>,
    }
}

/// Nodes and links.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// Two routers with one link between them; each flow has its own hosts.
    Dumbbell(Box<Dumbbell>),
    /// Routers in a row, with cross traffic between neighbours.
    ParkingLot(Box<ParkingLot>),
    /// Any nodes and links.
    Graph(Box<Graph>),
}

table! {
    /// Two routers, `r1` and `r2`, and the bottleneck between them.
    pub struct Dumbbell("a dumbbell") {
        /// The preset: `dumbbell`. Without it, the topology is a graph of `nodes` and `links`.
        pub preset: Name,
        /// The link from `r1` to `r2`, called `bottleneck`: it is under test.
        pub bottleneck: Bottleneck,
        /// The links between hosts and routers, one pair on each side for each flow.
        pub access: Access,
    }
}

table! {
    /// Any nodes and links. Routes are the fewest hops, then the least delay, then the first link written.
    pub struct Graph("a graph") {
        /// Names of the nodes.
        pub nodes: Vec<Name>,
        /// Links between them.
        pub links: Vec<GraphLink>,
        /// Access links for flow groups that give none of their own.
        pub access: Option<Access>,
    }
}

table! {
    /// Flows that share a transport and are reported together.
    pub struct Group("a group of flows") {
        /// Its name.
        pub name: Name,
        /// Number of flows.
        pub count: u32 = 1,
        /// The transport: the name of a preset, or a table of a preset and what differs from it.
        pub transport: Transport = Transport::default(),
        /// What the applications send: a kind of traffic, or a table of `kind` and its parameters.
        pub traffic: Traffic = Traffic::Bulk,
        /// When a flow starts, or whence each takes it.
        pub start: Spread = Spread::fixed(Span::ZERO),
        /// When the flows stop offering data; the end of the run if absent.
        pub stop: Option<Span>,
        /// Intervals in which the flows offer no data.
        pub off: Vec<Interval>,
        /// Bytes each flow transfers; endless if absent.
        pub transfer: Option<Bytes>,
        /// Node at which the data enter; the first router of a preset if absent.
        pub from: Option<Name>,
        /// Node at which the data leave; the last router of a preset if absent.
        pub to: Option<Name>,
        /// Access links of this group, in place of those of the topology.
        pub access: Option<Access>,
        /// Number of hosts on each side that the flows share, with their access links; one for each flow if absent.
        pub hosts: Option<u32>,
        /// An earlier group between the same nodes whose hosts these flows share, with their access links and delays.
        pub hosts_of: Option<Name>,
        /// Number of hosts that the flows come from; one for each flow if absent.
        pub sources: Option<u32>,
        /// Number of hosts that the flows go to; one for each flow if absent.
        pub destinations: Option<u32>,
        /// An earlier group whose hosts at the node where the data enter are those that these flows come from.
        pub sources_of: Option<Name>,
        /// An earlier group whose hosts at the node where the data leave are those that these flows go to.
        pub destinations_of: Option<Name>,
        /// Traffic class of its packets, 0 to 255, for AQMs that tell classes apart.
        pub class: u32 = 0,
        /// Round-trip time added to each flow, a quarter on each direction of its access links.
        pub extra_rtt: Spread = Spread::fixed(Span::ZERO),
        /// Round-trip time of each flow without queueing: the access links get what is lacking, a quarter on each
        /// direction.
        pub rtt: Option<Spread>,
    }
}

table! {
    /// A change during the run: one of `capacity`, `delay`, `loss`, `state`, `aqm`, `stop` and `resume`.
    pub struct Event("an event") {
        /// When it happens. A window opens there, which lasts to the next event or the end.
        pub at: Span,
        /// Name of that window; `after-40s` for an event at 40 s if absent.
        pub name: Option<Name>,
        /// New rate of a link.
        pub capacity: Option<Rate>,
        /// New propagation delay of a link.
        pub delay: Option<Span>,
        /// New losses of a link: a probability, or a table; 0 for none.
        pub loss: Option<Losses>,
        /// Whether a link goes down or comes up.
        pub state: Option<LinkState>,
        /// New AQM of a link: a SPEC, or a table of the parameters that change.
        pub aqm: Option<AqmChange>,
        /// The link that changes; the link under test if absent.
        pub link: Option<Name>,
        /// Group of which flows stop offering data.
        pub stop: Option<Name>,
        /// Group of which stopped flows offer data again.
        pub resume: Option<Name>,
        /// How many flows stop or resume, the first ones that can; all if absent.
        pub count: Option<u32>,
    }
}

table! {
    /// What is recorded.
    pub struct Record("what is recorded") {
        /// Links of which metrics and series are wanted, beside those under test.
        pub links: Vec<Name>,
        /// How often queue and probability are sampled for the series; if absent each 100 ms, or once where the run is
        /// shorter.
        pub interval: Option<Span>,
    }
}

table! {
    /// The nominal network. What is absent follows from the scenario.
    pub struct Nominal("the nominal network") {
        /// Capacity, C; the rate of the link if absent.
        pub capacity: Option<Rate>,
        /// Number of long-lived flows, N; if absent, the TCP flows that cross the link and are no finite transfers, or
        /// all flows where there is none.
        pub flows: Option<f64>,
        /// Round-trip time without queueing; the mean over the same flows if absent.
        pub base_rtt: Option<Span>,
        /// Target queue length, also of the deviation; if absent none is measured, and AQMs design themselves for a
        /// third of the buffer.
        pub target: Option<Packets>,
        /// Packet size on the wire; the mean over the flows that cross the link if absent.
        pub packet: Option<Bytes>,
    }
}

/// One side of the flows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Where they come from.
    Source,
    /// Where they go to.
    Destination,
}

impl Side {
    /// Both.
    pub(crate) const BOTH: [Side; 2] = [Side::Source, Side::Destination];
}

impl Group {
    /// Its flows: more than `count` where each takes several connections.
    pub(crate) fn flows(&self) -> u64 {
        u64::from(self.count) * u64::from(self.traffic.connections())
    }

    /// Number of hosts on a side, where they are its own.
    pub(crate) fn own_hosts(&self, side: Side) -> u32 {
        let of_side = match side {
            Side::Source => self.sources,
            Side::Destination => self.destinations,
        };
        self.hosts.or(of_side).unwrap_or(self.count)
    }

    /// The group whose hosts on a side are also those of this one.
    pub(crate) fn shares(&self, side: Side) -> Option<&Name> {
        let of_side = match side {
            Side::Source => &self.sources_of,
            Side::Destination => &self.destinations_of,
        };
        self.hosts_of.as_ref().or(of_side.as_ref())
    }

    /// Whether its flows are long-lived TCP flows, which a design for N of them means: not a transfer, nor one after
    /// another.
    pub(crate) fn is_long_lived_tcp(&self) -> bool {
        let finite = self.transfer.is_some() || self.traffic.asks();
        self.transport.config.tcp().is_some() && !finite
    }
}

/// How often a series is sampled if the scenario does not say.
const SAMPLE_INTERVAL: Span = Span::from_millis(100);

impl Spec {
    /// How often queue and probability are sampled.
    pub(crate) fn sample_interval(&self) -> Span {
        self.record.interval.unwrap_or(SAMPLE_INTERVAL.min(self.duration))
    }

    /// How many flows all groups have.
    pub(crate) fn all_flows(&self) -> u64 {
        self.flows.iter().map(Group::flows).sum()
    }
}

impl Default for Record {
    fn default() -> Self {
        all_defaults()
    }
}

impl Default for Nominal {
    fn default() -> Self {
        all_defaults()
    }
}

impl Field for Topology {
    const WHAT: &'static str = "a table, such as preset = \"dumbbell\" with bottleneck and access";

    fn read(at: &At<'_>) -> Result<Self, Misfit> {
        at.entries()?;
        let Some(preset) = at.node.get("preset") else {
            return Graph::read(at).map(|graph| Topology::Graph(Box::new(graph)));
        };
        let at_preset = at.below("preset", preset);
        match String::read(&at_preset)?.as_str() {
            "dumbbell" => Dumbbell::read(at).map(|dumbbell| Topology::Dumbbell(Box::new(dumbbell))),
            "parking-lot" => ParkingLot::read(at).map(|row| Topology::ParkingLot(Box::new(row))),
            _ => Err(at_preset.misfit("no such preset; known: dumbbell, parking-lot")),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        match self {
            Topology::Dumbbell(dumbbell) => dumbbell.write(),
            Topology::ParkingLot(row) => row.write(),
            Topology::Graph(graph) => graph.write(),
        }
    }

    fn schema() -> serde_json::Value {
        let mut dumbbell = Dumbbell::schema();
        dumbbell["properties"]["preset"]["const"] = "dumbbell".into();
        let mut row = ParkingLot::schema();
        row["properties"]["preset"]["const"] = "parking-lot".into();
        json!({"oneOf": [dumbbell, row, Graph::schema()]})
    }
}
