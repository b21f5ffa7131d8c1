//! Fast path of a RACK sender with nothing missing: acknowledgements in order without blocks, and new segments.
//!
//! The general path is in `sender/rack.rs`, and both do the same. Here the send times of the acknowledged segments
//! leave, one round-trip sample is taken, the window grows by its law, and the deadline moves on.

use aqumen_units::{Instant, Span};

use super::rack_state::{Probe, State, Timer};
use super::{Cause, STOPPED, Sender, SenderExtras, TRACKED, UNLIMITED, ends_write};
use crate::tcp::congestion::{AckSample, Control, Window};
use crate::tcp::{PlainAck, PlainSegment, Segment, TcpConfig};

impl SenderExtras {
    /// Whether senders of this configuration have the fast path, whatever their state.
    pub(super) fn may_be_tracked(cfg: &TcpConfig, control: Option<&Control>) -> bool {
        // The general path notes that a whole window is full when it is polled, which an overhead delays.
        let polled_at_once = !cfg.whole_windows || cfg.send_overhead == Span::ZERO;
        control.is_none_or(Control::is_simple) && polled_at_once
    }
}

impl Sender {
    pub(super) fn may_be_tracked(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.may_be_tracked)
    }

    /// Whether the fast path applies: nothing is missing, no probe is under way, and the window is open.
    pub(super) fn is_tracked(&self) -> bool {
        let Some(SenderExtras { rack: Some(rack), may_be_tracked: true, .. }) = self.extras.as_deref() else {
            return false;
        };
        rack.is_quiet() && self.una > 0 && self.peer_window > 0 && self.burst == UNLIMITED
    }

    /// [`on_plain_ack`](Self::on_plain_ack) of a RACK sender.
    #[inline(never)]
    pub(super) fn on_tracked_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: PlainAck) -> bool {
        let (una, outstanding) = (self.una, self.high - self.una);
        let segments = ack.ack.wrapping_sub(una);
        let is_new = segments.wrapping_sub(1) < outstanding;
        if !is_new || self.flags & TRACKED == 0 || ack.window == 0 {
            return false;
        }
        let Some(SenderExtras { rack: Some(rack), .. }) = self.extras.as_deref_mut() else { return false };
        let echo = ack.ece & cfg.ecn;
        if echo && (rack.state == State::Open || ack.ack > self.recover) {
            return false; // a reduction begins
        }
        let Some(sent) = rack.flight.on_ack_in_order(now, segments) else { return false };
        (self.una, self.peer_window) = (ack.ack, ack.window);
        let rtt = if cfg.segment_times {
            self.rto.end_backoff();
            self.add_sample(cfg, now, sent.first);
            Some(now.saturating_since(sent.last))
        } else {
            let (samples, sum) = (self.rtt_samples, self.rtt_sum_nanos);
            self.measure(cfg, now, &ack, echo);
            (self.rtt_samples != samples).then(|| Span::from_nanos(self.rtt_sum_nanos - sum))
        };
        let Some(SenderExtras { rack: Some(rack), control, .. }) = self.extras.as_deref_mut() else { return true };
        if rack.state == State::Reducing {
            if ack.ack > self.recover {
                rack.state = State::Open;
                if self.last_cause == Cause::Duplicates {
                    self.last_cause = Cause::Recovered;
                }
            } else if rack.is_reducing(cfg) {
                rack.reduction.on_ack(cfg, self.cwnd as u32, rack.flight.in_network(), segments, true);
            }
        }
        let repairing = rack.is_reducing(cfg);
        let flight =
            if cfg.whole_windows && una < rack.full_until { outstanding.max(self.cwnd as u32) } else { outstanding };
        if let Some(control) = control {
            let acked = AckSample {
                now,
                segments,
                delivered: segments,
                flight,
                in_flight: rack.flight.in_network(),
                lost: 0,
                lost_before: 0,
                rtt,
                echo,
                growth_blocked: echo,
                marks: 0,
                delay: None,
                una: self.una,
                high: self.high,
                repairing,
                phase: rack.phase(),
                opening: false,
            };
            let mut window = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
            control.on_ack(cfg, &acked, &mut window);
            (self.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
        } else if !repairing && !echo {
            self.grow(cfg, segments, flight, false);
        }
        self.set_tracked_timer(cfg, now, true);
        true
    }

    /// Sets the timer of a tracked sender after an event that restarts or moves it.
    #[inline(always)]
    fn set_tracked_timer(&mut self, cfg: &TcpConfig, now: Instant, restarts: bool) {
        let Sender { extras, rto, una, high, .. } = self;
        let Some(SenderExtras { rack: Some(rack), .. }) = extras.as_deref_mut() else { return };
        if restarts {
            rack.timeout_at = now.saturating_add(rto.timeout(cfg));
        }
        (rack.timer, self.deadline) = (Timer::Timeout, rack.timeout_at);
        let probe_at = now.saturating_add(Probe::wait(cfg, rto, *high - *una));
        if cfg.tail_probe && una < high && probe_at < rack.timeout_at {
            (rack.timer, self.deadline) = (Timer::Probe, probe_at);
        }
        if cfg.whole_windows {
            rack.note_full(self.cwnd, *high);
        }
    }

    /// Number of segments that a tracked sender may send now.
    pub(super) fn tracked_allowance(&self, cfg: &TcpConfig) -> u32 {
        let Some(rack) = self.rack() else { return 0 };
        let open = rack.allowance(cfg, self.cwnd);
        let offered = if self.flags & STOPPED == 0 { self.limit - self.next } else { 0 };
        open.min(offered).min(self.peer_window.saturating_sub(self.next - self.una))
    }

    /// [`transmit_plain`](Self::transmit_plain) of a tracked sender.
    #[inline(never)]
    pub(super) fn transmit_tracked_plain(&mut self, cfg: &TcpConfig, now: Instant) -> Option<PlainSegment> {
        let seq = self.next;
        if self.flags & TRACKED == 0 || seq + 1 == self.limit {
            return None;
        }
        let cwr = self.take_cwr(cfg);
        self.time(seq, now);
        (self.next, self.high) = (seq + 1, seq + 1);
        let push = self.record_sent(cfg, now) | ends_write(cfg, seq);
        Some(PlainSegment { seq, cwr, push })
    }

    /// Next segment of a tracked sender.
    pub(super) fn transmit_tracked(&mut self, cfg: &TcpConfig, now: Instant) -> Segment {
        let seq = self.next;
        self.next += 1;
        let segment = self.emit(cfg, now, seq);
        let push = self.record_sent(cfg, now) | segment.push;
        Segment { push, ..segment }
    }

    /// Records that the new segment before `high` was sent. Returns whether it ends a super-packet.
    #[inline(always)]
    fn record_sent(&mut self, cfg: &TcpConfig, now: Instant) -> bool {
        let seq = self.high - 1;
        let Some(rack) = self.rack_mut() else { return false };
        if rack.is_reducing(cfg) {
            rack.reduction.on_sent(cfg, rack.flight.in_network());
        }
        rack.flight.on_sent_new(now);
        self.set_tracked_timer(cfg, now, self.una == seq);
        cfg.tso && self.closes_super_packet(cfg, now, seq, self.tracked_allowance(cfg) == 0)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeMap;
    use std::vec::Vec;

    use aqumen_units::{Bytes, Ecn};

    use super::*;
    use crate::tcp::{Ack, Congestion, Receiver, Reduction, Stats};
    use crate::testing::ms;

    /// Random numbers (xorshift64*).
    struct Rng(u64);

    impl Rng {
        fn percent(&mut self, chance: u64) -> bool {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % 100 < chance
        }
    }

    enum Event {
        Segment(Segment),
        Ack(Ack),
    }

    /// All segments that the sender sends now, by `allowance` and `transmit_plain` where it has them.
    fn segments(sender: &mut Sender, cfg: &TcpConfig, now: Instant) -> Vec<Segment> {
        let mut sent: Vec<Segment> = std::iter::from_fn(|| sender.poll_immediate(cfg, now)).collect();
        let Some(allowance) = sender.allowance(cfg) else {
            sent.extend(std::iter::from_fn(|| sender.poll_transmit(cfg, now)));
            return sent;
        };
        for number in 0..allowance {
            // Every other one as hosts take it that carry whole segments.
            let plain = if number % 2 == 0 { sender.transmit_plain(cfg, now) } else { None };
            sent.push(match plain {
                Some(PlainSegment { seq, cwr, push }) => {
                    let ecn = if cfg.ecn { Ecn::Ect0 } else { Ecn::NotEct };
                    let (bytes, syn, retransmission) = (cfg.packet_bytes, false, false);
                    Segment { seq, bytes, ecn, cwr, syn, push, retransmission, sent_at: now }
                }
                None => sender.transmit(cfg, now),
            });
        }
        sent
    }

    /// A transfer over a link that delays, loses and marks, of at most 5 s, with the fast path and without it. Returns
    /// the counts, and the number of acknowledgements after which it applied.
    fn transfer(cfg: &TcpConfig, bytes: Option<u64>, (loss, mark, late): (u64, u64, u64), seed: u64) -> (Stats, u32) {
        let mut rng = Rng(seed | 1);
        let new = || Sender::new(cfg, bytes.map(Bytes));
        let (mut fast, mut general, mut receiver) = (new(), new(), Receiver::new(cfg));
        if let Some(extras) = &mut general.extras {
            extras.may_be_tracked = false;
        }
        [&mut fast, &mut general].into_iter().for_each(|sender| sender.start(cfg, ms(0)));
        let (mut events, mut order, mut now, mut tracked) = (BTreeMap::new(), 0u64, ms(0), 0);
        while now < ms(5_000) && !fast.is_finished() {
            let sent = segments(&mut fast, cfg, now);
            assert_eq!(sent, segments(&mut general, cfg, now), "at {now:?}");
            let state = |sender: &Sender| (sender.stats(), sender.next_timer(), sender.cwnd(), sender.ssthresh());
            assert_eq!(state(&fast), state(&general), "at {now:?}");
            for mut segment in sent {
                order += 1;
                let wait = Span::from_micros(if rng.percent(late) { 25_000 } else { 20_000 + order % 700 });
                if segment.ecn.is_ect() && rng.percent(mark) {
                    segment.ecn = Ecn::Ce;
                }
                if !rng.percent(loss) {
                    events.insert((now + wait, order), Event::Segment(segment));
                }
            }
            let timer = fast.next_timer().into_iter().chain(receiver.next_timer()).min();
            let event = events.keys().next().map(|key| key.0);
            let Some(next) = timer.into_iter().chain(event).min() else { break };
            now = next.max(now);
            let ack = match event.filter(|&at| at <= now).and_then(|_| events.pop_first()) {
                Some((_, Event::Segment(segment))) => receiver.on_segment(cfg, now, &segment),
                Some((_, Event::Ack(ack))) => {
                    [&mut fast, &mut general].into_iter().for_each(|sender| sender.on_ack(cfg, now, &ack));
                    tracked += u32::from(fast.flags & TRACKED != 0);
                    None
                }
                None => receiver.on_timer(now).or_else(|| {
                    [&mut fast, &mut general].into_iter().for_each(|sender| sender.on_timer(cfg, now));
                    None
                }),
            };
            if let Some(ack) = ack.filter(|_| !rng.percent(loss)) {
                order += 1;
                events.insert((now + Span::from_millis(10), order), Event::Ack(ack));
            }
        }
        assert!(general.flags & TRACKED == 0);
        (fast.stats(), tracked)
    }

    #[test]
    fn the_fast_path_does_what_the_general_path_does() {
        // The link is never full: the receive window bounds the flight.
        let (modern, linux) = (TcpConfig::modern(), TcpConfig::linux());
        let [modern, linux] = [modern, linux].map(|cfg| TcpConfig { receive_window: 40, ..cfg });
        let cubic = |cfg: TcpConfig| TcpConfig { congestion: Congestion::Cubic, ..cfg };
        let configs = [
            modern,
            linux,
            cubic(modern),
            TcpConfig { ecn: false, limited_transmit: false, receive_window: 12, ..modern },
            TcpConfig { timestamps: false, tail_probe: false, ..modern },
            TcpConfig { reduction: Reduction::AtOnce, growth_limit: 1, validate_window: false, ..cubic(modern) },
            TcpConfig { syn: false, write: 7, frto: true, delayed_ack: None, ..modern },
            TcpConfig { congestion: Congestion::Vegas, ..modern },
            TcpConfig { send_overhead: Span::ZERO, congestion: Congestion::Reno, ..linux },
        ];
        for (cfg, number) in configs.iter().zip(0..) {
            for (channel, seed) in [(0, 0, 0), (1, 0, 0), (0, 8, 0), (3, 3, 3), (0, 0, 5)].into_iter().zip(1..) {
                let seed = seed * 1_000_003 + number;
                let (stats, tracked) = transfer(cfg, None, channel, seed);
                assert!(tracked > 100, "{cfg:?}, {channel:?}: {stats:?}, {tracked}");
                transfer(cfg, Some(400_001), channel, seed);
            }
        }
    }

    #[test]
    fn paced_and_delivery_sampling_senders_have_no_fast_path() {
        for cfg in [TcpConfig::bbr(), TcpConfig::prague(), TcpConfig { pacing: true, ..TcpConfig::modern() }] {
            assert_eq!(transfer(&cfg, Some(400_000), (0, 0, 0), 7).1, 0);
        }
        // The general path notes full windows of whole segments at the time of sending.
        let delayed = TcpConfig { send_overhead: Span::from_millis(1), ..TcpConfig::linux() };
        assert_eq!(transfer(&delayed, Some(400_000), (0, 0, 0), 7).1, 0);
    }
}
