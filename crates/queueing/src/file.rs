//! Analysis of a model file: presets, minisources, captures, thresholds.

use std::path::PathBuf;

use aqumen_scenario::mmpp::{self as written, File, Find, MiniModel, PacketRate, Preset};
use aqumen_scenario::{Buffer, Error as FileError, Name, NameMap};

use crate::admission::{Admission, Objective};
use crate::early::{Action, Adaptation};
use crate::fit::{Fit, fit};
use crate::measures::Measures;
use crate::model::{Model, Queue};
use crate::replay::{Replay, replay};
use crate::simulate::Runs;
use crate::source::{Minisources, Source};
use crate::trace::{self, Counter};

/// Solved model of a model file.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Name of the model.
    pub name: String,
    /// Title, one line.
    pub title: Option<String>,
    /// The model, with the thresholds found if they were searched.
    pub model: Model,
    /// Performance measures of the model.
    pub measures: Measures,
    /// Settings of the threshold search, if there was one.
    pub adaptation: Option<Adaptation>,
    /// Result of the admission search, if there was one.
    pub admission: Option<Admission>,
    /// Settings of the simulation.
    pub runs: Runs,
    /// Sources fitted to traces, in order.
    pub fits: Vec<FittedSource>,
    /// Warnings about the validity of the results.
    pub warnings: Vec<String>,
}

/// Source fitted to a trace.
#[derive(Clone, Debug)]
pub struct FittedSource {
    /// Path of the trace.
    pub path: PathBuf,
    /// The fit.
    pub fit: Fit,
    /// Replay of the trace, if it is the only source and there are no thresholds.
    pub replay: Option<Replay>,
}

impl Analysis {
    /// Builds and solves the model of `file`.
    pub fn new(file: &File) -> Result<Self, FileError> {
        Analysis::with_progress(file, &mut |_, _| true)
    }

    /// As [`new`](Self::new); `progress` receives the estimated remaining seconds (at first the total) and the bytes of
    /// memory needed, and cancels the work by returning false.
    pub fn with_progress(file: &File, progress: &mut dyn FnMut(f64, u64) -> bool) -> Result<Self, FileError> {
        let spec = file.spec();
        let (mut warnings, mut fits) = (Vec::new(), Vec::new());
        let mut sources = spec.preset.map_or(Vec::new(), preset);
        for (i, source) in spec.sources.iter().enumerate() {
            sources.push(match &source.trace {
                Some(trace) => {
                    let fitted = fitted(file, i, &source.name.0, trace, &mut warnings)?;
                    let source = fitted.fit.source.clone();
                    fits.push(fitted);
                    source
                }
                None => build(file, i, source, &mut warnings)?,
            });
        }
        let queue = queue(file, &fits, &mut warnings)?;
        let at_queue = |error: super::Error| file.error("queue", error.to_string());
        let mut model = Model::new(queue, sources).map_err(|error| match error {
            super::Error::Rates(message) | super::Error::Generator(message) => file.error("sources", message),
            other => file.error("queue", other.to_string()),
        })?;
        // The searches change neither states nor memory.
        let bytes = model.memory_estimate();
        let progress: &mut dyn FnMut(f64) -> bool = &mut |seconds| progress(seconds, bytes);
        let mut adaptation = None;
        if let Some(early) = &spec.early {
            (model, adaptation) = with_early(model, early, progress).map_err(at_queue)?;
        }
        let mut admission = None;
        if let Some(admit) = &spec.admit {
            let objective = match admit.find {
                Find::Load => Objective::Load,
                Find::Threshold => Objective::Threshold,
            };
            let (admitted, found) = model
                .find_admission_with_progress(objective, admit.loss, progress)
                .map_err(|error| file.error("admit.loss", error.to_string()))?;
            (model, admission) = (admitted, Some(found));
        }
        let measures = model.solve_with_progress(progress).map_err(at_queue)?;
        if let ([fitted], [_], None) = (&mut fits[..], model.sources(), &spec.early) {
            let interface = spec.sources.iter().find_map(|source| source.trace.as_ref()?.interface);
            let sized = fitted.fit.trace.bytes_mean.is_some();
            let link_bps = spec.queue.link.filter(|_| sized).map(|link| link.as_bps() as f64);
            let replayed = replay(&fitted.path, interface, queue, link_bps);
            fitted.replay = Some(replayed.map_err(|error| file.error("sources.0.trace.file", error.to_string()))?);
        }
        if let Some(Adaptation { loss_ratio_max, .. }) = adaptation {
            for (source, stream) in model.sources().iter().zip(&measures.sources) {
                if stream.loss_ratio > loss_ratio_max {
                    warnings.push(format!(
                        "{} loses {:.3} % even with the greatest threshold; the target is {:.3} %",
                        source.name(),
                        100.0 * stream.loss_ratio,
                        100.0 * loss_ratio_max
                    ));
                }
            }
        }
        let seconds = |span: aqumen_units::Span| span.as_nanos() as f64 / 1e9;
        let runs = Runs {
            duration_s: seconds(spec.simulate.duration),
            warmup_s: seconds(spec.simulate.warmup),
            seeds: spec.simulate.seeds,
        };
        let (name, title) = (spec.name.0.clone(), spec.title.clone());
        Ok(Analysis { name, title, model, measures, adaptation, admission, runs, fits, warnings })
    }
}

impl Analysis {
    /// Returns the model as a file without preset, capture or search: every rate and threshold is explicit. It reads
    /// back as the same model.
    pub fn to_toml(&self) -> String {
        let queue = self.model.queue();
        let source = |source: &Source| written::Source {
            name: Name(source.name().into()),
            rate: None,
            rates: source.rates().iter().map(|rate| PacketRate(*rate)).collect(),
            generator: source.generator(),
            minisources: None,
            trace: None,
        };
        let thresholds: Vec<(String, written::Threshold)> = self
            .model
            .sources()
            .iter()
            .zip(self.model.thresholds())
            .filter_map(|(source, threshold)| Some((source.name().into(), written::Threshold::Packets((*threshold)?))))
            .collect();
        let action = match self.model.action() {
            Action::Drop => written::Action::Drop,
            Action::Mark => written::Action::Mark,
        };
        let span = |seconds: f64| aqumen_units::Span::from_nanos((seconds * 1e9 + 0.5) as u64);
        written::Spec {
            name: Name(self.name.clone()),
            title: self.title.clone(),
            description: None,
            preset: None,
            queue: written::Queue {
                buffer: Buffer::Packets(queue.capacity),
                service: Some(PacketRate(queue.service_rate)),
                link: None,
                packet: None,
                stages: Some(queue.stages),
            },
            sources: self.model.sources().iter().map(source).collect(),
            early: (!thresholds.is_empty()).then_some(written::Early {
                action,
                threshold: None,
                thresholds: NameMap(thresholds),
                adapt: None,
            }),
            admit: None,
            simulate: written::Simulate {
                duration: span(self.runs.duration_s),
                warmup: span(self.runs.warmup_s),
                seeds: self.runs.seeds,
            },
        }
        .to_toml()
    }
}

fn preset(preset: Preset) -> Vec<Source> {
    let source = |source: written::Source| {
        let rates: Vec<f64> = source.rates.iter().map(|rate| rate.0).collect();
        Source::new(source.name.0, &source.generator, &rates).expect("the preset's sources are right")
    };
    preset.sources().into_iter().map(source).collect()
}

fn build(file: &File, i: usize, source: &written::Source, warnings: &mut Vec<String>) -> Result<Source, FileError> {
    let name = &source.name.0;
    let at = |key: &str| format!("sources.{i}{key}");
    if let Some(PacketRate(rate)) = source.rate {
        return Source::poisson(name, rate).map_err(|error| file.error(&at(".rate"), error.to_string()));
    }
    if let Some(mini) = &source.minisources {
        let per_second = |span: aqumen_units::Span| 1e9 / span.as_nanos() as f64;
        let minisources = Minisources {
            count: mini.count,
            off_rate: per_second(mini.on),
            on_rate: per_second(mini.off),
            rate: mini.rate.0,
        };
        let built = match mini.model {
            MiniModel::Exact => Source::minisources(name, &minisources),
            MiniModel::TwoState => {
                warnings.push(format!(
                    "{name}: the two-state model has the index of dispersion of the {} minisources but not their losses, \
                     which may be orders of magnitude higher; model = \"exact\" has {} states",
                    mini.count,
                    mini.count + 1
                ));
                Source::two_state_minisources(name, &minisources)
            }
        };
        return built.map_err(|error| file.error(&at(".minisources"), error.to_string()));
    }
    let rates: Vec<f64> = source.rates.iter().map(|rate| rate.0).collect();
    Source::new(name, &source.generator, &rates).map_err(|error| {
        let key = if matches!(error, super::Error::Rates(_)) { ".rates" } else { ".generator" };
        file.error(&at(key), error.to_string())
    })
}

fn fitted(
    file: &File,
    i: usize,
    name: &str,
    written: &written::Trace,
    warnings: &mut Vec<String>,
) -> Result<FittedSource, FileError> {
    let path = file.trace_path(written);
    let wrong = |error: super::Error| file.error(&format!("sources.{i}.trace.file"), error.to_string());
    let mut counter = Counter::default();
    let complete = trace::read(&path, written.interface, |arrival| counter.add(arrival)).map_err(wrong)?;
    let fit = fit(name, counter.finish().map_err(wrong)?, written.components).map_err(wrong)?;
    if !complete {
        warnings.push(format!("{name}: the capture ends within a packet; the packets before it are used"));
    }
    warnings.extend(fit.warnings.iter().map(|warning| format!("{name}: {warning}")));
    Ok(FittedSource { path, fit, replay: None })
}

/// Most stages fitted to packet sizes: more of them raise the cost but hardly change the results.
const STAGES_FITTED_MAX: u32 = 10;

fn queue(file: &File, fits: &[FittedSource], warnings: &mut Vec<String>) -> Result<Queue, FileError> {
    let written = &file.spec().queue;
    let Buffer::Packets(capacity) = written.buffer else { unreachable!("checked: the buffer is in packets") };
    // Packet sizes over all captures that record them: packets per second, mean and mean square.
    let sized = fits.iter().filter_map(|fitted| {
        let trace = &fitted.fit.trace;
        Some((trace.rate_pps, trace.bytes_mean?, trace.bytes_scv?))
    });
    let (rate, bytes, square) = sized.fold((0.0, 0.0, 0.0), |(rate, bytes, square), (pps, mean, scv)| {
        (rate + pps, bytes + pps * mean, square + pps * mean * mean * (1.0 + scv))
    });
    let mean = (bytes > 0.0).then(|| bytes / rate);
    let service_rate = match (written.service, written.link, written.packet) {
        (Some(PacketRate(rate)), ..) => rate,
        (None, Some(link), Some(packet)) => link.as_bps() as f64 / (8.0 * packet.0 as f64),
        (None, Some(link), None) => match mean {
            Some(bytes) => link.as_bps() as f64 / (8.0 * bytes),
            None => {
                let message = "packet is missing, and the traces have no sizes; give packet = \"1282B\"";
                return Err(file.error("queue", message));
            }
        },
        (None, None, _) => unreachable!("checked: service or link is given"),
    };
    let stages = match (written.stages, written.link, mean) {
        (Some(stages), ..) => stages,
        (None, Some(_), Some(mean)) => {
            let scv = square / rate / (mean * mean) - 1.0;
            if scv > 1.2 {
                warnings.push(format!(
                    "packet sizes vary more than an exponential service (squared coefficient of variation {scv:.2}); delays \
                     are underestimated"
                ));
            }
            (1.0 / scv.max(1.0 / f64::from(STAGES_FITTED_MAX))).round().max(1.0) as u32
        }
        _ => 1,
    };
    Ok(Queue { capacity, service_rate, stages })
}

fn with_early(
    model: Model,
    early: &written::Early,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<(Model, Option<Adaptation>), super::Error> {
    if let Some(adapt) = &early.adapt {
        let adaptation =
            Adaptation { loss_ratio_max: adapt.loss, lowest: adapt.lowest, highest: adapt.highest, step: adapt.step };
        return Ok((model.adapt_thresholds_with_progress(&adaptation, progress)?, Some(adaptation)));
    }
    let capacity = model.queue().capacity;
    let thresholds = model.sources().iter().map(|source| {
        let own = early.thresholds.get(source.name()).or(early.threshold.as_ref());
        own.map(|threshold| threshold.packets(capacity))
    });
    let thresholds = thresholds.collect();
    let action = match early.action {
        written::Action::Drop => Action::Drop,
        written::Action::Mark => Action::Mark,
    };
    Ok((model.with_thresholds(action, thresholds)?, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The third source of `paper8` approximates www and ftp of `paper16`, by `Source::two_state_superposition`.
    #[test]
    fn the_smaller_preset_is_the_larger_one_with_two_sources_in_one() {
        let (eight, mut sixteen) = (preset(Preset::Paper8), preset(Preset::Paper16));
        let merged = Source::two_state_superposition("www-ftp", &sixteen.split_off(2)).unwrap();
        assert_eq!(eight.len(), 3);
        for (own, other) in eight.iter().zip(sixteen.iter().chain([&merged])) {
            assert_eq!(own.name(), other.name());
            assert_eq!((own.rates(), own.generator()), (other.rates(), other.generator()));
        }
    }
}
