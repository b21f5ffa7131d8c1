//! ST-PI2 without packets: its operating point, its linear law, and the law in a fluid of equal packets.
//!
//! Around equilibrium, with d = q / C, p'' the mean of p' and h the step:
//!
//! ```text
//! dp'(k) = dp'(k-1) + K (dd(k) - dd(k-1) + a h (dd(k) - dT(k)))         dp = 2 p' dp', the tangent of the square
//! dp''(k) = dp''(k-1) + e (dp'(k) - dp''(k-1))                          e = 1 - exp(-h / (10 (R + T)))
//! dT(k) = -kappa dp''(k-1)       kappa = 1 / (2 p'' (1/T + 1/(2 (R + T)))): N rises with p'', and T falls with N
//! ```
//!
//! C and R are estimates of the operating point times [`EstimateRatios`]; N is what the law makes of them and of p'.
//! The gain depends on p' too, but what it multiplies is 0 at rest. Here the link never idles, so that no delay is
//! missing, in the fluid too. Packets are equal, so that signals by bytes and by a flow's rate mean nothing. The last
//! `exempt` packets are signalled too: a mean queue that switches all signals off swings for ever.
//!
//! A classic flow adds nothing to its sum for 8 steps after a signal while p' < 0.3. Of its W packets a round trip,
//! W R / (R + T) pass in that time, so that the fraction signalled is p / (1 + p W R / (R + T)).

use aqumen_units::{Probability, Span};

use alloc::string::String;

use super::{
    AVERAGE, COUPLING, Capacity, HOLD_BELOW, Law, OVERLOAD, SQRT_2, STEPS, StPi2, StPi2Params, ZERO_MIN, gain, step,
};
use crate::transfer::{difference, multiply};
use crate::{
    DesignReport, Equilibrium, EstimateRatios, FluidModel, MAX_LOOPS, Observation, QueueOperatingPoint, SampledLaw,
    TcpPlant, Theory, Transfer,
};

/// Values of the law in equilibrium.
#[derive(Clone, Copy, Debug)]
struct AtRest {
    /// Estimates of C (packets/s), R, N.
    capacity_pps: f64,
    rtt_s: f64,
    flows: f64,
    /// T.
    target_s: f64,
    /// p', and the derivative of the signalled fraction with respect to the law's probability.
    root: f64,
    slope: f64,
    /// Whether T is the least target.
    at_least: bool,
    /// K, a, h.
    gain: f64,
    zero: f64,
    step_s: f64,
}

impl StPi2 {
    fn at_rest(&self, at: &QueueOperatingPoint) -> AtRest {
        let EstimateRatios { rtt, capacity, flows } = at.estimates;
        let (capacity_pps, rtt_s) = (at.capacity_pps * capacity, at.base_rtt_s * rtt);
        let (root, slope) = law_root(at);
        let StPi2Params { sigma, b, exempt_pkts, .. } = self.params;
        let least_s = exempt_pkts / capacity_pps;
        // T and N depend on each other, T through the root of N alone.
        let (mut target_s, mut n, mut wanted) = (at.queue_pkts / capacity_pps, 1.0, 0.0);
        for _ in 0..40 {
            n = (flows * capacity_pps * (rtt_s + target_s) * root / SQRT_2).max(1.0);
            wanted = sigma * rtt_s / libm::sqrt(n);
            target_s = wanted.max(least_s);
        }
        let round_s = rtt_s + target_s;
        AtRest {
            capacity_pps,
            rtt_s,
            flows: n,
            target_s,
            root,
            slope,
            at_least: wanted <= least_s,
            gain: gain(b, capacity_pps * round_s * root * root, round_s),
            zero: (SQRT_2 * root).max(ZERO_MIN) / round_s,
            step_s: step(rtt_s).as_secs_f64(),
        }
    }

    /// Whether it marks.
    pub(crate) fn marks(&self) -> bool {
        self.params.ecn
    }

    /// The law in a fluid of packets of `packet_bytes` whose flows have the round trip `rtt_s` without queueing.
    pub(crate) fn in_fluid(&self, rtt_s: f64, packet_bytes: f64) -> FluidStPi2 {
        let law = Law { rtt_s, ..self.law };
        let params = StPi2Params { idle: 0.0, ..self.params };
        FluidStPi2 { params, law, capacity: Capacity::default(), packet_bytes }
    }
}

/// p' at which the fraction `at.probability` is signalled, and the derivative of that fraction with respect to the
/// probability of the law.
fn law_root(at: &QueueOperatingPoint) -> (f64, f64) {
    let held_pkts = at.window_pkts * at.base_rtt_s / at.rtt_s;
    let without = 1.0 - at.probability * held_pkts;
    let root = libm::sqrt(at.probability / without.max(f64::MIN_POSITIVE));
    if without > 0.0 && root < HOLD_BELOW {
        return (root, without * without);
    }
    (libm::sqrt(at.probability).max(HOLD_BELOW.min(root)), 1.0)
}

impl Theory for StPi2 {
    fn fluid_model(&self) -> FluidModel {
        FluidModel::KnownRoundTrip
    }

    fn equilibrium(&self) -> Equilibrium {
        Equilibrium::AtMeasuredTarget
    }

    fn measured_target_pkts(&self, at: &QueueOperatingPoint) -> f64 {
        // The delay is bytes over the estimated capacity.
        let rest = self.at_rest(at);
        rest.target_s * rest.capacity_pps
    }

    /// Each flow is signalled at even gaps: their number varies by less than one a flow.
    fn dispersion(&self, _p: f64) -> f64 {
        0.0
    }

    fn noise_doubt(&self) -> Option<&'static str> {
        Some("each flow is signalled at even gaps, after which windows keep in step: no model has the noise of that")
    }

    fn coupling(&self) -> Option<f64> {
        Some(COUPLING)
    }

    fn linear(&self, at: &QueueOperatingPoint) -> Option<Transfer> {
        let rest = self.at_rest(at);
        let AtRest { gain, zero, step_s: h, .. } = rest;
        let round_s = rest.rtt_s + rest.target_s;
        let e = -libm::expm1(-h / (AVERAGE * round_s));
        // dT over -dp''; none at the least target or at N = 1.
        let kappa = match rest.at_least || rest.flows <= 1.0 {
            true => 0.0,
            false => 0.5 / rest.root / (1.0 / rest.target_s + 0.5 / round_s),
        };
        let per_packet = 2.0 * rest.root * rest.slope * gain / rest.capacity_pps;
        let mean = [1.0, e - 1.0];
        Some(Transfer {
            num: multiply(&[per_packet * (1.0 + zero * h), -per_packet], &mean),
            den: difference(&multiply(&[1.0, -1.0], &mean), &[0.0, gain * zero * h * kappa * e]),
            period_s: Some(h),
        })
    }

    fn derive(&self, at: &QueueOperatingPoint, _plant: &TcpPlant, report: &mut dyn DesignReport) {
        let rest = self.at_rest(at);
        report.number("flows_estimate", rest.flows);
        report.number("target_delay_s", rest.target_s);
        report.number("root_probability", rest.root);
        report.number("K", rest.gain);
        report.number("a", rest.zero);
        report.number("period_s", rest.step_s);
        if self.params.idle > 0.0 {
            report.warn(String::from("where the link idles the law reacts to missing delay too, which this lacks"));
        }
    }

    fn equilibrium_warning(&self, at: &QueueOperatingPoint) -> Option<String> {
        let (root, _) = law_root(at);
        (root > OVERLOAD).then(|| alloc::format!("p' = {root:.3} is above {OVERLOAD}: packets are dropped, not marked"))
    }
}

/// ST-PI2 in a fluid: its law with a known round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FluidStPi2 {
    params: StPi2Params,
    law: Law,
    capacity: Capacity,
    packet_bytes: f64,
}

impl SampledLaw for FluidStPi2 {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(step(self.law.rtt_s)), None]
    }

    fn step(&mut self, _which: usize, seen: &Observation) -> Probability {
        self.capacity.update(seen, self.law.rtt_s.max(super::CAPACITY_MEMORY_S));
        let c = self.capacity.bytes_per_s();
        if c > 0.0 && seen.interval_s > 0.0 {
            self.law.step(&self.params, seen, c, self.packet_bytes);
        }
        self.signalled()
    }

    fn initial(&self) -> Probability {
        Probability::ZERO
    }
}

impl FluidStPi2 {
    /// Fraction signalled.
    fn signalled(&self) -> Probability {
        let p = self.law.probability(false);
        // Packets of a flow that pass while it is exempt: those of 8 steps.
        let per_s = self.capacity.bytes_per_s() / self.packet_bytes / self.law.flows;
        let held_pkts =
            if self.law.root < HOLD_BELOW { STEPS * step(self.law.rtt_s).as_secs_f64() * per_s } else { 0.0 };
        Probability::clamp(p / (1.0 + p * held_pkts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: QueueOperatingPoint = QueueOperatingPoint {
        flows: 20.0,
        capacity_pps: 2000.0,
        base_rtt_s: 0.1,
        rtt_s: 0.107,
        queue_pkts: 14.0,
        window_pkts: 10.7,
        probability: 0.014,
        packet_bytes: 1000.0,
        estimates: EstimateRatios::EXACT,
    };

    fn aqm() -> StPi2 {
        StPi2::new(StPi2Params { idle: 0.0, ..StPi2Params::default() }).unwrap()
    }

    #[test]
    fn the_linear_law_answers_small_changes_as_the_law_does() {
        // The law at rest, then one packet more for one step: 200 steps of p' over both ways, and of num / den.
        let rest = aqm().at_rest(&AT);
        let (c, q) = (rest.capacity_pps, rest.target_s * rest.capacity_pps);
        let answer = |height: f64| -> alloc::vec::Vec<f64> {
            let mut law = aqm().in_fluid(rest.rtt_s, 1000.0).law;
            (law.root, law.average, law.target_s, law.delay_s) = (rest.root, rest.root, rest.target_s, rest.target_s);
            let mut step = |queue: f64| {
                let seen =
                    Observation { interval_s: rest.step_s, queue_bytes: queue * 1000.0, ..Observation::default() };
                law.step(&aqm().params, &seen, c * 1000.0, 1000.0);
                2.0 * rest.root * rest.slope * (law.root - rest.root)
            };
            (0..200).map(|k| step(if k == 0 { q + height } else { q })).collect()
        };
        let (up, down) = (answer(1e-3), answer(-1e-3));
        let Transfer { num, den, .. } = aqm().linear(&AT).unwrap();
        let mut linear = alloc::vec::Vec::<f64>::new();
        for k in 0..200 {
            let past: f64 = (1..den.len().min(k + 1)).map(|j| den[j] * linear[k - j]).sum();
            linear.push(num.get(k).copied().unwrap_or(0.0) - past);
        }
        for k in 0..200 {
            let seen = (up[k] - down[k]) / 2e-3;
            assert!((seen - linear[k]).abs() <= 1e-4 * linear[0].abs(), "{k}: {seen} {}", linear[k]);
        }
    }

    #[test]
    fn gains_and_target_are_those_of_the_equations() {
        // Held packets: 10.7 of which 10 in a base round trip: 1 - .014 10 = .86, p = .014 / .86, p' = .12759.
        let rest = aqm().at_rest(&AT);
        assert!((rest.root - libm::sqrt(0.014 / 0.86)).abs() < 1e-12 && (rest.slope - 0.86 * 0.86).abs() < 1e-12);
        // N = 2000 (0.1 + T) .12759 / 1.41421 and T = .03 / sqrt N: N = 19.28, T = 6.83 ms.
        assert!((rest.target_s - 0.03 / libm::sqrt(rest.flows)).abs() < 1e-9, "{rest:?}");
        assert!((rest.flows - 19.28).abs() < 0.01 && (rest.target_s - 6.83e-3).abs() < 1e-5, "{rest:?}");
        // K = .25 sqrt(1.0625) / (sqrt 2 * .10683) = 1.7057; a = sqrt 2 * .12759 / .10683 = 1.689; h = 12.5 ms.
        assert!((rest.gain - 1.7057).abs() < 1e-3 && (rest.zero - 1.689).abs() < 2e-3 && rest.step_s == 0.0125);
    }

    #[test]
    fn wrong_estimates_move_what_depends_on_them() {
        let rest = |rtt: f64, capacity: f64, flows: f64| {
            let estimates = EstimateRatios { rtt, capacity, flows };
            aqm().at_rest(&QueueOperatingPoint { estimates, ..AT })
        };
        let exact = rest(1.0, 1.0, 1.0);
        // R half: N too, T = sigma R / sqrt N falls by sqrt 2; steps are half as long; K about doubles.
        let half = rest(0.5, 1.0, 1.0);
        assert!((half.target_s / exact.target_s * SQRT_2 - 1.0).abs() < 0.02, "{half:?}");
        assert!(half.step_s == 0.5 * exact.step_s && (1.9..2.1).contains(&(half.gain / exact.gain)));
        // N four times: T half.
        assert!((rest(1.0, 1.0, 4.0).target_s / exact.target_s - 0.5).abs() < 0.01);
        // C double: N is double; delays look half as long.
        assert!((rest(1.0, 2.0, 1.0).flows / exact.flows - 2.0).abs() < 0.1);
    }

    #[test]
    fn extremes_have_a_finite_law() {
        // One flow of one packet, p = 1; windows of 10^5, p of 10^-10.
        for (flows, window, p) in [(1.0, 1.0, 1.0), (1.0, 1e5, 1e-10)] {
            let capacity_pps = flows * window / 0.107;
            let at = QueueOperatingPoint { flows, window_pkts: window, probability: p, capacity_pps, ..AT };
            let transfer = aqm().linear(&at).unwrap();
            assert!(transfer.num.iter().chain(&transfer.den).all(|c| c.is_finite()), "{transfer:?}");
            assert!(aqm().measured_target_pkts(&at) >= 0.999);
        }
        // p' above 1/2 drops.
        let many = QueueOperatingPoint { probability: 0.4, window_pkts: 1.5, ..AT };
        assert!(aqm().equilibrium_warning(&many).unwrap().contains("dropped, not marked"));
        assert_eq!(aqm().equilibrium_warning(&AT), None);
    }
}
