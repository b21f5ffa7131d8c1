//! PI: a proportional-integral controller of the queue length (Hollot, Misra, Towsley, Gong 2001).
//!
//! At a fixed frequency the queue's error moves the probability: in proportion to the error's change, and, as long as
//! an error is left, further and further. The queue therefore settles at the target whatever the load, as long as some
//! probability in [0, 1] can hold it there.
//!
//! ```text
//! p(k) = clamp(p(k-1) + a (q(k) - target) - b (q(k-1) - target), 0, 1)        a > b > 0
//! ```
//!
//! Deviations: when only the network is given, the crossover is min(z, 0.5 / R0), not z: Hollot's rule is too fast for
//! small windows (W0 < 4). `crossover = hollot` restores it.

use aqumen_units::{Probability, Rate, Span};

use alloc::vec;

use crate::{
    Algorithm, AntiWindup, Bound, DefaultValue, DesignReport, Kind, MAX_LOOPS, Network, Observation, Param, ParamError,
    QueueOperatingPoint, Requirement, RoundTrip, SampledAqm, SampledLaw, Settings, Target, TcpPlant, Theory, Transfer,
    Unit, Value,
};

const DEFAULT_HZ: f64 = 160.0;

/// Its row.
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
            "capacity the design assumes, C",
        ),
        Param::positive(
            "flows",
            Unit::One,
            DefaultValue::Designed("the network's flows"),
            "flows the design assumes, N; few rather than many",
        ),
        Param {
            doc: "round-trip time without queueing that the design assumes; large rather than small",
            ..RoundTrip::RTT
        },
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

/// A PI controller in continuous time, C(s) = K (1 + s / z) / s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PiController {
    /// Integral gain, K, per packet and second.
    pub gain: f64,
    /// Zero, z, rad/s.
    pub zero: f64,
}

/// The two gains of the sampled law, a > b > 0, per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PiGains {
    a: f64,
    b: f64,
}

/// Where a design lets the open loop's gain fall to one, w_g, rad/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossover {
    /// At the window pole z = 2N / (R0^2 C) (Hollot et al. 2001).
    WindowPole,
    /// At beta / R0. 0.5 leaves a phase margin of 34.8 degrees, 0.3 leaves 56; above 0.6 it is nearly gone.
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
    /// Places the zero on the window pole z = 2N / (R0^2 C) and the crossover where `crossover` says:
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

    /// The sampled law by the bilinear transform: a, b = K/z +- K/(2 f_s).
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

    /// The controller in continuous time that these gains sample at `frequency`: K = (a - b) f_s, z = 2 K / (a + b).
    pub fn continuous(&self, frequency: f64) -> PiController {
        let gain = (self.a - self.b) * frequency;
        PiController { gain, zero: 2.0 * gain / (self.a + self.b) }
    }

    /// The velocity form p += a e - b e_old, stepped `frequency` times a second.
    pub fn transfer(&self, frequency: f64) -> Transfer {
        Transfer { num: vec![self.a, -self.b], den: vec![1.0, -1.0], period_s: Some(1.0 / frequency) }
    }
}

impl Pi {
    /// The law with `gains`, sampled `frequency` times a second, holding `target` packets. It starts from p = 0 and an
    /// empty queue.
    pub fn new(gains: PiGains, frequency: f64, target: f64) -> Self {
        Pi { gains, frequency, target, p: Probability::ZERO, old_queue: 0.0 }
    }

    /// The same from the probability `p` on.
    pub const fn starting_at(self, p: Probability) -> Self {
        Pi { p, ..self }
    }

    /// Takes other gains and another target, packets. The probability does not jump.
    pub const fn retune(&mut self, gains: PiGains, target: f64) {
        self.gains = gains;
        self.target = target;
    }

    /// The gains in force.
    pub const fn gains(&self) -> PiGains {
        self.gains
    }

    /// The target queue length, packets.
    pub const fn target_pkts(&self) -> f64 {
        self.target
    }

    /// Proportional part, which the present error adds to the integral: k_p = (a + b) / 2 for each packet.
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
                refuse_design(settings)?;
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
            (Some(a), None) => return Err(ParamError::relation("a", a, "needs b beside it")),
            (None, Some(b)) => return Err(ParamError::relation("b", b, "needs a beside it")),
        };
        Ok(Pi::new(gains, frequency, target))
    }
}

/// Given gains leave nothing to design. A capacity still says how many packets a target delay is.
fn refuse_design(settings: &Settings<'_>) -> Result<(), ParamError> {
    let idle = |name: &str, value: Value<'_>| {
        Err(ParamError::new(name, value, Requirement::Relation("has no effect beside a and b")))
    };
    if let Some(rule) = settings.choice("crossover") {
        return idle("crossover", Value::Choice(rule));
    }
    for name in ["capacity", "flows", "rtt"] {
        match settings.number(name) {
            Some(_) if name == "capacity" && settings.has("target_delay") => {}
            Some(value) => return idle(name, Value::Number(value)),
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

    fn step(&mut self, _which: usize, seen: &Observation) -> Probability {
        let PiGains { a, b } = self.gains;
        let queue = seen.queue_pkts;
        // The increment form with a clamped p cannot wind up; the old queue advances while p is clamped, too.
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

    /// Equal to the digits that are given.
    fn assert_near(got: f64, expected: f64, relative: f64) {
        assert!((got / expected - 1.0).abs() < relative, "{got}, expected {expected}");
    }

    #[test]
    fn the_classic_gains_come_from_the_classic_controller() {
        // K/z = 9.64e-6 / 0.53 = 1.818868e-5; K T/2 = 9.64e-6 / 320 = 3.0125e-8: a = 1.821880e-5, b = 1.815855e-5.
        let gains = PiController { gain: 9.64e-6, zero: 0.53 }.sampled(160.0).unwrap();
        assert_near(gains.a(), 1.821_880e-5, 1e-6);
        assert_near(gains.b(), 1.815_855e-5, 1e-6);
        let back = gains.continuous(160.0);
        assert_near(back.gain, 9.64e-6, 1e-9);
        assert_near(back.zero, 0.53, 1e-9);
    }

    #[test]
    fn hollots_rule_gives_his_published_controller() {
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
    fn the_default_never_crosses_over_faster_than_half_a_round_trip_allows() {
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
    fn the_gains_that_the_arm_pfc_paper_prints_are_a_slow_controller() {
        // K = 6e-9 * 150 = 9e-7; z = 2 * 9e-7 / 1.29e-6 = 1.3953. K k_t = 9e-7 * 1071.875 = 9.6e-4 rad/s.
        let pi = PiGains::new(6.48e-7, 6.42e-7).unwrap().continuous(150.0);
        assert_near(pi.gain, 9e-7, 1e-9);
        assert_near(pi.zero, 1.395_349, 1e-6);
    }

    /// 10 Mbit/s of 1000 B, that is C = 1250; N = 100, 200 ms, 100 packets.
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
    fn a_target_in_time_and_a_network_of_its_own_resolve_to_packets_and_gains() {
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
    fn what_has_no_effect_is_refused() {
        let gains = [("a", Value::Number(2e-5)), ("b", Value::Number(1e-5))];
        let beside = |name, value| given(&[gains[0], gains[1], (name, value)]).map(|pi| pi.target);
        for name in ["flows", "rtt", "capacity"] {
            assert_eq!(beside(name, Value::Number(10.0)).unwrap_err().param, name);
        }
        assert_eq!(beside("crossover", Value::Choice("delay")).unwrap_err().param, "crossover");
        assert_eq!(beside("target_delay", Value::Number(0.02)), Ok(25.0));
        // There the capacity says how many packets the time is.
        let both = [gains[0], gains[1], ("target_delay", Value::Number(0.02)), ("capacity", Value::Number(5e6))];
        assert_eq!(given(&both).unwrap().target, 12.5);
        let two = [("target_delay", Value::Number(0.02)), ("target", Value::Number(25.0))];
        assert_eq!(given(&two).unwrap_err().param, "target_delay");
    }

    #[test]
    fn gains_that_do_not_regulate_are_refused() {
        assert_eq!(PiGains::new(1e-5, 1e-5).unwrap_err().param, "a");
        assert_eq!(PiGains::new(1e-5, 0.0).unwrap_err().param, "b");
        assert_eq!(PiGains::new(f64::NAN, 1e-5).unwrap_err().param, "a");
    }
}
