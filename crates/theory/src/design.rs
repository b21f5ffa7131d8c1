//! Design: the gains that an algorithm gives itself for a network, and what the linear analysis says of them there.
//!
//! The rules themselves stand beside their laws in `aqumen-aqm`; [`analyse`] shows their result, closes the loop, and
//! warns where a design is outside the range in which its theory holds.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, AtRest, Rests, TcpPlant, Told, Value};
use aqumen_result::BOUND_SHARE;
use aqumen_scenario::AqmChoice;
use indexmap::IndexMap;
use serde::Serialize;

use crate::Error;
use crate::cycle::{self, LARGE_START, coexisting};
use crate::field::Field;
use crate::fluid::Model;
use crate::hopf::{self, Hopf};
use crate::linear::noise::Fineness;
use crate::linear::{
    Complex64, Controller, Loop, Margins, OperatingPoint, Plant, Resolution, rightmost, spectral_radius,
};
use crate::packet_noise::{self, Held};
pub use crate::packet_noise::{Noise, Spectrum};
pub use crate::rest::{Place, linearise};
use crate::rest::{alone, build, coupling_of, rest, settled, target_pkts};
use crate::sender::Sender;
use crate::spaced::{Heard, Said};

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
    /// Where the loop becomes unstable as its gain moves, and the cycles there; null of laws that are not linear.
    pub hopf: Option<Hopf>,
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
    /// Period of the oscillation that is to be expected, seconds, from a run of the nonlinear equations where there is
    /// one, else from where the phase is -180 degrees; null for a stable loop.
    pub oscillation_period_s: Option<f64>,
    /// Standard deviation of the queue in that oscillation, packets, from a run of the nonlinear equations; a sine
    /// swings by 1.41 times as much to either side.
    pub oscillation_std_pkts: Option<f64>,
    /// Packets that are signalled in a period of the oscillation: of M that chance takes as many more or fewer as the
    /// root of M, so that below [`SIGNALS_OF_A_CYCLE`] no two cycles are alike, in packets, and some runs have no
    /// period.
    pub oscillation_signals: Option<f64>,
    /// Of a stable loop with little margin: the cycle that the nonlinear equations stay on from [`LARGE_START`] times
    /// their rest, its period, seconds; null where they come to rest.
    pub coexisting_period_s: Option<f64>,
    /// Standard deviation of the queue in that cycle, packets.
    pub coexisting_std_pkts: Option<f64>,
    /// Whether packets are to be seen swinging of themselves: an unstable loop, or a stable one beside which a cycle
    /// stands above the noise, which then neither leaves the queue at its rest nor hides the cycle. Not where an AQM
    /// that spares packets of a short queue (PIE) ends the growth of a swing before its law is at a bound: noise hides
    /// that. Null where no loop is known.
    pub oscillates: Option<bool>,
}

/// Signals of which chance takes away, or adds, a third.
pub const SIGNALS_OF_A_CYCLE: f64 = 9.0;
/// Stretches of RED's curve above its upper threshold.
const KNOTS: u32 = 16;
/// Gain margin that a suggested gain is to leave.
const STABLE_GAIN_MARGIN: f64 = 3.0;
/// Windows below this hardly ever repair a loss without a time-out: three duplicate acknowledgements need four packets.
const WINDOW_OF_TIMEOUTS: f64 = 4.0;

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
    let asked = &choice.name;
    let (choice, means) = &alone(choice)?;
    let built = build(choice)?;
    let mut gains = settings(&built);
    let target = target_pkts(choice, &built, place);
    let mut warnings: Vec<String> = means.iter().map(|means| format!("this is {means}")).collect();
    let (mut built, moved) = settled(built, place)?;
    gains.extend(moved.map(|moved| (moved.name.to_string(), Gain::Number(moved.value))));
    let at = rest(&built, place, target)?;
    let plant = plant_of(&at)?;
    let seen = at.seen_by_aqm(choice.network.packet_bytes);
    built.theory().derive(&seen, &plant, &mut Telling { gains: &mut gains, warnings: &mut warnings });

    let many = place.model == Model::Reno && !place.sender.has_closed_form();
    let controller = match depth {
        Depth::Rest => None,
        Depth::Loop if many && !at.feasible => None,
        Depth::Loop => Controller::of_built(&built, choice, &at_law(&built, &place.sender, &at)),
    };
    let closed = controller.map(|(controller, probe)| {
        let exact = match many {
            true => Exact::Many(Box::new(Loop::new(field_of(&built, &place.sender, &at), controller))),
            false => Exact::Plant(Loop::new(Plant::exact(&at), controller)),
        };
        (exact, probe)
    });
    let margins = closed.as_ref().map(|(closed, probe)| LoopMargins {
        textbook: Loop::new(Plant::textbook(&at), closed.controller().clone()).margins(),
        exact: closed.margins(),
        spectral_radius: spectral_radius(&at, closed.controller(), at.rtt_s),
        rightmost_root: closed.rightmost().map(|root| [root.re, root.im]),
        controller: if probe.is_some() { "probe" } else { "equation" },
    });
    if let (Some(name), Some(margin)) =
        (built.theory().gain(), margins.as_ref().and_then(|margins| margins.exact.gain_margin))
        && let Some(Gain::Number(gain)) = gains.get(name)
    {
        // The margin goes as one over it.
        gains.insert(format!("{name}_stable"), Gain::Number(gain * margin / STABLE_GAIN_MARGIN));
    }
    let mut expected = expect(&at, place, target, margins.as_ref());
    if let Some(period) = expected.oscillation_period_s {
        // Long enough for the start to be over, of which the last third is looked at.
        let duration = (60.0 * period).clamp(60.0, 600.0);
        // The nonlinear equations are those of ns-2's Reno.
        if !many && cycle::is_quick(&mut built, place, duration) {
            let cycle = cycle::cycle(choice, place, duration)?;
            expected.oscillation_std_pkts = Some(cycle.std_pkts);
            // The linear period is that of a small swing at the boundary of stability.
            expected.oscillation_period_s = cycle.period_s.or(Some(period));
            if cycle.spared > 0.0 && cycle.at_bound < BOUND_SHARE {
                expected.oscillates = Some(false);
            }
        }
    }
    let signalled = |period: f64| at.tcp_pps() * at.probability.min(1.0) * period;
    expected.oscillation_signals = expected.oscillation_period_s.map(signalled);
    if let Some(margins) = margins.as_ref().filter(|_| !many && at.feasible)
        && let Some([real, _]) = margins.rightmost_root
        && let Some(cycle) = coexisting(choice, place, &at, (&margins.exact, real), &mut built)?
    {
        expected.coexisting_period_s = cycle.period_s;
        expected.coexisting_std_pkts = Some(cycle.std_pkts);
    }
    let branch = match &closed {
        Some((Exact::Plant(closed), _)) => margins
            .as_ref()
            .and_then(|margins| branch(choice, &built, (&at, place), &closed.controller, &margins.exact)),
        _ => None,
    };
    warn((&at, &seen), place, target, (margins.as_ref(), &expected), &built, &mut warnings);
    let held = Held { target_pkts: target, buffer_pkts: place.buffer_pkts };
    let noise = match (place.model, &closed) {
        _ if depth == Depth::Rest => Noise::none("the loop was not asked for".into()),
        (Model::Reno, Some((closed, _))) => {
            let stable = margins.as_ref().is_some_and(|margins| margins.exact.stable);
            let said = Said {
                aqm: &built,
                controller: closed.controller(),
                gain: 1.0,
                steps: moved.and_then(|moved| moved.steps),
            };
            match closed {
                Exact::Plant(_) if stable && Heard::is_for(&built) => {
                    heard(held, Heard::of_reno(&said, &at, Fineness::FINE), Fineness::FINE)
                }
                Exact::Many(closed) if stable && Heard::is_for(&built) => {
                    heard(held, Heard::around(&said, &at, (closed.plant.clone(), 1.0)), Fineness::FINE)
                }
                Exact::Plant(closed) => Noise::around(held, &at, Some((stable, closed)), Fineness::FINE),
                Exact::Many(closed) => around_many(held, &at, stable, closed),
            }
        }
        (Model::Reno, None) => Noise::around(held, &at, None, Fineness::FINE),
        _ => noise_of(choice, place, Fineness::FINE),
    };
    let mut noise = noise;
    if let (true, Some(Gain::Number(limit))) = (place.model != Model::Drop, gains.get("mark_p"))
        && built.theory().share().law(at.probability) > *limit
    {
        (noise.valid, noise.why) =
            (false, Some(format!("above p = {limit} packets are dropped, not marked: time-outs rule")));
    }
    if let (Some(cycle), Some(deviation)) = (expected.coexisting_std_pkts, noise.queue_std_pkts)
        && cycle > deviation
    {
        expected.oscillates = Some(true);
        (noise.valid, noise.why) =
            (false, Some("beside the rest stands a cycle that is higher than this noise".into()));
    }
    let operating_point = Point {
        at,
        load: plant.load(),
        gain_pkts: plant.gain_pkts(),
        time_constants_s: [plant.queue_time_s(), plant.window_time_s()],
    };
    Ok(Analysis { aqm: asked.clone(), gains, margins, operating_point, expected, hopf: branch, noise, warnings })
}

/// Laws that answer large swings as they do small ones, up to their bounds.
const LINEAR_LAWS: [&str; 4] = ["pi", "arm-pfc", "aqm-mo", "red"];

/// The cycles that leave the rest of a linear law where its loop becomes unstable.
pub(crate) fn branch(
    choice: &AqmChoice,
    built: &AnyAqm,
    (at, place): (&OperatingPoint, &Place),
    controller: &Controller,
    margins: &Margins,
) -> Option<Hopf> {
    let line = match built.theory().rests() {
        // The slope that RED has at rest is taken over a tenth of the way from its lower threshold.
        Rests::OnCurve(red) => 1.1 * at.queue_pkts - 0.1 * red.curve.min_th() < red.curve.max_th(),
        _ => true,
    };
    (line && LINEAR_LAWS.contains(&choice.name.as_str()))
        .then(|| hopf::hopf(at, controller, margins, place.buffer_pkts, &beyond_line(built, at, controller)))?
}

/// What RED says above its upper threshold more than the line through `at` would: distances from what it says there,
/// and how much more.
fn beyond_line(aqm: &AnyAqm, at: &OperatingPoint, controller: &Controller) -> Vec<(f64, f64)> {
    let (Rests::OnCurve(red), Controller::Continuous { num, .. }) = (aqm.theory().rests(), controller) else {
        return Vec::new();
    };
    let (top, end) = (red.curve.max_th(), red.curve.end());
    let far = |average: f64| num[0] * (average - at.queue_pkts);
    let line_at_top = at.probability + far(top);
    // The share goes in small jumps: it is taken at some averages, and lines between.
    let knot = |k: u32| {
        let average = top + (end - top) * f64::from(k) / f64::from(KNOTS);
        let more = if k == 0 { 0.0 } else { red.probability(average) - (line_at_top + far(average) - far(top)) };
        (far(average), more)
    };
    (0..=KNOTS).map(knot).collect()
}

/// The loop with the exact plant: the linearised equations of a mean window, or many windows of a
/// sender with a response function.
enum Exact {
    Plant(Loop),
    Many(Box<Loop<Field>>),
}

impl Exact {
    fn controller(&self) -> &Controller {
        match self {
            Exact::Plant(closed) => &closed.controller,
            Exact::Many(closed) => &closed.controller,
        }
    }

    fn margins(&self) -> Margins {
        match self {
            Exact::Plant(closed) => closed.margins(),
            Exact::Many(closed) => closed.margins(),
        }
    }

    /// Of many windows it is not looked for.
    fn rightmost(&self) -> Option<Complex64> {
        match self {
            Exact::Plant(closed) => rightmost(closed),
            Exact::Many(_) => None,
        }
    }
}

/// The operating point as a law sees it that marks `sender`'s packets with k times the root of what it says.
fn at_law(aqm: &AnyAqm, sender: &Sender, at: &OperatingPoint) -> OperatingPoint {
    let probability = coupling_of(aqm, sender).map_or(at.probability, |k| (at.probability / k) * (at.probability / k));
    OperatingPoint { probability, ..*at }
}

/// Many windows of one sender at an operating point.
fn field_of(aqm: &AnyAqm, sender: &Sender, at: &OperatingPoint) -> Field {
    // p_L = k sqrt(p): its slope is k / (2 sqrt(p)) = k^2 / (2 p_L).
    let slope = coupling_of(aqm, sender).map_or(1.0, |k| 0.5 * k * k / at.probability);
    let dispersion = aqm.theory().dispersion(at_law(aqm, sender, at).probability);
    Field::of_one_queue(
        at.capacity_pps,
        dispersion,
        &[(*sender, at.flows, [at.probability, slope], at.rtt_s, at.window_pkts)],
    )
}

/// What packets do around the rest of many windows.
pub(crate) fn around_many(held: Held, at: &OperatingPoint, stable: bool, closed: &Loop<Field>) -> Noise {
    // Images of the spectrum add little to noise.
    let plain = Loop { images: 0, ..closed.clone() };
    let power = |w: f64| plain.plant.power(w) / (plain.response(w) + 1.0).norm_sqr();
    let noise = Noise::with_power(held, at, Some((stable, &power)), Fineness::FINE);
    noise.with_spectrum_of(at, plain.controller.period_s(), power)
}

/// What packets do around the rest of an AQM whose signals are not tosses.
pub(crate) fn heard(held: Held, heard: Result<Heard, String>, fineness: Fineness) -> Noise {
    let heard = match heard {
        Ok(heard) => heard,
        Err(why) => return Noise::none(why),
    };
    let power = |w: f64| heard.power(w);
    let noise = Noise::with_power(held, &heard.at, Some((true, &power)), fineness);
    let noise =
        if fineness == Fineness::FINE { noise.with_spectrum_of(&heard.at, heard.period_s, power) } else { noise };
    match heard.doubt {
        Some(why) if noise.valid => Noise { valid: false, why: Some(why), ..noise },
        _ => noise,
    }
}

/// What packets do around the rest of `choice` at `place`, as Reno's windows have it whatever the model there.
pub(crate) fn noise_of(choice: &AqmChoice, place: &Place, fineness: Fineness) -> Noise {
    if place.model == Model::Drop {
        return Noise::of_losses();
    }
    let other_model = place.model != Model::Reno;
    let place = Place { model: Model::Reno, ..*place };
    let found = build(choice).and_then(|built| {
        let target_pkts = target_pkts(choice, &built, &place);
        let (built, moved) = settled(built, &place)?;
        let at = rest(&built, &place, target_pkts)?;
        let controller = Controller::of_built(&built, choice, &at).map(|(controller, _)| controller);
        Ok((
            at,
            controller,
            Held { target_pkts, buffer_pkts: place.buffer_pkts },
            Heard::is_for(&built).then_some((built, moved.and_then(|moved| moved.steps))),
        ))
    });
    let (at, controller, held, heard_of) = match found {
        Ok(found) => found,
        Err(error) => return Noise::none(error.to_string()),
    };
    let Some(controller) = controller else { return Noise::around(held, &at, None, fineness) };
    let closed = Loop::new(Plant::exact(&at), controller);
    let stable = closed.margins_at(Resolution::COARSE).stable;
    if let (true, Some((aqm, steps))) = (stable, &heard_of) {
        let said = Said { aqm, controller: &closed.controller, gain: 1.0, steps: *steps };
        return heard(held, Heard::of_reno(&said, &at, fineness), fineness);
    }
    let noise = Noise::around(held, &at, Some((stable, &closed)), fineness);
    if stable || !other_model {
        return noise;
    }
    // The margins beside it may say otherwise: they are those of another model.
    Noise { why: noise.why.map(|why| format!("in model reno, by which noise is told: {why}")), ..noise }
}

/// Power of the queue at frequencies in rad/s as packets make it around the rest of `choice` at `place`, in Reno's
/// windows.
pub fn noise_power(choice: &AqmChoice, place: &Place, w: &[f64]) -> Result<Vec<f64>, Error> {
    let place = Place { model: Model::Reno, ..*place };
    let (choice, _) = &alone(choice)?;
    let built = build(choice)?;
    let target = target_pkts(choice, &built, &place);
    let (built, moved) = settled(built, &place)?;
    let at = rest(&built, &place, target)?;
    let (controller, _) = Controller::of_built(&built, choice, &at)
        .ok_or_else(|| Error::Unsupported("this AQM is no linear controller".into()))?;
    if Heard::is_for(&built) {
        let steps = moved.and_then(|moved| moved.steps);
        let said = Said { aqm: &built, controller: &controller, gain: 1.0, steps };
        let heard = Heard::of_reno(&said, &at, Fineness::FINE);
        let heard = heard.map_err(Error::Unsupported)?;
        return Ok(w.iter().map(|w| heard.power(*w)).collect());
    }
    let closed = Loop { images: 0, ..Loop::new(Plant::exact(&at), controller) };
    let power = packet_noise::power(&at, &closed, false);
    Ok(w.iter().map(|w| power(*w)).collect())
}

/// Gathers what an AQM derives.
struct Telling<'a> {
    gains: &'a mut IndexMap<String, Gain>,
    warnings: &'a mut Vec<String>,
}

impl Told for Telling<'_> {
    fn number(&mut self, name: &'static str, value: f64) {
        self.gains.insert(name.into(), Gain::Number(value));
    }

    fn list(&mut self, name: &'static str, values: &[f64]) {
        self.gains.insert(name.into(), Gain::List(values.to_vec()));
    }

    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
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
        oscillation_signals: None,
        coexisting_period_s: None,
        coexisting_std_pkts: None,
        oscillates: margins.map(|margins| !margins.exact.stable),
    }
}

fn warn(
    (at, seen): (&OperatingPoint, &AtRest),
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
    warnings.extend(aqm.theory().doubts(seen));
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
        let what = match expected.oscillates {
            Some(false) => "an irregular swing, small since packets of a short queue are spared,".into(),
            _ => format!("a limit cycle{period}"),
        };
        warnings.push(format!("unstable: {gains}, {what} is to be expected"));
        if let Some(signals) = expected.oscillation_signals.filter(|signals| *signals < SIGNALS_OF_A_CYCLE) {
            warnings.push(format!(
                "{signals:.1} packets are signalled in a period: period and height of the swing are those of chance"
            ));
        }
        return;
    }
    if let (Some(period), Some(deviation)) = (expected.coexisting_period_s, expected.coexisting_std_pkts) {
        warnings.push(format!(
            "stable from small starts only: from {LARGE_START:.0} times its rest a limit cycle of about {period:.2} s stays, of {deviation:.0} packets"
        ));
    }
    if exact.gain_margin.is_some_and(|gain| gain < 1.8) || exact.phase_margin_deg.is_some_and(|phase| phase < 25.0) {
        warnings.push(format!(
            "little margin: gain {:.2}, phase {:.1} degrees",
            exact.gain_margin.unwrap_or(f64::INFINITY),
            exact.phase_margin_deg.unwrap_or(f64::NAN)
        ));
    }
    warnings.extend(exact.delay_margin_s.and_then(|delay| aqm.theory().doubts_of_delay(delay)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::Answers;
    use crate::response::Law;
    use crate::testing::{NETWORK, built, choice};

    #[test]
    fn a_coupled_law_answers_by_the_slope_of_its_root() {
        let [pi2, pi] = ["pi2", "pi"].map(|name| built(&choice(name, &[], NETWORK)));
        let prague = Sender { law: Law::Prague, proportional: true, min_window: 2.0, paced: true, ..Sender::reno() };
        let at = OperatingPoint::new(Model::Reno, 100.0, 1250.0, 0.0, 0.2, 100.0).unwrap().held_by(&prague);
        // p_L = 2 sqrt(p): the law says p = (p_L / 2)^2, a little more of it is 2 / (2 sqrt(p)) = 2 / p_L more of p_L.
        let law = at_law(&pi2, &prague, &at).probability;
        assert!((law - at.probability * at.probability / 4.0).abs() < 1e-15);
        assert_eq!(at_law(&pi, &prague, &at).probability, at.probability);
        let [coupled, plain] = [&pi2, &pi].map(|aqm| field_of(aqm, &prague, &at).dc_gain());
        assert!((coupled / plain / (2.0 / at.probability) - 1.0).abs() < 1e-9, "{coupled} {plain} {at:?}");
        // Reno's packets are marked with what it says.
        assert_eq!(at_law(&pi2, &Sender::reno(), &at).probability, at.probability);
    }
}
