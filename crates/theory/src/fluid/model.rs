//! Network of the fluid equations: classes of flows, queues on their path.

use super::Control;

/// The equations of a class's window. See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Misra, Gong, Towsley 2000, eq. (1) of the ARM-PFC paper.
    Hollot,
    /// Clocked by acknowledgements; signals are marks.
    Ecn,
    /// Many different windows under random marks, as packets show them: their spread, the round without growth after a
    /// signal, the acknowledgement clock.
    Reno,
    /// Clocked by acknowledgements; signals are losses, which the queue does not see.
    Drop,
}

/// Classes and queues.
#[derive(Debug)]
pub struct Network {
    /// Classes of flows.
    pub classes: Vec<Class>,
    /// Queues.
    pub queues: Vec<Queue>,
    /// Whether control laws step at the start already, not one period later.
    pub sample_at_start: bool,
}

/// Flows alike: one average window for all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// A number that the caller gives it, its group say.
    pub group: u32,
    /// How many different flows it stands for.
    pub members: f64,
    /// The equations of its window; `Drop` where it has a rate instead.
    pub model: Model,
    /// Packets per second of a flow that is on, whatever it hears: unresponsive. `None`: flows have windows.
    pub rate_pps: Option<f64>,
    /// Round-trip time without queueing, seconds.
    pub base_rtt_s: f64,
    /// The queues its data cross, in order.
    pub path: Vec<usize>,
    /// Size of its packets on the wire, bytes.
    pub packet_bytes: f64,
    /// Window of a flow that starts, packets.
    pub initial_window: f64,
    /// Smallest window, packets.
    pub min_window: f64,
    /// Largest window, packets.
    pub max_window: f64,
    /// When its flows start and stop, in order of the start.
    pub joins: Vec<Join>,
}

/// A flow, or several at once, that is on for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Join {
    /// How many flows.
    pub flows: f64,
    /// From this moment on, nanoseconds.
    pub from_ns: u64,
    /// Until this moment, nanoseconds; `None`: the end.
    pub until_ns: Option<u64>,
    /// Packets after which a flow ends of itself.
    pub transfer_pkts: Option<f64>,
}

/// A queue and its transmitter.
#[derive(Debug)]
pub struct Queue {
    /// Capacity in packets of mean size per second, from each moment (nanoseconds) on, in order; the first at zero.
    pub rates: Vec<(u64, f64)>,
    /// Room, packets.
    pub buffer_pkts: f64,
    /// Mean size of its packets, bytes.
    pub packet_bytes: f64,
    /// Traffic of no class that ignores signals, u0, packets/s; it is there from start to end.
    pub unresponsive_pps: f64,
    /// Packets that wait at the start.
    pub initial_pkts: f64,
    /// Initial value of an AQM's average queue.
    pub initial_average_pkts: f64,
    /// Its AQM.
    pub control: Control,
}

impl Class {
    /// `flows` endless flows from the start on, with windows of at least one packet, over the queues of `path`.
    pub fn endless(model: Model, flows: f64, base_rtt_s: f64, path: Vec<usize>) -> Self {
        Class {
            group: 0,
            members: flows,
            model,
            rate_pps: None,
            base_rtt_s,
            path,
            packet_bytes: 1000.0,
            initial_window: 1.0,
            min_window: 1.0,
            max_window: f64::INFINITY,
            joins: vec![Join { flows, from_ns: 0, until_ns: None, transfer_pkts: None }],
        }
    }
}

impl Queue {
    /// An empty queue of constant capacity.
    pub fn new(capacity_pps: f64, buffer_pkts: f64, control: Control) -> Self {
        Queue {
            rates: vec![(0, capacity_pps)],
            buffer_pkts,
            packet_bytes: 1000.0,
            unresponsive_pps: 0.0,
            initial_pkts: 0.0,
            initial_average_pkts: 0.0,
            control,
        }
    }
}
