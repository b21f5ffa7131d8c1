//! Congestion controls and pacing in a sender, packet by packet.

use aqumen_transport::tcp::{Ack, Congestion, Feedback, SackBlocks, Segment, Sender, TcpConfig};
use aqumen_units::{Bytes, Ecn, Instant};

use crate::common::at as ms;

fn ack(ack: u32, echo: Instant) -> Ack {
    Ack { ack, window: 65_535, ece: false, echo, sack: SackBlocks::EMPTY, feedback: Feedback::None }
}

/// All segments that can be sent now.
fn send(sender: &mut Sender, cfg: &TcpConfig, now: Instant) -> Vec<Segment> {
    let mut sent = Vec::new();
    while let Some(one) = sender.poll_immediate(cfg, now).or_else(|| sender.poll_transmit(cfg, now)) {
        sent.push(one);
    }
    sent
}

/// A connection with a round-trip time of 100 ms: the SYN is acknowledged at 100 ms.
fn connected(cfg: &TcpConfig) -> Sender {
    cfg.validate().unwrap();
    let mut sender = Sender::new(cfg, None);
    sender.start(cfg, Instant::ZERO);
    assert_eq!(send(&mut sender, cfg, Instant::ZERO).len(), 1);
    sender.on_ack(cfg, ms(100), &ack(1, Instant::ZERO));
    sender
}

/// A sender in congestion avoidance with 100 segments outstanding, under the given window.
fn with_hundred_out(cfg: &TcpConfig) -> Sender {
    let cfg = TcpConfig { initial_window: 100, delayed_ack: None, ..*cfg };
    let mut sender = connected(&cfg);
    assert_eq!(send(&mut sender, &cfg, ms(100)).len(), 100);
    sender
}

#[test]
fn pacing_spreads_the_initial_window_over_half_a_round_trip() {
    let cfg = TcpConfig { pacing: true, ..TcpConfig::modern() };
    let mut sender = connected(&cfg);
    // Slow start: 2 x 10 segments in 100 ms, one per 5 ms.
    for (place, at) in (100..150).step_by(5).enumerate() {
        assert_eq!(send(&mut sender, &cfg, ms(at)).len(), 1, "segment {place}");
        assert!(sender.poll_transmit(&cfg, ms(at)).is_none());
        let next = sender.next_send(&cfg, ms(at));
        // After the tenth the window, not the pacer, is the limit.
        assert_eq!(next, (place < 9).then(|| ms(at + 5)));
    }
    assert_eq!(sender.stats().sent, 11);
}

#[test]
fn without_pacing_nobody_waits() {
    let cfg = TcpConfig::cubic();
    let mut sender = connected(&cfg);
    assert_eq!(send(&mut sender, &cfg, ms(100)).len(), 10);
    assert_eq!(sender.next_send(&cfg, ms(100)), None);
}

/// Windows of a sender whose first ten segments are acknowledged one per 10 ms, which leaves time for paced responses.
fn windows_over_ten_acknowledgements(cfg: &TcpConfig, transfer: Option<Bytes>) -> Vec<f64> {
    let mut sender = Sender::new(cfg, transfer);
    cfg.validate().unwrap();
    sender.start(cfg, Instant::ZERO);
    send(&mut sender, cfg, Instant::ZERO);
    sender.on_ack(cfg, ms(100), &ack(1, Instant::ZERO));
    let mut windows = Vec::new();
    for now in 100..=300 {
        if now > 200 && now % 10 == 0 {
            sender.on_ack(cfg, ms(now), &ack((now - 200) as u32 / 10 + 1, ms(now - 100)));
            windows.push(sender.cwnd());
        }
        send(&mut sender, cfg, ms(now));
    }
    windows
}

#[test]
fn pacing_changes_when_segments_leave_and_not_how_renos_window_grows() {
    let slow_start = |preset: TcpConfig| TcpConfig { delayed_ack: None, initial_window: 10, ..preset };
    let avoidance = |preset: TcpConfig| TcpConfig { initial_threshold: Some(10), ..slow_start(preset) };
    let grown = |cfg: TcpConfig| {
        let both = [false, true].map(|pacing| windows_over_ten_acknowledgements(&TcpConfig { pacing, ..cfg }, None));
        assert_eq!(both[0], both[1]);
        both[1][9]
    };
    // One for each segment, or one for a window of them; a Linux window is whole, another has fractions.
    for preset in [TcpConfig::modern(), TcpConfig::linux_reno()] {
        assert_eq!(grown(slow_start(preset)), 20.0);
        assert_eq!(grown(avoidance(preset)) as u32, if preset.whole_windows { 11 } else { 10 });
    }
    assert!(grown(avoidance(TcpConfig::modern())) > 10.9);
    // Ten segments are all data, and do not justify growth of a window of forty.
    for pacing in [false, true] {
        let cfg = TcpConfig { pacing, initial_window: 40, ..slow_start(TcpConfig::modern()) };
        let ten = Bytes(10 * u64::from(cfg.payload_bytes()));
        assert_eq!(windows_over_ten_acknowledgements(&cfg, Some(ten)), [40.0; 10]);
    }
}

#[test]
fn a_lost_segment_reduces_cubic_to_seven_tenths_and_reno_to_half() {
    for (congestion, left) in [(Congestion::Cubic, 70.0), (Congestion::Reno, 50.0), (Congestion::Vegas, 50.0)] {
        let cfg = TcpConfig { congestion, ..TcpConfig::modern() };
        let mut sender = with_hundred_out(&cfg);
        // Segment 1 is lost; 2, 3 and 4 arrive.
        for end in 3..=5 {
            let mut sack = SackBlocks::EMPTY;
            sack.push(2, end);
            sender.on_ack(&cfg, ms(200), &Ack { sack, ..ack(1, ms(100)) });
        }
        // 100 were outstanding at the loss.
        assert_eq!(sender.cwnd(), left, "{congestion:?}");
        assert_eq!(send(&mut sender, &cfg, ms(200)).first().map(|one| one.seq), Some(1), "{congestion:?}");
    }
}

#[test]
fn a_classic_mark_reduces_cubic_to_seven_tenths_once_per_window() {
    let cfg = TcpConfig::cubic();
    let mut sender = with_hundred_out(&cfg);
    sender.on_ack(&cfg, ms(200), &Ack { ece: true, ..ack(2, ms(100)) });
    assert_eq!(sender.cwnd(), 70.0);
    sender.on_ack(&cfg, ms(200), &Ack { ece: true, ..ack(3, ms(100)) });
    assert_eq!(sender.cwnd(), 70.0);
    assert_eq!(sender.stats().ecn_reactions, 1);
}

#[test]
fn dctcp_reacts_by_half_of_alpha() {
    let cfg = TcpConfig::dctcp();
    let mut sender = with_hundred_out(&cfg);
    // alpha is 1 at the start, and the one acknowledged segment was marked: 15/16 + 1/16 = 1. The window is halved.
    sender.on_ack(&cfg, ms(200), &Ack { ece: true, ..ack(2, ms(100)) });
    assert_eq!(sender.cwnd(), 50.0);
    // One response per window: the 100 segments outstanding then.
    sender.on_ack(&cfg, ms(200), &Ack { ece: true, ..ack(90, ms(100)) });
    assert_eq!(sender.cwnd(), 50.0);
}

#[test]
fn prague_sends_ect1_and_bbr_no_ecn() {
    let ecn = |cfg: &TcpConfig| {
        let mut sender = connected(cfg);
        sender.poll_transmit(cfg, ms(100)).unwrap().ecn
    };
    assert_eq!(ecn(&TcpConfig::prague()), Ecn::Ect1);
    assert_eq!(ecn(&TcpConfig::dctcp()), Ecn::Ect0);
    assert_eq!(ecn(&TcpConfig::cubic()), Ecn::Ect0);
    assert_eq!(ecn(&TcpConfig::bbr()), Ecn::NotEct);
}

#[test]
fn prague_counts_marks_also_where_acknowledgements_are_lost() {
    let cfg = TcpConfig { pacing: true, initial_window: 100, ..TcpConfig::prague() };
    let mut sender = connected(&cfg);
    for at in 100..200 {
        send(&mut sender, &cfg, ms(at));
    }
    let before = sender.cwnd();
    // The first acknowledgement to arrive reports 3 marks.
    sender.on_ack(&cfg, ms(200), &Ack { feedback: Feedback::Marks(3), ..ack(5, ms(100)) });
    let after = sender.cwnd();
    assert!(after < before, "{before} {after}");
    // An unchanged count reports no mark.
    sender.on_ack(&cfg, ms(205), &Ack { feedback: Feedback::Marks(3), ..ack(7, ms(105)) });
    assert!(sender.cwnd() >= after);
}

#[test]
fn a_timeout_reduces_every_control_to_one_segment() {
    for preset in [
        TcpConfig::cubic(),
        TcpConfig::dctcp(),
        TcpConfig::prague(),
        TcpConfig::bbr(),
        TcpConfig::vegas(),
        TcpConfig::ledbat(),
    ] {
        let mut sender = connected(&preset);
        send(&mut sender, &preset, ms(100));
        // The probe of RFC 8985 comes first, unless pacing has released a single segment.
        let mut due = sender.next_timer().unwrap();
        sender.on_timer(&preset, due);
        if sender.stats().timeouts == 0 {
            send(&mut sender, &preset, due);
            due = sender.next_timer().unwrap();
            sender.on_timer(&preset, due);
        }
        assert_eq!(sender.cwnd(), 1.0, "{:?}", preset.congestion);
        // The retransmission is sent at once, paced or not.
        assert_eq!(send(&mut sender, &preset, due).first().map(|one| one.seq), Some(1), "{:?}", preset.congestion);
    }
}

#[test]
fn an_unmet_requirement_of_a_control_is_named() {
    let field = |cfg: TcpConfig| cfg.validate().unwrap_err().field;
    assert_eq!(field(TcpConfig { ecn: false, ..TcpConfig::dctcp() }), "ecn");
    assert_eq!(field(TcpConfig { ecn: false, ..TcpConfig::prague() }), "ecn");
    assert_eq!(field(TcpConfig { pacing: false, ..TcpConfig::bbr() }), "pacing");
    assert_eq!(field(TcpConfig { timestamps: false, ..TcpConfig::ledbat() }), "timestamps");
    assert_eq!(field(TcpConfig { timestamps: false, ..TcpConfig::vegas() }), "timestamps");
    let newreno = aqumen_transport::tcp::Variant::NewReno;
    assert_eq!(field(TcpConfig { variant: newreno, ..TcpConfig::bbr() }), "variant");
}
