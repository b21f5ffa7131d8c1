//! PI: a proportional-integral controller of the queue length (Hollot, Misra, Towsley, Gong 2001).
//!
//! At a fixed frequency the probability changes in proportion to the queue's error and to the change of that error. The
//! integral action drives the queue to its target for any load that some probability in [0, 1] can hold.
//!
//! ```text
//! p(k) = clamp(p(k-1) + a (q(k) - target) - b (q(k-1) - target), 0, 1)        a > b > 0
//! ```
//!
//! Deviations: without given gains, the crossover is min(z, 0.5 / R0), not z, since Hollot's rule is too fast for small
//! windows (W0 < 4). `crossover = hollot` restores it.

use aqumen_units::{Probability, Rate, Span};

use alloc::vec;

use crate::{
    Algorithm, AntiWindup, Bound, DefaultValue, DesignReport, Kind, MAX_LOOPS, Network, Observation, Param, ParamError,
    QueueOperatingPoint, Requirement, RoundTrip, SampledAqm, SampledLaw, Settings, Target, TcpPlant, Theory, Transfer,
    Unit, Value,
};

const DEFAULT_HZ: f64 = 160.0;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "pi",
    title: "PI",
    summary: "proportional-integral control of the queue length",
    reference: "Hollot, Misra, Towsley, Gong: On designing improved controllers for AQM routers supporting TCP flows, 2001",
    params: &[
        Param::positive("a", Unit::PerPacket, DESIGNED, "weight of the present error"),
        Param::positive("b", Unit::PerPacket, DESIGNED, "weight of the previous error, below a"),
        Param {
            name: "frequency",
            kind: Kind::Number { unit: Unit::Hertz, min: Bound::Inclusive(1e-3), max: Bound::Inclusive(1e6) },
            default: DefaultValue::number(DEFAULT_HZ),
            doc: "samples per second, f_s",
        },
        Param::TARGET,
        Target::DELAY,
        Param::positive(
            "capacity",
            Unit::BitsPerSecond,
            DefaultValue::Designed("the network's capacity"),
            "assumed capacity, C",
        ),
        Param::positive(
            "flows",
            Unit::One,
            DefaultValue::Designed("the network's flows"),
            "assumed number of flows, N; a low estimate is the safe one",
        ),
        Param { doc: "assumed round-trip time without queueing; a high estimate is the safe one", ..RoundTrip::RTT },
        Param {
            name: "crossover",
            kind: Kind::Choice(&["min", "hollot", "delay"]),
            default: DefaultValue::Value(Value::Choice("min")),
            doc: "design rule for the gains: crossover at the window pole z (hollot), at 0.5 / R0 (delay) or the lower (min)",
        },
        AntiWindup::PARAM,
        Param::ECN,
    ],
};

const DESIGNED: DefaultValue = DefaultValue::Designed("by the rule `crossover`");

/// PI controller in continuous time, C(s) = K (1 + s / z) / s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PiController {
    /// Integral gain, K, per packet and second.
    pub gain: f64,
    /// Zero, z, rad/s.
    pub zero: f64,
}

/// Gains of the sampled law, a > b > 0, per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PiGains {
    a: f64,
    b: f64,
}

/// Design rule for the gain crossover frequency w_g, rad/s.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Crossover {
    /// At the window pole z = 2N / (R0^2 C) (Hollot et al. 2001).
    WindowPole,
    /// At beta / R0. The phase margin is 34.8 degrees for 0.5 and 56 for 0.3; above 0.6 it nearly vanishes.
    PerDelay(f64),
    /// At the lower of the two, with beta = 0.5.
    Lower,
}

/// The law.
#[derive(Clone, Copy, Debug)]
pub struct Pi {
    gains: PiGains,
    frequency: f64,
    target: f64,
    p: Probability,
    old_queue: f64,
}

impl PiController {
    /// Controller with its zero on the window pole z = 2N / (R0^2 C) and the given crossover:
    /// K = w_g sqrt((w_g R0)^2 + 1) / k_t.
    ///
    /// ```
    /// use aqumen_aqm::{Crossover, PiController, TcpPlant};
    /// let plant = TcpPlant::new(60.0, 3750.0, 0.246).unwrap();
    /// let pi = PiController::design(&plant, Crossover::WindowPole);
    /// assert!((pi.zero - 0.5288).abs() < 1e-4);
    /// ```
    pub fn design(plant: &TcpPlant, crossover: Crossover) -> Self {
        let zero = 1.0 / plant.window_time_s();
        let rtt = plant.rtt_s();
        let w_g = match crossover {
            Crossover::WindowPole => zero,
            Crossover::PerDelay(beta) => beta / rtt,
            Crossover::Lower => zero.min(0.5 / rtt),
        };
        // Loop without the cancelled pole: k_t K exp(-s R0) / (s (s R0 + 1)).
        let x = w_g * rtt;
        PiController { gain: w_g * libm::sqrt(x * x + 1.0) / plant.gain_pkts(), zero }
    }

    /// Proportional gain, k_p = K / z, per packet.
    pub fn proportional(&self) -> f64 {
        self.gain / self.zero
    }

    /// Gains of the sampled law by the bilinear transform: a, b = K/z +- K/(2 f_s).
    pub fn sampled(&self, frequency: f64) -> Result<PiGains, ParamError> {
        let half = 0.5 * self.gain / frequency;
        PiGains::new(self.proportional() + half, self.proportional() - half)
    }
}

impl PiGains {
    /// Gains with a > b > 0.
    pub fn new(a: f64, b: f64) -> Result<Self, ParamError> {
        Param::check_positive("a", a, Unit::PerPacket)?;
        Param::check_positive("b", b, Unit::PerPacket)?;
        if a > b { Ok(PiGains { a, b }) } else { Err(ParamError::relation("a", a, "must be above b")) }
    }

    /// Weight of the present error, per packet.
    pub const fn a(&self) -> f64 {
        self.a
    }

    /// Weight of the previous error, per packet.
    pub const fn b(&self) -> f64 {
        self.b
    }

    /// Continuous-time controller of these gains at `frequency`: K = (a - b) f_s, z = 2 K / (a + b).
    pub fn continuous(&self, frequency: f64) -> PiController {
        let gain = (self.a - self.b) * frequency;
        PiController { gain, zero: 2.0 * gain / (self.a + self.b) }
    }

    /// Transfer function of the velocity form p += a e - b e_old at `frequency` steps per second.
    pub fn transfer(&self, frequency: f64) -> Transfer {
        Transfer { num: vec![self.a, -self.b], den: vec![1.0, -1.0], period_s: Some(1.0 / frequency) }
    }
}

impl Pi {
    /// The law with `gains`, sampled `frequency` times per second, for a target of `target` packets. It starts at p = 0
    /// with an empty queue.
    pub fn new(gains: PiGains, frequency: f64, target: f64) -> Self {
        Pi { gains, frequency, target, p: Probability::ZERO, old_queue: 0.0 }
    }

    /// Sets the initial probability to `p`.
    pub const fn starting_at(self, p: Probability) -> Self {
        Pi { p, ..self }
    }

    /// Changes gains and target (packets) without a jump of the probability.
    pub const fn retune(&mut self, gains: PiGains, target: f64) {
        self.gains = gains;
        self.target = target;
    }

    /// Current gains.
    pub const fn gains(&self) -> PiGains {
        self.gains
    }

    /// Target queue length, packets.
    pub const fn target_pkts(&self) -> f64 {
        self.target
    }

    /// Proportional part of p: the error times k_p = (a + b) / 2.
    fn proportional(&self) -> f64 {
        0.5 * (self.gains.a + self.gains.b) * (self.old_queue - self.target)
    }

    fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let frequency = settings.number("frequency").unwrap_or(DEFAULT_HZ);
        let network = &Network {
            capacity: settings
                .number("capacity")
                .map_or(network.capacity, |bps| Rate::from_bps(libm::round(bps).max(1.0) as u64)),
            flows: settings.number("flows").unwrap_or(network.flows),
            base_rtt_s: settings.number("rtt").unwrap_or(network.base_rtt_s),
            ..*network
        };
        let target = Target::from_settings(settings, network)?.packets(network.capacity_pps());
        let gains = match (settings.number("a"), settings.number("b")) {
            (Some(a), Some(b)) => {
                check_no_design(settings)?;
                PiGains::new(a, b)?
            }
            (None, None) => {
                let crossover = match settings.choice("crossover") {
                    Some("hollot") => Crossover::WindowPole,
                    Some("delay") => Crossover::PerDelay(0.5),
                    _ => Crossover::Lower,
                };
                let plant = TcpPlant::nominal(network, target)?;
                PiController::design(&plant, crossover).sampled(frequency).map_err(|_| {
                    ParamError::relation(
                        "frequency",
                        frequency,
                        "is too low for this network: the designed b is not above 0",
                    )
                })?
            }
            (Some(a), None) => return Err(ParamError::relation("a", a, "needs b")),
            (None, Some(b)) => return Err(ParamError::relation("b", b, "needs a")),
        };
        Ok(Pi::new(gains, frequency, target))
    }
}

/// Error if design parameters are given in addition to gains. The capacity may convert a target delay to packets.
fn check_no_design(settings: &Settings<'_>) -> Result<(), ParamError> {
    let unused = |name: &str, value: Value<'_>| {
        Err(ParamError::new(name, value, Requirement::Relation("has no effect if a and b are given")))
    };
    if let Some(rule) = settings.choice("crossover") {
        return unused("crossover", Value::Choice(rule));
    }
    for name in ["capacity", "flows", "rtt"] {
        match settings.number(name) {
            Some(_) if name == "capacity" && settings.has("target_delay") => {}
            Some(value) => return unused(name, Value::Number(value)),
            None => {}
        }
    }
    Ok(())
}

impl SampledAqm<Pi> {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        Ok(SampledAqm::with_settings(Pi::from_settings(settings, network)?, settings, network))
    }
}

impl SampledLaw for Pi {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_secs_f64(1.0 / self.frequency)), None]
    }

    fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
        let PiGains { a, b } = self.gains;
        let queue = observation.queue_pkts;
        // The velocity form with a clamped p does not wind up. The old queue advances also while p is clamped.
        self.p = Probability::clamp(self.p.get() + a * (queue - self.target) - b * (self.old_queue - self.target));
        self.old_queue = queue;
        self.p
    }

    fn initial(&self) -> Probability {
        self.p
    }

    fn integral(&self) -> Option<f64> {
        Some(self.p.get() - self.proportional())
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        self.p = Probability::clamp(p + self.proportional());
        self.p
    }

    fn take_over(&mut self, old: &Self) {
        (self.p, self.old_queue) = (old.p, old.old_queue);
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("sampled_queue", self.old_queue);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("a", Value::Number(self.gains.a));
        visit("b", Value::Number(self.gains.b));
        visit("frequency", Value::Number(self.frequency));
        visit("target", Value::Number(self.target));
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for Pi {
    fn linear(&self, _at: &QueueOperatingPoint) -> Option<Transfer> {
        Some(self.gains.transfer(1.0 / self.periods()[0]?.as_secs_f64()))
    }

    fn derive(&self, _at: &QueueOperatingPoint, _plant: &TcpPlant, report: &mut dyn DesignReport) {
        let Some(period) = self.periods()[0] else { return };
        let continuous = self.gains.continuous(1.0 / period.as_secs_f64());
        report.number("K", continuous.gain);
        report.number("z", continuous.zero);
        report.number("k_p", continuous.proportional());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal up to a relative error.
    fn assert_near(got: f64, expected: f64, relative: f64) {
        assert!((got / expected - 1.0).abs() < relative, "{got}, expected {expected}");
    }

    #[test]
    fn the_published_gains_follow_from_the_published_controller() {
        // K/z = 9.64e-6 / 0.53 = 1.818868e-5; K T/2 = 9.64e-6 / 320 = 3.0125e-8: a = 1.821880e-5, b = 1.815855e-5.
        let gains = PiController { gain: 9.64e-6, zero: 0.53 }.sampled(160.0).unwrap();
        assert_near(gains.a(), 1.821_880e-5, 1e-6);
        assert_near(gains.b(), 1.815_855e-5, 1e-6);
        let back = gains.continuous(160.0);
        assert_near(back.gain, 9.64e-6, 1e-9);
        assert_near(back.zero, 0.53, 1e-9);
    }

    #[test]
    fn hollots_rule_gives_the_published_controller() {
        // N = 60, C = 3750, R0 = 0.2 + 175/3750 = 0.246667: published as K = 9.64e-6, z = 0.53.
        let plant = TcpPlant::new(60.0, 3750.0, 0.2 + 175.0 / 3750.0).unwrap();
        let pi = PiController::design(&plant, Crossover::WindowPole);
        assert_near(pi.gain, 9.649e-6, 1e-4);
        assert_near(pi.zero, 0.5259, 1e-4);
        let gains = pi.sampled(160.0).unwrap();
        assert_near(gains.a(), 1.8377e-5, 1e-4);
        assert_near(gains.b(), 1.8317e-5, 1e-4);
    }

    #[test]
    fn the_default_crossover_is_the_lower_of_both_rules() {
        // N = 100, C = 1250, R0 = 0.28: z = 200 / (0.0784 * 1250) = 2.041 is above 0.5 / 0.28 = 1.786.
        let small_window = TcpPlant::new(100.0, 1250.0, 0.28).unwrap();
        let design = |plant, crossover| PiController::design(plant, crossover);
        assert_eq!(design(&small_window, Crossover::Lower), design(&small_window, Crossover::PerDelay(0.5)));
        // N = 60, C = 3750: z = 0.529 is below 0.5 / 0.246 = 2.03.
        let large_window = TcpPlant::new(60.0, 3750.0, 0.246).unwrap();
        assert_eq!(design(&large_window, Crossover::Lower), design(&large_window, Crossover::WindowPole));
        // Hollot's rule for the first network at 150 Hz.
        let gains = design(&small_window, Crossover::WindowPole).sampled(150.0).unwrap();
        assert_near(gains.a(), 1.082e-3, 1e-3);
        assert_near(gains.b(), 1.067e-3, 1e-3);
    }

    #[test]
    fn the_gains_printed_in_the_arm_pfc_paper_give_a_slow_controller() {
        // K = 6e-9 * 150 = 9e-7; z = 2 * 9e-7 / 1.29e-6 = 1.3953. K k_t = 9e-7 * 1071.875 = 9.6e-4 rad/s.
        let pi = PiGains::new(6.48e-7, 6.42e-7).unwrap().continuous(150.0);
        assert_near(pi.gain, 9e-7, 1e-9);
        assert_near(pi.zero, 1.395_349, 1e-6);
    }

    /// C = 1250 packets/s (10 Mbit/s, 1000 B), N = 100, base RTT 200 ms, target 100 packets.
    const NETWORK: Network = Network {
        capacity: Rate::from_bps(10_000_000),
        flows: 100.0,
        base_rtt_s: 0.2,
        target_pkts: 100.0,
        packet_bytes: 1000.0,
        link_rate: Rate::from_bps(8_000_000),
        buffer_pkts: 300.0,
    };

    fn given(values: &[(&str, Value<'_>)]) -> Result<Pi, ParamError> {
        Pi::from_settings(&Settings::check(values, ALGORITHM.params).unwrap(), &NETWORK)
    }

    #[test]
    fn a_target_delay_and_given_network_values_determine_target_and_gains() {
        let resolved = |values: &[(&str, Value<'_>)]| {
            let pi = given(values).unwrap();
            (pi.target, pi.gains.continuous(pi.frequency).zero)
        };
        // 20 ms at 1250 packets/s are 25 packets. R0 = 0.22: z = 200 / (0.0484 * 1250) = 3.306.
        let (target, zero) = resolved(&[("target_delay", Value::Number(0.02))]);
        assert_eq!(target, 25.0);
        assert_near(zero, 3.305_785, 1e-6);
        // Half of the capacity: 12.5 packets, the same R0, twice the zero; a tenth of the flows: a tenth of it.
        let (target, zero) = resolved(&[("target_delay", Value::Number(0.02)), ("capacity", Value::Number(5e6))]);
        assert_eq!(target, 12.5);
        assert_near(zero, 6.611_570, 1e-6);
        let (_, zero) = resolved(&[("target_delay", Value::Number(0.02)), ("flows", Value::Number(10.0))]);
        assert_near(zero, 0.330_578_5, 1e-6);
        // A round trip of 80 ms: R0 = 0.1, z = 200 / (0.01 * 1250) = 16.
        let (_, zero) = resolved(&[("target_delay", Value::Number(0.02)), ("rtt", Value::Number(0.08))]);
        assert_near(zero, 16.0, 1e-6);
    }

    #[test]
    fn parameters_without_effect_are_errors() {
        let gains = [("a", Value::Number(2e-5)), ("b", Value::Number(1e-5))];
        let with = |name, value| given(&[gains[0], gains[1], (name, value)]).map(|pi| pi.target);
        for name in ["flows", "rtt", "capacity"] {
            assert_eq!(with(name, Value::Number(10.0)).unwrap_err().param, name);
        }
        assert_eq!(with("crossover", Value::Choice("delay")).unwrap_err().param, "crossover");
        assert_eq!(with("target_delay", Value::Number(0.02)), Ok(25.0));
        // With a target delay the capacity has an effect.
        let both = [gains[0], gains[1], ("target_delay", Value::Number(0.02)), ("capacity", Value::Number(5e6))];
        assert_eq!(given(&both).unwrap().target, 12.5);
        let two = [("target_delay", Value::Number(0.02)), ("target", Value::Number(25.0))];
        assert_eq!(given(&two).unwrap_err().param, "target_delay");
    }

    #[test]
    fn gains_that_do_not_regulate_are_errors() {
        assert_eq!(PiGains::new(1e-5, 1e-5).unwrap_err().param, "a");
        assert_eq!(PiGains::new(1e-5, 0.0).unwrap_err().param, "b");
        assert_eq!(PiGains::new(f64::NAN, 1e-5).unwrap_err().param, "a");
    }
}
