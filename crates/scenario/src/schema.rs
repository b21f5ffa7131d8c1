//! The schema of a scenario: every table and key that a user can write, with its documentation, type and default.

use aqumen_units::{Bytes, Rate, Span};
use serde_json::json;

use crate::channel::{LinkState, Losses};
use crate::field::{Cursor, Field, Interval, Name, NameMap, Packets, ValueError, all_defaults, table};
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
        /// One-line title.
        pub title: Option<String>,
        /// Notes for readers: source, purpose, deviations.
        pub description: Option<String>,
        /// Duration of the run.
        pub duration: Span,
        /// AQM of the links under test when the command line names none: a SPEC.
        pub aqm: String = "droptail".into(),
        /// Nodes and links.
        pub topology: Topology,
        /// Groups of flows.
        pub flows: Vec<Group>,
        /// Changes during the run.
        pub events: Vec<Event>,
        /// Named windows over which metrics are taken, in addition to `all` and one for each event; `steady` replaces
        /// the default.
        pub windows: NameMap<Interval>,
        /// Recording of series.
        pub record: Record = Record::default(),
        /// Network for which AQMs without given gains design themselves.
        pub nominal: Nominal = Nominal::default(),
        /// AQM profiles by name: an algorithm, or another profile, with values.
        pub aqms: NameMap<Profile>,
        /// Named changes: dotted keys, as for `--set`, and their values. A cell id lists the variants that it uses.
        pub variants: NameMap<Changes>,
        /// Axes by name, along which values change. A cell id lists a point of each.
        pub sweep: NameMap<Axis>,
    }
}

/// Nodes and links.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// Two routers with one link between them; by default each flow has its own hosts.
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
    /// Any nodes and links. Routes have the fewest hops, then the least delay, then the first link of the file.
    pub struct Graph("a graph") {
        /// Names of the nodes.
        pub nodes: Vec<Name>,
        /// Links between them.
        pub links: Vec<GraphLink>,
        /// Access links of flow groups without their own.
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
        /// Transport: the name of a preset, or a table of a preset and its changed settings.
        pub transport: Transport = Transport::default(),
        /// Traffic of the applications: a kind of traffic, or a table of `kind` and its parameters.
        pub traffic: Traffic = Traffic::Bulk,
        /// Start time, or its distribution over the flows.
        pub start: Spread = Spread::fixed(Span::ZERO),
        /// Time at which the flows stop offering data; the end of the run if absent.
        pub stop: Option<Span>,
        /// Intervals in which the flows offer no data.
        pub off: Vec<Interval>,
        /// Bytes that each flow transfers; unlimited if absent.
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
        /// Number of source hosts; one for each flow if absent.
        pub sources: Option<u32>,
        /// Number of destination hosts; one for each flow if absent.
        pub destinations: Option<u32>,
        /// An earlier group whose hosts at the node where the data enter are the source hosts of these flows.
        pub sources_of: Option<Name>,
        /// An earlier group whose hosts at the node where the data leave are the destination hosts of these flows.
        pub destinations_of: Option<Name>,
        /// Traffic class of the packets, 0 to 255, for AQMs that distinguish classes.
        pub class: u32 = 0,
        /// Round-trip time added to each flow, a quarter on each direction of its access links.
        pub extra_rtt: Spread = Spread::fixed(Span::ZERO),
        /// Round-trip time of each flow without queueing: a quarter of the missing delay is added to each direction of
        /// its access links.
        pub rtt: Option<Spread>,
    }
}

table! {
    /// A change during the run: one of `capacity`, `delay`, `loss`, `state`, `aqm`, `stop` and `resume`.
    pub struct Event("an event") {
        /// Time of the event. It opens a window that lasts to the next event or the end.
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
        /// Link that changes; the link under test if absent.
        pub link: Option<Name>,
        /// Group whose flows stop offering data.
        pub stop: Option<Name>,
        /// Group whose stopped flows resume.
        pub resume: Option<Name>,
        /// Number of flows that stop or resume, the first possible ones; all if absent.
        pub count: Option<u32>,
    }
}

table! {
    /// Recording of series.
    pub struct Record("a table of links and interval") {
        /// Links whose metrics and series are recorded, in addition to those under test.
        pub links: Vec<Name>,
        /// Sampling interval of queue and probability for the series; if absent 100 ms, or the run if that is shorter.
        pub interval: Option<Span>,
    }
}

table! {
    /// The nominal network. Absent values follow from the scenario.
    pub struct Nominal("the nominal network") {
        /// Capacity, C; the rate of the link if absent.
        pub capacity: Option<Rate>,
        /// Number of long-lived flows, N; if absent, the TCP flows across the link that are not finite transfers, or
        /// all flows if there are none.
        pub flows: Option<f64>,
        /// Round-trip time without queueing; the mean over the same flows if absent.
        pub base_rtt: Option<Span>,
        /// Target queue length, also for the deviation; if absent no deviation is measured, and AQMs design themselves
        /// for a third of the buffer.
        pub target: Option<Packets>,
        /// Packet size on the wire; the mean over the flows that cross the link if absent.
        pub packet: Option<Bytes>,
    }
}

/// One side of the flows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Sources.
    Source,
    /// Destinations.
    Destination,
}

impl Side {
    /// Both sides.
    pub(crate) const BOTH: [Side; 2] = [Side::Source, Side::Destination];
}

impl Group {
    /// Number of flows: more than `count` if each takes several connections.
    pub(crate) fn flows(&self) -> u64 {
        u64::from(self.count) * u64::from(self.traffic.connections())
    }

    /// Number of hosts on a side that the group does not share from another.
    pub(crate) fn own_hosts(&self, side: Side) -> u32 {
        let of_side = match side {
            Side::Source => self.sources,
            Side::Destination => self.destinations,
        };
        self.hosts.or(of_side).unwrap_or(self.count)
    }

    /// The group that owns the hosts on a side.
    pub(crate) fn shares(&self, side: Side) -> Option<&Name> {
        let of_side = match side {
            Side::Source => &self.sources_of,
            Side::Destination => &self.destinations_of,
        };
        self.hosts_of.as_ref().or(of_side.as_ref())
    }

    /// Whether the flows are long-lived TCP flows, as a design for N flows assumes: neither finite transfers nor series
    /// of them.
    pub(crate) fn is_long_lived_tcp(&self) -> bool {
        let finite = self.transfer.is_some() || self.traffic.has_requests();
        self.transport.config.tcp().is_some() && !finite
    }
}

/// Default sampling interval.
const SAMPLE_INTERVAL: Span = Span::from_millis(100);

impl Spec {
    /// Sampling interval of queue and probability.
    pub(crate) fn sample_interval(&self) -> Span {
        self.record.interval.unwrap_or(SAMPLE_INTERVAL.min(self.duration))
    }

    /// Number of flows of all groups.
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

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        at.entries()?;
        let Some(preset) = at.node.get("preset") else {
            return Graph::read(at).map(|graph| Topology::Graph(Box::new(graph)));
        };
        let at_preset = at.below("preset", preset);
        match String::read(&at_preset)?.as_str() {
            "dumbbell" => Dumbbell::read(at).map(|dumbbell| Topology::Dumbbell(Box::new(dumbbell))),
            "parking-lot" => ParkingLot::read(at).map(|row| Topology::ParkingLot(Box::new(row))),
            _ => Err(at_preset.error("no such preset; known: dumbbell, parking-lot")),
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
