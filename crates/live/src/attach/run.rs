//! The loop of `aqumend attach`: read, step, order, every few milliseconds, until told to end or
//! until what it stands on is gone.

use std::io::Write as _;
use std::sync::Arc;
use std::thread;

use aqumen_units::{Instant, Span};

use super::controller::{Reading, State};
use super::design::network;
use super::marker::{Marker, Orders, Setup};
use super::options::Options;
use super::pace::{self, Every};
use super::patience::{self, Patience};
use super::regulator::Regulator;
use super::service::{self, Manager, Signals};
use super::shaper::{self, Shaper};
use super::{ceiling, device, sampled, told};
use crate::lab::clock::{Clock, monotonic_ns};
use crate::netlink::Netlink;
use crate::netlink::tc::Device;
use crate::telemetry::recording::Recording;
use crate::telemetry::warnings::Watch;
use crate::telemetry::{Board, DEADLINE, Sample, Totals, server, socket};
use crate::{Failure, Tried};

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

/// Attaches, and regulates until the end.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut netlink = Netlink::open().or_refuse(|| "netlink".into())?;
    let device = device::find(&mut netlink, &options.device)?;
    let setup = Setup {
        spare: options.spare,
        only: options.only,
        link_header: device::link_header(&device)?,
        ..Setup::default()
    };
    let shaper = shaper::find(&mut netlink, &device, options)?;
    let network = network(options, &device, &shaper)?;
    if let Some(rate) = options.rate {
        ceiling::check(rate, network.packet_bytes, device.mtu)?;
    }
    let aqm = sampled::build(&options.aqm, &network)?;
    if options.dry_run {
        print!("{}", told::plan(options, &device, &shaper, &network, &aqm));
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
    let Attached { device, shaper, .. } = &attached;
    board.begin(told::status(options, device, shaper, &network, &aqm, via, address));
    serve(local, page, &board, options.host.clone())?;
    eprintln!("{}", told::greeting(options, device, shaper, &network, via, address));
    service::be_prompt();
    let warning = told::regulates_others(options, shaper);
    let watch = Watch::new(network.link_rate.as_bps() as f64, network.target_pkts, warning);
    Loop {
        end: options.duration.map(|duration| Instant::ZERO + duration),
        marks: sampled::is_marking(&aqm),
        regulator: Regulator::new(options, network, aqm, shaper.limit_bytes),
        attached,
        board,
        recording,
        watch,
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
    /// When to detach.
    end: Option<Instant>,
    attached: Attached,
    regulator: Regulator,
    /// Whether what can carry a mark is marked.
    marks: bool,
    board: Arc<Board>,
    recording: Option<Recording>,
    watch: Watch,
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
        let mut watchdog = manager.watchdog.map(Every::new);
        let (mut look, mut sample) = (Every::new(LOOK), Every::new(SAMPLE));
        let (mut due, mut sampled) = (Instant::ZERO, None);
        let outcome = loop {
            let now = shown();
            if self.board.is_stopped() || self.end.is_some_and(|end| now >= end) {
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
            if signals.wait(&clock.wait(due.as_nanos())) {
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
