//! Design: the gains that an algorithm gives itself for a network, and what the linear analysis says of them there.
//!
//! The rules themselves stand beside their laws in `aqumen-aqm`; [`analyse`] shows their result, closes the loop, and warns
//! where a design is outside the range in which its theory holds.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Kind, PieLaw, Red, RedParams, SampledLaw, TcpPlant, Unit, Value};
use aqumen_scenario::AqmChoice;
use indexmap::IndexMap;
use serde::Serialize;

use crate::Error;
use crate::fluid::{Model, RedLaw, Share};
use crate::linear::{Controller, Loop, Margins, OperatingPoint, Plant, Resolution, noise, rightmost, spectral_radius};
use crate::maps;

/// The network in which a design is to work; it need not be the one it was made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The fluid model.
    pub model: Model,
    /// Number of long-lived flows, N.
    pub flows: f64,
    /// Capacity, C, packets/s.
    pub capacity_pps: f64,
    /// Traffic that ignores signals, u0, packets/s.
    pub unresponsive_pps: f64,
    /// Round-trip time without queueing, T_p, seconds.
    pub base_rtt_s: f64,
    /// Room of the queue, packets.
    pub buffer_pkts: f64,
}

/// A quantity of a design.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Gain {
    /// A number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A word.
    Choice(String),
    /// Several numbers.
    List(Vec<f64>),
}

/// What the linear analysis says of an AQM at a place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Name of the algorithm.
    pub aqm: String,
    /// Parameters in force and what follows from them, by the symbols of their source.
    pub gains: IndexMap<String, Gain>,
    /// Margins; null for an AQM that is no linear controller.
    pub margins: Option<LoopMargins>,
    /// Where it is to hold the queue.
    pub operating_point: Point,
    /// What is to be seen in a run.
    pub expected: Expected,
    /// How far packets move the queue around its rest.
    pub noise: Noise,
    /// What speaks against the design here.
    pub warnings: Vec<String>,
}

/// Margins of the loop with the textbook's plant, which the design rules shape; beside them those with the exact plant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoopMargins {
    /// With the textbook's plant.
    #[serde(flatten)]
    pub textbook: Margins,
    /// With the exact linearisation of the fluid model.
    pub exact: Margins,
    /// Largest pole of the sampled loop with the textbook's plant; null for a controller that is not sampled.
    pub spectral_radius: Option<f64>,
    /// Rightmost root with the exact plant, real and imaginary part, 1/s; of a sampled loop ln z / T.
    pub rightmost_root: Option<[f64; 2]>,
    /// How the controller was found: `equation` or `probe`.
    pub controller: &'static str,
}

/// The operating point, and the plant's constants there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The equilibrium.
    #[serde(flatten)]
    pub at: OperatingPoint,
    /// Load, L = 1 / W0.
    pub load: f64,
    /// Plant gain at rest, k_t, packets per unit of probability.
    pub gain_pkts: f64,
    /// Time constants of queue and window, tau1 and tau2, seconds.
    pub time_constants_s: [f64; 2],
}

/// What is to be seen in a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// Mean queue, packets.
    pub queue_pkts: f64,
    /// Steady-state offset from the target, packets; null without a target.
    pub offset_pkts: Option<f64>,
    /// Share of the packets that are marked or lost.
    pub probability: f64,
    /// Period of the oscillation that is to be expected, seconds, from a run of the nonlinear equations where there is one, else
    /// from where the phase is -180 degrees; null for a stable loop.
    pub oscillation_period_s: Option<f64>,
    /// Standard deviation of the queue in that oscillation, packets, from a run of the nonlinear equations; a sine swings by
    /// 1.41 times as much to either side.
    pub oscillation_std_pkts: Option<f64>,
}

/// What packets do around the rest, of Reno's windows under random marks (model `reno`, whatever the model of the margins).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Noise {
    /// Whether the figures hold.
    pub valid: bool,
    /// Why they do not.
    pub why: Option<String>,
    /// Mean window, packets, and share of the packets that is signalled at rest.
    pub window_pkts: Option<f64>,
    /// Share of the packets that is signalled.
    pub probability: Option<f64>,
    /// Standard deviation of the queue, packets.
    pub queue_std_pkts: Option<f64>,
    /// Root of the mean square of its distance from the target, packets.
    pub qacd_pkts: Option<f64>,
    /// The length that it stays below for 95 % of the time, packets.
    pub queue_p95_pkts: Option<f64>,
    /// Share of the capacity that is lost while it is empty.
    pub utilization_lost: Option<f64>,
}

/// The 95th percentile of a normal variable in its deviations.
pub(crate) const Z95: f64 = 1.644_853_626_951_472_6;
/// Deviations in shares of the mean above which the queue runs empty too often for a linear answer.
const DEVIATION_MAX: f64 = 0.5;
/// Windows below this are time-outs' more than halvings'.
const WINDOW_MIN: f64 = 2.0;

/// Gain margin that a suggested gain is to leave.
const STABLE_GAIN_MARGIN: f64 = 3.0;
/// Windows below this hardly ever repair a loss without a time-out: three duplicate acknowledgements need four packets.
const WINDOW_OF_TIMEOUTS: f64 = 4.0;

/// The point where `choice` lets the queue come to rest at `place`, and its controller there, if it has one.
pub fn linearise(choice: &AqmChoice, place: &Place) -> Result<(OperatingPoint, Option<Controller>), Error> {
    let (at, built) = at_rest(choice, place)?;
    Ok((at, Controller::of_built(&built, choice, &at).map(|(controller, _)| controller)))
}

/// The point where `choice` lets the queue come to rest at `place`, and the AQM as it acts there.
fn at_rest(choice: &AqmChoice, place: &Place) -> Result<(OperatingPoint, AnyAqm), Error> {
    let built = build(choice)?;
    let target = target_pkts(choice, &settings(&built), place);
    let built = settled(built, place)?;
    Ok((rest(&built, place, target)?, built))
}

/// Steps of the nonlinear equations that the height of a limit cycle may take: about a second. It is left out where it takes more.
const STEPS_MAX: f64 = 1e7;

/// What the linear analysis says of `choice`, designed for the network it carries, at `place`.
pub fn analyse(choice: &AqmChoice, place: &Place) -> Result<Analysis, Error> {
    analyse_to(Depth::Loop, choice, place)
}

/// How far an analysis goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Where the queue comes to rest: microseconds.
    Rest,
    /// The loop around it too, and the height of its limit cycle, for which nonlinear equations run: up to seconds.
    Loop,
}

/// As [`analyse`], and no further than `depth`: without the loop there are no margins and no oscillation.
pub fn analyse_to(depth: Depth, choice: &AqmChoice, place: &Place) -> Result<Analysis, Error> {
    let built = build(choice)?;
    let mut gains = settings(&built);
    let target = target_pkts(choice, &gains, place);
    let mut warnings = Vec::new();
    let adaptive = matches!(built, AnyAqm::Ared(_));
    let mut built = settled(built, place)?;
    if let (true, AnyAqm::Red(red)) = (adaptive, &built) {
        gains.insert("max_p_at_rest".into(), Gain::Number(red.params().curve.max_p()));
    }
    let at = rest(&built, place, target)?;
    let plant = plant_of(&at)?;
    derived(&built, &at, &plant, &mut gains, &mut warnings);

    let controller = match depth {
        Depth::Rest => None,
        Depth::Loop => Controller::of_built(&built, choice, &at),
    };
    let closed = controller.map(|(controller, probe)| (Loop::new(Plant::exact(&at), controller), probe));
    let margins = closed.as_ref().map(|(closed, probe)| LoopMargins {
        textbook: Loop::new(Plant::textbook(&at), closed.controller.clone()).margins(),
        exact: closed.margins(),
        spectral_radius: spectral_radius(&at, &closed.controller, at.rtt_s),
        rightmost_root: rightmost(closed).map(|root| [root.re, root.im]),
        controller: if probe.is_some() { "probe" } else { "equation" },
    });
    if let (AnyAqm::Paqm(_), Some(Gain::Number(alpha)), Some(gain)) =
        (&built, gains.get("alpha"), margins.as_ref().and_then(|margins| margins.exact.gain_margin))
    {
        // The margin goes as 1 / alpha.
        gains.insert("alpha_stable".into(), Gain::Number(alpha * gain / STABLE_GAIN_MARGIN));
    }
    let mut expected = expect(&at, place, target, margins.as_ref());
    if let Some(period) = expected.oscillation_period_s {
        // Long enough for the start to be over, of which the last third is looked at.
        let duration = (60.0 * period).clamp(60.0, 600.0);
        if maps::check_steps(&mut built, place, duration) <= STEPS_MAX {
            let cycle = maps::cycle(choice, place, duration)?;
            expected.oscillation_std_pkts = Some(cycle.std_pkts);
            // The linear period is that of a small swing at the boundary of stability.
            expected.oscillation_period_s = cycle.period_s.or(Some(period));
        }
    }
    warn(&at, place, target, (margins.as_ref(), &expected), &built, &mut warnings);
    let noise = match place.model {
        _ if depth == Depth::Rest => no_noise("the loop was not asked for".into()),
        Model::Reno => {
            let stable = margins.as_ref().is_some_and(|margins| margins.exact.stable);
            noise_around(place, target, at, closed.as_ref().map(|(closed, _)| (stable, closed)))
        }
        _ => noise_of_reno(choice, place, target),
    };
    let operating_point = Point {
        at,
        load: plant.load(),
        gain_pkts: plant.gain_pkts(),
        time_constants_s: [plant.queue_time_s(), plant.window_time_s()],
    };
    Ok(Analysis { aqm: choice.name.clone(), gains, margins, operating_point, expected, noise, warnings })
}

/// [`noise_around`] at the place as Reno's windows have it.
fn noise_of_reno(choice: &AqmChoice, place: &Place, target: Option<f64>) -> Noise {
    if place.model == Model::Drop {
        return no_noise("signals are losses: time-outs rule, which the models do not have".into());
    }
    let place = Place { model: Model::Reno, ..*place };
    let (at, controller) = match linearise(choice, &place) {
        Ok(found) => found,
        Err(error) => return no_noise(error.to_string()),
    };
    let closed = controller.map(|controller| Loop::new(Plant::exact(&at), controller));
    let stable = closed.as_ref().is_some_and(|closed| closed.margins_at(Resolution::COARSE).stable);
    noise_around(&place, target, at, closed.as_ref().map(|closed| (stable, closed)))
}

fn no_noise(why: String) -> Noise {
    Noise {
        valid: false,
        why: Some(why),
        window_pkts: None,
        probability: None,
        queue_std_pkts: None,
        qacd_pkts: None,
        queue_p95_pkts: None,
        utilization_lost: None,
    }
}

/// What packets do around `at`, in a loop and whether it is stable.
fn noise_around(place: &Place, target: Option<f64>, at: OperatingPoint, closed: Option<(bool, &Loop)>) -> Noise {
    let rest = |why: String| Noise {
        window_pkts: Some(at.window_pkts),
        probability: Some(at.probability.min(1.0)),
        ..no_noise(why)
    };
    if !at.feasible {
        return rest("every packet is signalled".into());
    }
    if at.window_pkts < WINDOW_MIN {
        return rest(format!("windows of {:.2} packets: time-outs rule, which the models do not have", at.window_pkts));
    }
    let Some((stable, closed)) = closed else { return rest("there is no linear controller".into()) };
    if !stable {
        return rest("the loop is unstable: its swing is that of the nonlinear equations".into());
    }
    // Images of the spectrum add little to noise.
    let plain = Loop { images: 0, ..closed.clone() };
    let deviation = noise::deviation(&plain, &at);
    let queue = at.queue_pkts;
    let why = if deviation > DEVIATION_MAX * queue {
        Some("the queue runs empty too often for a linear answer".into())
    } else if queue + 2.0 * deviation > place.buffer_pkts {
        Some("the buffer overflows too often for a linear answer".into())
    } else {
        None
    };
    Noise {
        valid: why.is_none(),
        why,
        queue_std_pkts: Some(deviation),
        qacd_pkts: target.map(|target| libm::hypot(queue - target, deviation)),
        queue_p95_pkts: Some((queue + Z95 * deviation).min(place.buffer_pkts)),
        // While the queue is empty the path is not full: what is under way is short of C T_p.
        utilization_lost: Some(noise::shortfall(queue, deviation) / (at.capacity_pps * at.base_rtt_s).max(1.0)),
        window_pkts: Some(at.window_pkts),
        probability: Some(at.probability),
    }
}

/// Unresponsive load that `choice` lets in, packets/s, where `offered` of it come to flows that hear of marks: u (1 - p), with the p
/// at which those flows fill what u (1 - p) leaves.
pub(crate) fn admitted_pps(choice: &AqmChoice, place: &Place, offered: f64) -> Result<f64, Error> {
    // The more is let in, the less is left to the flows, and the larger the p that holds them.
    let (mut low, mut high) = (0.0, offered.min(place.capacity_pps * (1.0 - 1e-9)));
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        let at = at_rest(choice, &Place { unresponsive_pps: middle, ..*place })?.0;
        if middle < offered * (1.0 - at.probability.min(1.0)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(0.5 * (low + high))
}

/// The AQM, if anything can be said of it.
fn build(choice: &AqmChoice) -> Result<AnyAqm, Error> {
    let (link, aqm) = ("design".into(), choice.name.clone());
    match choice.build() {
        None => Err(Error::UnknownAqm { link, aqm }),
        Some(Err(source)) => Err(Error::Aqm { link, aqm, source: Box::new(source) }),
        Some(Ok(built @ (AnyAqm::DropTail(_) | AnyAqm::Red(_) | AnyAqm::Ared(_)))) => Ok(built),
        Some(Ok(mut built)) => match (no_slope(&built), built.law_mut()) {
            (Some(why), _) => Err(Error::NoSlope { aqm, why }),
            (None, Some(_)) => Ok(built),
            (None, None) => Err(Error::NoLaw { link, aqm }),
        },
    }
}

/// Why a small change of the queue does not move this AQM in proportion, so that there is no loop to linearise.
fn no_slope(aqm: &AnyAqm) -> Option<&'static str> {
    Some(match aqm {
        AnyAqm::AredFeng(_) => "its max_p rests wherever the average lies between the thresholds",
        AnyAqm::Avq(_) => "it signals what overflows its virtual queue, and has no probability",
        AnyAqm::Blue(_) => "its probability moves by fixed steps when the buffer overflows or runs empty",
        AnyAqm::Fixed(_) => "its probability is constant",
        AnyAqm::Aaqm(_) => "its probability moves by fixed steps, up or down, at each period",
        AnyAqm::Codel(_) => "it signals at moments, not with a probability",
        AnyAqm::Cobalt(_) => "it signals at moments, not with a probability, and by fixed steps at overflow",
        _ => return None,
    })
}

/// The AQM as it acts around its rest. ARED's rule leaves max_p alone while the average is in the middle of the thresholds: there it
/// is RED with the max_p that holds it there, within the rule's bounds.
fn settled(aqm: AnyAqm, place: &Place) -> Result<AnyAqm, Error> {
    let AnyAqm::Ared(ared) = &aqm else { return Ok(aqm) };
    let (params, rule) = (ared.red().params(), ared.rule());
    let middle = 0.5 * (params.curve.min_th() + params.curve.max_th());
    let Place { model, flows, capacity_pps, unresponsive_pps, base_rtt_s, .. } = *place;
    let needed = OperatingPoint::new(model, flows, capacity_pps, unresponsive_pps, base_rtt_s, middle)?.probability;
    let with = |max_p: f64| RedParams { curve: params.curve.with_max_p(max_p), ..*params };
    let (mut low, mut high) = (rule.bottom.min(params.curve.max_p()), rule.top.max(params.curve.max_p()));
    for _ in 0..100 {
        let max_p = 0.5 * (low + high);
        if RedLaw::new(&with(max_p)).probability(middle) < needed {
            low = max_p;
        } else {
            high = max_p;
        }
    }
    Red::new(with(high)).map(AnyAqm::Red).map_err(|error| Error::Unsupported(error.to_string()))
}

/// The target queue, packets: as given, or what a target delay makes of it at this capacity.
fn target_pkts(choice: &AqmChoice, gains: &IndexMap<String, Gain>, place: &Place) -> Option<f64> {
    if let Some(Gain::Number(delay)) = gains.get("target_delay") {
        return Some(delay * place.capacity_pps);
    }
    let Some(Gain::Number(target)) = gains.get("target") else { return None };
    let row = choice.catalogue.find(&choice.name)?.params.iter().find(|row| row.name == "target")?;
    match row.kind {
        Kind::Number { unit: Unit::Seconds, .. } => Some(target * place.capacity_pps),
        _ => Some(*target),
    }
}

fn settings(aqm: &AnyAqm) -> IndexMap<String, Gain> {
    let mut gains = IndexMap::new();
    aqm.settings(&mut |name, value| {
        let gain = match value {
            Value::Number(x) => Gain::Number(x),
            Value::Flag(yes) => Gain::Flag(yes),
            Value::Choice(word) => Gain::Choice(word.into()),
        };
        gains.insert(name.to_string(), gain);
    });
    gains
}

fn plant_of(at: &OperatingPoint) -> Result<TcpPlant, Error> {
    TcpPlant::new(at.flows, at.capacity_pps, at.rtt_s)
        .and_then(|plant| plant.with_unresponsive(at.unresponsive_pps))
        .map_err(|error| Error::Unsupported(error.to_string()))
}

/// Where the AQM lets the queue come to rest.
fn rest(aqm: &AnyAqm, place: &Place, target: Option<f64>) -> Result<OperatingPoint, Error> {
    let at = |queue: f64| {
        let Place { model, flows, capacity_pps, unresponsive_pps, base_rtt_s, .. } = *place;
        OperatingPoint::new(model, flows, capacity_pps, unresponsive_pps, base_rtt_s, queue)
    };
    match (aqm, target) {
        (AnyAqm::Red(red), _) => {
            // The curve rises with the queue, the probability that holds the queue falls with it.
            let red = RedLaw::new(red.params());
            let (mut low, mut high) = (0.0, place.buffer_pkts.min(red.curve.end()));
            for _ in 0..100 {
                let queue = 0.5 * (low + high);
                if red.probability(queue) < at(queue)?.probability {
                    low = queue;
                } else {
                    high = queue;
                }
            }
            at(high)
        }
        (AnyAqm::ArmPfc(arm), Some(target)) => {
            // Variant A settles beside the target, and there another probability is needed.
            let mut queue = target;
            for _ in 0..200 {
                let p = aqumen_units::Probability::clamp(at(queue)?.probability);
                queue = 0.5 * (queue + (target + arm.law().offset_pkts(p)).clamp(0.0, place.buffer_pkts));
            }
            at(queue)
        }
        (AnyAqm::DropTail(_), _) => at(place.buffer_pkts),
        (_, Some(target)) => at(target.min(place.buffer_pkts)),
        (_, None) => Err(Error::Unsupported("this AQM has no target".into())),
    }
}

/// What follows from the parameters, by the symbols of the sources.
fn derived(
    aqm: &AnyAqm,
    at: &OperatingPoint,
    plant: &TcpPlant,
    gains: &mut IndexMap<String, Gain>,
    warnings: &mut Vec<String>,
) {
    let mut put = |name: &str, value: f64| {
        gains.insert(name.into(), Gain::Number(value));
    };
    match aqm {
        AnyAqm::Pi(pi) => {
            let Some(period) = pi.law().periods()[0] else { return };
            let continuous = pi.law().gains().continuous(1.0 / period.as_secs_f64());
            put("K", continuous.gain);
            put("z", continuous.zero);
            put("k_p", continuous.proportional());
        }
        AnyAqm::ArmPfc(arm) => {
            let (model, predictor) = (arm.law().model(), arm.law().predictor());
            let [tau1, tau2] = [plant.queue_time_s(), plant.window_time_s()];
            let gamma = model.period_s() / libm::hypot(tau1, tau2);
            put("T_s", model.period_s());
            put("gamma", gamma);
            for (name, value) in [
                ("kappa", model.gain()),
                ("n1", model.n1()),
                ("n2", model.n2()),
                ("m1", model.m1()),
                ("m2", model.m2()),
                ("beta1", predictor.beta1()),
                ("beta2", predictor.beta2()),
                ("eta", predictor.eta()),
                ("g", predictor.gain()),
            ] {
                put(name, value);
            }
            gains.insert("c".into(), Gain::List(predictor.c().to_vec()));
            if !(0.1..=0.25).contains(&gamma) {
                warnings.push(format!(
                    "gamma = T_s / sqrt(tau1^2 + tau2^2) = {gamma:.4} is outside the 0.1 to 0.25 that the paper asks for"
                ));
            }
        }
        AnyAqm::Red(red) => {
            let params = red.params();
            let slope = params.curve.slope();
            let pole = -at.capacity_pps * libm::log1p(-params.weight.min(1.0 - 1e-12));
            put("L_RED", slope);
            put("K", pole);
            // Hollot et al.: L_RED k_t <= sqrt((w_g / K)^2 + 1), w_g a tenth of the slower pole of the plant.
            let w_g = 0.1 * (1.0 / plant.window_time_s()).min(1.0 / at.rtt_s);
            let gain = slope * plant.gain_pkts();
            put("w_g", w_g);
            if gain > 1.0 {
                let stable = w_g / (gain * gain - 1.0).sqrt();
                put("K_stable", stable);
                put("weight_stable", -libm::expm1(-stable / at.capacity_pps));
                if pole > stable {
                    warnings.push(format!(
                        "the average follows too fast for Hollot's rule: weight at most {:.3e} instead of {:.3e}",
                        -libm::expm1(-stable / at.capacity_pps),
                        params.weight
                    ));
                }
            }
        }
        AnyAqm::AqmMo(mo) => {
            let gains = mo.law().gains();
            for (name, value) in [
                ("T_first", gains.t_first),
                ("k_po", gains.k_po),
                ("T_io", gains.t_io),
                ("T_do", gains.t_do),
                ("K_p", gains.k_p),
            ] {
                put(name, value);
            }
        }
        AnyAqm::Pie(pie) => {
            // What the auto-tuning makes of alpha and beta there.
            let params = pie.law().params();
            let divisor = if params.auto_tune { PieLaw::divisor(Share::of(aqm).law(at.probability)) } else { 1.0 };
            put("alpha_tuned", params.alpha_hz / divisor);
            put("beta_tuned", params.beta_hz / divisor);
        }
        _ => {}
    }
}

fn expect(at: &OperatingPoint, place: &Place, target: Option<f64>, margins: Option<&LoopMargins>) -> Expected {
    let queue = at.saturated_queue_pkts().unwrap_or(at.queue_pkts).clamp(0.0, place.buffer_pkts);
    let unstable = margins.filter(|margins| !margins.exact.stable);
    Expected {
        queue_pkts: queue,
        offset_pkts: target.map(|target| queue - target),
        probability: at.probability.min(1.0),
        oscillation_period_s: unstable
            .and_then(|margins| margins.rightmost_root.map(|root| root[1]).or(margins.exact.phase_crossover_rad_s))
            .filter(|w| *w > 0.0)
            .map(|w| 2.0 * std::f64::consts::PI / w),
        oscillation_std_pkts: None,
    }
}

fn warn(
    at: &OperatingPoint,
    place: &Place,
    target: Option<f64>,
    (margins, expected): (Option<&LoopMargins>, &Expected),
    aqm: &AnyAqm,
    warnings: &mut Vec<String>,
) {
    let window = at.window_pkts;
    if !at.feasible {
        let queue = at.saturated_queue_pkts().unwrap_or(f64::NAN);
        warnings.push(format!(
            "out of reach: p0 = {:.3} is above 1; with every packet marked the queue settles at {queue:.1} packets",
            at.probability
        ));
    }
    if window < WINDOW_OF_TIMEOUTS {
        warnings.push(format!(
            "windows of {window:.2} packets: too small to repair a loss without a time-out, which the model does not have"
        ));
    }
    if matches!(aqm, AnyAqm::ArmPfc(_)) && (window - 2.0).abs() < 0.05 {
        warnings.push(
            "W0 is near 2, where both time constants are equal and the paper's eq. (13) divides by zero; the design here does not"
                .into(),
        );
    }
    if let Some(target) = target.filter(|target| *target >= place.buffer_pkts) {
        warnings.push(format!("the target of {target} packets does not fit into a buffer of {}", place.buffer_pkts));
    }
    let Some(margins) = margins else { return };
    let exact = &margins.exact;
    if !exact.stable {
        let gains = match (exact.gain_margin_low, exact.gain_margin) {
            (None, None) => "at any gain".into(),
            (None, Some(high)) => format!("gain margin {high:.3}"),
            (Some(low), None) => format!("stable from {low:.3} times this gain on"),
            (Some(low), Some(high)) => format!("stable from {low:.3} to {high:.3} times this gain"),
        };
        let period = expected.oscillation_period_s.map_or(String::new(), |period| format!(" of about {period:.2} s"));
        warnings.push(format!("unstable: {gains}, a limit cycle{period} is to be expected"));
        return;
    }
    if exact.gain_margin.is_some_and(|gain| gain < 1.8) || exact.phase_margin_deg.is_some_and(|phase| phase < 25.0) {
        warnings.push(format!(
            "little margin: gain {:.2}, phase {:.1} degrees",
            exact.gain_margin.unwrap_or(f64::INFINITY),
            exact.phase_margin_deg.unwrap_or(f64::NAN)
        ));
    }
    if let AnyAqm::ArmPfc(arm) = aqm {
        let period = arm.law().model().period_s();
        if exact.delay_margin_s.is_some_and(|delay| delay < period) {
            warnings.push(format!("one more sample of delay ({period:.4} s) makes the loop unstable"));
        }
    }
}
