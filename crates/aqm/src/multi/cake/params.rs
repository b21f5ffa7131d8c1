//! CAKE's registry entry and parameters, and Linux's defaults.

use aqumen_units::{Rate, Span};

use super::acks::AckFilter;
use super::framing::{self, Framing};
use super::tins::Tins;
use crate::algorithm::Algorithm;
use crate::multi;
use crate::today::cobalt::{CobaltParams, DECREMENT, INCREMENT};
use crate::today::codel::{ARITHMETIC, INTERVAL, TARGET};
use crate::{Bound, DefaultValue, Kind, Param, Unit, Value};

/// Linux: a full packet with its Ethernet header, bytes.
const MTU: f64 = 1514.0;
/// Linux: upper bound of the default memory limit, full packets.
const LIMIT_PKTS: u64 = 10_240;
/// Linux: lower bound of the default memory limit, bytes.
const MEMORY_MIN: u64 = 4 << 20;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "cake",
    title: "CAKE",
    summary: "flow and host isolation with COBALT in each queue, tuned to the link's rate, and traffic classes",
    reference: "Hoeiland-Joergensen, Taht, Morton: Piece of CAKE, a comprehensive queue management solution for home gateways, 2018",
    params: &[
        Param {
            name: "queues",
            kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(8.0), max: Bound::Inclusive(65_536.0) },
            default: DefaultValue::number(multi::QUEUES),
            doc: "queues of each tin that flows are hashed to, rounded up to a multiple of 8",
        },
        Param {
            name: "quantum",
            kind: Kind::Number { unit: Unit::Bytes, min: Bound::Inclusive(1.0), max: Bound::Inclusive(1e9) },
            default: DefaultValue::Designed(
                "the tin's rate in bytes a second / 4096, at least 300, at most 1514 or mtu",
            ),
            doc: "bytes that a queue may send per round",
        },
        Param::positive(
            "limit",
            Unit::Packets,
            DefaultValue::Designed("the link's buffer"),
            "packets that may wait in all queues, if the link's buffer holds more",
        ),
        Param {
            name: "memory",
            kind: Kind::Number { unit: Unit::Bytes, min: Bound::Inclusive(1.0), max: Bound::Inclusive(1e15) },
            default: DefaultValue::Designed("what the rate brings in 4 intervals, at least 4 MiB, at most 10240 mtu"),
            doc: "limit of the memory of packet buffers in a kernel (2304 B for 1500)",
        },
        Param {
            name: "isolation",
            kind: Kind::Choice(&[
                "triple",
                "dual-src",
                "dual-dst",
                "flows",
                "hosts",
                "src-host",
                "dst-host",
                "flow-blind",
            ]),
            default: DefaultValue::Value(Value::Choice("triple")),
            doc: "queues and fairness: per flow, fair between both hosts (triple) or between sources or destinations (dual); per flow only; per host only; one queue for all",
        },
        Param {
            name: "rate",
            kind: Kind::Number { unit: Unit::BitsPerSecond, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e15) },
            default: DefaultValue::Designed("the link's, as it changes"),
            doc: "rate that determines target, interval, quantum and the rates of tins; 0: unlimited, values as given",
        },
        Param {
            name: "mtu",
            kind: Kind::Number { unit: Unit::Bytes, min: Bound::Inclusive(1.0), max: Bound::Inclusive(1e9) },
            default: DefaultValue::number(MTU),
            doc: "size of a full packet: the target is at least 1.5 of its transmission times; sojourn times up to 4 of them are exempt",
        },
        TARGET,
        INTERVAL,
        ARITHMETIC,
        INCREMENT,
        DECREMENT,
        Param {
            name: "tins",
            kind: Kind::Choice(Tins::NAMES),
            default: DefaultValue::Value(Value::Choice(Tins::Diffserv3.name())),
            doc: "traffic classes by DSCP: best effort, background and latency-sensitive (diffserv3), also streaming (diffserv4), or one",
        },
        Param {
            name: "ack_filter",
            kind: Kind::Choice(AckFilter::NAMES),
            default: DefaultValue::Value(Value::Choice(AckFilter::Off.name())),
            doc: "drop acknowledgements that later ones in their queue make redundant: all but two (on), or all but one (aggressive)",
        },
        Param::flag(
            "ingress",
            false,
            "the link is downstream of the bottleneck: drops count as sent, and longer sojourn times are exempt with more flows",
        ),
        framing::PARAMS[0],
        framing::PARAMS[1],
        framing::PARAMS[2],
        Param::ECN,
    ],
};

/// Isolation of flows and hosts: which packets share a queue, and between which hosts the link is shared fairly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A queue per flow, fair between both hosts.
    Triple,
    /// A queue per flow, fair between source hosts.
    DualSource,
    /// A queue per flow, fair between destination hosts.
    DualDestination,
    /// A queue for each flow.
    Flows,
    /// A queue for each pair of hosts.
    Hosts,
    /// A queue for each source host.
    SourceHost,
    /// A queue for each destination host.
    DestinationHost,
    /// One queue.
    FlowBlind,
}

/// The parameters of [`Cake`](super::Cake).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CakeParams {
    /// Queues of each tin.
    pub queues: usize,
    /// Bytes that a queue may send per round; `None`: by the rate.
    pub quantum: Option<u32>,
    /// Packets that may wait in all queues, if the link's buffer holds more.
    pub limit: Option<u32>,
    /// Limit of kernel memory, bytes; `None`: by the rate.
    pub memory: Option<u64>,
    /// Isolation of flows and hosts.
    pub isolation: Isolation,
    /// Rate that determines the parameters; `None`: the link's current rate.
    pub rate: Option<Rate>,
    /// A full packet, bytes.
    pub mtu: u32,
    /// COBALT's parameters on a fast link.
    pub cobalt: CobaltParams,
    /// Traffic classes.
    pub tins: Tins,
    /// Acknowledgement filter.
    pub ack_filter: AckFilter,
    /// Whether the link is downstream of the bottleneck.
    pub ingress: bool,
    /// Framing of the line.
    pub framing: Framing,
}

impl Default for CakeParams {
    fn default() -> Self {
        CakeParams {
            queues: multi::QUEUES as usize,
            quantum: None,
            limit: None,
            memory: None,
            isolation: Isolation::Triple,
            rate: None,
            mtu: MTU as u32,
            cobalt: CobaltParams { blue_threshold: Span::MAX, ..CobaltParams::default() },
            tins: Tins::Diffserv3,
            ack_filter: AckFilter::Off,
            ingress: false,
            framing: Framing::NONE,
        }
    }
}

impl Isolation {
    const ALL: [(Isolation, &'static str); 8] = [
        (Isolation::Triple, "triple"),
        (Isolation::DualSource, "dual-src"),
        (Isolation::DualDestination, "dual-dst"),
        (Isolation::Flows, "flows"),
        (Isolation::Hosts, "hosts"),
        (Isolation::SourceHost, "src-host"),
        (Isolation::DestinationHost, "dst-host"),
        (Isolation::FlowBlind, "flow-blind"),
    ];

    pub(super) fn from_name(name: &str) -> Isolation {
        Self::ALL.iter().find(|(_, known)| *known == name).map_or(Isolation::Triple, |(isolation, _)| *isolation)
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(isolation, _)| *isolation == self).map_or("triple", |(_, name)| name)
    }

    pub(super) fn by_source(self) -> bool {
        matches!(self, Isolation::Triple | Isolation::DualSource)
    }

    pub(super) fn by_destination(self) -> bool {
        matches!(self, Isolation::Triple | Isolation::DualDestination)
    }
}

/// `rate`, or `None` if it is 0 (unlimited).
pub(super) fn limited(rate: Rate) -> Option<Rate> {
    (rate.as_bps() > 0).then_some(rate)
}

/// Limit of kernel memory, bytes: Linux, `cake_reconfigure`.
pub(super) fn memory(params: &CakeParams, rate: Rate) -> u64 {
    let most = LIMIT_PKTS * params.mtu as u64;
    let of_rate = limited(rate).map_or(u64::MAX, |rate| {
        let bytes = 4.0 * rate.as_bps() as f64 / 8.0 * params.cobalt.interval.as_secs_f64();
        (bytes as u64).max(MEMORY_MIN)
    });
    params.memory.unwrap_or(of_rate.min(most))
}
