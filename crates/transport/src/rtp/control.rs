//! What a sender makes of reports: its rate.
//!
//! The AAQM paper says that its RTP sources adapt to the loss and the round trip that RTCP reports every 900 ms, and
//! not how. Read here as LDA+ (Sisalem and Wolisz, 2000), the known scheme with just these inputs: without loss the
//! rate rises by one packet a round trip; with a share f lost it falls by the factor 1 - sqrt(f), but not below what
//! TCP's throughput equation allows. LDA+ also bounds the rise by a bandwidth estimate from packet pairs; that is left
//! out. Marked packets count as lost ones.

use aqumen_units::{Instant, Span};

use super::{Control, Feedback, ReceiverReport, RtpConfig, nada, tfrc};

/// The rate and what its law remembers.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateControl {
    /// bit/s.
    rate: f64,
    tfrc: tfrc::Sender,
    nada: nada::Sender,
}

impl RateControl {
    pub(super) fn new(cfg: &RtpConfig) -> Self {
        let rate = cfg.initial_rate.as_bps() as f64;
        RateControl { rate, tfrc: tfrc::Sender::default(), nada: nada::Sender::default() }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// A report arrived; `rtt` is the smoothed round trip. Without one the rate stays.
    pub(super) fn on_report(&mut self, cfg: &RtpConfig, now: Instant, rtt: Option<Span>, report: &ReceiverReport) {
        let Some(rtt) = rtt.map(|rtt| rtt.max(Span::from_micros(1))) else { return };
        let rate = match (cfg.control, report.feedback) {
            (Control::Aaqm, _) => aaqm(cfg, self.rate, rtt, report),
            (Control::Tfrc, Feedback::Tfrc { loss_event_rate, receive_rate }) => {
                self.tfrc.on_report(cfg, now, self.rate, rtt, loss_event_rate, receive_rate)
            }
            (Control::Nada, Feedback::Nada { congestion, receive_rate, calm }) => {
                self.nada.on_report(cfg, now, self.rate, rtt, nada::Signal { congestion, receive_rate, calm })
            }
            (Control::Fixed | Control::Tfrc | Control::Nada, _) => return,
        };
        self.set(cfg, rate);
    }

    /// No report came for a long time: half the rate (RFC 5348 section 4.4).
    pub(super) fn on_silence(&mut self, cfg: &RtpConfig) {
        if cfg.control != Control::Fixed {
            self.set(cfg, self.rate / 2.0);
        }
    }

    fn set(&mut self, cfg: &RtpConfig, rate: f64) {
        let (least, most) = (cfg.min_rate.as_bps() as f64, cfg.max_rate.as_bps() as f64);
        // Not-a-number cannot come of finite reports; were it to, the encoder's least rate is safe.
        self.rate = rate.max(least).min(most);
    }
}

fn aaqm(cfg: &RtpConfig, rate: f64, rtt: Span, report: &ReceiverReport) -> f64 {
    let lost = f64::from(report.fraction_lost) / 256.0;
    let marked = f64::from(report.fraction_marked) / 256.0;
    let lost = (lost + (1.0 - lost) * marked).min(1.0);
    let (bytes, rtt_s) = (f64::from(cfg.payload_bytes()), rtt.as_secs_f64());
    if lost > 0.0 {
        let friendly = tfrc::throughput(bytes, rtt_s, lost);
        (rate * (1.0 - libm::sqrt(lost))).max(friendly.min(rate))
    } else {
        rate + 8.0 * bytes / rtt_s
    }
}
