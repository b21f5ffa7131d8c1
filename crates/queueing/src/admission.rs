//! What may be admitted for a given loss: how much load, or which threshold.
//!
//! Two questions of the same root: with a bound on the loss of each source, by which factor may the rates of all
//! sources grow together; and from which occupancy on must packets be dropped early. Loss grows with the factor and
//! falls with the threshold, so that there is one answer, found by secants between two sides that are kept apart
//! (Illinois rule).

use crate::early::Action;
use crate::{Error, Model};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The most load.
    Load,
    /// The least threshold, one for all sources.
    Threshold,
}

/// The answer: with the model that it belongs to, the source that loses most loses what was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Admission {
    /// What was asked.
    pub question: Question,
    /// The bound on the share of packets lost, of each source.
    pub loss_ratio_max: f64,
    /// By what the rates of all sources were multiplied.
    pub rate_factor: f64,
    /// The threshold in packets, where that was asked.
    pub threshold_pkts: Option<f64>,
}

/// How close to the bound the loss comes, as a share of it.
const PRECISION: f64 = 1e-10;

/// Most solutions of a search.
const SOLUTIONS_MAX: u32 = 120;

/// How many it takes, about.
const SOLUTIONS_FORESEEN: f64 = 14.0;

impl Model {
    /// The same model under the most load, or with the least threshold, at which no source loses more than
    /// `loss_ratio_max`.
    pub fn admitting(self, question: Question, loss_ratio_max: f64) -> Result<(Self, Admission), Error> {
        self.admitting_telling(question, loss_ratio_max, &mut |_| true)
    }

    /// The same; `hear` is told how many seconds are left, about, and answers whether to go on.
    pub fn admitting_telling(
        self,
        question: Question,
        loss_ratio_max: f64,
        hear: &mut dyn FnMut(f64) -> bool,
    ) -> Result<(Self, Admission), Error> {
        if !(loss_ratio_max > 0.0 && loss_ratio_max < 1.0) {
            return Err(Error::Queue(format!(
                "a loss of {loss_ratio_max} is no bound; it must be above 0 and below 1"
            )));
        }
        let one = self.seconds()?;
        let mut ahead = SOLUTIONS_FORESEEN;
        // The logarithm of the greatest loss over the bound.
        let mut excess = |model: &Model| -> Result<f64, Error> {
            ahead = (ahead - 1.0).max(0.0);
            let measures = model.solve_telling(&mut |left| hear(left + one * ahead))?;
            let losses = measures.sources.iter().map(|source| source.loss_ratio).filter(|loss| !loss.is_nan());
            Ok(libm::log(losses.fold(0.0, f64::max) / loss_ratio_max))
        };
        match question {
            Question::Load => {
                let mut at = |x: f64| excess(&self.scaled(libm::exp(x))?);
                // The factor's logarithm, from one side of the bound to the other.
                let (mut low, mut high) = (0.0, 0.0);
                let mut of = at(0.0)?;
                let (mut of_low, mut of_high) = (of, of);
                let mut step = 0.25;
                while of > 0.0 {
                    (high, of_high) = (low, of);
                    low -= step;
                    step *= 2.0;
                    of = at(low)?;
                    of_low = of;
                }
                while of_high <= 0.0 {
                    (low, of_low) = (high, of_high);
                    high += step;
                    step *= 2.0;
                    of_high = at(high)?;
                }
                let factor = libm::exp(root((low, of_low), (high, of_high), at)?);
                let answer = Admission { question, loss_ratio_max, rate_factor: factor, threshold_pkts: None };
                Ok((self.scaled(factor)?, answer))
            }
            Question::Threshold => {
                let with = |threshold: f64| {
                    let thresholds = vec![Some(threshold); self.sources().len()];
                    self.clone().with_thresholds(Action::Drop, thresholds)
                };
                let mut at = |threshold: f64| excess(&with(threshold)?);
                let limit = f64::from(self.queue().capacity);
                let (of_zero, of_limit) = (at(0.0)?, at(limit)?);
                if of_limit > 0.0 {
                    let loss = libm::exp(of_limit) * loss_ratio_max;
                    return Err(Error::Queue(format!(
                        "without any early drop a source loses {loss:.4} already; no threshold keeps it at {loss_ratio_max}"
                    )));
                }
                let threshold = if of_zero <= 0.0 { 0.0 } else { root((limit, of_limit), (0.0, of_zero), at)? };
                let threshold_pkts = Some(threshold);
                let answer = Admission { question, loss_ratio_max, rate_factor: 1.0, threshold_pkts };
                Ok((with(threshold)?, answer))
            }
        }
    }

    /// The same model with the rates of all sources multiplied; the threshold functions stay.
    pub fn scaled(&self, factor: f64) -> Result<Self, Error> {
        let sources = self.sources().iter().map(|source| source.scaled(factor)).collect::<Result<_, _>>()?;
        Model::new(self.queue(), sources)?.with_thresholds(self.action(), self.thresholds().to_vec())
    }
}

/// Where `at` is 0, or just below, between a place where it is not above 0 and one where it is.
fn root(
    (mut low, mut of_low): (f64, f64),
    (mut high, of_high): (f64, f64),
    mut at: impl FnMut(f64) -> Result<f64, Error>,
) -> Result<f64, Error> {
    // The last side that gave way; what stays twice is weighed half, so that both come closer.
    let (mut weight_low, mut weight_high) = (of_low, of_high);
    let mut side = 0;
    for number in 0..SOLUTIONS_MAX {
        if of_low >= -PRECISION || (high - low).abs() <= 1e-14 * low.abs().max(high.abs()) {
            return Ok(low);
        }
        let secant = (low * weight_high - high * weight_low) / (weight_high - weight_low);
        let inside = secant > low.min(high) && secant < low.max(high);
        let halves = !inside || !of_low.is_finite() || number % 8 == 7;
        let middle = if halves { (low + high) / 2.0 } else { secant };
        let of = at(middle)?;
        if of <= 0.0 {
            (low, of_low, weight_low) = (middle, of, of);
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

    fn two(loss: f64, question: Question) -> Result<(Model, Admission), Error> {
        let source = |name: &str, high: f64, down: f64| {
            Source::new(name, &[vec![-down, down], vec![1.5, -1.5]], &[high, 40.0]).unwrap()
        };
        let queue = Queue { capacity: 30, service_rate: 400.0, stages: 2 };
        Model::new(queue, vec![source("a", 300.0, 2.0), source("b", 220.0, 0.7)])?.admitting(question, loss)
    }

    fn greatest_loss(model: &Model) -> f64 {
        model.solve().unwrap().sources.iter().map(|source| source.loss_ratio).fold(0.0, f64::max)
    }

    #[test]
    fn at_the_load_that_is_answered_the_loss_is_the_bound() {
        for bound in [0.5, 0.05, 1e-3, 1e-9] {
            let (model, answer) = two(bound, Question::Load).unwrap();
            let loss = greatest_loss(&model);
            assert!((loss / bound - 1.0).abs() < 1e-9, "{loss} for {bound}");
            assert_eq!((answer.question, answer.loss_ratio_max), (Question::Load, bound));
            assert_eq!(answer.threshold_pkts, None);
            assert!((model.sources()[0].rates()[0] / 300.0 / answer.rate_factor - 1.0).abs() < 1e-15);
            // A little more is too much.
            assert!(greatest_loss(&model.scaled(1.0001).unwrap()) > bound);
        }
    }

    #[test]
    fn the_load_of_a_poisson_source_is_that_of_the_closed_form() {
        // M/M/1/1 loses rho / (1 + rho): a bound of .2 is met at rho = .25, from either side.
        for rate in [2.0, 25.0, 900.0] {
            let queue = Queue { capacity: 1, service_rate: 100.0, stages: 1 };
            let model = Model::new(queue, vec![Source::poisson("p", rate).unwrap()]).unwrap();
            let (model, answer) = model.admitting(Question::Load, 0.2).unwrap();
            assert!((model.load() - 0.25).abs() < 1e-9, "{}", model.load());
            assert!((answer.rate_factor * rate - 25.0).abs() < 1e-7);
        }
    }

    #[test]
    fn at_the_threshold_that_is_answered_the_loss_is_the_bound() {
        let lowest = two(0.999, Question::Threshold).unwrap().0;
        assert_eq!(lowest.thresholds(), [Some(0.0), Some(0.0)]);
        for bound in [0.15, 0.12] {
            let (model, answer) = two(bound, Question::Threshold).unwrap();
            let loss = greatest_loss(&model);
            assert!((loss / bound - 1.0).abs() < 1e-9, "{loss} for {bound}");
            let threshold = answer.threshold_pkts.unwrap();
            assert_eq!(model.thresholds(), [Some(threshold); 2]);
            assert_eq!(answer.rate_factor, 1.0);
            let lower = model.with_thresholds(Action::Drop, vec![Some(threshold - 0.01); 2]).unwrap();
            assert!(greatest_loss(&lower) > bound, "a lower one would do");
        }
    }

    #[test]
    fn the_threshold_of_a_poisson_source_is_that_of_the_closed_form() {
        // M/M/1/2 at a load of 1, an arrival that meets one packet dropped with f = (1 - th) / (2 - th): the states are
        // as 1, 1, 1 - f, of which f + 1 - f meet a drop. A loss of 1 / (3 - f) = .35 takes f = 1/7, th = 5/6.
        let queue = Queue { capacity: 2, service_rate: 100.0, stages: 1 };
        let model = Model::new(queue, vec![Source::poisson("p", 100.0).unwrap()]).unwrap();
        let (model, answer) = model.admitting(Question::Threshold, 0.35).unwrap();
        assert!((answer.threshold_pkts.unwrap() - 5.0 / 6.0).abs() < 1e-8, "{answer:?}");
        assert!((greatest_loss(&model) - 0.35).abs() < 1e-9);
        // Without early drops a third is lost: less is out of reach, and .4 and more is kept by any threshold.
        assert!(model.clone().admitting(Question::Threshold, 0.33).is_err());
        assert_eq!(model.admitting(Question::Threshold, 0.41).unwrap().1.threshold_pkts, Some(0.0));
    }

    #[test]
    fn what_no_threshold_can_keep_is_refused_with_what_is_lost_without() {
        let message = two(1e-6, Question::Threshold).unwrap_err().to_string();
        assert!(message.starts_with("without any early drop a source loses 0."), "{message}");
        for bound in [0.0, 1.0, f64::NAN] {
            assert!(two(bound, Question::Load).unwrap_err().to_string().contains("is no bound"));
        }
    }

    #[test]
    fn a_search_says_how_much_is_left_and_ends_where_it_is_asked_to() {
        let source = |s: u32| Source::new(format!("s{s}"), &[vec![-2.0, 2.0], vec![1.0, -1.0]], &[9.0, 1.0]).unwrap();
        let queue = Queue { capacity: 20, service_rate: 40.0, stages: 1 };
        let model = Model::new(queue, (0..9).map(source).collect()).unwrap();
        let mut heard = Vec::new();
        let stopped = model.clone().admitting_telling(Question::Load, 0.01, &mut |left| {
            heard.push(left);
            heard.len() < 5
        });
        assert!(matches!(stopped, Err(Error::Stopped)), "{heard:?}");
        assert!(heard.len() == 5 && heard[0] > 5.0 * model.seconds().unwrap(), "{heard:?}");
    }

    /// Where `root` finds the zero of `of`, between two ends, and how often it asked.
    fn found(low: f64, high: f64, of: impl Fn(f64) -> f64) -> (f64, u32) {
        let mut asked = 0;
        let at = |x: f64| {
            asked += 1;
            Ok(of(x))
        };
        let place = root((low, of(low)), (high, of(high)), at).unwrap();
        (place, asked)
    }

    #[test]
    fn a_root_is_found_from_below_within_the_solutions_that_are_foreseen() {
        // A line takes one secant; what bends to either side some; loss falls with a threshold, so that ends may swap.
        assert_eq!(found(-1.0, 3.0, |x| x - 2.0).1, 1);
        let convex = |x: f64| x.exp() - 2.0;
        let concave = |x: f64| 2.0 - (-x).exp();
        for (low, high, zero, of) in [
            (0.0, 3.0, 2f64.ln(), &convex as &dyn Fn(f64) -> f64),
            (-3.0, 2.0, -(2f64.ln()), &concave),
            (9.0, 0.1, 4.0, &|x: f64| (4.0 / x).ln()),
            (-10.0, 10.0, 0.3, &|x: f64| (x - 0.3) * (1.0 + 0.2 * (x - 0.3).powi(2))),
        ] {
            let (place, asked) = found(low, high, of);
            assert!((place - zero).abs() < 1e-9 && (-PRECISION..=0.0).contains(&of(place)), "{zero}: {place}");
            assert!(f64::from(asked) <= SOLUTIONS_FORESEEN, "{zero}: {asked}");
        }
    }

    #[test]
    fn a_side_without_a_finite_value_is_halved_away_and_a_jump_is_closed_in_on() {
        // No loss at all below 1: its logarithm is no number that a secant could use.
        let (place, asked) = found(0.0, 8.0, |x| if x < 1.0 { f64::NEG_INFINITY } else { (x - 3.0).min(1.0) });
        assert!((place - 3.0).abs() < 1e-9 && asked < 20, "{place} {asked}");
        // From -1 to 1 at the third: halvings alone end there, one in eight at least.
        let (place, asked) = found(0.0, 1.0, |x| if x < 1.0 / 3.0 { -1.0 } else { 1.0 });
        assert!(place < 1.0 / 3.0 && 1.0 / 3.0 - place < 1e-12 && asked < SOLUTIONS_MAX, "{place} {asked}");
        // A flat end: secants alone crawl.
        let (place, asked) = found(0.0, 1.0, |x| x.powi(30) - 1e-6);
        assert!((place - 1e-6f64.powf(1.0 / 30.0)).abs() < 1e-6 && asked < 40, "{place} {asked}");
        assert!(root((0.0, -1.0), (1.0, 1.0), |_| Err(Error::Stopped)).is_err());
    }
}
