//! Model files: the resulting models, JSON results, errors.

use std::path::PathBuf;

use aqumen_queueing::{Action, Analysis, simulate};
use aqumen_scenario::mmpp::File;
use serde_json::Value;

use crate::common::close;

fn analysis(text: &str) -> Analysis {
    Analysis::new(&File::parse(text, "model.toml").unwrap()).unwrap()
}

fn error_of(text: &str) -> String {
    Analysis::new(&File::parse(text, "model.toml").unwrap()).unwrap_err().to_string()
}

fn json(analysis: &Analysis) -> Value {
    serde_json::from_str(&analysis.to_json(None)).unwrap()
}

/// Number in `value` at a path such as `sources.a.loss_ratio`.
#[track_caller]
fn number(value: &Value, path: &str) -> f64 {
    let found = path.split('.').fold(value, |value, key| &value[key]);
    found.as_f64().unwrap_or_else(|| panic!("{path} is {found}"))
}

#[track_caller]
fn check(value: &Value, path: &str, expected: f64) {
    close(number(value, path), expected, 1e-9, path);
}

/// Two Poisson sources of 60 and 40 packets/s and a capacity of two: M/M/1/2 at a load of 1.
fn two(more: &str) -> String {
    format!(
        "name = \"two\"\n[queue]\nbuffer = \"2pkt\"\nservice = \"100pkt/s\"\n\
         [[sources]]\nname = \"a\"\nrate = \"60pkt/s\"\n[[sources]]\nname = \"b\"\nrate = \"40pkt/s\"\n{more}"
    )
}

#[test]
fn the_results_of_mm12_at_full_load_have_the_closed_form() {
    // None, one and two packets for a third of the time each: mean 1, variance 2/3.
    let report = json(&analysis(&two("")));
    for (key, expected) in [
        ("schema", 1.0),
        ("queue.buffer_pkts", 2.0),
        ("queue.service_pps", 100.0),
        ("queue.stages", 1.0),
        ("states", 3.0),
        ("load", 1.0),
        ("utilization", 2.0 / 3.0),
        ("throughput_pps", 200.0 / 3.0),
        ("occupancy_mean_pkts", 1.0),
        ("occupancy_std_pkts", (2.0f64 / 3.0).sqrt()),
        ("total.loss_ratio", 1.0 / 3.0),
        ("sources.a.offered_pps", 60.0),
        ("sources.a.accepted_pps", 40.0),
        ("sources.a.states", 1.0),
        ("sources.b.overflow_drop_ratio", 1.0 / 3.0),
        // Half of the accepted packets find none, half one packet: 1.5 services, of variance 1/4 + 1.5.
        ("total.delay_mean_s", 0.015),
        ("total.delay_std_s", 1.75f64.sqrt() / 100.0),
    ] {
        check(&report, key, expected);
    }
    assert_eq!((report["model"].as_str(), report["title"].as_str()), (Some("two"), None));
    for absent in ["early", "admission", "fits", "simulation"] {
        assert!(report.get(absent).is_none(), "{absent}");
    }
    assert!(report["sources"]["a"]["threshold_pkts"].is_null());
    assert_eq!(report["occupancy"].as_array().unwrap().len(), 3);
    // P(D > t) = e^-x (1 + x / 2), x = 100 t, determines the quantiles.
    let longer = |t: f64| (-100.0 * t).exp() * (1.0 + 50.0 * t);
    for (key, share) in [("p50", 0.5), ("p95", 0.05), ("p99", 0.01), ("p999", 0.001)] {
        close(longer(number(&report, &format!("sources.b.delay_{key}_s"))), share, 1e-9, key);
    }
    let curve = &report["delay_distribution"];
    let times = curve["delay_s"].as_array().unwrap();
    assert_eq!(times.len(), 101);
    for (k, t) in times.iter().enumerate() {
        let t = t.as_f64().unwrap();
        for shares in [&curve["share_longer"]["total"], &curve["share_longer"]["sources"]["a"]] {
            close(shares[k].as_f64().unwrap(), longer(t), 1e-9, "share longer");
        }
    }
    close(longer(times[100].as_f64().unwrap()), 1e-4, 1e-6, "the end of the axis");
}

#[test]
fn thresholds_apply_to_their_sources_and_the_action_is_reported() {
    // Source a is dropped half of the time where one packet is present: rates up of 100 and 70, states as 1, 1, .7.
    let report = json(&analysis(&two("[early]\nthresholds = { a = \"0pkt\" }\n")));
    check(&report, "sources.a.early_drop_ratio", 0.5 / 2.7);
    check(&report, "sources.a.loss_ratio", 1.2 / 2.7);
    check(&report, "sources.b.loss_ratio", 0.7 / 2.7);
    check(&report, "sources.b.early_drop_ratio", 0.0);
    check(&report, "sources.a.threshold_pkts", 0.0);
    assert!(report["sources"]["b"]["threshold_pkts"].is_null());
    assert_eq!(report["early"]["action"], "drop");
    assert!(report["early"]["target_loss_ratio"].is_null());
    // Marks instead of drops: half of the third of the packets that finds one.
    let report = json(&analysis(&two("[early]\naction = \"mark\"\nthreshold = 0.0\n")));
    check(&report, "sources.b.mark_ratio", 1.0 / 6.0);
    check(&report, "total.loss_ratio", 1.0 / 3.0);
    assert_eq!(report["early"]["action"], "mark");
    // A source's own threshold overrides the common one; fractions are of the buffer.
    let both = analysis(&two("[early]\nthreshold = 0.5\nthresholds = { b = \"1.5pkt\" }\n"));
    assert_eq!(both.model.thresholds(), [Some(1.0), Some(1.5)]);
}

#[test]
fn the_result_of_an_admission_search_is_reported() {
    // M/M/1/1 with 5 of 25 packets lost: a load of .25, a quarter of what is offered.
    let one = |more: &str| {
        format!(
            "name = \"one\"\ntitle = \"One place\"\n[queue]\nbuffer = \"1pkt\"\nservice = \"100pkt/s\"\n\
             [[sources]]\nname = \"p\"\nrate = \"100pkt/s\"\n{more}"
        )
    };
    let report = json(&analysis(&one("[admit]\nfind = \"load\"\nloss = 0.2\n")));
    check(&report, "admission.rate_factor", 0.25);
    check(&report, "admission.loss_ratio_max", 0.2);
    assert_eq!((&report["admission"]["find"], &report["title"]), (&Value::from("load"), &Value::from("One place")));
    assert!(report["admission"]["threshold_pkts"].is_null());
    check(&report, "sources.p.offered_pps", 25.0);
    // As in the closed form of the search for thresholds: f = (1 - th) / (2 - th), 1 / (3 - f) = .35 at th = 5/6.
    let report = json(&analysis(&two("[admit]\nfind = \"threshold\"\nloss = 0.35\n")));
    close(number(&report, "admission.threshold_pkts"), 5.0 / 6.0, 1e-7, "threshold");
    check(&report, "admission.rate_factor", 1.0);
    assert_eq!(report["admission"]["find"], "threshold");
    let error = error_of(&two("[admit]\nfind = \"threshold\"\nloss = 0.01\n"));
    assert!(error.contains("admit.loss") && error.contains("loss ratio of 0.3333"), "{error}");
    // A third is lost at any threshold: a warning for each source.
    let adapted = analysis(&two("[early.adapt]\nloss = 0.01\n"));
    assert_eq!(json(&adapted)["early"]["target_loss_ratio"], 0.01);
    assert_eq!(adapted.warnings.len(), 2, "{:?}", adapted.warnings);
    assert!(adapted.warnings[0].starts_with("a loses 3") && adapted.warnings[0].ends_with("the target is 1.000 %"));
    let kept = analysis(&two("[early.adapt]\nloss = 0.4\n"));
    assert!(kept.warnings.is_empty() && kept.measures.sources.iter().all(|source| source.loss_ratio <= 0.4));
}

#[test]
fn an_explicit_model_file_reads_back_as_the_same_model() {
    let first = analysis(
        "name = \"all\"\ntitle = \"Everything\"\npreset = \"paper8\"\n[queue]\nbuffer = \"12pkt\"\nlink = \"8Mbit\"\n\
         packet = \"1000B\"\nstages = 3\n[[sources]]\nname = \"calls\"\n\
         minisources = { count = 3, on = \"400ms\", off = \"600ms\", rate = \"40pkt/s\" }\n\
         [early]\naction = \"mark\"\nthresholds = { calls = 0.5, video = \"3pkt\" }\n\
         [simulate]\nduration = \"7s\"\nwarmup = \"1500ms\"\nseeds = 4\n",
    );
    // 8 Mbit/s by 8000 bits.
    close(first.model.queue().service_rate, 1000.0, 1e-12, "service");
    let again = analysis(&first.to_toml());
    assert_eq!((&again.name, &again.title, again.runs), (&first.name, &first.title, first.runs));
    assert_eq!((again.runs.duration_s, again.runs.warmup_s, again.runs.seeds), (7.0, 1.5, 4));
    assert_eq!(again.model.queue(), first.model.queue());
    assert_eq!((again.model.action(), again.model.thresholds()), (Action::Mark, first.model.thresholds()));
    for (one, other) in first.model.sources().iter().zip(again.model.sources()) {
        assert_eq!((one.name(), one.rates(), one.generator()), (other.name(), other.rates(), other.generator()));
    }
    assert_eq!(json(&first), json(&again));
    // ON for .4 s, OFF for .6 s: 2.5 a second each to OFF, 5/3 to ON, two fifths of 3 * 40 packets/s.
    let calls = first.model.sources().last().unwrap();
    close(calls.generator()[1][0], 2.5, 1e-12, "to OFF");
    close(calls.generator()[0][1], 3.0 / 0.6, 1e-12, "the first of three to ON");
    close(calls.mean_rate(), 48.0, 1e-12, "mean rate");
}

#[test]
fn the_simulation_is_compared_with_the_prediction() {
    let analysis = analysis(&two("[simulate]\nduration = \"20s\"\nwarmup = \"1s\"\nseeds = 6\n"));
    let compared = simulate(&analysis.model, &analysis.measures, &analysis.runs);
    let report: Value = serde_json::from_str(&analysis.to_json(Some(&compared))).unwrap();
    let simulation = &report["simulation"];
    for (key, expected) in [("duration_s", 20.0), ("warmup_s", 1.0), ("seeds", 6.0)] {
        check(simulation, key, expected);
    }
    // Utilisation and occupancy are of the queue; the share later than the 99th percentile of each source.
    let keys = |value: &Value| value.as_object().unwrap().len();
    assert_eq!((keys(&simulation["total"]), keys(&simulation["sources"]["a"])), (9, 8));
    for (key, expected) in [("total.utilization", 2.0 / 3.0), ("sources.a.loss_ratio", 1.0 / 3.0)] {
        let entry = key.split('.').fold(simulation, |value, key| &value[key]);
        check(entry, "predicted", expected);
        check(entry, "n", 6.0);
        // A hundred packets a second for 20 s, 6 times: a hundredth is three deviations and more.
        close(number(entry, "mean"), expected, 0.06, key);
        let [low, high] = [0, 1].map(|k| entry["ci95"][k].as_f64().unwrap());
        close(0.5 * (low + high), number(entry, "mean"), 1e-9, "middle of the interval");
        // Student's .975 quantile of five degrees of freedom is 2.5706.
        close(high - low, 2.0 * 2.5706 * number(entry, "std") / 6f64.sqrt(), 1e-3, "width of the interval");
        assert_eq!(entry["inside"], low <= expected && expected <= high);
    }
    // No early drops in any run: an interval of zero width that contains the prediction.
    let never = &simulation["total"]["early_drop_ratio"];
    assert_eq!((&never["mean"], &never["inside"]), (&Value::from(0.0), &Value::from(true)));
}

/// Trace in the folder for temporary files; removed when dropped.
struct Trace(PathBuf);

impl Trace {
    /// Writes a trace with a packet every `gap_us` on average, at times of a fixed pattern, with sizes in turn.
    fn new(name: &str, gap_us: u64, packets: u64, sizes: &[&str]) -> Self {
        let path = std::env::temp_dir().join(format!("aqumen-mmpp-files-{}-{name}", std::process::id()));
        let (mut text, mut at_us) = (String::from("time,bytes\n"), 0);
        for k in 0..packets {
            at_us += 1 + (k * k * 7919) % (2 * gap_us - 1);
            text += &format!("{:.6} {}\n", at_us as f64 / 1e6, sizes[k as usize % sizes.len()]);
        }
        std::fs::write(&path, text).unwrap();
        Trace(path)
    }

    fn source(&self, name: &str) -> String {
        format!("[[sources]]\nname = \"{name}\"\ntrace = {{ file = \"{}\" }}\n", self.0.display())
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn the_service_rate_of_a_link_follows_the_mean_packet_size_of_all_traces() {
    let (quick, slow) = (Trace::new("quick", 500, 9000, &["400"]), Trace::new("slow", 1500, 3000, &["1600"]));
    let head = "name = \"both\"\n[queue]\nbuffer = \"5pkt\"\nlink = \"8Mbit\"\n";
    let both = analysis(&format!("{head}{}{}", quick.source("quick"), slow.source("slow")));
    let report = json(&both);
    let rates = ["quick", "slow"].map(|name| number(&report, &format!("fits.{name}.rate_pps")));
    let [quick_pps, slow_pps] = rates;
    assert!((quick_pps / 2000.0 - 1.0).abs() < 0.1 && (slow_pps / 667.0 - 1.0).abs() < 0.1, "{rates:?}");
    // Means of 400 and 1600 bytes, three to one: about 700 bytes.
    let mean = (400.0 * quick_pps + 1600.0 * slow_pps) / (quick_pps + slow_pps);
    close(both.model.queue().service_rate, 1e6 / mean, 1e-9, "service");
    // Mean square over the square of the mean: about (3 (.16) + 2.56) / 4 / .49 = 1.55, so that one over .55 is 2
    // stages.
    assert_eq!(both.model.queue().stages, 2);
    check(&report, "fits.quick.packets", 9000.0);
    check(&report, "fits.quick.bytes_mean", 400.0);
    assert!(number(&report, "fits.quick.bytes_scv") < 1e-9);
    close(number(&report, "fits.slow.duration_s") * slow_pps, 2999.0, 1e-9, "gaps");
    assert!(report["fits"]["quick"].get("replay").is_none(), "two sources are not replayed");
    // Window sizes double; lags are multiples of the window.
    let fit = &report["fits"]["slow"];
    let windows: Vec<f64> =
        fit["dispersion"]["window_s"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    windows.windows(2).for_each(|pair| close(pair[1], 2.0 * pair[0], 1e-12, "window"));
    for key in ["measured", "fitted", "windows"] {
        assert_eq!(fit["dispersion"][key].as_array().unwrap().len(), windows.len(), "{key}");
    }
    let lags = fit["autocorrelation"]["lag_s"].as_array().unwrap();
    let window = number(fit, "autocorrelation.window_s");
    for (k, lag) in lags.iter().enumerate() {
        close(lag.as_f64().unwrap(), (k + 1) as f64 * window, 1e-12, "lag");
    }
    let errors = [0, 1].map(|k| {
        let shares = ["measured", "fitted"].map(|key| fit["dispersion"][key][k].as_f64().unwrap());
        (shares[1] / shares[0] - 1.0).abs()
    });
    assert!(errors.iter().all(|error| error.is_finite()) && number(fit, "dispersion.rms_error") > 0.0);
}

#[test]
fn packet_sizes_beyond_an_exponential_service_give_a_warning() {
    let alone = |sizes: &[&str], queue: &str| {
        let trace = Trace::new("alone", 1000, 4000, sizes);
        analysis(&format!("name = \"alone\"\n[queue]\nbuffer = \"5pkt\"\n{queue}\n{}", trace.source("t")))
    };
    // One packet in five is large: mean 832 bytes, mean square 3 200 051: 3.6.
    let wild = alone(&["40", "40", "40", "40", "4000"], "link = \"8Mbit\"");
    assert_eq!(wild.model.queue().stages, 1);
    assert!(
        wild.warnings.iter().any(|warning| warning.contains("squared coefficient of variation 3.6")),
        "{:?}",
        wild.warnings
    );
    // 500 and 1500 bytes have .25, as an Erlang service of four stages, unless the file has another number.
    let usual = alone(&["500", "1500"], "link = \"8Mbit\"");
    assert!(!usual.warnings.iter().any(|warning| warning.contains("vary more")), "{:?}", usual.warnings);
    assert_eq!(usual.model.queue().stages, 4);
    assert_eq!(alone(&["500", "1500"], "link = \"8Mbit\"\nstages = 7").model.queue().stages, 7);
    assert_eq!(alone(&["500", "1500"], "service = \"1000pkt/s\"").model.queue().stages, 1);
    // The trace of a single source is replayed: 8 of 80 Mbit/s are busy without losses.
    let wide = alone(&["500", "1500"], "link = \"80Mbit\"");
    let replay = &json(&wide)["fits"]["t"]["replay"];
    close(number(replay, "utilization"), wide.fits[0].fit.trace.rate_pps / 10_000.0, 0.01, "busy");
    assert_eq!(number(replay, "loss_ratio"), 0.0);
    // Replays have no early drops.
    assert!(alone(&["500"], "link = \"8Mbit\"\n[early]\nthreshold = 0.5").fits[0].replay.is_none());
    let trace = Trace::new("bare", 1000, 4000, &[""]);
    let error =
        error_of(&format!("name = \"bare\"\n[queue]\nbuffer = \"5pkt\"\nlink = \"8Mbit\"\n{}", trace.source("t")));
    assert!(error.contains("queue") && error.contains("the traces have no sizes"), "{error}");
}

#[test]
fn errors_of_a_source_name_its_key() {
    let source = |of: &str| {
        error_of(&format!(
            "name = \"x\"\n[queue]\nbuffer = \"5pkt\"\nservice = \"100pkt/s\"\n[[sources]]\nname = \"s\"\n{of}\n"
        ))
    };
    let error = source("rates = [\"1pkt/s\", \"2pkt/s\"]\ngenerator = [[-1.0, 2.0], [1.0, -1.0]]");
    assert!(error.contains("sources.s.generator") || error.contains("sources.0.generator"), "{error}");
    assert!(error.contains("row 1 sums to 1"), "{error}");
    assert!(source("rate = \"0pkt/s\"").contains("at least one must be above 0"));
    assert!(source("trace = { file = \"/no/such/trace\" }").contains("cannot read /no/such/trace"));
    let two_state = analysis(
        "name = \"x\"\n[queue]\nbuffer = \"5pkt\"\nservice = \"100pkt/s\"\n[[sources]]\nname = \"calls\"\n\
         minisources = { count = 9, on = \"400ms\", off = \"600ms\", rate = \"4pkt/s\", model = \"two-state\" }\n",
    );
    assert!(
        two_state.warnings[0].starts_with("calls: the two-state model has")
            && two_state.warnings[0].ends_with("has 10 states")
    );
    assert_eq!(two_state.model.sources()[0].states(), 2);
    close(two_state.model.sources()[0].mean_rate(), 9.0 * 4.0 * 0.4, 1e-12, "mean");
}
