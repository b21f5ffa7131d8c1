//! Replay of a capture: its packets are offered to one queue, open loop.
//!
//! [`survey`] reads the capture and determines the rate; [`replay`] offers its packets at their times to one queue
//! discipline and counts the fates of each class. Senders do not react: the result says what this queue would do to
//! these packets, not what the senders would then have sent.
//!
//! Reading order: `setup` (the queue), `source` (the capture), `pace` (times of the capture as times of the replay),
//! `classify` (flow and class of a packet), `tally` (counts), `run` (queue, transmitter and timers), `writer`
//! (departing packets), `answer` (the result).

mod answer;
mod classify;
mod error;
mod pace;
mod run;
mod setup;
mod source;
mod tally;
mod writer;

use std::path::Path;

use aqumen_scenario::replay::Settings;
use aqumen_scenario::{AqmSpec, cost};
use aqumen_units::Rate;

use pace::Pace;
use run::Replay;
use source::{LOOK_PKTS, Source};
use writer::Writer;

pub use answer::{Answer, CaptureReport, ClassReport, Counts, FlowReport, LinkReport, SetupReport, Sojourn};
pub use error::Error;
pub use setup::Setup;

/// Packets for the mean size, where the whole capture need not be read.
const PILOT_PKTS: u64 = 10_000;

/// Reads the capture at `path` and completes `settings`: all of it for the rate if a load is given, otherwise its first
/// packets for their mean size. `progress` gets the fraction read, and returns false to stop.
pub fn survey(path: &Path, settings: &Settings, progress: &mut dyn FnMut(f64) -> bool) -> Result<Setup, Error> {
    let wrong = |message: String| Error::Capture { file: path.display().to_string(), message };
    let mut source = Source::open(path)?;
    let mut pace = Pace::new(settings.speedup);
    let overhead = settings.overhead as i64;
    let (mut packets, mut bytes, mut last_ns) = (0u64, 0u64, 0);
    while let Some(record) = source.reader.next_record().map_err(|error| wrong(error.to_string()))? {
        if settings.interface.is_none_or(|wanted| wanted == record.interface) {
            last_ns = pace.at(record.at_ns);
            bytes += u64::from(setup::on_the_wire(record.original, overhead));
            packets += 1;
        }
        if settings.load.is_none() && packets == PILOT_PKTS {
            break;
        }
        if source.reader.packets().is_multiple_of(LOOK_PKTS) && !progress(source.share()) {
            return Err(Error::Cancelled);
        }
    }
    if packets == 0 {
        return Err(wrong(match settings.interface {
            Some(interface) => format!("no packets of interface {interface} to replay"),
            None => "no packets to replay".into(),
        }));
    }
    let rate = match (settings.rate, settings.load) {
        (Some(rate), _) => rate,
        (None, Some(load)) if last_ns > 0 => {
            let bps = bytes as f64 * 8e9 / last_ns as f64 / load;
            let max = aqumen_scenario::RATE_MAX.as_bps() as f64;
            if !(0.5..=max).contains(&bps) {
                let message = format!("--load {load} is a rate of {bps:.3e} bit/s; 1 to {max:.0e} are accepted");
                return Err(wrong(message));
            }
            Rate::from_bps((bps + 0.5) as u64)
        }
        (None, _) => return Err(wrong("all packets have one time, so no load can be told; give --rate".into())),
    };
    Ok(Setup {
        rate,
        limit: settings.limit(),
        delay_ns: settings.delay.as_nanos(),
        network: settings.network(rate, bytes as f64 / packets as f64),
        overhead,
        speedup: settings.speedup,
        interface: settings.interface,
        top: settings.top as usize,
        seed: u64::from(settings.seed),
    })
}

/// Refuses an AQM that does not fit the queue.
pub fn check_aqm(setup: &Setup, aqm: &AqmSpec) -> Result<(), Error> {
    Replay::new(setup, aqm, None).map(drop)
}

/// Returns the duration of the replay of the capture at `path`, seconds, and its number of packets.
pub fn length(path: &Path, setup: &Setup, progress: &mut dyn FnMut(f64) -> bool) -> Result<(f64, u64), Error> {
    scan(path, setup, progress).map(|(last_s, packets, _)| (last_s, packets))
}

/// Returns duration, packets, and the longest time that the queue takes to empty at the end, seconds.
fn scan(path: &Path, setup: &Setup, progress: &mut dyn FnMut(f64) -> bool) -> Result<(f64, u64, f64), Error> {
    let wrong = |message: String| Error::Capture { file: path.display().to_string(), message };
    let mut source = Source::open(path)?;
    let mut pace = Pace::new(setup.speedup);
    let (mut last_ns, mut packets, mut bytes, mut largest) = (0, 0, 0_u64, 0);
    while let Some(record) = source.reader.next_record().map_err(|error| wrong(error.to_string()))? {
        if setup.interface.is_none_or(|wanted| wanted == record.interface) {
            (last_ns, packets) = (pace.at(record.at_ns), packets + 1);
            let size = u64::from(setup::on_the_wire(record.original, setup.overhead));
            (bytes, largest) = (bytes + size, size.max(largest));
        }
        if source.reader.packets().is_multiple_of(LOOK_PKTS) && !progress(source.share()) {
            return Err(Error::Cancelled);
        }
    }
    let all_s = 8.0 * bytes as f64 / setup.rate.as_bps() as f64;
    Ok((last_ns as f64 / 1e9, packets, drain_s(setup, largest).min(all_s)))
}

/// Returns the time that a full buffer takes to empty with packets of at most `largest` bytes, seconds.
fn drain_s(setup: &Setup, largest: u64) -> f64 {
    let bytes = setup.limit.bytes.0.min(u64::from(setup.limit.packets).saturating_mul(largest));
    8.0 * bytes as f64 / setup.rate.as_bps() as f64
}

/// Refuses an AQM whose updates would take far longer than the packets of the capture at `path`. Returns a message if
/// the replay takes long.
pub fn check_cost(
    path: &Path,
    setup: &Setup,
    aqm: &AqmSpec,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Option<String>, Error> {
    /// CPU seconds per packet.
    const PACKET_S: f64 = 200e-9;
    /// Longest capture that needs no check, seconds.
    const WEEK_S: f64 = 7.0 * 86_400.0;
    /// Largest packet of such a capture: a segmentation offload.
    const LARGEST_BYTES: u64 = 65_536;
    /// Number of flows, which is unknown.
    const FLOWS: u64 = u64::MAX;
    let wrong = |message: String| Error::Aqm { spec: aqm.label.clone(), message };
    let check = |duration_s: f64, packets_s: f64| {
        cost::check_updates(aqm, setup.network, setup.limit, FLOWS, duration_s, packets_s).map_err(wrong)
    };
    let updates_s = |duration_s| cost::updates_s(aqm, setup.network, setup.limit, FLOWS, duration_s);
    // A packet takes at least 16 bytes of a capture.
    let most_s = Source::open(path)?.bytes_max() as f64 / 16.0 * PACKET_S;
    let longest_s = WEEK_S + drain_s(setup, LARGEST_BYTES);
    if check(longest_s, 0.0).is_ok() && cost::long_run_notice(most_s + updates_s(longest_s), "").is_none() {
        return Ok(None);
    }
    let (offered_s, packets, left_s) = scan(path, setup, progress)?;
    let duration_s = offered_s + left_s;
    let packets_s = packets as f64 * PACKET_S;
    check(duration_s, packets_s)?;
    Ok(cost::long_run_notice(packets_s + updates_s(duration_s), &format!("{packets} packets over {duration_s:.0} s")))
}

/// Offers the packets of the capture at `path` to a queue with `aqm`. Departing packets are written to `out` (pcapng).
pub fn replay(
    path: &Path,
    setup: &Setup,
    aqm: &AqmSpec,
    out: Option<&Path>,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Answer, Error> {
    let mut source = Source::open(path)?;
    let writer = out.map(|out| Writer::create(out, path)).transpose()?;
    let replay = Replay::new(setup, aqm, writer)?;
    run::offer(replay, &mut source, progress)
}

/// Replays a capture in memory.
pub fn replay_bytes(capture: &[u8], setup: &Setup, aqm: &AqmSpec) -> Result<Answer, Error> {
    let mut source = Source::new(capture, "capture".into(), capture.len() as u64)?;
    run::offer(Replay::new(setup, aqm, None)?, &mut source, &mut |_| true)
}
