//! The engine `live` as a user sees it: every kind of flow that the kernel has, refusals, and leftovers.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aqumen_live::lab::report::LiveResult;
use aqumen_live::lab::run::run;
use aqumen_live::machine::thread::wake_on_time;
use aqumen_scenario::{Plan, Scenario};

mod common;
#[path = "common/machine.rs"]
mod machine;

const AQUMEND: &str = env!("CARGO_BIN_EXE_aqumend");

const ONE: &str = "[[flows]]\nname = \"one\"\n";

/// A dumbbell of 12 Mbit/s and 30 ms with these `flows`.
fn scenario(duration: &str, flows: &str) -> String {
    format!(
        r#"
        name = "kinds"
        duration = "{duration}"
        aqm = "pi"
        [windows]
        steady = "1s"
        [topology]
        preset = "dumbbell"
        bottleneck = {{ rate = "12Mbit", delay = "10ms", buffer = "150pkt" }}
        access = {{ rate = "1Gbit", delay = "2.5ms" }}
        [nominal]
        target = "20pkt"
        {flows}
        "#
    )
}

fn plan(text: &str) -> Plan {
    Scenario::parse(text, "kinds").unwrap().plan(1, None).unwrap()
}

/// A valid run. A late run is repeated once. Late twice is a failure, unless the machine itself was late: then one line
/// says that nothing is shown.
fn valid_run(plan: &Plan) -> Option<LiveResult> {
    let attempt = || {
        machine::wait_until_calm();
        machine::with_probe(|| run(plan, |_| true).unwrap())
    };
    let (first, _) = attempt();
    if first.host.valid {
        return Some(first);
    }
    let (second, late) = attempt();
    if second.host.valid {
        return Some(second);
    }
    let why = second.host.invalid_because.join("; ");
    assert!(
        late > machine::DISTURBED,
        "invalid twice: {why}; this machine was on time, one sleep in a hundred {late:?} late"
    );
    // Directly to standard error: the harness hides the output of tests that pass.
    let message = format!("Nothing shown: {why}; one sleep in a hundred of this machine was {late:?} late.\n");
    std::io::stderr().write_all(message.as_bytes()).unwrap();
    None
}

/// Enough flows and transfers at a time that a few lost SYNs, which are repeated after one second and then two, do not
/// decide the result.
const KINDS: &str = r#"
    [[flows]]
    name = "reno"
    count = 2
    transport = "linux-reno"
    [[flows]]
    name = "drops"
    count = 2
    transport = { preset = "linux", ecn = false, packet = "1000B" }
    [[flows]]
    name = "bbr"
    count = 4
    transport = "linux-bbr"
    start = "500ms"
    stop = "3s"
    [[flows]]
    name = "transfers"
    count = 12
    transport = "linux"
    traffic = { kind = "transfers", size = "20kB", think = "50ms", new_connection = true }
    [[flows]]
    name = "arrivals"
    count = 40
    transport = "linux"
    traffic = { kind = "transfers", size = "10kB", rate = "20/s" }
    [[flows]]
    name = "web"
    count = 6
    transport = "linux"
    traffic = { kind = "web", reading = "100ms", connections = 2 }
    [[flows]]
    name = "calls"
    transport = "udp"
    traffic = { kind = "cbr", rate = "500kbit", packet = "500B" }
    [[events]]
    at = "2s"
    link = "bottleneck"
    capacity = "6Mbit"
"#;

#[test]
fn every_kind_of_flow_that_the_kernel_has_gets_through() {
    if common::skipped("flows of every kind in the live engine") {
        return;
    }
    let plan = plan(&scenario("4s", KINDS));
    let Some(live) = valid_run(&plan) else { return };
    let result = &live.result;
    let link = &result.links["bottleneck"]["steady"];
    assert!(link.utilization.unwrap() > 0.5 && link.marked_pkts > 0 && link.early_dropped_pkts > 0, "{link:?}");
    for group in ["reno", "drops", "bbr", "transfers", "arrivals", "web", "calls"] {
        assert!(result.flows[group]["all"].goodput_bps > 1e4, "{group} got {}", result.flows[group]["all"].goodput_bps);
    }
    let flow = |group: &str| &result.flows[group]["steady"];
    // Two access links and the bottleneck in each direction: 2 x (2.5 + 10 + 2.5) ms at least.
    assert!(flow("reno").rtt_mean_s.unwrap() > 0.030, "{:?}", flow("reno").rtt_mean_s);
    assert!(flow("calls").delay_mean_s.unwrap() > 0.015 && flow("calls").delay_mean_s.unwrap() < 0.3);
    assert_eq!(flow("bbr").retransmitted_ratio.map(|ratio| ratio < 0.5), Some(true));
    let sizes = |group: &str| serde_json::to_value(&flow(group).completions).unwrap();
    assert!(sizes("transfers")["fct_10kB_100kB_count"].as_u64() > Some(10), "{}", sizes("transfers"));
    // A transfer needs a round trip for its SYN and one way for its data.
    assert!(sizes("transfers")["fct_10kB_100kB_mean_s"].as_f64() > Some(0.045), "{}", sizes("transfers"));
    // The first byte arrives before the last: 20 kB are 14 packets of 1 ms, sent in two round trips or more.
    let (first, last) =
        (flow("transfers").startup_mean_s.unwrap(), sizes("transfers")["fct_10kB_100kB_mean_s"].as_f64());
    assert!(first > 0.045 && first + 0.025 < last.unwrap(), "{first} s to the first byte, {last:?} to the last");
    assert!(sizes("arrivals")["fct_10kB_100kB_count"].as_u64() > Some(10), "{}", sizes("arrivals"));
    assert!(flow("web").pages > Some(0) && flow("web").page_load_mean_s > Some(0.045), "{:?}", flow("web").pages);
    assert_eq!(live.host.congestion["drops"], "cubic");
    assert!(live.host.sysctls.contains_key("net.ipv4.tcp_ecn"), "{:?}", live.host.sysctls);
    assert_eq!(live.host.kernel, kernel());
    // The run lasts as long as its scenario, and has a cost.
    let cost = &result.cost;
    assert!(cost.wall_s > 4.0 && cost.cpu_s > 0.0 && cost.bottleneck_packets > 1000, "{cost:?}");
}

#[test]
fn a_flow_without_competition_fills_the_link_and_no_more() {
    if common::skipped("one flow alone in the live engine") {
        return;
    }
    let one = "[[flows]]\nname = \"one\"\ntransport = \"linux-reno\"\n";
    // A buffer of five times the bandwidth-delay product: one flow never empties it.
    let plan = plan(&scenario("4s", one).replace("aqm = \"pi\"", "aqm = \"droptail\""));
    let Some(live) = valid_run(&plan) else { return };
    let (link, flow) = (&live.result.links["bottleneck"]["steady"], &live.result.flows["one"]["steady"]);
    assert!(link.utilization.unwrap() > 0.95, "{link:?}");
    assert!(flow.throughput_bps.unwrap() < 12.2e6 && flow.jain_fairness == Some(1.0), "{flow:?}");
    assert!(live.result.notes.iter().all(|note| !note.contains("invalid")), "{:?}", live.result.notes);
}

#[test]
fn flows_that_have_stopped_are_silent() {
    if common::skipped("flows that stop in the live engine") {
        return;
    }
    let flows = [
        ("bulk", "\"linux\"", ""),
        ("media", "\"rtp-nada\"", ""),
        ("calls", "\"udp\"", "traffic = { kind = \"cbr\", rate = \"500kbit\", packet = \"500B\" }"),
        ("requests", "\"linux\"", "traffic = { kind = \"transfers\", size = \"10kB\", think = \"20ms\" }"),
    ];
    let flows: String = flows
        .map(|(name, transport, traffic)| {
            format!("[[flows]]\nname = \"{name}\"\ntransport = {transport}\nstop = \"1500ms\"\n{traffic}\n")
        })
        .concat();
    let windows = "before = [\"0s\", \"1500ms\"]\nafter = [\"3200ms\", \"4s\"]\n";
    let text = scenario("4s", &flows).replace("[windows]\n", &format!("[windows]\n{windows}"));
    let Some(live) = valid_run(&plan(&text)) else { return };
    for (name, windows) in &live.result.flows {
        assert!(windows["before"].goodput_bps > 1e5, "{name}: {:?}", windows["before"]);
        // Packets in flight, with a queue of 150 packets of 1 ms each, have long arrived.
        assert_eq!(windows["after"].goodput_bps, 0.0, "{name}");
    }
}

#[test]
fn flows_that_pause_are_silent_and_then_go_on() {
    if common::skipped("flows that pause in the live engine") {
        return;
    }
    let groups = [
        ("bulk", 1, "\"linux\"", ""),
        ("media", 1, "\"rtp-nada\"", ""),
        ("calls", 1, "\"udp\"", "traffic = { kind = \"cbr\", rate = \"500kbit\", packet = \"500B\" }"),
        ("requests", 2, "\"linux\"", "traffic = { kind = \"transfers\", size = \"10kB\", think = \"20ms\" }"),
        ("arrivals", 20, "\"linux\"", "traffic = { kind = \"transfers\", size = \"10kB\", rate = \"40/s\" }"),
        ("web", 2, "\"linux\"", "traffic = { kind = \"web\", reading = \"50ms\", connections = 2 }"),
        ("finite", 1, "\"linux\"", "transfer = \"50kB\""),
        ("messages", 1, "\"udp\"", "transfer = \"50kB\""),
    ];
    let flows: String = groups
        .map(|(name, count, transport, more)| {
            format!(
                "[[flows]]\nname = \"{name}\"\ncount = {count}\ntransport = {transport}\n\
                 off = [[\"1500ms\", \"4s\"]]\n{more}\n"
            )
        })
        .concat();
    // A transfer that has begun goes on. Its segment may be lost again as often as the kernel retransmits it: a
    // retransmission is not ECN-capable, and the AQM still drops. Three time-outs take 200 + 400 + 800 ms.
    let windows = "before = [\"0s\", \"1500ms\"]\npause = [\"3200ms\", \"4s\"]\nafter = [\"4s\", \"6s\"]\n";
    let text = scenario("6s", &flows).replace("[windows]\n", &format!("[windows]\n{windows}"));
    let Some(live) = valid_run(&plan(&text)) else { return };
    for (name, windows) in &live.result.flows {
        let bits = |window: &str, length_s: f64| windows[window].goodput_bps * length_s;
        assert!(bits("before", 1.5) > 1e5, "{name}: {:?}", windows["before"]);
        // Packets in flight have arrived.
        assert_eq!(bits("pause", 0.8), 0.0, "{name}");
        if ["finite", "messages"].contains(&name.as_str()) {
            assert!((bits("all", 6.0) - 8.0 * 50e3).abs() < 1.0, "{name}: {:?}", windows["all"]);
        } else {
            assert!(bits("after", 2.0) > 1e5, "{name}: {:?}", windows["after"]);
        }
    }
}

#[test]
fn a_receive_window_limits_the_packets_in_flight() {
    if common::skipped("receive windows in the live engine") {
        return;
    }
    // 4 packets a round trip of 30 ms, each with 1448 bytes of data: 1.54 Mbit/s. Without, each had a
    // third of the link: 3.86 Mbit/s.
    let flows =
        "[[flows]]\nname = \"narrow\"\ncount = 3\ntransport = { preset = \"linux-reno\", receive_window = \"4pkt\" }\n";
    let Some(live) = valid_run(&plan(&scenario("4s", flows).replace("aqm = \"pi\"", "aqm = \"droptail\""))) else {
        return;
    };
    let narrow = &live.result.flows["narrow"]["steady"];
    let each = narrow.goodput_bps / 3.0;
    let most = 4.0 * 1448.0 * 8.0 / 0.030;
    assert!(each < 1.02 * most && each > 0.5 * most, "{each} bit/s, at most {most}");
}

#[test]
fn throughput_is_inverse_to_the_round_trip_time_at_equal_windows() {
    if common::skipped("round-trip times in the live engine") {
        return;
    }
    // Eight packets each round trip, without overflow: throughput is as 1 / RTT, a slope of -1.
    let flows: String = [30, 60, 120]
        .map(|ms| {
            let transport = "{ preset = \"linux-reno\", receive_window = \"8pkt\" }";
            format!("[[flows]]\nname = \"f{ms}\"\ntransport = {transport}\nrtt = \"{ms}ms\"\n")
        })
        .concat();
    let plan = plan(&scenario("4s", &flows).replace("aqm = \"pi\"", "aqm = \"droptail\""));
    let Some(live) = valid_run(&plan) else { return };
    let slope = live.result.links["bottleneck"]["steady"].rtt_fairness_slope.unwrap();
    assert!((slope + 1.0).abs() < 0.1, "{slope}");
}

#[test]
fn a_transfer_on_a_new_connection_takes_a_round_trip_longer() {
    if common::skipped("transfers on one connection in the live engine") {
        return;
    }
    // The first byte takes 15 ms on its way; on a new connection a round trip of 30 ms comes before.
    for (new, least) in [(false, 0.015), (true, 0.045)] {
        let flows = format!(
            "[[flows]]\nname = \"one\"\ntransport = \"linux\"\n\
             traffic = {{ kind = \"transfers\", size = \"60kB\", think = \"50ms\", new_connection = {new} }}\n"
        );
        let Some(live) = valid_run(&plan(&scenario("2s", &flows))) else { return };
        let one = &live.result.flows["one"]["steady"];
        let times = serde_json::to_value(&one.completions).unwrap();
        // 60 kB are 42 packets of 1 ms: the last byte is 41 ms behind the first.
        let (first, last) = (one.startup_mean_s.unwrap(), times["fct_10kB_100kB_mean_s"].as_f64().unwrap());
        assert!(first > least && first + 0.040 < last, "{first} s to the first byte, {last} to the last");
    }
}

#[test]
fn calls_and_frames_are_rated() {
    if common::skipped("calls and frames in the live engine") {
        return;
    }
    let film = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/life.txt");
    let flows = "[[flows]]\nname = \"call\"\ntransport = \"udp\"\ntraffic = { kind = \"voip\", suppress = false }\n\
                 [[flows]]\nname = \"camera\"\ntransport = \"udp\"\ntraffic = { kind = \"video\", file = \"FILM\", rate = \"1Mbit\" }\n\
                 [[flows]]\nname = \"clock\"\ntransport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"2Mbit\", packet = \"100B\" }\n";
    let Some(live) = valid_run(&plan(&scenario("4s", &flows.replace("FILM", film)))) else { return };
    let flow = |group: &str| &live.result.flows[group]["steady"];
    let (call, camera) = (flow("call"), flow("camera"));
    assert!(call.mos > Some(4.0) && call.r_factor > Some(80.0), "{call:?}");
    // 25 frames a second or more for three seconds, on a link that is not full.
    assert!(camera.frames > Some(50) && camera.frame_loss_ratio < Some(0.1), "{camera:?}");
    // A packet each 400 us: some are sent late, and do not delay the next.
    let clock = flow("clock").goodput_bps;
    assert!((clock - 2e6).abs() < 0.01 * 2e6, "{clock}");
}

#[test]
fn media_adapt_and_transfers_arrive_over_datagrams() {
    if common::skipped("RTP and transfers over datagrams in the live engine") {
        return;
    }
    let flows = r#"
        [[flows]]
        name = "nada"
        count = 2
        transport = "rtp-nada"
        [[flows]]
        name = "tfrc"
        transport = "rtp-tfrc"
        traffic = { kind = "video", rate = "1Mbit" }
        [[flows]]
        name = "requests"
        transport = "udp"
        traffic = { kind = "transfers", size = "20kB", think = "200ms", new_connection = true }
        [[flows]]
        name = "voice"
        transport = "linux"
        traffic = { kind = "voip", suppress = false }
    "#;
    let Some(live) = valid_run(&plan(&scenario("6s", flows))) else { return };
    let flow = |group: &str| &live.result.flows[group]["steady"];
    for group in ["nada", "tfrc"] {
        let metrics = flow(group);
        assert!(metrics.goodput_bps > 2e5 && metrics.loss_ratio < Some(0.1), "{group}: {metrics:?}");
        // By RTCP, over two links of access and the bottleneck each way: 2 x (2.5 + 10 + 2.5) ms.
        assert!(
            metrics.rtt_mean_s > Some(0.030) && metrics.rtt_mean_s < Some(0.2),
            "{group}: {:?}",
            metrics.rtt_mean_s
        );
        assert!(
            metrics.delay_mean_s > Some(0.015) && metrics.delay_mean_s < metrics.rtt_mean_s,
            "{group}: {metrics:?}"
        );
    }
    assert!(flow("tfrc").frames > Some(100), "30 frames a second for five: {:?}", flow("tfrc").frames);
    // The rate of NADA rises from report to report while there is capacity.
    let (all, steady) = (&live.result.flows["nada"]["all"], flow("nada"));
    assert!(steady.goodput_bps > all.goodput_bps, "{} and then {}", all.goodput_bps, steady.goodput_bps);
    // 20 kB each 200 ms are 800 kbit/s.
    let requests = flow("requests").goodput_bps;
    assert!((requests - 8e5).abs() < 0.15 * 8e5, "{requests}");
    // 160 bytes each 20 ms.
    let voice = flow("voice").goodput_bps;
    assert!((voice - 64e3).abs() < 0.1 * 64e3, "{voice}");
}

/// Starts `aqumend` with these arguments, and `text` on standard input.
fn start(arguments: &[&str], text: &str) -> Child {
    let mut child = Command::new(AQUMEND)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    child
}

/// Starts `aqumend run -` with these options, and `text` on standard input.
fn start_run(options: &[&str], text: &str) -> Child {
    start(&[&["run", "-"], options].concat(), text)
}

/// First line on standard error.
fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}

/// Release of this kernel.
fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Names of the network devices in this namespace.
fn devices() -> BTreeSet<String> {
    let devices = std::fs::read_dir("/sys/class/net").unwrap();
    devices.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Network namespaces held by `process`, a number in /proc: by its threads and its descriptors.
fn namespaces(process: &str) -> BTreeSet<OsString> {
    let within = |path: String| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let threads = within(format!("/proc/{process}/task")).map(|path| path.join("ns/net"));
    let links = threads.chain(within(format!("/proc/{process}/fd")));
    // A descriptor may be closed meanwhile.
    let names = links.filter_map(|path| std::fs::read_link(path).ok()).map(|link| link.into_os_string());
    names.filter(|name| name.to_string_lossy().starts_with("net:[")).collect()
}

#[test]
fn a_killed_run_leaves_nothing_behind() {
    if common::skipped("kill -9 of the live engine") {
        return;
    }
    let (before, outside) = (devices(), namespaces("self"));
    let mut child = start_run(&["--progress"], &scenario("60s", ONE));
    // It runs as soon as it reports progress.
    let line = first_line(&mut child);
    assert!(line.starts_with("progress "), "{line}");
    let made: BTreeSet<_> = namespaces(&child.id().to_string()).difference(&outside).cloned().collect();
    assert!(made.len() >= 2, "a namespace for each side of the network: {made:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(devices(), before);
    // Other tests of this process have namespaces of their own, which may have got the same numbers by now.
    let here = std::process::id().to_string();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = process.file_name().into_string().unwrap();
        if name != here && name.bytes().all(|byte| byte.is_ascii_digit()) {
            assert!(namespaces(&name).is_disjoint(&made), "process {name} holds {made:?}");
        }
    }
}

#[test]
fn every_command_has_a_help_text() {
    let help = |arguments: &[&str]| {
        let output = Command::new(AQUMEND).args(arguments).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let all = help(&["--help"]);
    let list = all.split("Commands:\n").nth(1).unwrap().lines().take_while(|line| !line.is_empty());
    let commands: Vec<_> = list.map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(commands, ["run", "link", "attach", "status", "detach", "top", "report"]);
    for command in commands {
        let text = help(&[command, "--help"]);
        assert!(text.contains(&format!("aqumend {command} ")), "{command}: {text}");
    }
}

#[test]
fn progress_is_reported_on_request_only() {
    if common::skipped("the progress of the live engine") {
        return;
    }
    for wanted in [false, true] {
        let options: &[&str] = if wanted { &["--progress", "--curves", "--gso"] } else { &[] };
        let output = start_run(options, &scenario("1500ms", ONE)).wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stderr}");
        let shares: Vec<f64> =
            stderr.lines().map(|line| line.strip_prefix("progress ").unwrap().parse().unwrap()).collect();
        assert_eq!(shares.is_empty(), !wanted, "{stderr}");
        assert!(shares.is_sorted_by(|one, next| one < next) && shares.iter().all(|share| *share <= 1.0), "{stderr}");
        // With --curves the result is under `result`.
        let output: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let result = if wanted { &output["result"] } else { &output };
        assert!(result["links"]["bottleneck"]["all"]["departures_pkts"].as_u64() > Some(100), "{output}");
        let times = output["curves"]["series"]["bottleneck"]["t"].as_array();
        assert_eq!(times.is_some_and(|times| times.len() > 1), wanted, "{output}");
    }
}

#[test]
fn a_run_that_is_interrupted_ends_and_says_so() {
    if common::skipped("interrupts of the live engine") {
        return;
    }
    let mut child = start_run(&["--progress"], &scenario("60s", ONE));
    first_line(&mut child);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{stderr}");
    assert!(stderr.ends_with("aqumend: stopped before its end; nothing is left behind\n"), "{stderr}");
}

#[test]
fn a_device_without_an_attachment_is_reported() {
    let run = |arguments: &[&str]| {
        let output = Command::new(AQUMEND).args(arguments).output().unwrap();
        let stderr = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.code(), stderr)
    };
    let nobody = "aqumend: nobody-here: nothing is attached\n";
    assert_eq!(run(&["status", "nobody-here"]), (Some(1), [String::new(), nobody.into()]));
    let json = "{\"attached\":[],\"schema\":1}\n";
    assert_eq!(run(&["status", "nobody-here", "--json"]), (Some(1), [json.into(), nobody.into()]));
    let version = format!("aqumend {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["--version"]), (Some(0), [version, String::new()]));
}

#[test]
fn errors_are_one_line_with_code_2() {
    let fail = |arguments: &[&str], text: &str| {
        let out = start(arguments, text).wait_with_output().unwrap();
        let stderr = String::from_utf8(out.stderr).unwrap();
        assert_eq!((out.status.code(), stderr.lines().count(), out.stdout.len()), (Some(2), 1, 0), "{stderr}");
        stderr
    };
    let with = |flows: &str| scenario("2s", flows);
    let one = ONE;
    for (arguments, text, expect) in [
        (&["run"][..], String::new(), "a scenario file is missing"),
        (&["run", "absent.toml"], String::new(), "absent.toml"),
        (&["run", "-", "--sed", "1"], with(one), "unknown option --sed"),
        (&["run", "-", "--seed", "x"], with(one), "--seed x: must be a whole number"),
        (&["run", "-", "--set", "duration"], with(one), "KEY=VALUE"),
        (&["run", "-", "--aqm", "px"], with(one), "no AQM \"px\""),
        (&["run", "-"], with("[[flows]]\nname = \"one\"\ntransport = \"sctp\"\n"), "flows.one.transport: engine live"),
        (&["run", "-"], with("[[flows]]\nname = \"one\"\ntransport = \"ns2\"\n"), "preset linux-reno"),
        (&["run", "-"], with("[[flows]]\nname = \"one\"\ncount = 30\n"), "1.7 each"),
        (&["link", "-", "--link", "no"], with(one), "no such link; choose from: bottleneck"),
        (&["link", "-", "--flow", "9"], with(one), "numbered 0 to 0"),
        // 40 Gbit/s are 3.3 million packets of 1500 bytes a second, and half as many acknowledgements.
        (&["link", "-", "--set", "bottleneck.rate=40Gbit"], with(one), "5000000 packets a second"),
        (&["link", "-", "--left", "a/b/dev"], with(one), "neither the name of a network namespace nor a path"),
        (&["link", "-", "--left", "no-such-namespace/dev"], with(one), "network namespace no-such-namespace"),
        (&["fly"], String::new(), "unknown command fly"),
        (&["--fly"], String::new(), "--fly"),
        (&["report"], String::new(), "which recording?"),
        (&["report", "absent"], String::new(), "absent: No such file"),
        (&["report", "one", "two"], String::new(), "two"),
        (&["status", "one", "two"], String::new(), "two"),
        (&["detach"], String::new(), "which device?"),
        (&["detach", "one", "two"], String::new(), "two"),
        (&["top", "one", "two"], String::new(), "two"),
        (&["top", "--interval", "soon"], String::new(), "--interval \"soon\""),
        (&["top", "--count", "x"], String::new(), "--count x: must be a whole number from 0 on"),
        (
            &["run", "-"],
            with("[[flows]]\nname = \"one\"\ntransport = { preset = \"rtp\", header = \"28B\" }\n"),
            "40B or more",
        ),
    ] {
        let stderr = fail(arguments, &text);
        assert!(stderr.starts_with("aqumend: ") && stderr.contains(expect), "{expect}: {stderr}");
    }
    if common::skipped("refusals of devices by aqumend link") {
        return;
    }
    let before = devices();
    for (arguments, expect) in [
        (&["link", "-", "--left", "/dev/null/dev"][..], "network namespace /dev/null"),
        (&["link", "-", "--left", "lo"], "device lo: there is one already"),
        (&["link", "-", "--left", "a-name-that-is-too-long"], "1 to 15 characters"),
        (&["link", "-", "--left", "aqm-same", "--right", "aqm-same"], "aqm-same: another program holds it"),
    ] {
        let stderr = fail(arguments, &with(one));
        assert!(stderr.starts_with("aqumend: ") && stderr.contains(expect), "{expect}: {stderr}");
    }
    assert_eq!(devices(), before);
}

/// Result of `aqumend link` for 100 datagrams of 1028 bytes through a bottleneck of 12 Mbit/s, with both devices in a
/// new network namespace. `interrupted`: it is ended once they have passed.
fn datagrams_over_a_link(interrupted: bool) -> serde_json::Value {
    // Without IPv6 packets of the kernel itself.
    let script = r#"echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; exec "$0" link - --link bottleneck "$@""#;
    // Datagrams are no super-packets, and pass as without the option.
    let options: &[&str] = if interrupted { &["--gso"] } else { &[] };
    let mut link = Command::new("unshare")
        .args(["--net", "sh", "-c", script, AQUMEND])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let text = scenario(if interrupted { "60s" } else { "2s" }, ONE);
    link.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(link.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("the link is there"), "{line}");
    let namespace = File::open(format!("/proc/{}/ns/net", link.id())).unwrap();
    let sending = std::thread::spawn(move || {
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(namespace.as_fd(), kind).unwrap();
        let address = ["address", "add", "10.9.0.1/24", "dev", "aqumen0"];
        assert!(Command::new("ip").args(address).status().unwrap().success());
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        for _ in 0..100 {
            // With the headers of UDP and IP: 1028 bytes.
            socket.send_to(&[0; 1000], "10.9.0.2:6000").unwrap();
        }
    });
    sending.join().unwrap();
    if interrupted {
        // 100 x 1028 bytes take 69 ms, plus 10 ms of delay.
        std::thread::sleep(Duration::from_millis(500));
        rustix::process::kill_process(rustix::process::Pid::from_child(&link), rustix::process::Signal::INT).unwrap();
    }
    let output = link.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_link_reports_its_traffic_at_the_end_or_when_stopped() {
    if common::skipped("aqumend link") {
        return;
    }
    for interrupted in [false, true] {
        let output = datagrams_over_a_link(interrupted);
        let (link, end) = (&output["links"]["bottleneck"]["all"], output["windows"]["all"][1].as_f64().unwrap());
        assert_eq!((link["departures_pkts"].as_u64(), link["overflow_dropped_pkts"].as_u64()), (Some(100), Some(0)));
        assert_eq!(output["cost"]["bottleneck_packets"], 100, "{}", output["cost"]);
        let host = &output["host"];
        assert_eq!((host["kernel"].as_str(), host["device_dropped_pkts"].as_u64()), (Some(&kernel()[..]), Some(0)));
        // Real-time scheduling is permitted as in any thread of this process.
        assert_eq!(host["realtime"], std::thread::spawn(wake_on_time).join().unwrap());
        // It sleeps while idle.
        let cpu_s = host["links_cpu_s"].as_f64().unwrap();
        assert!(cpu_s > 0.0 && (interrupted || cpu_s < 0.5), "{cpu_s} s of CPU time in {end} s");
        // In every window the link was busy for 100 x 1028 bytes.
        let bits = link["utilization"].as_f64().unwrap() * end * 12e6;
        assert!((bits - 100.0 * 1028.0 * 8.0).abs() < 1.0, "{bits} bits until {end} s");
        let stopped = output["notes"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|note| note.as_str().unwrap().contains("stopped after"));
        if interrupted {
            assert!(stopped && end > 0.5 && end < 60.0, "{end}: {}", output["notes"]);
        } else {
            assert!(!stopped && end == 2.0, "{end}: {}", output["notes"]);
        }
    }
}
