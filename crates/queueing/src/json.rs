//! Analysis results as JSON, schema 1, as `docs/formats/mmpp.md` specifies. Undefined values are null.

use indexmap::IndexMap;
use serde::Serialize;

use crate::admission::Objective;
use crate::early::Action;
use crate::file::{Analysis, FittedSource};
use crate::measures::Stream;
use crate::replay::Replay;
use crate::simulate::Comparison;

/// Version of the schema.
pub const SCHEMA: u32 = 1;

/// Points of the delay distribution.
const POINTS: u32 = 100;

type ByName<T> = IndexMap<String, T>;

#[derive(Serialize)]
struct AnalysisReport<'a> {
    schema: u32,
    aqumen: &'static str,
    model: &'a str,
    title: Option<&'a str>,
    queue: QueueReport,
    states: u64,
    load: f64,
    utilization: f64,
    throughput_pps: f64,
    occupancy_mean_pkts: f64,
    occupancy_std_pkts: f64,
    total: StreamReport,
    sources: ByName<SourceReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    early: Option<EarlyReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admission: Option<AdmissionReport>,
    #[serde(skip_serializing_if = "ByName::is_empty")]
    fits: ByName<FitReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulation: Option<Simulation>,
    warnings: &'a [String],
    occupancy: &'a [f64],
    delay_distribution: Delays,
}

#[derive(Serialize)]
struct QueueReport {
    buffer_pkts: u32,
    service_pps: f64,
    stages: u32,
}

#[derive(Serialize)]
struct StreamReport {
    offered_pps: f64,
    accepted_pps: f64,
    loss_ratio: f64,
    overflow_drop_ratio: f64,
    early_drop_ratio: f64,
    mark_ratio: f64,
    delay_mean_s: f64,
    delay_std_s: f64,
    delay_p50_s: f64,
    delay_p95_s: f64,
    delay_p99_s: f64,
    delay_p999_s: f64,
}

#[derive(Serialize)]
struct SourceReport {
    states: usize,
    threshold_pkts: Option<f64>,
    #[serde(flatten)]
    stream: StreamReport,
}

#[derive(Serialize)]
struct EarlyReport {
    action: &'static str,
    target_loss_ratio: Option<f64>,
}

#[derive(Serialize)]
struct AdmissionReport {
    find: &'static str,
    loss_ratio_max: f64,
    rate_factor: f64,
    threshold_pkts: Option<f64>,
}

#[derive(Serialize)]
struct Delays {
    delay_s: Vec<f64>,
    share_longer: Shares,
}

#[derive(Serialize)]
struct Shares {
    total: Vec<f64>,
    sources: ByName<Vec<f64>>,
}

#[derive(Serialize)]
struct FitReport<'a> {
    file: String,
    packets: u64,
    duration_s: f64,
    rate_pps: f64,
    bytes_mean: Option<f64>,
    bytes_scv: Option<f64>,
    states: usize,
    poisson_pps: f64,
    components: Vec<ComponentReport>,
    dispersion: Dispersion,
    autocorrelation: Correlation,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<&'a Replay>,
}

#[derive(Serialize)]
struct ComponentReport {
    relaxation_per_s: f64,
    count: u32,
    on_pps: f64,
    on_share: f64,
}

#[derive(Serialize)]
struct Dispersion {
    window_s: Vec<f64>,
    windows: Vec<u64>,
    measured: Vec<f64>,
    fitted: Vec<f64>,
    rms_error: f64,
}

#[derive(Serialize)]
struct Correlation {
    window_s: f64,
    lag_s: Vec<f64>,
    measured: Vec<f64>,
    fitted: Vec<f64>,
}

#[derive(Serialize)]
struct Simulation {
    duration_s: f64,
    warmup_s: f64,
    seeds: u32,
    total: IndexMap<&'static str, ComparisonReport>,
    sources: ByName<IndexMap<&'static str, ComparisonReport>>,
}

#[derive(Serialize)]
struct ComparisonReport {
    predicted: f64,
    mean: Option<f64>,
    std: Option<f64>,
    ci95: Option<[f64; 2]>,
    n: usize,
    inside: Option<bool>,
}

impl Analysis {
    /// Returns the results as JSON text, with the comparison with a simulation if there was one.
    pub fn to_json(&self, simulation: Option<&[Comparison]>) -> String {
        let (model, measures) = (&self.model, &self.measures);
        let queue = model.queue();
        let sources = measures.sources.iter().zip(model.sources()).zip(model.thresholds());
        let early = model.thresholds().iter().any(Option::is_some).then(|| EarlyReport {
            action: if model.action() == Action::Drop { "drop" } else { "mark" },
            target_loss_ratio: self.adaptation.map(|adaptation| adaptation.loss_ratio_max),
        });
        let answer = AnalysisReport {
            schema: SCHEMA,
            aqumen: env!("CARGO_PKG_VERSION"),
            model: &self.name,
            title: self.title.as_deref(),
            queue: QueueReport { buffer_pkts: queue.capacity, service_pps: queue.service_rate, stages: queue.stages },
            states: model.states(),
            load: model.load(),
            utilization: measures.utilization,
            throughput_pps: measures.throughput_pps,
            occupancy_mean_pkts: measures.occupancy_mean_pkts,
            occupancy_std_pkts: measures.occupancy_variance_pkts2.sqrt(),
            total: StreamReport::new(&measures.total),
            sources: sources
                .map(|((stream, source), &threshold_pkts)| {
                    let stream = StreamReport::new(stream);
                    (source.name().to_string(), SourceReport { states: source.states(), threshold_pkts, stream })
                })
                .collect(),
            early,
            admission: self.admission.map(|admission| AdmissionReport {
                find: if admission.objective == Objective::Load { "load" } else { "threshold" },
                loss_ratio_max: admission.loss_ratio_max,
                rate_factor: admission.rate_factor,
                threshold_pkts: admission.threshold_pkts,
            }),
            fits: self.fits.iter().map(|fitted| (fitted.fit.source.name().to_string(), fit_answer(fitted))).collect(),
            simulation: simulation.map(|compared| self.simulation(compared)),
            warnings: &self.warnings,
            occupancy: &measures.occupancy,
            delay_distribution: self.delays(),
        };
        serde_json::to_string(&answer).expect("numbers and strings are serialisable")
    }

    /// Map from source names to `value` of their indices.
    fn by_name<T>(&self, value: impl Fn(usize) -> T) -> ByName<T> {
        let names = self.model.sources().iter().enumerate();
        names.map(|(s, source)| (source.name().to_string(), value(s))).collect()
    }

    /// Complementary distribution functions of the delay, on a common axis up to the greatest 99.99 % quantile.
    fn delays(&self) -> Delays {
        let (total, sources) = (&self.measures.total, &self.measures.sources);
        let streams = || std::iter::once(total).chain(sources);
        let longest = streams().map(|stream| stream.delay.quantile(0.9999)).fold(0.0, f64::max);
        let axis: Vec<f64> = (0..=POINTS).map(|i| longest * f64::from(i) / f64::from(POINTS)).collect();
        let curve = |stream: &Stream| -> Vec<f64> { axis.iter().map(|t| stream.delay.survival(*t)).collect() };
        let share_longer = Shares { total: curve(total), sources: self.by_name(|s| curve(&sources[s])) };
        Delays { delay_s: axis, share_longer }
    }

    fn simulation(&self, compared: &[Comparison]) -> Simulation {
        let measures = |source: Option<usize>| {
            let of_source = compared.iter().filter(|compared| compared.source == source);
            let entry = |compared: &Comparison| ComparisonReport {
                predicted: compared.predicted,
                mean: compared.simulated.map(|summary| summary.mean),
                std: compared.simulated.and_then(|summary| summary.std),
                ci95: compared.simulated.and_then(|summary| summary.ci95),
                n: compared.simulated.map_or(0, |summary| summary.n),
                inside: compared.inside(),
            };
            of_source.map(|compared| (compared.measure, entry(compared))).collect()
        };
        Simulation {
            duration_s: self.runs.duration_s,
            warmup_s: self.runs.warmup_s,
            seeds: self.runs.seeds,
            total: measures(None),
            sources: self.by_name(|s| measures(Some(s))),
        }
    }
}

impl StreamReport {
    fn new(stream: &Stream) -> Self {
        let delay = &stream.delay;
        StreamReport {
            offered_pps: stream.offered_pps,
            accepted_pps: stream.accepted_pps,
            loss_ratio: stream.loss_ratio,
            overflow_drop_ratio: stream.overflow_drop_ratio,
            early_drop_ratio: stream.early_drop_ratio,
            mark_ratio: stream.mark_ratio,
            delay_mean_s: delay.mean_s(),
            delay_std_s: delay.std_s(),
            delay_p50_s: delay.quantile(0.5),
            delay_p95_s: delay.quantile(0.95),
            delay_p99_s: delay.quantile(0.99),
            delay_p999_s: delay.quantile(0.999),
        }
    }
}

fn fit_answer(fitted: &FittedSource) -> FitReport<'_> {
    let (fit, trace) = (&fitted.fit, &fitted.fit.trace);
    let component = |component: &crate::fit::Component| ComponentReport {
        relaxation_per_s: component.relaxation,
        count: component.count,
        on_pps: component.on_pps,
        on_share: component.on_share,
    };
    let correlation = &fit.autocorrelation;
    FitReport {
        file: fitted.path.display().to_string(),
        packets: trace.packets,
        duration_s: trace.duration_s,
        rate_pps: trace.rate_pps,
        bytes_mean: trace.bytes_mean,
        bytes_scv: trace.bytes_scv,
        states: fit.source.states(),
        poisson_pps: fit.poisson_pps,
        components: fit.components.iter().map(component).collect(),
        dispersion: Dispersion {
            window_s: trace.scales.iter().map(|scale| scale.window_s).collect(),
            windows: trace.scales.iter().map(|scale| scale.windows).collect(),
            measured: fit.dispersion.iter().map(|(measured, _)| *measured).collect(),
            fitted: fit.dispersion.iter().map(|(_, fitted)| *fitted).collect(),
            rms_error: fit.dispersion_error,
        },
        autocorrelation: Correlation {
            window_s: fit.window_s,
            lag_s: (1..=correlation.len()).map(|lag| lag as f64 * fit.window_s).collect(),
            measured: correlation.iter().map(|(measured, _)| *measured).collect(),
            fitted: correlation.iter().map(|(_, fitted)| *fitted).collect(),
        },
        replay: fitted.replay.as_ref(),
    }
}
