//! AQMs that can attach; RED, ARED and the fixed probability in sampled form.
//!
//! The marker applies one probability to each packet independently. An algorithm with a control law computes just that.
//! RED decides packet by packet and spaces its signals. Its sampled form updates the average queue per arrival as RED
//! does, and applies the fraction of packets that RED would signal at that average.
//!
//! Deviations of the sampled RED: signals are not spaced; beyond the end of the curve ECN-capable packets are marked
//! (RED drops them); `use_mark_p`, `bytes` and Linux's spacing are ignored; ARED changes max_p at sampling instants.

use aqumen_aqm::registry::{self, AnyAqm};
use aqumen_aqm::{
    Aqm, FloydRule, MAX_LOOPS, MaxPRule, Network, Observation, RedCurve, RedParams, SampledLaw, TcpPlant, Value,
};
use aqumen_scenario::AqmSpec;
use aqumen_units::{Probability, Span};

use crate::Error;

/// Period of the sampled forms.
const PERIOD: Span = Span::from_millis(10);

/// RED, sampled periodically.
#[derive(Clone)]
struct SampledRed {
    curve: RedCurve,
    weight: f64,
    /// Packet rate at which the average decays while the link is idle, 1/s.
    link_pps: f64,
    wait: bool,
    average_pkts: f64,
    adaptation: Option<Adaptation>,
}

/// ARED: changes of max_p by the rule, at most one per interval.
#[derive(Clone)]
struct Adaptation {
    rule: FloydRule,
    interval_s: f64,
    since_s: f64,
}

#[derive(Clone)]
struct ConstantProbability(Probability);

/// Builds the AQM of `spec` for `network`, if the marker can apply it; the error names an alternative. Anti-windup is
/// on unless the specification sets it.
pub(crate) fn build(spec: &AqmSpec, network: &Network) -> Result<AnyAqm, Error> {
    const ANTI_WINDUP: &str = "anti_windup";
    let name = spec.algorithm.as_str();
    let mut values: Vec<_> = spec.values.iter().map(|(name, value)| (name.as_str(), value.as_value())).collect();
    let has_anti_windup =
        registry::find(name).is_some_and(|entry| entry.params.iter().any(|param| param.name == ANTI_WINDUP));
    if has_anti_windup && values.iter().all(|(name, _)| *name != ANTI_WINDUP) {
        values.push((ANTI_WINDUP, Value::Choice("conditional")));
    }
    let refusal = || {
        Error::setup(format!(
            "--aqm {}: {name} has no control law that a marker before the queue can apply; {}",
            spec.label,
            alternative(name)
        ))
    };
    let mut aqm = registry::build(name, &values, network)
        .ok_or_else(refusal)?
        .map_err(|error| Error::setup(format!("--aqm {}: {error}", spec.label)))?;
    let ecn = is_marking(&aqm);
    Ok(match &aqm {
        AnyAqm::Red(red) => AnyAqm::custom_law(SampledRed::new(red.params(), None), ecn),
        AnyAqm::Ared(ared) => {
            let mut interval_s = 0.5;
            ared.settings(&mut |name, value| {
                if let ("interval", Value::Number(seconds)) = (name, value) {
                    interval_s = seconds;
                }
            });
            let adaptation = Adaptation { rule: *ared.rule(), interval_s, since_s: 0.0 };
            AnyAqm::custom_law(SampledRed::new(ared.red().params(), Some(adaptation)), ecn)
        }
        AnyAqm::Fixed(fixed) => AnyAqm::custom_law(ConstantProbability(fixed.probability()), ecn),
        // Its packet rule is in the marker.
        AnyAqm::StPi2(_) => aqm,
        _ => {
            let hooks = aqm.hooks();
            if aqm.law_mut().is_none() || hooks.departures || hooks.decides_at_head {
                return Err(refusal());
            }
            aqm
        }
    })
}

/// Builds the AQM at the operating point of its design: the queue at its target, the link full, and the integral at its
/// equilibrium.
pub(crate) fn build_at_operating_point(spec: &AqmSpec, network: &Network) -> Result<AnyAqm, Error> {
    let mut aqm = build(spec, network)?;
    let (Some(law), Ok(plant)) = (aqm.law_mut(), TcpPlant::nominal(network, network.target_pkts)) else {
        return Ok(aqm);
    };
    let p = plant.operating_probability().min(1.0);
    for (which, period) in law.periods().iter().enumerate() {
        let interval_s = period.map_or(0.0, Span::as_secs_f64);
        let pkts = plant.capacity_pps() * interval_s;
        let observation = Observation {
            interval_s,
            queue_pkts: network.target_pkts,
            queue_bytes: network.target_pkts * network.packet_bytes,
            arrivals_pkts: pkts,
            accepted_pkts: pkts,
            departures_pkts: pkts,
            departures_bytes: pkts * network.packet_bytes,
            busy_s: interval_s,
            sojourn_s: network.target_pkts / plant.capacity_pps(),
            applied: Probability::clamp(p),
            ..Observation::default()
        };
        if period.is_some() && law.integral().is_some() {
            law.step(which, &observation);
            law.set_integral(p);
        }
    }
    Ok(aqm)
}

/// Whether `aqm` marks ECN-capable packets.
pub(crate) fn is_marking(aqm: &AnyAqm) -> bool {
    let mut ecn = true;
    aqm.settings(&mut |name, value| {
        if let ("ecn", Value::Flag(flag)) = (name, value) {
            ecn = flag;
        }
    });
    ecn
}

/// Alternative to an algorithm that cannot attach.
fn alternative(name: &str) -> &'static str {
    match name {
        "codel" => "use the kernel's: tc qdisc add ... codel",
        "fq-codel" => "use the kernel's: tc qdisc add ... fq_codel",
        "cobalt" | "cake" => "use the kernel's: tc qdisc add ... cake",
        "pie" => "use --aqm pie without these parameters, or the kernel's: tc qdisc add ... pie",
        "fq-pie" => "use the kernel's: tc qdisc add ... fq_pie",
        "dualpi2" => "use the kernel's: tc qdisc add ... dualpi2",
        "sfq" => "use the kernel's: tc qdisc add ... sfq",
        "drr" => "use the kernel's: tc qdisc add ... drr",
        "droptail" => "use the kernel's: tc qdisc add ... pfifo",
        "blue" => "the most similar of the kernel's is sfb",
        "ared-feng" => "use --aqm ared, or the kernel's: tc qdisc add ... red ... adaptive",
        _ => "use --aqm pi, stpi or pie, or the kernel's: tc qdisc add ... fq_codel",
    }
}

impl SampledRed {
    fn new(params: &RedParams, adaptation: Option<Adaptation>) -> Self {
        SampledRed {
            curve: params.curve,
            weight: params.weight,
            link_pps: params.link_pps,
            wait: params.wait,
            average_pkts: 0.0,
            adaptation,
        }
    }

    /// Fraction of packets that RED signals at the present average. The gap between two signals is uniform, from 1/p_b
    /// to 2/p_b packets with `wait`, from 1 to 1/p_b without.
    fn signal_fraction(&self) -> f64 {
        let base = self.curve.probability(self.average_pkts);
        if base <= 0.0 || base >= 1.0 {
            return base;
        }
        if self.wait { base / 1.5 } else { 2.0 * base / (1.0 + base) }
    }
}

impl SampledLaw for SampledRed {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(PERIOD), None]
    }

    fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
        // One update per arrival; while the link is idle, as if small packets met an empty queue.
        self.average_pkts *= (1.0 - self.weight).powf(self.link_pps * observation.idle_s);
        let decay = (1.0 - self.weight).powf(observation.arrivals_pkts);
        self.average_pkts = decay * self.average_pkts + (1.0 - decay) * observation.queue_pkts;
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.since_s += observation.interval_s;
            if adaptation.since_s > adaptation.interval_s
                && let Some(max_p) = adaptation.rule.adapt(self.average_pkts, &self.curve)
            {
                self.curve = self.curve.with_max_p(max_p);
                adaptation.since_s = 0.0;
            }
        }
        Probability::clamp(self.signal_fraction())
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("average_queue", self.average_pkts);
        visit("max_p", self.curve.max_p());
    }
}

impl SampledLaw for ConstantProbability {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(PERIOD), None]
    }

    fn step(&mut self, _which: usize, _observation: &Observation) -> Probability {
        self.0
    }

    fn initial(&self) -> Probability {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::registry::algorithms;

    use super::*;

    fn network() -> Network {
        let example = super::super::design::example(20);
        Network { flows: 40.0, base_rtt_s: 0.2, target_pkts: 100.0, packet_bytes: 1000.0, ..example }
    }

    fn from_spec(spec: &str) -> Result<AnyAqm, Error> {
        build(&AqmSpec::builtin(spec).unwrap(), &network())
    }

    #[test]
    fn every_algorithm_attaches_or_is_refused_with_the_way_out() {
        let (mut attached, mut refused) = (Vec::new(), Vec::new());
        for algorithm in algorithms() {
            match from_spec(algorithm.name) {
                Ok(_) => attached.push(algorithm.name),
                Err(error) => {
                    assert!(error.to_string().contains(algorithm.name), "{error}");
                    assert!(error.to_string().contains("kernel's"), "{error}");
                    refused.push(algorithm.name);
                }
            }
        }
        for name in [
            "pi",
            "stpi",
            "st-pi2",
            "pie",
            "pi2",
            "arm-pfc",
            "arm-pfc-adaptive",
            "stred",
            "aaqm",
            "paqm",
            "aqm-mo",
            "red",
            "ared",
        ] {
            assert!(attached.contains(&name), "{name}: {attached:?}");
        }
        for name in
            ["codel", "fq-codel", "cake", "dualpi2", "droptail", "blue", "avq", "cobalt", "sfq", "fq-pie", "ared-feng"]
        {
            assert!(refused.contains(&name), "{name}: {refused:?}");
        }
    }

    #[test]
    fn algorithms_that_decide_at_departures_are_refused() {
        assert!(from_spec("pie:delay=rate").unwrap_err().to_string().contains("without these parameters"));
        assert!(from_spec("pie-linux").is_err());
    }

    #[test]
    fn anti_windup_is_on_by_default() {
        let anti_windup = |spec: &str| {
            let mut given = None;
            from_spec(spec).unwrap().settings(&mut |name, value| {
                if let ("anti_windup", Value::Choice(word)) = (name, value) {
                    given = Some(word.to_owned());
                }
            });
            given
        };
        for name in ["pi", "stpi", "pie", "arm-pfc", "pi2", "paqm", "aqm-mo"] {
            assert_eq!(anti_windup(name).as_deref(), Some("conditional"), "{name}");
        }
        assert_eq!(anti_windup("pi:anti_windup=none").as_deref(), Some("none"));
        assert_eq!(anti_windup("red"), None);
    }

    #[test]
    fn a_law_starts_at_its_operating_point() {
        // R0 = 0.2 s + 100 packets of 2500 a second = 0.24 s; W0 = 0.24 * 2500 / 40 = 15; p0 = 2 / 225.
        for name in ["pi", "stpi", "pie", "arm-pfc", "pi2", "paqm", "aqm-mo", "stred", "aaqm"] {
            let mut aqm = build_at_operating_point(&AqmSpec::builtin(name).unwrap(), &network()).unwrap();
            let integral = aqm.law_mut().unwrap().integral().unwrap();
            assert!((integral * 225.0 / 2.0 - 1.0).abs() < 0.01, "{name}: {integral}");
        }
    }

    #[test]
    fn sampled_red_keeps_its_average_by_arrivals() {
        let red = "red:min_th=50pkt,max_th=150pkt,weight=0.002,max_p=0.1";
        let mut aqm = from_spec(red).unwrap();
        let law = aqm.law_mut().unwrap();
        // 100 arrivals meet 100 packets: (1 - 0.998^100) 100 = 18.14, also in ten samples of ten.
        let observation =
            Observation { queue_pkts: 100.0, arrivals_pkts: 10.0, interval_s: 0.01, ..Observation::default() };
        for _ in 0..10 {
            law.step(0, &observation);
        }
        let mut average = 0.0;
        law.observe(&mut |name, value| {
            if name == "average_queue" {
                average = value
            }
        });
        assert!((average - 100.0 * (1.0 - 0.998f64.powi(100))).abs() < 1e-9, "{average}");
        // Long after: average 100, p_b = 0.1 (100 - 50) / 100 = 0.05; with `wait` a signal comes every 1.5 / p_b
        // packets.
        for _ in 0..2000 {
            law.step(0, &observation);
        }
        assert!((law.step(0, &observation).get() - 0.05 / 1.5).abs() < 1e-6);
        // An idle second at 2500 packets a second: 0.998^2500 of the average is left, and nothing is signalled.
        let idle = Observation { idle_s: 1.0, interval_s: 1.0, ..Observation::default() };
        assert_eq!(law.step(0, &idle), Probability::ZERO);
    }

    #[test]
    fn sampled_ared_moves_max_p_once_an_interval() {
        let mut aqm = from_spec("ared:min_th=50pkt,max_th=150pkt,weight=1,max_p=0.1,interval=0.5s").unwrap();
        let law = aqm.law_mut().unwrap();
        let observation =
            Observation { queue_pkts: 140.0, arrivals_pkts: 10.0, interval_s: 0.1, ..Observation::default() };
        let mut max_p = 0.0;
        for _ in 0..5 {
            law.step(0, &observation);
        }
        law.observe(&mut |name, value| {
            if name == "max_p" {
                max_p = value
            }
        });
        assert_eq!(max_p, 0.1, "not before the interval has passed");
        law.step(0, &observation);
        law.observe(&mut |name, value| {
            if name == "max_p" {
                max_p = value
            }
        });
        assert!((max_p - 0.11).abs() < 1e-12, "{max_p}");
    }

    #[test]
    fn a_constant_probability_never_changes() {
        let p = Probability::clamp(0.25);
        let mut law = ConstantProbability(p);
        assert_eq!((law.initial(), law.step(0, &Observation::default())), (p, p));
        assert_eq!(law.periods(), [Some(PERIOD), None]);
    }

    #[test]
    fn refusals_name_the_kernels_own_discipline() {
        // Names as in `tc`: man tc-fq_codel and the like.
        for (name, kernels) in [
            ("codel", "codel"),
            ("fq-codel", "fq_codel"),
            ("cobalt", "cake"),
            ("cake", "cake"),
            ("fq-pie", "fq_pie"),
            ("dualpi2", "dualpi2"),
            ("sfq", "sfq"),
            ("drr", "drr"),
        ] {
            assert_eq!(alternative(name), format!("use the kernel's: tc qdisc add ... {kernels}"));
        }
        assert!(alternative("pie").ends_with(" pie") && alternative("droptail").contains("pfifo"));
        assert!(alternative("blue").ends_with(" sfb") && alternative("ared-feng").ends_with("red ... adaptive"));
    }

    /// Fraction of signals by RED at an average of 100 packets: p_b = 0.1 (100 - 50) / 100 = 0.05.
    fn fraction_of(spec: &str) -> f64 {
        let mut aqm = from_spec(&format!("red:min_th=50pkt,max_th=150pkt,weight=1,max_p=0.1,{spec}")).unwrap();
        let observation =
            Observation { queue_pkts: 100.0, arrivals_pkts: 1.0, interval_s: 0.01, ..Observation::default() };
        aqm.law_mut().unwrap().step(0, &observation).get()
    }

    #[test]
    fn without_wait_the_mean_gap_is_about_half() {
        // The gap is uniform over 1 to 1/p_b packets, 10.5 in the mean.
        assert!((fraction_of("wait=false") - 1.0 / 10.5).abs() < 1e-12, "{}", fraction_of("wait=false"));
        assert!((fraction_of("wait=true") - 1.0 / 30.0).abs() < 1e-12, "{}", fraction_of("wait=true"));
    }

    #[test]
    fn beyond_its_curve_red_signals_all_and_before_it_none() {
        let mut aqm = from_spec("red:min_th=50pkt,max_th=150pkt,weight=1,max_p=0.1,gentle=false").unwrap();
        let mut at = |queue_pkts| {
            let observation =
                Observation { queue_pkts, arrivals_pkts: 1.0, interval_s: 0.01, ..Observation::default() };
            aqm.law_mut().unwrap().step(0, &observation).get()
        };
        assert_eq!([at(49.0), at(50.0), at(200.0)], [0.0, 0.0, 1.0]);
        assert_eq!(aqm.law_mut().unwrap().periods(), [Some(Span::from_millis(10)), None]);
        let mut fixed = from_spec("fixed:p=0.25").unwrap();
        assert_eq!(fixed.law_mut().unwrap().initial().get(), 0.25);
    }

    #[test]
    fn an_aqm_marks_unless_ecn_is_off() {
        let marks = |spec: &str| is_marking(&from_spec(spec).unwrap());
        for name in ["pi", "red:min_th=50pkt,max_th=150pkt", "ared", "fixed:p=0.5"] {
            let without = format!("{name}{}ecn=false", if name.contains(':') { "," } else { ":" });
            assert!(marks(name) && !marks(&without), "{name}");
        }
    }
}
