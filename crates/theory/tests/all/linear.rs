//! The linear analysis against the laws themselves and against the nonlinear equations.

use std::f64::consts::{FRAC_PI_2, PI};

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{
    ArmPfc, ArmPfcParams, Catalogue, Crossover, MAX_LOOPS, Network as Nominal, Observation, PiController, SampledLaw,
    TcpPlant, Variant,
};
use aqumen_scenario::{AqmChoice, OwnedValue};
use aqumen_theory::fluid::{Class, Control, Fluid, Model, Network, Queue};
use aqumen_theory::linear::{
    Complex64, Controller, FrequencyResponse, Loop, OperatingPoint, Plant, closed_loop, noise, rightmost, roots,
    spectral_radius,
};
use aqumen_units::{Probability, Rate, Span};

/// The ARM-PFC paper's design point.
fn design_point(model: Model) -> OperatingPoint {
    OperatingPoint::new(model, 100.0, 1250.0, 0.0, 0.2, 100.0).unwrap()
}

fn choice(name: &str, values: &[(&str, OwnedValue)]) -> AqmChoice {
    AqmChoice {
        name: name.into(),
        values: values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        network: Nominal {
            capacity: Rate::from_bps(10_000_000),
            flows: 100.0,
            base_rtt_s: 0.2,
            target_pkts: 100.0,
            packet_bytes: 1000.0,
            link_rate: Rate::from_bps(10_000_000),
            buffer_pkts: 300.0,
        },
        catalogue: Catalogue::BUILT_IN,
    }
}

fn arm_pfc(variant: &str) -> Controller {
    let values = [
        ("h", OwnedValue::Number(7.0)),
        ("psi", OwnedValue::Number(0.83)),
        ("variant", OwnedValue::Choice(variant.into())),
    ];
    Controller::from_choice(&choice("arm-pfc", &values), &design_point(Model::Hollot)).unwrap().0
}

/// A filter's answer to an impulse.
fn impulse(controller: &Controller, samples: usize) -> Vec<f64> {
    let Controller::Sampled { num, den, .. } = controller else { panic!("not sampled") };
    let mut out: Vec<f64> = Vec::new();
    for k in 0..samples {
        let past: f64 = (1..den.len().min(k + 1)).map(|j| den[j] * out[k - j]).sum();
        out.push((num.get(k).copied().unwrap_or(0.0) - past) / den[0]);
    }
    out
}

#[test]
fn the_transfer_functions_of_arm_pfc_are_what_the_law_does() {
    let plant = TcpPlant::new(100.0, 1250.0, 0.28).unwrap();
    for (name, variant) in [("A", Variant::A), ("B", Variant::B), ("C", Variant::C)] {
        let params = ArmPfcParams { h: 7, psi: 0.83, variant, ..ArmPfcParams::new(plant, 100.0) };
        let mut law = ArmPfc::new(params).unwrap();
        let height = 1e-3;
        let p0 = params.p0.get();
        for (k, expected) in impulse(&arm_pfc(name), 60).into_iter().enumerate() {
            let queue_pkts = if k == 0 { 100.0 + height } else { 100.0 };
            let p = law.step(0, &Observation { queue_pkts, ..Observation::default() });
            let got = (p.get() - p0) / height;
            assert!((got - expected).abs() < 1e-9, "variant {name}, sample {k}: {got}, {expected}");
        }
    }
}

#[test]
fn the_sampled_loops_of_arm_pfc_have_the_poles_of_its_derivation() {
    // 50-digit arithmetic on the corrected equations: dominant poles; largest stable gain; radius for a true delay of
    // 3, 4, 5, 6, 7 samples where the model has 5.
    let cases = [
        ("A", 0.8300, 1.62, [1.21, 1.14, 0.83, 1.11, 1.17]),
        ("B", 0.8920, 2.80, [1.004, 0.927, 0.892, 0.930, 1.002]),
        ("C", 0.8300, 1.38, [1.19, 1.07, 0.83, 1.12, 1.16]),
    ];
    let at = design_point(Model::Hollot);
    for (name, pole, gain, delays) in cases {
        let controller = arm_pfc(name);
        let radius = spectral_radius(&at, &controller, 0.28).unwrap();
        assert!((radius - pole).abs() < 5e-4, "{name}: {radius}");
        let with = |factor| spectral_radius(&at, &controller.scaled(factor), 0.28).unwrap();
        assert!(
            with(gain - 0.01) < 1.0 && with(gain + 0.01) > 1.0,
            "{name}: {} {}",
            with(gain - 0.01),
            with(gain + 0.01)
        );
        for (samples, expected) in (3..).zip(delays) {
            let radius = spectral_radius(&at, &controller, 0.056 * f64::from(samples)).unwrap();
            assert!((radius - expected).abs() < 6e-3, "{name}, {samples} samples: {radius}, {expected}");
        }
    }
}

#[test]
fn frequency_response_and_poles_agree_on_where_a_sampled_loop_becomes_unstable() {
    let at = design_point(Model::Hollot);
    let plant = TcpPlant::new(100.0, 1250.0, 0.28).unwrap();
    let pi = PiController::design(&plant, Crossover::Lower);
    for frequency in [12.0, 31.7, 160.0] {
        let controller = Controller::from_pi(pi.sampled(frequency).unwrap(), frequency);
        let margins = Loop { images: 400, ..Loop::new(Plant::textbook(&at), controller.clone()) }.margins();
        let critical = margins.gain_margin.unwrap();
        let radius = spectral_radius(&at, &controller.scaled(critical), 0.28).unwrap();
        assert!((radius - 1.0).abs() < 1e-5, "{frequency} Hz: {critical} {radius}");
        assert!(margins.stable && spectral_radius(&at, &controller, 0.28).unwrap() < 1.0);
    }
}

#[test]
fn a_law_that_is_only_asked_answers_as_its_equation() {
    // The probe knows nothing of PI but what it says; the transfer function is (a - b z^-1) / (1 - z^-1).
    let at = design_point(Model::Hollot);
    let known = Controller::from_choice(&choice("pi", &[]), &at).unwrap().0;
    let (probed, probe) = Controller::probed(&choice("pi", &[]), &at).unwrap();
    assert!(probe.kept < 5, "{probe:?}");
    for w in [0.01, 0.3, 2.0, 20.0, 200.0] {
        let ratio = probed.response(w) / known.response(w);
        assert!((ratio - 1.0).norm_sqr().sqrt() < 1e-6, "at {w}: {ratio}");
    }
}

/// A probability that swings about `mean`.
#[derive(Clone)]
struct Sine {
    mean: f64,
    amplitude: f64,
    w: f64,
    period: Span,
}

impl SampledLaw for Sine {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(self.period), None]
    }

    fn step(&mut self, _which: usize, seen: &Observation) -> Probability {
        // The middle of what is held, so that holding delays nothing.
        let t = seen.now.as_secs_f64() + 0.5 * self.period.as_secs_f64();
        Probability::clamp(self.mean + self.amplitude * (self.w * t).sin())
    }

    fn initial(&self) -> Probability {
        Probability::clamp(self.mean)
    }
}

/// dq/dp at `w` of the nonlinear equations, by a swing of 1 %.
fn swing(at: &OperatingPoint, w: f64) -> Complex64 {
    let amplitude = 0.01 * at.probability;
    let law = Sine { mean: at.probability, amplitude, w, period: Span::from_micros(500) };
    let control = Control::Law(AnyAqm::custom_law(law, true));
    let class = Class { initial_window: at.window_pkts, ..Class::endless(at.model, at.flows, at.base_rtt_s, vec![0]) };
    let queue = Queue {
        initial_pkts: at.queue_pkts,
        unresponsive_pps: at.unresponsive_pps,
        ..Queue::new(at.capacity_pps, 1e6, control)
    };
    let network = Network { classes: vec![class], queues: vec![queue], sample_at_start: true };
    let mut fluid = Fluid::new(network, 0.5e-3).unwrap();
    let period = 2.0 * PI / w;
    // Ten seconds and whole periods of transient, then four periods.
    let from = (15.0 / period).ceil() * period;
    let samples = 4000;
    let mut sum = Complex64::ZERO;
    for k in 0..samples {
        let t = from + 4.0 * period * (f64::from(k) / f64::from(samples));
        fluid.advance((t * 1e9).round() as u64);
        let angle = w * fluid.now_ns() as f64 * 1e-9;
        sum += Complex64::new(angle.sin(), angle.cos()) * fluid.queue_pkts(0);
    }
    sum * 2.0 / f64::from(samples) / amplitude
}

#[test]
fn the_nonlinear_equations_answer_a_small_swing_as_the_exact_plant_says() {
    for model in [Model::Hollot, Model::Ecn, Model::Drop] {
        for unresponsive in [0.0, 250.0] {
            let at = OperatingPoint::new(model, 100.0, 1250.0, unresponsive, 0.2, 100.0).unwrap();
            let plant = Plant::exact(&at);
            for w in [0.5, 2.0, 5.0] {
                let ratio = swing(&at, w) / plant.response(w);
                let (gain, phase) = (ratio.norm_sqr().sqrt() - 1.0, ratio.im.atan2(ratio.re).to_degrees());
                assert!(gain.abs() < 1e-3 && phase.abs() < 0.5, "{model:?}, u0 {unresponsive}, {w}: {gain} {phase}");
            }
        }
    }
}

#[test]
fn rem_and_pie_answer_as_their_equations() {
    let at = design_point(Model::Ecn);
    // REM with a price that moves quickly enough to be probed.
    let values = [("gamma", OwnedValue::Number(0.02)), ("phi", OwnedValue::Number(1.01))];
    let known = Controller::from_choice(&choice("rem", &values), &at).unwrap().0;
    let (probed, _) = Controller::probed(&choice("rem", &values), &at).unwrap();
    for w in [0.01, 0.3, 2.0, 20.0] {
        let ratio = probed.response(w) / known.response(w);
        assert!((ratio - 1.0).norm_sqr().sqrt() < 1e-3, "REM at {w}: {ratio}");
    }
    // PIE at its target of 15 ms, p = 0.2 or so, not tuned down there: dp = alpha e + beta (e - e_old), e = q/C, and of
    // the packets p / (1.85 - 0.85 p) are signalled.
    let at = OperatingPoint::new(Model::Ecn, 100.0, 1250.0, 0.0, 0.2, 0.015 * 1250.0).unwrap();
    let (probed, _) = Controller::probed(&choice("pie", &[]), &at).unwrap();
    let (alpha, beta) = (0.125 / 1250.0, 1.25 / 1250.0);
    let p = 1.85 * at.probability / (1.0 + 0.85 * at.probability);
    let slope = 1.85 / ((1.85 - 0.85 * p) * (1.85 - 0.85 * p));
    let num = vec![slope * (alpha + beta), -slope * beta];
    let known = Controller::Sampled { num, den: vec![1.0, -1.0], period_s: 0.015 };
    for w in [0.01, 0.3, 2.0, 20.0] {
        let ratio = probed.response(w) / known.response(w);
        assert!((ratio - 1.0).norm_sqr().sqrt() < 1e-3, "PIE at {w}: {ratio}");
    }
}

#[test]
fn paqms_gain_margins_are_those_of_its_integrator() {
    // The integrator alone, alpha / (target Ts) = 8e-5 per packet and second, at 3750 packets/s and target 200, with a
    // delay of R + Ts before the plant (C^2 / 2N) / ((s + a) (s + b)), a = 2N / (R^2 C), b = 1 / R.
    for (base, flows) in [0.12, 0.24].into_iter().flat_map(|base| [40.0, 60.0, 126.0, 378.0].map(|flows| (base, flows)))
    {
        let at = OperatingPoint::new(Model::Hollot, flows, 3750.0, 0.0, base, 200.0).unwrap();
        let rtt_s = base + 200.0 / 3750.0;
        let (a, b) = (2.0 * flows / (rtt_s * rtt_s * 3750.0), 1.0 / rtt_s);
        // A quarter turn is left to the two poles and the delay; the integrator has taken the other.
        let (mut low, mut high) = (0.0, 1e3);
        for _ in 0..100 {
            let w: f64 = 0.5 * (low + high);
            let turned = (w / a).atan() + (w / b).atan() + w * (rtt_s + 0.05);
            if turned < 0.5 * PI { low = w } else { high = w }
        }
        let expected = low * low.hypot(a) * low.hypot(b) / (8e-5 * 3750.0 * 3750.0 / (2.0 * flows));
        let plant = Plant::textbook(&at).with_delay(at.rtt_s + 0.05);
        let integrator = Controller::Continuous { num: vec![8e-5], den: vec![0.0, 1.0] };
        let margins = Loop::new(plant, integrator).margins();
        let margin = margins.gain_margin.unwrap();
        assert!((margin / expected - 1.0).abs() < 1e-6, "{base} s, {flows}: {margin}, expected {expected}");
        assert!((margins.phase_crossover_rad_s.unwrap() / low - 1.0).abs() < 1e-6, "{base} s, {flows}: {margins:?}");
    }
}

/// Whether the loop is stable with the textbook's plant: by its margins, and by its poles.
fn verdicts(at: &OperatingPoint, controller: &Controller) -> (bool, f64) {
    let margins = Loop { images: 12, ..Loop::new(Plant::textbook(at), controller.clone()) }.margins();
    (margins.stable, spectral_radius(at, controller, at.rtt_s).unwrap())
}

#[test]
fn a_verdict_is_that_of_the_poles_whatever_the_controller() {
    // 231 networks around the one that each controller was made for: A and C have poles of their
    // own outside the circle in most.
    for name in ["A", "B", "C"] {
        let controller = arm_pfc(name);
        let (mut stable_cells, mut unstable_cells) = (0, 0);
        for i in 0..21 {
            for j in 0..11 {
                let (flows, base) = (25.0 * 1.16f64.powi(i), 0.1 * 1.15f64.powi(j));
                let at = OperatingPoint::new(Model::Hollot, flows, 1250.0, 0.0, base, 100.0).unwrap();
                let (stable, radius) = verdicts(&at, &controller);
                assert!(
                    (radius - 1.0).abs() < 5e-4 || stable == (radius < 1.0),
                    "{name}, N {flows}, {base} s: {radius}"
                );
                *(if stable { &mut stable_cells } else { &mut unstable_cells }) += 1;
            }
        }
        assert!(stable_cells > 3 && unstable_cells > 20, "{name}: {stable_cells} {unstable_cells}");
    }
}

#[test]
fn both_ends_of_the_stable_gains_are_where_a_pole_crosses() {
    // Variant A with its own poles outside the circle: stable with enough gain alone.
    let at = design_point(Model::Hollot);
    let mut conditional = 0;
    for (name, flows) in [("A", 100.0), ("C", 100.0), ("B", 100.0), ("A", 95.0), ("C", 110.0)] {
        let at = OperatingPoint { ..OperatingPoint::new(at.model, flows, 1250.0, 0.0, 0.2, 100.0).unwrap() };
        let controller = arm_pfc(name);
        let margins = Loop { images: 400, ..Loop::new(Plant::textbook(&at), controller.clone()) }.margins();
        let radius = |gain: f64| spectral_radius(&at, &controller.scaled(gain), at.rtt_s).unwrap();
        let high = margins.gain_margin.unwrap();
        assert_eq!(margins.stable, radius(1.0) < 1.0, "{name} {flows}: {margins:?}");
        assert_eq!(margins.stable, margins.gain_margin_low.unwrap_or(0.0) < 1.0 && high > 1.0, "{margins:?}");
        assert!(radius(0.999 * high) < 1.0 && radius(1.001 * high) > 1.0, "{name} {flows}: {margins:?}");
        if let Some(low) = margins.gain_margin_low {
            assert!(radius(1.001 * low) < 1.0 && radius(0.999 * low) > 1.0, "{name} {flows}: {margins:?}");
            conditional += 1;
        }
    }
    assert!(conditional > 0);
}

#[test]
fn no_margin_contradicts_its_verdict() {
    // A double integrator with lead, P K (1 + s/z) / s^2: stable in no gain that a delay leaves without phase.
    for flows in [12.0, 25.0, 50.0, 100.0, 200.0] {
        for (num, den) in [(vec![1e-6, 1e-5], vec![0.0, 0.0, 1.0]), (vec![1e-5, 2e-5], vec![0.0, 1.0])] {
            for gain in [0.01, 0.1, 1.0, 10.0, 1000.0] {
                let at = OperatingPoint::new(Model::Hollot, flows, 1250.0, 0.0, 0.2, 100.0).unwrap();
                let controller = Controller::Continuous { num: num.clone(), den: den.clone() }.scaled(gain);
                let margins = Loop::new(Plant::exact(&at), controller).margins();
                assert_eq!(margins.stable, margins.unstable_poles == 0);
                assert_eq!(margins.stable, margins.modulus_margin > 0.0, "{margins:?}");
                if let Some(phase) = margins.phase_margin_deg {
                    assert_eq!(margins.stable, phase > 0.0, "{margins:?}");
                }
                let inside = margins.gain_margin.is_none_or(|high| high > 1.0)
                    && margins.gain_margin_low.is_none_or(|low| low < 1.0);
                assert!(inside == margins.stable || margins.gain_margin.is_none() && !margins.stable, "{margins:?}");
                assert!(margins.stable || margins.delay_margin_s.is_none());
            }
        }
    }
}

#[test]
fn two_integrators_need_the_lead_to_come_before_the_lag() {
    // C(s) = K (1 + s/z) / s^2 before a plant of phase -atan(tau1 w) - atan(tau2 w) - w R: at small w the angle of L is
    // -180 + (1/z - tau1 - tau2 - R) w, so that a small gain is stable just when 1/z > tau1 + tau2 +
    // R = .28 + .49 + .28 = 1.05 s.
    let at = design_point(Model::Hollot);
    for (zero_s, stable) in [(1.2, true), (1.06, true), (1.04, false), (0.5, false)] {
        let num = vec![1e-9, 1e-9 * zero_s];
        let controller = Controller::Continuous { num, den: vec![0.0, 0.0, 1.0] };
        let margins = Loop::new(Plant::textbook(&at), controller).margins();
        assert_eq!(margins.stable, stable, "{zero_s}: {margins:?}");
        assert_eq!(margins.unstable_poles, if stable { 0 } else { 2 });
    }
}

#[test]
fn a_law_with_a_slow_filter_is_told_by_few_coefficients() {
    // ST-ARM-PFC's estimates take 5 and 10 s, 180 of its samples and more: its answer ends after thousands.
    let at = design_point(Model::Hollot);
    for (name, most) in [("st-arm-pfc", 200), ("stred", 10), ("stpi", 10)] {
        let (Controller::Sampled { num, den, .. }, _) = Controller::probed(&choice(name, &[]), &at).unwrap() else {
            panic!("{name} is sampled")
        };
        assert!(num.len() <= most && den.len() < 6, "{name}: {} {den:?}", num.len());
    }
    // STRED at rest is a slope over an average: at rest its gain is p_max / (max_th - min_th) = 4 L^2 / (T_d C).
    let (stred, _) = Controller::probed(&choice("stred", &[]), &at).unwrap();
    let Controller::Sampled { num, den, .. } = &stred else { panic!("not sampled") };
    let pole = -den[1] - 1.0;
    assert!((0.9..1.0).contains(&pole), "{den:?}");
    assert!(num.iter().sum::<f64>() > 0.0);
}

#[test]
fn the_rightmost_root_is_the_largest_pole_of_the_sampled_loop() {
    let pi = PiController::design(&TcpPlant::new(100.0, 1250.0, 0.28).unwrap(), Crossover::Lower);
    let repaired = Controller::from_choice(&choice("arm-pfc", &[]), &design_point(Model::Hollot)).unwrap().0;
    for (flows, base) in [(60.0, 0.2), (160.0, 0.2), (8.0, 0.05), (20.0, 0.6), (3.0, 0.01)] {
        let at = OperatingPoint::new(Model::Hollot, flows, 1250.0, 0.0, base, 100.0).unwrap();
        for (name, controller) in [
            ("arm-pfc", repaired.clone()),
            ("A", arm_pfc("A")),
            ("B", arm_pfc("B")),
            ("C", arm_pfc("C")),
            ("pi", Controller::from_pi(pi.sampled(50.0).unwrap(), 50.0)),
        ] {
            for gain in [0.1, 0.5, 1.0, 4.0] {
                let controller = controller.scaled(gain);
                let radius = spectral_radius(&at, &controller, at.rtt_s).unwrap();
                let root = rightmost(&Loop::new(Plant::textbook(&at), controller.clone())).unwrap();
                let found = (root.re * controller.period_s().unwrap()).exp();
                let case = format!("{name}, N {flows}, {base} s, gain {gain}: {root}");
                assert!((found - radius).abs() < 3e-3, "{case}, {found} {radius}");
                // And swings as that pole turns.
                let poles = roots(&closed_loop(&at, &controller, at.rtt_s).unwrap());
                let largest = poles.iter().max_by(|a, b| a.norm_sqr().total_cmp(&b.norm_sqr())).unwrap();
                let turns = largest.im.abs().atan2(largest.re) / controller.period_s().unwrap();
                assert!((root.im - turns).abs() < 0.03, "{case}, {turns}");
            }
        }
    }
}

#[test]
fn the_rightmost_root_of_a_delay_equation_is_lamberts() {
    // y' = -k y(t - 1): a plant of two poles at -1, which the controller's zeros cancel; the other roots are those of
    // s + k e^-s: W(-k). For k = 1 -0.318132 +- 1.337236 j; for k = pi / 2 +- j pi / 2.
    let plant = Plant {
        now: [[-1.0, 0.0], [1.0, -1.0]],
        delayed: [[0.0; 2]; 2],
        input_now: [0.0; 2],
        input_delayed: [-1.0, 0.0],
        delay_s: 1.0,
    };
    let root_of = |k: f64, delay_s: f64| {
        let controller = Controller::Continuous { num: vec![k, 2.0 * k, k], den: vec![0.0, 1.0] };
        rightmost(&Loop::new(Plant { delay_s, ..plant }, controller))
    };
    for (k, re, im) in [(1.0, -0.318_132, 1.337_236), (FRAC_PI_2, 0.0, FRAC_PI_2)] {
        let root = root_of(k, 1.0).unwrap();
        assert!((root.re - re).abs() < 1e-4 && (root.im - im).abs() < 1e-4, "{k}: {root}");
    }
    // Below 1/e it does not swing: s = -k e^-s by repetition.
    for k in [0.05, 0.2, 0.36] {
        let real = (0..5000).fold(-k, |s: f64, _| -k * (-s).exp());
        let root = root_of(k, 1.0).unwrap();
        assert!((root.re - real).abs() < 2e-3 && root.im.abs() < 1e-2, "{k}: {root} {real}");
    }
    // At 1/e two roots meet at -1.
    let double = root_of((-1.0f64).exp(), 1.0).unwrap();
    assert!((double + 1.0).l1_norm() < 2e-2, "{double}");
    // Beyond it s + ln s = ln k + j pi by repetition, up to 64 inverse round trips to the right: 49.064 + 3.081 j of
    // k = 1e23. Of 1e32 the real part would be 69.4.
    for k in [3.0_f64, 20.0, 1e4, 1e8, 1e12, 1e16, 1e20, 1e23, 1e27] {
        let log = |s: Complex64| Complex64::new(s.re.hypot(s.im).ln(), s.im.atan2(s.re));
        let known = (0..200).fold(Complex64::ONE, |s, _| Complex64::new(k.ln(), PI) - log(s));
        let root = root_of(k, 1.0).unwrap();
        assert!((root - known).l1_norm() < 1e-6, "{k}: {root} {known}");
    }
    assert_eq!(root_of(1e32, 1.0), None);
    // Twice the delay at half the gain is the same in half the time's units.
    let (one, other) = (root_of(1.0, 1.0).unwrap(), root_of(0.5, 2.0).unwrap());
    assert!((one - 2.0 * other).l1_norm() < 1e-3, "{one} {other}");
    // Too far to the left or to the right nothing is looked for.
    assert!(root_of(1e40, 1.0).is_none());
}

#[test]
fn a_loop_that_is_lost_without_a_swing_is_lost_at_rest_or_at_half_the_sampling_frequency() {
    // A push the wrong way round: 1 - k (-dq/dp) at rest.
    let at = design_point(Model::Hollot);
    let plant = Plant::exact(&at);
    let most = -1.0 / plant.dc_gain();
    for (share, poles) in [(0.5, 0), (1.5, 1)] {
        let wrong = Controller::Continuous { num: vec![-share * most], den: vec![1.0] };
        let margins = Loop::new(plant, wrong).margins();
        assert_eq!((margins.stable, margins.unstable_poles), (poles == 0, poles), "{share}: {margins:?}");
        assert!((margins.gain_margin.unwrap() * share - 1.0).abs() < 1e-6, "{margins:?}");
        assert_eq!(margins.phase_crossover_rad_s, Some(0.0), "{margins:?}");
    }
    // A controller that runs away by itself, s = .01, until the queue's answer at rest outweighs it.
    for (share, poles) in [(0.5, 1), (1.5, 0)] {
        let runaway = Controller::Continuous { num: vec![share * most], den: vec![-1.0, 100.0] };
        let margins = Loop::new(plant, runaway).margins();
        assert_eq!((margins.stable, margins.unstable_poles), (poles == 0, poles), "{share}: {margins:?}");
        assert!((margins.gain_margin_low.unwrap() * share - 1.0).abs() < 1e-6, "{margins:?}");
        assert!(margins.gain_margin.unwrap() * share > 2.0, "{margins:?}");
    }
    // A plant that has answered in full when the next sample is taken: z^-1 g / (1 - z^-1), g = num / 4, whose pole
    // 1 - g leaves at -1, where g is 2.
    let slow = OperatingPoint::new(Model::Hollot, 1.0, 1.0, 0.0, 1.0, 0.0).unwrap();
    for (num, stable) in [(2.0, true), (7.5, true), (8.5, false)] {
        let controller = Controller::Sampled { num: vec![num], den: vec![1.0, -1.0], period_s: 100.0 };
        assert!((spectral_radius(&slow, &controller, 0.0).unwrap() - (1.0f64 - num / 4.0).abs()).abs() < 1e-6);
        let margins = Loop { images: 400, ..Loop::new(Plant::textbook(&slow).with_delay(1e-3), controller) }.margins();
        assert_eq!(margins.stable, stable, "{num}: {margins:?}");
        assert_eq!(margins.unstable_poles, u32::from(!stable), "{num}: {margins:?}");
        assert!((margins.gain_margin.unwrap() * num / 8.0 - 1.0).abs() < 0.02, "{num}: {margins:?}");
    }
}

/// Two coupled neurons around zero, from a21 to what comes back (Shayer and Campbell 2000; DDE-BIFTOOL's demo `neuron`,
/// kappa = .5, beta = -1, a12 = 1, tau1 = tau2 = .2, tau_s = 1.5): a12 e^(-.4 s) / (s + kappa - beta e^(-tau_s s))^2.
struct Neurons;

impl FrequencyResponse for Neurons {
    fn response(&self, w: f64) -> Complex64 {
        let (s, late) = (Complex64::new(0.0, w), |delay: f64| Complex64::new((w * delay).cos(), -(w * delay).sin()));
        let one = s + 0.5 + late(1.5);
        late(0.4) / (one * one)
    }

    fn dc_gain(&self) -> f64 {
        1.0 / (1.5 * 1.5)
    }

    fn delay_s(&self) -> f64 {
        1.5
    }
}

#[test]
fn the_first_hopf_point_of_coupled_neurons_is_where_dde_biftool_prints_it() {
    // Its demo1_hopf: `parameter: [0.5 -1 1 0.80712 0.2 0.2 1.5]`, `omega: 0.78197`. Its demo1_normalforms: where a21
    // is zero the frequency at which it swings by itself is .8660253, beyond a tau_s of 2.4184.
    for a21 in [0.5, 0.8, 0.81, 2.0] {
        let static_gain = Controller::Continuous { num: vec![a21], den: vec![1.0] };
        let margins = Loop::new(Neurons, static_gain).margins();
        assert_eq!((margins.stable, margins.unstable_poles), (a21 < 0.80712, if a21 < 0.80712 { 0 } else { 2 }));
        assert!((margins.gain_margin.unwrap() * a21 - 0.80712).abs() < 1e-5, "{margins:?}");
        assert!((margins.phase_crossover_rad_s.unwrap() - 0.78197).abs() < 1e-5, "{margins:?}");
    }
}

#[test]
fn aqm_mo_for_few_flows_has_the_roots_that_another_solver_found() {
    // Designed for 100 flows, at 12: +1.85 +- 3.57 j (spectral discretisation elsewhere,
    // textbook plant or exact alike).
    let at = OperatingPoint::new(Model::Hollot, 12.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
    let controller = Controller::from_choice(&choice("aqm-mo", &[]), &at).unwrap().0;
    let roots = [Plant::exact(&at), Plant::textbook(&at)]
        .map(|plant| rightmost(&Loop::new(plant, controller.clone())).unwrap());
    assert!(roots.iter().any(|root| (root.re - 1.85).abs() < 0.02 && (root.im - 3.57).abs() < 0.02), "{roots:?}");
}

/// Rescales a controller to a world where all takes `times` as long.
fn slowed(controller: &Controller, times: f64) -> Controller {
    let powers = |c: &[f64]| c.iter().enumerate().map(|(k, c)| c * times.powi(k as i32)).collect();
    match controller {
        Controller::Sampled { num, den, period_s } => {
            Controller::Sampled { num: num.clone(), den: den.clone(), period_s: period_s * times }
        }
        Controller::Continuous { num, den } => Controller::Continuous { num: powers(num), den: powers(den) },
    }
}

#[test]
fn in_slow_motion_a_loop_has_the_same_margins_and_takes_as_many_times_as_long() {
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b.abs(), "{a} {b}");
    let design = PiController::design(&TcpPlant::new(100.0, 1250.0, 0.28).unwrap(), Crossover::PerDelay(0.5));
    let lagging = Controller::Continuous { num: vec![1e-4], den: vec![0.02, 1.0] };
    let sampled = Controller::from_pi(design.sampled(25.0).unwrap(), 25.0);
    for controller in [Controller::from_continuous_pi(design), lagging, sampled.clone(), sampled.scaled(4.0)] {
        for model in [Model::Hollot, Model::Ecn, Model::Reno] {
            let told = |times: f64| {
                let at = OperatingPoint::new(model, 100.0, 1250.0 / times, 125.0 / times, 0.2 * times, 100.0).unwrap();
                let closed = Loop::new(Plant::exact(&at), slowed(&controller, times));
                let mut poles = closed.plant.dominant_poles();
                poles.sort_by(|a, b| a.re.total_cmp(&b.re).then(a.im.total_cmp(&b.im)));
                let deviation = noise::deviation(&closed, &at, noise::Fineness::COARSE);
                (closed.margins(), rightmost(&closed), deviation, poles)
            };
            let (known, root, deviation, poles) = told(1.0);
            for times in [1e3, 1e-3] {
                let (margins, slow, same, slowly) = told(times);
                assert!(slowly.len() == poles.len() && poles.len() >= 2, "{slowly:?} {poles:?}");
                let all = slowly.iter().zip(&poles);
                assert!(
                    all.clone().all(|(a, b)| (a * times - b).l1_norm() < 1e-6 * b.l1_norm()),
                    "{slowly:?} {poles:?}"
                );
                assert_eq!((margins.stable, margins.unstable_poles), (known.stable, known.unstable_poles));
                near(margins.modulus_margin, known.modulus_margin);
                near(same, deviation);
                for (one, other, by) in [
                    (margins.gain_margin, known.gain_margin, 1.0),
                    (margins.phase_margin_deg, known.phase_margin_deg, 1.0),
                    (margins.delay_margin_s, known.delay_margin_s, times),
                    (margins.crossover_rad_s, known.crossover_rad_s, 1.0 / times),
                    (margins.phase_crossover_rad_s, known.phase_crossover_rad_s, 1.0 / times),
                    (slow.map(|root| root.re), root.map(|root| root.re), 1.0 / times),
                    (slow.map(|root| root.im + 1.0 / times), root.map(|root| root.im + 1.0), 1.0 / times),
                ] {
                    assert_eq!(one.is_some(), other.is_some(), "{margins:?} {known:?}");
                    one.zip(other).iter().for_each(|(one, other)| near(*one, by * other));
                }
            }
        }
    }
}
