//! What the packets take that wait at a link, bytes.
//!
//! No more wait than it has room for, than comes faster than it leaves, than their senders may have under way, and than
//! its discipline lets be (`filling`).

use aqumen_aqm::Limit;

use crate::cost::round_trip;
use crate::line::Medium;
use crate::memory::filling::{Load, longest, rate_at};
use crate::memory::kept::{self, GROWN};
use crate::memory::reach::{DEVIATIONS, accesses, inflow, queue_forms, rates, room};
use crate::memory::share::Share;
use crate::network::Core;
use crate::plan::Link;
use crate::schema::Spec;

/// What comes of the bound on a queue that a discipline of a simpler network keeps: in the real one flows start apart,
/// have round trips of their own, and hear of signals later.
const SAFETY: f64 = 1.5;

/// A queue into which work comes with a variance of v a second and that empties at a speed u, as Brownian motion does,
/// is longer than this times v / 2u for a millionth of the time.
const TAIL: f64 = 14.0;

/// What the packets that may wait at link `number` take, bytes. They are taken from the shares. Its discipline is asked
/// if `link`, its part of the plan, is known, and more than `little` bytes might wait.
pub(crate) fn waiting(
    spec: &Spec,
    core: &Core,
    number: usize,
    link: Option<&Link>,
    little: f64,
    shares: &mut [Share],
) -> f64 {
    let mut here: Vec<usize> = (0..shares.len()).filter(|i| core.ways[*i].path.contains(&(number as u32))).collect();
    if here.is_empty() || !queue_forms(spec, core, number) {
        return 0.0;
    }
    let at = &core.links[number];
    let (until, duration_s) = (spec.duration.as_nanos(), spec.duration.as_secs_f64());
    let sum = |of: &dyn Fn(usize) -> f64| here.iter().map(|i| of(*i)).sum::<f64>();
    let smallest = here.iter().map(|i| shares[*i].packet_bytes).fold(f64::INFINITY, f64::min);
    let left_over = |bps: f64| match link {
        Some(link) if at.carries.medium == Medium::Wire => left_over(link, bps, until),
        // Of a medium with a law of its own nobody knows when it carries what.
        _ => bps * duration_s,
    };
    let comes = |bps: &dyn Fn(&Share) -> f64| {
        let bps = sum(&|i| bps(&shares[i]).min(accesses(spec, core, i)));
        left_over(bps.min(inflow(spec, core, number))) / (8.0 * smallest)
    };
    // What sources send by chance more than their mean: no more piles up than a queue holds that leaves faster than
    // they come. What windows let in does not make it longer as it goes on.
    let variance = sum(&|i| shares[i].variance);
    let sent = sum(&|i| if shares[i].bps.is_finite() { shares[i].bps } else { 0.0 });
    let slowest = rates(spec, core, number).fold(u64::MAX, u64::min) as f64;
    let empties = if at.carries.medium == Medium::Wire { (slowest - sent).max(0.0) / (8.0 * smallest) } else { 0.0 };
    let by_chance = (DEVIATIONS * (variance * duration_s).sqrt())
        .min(TAIL * variance / (2.0 * empties))
        .min(comes(&|share| share.peak_bps));
    // And a packet of each flow that meets others.
    let unevenly = by_chance + sum(&|i| spec.flows[i].flows() as f64);
    let mut most =
        room(at.buffer, smallest).min(comes(&|share| share.bps) + unevenly).min(sum(&|i| shares[i].admitted));
    let port = GROWN * (kept::IN_FIFO + kept::EVENT) as f64;
    let dearest = here.iter().map(|i| shares[*i].each).fold(0.0, f64::max);
    if let Some(link) = link.filter(|_| most * (dearest + port) > little) {
        let rtt = here.iter().map(|i| round_trip(spec, core, *i, true).as_nanos()).max().unwrap_or(0);
        if let Some(longest) = longest(link, &load(here.iter().map(|i| &shares[*i]), rtt), until) {
            most = most.min(SAFETY * longest as f64 + unevenly);
        }
    }
    let levels = if at.record { GROWN * kept::LEVEL as f64 } else { 0.0 };
    let mut bytes = (port + levels) * most + link.map_or(0.0, queues_bytes);
    // The dear ones first.
    here.sort_by(|a, b| shares[*b].each.total_cmp(&shares[*a].each));
    for i in here {
        let of_group = most.min(shares[i].admitted);
        bytes += of_group * shares[i].each;
        shares[i].admitted -= of_group;
        most -= of_group;
    }
    bytes
}

/// What the discipline of `link` takes while nothing waits: some have thousands of queues.
fn queues_bytes(link: &Link) -> f64 {
    let built = link.aqm.build_qdisc(Limit::packets(1)).and_then(Result::ok);
    built.map_or(0.0, |qdisc| qdisc.memory_bytes() as f64)
}

/// What comes to a link, as plain as its discipline is shown it: packets of one size, and of so long a round trip.
fn load<'a>(shares: impl Iterator<Item = &'a Share> + Clone, rtt: u64) -> Load {
    let windows = shares.clone().filter(|share| share.flows.is_some());
    let full = windows.map(|share| share.packet_bytes).fold(f64::INFINITY, f64::min);
    let per_second: f64 = shares.clone().map(|share| share.per_second).sum();
    let bytes_per_second: f64 = shares.clone().map(|share| share.per_second * share.packet_bytes).sum();
    let bytes = if full.is_finite() { full } else { bytes_per_second / per_second.max(f64::MIN_POSITIVE) };
    let bytes = bytes.clamp(1.0, 65_535.0);
    Load {
        regardless: bytes_per_second / bytes,
        flows: shares.filter_map(|share| share.flows).collect(),
        bytes: bytes as u32,
        rtt,
    }
}

/// How much lies before a link at one time, bits, at the most, if `bps` come from the start to the end.
fn left_over(link: &Link, bps: f64, until: u64) -> f64 {
    let outages = link.line.iter().flat_map(|line| &line.outages);
    let outages: Vec<(u64, u64)> =
        outages.map(|(from, to)| (from.as_nanos(), to.map_or(until, |to| to.as_nanos()))).collect();
    let mut changes: Vec<u64> = link.rates.iter().map(|(at, _)| at.as_nanos()).collect();
    changes.extend(outages.iter().flat_map(|(from, to)| [*from, *to]));
    changes.retain(|at| *at < until);
    changes.extend([0, until]);
    changes.sort_unstable();
    changes.dedup();
    let (mut lies, mut most) = (0.0f64, 0.0);
    for pair in changes.windows(2) {
        let began = outages.partition_point(|(from, _)| *from <= pair[0]);
        let down = outages[..began].last().is_some_and(|(_, to)| *to > pair[0]);
        let rate = if down { 0.0 } else { rate_at(link, pair[0]).as_bps() as f64 };
        lies = (lies + (bps - rate) * (pair[1] - pair[0]) as f64 / 1e9).max(0.0);
        most = f64::max(most, lies);
    }
    most
}
