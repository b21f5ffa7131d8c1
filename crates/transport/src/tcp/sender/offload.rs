//! Segmentation offload: new segments sent together form a super-packet, and the last of two or more carries PSH (Linux
//! since 5.5, `__tcp_transmit_skb`), which triggers a delayed acknowledgement.
//!
//! A super-packet holds the segments of 1 ms at the pacing rate, at least two, and more where the smallest round-trip
//! time is below 16 ms (`tcp_tso_autosize`, `tcp_tso_rtt_log`). It ends early when window or pacing stop the sender.
//!
//! Deviations: retransmissions are single segments without PSH. A window's odd segment does not wait for a second one
//! (`tcp_tso_should_defer`).

use aqumen_units::{Instant, Span};

use super::Sender;
use super::rack_state::SuperPacket;
use crate::tcp::congestion::{Window, pace_gain};
use crate::tcp::{Segment, TcpConfig};

/// Linux: least segments of a super-packet (`tcp_min_tso_segs`), most bytes, and the shift of the smallest round-trip
/// time in microseconds (`tcp_tso_rtt_log`).
const MIN_SEGMENTS: u32 = 2;
const MOST_BYTES: u64 = 65_536;
const RTT_LOG: u32 = 9;
/// Super-packets per second; the kernel divides by a power of two.
const SUPER_PACKETS_PER_SECOND: f64 = 1024.0;

impl Sender {
    /// Sets PSH on a segment that ends its super-packet.
    pub(super) fn close_super_packet(&mut self, cfg: &TcpConfig, now: Instant, segment: Segment) -> Segment {
        let alone = segment.retransmission || segment.syn;
        let held_by_pacer = || self.control().is_some_and(|control| control.release(now) > now);
        let next = || self.rack().and_then(|rack| self.choose_rack(cfg, rack));
        let is_last = alone || next() != Some(segment.seq + 1) || held_by_pacer();
        let closes = self.closes_super_packet(cfg, now, segment.seq, is_last);
        Segment { push: segment.push || closes && !alone, ..segment }
    }

    /// Adds segment `seq` to its super-packet; `is_last`: no segment follows. Returns whether it ends one of two or
    /// more segments.
    pub(super) fn closes_super_packet(&mut self, cfg: &TcpConfig, now: Instant, seq: u32, is_last: bool) -> bool {
        let Some(rack) = self.rack() else { return false };
        let before = rack.super_packet;
        let joins = before.at == now && before.next == seq;
        let segments = if joins { before.segments + 1 } else { 1 };
        let is_full = || segments >= self.max_super_packet(cfg, rack.flight.min_rtt());
        let over = is_last || segments >= MIN_SEGMENTS && is_full();
        if let Some(rack) = self.rack_mut() {
            rack.super_packet = SuperPacket { at: now, next: seq + 1, segments: if over { 0 } else { segments } };
        }
        over && segments > 1
    }

    /// Largest number of segments in a super-packet.
    fn max_super_packet(&self, cfg: &TcpConfig, min_rtt: Option<Span>) -> u32 {
        let payload = u64::from(cfg.payload_bytes()).max(1);
        let window = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
        let pace = self
            .rto
            .smoothed(cfg)
            .map_or(f64::INFINITY, |srtt| pace_gain(&window) * window.cwnd.max(1.0) / srtt.as_secs_f64().max(1e-6));
        let near = min_rtt.map_or(0, |rtt| MOST_BYTES >> ((rtt.as_nanos() / 1000) >> RTT_LOG).min(63));
        let paced = (pace / SUPER_PACKETS_PER_SECOND).min(1e6) as u64;
        (paced + near / payload).clamp(u64::from(MIN_SEGMENTS), (MOST_BYTES / payload).max(u64::from(MIN_SEGMENTS)))
            as u32
    }
}
