//! What SCTP and RTP do in twenty seconds over each of seven channels: a table of results, so that no change of a
//! window, of a timer, of a report or of a rate control goes unnoticed.
//!
//! `tests/vectors/endpoints.csv` has one row an end and channel. A change that is meant shows in the rows that it
//! concerns: `AQUMEN_BLESS=1 cargo test -p aqumen-transport --test all endpoints` writes them anew, and the difference
//! belongs into the commit.

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

/// Name, the first channel, and that from 8 s to 13 s.
const CHANNELS: &[(&str, Channel, Channel)] = &[
    ("plain", PLAIN, PLAIN),
    ("losses", Channel { loss_percent: 2, ..PLAIN }, Channel { loss_percent: 2, ..PLAIN }),
    ("many-losses", Channel { loss_percent: 12, ..PLAIN }, Channel { loss_percent: 25, ..PLAIN }),
    ("lost-answers", Channel { back_loss_percent: 30, ..PLAIN }, Channel { back_loss_percent: 70, ..PLAIN }),
    ("marks", Channel { mark_percent: 2, ..PLAIN }, Channel { mark_percent: 8, bits_per_sec: 1_200_000, ..PLAIN }),
    ("steps", PLAIN, Channel { bits_per_sec: 500_000, ..PLAIN }),
    ("silence", PLAIN, Channel { loss_percent: 100, ..PLAIN }),
];

/// What the application does.
enum Application {
    /// Data without end, or frames.
    Endless,
    /// A message of so many bytes each so many milliseconds, for 15 s.
    Messages(u32, u64),
}

/// One row behind preset and channel.
fn told<S: Endpoint, K: Endpoint>(source: S, sink: K, application: &Application, of: (Channel, Channel)) -> String {
    let mut net = Net::new(source, sink, of.0);
    let mut stops = vec![(at(8_000), Some(of.1)), (at(13_000), Some(of.0)), (at(20_000), None)].into_iter();
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
    let (mut until, mut then) = stops.next().unwrap();
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
        (until, then) = stops.next().unwrap();
    }
    let (ours, theirs) = (net.source.stats(), net.sink.stats());
    let waited: u64 = net
        .delivered
        .iter()
        .map(|delivery| (delivery.complete_at - delivery.message.created_at).as_nanos() / 1_000_000)
        .sum();
    format!(
        "{},{},{},{},{},{},{},{},{},{waited},{:.0},{}",
        ours.sent,
        ours.retransmitted,
        ours.timeouts,
        ours.rtt_samples,
        ours.rtt_sum.as_nanos() / 1_000_000,
        theirs.sent,
        theirs.delivered_bytes,
        net.arrived_bytes,
        net.delivered.len(),
        net.source.rate_bps().unwrap_or(0.0),
        net.source.is_idle(),
    )
}

/// All that is due up to `until`, at which the clock then stands.
fn run_to<S: Endpoint, K: Endpoint>(net: &mut Net<S, K>, until: Instant) {
    net.run_through(until);
    net.now = until;
}

#[test]
fn no_end_behaves_otherwise_than_its_row_says() {
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
            let row = told(SctpSource::new(cfg), SctpSink::new(cfg), application, (*first, *then));
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
            let row = told(RtpSource::new(cfg), RtpSink::new(cfg), application, (*first, *then));
            writeln!(table, "{name},{channel},{row}").unwrap();
        }
    }
    common::assert_recorded(TABLE, &table);
}
