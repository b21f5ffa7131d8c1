//! Prediction for a link in a window.

use indexmap::IndexMap;
use serde::Serialize;

use super::start::Start;
use crate::design::Analysis;
use crate::multi::coupled::CoupledQueues;
use crate::multi::parking_lot::ParkingLot;

/// Prediction for one link in one window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkPrediction {
    /// Flows that this link holds back, on average over the window.
    pub flows: f64,
    /// Capacity, packets/s, on average over the window.
    pub capacity_pps: f64,
    /// Unresponsive load that arrives, in packets of the link's mean size per second, on average over the window.
    pub unresponsive_pps: f64,
    /// Rate that the AQM admits, packets/s.
    pub admitted_pps: f64,
    /// Size of the held flows' packets in packets of the link's mean size.
    #[serde(skip)]
    pub(crate) weight: f64,
    /// Whether the buffer's end is all that loses packets.
    #[serde(skip)]
    pub(crate) tail: bool,
    /// Round-trip time without queueing of those flows, seconds (harmonic mean).
    pub base_rtt_s: f64,
    /// Whether signals are marks.
    pub ecn: bool,
    /// Departed / capacity.
    pub utilization: f64,
    /// Packets waiting.
    pub queue_pkts: f64,
    /// Share of the packets that are marked or lost; null where the analysis says why it is not known.
    pub probability: f64,
    /// The linear analysis; null where no flow is held back. Of coupled queues that of the classic one.
    pub analysis: Option<Analysis>,
    /// The start before the window; null where it is not known how long it lasts.
    pub start: Option<Start>,
    /// Two coupled queues at rest, where there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coupled: Option<CoupledQueues>,
    /// The loops of several full links that share flows, where there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub several: Option<ParkingLot>,
    /// Group values where they differ: number, a flow's window, packets, and its wait, seconds.
    #[serde(skip)]
    pub(crate) own: Vec<(u32, f64, f64)>,
    /// Shares of the packets that are marked and dropped early, where the AQM makes a difference between flows.
    #[serde(skip)]
    pub(crate) signalled: Option<[f64; 2]>,
}

impl LinkPrediction {
    /// Flows whose signals are marks, so far without a queue and without any.
    pub(super) fn idle(flows: f64, capacity_pps: f64, base_rtt_s: f64) -> Self {
        LinkPrediction {
            flows,
            capacity_pps,
            unresponsive_pps: 0.0,
            admitted_pps: 0.0,
            weight: 1.0,
            tail: false,
            base_rtt_s,
            ecn: true,
            utilization: 0.0,
            queue_pkts: 0.0,
            probability: 0.0,
            analysis: None,
            start: None,
            coupled: None,
            several: None,
            own: Vec::new(),
            signalled: None,
        }
    }
}

/// Predictions of each recorded link in each window.
pub type Prediction = IndexMap<String, IndexMap<String, LinkPrediction>>;
