//! Interface between a sender and a congestion control other than plain Reno.

use aqumen_units::{Instant, Span};

use super::{Cause, RECOVERY, Rack, Sender, SenderExtras};
use crate::tcp::congestion::{AckSample, Control, Phase, Window};
use crate::tcp::{Ack, Feedback, Segment, TcpConfig};

impl Sender {
    /// Processes an acknowledgement of a sender with a congestion control.
    pub(super) fn on_controlled_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: Ack, recovered: bool) {
        let (una, flight) = (self.una, self.next - self.una);
        if self.control().is_some_and(Control::precedes_sender) {
            self.control_first(cfg, now, &ack);
            return self.process_ack(cfg, now, ack, recovered);
        }
        let (samples, sum) = (self.rtt_samples, self.rtt_sum_nanos);
        self.report_arrivals(now, &ack);
        self.process_ack(cfg, now, ack, recovered);
        let repairing = self.flags & RECOVERY != 0 || self.inflation > 0;
        let growth_blocked = ack.ece && cfg.ecn && !self.is_repairing_timeout(cfg, una);
        let phase = match self.last_cause {
            _ if repairing => Phase::Recovery,
            Cause::Timeout if self.una < self.recover => Phase::Timeout,
            _ => Phase::Open,
        };
        let Some(SenderExtras { scoreboard, control: Some(control), .. }) = self.extras.as_deref_mut() else { return };
        let (mut sacked, mut lost) = (0, 0);
        if let Some(scoreboard) = scoreboard {
            sacked = scoreboard.arrived.count_in(self.una, self.high);
            let (from, edge) = control.count_losses(self.una, scoreboard.loss_edge(cfg).unwrap_or(0));
            lost = edge - from - scoreboard.arrived.count_in(from, edge);
        }
        let in_flight = match scoreboard {
            Some(scoreboard) if repairing => scoreboard.pipe(cfg, self.una, self.high),
            Some(scoreboard) => self.next - self.una - scoreboard.arrived.count_in(self.una, self.next),
            None => self.next - self.una,
        };
        let acked = AckSample {
            now,
            segments: self.una - una,
            delivered: control.count_arrivals(self.una + sacked),
            flight,
            in_flight,
            lost,
            lost_before: 0,
            rtt: (self.rtt_samples != samples).then(|| Span::from_nanos(self.rtt_sum_nanos - sum)),
            echo: ack.ece && cfg.ecn,
            growth_blocked,
            marks: if let Feedback::Marks(total) = ack.feedback { control.count_marks(total) } else { 0 },
            delay: if let Feedback::Delay(us) = ack.feedback { Some(Span::from_micros(u64::from(us))) } else { None },
            una: self.una,
            high: self.high,
            repairing,
            phase,
            opening: cfg.syn && una == 0 && self.una > 0,
        };
        let mut window = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
        control.on_ack(cfg, &acked, &mut window);
        (self.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
    }

    /// Passes an acknowledgement to the congestion control before the sender processes it. The round-trip sample is
    /// taken from one without SACK blocks.
    #[cold]
    pub(super) fn control_first(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack) {
        let (una, repairing) =
            (self.una.max(ack.ack), self.flags & RECOVERY != 0 || self.rack().is_some_and(Rack::is_recovering));
        let flight = self.next - self.una;
        let Some(SenderExtras { control: Some(control), .. }) = self.extras.as_deref_mut() else { return };
        let acked = AckSample {
            now,
            segments: una - self.una,
            delivered: 0,
            flight,
            in_flight: self.next.max(una) - una,
            lost: 0,
            lost_before: 0,
            rtt: ack.sack.is_empty().then(|| now.saturating_since(ack.echo)),
            echo: ack.ece && cfg.ecn,
            growth_blocked: ack.ece && cfg.ecn,
            marks: 0,
            delay: None,
            una,
            high: self.high,
            repairing,
            phase: if repairing { Phase::Recovery } else { Phase::Open },
            opening: cfg.syn && self.una == 0 && una > 0,
        };
        let mut window = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
        control.on_ack(cfg, &acked, &mut window);
        (self.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
    }

    /// Reports arrived segments to a control that samples the delivery rate, before the scoreboard changes.
    fn report_arrivals(&mut self, now: Instant, ack: &Ack) {
        let (una, high) = (self.una, self.high);
        let Some(SenderExtras { scoreboard, control: Some(control), .. }) = self.extras.as_deref_mut() else { return };
        if !control.samples_delivery() {
            return;
        }
        let blocks = ack.sack.as_slice().iter().map(|&(first, end)| (first.max(una).max(ack.ack), end.min(high)));
        for (first, end) in [(una, ack.ack)].into_iter().chain(blocks) {
            match scoreboard {
                Some(scoreboard) => {
                    scoreboard.arrived.gaps(first, end).for_each(|(from, to)| control.on_arrival(now, from, to))
                }
                None => control.on_arrival(now, first, end),
            }
        }
    }

    /// Reports a sent segment to the congestion control.
    pub(super) fn report_sent(&mut self, now: Instant, mut segment: Segment, idle: bool) -> Segment {
        if let Some(SenderExtras { control: Some(control), .. }) = self.extras.as_deref_mut() {
            let window = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
            control.on_sent(now, &mut segment, idle, &window);
        }
        segment
    }
}
