//! Passive estimate of the mean round-trip time, from the handshakes of TCP connections that pass a queue.
//!
//! ```text
//! SYN of a flow arrives at t, waits w ────> the flow's next packet arrives at u:   sample u - t - w
//! mean <- mean + (sample - mean) max(1/n, 1/16)      of the n-th sample; a connection gives one
//! ```
//!
//! The answer to a SYN is one acknowledgement, which the sender answers at once, so that the time between the two
//! packets is a round trip without the application's pauses and without the window. The wait in this queue is taken
//! off. A repeated SYN begins again. Flows without a SYN (UDP, connections older than the queue) give no sample.
//!
//! At most [`SLOTS`] handshakes are open at a time; a further one replaces another, whose sample is lost. Memory: 24 B
//! for each, 6 kB in all.

use alloc::boxed::Box;
use alloc::vec;

use aqumen_units::{Instant, Span};

use crate::Packet;

/// Handshakes that may be open at a time.
const SLOTS: usize = 256;
/// Weight of a sample after the first 16.
const GAIN: f64 = 1.0 / 16.0;
/// Longest handshake that counts; a longer one is a connection that was given up.
const HANDSHAKE_MAX: Span = Span::from_secs(3);
/// Shortest round trip that counts.
const RTT_MIN_S: f64 = 1e-5;

/// Estimator of the mean round-trip time without the wait in this queue.
#[derive(Clone, Debug)]
pub struct PassiveRtt {
    open: Box<[Option<Handshake>]>,
    /// Number of open handshakes: without one, a packet costs a comparison.
    count: u32,
    samples: u32,
    mean_s: f64,
}

/// A SYN whose answer is awaited.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    flow: u32,
    /// End of the wait of the SYN.
    left: Instant,
}

impl Default for PassiveRtt {
    fn default() -> Self {
        PassiveRtt { open: vec![None; SLOTS].into_boxed_slice(), count: 0, samples: 0, mean_s: 0.0 }
    }
}

impl PassiveRtt {
    /// Sees `packet`, which arrives at `now` and will wait for `wait` in the queue.
    #[inline]
    pub fn on_arrival(&mut self, packet: &Packet, now: Instant, wait: Span) {
        if packet.syn || self.count > 0 {
            self.see(packet, now, wait);
        }
    }

    fn see(&mut self, packet: &Packet, now: Instant, wait: Span) {
        // Fibonacci hashing, Knuth, The Art of Computer Programming 3, section 6.4.
        let slot = &mut self.open[packet.flow_hash.wrapping_mul(0x9e37_79b1) as usize >> 24];
        if packet.syn {
            self.count += u32::from(slot.is_none());
            *slot = Some(Handshake { flow: packet.flow_hash, left: now.saturating_add(wait) });
            return;
        }
        let Some(handshake) = slot.filter(|handshake| handshake.flow == packet.flow_hash) else { return };
        *slot = None;
        self.count -= 1;
        let sample = now.saturating_since(handshake.left);
        if sample <= HANDSHAKE_MAX {
            self.learn(sample.as_secs_f64());
        }
    }

    /// Takes a sample, seconds, that was measured elsewhere.
    pub(crate) fn learn(&mut self, sample_s: f64) {
        self.samples = self.samples.saturating_add(1);
        let gain = GAIN.max(1.0 / f64::from(self.samples));
        self.mean_s += gain * (sample_s.max(RTT_MIN_S) - self.mean_s);
    }

    /// Mean round-trip time without the wait in this queue, seconds; `None` before the first handshake.
    pub fn mean_s(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.mean_s)
    }

    /// Number of handshakes measured.
    pub fn samples(&self) -> u32 {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(flow: u32, syn: bool) -> Packet {
        Packet { bytes: if syn { 40 } else { 1500 }, flow_hash: flow, syn, ..Packet::default() }
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_handshake_is_a_round_trip_without_the_wait_in_this_queue() {
        let mut rtt = PassiveRtt::default();
        assert_eq!(rtt.mean_s(), None);
        // The SYN waits from 10 to 15 ms; its answer brings the next packet 80 ms later.
        rtt.on_arrival(&packet(7, true), ms(10), Span::from_millis(5));
        rtt.on_arrival(&packet(7, false), ms(95), Span::ZERO);
        assert!((rtt.mean_s().unwrap() - 0.08).abs() < 1e-12);
        // Later packets of the connection, also after a pause, say nothing.
        rtt.on_arrival(&packet(7, false), ms(5000), Span::ZERO);
        assert_eq!(rtt.samples(), 1);
        // Of two samples, 80 and 40 ms, the mean.
        rtt.on_arrival(&packet(8, true), ms(6000), Span::ZERO);
        rtt.on_arrival(&packet(8, false), ms(6040), Span::ZERO);
        assert!((rtt.mean_s().unwrap() - 0.06).abs() < 1e-12);
    }

    #[test]
    fn a_repeated_syn_begins_again_and_one_without_answer_does_not_count() {
        let mut rtt = PassiveRtt::default();
        rtt.on_arrival(&packet(7, true), ms(0), Span::ZERO);
        rtt.on_arrival(&packet(7, true), ms(1000), Span::ZERO);
        rtt.on_arrival(&packet(7, false), ms(1050), Span::ZERO);
        assert!((rtt.mean_s().unwrap() - 0.05).abs() < 1e-12);
        // 4 s are no round trip.
        rtt.on_arrival(&packet(7, true), ms(2000), Span::ZERO);
        rtt.on_arrival(&packet(7, false), ms(6000), Span::ZERO);
        assert_eq!(rtt.samples(), 1);
    }

    #[test]
    fn flows_without_a_handshake_give_no_sample() {
        let mut rtt = PassiveRtt::default();
        for k in 0..1000 {
            rtt.on_arrival(&packet(k % 5, false), ms(20 * u64::from(k)), Span::ZERO);
        }
        assert_eq!((rtt.mean_s(), rtt.samples()), (None, 0));
    }

    #[test]
    fn more_handshakes_than_slots_lose_samples_and_invent_none() {
        let mut rtt = PassiveRtt::default();
        for flow in 0..2000 {
            rtt.on_arrival(&packet(flow, true), ms(u64::from(flow) / 100), Span::ZERO);
        }
        for flow in 0..2000 {
            rtt.on_arrival(&packet(flow, false), ms(100 + u64::from(flow) / 100), Span::ZERO);
        }
        assert!(rtt.samples() > 200 && rtt.samples() <= SLOTS as u32, "{}", rtt.samples());
        assert!((rtt.mean_s().unwrap() - 0.1).abs() < 1e-12 && rtt.count == 0);
    }
}
