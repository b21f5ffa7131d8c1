//! Segmentation offload: new segments that leave together are one super-packet, and the last of two or more carries PSH
//! (Linux since 5.5, `__tcp_transmit_skb`), at which a receiver that holds an acknowledgement back sends it.
//!
//! A super-packet is what the pace would send in a millisecond, two segments at least, and more where the smallest
//! round trip is below 16 ms (`tcp_tso_autosize`, `tcp_tso_rtt_log`); it ends with what the window or the pacing lets
//! go.
//!
//! Deviations: retransmissions leave one by one, without PSH; a window's odd segment does not wait for a second one
//! (`tcp_tso_should_defer`).

use aqumen_units::{Instant, Span};

use super::Sender;
use super::track::Together;
use crate::tcp::congestion::{Window, pace_gain};
use crate::tcp::{Segment, TcpConfig};

/// Linux: a super-packet's segments at least (`tcp_min_tso_segs`), its bytes at most, and the bits by which the
/// smallest round trip in microseconds is shifted (`tcp_tso_rtt_log`).
const LEAST: u32 = 2;
const MOST_BYTES: u64 = 65_536;
const RTT_LOG: u32 = 9;
/// A millisecond, as the kernel divides.
const SHARES_OF_A_SECOND: f64 = 1024.0;

impl Sender {
    /// Marks a segment that leaves as the last of its super-packet, if it is.
    pub(super) fn close_super_packet(&mut self, cfg: &TcpConfig, now: Instant, segment: Segment) -> Segment {
        let Some(mut track) = self.take_track() else { return segment };
        let (before, next) = (track.together, segment.seq + 1);
        let joins = before.at == now && before.next == segment.seq;
        let segments = if joins { before.segments + 1 } else { 1 };
        let alone = segment.retransmission || segment.syn;
        let held = || self.control().is_some_and(|control| control.release(now) > now);
        let over = alone
            || segments >= self.super_packet(cfg, track.flight.min_rtt())
            || self.choose_tracked(cfg, &track) != Some(next)
            || held();
        track.together = Together { at: now, next, segments: if over { 0 } else { segments } };
        self.keep(track);
        Segment { push: segment.push || over && !alone && segments > 1, ..segment }
    }

    /// Segments of a super-packet at most.
    fn super_packet(&self, cfg: &TcpConfig, min_rtt: Option<Span>) -> u32 {
        let payload = u64::from(cfg.payload_bytes()).max(1);
        let window = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
        let pace = self
            .rto
            .smoothed(cfg)
            .map_or(f64::INFINITY, |srtt| pace_gain(&window) * window.cwnd.max(1.0) / srtt.as_secs_f64().max(1e-6));
        let near = min_rtt.map_or(0, |rtt| MOST_BYTES >> ((rtt.as_nanos() / 1000) >> RTT_LOG).min(63));
        let of_pace = (pace / SHARES_OF_A_SECOND).min(1e6) as u64;
        (of_pace + near / payload).clamp(u64::from(LEAST), (MOST_BYTES / payload).max(u64::from(LEAST))) as u32
    }
}
