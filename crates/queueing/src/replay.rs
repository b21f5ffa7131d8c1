//! A trace through the queue itself: each packet of the capture at its own time, the truth that a fit is held against.

use std::collections::VecDeque;
use std::path::Path;

use aqumen_aqm::Draw;
use aqumen_scenario::streams::{Kind, Stream as Random};
use serde::Serialize;

use crate::Error;
use crate::model::Queue;
use crate::trace::{self, Arrival};

/// What the packets of a trace met.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Replay {
    /// Share of packets that found the buffer full.
    pub loss_ratio: f64,
    /// Mean delay of the others, waiting and service, seconds.
    pub delay_mean_s: f64,
    /// Share of time in which the server was busy.
    pub utilization: f64,
}

/// Sends the trace at `path` through `queue`. With `link_bps` a service takes as long as the packet's own size on that
/// link (sizes must be known); otherwise it is drawn from the Erlang distribution of `queue`.
pub fn replay(path: &Path, interface: Option<u32>, queue: Queue, link_bps: Option<f64>) -> Result<Replay, Error> {
    let mut random = Random::new(1, Kind::Link, 0);
    let stage_ns = 1e9 / (queue.service_rate * f64::from(queue.stages));
    let mut service_ns = |bytes: Option<u32>| match (bytes, link_bps) {
        (Some(bytes), Some(link_bps)) => f64::from(bytes) * 8e9 / link_bps,
        _ => (0..queue.stages).map(|_| -libm::log(1.0 - random.uniform())).sum::<f64>() * stage_ns,
    };
    let mut first_ns: Option<i64> = None;
    // When those present leave, from the first packet on, nanoseconds.
    let mut leaving: VecDeque<f64> = VecDeque::new();
    let (mut now_ns, mut free_ns, mut busy_ns, mut delay_ns) = (0.0f64, 0.0f64, 0.0, 0.0);
    let (mut packets, mut lost) = (0u64, 0u64);
    trace::read(path, interface, |Arrival { at_ns, bytes }| {
        let since_ns = at_ns.wrapping_sub(*first_ns.get_or_insert(at_ns)) as f64;
        now_ns = now_ns.max(since_ns);
        packets += 1;
        while leaving.front().is_some_and(|leaves_ns| *leaves_ns <= now_ns) {
            leaving.pop_front();
        }
        if leaving.len() >= queue.capacity as usize {
            lost += 1;
            return;
        }
        let service_ns = service_ns(bytes);
        free_ns = free_ns.max(now_ns) + service_ns;
        busy_ns += service_ns;
        delay_ns += free_ns - now_ns;
        leaving.push_back(free_ns);
    })?;
    Ok(Replay {
        loss_ratio: lost as f64 / packets as f64,
        delay_mean_s: delay_ns / 1e9 / (packets - lost) as f64,
        utilization: busy_ns / free_ns.max(now_ns),
    })
}
