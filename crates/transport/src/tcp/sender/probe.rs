//! The probe of a tail (TLP, RFC 8985 section 7): when nothing has come back for two round trips, one segment leaves,
//! so that its acknowledgement shows what is missing before the retransmission timer has to.
//!
//! New data if there is any, beyond the window if need be, else the last segment once more. If the acknowledgement then
//! covers the repeated segment and no copy is reported, the probe has repaired a loss, and the window is reduced.
//!
//! Deviation: a copy is told by an acknowledgement that says nothing new, as in Linux;
//! receivers here do not send D-SACK.

use aqumen_units::{Instant, Span};

use super::track::{Probe, State, Track};
use super::{STOPPED, Sender};
use crate::tcp::{Ack, Segment, TcpConfig};

/// What the receiver may add to the round trip of a single segment (TLP.max_ack_delay), where
/// the sender does not know it.
const ACK_DELAY: Span = Span::from_millis(200);

impl Sender {
    /// When a probe is to leave; `None`: there is no tail to probe (RFC 8985 section 7.2).
    pub(super) fn probe_at(&self, cfg: &TcpConfig, now: Instant, track: &Track) -> Option<Instant> {
        let established = !cfg.syn || self.una > 0;
        let quiet = matches!(track.state, State::Open | State::Reducing) && !track.flight.has_gaps();
        if !cfg.tail_probe || !established || !quiet || track.probe.is_some() || self.una == self.high {
            return None;
        }
        let mut patience = self.rto.smoothed(cfg).map_or(Span::from_secs(1), |smoothed| smoothed * 2);
        if self.high - self.una == 1 {
            patience += cfg.delayed_ack.map_or(Span::ZERO, |delay| delay.max(ACK_DELAY));
        }
        let due = now.saturating_add(patience);
        (due < track.timeout_at).then_some(due)
    }

    /// Sends the probe that is due (RFC 8985 section 7.3).
    pub(super) fn send_probe(&mut self, cfg: &TcpConfig, now: Instant, track: &mut Track) -> Option<Segment> {
        if self.una == self.high {
            track.probe = None;
            return None;
        }
        let offered = self.high < self.limit && self.flags & STOPPED == 0 && self.high - self.una < self.peer_window;
        let seq = if offered { self.high } else { self.high - 1 };
        self.next = self.next.max(seq + 1);
        let segment = self.emit_tracked(cfg, now, seq, track);
        track.probe = Some(Probe { end: self.high, repeated: segment.retransmission });
        Some(segment)
    }

    /// RFC 8985 section 7.4; true: the probe has repaired a loss. `delivered`: segments that the acknowledgement shows
    /// to have arrived.
    pub(super) fn on_probe_ack(&self, ack: &Ack, track: &mut Track, delivered: u32) -> bool {
        let Some(probe) = track.probe.filter(|probe| !probe.is_due()) else { return false };
        let over =
            ack.ack >= probe.end && !probe.repeated || ack.ack > probe.end || ack.ack == probe.end && delivered == 0; // a copy arrived: nothing was lost
        if over {
            track.probe = None;
        }
        over && probe.repeated && ack.ack > probe.end
    }
}
