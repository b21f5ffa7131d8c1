//! The loop of `aqumend attach`: read, step, order, every few milliseconds, until told to end or
//! until what it stands on is gone.

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
use super::options::Options;
use super::pace::{self, Every};
use super::patience::{self, Patience};
use super::rate_log::RateLog;
use super::regulator::Regulator;
use super::service::{self, Manager, Request, Signals};
use super::shaper::{self, Shaper};
use super::{ceiling, device, sampled, told};
use crate::lab::clock::{Clock, monotonic_ns};
use crate::netlink::Netlink;
use crate::netlink::tc::Device;
use crate::telemetry::recording::Recording;
use crate::telemetry::warnings::Watch;
use crate::telemetry::{Board, DEADLINE, Sample, Totals, server, socket};
use crate::{Failure, Tried, shown};

/// Two steps of the AQM within so much time make one sample.
const SAMPLE: Span = Span::from_millis(5);
/// How often it looks whether the marker still hangs.
const LOOK: Span = Span::from_secs(1);

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

/// All that follows from the options and from the device as it is, before anything is done.
struct Prepared {
    device: Device,
    setup: Setup,
    shaper: Shaper,
    network: Network,
    aqm: AnyAqm,
}

/// `carried`: a rate that this machine is known to carry.
fn prepare(netlink: &mut Netlink, options: &Options, carried: Option<Rate>) -> Result<Prepared, Failure> {
    let device = device::find(netlink, &options.device)?;
    let setup = Setup {
        spare: options.spare,
        only: options.only,
        link_header: device::link_header(&device)?,
        ..Setup::default()
    };
    let shaper = shaper::find(netlink, &device, options)?;
    let network = network(options, &device, &shaper)?;
    if let Some(rate) = options.rate.filter(|_| options.rate != carried) {
        ceiling::check(rate, network.packet_bytes, device.mtu)?;
    }
    let aqm = sampled::build(&options.aqm, &network)?;
    Ok(Prepared { device, setup, shaper, network, aqm })
}

/// The recording that `options` ask for.
fn record(options: &Options) -> Result<Option<Recording>, Failure> {
    let open =
        |path: &PathBuf| Recording::open(path).or_refuse(|| format!("--record {}", shown(&path.display().to_string())));
    options.record.as_ref().map(open).transpose()
}

/// Attaches, and regulates until the end.
pub(crate) fn run(options: Options) -> Result<(), Failure> {
    let mut netlink = Netlink::open().or_refuse(|| "netlink".into())?;
    let Prepared { device, setup, shaper, network, aqm } = prepare(&mut netlink, &options, None)?;
    if options.dry_run {
        print!("{}", told::plan(&options, &device, &shaper, &network, &aqm));
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
    let recording = record(&options)?;

    let board = Arc::new(Board::default());
    let address = page.as_ref().and_then(|page| page.local_addr().ok());
    let Attached { device, shaper, .. } = &attached;
    board.begin(told::status(&options, device, shaper, &network, &aqm, via, address));
    serve(local, page, &board, options.host.clone())?;
    eprintln!("{}", told::greeting(&options, device, shaper, &network, via, address));
    service::be_prompt();
    let warning = told::regulates_others(&options, shaper);
    Loop {
        marks: sampled::is_marking(&aqm),
        watch: Watch::new(network.link_rate.as_bps() as f64, network.target_pkts, warning),
        rate_log: RateLog::new(network.link_rate.as_bps()),
        regulator: Regulator::new(&options, network, aqm, shaper.limit_bytes),
        options,
        address,
        attached,
        board,
        recording,
        patience: Patience::default(),
        spent: Spent::default(),
    }
    .run(&signals)
}

fn serve(
    local: std::os::unix::net::UnixListener,
    page: Option<std::net::TcpListener>,
    board: &Arc<Board>,
    host: Option<String>,
) -> Result<(), Failure> {
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        thread::Builder::new().name(name.into()).spawn(work).map(drop).or_refuse(|| "a thread".into())
    };
    let shared = board.clone();
    spawn("socket", Box::new(move || socket::serve(local, shared)))?;
    if let Some(page) = page {
        let shared = board.clone();
        spawn("page", Box::new(move || server::serve(page, shared, host)))?;
    }
    Ok(())
}

/// What the loop works on.
struct Loop {
    options: Options,
    /// Where the live page is.
    address: Option<SocketAddr>,
    attached: Attached,
    regulator: Regulator,
    /// Whether what can carry a mark is marked.
    marks: bool,
    board: Arc<Board>,
    recording: Option<Recording>,
    watch: Watch,
    rate_log: RateLog,
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

impl Loop {
    fn run(mut self, signals: &Signals) -> Result<(), Failure> {
        let manager = Manager::from_environment();
        let clock = Clock::starting_in(0);
        let shown = || Instant::from_nanos(clock.now());
        if let Some(recording) = &mut self.recording {
            recording.begin(&self.board.status()).or_refuse(|| "--record".into())?;
        }
        manager.tell("READY=1");
        let end = self.options.duration.map(|duration| Instant::ZERO + duration);
        let mut watchdog = manager.watchdog.map(Every::new);
        let (mut look, mut sample) = (Every::new(LOOK), Every::new(SAMPLE));
        let (mut due, mut sampled) = (Instant::ZERO, None);
        let outcome = loop {
            let now = shown();
            if self.board.is_stopped() || end.is_some_and(|end| now >= end) {
                break Ok(());
            }
            self.spent.missed += pace::missed(now, due);
            let state = match self.step(now) {
                Ok(state) => state,
                Err(failure) => break Err(failure),
            };
            if let Some(state) = state.filter(|_| sample.comes(now)) {
                let interval = sampled.replace(now).map_or(Span::ZERO, |at| now.saturating_since(at));
                self.sample(now, interval, shown().saturating_since(now), &state);
            }
            if look.comes(now) {
                let Attached { netlink, device, marker, .. } = &mut self.attached;
                if patience::is_gone(&marker.is_hung(netlink)) {
                    break Err(Failure::lost(format!("{}: somebody took the marker off", device.name)));
                }
            }
            if watchdog.as_mut().is_some_and(|watchdog| watchdog.comes(now)) {
                manager.tell("WATCHDOG=1");
            }
            due = pace::next(now, state.and(self.regulator.next_timer()));
            match signals.wait(&clock.wait(due.as_nanos())) {
                None => {}
                Some(Request::End) => break Ok(()),
                Some(Request::Reload) => {
                    manager.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_ns() / 1000));
                    match self.reload() {
                        Ok(greeting) => self.say(&format!("reloaded: {greeting}")),
                        Err(failure) => self.say(&format!("not reloaded, it goes on as before: {failure}")),
                    }
                    manager.tell("READY=1");
                }
            }
        };
        manager.tell("STOPPING=1");
        if let Some(Err(error)) = self.recording.take().map(Recording::end) {
            self.recording_failed(&error);
        }
        outcome
    }

    /// Reads the options anew, and the shaper, and goes on with what follows from them; no packet is lost or passes
    /// unshaped. What is attached now; or an error, and nothing has changed.
    fn reload(&mut self) -> Result<String, Failure> {
        let options = self.options.again()?;
        let (old, new) = (&self.options, &options);
        for (same, name) in [
            (old.device == new.device, "the device"),
            (old.listen == new.listen, "--listen"),
            (old.host == new.host, "--host"),
            (old.duration == new.duration, "--duration"),
            (old.rate.is_some() == new.rate.is_some(), "whether there is a --rate"),
        ] {
            if !same {
                return Err(Failure::refused(format!("{name} changes with a restart only")));
            }
        }
        let Attached { netlink, device, shaper, marker } = &mut self.attached;
        let prepared = prepare(netlink, &options, self.options.rate)?;
        if prepared.device.index != device.index {
            return Err(Failure::refused(format!("{} is another device now", device.name)));
        }
        let mut successor = Marker::load(&prepared.setup)?;
        prepared.shaper.make(netlink, device)?;
        let via = match successor.hang(netlink, device, options.via) {
            Ok(via) => via,
            Err(failure) => {
                shaper.make(netlink, device)?;
                return Err(failure);
            }
        };
        // The old marker goes without being taken off: as a filter it is replaced already.
        (*shaper, *marker) = (prepared.shaper, successor);
        let Prepared { network, aqm, .. } = prepared;
        self.board.begin(told::status(&options, device, shaper, &network, &aqm, via, self.address));
        let greeting = told::attached(&options, shaper, &network, via);
        self.marks = sampled::is_marking(&aqm);
        let warning = told::regulates_others(&options, shaper);
        self.watch = Watch::new(network.link_rate.as_bps() as f64, network.target_pkts, warning);
        self.rate_log = RateLog::new(network.link_rate.as_bps());
        self.regulator = Regulator::new(&options, network, aqm, shaper.limit_bytes);
        self.options = options;
        self.record_anew();
        Ok(greeting)
    }

    /// Ends the recording, and begins the one that is asked for, which may be another part of it.
    fn record_anew(&mut self) {
        if let Some(Err(error)) = self.recording.take().map(Recording::end) {
            self.recording_failed(&error);
        }
        match record(&self.options) {
            Ok(None) => {}
            Ok(Some(mut recording)) => match recording.begin(&self.board.status()) {
                Ok(()) => self.recording = Some(recording),
                Err(error) => self.recording_failed(&error),
            },
            Err(failure) => self.say(&format!("{failure}; the AQM goes on")),
        }
    }

    /// Reads, steps the AQM if it is due, orders. `None`: the kernel did not answer, and there is no order.
    fn step(&mut self, now: Instant) -> Result<Option<State>, Failure> {
        let Attached { netlink, device, shaper, marker } = &mut self.attached;
        // An order holds from before the reading that it follows from.
        let deadline_ns = monotonic_ns() + DEADLINE.as_nanos() as u64;
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
        self.spent.steps += 1;
        (self.spent.unregulated, self.spent.spared) = (reading.counts.unregulated, reading.counts.spared);
        let state = self.regulator.read(&reading);
        let state = state.map_err(|why| Failure::Check(format!("{}: rolled back: {why}", device.name)))?;
        marker.order(Orders::new(state.p, self.marks, deadline_ns))?;
        if let Some((from, to)) = self.rate_log.see(now, self.regulator.rate().as_bps()) {
            let [from, to] = [from, to].map(|bps| bps as f64 / 1e6);
            self.say(&format!("the rate changed from {from:.2} to {to:.2} Mbit/s: the AQM is designed anew"));
        }
        for news in self.regulator.news() {
            self.say(&news);
        }
        Ok(Some(state))
    }

    fn sample(&mut self, now: Instant, interval: Span, age: Span, state: &State) {
        let totals = *self.regulator.totals();
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
            rate_bps: pace::rate_bps(departed, interval_s),
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
        self.board.show(sample, shown, self.watch.see(&sample, &shown, interval_s));
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
