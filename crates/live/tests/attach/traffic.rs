//! `aqumend attach` under real traffic: warnings, rollback, a changing rate, super-packets; and endurance.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Lab, Namespace, Samples, Scratch, can_run, mean};
use crate::{HTB, PAYLOAD, RATE, TBF};

/// Two namespaces joined by a veth pair; traffic leaves the first by r1.
fn pair() -> (Namespace, Namespace) {
    let (router, receiver) = (Namespace::new(), Namespace::new());
    router.sh(&format!("ip link add r1 type veth peer name v0 netns {}", receiver.path()));
    router.sh("ip addr add 10.2.0.1/24 dev r1; ip link set r1 up");
    receiver.sh("ip addr add 10.2.0.2/24 dev v0; ip link set v0 up");
    (router, receiver)
}

/// Unresponsive datagrams from a namespace at a constant rate, until this is dropped.
struct Datagrams {
    stop: Arc<AtomicBool>,
}

impl Datagrams {
    /// Sends datagrams of 1400 bytes at `mbit` with this type of service and the firewall mark 7. A delay of up to
    /// `catch_up_s` is made up for.
    fn start(from: &Namespace, mbit: f64, class: i32, catch_up_s: f64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        from.spawn(move || {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            set_option(&socket, libc::IPPROTO_IP, libc::IP_TOS, class);
            set_option(&socket, libc::SOL_SOCKET, libc::SO_MARK, 7);
            socket.connect("10.2.0.2:6000").unwrap();
            socket.set_nonblocking(true).unwrap();
            let (start, mut sent) = (Instant::now(), 0.0);
            while !stopped.load(Ordering::Relaxed) {
                let due = start.elapsed().as_secs_f64() * mbit * 1e6 / (8.0 * 1428.0);
                sent = f64::max(sent, due - catch_up_s * mbit * 1e6 / (8.0 * 1428.0));
                while sent < due {
                    let _ = socket.send(&[0; 1400]);
                    sent += 1.0;
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        Datagrams { stop }
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Sets an option of `socket`.
pub(crate) fn set_option(socket: &UdpSocket, level: i32, name: i32, value: i32) {
    // SAFETY: the value is an int and outlives the call.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), 4) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Polls the status until there is a warning that contains `text`.
fn wait_for_warning(router: &Namespace, text: &str) {
    let asked = Instant::now();
    loop {
        let status = router.status();
        let warnings = status["warnings"].as_array().unwrap();
        if warnings.iter().any(|warning| warning.as_str().unwrap().contains(text)) {
            return;
        }
        assert!(asked.elapsed() < Duration::from_secs(45), "no warning of \"{text}\": {status}");
        thread::sleep(Duration::from_millis(250));
    }
}

const ECT0: i32 = 2;

#[test]
fn unsuitable_traffic_causes_warnings() {
    let Some(_alone) = can_run() else { return };
    // In parallel: each waits for seconds to pass.
    thread::scope(|scope| {
        scope.spawn(|| {
            let (router, _receiver) = pair();
            let attached = router.attach("r1 --aqm pi --rate 20Mbit --listen no");
            // No burst beyond the tokens of the bucket.
            let _half = Datagrams::start(&router, 8.0, 0, 0.004);
            wait_for_warning(&router, "the bottleneck is elsewhere");
            let messages = attached.detach_with_messages();
            assert_eq!(messages.matches("the bottleneck is elsewhere").count(), 1, "{messages}");
        });
        scope.spawn(|| {
            let (router, _receiver) = pair();
            let attached = router.attach("r1 --aqm fixed:p=1 --rate 20Mbit --target 10pkt --listen no");
            let _unresponsive = Datagrams::start(&router, 30.0, ECT0, 0.05);
            wait_for_warning(&router, "marks change nothing");
            let messages = attached.detach_with_messages();
            assert_eq!(messages.matches("marks change nothing").count(), 1, "{messages}");
        });
        scope.spawn(a_rate_that_changes_is_followed);
        scope.spawn(an_aqm_that_costs_throughput_is_rolled_back);
        scope.spawn(a_full_queue_is_brought_down_without_leaving_the_link_idle);
    });
}

fn a_rate_that_changes_is_followed() {
    let (router, _receiver) = pair();
    router.sh(HTB);
    let record = Scratch::new("autorate");
    let line = "r1 --aqm pi --target 20ms --autorate floor=2Mbit,ceiling=50Mbit --listen no --record";
    let attached = router.attach(&format!("{line} {}", record.0.display()));
    let _load = Datagrams::start(&router, 40.0, ECT0, 0.05);
    for rate in ["20mbit", "6mbit", "30mbit"] {
        router.sh(&format!("tc class change dev r1 parent 1: classid 1:10 htb rate {rate} burst 30kb"));
        thread::sleep(Duration::from_secs(7));
    }
    let messages = attached.detach_with_messages();
    let changes: Vec<Vec<f64>> = messages
        .lines()
        .filter_map(|line| line.strip_prefix("aqumend: r1: the rate changed from "))
        .map(|change| change.split(' ').filter_map(|word| word.parse().ok()).collect())
        .collect();
    assert!(changes.len() == 2 && changes[0][1] == changes[1][0], "a line for each change: {messages}");
    for (measured, expected) in [changes[0][0], changes[0][1], changes[1][1]].into_iter().zip([20.0, 6.0, 30.0]) {
        assert!((measured / expected - 1.0).abs() < 0.15, "{messages}");
    }
    let samples = Samples::read(&record.0);
    let (times, rates) = (samples.column("t_s", 0.0), samples.column("link_bps", 0.0));
    // The second before each change, six seconds after the last one.
    for (until, expected) in [(6.9, 20e6), (13.9, 6e6), (20.9, 30e6)] {
        let measured: Vec<f64> = times
            .iter()
            .zip(&rates)
            .filter(|(t, _)| (until - 1.0..until).contains(*t))
            .map(|(_, rate)| *rate)
            .collect();
        let measured = mean(&measured);
        assert!((measured / expected - 1.0).abs() < 0.15, "{measured} bit/s where the shaper has {expected}");
    }
    // The departures of all samples add up to seven seconds of each rate.
    let departed = samples.column("rate_bps", 0.0);
    let bits: f64 = times.windows(2).zip(&departed[1..]).map(|(two, rate)| rate * (two[1] - two[0])).sum();
    assert!((bits / (7.0 * 56e6) - 1.0).abs() < 0.15, "{bits} bits left in 21 s of 20, 6 and 30 Mbit/s");
}

fn an_aqm_that_costs_throughput_is_rolled_back() {
    let lab = Lab::new(Duration::from_millis(20));
    lab.router.sh(TBF);
    let flows = lab.flows(4);
    // The link is full before the AQM regulates, and not with half of all packets marked.
    let attached =
        lab.router.attach("r1 --aqm fixed:p=0.5 --target 20ms --flows 4 --listen no --rollback throughput=20%");
    let (code, messages) = attached.end();
    assert_eq!(code, Some(1), "{messages}");
    assert!(messages.contains("rolled back: throughput"), "{messages}");
    let rate = flows.rate_over(Duration::from_secs(3));
    assert!(rate > 0.7 * RATE * PAYLOAD, "{rate} Mbit/s after it detached");
}

fn a_full_queue_is_brought_down_without_leaving_the_link_idle() {
    let lab = Lab::new(Duration::from_millis(20));
    lab.router.sh(TBF);
    let flows = lab.flows(20);
    thread::sleep(Duration::from_secs(4));
    let record = Scratch::new("full");
    let line = "r1 --aqm stpi --target 10ms --flows 20 --rtt 60ms --listen no --record";
    let attached = lab.router.attach(&format!("{line} {}", record.0.display()));
    let seconds: Vec<f64> = (0..6).map(|_| flows.rate_over(Duration::from_secs(1)) / (RATE * PAYLOAD)).collect();
    attached.detach();
    let sojourn_s = Samples::read(&record.0).column("sojourn_s", 0.0);
    eprintln!("attached over {:.0} ms: {seconds:.2?} of the rate", 1e3 * sojourn_s[0]);
    // A buffer of 240 ms at the start, and a target of 10 ms.
    assert!(sojourn_s[0] > 0.1, "the queue was not full: {} s", sojourn_s[0]);
    let late = mean(&sojourn_s[sojourn_s.len() / 2..]);
    assert!(late < 0.03, "{late} s in the queue in the last three seconds");
    assert!(seconds.iter().all(|second| *second > 0.8), "{seconds:?} of the rate");
}

/// Stops the controller for 20 s, and later sends 30 Mbit/s of unresponsive datagrams for 10 s. From three seconds
/// after either on, no second is below nine tenths of the rate. `AQUMEN_AQMS` selects other AQMs.
#[test]
#[ignore = "a minute and a quarter for each of twelve AQMs"]
fn after_a_stall_and_after_a_flood_the_link_is_full_again() {
    let Some(_alone) = can_run() else { return };
    let all = "pi,stpi,pie,arm-pfc,pi2,rem,paqm,aqm-mo,stred,st-arm-pfc,red,ared";
    let aqms = std::env::var("AQUMEN_AQMS").unwrap_or_else(|_| all.into());
    let mut starved = Vec::new();
    for aqm in aqms.split(',') {
        let lab = Lab::new(Duration::from_millis(31));
        lab.router.sh(HTB);
        let line = format!("r1 --aqm {aqm} --target 10ms --flows 10 --rtt 62ms --listen no");
        let attached = lab.router.attach(&line);
        let flows = lab.flows(10);
        let seconds = |count| -> Vec<f64> {
            (0..count).map(|_| flows.rate_over(Duration::from_secs(1)) / (RATE * PAYLOAD)).collect()
        };
        let before = seconds(10);
        attached.signal(libc::SIGSTOP);
        thread::sleep(Duration::from_secs(20));
        attached.signal(libc::SIGCONT);
        let after_stall = seconds(15);
        let flood = Datagrams::start(&lab.sender, 30.0, 0, 0.05);
        let during = seconds(10);
        drop(flood);
        let after_flood = seconds(15);
        attached.detach();
        eprintln!(
            "{aqm}: before {before:.2?}\n after the stall {after_stall:.2?}\n during the flood {during:.2?}\n after {after_flood:.2?}"
        );
        if [&after_stall, &after_flood].iter().any(|after| after[3..].iter().any(|share| *share < 0.9)) {
            starved.push(aqm);
        }
    }
    assert!(starved.is_empty(), "{starved:?}");
}

#[test]
fn packets_of_another_class_are_not_dropped_with_only() {
    const SENT: usize = 500;
    let Some(_alone) = can_run() else { return };
    let (router, receiver) = pair();
    router.sh("tc qdisc add dev r1 root handle 1: htb default 10; \
               tc class add dev r1 parent 1: classid 1:10 htb rate 8mbit burst 30kb; \
               tc class add dev r1 parent 1: classid 1:20 htb rate 8mbit burst 30kb; \
               tc filter add dev r1 parent 1: protocol ip u32 match ip dport 6001 0xffff flowid 1:20");
    // Datagrams to port 6000 fill the queue of 1:10; those to port 6001 are a tenth of the rate of 1:20.
    let _load = Datagrams::start(&router, 10.0, 8 << 2, 0.05);
    let calls = receiver.within(|| UdpSocket::bind("10.2.0.2:6001").unwrap());
    set_option(&calls, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 8 << 20);
    calls.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    for only in ["", "--only mark=7/0xff", "--only dscp=8", "--only port=6000"] {
        let attached = router.attach(&format!("r1 --aqm fixed:p=0.2 --leaf 1:10 --listen no {only}"));
        router.within(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect("10.2.0.2:6001").unwrap();
            for _ in 0..SENT {
                socket.send(&[0; 100]).unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let totals = &router.status()["totals"];
        let arrived = std::iter::from_fn(|| calls.recv(&mut [0; 128]).ok()).count();
        eprintln!("{only:?}: {arrived} of {SENT} arrived; {totals}");
        let dropped = totals["early_dropped_pkts"].as_u64().unwrap();
        assert!(dropped > 20, "{only}: 1:10 is regulated all the same, {dropped} dropped");
        // A fifth of them is lost without --only: 100, with five standard deviations of 45.
        assert!(if only.is_empty() { arrived < SENT - 55 } else { arrived == SENT }, "{only}: {arrived} arrived");
        let messages = attached.detach_with_messages();
        assert_eq!(
            messages.contains("warning: the marker signals the traffic of all classes"),
            only.is_empty(),
            "{messages}"
        );
    }
}

#[test]
fn a_super_packet_is_marked_with_the_probability_of_its_segments() {
    const SUPER_PACKETS: usize = 2000;
    const SEGMENTS: usize = 10;
    const UDP_SEGMENT: i32 = 103;
    let Some(_alone) = can_run() else { return };
    let (router, receiver) = pair();
    let sink = receiver.within(|| UdpSocket::bind("10.2.0.2:6000").unwrap());
    set_option(&sink, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 64 << 20);
    set_option(&sink, libc::IPPROTO_IP, libc::IP_RECVTOS, 1);
    sink.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let attached = router.attach("r1 --aqm fixed:p=0.05 --rate 1Gbit --listen no");
    thread::sleep(Duration::from_millis(50));
    router.within(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        set_option(&socket, libc::IPPROTO_IP, libc::IP_TOS, ECT0);
        set_option(&socket, libc::IPPROTO_UDP, UDP_SEGMENT, 1000);
        socket.connect("10.2.0.2:6000").unwrap();
        for _ in 0..SUPER_PACKETS {
            socket.send(&[0; 1000 * SEGMENTS]).unwrap();
            // At a tenth of the rate none waits long, and none is dropped.
            thread::sleep(Duration::from_micros(800));
        }
    });
    let classes: Vec<u8> = std::iter::from_fn(|| crate::receive_class(&sink)).collect();
    assert_eq!(classes.len(), SUPER_PACKETS * SEGMENTS);
    let fraction = classes.iter().filter(|class| *class & 3 == 3).count() as f64 / classes.len() as f64;
    let totals = &router.status()["totals"];
    eprintln!("{fraction:.3} marked; {totals}");
    // 1 - 0.95^10 = 0.4013, and five standard deviations of 2000 tosses: 5 * sqrt(0.4013 * 0.5987 / 2000) = 0.055.
    assert!((fraction - 0.4013).abs() < 0.055, "{fraction} of all segments marked");
    // The kernel adds packets of its own, such as neighbour discovery.
    let all = (SUPER_PACKETS * SEGMENTS) as u64;
    assert!((all..all + 100).contains(&totals["arrived_pkts"].as_u64().unwrap()), "{totals}");
    attached.detach();
}

#[test]
fn systemd_accepts_the_unit() {
    let Some(_alone) = can_run() else { return };
    if std::process::Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("Skipped: the check of the systemd unit needs systemd-analyze (Debian package systemd).");
        return;
    }
    let unit =
        include_str!("../../dist/aqumend@.service").replace("/usr/local/bin/aqumend", env!("CARGO_BIN_EXE_aqumend"));
    let folder = Scratch::new("unit");
    std::fs::create_dir(&folder.0).unwrap();
    let path = folder.0.join("aqumend@.service");
    std::fs::write(&path, unit).unwrap();
    let output =
        std::process::Command::new("systemd-analyze").arg("verify").arg("--man=no").arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_dir(&folder.0).unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    // Other units of this machine may have errors.
    let ours: Vec<&str> = messages.lines().filter(|line| line.contains("aqumend")).collect();
    assert!(ours.is_empty() && output.status.success(), "{messages}");
}

/// Endurance under traffic, for ten minutes or AQUMEN_SOAK_S seconds: the controller is stopped, killed and attached
/// again, and the shaper's rate changes. For `make soak`.
#[test]
#[ignore = "ten minutes"]
fn endurance_under_traffic() {
    let Some(_alone) = can_run() else { return };
    let seconds = std::env::var("AQUMEN_SOAK_S").ok().and_then(|text| text.parse().ok()).unwrap_or(600);
    let lab = Lab::new(Duration::from_millis(20));
    lab.router.sh(HTB);
    let before = crate::traces(&lab.router);
    let line = "r1 --aqm pi --target 20ms --flows 12 --listen no --via clsact";
    let mut attached = Some(lab.router.attach(line));
    let flows = lab.flows(12);
    thread::sleep(Duration::from_secs(5));
    let (start, mut round, mut least, mut rate_mbit) = (Instant::now(), 0u64, f64::INFINITY, RATE);
    let (mut memory, mut files) = (Vec::new(), Vec::new());
    while start.elapsed() < Duration::from_secs(seconds) {
        round += 1;
        let controller = attached.take().unwrap();
        let controller = match round % 5 {
            0 => {
                controller.signal(libc::SIGKILL);
                controller.end();
                lab.router.attach(line)
            }
            1 => {
                controller.detach();
                lab.router.attach(line)
            }
            2 => {
                controller.signal(libc::SIGSTOP);
                thread::sleep(Duration::from_secs(1));
                controller.signal(libc::SIGCONT);
                controller
            }
            3 => {
                rate_mbit = if rate_mbit == RATE { 12.0 } else { RATE };
                lab.router
                    .sh(&format!("tc class change dev r1 parent 1: classid 1:10 htb rate {rate_mbit}mbit burst 30kb"));
                // Packets in flight at the old rate have passed.
                thread::sleep(Duration::from_secs(1));
                controller
            }
            _ => controller,
        };
        let second = flows.rate_over(Duration::from_secs(1)) / (rate_mbit * PAYLOAD);
        least = least.min(second);
        assert!(second > 0.8, "round {round}: {second:.2} of {rate_mbit} Mbit/s");
        memory.push(controller.resident_kib());
        files.push(controller.descriptors());
        attached = Some(controller);
    }
    attached.unwrap().detach();
    lab.router.sh("tc class change dev r1 parent 1: classid 1:10 htb rate 20mbit burst 30kb");
    crate::assert_as_before(&lab.router, &before, "after the soak");
    let most = |values: &[u64]| values.iter().max().copied().unwrap_or(0);
    let half = memory.len() / 2;
    eprintln!(
        "{round} rounds in {seconds} s: no second below {least:.2} of the rate; at most {} KiB and {} descriptors, in the first half {} and {}",
        most(&memory),
        most(&files),
        most(&memory[..half]),
        most(&files[..half])
    );
    assert!(most(&memory[half..]) <= most(&memory[..half]) + 512 && most(&files[half..]) <= most(&files[..half]));
}

/// Compares the queue of an AQM above a token bucket with that in a link of the laboratory: they agree within 8 %.
#[test]
#[ignore = "a minute"]
fn the_queue_agrees_with_that_of_a_laboratory_link() {
    let Some(_alone) = can_run() else { return };
    // 20 Mbit/s as tc counts them, with 14 bytes of Ethernet before each packet of 1500.
    let text = format!(
        "name = \"link\"\nduration = \"30s\"\naqm = \"pi\"\n[windows]\nsteady = \"10s\"\n[nominal]\ntarget = \"100pkt\"\nflows = 40\nbase_rtt = \"150ms\"\n\
         [topology]\npreset = \"dumbbell\"\nbottleneck = {{ rate = \"{}bit\", delay = \"39ms\", buffer = \"396pkt\" }}\n\
         access = {{ rate = \"1Gbit\", delay = \"500us\" }}\n[[flows]]\nname = \"ftp\"\ncount = 40\ntransport = \"linux-reno\"\n",
        (20e6 * 1500.0 / 1514.0) as u64
    );
    let scenario = aqumen_scenario::Scenario::parse(&text, "link").unwrap();
    let in_link = |seed| {
        let plan = scenario.plan(seed, None).unwrap();
        let run = || aqumen_live::lab::run::run(&plan, |_| true).unwrap();
        // A late run is repeated once.
        let first = run();
        let live = if first.host.valid { first } else { run() };
        assert!(live.host.valid, "invalid twice: {:?}", live.host.invalid_because);
        live.result.links["bottleneck"]["steady"].queue_mean_pkts
    };
    let attached_queue = || {
        let lab = Lab::new(Duration::from_millis(40));
        lab.router.sh(TBF);
        let record = Scratch::new("agrees");
        let line = "r1 --aqm pi --target 100pkt --flows 40 --rtt 150ms --listen no --record";
        let attached = lab.router.attach(&format!("{line} {}", record.0.display()));
        let _flows = lab.flows(40);
        thread::sleep(Duration::from_secs(30));
        attached.detach();
        mean(&Samples::read(&record.0).column("backlog_pkts", 10.0))
    };
    let link = mean(&[in_link(1), in_link(2)]);
    let attach = mean(&[attached_queue(), attached_queue()]);
    eprintln!("mean queue: link {link:.1} packets, attach {attach:.1}: {:+.1} %", 100.0 * (attach / link - 1.0));
    assert!((attach / link - 1.0).abs() < 0.08);
}
