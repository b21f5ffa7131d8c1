//! Senders: the law of a window, and the sender's behaviour beyond that law.

use aqumen_scenario::Protocol;

/// How a sender's window answers to signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// One packet a round trip more, half after a signal (RFC 5681).
    Reno,
    /// RFC 9438, with its Reno-friendly region and fast convergence.
    Cubic,
    /// RFC 8257.
    Dctcp,
    /// The Prague of L4S.
    Prague,
}

/// A sender at a constant share of signals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sender {
    /// Its law.
    pub law: Law,
    /// Whether it comes down in proportion to what arrives (PRR), not at once.
    pub proportional: bool,
    /// Whether a reduction begins at what is in flight, not at the window.
    pub from_flight: bool,
    /// Whether windows are whole numbers of packets, as in Linux.
    pub whole: bool,
    /// Whether CUBIC never falls behind Reno.
    pub reno_friendly: bool,
    /// Smallest window, packets.
    pub min_window: f64,
    /// How long the receiver may hold an acknowledgement back, seconds; 0: not at all.
    pub held_s: f64,
    /// Whether packets leave evenly.
    pub paced: bool,
    /// Whether its signals are losses, not marks.
    pub losses: bool,
    /// Whether losses are repaired by SACK; NewReno repairs one a round trip.
    pub sack: bool,
}

impl Sender {
    /// The sender of a transport; the error says why its window follows no law that is known here.
    pub fn from_protocol(transport: &Protocol) -> Result<Self, &'static str> {
        let config = match transport {
            Protocol::Tcp(config) => config,
            // SCTP's window is Reno's (RFC 9260 section 7.2).
            Protocol::Sctp(_) => return Ok(Sender { sack: true, ..Sender::reno() }.with_losses()),
            Protocol::Udp(_) | Protocol::Rtp(_) => return Err("it has no window"),
        };
        let law = match transport.congestion().unwrap_or("reno") {
            "reno" => Law::Reno,
            "cubic" => Law::Cubic,
            "dctcp" => Law::Dctcp,
            "prague" => Law::Prague,
            "bbr" => {
                return Err(
                    "BBR follows the delivery rate and the smallest round trip, and takes no notice of marks: no share of signals \
                     holds its window",
                );
            }
            "vegas" | "ledbat" => return Err("its window follows the delay, not the share of signals"),
            _ => return Err("its window's law is not known here"),
        };
        let sender = Sender {
            law,
            proportional: transport.reduces_proportionally(),
            from_flight: config.halve_flight,
            whole: config.whole_windows,
            reno_friendly: config.reno_friendly,
            min_window: config.min_window.max(1.0),
            held_s: config.delayed_ack.map_or(0.0, |delay| delay.as_secs_f64()),
            paced: config.pacing || config.congestion.requires_pacing(),
            losses: false,
            sack: transport.has_sack(),
        };
        Ok(if transport.ecn() { sender } else { sender.with_losses() })
    }

    /// The sender where its signals are losses. Those of DCTCP and Prague answer losses as Reno does (RFC 8257 section
    /// 3.5).
    pub(crate) fn with_losses(self) -> Self {
        let law = if self.is_scalable() { Law::Reno } else { self.law };
        Sender { law, losses: true, ..self }
    }

    /// Whether its signals are losses that NewReno repairs without SACK, one a round trip: these have no response
    /// function.
    pub(crate) fn is_newreno_under_losses(&self) -> bool {
        self.losses && !self.sack
    }

    /// Fraction of its packets that pass a queue at signal probability `p`.
    pub(crate) fn passed(&self, p: f64) -> f64 {
        if self.losses { 1.0 - p.clamp(0.0, 1.0) } else { 1.0 }
    }

    /// Reno as in ns-2: reductions at once, of the window, every packet acknowledged.
    pub const fn reno() -> Self {
        Sender {
            law: Law::Reno,
            proportional: false,
            from_flight: false,
            whole: false,
            reno_friendly: true,
            min_window: 1.0,
            held_s: 0.0,
            paced: false,
            losses: false,
            sack: false,
        }
    }

    /// Whether it answers marks by their share, and losses as Reno does: the same share of either holds other windows.
    pub fn is_scalable(&self) -> bool {
        matches!(self.law, Law::Dctcp | Law::Prague)
    }

    /// Whether it is Reno as in ns-2, of which `window` has the closed form.
    pub fn has_closed_form(&self) -> bool {
        let Sender { law, proportional, from_flight, whole, held_s, paced, .. } = *self;
        law == Law::Reno && !proportional && !from_flight && !whole && held_s == 0.0 && !paced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_sender_does_beyond_ns_2s_reno_has_no_closed_form() {
        let reno = Sender::reno();
        assert!(reno.has_closed_form());
        for other in [
            Sender { law: Law::Cubic, ..reno },
            Sender { proportional: true, ..reno },
            Sender { from_flight: true, ..reno },
            Sender { whole: true, ..reno },
            Sender { held_s: 0.04, ..reno },
            Sender { paced: true, ..reno },
        ] {
            assert!(!other.has_closed_form(), "{other:?}");
        }
    }
}
