//! A sender with a congestion control other than plain Reno: what the control is told, and when.

use aqumen_units::{Instant, Span};

use super::{Aside, Cause, RECOVERY, Sender, Track};
use crate::tcp::congestion::{Acked, Control, Phase, Window};
use crate::tcp::{Ack, Feedback, Segment, TcpConfig};

impl Sender {
    /// An acknowledgement to a sender with a congestion control.
    pub(super) fn on_controlled_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: Ack, recovered: bool) {
        let (una, flight) = (self.una, self.next - self.una);
        if self.control().is_some_and(Control::goes_first) {
            self.let_control_go_first(cfg, now, &ack);
            return self.work_in(cfg, now, ack, recovered);
        }
        let (samples, sum) = (self.rtt_samples, self.rtt_sum_nanos);
        self.tell_arrivals(now, &ack);
        self.work_in(cfg, now, ack, recovered);
        let repairing = self.flags & RECOVERY != 0 || self.inflation > 0;
        let held = ack.ece && cfg.ecn && !self.resends_after_timeout(cfg, una);
        let phase = match self.last {
            _ if repairing => Phase::Recovery,
            Cause::Timeout if self.una < self.recover => Phase::Timeout,
            _ => Phase::Open,
        };
        let Some(Aside { board, control: Some(control), .. }) = self.aside.as_deref_mut() else { return };
        let (mut sacked, mut lost) = (0, 0);
        if let Some(board) = board {
            sacked = board.arrived.count_in(self.una, self.high);
            let (from, edge) = control.count_losses(self.una, board.loss_edge(cfg).unwrap_or(0));
            lost = edge - from - board.arrived.count_in(from, edge);
        }
        let in_flight = match board {
            Some(board) if repairing => board.pipe(cfg, self.una, self.high),
            Some(board) => self.next - self.una - board.arrived.count_in(self.una, self.next),
            None => self.next - self.una,
        };
        let acked = Acked {
            now,
            segments: self.una - una,
            delivered: control.count_arrivals(self.una + sacked),
            flight,
            in_flight,
            lost,
            lost_before: 0,
            rtt: (self.rtt_samples != samples).then(|| Span::from_nanos(self.rtt_sum_nanos - sum)),
            echo: ack.ece && cfg.ecn,
            held,
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

    /// Tells a congestion control of an acknowledgement before it is worked in. A round trip is taken from one without
    /// selective blocks.
    #[cold]
    pub(super) fn let_control_go_first(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack) {
        let (una, repairing) =
            (self.una.max(ack.ack), self.flags & RECOVERY != 0 || self.track().is_some_and(Track::is_recovering));
        let flight = self.next - self.una;
        let Some(Aside { control: Some(control), .. }) = self.aside.as_deref_mut() else { return };
        let acked = Acked {
            now,
            segments: una - self.una,
            delivered: 0,
            flight,
            in_flight: self.next.max(una) - una,
            lost: 0,
            lost_before: 0,
            rtt: ack.sack.is_empty().then(|| now.saturating_since(ack.echo)),
            echo: ack.ece && cfg.ecn,
            held: ack.ece && cfg.ecn,
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

    /// Tells a congestion control that asks for it which segments have arrived, before the board takes them in.
    fn tell_arrivals(&mut self, now: Instant, ack: &Ack) {
        let (una, high) = (self.una, self.high);
        let Some(Aside { board, control: Some(control), .. }) = self.aside.as_deref_mut() else { return };
        if !control.samples_delivery() {
            return;
        }
        let blocks = ack.sack.as_slice().iter().map(|&(first, end)| (first.max(una).max(ack.ack), end.min(high)));
        for (first, end) in [(una, ack.ack)].into_iter().chain(blocks) {
            match board {
                Some(board) => board.arrived.gaps(first, end).for_each(|(from, to)| control.on_arrival(now, from, to)),
                None => control.on_arrival(now, first, end),
            }
        }
    }

    /// Tells the congestion control of a segment that leaves.
    pub(super) fn account(&mut self, now: Instant, mut segment: Segment, idle: bool) -> Segment {
        if let Some(Aside { control: Some(control), .. }) = self.aside.as_deref_mut() {
            let window = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
            control.on_sent(now, &mut segment, idle, &window);
        }
        segment
    }
}
