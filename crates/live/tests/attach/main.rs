//! `aqumend attach` on kernel traffic, in namespaces of its own. Needs root; otherwise a line says that it is skipped.

#![allow(unsafe_code)]

mod support;
mod traffic;

use std::io::{IoSliceMut, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use support::{Lab, Namespace, Nothing, Samples, Scratch, can_run, is_of_the_machine, mean};

/// A token bucket of 20 Mbit/s with room for 400 packets.
const TBF: &str = "tc qdisc add dev r1 root handle 1: tbf rate 20mbit burst 30kb limit 600kb";
const HTB: &str = "tc qdisc add dev r1 root handle 1: htb default 10; \
                   tc class add dev r1 parent 1: classid 1:10 htb rate 20mbit burst 30kb; \
                   tc qdisc add dev r1 parent 1:10 handle 10: pfifo limit 400";
const RATE: f64 = 20.0;
/// The share of the rate that is payload: 1448 of 1514 bytes.
const PAYLOAD: f64 = 1448.0 / 1514.0;

fn veth() -> Namespace {
    let router = Namespace::new();
    router.sh(
        "ip link add r1 type veth peer name v0; ip addr add 10.2.0.1/24 dev r1; ip link set r1 up; ip link set v0 up",
    );
    router
}

/// Everything that `attach` could leave on r1: disciplines, filters, the device; and our programs in the kernel.
fn traces(router: &Namespace) -> (String, usize) {
    let text =
        router.sh("tc qdisc show dev r1; tc class show dev r1; tc filter show dev r1 egress; ip -d link show dev r1");
    let programs = aya::programs::loaded_programs().flatten();
    (text, programs.filter(|program| program.name() == b"aqumen_marker").count())
}

/// That nothing is there now but what was before: the kernel frees a program a moment after its last holder is gone.
fn assert_as_before(router: &Namespace, before: &(String, usize), what: &str) {
    let asked = Instant::now();
    while traces(router) != *before && asked.elapsed() < Duration::from_secs(3) {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(traces(router), *before, "{what}");
}

#[test]
fn forty_reno_flows_are_regulated_to_the_target() {
    let Some(_alone) = can_run() else { return };
    let (marked, early) = regulate(true);
    assert!(marked > 100.0 && early < marked / 10.0, "{marked} marks, {early} early drops");
}

#[test]
#[ignore = "22 s more"]
fn forty_reno_flows_without_ecn_are_regulated_too() {
    let Some(_alone) = can_run() else { return };
    let (marked, early) = regulate(false);
    assert!(early > 100.0 && marked == 0.0, "{marked} marks, {early} early drops");
}

/// 40 flows of Reno over 20 Mbit/s under PI with a target of 100 packets: marks and early drops.
fn regulate(ecn: bool) -> (f64, f64) {
    let lab = Lab::new(Duration::from_millis(40));
    if !ecn {
        lab.sender.sh("echo 0 >/proc/sys/net/ipv4/tcp_ecn");
    }
    lab.router.sh(TBF);
    let record = Scratch::new("regulation");
    let attached = lab.router.attach(&format!(
        "r1 --aqm pi --target 100pkt --flows 40 --rtt 150ms --listen no --record {}",
        record.0.display()
    ));
    let flows = lab.flows(40);
    thread::sleep(Duration::from_secs(8));
    let rate = flows.rate_over(Duration::from_secs(14));
    attached.detach();
    let page = lab.router.aqumend(&format!("report {}", record.0.display()));
    assert!(String::from_utf8_lossy(&page.stdout).contains("const RECORDED = {"));
    let samples = Samples::read(&record.0);
    let queue = mean(&samples.column("backlog_pkts", 8.0));
    let last = |name| *samples.column(name, 0.0).last().unwrap();
    eprintln!(
        "queue {queue:.1} packets, {:.3} of the rate, {} marks, {} early and {} overflow drops, {} of {} steps missed",
        rate / (RATE * PAYLOAD),
        last("marked_pkts"),
        last("early_dropped_pkts"),
        last("overflow_dropped_pkts"),
        last("missed_steps"),
        samples.column("t_s", 0.0).len()
    );
    assert!((queue - 100.0).abs() < 15.0, "mean queue {queue} packets");
    assert!(rate > 0.97 * RATE * PAYLOAD, "{rate} Mbit/s");
    (last("marked_pkts"), last("early_dropped_pkts"))
}

#[test]
fn traffic_flows_whatever_happens_to_controller_marker_and_shaper() {
    let Some(_alone) = can_run() else { return };
    let lab = Lab::new(Duration::from_millis(10));
    lab.router.sh(HTB);
    let line = "r1 --aqm pi --target 20ms --flows 8 --listen no --via clsact";
    let mut attached = lab.router.attach(line);
    let flows = lab.flows(8);
    thread::sleep(Duration::from_secs(3));
    let flowing = |what: &str| {
        for second in 0..2 {
            let rate = flows.rate_over(Duration::from_secs(1));
            eprintln!("{what}: second {second}: {rate:.1} Mbit/s");
            assert!(rate > 0.8 * RATE * PAYLOAD, "{what}: {rate} Mbit/s in second {second}");
        }
    };
    flowing("attached");

    attached.signal(libc::SIGSTOP);
    flowing("stopped");
    for command in ["detach r1", "status", "status r1 --json"] {
        let output = lab.router.aqumend(command);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("r1: its aqumend: it does not answer") && said.lines().count() == 1, "{command}: {said}");
        assert_eq!(output.status.code(), Some(if command == "detach r1" { 2 } else { 1 }), "{command}");
        assert_eq!(output.stdout.is_empty(), command != "status r1 --json", "{command}");
    }
    let shown = lab.router.aqumend("top --count 1");
    assert!(shown.status.success() && String::from_utf8_lossy(&shown.stdout).contains("it does not answer"));
    attached.signal(libc::SIGCONT);
    let (code, said) = attached.end();
    assert_eq!(code, Some(0), "it heard `detach` when it went on: {said}");
    assert!(said.lines().all(is_of_the_machine), "{said}");

    attached = lab.router.attach(line);
    attached.signal(libc::SIGKILL);
    attached.end();
    flowing("killed");
    let filter = || lab.router.sh("tc filter show dev r1 egress");
    assert!(filter().contains("aqumen+clsact"), "the netlink filter stays: {}", filter());

    attached = lab.router.attach(line);
    assert_eq!(filter().matches("aqumen+clsact").count(), 1, "it took over its own: {}", filter());
    lab.router.sh("tc filter del dev r1 egress");
    let (code, said) = attached.end();
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("somebody took the marker off"), "{said}");
    flowing("filter removed");

    attached = lab.router.attach(line);
    lab.router.sh("tc qdisc del dev r1 root");
    let (code, said) = attached.end();
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("htb 1:10 is gone"), "{said}");
    flowing("shaper removed");
    assert_eq!(lab.router.sh("tc qdisc show dev r1").trim(), "qdisc noqueue 0: root refcnt 2");
}

#[test]
fn readings_that_fail_for_a_while_end_nothing() {
    let Some(_alone) = can_run() else { return };
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("Skipped: errors of netlink under aqumend attach need strace (Debian package strace).");
        return;
    }
    let lab = Lab::new(Duration::from_millis(10));
    lab.router.sh(HTB);
    let attached = lab.router.attach("r1 --aqm pi --target 20ms --flows 8 --listen no");
    let flows = lab.flows(8);
    thread::sleep(Duration::from_secs(3));
    // Every answer of the kernel is "no buffer space" instead, for so many seconds.
    let mute = |seconds: u64| {
        let inject =
            ["-f", "-qq", "-o", "/dev/null", "-e", "trace=recvfrom", "-e", "inject=recvfrom:error=ENOBUFS", "-p"];
        let mut strace = Command::new("strace").args(inject).arg(attached.id().to_string()).spawn().unwrap();
        for second in 0..seconds {
            let rate = flows.rate_over(Duration::from_secs(1));
            eprintln!("no answers: second {second}: {rate:.1} Mbit/s");
            assert!(rate > 0.8 * RATE * PAYLOAD, "{rate} Mbit/s in second {second}");
        }
        // SAFETY: our own child, which was not waited for yet; told to end it lets go of the other.
        unsafe { libc::kill(strace.id() as i32, libc::SIGTERM) };
        strace.wait().unwrap();
    };
    mute(1);
    thread::sleep(Duration::from_millis(300));
    let status: serde_json::Value = serde_json::from_slice(&lab.router.aqumend("status --json").stdout).unwrap();
    let one = &status["attached"][0];
    assert_eq!(one["regulating"].as_bool(), Some(true), "{status}");
    assert!(one["totals"]["missed_steps"].as_u64().unwrap() > 10, "the answers were not kept from it: {status}");
    mute(4);
    let (code, said) = attached.end();
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("htb 1:10 cannot be read: No buffer space available"), "{said}");
    let rate = flows.rate_over(Duration::from_secs(1));
    assert!(rate > 0.8 * RATE * PAYLOAD, "{rate} Mbit/s after it ended");
}

#[test]
fn a_full_disk_ends_the_recording_and_nothing_else() {
    let Some(_alone) = can_run() else { return };
    let router = veth();
    // A disk of one page, in a mount namespace that goes with its shell.
    let line = format!(
        "mount -t tmpfs -o size=4k none /mnt && exec {} attach r1 --aqm pi --rate 20Mbit --listen no --record /mnt/full --duration 6s",
        env!("CARGO_BIN_EXE_aqumend")
    );
    let output = router.within(|| Command::new("unshare").args(["--mount", "sh", "-c", &line]).output().unwrap());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[1].starts_with("aqumend: r1: --record: it ends here: No space left on device"), "{said}");
}

#[test]
fn a_device_that_goes_away_ends_it_with_code_3() {
    let Some(_alone) = can_run() else { return };
    for via in ["tcx", "clsact"] {
        let router = veth();
        let attached = router.attach(&format!("r1 --aqm pi --rate 20Mbit --listen no --via {via}"));
        router.sh("ip link del r1");
        let (code, said) = attached.end();
        assert_eq!(code, Some(3), "{said}");
    }
}

#[test]
fn a_hundred_attachments_leave_nothing() {
    let Some(_alone) = can_run() else { return };
    let router = veth();
    for (i, (shaper, line)) in [
        ("", "r1 --aqm pi --rate 20Mbit --listen no --duration 100ms"),
        (TBF, "r1 --aqm stpi --listen no --duration 100ms"),
        (HTB, "r1 --aqm pie --listen no --duration 100ms --via clsact"),
        (TBF, "r1 --aqm red --listen no --duration 100ms --via clsact"),
    ]
    .into_iter()
    .enumerate()
    {
        if !shaper.is_empty() {
            router.sh(shaper);
        }
        // The second round over a clsact of somebody else's, with a filter on it.
        if i == 3 {
            router.sh("tc qdisc add dev r1 clsact; tc filter add dev r1 egress u32 match u32 0 0 classid 1:1");
        }
        let before = traces(&router);
        for _ in 0..25 {
            let output = router.aqumend(&format!("attach {line}"));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_as_before(&router, &before, line);
        if !shaper.is_empty() {
            router.sh("tc qdisc del dev r1 root");
        }
    }
    assert!(router.sh("tc filter show dev r1 egress").contains("u32"), "the filter of others is still there");
}

#[test]
fn what_a_killed_aqumend_left_is_taken_over_or_removed() {
    let Some(_alone) = can_run() else { return };
    let router = veth();
    let before = traces(&router);
    let killed = || {
        let attached = router.attach("r1 --aqm pi --rate 20Mbit --listen no --via clsact");
        attached.signal(libc::SIGKILL);
        attached.end();
    };
    killed();
    let left = traces(&router).0;
    assert!(left.contains("tbf a9e:") && left.contains("aqumen+clsact"), "{left}");
    // Without --rate nobody knows how long that bucket is to stay: it is no shaper of the user's.
    let refused = router.aqumend("attach r1 --aqm pi");
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
    let attached = router.attach("r1 --aqm pi --rate 30Mbit --listen no");
    assert!(router.sh("tc qdisc show dev r1").contains("rate 30Mbit"));
    attached.detach();
    assert_as_before(&router, &before, "after");

    killed();
    let output = router.aqumend("detach r1");
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("its marker, its token bucket"));
    assert_as_before(&router, &before, "after");
    assert_eq!(router.aqumend("detach r1").status.code(), Some(2), "there is nothing left to remove");

    // A clsact of somebody else's stays, though nothing hangs there.
    router.sh("tc qdisc add dev r1 clsact");
    let before = traces(&router);
    router.attach("r1 --aqm pi --rate 20Mbit --listen no --via clsact").detach();
    assert_as_before(&router, &before, "after");
}

#[test]
fn refusals_are_one_line_with_code_2_and_leave_nothing() {
    let Some(_alone) = can_run() else { return };
    let router = veth();
    let taken = router.within(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let port = taken.local_addr().unwrap().port();
    let there = Scratch::new("there");
    std::fs::write(&there.0, "mine").unwrap();
    let refusals = [
        ("nodev0 --aqm pi --rate 20Mbit".to_owned(), "no device nodev0"),
        ("a-name-that-is-too-long-for-a-device --aqm pi --rate 20Mbit".to_owned(), "no device"),
        ("r1 --aqm pi".to_owned(), "no shaper (tbf or htb) at its root; give --rate"),
        ("r1 --aqm codel --rate 20Mbit".to_owned(), "tc qdisc add ... codel"),
        ("r1 --aqm fq-codel --rate 20Mbit".to_owned(), "tc qdisc add ... fq_codel"),
        ("r1 --aqm pi:a=-1 --rate 20Mbit".to_owned(), "a = -1"),
        ("r1 --aqm pi --rate 1Mbit --flows 40".to_owned(), "R C / N is"),
        ("r1 --aqm pi --rate 20Mbit --target 5s".to_owned(), "--target"),
        // More than any machine of few cores copies.
        ("r1 --aqm pi --rate 400Gbit".to_owned(), "packets a second; this machine carries at most"),
        ("r1 --aqm pi --rate 400Gbit --dry-run".to_owned(), "packets a second; this machine carries at most"),
        (format!("r1 --aqm pi --rate 20Mbit --listen {port}"), "the port is in use"),
        ("r1 --aqm pi --rate 20Mbit --listen 203.0.113.1:80".to_owned(), "--listen 203.0.113.1:80"),
        (format!("r1 --aqm pi --rate 20Mbit --record {}", there.0.display()), "--record"),
        ("lo --aqm pi".to_owned(), "no shaper"),
        ("r1 --aqm pi --rate 20Mbit --leaf 1:1".to_owned(), "give one of them"),
        ("".to_owned(), "which device"),
    ];
    let before = traces(&router);
    let refuse = |line: &str, message: &str| {
        let output = router.aqumend(&format!("attach {line}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(message) && said.trim_end().lines().count() == 1, "{line}: {said}");
    };
    for (line, message) in &refusals {
        refuse(line, message);
        assert_as_before(&router, &before, line);
    }
    assert_eq!(std::fs::read_to_string(&there.0).unwrap(), "mine");

    router.sh("tc qdisc add dev r1 root handle 7: pfifo limit 10");
    refuse("r1 --aqm pi", "pfifo 7: at its root is no shaper");
    refuse("r1 --aqm pi --rate 20Mbit", "--rate would replace pfifo 7:");
    router.sh("tc qdisc replace dev r1 root handle 1: htb; tc class add dev r1 parent 1: classid 1:1 htb rate 30mbit; \
               tc class add dev r1 parent 1:1 classid 1:10 htb rate 20mbit; tc class add dev r1 parent 1:1 classid 1:20 htb rate 10mbit");
    refuse("r1 --aqm pi", "several leaf classes (1:10, 1:20)");
    refuse("r1 --aqm pi --leaf 1:30", "no leaf class of htb 1:");
    refuse("r1 --aqm pi --leaf 1:1", "no leaf class of htb 1:");
    let attached = router.attach("r1 --aqm pi --leaf 1:20 --listen no");
    refuse("r1 --aqm pi --leaf 1:10", "another aqumend is attached already");
    thread::sleep(Duration::from_millis(100));
    let said = attached.detach_said();
    assert!(said.contains("warning: the marker signals the traffic of all classes, also of 1:10,"), "{said}");
}

#[test]
fn net_admin_and_bpf_suffice_and_less_is_refused() {
    let Some(_alone) = can_run() else { return };
    if Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("Skipped: capabilities of aqumend attach need setpriv (Debian package util-linux).");
        return;
    }
    let router = veth();
    router.sh(TBF);
    // A copy that anybody may run: the folder of the build may be root's alone.
    let copy = Scratch::new("aqumend");
    std::fs::copy(env!("CARGO_BIN_EXE_aqumend"), &copy.0).unwrap();
    let as_nobody = |capabilities: &str, options: &str| {
        let line = format!(
            "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all{capabilities} --ambient-caps -all{capabilities} \
             {} attach r1 --aqm pi --listen no --duration 200ms {options}",
            copy.0.display()
        );
        router.within(|| Command::new("sh").args(["-c", &line]).output().unwrap())
    };
    for via in ["tcx", "clsact"] {
        let output = as_nobody(",+net_admin,+bpf", &format!("--via {via}"));
        assert!(output.status.success(), "{via}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let before = traces(&router);
    for capabilities in ["", ",+net_admin", ",+bpf"] {
        let output = as_nobody(capabilities, "--via clsact");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{capabilities}: {said}");
        assert!(said.contains("CAP_NET_ADMIN") || said.contains("Operation not permitted"), "{said}");
        assert_as_before(&router, &before, "after");
    }
    // The right to load programs is not yet one to shape.
    router.sh("tc qdisc del dev r1 root");
    let output = as_nobody(",+sys_admin,+bpf", "--rate 20Mbit");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("r1: a shaper needs the capability CAP_NET_ADMIN"), "{said}");
}

/// What arrives at `receiver` of one datagram with this traffic class sent to `to` from
/// `sender`: its own traffic class.
fn datagram(lab: &Lab, v6: bool, class: i32) -> Option<u8> {
    let (to, any) = if v6 { ("[fd02::2]:6000", "[::]:6000") } else { ("10.2.0.2:6000", "0.0.0.0:6000") };
    let receiver = lab.receiver.within(|| UdpSocket::bind(any).unwrap());
    receiver.set_read_timeout(Some(Duration::from_millis(250))).unwrap();
    let set = |socket: &UdpSocket, level: i32, name: i32, value: i32| {
        // SAFETY: the value is an int and outlives the call.
        let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), 4) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    };
    if v6 {
        set(&receiver, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1);
    } else {
        set(&receiver, libc::IPPROTO_IP, libc::IP_RECVTOS, 1);
    }
    lab.sender.within(|| {
        let sender = UdpSocket::bind(any).unwrap();
        if v6 {
            set(&sender, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class);
        } else {
            set(&sender, libc::IPPROTO_IP, libc::IP_TOS, class);
        }
        sender.send_to(b"hello", to).unwrap();
    });
    receive_class(&receiver)
}

/// The traffic class of the next datagram.
fn receive_class(socket: &UdpSocket) -> Option<u8> {
    let mut data = [0u8; 16];
    let mut control = [0u64; 8];
    let mut part = IoSliceMut::new(&mut data);
    // SAFETY: all zeroes are a msghdr; its pointers are set to what outlives the call.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = (&raw mut part).cast();
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message was filled above.
    if unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, 0) } < 0 {
        return None;
    }
    // SAFETY: the kernel filled the control buffer; the header's data is read as the one byte or
    // int that both options carry.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        assert!(!header.is_null());
        Some(*libc::CMSG_DATA(header))
    }
}

#[test]
fn the_kernels_own_packets_meet_the_same_marks_over_both_families() {
    let Some(_alone) = can_run() else { return };
    let lab = Lab::new(Duration::ZERO);
    let class_of_voice = 46 << 2;
    for (via, p) in [("tcx", 0), ("tcx", 1), ("clsact", 1)] {
        // No neighbour is known yet: ARP and neighbour discovery have to pass for anything to arrive.
        lab.router.sh("ip neigh flush dev r1 nud all");
        let line = format!("r1 --aqm fixed:p={p} --rate 20Mbit --listen no --spare dscp=ef --via {via}");
        let attached = lab.router.attach(&line);
        thread::sleep(Duration::from_millis(50));
        for v6 in [false, true] {
            for (class, expected) in [(2, 3), (1, 3), (3, 3), (class_of_voice, class_of_voice), (0, -1)] {
                let expected = match p {
                    0 => Some(class as u8),
                    _ => (expected >= 0).then_some(expected as u8),
                };
                assert_eq!(datagram(&lab, v6, class), expected, "class {class}, IPv6: {v6}, p = {p}, {via}");
            }
        }
        attached.detach();
    }
}

/// What the page at `path` answers.
fn get(namespace: &Namespace, port: u16, path: &str) -> String {
    namespace.within(|| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    })
}

#[test]
fn it_tells_how_it_fares_in_every_way() {
    let Some(_alone) = can_run() else { return };
    let router = veth();
    assert_eq!(router.aqumend("status r1").status.code(), Some(1));
    assert!(String::from_utf8_lossy(&router.aqumend("status").stdout).contains("nothing is attached"));
    let attached = router.attach("r1 --aqm pi --rate 20Mbit --listen 7777");
    thread::sleep(Duration::from_millis(1100));

    let output = router.aqumend("status --json");
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let one = &status["attached"][0];
    assert_eq!((one["device"].as_str(), one["aqm"].as_str()), (Some("r1"), Some("pi")));
    assert_eq!((one["shaper"]["kind"].as_str(), one["shaper"]["ours"].as_bool()), (Some("tbf"), Some(true)));
    assert_eq!(one["regulating"].as_bool(), Some(true));
    // A reading asks the kernel several times: no machine does that within a microsecond.
    assert!((1e-6..0.2).contains(&one["now"]["age_s"].as_f64().unwrap()), "{status}");
    assert_eq!(one["page"].as_str(), Some("http://127.0.0.1:7777/"));
    assert!(one["totals"]["steps"].as_u64() > Some(50), "{status}");
    let text = String::from_utf8_lossy(&router.aqumend("top --count 2 --interval 100ms").stdout).into_owned();
    assert_eq!(text.matches("r1: pi above tbf a9e: (20.00 Mbit/s)").count(), 2, "{text}");
    let one = router.aqumend("top r1 --count 1");
    assert!(one.status.success() && String::from_utf8_lossy(&one.stdout).starts_with("r1: pi above"), "{one:?}");
    let none = router.aqumend("top v0 --count 1");
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    assert!(String::from_utf8_lossy(&none.stderr).contains("v0: nothing is attached"), "{none:?}");

    assert!(get(&router, 7777, "/").contains("<title>aqumend</title>"));
    assert!(get(&router, 7777, "/metrics").contains("aqumen_regulating{device=\"r1\",aqm=\"pi\"} 1"));
    assert!(get(&router, 7777, "/nothing").starts_with("HTTP/1.1 404"));
    let samples = get(&router, 7777, "/samples?after=0");
    let samples: Vec<serde_json::Value> = serde_json::from_str(samples.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let times: Vec<f64> = samples.iter().map(|sample| sample["t_s"].as_f64().unwrap()).collect();
    assert!(times.windows(2).all(|two| two[0] < two[1]));
    assert!(
        times.len() as f64 > 50.0 * times.last().unwrap(),
        "a sample every 10 ms: {} in {:?} s",
        times.len(),
        times.last()
    );

    // One that was kept from its work for 200 ms has missed about twenty steps.
    let missed = || {
        let status: serde_json::Value = serde_json::from_slice(&router.aqumend("status --json").stdout).unwrap();
        status["attached"][0]["totals"]["missed_steps"].as_u64().unwrap()
    };
    let before = missed();
    attached.signal(libc::SIGSTOP);
    thread::sleep(Duration::from_millis(200));
    attached.signal(libc::SIGCONT);
    thread::sleep(Duration::from_millis(50));
    assert!(missed() >= before + 15, "{} and before {before}", missed());
    let asked = Instant::now();
    assert!(router.aqumend("detach r1").status.success());
    assert!(asked.elapsed() < Duration::from_secs(5));
    let (code, said) = attached.end();
    assert!(code == Some(0) && said.contains("aqumend: r1: stood still for 0."), "{said}");
    assert!(said.lines().all(is_of_the_machine), "{said}");
    assert_eq!(router.sh("tc qdisc show dev r1").trim(), "qdisc noqueue 0: root refcnt 2");
}

#[test]
fn options_are_read_anew_while_the_shaper_stays() {
    let Some(_alone) = can_run() else { return };
    for via in ["tcx", "clsact"] {
        let router = veth();
        let before = traces(&router);
        let (options, record) = (Scratch::new("options"), Scratch::new("reloaded"));
        let with = |text: &str| std::fs::write(&options.0, text).unwrap();
        with("--aqm fixed:p=0 --rate 20Mbit   # at first");
        let line = format!("r1 --options {} --via {via} --listen no --record", options.0.display());
        let attached = router.attach(&format!("{line} {}", record.0.display()));
        let status =
            || -> serde_json::Value { serde_json::from_slice(&router.aqumend("status r1 --json").stdout).unwrap() };
        let bucket = || router.sh("tc -s qdisc show dev r1");
        let reloaded = |text: &str| {
            with(text);
            attached.signal(libc::SIGHUP);
            thread::sleep(Duration::from_millis(300));
            let status = status();
            (
                status["attached"][0]["aqm"].as_str().unwrap().to_owned(),
                status["attached"][0]["shaper"]["rate_bps"].clone(),
            )
        };
        thread::sleep(Duration::from_millis(200));
        router.sh("ping -c 3 -i 0.01 -W 1 10.2.0.9 || true");
        assert_eq!(
            reloaded("--aqm fixed:p=0.5 --rate 10Mbit --only port=9"),
            ("fixed:p=0.5".into(), 10_000_000.into())
        );
        assert!(bucket().contains("tbf a9e: root") && bucket().contains("rate 10Mbit"), "{}", bucket());
        // What is wrong or cannot change changes nothing.
        for text in ["--aqm codel --rate 10Mbit", "--aqm pi --rate fast", "--aqm pi", "--aqm pi --rate 10Mbit --host x"]
        {
            assert_eq!(reloaded(text), ("fixed:p=0.5".into(), 10_000_000.into()), "{text}");
        }
        let one = &status()["attached"][0];
        assert!(one["regulating"] == true && one["totals"]["steps"].as_u64() > Some(20), "{one}");
        assert_eq!(traces(&router).1, before.1 + 1, "one marker");
        let said = attached.detach_said();
        let events: Vec<&str> = said.lines().filter(|line| !is_of_the_machine(line)).collect();
        assert!(
            events.len() == 5 && events[0].contains("r1: reloaded: fixed:p=0.5 above tbf a9e: (10.00 Mbit/s)"),
            "{said}"
        );
        let refused = [
            "tc qdisc add ... codel",
            "--rate \"fast\"",
            "whether there is a --rate",
            "--host changes with a restart only",
        ];
        for (event, why) in events[1..].iter().zip(refused) {
            assert!(
                event.contains("r1: not reloaded, it goes on as before: ") && event.contains(why),
                "{event}: {why}"
            );
        }
        assert_as_before(&router, &before, via);
        let text = std::fs::read_to_string(&record.0).unwrap();
        assert_eq!(text.matches("{\"aqumend\":\"recording\"").count(), 2, "a part for each setting");
    }
}

#[test]
fn a_second_start_goes_on_with_the_recording() {
    let Some(_alone) = can_run() else { return };
    let (router, record) = (veth(), Scratch::new("again"));
    for _ in 0..2 {
        let attached = router.attach(&format!("r1 --aqm pi --rate 20Mbit --listen no --record {}", record.0.display()));
        thread::sleep(Duration::from_millis(200));
        attached.detach();
    }
    let page = router.aqumend(&format!("report {}", record.0.display()));
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    let times: Vec<f64> =
        page.split("\"t_s\":").skip(1).map(|rest| rest.split(['}', ',']).next().unwrap().parse().unwrap()).collect();
    let samples = &times[..times.len() - 1];
    assert!(samples.len() > 20 && samples.is_sorted(), "{samples:?}");
}

#[test]
fn a_service_manager_hears_that_it_is_ready_that_it_lives_and_that_it_stops() {
    let Some(_alone) = can_run() else { return };
    let router = veth();
    let told = |listening: bool, watchdog_of: Option<u32>| {
        let path = Scratch::new("notify");
        let socket = UnixDatagram::bind(&path.0).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let run = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_aqumend"));
            command.args("attach r1 --aqm pi --rate 20Mbit --listen no --duration 500ms".split(' '));
            // Every 40 ms it wants to hear of us: it is told twice as often.
            command.env("NOTIFY_SOCKET", &path.0).env("WATCHDOG_USEC", "40000");
            if let Some(process) = watchdog_of {
                command.env("WATCHDOG_PID", process.to_string());
            }
            let output = router.within(|| command.output().unwrap());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let mut said = Vec::new();
        let mut listen = || {
            let mut buffer = [0; 64];
            while let Ok(length) = socket.recv(&mut buffer) {
                said.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
            }
        };
        thread::scope(|scope| {
            let running = scope.spawn(run);
            while listening && !running.is_finished() {
                listen();
            }
            running.join().unwrap();
        });
        listen();
        said
    };
    let said = told(true, None);
    let (first, rest) = said.split_first().unwrap();
    let (last, between) = rest.split_last().unwrap();
    assert_eq!((first.as_str(), last.as_str()), ("READY=1", "STOPPING=1"));
    // 500 ms over 20 ms, and one at the beginning; fewer where the machine is late, never more.
    assert!((2..=26).contains(&between.len()) && between.iter().all(|word| word == "WATCHDOG=1"), "{said:?}");
    // The watch may be for another process, as for the shell that started this one.
    assert_eq!(told(true, Some(1)), ["READY=1", "STOPPING=1"]);
    // A manager that hangs holds up nobody: the kernel keeps a few words for it, and the AQM ends when it is to.
    assert_eq!(told(false, None)[0], "READY=1");
}

#[test]
fn a_dry_run_says_what_it_would_do_and_does_nothing() {
    let Some(_alone) = can_run() else { return };
    let router = veth();
    let before = traces(&router);
    let output = router.aqumend("attach r1 --aqm pi --rate 20Mbit --overhead 26B --dry-run");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success());
    assert_as_before(&router, &before, "after");
    for part in ["tbf rate 20000000bit", "overhead 26", "marker: at the egress of r1", "aqm: pi for 10 flows", "  a = "]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    // What it says is what tc takes.
    let command =
        said.lines().next().unwrap().trim_start_matches("shaper: ").split(", removed").next().unwrap().to_owned();
    router.sh(&command);
    assert!(router.sh("tc qdisc show dev r1").contains("tbf a9e: root"));
}

/// Prints what the marker costs a packet, by the kernel's own count and beyond a program that does nothing over the
/// same packets, second by second; and what the controller takes of a core. For `make bench`.
#[test]
#[ignore = "a measurement"]
fn what_it_costs() {
    let Some(_alone) = can_run() else { return };
    let lab = Lab::new(Duration::from_millis(10));
    lab.router.sh("tc qdisc add dev r1 root handle 1: tbf rate 100mbit burst 150kb limit 1mb");
    let record = Scratch::new("cost");
    let line = format!("r1 --aqm pi:frequency=100Hz --target 5ms --listen no --record {}", record.0.display());
    let attached = lab.router.attach(&line);
    let nothing = Nothing::attach(&lab.router, "r1");
    if let Err(error) = &nothing {
        eprintln!("no program beside it that does nothing: {error}");
    }
    let _stats = aya::sys::enable_stats(aya::sys::Stats::RunTime).unwrap();
    let flows = lab.flows(10);
    thread::sleep(Duration::from_secs(2));
    // Time and packets so far of marker and of nothing.
    let counts = || {
        ["aqumen_marker", Nothing::NAME].map(|name| {
            let mut programs = aya::programs::loaded_programs().flatten();
            programs.find(|program| program.name() == name.as_bytes()).map(|of| (of.run_time(), of.run_count()))
        })
    };
    let (began, cpu_before) = (Instant::now(), attached.cpu());
    let (mut costs, mut rates) = ([Vec::new(), Vec::new()], Vec::new());
    let mut before = counts();
    for _ in 0..8 {
        rates.push(flows.rate_over(Duration::from_secs(1)));
        let after = counts();
        for (costs, pair) in costs.iter_mut().zip(before.into_iter().zip(after)) {
            if let (Some((from_time, from)), Some((time, to))) = pair {
                costs.push((time - from_time).as_nanos() as f64 / (to - from) as f64);
            }
        }
        before = after;
    }
    let [marker, empty] = costs;
    let share = (attached.cpu() - cpu_before).as_secs_f64() / began.elapsed().as_secs_f64();
    eprintln!(
        "marker: {:.0} ns a packet at {:.1} Mbit/s; controller: {:.2} % of a core at 100 Hz",
        mean(&marker),
        mean(&rates),
        100.0 * share
    );
    if !empty.is_empty() {
        let mut beyond: Vec<f64> = marker.iter().zip(&empty).map(|(marker, empty)| marker - empty).collect();
        beyond.sort_by(f64::total_cmp);
        let [least, median, most] = [0, beyond.len() / 2, beyond.len() - 1].map(|i| beyond[i]);
        eprintln!(
            "a program that does nothing: {:.0} ns; the marker beyond it: median {median:.0} ns ({least:.0} to {most:.0})",
            mean(&empty)
        );
    }
    attached.detach();
    let samples = Samples::read(&record.0);
    eprintln!(
        "age of a reading when its order is out: mean {:.0} us; {} of {} steps missed",
        1e6 * mean(&samples.column("age_s", 1.0)),
        samples.column("missed_steps", 0.0).last().unwrap(),
        samples.column("t_s", 0.0).len()
    );
}
