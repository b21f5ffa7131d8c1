//! Source fitted to a trace: a superposition of ON/OFF processes with different time scales.
//!
//! J independent processes with rate variances v_j and relaxation rates kappa_j have the rate autocovariance sum v_j
//! exp(-kappa_j t). Their index of dispersion for counts is
//!
//!   I(t) = 1 + sum w_j c(kappa_j t),   w_j = 2 v_j / (a kappa_j),   c(x) = 1 - (1 - exp(-x)) / x
//!
//! I(t) is linear in the w_j, so linear least squares gives the best w_j for given kappa_j; the kappa_j are searched.
//! The third cumulant of the integrated rate is
//!
//!   K3(t) = sum 6 g v_j^1.5 h(kappa_j, t),   h = (x (1 + exp(-x)) - 2 (1 - exp(-x))) / kappa^3,   x = kappa t
//!
//! with a common skewness g, estimated from the third moments of the counts. Each process consists of n identical
//! ON/OFF sources (minisources): n does not affect I(t) and g but sets the tail. It is chosen by third and fourth
//! moments. The rest of the mean rate is a Poisson process. Three processes with n = 1 have eight states, three levels:
//! the MMPP-8 of the AAQM paper.

use crate::Error;
use crate::counts::{autocorrelation, dispersion};
use crate::source::{Minisources, Source, Superposition};
use crate::trace::{Scale, Summary};

/// Source fitted to a trace, with the goodness of fit.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The source.
    pub source: Source,
    /// Statistics of the trace.
    pub trace: Summary,
    /// ON/OFF processes of the source, slowest first.
    pub components: Vec<Component>,
    /// Rate of the Poisson process, packets per second.
    pub poisson_pps: f64,
    /// Index of dispersion at each scale of the trace, measured and fitted.
    pub dispersion: Vec<(f64, f64)>,
    /// Root mean square relative error of the fitted index of dispersion.
    pub dispersion_error: f64,
    /// Window of the autocorrelation, seconds.
    pub window_s: f64,
    /// Autocorrelation of the counts at lags 1, 2, ..., measured and fitted.
    pub autocorrelation: Vec<(f64, f64)>,
    /// Warnings about the validity of the fit.
    pub warnings: Vec<String>,
}

/// Process of a fit: identical ON/OFF sources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// Relaxation rate kappa, per second.
    pub relaxation: f64,
    /// Variance of the rate, (packets per second) squared.
    pub variance: f64,
    /// Number of ON/OFF sources, n.
    pub count: u32,
    /// Rate of one source while ON, packets per second.
    pub on_pps: f64,
    /// Fraction of time that one source is ON.
    pub on_share: f64,
}

/// Most components.
pub const COMPONENTS_MAX: u32 = 3;

/// Most states of a fitted source: a queue of 1000 packets with ten stages is then solved in seconds.
const STATES_MAX: u32 = 27;

/// Fits a source called `name` with at most `components_max` components.
pub fn fit(name: &str, trace: Summary, components_max: u32) -> Result<Fit, Error> {
    if trace.scales.len() < 3 {
        let message = "the trace is too short: a fit needs windows of at least three sizes";
        return Err(Error::Trace(message.into()));
    }
    let mean = trace.rate_pps;
    let curve = DispersionCurve::new(&trace.scales);
    let chosen = curve.choose(components_max.min(COMPONENTS_MAX) as usize);
    let variances: Vec<(f64, f64)> =
        chosen.iter().map(|&(kappa, weight)| (kappa, weight * mean * kappa / 2.0)).collect();
    let skewness = skewness(&trace.scales, mean, &variances);
    let counts = (1..STATES_MAX).take_while(|n| (n + 1).pow(variances.len() as u32) <= STATES_MAX);
    let candidates = counts.map(|count| {
        let (components, poisson_pps) = split(mean, &variances, skewness, count);
        (misfit(&trace.scales, mean, &components), components, poisson_pps)
    });
    let best = candidates.min_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let (_, mut components, poisson_pps) = best.expect("a count of one is always feasible");
    components.sort_by(|a, b| a.relaxation.total_cmp(&b.relaxation));
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
        // Window of a quarter of the time scale with most of the variance: the lags then span four time scales.
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
        if measured(last) > 1.2 * measured(before) && correlated(before.autocorrelation[0], before.windows) {
            warnings.push(format!(
                "the index of dispersion still rises at windows of {}: the rate drifts or is correlated over longer times \
                 than the trace covers; losses in large buffers are underestimated",
                format_duration(last.window_s)
            ));
        }
        if let Some(scale) = trace.scales.iter().find(|scale| measured(scale) < 0.8 && scale.mean > 2.0) {
            warnings.push(format!(
                "the trace is smoother than Poisson (index of dispersion {:.2} in windows of {}), unlike any MMPP; losses \
                 are overestimated",
                measured(scale),
                format_duration(scale.window_s)
            ));
        } else if dispersion_error > 0.15 {
            let percent = 100.0 * dispersion_error;
            warnings.push(format!("the root mean square error of the fitted index of dispersion is {percent:.0} %"));
        }
        if trace.reordered > 0 {
            warnings.push(format!("{} packets have an earlier time than the packet before them", trace.reordered));
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

/// Returns whether the counts of neighbouring windows are significantly correlated. The sample correlation of n windows
/// has the standard error 1/sqrt(n) (Bartlett). From windows of t to those of 2 t the index of dispersion grows by the
/// correlation.
fn correlated(measured: f64, windows: u64) -> bool {
    const NORMAL_975: f64 = 1.96;
    measured * (windows as f64).sqrt() > NORMAL_975
}

/// Formats a time for messages.
fn format_duration(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.3} ms", seconds * 1e3) } else { format!("{seconds:.1} s") }
}

/// Superposition of the processes and the Poisson process as one source.
fn assemble(name: &str, components: &[Component], poisson_pps: f64) -> Result<Source, Error> {
    if components.is_empty() {
        return Source::poisson(name, poisson_pps);
    }
    let processes = components.iter().map(|component| {
        let Component { relaxation, count, on_pps, on_share, .. } = *component;
        let (off_rate, on_rate) = (relaxation * (1.0 - on_share), relaxation * on_share);
        Source::minisources(name, &Minisources { count, off_rate, on_rate, rate: on_pps })
    });
    let processes = processes.collect::<Result<Vec<_>, _>>()?;
    let superposition = Superposition::new(&processes);
    let states = superposition.states();
    let rates: Vec<f64> =
        (0..states).map(|j| poisson_pps + superposition.rates.iter().map(|of| of[j]).sum::<f64>()).collect();
    let generator = superposition.generator();
    let generator: Vec<Vec<f64>> = (0..states).map(|j| generator.row(j).to_vec()).collect();
    Source::new(name, &generator, &rates)
}

/// Function c(x) = 1 - (1 - exp(-x)) / x.
fn dispersion_rise(x: f64) -> f64 {
    if x < 1e-4 { x / 2.0 - x * x / 6.0 } else { 1.0 + libm::expm1(-x) / x }
}

/// Integral of (t - u) u exp(-kappa u) over u from 0 to t.
fn third_integral(kappa: f64, t: f64) -> f64 {
    let x = kappa * t;
    if x < 0.01 {
        t * t * t * (1.0 / 6.0 - x / 12.0 + x * x / 40.0)
    } else {
        (x * (1.0 + libm::exp(-x)) + 2.0 * libm::expm1(-x)) / (kappa * kappa * kappa)
    }
}

/// Divides each process into `count` ON/OFF sources; returns them with the rate of the remaining Poisson process.
fn split(mean: f64, variances: &[(f64, f64)], skewness: f64, count: u32) -> (Vec<Component>, f64) {
    let root_n = f64::from(count).sqrt();
    // r = sqrt(P(ON) / P(OFF)) of each source satisfies r + g = 1 / r with the source's own skewness g. This form of
    // the root avoids cancellation.
    let own = skewness * root_n;
    let larger = ((own * own + 4.0).sqrt() + own.abs()) / 2.0;
    let wanted = if own.is_sign_positive() { 1.0 / larger } else { larger };
    // Their sum must not exceed the mean rate.
    let spread = root_n * variances.iter().map(|(_, v)| v.sqrt()).sum::<f64>();
    let r = if spread > 0.0 { wanted.min(mean / spread) } else { 0.0 };
    let component = |&(relaxation, variance): &(f64, f64)| Component {
        relaxation,
        variance,
        count,
        on_pps: variance.sqrt() / root_n * (r + 1.0 / r),
        on_share: r * r / (1.0 + r * r),
    };
    (variances.iter().map(component).collect(), (mean - r * spread).max(0.0))
}

/// Squared deviations of third and fourth cumulants from the measured ones, in units of their sampling variances.
fn misfit(scales: &[Scale], mean: f64, components: &[Component]) -> f64 {
    let mut misfit = 0.0;
    for scale in scales {
        let (t, v) = (scale.window_s, scale.variance);
        // Cumulants of the integrated rate from those of the count: c2 = K2 + K1, c3 = K3 + 3 K2 + K1,
        // c4 = K4 + 6 K3 + 7 K2 + K1.
        let k1 = mean * t;
        let k2 = v - k1;
        let k3 = scale.third - 3.0 * k2 - k1;
        let k4 = scale.fourth - 6.0 * k3 - 7.0 * k2 - k1;
        let fitted = components.iter().map(|component| component.cumulants(t));
        let (third, fourth) = fitted.fold((0.0, 0.0), |(k3, k4), (third, fourth)| (k3 + third, k4 + fourth));
        // Variances of the sample cumulants of n normal values: 6 v^3 / n and 24 v^4 / n.
        let n = scale.windows as f64;
        misfit += n * (k3 - third) * (k3 - third) / (6.0 * v * v * v);
        misfit += n * (k4 - fourth) * (k4 - fourth) / (24.0 * v * v * v * v);
    }
    misfit
}

impl Component {
    /// Third and fourth cumulant of the rate integrated over `t_s` seconds.
    ///
    /// With D the rate minus its mean, the moments m_k by state obey m_k' = Q m_k + k D m_(k-1), m_0 = 1: a linear
    /// system of five blocks of two states.
    fn cumulants(&self, t_s: f64) -> (f64, f64) {
        let (p, q) = (self.on_share, 1.0 - self.on_share);
        let (down, up) = (self.relaxation * q, self.relaxation * p);
        let deviation = [self.on_pps * q, -self.on_pps * p];
        let mut system = crate::dense::SquareMatrix::zero(10);
        for k in 0..5 {
            let i = 2 * k;
            (system[(i, i)], system[(i, i + 1)]) = (-down, down);
            (system[(i + 1, i)], system[(i + 1, i + 1)]) = (up, -up);
            if k > 0 {
                system[(i, i - 2)] = k as f64 * deviation[0] / self.on_pps;
                system[(i + 1, i - 1)] = k as f64 * deviation[1] / self.on_pps;
            }
        }
        let mut start = [0.0; 10];
        (start[0], start[1]) = (1.0, 1.0);
        let end = system.exponential(t_s).apply(&start);
        let moment = |k: usize| p * end[2 * k] + q * end[2 * k + 1];
        let (n, unit) = (f64::from(self.count), self.on_pps);
        let (second, third, fourth) = (moment(2), moment(3), moment(4));
        let cube = unit * unit * unit;
        (n * third * cube, n * (fourth - 3.0 * second * second) * cube * unit)
    }
}

/// Weighted least-squares estimate of the common skewness g from the third moments of the counts.
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

/// Measured index of dispersion, with the weight of each point.
struct DispersionCurve {
    t: Vec<f64>,
    excess: Vec<f64>,
    weight: Vec<f64>,
}

impl DispersionCurve {
    fn new(scales: &[Scale]) -> Self {
        let ratio: Vec<f64> = scales.iter().map(|scale| scale.variance / scale.mean).collect();
        // The relative sampling variance of a variance over n windows is at least 2/n; 1 % accuracy suffices for any
        // point.
        let weight = |(scale, ratio): (&Scale, &f64)| 1.0 / (ratio * ratio * (2.0 / scale.windows as f64 + 1e-4));
        DispersionCurve {
            t: scales.iter().map(|scale| scale.window_s).collect(),
            weight: scales.iter().zip(&ratio).map(weight).collect(),
            excess: ratio.iter().map(|ratio| ratio - 1.0).collect(),
        }
    }

    /// Selects the components (kappa, w) that explain the curve, by an information criterion.
    fn choose(&self, most: usize) -> Vec<(f64, f64)> {
        // Grid of six per decade, from a fifth of the inverse longest window to five times the inverse shortest.
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
                // A set with a weight of zero or less is equivalent to a smaller one.
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

    /// Refines the kappas by coordinate descent with decreasing steps.
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

    /// Returns the least weighted sum of squares for these kappas, with the w that attain it, of any sign.
    fn misfit(&self, kappas: &[f64]) -> (f64, Vec<f64>) {
        let n = kappas.len();
        let rises: Vec<Vec<f64>> =
            kappas.iter().map(|kappa| self.t.iter().map(|t| dispersion_rise(kappa * t)).collect()).collect();
        let dot = |x: &[f64], y: &[f64]| -> f64 {
            x.iter().zip(y).zip(&self.weight).map(|((x, y), weight)| x * y * weight).sum()
        };
        let mut weights = Vec::new();
        if n > 0 {
            let mut normal = crate::dense::SquareMatrix::zero(n);
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

/// Calls `visit` with each subset of `count` elements of `0..n`, in lexicographic order.
fn subsets(n: usize, count: usize, visit: &mut impl FnMut(&[usize])) {
    fn extend(n: usize, left: usize, chosen: &mut Vec<usize>, visit: &mut impl FnMut(&[usize])) {
        if left == 0 {
            return visit(chosen);
        }
        for next in chosen.last().map_or(0, |last| last + 1)..n {
            chosen.push(next);
            extend(n, left - 1, chosen, visit);
            chosen.pop();
        }
    }
    extend(n, count, &mut Vec::with_capacity(count), visit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_significance_of_a_correlation_depends_on_the_number_of_windows() {
        // 1.96 / sqrt(49) = .28, and / sqrt(400) = .098.
        assert!(!correlated(0.27, 49) && correlated(0.29, 49));
        assert!(!correlated(0.09, 400) && correlated(0.11, 400));
        assert!(!correlated(-0.5, 49));
    }

    #[test]
    fn cumulants_of_the_integrated_rate_in_closed_form() {
        // 3 sources, ON 1/4 of the time with 80/s: v = 3 * 80^2 * 3/16 = 3600, g = (1 - 2/4) / sqrt(3 * 3/16) = 2/3.
        let component = Component { relaxation: 2.0, variance: 3600.0, count: 3, on_pps: 80.0, on_share: 0.25 };
        for t in [0.01, 0.5, 3.0, 40.0] {
            let expected = 6.0 * (2.0 / 3.0) * 3600.0 * 60.0 * third_integral(2.0, t);
            let (third, _) = component.cumulants(t);
            assert!((third / expected - 1.0).abs() < 1e-9, "{third} is not {expected}");
        }
        // Within 0.1 ms the rate stands still: t^4 times its fourth cumulant, 3 * 80^4 p q (1 - 6 p q) = -2 880 000.
        let (_, fourth) = component.cumulants(1e-4);
        assert!((fourth / (-2_880_000.0 * 1e-16) - 1.0).abs() < 1e-3, "{fourth}");
        // Over a long time it grows in proportion to time: the fourth cumulant of a near-normal variable is small
        // against v^2.
        let (early, late) = (component.cumulants(1000.0).1, component.cumulants(2000.0).1);
        assert!((late / early - 2.0).abs() < 0.01, "{early} {late}");
    }

    #[test]
    fn the_third_integral_is_smooth_where_its_two_forms_meet() {
        // Integral of (t - u) u e^(-u): at t = 0.01 by Simpson's rule on 100 pieces.
        let t = 0.01f64;
        let f = |u: f64| (t - u) * u * (-u).exp();
        let h = t / 100.0;
        let simpson: f64 = (0..50)
            .map(|i| f(2.0 * i as f64 * h) + 4.0 * f((2.0 * i as f64 + 1.0) * h) + f((2.0 * i as f64 + 2.0) * h))
            .sum();
        for kappa in [0.999_999, 1.000_001] {
            assert!((third_integral(kappa, t) / (simpson * h / 3.0) - 1.0).abs() < 1e-5);
        }
    }

    /// Exact statistics of a trace with these variances and relaxation rates.
    fn scales(mean: f64, variances: &[(f64, f64)]) -> Vec<Scale> {
        let excess = |t: f64| {
            variances.iter().map(|(kappa, v)| 2.0 * v / (mean * kappa) * dispersion_rise(kappa * t)).sum::<f64>()
        };
        let scale = |k: i32| {
            let t = 1e-3 * 2f64.powi(k);
            Scale {
                window_s: t,
                windows: (4_000_000 >> k) as u64,
                mean: mean * t,
                variance: mean * t * (1.0 + excess(t)),
                third: 0.0,
                fourth: 0.0,
                autocorrelation: vec![0.0; crate::trace::LAGS],
            }
        };
        (0..17).map(scale).collect()
    }

    #[test]
    fn the_processes_of_a_curve_are_recovered_without_others() {
        let mean = 500.0;
        assert!(DispersionCurve::new(&scales(mean, &[])).choose(3).is_empty());
        for made in [vec![(2.0, 9000.0)], vec![(0.4, 6000.0), (20.0, 30_000.0)]] {
            let chosen = DispersionCurve::new(&scales(mean, &made)).choose(3);
            assert_eq!(chosen.len(), made.len(), "{chosen:?}");
            let mut found: Vec<(f64, f64)> = chosen.iter().map(|(kappa, w)| (*kappa, w * mean * kappa / 2.0)).collect();
            found.sort_by(|a, b| a.0.total_cmp(&b.0));
            for ((kappa, variance), (known, own)) in found.iter().zip(&made) {
                assert!((kappa / known - 1.0).abs() < 0.02 && (variance / own - 1.0).abs() < 0.02, "{found:?}");
            }
        }
        // The limit of one component holds.
        assert_eq!(DispersionCurve::new(&scales(mean, &[(0.4, 6000.0), (20.0, 30_000.0)])).choose(1).len(), 1);
    }

    #[test]
    fn a_fit_needs_three_window_sizes() {
        let fitted = |sizes: usize| {
            let scales = scales(500.0, &[(2.0, 9000.0)])[..sizes].to_vec();
            let (bytes_mean, bytes_scv) = (None, None);
            let summary =
                Summary { packets: 100, duration_s: 0.2, rate_pps: 500.0, bytes_mean, bytes_scv, reordered: 0, scales };
            fit("made", summary, 3)
        };
        for few in 0..3 {
            assert!(fitted(few).unwrap_err().to_string().contains("too short"), "{few}");
        }
        assert!((fitted(3).unwrap().source.mean_rate() - 500.0).abs() < 1e-9 && fitted(4).is_ok());
    }

    #[test]
    fn the_number_of_sources_is_estimated_from_moments_within_27_states() {
        let (mean, skewness) = (500.0, 0.15);
        let fitted = |made: &[(f64, f64)], count: u32| {
            let (components, _) = split(mean, made, skewness, count);
            let mut all = scales(mean, made);
            for scale in &mut all {
                let (k1, k2) = (scale.mean, scale.variance - scale.mean);
                let sum = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
                let (k3, k4) = components.iter().map(|c| c.cumulants(scale.window_s)).fold((0.0, 0.0), sum);
                (scale.third, scale.fourth) = (k3 + 3.0 * k2 + k1, k4 + 6.0 * k3 + 7.0 * k2 + k1);
            }
            let trace = Summary {
                packets: 2_000_000,
                duration_s: 4000.0,
                rate_pps: mean,
                bytes_mean: None,
                bytes_scv: None,
                reordered: 0,
                scales: all,
            };
            let fit = fit("made", trace, 3).unwrap();
            (fit.components.iter().map(|c| c.count).collect::<Vec<_>>(), fit.source.states())
        };
        let one = [(2.0, 9000.0)];
        assert_eq!([1, 3, 26].map(|count| fitted(&one, count)), [(vec![1], 2), (vec![3], 4), (vec![26], 27)]);
        // Two of n = 4 have 25 states, of n = 5 36: the limit of 27 holds.
        let two = [(0.4, 6000.0), (20.0, 30_000.0)];
        assert_eq!([2, 4, 5].map(|count| fitted(&two, count)), [(vec![2; 2], 9), (vec![4; 2], 25), (vec![4; 2], 25)]);
    }

    #[test]
    fn subsets_are_visited_once_in_order() {
        let mut all = Vec::new();
        subsets(5, 3, &mut |chosen| all.push(chosen.to_vec()));
        assert_eq!((all.len(), &all[0][..], &all[9][..]), (10, &[0, 1, 2][..], &[2, 3, 4][..]));
        assert!(all.is_sorted() && all.iter().all(|chosen| chosen.windows(2).all(|pair| pair[0] < pair[1])));
        subsets(2, 3, &mut |_| panic!("three of two"));
    }

    #[test]
    fn processes_are_divided_into_sources_of_the_same_mean_variance_and_skewness() {
        let mean = 400.0;
        for (skewness, count) in [(0.5, 1), (0.5, 4), (-0.3, 6), (2.0, 2)] {
            let (components, poisson) = split(mean, &[(0.5, 2500.0), (8.0, 900.0)], skewness, count);
            let n = f64::from(count);
            let own = |c: &Component| n * c.on_pps * c.on_share;
            assert!((components.iter().map(own).sum::<f64>() + poisson - mean).abs() < 1e-9);
            for (component, variance) in components.iter().zip([2500.0, 900.0]) {
                let (p, q) = (component.on_share, 1.0 - component.on_share);
                assert!((n * component.on_pps * component.on_pps * p * q / variance - 1.0).abs() < 1e-9);
                let computed = (q - p) / (n * p * q).sqrt();
                assert!((computed - skewness).abs() < 1e-9, "{computed} {skewness}");
            }
        }
        // The mean of 60 limits the ON time of the two of 50 and 30; no Poisson process remains.
        let (components, poisson) = split(60.0, &[(0.5, 2500.0), (8.0, 900.0)], 0.0, 1);
        let sent: f64 = components.iter().map(|c| c.on_pps * c.on_share).sum();
        assert!((sent - 60.0).abs() < 1e-9 && poisson == 0.0, "{sent} {poisson}");
        assert_eq!(split(60.0, &[], 0.0, 1), (Vec::new(), 60.0));
    }

    #[test]
    fn the_skewness_is_recovered_from_moments_of_counts_without_misfit() {
        let (mean, skew, count) = (500.0, 0.4, 3);
        let variances = [(0.5, 2500.0), (8.0, 900.0)];
        let (components, _) = split(mean, &variances, skew, count);
        let mut all = scales(mean, &variances);
        for scale in &mut all {
            // Cumulants of a count whose rate has these: c3 = K3 + 3 K2 + K1, c4 = K4 + 6 K3 + 7 K2 + K1.
            let (k1, k2) = (scale.mean, scale.variance - scale.mean);
            let (k3, k4) =
                components.iter().map(|c| c.cumulants(scale.window_s)).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
            (scale.third, scale.fourth) = (k3 + 3.0 * k2 + k1, k4 + 6.0 * k3 + 7.0 * k2 + k1);
        }
        assert!((skewness(&all, mean, &variances) - skew).abs() < 1e-6, "{}", skewness(&all, mean, &variances));
        assert!(misfit(&all, mean, &components) < 1e-6);
        let other = split(mean, &variances, skew, 1).0;
        assert!(misfit(&all, mean, &other) > 1.0, "one source each has another tail");
    }

    #[test]
    fn times_are_formatted_in_milliseconds_below_a_second() {
        assert_eq!(
            (format_duration(0.0125), format_duration(1.0), format_duration(90.04)),
            ("12.500 ms".into(), "1.0 s".into(), "90.0 s".into())
        );
    }

    #[test]
    fn the_misfit_weighs_deviations_of_sample_cumulants() {
        // No processes: counts of a Poisson process, whose cumulants are all its mean. 1000 windows of 4, a third
        // cumulant that is 5 too large, the fourth as that makes it: 25 (1000) / (6 (4)^3), and a fourth that is 7 too
        // large: 49 (1000) / (24 (4)^4).
        let scale = |third: f64, fourth: f64| Scale {
            window_s: 1.0,
            windows: 1000,
            mean: 4.0,
            variance: 4.0,
            third: 4.0 + third,
            fourth: 4.0 + 6.0 * third + fourth,
            autocorrelation: Vec::new(),
        };
        let computed = |third, fourth| misfit(&[scale(third, fourth)], 4.0, &[]);
        assert!(computed(0.0, 0.0) < 1e-12);
        assert!(
            (computed(5.0, 0.0) - 25_000.0 / 384.0).abs() < 1e-9
                && (computed(0.0, 7.0) - 49_000.0 / 6144.0).abs() < 1e-9
        );
        // A variance above the mean enters both: K2 = 2, K3 = 4 + 3 - 6 - 4, K4 = 4 - 6 K3 - 14 - 4.
        let wide = Scale { variance: 6.0, fourth: 4.0, ..scale(3.0, 0.0) };
        let (third, fourth) = (7.0 - 6.0 - 4.0, 4.0 - 6.0 * (7.0 - 6.0 - 4.0) - 14.0 - 4.0);
        let known = 1000.0 * third * third / (6.0 * 216.0) + 1000.0 * fourth * fourth / (24.0 * 1296.0);
        assert!((misfit(&[wide], 4.0, &[]) / known - 1.0).abs() < 1e-9, "{known}");
    }

    #[test]
    fn the_dispersion_rise_is_continuous_where_the_series_begins() {
        // 1 - (1 - e^-x) / x = x/2 - x^2/6 + x^3/24.
        for x in [1e-7, 9e-5, 1.1e-4, 1e-2] {
            let series = x / 2.0 - x * x / 6.0 + x * x * x / 24.0 - x * x * x * x / 120.0;
            assert!((dispersion_rise(x) / series - 1.0).abs() < 1e-8, "{x}: {} {series}", dispersion_rise(x));
        }
        assert!((dispersion_rise(50.0) - 0.98).abs() < 1e-12);
    }
}
