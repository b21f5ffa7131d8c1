//! Tail loss probe (TLP, RFC 8985 section 7): after two round trips without an acknowledgement one segment is sent,
//! whose acknowledgement reveals losses before the retransmission timeout.
//!
//! The probe is new data if available, beyond the window if necessary, otherwise the last segment again. If the
//! acknowledgement covers the repeated segment and reports no duplicate, the probe has repaired a loss, and the window
//! is reduced.
//!
//! Deviation: an acknowledgement without news indicates a duplicate, as in Linux; receivers here send no D-SACK.

use aqumen_units::Instant;

use super::rack_state::{Probe, Rack, State};
use super::{STOPPED, Sender};
use crate::tcp::{Ack, Segment, TcpConfig};

impl Sender {
    /// Time of the next probe; `None`: nothing to probe (RFC 8985 section 7.2).
    pub(super) fn probe_at(&self, cfg: &TcpConfig, now: Instant, rack: &Rack) -> Option<Instant> {
        let established = !cfg.syn || self.una > 0;
        let quiet = matches!(rack.state, State::Open | State::Reducing) && !rack.flight.has_gaps();
        if !cfg.tail_probe || !established || !quiet || rack.probe.is_some() || self.una == self.high {
            return None;
        }
        let due = now.saturating_add(Probe::wait(cfg, &self.rto, self.high - self.una));
        (due < rack.timeout_at).then_some(due)
    }

    /// Sends a due probe (RFC 8985 section 7.3).
    pub(super) fn send_probe(&mut self, cfg: &TcpConfig, now: Instant, rack: &mut Rack) -> Option<Segment> {
        if self.una == self.high {
            rack.probe = None;
            return None;
        }
        let offered = self.high < self.limit && self.flags & STOPPED == 0 && self.high - self.una < self.peer_window;
        let seq = if offered { self.high } else { self.high - 1 };
        self.next = self.next.max(seq + 1);
        let segment = self.emit_rack(cfg, now, seq, rack);
        rack.probe = Some(Probe { end: self.high, retransmission: segment.retransmission });
        Some(segment)
    }

    /// Handles the acknowledgement of a probe (RFC 8985 section 7.4); returns whether the probe repaired a loss.
    /// `delivered`: newly arrived segments.
    pub(super) fn on_probe_ack(&self, ack: &Ack, rack: &mut Rack, delivered: u32) -> bool {
        let Some(probe) = rack.probe.filter(|probe| !probe.is_due()) else { return false };
        let over = ack.ack >= probe.end && !probe.retransmission
            || ack.ack > probe.end
            || ack.ack == probe.end && delivered == 0; // a copy arrived: nothing was lost
        if over {
            rack.probe = None;
        }
        over && probe.retransmission && ack.ack > probe.end
    }
}
