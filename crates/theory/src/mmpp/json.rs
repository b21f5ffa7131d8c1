//! The answer as JSON, schema 1; `docs/formats/mmpp.md` describes it. What is not defined is null.

use serde_json::{Map, Value, json};

use super::early::Action;
use super::file::Analysis;
use super::measures::Stream;
use super::simulate::Compared;

/// Version of the schema.
pub const SCHEMA: u32 = 1;

/// Quantiles of the delay that are printed.
const QUANTILES: [(&str, f64); 4] =
    [("delay_p50_s", 0.5), ("delay_p95_s", 0.95), ("delay_p99_s", 0.99), ("delay_p999_s", 0.999)];

/// Points of a printed delay distribution.
const POINTS: u32 = 100;

impl Analysis {
    /// The answer, with the simulation beside it if there was one.
    pub fn to_json(&self, simulation: Option<&[Compared]>) -> Value {
        let (model, measures) = (&self.model, &self.measures);
        let queue = model.queue();
        let names = || model.sources().iter().map(|source| source.name().to_string());
        let mut sources = Map::new();
        for (s, source) in model.sources().iter().enumerate() {
            let mut answer = stream(&measures.sources[s]);
            answer["states"] = json!(source.states());
            answer["threshold_pkts"] = json!(model.thresholds()[s]);
            sources.insert(source.name().into(), answer);
        }
        let mut answer = json!({
            "schema": SCHEMA,
            "aqumen": env!("CARGO_PKG_VERSION"),
            "model": self.name,
            "title": self.title,
            "queue": {
                "buffer_pkts": queue.capacity, "service_pps": queue.service_rate, "stages": queue.stages,
            },
            "states": model.states(),
            "load": model.load(),
            "utilization": measures.utilization,
            "throughput_pps": measures.throughput_pps,
            "occupancy_mean_pkts": measures.occupancy_mean_pkts,
            "occupancy_std_pkts": measures.occupancy_variance_pkts2.sqrt(),
            "total": stream(&measures.total),
            "sources": sources,
            "occupancy": measures.occupancy,
            "delay_distribution": self.delays(),
            "warnings": self.warnings,
        });
        if model.thresholds().iter().any(Option::is_some) {
            let thresholds: Map<String, Value> =
                names().zip(model.thresholds()).map(|(name, threshold)| (name, json!(threshold))).collect();
            answer["early"] = json!({
                "action": if model.action() == Action::Drop { "drop" } else { "mark" },
                "thresholds_pkts": thresholds,
                "target_loss_ratio": self.adaptation.map(|adaptation| adaptation.loss_ratio_max),
            });
        }
        if let Some(compared) = simulation {
            answer["simulation"] = self.simulation(compared);
        }
        answer
    }

    /// Share of packets with a longer delay, on a common axis up to where one in 10 000 is.
    fn delays(&self) -> Value {
        let (total, sources) = (&self.measures.total, &self.measures.sources);
        let streams = || std::iter::once(total).chain(sources);
        let longest = streams().map(|stream| stream.delay.quantile(0.9999)).fold(0.0, f64::max);
        let axis: Vec<f64> = (0..=POINTS).map(|i| longest * f64::from(i) / f64::from(POINTS)).collect();
        let curve = |stream: &Stream| json!(axis.iter().map(|t| stream.delay.survival(*t)).collect::<Vec<f64>>());
        let by_name: Map<String, Value> = self
            .model
            .sources()
            .iter()
            .zip(sources)
            .map(|(source, stream)| (source.name().to_string(), curve(stream)))
            .collect();
        json!({"delay_s": axis, "share_longer": {"total": curve(total), "sources": by_name}})
    }

    fn simulation(&self, compared: &[Compared]) -> Value {
        let of = |source: Option<usize>| -> Map<String, Value> {
            compared
                .iter()
                .filter(|compared| compared.source == source)
                .map(|compared| {
                    let summary = compared.simulated;
                    let entry = json!({
                        "predicted": compared.predicted,
                        "mean": summary.map(|summary| summary.mean),
                        "std": summary.and_then(|summary| summary.std),
                        "ci95": summary.and_then(|summary| summary.ci95),
                        "n": summary.map_or(0, |summary| summary.n),
                        "inside": compared.inside(),
                    });
                    (compared.measure.to_string(), entry)
                })
                .collect()
        };
        let sources: Map<String, Value> = self
            .model
            .sources()
            .iter()
            .enumerate()
            .map(|(s, source)| (source.name().to_string(), Value::Object(of(Some(s)))))
            .collect();
        json!({
            "duration_s": self.runs.duration_s, "warmup_s": self.runs.warmup_s, "seeds": self.runs.seeds,
            "total": of(None), "sources": sources,
        })
    }
}

fn stream(stream: &Stream) -> Value {
    let mut answer = json!({
        "offered_pps": stream.offered_pps,
        "accepted_pps": stream.accepted_pps,
        "loss_ratio": stream.loss_ratio,
        "overflow_drop_ratio": stream.overflow_drop_ratio,
        "early_drop_ratio": stream.early_drop_ratio,
        "mark_ratio": stream.mark_ratio,
        "delay_mean_s": stream.delay.mean_s(),
        "delay_std_s": stream.delay.std_s(),
    });
    for (name, p) in QUANTILES {
        answer[name] = json!(stream.delay.quantile(p));
    }
    answer
}
