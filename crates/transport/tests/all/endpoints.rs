//! Results of SCTP and RTP over seven channels in twenty seconds, recorded so that no change of behaviour goes
//! unnoticed.
//!
//! `tests/vectors/endpoints.csv` has one row per preset and channel. After an intended change, `AQUMEN_BLESS=1 cargo
//! test -p aqumen-transport --test all endpoints` rewrites it, and the difference is part of the commit.

use std::fmt::Write;

use crate::common;

use aqumen_transport::rtp::{RtpConfig, RtpSink, RtpSource};
use aqumen_transport::sctp::{SctpConfig, SctpSink, SctpSource};
use aqumen_transport::{Endpoint, Message};
use aqumen_units::{Instant, Span};
use common::{Channel, Net, at};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/endpoints.csv");

const PLAIN: Channel =
    Channel { bits_per_sec: 4_000_000, delay_ms: 25, loss_percent: 0, back_loss_percent: 0, mark_percent: 0, seed: 9 };

/// Name, channel, and channel from 8 s to 13 s.
const CHANNELS: &[(&str, Channel, Channel)] = &[
    ("plain", PLAIN, PLAIN),
    ("losses", Channel { loss_percent: 2, ..PLAIN }, Channel { loss_percent: 2, ..PLAIN }),
    ("many-losses", Channel { loss_percent: 12, ..PLAIN }, Channel { loss_percent: 25, ..PLAIN }),
    ("lost-answers", Channel { back_loss_percent: 30, ..PLAIN }, Channel { back_loss_percent: 70, ..PLAIN }),
    ("marks", Channel { mark_percent: 2, ..PLAIN }, Channel { mark_percent: 8, bits_per_sec: 1_200_000, ..PLAIN }),
    ("steps", PLAIN, Channel { bits_per_sec: 500_000, ..PLAIN }),
    ("silence", PLAIN, Channel { loss_percent: 100, ..PLAIN }),
];

/// Traffic of the application.
enum Application {
    /// Endless data, or frames.
    Endless,
    /// Messages of a size (bytes) at an interval (ms), for 15 s.
    Messages(u32, u64),
}

/// Columns of a row after preset and channel.
fn run<S: Endpoint, K: Endpoint>(
    source: S,
    sink: K,
    application: &Application,
    channels: (Channel, Channel),
) -> String {
    let mut net = Net::new(source, sink, channels.0);
    let mut changes =
        vec![(at(8_000), Some(channels.1)), (at(13_000), Some(channels.0)), (at(20_000), None)].into_iter();
    let mut messages = match application {
        Application::Endless => {
            net.source.start(at(0));
            Vec::new()
        }
        Application::Messages(bytes, each) => {
            let message = |number| Message { bytes: *bytes, number, created_at: at(u64::from(number) * each) };
            (0..(15_000 / each) as u32).rev().map(message).collect()
        }
    };
    let (mut until, mut then) = changes.next().unwrap();
    loop {
        let next = messages.last().map_or(until, |message: &Message| message.created_at.min(until));
        if next > net.now {
            run_to(&mut net, next);
        }
        if let Some(message) = messages.pop_if(|message| message.created_at <= next) {
            net.source.write(next, message);
            net.flush();
            continue;
        }
        let Some(channel) = then else { break };
        net.set_channel(channel);
        (until, then) = changes.next().unwrap();
    }
    let (source, sink) = (net.source.stats(), net.sink.stats());
    let waited_ms: u64 = net
        .delivered
        .iter()
        .map(|delivery| (delivery.complete_at - delivery.message.created_at).as_nanos() / 1_000_000)
        .sum();
    format!(
        "{},{},{},{},{},{},{},{},{},{waited_ms},{:.0},{}",
        source.sent,
        source.retransmitted,
        source.timeouts,
        source.rtt_samples,
        source.rtt_sum.as_nanos() / 1_000_000,
        sink.sent,
        sink.delivered_bytes,
        net.arrived_bytes,
        net.delivered.len(),
        net.source.rate_bps().unwrap_or(0.0),
        net.source.is_idle(),
    )
}

/// Runs up to `until` and sets the clock to it.
fn run_to<S: Endpoint, K: Endpoint>(net: &mut Net<S, K>, until: Instant) {
    net.run_through(until);
    net.now = until;
}

#[test]
fn results_are_the_recorded_ones() {
    let mut table = String::from(
        "preset,channel,sent,again,timeouts,samples,rtt_sum_ms,answers,delivered_bytes,arrived_bytes,messages,\
         waited_ms,rate_bps,idle\n",
    );
    let sctp = SctpConfig::standard();
    let associations = [
        ("sctp", sctp, Application::Endless),
        ("sctp-ns2", SctpConfig::ns2(), Application::Endless),
        ("sctp-ecn", SctpConfig { ecn: true, max_burst: 0, ..sctp }, Application::Endless),
        ("sctp-eager", SctpConfig { delayed_sack: None, handshake: false, ..sctp }, Application::Endless),
        ("sctp-small-buffer", SctpConfig { receive_window_bytes: 12_000, ..sctp }, Application::Endless),
        ("sctp-messages", SctpConfig { streams: 3, ..sctp }, Application::Messages(3_000, 30)),
        ("sctp-sparse", SctpConfig { max_burst: 2, ..SctpConfig::ns2() }, Application::Messages(9_000, 700)),
    ];
    for (name, cfg, application) in &associations {
        cfg.validate().unwrap();
        for (channel, first, then) in CHANNELS {
            let row = run(SctpSource::new(cfg), SctpSink::new(cfg), application, (*first, *then));
            writeln!(table, "{name},{channel},{row}").unwrap();
        }
    }
    let nada = RtpConfig { ecn: true, ..RtpConfig::nada() };
    let calls = [
        ("rtp", RtpConfig::standard(), Application::Endless),
        ("rtp-ecn", RtpConfig { ecn: true, whole_packets: true, ..RtpConfig::standard() }, Application::Endless),
        ("rtp-tfrc", RtpConfig::tfrc(), Application::Endless),
        ("rtp-tfrc-ecn", RtpConfig { ecn: true, ..RtpConfig::tfrc() }, Application::Endless),
        ("rtp-nada", RtpConfig::nada(), Application::Endless),
        ("rtp-nada-ecn", nada, Application::Endless),
        ("rtp-frames", RtpConfig { report_interval: Span::from_millis(300), ..nada }, Application::Messages(4_000, 40)),
    ];
    for (name, cfg, application) in &calls {
        cfg.validate().unwrap();
        for (channel, first, then) in CHANNELS {
            let row = run(RtpSource::new(cfg), RtpSink::new(cfg), application, (*first, *then));
            writeln!(table, "{name},{channel},{row}").unwrap();
        }
    }
    common::assert_recorded(TABLE, &table);
}
