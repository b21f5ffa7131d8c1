//! Queues against queueing theory: sources of packets at one link, its waiting room and its waits against the formulas,
//! in 99.9 % intervals of batch means at fixed seeds; and what applications ask of TCP.

use aqumen_result::{LinkMetrics, RunResult, student_quantile};
use aqumen_scenario::{Plan, Scenario};
use aqumen_sim::Options;

/// Batches of a run.
const BATCHES: usize = 30;

/// Header of the packets: the least that can be written.
const HEADER: f64 = 1.0;

/// One link of 8 Mbit/s from `a` to `b` with room for `buffer` packets that wait, batches of `batch_s` after as long a
/// start, and a flow over UDP without access links: what it writes is what arrives.
fn queue(buffer: u32, batch_s: f64, rate: &str, traffic: &str) -> Plan {
    let windows: String = (0..BATCHES)
        .map(|i| {
            let start = batch_s * (i + 1) as f64;
            format!("b{i} = [\"{start}s\", \"{}s\"]\n", start + batch_s)
        })
        .collect();
    let text = format!(
        "name = \"queue\"\nduration = \"{}s\"\n\
         [topology]\nnodes = [\"a\", \"b\"]\n[[topology.links]]\nname = \"link\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate}\"\n\
         delay = \"1ms\"\nbuffer = \"{buffer}pkt\"\naqm = \"test\"\n\
         [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n\
         transport = {{ preset = \"udp\", packet = \"65535B\", header = \"1B\" }}\ntraffic = {traffic}\n\
         [record]\ninterval = \"{batch_s}s\"\n[windows]\n{windows}",
        batch_s * (BATCHES + 1) as f64,
    );
    plan(&text)
}

fn plan(text: &str) -> Plan {
    let scenario = Scenario::parse(text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
    scenario.plan(1, None).unwrap_or_else(|error| panic!("{error}"))
}

fn run(plan: &Plan) -> RunResult {
    aqumen_sim::run(plan, Options::default(), &mut |_: f64| true).unwrap()
}

/// Holds the mean over the batches.
fn assert_batches(what: &str, result: &RunResult, expected: f64, value: impl Fn(&LinkMetrics) -> f64) {
    let values: Vec<f64> = (0..BATCHES).map(|i| value(&result.links["link"][&format!("b{i}")])).collect();
    let n = BATCHES as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    let half = student_quantile(0.9995, n - 1.0) * (variance / n).sqrt();
    assert!((mean - expected).abs() < half, "{what}: {mean} +- {half}, expected {expected}");
    // An interval that holds anything would prove nothing.
    assert!(half < 0.1 * expected, "{what}: {mean} +- {half} is too wide");
}

/// Pollaczek and Khinchine: packets of a size with these moments (bytes) arrive at `rate` per second; they wait
/// W = rate E S^2 / (2 (1 - rho)), and rate W of them are waiting.
fn assert_poisson_queue(what: &str, rate: f64, packet: &str, mean: f64, second: f64) {
    let traffic = format!("{{ kind = \"poisson\", rate = \"{rate}pkt/s\", packet = {packet} }}");
    let result = run(&queue(1_000_000, 60.0, "8Mbit", &traffic));
    // 1 us a byte.
    let service_s = 1e-6 * (mean + HEADER);
    let service_s2 = 1e-12 * (second + 2.0 * HEADER * mean + HEADER * HEADER);
    let load = rate * service_s;
    let wait_s = rate * service_s2 / (2.0 * (1.0 - load));
    assert_batches(&format!("{what}, load"), &result, load, |m| m.utilization.unwrap());
    assert_batches(&format!("{what}, wait"), &result, wait_s, |m| m.sojourn_mean_s.unwrap());
    assert_batches(&format!("{what}, waiting"), &result, rate * wait_s, |m| m.queue_mean_pkts);
}

#[test]
fn m_m_1() {
    assert_poisson_queue("M/M/1", 700.0, "{ law = \"exponential\", mean = \"1000B\" }", 1000.0, 2e6);
}

#[test]
fn m_d_1() {
    assert_poisson_queue("M/D/1", 800.0, "\"1000B\"", 1000.0, 1e6);
}

#[test]
fn m_g_1() {
    // Squared coefficients of variation of 1/4, 1 and 1.3; the last has packets of 40 bytes and of 1500, 3 to 2.
    assert_poisson_queue("M/Er(4)/1", 800.0, "{ law = \"erlang\", mean = \"1000B\", stages = 4 }", 1000.0, 1.25e6);
    let lognormal = "{ law = \"lognormal\", mean = \"400B\", std = \"400B\" }";
    assert_poisson_queue("M/LN/1", 1500.0, lognormal, 400.0, 320_000.0);
    let two = "{ law = \"empirical\", cdf = [[\"40B\", 0.6], [\"1500B\", 0.6], [\"1500B\", 1.0]] }";
    assert_poisson_queue("M/2 sizes/1", 1000.0, two, 624.0, 0.6 * 1600.0 + 0.4 * 2.25e6);
}

/// The reference case of the queueing analysis, packet by packet: four Markov-modulated sources, Erlang-4 sizes of
/// 1282 bytes at 975 packets/s, 20 packets with the one in service. Expected: aqumen mmpp
/// examples/mmpp/reference.toml --json
#[test]
fn mmpp_er_4_1_l() {
    let size = "{ law = \"erlang\", mean = \"1281B\", stages = 4 }";
    let traffic = format!("{{ kind = \"mmpp\", preset = \"paper16\", packet = {size} }}");
    // 975 packets/s of 1282 bytes: 9 999 600 bit/s.
    let result = run(&queue(19, 200.0, "9999600bit", &traffic));
    let lost = |m: &LinkMetrics| m.overflow_dropped_pkts as f64 / m.arrivals_pkts as f64;
    assert_batches("offered", &result, 714.083_333_333_333_3, |m| m.arrivals_pkts as f64 / 200.0);
    assert_batches("loss", &result, 0.015_977_837_339_093_356, lost);
    assert_batches("utilization", &result, 0.720_691_103_576_180_3, |m| m.utilization.unwrap());
    // Packets in the system, less those in service; and delay_mean_s, less 1/975 s of service.
    let waiting = 3.767_108_742_196_271 - 0.720_691_103_576_180_3;
    assert_batches("waiting", &result, waiting, |m| m.queue_mean_pkts);
    let wait_s = 0.005_361_105_825_887_369 - 1.0 / 975.0;
    assert_batches("wait", &result, wait_s, |m| m.sojourn_mean_s.unwrap());
}

/// A dumbbell with TCP flows whose applications do `traffic`.
fn applications(count: u32, traffic: &str) -> Plan {
    plan(&format!(
        "name = \"apps\"\nduration = \"60s\"\n[topology]\npreset = \"dumbbell\"\n\
         [topology.bottleneck]\nrate = \"10Mbit\"\ndelay = \"10ms\"\nbuffer = \"100pkt\"\n\
         [topology.access]\nrate = \"100Mbit\"\ndelay = \"1ms\"\n\
         [[flows]]\nname = \"f\"\ncount = {count}\nstop = \"50s\"\ntransport = \"modern\"\ntraffic = {traffic}\n"
    ))
}

fn goodput_bytes(result: &RunResult) -> f64 {
    result.flows["f"]["all"].goodput_bps * 60.0 / 8.0
}

#[test]
fn transfers_at_random_moments_deliver_what_was_asked_for() {
    // 20 transfers of 20 kB a second are 3.2 Mbit/s of 10; 200 flows are always enough.
    let result = run(&applications(200, "{ kind = \"transfers\", rate = \"20/s\", size = \"20kB\" }"));
    let transfers = goodput_bytes(&result) / 20_000.0;
    // Every transfer arrives whole; 1000 are expected in 50 s, Poisson.
    assert!((transfers - transfers.round()).abs() < 1e-6, "{transfers}");
    assert!((transfers - 1000.0).abs() < 3.29 * 1000f64.sqrt(), "{transfers}");
    assert_eq!(result.flows["f"]["all"].refused, Some(0));
}

#[test]
fn transfers_that_find_no_idle_flow_are_refused() {
    // One flow, and 80 Mbit/s asked of 10: it carries one transfer after another, and most are refused.
    let result = run(&applications(1, "{ kind = \"transfers\", rate = \"100/s\", size = \"100kB\" }"));
    let transfers = goodput_bytes(&result) / 100_000.0;
    assert!((transfers - transfers.round()).abs() < 1e-6, "{transfers}");
    assert!(transfers > 50.0 && transfers < 1000.0, "{transfers}");
    // Those served and those refused are those that came: 5000 are expected in 50 s, Poisson.
    let came = transfers + result.flows["f"]["all"].refused.unwrap() as f64;
    assert!((came - 5000.0).abs() < 3.29 * 5000f64.sqrt(), "{came}");
}

#[test]
fn web_sessions_begin_and_end() {
    let session = "{ kind = \"web\", pages = 3, main = \"10kB\", embedded = \"2kB\", objects = 5, reading = \"1s\", \
                   connection = \"object\" }";
    let result = run(&applications(4, session));
    // 4 sessions of 3 pages of 20 kB, all before the flows stop.
    assert!((goodput_bytes(&result) - 4.0 * 3.0 * 20_000.0).abs() < 1e-3, "{}", goodput_bytes(&result));
    assert_eq!(result.flows["f"]["all"].pages, Some(12));
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    for traffic in ["\"web\"", "\"voip\"", "{ kind = \"transfers\", load = \"5Mbit\", size = \"20kB\" }"] {
        let plan = applications(20, traffic);
        let [first, second] = [run(&plan), run(&plan)];
        assert_eq!(first.links, second.links, "{traffic}");
        assert_eq!(first.flows, second.flows, "{traffic}");
        assert!(goodput_bytes(&first) > 0.0, "{traffic}");
    }
}

#[test]
fn calls_and_films_are_rated() {
    let media = |traffic: &str| {
        let plan = plan(&format!(
            "name = \"media\"\nduration = \"20s\"\n[topology]\npreset = \"dumbbell\"\n\
             [topology.bottleneck]\nrate = \"10Mbit\"\ndelay = \"10ms\"\nbuffer = \"100pkt\"\n\
             [topology.access]\nrate = \"100Mbit\"\ndelay = \"1ms\"\n\
             [[flows]]\nname = \"f\"\ntransport = \"udp\"\ntraffic = {traffic}\n"
        ));
        run(&plan).flows["f"]["all"].clone()
    };
    // G.711 without loss on an idle link: next to the E-model's best of 93.2.
    let call = media("\"voip\"");
    assert!(call.r_factor.is_some_and(|rating| rating > 90.0), "{call:?}");
    let film = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/life.txt");
    let film = media(&format!("{{ kind = \"video\", file = \"{film}\" }}"));
    // 25 frames a second, all shown; the last one may be under way.
    assert!(film.frames.is_some_and(|frames| (499..=500).contains(&frames)), "{film:?}");
    assert_eq!(film.frame_loss_ratio, Some(0.0));
}
