//! ST-PI2 in two parts: the law here, and its packet rule in a marker elsewhere, such as a program in the kernel.
//!
//! The marker keeps a table of flows and of handshakes like the ones here. It counts packets ([`PacketCounts`]), and
//! treats each by the [`PacketRule`] that it has, until the next one comes.

use aqumen_units::Instant;

use super::{HOLD_BELOW, OVERLOAD, PACKET_MIN, STEPS, StPi2, StPi2Params};

/// Handshakes of one report that count as samples; more are as many as the mean remembers.
const HANDSHAKES_MAX: u32 = 32;

/// Counts of a marker since its last report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PacketCounts {
    /// Bytes that arrived.
    pub bytes: f64,
    /// Sum of each packet's bytes squared.
    pub squares: f64,
    /// Sum over packets: bytes, times bytes of the flow in this epoch and the one before.
    pub recent: f64,
    /// Flows that sent for the first time in their epoch.
    pub flows: u32,
    /// Completed handshakes.
    pub handshakes: u32,
    /// Sum of their round trips without the wait in this queue, seconds.
    pub handshakes_s: f64,
}

/// Rule by which a marker signals packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PacketRule {
    /// Epoch of the flows' rates.
    pub epoch: u32,
    /// Number of steps of the law.
    pub step: u32,
    /// Steps after its last signal during which a classic flow is not signalled; 0 above p' = 0.3.
    pub hold_steps: u32,
    /// Probability of a classic packet of mean size; 0 for a short queue.
    pub classic: f64,
    /// Probability of an ECT(1) packet of mean size; 0: it is a classic one.
    pub scalable: f64,
    /// Whether packets are dropped that could be marked.
    pub drops: bool,
    /// Mean size.
    pub packet_bytes: f64,
    /// Bytes of a flow of mean rate, in this epoch and the one before; 0: not known.
    pub recent_bytes: f64,
    /// Bytes of a flow that takes its fair share.
    pub fair_bytes: f64,
}

impl StPi2 {
    /// Takes the counts of a marker up to `now`.
    pub fn learn(&mut self, counts: &PacketCounts, now: Instant) {
        for _ in 0..counts.handshakes.min(HANDSHAKES_MAX) {
            self.rtt.learn(counts.handshakes_s / f64::from(counts.handshakes));
        }
        self.flows.add_seen(counts.flows);
        if counts.bytes <= 0.0 {
            return;
        }
        let (c, window_s) = (self.capacity.bytes_per_s(), self.window_s(now));
        let rates = &mut self.rates;
        // Packets one by one would have moved the means by as much.
        let share = if c > 0.0 { -libm::expm1(-counts.bytes / (c * rates.epoch_s)) } else { 1.0 };
        rates.mean += share * (counts.recent / counts.bytes / window_s - rates.mean);
        let bytes = counts.squares / counts.bytes;
        rates.bytes = if rates.bytes > 0.0 { rates.bytes + share * (bytes - rates.bytes) } else { bytes };
    }

    /// Rule from `now` on, for `queue_pkts` waiting packets and steps that come every `interval_s`.
    pub fn packet_rule(&self, now: Instant, queue_pkts: f64, interval_s: f64) -> PacketRule {
        let StPi2 { params, flows, law, rates, .. } = self;
        let signals = law.root > 0.0 && queue_pkts > params.exempt_pkts;
        let window_s = self.window_s(now);
        let fair = self.capacity.bytes_per_s() / f64::from(flows.active());
        let hold = if law.root < HOLD_BELOW { (law.rtt_s / interval_s).clamp(1.0, STEPS) } else { 0.0 };
        PacketRule {
            epoch: flows.epoch(),
            step: law.steps,
            hold_steps: libm::ceil(hold) as u32,
            classic: if signals { law.probability(false) } else { 0.0 },
            scalable: if signals && params.ecn { law.probability(true) } else { 0.0 },
            drops: !params.ecn || law.root > OVERLOAD,
            packet_bytes: rates.bytes.max(PACKET_MIN),
            recent_bytes: rates.mean * window_s,
            fair_bytes: fair * window_s,
        }
    }

    /// Takes over the round trip that `old` has measured.
    pub fn inherit_round_trip(&mut self, old: &StPi2) {
        self.rtt = old.rtt.clone();
    }

    /// Number of handshakes measured.
    pub fn handshakes(&self) -> u32 {
        self.rtt.samples()
    }

    /// Parameters.
    pub fn params(&self) -> &StPi2Params {
        &self.params
    }

    /// Time of a flow's recent bytes: this epoch so far and the one before.
    fn window_s(&self, now: Instant) -> f64 {
        self.rates.epoch_s + now.saturating_since(self.rates.epoch_at).as_secs_f64()
    }
}
