//! One run of a plan: the kernel's TCP and UDP over its links.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{fs, thread};

use aqumen_network::measurement::edges;
use aqumen_result::Cost;
use aqumen_scenario::Plan;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::capacity;
use super::cpu_latency::CpuLatencyRequest;
use super::forwarder::Forwarder;
use super::hosts::Hosts;
use super::kernel::{self, SocketSettings};
use super::network::{LinkEvent, Network};
use super::report::{self, Host, LiveResult};
use super::testbed::{FlowClassifier, TestBed};
use crate::Error;
use crate::machine::clock::Clock;
use crate::machine::namespace;
use crate::machine::thread::{CpuTime, wake_on_time};

/// Time from the start of the threads until that of the run, nanoseconds; more for each flow.
const LEAD_NS: u64 = 50_000_000;
const LEAD_PER_FLOW_NS: u64 = 50_000;

/// Options of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// Exchange segments with the kernel as super-packets.
    pub super_packets: bool,
    /// Record the events of packets at links.
    pub record: bool,
}

/// Runs `plan`. `go_on` is called with the time in nanoseconds, and returns whether to continue; a stopped run has no
/// result.
pub fn run(plan: &Plan, go_on: impl FnMut(u64) -> bool + Send) -> Result<LiveResult, Error> {
    run_with(plan, RunOptions::default(), go_on).map(|(result, _)| result)
}

/// Runs `plan` with `options`. Returns the result and the recorded events.
pub fn run_with(
    plan: &Plan,
    options: RunOptions,
    mut go_on: impl FnMut(u64) -> bool + Send,
) -> Result<(LiveResult, Vec<LinkEvent>), Error> {
    let (began, cpu) = (Instant::now(), CpuTime::for_process());
    let sockets = kernel::sockets(plan)?;
    capacity::check(plan, options.super_packets)?;
    allow_descriptors();
    let latency_request = CpuLatencyRequest::open();
    let (testbed, tuns) = TestBed::new(plan, &sockets, options.super_packets)?;
    let devices = [tuns[0].index, tuns[1].index];
    let mut network = Network::new(plan)?;
    if options.record {
        network.record_events();
    }
    let end = plan.duration.as_nanos();
    let clock = Clock::starting_in(lead_ns(plan.flows.len()));
    let mut forwarder = Forwarder::new(network, tuns, testbed.mtu, FlowClassifier::new(plan), clock);
    let stopped = AtomicBool::new(false);
    let (carried, measurements) = thread::scope(|scope| {
        let (stopped, testbed, sockets) = (&stopped, &testbed, &sockets);
        let carrier = thread::Builder::new().name("links".into()).spawn_scoped(scope, move || {
            let realtime = wake_on_time();
            let cpu = CpuTime::for_thread();
            let carried = forwarder.run(end, |now| {
                let continues = go_on(now) && !stopped.load(Ordering::Relaxed);
                stopped.fetch_or(!continues, Ordering::Relaxed);
                continues
            });
            stopped.fetch_or(carried.is_err(), Ordering::Relaxed);
            carried?;
            let dropped = namespace::dropped_pkts([&testbed.senders, &testbed.receivers].into_iter().zip(devices));
            let (network, lateness, _) = forwarder.into_parts();
            Ok((network, lateness, realtime, dropped, cpu.elapsed_s()))
        });
        let measurements = testbed.senders.within(|| {
            let hosts = Hosts::new(plan, sockets, testbed, edges(plan), clock)?;
            hosts.run(end, || stopped.load(Ordering::Relaxed))
        });
        if measurements.is_err() {
            stopped.store(true, Ordering::Relaxed);
        }
        let carried = match carrier {
            Ok(carrier) => carrier.join().unwrap_or_else(|_| Err(Error::runtime("the thread of the links failed"))),
            Err(error) => Err(Error::setup(format!("cannot start a thread: {error}"))),
        };
        (carried, measurements)
    });
    let ((mut network, lateness, realtime, dropped, links_cpu_s), measurements) = (carried?, measurements?);
    if stopped.into_inner() {
        return Err(Error::runtime("stopped before its end; nothing is left behind"));
    }
    let mut host = host(plan, &sockets, &testbed);
    (host.realtime, host.device_dropped_pkts, host.failed_connections) = (realtime, dropped, measurements.failures);
    (host.awake, host.links_cpu_s) = (latency_request.is_granted(), Some(links_cpu_s));
    host.judge(&lateness);
    let wall_s = began.elapsed().as_secs_f64();
    let cost = Cost { cpu_s: cpu.elapsed_s(), wall_s, ..Cost::default() };
    let mut result = report::result(plan, &mut network, Some(&measurements), cost);
    if !host.valid {
        let because = host.invalid_because.join("; ");
        result.notes.push(format!("this run is invalid: {because}"));
    }
    Ok((LiveResult { result, host }, network.take_events()))
}

/// Time between the start of the threads and that of the run.
fn lead_ns(flows: usize) -> u64 {
    LEAD_NS + LEAD_PER_FLOW_NS * flows as u64
}

/// Machine and kernel settings of a run.
fn host(plan: &Plan, sockets: &[SocketSettings], testbed: &TestBed) -> Host {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let congestion = plan
        .groups
        .iter()
        .zip(sockets)
        .filter_map(|(group, sockets)| Some((group.name.clone(), sockets.tcp.as_ref()?.congestion.to_string())));
    Host {
        kernel: release.trim().into(),
        congestion: congestion.collect(),
        sysctls: testbed.sysctls.iter().cloned().collect(),
        ..Host::default()
    }
}

/// Raises the limit on open files to its maximum: each endpoint needs a socket.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // If this fails, the first socket beyond the limit reports it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_time_grows_with_the_number_of_flows() {
        // 50 ms, and 50 us for each flow.
        assert_eq!([lead_ns(0), lead_ns(1), lead_ns(1000)], [50_000_000, 50_050_000, 100_000_000]);
    }

    #[test]
    fn the_limit_on_open_files_is_raised() {
        let before = getrlimit(Resource::Nofile);
        let fewer = before.maximum.map_or(1 << 20, |most| most - 1);
        setrlimit(Resource::Nofile, Rlimit { current: Some(fewer), ..before }).unwrap();
        allow_descriptors();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!((limit.current, limit.maximum), (before.maximum, before.maximum));
    }
}
