//! Fast retransmit and fast recovery by duplicate acknowledgements: Reno and NewReno (RFC 5681, RFC 6582).

use aqumen_units::Instant;

use super::{Cause, ONE_MORE, PARTIAL, RETRANSMIT, RecoveryEntry, Sender};
use crate::tcp::congestion::Signal;
use crate::tcp::scoreboard::DUPLICATES;
use crate::tcp::{Ack, TcpConfig, Variant};

impl Sender {
    pub(super) fn on_duplicate(&mut self, cfg: &TcpConfig, now: Instant) {
        self.duplicates = self.duplicates.saturating_add(1);
        if self.duplicates > DUPLICATES {
            if self.last_cause == Cause::Duplicates && self.inflation > 0 {
                self.inflation += 1;
            }
        } else if self.duplicates == DUPLICATES {
            self.fast_retransmit(cfg, now);
        } else if cfg.limited_transmit {
            self.flags |= ONE_MORE;
        }
        if self.duplicates >= DUPLICATES && cfg.variant == Variant::NewReno && cfg.quirks.recovery_burst {
            self.burst = self.burst.min(2);
        }
    }

    /// RFC 5681 section 3.2 steps 2 and 3, RFC 6582 section 3.2 step 2.
    fn fast_retransmit(&mut self, cfg: &TcpConfig, now: Instant) {
        match self.permitted_recovery(cfg) {
            RecoveryEntry::Reduce => {
                self.reduce(cfg, Signal::Loss);
                self.recover = self.high;
            }
            RecoveryEntry::Repair => {}
            RecoveryEntry::Refuse => return,
        }
        self.last_cause = Cause::Duplicates;
        self.fast_retransmits += 1;
        self.inflation = u32::from(DUPLICATES);
        self.flags |= RETRANSMIT;
        self.flags &= !PARTIAL;
        self.stop_timing();
        self.arm(cfg, now);
    }

    /// Acknowledgement of new data in fast recovery (RFC 5681 section 3.2 step 6, RFC 6582 section 3.2 step 3).
    pub(super) fn on_ack_in_recovery(&mut self, cfg: &TcpConfig, now: Instant, ack: Ack, recovered: bool) {
        if cfg.variant == Variant::Reno || recovered {
            self.inflation = 0;
            self.end_recovery();
            if cfg.variant == Variant::NewReno && cfg.exit_by_flight {
                let in_flight = (self.high - ack.ack).max(1) + 1;
                self.cwnd = f64::from(self.ssthresh.min(in_flight));
            }
            self.on_new_ack(cfg, now, &ack);
            return;
        }
        // Partial acknowledgement: retransmits the next hole, and deflates the window by the acknowledged segments less
        // one.
        if self.flags & PARTIAL == 0 {
            self.flags |= PARTIAL;
            self.arm(cfg, now);
        }
        let acked = ack.ack - self.una;
        if self.inflation > acked {
            self.inflation -= acked - 1;
        } else {
            self.cwnd = (self.cwnd - f64::from(acked - self.inflation)).max(1.0);
            self.inflation = 1;
        }
        self.una = ack.ack;
        self.next = self.next.max(ack.ack);
        if ack.ack > self.timed {
            self.stop_timing();
            self.rto.end_backoff();
        }
        self.flags |= RETRANSMIT;
    }
}
