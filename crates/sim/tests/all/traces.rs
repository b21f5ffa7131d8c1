//! Packet traces: each packet that leaves a queue, with its time, addresses and mark.

use aqumen_scenario::Scenario;
use aqumen_sim::{Options, run};

/// Three seconds of TCP with SACK and marks, SCTP and UDP over 4 Mbit/s and back.
const TEXT: &str = r#"
    name = "traced"
    duration = "3s"
    [topology]
    preset = "dumbbell"
    bottleneck = { rate = "4Mbit", delay = "10ms", buffer = "20pkt" }
    access = { rate = "100Mbit", delay = "5ms" }
    [[flows]]
    name = "tcp"
    count = 3
    transport = "modern"
    [[flows]]
    name = "sctp"
    transport = "sctp"
    [[flows]]
    name = "udp"
    transport = "udp"
    traffic = { kind = "cbr", rate = "200kbit" }
"#;

#[test]
fn a_trace_shows_each_packet_that_leaves_a_queue() {
    let scenario = Scenario::parse(TEXT, "traced").unwrap();
    for aqm in ["droptail", "pi", "fq-codel"] {
        let plan = scenario.plan(1, Some(&scenario.aqm(aqm).unwrap())).unwrap();
        let file = std::env::temp_dir().join(format!("aqumen-traces-{}-{aqm}.pcapng", std::process::id()));
        let result = run(&plan, Options { trace: Some(&file), ..Options::default() }, &mut |_| true).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let there = plan.links.iter().position(|link| link.record).unwrap();
        let ends = (plan.links[there].to, plan.links[there].from);
        let back = plan.links.iter().position(|link| (link.from, link.to) == ends).unwrap() as u32;
        let there = there as u32;
        let (end, rate) = (plan.duration.as_nanos(), 4e6);
        let mut reader = aqumen_capture::Reader::new(&bytes[..]).unwrap();
        let (mut gone, mut gone_bytes, mut marked, mut answers) = (0, 0, 0, 0);
        let (mut free_at, mut latest, mut protocols) = (0.0, 0, std::collections::BTreeSet::new());
        while let Some(record) = reader.next_record().unwrap() {
            assert!(record.at_ns >= latest, "{aqm}: in order of time");
            latest = record.at_ns;
            // Of the source 10.f or 10.128 + f: senders are on one side, receivers on the other.
            let from_sender = record.data[13] < 128;
            let length = u32::from(u16::from_be_bytes([record.data[2], record.data[3]]));
            // TCP's options are left out, and chunks that are not told in full.
            let is_whole = record.data[9] != 17 || length == record.original;
            assert!(length <= record.original && is_whole, "{aqm}: {length} {}", record.original);
            if record.interface == back {
                assert!(!from_sender, "{aqm}");
                answers += 1;
            }
            if record.interface != there {
                continue;
            }
            assert!(from_sender, "{aqm}");
            protocols.insert(record.data[9]);
            marked += u64::from(record.data[1] & 3 == 3);
            // One after the other, each for as long as its size takes.
            assert!(record.at_ns as f64 >= free_at - 1.0, "{aqm}");
            free_at = record.at_ns as f64 + f64::from(record.original) * 8e9 / rate;
            if free_at <= end as f64 {
                gone += 1;
                gone_bytes += u64::from(record.original);
            }
        }
        let seen = &result.links["bottleneck"]["all"];
        assert_eq!(gone, seen.departures_pkts, "{aqm}");
        // What was on the wire at the end counts by its share.
        let sent = seen.utilization.unwrap() * 4e6 * 3.0 / 8.0;
        assert!((0.0..1500.0).contains(&(sent - gone_bytes as f64)), "{aqm}: {sent} {gone_bytes}");
        assert!(marked.abs_diff(seen.marked_pkts) <= 1, "{aqm}: {marked} {}", seen.marked_pkts);
        assert!(aqm == "droptail" || marked > 0, "{aqm}");
        // TCP acknowledges each second segment at least, or one at a time; SCTP likewise.
        assert!(answers * 3 > gone && answers < gone, "{aqm}: {answers} of {gone}");
        assert_eq!(protocols.into_iter().collect::<Vec<_>>(), [6, 17, 132], "{aqm}");
    }
}

/// The links that a trace of `plan` shows, by name.
fn shown(text: &str, name: &str) -> Vec<String> {
    let plan = Scenario::parse(text, "traced").unwrap().plan(1, None).unwrap();
    let file = std::env::temp_dir().join(format!("aqumen-traces-{}-{name}.pcapng", std::process::id()));
    run(&plan, Options { trace: Some(&file), ..Options::default() }, &mut |_| true).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let mut reader = aqumen_capture::Reader::new(&bytes[..]).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    while let Some(record) = reader.next_record().unwrap() {
        seen.insert(record.interface as usize);
    }
    seen.into_iter().map(|link| plan.links[link].name.to_string()).collect()
}

#[test]
fn a_trace_shows_links_that_flows_share_and_those_that_can_overflow() {
    // Windows of ten packets: no more than twenty are ever at an access link, of which each flow has its own.
    let text = |buffer: &str| {
        format!(
            "name = \"traced\"\nduration = \"2s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"4Mbit\", delay = \"10ms\", buffer = \"90pkt\" }}\n\
             access = {{ rate = \"100Mbit\", delay = \"5ms\", buffer = \"{buffer}\" }}\n[[flows]]\nname = \"few\"\n\
             count = 2\ntransport = {{ preset = \"ns2\", receive_window = \"10pkt\" }}\n"
        )
    };
    assert_eq!(shown(&text("20pkt"), "wide").len(), 2, "there and back");
    // Of two flows four access links each.
    assert_eq!(shown(&text("19pkt"), "narrow").len(), 2 + 8);
}
