//! Predictions against packet simulations: the queue, and the path from a trace to a predicted loss.

use crate::common;

use std::fmt::Write;
use std::path::PathBuf;

use aqumen_queueing::trace::{self, Arrival, Counter};
use aqumen_queueing::{
    Action, Analysis, Comparison, Model, Queue, Runs, Source, arrivals, dispersion, fit, replay, simulate,
};
use aqumen_scenario::mmpp::File;
use common::{close, two_states};

fn sources() -> Vec<Source> {
    vec![two_states("video", 300.0, 80.0, 2.0, 1.0), two_states("www", 350.0, 60.0, 5.0, 3.0)]
}

/// Asserts that the prediction lies in the 99.9 % interval of the simulation.
fn inside(compared: &Comparison, load: f64) {
    let summary = compared.simulated.expect("every measure has runs");
    assert_eq!(summary.n, 20);
    let half = aqumen_result::student_quantile(0.9995, 19.0) * summary.std.unwrap() / 20f64.sqrt();
    let off = (summary.mean - compared.predicted).abs();
    let Comparison { measure, source, predicted, .. } = compared;
    let mean = summary.mean;
    assert!(off <= half + 1e-12, "{measure} of {source:?} at load {load}: predicted {predicted}, {mean} +- {half}");
}

#[test]
fn predictions_lie_in_the_simulations_interval_at_three_loads() {
    let runs = Runs { duration_s: 500.0, warmup_s: 20.0, seeds: 20 };
    for load in [0.6, 0.85, 1.1] {
        let mean: f64 = sources().iter().map(Source::mean_rate).sum();
        let queue = Queue { capacity: 15, service_rate: mean / load, stages: 3 };
        let plain = Model::new(queue, sources()).unwrap();
        for (action, thresholds) in [
            (Action::Drop, vec![None, None]),
            (Action::Drop, vec![Some(7.5), Some(3.0)]),
            (Action::Mark, vec![Some(7.5), None]),
        ] {
            let model = plain.clone().with_thresholds(action, thresholds).unwrap();
            let predicted = model.solve().unwrap();
            let compared = simulate(&model, &predicted, &runs);
            // Utilisation and occupancy; 7 measures of all; 8 of each of both sources.
            assert_eq!(compared.len(), 2 + 7 + 2 * 8);
            compared.iter().for_each(|compared| inside(compared, load));
        }
    }
}

#[test]
fn the_same_seeds_give_the_same_simulation() {
    let model = Model::new(Queue { capacity: 15, service_rate: 400.0, stages: 3 }, sources()).unwrap();
    let predicted = model.solve().unwrap();
    let runs = Runs { duration_s: 5.0, warmup_s: 1.0, seeds: 3 };
    let means = || -> Vec<Option<f64>> {
        simulate(&model, &predicted, &runs).iter().map(|compared| compared.simulated.map(|s| s.mean)).collect()
    };
    assert_eq!(means(), means());
}

fn traced(source: &Source, seed: u64, duration_s: f64) -> (Vec<i64>, fit::Fit) {
    let mut times = Vec::new();
    arrivals(source, seed, duration_s, |at_ns| times.push(at_ns));
    let mut counter = Counter::default();
    times.iter().for_each(|&at_ns| counter.add(Arrival { at_ns, bytes: None }));
    (times, fit::fit("trace", counter.finish().unwrap(), 3).unwrap())
}

#[test]
fn a_poisson_trace_is_fitted_by_a_poisson_process() {
    let (times, fit) = traced(&Source::poisson("p", 1000.0).unwrap(), 3, 200.0);
    assert_eq!(fit.source.states(), 1);
    // 200 000 packets: the rate within 3.3 standard errors.
    assert!((fit.source.mean_rate() - 1000.0).abs() < 3.3 * 1000.0 / (times.len() as f64).sqrt());
    assert!(fit.warnings.is_empty(), "{:?}", fit.warnings);
}

fn warns_of_a_rise(fit: &fit::Fit) -> bool {
    fit.warnings.iter().any(|warning| warning.contains("still rises"))
}

#[test]
fn a_rising_dispersion_is_reported_for_slow_sources_and_rarely_for_fast_ones() {
    // 200 s of a source that relaxes within .2 s: windows of seconds are uncorrelated. Of 60 traces at most 5 may give
    // a warning: at a probability of one in forty each, more occur once in 200 times; one in four would give 15.
    let source = two_states("s", 300.0, 60.0, 3.0, 2.0);
    let warned = (0..60).filter(|seed| warns_of_a_rise(&traced(&source, 1000 + seed, 200.0).1)).count();
    assert!(warned <= 5, "{warned} of 60");
    // States that last for an eighth of the trace.
    let slow = two_states("slow", 300.0, 60.0, 0.04, 0.04);
    let warned = (0..20).filter(|seed| warns_of_a_rise(&traced(&slow, 2000 + seed, 200.0).1)).count();
    assert!(warned >= 15, "{warned} of 20");
}

#[test]
fn the_parameters_of_a_two_state_trace_are_recovered() {
    // High 400/s for 0.5 s, low 100/s for 1 s on average: relaxation 3/s, variance 300^2 * 2/9 = 20000, share high 1/3.
    let source = two_states("s", 400.0, 100.0, 2.0, 1.0);
    let (_, fit) = traced(&source, 1, 20_000.0);
    assert_eq!(fit.components.len(), 1, "{:?}", fit.components);
    close(fit.source.mean_rate(), 200.0, 0.01, "rate");
    close(fit.components[0].relaxation, 3.0, 0.05, "relaxation");
    close(fit.components[0].variance, 20_000.0, 0.05, "variance");
    assert_eq!(fit.components[0].count, 1);
    close(fit.components[0].on_share, 1.0 / 3.0, 0.1, "share of the high state");
    close(fit.poisson_pps, 100.0, 0.05, "Poisson part: the low rate");
    for t in [0.01, 0.1, 1.0, 10.0] {
        let (own, true_one) =
            (dispersion(std::slice::from_ref(&fit.source), t), dispersion(std::slice::from_ref(&source), t));
        close(own, true_one, 0.05, "index of dispersion");
    }
    for (measured, fitted) in &fit.autocorrelation {
        assert!((measured - fitted).abs() < 0.02, "autocorrelation {measured} fitted as {fitted}");
    }
}

/// File in the folder for temporary files; removed when dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("aqumen-mmpp-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn service_stages_follow_the_variation_of_packet_sizes() {
    // Model of a link of 8 Mbit/s, with Poisson arrivals of packets of these sizes.
    let with = |name: &str, sizes: [u32; 2]| {
        let mut at_ns = Vec::new();
        arrivals(&Source::poisson("t", 300.0).unwrap(), 5, 60.0, |ns| at_ns.push(ns));
        let lines = at_ns.iter().zip(sizes.into_iter().cycle());
        let lines: String = lines.map(|(ns, bytes)| format!("{:.9} {bytes}\n", *ns as f64 / 1e9)).collect();
        let trace = Temporary::new(name, lines.as_bytes());
        let text = format!(
            "name = \"link\"\n[queue]\nbuffer = \"20pkt\"\nlink = \"8Mbit\"\n[[sources]]\nname = \"t\"\ntrace = {{ file = \"{}\" }}\n",
            trace.0.display()
        );
        Analysis::new(&File::parse(&text, "link.toml").unwrap()).unwrap()
    };
    // 500 and 1500 bytes: mean 1000, mean square 1 250 000: a squared coefficient of variation of 1/4, that of 4
    // stages.
    let unlike = with("unlike.txt", [500, 1500]);
    assert_eq!(unlike.model.queue().stages, 4);
    assert!((unlike.model.queue().service_rate - 1000.0).abs() < 0.1);
    // 10 and 4000: 8 000 050 / 2005^2 - 1 = .99, one stage. All alike: as many as there are.
    assert_eq!(with("far.txt", [10, 4000]).model.queue().stages, 1);
    assert_eq!(with("alike.txt", [1000, 1000]).model.queue().stages, 10);
}

#[test]
fn the_loss_predicted_from_a_trace_matches_its_replay() {
    // A trace fitted and replayed, and the exact solution of its source.
    let source = two_states("s", 400.0, 100.0, 2.0, 1.0);
    let (times, fit) = traced(&source, 1, 20_000.0);
    let mut text = String::from("time\n");
    times.iter().for_each(|at_ns| writeln!(text, "{}", *at_ns as f64 / 1e9).unwrap());
    let file = Temporary::new("trace.csv", text.as_bytes());
    for (load, capacity) in [(0.6, 20), (0.8, 40), (1.0, 20)] {
        let queue = Queue { capacity, service_rate: 200.0 / load, stages: 2 };
        let loss = |source: &Source| Model::new(queue, vec![source.clone()]).unwrap().solve().unwrap().total.loss_ratio;
        let (predicted, exact) = (loss(&fit.source), loss(&source));
        let replayed = replay(&file.0, None, queue, None).unwrap();
        close(predicted, exact, 0.1, "loss of the fit");
        close(predicted, replayed.loss_ratio, 0.12, "loss of the trace");
    }
}

#[test]
fn the_fit_of_a_superposition_has_its_loss_at_large_buffers() {
    // Four sources of two states, 5000 s of each drawn by itself and sorted. Losses span three orders of magnitude;
    // with one ON/OFF source for each time scale the last would be too low by a factor of 20.
    let sources = [
        two_states("video", 300.0, 80.0, 2.0, 1.0),
        two_states("multimedia", 260.0, 20.0, 1.25, 5.0),
        two_states("www", 350.0, 60.0, 5.0, 3.0),
        two_states("ftp", 280.0, 100.0, 0.5, 0.4),
    ];
    let mut times = Vec::new();
    sources.iter().zip(1..).for_each(|(source, seed)| arrivals(source, seed, 5000.0, |at_ns| times.push(at_ns)));
    times.sort_unstable();
    let mut counter = Counter::default();
    times.iter().for_each(|&at_ns| counter.add(Arrival { at_ns, bytes: None }));
    let fit = fit::fit("trace", counter.finish().unwrap(), 3).unwrap();
    assert!(fit.components.iter().all(|component| component.count > 1), "{:?}", fit.components);
    for (capacity, factor) in [(20, 1.1), (50, 1.15), (100, 1.25), (200, 2.0)] {
        let queue = Queue { capacity, service_rate: 975.0, stages: 4 };
        let loss = |sources: Vec<Source>| Model::new(queue, sources).unwrap().solve().unwrap().total.loss_ratio;
        let (predicted, exact) = (loss(vec![fit.source.clone()]), loss(sources.to_vec()));
        assert!((1.0 / factor..factor).contains(&(predicted / exact)), "L = {capacity}: {predicted}, exactly {exact}");
    }
}

fn read_all(bytes: &[u8], name: &str, interface: Option<u32>) -> Result<(Vec<Arrival>, bool), String> {
    let file = Temporary::new(name, bytes);
    let mut all = Vec::new();
    let complete = trace::read(&file.0, interface, |arrival| all.push(arrival)).map_err(|error| error.to_string())?;
    Ok((all, complete))
}

fn pcap(magic: u32, big: bool, packets: &[(u32, u32, u32)]) -> Vec<u8> {
    let word = |x: u32| if big { x.to_be_bytes() } else { x.to_le_bytes() };
    let half = |x: u16| if big { x.to_be_bytes() } else { x.to_le_bytes() };
    let mut bytes = word(magic).to_vec();
    bytes.extend([half(2), half(4)].concat());
    for field in [0, 0, 64, 1] {
        bytes.extend(word(field));
    }
    for &(seconds, fraction, size) in packets {
        for field in [seconds, fraction, 4, size] {
            bytes.extend(word(field));
        }
        bytes.extend([1, 2, 3, 4]);
    }
    bytes
}

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    // Sizes beyond the snapshot length of 64: captures of headers alone are the usual ones.
    let packets = [(1_700_000_000, 5, 1500), (1_700_000_000, 999_999, 40), (1_700_000_001, 0, 9000)];
    for (magic, big, unit) in [(0xa1b2_c3d4, false, 1000), (0xa1b2_c3d4, true, 1000), (0xa1b2_3c4d, false, 1)] {
        let (all, complete) = read_all(&pcap(magic, big, &packets), "a.pcap", None).unwrap();
        let expected = packets.map(|(seconds, fraction, size)| Arrival {
            at_ns: i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * unit,
            bytes: Some(size),
        });
        assert_eq!((all, complete), (expected.to_vec(), true));
    }
    // Interrupted in the middle of the last packet.
    let mut cut = pcap(0xa1b2_c3d4, false, &packets);
    cut.truncate(cut.len() - 2);
    let (all, complete) = read_all(&cut, "cut.pcap", None).unwrap();
    assert_eq!((all.len(), complete), (2, false));
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

fn interface(resolution: Option<u8>) -> Vec<u8> {
    let mut body = [1u16.to_le_bytes(), 0u16.to_le_bytes()].concat();
    body.extend(0u32.to_le_bytes());
    if let Some(resolution) = resolution {
        // Option 9, if_tsresol, one byte and padding; then the end of options.
        body.extend([9, 0, 1, 0, resolution, 0, 0, 0, 0, 0, 0, 0]);
    }
    block(1, &body)
}

fn enhanced(interface: u32, units: u64, size: u32) -> Vec<u8> {
    let words = [interface, (units >> 32) as u32, units as u32, 4, size];
    let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    body.extend([1, 2, 3, 4]);
    block(6, &body)
}

#[test]
fn pcapng_with_the_time_units_of_each_interface() {
    let mut section = 0x1a2b_3c4du32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend(u64::MAX.to_le_bytes());
    let bytes = [
        block(0x0a0d_0d0a, &section),
        interface(None),
        interface(Some(9)),
        interface(Some(0x80 | 10)),
        enhanced(0, 1_500_000, 100),
        enhanced(1, 1_500_000_001, 200),
        // 1536 / 1024 s.
        enhanced(2, 1536, 300),
    ]
    .concat();
    let arrival = |at_ns, size| Arrival { at_ns, bytes: Some(size) };
    let expected = vec![arrival(1_500_000_000, 100), arrival(1_500_000_001, 200), arrival(1_500_000_000, 300)];
    assert_eq!(read_all(&bytes, "a.pcapng", None).unwrap(), (expected.clone(), true));
    assert_eq!(read_all(&bytes, "a1.pcapng", Some(1)).unwrap(), (expected[1..2].to_vec(), true));
    let stranger = [&bytes[..], &enhanced(7, 0, 1)].concat();
    assert!(
        read_all(&stranger, "b.pcapng", None)
            .unwrap_err()
            .contains("b.pcapng: at byte 220: a packet of interface 7, which no block before it describes")
    );
}

#[test]
fn text_traces_with_headers_comments_and_sizes() {
    let text = "# made by hand\ntime,bytes\n0.5,100\n\n1.25;200\n 2e0\t300\n";
    let arrival = |at_ns, size| Arrival { at_ns, bytes: Some(size) };
    let expected = vec![arrival(500_000_000, 100), arrival(1_250_000_000, 200), arrival(2_000_000_000, 300)];
    assert_eq!(read_all(text.as_bytes(), "a.csv", None).unwrap(), (expected, true));
    let error = |bytes: &[u8]| read_all(bytes, "bad.csv", None).unwrap_err();
    assert!(error(b"0.1\nlate\n").contains("line 2: must begin with a time in seconds"));
    assert!(error(b"0.1 12.5B\n").contains("line 1: the second column must be a size in bytes"));
    assert!(error(&[0xff, 0xfe, 0x00]).contains("neither a capture nor text"));
    assert!(error(&[0x1f, 0x8b, 0x08]).contains("compressed"));
    assert!(error(&[b'1'; 5000]).contains("longer than 4096 characters"));
    assert!(trace::read(&std::env::temp_dir(), None, |_| ()).unwrap_err().to_string().contains("directory"));
}

#[test]
fn a_trace_with_too_few_packets_is_refused() {
    let fit = |times: &[i64]| {
        let mut counter = Counter::default();
        times.iter().for_each(|&at_ns| counter.add(Arrival { at_ns, bytes: None }));
        counter.finish().and_then(|summary| fit::fit("trace", summary, 3)).err().map(|error| error.to_string())
    };
    assert!(fit(&[]).unwrap().contains("the trace has 0 packets"));
    assert!(fit(&[5; 1000]).unwrap().contains("over a positive time"));
    assert!(fit(&(0..50).collect::<Vec<_>>()).unwrap().contains("the trace has 50 packets"));
    // A burst, then one packet a day later: nearly all windows are empty, and the fit still succeeds.
    let mut burst: Vec<i64> = (0..2000).collect();
    burst.push(86_400_000_000_000);
    assert_eq!(fit(&burst), None);
}

#[test]
fn paced_and_reordered_packets_give_warnings() {
    let warnings = |times: &[i64]| {
        let mut counter = Counter::default();
        times.iter().for_each(|&at_ns| counter.add(Arrival { at_ns, bytes: None }));
        fit::fit("trace", counter.finish().unwrap(), 3).unwrap().warnings.join("; ")
    };
    let paced: Vec<i64> = (0..10_000).map(|i| i * 1_000_003).collect();
    assert!(warnings(&paced).contains("smoother than Poisson"));
    let mut swapped = paced;
    swapped.swap(500, 501);
    assert!(warnings(&swapped).contains("1 packets have an earlier time than the packet before them"));
}

proptest::proptest! {
    #![proptest_config(common::config(300))]

    #[test]
    fn the_reader_never_panics_on_arbitrary_bytes(kind in 0..4usize, bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        let mut section = 0x1a2b_3c4du32.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]);
        section.extend(u64::MAX.to_le_bytes());
        let head = [
            Vec::new(),
            pcap(0xa1b2_c3d4, false, &[]),
            [block(0x0a0d_0d0a, &section), interface(Some(9))].concat(),
            [block(0x0a0d_0d0a, &section), interface(Some(0xff))].concat(),
        ];
        let _ = read_all(&[&head[kind][..], &bytes].concat(), &format!("fuzz{kind}"), None);
        // The bytes as the body of a packet block.
        let _ = read_all(&[&head[2][..], &block(6, &bytes[..bytes.len() / 4 * 4])].concat(), "fuzz-body", None);
    }
}

#[test]
fn a_truncated_capture_gives_a_warning_and_its_complete_packets_are_used() {
    let packets: Vec<_> = (0..3000)
        .map(|k| (1_700_000_000 + k / 1000, k % 1000 * 1000 + (k % 100) * (k % 100) * 7919 % 900, 500))
        .collect();
    let mut bytes = pcap(0xa1b2_c3d4, false, &packets);
    for (whole, expected) in [(true, 3000), (false, 2999)] {
        bytes.truncate(bytes.len() - if whole { 0 } else { 2 });
        let trace = Temporary::new("stops.pcap", &bytes);
        let text = format!(
            "name = \"x\"\n[queue]\nbuffer = \"5pkt\"\nservice = \"2000pkt/s\"\n[[sources]]\nname = \"t\"\n\
             trace = {{ file = \"{}\" }}\n",
            trace.0.display()
        );
        let analysis = Analysis::new(&File::parse(&text, "model.toml").unwrap()).unwrap();
        assert_eq!(analysis.fits[0].fit.trace.packets, expected);
        let warned =
            analysis.warnings.contains(&"t: the capture ends within a packet; the packets before it are used".into());
        assert_eq!(warned, !whole, "{:?}", analysis.warnings);
    }
}

#[test]
fn replayed_packets_queue_behind_earlier_ones() {
    // 1000 bytes on 8 Mbit/s take 1 ms; capacity two. Arrivals at 0, .2 and .3 ms: the second departs at 2 ms after a
    // delay of 1.8 ms, the third is lost. One more at 10 ms: delays 1, 1.8 and 1 ms; busy 3 of 11 ms.
    let bytes = pcap(0xa1b2_c3d4, false, &[(9, 0, 1000), (9, 200, 1000), (9, 300, 1000), (9, 10_000, 1000)]);
    let file = Temporary::new("waits.pcap", &bytes);
    let queue = Queue { capacity: 2, service_rate: 1000.0, stages: 1 };
    let replayed = replay(&file.0, None, queue, Some(8e6)).unwrap();
    close(replayed.loss_ratio, 0.25, 1e-12, "loss");
    close(replayed.delay_mean_s, 3.8e-3 / 3.0, 1e-12, "delay");
    close(replayed.utilization, 3.0 / 11.0, 1e-12, "utilization");
}
