//! The congestion window (RFC 9260 section 7.2).

use super::{Recovery, SctpConfig};

/// Congestion window and its state, in chunk bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    /// partial_bytes_acked: bytes acknowledged since the last growth in congestion avoidance.
    pub(super) partial: u32,
    /// Highest TSN outstanding at the start of fast recovery; `None`: no recovery.
    pub(super) exit: Option<u32>,
    /// Next TSN at the last reduction; marks of earlier chunks have been answered.
    reduced_at: u32,
    recovery: Recovery,
    chunk: u32,
}

impl Window {
    pub(super) fn new(cfg: &SctpConfig) -> Self {
        Window {
            cwnd: cfg.first_window(),
            ssthresh: cfg.receive_window_bytes,
            partial: 0,
            exit: None,
            reduced_at: 0,
            recovery: cfg.recovery,
            chunk: cfg.chunk_bytes(),
        }
    }

    /// Processes a SACK that advances the cumulative TSN to `cumulative` and acknowledges `acked` chunk bytes, gaps
    /// included. `flight`: bytes outstanding before it.
    pub(super) fn on_advance(&mut self, cumulative: u32, acked: u32, flight: u32) {
        if self.exit.is_some_and(|exit| cumulative >= exit) {
            self.exit = None;
        }
        let used = flight >= self.cwnd;
        if self.cwnd <= self.ssthresh {
            // Section 7.2.1, with L = 1.
            if used && self.exit.is_none() {
                self.cwnd = self.cwnd.saturating_add(acked.min(self.chunk));
            }
            return;
        }
        // Section 7.2.2.
        self.partial = self.partial.saturating_add(acked);
        if self.partial >= self.cwnd {
            if used {
                self.partial -= self.cwnd;
                self.cwnd = self.cwnd.saturating_add(self.chunk);
            } else {
                self.partial = self.cwnd;
            }
        }
    }

    /// Resets the byte count when nothing is outstanding (section 7.2.2).
    pub(super) fn on_all_acknowledged(&mut self) {
        self.partial = 0;
    }

    /// Chunks up to `highest` have three missing reports; `next` is the next new TSN (section 7.2.4).
    pub(super) fn on_fast_retransmit(&mut self, highest: u32, next: u32) {
        if self.exit.is_none_or(|exit| self.recovery == Recovery::Ns2 && highest > exit) {
            self.halve(next);
            self.exit = Some(next - 1);
        }
    }

    /// Retransmission timeout (section 7.2.3).
    pub(super) fn on_timeout(&mut self, next: u32) {
        self.halve(next);
        self.cwnd = self.chunk;
        if self.recovery == Recovery::Standard {
            self.exit = None;
        }
    }

    /// Mark of chunk `tsn` (RFC 4960 appendix A): answered like a loss, once per window of data.
    pub(super) fn on_mark(&mut self, tsn: u32, next: u32) {
        if tsn >= self.reduced_at {
            self.halve(next);
        }
    }

    /// Reduces the window after `idle` timeouts without sending (section 7.2.1).
    pub(super) fn on_idle(&mut self, idle: u64) {
        if idle > 0 {
            self.ssthresh = self.cwnd;
            for _ in 0..idle.min(32) {
                self.cwnd = self.cwnd.min((self.cwnd / 2).max(4 * self.chunk));
            }
        }
    }

    fn halve(&mut self, next: u32) {
        self.ssthresh = (self.cwnd / 2).max(4 * self.chunk);
        self.cwnd = self.ssthresh;
        self.partial = 0;
        self.reduced_at = next;
    }
}
