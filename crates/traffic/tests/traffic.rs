//! Each traffic source against its theory: means, variances, dispersion, tails, the Hurst parameter. Seeds are fixed;
//! intervals are of 99.9 %.

mod sources;

use aqumen_result::student_quantile;
use aqumen_scenario::law::Law;
use aqumen_scenario::streams::Draw;
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_traffic::{Action, Draws, Step, build, requests};
use aqumen_units::Instant;
use sources::{Packet, packets, steps, traffic};

/// Mean of `values`, and half the width of its interval by Student.
fn interval(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    (mean, student_quantile(0.9995, n - 1.0) * (variance / n).sqrt())
}

fn assert_mean(what: &str, values: &[f64], expected: f64) {
    let (mean, half) = interval(values);
    assert!((mean - expected).abs() < half, "{what}: {mean} +- {half}, expected {expected}");
}

fn draws(law: &Law, n: usize) -> Vec<f64> {
    let (draws, mut rng) = (Draws::new(law), Stream::new(1, Kind::Traffic, 0));
    (0..n).map(|_| draws.draw(&mut rng)).collect()
}

const N: usize = 200_000;

/// Laws with their mean and second moment.
fn laws() -> Vec<(Law, f64, f64)> {
    let empirical = Law::Empirical { file: None, points: vec![(100.0, 0.25), (200.0, 0.5), (1000.0, 1.0)].into() };
    vec![
        (Law::Fixed(700.0), 700.0, 490_000.0),
        (Law::Uniform { min: 100.0, max: 700.0 }, 400.0, 190_000.0), // 400^2 + 600^2 / 12
        (Law::Exponential { mean: 50.0 }, 50.0, 5000.0),
        (Law::Erlang { mean: 60.0, stages: 4 }, 60.0, 4500.0), // 60^2 (1 + 1/4)
        // Shape 5 from 0.8: E X^2 = 5 / 3 0.64.
        (Law::Pareto { mean: 1.0, shape: 5.0, max: None }, 1.0, 3.2 / 3.0),
        // 1 / x^2 from 1 to 100, given at most 100: mean ln 100 / 0.99, E X^2 = 99 / 0.99.
        (Law::Pareto { mean: 100f64.ln() / 0.99, shape: 1.0, max: Some(100.0) }, 4.651_687_057, 100.0),
        // 2 / x^3 from 1 to 10, given at most 10: mean 2 (1 - 1 / 10) / 0.99, E X^2 = 2 ln 10 / 0.99.
        (Law::Pareto { mean: 1.8 / 0.99, shape: 2.0, max: Some(10.0) }, 1.8 / 0.99, 2.0 * 10f64.ln() / 0.99),
        // E X^2 = 1^2 + 0.5^2.
        (Law::Lognormal { mean: 1.0, std: 0.5, min: 0.0, max: None }, 1.0, 1.25),
        // A quarter at 100; a quarter uniform to 200, half uniform to 1000:
        // 25 + 150 / 4 + 600 / 2; 2500 + 70000 / 3 / 4 + (1000^3 - 200^3) / 3 / 800 / 2.
        (empirical, 362.5, 2500.0 + 70_000.0 / 12.0 + 992e6 / 4800.0),
    ]
}

#[test]
fn draws_have_the_moments_of_their_law() {
    for (law, mean, second) in laws() {
        assert!((law.mean() - mean).abs() < 1e-6 * mean, "{law:?}: {}", law.mean());
        let drawn = draws(&law, N);
        let squares: Vec<f64> = drawn.iter().map(|x| x * x).collect();
        if let Law::Fixed(_) = law {
            assert!(drawn.iter().all(|x| *x == mean));
            continue;
        }
        assert_mean(&format!("mean of {law:?}"), &drawn, mean);
        assert_mean(&format!("second moment of {law:?}"), &squares, second);
    }
}

/// A random moment in a renewal process: the rest of its interval has the mean E X^2 / (2 E X).
#[test]
fn residuals_follow_the_law_of_the_stationary_process() {
    for (law, mean, second) in laws() {
        let (draws, mut rng) = (Draws::new(&law), Stream::new(2, Kind::Traffic, 0));
        let left: Vec<f64> = (0..N).map(|_| draws.draw_residual(&mut rng)).collect();
        assert_mean(&format!("residual of {law:?}"), &left, second / (2.0 * mean));
    }
}

#[test]
fn half_of_a_lognormal_law_lies_below_its_median() {
    // mean exp(-sigma^2 / 2) = 1 / sqrt(1.25) with std / mean = 0.5, and symmetric about it in its logarithm.
    let law = Law::Lognormal { mean: 1.0, std: 0.5, min: 0.0, max: None };
    let logs: Vec<f64> = draws(&law, N).iter().map(|x| x.ln() + 0.5 * 1.25f64.ln()).collect();
    assert_mean("logarithms", &logs, 0.0);
    let squares: Vec<f64> = logs.iter().map(|x| x * x).collect();
    assert_mean("their squares", &squares, 1.25f64.ln());
    let below: Vec<f64> = logs.iter().map(|x| f64::from(u8::from(*x < 0.0))).collect();
    assert_mean("below the median", &below, 0.5);
}

#[test]
fn draws_stay_within_their_bounds_and_the_mean_counts_them() {
    let pareto = Law::Pareto { mean: 10_000.0, shape: 1.2, max: Some(1e6) };
    let drawn = draws(&pareto, N);
    assert!(drawn.iter().all(|x| *x <= 1e6));
    assert_mean("bounded Pareto", &drawn, 10_000.0);
    let lognormal = Law::Lognormal { mean: 10_710.0, std: 25_032.0, min: 100.0, max: Some(2e6) };
    let drawn = draws(&lognormal, N);
    assert!(drawn.iter().all(|x| (100.0..=2e6).contains(x)));
    assert_mean("bounded lognormal", &drawn, lognormal.mean());
}

/// Hill's estimator over the k largest: the inverse of the mean excess of their logarithms; its
/// deviation is alpha / sqrt k.
#[test]
fn the_tail_of_a_pareto_law_has_its_index() {
    for shape in [1.2, 1.4, 2.5] {
        let mut drawn = draws(&Law::Pareto { mean: 1.0, shape, max: None }, N);
        drawn.sort_by(|a, b| b.total_cmp(a));
        let k = 20_000;
        let excess = drawn[..k].iter().map(|x| (x / drawn[k]).ln()).sum::<f64>() / k as f64;
        let half = 3.29 * shape / (k as f64).sqrt();
        assert!((1.0 / excess - shape).abs() < half, "{} +- {half}, expected {shape}", 1.0 / excess);
    }
}

#[test]
fn a_constant_rate_does_not_drift() {
    let sent = packets(&traffic("{ kind = \"cbr\", rate = \"3Mbit\", packet = \"1000B\" }"), 1, 100.0);
    // 8000 bits at 3 Mbit/s: 8/3 ms each; 37500 in 100 s, the first at the start.
    assert_eq!(sent.len(), 37_500);
    for (n, packet) in sent.iter().enumerate() {
        assert_eq!((packet.at_ns, packet.bytes), (n as u64 * 8_000_000 / 3, 1000));
    }
}

/// Counts of packets in windows of `window_s`, `apart_s` from one to the next.
fn counts(sent: &[Packet], window_s: f64, apart_s: f64, duration_s: f64) -> Vec<f64> {
    let windows = (duration_s / apart_s) as usize;
    let mut counts = vec![0.0; windows];
    for packet in sent {
        let t_s = packet.at_ns as f64 / 1e9;
        let i = (t_s / apart_s) as usize;
        if i < windows && t_s - i as f64 * apart_s < window_s {
            counts[i] += 1.0;
        }
    }
    counts
}

/// Holds mean and variance of the counts in windows that lie far enough `apart_s` to be independent.
fn assert_counts(what: &str, sent: &[Packet], [window_s, apart_s, duration_s]: [f64; 3], mean: f64, variance: f64) {
    let counts = counts(sent, window_s, apart_s, duration_s);
    assert_mean(&format!("{what}, mean"), &counts, mean);
    let squares: Vec<f64> = counts.iter().map(|count| (count - mean) * (count - mean)).collect();
    assert_mean(&format!("{what}, variance"), &squares, variance);
}

#[test]
fn poisson_packets_have_a_dispersion_of_one() {
    let source =
        traffic("{ kind = \"poisson\", rate = \"500pkt/s\", packet = { law = \"exponential\", mean = \"400B\" } }");
    let sent = packets(&source, 1, 1000.0);
    assert_counts("Poisson", &sent, [0.1, 0.2, 1000.0], 50.0, 50.0);
    let sizes: Vec<f64> = sent.iter().map(|packet| f64::from(packet.bytes)).collect();
    assert_mean("sizes", &sizes, 400.0);
}

/// Rate R ON with probability p, memory falling as exp(-c t): the variance of what comes in a window T is
/// 2 R^2 p (1 - p) (c T - 1 + exp(-c T)) / c^2.
fn telegraph(rate: f64, share: f64, c: f64, t: f64) -> f64 {
    2.0 * rate * rate * share * (1.0 - share) * (c * t - 1.0 + (-c * t).exp()) / (c * c)
}

#[test]
fn exponential_on_off_has_the_variance_of_the_telegraph_process() {
    let source = traffic(
        "{ kind = \"on-off\", rate = \"8Mbit\", packet = \"100B\", \
         on = { law = \"exponential\", mean = \"20ms\" }, off = { law = \"exponential\", mean = \"60ms\" } }",
    );
    // 10000 packets/s while ON, a quarter of the time; c = 50 + 50/3. The grid of packets adds
    // less than one to the variance.
    let sent = packets(&source, 3, 1000.0);
    let variance = telegraph(10_000.0, 0.25, 200.0 / 3.0, 0.1);
    assert_counts("ON/OFF", &sent, [0.1, 0.25, 1000.0], 250.0, variance);
}

#[test]
fn a_source_that_begins_off_sends_its_first_packet_after_a_whole_period_off() {
    // 100 ms OFF; 25 ms ON of 1000 packets/s: packets at 0 and each millisecond, up to 25.
    let fixed = traffic(
        "{ kind = \"on-off\", rate = \"8Mbit\", packet = \"1000B\", on = \"24500us\", off = \"100ms\", begin = \"off\" }",
    );
    let times: Vec<u64> = packets(&fixed, 1, 0.2).iter().map(|packet| packet.at_ns / 1000).collect();
    assert_eq!(times, (0..25).map(|i| 100_000 + 1000 * i).collect::<Vec<_>>());
    // Times whose rest has no mean, of shape 1.2. Begun in the middle, half of the sources are ON, and
    // send within a packet's time.
    let pareto = |begin: &str| {
        traffic(&format!(
            "{{ kind = \"on-off\", rate = \"1Mbit\", packet = \"125B\", on = {{ law = \"pareto\", mean = \"1s\", shape = 1.2 }}, \
             off = {{ law = \"pareto\", mean = \"1s\", shape = 1.2 }}, begin = \"{begin}\" }}"
        ))
    };
    let at_once = |begin: &str| {
        let source = pareto(begin);
        (1..=200).filter(|seed| !packets(&source, *seed, 0.002).is_empty()).count()
    };
    // The least a period lasts is mean (shape - 1) / shape = 167 ms.
    assert_eq!(at_once("off"), 0);
    assert!((70..130).contains(&at_once("stationary")), "{}", at_once("stationary"));
}

#[test]
fn a_packet_that_is_ready_as_the_period_ends_still_leaves() {
    // 5 ms OFF; 3 ms ON of 1000 packets/s: at 0, 1, 2 and 3. The next is ready after 1 ms of the following period.
    let source = traffic(
        "{ kind = \"on-off\", rate = \"8Mbit\", packet = \"1000B\", on = \"3ms\", off = \"5ms\", begin = \"off\" }",
    );
    let times: Vec<u64> = packets(&source, 1, 0.023).iter().map(|packet| packet.at_ns / 1_000_000).collect();
    assert_eq!(times, [5, 6, 7, 8, 14, 15, 16, 22]);
}

#[test]
fn a_pareto_on_off_source_starts_in_the_long_run() {
    let source = traffic(
        "{ kind = \"on-off\", rate = \"1Mbit\", packet = \"125B\", \
         on = { law = \"pareto\", mean = \"100ms\", shape = 1.5 }, off = { law = \"pareto\", mean = \"300ms\", shape = 1.5 } }",
    );
    // 1000 packets/s a quarter of the time; many short runs, none of which reaches the long run by itself.
    let first: Vec<f64> = (0..4000).map(|seed| packets(&source, seed, 0.4).len() as f64).collect();
    assert_mean("packets in the first 400 ms", &first, 100.0);
}

/// Index of dispersion of an MMPP of two states (Heffes, Lucantoni 1986, equation 6), s leaving the first, r the
/// second: 1 + 2 (a - b)^2 s r / ((s + r)^2 (a r + b s)) (1 - (1 - exp(-(s + r) t)) / ((s + r) t)).
#[test]
fn an_mmpp_has_the_mean_and_dispersion_of_its_chain() {
    let (a, b, s, r, t) = (300.0, 80.0, 2.0, 1.0, 0.5f64);
    let (c, mean) = (s + r, (a * r + b * s) / (s + r));
    let dispersion =
        1.0 + 2.0 * (a - b) * (a - b) * s * r / (c * c * (a * r + b * s)) * (1.0 - (1.0 - f64::exp(-c * t)) / (c * t));
    for source in [
        "{ kind = \"mmpp\", preset = \"paper16\", source = \"video\" }",
        "{ kind = \"mmpp\", rates = [\"300pkt/s\", \"80pkt/s\"], generator = [[-2.0, 2.0], [1.0, -1.0]] }",
    ] {
        let sent = packets(&traffic(source), 1, 8000.0);
        assert_counts(source, &sent, [t, 4.0, 8000.0], mean * t, dispersion * mean * t);
    }
}

#[test]
fn minisources_have_the_dispersion_of_their_sum() {
    let source =
        "{ kind = \"mmpp\", minisources = { count = 20, on = \"350ms\", off = \"650ms\", rate = \"50pkt/s\" } }";
    let sent = packets(&traffic(source), 1, 8000.0);
    // 20 telegraph processes of 50 packets/s, c = 1 / 0.35 + 1 / 0.65, and the variance of a Poisson process.
    let variance = 20.0 * telegraph(50.0, 0.35, 1.0 / 0.35 + 1.0 / 0.65, 0.5) + 175.0;
    assert_counts("minisources", &sent, [0.5, 4.0, 8000.0], 175.0, variance);
}

/// Many short runs, none of which reaches the long run by itself.
#[test]
fn processes_start_in_the_long_run() {
    for (source, rate) in [
        // Left 0.02 and 0.01 times a second: the first state a third of the time.
        ("rates = [\"300pkt/s\", \"0pkt/s\"], generator = [[-0.02, 0.02], [0.01, -0.01]]", 100.0),
        // 35 % of 20 sources of 10 packets/s.
        ("minisources = { count = 20, on = \"35s\", off = \"65s\", rate = \"10pkt/s\" }", 70.0),
    ] {
        let source = traffic(&format!("{{ kind = \"mmpp\", {source} }}"));
        let first: Vec<f64> = (0..3000).map(|seed| packets(&source, seed, 0.1).len() as f64).collect();
        assert_mean("packets in the first 100 ms", &first, 0.1 * rate);
    }
}

#[test]
fn a_burst_in_progress_sends_its_first_packet_within_an_interval() {
    // A packet each 10 ms, ON nearly all the time: the first comes evenly within 10 ms.
    let source =
        traffic("{ kind = \"on-off\", rate = \"800kbit\", packet = \"1000B\", on = \"1000s\", off = \"1us\" }");
    let first: Vec<f64> = (0..2000).map(|seed| packets(&source, seed, 0.02)[0].at_ns as f64 / 1e6).collect();
    assert!(first.iter().all(|ms| (0.0..=10.0).contains(ms)));
    assert_mean("the first", &first, 5.0);
}

#[test]
fn a_preset_together_sends_what_its_sources_send() {
    let sent = packets(&traffic("{ kind = \"mmpp\", preset = \"paper16\" }"), 1, 4000.0);
    // 460/3 + 212 + 168.75 + 180 packets/s.
    let counts = counts(&sent, 20.0, 20.0, 4000.0);
    assert_mean("paper16", &counts, 20.0 * (460.0 / 3.0 + 212.0 + 168.75 + 180.0));
}

/// The Hurst parameter by wavelets, after Abry and Veitch (1998): with Haar wavelets the mean squares of the details at
/// octave j grow as 2^(j (2 H - 1)); a line is fitted to their logarithms, each weighted by
/// how many details it stands on.
fn hurst(series: &[f64], octaves: std::ops::Range<u32>) -> f64 {
    let mut means = series.to_vec();
    let mut points = Vec::new();
    for octave in 1..octaves.end {
        let pairs = means.chunks_exact(2);
        let details: Vec<f64> = pairs.clone().map(|pair| (pair[0] - pair[1]) / 2f64.sqrt()).collect();
        means = pairs.map(|pair| (pair[0] + pair[1]) / 2f64.sqrt()).collect();
        let n = details.len() as f64;
        if octave >= octaves.start {
            // E log2 of a mean of n squares lies 1 / (n ln 2) lower.
            let energy = details.iter().map(|d| d * d).sum::<f64>() / n;
            points.push((f64::from(octave), energy.log2() + 1.0 / (n * 2f64.ln()), n));
        }
    }
    let sum = |f: &dyn Fn(&(f64, f64, f64)) -> f64| points.iter().map(f).sum::<f64>();
    let weight = sum(&|p| p.2);
    let (x, y) = (sum(&|p| p.2 * p.0) / weight, sum(&|p| p.2 * p.1) / weight);
    let slope = sum(&|p| p.2 * (p.0 - x) * (p.1 - y)) / sum(&|p| p.2 * (p.0 - x) * (p.0 - x));
    (slope + 1.0) / 2.0
}

#[test]
fn white_noise_has_no_memory() {
    let mut rng = Stream::new(1, Kind::Traffic, 0);
    let series: Vec<f64> = (0..1 << 15).map(|_| rng.uniform()).collect();
    assert!((hurst(&series, 3..11) - 0.5).abs() < 0.03);
}

/// H = (3 - alpha) / 2 for times of shape alpha: 0.8 for 1.4 (Taqqu, Willinger, Sherman 1997).
#[test]
fn heavy_tailed_on_off_sources_together_are_self_similar() {
    let source = traffic(
        "{ kind = \"self-similar\", rate = \"800kbit\", packet = \"1000B\", hurst = 0.8, sources = 40, \
         on = \"100ms\", off = \"200ms\" }",
    );
    let sent = packets(&source, 1, 32_768.0);
    let series = counts(&sent, 1.0, 1.0, 32_768.0);
    let mean = series.iter().sum::<f64>() / series.len() as f64;
    // Long-range dependence makes the mean converge slowly: its deviation falls as n^(H - 1), not n^-0.5.
    assert!((mean - 100.0).abs() < 10.0, "{mean}");
    let found = hurst(&series, 3..11);
    println!("H = {found}");
    assert!((found - 0.8).abs() < 0.05, "H = {found}");
}

#[test]
fn one_source_of_the_self_similar_is_an_on_off_source_with_pareto_times() {
    // H = 0.75: shape 3 - 1.5. ON half of the time, at twice the mean rate.
    let one =
        "{ kind = \"self-similar\", rate = \"400kbit\", hurst = 0.75, sources = 1, on = \"200ms\", off = \"200ms\" }";
    let times = "{ law = \"pareto\", mean = \"200ms\", shape = 1.5 }";
    let same = format!("{{ kind = \"on-off\", rate = \"800kbit\", packet = \"1000B\", on = {times}, off = {times} }}");
    let sent = packets(&traffic(one), 1, 100.0);
    assert!(sent.len() > 1000);
    assert_eq!(sent, packets(&traffic(&same), 1, 100.0));
}

#[test]
fn a_call_talks_as_long_as_its_law_says_in_frames_of_its_codec() {
    let call = traffic("\"voip\"");
    // 1.004 s of talk for 1.587 s of silence: 38.75 % of 50 frames a second.
    let frames: Vec<f64> = (0..400).map(|seed| packets(&call, seed, 40.0).len() as f64 / 40.0).collect();
    assert_mean("frames per second", &frames, 50.0 * 1.004 / 2.591);
    // It has already begun at the start.
    let first: Vec<f64> = (0..2000).map(|seed| packets(&call, seed, 0.02).len() as f64).collect();
    assert_mean("the first frame", &first, 1.004 / 2.591);
    let sent = packets(&call, 1, 2000.0);
    let gaps: Vec<u64> = sent.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).collect();
    assert!(gaps.iter().all(|gap| gap.is_multiple_of(20_000_000)), "all on one grid");
    assert!(sent.iter().all(|packet| packet.bytes == 160));
    // After a frame the next is silent with probability 0.6125 (1 - exp(-0.020 (1/1.004 +
    // 1/1.587))): then the spurt ends.
    let ends = 1.587 / 2.591 * (1.0 - f64::exp(-0.020 * (1.0 / 1.004 + 1.0 / 1.587)));
    let spurts: Vec<f64> = gaps.split(|gap| *gap > 30_000_000).map(|gaps| gaps.len() as f64 + 1.0).skip(1).collect();
    assert_mean("frames of a spurt", &spurts[..spurts.len() - 1], 1.0 / ends);
    let codec = packets(&traffic("{ kind = \"voip\", codec = \"g729\", suppress = false }"), 1, 10.0);
    assert!(codec.iter().all(|packet| packet.bytes == 20) && codec.len() == 500);
}

#[test]
fn a_frame_is_sent_if_somebody_talks_at_its_end() {
    // 50 ms of talk, 37 of silence, frames of 20 ms: frame k is sent if its end is in the first 50 ms of 87.
    let call = traffic("{ kind = \"voip\", codec = \"g711\", talk = \"50ms\", silence = \"37ms\" }");
    let mut began = [0; 2];
    for seed in 0..300 {
        let sent = packets(&call, seed, 4.0);
        let (first, ends) = (sent[0].at_ns, 180);
        let frames: Vec<bool> =
            (0..ends).map(|k| sent.iter().any(|packet| packet.at_ns.abs_diff(first + k * 20_000_000) < 10)).collect();
        // Where in 87 ms the first frame lies nobody tells: some moment must fit all.
        let fits = |at: &u64| (0..ends).all(|k| frames[k as usize] == ((at + k * 80) % 348 < 200));
        assert!((0..348).any(|quarter_ms| fits(&quarter_ms)), "{seed}: {frames:?}");
        began[usize::from(first > 20_000_000)] += 1;
    }
    // The call has already begun: of its first frames 50 / 87 are sent; 13 is 1.5 standard deviations.
    assert!((began[0] - 300 * 50 / 87i32).abs() < 28, "{began:?}");
}

#[test]
fn a_trace_is_sent_frame_by_frame_at_its_times() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/life.txt");
    let video = |more: &str| traffic(&format!("{{ kind = \"video\", file = \"{file}\"{more} }}"));
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let sizes: Vec<u32> = lines.map(|line| line.split(' ').nth(3).unwrap().parse().unwrap()).collect();
    // Once, from the first frame: 25 frames a second.
    let once = packets(&video(", repeat = false, random_start = false"), 1, 1000.0);
    assert_eq!(once.iter().map(|packet| packet.bytes).collect::<Vec<_>>(), sizes);
    assert!(once.iter().enumerate().all(|(n, packet)| packet.at_ns == n as u64 * 40_000_000));
    // Round and round: 80 s each time, from a frame of the flow's own.
    let rounds = packets(&video(""), 1, 160.0);
    assert_eq!(rounds.len(), 2 * sizes.len());
    let start = (0..sizes.len()).find(|i| (0..50).all(|k| rounds[k].bytes == sizes[(i + k) % sizes.len()])).unwrap();
    assert!(start > 0);
    assert!((0..rounds.len()).all(|k| rounds[k].bytes == sizes[(start + k) % sizes.len()]));
    assert_ne!(packets(&video(""), 2, 4.0)[..50], rounds[..50]);
    // Scaled to 500 kbit/s: 5 MB in 80 s, each frame rounded.
    let scaled = packets(&video(", rate = \"500kbit\", repeat = false"), 1, 1000.0);
    let total: u64 = scaled.iter().map(|packet| u64::from(packet.bytes)).sum();
    assert!(total.abs_diff(5_000_000) < sizes.len() as u64, "{total}");
}

#[test]
fn transfers_in_an_open_loop_begin_at_random_moments() {
    let source = traffic(
        "{ kind = \"transfers\", load = \"8Mbit\", size = { law = \"pareto\", mean = \"10kB\", shape = 2.5 } }",
    );
    // 8 Mbit/s in transfers of 80 kbit: 100 per second.
    let done = steps(&source, 1, 500.0);
    let began: Vec<Packet> = done
        .iter()
        .map(|(at_ns, action)| match action {
            Action::Transfer { bytes, fresh: true, .. } => Packet { at_ns: *at_ns, bytes: *bytes as u32 },
            other => panic!("{other:?}"),
        })
        .collect();
    assert_counts("transfers", &began, [0.5, 1.0, 500.0], 50.0, 50.0);
    let sizes: Vec<f64> = began.iter().map(|transfer| f64::from(transfer.bytes)).collect();
    assert_mean("sizes", &sizes, 10_000.0);
}

/// The host of these tests delivers a transfer after 10 ms.
#[test]
fn transfers_in_a_closed_loop_wait_for_one_another() {
    let source = traffic("{ kind = \"transfers\", think = \"90ms\", size = \"1kB\", new_connection = false }");
    let done = steps(&source, 1, 1.0);
    let expected: Vec<(u64, Action)> =
        (0..10).map(|n| (n * 100_000_000, Action::Transfer { bytes: 1000, fresh: false, connection: 0 })).collect();
    assert_eq!(done, expected);
}

#[test]
fn a_web_session_is_pages_of_objects_and_ends() {
    let web = |connection: &str| {
        let text = format!(
            "{{ kind = \"web\", pages = 2, main = \"10kB\", embedded = \"1kB\", objects = 2, parsing = \"5ms\", \
             reading = \"1s\", connection = \"{connection}\" }}"
        );
        steps(&traffic(&text), 1, 1000.0)
    };
    let page = |begin: u64, fresh: [bool; 3]| {
        let ms = 1_000_000;
        let [main, first, second] = fresh;
        vec![
            (begin, Action::BeginPage),
            (begin, Action::Transfer { bytes: 10_000, fresh: main, connection: 0 }),
            (begin + 15 * ms, Action::Transfer { bytes: 1000, fresh: first, connection: 0 }),
            (begin + 25 * ms, Action::Transfer { bytes: 1000, fresh: second, connection: 0 }),
            (begin + 35 * ms, Action::EndPage),
        ]
    };
    for (connection, fresh) in [("object", [true; 3]), ("page", [true, false, false]), ("session", [false; 3])] {
        assert_eq!(web(connection), [page(0, fresh), page(1_035_000_000, fresh)].concat(), "{connection}");
    }
}

#[test]
fn objects_of_a_page_share_connections() {
    let web = |connection: &str| {
        let text = format!(
            "{{ kind = \"web\", pages = 1, main = \"10kB\", embedded = \"1kB\", objects = 3, parsing = \"5ms\", \
             connection = \"{connection}\", connections = 2 }}"
        );
        steps(&traffic(&text), 1, 1000.0)
    };
    for (connection, fresh) in [
        ("object", [true; 4]),
        // The second connection opens for its first object.
        ("page", [true, false, true, false]),
        ("session", [false; 4]),
    ] {
        let ms = 1_000_000;
        let object = |at: u64, bytes, fresh, connection| (at, Action::Transfer { bytes, fresh, connection });
        let expected = [
            (0, Action::BeginPage),
            object(0, 10_000, fresh[0], 0),
            object(15 * ms, 1000, fresh[1], 0),
            object(15 * ms, 1000, fresh[2], 1),
            // The third waits until one of the two is there.
            object(25 * ms, 1000, fresh[3], 0),
            (35 * ms, Action::EndPage),
        ];
        assert_eq!(web(connection), expected, "{connection}");
    }
}

#[test]
fn a_connection_of_a_page_is_opened_once() {
    let web = "{ kind = \"web\", pages = 2, main = \"10kB\", embedded = \"1kB\", objects = 6, parsing = \"5ms\", \
               reading = \"1s\", connection = \"page\", connections = 3 }";
    let done = steps(&traffic(web), 1, 1000.0);
    for page in done.split(|(_, action)| *action == Action::EndPage).take(2) {
        let mut opened = [0; 3];
        for (_, action) in page {
            if let Action::Transfer { fresh, connection, .. } = action {
                assert_eq!(*fresh, opened[*connection as usize] == 0, "{page:?}");
                opened[*connection as usize] += 1;
            }
        }
        // The main object and two embedded ones; two; two.
        assert_eq!(opened, [3, 2, 2], "{page:?}");
    }
}

/// Transports that adapt tell a source what rate they allow.
#[test]
fn sources_that_can_adapt_send_at_the_rate_allowed() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/life.txt");
    let trace = format!("{{ kind = \"video\", file = \"{file}\" }}");
    for value in ["{ kind = \"cbr\", rate = \"1Mbit\", packet = \"1000B\" }", &trace, "\"video\""] {
        let (mut source, mut rng) = (build(&traffic(value)).unwrap(), Stream::new(1, Kind::Traffic, 0));
        let (mut now, mut bytes) = (Instant::ZERO, 0);
        for (bps, until_s) in [(2e6, 800.0), (5e5, 1600.0)] {
            source.on_rate(bps);
            let before = bytes;
            while now.as_secs_f64() < until_s {
                let Step::At(at, Action::Write(more)) = source.next(now, &mut rng) else { panic!("{value}") };
                (now, bytes) = (at, bytes + u64::from(more));
            }
            // Ten times through the trace, 20000 frames; random ones vary by 1.25 of their mean: 0.9 % of their sum.
            let got = (bytes - before) as f64 * 8.0 / 800.0;
            assert!((got / bps - 1.0).abs() < 0.03, "{value}: {got}, not {bps}");
        }
    }
    // What has a rate of its own stays with it.
    let (mut call, mut rng) = (build(&traffic("\"voip\"")).unwrap(), Stream::new(1, Kind::Traffic, 0));
    call.on_rate(1.0);
    assert!(matches!(call.next(Instant::ZERO, &mut rng), Step::At(_, Action::Write(160))));
}

#[test]
fn computed_requests_end_with_the_run() {
    // A page takes its round trip of 60 ms and is read for 940: the second begins as the run ends.
    let text = "name = \"t\"\nduration = \"1s\"\n[topology]\npreset = \"dumbbell\"\n\
         bottleneck = { rate = \"8Mbit\", delay = \"20ms\", buffer = \"50pkt\" }\n\
         access = { rate = \"80Mbit\", delay = \"5ms\" }\n[[flows]]\nname = \"f\"\ntransport = \"modern\"\n\
         traffic = { kind = \"web\", main = \"9kB\", objects = 0, reading = \"940ms\" }\n";
    let plan = aqumen_scenario::Scenario::parse(text, "t.toml").unwrap().plan(1, None).unwrap();
    let main = Action::Transfer { bytes: 9000, fresh: true, connection: 0 };
    let expected = [(0, Action::BeginPage), (0, main), (0, Action::EndPage), (940, Action::BeginPage)];
    let groups = requests(&plan);
    let known = groups[0].as_ref().unwrap()[0].iter();
    let known: Vec<_> = known.map(|(wait, action)| (wait.as_nanos() / 1_000_000, *action)).collect();
    assert_eq!(known, expected);
}

/// Computed requests equal those that the source makes, whatever the network.
#[test]
fn computed_requests_are_those_of_the_source() {
    let web = "{ kind = \"web\", reading = \"1s\" }";
    let closed = "{ kind = \"transfers\", think = { law = \"exponential\", mean = \"1s\" }, size = { law = \"exponential\", mean = \"9kB\" } }";
    let open = "{ kind = \"transfers\", rate = \"5/s\", size = { law = \"exponential\", mean = \"9kB\" } }";
    for (value, shared) in [(web, false), (closed, false), (open, true)] {
        let text = format!(
            "name = \"t\"\nduration = \"100s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"8Mbit\", delay = \"20ms\", buffer = \"50pkt\" }}\naccess = {{ rate = \"80Mbit\", delay = \"5ms\" }}\n\
             [[flows]]\nname = \"f\"\ncount = 2\ntransport = \"modern\"\ntraffic = {value}\n"
        );
        let plan = aqumen_scenario::Scenario::parse(&text, "t.toml").unwrap().plan(1, None).unwrap();
        let groups = requests(&plan);
        let sources = groups[0].as_ref().unwrap();
        assert_eq!(sources.len(), if shared { 1 } else { 2 });
        // The host of these tests takes 10 ms for a transfer: less than a round trip, so that it gets further.
        let done = steps(&traffic(value), 1, 100.0);
        let actions: Vec<Action> = done.iter().map(|(_, action)| *action).collect();
        let known: Vec<Action> = sources[0].iter().map(|(_, action)| *action).collect();
        let both = known.len().min(actions.len());
        assert!(both > 50 && known[..both] == actions[..both], "{value}");
        let waits: f64 = sources[0].iter().map(|(wait, _)| wait.as_secs_f64()).sum();
        // An open loop is told to the end; in a closed one each transfer takes at least the
        // round trip of 60 ms as well.
        let transfers = known.iter().filter(|action| matches!(action, Action::Transfer { .. })).count();
        let served = if shared { 0.0 } else { 0.06 * transfers as f64 };
        assert!(waits + served >= 100.0, "{value}: {waits} + {served}");
        // And to the end only: before its last action there was time left.
        let before = &sources[0][..known.len() - 1];
        let transfers = known[..before.len()].iter().filter(|action| matches!(action, Action::Transfer { .. })).count();
        let served = if shared { 0.0 } else { 0.06 * transfers as f64 };
        let waits: f64 = before.iter().map(|(wait, _)| wait.as_secs_f64()).sum();
        assert!(waits + served < 100.0, "{value}: {waits} + {served}");
    }
}

#[test]
fn only_finite_transfers_on_one_connection_are_computed() {
    for value in
        ["\"voip\"", "{ kind = \"cbr\", rate = \"1Mbit\" }", "{ kind = \"web\", reading = \"1s\", connections = 6 }"]
    {
        let text = format!(
            "name = \"t\"\nduration = \"1s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"8Mbit\", delay = \"20ms\", buffer = \"50pkt\" }}\naccess = {{ rate = \"80Mbit\", delay = \"5ms\" }}\n\
             [[flows]]\nname = \"f\"\ncount = 2\ntransport = \"modern\"\ntraffic = {value}\n"
        );
        let text = if value.contains("web") { text } else { text.replace("\"modern\"", "\"udp\"") };
        let plan = aqumen_scenario::Scenario::parse(&text, "t.toml").unwrap().plan(1, None).unwrap();
        assert_eq!(requests(&plan), [None], "{value}");
    }
}

#[test]
fn a_web_session_has_the_means_of_its_laws() {
    let done = steps(&traffic("{ kind = \"web\", reading = \"1s\" }"), 1, 20_000.0);
    let objects: Vec<f64> = done
        .split(|(_, action)| *action == Action::EndPage)
        .map(|page| page.iter().filter(|(_, action)| matches!(action, Action::Transfer { .. })).count() as f64 - 1.0)
        .collect();
    // Counts are rounded, which moves the mean of this law by less than 0.1.
    let (mean, half) = interval(&objects[..objects.len() - 1]);
    assert!((mean - 5.64).abs() < half + 0.1, "{mean} +- {half}");
}

#[test]
fn an_interval_cut_by_the_end_of_a_burst_continues_in_the_next() {
    // 1000 bytes each 10 ms of bursts of 25 ms, with 75 ms between two: five packets take two bursts.
    let source =
        traffic("{ kind = \"on-off\", rate = \"800kbit\", packet = \"1000B\", on = \"25ms\", off = \"75ms\" }");
    let sent = packets(&source, 1, 20.0);
    let gaps: Vec<u64> = sent.windows(2).map(|pair| (pair[1].at_ns - pair[0].at_ns + 500_000) / 1_000_000).collect();
    assert!((490..=500).contains(&gaps.len()), "{}", gaps.len());
    assert!(gaps.iter().all(|gap| [10, 85].contains(gap)), "{gaps:?}");
    assert!(gaps.windows(5).all(|five| five.iter().sum::<u64>() == 200), "{gaps:?}");
}

/// A flow that was paused goes on where it was: nothing piles up.
#[test]
fn a_source_that_was_paused_does_not_catch_up() {
    for source in [
        "{ kind = \"cbr\", rate = \"1Mbit\" }",
        "{ kind = \"self-similar\", rate = \"1Mbit\" }",
        "{ kind = \"mmpp\", preset = \"paper8\" }",
        "\"voip\"",
    ] {
        let source = traffic(source);
        let sent = packets(&source, 1, 20.0);
        let paused = sources::packets_with_pause(&source, 1, 20.0, 10.0, 1000.0);
        let before = sent.iter().filter(|packet| packet.at_ns < 10_000_000_000).count();
        assert_eq!(paused[..before], sent[..before]);
        // The action that was due in the pause comes at its end, and what follows keeps its distances.
        let shift = paused[before].at_ns - sent[before].at_ns;
        let shifted: Vec<Packet> =
            sent[before..].iter().map(|packet| Packet { at_ns: packet.at_ns + shift, ..*packet }).collect();
        let both = shifted.len().min(paused.len() - before);
        assert_eq!(paused[before..][..both], shifted[..both]);
    }
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    for source in
        ["{ kind = \"mmpp\", preset = \"paper16\" }", "\"voip\"", "{ kind = \"self-similar\", rate = \"1Mbit\" }"]
    {
        let source = traffic(source);
        assert_eq!(packets(&source, 5, 10.0), packets(&source, 5, 10.0));
        assert_ne!(packets(&source, 5, 10.0), packets(&source, 6, 10.0));
    }
}

/// The host of these tests delivers a segment after 10 ms, whatever its size.
#[test]
fn a_player_fills_its_buffer_and_then_fetches_as_it_shows() {
    let film = "{ kind = \"adaptive-video\", ladder = [\"1Mbit\", \"2Mbit\"], segment = \"1s\", buffer = \"3s\", \
        play_at = \"1s\", length = \"4500ms\" }";
    let segment = |at_ms: u64, bytes| (at_ms * 1_000_000, Action::Transfer { bytes, fresh: false, connection: 0 });
    // 1 s of 1 Mbit/s is 125 kB, which came at 100 Mbit/s; then 250 kB. Played from 10 ms on: 1.99 s are there at 20
    // ms, 2.98 s at 30 ms, of which 2 leave room for one more at 1.01 s; at 1.02 s there are 2.99, so the next at
    // 2.01 s. 4.5 s are five segments.
    let expected = [
        segment(0, 125_000),
        segment(10, 250_000),
        segment(20, 250_000),
        segment(1010, 250_000),
        segment(2010, 250_000),
    ];
    assert_eq!(steps(&traffic(film), 1, 100.0), expected);
}

#[test]
fn a_bit_rate_takes_its_share_of_the_harmonic_mean_of_the_last_segments() {
    // Each segment takes 10 ms here: 1 Mbit/s of 10 ms comes at 1 Mbit/s, the double at the double.
    let bytes = |more: &str| -> Vec<u64> {
        let film = format!(
            "{{ kind = \"adaptive-video\", ladder = [\"1Mbit\", \"1250kbit\", \"1400kbit\", \"1600kbit\"], \
             segment = \"12500us\", buffer = \"1s\", play_at = \"12500us\", {more} }}"
        );
        let done = steps(&traffic(&film), 1, 0.055);
        done.iter().map(|(_, action)| if let Action::Transfer { bytes, .. } = action { *bytes } else { 0 }).collect()
    };
    // 12.5 ms of film in 10 ms: 1.25 times its rate. 1562 bytes (1 Mbit/s) came at 1.2496
    // Mbit/s: not enough for all of 1.25.
    assert_eq!(bytes("share = 1.0")[..2], [1562, 1562]);
    // From 1.01 Mbit/s of film on it would be: of the last alone 1.26, 1.58 and up; the mean of five rises more slowly.
    let film = |memory: u32| {
        let ladder = "ladder = [\"1010kbit\", \"1250kbit\", \"1400kbit\", \"1550kbit\"]";
        let film = format!(
            "{{ kind = \"adaptive-video\", {ladder}, segment = \"12500us\", buffer = \"1s\", play_at = \"12500us\", \
             share = 1.0, memory = {memory} }}"
        );
        let done = steps(&traffic(&film), 1, 0.045);
        let of = |action: &Action| if let Action::Transfer { bytes, .. } = action { *bytes } else { 0 };
        done.iter().map(|(_, action)| of(action)).collect::<Vec<_>>()
    };
    // Bytes: 1010 kbit/s 1578, 1250 1953, 1400 2187, 1550 2421; they come at 1.2624, 1.5624, 1.7496 Mbit/s.
    assert_eq!(film(1), [1578, 1953, 2421, 2421, 2421]);
    // Means of 1.2624 and 1.5624: 1.396; with another 1.5624: 1.447.
    assert_eq!(film(5)[..4], [1578, 1953, 1953, 2187]);
}

#[test]
fn random_frames_have_the_mean_and_the_spread_of_their_law() {
    // 30 frames per second at 4 Mbit/s: 16667 bytes. Weibull of shape 0.8099: Gamma(1 + 2 / 0.8099) /
    // Gamma(1 + 1 / 0.8099)^2 = 2.551.
    let frames = packets(&traffic("\"video\""), 1, 1000.0);
    let bytes: Vec<f64> = frames.iter().map(|frame| f64::from(frame.bytes)).collect();
    assert_mean("frames", &bytes, 4e6 / 8.0 / 30.0);
    let squares: Vec<f64> = bytes.iter().map(|x| x * x).collect();
    assert_mean("their squares", &squares, 2.551 * (4e6 / 8.0 / 30.0) * (4e6 / 8.0 / 30.0));
    assert!(frames.windows(2).all(|pair| (pair[1].at_ns - pair[0].at_ns).abs_diff(33_333_333) <= 1));
    // Two flows are not in step.
    assert!(frames[0].at_ns < 33_333_334 && frames[0].at_ns != packets(&traffic("\"video\""), 2, 1.0)[0].at_ns);
    // To the nearest byte: of frames of 10 bytes on average, of scale 8.905, those of up to 5 were below 5.5.
    let tiny = packets(&traffic("{ kind = \"video\", rate = \"8kbit\", fps = 100.0 }"), 1, 1000.0);
    let small: Vec<f64> = tiny.iter().map(|frame| f64::from(u8::from(frame.bytes <= 5))).collect();
    assert_mean("frames of at most 5 bytes", &small, 1.0 - f64::exp(-f64::powf(5.5 / 8.905, 0.8099)));
    let slow = packets(&traffic("{ kind = \"video\", rate = \"1Mbit\", fps = 10.0 }"), 1, 1000.0);
    assert_mean("slow", &slow.iter().map(|frame| f64::from(frame.bytes)).collect::<Vec<_>>(), 12_500.0);
}
