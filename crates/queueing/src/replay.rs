//! Replay of a trace to the queue: each packet of the capture arrives at its own time. It is the reference for a fit.

use std::collections::VecDeque;
use std::path::Path;

use aqumen_aqm::Draw;
use aqumen_scenario::streams::{Kind, Stream as Random};
use serde::Serialize;

use crate::Error;
use crate::model::Queue;
use crate::trace::{self, Arrival};

/// Performance measures of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Replay {
    /// Fraction of packets that find the buffer full.
    pub loss_ratio: f64,
    /// Mean delay of the accepted packets, waiting and service, seconds.
    pub delay_mean_s: f64,
    /// Fraction of time in which the server is busy.
    pub utilization: f64,
}

/// Replays the trace at `path` to `queue`. With `link_bps` the service time is the transmission time of the packet on
/// that link (sizes must be known); otherwise it is drawn from the Erlang distribution of `queue`.
pub fn replay(path: &Path, interface: Option<u32>, queue: Queue, link_bps: Option<f64>) -> Result<Replay, Error> {
    let mut random = Random::new(1, Kind::Link, 0);
    let stage_ns = 1e9 / (queue.service_rate * f64::from(queue.stages));
    let mut service_ns = |bytes: Option<u32>| match (bytes, link_bps) {
        (Some(bytes), Some(link_bps)) => f64::from(bytes) * 8e9 / link_bps,
        _ => (0..queue.stages).map(|_| -libm::log(1.0 - random.uniform())).sum::<f64>() * stage_ns,
    };
    let mut first_ns: Option<i64> = None;
    // Departure times of the packets present, nanoseconds after the first arrival.
    let mut departures: VecDeque<f64> = VecDeque::new();
    let (mut now_ns, mut free_ns, mut busy_ns, mut delay_ns) = (0.0f64, 0.0f64, 0.0, 0.0);
    let (mut packets, mut lost) = (0u64, 0u64);
    trace::read(path, interface, |Arrival { at_ns, bytes }| {
        let since_ns = at_ns.wrapping_sub(*first_ns.get_or_insert(at_ns)) as f64;
        now_ns = now_ns.max(since_ns);
        packets += 1;
        while departures.front().is_some_and(|departs_ns| *departs_ns <= now_ns) {
            departures.pop_front();
        }
        if departures.len() >= queue.capacity as usize {
            lost += 1;
            return;
        }
        let service_ns = service_ns(bytes);
        free_ns = free_ns.max(now_ns) + service_ns;
        busy_ns += service_ns;
        delay_ns += free_ns - now_ns;
        departures.push_back(free_ns);
    })?;
    Ok(Replay {
        loss_ratio: lost as f64 / packets as f64,
        delay_mean_s: delay_ns / 1e9 / (packets - lost) as f64,
        utilization: busy_ns / free_ns.max(now_ns),
    })
}
