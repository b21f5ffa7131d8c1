//! Control loop of `aqumend attach`: reads the queue, steps the AQM and writes an order every few milliseconds, until
//! it is ended, or its device, shaper or marker is gone.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use aqumen_aqm::Network;
use aqumen_aqm::registry::AnyAqm;
use aqumen_units::{Instant, Rate, Span};

use super::controller::{Reading, State};
use super::design::network;
use super::marker::{Marker, Orders, Setup};
use super::options::{Options, is_self_contained};
use super::rate_log::RateLog;
use super::regulator::Regulator;
use super::retry::{self, RetryLimit};
use super::service::{self, Request, ServiceManager, Signals};
use super::shaper::{self, Shaper};
use super::timing::{self, PeriodicTimer};
use super::{capacity, device, messages, sampled};
use crate::machine::clock::{Clock, monotonic_ns};
use crate::netlink::Netlink;
use crate::netlink::tc::Device;
use crate::telemetry::recording::Recording;
use crate::telemetry::warnings::WarningMonitor;
use crate::telemetry::{DEADLINE, Sample, SharedStatus, Totals, server, socket};
use crate::{Context, Error, shorten};

/// Shortest time between two samples: two steps of the AQM within it make one.
const SAMPLE_INTERVAL: Span = Span::from_millis(5);
/// Time between two checks that the marker is still attached.
const MARKER_CHECK: Span = Span::from_secs(1);

/// Kernel objects of an attachment. They are removed with this object, however the loop ends.
struct KernelObjects {
    netlink: Netlink,
    device: Device,
    shaper: Shaper,
    marker: Marker,
}

impl Drop for KernelObjects {
    fn drop(&mut self) {
        self.marker.detach(&mut self.netlink);
        self.shaper.remove(&mut self.netlink, &self.device);
    }
}

/// Configuration that follows from the options and the device, before anything is changed.
struct Configuration {
    device: Device,
    setup: Setup,
    shaper: Shaper,
    network: Network,
    aqm: AnyAqm,
}

/// Derives the configuration. `carried`: a rate that this machine is known to reach.
fn configure(netlink: &mut Netlink, options: &Options, carried: Option<Rate>) -> Result<Configuration, Error> {
    let device = device::find(netlink, &options.device)?;
    let setup = Setup {
        spare: options.spare,
        only: options.only,
        link_header: device::link_header(&device)?,
        by_flow: is_self_contained(&options.aqm).into(),
    };
    let shaper = shaper::find(netlink, &device, options)?;
    let network = network(options, &device, &shaper)?;
    if let Some(rate) = options.rate.filter(|_| options.rate != carried) {
        capacity::check(rate, network.packet_bytes, device.mtu)?;
    }
    let aqm = sampled::build(&options.aqm, &network)?;
    Ok(Configuration { device, setup, shaper, network, aqm })
}

/// Loads the marker with the packet rule of `aqm`.
fn load(setup: &Setup, aqm: &AnyAqm) -> Result<Marker, Error> {
    let mut marker = Marker::load(setup)?;
    if let AnyAqm::StPi2(aqm) = aqm {
        marker.set_weights(aqm.params())?;
    }
    Ok(marker)
}

/// Opens the recording that `options` name.
fn record(options: &Options) -> Result<Option<Recording>, Error> {
    let open =
        |path: &PathBuf| Recording::open(path).context(|| format!("--record {}", shorten(&path.display().to_string())));
    options.record.as_ref().map(open).transpose()
}

/// Attaches, and regulates until the end.
pub(crate) fn run(options: Options) -> Result<(), Error> {
    let mut netlink = Netlink::open().context(|| "netlink".into())?;
    let Configuration { device, setup, shaper, network, aqm } = configure(&mut netlink, &options, None)?;
    if options.dry_run {
        print!("{}", messages::dry_run(&options, &device, &shaper, &network, &aqm));
        return Ok(());
    }

    // From here on no other aqumend attaches to this device, and an error undoes what was done.
    let local = socket::listen(&device.name)?;
    let page = server::listen(options.listen)?;
    let signals = Signals::take().context(|| "signals".into())?;
    let marker = load(&setup, &aqm)?;
    shaper.create(&mut netlink, &device)?;
    let mut kernel = KernelObjects { netlink, device, shaper, marker };
    let via = {
        let KernelObjects { netlink, device, marker, .. } = &mut kernel;
        marker.attach(netlink, device, options.via)?
    };
    let recording = record(&options)?;

    let shared = Arc::new(SharedStatus::default());
    let address = page.as_ref().and_then(|page| page.local_addr().ok());
    let KernelObjects { device, shaper, .. } = &kernel;
    shared.set_status(messages::status(&options, device, shaper, &network, &aqm, via, address));
    serve(local, page, &shared, options.host.clone())?;
    eprintln!("{}", messages::greeting(&options, device, shaper, &network, via, address));
    service::use_realtime_scheduling();
    let warning = messages::shared_marker_warning(&options, shaper);
    ControlLoop {
        marks: sampled::is_marking(&aqm),
        warnings: WarningMonitor::new(network.link_rate.as_bps() as f64, network.target_pkts, warning),
        rate_log: RateLog::new(network.link_rate.as_bps()),
        regulator: Regulator::new(&options, network, aqm, shaper.limit_bytes),
        options,
        address,
        kernel,
        shared,
        recording,
        retry_limit: RetryLimit::default(),
        counters: LoopCounters::default(),
    }
    .run(&signals)
}

fn serve(
    local: std::os::unix::net::UnixListener,
    page: Option<std::net::TcpListener>,
    shared: &Arc<SharedStatus>,
    host: Option<String>,
) -> Result<(), Error> {
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        thread::Builder::new().name(name.into()).spawn(work).map(drop).context(|| "a thread".into())
    };
    let copy = shared.clone();
    spawn("socket", Box::new(move || socket::serve(local, copy)))?;
    if let Some(page) = page {
        let copy = shared.clone();
        spawn("page", Box::new(move || server::serve(page, copy, host)))?;
    }
    Ok(())
}

struct ControlLoop {
    options: Options,
    /// Address of the live page.
    address: Option<SocketAddr>,
    kernel: KernelObjects,
    regulator: Regulator,
    /// Whether ECN-capable packets are marked.
    marks: bool,
    shared: Arc<SharedStatus>,
    recording: Option<Recording>,
    warnings: WarningMonitor,
    rate_log: RateLog,
    retry_limit: RetryLimit,
    counters: LoopCounters,
}

/// Counters of the loop itself.
#[derive(Clone, Copy, Debug, Default)]
struct LoopCounters {
    steps: u64,
    missed: u64,
    unregulated: u64,
    spared: u64,
}

impl ControlLoop {
    fn run(mut self, signals: &Signals) -> Result<(), Error> {
        let manager = ServiceManager::from_environment();
        let clock = Clock::starting_in(0);
        let clock_time = || Instant::from_nanos(clock.now());
        if let Some(recording) = &mut self.recording {
            recording.begin(&self.shared.status()).context(|| "--record".into())?;
        }
        manager.notify("READY=1");
        let end = self.options.duration.map(|duration| Instant::ZERO + duration);
        let mut watchdog = manager.watchdog.map(PeriodicTimer::new);
        let (mut marker_check, mut sample) = (PeriodicTimer::new(MARKER_CHECK), PeriodicTimer::new(SAMPLE_INTERVAL));
        let (mut due, mut sampled) = (Instant::ZERO, None);
        let outcome = loop {
            let now = clock_time();
            if self.shared.is_end_requested() || end.is_some_and(|end| now >= end) {
                break Ok(());
            }
            self.counters.missed += timing::missed_readings(now, due);
            let state = match self.step(now) {
                Ok(state) => state,
                Err(error) => break Err(error),
            };
            if let Some(state) = state.filter(|_| sample.is_due(now)) {
                let interval = sampled.replace(now).map_or(Span::ZERO, |at| now.saturating_since(at));
                self.sample(now, interval, clock_time().saturating_since(now), &state);
            }
            if marker_check.is_due(now) {
                let KernelObjects { netlink, device, marker, .. } = &mut self.kernel;
                if retry::is_absent(&marker.is_attached(netlink)) {
                    break Err(Error::runtime(format!("{}: the marker was removed by another program", device.name)));
                }
            }
            if watchdog.as_mut().is_some_and(|watchdog| watchdog.is_due(now)) {
                manager.notify("WATCHDOG=1");
            }
            due = timing::next_reading(now, state.and(self.regulator.next_timer()));
            match signals.wait(&clock.wait(due.as_nanos())) {
                None => {}
                Some(Request::End) => break Ok(()),
                Some(Request::Reload) => {
                    manager.notify(&format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_ns() / 1000));
                    match self.reload() {
                        Ok(greeting) => self.log(&format!("reloaded: {greeting}")),
                        Err(error) => self.log(&format!("not reloaded, the old options stay in force: {error}")),
                    }
                    manager.notify("READY=1");
                }
            }
        };
        manager.notify("STOPPING=1");
        if let Some(Err(error)) = self.recording.take().map(Recording::end) {
            self.recording_failed(&error);
        }
        outcome
    }

    /// Reads options and shaper again, and continues with the new configuration; no packet is lost or passes unshaped.
    /// Returns a description of the attachment, or an error after which nothing has changed.
    fn reload(&mut self) -> Result<String, Error> {
        let options = self.options.read_again()?;
        let (old, new) = (&self.options, &options);
        for (same, name) in [
            (old.device == new.device, "the device"),
            (old.listen == new.listen, "--listen"),
            (old.host == new.host, "--host"),
            (old.duration == new.duration, "--duration"),
            (old.rate.is_some() == new.rate.is_some(), "the use of --rate"),
        ] {
            if !same {
                return Err(Error::setup(format!("{name} can change only with a restart")));
            }
        }
        let KernelObjects { netlink, device, shaper, marker } = &mut self.kernel;
        let configuration = configure(netlink, &options, self.options.rate)?;
        if configuration.device.index != device.index {
            return Err(Error::setup(format!("{} is another device now", device.name)));
        }
        let mut successor = load(&configuration.setup, &configuration.aqm)?;
        configuration.shaper.create(netlink, device)?;
        let via = match successor.attach(netlink, device, options.via) {
            Ok(via) => via,
            Err(error) => {
                shaper.create(netlink, device)?;
                return Err(error);
            }
        };
        // The old marker needs no detaching: as a filter it is replaced already.
        (*shaper, *marker) = (configuration.shaper, successor);
        let Configuration { network, aqm, .. } = configuration;
        self.shared.set_status(messages::status(&options, device, shaper, &network, &aqm, via, self.address));
        let greeting = messages::description(&options, shaper, &network, via);
        self.marks = sampled::is_marking(&aqm);
        let warning = messages::shared_marker_warning(&options, shaper);
        self.warnings = WarningMonitor::new(network.link_rate.as_bps() as f64, network.target_pkts, warning);
        self.rate_log = RateLog::new(network.link_rate.as_bps());
        self.regulator = Regulator::new(&options, network, aqm, shaper.limit_bytes);
        self.options = options;
        self.reopen_recording();
        Ok(greeting)
    }

    /// Ends the recording, and opens the one that the options name now, which may be another file.
    fn reopen_recording(&mut self) {
        if let Some(Err(error)) = self.recording.take().map(Recording::end) {
            self.recording_failed(&error);
        }
        match record(&self.options) {
            Ok(None) => {}
            Ok(Some(mut recording)) => match recording.begin(&self.shared.status()) {
                Ok(()) => self.recording = Some(recording),
                Err(error) => self.recording_failed(&error),
            },
            Err(error) => self.log(&format!("{error}; the AQM continues")),
        }
    }

    /// Reads the queue, steps the AQM if it is due, and writes an order. `None`: the kernel did not answer, and there
    /// is no order.
    fn step(&mut self, now: Instant) -> Result<Option<State>, Error> {
        let KernelObjects { netlink, device, shaper, marker } = &mut self.kernel;
        // The lifetime of an order starts before its reading.
        let read_ns = monotonic_ns();
        let deadline_ns = read_ns + DEADLINE.as_nanos() as u64;
        let queue = match shaper.stats(netlink, device) {
            Ok(queue) => queue,
            Err(error) if self.retry_limit.allows(now, &error) => {
                self.counters.missed += 1;
                return Ok(None);
            }
            Err(error) => {
                let what = if retry::is_transient(&error) { "cannot be read" } else { "is gone" };
                let (kind, handle) = (&shaper.kind, shaper.handle);
                return Err(Error::runtime(format!("{}: {kind} {handle} {what}: {error}", device.name)));
            }
        };
        self.retry_limit.reset();
        let reading = Reading { at: now, counts: marker.counts()?, queue };
        self.counters.steps += 1;
        (self.counters.unregulated, self.counters.spared) = (reading.counts.unregulated, reading.counts.spared);
        let state = self.regulator.on_reading(&reading);
        let state = state.map_err(|why| Error::Check(format!("{}: rolled back: {why}", device.name)))?;
        marker.order(match &state.rule {
            Some(rule) => Orders::by_flow(rule, deadline_ns).with_wait(state.sojourn_s, state.link_bps, read_ns),
            None => Orders::new(state.p, self.marks, deadline_ns),
        })?;
        if let Some((from, to)) = self.rate_log.update(now, self.regulator.rate().as_bps()) {
            let [from, to] = [from, to].map(|bps| bps as f64 / 1e6);
            self.log(&format!("the rate changed from {from:.2} to {to:.2} Mbit/s: the AQM is redesigned"));
        }
        for message in self.regulator.take_messages() {
            self.log(&message);
        }
        Ok(Some(state))
    }

    fn sample(&mut self, now: Instant, interval: Span, age: Span, state: &State) {
        let totals = *self.regulator.totals();
        let interval_s = interval.as_secs_f64();
        let departed = totals.departed_bytes - self.shared.departed_bytes();
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
            missed_steps: self.counters.missed,
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
            spared_pkts: self.counters.spared,
            unregulated_pkts: self.counters.unregulated,
            steps: self.counters.steps,
            missed_steps: self.counters.missed,
        };
        if let Some(Err(error)) = self.recording.as_mut().map(|recording| recording.add(&sample)) {
            self.recording = None;
            self.recording_failed(&error);
        }
        let mut estimates = BTreeMap::new();
        self.regulator.observe_estimates(&mut |name, value| _ = estimates.insert(name, value));
        self.shared.set_estimates(estimates);
        self.shared.publish(sample, shown, self.warnings.update(&sample, &shown, interval_s));
        for warning in self.warnings.take_new() {
            self.log(&format!("warning: {warning}"));
        }
    }

    /// Reports the end of the recording: a full disk does not stop the AQM.
    fn recording_failed(&self, error: &std::io::Error) {
        self.log(&format!("--record: recording stopped: {error}; the AQM continues"));
    }

    /// Writes a line to standard error, which may be closed.
    fn log(&self, line: &str) {
        let _ = writeln!(std::io::stderr(), "aqumend: {}: {line}", self.kernel.device.name);
    }
}
