//! The marker on frames made by hand, run by the kernel without any device (`BPF_PROG_TEST_RUN`).

use std::process::Command;

use aya::programs::{TestRun, TestRunOptions};

use super::*;
use crate::machine::namespace::Namespace;

const NOT_ECT: u8 = 0;
const ECT1: u8 = 1;
const ECT0: u8 = 2;
const CE: u8 = 3;
const NEVER: u64 = u64::MAX;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// Offsets in `struct __sk_buff` of the fields that a test sets.
const MARK: usize = 8;
const GSO_SEGS: usize = 164;
const GSO_SIZE: usize = 176;
const CONTEXT: usize = 192;

/// Result of the marker for a frame.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Passed,
    Changed(Vec<u8>),
    Dropped,
}

/// A marker with these orders; `None`, with a message, without root.
fn marker(setup: &Setup, orders: Orders) -> Option<Marker> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("Skipped: the marker's tests need root.");
        return None;
    }
    let mut marker = Marker::load(setup).unwrap();
    marker.order(orders).unwrap();
    Some(marker)
}

fn ethernet() -> Setup {
    Setup { link_header: 14, ..Setup::default() }
}

fn always(setup: &Setup) -> Option<Marker> {
    marker(setup, Orders::new(1.0, true, NEVER))
}

impl Marker {
    fn run_with(&mut self, frame: &[u8], context: &[u8], repeat: u32) -> Fate {
        let mut out = vec![0; frame.len() + 64];
        let options = TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut out),
            ctx_in: Some(context),
            repeat,
            ..TestRunOptions::new()
        };
        let result = self.program().test_run(options).unwrap();
        let length = result.data_size_out as usize;
        match result.return_value as i32 {
            2 => Fate::Dropped,
            -1 if &out[..length] == frame => Fate::Passed,
            -1 => Fate::Changed(out[..length].to_vec()),
            other => panic!("the marker answered {other}"),
        }
    }

    fn run_frame(&mut self, frame: &[u8]) -> Fate {
        self.run_with(frame, &[0; CONTEXT], 1)
    }
}

/// The Internet checksum of `header`, zero if the one inside is right.
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}

/// IPv4 packet of type of service, fragment word, protocol and payload.
fn ipv4(tos: u8, fragment: u16, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, tos, 0, 0, 0x12, 0x34, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet[2..4].copy_from_slice(&((20 + payload.len()) as u16).to_be_bytes());
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(payload);
    packet
}

/// IPv6 packet of traffic class, next header and payload.
fn ipv6(class: u8, next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60 | class >> 4, class << 4 | 0x0a, 0xbc, 0xde];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend([0xfd; 32]);
    packet.extend(payload);
    packet
}

/// Start of a TCP or UDP header from port 1000 to port 443.
fn ports() -> Vec<u8> {
    [&1000u16.to_be_bytes()[..], &443u16.to_be_bytes(), &[0; 16]].concat()
}

fn ether(kind: u16, packet: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &kind.to_be_bytes(), packet].concat()
}

/// Frames of both families with the same traffic class: frame, offset of the byte with the ECN field, and its shift.
fn both(class: u8) -> [(Vec<u8>, usize, u8); 2] {
    [(ether(0x0800, &ipv4(class, 0, TCP, &ports())), 15, 0), (ether(0x86dd, &ipv6(class, TCP, &ports())), 15, 4)]
}

/// `frame` with CE in the ECN field at byte `at`, and a right IPv4 checksum.
fn with_ce(frame: &[u8], at: usize, shift: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at] |= CE << shift;
    if shift == 0 {
        let header = &mut frame[at - 1..at + 19];
        header[10..12].fill(0);
        let sum = checksum(header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    frame
}

#[test]
fn probability_one_marks_ecn_capable_packets_and_drops_others() {
    let Some(mut marker) = always(&ethernet()) else { return };
    for dscp in 0..64 {
        for ecn in [NOT_ECT, ECT1, ECT0, CE] {
            for (frame, at, shift) in both(dscp << 2 | ecn) {
                let expected = match ecn {
                    NOT_ECT => Fate::Dropped,
                    CE => Fate::Passed,
                    _ => Fate::Changed(with_ce(&frame, at, shift)),
                };
                assert_eq!(marker.run_frame(&frame), expected, "dscp {dscp} ecn {ecn} shift {shift}");
            }
        }
    }
    let counts = marker.counts().unwrap();
    // 64 code points, two families; three of four ECN fields can carry a mark.
    assert_eq!((counts.packets, counts.segments), (512, 512));
    assert_eq!((counts.marked, counts.dropped, counts.spared, counts.unregulated), (384, 128, 0, 0));
    let [(v4, ..), (v6, ..)] = both(0);
    assert_eq!(counts.bytes, 256 * (v4.len() + v6.len()) as u64);
    assert_eq!(counts.dropped_bytes, 64 * (v4.len() + v6.len()) as u64);
}

#[test]
fn probability_zero_touches_nothing() {
    let Some(mut marker) = marker(&ethernet(), Orders::new(0.0, true, NEVER)) else { return };
    for ecn in [NOT_ECT, ECT1, ECT0, CE] {
        for (frame, ..) in both(ecn) {
            assert_eq!(marker.run_frame(&frame), Fate::Passed);
        }
    }
    assert_eq!(
        marker.counts().unwrap(),
        Counts { packets: 8, segments: 8, bytes: marker.counts().unwrap().bytes, ..Counts::default() }
    );
}

#[test]
fn half_of_the_packets_are_chosen_at_one_half() {
    let Some(mut marker) = marker(&ethernet(), Orders::new(0.5, true, NEVER)) else { return };
    // Five standard deviations of a fair coin tossed 40000 times: 5 * 100. The kernel's coin has no seed to fix; a
    // false alarm comes once in two million runs.
    for (ecn, repeat) in [(ECT0, 40_000), (NOT_ECT, 40_000)] {
        for (frame, ..) in both(ecn) {
            let before = marker.counts().unwrap();
            marker.run_with(&frame, &[0; CONTEXT], repeat);
            let after = marker.counts().unwrap();
            let (marked, dropped) = (after.marked - before.marked, after.dropped - before.dropped);
            let (signalled, not) = if ecn == ECT0 { (marked, dropped) } else { (dropped, marked) };
            assert!(signalled.abs_diff(20_000) < 500 && not == 0, "ecn {ecn}: {signalled} signalled, {not}");
        }
    }
}

#[test]
fn a_super_packet_is_chosen_with_the_probability_of_its_segments() {
    let Some(mut marker) = marker(&ethernet(), Orders::new(0.02, true, NEVER)) else { return };
    let mut before = Counts::default();
    for n in [1u32, 2, 7, 44, 1000] {
        let mut context = [0; CONTEXT];
        context[GSO_SEGS..GSO_SEGS + 4].copy_from_slice(&n.to_ne_bytes());
        context[GSO_SIZE..GSO_SIZE + 4].copy_from_slice(&1448u32.to_ne_bytes());
        let [(frame, ..), _] = both(ECT0);
        marker.run_with(&frame, &context, 40_000);
        let after = marker.counts().unwrap();
        let fraction = (after.marked - before.marked) as f64 / 40_000.0;
        let expected = 1.0 - 0.98f64.powi(n as i32);
        let five_sigma = 5.0 * (expected * (1.0 - expected) / 40_000.0).sqrt() + 1e-4;
        assert!((fraction - expected).abs() < five_sigma, "{n} segments: {fraction}, expected {expected}");
        assert_eq!(after.segments - before.segments, 40_000 * u64::from(n));
        assert_eq!(after.marked_segments - before.marked_segments, (after.marked - before.marked) * u64::from(n));
        before = after;
    }
}

#[test]
fn an_expired_order_is_ignored() {
    let Some(mut marker) = marker(&ethernet(), Orders::new(1.0, true, 1)) else { return };
    let [(frame, ..), _] = both(NOT_ECT);
    assert_eq!(marker.run_frame(&frame), Fate::Passed);
    assert_eq!(marker.counts().unwrap().unregulated, 1);
}

#[test]
fn a_fresh_marker_passes_everything() {
    let Some(mut marker) = marker(&ethernet(), Orders::default()) else { return };
    let [(frame, ..), _] = both(NOT_ECT);
    assert_eq!(marker.run_frame(&frame), Fate::Passed);
}

#[test]
fn without_ecn_everything_chosen_is_dropped() {
    let Some(mut marker) = marker(&ethernet(), Orders::new(1.0, false, NEVER)) else { return };
    for ecn in [NOT_ECT, ECT1, ECT0, CE] {
        for (frame, ..) in both(ecn) {
            assert_eq!(marker.run_frame(&frame), Fate::Dropped);
        }
    }
}

#[test]
fn vlan_tags_and_pppoe_headers_are_skipped() {
    let Some(mut marker) = always(&ethernet()) else { return };
    let (v4, v6) = (ipv4(ECT0, 0, TCP, &ports()), ipv6(ECT0, TCP, &ports()));
    let tag = |inner: u16| [&[0x20, 0x05][..], &inner.to_be_bytes()].concat();
    let pppoe = |protocol: u16| [&[0x11, 0, 0, 1, 0, 42][..], &protocol.to_be_bytes()].concat();
    let cases = [
        (ether(0x8100, &[tag(0x0800), v4.clone()].concat()), 18, 0),
        (ether(0x8100, &[tag(0x86dd), v6.clone()].concat()), 18, 4),
        (ether(0x88a8, &[tag(0x8100), tag(0x0800), v4.clone()].concat()), 22, 0),
        (ether(0x88a8, &[tag(0x8100), tag(0x86dd), v6.clone()].concat()), 22, 4),
        (ether(0x8864, &[pppoe(0x21), v4.clone()].concat()), 22, 0),
        (ether(0x8864, &[pppoe(0x57), v6].concat()), 22, 4),
        (ether(0x8100, &[tag(0x8864), pppoe(0x21), v4].concat()), 26, 0),
    ];
    for (frame, network, shift) in cases {
        assert_eq!(marker.run_frame(&frame), Fate::Changed(with_ce(&frame, network + 1, shift)), "{frame:02x?}");
    }
}

#[test]
fn frames_without_ip_pass() {
    let Some(mut marker) = always(&ethernet()) else { return };
    let v4 = ipv4(NOT_ECT, 0, TCP, &ports());
    let three_tags = [&[0, 5, 0x81, 0][..], &[0, 6, 0x81, 0], &[0, 7, 8, 0], &v4].concat();
    let frames = [
        ether(0x0806, &[0; 28]),                                                // ARP
        ether(0x88cc, &[1; 40]),                                                // LLDP
        ether(0x8863, &v4),                                                     // PPPoE discovery
        ether(0x8864, &[&[0x11, 0, 0, 1, 0, 9, 0xc0, 0x21][..], &v4].concat()), // PPP link control
        ether(0x8100, &three_tags),                                             // more tags than are skipped
        ether(0x0800, &ipv6(NOT_ECT, TCP, &ports())[1..]),                      // says IPv4, and the version is another
        ether(0x0800, &[&[0x42][..], &v4[1..]].concat()),                       // a header of 8 bytes
    ];
    for frame in &frames {
        assert_eq!(marker.run_frame(frame), Fate::Passed, "{frame:02x?}");
    }
    assert_eq!(marker.counts().unwrap().spared, frames.len() as u64);
}

#[test]
fn truncated_packets_are_not_written_beyond_their_end() {
    let Some(mut marker) = always(&ethernet()) else { return };
    // Behind a VLAN tag, since the kernel's test run refuses a frame of type IP that is shorter than an IP header.
    let tag = |inner: u16| [&[0, 5][..], &inner.to_be_bytes()].concat();
    let v4 = ether(0x8100, &[tag(0x0800), ipv4(ECT0, 0, TCP, &ports())].concat());
    let v6 = ether(0x8100, &[tag(0x86dd), ipv6(ECT0, TCP, &ports())].concat());
    for (frame, header, shift) in [(v4, 20, 0), (v6, 40, 4)] {
        for length in 15..frame.len() {
            let cut = &frame[..length];
            let whole = length >= 18 + header;
            let expected = if whole { Fate::Changed(with_ce(cut, 19, shift)) } else { Fate::Passed };
            assert_eq!(marker.run_frame(cut), expected, "{length} bytes, shift {shift}");
        }
    }
}

#[test]
fn each_fragment_is_marked_separately() {
    let Some(mut marker) = always(&ethernet()) else { return };
    for fragment in [0x4000, 0x2000, 0x2001, 0x00b9, 0x1fff] {
        let frame = ether(0x0800, &ipv4(ECT1, fragment, UDP, &ports()));
        assert_eq!(marker.run_frame(&frame), Fate::Changed(with_ce(&frame, 15, 0)), "{fragment:#x}");
    }
    for offset in [0x0001u16, 0x0008, 0xfff8] {
        let header = [&[UDP, 0][..], &offset.to_be_bytes(), &[0, 0, 0, 7]].concat();
        let frame = ether(0x86dd, &ipv6(ECT0, 44, &[header, ports()].concat()));
        assert_eq!(marker.run_frame(&frame), Fate::Changed(with_ce(&frame, 15, 4)), "{offset:#x}");
    }
}

/// ICMPv6 message of a type behind the extension headers `chain`, each without its first byte.
fn icmpv6(kind: u8, chain: &[(u8, Vec<u8>)], class: u8) -> Vec<u8> {
    let mut payload = Vec::new();
    for (i, (_, rest)) in chain.iter().enumerate() {
        payload.push(chain.get(i + 1).map_or(ICMPV6, |(next, _)| *next));
        payload.extend(rest);
    }
    payload.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
    ether(0x86dd, &ipv6(class, chain.first().map_or(ICMPV6, |(first, _)| *first), &payload))
}

#[test]
fn neighbour_discovery_passes_behind_extension_headers_too() {
    let Some(mut marker) = always(&ethernet()) else { return };
    // Hop by hop and destination options of 8 and 16 bytes, a first fragment (offset 0), an
    // authentication header of 24.
    let chains = [
        vec![],
        vec![(0u8, vec![0; 7])],
        vec![(0, vec![0; 7]), (60, [vec![1], vec![0; 14]].concat())],
        vec![(44, vec![0, 0, 1, 0, 0, 0, 7])],
        vec![(51, [vec![4], vec![0; 22]].concat()), (43, vec![0; 7])],
    ];
    for chain in &chains {
        for kind in 133..=137 {
            for class in [NOT_ECT, ECT0] {
                assert_eq!(marker.run_frame(&icmpv6(kind, chain, class)), Fate::Passed, "type {kind} behind {chain:?}");
            }
        }
        // An echo request is treated as any other packet.
        assert_eq!(marker.run_frame(&icmpv6(128, chain, NOT_ECT)), Fate::Dropped, "echo behind {chain:?}");
    }
    // Data of a later fragment that look like it are not exempt.
    let later = icmpv6(135, &[(44, vec![0, 0, 8, 0, 0, 0, 7])], NOT_ECT);
    assert_eq!(marker.run_frame(&later), Fate::Dropped);
    // A bounded number of headers is followed.
    let endless: Vec<_> = (0..20).map(|_| (60u8, vec![0; 7])).collect();
    assert_eq!(marker.run_frame(&icmpv6(135, &endless, NOT_ECT)), Fate::Dropped);
}

#[test]
fn spared_traffic_passes_and_other_traffic_does_not() {
    let frame = |class: u8, protocol: u8| ether(0x0800, &ipv4(class, 0, protocol, &ports()));
    let sparing = |spare: Rules| Setup { spare, ..ethernet() };
    let voice = sparing(Rules { kinds: 1, dscps: 1 << 46, ..Rules::default() });
    let Some(mut marker) = always(&voice) else { return };
    for (packet, _, _) in both(46 << 2) {
        assert_eq!(marker.run_frame(&packet), Fate::Passed);
    }
    assert_eq!(marker.run_frame(&frame(45 << 2, UDP)), Fate::Dropped);

    let gre = sparing(Rules { kinds: 2, protocols: [1 << 47, 0, 1 << 4, 0], ..Rules::default() });
    let mut marker = always(&gre).unwrap();
    assert_eq!(marker.run_frame(&frame(0, 47)), Fate::Passed);
    assert_eq!(marker.run_frame(&frame(0, 132)), Fate::Passed);
    assert_eq!(marker.run_frame(&frame(0, TCP)), Fate::Dropped);

    let web = sparing(Rules { kinds: 8, ports: [22, 443, 0, 0, 0, 0, 0, 0], ..Rules::default() });
    let mut marker = always(&web).unwrap();
    assert_eq!(marker.run_frame(&frame(0, TCP)), Fate::Passed);
    assert_eq!(marker.run_frame(&frame(0, UDP)), Fate::Passed);
    assert_eq!(marker.run_frame(&frame(0, 47)), Fate::Dropped, "another protocol has no ports");
    assert_eq!(marker.run_frame(&ether(0x0800, &ipv4(0, 0x00b9, UDP, &ports()))), Fate::Dropped, "a later fragment");
    assert_eq!(marker.run_frame(&ether(0x86dd, &ipv6(0, TCP, &ports()))), Fate::Passed);
    let mut other = frame(0, TCP);
    other[14 + 20 + 3] = 0;
    assert_eq!(marker.run_frame(&other), Fate::Dropped, "another port");

    let firewall = sparing(Rules { kinds: 4, mark: 0x10, mask: 0xf0, ..Rules::default() });
    let mut marker = always(&firewall).unwrap();
    let mut context = [0; CONTEXT];
    context[MARK..MARK + 4].copy_from_slice(&0x1fu32.to_ne_bytes());
    assert_eq!(marker.run_with(&frame(0, TCP), &context, 1), Fate::Passed);
    assert_eq!(marker.run_frame(&frame(0, TCP)), Fate::Dropped);
}

#[test]
fn only_matching_packets_are_regulated_and_counted() {
    let frame = |class: u8, protocol: u8| ether(0x0800, &ipv4(class, 0, protocol, &ports()));
    let only = |only: Rules| Setup { only, ..ethernet() };
    let Some(mut marker) = always(&only(Rules { kinds: 4, mark: 0x10, mask: 0xf0, ..Rules::default() })) else {
        return;
    };
    let marked = |mark: u32| {
        let mut context = [0; CONTEXT];
        context[MARK..MARK + 4].copy_from_slice(&mark.to_ne_bytes());
        context
    };
    let with = |marker: &mut Marker, mark: u32| marker.run_with(&frame(0, TCP), &marked(mark), 1);
    assert_eq!([0x1f, 0x2f, 0].map(|mark| with(&mut marker, mark)), [Fate::Dropped, Fate::Passed, Fate::Passed]);
    assert_eq!(marker.run_with(&ether(0x0806, &[0; 28]), &marked(0x10), 1), Fate::Passed, "ARP");
    let counts = marker.counts().unwrap();
    assert_eq!((counts.packets, counts.dropped, counts.spared), (1, 1, 0), "{counts:?}");

    let mut marker = always(&only(Rules { kinds: 1, dscps: 1 | 1 << 8, ..Rules::default() })).unwrap();
    for (class, fate) in [(0, Fate::Dropped), (8, Fate::Dropped), (46, Fate::Passed), (1, Fate::Passed)] {
        for (packet, _, _) in both(class << 2) {
            assert_eq!(marker.run_frame(&packet), fate, "dscp {class}");
        }
    }

    // Matching one rule suffices, and --spare exempts packets there too.
    let either =
        Rules { kinds: 2 | 8, protocols: [1 << 47, 0, 0, 0], ports: [443, 0, 0, 0, 0, 0, 0, 0], ..Rules::default() };
    let spare = Rules { kinds: 1, dscps: 1 << 46, ..Rules::default() };
    let mut marker = always(&Setup { spare, ..only(either) }).unwrap();
    let mut elsewhere = frame(0, TCP);
    elsewhere[14 + 20 + 3] = 0;
    let frames = [frame(0, 47), frame(0, TCP), frame(0, UDP), frame(46 << 2, TCP), elsewhere];
    let dropped = frames.map(|frame| marker.run_frame(&frame) == Fate::Dropped);
    assert_eq!(dropped, [true, true, true, false, false]);
    assert_eq!((marker.counts().unwrap().packets, marker.counts().unwrap().spared), (4, 1));
}

#[test]
fn a_device_without_link_header_begins_with_the_packet() {
    let Some(mut marker) = always(&Setup::default()) else { return };
    for (packet, shift) in [(ipv4(ECT0, 0, TCP, &ports()), 0), (ipv6(ECT0, TCP, &ports()), 4)] {
        assert_eq!(marker.run_frame(&packet), Fate::Changed(with_ce(&packet, 1, shift)));
    }
    assert_eq!(marker.run_frame(&[0x50; 40]), Fate::Passed, "neither version");
}

#[test]
fn the_object_is_built_from_the_source() {
    let crate_folder = env!("CARGO_MANIFEST_DIR");
    let checked_in = std::fs::read(format!("{crate_folder}/bpf/marker.bpf.o")).unwrap();
    let Ok(clang) = Command::new("clang").arg("--version").output() else {
        eprintln!("Skipped: the rebuild of the marker needs clang.");
        return;
    };
    let rebuilt = std::env::temp_dir().join(format!("aqumen-marker-{}.o", std::process::id()));
    let status = Command::new(format!("{crate_folder}/../../scripts/bpf")).arg(&rebuilt).status().unwrap();
    let bytes = std::fs::read(&rebuilt);
    let _ = std::fs::remove_file(&rebuilt);
    assert!(status.success());
    // Another release of clang generates other instructions: there the build only has to succeed.
    if String::from_utf8_lossy(&clang.stdout).contains("clang version 14.") {
        assert!(bytes.unwrap() == checked_in, "bpf/marker.bpf.o is not what scripts/bpf makes of bpf/marker.bpf.c");
    }
}

#[test]
fn a_refusal_names_the_kernels_error_and_the_missing_capability() {
    let message = |cause: &str| load_error(std::io::Error::other(cause.to_owned())).to_string();
    for cause in ["Operation not permitted (os error 1)", "Permission denied (os error 13)"] {
        assert_eq!(message(cause), format!("needs the capabilities CAP_BPF and CAP_NET_ADMIN: {cause}"));
    }
    assert!(message("Function not implemented").starts_with("this kernel lacks CONFIG_BPF_SYSCALL: "));
    assert_eq!(message("Invalid argument"), "the kernel refuses the marker: Invalid argument");
}

#[test]
fn counters_of_all_processors_are_summed() {
    let counts = |[packets, segments, bytes, marked, dropped]: [u64; 5]| Counts {
        packets,
        segments,
        bytes,
        marked,
        marked_segments: 10 * marked,
        dropped,
        dropped_segments: 10 * dropped,
        dropped_bytes: 15_000 * dropped,
        spared: packets + 1,
        unregulated: packets + 2,
        ..Counts::default()
    };
    let both = counts([20, 47, 69_000, 5, 7]).plus(&counts([30, 100, 150_000, 10, 20]));
    assert_eq!((both.packets, both.segments, both.bytes), (50, 147, 219_000));
    assert_eq!((both.marked, both.marked_segments), (15, 150));
    assert_eq!((both.dropped, both.dropped_segments, both.dropped_bytes), (27, 270, 405_000));
    assert_eq!((both.spared, both.unregulated), (21 + 31, 22 + 32));
}

/// An error with a cause.
#[derive(Debug)]
struct TestError(&'static str, Option<Box<TestError>>);

impl std::fmt::Display for TestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for TestError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.1.as_deref().map(|cause| cause as _)
    }
}

#[test]
fn an_error_is_shown_with_each_cause_once_and_without_the_verifier_log() {
    let chain = |words: [&'static str; 3]| {
        let [first, second, third] = words;
        error_chain(&TestError(first, Some(Box::new(TestError(second, Some(Box::new(TestError(third, None))))))))
    };
    assert_eq!(chain(["load", "the call", "no memory"]), "load: the call: no memory");
    assert_eq!(chain(["the call failed", "the call", "no memory"]), "the call failed: no memory");
    assert_eq!(chain(["load", "refused. Verifier output: 0: R1=ctx", "R1"]), "load: refused.");
}

#[test]
fn a_probability_is_encoded_in_units_of_two_to_the_minus_31() {
    let orders = [0.0, 0.25, 1.0].map(|p| Orders::new(p, p > 0.5, 77));
    assert_eq!(orders.map(|order| order.chance), [0, 1 << 29, 1 << 31]);
    assert_eq!(orders.map(|order| (order.ecn, order.deadline_ns)), [(0, 77), (0, 77), (1, 77)]);
}

#[test]
fn a_filter_is_ours_by_its_name() {
    let named = |name: &str| Filter { name: name.into(), priority: PRIORITY, handle: HANDLE, program: 1 };
    let ours = ["aqumen", "aqumen+clsact", "", "aqumen2", "marker"].map(|name| is_ours(&named(name)));
    assert_eq!(ours, [true, true, false, false, false]);
}

/// Runs `work` with the loopback device of a new namespace.
fn on_a_device(work: impl FnOnce(&mut Netlink, &Device) + Send) {
    if crate::common::skipped("a marker at a device") {
        return;
    }
    let within = || {
        let mut netlink = Netlink::open().unwrap();
        let device = tc::device(&mut netlink, "lo").unwrap().unwrap();
        work(&mut netlink, &device);
        Ok(())
    };
    Namespace::new().unwrap().within(within).unwrap();
}

/// A marker attached to `device` as a filter.
fn attached(netlink: &mut Netlink, device: &Device) -> Marker {
    let mut marker = Marker::load(&ethernet()).unwrap();
    assert_eq!(marker.attach(netlink, device, Some(Hook::Clsact)), Ok(Hook::Clsact));
    marker
}

/// Names of the egress filters, and whether there is a `clsact`.
fn found(netlink: &mut Netlink, device: &Device) -> (Vec<String>, bool) {
    let names = tc::egress_filters(netlink, device.index).unwrap().into_iter().map(|filter| filter.name).collect();
    let made = tc::add_clsact(netlink, device.index).unwrap();
    if made {
        tc::remove_clsact(netlink, device.index).unwrap();
    }
    (names, !made)
}

#[test]
fn an_attached_marker_stays_until_detached_and_leaves_nothing() {
    on_a_device(|netlink, device| {
        let mut marker = Marker::load(&ethernet()).unwrap();
        assert!(!marker.is_attached(netlink).unwrap());
        marker = attached(netlink, device);
        assert!(marker.is_attached(netlink).unwrap());
        assert_eq!(found(netlink, device), (vec!["aqumen+clsact".into()], true));
        marker.detach(netlink);
        assert!(!marker.is_attached(netlink).unwrap());
        assert_eq!(found(netlink, device), (vec![], false));
    });
}

#[test]
fn a_tcx_link_needs_no_filter_and_ends_with_its_owner() {
    on_a_device(|netlink, device| {
        let mut marker = Marker::load(&ethernet()).unwrap();
        match marker.attach(netlink, device, Some(Hook::Tcx)) {
            Err(error) => assert!(error.to_string().contains("cannot attach the marker by TCX (Linux 6.6"), "{error}"),
            Ok(hook) => {
                assert_eq!(hook, Hook::Tcx);
                assert!(marker.is_attached(netlink).unwrap());
                assert_eq!((found(netlink, device), tcx_programs(device.index).unwrap().len()), ((vec![], false), 1));
                marker.detach(netlink);
                assert!(!marker.is_attached(netlink).unwrap());
                // The next attachment removes the filter that a killed process left.
                drop(attached(netlink, device));
                let mut next = Marker::load(&ethernet()).unwrap();
                assert_eq!(next.attach(netlink, device, None), Ok(Hook::Tcx));
                assert_eq!(found(netlink, device), (vec![], false));
            }
        }
    });
}

#[test]
fn another_programs_clsact_and_filters_stay() {
    on_a_device(|netlink, device| {
        assert!(tc::add_clsact(netlink, device.index).unwrap());
        let mut marker = attached(netlink, device);
        assert_eq!(found(netlink, device), (vec!["aqumen".into()], true));
        marker.detach(netlink);
        assert_eq!(found(netlink, device), (vec![], true));
        tc::remove_clsact(netlink, device.index).unwrap();
        // Our own clsact stays too if another program has attached a filter to it.
        let mut marker = attached(netlink, device);
        let other = Filter { name: "other".into(), priority: 7, handle: 1, program: 0 };
        let program = marker.program().fd().unwrap().try_clone().unwrap();
        tc::set_egress_filter(netlink, device.index, &other, program.as_fd()).unwrap();
        marker.detach(netlink);
        assert_eq!(found(netlink, device), (vec!["other".into()], true));
    });
}

#[test]
fn leftovers_of_a_killed_process_are_taken_over_or_removed() {
    on_a_device(|netlink, device| {
        assert_eq!(remove_leftover(netlink, device), Ok(false));
        // A netlink filter outlives its owner.
        drop(attached(netlink, device));
        assert_eq!(found(netlink, device), (vec!["aqumen+clsact".into()], true));
        let mut next = attached(netlink, device);
        assert_eq!(found(netlink, device), (vec!["aqumen+clsact".into()], true));
        next.detach(netlink);
        assert_eq!(found(netlink, device), (vec![], false));
        drop(attached(netlink, device));
        assert_eq!(remove_leftover(netlink, device), Ok(true));
        assert_eq!((remove_leftover(netlink, device), found(netlink, device)), (Ok(false), (vec![], false)));
    });
}

#[test]
fn removal_or_replacement_of_the_marker_is_detected() {
    on_a_device(|netlink, device| {
        let mut marker = attached(netlink, device);
        // Another marker of ours takes its place.
        let mut other = attached(netlink, device);
        assert!(!marker.is_attached(netlink).unwrap() && other.is_attached(netlink).unwrap());
        let ours = tc::egress_filters(netlink, device.index).unwrap().remove(0);
        tc::remove_egress_filter(netlink, device.index, &ours).unwrap();
        assert!(!other.is_attached(netlink).unwrap());
        // A filter that is gone does not keep the clsact from being removed.
        other.detach(netlink);
        assert_eq!(found(netlink, device), (vec![], false));
    });
}

#[test]
fn another_programs_filter_is_not_replaced() {
    on_a_device(|netlink, device| {
        tc::add_clsact(netlink, device.index).unwrap();
        let mut marker = Marker::load(&ethernet()).unwrap();
        let program = marker.program().fd().unwrap().try_clone().unwrap();
        let other = Filter { name: "other".into(), priority: PRIORITY, handle: HANDLE, program: 0 };
        tc::set_egress_filter(netlink, device.index, &other, program.as_fd()).unwrap();
        let error = marker.attach(netlink, device, Some(Hook::Clsact)).unwrap_err().to_string();
        assert_eq!(error, "lo: a filter that is not ours (\"other\") has priority 2718 and handle 0xa9e; remove it");
        assert_eq!(found(netlink, device).0, ["other"]);
    });
}

/// Frame of `bytes` from TCP port `port`, with these TCP flags.
fn segment(port: u16, flags: u8, ecn: u8, bytes: usize) -> Vec<u8> {
    let mut header = vec![0; bytes - 34];
    header[..2].copy_from_slice(&port.to_be_bytes());
    header[13] = flags;
    ether(0x0800, &ipv4(ecn, 0, TCP, &header))
}

fn by_flow(rule: &PacketRule) -> Option<Marker> {
    let mut marker = marker(&Setup { by_flow: 1, ..ethernet() }, Orders::by_flow(rule, NEVER))?;
    marker.set_weights(&StPi2Params { gamma: 0.5, ..StPi2Params::default() }).unwrap();
    Some(marker)
}

/// Rule of p = 1/4 for packets of 1000 bytes, without a mean rate.
fn quarter() -> PacketRule {
    PacketRule {
        epoch: 1,
        step: 1,
        classic: 0.25,
        scalable: 0.5,
        packet_bytes: 1000.0,
        fair_bytes: 1e9,
        ..PacketRule::default()
    }
}

/// Keeps the calling thread on one processor.
fn pin_to_a_processor() {
    // SAFETY: the set is plain memory of its own type, and outlives the calls; zero is this thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu() as usize, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set), 0);
    }
}

const ACK: u8 = 16;
const SYN: u8 = 2;

#[test]
fn a_flow_is_signalled_when_its_probabilities_add_up_to_one() {
    let Some(mut marker) = by_flow(&quarter()) else { return };
    let mut fates = |port, ecn, bytes| -> String {
        let fate = |_| if marker.run_frame(&segment(port, ACK, ecn, bytes)) == Fate::Passed { '.' } else { 'x' };
        (0..12).map(fate).collect()
    };
    // Packets of mean size: each fourth; of half of it: each eighth; of twice: each second. ECT(1): p = 1/2.
    assert_eq!(fates(1, NOT_ECT, 1000), "...x...x...x");
    assert_eq!(fates(2, ECT0, 500), ".......x....");
    assert_eq!(fates(3, ECT0, 2000), ".x.x.x.x.x.x");
    assert_eq!(fates(4, ECT1, 1000), ".x.x.x.x.x.x");
    let counts = marker.counts().unwrap();
    assert_eq!((counts.marked, counts.dropped, counts.flows), (13, 3, 4));
    assert_eq!(counts.squares, 12 * (1000 * 1000 * 2 + 500 * 500 + 2000 * 2000));
    // A flow's k-th packet finds k packets of it: 1 + 2 + ... + 12 = 78.
    assert_eq!(counts.recent, 78 * (1000 * 1000 * 2 + 500 * 500 + 2000 * 2000));
}

#[test]
fn fast_flows_get_more_signals_and_small_packets_above_the_fair_share_are_not_spared() {
    // The first epoch counts; in the second one each flow has its bytes of the first.
    let Some(mut marker) = by_flow(&PacketRule { classic: 0.0, ..quarter() }) else { return };
    for (port, packets) in [(1, 1), (2, 16), (3, 16)] {
        marker.run_with(&segment(port, ACK, NOT_ECT, 1000), &[0; CONTEXT], packets);
    }
    // The mean rate is four packets of 1000 bytes: weights 1/2 and 2 by the square root, within half a step of
    // the table (3 %).
    let rule = PacketRule { classic: 0.01, epoch: 2, recent_bytes: 4000.0, ..quarter() };
    let sums = |marker: &mut Marker, orders| {
        marker.order(orders).unwrap();
        [1, 2, 3].map(|port| {
            let bytes = if port == 3 { 100 } else { 1000 };
            let sent = (1..2000).find(|_| marker.run_frame(&segment(port, ACK, NOT_ECT, bytes)) == Fate::Dropped);
            sent.unwrap()
        })
    };
    let [slow, fast, small] = sums(&mut marker, Orders::by_flow(&rule, NEVER));
    // The rates grow meanwhile: after k packets they are those of 1 + k and 16 + k. Sums of 0.01 sqrt((1 + k) / 4),
    // 0.01 sqrt((16 + k) / 4), and a tenth of 0.01 sqrt((16 + k / 10) / 4) pass 1 at k = 44, 35 and 350.
    assert!((42..=46).contains(&slow) && (33..=37).contains(&fast), "{slow} {fast}");
    assert!((330..=370).contains(&small), "{small}");
    // Above its fair share a flow of 100-byte packets counts as one of mean packets, at the highest weight, 4.
    let rule = PacketRule { epoch: 4, fair_bytes: 10.0, recent_bytes: 1.0, ..rule };
    assert_eq!(sums(&mut marker, Orders::by_flow(&rule, NEVER)), [25, 25, 25]);
}

#[test]
fn a_classic_flow_is_not_signalled_twice_in_a_round_trip() {
    let held = |step| Orders::by_flow(&PacketRule { classic: 1.0, hold_steps: 8, step, ..quarter() }, NEVER);
    let Some(mut marker) = by_flow(&quarter()) else { return };
    let mut at = |step, ecn| {
        marker.order(held(step)).unwrap();
        marker.run_frame(&segment(1, ACK, ecn, 1000)) != Fate::Passed
    };
    assert_eq!([9, 9, 16, 17, 18].map(|step| at(step, ECT0)), [true, false, false, true, false]);
    // Packets of ECT(1) are: p = 1/2 each, and the sum above 1 of the classic ones is still there.
    assert!((0..4).filter(|_| at(18, ECT1)).count() >= 2);
}

#[test]
fn overload_drops_what_could_be_marked() {
    let Some(mut marker) = by_flow(&PacketRule { classic: 1.0, drops: true, ..quarter() }) else { return };
    assert_eq!(marker.run_frame(&segment(1, ACK, ECT0, 1000)), Fate::Dropped);
    // Expired orders and spared packets pass.
    marker.order(Orders::by_flow(&PacketRule { classic: 1.0, ..quarter() }, 1)).unwrap();
    assert_eq!(marker.run_frame(&segment(1, ACK, NOT_ECT, 1000)), Fate::Passed);
    assert_eq!(marker.counts().unwrap().unregulated, 1);
}

#[test]
fn a_handshake_is_timed_without_the_wait_in_the_queue() {
    let Some(mut marker) = by_flow(&quarter()) else { return };
    // Counters are those of a processor.
    pin_to_a_processor();
    let mut handshake = |wait_s, link_bps, pause_ms, bulk| {
        let now_ns = crate::machine::clock::monotonic_ns();
        marker.order(Orders::by_flow(&quarter(), NEVER).with_wait(wait_s, link_bps, now_ns)).unwrap();
        let before = marker.counts().unwrap();
        (0..bulk).for_each(|_| _ = marker.run_frame(&segment(9, ACK, NOT_ECT, 1000)));
        marker.run_frame(&segment(1, SYN, NOT_ECT, 60));
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        (0..3).for_each(|_| _ = marker.run_frame(&segment(1, ACK, NOT_ECT, 60)));
        let counts = marker.counts().unwrap().packets_since(&before);
        (counts.handshakes, counts.handshakes_s)
    };
    let (number, time_s) = handshake(0.0, 1e9, 30, 0);
    assert!(number == 1 && (0.029..3.0).contains(&time_s), "{number} {time_s}");
    // A wait longer than the pause leaves nothing, be it of the queue that was read, or of 1000 packets that came
    // since, 10 s at 100 kB a second. The SYN itself takes 0.6 ms.
    assert_eq!(handshake(60.0, 1e9, 10, 0), (1, 0.0));
    assert_eq!(handshake(0.0, 8e5, 10, 1000), (1, 0.0));
    assert!(handshake(0.0, 8e5, 10, 0).1 > 0.005);
    // Packets of other flows end nothing, and flows without a SYN begin nothing.
    marker.run_frame(&segment(1, SYN, NOT_ECT, 60));
    let before = marker.counts().unwrap().handshakes;
    (2..300).for_each(|port| _ = marker.run_frame(&segment(port, ACK, NOT_ECT, 60)));
    assert_eq!(marker.counts().unwrap().handshakes, before);
}

#[test]
fn a_place_that_an_active_flow_had_keeps_its_sum() {
    // More flows than places: whoever sends each packet as another flow is signalled all the same.
    let Some(mut marker) = by_flow(&PacketRule { classic: 0.25, epoch: 20, ..quarter() }) else { return };
    let signalled =
        (0..20_000).filter(|port| marker.run_frame(&segment(*port, ACK, NOT_ECT, 1000)) == Fate::Dropped).count();
    // 2048 places hold at most one each; all other probability is signalled.
    assert!((2952..=5000).contains(&signalled), "{signalled} of 20000 at 1/4");
}

/// Unused random source: ST-PI2 draws nothing.
struct NoDraw;

impl aqumen_aqm::Draw for NoDraw {
    fn uniform(&mut self) -> f64 {
        unreachable!("it draws nothing")
    }
}

#[test]
fn the_marker_signals_each_flow_as_often_as_the_simulated_aqm() {
    use aqumen_aqm::{Aqm, Cx, Limit, Packet, QueueView, StPi2, Totals, Verdict};
    use aqumen_units::{Bytes, Ecn, Instant, Span};
    // (port, bytes, a packet each so many milliseconds, ECT(1)): 12 Mbit/s of bulk, a call, a slow and a scalable flow.
    const FLOWS: [(u16, usize, u64, bool); 4] =
        [(1, 1514, 1, false), (2, 200, 20, false), (3, 1514, 5, false), (4, 1514, 3, true)];
    let Some(mut marker) = by_flow(&PacketRule::default()) else { return };
    let mut simulated = StPi2::new(StPi2Params::default()).unwrap();
    let mut law = simulated.clone();
    let (mut totals, mut last, mut read_at) = (Totals::default(), Counts::default(), Instant::ZERO);
    let mut signals = [[0u32; 4]; 2];
    for ms in 0..15_000u64 {
        let now = Instant::ZERO + Span::from_millis(ms);
        // A link that is always busy; the queue is long until p' is 0.2.
        totals.busy += Span::from_millis(1);
        let mut root = 0.0;
        simulated.observe(&mut |name, value| root = if name == "root_probability" { value } else { root });
        let packets = if root < 0.2 { 80 } else { 10 };
        for (i, (port, bytes, each_ms, l4s)) in FLOWS.into_iter().enumerate() {
            if ms % each_ms != 0 {
                continue;
            }
            totals.arrivals += 1;
            totals.departures += 1;
            totals.departed_bytes += bytes as u64;
            let limit = Limit { packets: 1000, bytes: Bytes(u64::MAX) };
            let queue = QueueView { packets, bytes: u64::from(packets) * 1500, limit, totals: &totals };
            let (ecn, code) = if l4s { (Ecn::Ect1, ECT1) } else { (Ecn::Ect0, ECT0) };
            let packet = Packet { bytes: bytes as u32, ecn, flow_hash: port.into(), ..Packet::default() };
            let verdict = simulated.on_arrival(&packet, &mut Cx { now, queue, rng: &mut NoDraw });
            signals[0][i] += u32::from(verdict != Verdict::Pass);
            signals[1][i] += u32::from(marker.run_frame(&segment(port, ACK, code, bytes)) != Fate::Passed);
        }
        if ms % 10 == 9 {
            let counts = marker.counts().unwrap();
            law.learn(&counts.packets_since(&last), now);
            last = counts;
            for aqm in [&mut simulated, &mut law] {
                let limit = Limit { packets: 1000, bytes: Bytes(u64::MAX) };
                let queue = QueueView { packets, bytes: u64::from(packets) * 1500, limit, totals: &totals };
                aqm.on_timer(&mut Cx { now, queue, rng: &mut NoDraw });
            }
            let rule = law.packet_rule(now, packets.into(), now.saturating_since(read_at).as_secs_f64());
            read_at = now;
            marker.order(Orders::by_flow(&rule, NEVER)).unwrap();
        }
    }
    eprintln!("signals simulated and by the marker: {signals:?}");
    for i in 0..4 {
        let [simulated, marked] = signals.map(|signals| f64::from(signals[i]));
        assert!((marked - simulated).abs() <= 2.0 + 0.1 * simulated, "flow {i}: {signals:?}");
    }
    assert!(signals[0][0] > 20 && signals[0][3] > 20, "{signals:?}");
}
