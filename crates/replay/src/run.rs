//! The replay loop: arrivals in order, a transmitter, and the AQM's timers.
//!
//! At equal times, timers come first, then the end of a transmission, then arrivals. A packet has the size of the
//! captured frame, also where only its first bytes were captured.

use std::io::Read;

use aqumen_aqm::registry::AnyQdisc;
use aqumen_aqm::{DropReason, Fates, Handle, Packet, Qdisc};
use aqumen_capture::{Headers, Record, headers};
use aqumen_network::named_aqm_report;
use aqumen_result::{Meter, utilization};
use aqumen_scenario::AqmSpec;
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_units::{Bytes, Instant, Span};

use crate::answer::{Answer, CaptureReport, ClassReport, LinkReport};
use crate::classify::{FlowKey, traffic_class};
use crate::error::Error;
use crate::pace::{HORIZON_NS, Pace};
use crate::setup::{Setup, on_the_wire};
use crate::source::{LOOK_PKTS, Source};
use crate::tally::{Tallies, TallyKeys};
use crate::writer::{CapturedPacket, Writer};

/// A queue, its link, and the counts.
pub(crate) struct Replay<'a> {
    setup: &'a Setup,
    aqm: &'a AqmSpec,
    qdisc: AnyQdisc,
    rng: Stream,
    floor: Floor,
    /// Packet in transmission, with start and end.
    serving: Option<(Handle, u64, u64)>,
    /// Last packet size and its transmission time: sizes mostly repeat.
    cached: (u32, u64),
    busy_ns: u64,
    queue: Meter,
    /// Writer of departing packets, if there is one.
    writer: Option<Writer>,
    capture: CaptureReport,
    timers: u64,
}

/// Packets present, by handle, and the tallies of their fates.
struct Floor {
    kept: Vec<PacketBuffer>,
    free: Vec<Handle>,
    tallies: Tallies,
}

struct PacketBuffer {
    bytes: u32,
    arrived: u64,
    tallied: TallyKeys,
    marked: bool,
    captured: CapturedPacket,
}

/// Larger than any jumbo frame, and the largest Ethernet header with it.
const JUMBO_BYTES: u32 = 9216 + 22;

/// Capacity for packet data that is kept for the next packet.
const ROOM_BYTES: usize = 1 << 16;

/// Timers between two progress reports.
const LOOK_TIMERS: u64 = 1 << 20;

/// Offers all packets of `source`, and waits until the queue is empty.
pub(super) fn offer<R: Read>(
    mut replay: Replay<'_>,
    source: &mut Source<R>,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Answer, Error> {
    let mut pace = Pace::new(replay.setup.speedup);
    let (mut now, mut done) = (0, 0.0);
    loop {
        let record = match source.reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(error) => return Err(source.wrong(error.to_string())),
        };
        if replay.setup.interface.is_none_or(|wanted| wanted == record.interface) {
            now = pace.at(record.at_ns);
            let base = base_ns(&pace);
            replay.advance(now, base, &mut || progress(done))?;
            replay.arrive(now, &record);
        }
        if source.reader.packets().is_multiple_of(LOOK_PKTS) {
            done = source.share();
            if !progress(done) {
                return Err(Error::Cancelled);
            }
        }
    }
    let capture = &mut replay.capture;
    capture.duration_s = now as f64 / 1e9;
    capture.offered_bps = (now > 0).then(|| capture.bytes as f64 * 8e9 / now as f64);
    capture.flows = replay.floor.tallies.flows_seen;
    (capture.reordered_pkts, capture.pauses_shortened) = (pace.reordered, pace.shortened);
    (capture.timeless_pkts, capture.cut_off) = (source.reader.timeless(), source.reader.is_cut_off());
    while let Some((_, _, end)) = replay.serving {
        replay.advance(end, base_ns(&pace), &mut || progress(1.0))?;
    }
    replay.answer()
}

/// Offset from replay time to file time of departing packets. Files have no times before 1970.
fn base_ns(pace: &Pace) -> u64 {
    pace.first_ns().max(0) as u64
}

impl<'a> Replay<'a> {
    pub(crate) fn new(setup: &'a Setup, aqm: &'a AqmSpec, writer: Option<Writer>) -> Result<Self, Error> {
        let wrong = |message: String| Error::Aqm { spec: aqm.label.clone(), message };
        let qdisc = match aqm.on(setup.network).build_qdisc(setup.limit) {
            Some(Ok(qdisc)) => qdisc,
            Some(Err(error)) => return Err(wrong(error.to_string())),
            None => return Err(wrong(format!("there is no AQM called {}", aqm.algorithm))),
        };
        Ok(Replay {
            setup,
            aqm,
            qdisc,
            rng: Stream::new(setup.seed, Kind::Aqm, 0),
            floor: Floor { kept: Vec::new(), free: Vec::new(), tallies: Tallies::new() },
            serving: None,
            cached: (0, 0),
            busy_ns: 0,
            queue: Meter::new(None),
            writer,
            capture: CaptureReport::default(),
            timers: 0,
        })
    }

    /// Runs timers and ends of transmission up to `until`.
    #[inline]
    fn advance(&mut self, until: u64, base: u64, go_on: &mut dyn FnMut() -> bool) -> Result<(), Error> {
        loop {
            let timer = self.qdisc.next_timer().map_or(u64::MAX, |due| due.as_nanos());
            let end = self.serving.map_or(u64::MAX, |(_, _, end)| end);
            if timer.min(end) > until {
                return Ok(());
            }
            if timer <= end {
                self.timers += 1;
                if self.timers.is_multiple_of(LOOK_TIMERS) && !go_on() {
                    return Err(Error::Cancelled);
                }
                self.qdisc.on_timer(Instant::from_nanos(timer), &mut self.rng);
            } else {
                self.finish(end, base)?;
            }
        }
    }

    fn arrive(&mut self, now: u64, record: &Record<'_>) {
        let decoded = headers::decode(record.link, record.data);
        let bytes = on_the_wire(record.original, self.setup.overhead);
        self.report(record, &decoded, bytes);
        let ip = decoded.ip;
        let (tallied, hashes) = self.floor.tallies.arrived(&FlowKey::of(&decoded), traffic_class(ip.as_ref()), bytes);
        let handle = self.floor.keep(bytes, now, tallied);
        if self.writer.is_some() {
            let captured = &mut self.floor.kept[handle as usize].captured;
            (captured.link, captured.original, captured.ip) = (record.link, record.original, ip);
            captured.data.clear();
            captured.data.extend_from_slice(record.data);
        }
        let packet = Packet {
            bytes,
            ecn: ip.map_or_else(Default::default, |ip| ip.ecn),
            class: ip.map_or(0, |ip| ip.dscp),
            segments: 1,
            flow_hash: hashes.flow,
            source_hash: hashes.source,
            destination_hash: hashes.destination,
            syn: ip.is_some_and(|ip| ip.syn),
            ack: None,
        };
        self.queue.advance(now, self.qdisc.backlog().packets);
        self.qdisc.enqueue(handle, &packet, Instant::from_nanos(now), &mut self.rng, &mut self.floor);
        // A packet dropped at an idle link leaves the link idle.
        if self.serving.is_none() && self.qdisc.backlog().packets > 0 {
            self.serve(now);
        }
    }

    fn report(&mut self, record: &Record<'_>, decoded: &Headers, bytes: u32) {
        let capture = &mut self.capture;
        capture.packets += 1;
        capture.bytes += u64::from(bytes);
        capture.super_pkts += u64::from(record.original > JUMBO_BYTES);
        if decoded.ip.is_none() {
            capture.not_ip_pkts += 1;
            capture.unknown_link_pkts += u64::from(!headers::is_supported(record.link));
        }
    }

    /// Takes the next packet for transmission.
    fn serve(&mut self, now: u64) {
        self.queue.advance(now, self.qdisc.backlog().packets);
        let Some(handle) = self.qdisc.dequeue(Instant::from_nanos(now), &mut self.rng, &mut self.floor) else {
            return;
        };
        let PacketBuffer { bytes, arrived, tallied, .. } = self.floor.kept[handle as usize];
        self.floor.tallies.served(tallied, now - arrived);
        if self.cached.0 != bytes {
            let duration = self.setup.rate.time_for(Bytes(u64::from(bytes))).as_nanos().max(1);
            self.cached = (bytes, duration);
        }
        self.serving = Some((handle, now, now.saturating_add(self.cached.1)));
    }

    /// Ends the current transmission.
    fn finish(&mut self, now: u64, base: u64) -> Result<(), Error> {
        let Some((handle, start, _)) = self.serving.take() else { return Ok(()) };
        if now > HORIZON_NS {
            let message = "at this rate the last packets leave after more than 146 years; give a higher --rate";
            return Err(Error::Capture { file: "replay".into(), message: message.into() });
        }
        self.qdisc.transmitted(Span::from_nanos(now - start), Instant::from_nanos(now));
        self.busy_ns += now - start;
        let kept = &mut self.floor.kept[handle as usize];
        self.floor.tallies.departed(kept.tallied, kept.bytes);
        if let Some(writer) = &mut self.writer {
            let at_ns = base.saturating_add(now).saturating_add(self.setup.delay_ns);
            writer.write(at_ns, &mut kept.captured, kept.marked)?;
        }
        self.floor.release(handle);
        self.serve(now);
        Ok(())
    }

    fn answer(mut self) -> Result<Answer, Error> {
        let elapsed = self.queue.now();
        self.queue.edge(elapsed, self.qdisc.backlog().packets, &Default::default(), 0.0);
        let seen = &self.queue.pieces[0];
        let metrics = seen.metrics(elapsed, 0.0, None);
        let over_time = |mean: f64| (elapsed > 0).then_some(mean);
        if let Some(writer) = self.writer.take() {
            writer.finish()?;
        }
        let tallies = &self.floor.tallies;
        let (flows, other_flows) = tallies.flows(self.setup.top);
        Ok(Answer {
            capture: self.capture,
            setup: self.setup.report(),
            aqm: named_aqm_report(&self.aqm.algorithm, &self.aqm.values, &self.setup.network, |visit| {
                self.qdisc.settings(visit)
            }),
            link: LinkReport {
                elapsed_s: elapsed as f64 / 1e9,
                utilization: utilization(self.busy_ns as f64, elapsed as f64),
                queue_mean_pkts: over_time(metrics.queue_mean_pkts),
                queue_std_pkts: over_time(metrics.queue_std_pkts),
                queue_max_pkts: seen.longest as u32,
                left_pkts: self.qdisc.backlog().packets,
            },
            total: ClassReport { name: "all".into(), counts: tallies.total.counts, sojourn: tallies.total.report() },
            services: tallies.services(),
            traffic_classes: tallies.traffic_classes(),
            flows,
            other_flows,
            cpu_s: 0.0,
        })
    }
}

impl Floor {
    fn keep(&mut self, bytes: u32, arrived: u64, tallied: TallyKeys) -> Handle {
        match self.free.pop() {
            Some(handle) => {
                let kept = &mut self.kept[handle as usize];
                (kept.bytes, kept.arrived, kept.tallied, kept.marked) = (bytes, arrived, tallied, false);
                handle
            }
            None => {
                self.kept.push(PacketBuffer {
                    bytes,
                    arrived,
                    tallied,
                    marked: false,
                    captured: CapturedPacket::default(),
                });
                (self.kept.len() - 1) as Handle
            }
        }
    }

    fn release(&mut self, handle: Handle) {
        self.kept[handle as usize].captured.data.shrink_to(ROOM_BYTES);
        self.free.push(handle);
    }
}

impl Fates for Floor {
    fn marked(&mut self, handle: Handle) {
        let kept = &mut self.kept[handle as usize];
        kept.marked = true;
        self.tallies.marked(kept.tallied);
    }

    fn dropped(&mut self, handle: Handle, reason: DropReason) {
        self.tallies.dropped(self.kept[handle as usize].tallied, reason);
        self.release(handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_packet_that_is_gone_is_the_next_one_s() {
        let mut floor = Floor { kept: Vec::new(), free: Vec::new(), tallies: Tallies::new() };
        let keep = |floor: &mut Floor, bytes| floor.keep(bytes, 5, TallyKeys::default());
        assert_eq!([100, 200, 300].map(|bytes| keep(&mut floor, bytes)), [0, 1, 2]);
        // The second was marked, and large: what its data took goes back but for what most packets need.
        floor.kept[1].marked = true;
        floor.kept[1].captured.data = Vec::with_capacity(1 << 20);
        floor.release(1);
        assert!(floor.kept[1].captured.data.capacity() < 1 << 17);
        assert_eq!((keep(&mut floor, 400), keep(&mut floor, 500)), (1, 3));
        assert_eq!((floor.kept[1].bytes, floor.kept[1].marked, floor.kept.len()), (400, false, 4));
    }
}
