//! Admission control: the greatest load, or the least threshold, for a bound on the loss of each source.
//!
//! The load is a factor on the rates of all sources; the threshold is the occupancy from which packets are dropped
//! early. Loss grows with the factor and falls with the threshold, so the solution is unique. The Illinois variant of
//! regula falsi finds it.

use crate::early::Action;
use crate::{Error, Model};

/// Quantity that an admission search finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// Greatest load.
    Load,
    /// Least threshold, common to all sources.
    Threshold,
}

/// Result of an admission search: in its model, the greatest loss ratio of a source equals the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Admission {
    /// Quantity found.
    pub objective: Objective,
    /// Bound on the loss ratio of each source.
    pub loss_ratio_max: f64,
    /// Factor on the rates of all sources.
    pub rate_factor: f64,
    /// Threshold in packets, if that was the objective.
    pub threshold_pkts: Option<f64>,
}

/// Relative tolerance of the loss ratio.
const PRECISION: f64 = 1e-10;

/// Most solutions in a search.
const SOLUTIONS_MAX: u32 = 120;

/// Expected number of solutions in a search.
const SOLUTIONS_EXPECTED: f64 = 14.0;

impl Model {
    /// Returns the model with the greatest load, or the least threshold, at which no source's loss ratio exceeds
    /// `loss_ratio_max`.
    pub fn find_admission(self, objective: Objective, loss_ratio_max: f64) -> Result<(Self, Admission), Error> {
        self.find_admission_with_progress(objective, loss_ratio_max, &mut |_| true)
    }

    /// As [`find_admission`](Self::find_admission); `progress` receives the estimated remaining seconds, and cancels
    /// the search by returning false.
    pub fn find_admission_with_progress(
        self,
        objective: Objective,
        loss_ratio_max: f64,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<(Self, Admission), Error> {
        if !(loss_ratio_max > 0.0 && loss_ratio_max < 1.0) {
            return Err(Error::Queue(format!(
                "the bound on the loss ratio is {loss_ratio_max}; it must be above 0 and below 1"
            )));
        }
        let one = self.time_estimate()?;
        let mut remaining = SOLUTIONS_EXPECTED;
        // Logarithm of the greatest loss ratio over the bound.
        let mut excess = |model: &Model| -> Result<f64, Error> {
            remaining = (remaining - 1.0).max(0.0);
            let measures = model.solve_with_progress(&mut |left| progress(left + one * remaining))?;
            let losses = measures.sources.iter().map(|source| source.loss_ratio).filter(|loss| !loss.is_nan());
            Ok(libm::log(losses.fold(0.0, f64::max) / loss_ratio_max))
        };
        match objective {
            Objective::Load => {
                let mut at = |x: f64| excess(&self.scaled(libm::exp(x))?);
                // Bracket of the factor's logarithm.
                let (mut low, mut high) = (0.0, 0.0);
                let mut of = at(0.0)?;
                let (mut value_low, mut value_high) = (of, of);
                let mut step = 0.25;
                while of > 0.0 {
                    (high, value_high) = (low, of);
                    low -= step;
                    step *= 2.0;
                    of = at(low)?;
                    value_low = of;
                }
                while value_high <= 0.0 {
                    (low, value_low) = (high, value_high);
                    high += step;
                    step *= 2.0;
                    value_high = at(high)?;
                }
                let factor = libm::exp(root((low, value_low), (high, value_high), at)?);
                let admission = Admission { objective, loss_ratio_max, rate_factor: factor, threshold_pkts: None };
                Ok((self.scaled(factor)?, admission))
            }
            Objective::Threshold => {
                let with = |threshold: f64| {
                    let thresholds = vec![Some(threshold); self.sources().len()];
                    self.clone().with_thresholds(Action::Drop, thresholds)
                };
                let mut at = |threshold: f64| excess(&with(threshold)?);
                let limit = f64::from(self.queue().capacity);
                let (excess_zero, excess_limit) = (at(0.0)?, at(limit)?);
                if excess_limit > 0.0 {
                    let loss = libm::exp(excess_limit) * loss_ratio_max;
                    return Err(Error::Queue(format!(
                        "without early drops a source has a loss ratio of {loss:.4}; no threshold reduces it to {loss_ratio_max}"
                    )));
                }
                let threshold =
                    if excess_zero <= 0.0 { 0.0 } else { root((limit, excess_limit), (0.0, excess_zero), at)? };
                let threshold_pkts = Some(threshold);
                let admission = Admission { objective, loss_ratio_max, rate_factor: 1.0, threshold_pkts };
                Ok((with(threshold)?, admission))
            }
        }
    }

    /// Returns the model with the rates of all sources multiplied; the threshold functions stay.
    pub fn scaled(&self, factor: f64) -> Result<Self, Error> {
        let sources = self.sources().iter().map(|source| source.scaled(factor)).collect::<Result<_, _>>()?;
        Model::new(self.queue(), sources)?.with_thresholds(self.action(), self.thresholds().to_vec())
    }
}

/// Root of `at`, approached from the side where it is not above 0, between a point with a value of at most 0 and one
/// above.
fn root(
    (mut low, mut value_low): (f64, f64),
    (mut high, value_high): (f64, f64),
    mut at: impl FnMut(f64) -> Result<f64, Error>,
) -> Result<f64, Error> {
    // Side that moved last; the value at the other one is halved, so that it moves next (Illinois rule).
    let (mut weight_low, mut weight_high) = (value_low, value_high);
    let mut side = 0;
    for number in 0..SOLUTIONS_MAX {
        if value_low >= -PRECISION || (high - low).abs() <= 1e-14 * low.abs().max(high.abs()) {
            return Ok(low);
        }
        let secant = (low * weight_high - high * weight_low) / (weight_high - weight_low);
        let inside = secant > low.min(high) && secant < low.max(high);
        let bisect = !inside || !value_low.is_finite() || number % 8 == 7;
        let middle = if bisect { (low + high) / 2.0 } else { secant };
        let of = at(middle)?;
        if of <= 0.0 {
            (low, value_low, weight_low) = (middle, of, of);
            weight_high *= if side < 0 { 0.5 } else { 1.0 };
            side = -1;
        } else {
            (high, weight_high) = (middle, of);
            weight_low *= if side > 0 { 0.5 } else { 1.0 };
            side = 1;
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Queue, Source};

    fn two(loss: f64, objective: Objective) -> Result<(Model, Admission), Error> {
        let source = |name: &str, high: f64, down: f64| {
            Source::new(name, &[vec![-down, down], vec![1.5, -1.5]], &[high, 40.0]).unwrap()
        };
        let queue = Queue { capacity: 30, service_rate: 400.0, stages: 2 };
        Model::new(queue, vec![source("a", 300.0, 2.0), source("b", 220.0, 0.7)])?.find_admission(objective, loss)
    }

    fn greatest_loss(model: &Model) -> f64 {
        model.solve().unwrap().sources.iter().map(|source| source.loss_ratio).fold(0.0, f64::max)
    }

    #[test]
    fn the_loss_at_the_greatest_load_is_the_bound() {
        for bound in [0.5, 0.05, 1e-3, 1e-9] {
            let (model, admission) = two(bound, Objective::Load).unwrap();
            let loss = greatest_loss(&model);
            assert!((loss / bound - 1.0).abs() < 1e-9, "{loss} for {bound}");
            assert_eq!((admission.objective, admission.loss_ratio_max), (Objective::Load, bound));
            assert_eq!(admission.threshold_pkts, None);
            assert!((model.sources()[0].rates()[0] / 300.0 / admission.rate_factor - 1.0).abs() < 1e-15);
            // A slightly greater load exceeds the bound.
            assert!(greatest_loss(&model.scaled(1.0001).unwrap()) > bound);
        }
    }

    #[test]
    fn the_greatest_load_of_a_poisson_source_has_the_closed_form() {
        // M/M/1/1 loses rho / (1 + rho): a bound of .2 is met at rho = .25, from either side.
        for rate in [2.0, 25.0, 900.0] {
            let queue = Queue { capacity: 1, service_rate: 100.0, stages: 1 };
            let model = Model::new(queue, vec![Source::poisson("p", rate).unwrap()]).unwrap();
            let (model, admission) = model.find_admission(Objective::Load, 0.2).unwrap();
            assert!((model.load() - 0.25).abs() < 1e-9, "{}", model.load());
            assert!((admission.rate_factor * rate - 25.0).abs() < 1e-7);
        }
    }

    #[test]
    fn the_loss_at_the_least_threshold_is_the_bound() {
        let lowest = two(0.999, Objective::Threshold).unwrap().0;
        assert_eq!(lowest.thresholds(), [Some(0.0), Some(0.0)]);
        for bound in [0.15, 0.12] {
            let (model, admission) = two(bound, Objective::Threshold).unwrap();
            let loss = greatest_loss(&model);
            assert!((loss / bound - 1.0).abs() < 1e-9, "{loss} for {bound}");
            let threshold = admission.threshold_pkts.unwrap();
            assert_eq!(model.thresholds(), [Some(threshold); 2]);
            assert_eq!(admission.rate_factor, 1.0);
            let lower = model.with_thresholds(Action::Drop, vec![Some(threshold - 0.01); 2]).unwrap();
            assert!(greatest_loss(&lower) > bound, "a lower one would do");
        }
    }

    #[test]
    fn the_least_threshold_of_a_poisson_source_has_the_closed_form() {
        // M/M/1/2 at a load of 1, an arrival that meets one packet dropped with f = (1 - th) / (2 - th): the states are
        // as 1, 1, 1 - f, of which f + 1 - f meet a drop. A loss of 1 / (3 - f) = .35 takes f = 1/7, th = 5/6.
        let queue = Queue { capacity: 2, service_rate: 100.0, stages: 1 };
        let model = Model::new(queue, vec![Source::poisson("p", 100.0).unwrap()]).unwrap();
        let (model, admission) = model.find_admission(Objective::Threshold, 0.35).unwrap();
        assert!((admission.threshold_pkts.unwrap() - 5.0 / 6.0).abs() < 1e-8, "{admission:?}");
        assert!((greatest_loss(&model) - 0.35).abs() < 1e-9);
        // Without early drops a third is lost: a lower bound is infeasible, and any threshold meets .4 and more.
        assert!(model.clone().find_admission(Objective::Threshold, 0.33).is_err());
        assert_eq!(model.find_admission(Objective::Threshold, 0.41).unwrap().1.threshold_pkts, Some(0.0));
    }

    #[test]
    fn an_infeasible_bound_is_refused_with_the_loss_without_early_drops() {
        let message = two(1e-6, Objective::Threshold).unwrap_err().to_string();
        assert!(message.starts_with("without early drops a source has a loss ratio of 0."), "{message}");
        for bound in [0.0, 1.0, f64::NAN] {
            assert!(two(bound, Objective::Load).unwrap_err().to_string().contains("must be above 0 and below 1"));
        }
    }

    #[test]
    fn a_search_reports_the_remaining_time_and_can_be_cancelled() {
        let source = |s: u32| Source::new(format!("s{s}"), &[vec![-2.0, 2.0], vec![1.0, -1.0]], &[9.0, 1.0]).unwrap();
        let queue = Queue { capacity: 20, service_rate: 40.0, stages: 1 };
        let model = Model::new(queue, (0..9).map(source).collect()).unwrap();
        let mut reports = Vec::new();
        let stopped = model.clone().find_admission_with_progress(Objective::Load, 0.01, &mut |left| {
            reports.push(left);
            reports.len() < 5
        });
        assert!(matches!(stopped, Err(Error::Cancelled)), "{reports:?}");
        assert!(reports.len() == 5 && reports[0] > 5.0 * model.time_estimate().unwrap(), "{reports:?}");
    }

    /// Root of `of` between two ends, and the number of evaluations.
    fn find_root(low: f64, high: f64, of: impl Fn(f64) -> f64) -> (f64, u32) {
        let mut evaluations = 0;
        let at = |x: f64| {
            evaluations += 1;
            Ok(of(x))
        };
        let zero_found = root((low, of(low)), (high, of(high)), at).unwrap();
        (zero_found, evaluations)
    }

    #[test]
    fn a_root_is_found_from_below_within_the_expected_number_of_solutions() {
        // A line takes one secant, a curve a few. Loss falls with a threshold, so the ends may be swapped.
        assert_eq!(find_root(-1.0, 3.0, |x| x - 2.0).1, 1);
        let convex = |x: f64| x.exp() - 2.0;
        let concave = |x: f64| 2.0 - (-x).exp();
        for (low, high, zero, of) in [
            (0.0, 3.0, 2f64.ln(), &convex as &dyn Fn(f64) -> f64),
            (-3.0, 2.0, -(2f64.ln()), &concave),
            (9.0, 0.1, 4.0, &|x: f64| (4.0 / x).ln()),
            (-10.0, 10.0, 0.3, &|x: f64| (x - 0.3) * (1.0 + 0.2 * (x - 0.3).powi(2))),
        ] {
            let (zero_found, evaluations) = find_root(low, high, of);
            assert!(
                (zero_found - zero).abs() < 1e-9 && (-PRECISION..=0.0).contains(&of(zero_found)),
                "{zero}: {zero_found}"
            );
            assert!(f64::from(evaluations) <= SOLUTIONS_EXPECTED, "{zero}: {evaluations}");
        }
    }

    #[test]
    fn bisection_finds_roots_beside_infinite_values_and_at_jumps() {
        // No loss below 1: a secant cannot use its logarithm.
        let (zero_found, evaluations) =
            find_root(0.0, 8.0, |x| if x < 1.0 { f64::NEG_INFINITY } else { (x - 3.0).min(1.0) });
        assert!((zero_found - 3.0).abs() < 1e-9 && evaluations < 20, "{zero_found} {evaluations}");
        // A jump from -1 to 1 at 1/3: bisection alone converges there, one step in eight at least.
        let (zero_found, evaluations) = find_root(0.0, 1.0, |x| if x < 1.0 / 3.0 { -1.0 } else { 1.0 });
        assert!(
            zero_found < 1.0 / 3.0 && 1.0 / 3.0 - zero_found < 1e-12 && evaluations < SOLUTIONS_MAX,
            "{zero_found} {evaluations}"
        );
        // A flat end: secants alone converge slowly.
        let (zero_found, evaluations) = find_root(0.0, 1.0, |x| x.powi(30) - 1e-6);
        assert!((zero_found - 1e-6f64.powf(1.0 / 30.0)).abs() < 1e-6 && evaluations < 40, "{zero_found} {evaluations}");
        assert!(root((0.0, -1.0), (1.0, 1.0), |_| Err(Error::Cancelled)).is_err());
    }
}
