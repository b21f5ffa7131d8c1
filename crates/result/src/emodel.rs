//! E-model of ITU-T G.107 (06/2015): quality of a telephone call from delay and packet loss.
//!
//! Only delay, codec and loss vary; other parameters have the defaults of G.107 table 2 (echo loudness TELR 65 dB,
//! weighted echo path loss WEPL 110 dB, no advantage A). Without delay and loss R = 93.2.

use crate::ReceptionStats;

/// Ro of G.107 eq. (7-2) at the defaults: signal-to-noise ratio, 15 - 1.5 (SLR + No) with SLR 8 dB, No -61.18 dBm0p.
const RO: f64 = 94.769;
/// Is of G.107 eq. (7-8) at the defaults: impairments simultaneous with the voice.
const IS: f64 = 1.414;
/// Talker echo loudness rating, dB.
const TELR: f64 = 65.0;
/// Weighted echo path loss, dB.
const WEPL: f64 = 110.0;
/// Delay below which conversation is not impaired, ms (mT of G.107 table 1, default class).
const DELAY_NOTICED_MS: f64 = 100.0;

/// A codec: its impairment and its robustness against loss (ITU-T G.113 appendix I).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codec {
    /// Ie, the equipment impairment factor.
    pub impairment: f64,
    /// Bpl, the robustness against packet loss.
    pub robustness: f64,
}

impl Codec {
    /// G.711 with packet loss concealment.
    pub const G711: Codec = Codec { impairment: 0.0, robustness: 25.1 };
    /// G.729A with voice activity detection.
    pub const G729A: Codec = Codec { impairment: 11.0, robustness: 19.0 };
    /// G.723.1 at 6.3 kbit/s with voice activity detection.
    pub const G723: Codec = Codec { impairment: 15.0, robustness: 16.1 };
}

/// Rating R, from 0 (worst) to 93.2, of a call with mouth-to-ear delay `delay_s`, packet loss ratio `loss` (0 to 1) and
/// loss bursts `burst_ratio` times as long as those of independent losses.
fn rating(codec: Codec, delay_s: f64, loss: f64, burst_ratio: f64) -> f64 {
    let quality = RO - IS - delay_impairment(delay_s) - loss_impairment(codec, loss, burst_ratio);
    quality.clamp(0.0, 100.0)
}

/// Rating of a received call, the best over all de-jitter delays; `None` if no packet was expected. Packets later than
/// the de-jitter delay count as lost. The mouth-to-ear delay is the de-jitter delay plus `packet_s`, the packetisation
/// time.
///
/// A fixed percentile would count late packets as lost where a little more delay has no cost: a short queue with a tail
/// would rate below a full one.
pub fn call_rating(codec: Codec, packet_s: f64, received: &ReceptionStats) -> Option<f64> {
    let loss = received.loss_ratio()?;
    let burst_ratio = burst_ratio(received.losses().mean(), loss);
    let rated = |delay_ns: f64, in_time: f64| {
        rating(codec, delay_ns * 1e-9 + packet_s, loss + (1.0 - loss) * (1.0 - in_time), burst_ratio)
    };
    let most_ns = received.delay().quantile(1.0).unwrap_or(0.0);
    let by_delay = received.delay().cumulative().into_iter();
    Some(by_delay.map(|(delay_ns, in_time)| rated(delay_ns.min(most_ns), in_time)).fold(rated(most_ns, 1.0), f64::max))
}

/// Mean opinion score, 1 (bad) to 4.5, for rating `r` (G.107 annex B).
pub fn mean_opinion_score(r: f64) -> f64 {
    if r <= 0.0 {
        return 1.0;
    }
    if r >= 100.0 {
        return 4.5;
    }
    // The polynomial falls below 1 for R < 6.5.
    (1.0 + 0.035 * r + 7e-6 * r * (r - 60.0) * (100.0 - r)).max(1.0)
}

/// Effective equipment impairment Ie,eff of codec and loss: G.107 eq. (7-29), with the loss in per cent.
fn loss_impairment(codec: Codec, loss: f64, burst_ratio: f64) -> f64 {
    let percent = 100.0 * loss.clamp(0.0, 1.0);
    codec.impairment + (95.0 - codec.impairment) * percent / (percent / burst_ratio.max(1e-9) + codec.robustness)
}

/// Mean loss burst length over that of independent losses, 1 / (1 - loss): BurstR of G.107 section 7.5. 1 without loss.
fn burst_ratio(mean_run: Option<f64>, loss: f64) -> f64 {
    mean_run.filter(|_| loss < 1.0).map_or(1.0, |run| run * (1.0 - loss))
}

/// Delay impairment Id: talker echo, listener echo and conversational difficulty (G.107 eq. 7-18 to 7-28). The echo
/// delay is twice the one-way delay.
fn delay_impairment(delay_s: f64) -> f64 {
    let ms = 1000.0 * delay_s.max(0.0);
    talker_echo(ms) + listener_echo(2.0 * ms) + conversation(ms)
}

/// Idte: G.107 eq. (7-19) to (7-22). Roe = -1.5 (No - RLR) equals Ro at the default loudness ratings.
fn talker_echo(ms: f64) -> f64 {
    let terv = TELR - 40.0 * libm::log10((1.0 + ms / 10.0) / (1.0 + ms / 150.0)) + 6.0 * libm::exp(-0.3 * ms * ms);
    let re = 80.0 + 2.5 * (terv - 14.0);
    let half = (RO - re) / 2.0;
    (half + libm::sqrt(half * half + 100.0) - 1.0) * (1.0 - libm::exp(-ms))
}

/// Idle: G.107 eq. (7-25) and (7-26).
fn listener_echo(round_trip_ms: f64) -> f64 {
    let rle = 10.5 * (WEPL + 7.0) * libm::pow(round_trip_ms + 1.0, -0.25);
    let half = (RO - rle) / 2.0;
    half + libm::sqrt(half * half + 169.0)
}

/// Idd: G.107 eq. (7-27) and (7-28), with the sensitivity sT = 1.
fn conversation(ms: f64) -> f64 {
    if ms <= DELAY_NOTICED_MS {
        return 0.0;
    }
    let x = libm::log2(ms / DELAY_NOTICED_MS);
    let root = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_defaults_match_the_recommendation() {
        // G.107 table 2: R = 93.2. Annex B: 1 + 0.035 * 93.2 + 93.2 * 33.2 * 6.8 * 7e-6 = 1 + 3.262 + 0.1473 = 4.41.
        let r = rating(Codec::G711, 0.0, 0.0, 1.0);
        assert!((r - 93.2).abs() < 0.05, "{r}");
        assert!((mean_opinion_score(r) - 4.41).abs() < 0.005);
        // Annex B, table B.1: R = 90, 80, 70, 60, 50 give a MOS of 4.34, 4.03, 3.60, 3.10, 2.58.
        for (r, mos) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            assert!((mean_opinion_score(r) - mos).abs() < 0.007, "{r}");
        }
        assert_eq!((mean_opinion_score(-3.0), mean_opinion_score(3.0), mean_opinion_score(100.0)), (1.0, 1.0, 4.5));
    }

    #[test]
    fn a_call_is_rated_by_losses_and_delay() {
        use crate::reception::ArrivalState;
        let mut received = ReceptionStats::default();
        assert_eq!(call_rating(Codec::G711, 0.02, &received), None);
        // Every tenth of a thousand packets is lost, singly; all others take 80 ms, and packetisation takes 20 ms.
        let mut receiver = ArrivalState::default();
        (0..1000).filter(|k| k % 10 != 5).for_each(|k| received.on_arrival(&mut receiver, k, 200, 80_000_000));
        let rated = call_rating(Codec::G711, 0.02, &received).unwrap();
        // Bursts have one packet, those of independent losses of a tenth 1.11: BurstR = .9. Delays below 100 ms hardly
        // count; R = 93.2 less 95 x 10 / (10 / .9 + 25.1) = 26.2 for the losses.
        let expected = rating(Codec::G711, 0.1, 0.1, burst_ratio(Some(1.0), 0.1));
        assert!((rated - expected).abs() < 1.0, "{rated} {expected}");
        assert!((60.0..70.0).contains(&rated), "{rated}");
    }

    fn rated(delays_ms: impl Iterator<Item = u64>) -> f64 {
        use crate::reception::ArrivalState;
        let (mut received, mut receiver) = (ReceptionStats::default(), ArrivalState::default());
        for (number, ms) in (0..).zip(delays_ms) {
            received.on_arrival(&mut receiver, number, 200, ms * 1_000_000);
        }
        call_rating(Codec::G711, 0.02, &received).unwrap()
    }

    #[test]
    fn a_short_queue_with_a_tail_rates_above_a_full_one() {
        // One packet in fifty takes 60 ms, all others 22 ms; or each takes 119 ms. Waiting for all costs the delay
        // impairment of 80 ms; discarding the late ones at 42 ms would cost 95 x 2 / (2 + 25.1) = 7.0.
        let short = rated((0..1000).map(|k| if k % 50 == 7 { 60 } else { 22 }));
        let full = rated((0..1000).map(|_| 119));
        assert!((short - rating(Codec::G711, 0.08, 0.0, 1.0)).abs() < 0.05, "{short}");
        assert!(short > full + 1.0, "{short} {full}");
        // A tail of seconds is discarded: one packet in a hundred is late, 95 / 26.1 = 3.64.
        let stray = rated((0..1000).map(|k| if k % 100 == 7 { 3000 } else { 22 }));
        assert!((stray - rating(Codec::G711, 0.042, 0.01, 1.0)).abs() < 0.05, "{stray}");
    }

    #[test]
    fn loss_counts_more_when_it_comes_in_bursts() {
        // Two per cent, G.711 with concealment: 95 * 2 / (2 + 25.1) = 7.011; bursts twice as long: 95 * 2 / (1 + 25.1).
        assert!((loss_impairment(Codec::G711, 0.02, 1.0) - 7.0111).abs() < 1e-4);
        assert!((loss_impairment(Codec::G711, 0.02, 2.0) - 7.2797).abs() < 1e-4);
        // G.729A: 11 + 84 * 2 / (2 + 19) = 19.
        assert!((loss_impairment(Codec::G729A, 0.02, 1.0) - 19.0).abs() < 1e-12);
        // G.723.1: 15 + 80 * 5 / (5 + 16.1) = 33.957.
        assert!((loss_impairment(Codec::G723, 0.05, 1.0) - 33.957).abs() < 1e-3);
        // Bursts of three packets at a loss of a quarter, where independent losses have bursts of 4/3.
        assert_eq!(burst_ratio(Some(3.0), 0.25), 2.25);
        assert_eq!((burst_ratio(None, 0.0), burst_ratio(Some(1e9), 1.0)), (1.0, 1.0));
    }

    #[test]
    fn delay_costs_little_below_150_ms_and_much_beyond() {
        // At 200 ms X = 1: 25 (2^(1/6) - 3 (1 + 3^-6)^(1/6) + 2) = 25 (1.122462 - 3.000685 + 2) = 3.0444.
        assert!((conversation(200.0) - 3.0444).abs() < 1e-3);
        assert_eq!(conversation(100.0), 0.0);
        // Cole and Rosenbluth (2001) fit the model with 0.024 d + 0.11 (d - 177.3) H(d - 177.3), d in ms.
        for ms in [50.0, 100.0, 150.0, 177.0, 200.0, 250.0, 300.0] {
            let fit = 0.024 * ms + 0.11 * f64::max(ms - 177.3, 0.0);
            let own = delay_impairment(ms / 1000.0) - delay_impairment(0.0);
            assert!((own - fit).abs() < 1.0, "{ms} ms: {own} {fit}");
        }
    }

    #[test]
    fn delay_impairment_follows_the_equations() {
        // G.107 eqs. (7-18) to (7-28) for talker echo, listener echo and conversation. At 1 ms: -0.1089, 0.2015 and 0;
        // at 150 ms: 2.8119, 0.8407 and 0.1635; at 300 ms: 4.8340, 1.0943 and 14.7607; at 400 ms: 5.8083, 1.2301 and
        // 24.0701.
        for (ms, id) in [(1.0, 0.09253), (150.0, 3.81614), (300.0, 20.68894), (400.0, 31.10848)] {
            assert!((delay_impairment(ms / 1000.0) - id).abs() < 1e-4, "{ms} ms: {}", delay_impairment(ms / 1000.0));
        }
    }

    proptest! {
        /// Shorter delays never lower the rating, except for the dip of the talker echo near 0.
        #[test]
        fn shorter_delays_never_lower_the_rating(delays in prop::collection::vec((0u64..400, 0u64..200), 1..300)) {
            let sooner = rated(delays.iter().map(|&(ms, _)| ms));
            let later = rated(delays.iter().map(|&(ms, more)| ms + more));
            prop_assert!(later <= sooner + 0.2, "{later} {sooner}");
        }

        /// More delay, more loss and longer bursts never improve a call, and scores stay on their scale.
        #[test]
        fn impairments_never_raise_the_rating(
            delay_s in 0.0f64..2.0, more_s in 0.0f64..1.0, loss in 0.0f64..0.5, more in 0.0f64..0.5, burst in 1.0f64..20.0,
        ) {
            for codec in [Codec::G711, Codec::G729A, Codec::G723] {
                let r = rating(codec, delay_s, loss, burst);
                prop_assert!((0.0..=93.4).contains(&r));
                prop_assert!((1.0..=4.5).contains(&mean_opinion_score(r)));
                // Within the first milliseconds the recommendation's talker echo is slightly negative.
                prop_assert!(rating(codec, delay_s + more_s, loss, burst) <= r + 0.1);
                prop_assert!(rating(codec, delay_s, loss + more, burst) <= r + 1e-9);
                prop_assert!(rating(codec, delay_s, loss, burst * 1.5) <= r + 1e-9);
            }
        }
    }
}
