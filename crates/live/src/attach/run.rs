//! The loop of `aqumend attach`: read, step, order, every few milliseconds, until told to end or
//! until what it stands on is gone.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use aqumen_aqm::{Aqm, Network, Value};
use aqumen_units::{Instant, Rate, Span};

use super::autorate::Autorate;
use super::controller::{self, Controller, Reading, State};
use super::marker::{Marker, Orders, Way};
use super::options::{Options, Target};
use super::patience::{self, Patience};
use super::rollback::{Comparison, Verdict};
use super::service::{self, Manager, Signals};
use super::shaper::{self, Shaper};
use super::start::Start;
use super::{ceiling, device, sampled};
use crate::netlink::Netlink;
use crate::netlink::tc::Device;
use crate::telemetry::recording::Recording;
use crate::telemetry::warnings::Watch;
use crate::telemetry::{Board, DEADLINE, SCHEMA, Sample, Shaped, Status, Totals, server, socket};
use crate::{Failure, Tried};

/// The longest time between two samples.
const SAMPLE: Span = Span::from_millis(10);
/// The loop wakes no more often, however short the AQM's period.
const REST: Span = Span::from_millis(2);
/// How often it looks whether the marker still hangs.
const LOOK: Span = Span::from_secs(1);
/// Below so many packets in flight for each flow, TCP sits at its least window and no probability regulates it.
const WINDOW_PKTS_MIN: f64 = 4.0;
/// Flows to design for if nothing is said.
const FLOWS: f64 = 10.0;

/// What hangs in the kernel. Goes with this object, whatever ends the loop.
struct Attached {
    netlink: Netlink,
    device: Device,
    shaper: Shaper,
    marker: Marker,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.marker.take_off(&mut self.netlink);
        self.shaper.remove(&mut self.netlink, &self.device);
    }
}

/// Attaches, and regulates until the end.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut netlink = Netlink::open().or_refuse(|| "netlink".into())?;
    let device = device::find(&mut netlink, &options.device)?;
    let setup = super::marker::Setup { link_header: device::link_header(&device)?, ..options.spare };
    let shaper = shaper::find(&mut netlink, &device, options)?;
    let network = network(options, &device, &shaper)?;
    if let Some(rate) = options.rate {
        ceiling::check(rate, network.packet_bytes, device.mtu)?;
    }
    let aqm = sampled::build(&options.aqm, &network)?;
    if options.dry_run {
        print!("{}", plan(options, &device, &shaper, &network, &aqm));
        return Ok(());
    }

    // From here on nobody else attaches to this device, and a failure takes back what was done.
    let local = socket::listen(&device.name)?;
    let page = server::listen(options.listen)?;
    let signals = Signals::take().or_refuse(|| "signals".into())?;
    let marker = Marker::load(&setup)?;
    shaper.make(&mut netlink, &device)?;
    let mut attached = Attached { netlink, device, shaper, marker };
    let via = {
        let Attached { netlink, device, marker, .. } = &mut attached;
        marker.hang(netlink, device, options.via)?
    };
    let recording = match &options.record {
        None => None,
        Some(path) => Some(Recording::create(path).or_refuse(|| format!("--record {}", path.display()))?),
    };

    let board = Arc::new(Board::default());
    let address = page.as_ref().and_then(|page| page.local_addr().ok());
    board.begin(status(options, &attached, &network, &aqm, via, address));
    serve(local, page, &board)?;
    eprintln!("{}", greeting(options, &attached, &network, via, address));
    service::be_prompt();
    let limit = controller::limit(network.buffer_pkts, attached.shaper.limit_bytes);
    let marks = sampled::is_marking(&aqm);
    let controller = Controller::new(aqm, limit, network.packet_bytes, network.link_rate);
    let controller = if options.autorate.is_some() { controller.of_radio() } else { controller };
    let controller = match start(options, &network) {
        Some(start) => controller.after(start),
        None => controller,
    };
    Loop {
        options,
        network,
        attached,
        controller,
        marks,
        board,
        recording,
        watch: Watch::new(network.link_rate.as_bps() as f64, network.target_pkts),
        comparison: options.rollback.map(Comparison::new),
        autorate: options.autorate.map(|range| Autorate::new(network.link_rate, range)),
        patience: Patience::default(),
        spent: Spent::default(),
    }
    .run(&signals)
}

/// How the AQM begins; a probability that never changes has no queue that it aims at.
fn start(options: &Options, network: &Network) -> Option<Start> {
    (options.aqm.algorithm != "fixed").then(|| Start::new(network))
}

fn serve(
    local: std::os::unix::net::UnixListener,
    page: Option<std::net::TcpListener>,
    board: &Arc<Board>,
) -> Result<(), Failure> {
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        thread::Builder::new().name(name.into()).spawn(work).map(drop).or_refuse(|| "a thread".into())
    };
    let shared = board.clone();
    spawn("socket", Box::new(move || socket::serve(local, shared)))?;
    if let Some(page) = page {
        let shared = board.clone();
        spawn("page", Box::new(move || server::serve(page, shared)))?;
    }
    Ok(())
}

/// The network that the AQM is designed for.
fn network(options: &Options, device: &Device, shaper: &Shaper) -> Result<Network, Failure> {
    let packet_bytes = f64::from(device.mtu.min(1500)) + 14.0;
    let pps = shaper.rate.as_bps() as f64 / (8.0 * packet_bytes);
    let rtt_s = options.rtt.as_secs_f64();
    let in_flight = pps * rtt_s;
    let flows = options.flows.unwrap_or_else(|| FLOWS.min(in_flight / WINDOW_PKTS_MIN).max(1.0));
    if in_flight / flows < WINDOW_PKTS_MIN {
        return Err(Failure::refused(format!(
            "--flows {flows:.0}: R C / N is {:.1} packets ({rtt_s} s x {pps:.0} packet/s / {flows:.0}), below {WINDOW_PKTS_MIN}: \
             TCP would sit at its least window and no AQM could regulate it; give fewer flows, a longer --rtt or a higher rate",
            in_flight / flows
        )));
    }
    let buffer_pkts = shaper.limit_in_packets(packet_bytes).max(1.0);
    let target_pkts = match options.target {
        Target::Packets(packets) => packets,
        Target::Delay(delay) => (pps * delay.as_secs_f64()).max(1.0),
    };
    if target_pkts >= buffer_pkts {
        return Err(Failure::refused(format!(
            "--target: {target_pkts:.0} packets, but only {buffer_pkts:.0} fit into {} {}",
            shaper.kind, shaper.handle
        )));
    }
    Ok(Network {
        capacity: shaper.rate,
        flows,
        base_rtt_s: rtt_s,
        target_pkts,
        packet_bytes,
        link_rate: shaper.rate,
        buffer_pkts,
    })
}

/// `network` at another rate of the link.
pub(super) fn network_at(network: &Network, target: Target, rate: Rate) -> Network {
    let pps = rate.as_bps() as f64 / (8.0 * network.packet_bytes);
    let target_pkts = match target {
        Target::Delay(delay) => (pps * delay.as_secs_f64()).clamp(1.0, (0.9 * network.buffer_pkts).max(1.0)),
        Target::Packets(packets) => packets,
    };
    let flows = network.flows.min(pps * network.base_rtt_s / WINDOW_PKTS_MIN).max(1.0);
    Network { capacity: rate, link_rate: rate, target_pkts, flows, ..*network }
}

fn params(aqm: &impl Aqm) -> serde_json::Map<String, serde_json::Value> {
    let mut params = serde_json::Map::new();
    aqm.settings(&mut |name, value| {
        let value = match value {
            Value::Number(number) => number.into(),
            Value::Flag(flag) => flag.into(),
            Value::Choice(word) => word.into(),
        };
        params.insert(name.into(), value);
    });
    params
}

/// What `--dry-run` prints.
fn plan(options: &Options, device: &Device, shaper: &Shaper, network: &Network, aqm: &impl Aqm) -> String {
    let mut text = String::new();
    let name = &device.name;
    match &shaper.ours {
        Some(bucket) => {
            let overhead = if bucket.overhead > 0 { format!(" overhead {}", bucket.overhead) } else { String::new() };
            let _ = writeln!(
                text,
                "shaper: tc qdisc replace dev {name} root handle {} tbf rate {}bit burst {}b limit {}b{overhead}, removed at the end",
                shaper.handle,
                shaper.rate.as_bps(),
                bucket.burst,
                bucket.limit
            );
        }
        None => {
            let _ = writeln!(
                text,
                "shaper: {} {} of {name}, {} bit/s, room for {:.0} packets; it stays as it is",
                shaper.kind,
                shaper.handle,
                shaper.rate.as_bps(),
                network.buffer_pkts
            );
        }
    }
    let way = match options.via {
        None => "a TCX link, or a filter of clsact before Linux 6.6",
        Some(Way::Tcx) => "a TCX link",
        Some(Way::Clsact) => "a filter of clsact",
    };
    let _ = writeln!(text, "marker: at the egress of {name} by {way}; spares what is not IP and neighbour discovery");
    let _ = writeln!(
        text,
        "aqm: {} for {:.0} flows, RTT {} s, target {:.1} packets ({:.1} ms)",
        options.aqm.label,
        network.flows,
        network.base_rtt_s,
        network.target_pkts,
        1e3 * target_s(network)
    );
    for (name, value) in params(aqm) {
        let _ = writeln!(text, "  {name} = {value}");
    }
    text
}

fn target_s(network: &Network) -> f64 {
    8.0 * network.target_pkts * network.packet_bytes / network.link_rate.as_bps() as f64
}

fn way_name(via: Way) -> &'static str {
    match via {
        Way::Tcx => "tcx",
        Way::Clsact => "clsact",
    }
}

fn status(
    options: &Options,
    attached: &Attached,
    network: &Network,
    aqm: &impl Aqm,
    via: Way,
    page: Option<std::net::SocketAddr>,
) -> Status {
    let shaper = &attached.shaper;
    Status {
        schema: SCHEMA,
        aqumen: env!("CARGO_PKG_VERSION"),
        device: attached.device.name.clone(),
        pid: std::process::id(),
        kernel: format!("Linux {}", rustix::system::uname().release().to_string_lossy()),
        aqm: options.aqm.label.clone(),
        params: params(aqm),
        via: way_name(via),
        shaper: Shaped {
            kind: shaper.kind.clone(),
            handle: shaper.handle.to_string(),
            rate_bps: shaper.rate.as_bps(),
            ours: shaper.ours.is_some(),
        },
        target_pkts: network.target_pkts,
        target_s: target_s(network),
        regulating: true,
        page: page.map(|page| format!("http://{page}/")),
        ..Status::default()
    }
}

fn greeting(
    options: &Options,
    attached: &Attached,
    network: &Network,
    via: Way,
    page: Option<std::net::SocketAddr>,
) -> String {
    let shaper = &attached.shaper;
    let mut text = format!(
        "{}: {} above {} {} ({:.2} Mbit/s), target {:.1} packets ({:.1} ms), marker by {}",
        attached.device.name,
        options.aqm.label,
        shaper.kind,
        shaper.handle,
        shaper.rate.as_bps() as f64 / 1e6,
        network.target_pkts,
        1e3 * target_s(network),
        way_name(via)
    );
    if let Some(page) = page {
        let _ = write!(text, "; live page http://{page}/");
    }
    text
}

/// What the loop works on.
struct Loop<'a> {
    options: &'a Options,
    network: Network,
    attached: Attached,
    controller: Controller,
    marks: bool,
    board: Arc<Board>,
    recording: Option<Recording>,
    watch: Watch,
    comparison: Option<Comparison>,
    autorate: Option<Autorate>,
    patience: Patience,
    spent: Spent,
}

/// What the loop counts of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    steps: u64,
    missed: u64,
    unregulated: u64,
    spared: u64,
}

impl Loop<'_> {
    fn run(mut self, signals: &Signals) -> Result<(), Failure> {
        let manager = Manager::from_environment();
        let start_ns = service::now_ns();
        if let Some(recording) = &mut self.recording {
            recording.begin(&self.board.status()).or_refuse(|| "--record".into())?;
        }
        manager.tell("READY=1");
        let end = self.options.duration.map(|duration| Instant::ZERO + duration);
        let (mut due, mut look, mut alive, mut sampled) = (Instant::ZERO, Instant::ZERO, Instant::ZERO, None);
        let outcome = loop {
            let read_ns = service::now_ns();
            let now = Instant::from_nanos(read_ns - start_ns);
            if self.board.is_stopped() || end.is_some_and(|end| now >= end) {
                break Ok(());
            }
            self.spent.missed += now.saturating_since(due).as_nanos() / SAMPLE.as_nanos();
            let state = match self.step(now, read_ns) {
                Ok(state) => state,
                Err(failure) => break Err(failure),
            };
            // Two steps of the AQM within half a sample's time make one sample.
            if let Some(state) = &state
                && sampled.is_none_or(|at| now.saturating_since(at) >= Span::from_nanos(SAMPLE.as_nanos() / 2))
            {
                let interval = sampled.map_or(Span::ZERO, |at| now.saturating_since(at));
                sampled = Some(now);
                let age = Span::from_nanos(service::now_ns() - read_ns);
                self.sample(now, interval, age, state);
            }
            if now >= look {
                look = now + LOOK;
                let Attached { netlink, device, marker, .. } = &mut self.attached;
                match marker.is_hung(netlink) {
                    Ok(true) => {}
                    // Not knowing is not a no: it is asked again.
                    Err(error) if patience::may_pass(&error) => {}
                    _ => break Err(Failure::lost(format!("{}: somebody took the marker off", device.name))),
                }
            }
            if let Some(watchdog) = manager.watchdog.filter(|_| now >= alive) {
                alive = now + Span::from_nanos(watchdog.as_nanos() as u64);
                manager.tell("WATCHDOG=1");
            }
            let timer = state.and(self.controller.next_timer()).unwrap_or(Instant::MAX);
            due = timer.min(now + SAMPLE).max(now + REST);
            let passed = Span::from_nanos(service::now_ns() - start_ns - now.as_nanos());
            let rest = due.saturating_since(now + passed);
            if signals.wait(Duration::from_nanos(rest.as_nanos())) {
                break Ok(());
            }
        };
        manager.tell("STOPPING=1");
        if let Some(Err(error)) = self.recording.take().map(Recording::end) {
            self.recording_failed(&error);
        }
        outcome
    }

    /// Reads, steps the AQM if it is due, orders. `None`: the kernel did not answer, and there is no order.
    fn step(&mut self, now: Instant, read_ns: u64) -> Result<Option<State>, Failure> {
        let Attached { netlink, device, shaper, marker } = &mut self.attached;
        let queue = match shaper.read(netlink, device) {
            Ok(queue) => queue,
            Err(error) if self.patience.bears(now, &error) => {
                self.spent.missed += 1;
                return Ok(None);
            }
            Err(error) => {
                let what = if patience::may_pass(&error) { "cannot be read" } else { "is gone" };
                let (kind, handle) = (&shaper.kind, shaper.handle);
                return Err(Failure::lost(format!("{}: {kind} {handle} {what}: {error}", device.name)));
            }
        };
        self.patience.answered();
        let reading = Reading { at: now, counts: marker.counts()?, queue };
        let mut state = self.controller.read(&reading);
        self.spent.steps += 1;
        (self.spent.unregulated, self.spent.spared) = (reading.counts.unregulated, reading.counts.spared);
        if let Some(comparison) = &mut self.comparison {
            let bits = 8.0 * state.departed_bytes as f64;
            match comparison.see(state.interval_s, state.sojourn_s, bits, state.p) {
                Verdict::Wait => {
                    state.p = 0.0;
                    self.controller.hold(true, None, now);
                }
                Verdict::Go => self.controller.hold(false, start(self.options, &self.network), now),
                Verdict::Worse(why) => {
                    return Err(Failure::Check(format!("{}: rolled back: {why}", device.name)));
                }
            }
        }
        let deadline_ns = read_ns + DEADLINE.as_nanos() as u64;
        marker.order(Orders::new(state.p, self.marks, deadline_ns))?;
        let new_rate = self
            .autorate
            .as_mut()
            .and_then(|autorate| autorate.see(state.interval_s, state.departed_bytes, state.waited));
        if let Some(rate) = new_rate {
            self.redesign(now, rate);
        }
        Ok(Some(state))
    }

    /// The link has another rate: the same AQM, designed for that.
    fn redesign(&mut self, now: Instant, rate: Rate) {
        let network = network_at(&self.network, self.options.target, rate);
        // Parameters that fit at one rate and not at another stay what they were.
        if let Ok(aqm) = sampled::build(&self.options.aqm, &network) {
            self.controller.replace(aqm, now, rate);
            self.network = network;
        }
    }

    fn sample(&mut self, now: Instant, interval: Span, age: Span, state: &State) {
        let totals = *self.controller.totals();
        let interval_s = interval.as_secs_f64();
        let departed = totals.departed_bytes - self.board.departed_bytes();
        let sample = Sample {
            t_s: now.as_secs_f64(),
            backlog_bytes: state.backlog_bytes,
            backlog_pkts: state.backlog_pkts,
            sojourn_s: state.sojourn_s,
            probability: state.p,
            marked_pkts: totals.marked,
            early_dropped_pkts: totals.early_dropped,
            overflow_dropped_pkts: totals.overflow_dropped,
            rate_bps: if interval_s > 0.0 { 8.0 * departed as f64 / interval_s } else { 0.0 },
            link_bps: state.link_bps,
            missed_steps: self.spent.missed,
            age_s: age.as_secs_f64(),
        };
        let shown = Totals {
            arrived_pkts: totals.arrivals,
            arrived_bytes: totals.arrived_bytes,
            departed_pkts: totals.departures,
            departed_bytes: totals.departed_bytes,
            marked_pkts: totals.marked,
            early_dropped_pkts: totals.early_dropped,
            overflow_dropped_pkts: totals.overflow_dropped,
            spared_pkts: self.spent.spared,
            unregulated_pkts: self.spent.unregulated,
            steps: self.spent.steps,
            missed_steps: self.spent.missed,
        };
        if let Some(Err(error)) = self.recording.as_mut().map(|recording| recording.add(&sample)) {
            self.recording = None;
            self.recording_failed(&error);
        }
        self.board.show(sample, shown, self.watch.see(&sample, interval_s));
        for news in self.watch.news() {
            self.say(&format!("warning: {news}"));
        }
    }

    /// A queue is not left to itself because a disk is full.
    fn recording_failed(&self, error: &std::io::Error) {
        self.say(&format!("--record: it ends here: {error}; the AQM does not"));
    }

    /// A line on standard error, for a log; nobody may listen any more.
    fn say(&self, line: &str) {
        let _ = writeln!(std::io::stderr(), "aqumend: {}: {line}", self.attached.device.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        let read = Options::read(lexopt::Parser::from_args(line.split(' ')));
        read.unwrap_or_else(|error| panic!("{error}")).expect("it asks for no help")
    }

    fn designed(line: &str, mbit: u64, room_pkts: u32) -> Result<Network, String> {
        let device = Device { index: 1, name: "eth0".into(), hardware: 1, mtu: 1486, queue_length: 1000 };
        let shaper = Shaper {
            kind: "htb".into(),
            handle: crate::netlink::tc::Handle::new(1, 16),
            class: true,
            rate: Rate::from_bps(mbit * 1_000_000),
            limit_bytes: None,
            limit_pkts: Some(room_pkts),
            ours: None,
        };
        network(&options(line), &device, &shaper).map_err(|failure| failure.to_string())
    }

    #[test]
    fn an_aqm_is_designed_for_the_shaper_and_what_is_said_of_its_traffic() {
        // Packets of 1486 + 14 bytes: 12 Mbit/s are 1000 a second, 100 in a round trip of 100 ms; 50 ms of them are 50.
        let network = designed("eth0 --aqm pi --target 50ms --rtt 100ms --flows 20", 12, 400).unwrap();
        assert_eq!((network.packet_bytes, network.target_pkts, network.flows), (1500.0, 50.0, 20.0));
        assert_eq!((network.base_rtt_s, network.buffer_pkts), (0.1, 400.0));
        assert!((target_s(&network) - 0.05).abs() < 1e-12);
        assert_eq!((network.capacity.as_bps(), network.link_rate.as_bps()), (12_000_000, 12_000_000));
        // So many flows that each has four packets in flight, if nothing is said: 40 / 4; one at least.
        assert_eq!(designed("eth0 --aqm pi --rtt 40ms", 12, 400).unwrap().flows, 10.0);
        assert_eq!(designed("eth0 --aqm pi --rtt 4ms", 12, 400).unwrap().flows, 1.0);
        assert_eq!(designed("eth0 --aqm pi --target 7pkt --rtt 100ms", 12, 400).unwrap().target_pkts, 7.0);
        assert_eq!(designed("eth0 --aqm pi --target 1ms --rtt 1s", 1, 400).unwrap().target_pkts, 1.0);
    }

    #[test]
    fn what_no_aqm_could_regulate_is_refused() {
        let why = designed("eth0 --aqm pi --rtt 100ms --flows 26", 12, 400).unwrap_err();
        assert!(why.contains("--flows 26: R C / N is 3.8 packets"), "{why}");
        assert!(designed("eth0 --aqm pi --rtt 100ms --flows 25", 12, 400).is_ok());
        let why = designed("eth0 --aqm pi --target 50pkt --rtt 100ms", 12, 50).unwrap_err();
        assert!(why.contains("--target: 50 packets, but only 50 fit into htb 1:10"), "{why}");
        assert!(designed("eth0 --aqm pi --target 49pkt --rtt 100ms", 12, 50).is_ok());
    }

    #[test]
    fn at_another_rate_a_delay_is_another_number_of_packets() {
        let designed = designed("eth0 --aqm pi --target 50ms --rtt 100ms --flows 20", 12, 400).unwrap();
        let delay = Target::Delay(Span::from_millis(50));
        let at = |target, mbit: u64| network_at(&designed, target, Rate::from_bps(mbit * 1_000_000));
        // 24 Mbit/s: 100 packets; 6: 25 and no more than 50 / 4 flows; 1.2 Tbit/s: 9/10 of the room; 24 kbit/s: one.
        let double = at(delay, 24);
        assert_eq!((double.target_pkts, double.flows, double.capacity.as_bps()), (100.0, 20.0, 24_000_000));
        assert_eq!((double.link_rate, double.base_rtt_s, double.buffer_pkts), (double.capacity, 0.1, 400.0));
        assert_eq!((at(delay, 6).target_pkts, at(delay, 6).flows), (25.0, 12.5));
        assert_eq!(at(delay, 1200).target_pkts, 360.0);
        let slow = network_at(&designed, delay, Rate::from_bps(24_000));
        assert_eq!((slow.target_pkts, slow.flows), (1.0, 1.0));
        assert_eq!(at(Target::Packets(33.0), 24).target_pkts, 33.0);
    }
}
