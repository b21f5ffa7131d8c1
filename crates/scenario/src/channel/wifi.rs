//! Wi-Fi (IEEE 802.11n, 5 GHz): one station on a contended medium.
//!
//! A transmission consists of DIFS, backoff, preamble, data symbols, SIFS and acknowledgement (IEEE 802.11-2016
//! sections 10.3.4, 19.3). Up to `aggregate` packets that wait when the station wins the medium are sent together
//! (A-MPDU, section 9.7: at most 65535 B and 5.484 ms, table 19-25), with one block acknowledgement. Backoff is uniform
//! over 16 slots of 9 us, doubled after each collision up to 1024 (table 19-25). After seven attempts the packets are
//! lost (dot11ShortRetryLimit, section C.3).
//!
//! `contenders` other stations are saturated. A slot is busy, and an attempt collides, with probability p = 1 - (1 -
//! tau)^n, where tau and p are the fixed point of Bianchi, "Performance analysis of the IEEE 802.11 distributed
//! coordination function" (IEEE JSAC 18(3), 2000), eqs. (7) and (9):
//! tau = 2 (1 - 2p) / ((1 - 2p)(W + 1) + p W (1 - (2p)^m)), W = 16, m = 6.
//! Rate adaptation is a ladder of the modulation and coding schemes 0 to 7 (tables 19-27 to 19-34, guard interval 800
//! ns).
//!
//! Mean capacity: sum over levels of pi(level) 8 N B / E[T], N packets of B bytes to the aggregate, with
//! E[T] = DIFS + sum_{i=0..6} p^i (W_i - 1)/2 E[slot] + sum_{i=1..6} p^i Tc + T(N),
//! E[slot] = (1 - p) 9 us + p Tc, Tc = contender_airtime + SIFS + block acknowledgement + DIFS.
//!
//! Deviations: a collision lasts as long as a contender's frame, whatever the length of the station's own frame. After
//! a collision stations wait as long as an acknowledgement would take (EIFS at the rate of control frames). Frames are
//! lost by collisions only; `loss` of the link adds other losses.

use aqumen_units::{Bytes, Span};

use super::ladder::{LEVELS_SPREAD_MAX, level_weights, log_weights};
use super::ranges::{lasts, within};
use crate::error::KeyError;
use crate::field::{Name, table};

table! {
    /// Wi-Fi.
    pub struct Wifi("a Wi-Fi channel") {
        /// The model: `wifi`.
        pub model: Name,
        /// Mean modulation and coding scheme, 0 to 7.
        pub mcs: f64 = 7.0,
        /// Standard deviation of the scheme; 0 keeps it constant.
        pub spread: f64 = 0.0,
        /// Interval at which the scheme may move by one.
        pub coherence: Span = Span::from_millis(100),
        /// Spatial streams, 1 to 4.
        pub streams: u32 = 1,
        /// Width of the channel in MHz: 20 or 40.
        pub width_mhz: u32 = 20,
        /// Number of saturated contending stations, 0 to 100.
        pub contenders: u32 = 0,
        /// Airtime of a contender's frame, preamble included.
        pub contender_airtime: Span = Span::from_millis(1),
        /// Most packets in an aggregate, 1 to 64; 1 disables aggregation.
        pub aggregate: u32 = 32,
        /// Packet size for which the mean capacity is computed.
        pub packet: Bytes = Bytes(1500),
    }
}

/// Schemes, 0 to 7.
pub(crate) const SCHEMES: usize = 8;
/// Data bits per symbol of one stream of 20 MHz.
const SYMBOL_BITS: [u32; SCHEMES] = [26, 52, 78, 104, 156, 208, 234, 260];
/// Duration of a symbol, nanoseconds.
const SYMBOL_NS: u64 = 4_000;
/// Service field and tail, bits.
const SERVICE_AND_TAIL: u64 = 22;
/// MAC header with QoS control (26), LLC/SNAP (8) and checksum (4), bytes.
const MAC_BYTES: u64 = 38;
/// Delimiter of a packet in an aggregate, bytes; packets are padded to a multiple of 4.
const DELIMITER_BYTES: u64 = 4;
/// Largest aggregate.
const AGGREGATE_BYTES_MAX: u64 = 65_535;
const AGGREGATE_NS_MAX: u64 = 5_484_000;
/// A slot of backoff, nanoseconds.
const SLOT_NS: u64 = 9_000;
const SIFS_NS: u64 = 16_000;
const DIFS_NS: u64 = SIFS_NS + 2 * SLOT_NS;
/// Legacy preamble of 20 us and symbols of 4 us at 24 Mbit/s: 14 B, and 32 B.
const ACK_NS: u64 = 28_000;
const BLOCK_ACK_NS: u64 = 32_000;
/// Contention windows of the attempts.
const WINDOWS: [u32; 7] = [16, 32, 64, 128, 256, 512, 1024];

impl Wifi {
    /// Returns the logarithms of the schemes' stationary probabilities, up to a common term.
    pub fn log_weights(&self) -> Vec<f64> {
        log_weights(SCHEMES, self.mcs, self.spread)
    }

    /// Returns the contention window of each attempt; after the last the packets are lost.
    pub fn windows(&self) -> &'static [u32] {
        &WINDOWS
    }

    /// Returns the duration of an idle backoff slot, and DIFS, nanoseconds.
    pub fn slot_and_difs_ns(&self) -> (u64, u64) {
        (SLOT_NS, DIFS_NS)
    }

    /// Duration of a busy slot or a collision, nanoseconds.
    pub fn busy_ns(&self) -> u64 {
        self.contender_airtime.as_nanos() + SIFS_NS + BLOCK_ACK_NS + DIFS_NS
    }

    /// Duration of preamble, SIFS and acknowledgement, nanoseconds.
    pub fn frame_ns(&self) -> u64 {
        // Training fields: 1, 2, 4, 4 for 1 to 4 streams (table 19-13).
        let training = [1, 2, 4, 4][(self.streams.clamp(1, 4) - 1) as usize];
        let acknowledgement = if self.aggregate > 1 { BLOCK_ACK_NS } else { ACK_NS };
        32_000 + 4_000 * training + SIFS_NS + acknowledgement
    }

    /// Bytes on air of a packet of `bytes`.
    pub fn air_bytes(&self, bytes: u32) -> u64 {
        let frame = u64::from(bytes) + MAC_BYTES;
        if self.aggregate > 1 { (frame + DELIMITER_BYTES).next_multiple_of(4) } else { frame }
    }

    /// Duration of the symbols of `air_bytes` at `scheme`, nanoseconds.
    pub fn symbols_ns(&self, scheme: usize, air_bytes: u64) -> u64 {
        let wide = if self.width_mhz == 40 { 108 } else { 52 };
        let per_symbol = u64::from(SYMBOL_BITS[scheme]) * u64::from(self.streams) * wide / 52;
        (SERVICE_AND_TAIL + 8 * air_bytes).div_ceil(per_symbol) * SYMBOL_NS
    }

    /// Whether an aggregate of `packets` and `air_bytes` is allowed at `scheme`.
    pub fn fits(&self, scheme: usize, packets: u32, air_bytes: u64) -> bool {
        packets <= self.aggregate
            && air_bytes <= AGGREGATE_BYTES_MAX
            && self.symbols_ns(scheme, air_bytes) <= AGGREGATE_NS_MAX
    }

    /// Probability that an attempt collides, or a slot is busy: Bianchi's fixed point.
    pub fn collision(&self) -> f64 {
        if self.contenders == 0 {
            return 0.0;
        }
        let (w, m) = (f64::from(WINDOWS[0]), WINDOWS.len() as i32 - 1);
        let excess = |p: f64| {
            // The sum 1 + 2p + (2p)^2 + ... of eq. (7) has no singularity at 2p = 1.
            let sum = (0..m).fold((0.0, 1.0), |(sum, term), _| (sum + term, term * 2.0 * p)).0;
            let tau = 2.0 / (1.0 + w + p * w * sum);
            -libm::expm1(f64::from(self.contenders) * libm::log1p(-tau)) - p
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if excess(middle) > 0.0 { low = middle } else { high = middle }
        }
        low
    }

    /// Capacity of the saturated link at `scheme`, bit/s.
    pub fn level_bps(&self, scheme: usize) -> f64 {
        let bytes = self.packet.0 as u32;
        let each = self.air_bytes(bytes);
        let packets =
            (1..=self.aggregate).take_while(|n| *n == 1 || self.fits(scheme, *n, u64::from(*n) * each)).count();
        let (p, busy) = (self.collision(), self.busy_ns() as f64);
        let slot = (1.0 - p) * SLOT_NS as f64 + p * busy;
        let (mut time, mut reached) = (DIFS_NS as f64, 1.0);
        for (attempt, window) in WINDOWS.iter().enumerate() {
            if attempt > 0 {
                reached *= p;
                time += reached * busy;
            }
            time += reached * f64::from(window - 1) / 2.0 * slot;
        }
        time += (self.frame_ns() + self.symbols_ns(scheme, packets as u64 * each)) as f64;
        8e9 * packets as f64 * f64::from(bytes) / time
    }

    /// Mean capacity of the saturated link, bit/s.
    pub fn mean_bps(&self) -> f64 {
        let weights = level_weights(&self.log_weights());
        weights.iter().enumerate().map(|(scheme, weight)| weight * self.level_bps(scheme)).sum()
    }

    pub(super) fn check(&self) -> Result<(), KeyError> {
        within("mcs", self.mcs, 0.0, 7.0)?;
        within("spread", self.spread, 0.0, LEVELS_SPREAD_MAX)?;
        lasts("coherence", self.coherence)?;
        within("streams", f64::from(self.streams), 1.0, 4.0)?;
        if self.width_mhz != 20 && self.width_mhz != 40 {
            return Err(("width_mhz", "must be 20 or 40".into()));
        }
        within("contenders", f64::from(self.contenders), 0.0, 100.0)?;
        lasts("contender_airtime", self.contender_airtime)?;
        within("aggregate", f64::from(self.aggregate), 1.0, 64.0)?;
        within("packet", self.packet.0 as f64, 1.0, 65_000.0).map_err(|_| ("packet", "must be 1B to 65000B".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single_station() -> Wifi {
        crate::channel::from_text("model = \"wifi\"\naggregate = 1\n")
    }

    #[test]
    fn a_single_station_without_aggregation() {
        // DIFS 34, backoff 7.5 x 9, preamble 36, 12326 bits in 48 symbols of 260 bits: 192, SIFS 16, acknowledgement
        // 28: 373.5 us for 12000 bits.
        assert!((single_station().mean_bps() - 12_000.0 / 373.5e-6).abs() < 1e-3, "{}", single_station().mean_bps());
    }

    #[test]
    fn aggregation_shares_the_overhead() {
        // 1500 + 38 + 4, padded: 1544 B each, 32 of them 49408 B: 395286 bits, 1521 symbols, 6084 us: too long. 28 fit:
        // 345878 bits, 1331 symbols, 5324 us; 29: 1378 symbols, 5512 us. 34 + 67.5 + 36 + 5324 + 16 + 32 = 5509.5 us
        // for 336000 bits.
        let wifi = Wifi { aggregate: 32, ..single_station() };
        assert!((wifi.mean_bps() - 336_000.0 / 5509.5e-6).abs() < 1e-3, "{}", wifi.mean_bps());
        assert_eq!(Wifi { width_mhz: 40, streams: 2, ..single_station() }.symbols_ns(0, 1), 4_000);
    }

    #[test]
    fn the_fixed_point_of_two_stations() {
        // Bianchi's equations for one contender: p = tau, and tau (1 + 16 + 16 p (1 + 2p + ... + (2p)^5)) = 2.
        let p = Wifi { contenders: 1, ..single_station() }.collision();
        let sum: f64 = (0..6).map(|k| (2.0 * p).powi(k)).sum();
        assert!((p * (17.0 + 16.0 * p * sum) - 2.0).abs() < 1e-9, "{p}");
        assert!((0.1..0.11).contains(&p), "{p}");
    }
}
