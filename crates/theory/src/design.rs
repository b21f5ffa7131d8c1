//! Design: the gains that an algorithm gives itself for a network, and what the linear analysis says of them there.
//!
//! The rules themselves stand beside their laws in `aqumen-aqm`; [`analyse`] shows their result, closes the loop, and
//! warns where a design is outside the range in which its theory holds.

mod branch;
mod closed;
mod expected;
mod noise;
mod warnings;

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, DesignReport, TcpPlant, Value};
use aqumen_scenario::AqmChoice;
use indexmap::IndexMap;
use serde::Serialize;

use crate::Error;
use crate::equilibrium::solver::{AqmEquilibrium, alone, build, drops_above};
pub use crate::equilibrium::solver::{OperatingConditions, linearise};
use crate::linear::OperatingPoint;
pub use crate::noise::packet_noise::{Noise, NoiseSource, Spectrum};
pub use crate::noise::sources::SOURCES;
use crate::nonlinear::hopf::Hopf;
pub(crate) use branch::branch;
use closed::{ClosedLoop, LinearLoop};
pub use closed::{LoopMargins, NetworkPlant, OpenLoop, open_loop};
pub use expected::{Expectation, SIGNALS_OF_A_CYCLE};
pub use noise::noise_power;
pub(crate) use noise::{around_many, heard, noise_of_sender};
use noise::{is_safeguarded, noise_around};

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
    /// ParkingLot numbers.
    List(Vec<f64>),
}

/// Linear analysis of an AQM under operating conditions.
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
    /// Behaviour to expect in a run.
    pub expected: Expectation,
    /// Where the loop becomes unstable as its gain moves, and the cycles there; null of laws that are not linear.
    pub hopf: Option<Hopf>,
    /// How far packets move the queue around its rest.
    pub noise: Noise,
    /// Warnings about the design.
    pub warnings: Vec<String>,
    /// Explanations of values that are null.
    pub notes: Vec<String>,
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

/// Gain margin that a suggested gain is to leave.
const STABLE_GAIN_MARGIN: f64 = 3.0;
/// Note on a loop whose windows are a distribution.
const WITHOUT_ROOTS: &str = "this sender has a distribution of windows, not a mean window: rightmost_root and hopf are \
    not computed; stability and period are those of margins.exact (gain_margin, phase_crossover_rad_s), the slowest mode \
    that of settling_s";

/// Analyses `choice`, designed for the network it carries, at `conditions`.
pub fn analyse(choice: &AqmChoice, conditions: &OperatingConditions) -> Result<Analysis, Error> {
    analyse_to(Depth::Loop, choice, conditions)
}

/// How far an analysis goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Equilibrium alone: microseconds.
    Equilibrium,
    /// The loop around it too, and the height of its limit cycle, for which nonlinear equations run: up to seconds.
    Loop,
}

/// As [`analyse`], and no further than `depth`: without the loop there are no margins and no oscillation.
pub fn analyse_to(depth: Depth, choice: &AqmChoice, conditions: &OperatingConditions) -> Result<Analysis, Error> {
    let asked = &choice.name;
    let (choice, means) = &alone(choice)?;
    let built = build(choice)?;
    let mut gains = settings(&built);
    let mut equilibrium = AqmEquilibrium::from_built(built, choice, conditions)?;
    gains.extend(equilibrium.adapted.map(|moved| (moved.name.to_string(), Gain::Number(moved.value))));
    let at = equilibrium.at;
    let mut warnings: Vec<String> = means.iter().map(|means| format!("this is {means}")).collect();
    let plant = plant_of(&at)?;
    let seen = at.to_aqm(choice.network.packet_bytes);
    equilibrium.built.theory().derive(&seen, &plant, &mut GainCollector { gains: &mut gains, warnings: &mut warnings });

    let closed = match depth {
        Depth::Equilibrium => None,
        Depth::Loop => ClosedLoop::new(&equilibrium, choice, conditions),
    };
    let margins = closed.as_ref().map(|closed| closed.margins(&at));
    gains.extend(stable_gain(&equilibrium, &gains, margins.as_ref()));
    let mut expected = Expectation::new(choice, conditions, &mut equilibrium, margins.as_ref())?;
    expected.settling_s =
        closed.as_ref().zip(margins.as_ref()).and_then(|(closed, margins)| closed.settling_s(&margins.exact));
    let hopf = match (&closed, &margins) {
        (Some(ClosedLoop { linear: LinearLoop::Mean(closed), .. }), Some(margins)) => {
            branch(choice, &equilibrium.built, (&at, conditions), &closed.controller, &margins.exact)
        }
        _ => None,
    };
    let mut noise = match depth {
        Depth::Equilibrium => Noise::none("the loop was not requested".into()),
        Depth::Loop => {
            let stable = margins.as_ref().is_some_and(|margins| margins.exact.stable);
            noise_around(choice, conditions, &equilibrium, closed.as_ref().map(|closed| (stable, &closed.linear)))
        }
    };
    if let (Some(ClosedLoop { linear, .. }), Some(margins)) = (&closed, &margins)
        && !margins.exact.stable
        && is_safeguarded(&equilibrium, linear)
    {
        (expected, noise) = calmed(expected, noise);
    }
    warnings.extend(warnings::at_equilibrium(&equilibrium, &seen, conditions));
    warnings.extend(margins.iter().flat_map(|margins| warnings::in_loop(&equilibrium, &margins.exact, &expected)));
    warnings.extend(closed.as_ref().and_then(|closed| warnings::large_windows(closed.linear.controller(), &at)));
    if let Some(why) = equilibrium.built.theory().noise_doubt().filter(|_| noise.valid) {
        noise = noise.doubted(why.into());
    }
    let limit = drops_above(&equilibrium.built, at.probability).filter(|_| !at.losses);
    if let Some(limit) = limit {
        noise = noise.doubted(format!("above p = {limit} packets are dropped, not marked: time-outs rule"));
    }
    if let (Some(cycle), Some(deviation)) = (expected.coexisting_std_pkts, noise.queue_std_pkts)
        && cycle > deviation
    {
        expected.oscillates = Some(true);
        noise = noise.doubted("beside the rest stands a cycle that is higher than this noise".into());
    }
    let operating_point = Point {
        at,
        load: plant.load(),
        gain_pkts: plant.gain_pkts(),
        time_constants_s: [plant.queue_time_s(), plant.window_time_s()],
    };
    // Both need the equations of a mean window.
    let notes = match &closed {
        Some(ClosedLoop { linear: LinearLoop::Many(_), .. }) => vec![WITHOUT_ROOTS.to_string()],
        _ => Vec::new(),
    };
    let analysis =
        Analysis { aqm: asked.clone(), gains, margins, operating_point, expected, hopf, noise, warnings, notes };
    Ok(match limit.filter(|_| conditions.has_many_windows() && conditions.sender.is_scalable()) {
        Some(limit) => analysis.without_signals(no_share(limit)),
        None => analysis,
    })
}

/// Expectation and noise of a loop that is unstable to small perturbations, of an AQM with PIE's safeguard; `noise`:
/// noise of the stabilised queue, if there is one.
fn calmed(expected: Expectation, noise: Noise) -> (Expectation, Noise) {
    if noise.queue_std_pkts.is_some() {
        let why = "the loop is unstable to small perturbations; noise stabilises it through PIE's safeguard";
        return (Expectation { oscillates: Some(false), ..expected }, noise.doubted(why.into()));
    }
    let why = "the loop is unstable to small perturbations; whether noise stabilises it through PIE's safeguard \
               is not known";
    let expected = Expectation { oscillates: None, oscillation_period_s: None, oscillation_signals: None, ..expected };
    (expected, Noise { why: Some(why.into()), ..noise })
}

/// Reason why no share of signals holds windows of DCTCP or Prague where marks become drops above `limit`.
pub(crate) fn no_share(limit: f64) -> String {
    format!(
        "marks of DCTCP or Prague would have to come with p above {limit}, from where packets are dropped, which they \
         answer as Reno: p moves around {limit} and the queue with it"
    )
}

impl Analysis {
    /// Returns the analysis without share of signals, loop and noise, which are not known for this reason.
    pub(crate) fn without_signals(mut self, why: String) -> Self {
        self.margins = None;
        self.hopf = None;
        self.notes.clear();
        self.operating_point.at.probability = f64::NAN;
        self.expected = Expectation {
            probability: f64::NAN,
            settling_s: None,
            oscillation_period_s: None,
            oscillation_std_pkts: None,
            oscillation_signals: None,
            coexisting_period_s: None,
            coexisting_std_pkts: None,
            oscillates: None,
            ..self.expected
        };
        for follows in ["alpha_tuned", "beta_tuned"] {
            self.gains.shift_remove(follows);
        }
        self.warnings.retain(|warning| {
            !["unstable", "little margin", "stable from"].iter().any(|in_loop| warning.starts_with(in_loop))
        });
        self.warnings.push(why.clone());
        self.noise = Noise { window_pkts: self.noise.window_pkts, ..Noise::none(why) };
        self
    }
}

/// The gain at which the loop would have a comfortable margin, if the AQM says which of its parameters is one.
fn stable_gain(
    equilibrium: &AqmEquilibrium,
    gains: &IndexMap<String, Gain>,
    margins: Option<&LoopMargins>,
) -> Option<(String, Gain)> {
    let name = equilibrium.built.theory().gain()?;
    let margin = margins?.exact.gain_margin?;
    let Some(Gain::Number(gain)) = gains.get(name) else { return None };
    // The margin goes as one over it.
    Some((format!("{name}_stable"), Gain::Number(gain * margin / STABLE_GAIN_MARGIN)))
}

/// Gathers what an AQM derives.
struct GainCollector<'a> {
    gains: &'a mut IndexMap<String, Gain>,
    warnings: &'a mut Vec<String>,
}

impl DesignReport for GainCollector<'_> {
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
