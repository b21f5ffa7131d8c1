//! Response functions: the mean window that a sender holds where each packet is signalled with the same chance, for
//! Reno, CUBIC, DCTCP and Prague. No number was fitted; one was measured: what waits for the pacer of a Prague sender.
//!
//! A window goes through cycles. A signal comes at a window X; it is reduced, waits until its answer has come back,
//! then grows until the next signal, which comes after so many acknowledgements as a geometric law says. From the chain
//! of the X over a grid follows how many acknowledgements and how many round trips a cycle has; their quotient is the
//! mean number of packets in flight.
//!
//! Effects of senders beyond the law matter at windows of a few packets. Counted are:
//! - a window of 7.6 sends 7 packets: half a packet less on average (not where windows are whole);
//! - the answer to a mark: silence until half is acknowledged, and a round trip more until the receiver hears of it;
//!   or, in proportion (PRR), one round trip in all. What was silent comes in clumps afterwards, in half of the round
//!   trip;
//! - an acknowledgement that is held back keeps a packet out of the network: half the gap between two, on average.
//!
//! Losses count as marks where SACK repairs them: held against packets, docs/theory/models.md.
//!
//! Left out: time-outs, and that p itself swings (E\[W\] rises with it by 3/8 of its relative
//! variance).

pub use crate::equilibrium::markov_chain::Equilibrium;
use crate::equilibrium::markov_chain::{MarkovChain, PRAGUE_RTT_S};
pub use crate::equilibrium::sender::{Law, Sender};
use crate::root_finding::falling;

/// The least share that is looked for, in its logarithm, and how near a window or a share comes in theirs.
const LEAST: f64 = -20.0;
const NEAR: f64 = 1e-7;

impl Sender {
    /// Equilibrium window at signal probability `p` and a round trip of `rtt_s`.
    pub fn equilibrium(&self, p: f64, rtt_s: f64) -> Equilibrium {
        if self.is_newreno_under_losses() {
            // Model `drop`, without a variance.
            let p = p.clamp(1e-9, 1.0);
            return Equilibrium { window_pkts: (2.0 * (1.0 - p) / p).sqrt(), variance_pkts2: 0.0 };
        }
        MarkovChain::with_measured_rtt(self, p.clamp(1e-9, 1.0), rtt_s).0.equilibrium()
    }

    /// The share that holds the mean window at `window_pkts`; `None` where even all of the packets do not. The share of
    /// the packets rises as the window falls, nearly as a power of it.
    pub fn probability(&self, window_pkts: f64, rtt_s: f64) -> Option<f64> {
        let miss = |u: f64| libm::log(self.equilibrium(libm::exp(u), rtt_s).window_pkts / window_pkts);
        let (expected, slope) = self.expected(window_pkts, rtt_s);
        falling(miss, (LEAST, 0.0), (libm::log(expected.min(0.5)), slope), NEAR).map(libm::exp)
    }

    /// About which share holds a window, and how windows answer there: d ln W / d ln p.
    fn expected(&self, window_pkts: f64, rtt_s: f64) -> (f64, f64) {
        let reno = 1.7 / (window_pkts * window_pkts);
        match self.law {
            Law::Cubic => {
                let own = rtt_s * libm::pow(1.2 / window_pkts, 4.0 / 3.0);
                if own > reno { (own, -0.75) } else { (reno, -0.5) }
            }
            Law::Reno => (reno, -0.5),
            Law::Dctcp => (1.4 / window_pkts, -1.0),
            Law::Prague => (2.7 / window_pkts * (rtt_s / PRAGUE_RTT_S).min(1.0), -1.0),
        }
    }

    /// d ln W / d ln p at `p`, below zero.
    pub fn elasticity(&self, p: f64, rtt_s: f64) -> f64 {
        let step = 0.05;
        let at = |u: f64| libm::log(self.equilibrium(p * libm::exp(u), rtt_s).window_pkts);
        (at(step) - at(-step)) / (2.0 * step)
    }

    /// Tabulates the response function at a round trip.
    pub(crate) fn table(&self, rtt_s: f64) -> Table {
        let points = (0..TABLE_POINTS).map(|k| {
            let u = TABLE_FROM * (1.0 - k as f64 / (TABLE_POINTS - 1) as f64);
            libm::log(self.equilibrium(libm::exp(u), rtt_s).window_pkts)
        });
        Table { logs: points.collect() }
    }
}

/// Windows at shares evenly spaced in ln p from [`TABLE_FROM`] to 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    logs: Vec<f64>,
}

const TABLE_POINTS: usize = 24;
const TABLE_FROM: f64 = -9.2;

impl Table {
    /// The window at the share `p`: on a line in logarithms between two points, and beyond the first.
    pub(crate) fn window(&self, p: f64) -> f64 {
        let place = (1.0 - libm::log(p.clamp(1e-12, 1.0)) / TABLE_FROM) * (TABLE_POINTS - 1) as f64;
        let point = (place.max(0.0) as usize).min(TABLE_POINTS - 2);
        let part = place - point as f64;
        libm::exp(self.logs[point] + part * (self.logs[point + 1] - self.logs[point]))
    }
}

#[cfg(test)]
mod tests {
    use aqumen_scenario::PRESETS;

    use super::*;

    fn of(law: Law) -> Sender {
        Sender { law, proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() }
    }

    fn preset(name: &str) -> Result<Sender, &'static str> {
        Sender::from_protocol(&PRESETS.iter().find(|(known, _)| *known == name).unwrap().1())
    }

    fn near(left: f64, right: f64, share: f64) {
        assert!((left / right - 1.0).abs() < share, "{left} is not {right}");
    }

    #[test]
    fn large_windows_go_as_the_literature_has_them() {
        // Ott, Kemperman and Mathis: 1.3098 / sqrt(p) = 414.2 under marks at random.
        near(of(Law::Reno).equilibrium(1e-5, 0.1).window_pkts, 414.2, 0.02);
        // DCTCP: growth of one packet in 1 / (p W) rounds and one of waiting gives back p W / 2: p W = sqrt(2).
        near(0.005 * of(Law::Dctcp).equilibrium(0.005, 0.1).window_pkts, 2.0f64.sqrt(), 0.02);
        // Prague grows while it waits, too: y / 2 = 1 + 1 / y, y = 1 + sqrt(3).
        let prague = Sender { paced: true, ..of(Law::Prague) };
        near(0.005 * prague.equilibrium(0.005, 0.1).window_pkts, 1.0 + 3.0f64.sqrt(), 0.02);
        // Below 25 ms as a flow of 25 ms: at half of that half the window, the same rate.
        near(prague.equilibrium(0.005, 0.0125).window_pkts / prague.equilibrium(0.005, 0.025).window_pkts, 0.5, 0.02);
    }

    #[test]
    fn pragues_small_windows_grow_by_the_gap_between_their_own_packets() {
        // At 11.9 ms and a share of .3: with 2.8 packets in the network an acknowledgement is held for 4.3 ms, so that
        // 16.2 ms are seen: growth of (16.2 / 25)^2 = .42 a round, .7 of it. A window X loses .15 X, gains .62 in the
        // 25 ms that it waits and .42 (2.33) / 5 = .2 in the 2.33 unmarked of 3.33 packets then: X = 5.5, less half a
        // packet, less .88 + 1.18 that the pacer holds: about 2.8.
        let prague = preset("prague").unwrap();
        let window = |p: f64| prague.equilibrium(p, 0.0119).window_pkts;
        near(window(0.3), 2.8, 0.1);
        // A larger share never holds a larger window.
        let held: Vec<f64> = (10..60).map(|k| window(0.01 * f64::from(k))).collect();
        assert!(held.windows(2).all(|pair| pair[1] < 1.000_001 * pair[0]), "{held:?}");
    }

    #[test]
    fn cubic_goes_as_the_three_quarters_power_where_windows_are_large_and_as_reno_where_they_are_small() {
        let cubic = of(Law::Cubic);
        // RFC 9438 equation 5: 1.054 (R / p)^(3/4) for signals evenly spaced; at random more, for W^(4/3) averages.
        let even = 1.054 * libm::pow(0.2 / 1e-5, 0.75);
        let seen = cubic.equilibrium(1e-5, 0.2).window_pkts;
        assert!((1.0..1.25).contains(&(seen / even)), "{seen} {even}");
        near(-cubic.elasticity(1e-5, 0.2), 0.75, 0.03);
        near(cubic.equilibrium(1e-5, 0.4).window_pkts / seen, libm::pow(2.0, 0.75), 0.03);
        // Section 4.3: at short round trips it is as large as Reno's, and without that region smaller.
        let (reno, friendly) =
            (of(Law::Reno).equilibrium(0.005, 0.01).window_pkts, cubic.equilibrium(0.005, 0.01).window_pkts);
        near(friendly, reno, 0.10);
        assert!(Sender { reno_friendly: false, ..cubic }.equilibrium(0.005, 0.01).window_pkts < 0.7 * friendly);
    }

    #[test]
    fn what_senders_do_beyond_their_law_moves_small_windows() {
        let (p, r) = (0.02, 0.15);
        let modern = of(Law::Reno).equilibrium(p, r).window_pkts;
        // Every second packet held for nothing or two gaps: half a packet less.
        let held = Sender { held_s: 1.0, ..of(Law::Reno) }.equilibrium(p, r).window_pkts;
        near(modern - held, 0.5, 1e-6);
        // Down at once and back by clumps: fewer packets in flight than in proportion.
        assert!(Sender { proportional: false, ..of(Law::Reno) }.equilibrium(p, r).window_pkts < modern - 0.1);
        assert!(Sender { from_flight: false, ..of(Law::Reno) }.equilibrium(p, r).window_pkts > modern);
    }

    #[test]
    fn the_share_that_holds_a_window_is_the_one_at_which_it_rests() {
        for (law, window, rtt_s) in
            [(Law::Reno, 7.0, 0.1), (Law::Cubic, 60.0, 0.3), (Law::Dctcp, 12.0, 0.1), (Law::Prague, 5.0, 0.012)]
        {
            let p = of(law).probability(window, rtt_s).unwrap();
            near(of(law).equilibrium(p, rtt_s).window_pkts, window, 1e-5);
        }
        // From windows of a few packets to those of fast and long ways, at any round trip.
        for law in [Law::Reno, Law::Cubic, Law::Dctcp, Law::Prague] {
            for (window, rtt_s) in [(2.2, 0.001), (2.5, 0.3), (3.0, 2.0), (90.0, 0.005), (2000.0, 0.05), (9000.0, 0.8)]
            {
                let Some(p) = of(law).probability(window, rtt_s) else { panic!("{law:?}, {window}, {rtt_s}: none") };
                near(of(law).equilibrium(p, rtt_s).window_pkts, window, 1e-5);
            }
        }
        // Windows of two packets at least are not held at one.
        assert_eq!(of(Law::Reno).probability(1.0, 0.1), None);
    }

    #[test]
    fn the_share_that_is_expected_is_near_the_one_that_holds_the_window() {
        for (law, cases) in [
            (Law::Reno, [(20.0, 0.1), (90.0, 0.01)]),
            // As Reno on the short way, by the cube on the long ones.
            (Law::Cubic, [(20.0, 0.005), (300.0, 0.2)]),
            (Law::Dctcp, [(20.0, 0.1), (200.0, 0.01)]),
            (Law::Prague, [(60.0, 0.1), (60.0, 0.01)]),
        ] {
            for (window, rtt_s) in cases {
                let (expected, slope) = of(law).expected(window, rtt_s);
                let p = of(law).probability(window, rtt_s).unwrap();
                assert!((expected / p - 1.0).abs() < 0.2, "{law:?} {window}: {expected} {p}");
                near(slope, of(law).elasticity(p, rtt_s), 0.2);
            }
        }
    }

    #[test]
    fn a_table_is_the_response_function() {
        for (law, rtt_s) in [(Law::Cubic, 0.1), (Law::Prague, 0.02)] {
            let table = of(law).table(rtt_s);
            for p in [3e-4, 0.004, 0.07, 0.25] {
                near(table.window(p), of(law).equilibrium(p, rtt_s).window_pkts, 0.03);
            }
        }
    }

    #[test]
    fn presets_have_their_law_and_others_say_why_not() {
        assert!(preset("ns2").unwrap().has_closed_form() && !preset("modern").unwrap().has_closed_form());
        let linux = preset("linux").unwrap();
        assert!(linux.law == Law::Cubic && linux.whole && linux.proportional && !linux.from_flight);
        assert!(preset("prague").unwrap().paced && preset("dctcp").unwrap().law == Law::Dctcp);
        assert!(preset("bbr").unwrap_err().contains("delivery rate"));
        assert!(preset("vegas").unwrap_err().contains("delay") && preset("ledbat").unwrap_err().contains("delay"));
        assert!(preset("cubic-ns2").is_err());
    }

    #[test]
    fn a_window_is_held_by_some_share_just_where_all_packets_hold_less() {
        for law in [Law::Reno, Law::Cubic, Law::Dctcp, Law::Prague] {
            for sender in [
                of(law),
                Sender { law, ..Sender::reno() },
                Sender { held_s: 0.04, whole: true, from_flight: false, ..of(law) },
                Sender { held_s: 0.04, paced: true, ..of(law) },
            ] {
                for (rtt_s, window) in [(0.02, 0.3), (0.1, 1.2), (1.0, 1.6), (1e-3, 2.0), (0.3, 2.1), (0.1, 300.0)] {
                    let all = sender.equilibrium(1.0, rtt_s).window_pkts;
                    // Next to what all packets hold a share is hard to tell.
                    for window in [window, 1.01 * all, 0.99 * all] {
                        match sender.probability(window, rtt_s) {
                            Some(p) => near(sender.equilibrium(p, rtt_s).window_pkts, window, 1e-4),
                            None => assert!(all > window, "{sender:?}, {rtt_s}: {all} {window}"),
                        }
                        assert!(all <= window || sender.probability(window, rtt_s).is_none(), "{sender:?}: {window}");
                    }
                }
            }
        }
        // A share of a billionth holds less than that.
        assert_eq!(of(Law::Reno).probability(1e5, 0.1), None);
    }
}
