//! Finite transfers complete over a channel that loses, delays, reorders, duplicates and marks segments.

use std::collections::BTreeMap;

use aqumen_transport::tcp::{
    Ack, Congestion, LossDetection, Quirks, Receiver, Reduction, Segment, Sender, TcpConfig, Variant,
};
use aqumen_units::{Bytes, Ecn, Instant, Span};
use proptest::prelude::*;

use crate::common::Rng;

enum Event {
    Segment(Segment),
    Ack(Ack),
    /// The receiving application changes the window.
    Window(u32),
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    loss_percent: u64,
    mark_percent: u64,
    copy_percent: u64,
    jitter_ms: u64,
    closes: bool,
    seed: u64,
}

/// Runs a transfer and checks the invariants at every step.
fn transfer(cfg: &TcpConfig, channel: Channel, bytes: u64) {
    cfg.validate().unwrap();
    let mut rng = Rng(channel.seed | 1);
    let mut sender = Sender::new(cfg, Some(Bytes(bytes)));
    let mut receiver = Receiver::new(cfg);
    let mut events = BTreeMap::new();
    let mut order = 0u64;
    let mut now = Instant::ZERO;
    let (mut sent, mut sent_again, mut acknowledged) = (0, 0, 0);
    if channel.closes {
        events.insert((Instant::ZERO + Span::from_millis(150), 0), Event::Window(0));
        events.insert((Instant::ZERO + Span::from_millis(2_000), 0), Event::Window(40));
    }
    sender.start(cfg, now);
    for _ in 0..200_000 {
        while let Some(one) = sender.poll_immediate(cfg, now).or_else(|| sender.poll_transmit(cfg, now)) {
            sent += 1;
            sent_again += u32::from(one.retransmission);
            let mut copies = 1 + u64::from(rng.percent(channel.copy_percent));
            if rng.percent(channel.loss_percent) {
                copies -= 1;
            }
            for _ in 0..copies {
                let mut one = one;
                if one.ecn.is_ect() && rng.percent(channel.mark_percent) {
                    one.ecn = Ecn::Ce;
                }
                order += 1;
                let delay = Span::from_millis(20 + rng.below(channel.jitter_ms + 1));
                events.insert((now + delay, order), Event::Segment(one));
            }
        }
        if sender.is_finished() {
            break;
        }
        // Earliest of events, timers, and the next paced segment.
        let timers = [sender.next_timer(), receiver.next_timer(), sender.next_send(cfg, now)];
        let timer = timers.into_iter().flatten().min();
        let event = events.keys().next().map(|key| key.0);
        now = timer.into_iter().chain(event).min().expect("something is always due").max(now);
        if event.is_some_and(|at| at <= now) {
            let answer = match events.pop_first().unwrap().1 {
                Event::Segment(one) => receiver.on_segment(cfg, now, &one),
                Event::Window(window) => receiver.set_window(window),
                Event::Ack(ack) => {
                    sender.on_ack(cfg, now, &ack);
                    None
                }
            };
            if let Some(ack) = answer.filter(|_| !rng.percent(channel.loss_percent)) {
                order += 1;
                let delay = Span::from_millis(20 + rng.below(channel.jitter_ms + 1));
                events.insert((now + delay, order), Event::Ack(ack));
            }
        }
        // Spurious and late timer calls are allowed.
        if rng.percent(10) || event.is_none_or(|at| at > now) {
            sender.on_timer(cfg, now);
            if let Some(ack) = receiver.on_timer(now) {
                order += 1;
                events.insert((now + Span::from_millis(20), order), Event::Ack(ack));
            }
        }
        let floor = if cfg.min_window > 0.0 { 1.0 } else { f64::MIN_POSITIVE };
        assert!(sender.cwnd() >= floor && sender.cwnd().is_finite(), "window {}", sender.cwnd());
        assert!(sender.ssthresh() >= 2);
        assert!(sender.acknowledged_segments() >= acknowledged, "acknowledged data stays so");
        acknowledged = sender.acknowledged_segments();
        assert!(receiver.delivered_segments() + u32::from(cfg.syn) >= acknowledged);
        assert_eq!(sender.stats().sent, sent);
        assert_eq!(sender.stats().retransmitted, sent_again);
    }
    assert!(sender.is_finished(), "stuck at segment {} at {now}", sender.acknowledged_segments());
    assert_eq!(sender.next_timer(), None);
    let payload = u64::from(cfg.payload_bytes());
    let expected = if cfg.quirks.full_segments { bytes.div_ceil(payload) * payload } else { bytes };
    assert_eq!(receiver.delivered_bytes(), Bytes(expected));
    assert_eq!(u64::from(receiver.delivered_segments()), bytes.div_ceil(payload));
}

fn configs() -> impl Strategy<Value = TcpConfig> {
    let variant = prop_oneof![Just(Variant::Reno), Just(Variant::NewReno), Just(Variant::Sack)];
    let preset = prop_oneof![Just(TcpConfig::ns2()), Just(TcpConfig::modern()), Just(TcpConfig::linux())];
    let loss_detection = prop_oneof![
        1 => Just(LossDetection::Rfc6675),
        1 => Just(LossDetection::Sack1),
        1 => Just(LossDetection::Fack),
        3 => Just(LossDetection::Rack)
    ];
    let reduction = prop_oneof![Just(Reduction::AtOnce), Just(Reduction::Proportional), Just(Reduction::RateHalving)];
    let recovery = (loss_detection, reduction, any::<[bool; 5]>());
    let congestion = prop_oneof![
        6 => Just(Congestion::Reno),
        1 => Just(Congestion::Cubic),
        1 => Just(Congestion::Cubic21),
        1 => Just(Congestion::Dctcp),
        1 => Just(Congestion::Prague),
        1 => Just(Congestion::Bbr),
        1 => Just(Congestion::Vegas),
        1 => Just(Congestion::Ledbat),
    ];
    let parts = (preset, variant, congestion, any::<[bool; 8]>(), 1u32..50, 0u8..5, recovery);
    parts.prop_map(|(preset, variant, congestion, flags, window, max_burst, recovery)| {
        let (loss_detection, reduction, [lost_retransmissions, timer_on_any_ack, tail_probe, frto, whole_windows]) =
            recovery;
        let (lost_retransmissions, reduction) = match loss_detection {
            LossDetection::Sack1 => (false, Reduction::AtOnce),
            _ => (lost_retransmissions, reduction),
        };
        let [ecn, delayed, limited_transmit, timestamps, syn, pacing, hystart, reno_friendly] = flags;
        TcpConfig {
            variant: if congestion == Congestion::Bbr { Variant::Sack } else { variant },
            congestion,
            hystart,
            reno_friendly,
            pacing: pacing || congestion.requires_pacing(),
            ecn: ecn || matches!(congestion, Congestion::Dctcp | Congestion::Prague),
            delayed_ack: delayed.then(|| Span::from_millis(40)),
            limited_transmit,
            timestamps: timestamps || matches!(congestion, Congestion::Ledbat | Congestion::Vegas),
            syn,
            receive_window: window,
            max_burst,
            loss_detection,
            lost_retransmissions,
            reduction,
            quirks: Quirks { timer_on_any_ack, ..preset.quirks },
            tail_probe,
            frto,
            segment_times: frto,
            whole_windows: whole_windows && preset.min_window > 0.0,
            ..preset
        }
    })
}

fn channels() -> impl Strategy<Value = Channel> {
    (0u64..30, 0u64..60, 0u64..20, 0u64..60, any::<bool>(), any::<u64>()).prop_map(
        |(loss_percent, mark_percent, copy_percent, jitter_ms, closes, seed)| Channel {
            loss_percent,
            mark_percent,
            copy_percent,
            jitter_ms,
            closes,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_finite_transfer_completes_in_order(cfg in configs(), channel in channels(), bytes in 1u64..400_000) {
        transfer(&cfg, channel, bytes);
    }
}
