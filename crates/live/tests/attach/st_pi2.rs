//! `aqumend attach --aqm st-pi2`: the law in user space, its packet rule in the kernel, on flows of the kernel's Reno.

use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::support::{Lab, Samples, Scratch, can_run, mean};
use crate::{PAYLOAD, RATE, veth};

/// Token bucket of 20 Mbit/s with little burst, so that an empty queue idles, and a buffer of 400 packets.
const BUCKET: &str = "tc qdisc add dev r1 root handle 1: tbf rate 20mbit burst 6kb limit 600kb";

/// Figures of a run.
struct Figures {
    status: serde_json::Value,
    delay_ms: f64,
    p95_ms: f64,
    used: f64,
    marked: f64,
}

/// Runs `flows` of Reno with ECN over 20 Mbit/s with this delay each way; `warm_up` comes before the figures.
fn figures(delay: Duration, flows: usize, warm_up: Duration, time: Duration) -> Figures {
    let lab = Lab::new(delay);
    lab.router.sh(BUCKET);
    let record = Scratch::new("st-pi2");
    let attached = lab.router.attach(&format!("r1 --aqm st-pi2 --listen no --record {}", record.0.display()));
    let running = lab.flows(flows);
    thread::sleep(warm_up);
    let rate = running.rate_over(time);
    let status = lab.router.status();
    attached.detach();
    let samples = Samples::read(&record.0);
    let from_s = warm_up.as_secs_f64();
    let mut sojourn_s = samples.column("sojourn_s", from_s);
    sojourn_s.sort_by(f64::total_cmp);
    let marks = samples.column("marked_pkts", from_s);
    let bits: Vec<f64> = samples.column("rate_bps", from_s);
    let packets = mean(&bits) * time.as_secs_f64() / 8.0 / 1514.0;
    Figures {
        status,
        delay_ms: 1e3 * mean(&sojourn_s),
        p95_ms: 1e3 * sojourn_s[sojourn_s.len() * 95 / 100],
        used: rate / (RATE * PAYLOAD),
        marked: (marks[marks.len() - 1] - marks[0]) / packets,
    }
}

#[test]
fn it_measures_rate_and_round_trip_and_keeps_the_queue_short() {
    let Some(_alone) = can_run() else { return };
    let run = figures(Duration::from_millis(20), 10, Duration::from_secs(3), Duration::from_secs(5));
    let estimates = &run.status["estimates"];
    let estimate = |name: &str| estimates[name].as_f64().unwrap_or_else(|| panic!("{name}: {}", run.status));
    eprintln!("{:.1} ms, {:.3} used, {:.4} marked; {estimates}", run.delay_ms, run.used, run.marked);
    // 40 ms, on a machine that is late now and then; the rate is that of the bucket.
    assert!((0.035..0.09).contains(&estimate("rtt")) && estimate("handshakes") >= 8.0, "{estimates}");
    assert!((estimate("capacity") / (1e6 * RATE) - 1.0).abs() < 0.1, "{estimates}");
    // A buffer of 240 ms.
    assert!(run.delay_ms < 60.0 && run.used > 0.75 && run.marked > 0.0, "{} ms, {}", run.delay_ms, run.used);
    let target_s = estimate("target_delay");
    assert!(
        (1e-3..0.06).contains(&target_s) && run.status["target_s"].as_f64().is_some_and(|t| t > 0.0),
        "{estimates}"
    );
}

#[test]
fn wrong_options_are_refused_in_one_line() {
    let Some(_alone) = can_run() else { return };
    let router = veth();
    for (line, message) in [
        ("r1 --aqm st-pi2:gamma=2 --rate 20Mbit", "gamma = 2"),
        ("r1 --aqm st-pi2:speed=2 --rate 20Mbit", "speed"),
        ("r1 --aqm st-pi2 --set gamma=2 --rate 20Mbit", "--set"),
        ("r1 --aqm st-pi2 --rate 20Mbit --target 5ms", "--target: st-pi2 measures its network"),
        ("r1 --aqm st-pi2 --rate 20Mbit --flows 5", "--flows: st-pi2 measures its network"),
        ("nodev0 --aqm st-pi2 --rate 20Mbit", "no device nodev0"),
    ] {
        let output = router.aqumend(&format!("attach {line}"));
        let messages = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {messages}");
        assert!(messages.contains(message) && messages.trim_end().lines().count() == 1, "{line}: {messages}");
    }
    // The longest round trip and the slowest link are no reason to refuse it, as they are for PI.
    let output = router.aqumend("attach r1 --aqm st-pi2 --rate 300kbit --rtt 70ms --dry-run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("until the first handshake 0.07 s"), "{text}");
    assert!(text.contains("  rtt = 0.07") && text.contains("  gamma = 0.5"), "{text}");
}

#[test]
fn a_marker_that_signals_by_flow_needs_no_further_capability() {
    let Some(_alone) = can_run() else { return };
    if Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("Skipped: capabilities of aqumend attach need setpriv (Debian package util-linux).");
        return;
    }
    let router = veth();
    router.sh(BUCKET);
    let copy = Scratch::new("aqumend-st-pi2");
    std::fs::copy(env!("CARGO_BIN_EXE_aqumend"), &copy.0).unwrap();
    let line = format!(
        "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all,+net_admin,+bpf --ambient-caps \
         -all,+net_admin,+bpf {} attach r1 --aqm st-pi2 --listen no --duration 200ms",
        copy.0.display()
    );
    let output = router.within(|| Command::new("sh").args(["-c", &line]).output().unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Prints the table of docs/validation/live.md. `AQUMEN_SECONDS` sets the length of a run after ten seconds.
#[test]
#[ignore = "a measurement of three minutes"]
fn figures_beside_the_packet_engine() {
    let Some(_alone) = can_run() else { return };
    let seconds = std::env::var("AQUMEN_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(30);
    for delay_ms in [20, 60] {
        for flows in [5, 20] {
            let run =
                figures(Duration::from_millis(delay_ms), flows, Duration::from_secs(10), Duration::from_secs(seconds));
            eprintln!(
                "{} ms, {flows} flows: mean {:.1} ms, p95 {:.1} ms, used {:.3}, marked {:.4}; {}",
                2 * delay_ms,
                run.delay_ms,
                run.p95_ms,
                run.used,
                run.marked,
                run.status["estimates"]
            );
        }
    }
}
