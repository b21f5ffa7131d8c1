//! The answer as JSON, schema 1; `docs/formats/mmpp.md` describes it. What is not defined is null.

use indexmap::IndexMap;
use serde::Serialize;

use crate::admission::Question;
use crate::early::Action;
use crate::file::{Analysis, Fitted};
use crate::measures::Stream;
use crate::replay::Replay;
use crate::simulate::Compared;

/// Version of the schema.
pub const SCHEMA: u32 = 1;

/// Points of a printed delay distribution.
const POINTS: u32 = 100;

type ByName<T> = IndexMap<String, T>;

#[derive(Serialize)]
struct Answer<'a> {
    schema: u32,
    aqumen: &'static str,
    model: &'a str,
    title: Option<&'a str>,
    queue: QueueAnswer,
    states: u64,
    load: f64,
    utilization: f64,
    throughput_pps: f64,
    occupancy_mean_pkts: f64,
    occupancy_std_pkts: f64,
    total: StreamAnswer,
    sources: ByName<SourceAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    early: Option<EarlyAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admission: Option<AdmissionAnswer>,
    #[serde(skip_serializing_if = "ByName::is_empty")]
    fits: ByName<FitAnswer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulation: Option<Simulation>,
    warnings: &'a [String],
    occupancy: &'a [f64],
    delay_distribution: Delays,
}

#[derive(Serialize)]
struct QueueAnswer {
    buffer_pkts: u32,
    service_pps: f64,
    stages: u32,
}

#[derive(Serialize)]
struct StreamAnswer {
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
struct SourceAnswer {
    states: usize,
    threshold_pkts: Option<f64>,
    #[serde(flatten)]
    stream: StreamAnswer,
}

#[derive(Serialize)]
struct EarlyAnswer {
    action: &'static str,
    target_loss_ratio: Option<f64>,
}

#[derive(Serialize)]
struct AdmissionAnswer {
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
struct FitAnswer<'a> {
    file: String,
    packets: u64,
    duration_s: f64,
    rate_pps: f64,
    bytes_mean: Option<f64>,
    bytes_scv: Option<f64>,
    states: usize,
    poisson_pps: f64,
    components: Vec<ComponentAnswer>,
    dispersion: Dispersion,
    autocorrelation: Correlation,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<&'a Replay>,
}

#[derive(Serialize)]
struct ComponentAnswer {
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
    total: IndexMap<&'static str, ComparedAnswer>,
    sources: ByName<IndexMap<&'static str, ComparedAnswer>>,
}

#[derive(Serialize)]
struct ComparedAnswer {
    predicted: f64,
    mean: Option<f64>,
    std: Option<f64>,
    ci95: Option<[f64; 2]>,
    n: usize,
    inside: Option<bool>,
}

impl Analysis {
    /// The answer as JSON text, with the simulation beside it if there was one.
    pub fn to_json(&self, simulation: Option<&[Compared]>) -> String {
        let (model, measures) = (&self.model, &self.measures);
        let queue = model.queue();
        let sources = measures.sources.iter().zip(model.sources()).zip(model.thresholds());
        let early = model.thresholds().iter().any(Option::is_some).then(|| EarlyAnswer {
            action: if model.action() == Action::Drop { "drop" } else { "mark" },
            target_loss_ratio: self.adaptation.map(|adaptation| adaptation.loss_ratio_max),
        });
        let answer = Answer {
            schema: SCHEMA,
            aqumen: env!("CARGO_PKG_VERSION"),
            model: &self.name,
            title: self.title.as_deref(),
            queue: QueueAnswer { buffer_pkts: queue.capacity, service_pps: queue.service_rate, stages: queue.stages },
            states: model.states(),
            load: model.load(),
            utilization: measures.utilization,
            throughput_pps: measures.throughput_pps,
            occupancy_mean_pkts: measures.occupancy_mean_pkts,
            occupancy_std_pkts: measures.occupancy_variance_pkts2.sqrt(),
            total: StreamAnswer::of(&measures.total),
            sources: sources
                .map(|((stream, source), &threshold_pkts)| {
                    let stream = StreamAnswer::of(stream);
                    (source.name().to_string(), SourceAnswer { states: source.states(), threshold_pkts, stream })
                })
                .collect(),
            early,
            admission: self.admission.map(|admission| AdmissionAnswer {
                find: if admission.question == Question::Load { "load" } else { "threshold" },
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
        serde_json::to_string(&answer).expect("numbers and texts can be written")
    }

    /// `value` of each source.
    fn by_name<T>(&self, value: impl Fn(usize) -> T) -> ByName<T> {
        let names = self.model.sources().iter().enumerate();
        names.map(|(s, source)| (source.name().to_string(), value(s))).collect()
    }

    /// Share of packets with a longer delay, on a common axis up to where one in 10 000 is.
    fn delays(&self) -> Delays {
        let (total, sources) = (&self.measures.total, &self.measures.sources);
        let streams = || std::iter::once(total).chain(sources);
        let longest = streams().map(|stream| stream.delay.quantile(0.9999)).fold(0.0, f64::max);
        let axis: Vec<f64> = (0..=POINTS).map(|i| longest * f64::from(i) / f64::from(POINTS)).collect();
        let curve = |stream: &Stream| -> Vec<f64> { axis.iter().map(|t| stream.delay.survival(*t)).collect() };
        let share_longer = Shares { total: curve(total), sources: self.by_name(|s| curve(&sources[s])) };
        Delays { delay_s: axis, share_longer }
    }

    fn simulation(&self, compared: &[Compared]) -> Simulation {
        let of = |source: Option<usize>| {
            let of_source = compared.iter().filter(|compared| compared.source == source);
            let entry = |compared: &Compared| ComparedAnswer {
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
            total: of(None),
            sources: self.by_name(|s| of(Some(s))),
        }
    }
}

impl StreamAnswer {
    fn of(stream: &Stream) -> Self {
        let delay = &stream.delay;
        StreamAnswer {
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

fn fit_answer(fitted: &Fitted) -> FitAnswer<'_> {
    let (fit, trace) = (&fitted.fit, &fitted.fit.trace);
    let component = |component: &crate::fit::Component| ComponentAnswer {
        relaxation_per_s: component.relaxation,
        count: component.count,
        on_pps: component.on_pps,
        on_share: component.on_share,
    };
    let correlation = &fit.autocorrelation;
    FitAnswer {
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
