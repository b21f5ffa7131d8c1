//! Measurements of flows, beside the counters of their endpoints.
//!
//! [`Receptions`] measures packets and messages of transports other than TCP, [`segments`] TCP's segments, and
//! [`sharing`] how endless TCP transfers share a recorded link.

pub(crate) mod segments;
pub(crate) mod sharing;

use aqumen_network::Receptions;
use aqumen_result::{FlowMetrics, Requests, fill_video_metrics};
use aqumen_scenario::{Plan, Traffic, Window};

use sharing::{Sharing, TransferState};

/// All measurements of flows.
#[derive(Clone)]
pub(crate) struct Measures {
    pub(crate) receptions: Receptions,
    pub(crate) requests: Requests,
    /// Sharing of each recorded link, with the link's number.
    pub(crate) shares: Vec<(u32, Sharing)>,
}

impl Measures {
    pub(crate) fn new(plan: &Plan) -> Self {
        let recorded = (0u32..).zip(&plan.links).filter(|(_, link)| link.record);
        Measures {
            receptions: Receptions::new(plan),
            requests: Requests::default(),
            shares: recorded.map(|(number, _)| (number, Sharing::new(plan, number))).collect(),
        }
    }

    /// Returns the flows that are sampled, some of them more than once.
    pub(crate) fn watched(&self) -> impl Iterator<Item = u32> {
        self.shares.iter().flat_map(|(_, share)| share.sampled())
    }

    /// Samples the flows. Only flows in `changed` may have changed since the last sample.
    pub(crate) fn sample(&mut self, plan: &Plan, now: u64, changed: &[u32], standing: impl Fn(u32) -> TransferState) {
        self.shares.iter_mut().for_each(|(_, share)| share.sample(plan, now, changed, &standing));
    }

    /// Begins or ends a measurement window.
    pub(crate) fn edge(&mut self) {
        self.receptions.edge();
        self.shares.iter_mut().for_each(|(_, share)| share.edge());
    }

    /// Fills in the metrics of `group` in `window`, which consists of the pieces with these numbers.
    pub(crate) fn fill(
        &self,
        metrics: &mut FlowMetrics,
        plan: &Plan,
        group: u32,
        pieces: impl Iterator<Item = usize>,
        window: &Window,
    ) {
        self.receptions.fill(metrics, group, pieces, (window.end - window.start).as_secs_f64());
        let of = &plan.groups[group as usize];
        if of.traffic.has_requests() {
            let window = window.start.as_nanos()..window.end.as_nanos();
            if !of.transport.reports_delivery() {
                metrics.refused = Some(self.requests.refused(group, &window));
                return;
            }
            let pages = matches!(of.traffic, Traffic::Web(_));
            self.requests.fill(metrics, (group, of.flows.clone()), window.clone(), pages, |flow, bytes| {
                plan.ideal_completion_ns(flow, bytes)
            });
            if let Some(film) = aqumen_traffic::film(&of.traffic) {
                let segments = self.requests.transfers.iter();
                fill_video_metrics(metrics, film, of.flows.clone(), window, segments, |flow| plan.stop_ns(flow));
            }
        }
    }
}
