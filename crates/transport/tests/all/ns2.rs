//! The presets `ns2` and `cubic-ns2` against traces of ns-2.35: all segments in the same order at the same times.
//!
//! `vectors/generate.sh` makes the traces. The tests connect our sender and receiver by the same two links, 100 Mbit/s
//! with 1 ms and 790 kbit/s with 40 ms, which lose or mark the chosen packets on arrival.

use std::collections::BTreeMap;

use aqumen_transport::tcp::{Ack, Receiver, Segment, Sender, TcpConfig, Variant};
use aqumen_units::{Bytes, Ecn, Instant, Rate, Span};

/// A FIFO link with a large buffer.
struct Link {
    rate: Rate,
    delay: Span,
    free: Instant,
}

impl Link {
    fn new(bps: u64, delay: Span) -> Self {
        Link { rate: Rate::from_bps(bps), delay, free: Instant::ZERO }
    }

    /// Time at which a packet that arrives at `now` reaches the other end.
    fn carry(&mut self, now: Instant, bytes: u64) -> Instant {
        self.free = self.free.max(now) + self.rate.time_for(Bytes(bytes));
        self.free + self.delay
    }
}

enum Event {
    AtRouter(Segment),
    AtReceiver(Segment),
    AckAtRouter(Ack, u64),
    AckAtSender(Ack),
}

#[derive(Debug, PartialEq)]
struct Sent {
    at: Instant,
    seq: u32,
    bytes: u16,
    cwr: bool,
}

fn simulate(cfg: &TcpConfig, phase: Span, drops: &[u32], marks: &[u32], until: Instant) -> Vec<Sent> {
    let access = || Link::new(100_000_000, Span::from_millis(1));
    let bottleneck = || Link::new(790_000, Span::from_millis(40));
    let (mut there, mut on, mut back, mut home) = (access(), bottleneck(), bottleneck(), access());
    let mut sender = Sender::new(cfg, None).with_clock_phase(cfg, phase);
    let mut receiver = Receiver::new(cfg);
    let mut events = BTreeMap::new();
    let (mut order, mut arrivals) = (0, 0);
    let mut sent = Vec::new();
    let mut now = Instant::ZERO + Span::from_millis(100);
    sender.start(cfg, now);
    loop {
        while let Some(segment) = sender.poll_immediate(cfg, now).or_else(|| sender.poll_transmit(cfg, now)) {
            sent.push(Sent { at: now, seq: segment.seq, bytes: segment.bytes, cwr: segment.cwr });
            order += 1;
            events.insert((there.carry(now, segment.bytes.into()), order), Event::AtRouter(segment));
        }
        let timeout = sender.next_timer().expect("an endless transfer is never idle");
        let due = timeout.min(receiver.next_timer().unwrap_or(Instant::MAX));
        let next = events.keys().next().map(|key| key.0).filter(|at| *at <= due);
        now = next.unwrap_or(due);
        if now > until {
            return sent;
        }
        let acknowledge = |ack: Ack, back: &mut Link| {
            // A block is eight bytes.
            let bytes = u64::from(cfg.ack_bytes) + 8 * ack.sack.as_slice().len() as u64;
            (back.carry(now, bytes), Event::AckAtRouter(ack, bytes))
        };
        if next.is_none() {
            sender.on_timer(cfg, now);
            if let Some(ack) = receiver.on_timer(now) {
                order += 1;
                let (at, event) = acknowledge(ack, &mut back);
                events.insert((at, order), event);
            }
            continue;
        }
        let (_, event) = events.pop_first().expect("there is one");
        order += 1;
        match event {
            Event::AtRouter(mut segment) => {
                let number = arrivals;
                arrivals += 1;
                if marks.contains(&number) {
                    segment.ecn = Ecn::Ce;
                }
                if !drops.contains(&number) {
                    events.insert((on.carry(now, segment.bytes.into()), order), Event::AtReceiver(segment));
                }
            }
            Event::AtReceiver(segment) => {
                if let Some(ack) = receiver.on_segment(cfg, now, &segment) {
                    let (at, event) = acknowledge(ack, &mut back);
                    events.insert((at, order), event);
                }
            }
            Event::AckAtRouter(ack, bytes) => {
                events.insert((home.carry(now, bytes), order), Event::AckAtSender(ack));
            }
            Event::AckAtSender(ack) => sender.on_ack(cfg, now, &ack),
        }
    }
}

struct Trace {
    drops: Vec<u32>,
    marks: Vec<u32>,
    sent: Vec<Sent>,
}

fn parse(text: &str) -> Trace {
    let list = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the header names it");
        line.split_whitespace().map(|word| word.parse().expect("a number")).collect()
    };
    let sent = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        Sent {
            at: Instant::ZERO + Span::from_secs_f64(words[0].parse().expect("a time")),
            seq: words[1].parse().expect("a segment"),
            bytes: words[2].parse().expect("a size"),
            cwr: words.get(3) == Some(&"C"),
        }
    });
    Trace { drops: list("# drops:"), marks: list("# marks:"), sent: sent.collect() }
}

/// Number of leading segments that agree, for the best phase of the sender's clock, which ns-2 draws and does not
/// print. Times agree to 2 us: ns-2 prints microseconds and accumulates floating-point seconds.
fn agreement(cfg: &TcpConfig, trace: &Trace) -> (usize, Span, Vec<Sent>) {
    let until = trace.sent.last().expect("not empty").at + Span::from_millis(1);
    let runs = (0..100).map(|tenth| {
        let phase = Span::from_micros(100 * tenth);
        let ours = simulate(cfg, phase, &trace.drops, &trace.marks, until);
        let same = ours
            .iter()
            .zip(&trace.sent)
            .take_while(|(our, its)| {
                let apart = our.at.saturating_since(its.at).max(its.at.saturating_since(our.at));
                apart <= Span::from_micros(2)
                    && (our.seq, our.bytes) == (its.seq, its.bytes)
                    && (!cfg.ecn || our.cwr == its.cwr)
            })
            .count();
        (same, phase, ours)
    });
    runs.max_by_key(|run| run.0).expect("a hundred runs")
}

fn check(variant: Variant, ecn: bool, trace: &str) {
    check_with(&TcpConfig { variant, ecn, ..TcpConfig::ns2() }, trace);
}

fn check_with(cfg: &TcpConfig, trace: &str) {
    let trace = parse(trace);
    let (same, phase, ours) = agreement(cfg, &trace);
    assert!(
        same == trace.sent.len() && ours.len() == same,
        "clock phase {phase}: {same} of {} segments agree ({} sent); ns-2 goes on\n{}here\n{}",
        trace.sent.len(),
        ours.len(),
        excerpt(&trace.sent, same),
        excerpt(&ours, same),
    );
}

fn excerpt(sent: &[Sent], from: usize) -> String {
    sent.iter().skip(from.saturating_sub(2)).take(8).map(|one| format!("{one:?}\n")).collect()
}

#[test]
fn reno_repairs_losses_like_ns2() {
    check(Variant::Reno, false, include_str!("../../vectors/reno-drops.txt"));
}

#[test]
fn reno_opens_after_a_lost_syn_like_ns2() {
    check(Variant::Reno, false, include_str!("../../vectors/reno-syn.txt"));
}

#[test]
fn reno_reacts_to_marks_like_ns2_down_to_windows_below_one() {
    check(Variant::Reno, true, include_str!("../../vectors/reno-marks.txt"));
}

#[test]
fn reno_meets_losses_and_marks_together_like_ns2() {
    check(Variant::Reno, true, include_str!("../../vectors/reno-drops-marks.txt"));
}

#[test]
fn newreno_repairs_losses_like_ns2() {
    check(Variant::NewReno, false, include_str!("../../vectors/newreno-drops.txt"));
}

#[test]
fn newreno_meets_losses_and_marks_together_like_ns2() {
    check(Variant::NewReno, true, include_str!("../../vectors/newreno-drops-marks.txt"));
}

#[test]
fn delayed_acknowledgements_are_those_of_ns2() {
    let cfg = TcpConfig { delayed_ack: Some(Span::from_millis(100)), ..TcpConfig::ns2() };
    check_with(&cfg, include_str!("../../vectors/reno-drops-delayed-acks.txt"));
}

#[test]
fn the_window_limit_bounds_what_is_halved_like_in_ns2() {
    let cfg = TcpConfig { ecn: true, receive_window: 12, ..TcpConfig::ns2() };
    check_with(&cfg, include_str!("../../vectors/reno-window-limit.txt"));
}

#[test]
fn selective_acknowledgements_repair_losses_like_ns2() {
    check(Variant::Sack, false, include_str!("../../vectors/sack-drops.txt"));
    check(Variant::Sack, false, include_str!("../../vectors/sack-bursts.txt"));
}

#[test]
fn selective_acknowledgements_repair_half_a_window_like_ns2() {
    check(Variant::Sack, false, include_str!("../../vectors/sack-window.txt"));
}

#[test]
fn selective_acknowledgements_meet_losses_and_marks_together_like_ns2() {
    check(Variant::Sack, true, include_str!("../../vectors/sack-drops-marks.txt"));
    check(Variant::Sack, true, include_str!("../../vectors/sack-marks-in-recovery.txt"));
}

#[test]
fn selective_acknowledgements_keep_to_the_limits_like_ns2() {
    let cfg = TcpConfig { variant: Variant::Sack, ..TcpConfig::ns2() };
    let limit = TcpConfig { receive_window: 12, ..cfg };
    check_with(&limit, include_str!("../../vectors/sack-limits.txt"));
    let delayed = TcpConfig { delayed_ack: Some(Span::from_millis(100)), ..cfg };
    check_with(&delayed, include_str!("../../vectors/sack-delayed-acks.txt"));
}

/// CUBIC of 2005 in `Agent/TCP/Linux`: rate halving, forward acknowledgement, lost retransmissions.
#[test]
fn cubic_repairs_losses_like_ns2() {
    check_with(&TcpConfig::cubic_ns2(), include_str!("../../vectors/cubic-drops.txt"));
    check_with(&TcpConfig::cubic_ns2(), include_str!("../../vectors/cubic-bursts.txt"));
}

#[test]
fn cubic_repairs_half_a_window_like_ns2() {
    check_with(&TcpConfig::cubic_ns2(), include_str!("../../vectors/cubic-window.txt"));
}
