//! What calls and frames make of datagrams: the rating of a call, the frames that were whole in time.

use aqumen_result::emodel::{self, Codec};
use aqumen_result::{FlowMetrics, Received, Reception};
use aqumen_scenario::{Traffic, traffic};

use super::udp::Datagram;

/// One-way delay beyond which a conversation with pictures is no longer one, nanoseconds: ITU-T G.1010, table I.1.
const FRAME_DEADLINE_NS: u64 = 400_000_000;

/// What the receiver of a flow remembers from datagram to datagram.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Listener {
    packets: Reception,
    /// One more than the highest number of a message of which anything arrived.
    next_message: u32,
    /// How many datagrams of that message arrived.
    parts: u32,
}

/// What the receivers of a group saw in a stretch of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrived {
    packets: Received,
    /// Messages up to the highest number of which anything arrived, and those of them that were whole in time.
    messages: u64,
    whole: u64,
}

impl Arrived {
    /// `datagram`, with headers of `header_bytes`, arrived at `listener`.
    pub(super) fn on_arrival(&mut self, listener: &mut Listener, datagram: &Datagram, header_bytes: u16) {
        let bytes = u64::from(datagram.bytes) + u64::from(header_bytes);
        self.packets.on_arrival(&mut listener.packets, datagram.number, bytes, datagram.delay);
        if let Some(missing) = datagram.message.checked_sub(listener.next_message) {
            self.messages += u64::from(missing) + 1;
            (listener.next_message, listener.parts) = (datagram.message + 1, 0);
        }
        // Packets of a flow keep their order: what belongs to an earlier message came too late for it.
        if datagram.message + 1 == listener.next_message {
            listener.parts += 1;
            self.whole += u64::from(listener.parts == datagram.of && datagram.delay <= FRAME_DEADLINE_NS);
        }
    }

    /// Adds what was seen later.
    pub(super) fn merge(&mut self, later: &Arrived) {
        self.packets.merge(&later.packets);
        self.messages += later.messages;
        self.whole += later.whole;
    }

    /// Fills in what it means for `traffic` in a window of `length_s` seconds.
    pub(super) fn fill(&self, metrics: &mut FlowMetrics, of: &Traffic, length_s: f64) {
        self.packets.fill(metrics, length_s);
        match of {
            Traffic::Voip(voip) => {
                let codec = match voip.codec {
                    traffic::Codec::G711 => Codec::G711,
                    traffic::Codec::G729 => Codec::G729A,
                    traffic::Codec::G723 => Codec::G723,
                    // G.107 does not rate them.
                    _ => return,
                };
                let (_, packet) = voip.codec.frame();
                metrics.r_factor = emodel::rating_of_call(codec, packet.as_secs_f64(), &self.packets);
                metrics.mos = metrics.r_factor.map(emodel::mean_opinion_score);
            }
            Traffic::Video(_) if self.packets.loss_ratio().is_some() => {
                metrics.frames = Some(self.messages);
                let lost = self.messages.saturating_sub(self.whole);
                metrics.frame_loss_ratio = (self.messages > 0).then(|| lost as f64 / self.messages as f64);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_counts_that_is_whole_in_time() {
        let (mut arrived, mut listener) = (Arrived::default(), Listener::default());
        let mut arrive = |number, message, of, delay_ms: u64| {
            let datagram = Datagram { flow: 0, number, delay: delay_ms * 1_000_000, message, of, bytes: 1000 };
            arrived.on_arrival(&mut listener, &datagram, 28);
        };
        // Frame 0 whole, 1 without its second part, 2 missing, 3 whole, 4 whole too late.
        arrive(0, 0, 2, 10);
        arrive(1, 0, 2, 10);
        arrive(2, 1, 2, 10);
        arrive(5, 3, 1, 10);
        arrive(6, 4, 2, 399);
        arrive(7, 4, 2, 401);
        assert_eq!((arrived.messages, arrived.whole), (5, 2));
    }
}
