//! Many windows at once, each with its own chances: how their mean answers a share of signals that varies, and the
//! noise that they make themselves, without a number that was fitted.
//!
//! The density of the windows over the states of their cycles moves with time; a signal takes a window from the end of
//! one cycle to the beginning of the next. SpectralResponse its rest, with flux `phi_i` of windows that enter cycle i,
//! survival `S_i(a)` up to the age a and acknowledgements `r_i(a)`, a share p + dp e^{st} moves the density to
//!
//! ```text
//! nu_i(a) = S_i(a) (psi_i e^{-sa} - phi_i dp integral_0^a r_i(u) e^{-s(a-u)} du)
//! ```
//!
//! where the psi balance at each signal. The mean in flight is the density's with the packets in flight. The noise of
//! one window is the transform of its correlation E\[(f(0) - F) f(t)\]: the density whose cells are weighted with f - F
//! at time 0 moves by the same law, so that the integral has f - F for -r dp. `density` solves both.
//!
//! Time is in round trips.

use std::f64::consts::PI;

use num_complex::Complex64;

use crate::equilibrium::markov_chain::MarkovChain;
use crate::equilibrium::sender::{Law, Sender};
use crate::linear::complex::{exp, hold};
use crate::noise::density::{Density, LANES};

/// Many windows of one sender around their rest.
#[derive(Debug)]
pub(crate) struct Population {
    /// Signals are met with this chance by each acknowledgement.
    p: f64,
    density: Density,
    /// Step of alpha for a numerical derivative; `None` without alpha.
    shift: Option<f64>,
    /// Rounds over which alpha is measured.
    observed: f64,
    /// Mean in the network, packets.
    window: f64,
    /// Variance of what is not in the network although it is in flight, packets^2.
    held: f64,
    /// d ln flight / d ln R where growth goes by the clock.
    by_rtt: f64,
}

/// Linear response and noise at one frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SpectralResponse {
    /// How packets in flight answer the share of signals, packets.
    pub(crate) response: Complex64,
    /// Power of their noise, packets^2 a round trip.
    pub(crate) power: f64,
}

/// g of DCTCP and Prague.
const ALPHA_GAIN: f64 = 1.0 / 16.0;

impl Population {
    pub(crate) fn new(sender: &Sender, p: f64, rtt_s: f64) -> Self {
        let p = p.clamp(1e-9, 0.999);
        let (chain, waiting) = MarkovChain::with_measured_rtt(sender, p, rtt_s);
        let met = chain.stationary();
        let shift = matches!(sender.law, Law::Dctcp | Law::Prague).then_some(0.01 * p);
        let shifted = shift.map(|shift| [shift, -shift].map(|shift| chain.with_alpha(shift).cycles(met.range)));
        let density = Density::new(p, met.range, (&met.cycles, &met.chances), shifted);
        let outside = chain.outside_pkts(density.flight);
        let mut population = Population {
            p,
            shift,
            observed: waiting,
            window: (density.flight - outside).max(0.2 * density.flight),
            // An acknowledgement is held back or not. What a paced sender holds back meanwhile makes up for it: it
            // sends evenly.
            held: if sender.paced { 0.0 } else { outside * (1.0 - outside) },
            by_rtt: 0.0,
            density,
        };
        let by_clock = sender.law == Law::Cubic
            || sender.law == Law::Prague && rtt_s < crate::equilibrium::markov_chain::PRAGUE_RTT_S;
        if by_clock {
            // A little beside the rest that is known.
            let longer = sender.equilibrium(p, 1.01 * rtt_s).window_pkts;
            population.by_rtt = libm::log(longer / met.equilibrium.window_pkts) / libm::log(1.01);
        }
        population
    }

    /// Mean in the network, packets.
    pub(crate) fn window_pkts(&self) -> f64 {
        self.window
    }

    /// d ln W / d ln R at the same share of signals.
    pub(crate) fn by_rtt(&self) -> f64 {
        self.by_rtt
    }

    /// Spectral response at `s`, in inverse round trips.
    #[cfg(test)]
    fn sample_at(&self, s: Complex64) -> SpectralResponse {
        self.sample_each(&[s])[0]
    }

    /// Spectral response at each of `frequencies`.
    pub(crate) fn sample_each(&self, frequencies: &[Complex64]) -> Vec<SpectralResponse> {
        let mut responses = Vec::with_capacity(frequencies.len());
        let mut workspace = self.density.workspace();
        for some in frequencies.chunks(LANES) {
            let s = std::array::from_fn(|k| some.get(k).or(some.last()).copied().unwrap_or(Complex64::ONE));
            let moved = self.density.respond(&s, &mut workspace);
            let lanes = some.iter().enumerate();
            responses.extend(lanes.map(|(k, s)| {
                self.spectral_response(*s, [moved.signals.get(k), moved.noise.get(k), moved.alpha.get(k)])
            }));
        }
        responses
    }

    /// At `s`, from how windows answer signals, what remains of where they were, and what they make of another alpha.
    fn spectral_response(&self, s: Complex64, [signals, noise, alpha]: [Complex64; 3]) -> SpectralResponse {
        // Windows grow by whole packets, of which on average half is missing, once in a round trip; every second
        // acknowledgement is held back for a gap between packets. Both are quicker than any loop, so that their
        // variance counts, not its shape.
        let quick = |variance: f64, rounds: f64| {
            let turned = s * rounds;
            2.0 * variance * rounds / (1.0 + turned.norm_sqr())
        };
        let (fraction, held) = (quick(1.0 / 12.0, 0.5 / PI), quick(self.held, 0.5 / self.window));
        let (mut response, mut power) = (signals, 2.0 * noise.re + fraction + held);
        if let Some(shift) = self.shift {
            // The marks of an observation tell alpha, which holds until the next one ends.
            let back = exp(-s * self.observed);
            let mean = hold(s.im * self.observed);
            response += alpha / (2.0 * shift) * mean * mean * ALPHA_GAIN / (1.0 - (1.0 - ALPHA_GAIN) * back);
            // What chance makes of a window's own marks moves its alpha as it does the window itself.
            let chance = self.p * (1.0 - self.p) / self.density.flight;
            power += (response.norm_sqr() - signals.norm_sqr()) * chance;
        }
        SpectralResponse { response, power }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(law: Law) -> Sender {
        Sender { law, proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() }
    }

    fn near(left: f64, right: f64, share: f64) {
        assert!((left / right - 1.0).abs() < share, "{left} is not {right}");
    }

    const CASES: [(Law, f64, f64); 5] = [
        (Law::Reno, 0.02, 0.1),
        (Law::Reno, 1e-3, 0.1),
        (Law::Cubic, 2e-3, 0.2),
        (Law::Dctcp, 0.1, 0.1),
        (Law::Prague, 0.1, 0.015),
    ];

    #[test]
    fn a_lasting_push_moves_the_mean_along_its_response_function() {
        for (law, p, rtt_s) in CASES {
            let population = Population::new(&of(law), p, rtt_s);
            let slow = population.sample_at(Complex64::new(0.0, 1e-4)).response * p / population.window_pkts();
            near(slow.re, of(law).elasticity(p, rtt_s), 0.08);
            assert!(slow.im.abs() < 0.02 * slow.re.abs(), "{law:?} {slow}");
        }
    }

    #[test]
    fn the_power_sums_up_to_the_variance_of_a_window() {
        for (law, p, rtt_s) in CASES {
            let population = Population::new(&of(law), p, rtt_s);
            let power = |w: f64| population.sample_at(Complex64::new(0.0, w)).power;
            let (mut w, mut before) = (1e-4, power(1e-4));
            let mut variance = w * before;
            while w < 100.0 {
                let (next, here) = (1.2 * w, power(1.2 * w));
                variance += 0.5 * (before + here) * (next - w);
                (w, before) = (next, here);
            }
            // The chain's variance is at an alpha of p: its own comes on top.
            let still = of(law).equilibrium(p, rtt_s).variance_pkts2;
            match law {
                Law::Reno | Law::Cubic => near(variance / PI, still, 0.2),
                Law::Dctcp | Law::Prague => {
                    assert!((1.1..3.0).contains(&(variance / PI / still)), "{variance} {still}")
                }
            }
        }
        // Of large windows of Reno the closed form: halvings of (2/3) W a round through a pole of p W / .8578, W =
        // 1.3098 / sqrt(p): 87.3 / .01527^2 = 3.74e5 at W = 131.
        let population = Population::new(&of(Law::Reno), 1e-4, 0.1);
        near(population.sample_at(Complex64::new(0.0, 1e-5)).power, 3.74e5, 0.1);
    }

    #[test]
    fn an_alpha_that_lags_answers_late() {
        // DCTCP's alpha takes 16 rounds: at a tenth of a radian a round its answer lags far behind Reno's of the same
        // window.
        let lag = |law: Law, p: f64| {
            let response = Population::new(&of(law), p, 0.1).sample_at(Complex64::new(0.0, 0.1)).response;
            PI - response.im.atan2(response.re).abs()
        };
        assert!(lag(Law::Dctcp, 0.1) > lag(Law::Reno, 0.01) + 0.3);
    }

    #[test]
    fn alpha_answers_by_observations_and_by_its_gain() {
        let population = Population::new(&of(Law::Dctcp), 0.1, 0.1);
        let (shift, flight) = (population.shift.unwrap(), population.density.flight);
        assert_eq!((population.observed, population.held), (1.0, 0.0));
        let [signals, noise, alpha] = [Complex64::new(-3.0, 1.0), Complex64::new(0.4, 0.2), Complex64::new(0.0, 0.5)];
        // Windows of whole packets: 1/12, twice in 1 / 2 pi of a round.
        let fraction = |s: f64| 1.0 / 12.0 / PI / (1.0 + (s / (2.0 * PI)) * (s / (2.0 * PI)));
        // At rest all of it counts; at half a turn an observation its mean 2 / (j pi), twice, and 1/16 over 1 + 15/16.
        for (s, share) in [(0.0, 1.0), (PI, -4.0 / (PI * PI) / 31.0)] {
            let around = population.spectral_response(Complex64::new(0.0, s), [signals, noise, alpha]);
            let response = signals + alpha / (2.0 * shift) * share;
            assert!((around.response - response).l1_norm() < 1e-12 * response.l1_norm(), "{s}: {around:?} {response}");
            let chance = (response.norm_sqr() - signals.norm_sqr()) * 0.1 * 0.9 / flight;
            assert!((around.power - 0.8 - fraction(s) - chance).abs() < 1e-9, "{s}: {around:?}");
        }
        // Of observations twice as long the same at half the frequency.
        let longer = Population { observed: 2.0, ..Population::new(&of(Law::Dctcp), 0.1, 0.1) };
        let [slowly, known] = [(&longer, 0.5 * PI), (&population, PI)].map(|(population, w)| {
            population.spectral_response(Complex64::new(0.0, w), [signals, noise, alpha]).response
        });
        assert!((slowly - known).l1_norm() < 1e-12, "{slowly} {known}");
        // Reno has no alpha.
        let reno = Population::new(&of(Law::Reno), 0.1, 0.1);
        let around = reno.spectral_response(Complex64::new(0.0, PI), [signals, noise, alpha]);
        assert!(around.response == signals && (around.power - 0.8 - fraction(PI)).abs() < 1e-12, "{around:?}");
    }
}
