//! One run of a plan: the kernel's TCP and UDP over its links.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{fs, thread};

use aqumen_network::measurement::edges;
use aqumen_result::Cost;
use aqumen_scenario::Plan;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::clock::Clock;
use super::hosts::Hosts;
use super::kernel::{self, Sockets};
use super::machine::Calm;
use super::network::{Network, Observed};
use super::pump::Pump;
use super::report::{self, Host, LiveResult};
use super::thread::{CpuTime, wake_on_time};
use super::world::{ByFlow, World};
use super::{ceiling, namespace};
use crate::Failure;

/// From the start of the program's threads until that of the run, nanoseconds; and more for each flow.
const LEAD_NS: u64 = 50_000_000;
const LEAD_PER_FLOW_NS: u64 = 50_000;

/// How a plan is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Segments come from the kernel and go to it as super-packets.
    pub super_packets: bool,
    /// Keep what happens to each packet at each link.
    pub record: bool,
}

/// Runs `plan`. `go_on` hears how many nanoseconds of it are over, and says whether to go on; a run that is stopped has
/// no result.
pub fn run(plan: &Plan, go_on: impl FnMut(u64) -> bool + Send) -> Result<LiveResult, Failure> {
    carry_out(plan, Manner::default(), go_on).map(|(result, _)| result)
}

/// The same in this `manner`: the result, and what was kept.
pub fn carry_out(
    plan: &Plan,
    manner: Manner,
    mut go_on: impl FnMut(u64) -> bool + Send,
) -> Result<(LiveResult, Vec<Observed>), Failure> {
    let (began, cpu) = (Instant::now(), CpuTime::of_process());
    let sockets = kernel::sockets(plan)?;
    ceiling::check(plan, manner.super_packets)?;
    allow_descriptors();
    let calm = Calm::ask();
    let (world, tuns) = World::new(plan, &sockets, manner.super_packets)?;
    let devices = [tuns[0].index, tuns[1].index];
    let mut network = Network::new(plan)?;
    if manner.record {
        network.start_record();
    }
    let end = plan.duration.as_nanos();
    let clock = Clock::starting_in(lead_ns(plan.flows.len()));
    let mut pump = Pump::new(network, tuns, world.mtu, ByFlow::new(plan), clock);
    let stopped = AtomicBool::new(false);
    let (carried, seen) = thread::scope(|scope| {
        let (stopped, world, sockets) = (&stopped, &world, &sockets);
        let carrier = thread::Builder::new().name("links".into()).spawn_scoped(scope, move || {
            let realtime = wake_on_time();
            let cpu = CpuTime::of_thread();
            let carried = pump.run(end, |now| {
                let goes_on = go_on(now) && !stopped.load(Ordering::Relaxed);
                stopped.fetch_or(!goes_on, Ordering::Relaxed);
                goes_on
            });
            stopped.fetch_or(carried.is_err(), Ordering::Relaxed);
            carried?;
            let dropped = namespace::discarded([&world.senders, &world.receivers].into_iter().zip(devices));
            let (network, lateness, _) = pump.into_parts();
            Ok((network, lateness, realtime, dropped, cpu.passed_s()))
        });
        let seen = world.senders.within(|| {
            let hosts = Hosts::new(plan, sockets, world, edges(plan), clock)?;
            hosts.run(end, || stopped.load(Ordering::Relaxed))
        });
        if seen.is_err() {
            stopped.store(true, Ordering::Relaxed);
        }
        let carried = match carrier {
            Ok(carrier) => carrier.join().unwrap_or_else(|_| Err(Failure::lost("the thread of the links failed"))),
            Err(error) => Err(Failure::refused(format!("cannot start a thread: {error}"))),
        };
        (carried, seen)
    });
    let ((mut network, lateness, realtime, dropped, links_cpu_s), seen) = (carried?, seen?);
    if stopped.into_inner() {
        return Err(Failure::lost("stopped before its end; nothing is left behind"));
    }
    let mut host = host(plan, &sockets, &world);
    (host.realtime, host.device_dropped_pkts, host.failed_connections) = (realtime, dropped, seen.failures);
    (host.awake, host.links_cpu_s) = (calm.awake(), Some(links_cpu_s));
    host.judge(&lateness);
    let wall_s = began.elapsed().as_secs_f64();
    let cost = Cost { cpu_s: cpu.passed_s(), wall_s, ..Cost::default() };
    let mut result = report::result(plan, &mut network, Some(&seen), cost);
    if !host.valid {
        let because = host.invalid_because.join("; ");
        result.notes.push(format!("this run is invalid: {because}"));
    }
    Ok((LiveResult { result, host }, network.take_record()))
}

/// How long before the run its program starts.
fn lead_ns(flows: usize) -> u64 {
    LEAD_NS + LEAD_PER_FLOW_NS * flows as u64
}

/// What the machine is, and what was set of it.
fn host(plan: &Plan, sockets: &[Sockets], world: &World) -> Host {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let congestion = plan
        .groups
        .iter()
        .zip(sockets)
        .filter_map(|(group, sockets)| Some((group.name.clone(), sockets.tcp.as_ref()?.congestion.to_string())));
    Host {
        kernel: release.trim().into(),
        congestion: congestion.collect(),
        sysctls: world.sysctls.iter().cloned().collect(),
        ..Host::default()
    }
}

/// Each end of a flow has a socket: this process may have as many as the system lets it.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // Where it is not allowed the first socket too many says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_waits_for_each_flow_to_be_set_up() {
        // 50 ms, and 50 us for each flow.
        assert_eq!([lead_ns(0), lead_ns(1), lead_ns(1000)], [50_000_000, 50_050_000, 100_000_000]);
    }

    #[test]
    fn this_process_may_have_as_many_sockets_as_it_is_let() {
        let before = getrlimit(Resource::Nofile);
        let fewer = before.maximum.map_or(1 << 20, |most| most - 1);
        setrlimit(Resource::Nofile, Rlimit { current: Some(fewer), ..before }).unwrap();
        allow_descriptors();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!((limit.current, limit.maximum), (before.maximum, before.maximum));
    }
}
