//! Results of each preset, and of single options changed, over twelve paths in twelve seconds, recorded so that no
//! change of behaviour goes unnoticed.
//!
//! `tests/vectors/transfers.csv` has one row per preset and path. After an intended change, `AQUMEN_BLESS=1 cargo test
//! -p aqumen-transport --test all transfers` rewrites it, and the difference is part of the commit.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use aqumen_transport::tcp::{Ack, LossDetection, Receiver, Reduction, Segment, Sender, TcpConfig, Variant};
use aqumen_units::{Ecn, Instant, Span};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/transfers.csv");

type Preset = (&'static str, fn() -> TcpConfig);

const PRESETS: &[Preset] = &[
    ("ns2", || TcpConfig::ns2()),
    ("modern", || TcpConfig::modern()),
    ("linux", || TcpConfig::linux()),
    ("linux-reno", || TcpConfig::linux_reno()),
    ("linux-bbr", || TcpConfig::linux_bbr()),
    ("cubic", || TcpConfig::cubic()),
    ("cubic-ns2", || TcpConfig::cubic_ns2()),
    ("dctcp", || TcpConfig::dctcp()),
    ("prague", || TcpConfig::prague()),
    ("bbr", || TcpConfig::bbr()),
    ("vegas", || TcpConfig::vegas()),
    ("ledbat", || TcpConfig::ledbat()),
];

/// Options that a scenario may change in a preset.
const HABITS: &[Preset] = &[
    ("ns2-ecn", || TcpConfig { ecn: true, ..TcpConfig::ns2() }),
    ("ns2-newreno", || TcpConfig { variant: Variant::NewReno, limited_transmit: false, ..TcpConfig::ns2() }),
    ("ns2-sack", || TcpConfig { variant: Variant::Sack, ecn: true, max_burst: 3, ..TcpConfig::ns2() }),
    ("ns2-fack", || TcpConfig {
        loss_detection: LossDetection::Fack,
        reduction: Reduction::RateHalving,
        variant: Variant::Sack,
        timestamps: true,
        ..TcpConfig::ns2()
    }),
    ("newreno", || TcpConfig { variant: Variant::NewReno, delayed_ack: None, ..TcpConfig::modern() }),
    ("reno-untimed", || TcpConfig { variant: Variant::Reno, timestamps: false, ..TcpConfig::modern() }),
    ("sack-6675", || TcpConfig {
        loss_detection: LossDetection::Rfc6675,
        reduction: Reduction::AtOnce,
        tail_probe: false,
        ..TcpConfig::modern()
    }),
    ("sack-6675-again", || TcpConfig {
        loss_detection: LossDetection::Rfc6675,
        lost_retransmissions: true,
        limited_transmit: false,
        ..TcpConfig::modern()
    }),
    ("cubic-newreno", || TcpConfig { variant: Variant::NewReno, ..TcpConfig::cubic() }),
    ("cubic-6675", || TcpConfig { loss_detection: LossDetection::Rfc6675, hystart: false, ..TcpConfig::cubic() }),
    ("cubic-unfriendly", || TcpConfig { reno_friendly: false, pacing: true, ..TcpConfig::cubic() }),
    ("dctcp-newreno", || TcpConfig { variant: Variant::NewReno, ..TcpConfig::dctcp() }),
    ("bbr-6675", || TcpConfig { loss_detection: LossDetection::Rfc6675, ..TcpConfig::bbr() }),
    ("linux-paced", || TcpConfig { pacing: true, ecn: false, write: 3, ..TcpConfig::linux() }),
    ("linux-merging", || TcpConfig { ack_merging: Span::from_millis(3), tail_probe: false, ..TcpConfig::linux() }),
    ("small-window", || TcpConfig { receive_window: 12, restart_window: None, ..TcpConfig::modern() }),
];

/// A link of 10 Mbit/s with a queue, 20 ms each way, and its disturbances.
#[derive(Clone, Copy)]
struct Path {
    name: &'static str,
    /// Queue limit (packets).
    buffer: usize,
    /// Queue length (packets) from which on packets are marked.
    mark: usize,
    /// Lost data segments, by order of sending, and lost acknowledgements.
    loses: fn(u64) -> bool,
    loses_ack: fn(u64) -> bool,
    /// Additional delay of a segment (ms).
    late: fn(u64) -> u64,
    /// Capacity (bit/s) at a time (ms).
    rate: fn(u64) -> u64,
    /// Pause of the application, from and to (ms).
    pause: Option<(u64, u64)>,
}

const PLAIN: Path = Path {
    name: "plain",
    buffer: 500,
    mark: usize::MAX,
    loses: |_| false,
    loses_ack: |_| false,
    late: |_| 0,
    rate: |_| 10_000_000,
    pause: None,
};

const PATHS: &[Path] = &[
    PLAIN,
    Path { name: "short-queue", buffer: 30, ..PLAIN },
    Path { name: "marks", mark: 15, ..PLAIN },
    Path { name: "losses", loses: |n| n % 150 == 149, loses_ack: |n| n % 37 == 36, ..PLAIN },
    // A burst is lost, then many retransmissions, and later most of a window.
    Path {
        name: "bursts",
        loses: |n| matches!(n, 100..=115) || (n > 130 && n < 160 && n % 3 == 0) || matches!(n, 2_000..=2_040),
        ..PLAIN
    },
    Path { name: "reordered", late: |n| if n % 40 == 0 { 12 } else { 0 }, ..PLAIN },
    // The capacity falls to a fifth for three seconds.
    Path {
        name: "steps",
        buffer: 100,
        rate: |ms| if (3_000..6_000).contains(&ms) { 2_000_000 } else { 10_000_000 },
        ..PLAIN
    },
    Path { name: "pause", buffer: 60, pause: Some((1_500, 4_000)), loses: |n| n == 900, ..PLAIN },
    // A window and its retransmissions are lost, then likewise acknowledgements.
    Path {
        name: "silence",
        buffer: 60,
        loses: |n| matches!(n, 1_000..=1_090),
        loses_ack: |n| matches!(n, 3_000..=3_060),
        ..PLAIN
    },
    // Delays beyond a timeout, which causes spurious timeouts, and reordering.
    Path {
        name: "late",
        late: |n| match n {
            500..=520 => 900,
            _ if n % 11 == 0 => 35,
            _ => 0,
        },
        ..PLAIN
    },
    Path { name: "few-acks", loses_ack: |n| n % 3 != 0, mark: 25, loses: |n| n % 400 == 399, ..PLAIN },
    Path { name: "marks-and-losses", mark: 8, buffer: 20, loses: |n| n % 97 == 5, ..PLAIN },
];

enum Event {
    Leaves,
    Arrives(Segment),
    Back(Ack),
}

/// Result of a transfer.
#[derive(Debug)]
struct Outcome {
    delivered: u32,
    sent: u32,
    again: u32,
    timeouts: u32,
    repairs: u32,
    marks: u32,
    samples: u32,
    mean_rtt_us: u64,
    smoothed_rtt_us: u64,
    cwnd: f64,
    ssthresh: u32,
    longest: usize,
}

fn run(cfg: &TcpConfig, path: Path, seconds: u64) -> Outcome {
    cfg.validate().unwrap();
    let (mut sender, mut receiver) = (Sender::new(cfg, None), Receiver::new(cfg));
    let (mut events, mut order) = (BTreeMap::new(), 0u64);
    let mut queue: VecDeque<Segment> = VecDeque::new();
    let (mut busy, mut number, mut acks, mut longest) = (false, 0, 0, 0);
    let end = Instant::ZERO + Span::from_secs(seconds);
    let ms = |now: Instant| (now - Instant::ZERO).as_nanos() / 1_000_000;
    let mut now = Instant::ZERO;
    let mut stops: VecDeque<u64> = path.pause.into_iter().flat_map(|(from, to)| [from, to]).collect();
    sender.start(cfg, now);
    loop {
        while let Some(mut one) = sender.poll_immediate(cfg, now).or_else(|| sender.poll_transmit(cfg, now)) {
            number += 1;
            if (path.loses)(number) || queue.len() >= path.buffer {
                continue;
            }
            if one.ecn.is_ect() && queue.len() >= path.mark {
                one.ecn = Ecn::Ce;
            }
            queue.push_back(one);
            longest = longest.max(queue.len());
        }
        if !busy && let Some(first) = queue.pop_front() {
            busy = true;
            let takes = Span::from_nanos(u64::from(first.bytes) * 8_000_000_000 / (path.rate)(ms(now)));
            order += 1;
            events.insert((now + takes, order), Event::Leaves);
            order += 1;
            let late = Span::from_millis(20 + (path.late)(number));
            events.insert((now + takes + late, order), Event::Arrives(first));
        }
        let timers = [sender.next_timer(), receiver.next_timer(), sender.next_send(cfg, now)];
        let stop = stops.front().map(|stop| Instant::ZERO + Span::from_millis(*stop));
        let event = events.keys().next().map(|key| key.0);
        let next = timers.into_iter().flatten().chain(event).chain(stop).min();
        now = next.map_or(end, |next| next.max(now));
        if now >= end {
            break;
        }
        if stop.is_some_and(|stop| stop <= now) {
            stops.pop_front();
            if stops.len() == 1 {
                sender.pause(now)
            } else {
                sender.resume(cfg, now)
            }
            continue;
        }
        let mut answers = Vec::new();
        if event.is_some_and(|at| at <= now) {
            match events.pop_first().unwrap().1 {
                Event::Leaves => busy = false,
                Event::Arrives(one) => answers.extend(receiver.on_segment(cfg, now, &one)),
                Event::Back(ack) => sender.on_ack(cfg, now, &ack),
            }
        } else {
            sender.on_timer(cfg, now);
            answers.extend(receiver.on_timer(now));
        }
        for ack in answers {
            acks += 1;
            if !(path.loses_ack)(acks) {
                order += 1;
                events.insert((now + Span::from_millis(20), order), Event::Back(ack));
            }
        }
    }
    let stats = sender.stats();
    Outcome {
        delivered: receiver.delivered_segments(),
        sent: stats.sent,
        again: stats.retransmitted,
        timeouts: stats.timeouts,
        repairs: stats.fast_retransmits,
        marks: stats.ecn_reactions,
        samples: stats.rtt_samples,
        mean_rtt_us: stats.rtt_sum.as_nanos() / 1_000 / u64::from(stats.rtt_samples.max(1)),
        smoothed_rtt_us: sender.smoothed_rtt(cfg).map_or(0, |rtt| rtt.as_nanos() / 1_000),
        cwnd: sender.cwnd(),
        ssthresh: sender.ssthresh(),
        longest,
    }
}

#[test]
fn results_are_the_recorded_ones() {
    let mut table = String::from(
        "preset,path,delivered,sent,again,timeouts,repairs,marks,samples,mean_rtt_us,smoothed_rtt_us,cwnd,ssthresh,longest\n",
    );
    for (name, preset) in PRESETS.iter().chain(HABITS) {
        for path in PATHS {
            let seen = run(&preset(), *path, 12);
            let Outcome { delivered, sent, again, timeouts, repairs, marks, samples, .. } = seen;
            let Outcome { mean_rtt_us, smoothed_rtt_us, cwnd, ssthresh, longest, .. } = seen;
            writeln!(
                table,
                "{name},{},{delivered},{sent},{again},{timeouts},{repairs},{marks},{samples},{mean_rtt_us},\
                 {smoothed_rtt_us},{cwnd:.4},{ssthresh},{longest}",
                path.name
            )
            .unwrap();
        }
    }
    crate::common::assert_recorded(TABLE, &table);
}

fn on(path: &str) -> Path {
    *PATHS.iter().find(|known| known.name == path).unwrap()
}

/// Fraction of 10 Mbit/s that arrives as data in 12 s.
fn share(cfg: &TcpConfig, path: &str) -> f64 {
    f64::from(run(cfg, on(path), 12).delivered) * f64::from(cfg.packet_bytes) * 8.0 / 12e7
}

#[test]
fn every_preset_fills_a_link_without_losses() {
    for (name, preset) in PRESETS {
        assert!(share(&preset(), "plain") > 0.85, "{name}: {}", share(&preset(), "plain"));
    }
}

#[test]
fn delay_based_controls_keep_the_queue_short_and_loss_based_ones_fill_it() {
    let longest = |cfg: TcpConfig| run(&cfg, on("plain"), 12).longest;
    // 10 Mbit/s over 40 ms: 33 packets of 1500 B. LEDBAT keeps 100 ms in the queue, 83 packets; BBR has two BDPs in
    // flight, and Vegas overshoots in slow start.
    assert!(longest(TcpConfig::ledbat()) <= 83, "{}", longest(TcpConfig::ledbat()));
    assert!(longest(TcpConfig::bbr()) < 80, "{}", longest(TcpConfig::bbr()));
    assert!(longest(TcpConfig::vegas()) < 100, "{}", longest(TcpConfig::vegas()));
    // Then Vegas keeps 2 to 4 packets: 2.4 to 4.8 ms in addition to 41.2 ms.
    let vegas = run(&TcpConfig::vegas(), on("plain"), 12);
    assert!((43_000..47_000).contains(&vegas.smoothed_rtt_us), "{vegas:?}");
    assert!(longest(TcpConfig::linux_reno()) > 200, "{}", longest(TcpConfig::linux_reno()));
}

#[test]
fn marks_cost_no_packet() {
    for (name, preset) in PRESETS.iter().filter(|(_, preset)| preset().ecn) {
        let seen = run(&preset(), on("marks"), 12);
        assert_eq!((seen.again, seen.timeouts), (0, 0), "{name}: {seen:?}");
        // DCTCP and Prague do not count reactions.
        assert!(seen.marks > 1 || matches!(*name, "dctcp" | "prague"), "{name}: {seen:?}");
        assert!(seen.longest < 50, "{name}: {seen:?}");
    }
    // DCTCP and Prague keep the queue near the threshold at full utilisation.
    for cfg in [TcpConfig::dctcp(), TcpConfig::prague()] {
        assert!(share(&cfg, "marks") > 0.9, "{}", share(&cfg, "marks"));
    }
}

#[test]
fn few_segments_are_retransmitted_unnecessarily() {
    for (name, preset) in PRESETS {
        let seen = run(&preset(), on("losses"), 12);
        let lost = seen.sent / 150;
        assert!(seen.again >= lost.saturating_sub(2) && seen.again <= 2 * lost + 20, "{name}: {lost} lost, {seen:?}");
    }
}
