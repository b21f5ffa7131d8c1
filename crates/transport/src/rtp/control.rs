//! Rate controls of an RTP source, driven by receiver reports.
//!
//! The AAQM paper states that its RTP sources adapt to the loss and round-trip time in RTCP reports every 900 ms, but
//! not by which law. This implementation uses LDA+ (Sisalem and Wolisz, 2000), which takes these inputs. Without loss
//! the rate rises by one packet per round trip. With a lost fraction f it falls by the factor 1 - sqrt(f), but not
//! below TCP's throughput equation. Marked packets count as lost. Deviation: LDA+ also bounds the rise by a bandwidth
//! estimate from packet pairs.

use aqumen_units::{Instant, Span};

use super::{Control, Feedback, ReceiverReport, RtpConfig, nada, tfrc};

/// Current rate and the state of its control.
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

    /// Updates the rate after a report; `rtt` is the smoothed round-trip time. No effect without one.
    pub(super) fn on_report(&mut self, cfg: &RtpConfig, now: Instant, rtt: Option<Span>, report: &ReceiverReport) {
        let Some(rtt) = rtt.map(|rtt| rtt.max(Span::from_micros(1))) else { return };
        let rate = match (cfg.control, report.feedback) {
            (Control::Aaqm, _) => aaqm(cfg, self.rate, rtt, report),
            (Control::Tfrc, Feedback::Tfrc { loss_event_rate, receive_rate }) => {
                self.tfrc.on_report(cfg, now, self.rate, rtt, loss_event_rate, receive_rate)
            }
            (Control::Nada, Feedback::Nada { congestion, receive_rate, ramp_up }) => {
                self.nada.on_report(cfg, now, self.rate, rtt, nada::Signal { congestion, receive_rate, ramp_up })
            }
            (Control::Fixed | Control::Tfrc | Control::Nada, _) => return,
        };
        self.set(cfg, rate);
    }

    /// Halves the rate after a long time without reports (RFC 5348 section 4.4).
    pub(super) fn on_silence(&mut self, cfg: &RtpConfig) {
        if cfg.control != Control::Fixed {
            self.set(cfg, self.rate / 2.0);
        }
    }

    fn set(&mut self, cfg: &RtpConfig, rate: f64) {
        let (least, most) = (cfg.min_rate.as_bps() as f64, cfg.max_rate.as_bps() as f64);
        // `max` before `min`: a NaN would select the lowest rate.
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
