//! A source from a trace: a superposition of two-state processes, each with its own time scale.
//!
//! The rate of J independent two-state processes with variances v_j that relax at rates kappa_j has the autocovariance
//! sum v_j exp(-kappa_j t). Its index of dispersion of counts is
//!
//!   I(t) = 1 + sum w_j c(kappa_j t),   w_j = 2 v_j / (a kappa_j),   c(x) = 1 - (1 - exp(-x)) / x
//!
//! and the third central moment of its counts is K3 + 3 (V - a t) + a t with
//!
//!   K3(t) = sum 6 s_j v_j h(kappa_j, t),   h = (x (1 + exp(-x)) - 2 (1 - exp(-x))) / kappa^3,   s_j = g sqrt(v_j)
//!
//! I(t) is linear in the w_j, so for given kappa_j the best w_j follow at once; the kappa_j are searched. One skewness g for
//! all processes follows from the third moments, and the rest of the mean rate is a Poisson process. Three processes have
//! eight states: three levels, as in the AAQM paper's MMPP-8.

use super::Error;
use super::counts::{autocorrelation, dispersion};
use super::source::{Source, Superposition};
use super::trace::{Scale, Summary};

/// A source fitted to a trace, and how well.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The source.
    pub source: Source,
    /// What the trace says.
    pub trace: Summary,
    /// Its two-state processes, slowest first.
    pub components: Vec<Component>,
    /// Packets per second of the Poisson process beside them.
    pub poisson_pps: f64,
    /// For each scale of the trace, the index of dispersion measured and fitted.
    pub dispersion: Vec<(f64, f64)>,
    /// Root of the mean squared relative error of these.
    pub dispersion_error: f64,
    /// Window at which the autocorrelation is compared, seconds.
    pub window_s: f64,
    /// Autocorrelation of the counts in such windows at lags 1, 2, ..., measured and fitted.
    pub autocorrelation: Vec<(f64, f64)>,
    /// What a user should know before believing it.
    pub warnings: Vec<String>,
}

/// A two-state process of a fit. Its lower rate is zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// One over the time in which it forgets its state, kappa, per second.
    pub relaxation: f64,
    /// Variance of its rate, (packets per second) squared.
    pub variance: f64,
    /// Packets per second in its higher state.
    pub high_pps: f64,
    /// Share of time in its higher state.
    pub high_share: f64,
}

/// Most components.
pub const COMPONENTS_MAX: u32 = 3;

/// Fits a source called `name` with at most so many components.
pub fn fit(name: &str, trace: Summary, components_max: u32) -> Result<Fit, Error> {
    if trace.scales.len() < 3 {
        let message = "the trace is too short: it has too few windows in which to count packets";
        return Err(Error::Trace(message.into()));
    }
    let mean = trace.rate_pps;
    let curve = Curve::of(&trace.scales);
    let chosen = curve.choose(components_max.min(COMPONENTS_MAX) as usize);
    let variances: Vec<(f64, f64)> =
        chosen.iter().map(|&(kappa, weight)| (kappa, weight * mean * kappa / 2.0)).collect();
    // r = sqrt(share high / share low) of all processes; the mean must cover their lower rate, zero.
    let spread: f64 = variances.iter().map(|(_, v)| v.sqrt()).sum();
    let skewness = skewness(&trace.scales, mean, &variances);
    // r + g = 1 / r; for g above zero in the form that does not cancel.
    let root = (skewness * skewness + 4.0).sqrt();
    let wanted = if skewness > 0.0 { 2.0 / (root + skewness) } else { (root - skewness) / 2.0 };
    let r = if spread > 0.0 { wanted.min(mean / spread) } else { 0.0 };
    let mut components: Vec<Component> = variances
        .iter()
        .map(|&(relaxation, variance)| Component {
            relaxation,
            variance,
            high_pps: variance.sqrt() * (r + 1.0 / r),
            high_share: r * r / (1.0 + r * r),
        })
        .collect();
    components.sort_by(|a, b| a.relaxation.total_cmp(&b.relaxation));
    let poisson_pps = (mean - r * spread).max(0.0);
    let source = assemble(name, &components, poisson_pps)?;
    Ok(Fit::new(source, trace, components, poisson_pps))
}

impl Fit {
    fn new(source: Source, trace: Summary, components: Vec<Component>, poisson_pps: f64) -> Self {
        let own = std::slice::from_ref(&source);
        let measured = |scale: &Scale| scale.variance / scale.mean;
        let curve: Vec<(f64, f64)> =
            trace.scales.iter().map(|scale| (measured(scale), dispersion(own, scale.window_s))).collect();
        let squares: f64 = curve.iter().map(|(measured, fitted)| (fitted / measured - 1.0).powi(2)).sum();
        let dispersion_error = (squares / curve.len() as f64).sqrt();
        // A quarter of the time scale that carries most of the variance: the lags then span four of them.
        let main = components.iter().max_by(|a, b| {
            let weight = |c: &Component| c.variance / c.relaxation;
            weight(a).total_cmp(&weight(b))
        });
        let wanted_s = main.map_or(10.0 / trace.rate_pps, |main| 0.25 / main.relaxation);
        let enough: Vec<&Scale> = trace.scales.iter().filter(|scale| scale.windows >= 100).collect();
        let distance = |scale: &Scale| libm::fabs(libm::log(scale.window_s / wanted_s));
        let scale = enough.into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(&trace.scales[0]);
        let fitted = autocorrelation(own, scale.window_s, scale.autocorrelation.len() as u32);
        let correlation = scale.autocorrelation.iter().copied().zip(fitted).collect();
        let window_s = scale.window_s;

        let mut warnings = Vec::new();
        let [.., before, last] = &trace.scales[..] else { unreachable!("a fit has at least three scales") };
        if measured(last) > 1.2 * measured(before) {
            warnings.push(format!(
                "the index of dispersion still rises at windows of {:.3} s: the rate drifts or is correlated over longer \
                 times than the trace shows; losses in large buffers are underestimated",
                last.window_s
            ));
        }
        if let Some(scale) = trace.scales.iter().find(|scale| measured(scale) < 0.8 && scale.mean > 2.0) {
            warnings.push(format!(
                "the trace is smoother than Poisson (index of dispersion {:.2} in windows of {:.6} s), which no MMPP is; \
                 losses are overestimated",
                measured(scale),
                scale.window_s
            ));
        }
        if dispersion_error > 0.15 {
            warnings.push(format!(
                "the fit misses the index of dispersion by {:.0} % on average",
                100.0 * dispersion_error
            ));
        }
        if trace.reordered > 0 {
            warnings.push(format!("{} packets have a time before that of one ahead of them", trace.reordered));
        }
        Fit {
            source,
            trace,
            components,
            poisson_pps,
            dispersion: curve,
            dispersion_error,
            window_s,
            autocorrelation: correlation,
            warnings,
        }
    }
}

/// The processes and the Poisson process as one source.
fn assemble(name: &str, components: &[Component], poisson_pps: f64) -> Result<Source, Error> {
    if components.is_empty() {
        return Source::poisson(name, poisson_pps);
    }
    let processes = components.iter().map(|component| {
        let (down, up) =
            (component.relaxation * (1.0 - component.high_share), component.relaxation * component.high_share);
        Source::new(name, &[vec![-down, down], vec![up, -up]], &[component.high_pps, 0.0])
    });
    let processes = processes.collect::<Result<Vec<_>, _>>()?;
    let together = Superposition::of(&processes);
    let states = together.states();
    let rates: Vec<f64> =
        (0..states).map(|j| poisson_pps + together.rates.iter().map(|of| of[j]).sum::<f64>()).collect();
    let generator: Vec<Vec<f64>> = (0..states).map(|j| together.generator.row(j).to_vec()).collect();
    Source::new(name, &generator, &rates)
}

/// c(x) = 1 - (1 - exp(-x)) / x.
fn rise(x: f64) -> f64 {
    if x < 1e-4 { x / 2.0 - x * x / 6.0 } else { 1.0 + libm::expm1(-x) / x }
}

/// The integral of (t - u) u exp(-kappa u) over u from 0 to t.
fn third_integral(kappa: f64, t: f64) -> f64 {
    let x = kappa * t;
    if x < 0.01 {
        t * t * t * (1.0 / 6.0 - x / 12.0 + x * x / 40.0)
    } else {
        (x * (1.0 + libm::exp(-x)) + 2.0 * libm::expm1(-x)) / (kappa * kappa * kappa)
    }
}

/// The skewness g of all processes that fits the third moments of the counts best.
fn skewness(scales: &[Scale], mean: f64, variances: &[(f64, f64)]) -> f64 {
    let (mut along, mut square) = (0.0, 0.0);
    for scale in scales {
        let t = scale.window_s;
        let measured = scale.third - 3.0 * scale.variance + 2.0 * mean * t;
        let unit: f64 = variances.iter().map(|(kappa, v)| 6.0 * v * v.sqrt() * third_integral(*kappa, t)).sum();
        let weight = scale.windows as f64 / (scale.variance * scale.variance * scale.variance);
        along += weight * measured * unit;
        square += weight * unit * unit;
    }
    if square > 0.0 { along / square } else { 0.0 }
}

/// The measured index of dispersion, and how much each point of it counts.
struct Curve {
    t: Vec<f64>,
    excess: Vec<f64>,
    weight: Vec<f64>,
}

impl Curve {
    fn of(scales: &[Scale]) -> Self {
        let ratio: Vec<f64> = scales.iter().map(|scale| scale.variance / scale.mean).collect();
        // A variance of n windows is uncertain by 2/n at least, squared and relative; 1 % is enough for any.
        let weight = |(scale, ratio): (&Scale, &f64)| 1.0 / (ratio * ratio * (2.0 / scale.windows as f64 + 1e-4));
        Curve {
            t: scales.iter().map(|scale| scale.window_s).collect(),
            weight: scales.iter().zip(&ratio).map(weight).collect(),
            excess: ratio.iter().map(|ratio| ratio - 1.0).collect(),
        }
    }

    /// The components (kappa, w) that explain the curve: as few as do it about as well.
    fn choose(&self, most: usize) -> Vec<(f64, f64)> {
        // Six per decade, from a fifth of the longest window to five times the shortest.
        let (low, high) = (0.2 / self.t[self.t.len() - 1], 5.0 / self.t[0]);
        let steps = (6.0 * libm::log10(high / low)).ceil() as u32;
        let grid: Vec<f64> = (0..=steps).map(|i| low * libm::exp10(f64::from(i) / 6.0)).collect();
        let penalty = 2.0 * libm::log(self.t.len() as f64);
        let mut best = (self.misfit(&[]).0, Vec::new());
        for count in 1..=most {
            let mut found: Option<(f64, Vec<f64>)> = None;
            subsets(grid.len(), count, &mut |chosen| {
                let kappas: Vec<f64> = chosen.iter().map(|i| grid[*i]).collect();
                let (misfit, weights) = self.misfit(&kappas);
                // With a weight of zero or less it is a smaller set in disguise.
                let better = found.as_ref().is_none_or(|(least, _)| misfit < *least);
                if better && weights.iter().all(|w| *w > 0.0) {
                    found = Some((misfit, kappas));
                }
            });
            let Some((misfit, kappas)) = found else { break };
            let (misfit, kappas) = self.refine(misfit, kappas);
            let score = misfit + penalty * count as f64;
            if score < best.0 {
                best = (score, kappas);
            }
        }
        let weights = self.misfit(&best.1).1;
        best.1.into_iter().zip(weights).collect()
    }

    /// Moves each kappa as long as that helps, in ever smaller steps.
    fn refine(&self, mut misfit: f64, mut kappas: Vec<f64>) -> (f64, Vec<f64>) {
        let mut step = 1.2;
        while step > 1.001 {
            let mut moved = false;
            for i in 0..kappas.len() {
                for factor in [step, 1.0 / step] {
                    let mut tried = kappas.clone();
                    tried[i] *= factor;
                    let (other, weights) = self.misfit(&tried);
                    if other < misfit && weights.iter().all(|w| *w > 0.0) {
                        (misfit, kappas, moved) = (other, tried, true);
                    }
                }
            }
            if !moved {
                step = step.sqrt();
            }
        }
        (misfit, kappas)
    }

    /// The least weighted sum of squares with these kappas, and the w that reach it, of any sign.
    fn misfit(&self, kappas: &[f64]) -> (f64, Vec<f64>) {
        let n = kappas.len();
        let rises: Vec<Vec<f64>> =
            kappas.iter().map(|kappa| self.t.iter().map(|t| rise(kappa * t)).collect()).collect();
        let dot = |x: &[f64], y: &[f64]| -> f64 {
            x.iter().zip(y).zip(&self.weight).map(|((x, y), weight)| x * y * weight).sum()
        };
        let mut weights = Vec::new();
        if n > 0 {
            let mut normal = super::dense::Square::zero(n);
            for i in 0..n {
                (0..n).for_each(|j| normal[(i, j)] = dot(&rises[i], &rises[j]));
            }
            let right: Vec<f64> = rises.iter().map(|rise| dot(rise, &self.excess)).collect();
            weights = normal.solve(&right);
        }
        let residual: Vec<f64> =
            (0..self.t.len()).map(|l| self.excess[l] - (0..n).map(|i| weights[i] * rises[i][l]).sum::<f64>()).collect();
        (dot(&residual, &residual), weights)
    }
}

/// Calls `take` with every choice of `count` among `0..n`, in order.
fn subsets(n: usize, count: usize, take: &mut impl FnMut(&[usize])) {
    fn extend(n: usize, left: usize, chosen: &mut Vec<usize>, take: &mut impl FnMut(&[usize])) {
        if left == 0 {
            return take(chosen);
        }
        for next in chosen.last().map_or(0, |last| last + 1)..n {
            chosen.push(next);
            extend(n, left - 1, chosen, take);
            chosen.pop();
        }
    }
    extend(n, count, &mut Vec::with_capacity(count), take);
}
