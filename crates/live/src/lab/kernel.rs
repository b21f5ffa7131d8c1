//! What this machine's kernel can do of a plan: what it cannot is refused by name, before anything is set up.

use std::fs;

use aqumen_scenario::{Group, PRESETS, Plan, Protocol, Traffic};
use aqumen_units::Span;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with, sockopt};
use serde_json::Value;

use super::ip::UDP_HEADER_BYTES;
use crate::{Failure, Tried};

/// What sets a group's sockets apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Sockets {
    /// TCP; `None`: datagrams.
    pub tcp: Option<Tcp>,
    /// Size on the wire of a full packet.
    pub packet_bytes: u16,
    /// Type-of-service byte: the group's class as DSCP.
    pub tos: u8,
}

/// What can be chosen of the kernel's TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// Name of the congestion control, as the kernel has it.
    pub congestion: &'static str,
    /// Whether connections ask for ECN.
    pub ecn: bool,
    /// Whether it is paced where the congestion control does not pace by itself.
    pub pacing: bool,
    /// Segments at the start.
    pub initial_window: u32,
    /// Least retransmission timeout, milliseconds, where it is not the kernel's own.
    pub min_rto_ms: Option<u32>,
    /// Whether segments carry timestamps.
    pub timestamps: bool,
    /// Whether a pause brings the window down to its start.
    pub restarts: bool,
    /// What the receiver offers at most, bytes, where it is not the kernel's own.
    pub receive_window_bytes: Option<u32>,
}

/// The presets that stand for the kernel's own TCP, and the congestion control of each.
const OWN: [(&str, &str); 3] = [("linux", "cubic"), ("linux-reno", "reno"), ("linux-bbr", "bbr")];

/// Settings of TCP that are carried over to the kernel. What else differs from the preset is refused.
const CARRIED: [&str; 11] = [
    "preset",
    "ecn",
    "pacing",
    "packet_bytes",
    "header_bytes",
    "ack_bytes",
    "initial_window",
    "min_rto_s",
    "timestamps",
    "restart_window",
    "receive_window",
];

/// RTP's own header (RFC 3550, section 5.1).
const RTP_BYTES: u16 = 12;

/// Segments that the kernel accepts (`TCP_MAXSEG`).
const SEGMENT_BYTES: std::ops::RangeInclusive<u16> = 88..=32_767;

/// The largest window that TCP can offer (RFC 7323, section 2.2).
const WINDOW_BYTES_MAX: u32 = 1 << 30;

/// Packets that a window must have room for if marks or losses are to regulate it: below, TCP sits at its least window.
pub const WINDOW_PKTS_MIN: f64 = 4.0;

/// What the groups of `plan` need of the kernel, which has it.
pub fn sockets(plan: &Plan) -> Result<Vec<Sockets>, Failure> {
    let groups = needed(plan)?;
    has_congestion_controls(&groups)?;
    Ok(groups)
}

/// The same, whatever this kernel has.
pub(super) fn needed(plan: &Plan) -> Result<Vec<Sockets>, Failure> {
    let (described, own) = (described(plan)?, described(&with_own_presets(plan))?);
    let groups = plan.groups.iter().zip(described.iter().zip(&own));
    let groups: Vec<Sockets> =
        groups.map(|(group, (described, own))| of_group(group, described, own)).collect::<Result<_, _>>()?;
    let mut tcps = plan.groups.iter().zip(&groups).filter_map(|(group, needs)| Some((group, needs.tcp.as_ref()?)));
    if let Some((first, tcp)) = tcps.next() {
        for (group, other) in tcps {
            let same = [
                ("timestamps", tcp.timestamps == other.timestamps),
                ("restart_window", tcp.restarts == other.restarts),
            ];
            if let Some((key, _)) = same.iter().find(|(_, same)| !same) {
                let (group, first) = (&group.name, &first.name);
                let message = format!(
                    "flows.{group}.transport.{key}: engine live has one {key} for all flows, and {first} has another"
                );
                return Err(Failure::Refused(message));
            }
        }
    }
    windows(plan)?;
    Ok(groups)
}

/// What `group` needs, whose transport is `described` so, and so were it the kernel's `own` preset.
fn of_group(group: &Group, described: &Value, own: &Value) -> Result<Sockets, Failure> {
    let refuse = |key: &str, why: &str| Err(Failure::Refused(format!("flows.{}.{key}: engine live {why}", group.name)));
    let wrong = |key: &str, why: &str| refuse(&format!("transport.{key}"), why);
    let sockets = |tcp| Sockets { tcp, packet_bytes: group.transport.packet_bytes(), tos: group.class << 2 };
    if group.class > 63 {
        return refuse("class", "carries it as a DSCP, 0 to 63");
    }
    let tcp = match &group.transport {
        Protocol::Tcp(tcp) => tcp,
        Protocol::Udp(_) if group.transport.header_bytes() == UDP_HEADER_BYTES => return Ok(sockets(None)),
        Protocol::Udp(_) => return wrong("header", "has the kernel's UDP over IPv4, whose headers have 28B"),
        Protocol::Rtp(_) if group.transport.header_bytes() >= UDP_HEADER_BYTES + RTP_BYTES => return Ok(sockets(None)),
        Protocol::Rtp(_) => return wrong("header", "has RTP over the kernel's UDP, whose headers have 40B or more"),
        Protocol::Sctp(_) => return refuse("transport", "has the kernel's TCP and UDP, and RTP over it, not SCTP"),
    };
    let congestion = described["congestion"].as_str().unwrap_or_default();
    let Some((preset, congestion)) = OWN.into_iter().find(|(_, known)| *known == congestion) else {
        let why = format!(
            "has the kernel's reno, cubic and bbr, not {congestion}; take preset linux, linux-reno or linux-bbr"
        );
        return wrong("congestion", &why);
    };
    let keys = described.as_object().into_iter().flatten().filter(|(key, _)| !CARRIED.contains(&key.as_str()));
    let mut others = keys.filter(|(key, value)| **value != own[*key]).map(|(key, _)| key.trim_end_matches("_s"));
    if let Some(key) = others.next() {
        let more = match others.count() {
            0 => String::new(),
            n => format!(" (nor {n} more that are set)"),
        };
        return wrong(key, &format!("runs the kernel's own TCP, which has no such choice{more}; take preset {preset}"));
    }
    let header = if tcp.timestamps { 52 } else { 40 };
    if tcp.header_bytes != header || tcp.ack_bytes != header {
        let key = if tcp.header_bytes != header { "header" } else { "ack" };
        let stamps = if tcp.timestamps { "with" } else { "without" };
        return wrong(
            key,
            &format!("has the kernel's TCP over IPv4 {stamps} timestamps, whose headers have {header}B"),
        );
    }
    let segment = tcp.packet_bytes.saturating_sub(40);
    if !SEGMENT_BYTES.contains(&segment) {
        return wrong("packet", "has segments of 128B to 32807B");
    }
    let own_min_rto = Span::from_millis(200);
    Ok(sockets(Some(Tcp {
        congestion,
        ecn: tcp.ecn,
        pacing: tcp.pacing && congestion != "bbr",
        initial_window: tcp.initial_window,
        min_rto_ms: (tcp.min_rto != own_min_rto).then(|| (tcp.min_rto.as_nanos() / 1_000_000).max(1) as u32),
        timestamps: tcp.timestamps,
        restarts: tcp.restart_window.is_some(),
        receive_window_bytes: (described["receive_window"] != own["receive_window"]).then(|| {
            let payload = u32::from(tcp.packet_bytes - tcp.header_bytes);
            tcp.receive_window.saturating_mul(payload).min(WINDOW_BYTES_MAX)
        }),
    })))
}

/// The transports of `plan`'s groups as its JSON has them.
fn described(plan: &Plan) -> Result<Vec<Value>, Failure> {
    let json = plan.to_json().or_refuse(|| plan.scenario.clone())?;
    let groups = json["groups"].as_array().into_iter().flatten();
    Ok(groups.map(|group| group["transport"].clone()).collect())
}

/// `plan` with the kernel's own preset in the place of each TCP of the same congestion control.
fn with_own_presets(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for group in &mut plan.groups {
        let Protocol::Tcp(tcp) = &group.transport else { continue };
        let same = |(name, make): &(&str, fn() -> Protocol)| match make() {
            Protocol::Tcp(own) if name.starts_with("linux") && own.congestion == tcp.congestion => {
                Some(Protocol::Tcp(own))
            }
            _ => None,
        };
        if let Some(own) = PRESETS.iter().find_map(same) {
            group.transport = own;
        }
    }
    plan
}

/// Refuses a recorded link on which the TCP flows that cross it would have less room than [`WINDOW_PKTS_MIN`] each:
/// that of the round trip and of the queue that is aimed at.
fn windows(plan: &Plan) -> Result<(), Failure> {
    for (number, link) in (0u32..).zip(&plan.links).filter(|(_, link)| link.record) {
        let endless = |flow: &&aqumen_scenario::Flow| {
            let group = &plan.groups[flow.group as usize];
            flow.path.contains(&number)
                && flow.transfer.is_none()
                && group.transport.tcp().is_some()
                && group.traffic == Traffic::Bulk
        };
        let flows: Vec<_> = plan.flows.iter().filter(endless).collect();
        if flows.is_empty() {
            continue;
        }
        let n = flows.len() as f64;
        let delay_s = |link: &u32| plan.links[*link as usize].delay.as_secs_f64();
        let round_trip =
            |flow: &aqumen_scenario::Flow| flow.path.iter().chain(&flow.return_path).map(delay_s).sum::<f64>();
        let mean_rtt_s = flows.iter().map(|flow| round_trip(flow)).sum::<f64>() / n;
        let bytes =
            flows.iter().map(|flow| f64::from(plan.groups[flow.group as usize].transport.packet_bytes())).sum::<f64>()
                / n;
        let target = link.target_pkts.unwrap_or(plan.nominal.target_pkts);
        let pkts = link.rates[0].1.as_bps() as f64 / 8.0 / bytes * mean_rtt_s + target;
        if !have_windows(pkts, n) {
            return Err(Failure::Refused(format!(
                "link {}: {n} flows share {pkts:.0} packets of round trip and target, {:.1} each; the kernel's TCP is not regulated below \
                 {WINDOW_PKTS_MIN}: take fewer flows, a higher rate, a longer delay or a longer target",
                link.name,
                pkts / n
            )));
        }
    }
    Ok(())
}

/// Whether so many flows that share so many packets have windows that can be regulated.
fn have_windows(pkts: f64, flows: f64) -> bool {
    pkts / flows >= WINDOW_PKTS_MIN
}

/// Refuses a congestion control that this kernel lacks.
fn has_congestion_controls(groups: &[Sockets]) -> Result<(), Failure> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP))
        .or_refuse(|| "cannot open a socket".into())?;
    for tcp in groups.iter().filter_map(|group| group.tcp.as_ref()) {
        let name = tcp.congestion;
        sockopt::set_tcp_congestion(&socket, name).map_err(|error| {
            let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
            let option = format!("CONFIG_TCP_CONG_{}", name.to_uppercase());
            Failure::Refused(format!(
                "congestion control {name}: {error}; this kernel has {} (kernel option {option})",
                known.split_whitespace().collect::<Vec<_>>().join(", ")
            ))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_scenario::Scenario;

    fn plan(transport: &str, more: &str) -> Plan {
        let text = format!(
            "name = \"one\"\nduration = \"1s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"20Mbit\", delay = \"20ms\", buffer = \"100pkt\" }}\n\
             access = {{ rate = \"1Gbit\", delay = \"1ms\" }}\n\
             [[flows]]\nname = \"ftp\"\ntransport = {transport}\n{more}"
        );
        Scenario::parse(&text, "one").unwrap().plan(1, None).unwrap()
    }

    /// The line with which the kernel refuses a transport.
    fn refusal(transport: &str, more: &str) -> String {
        needed(&plan(transport, more)).unwrap_err().to_string()
    }

    #[test]
    fn the_kernels_own_presets_and_what_it_can_set_are_taken() {
        let taken = |transport: &str| needed(&plan(transport, "")).unwrap().remove(0).tcp.unwrap();
        assert_eq!(taken("\"linux\"").congestion, "cubic");
        let reno = taken("{ preset = \"linux-reno\", ecn = false, initial_window = \"3pkt\", min_rto = \"50ms\" }");
        assert_eq!((reno.congestion, reno.ecn, reno.initial_window, reno.min_rto_ms), ("reno", false, 3, Some(50)));
        assert!(!taken("\"linux-bbr\"").ecn);
        // 20 segments of 1500 - 52 bytes.
        let narrow = taken("{ preset = \"linux\", receive_window = \"20pkt\" }");
        assert_eq!((narrow.receive_window_bytes, reno.receive_window_bytes), (Some(28_960), None));
    }

    #[test]
    fn what_the_kernel_cannot_do_is_refused_by_name() {
        for (transport, key, why) in [
            ("\"ns2\"", "ack_marks", "preset linux-reno"),
            ("\"dctcp\"", "congestion", "not dctcp"),
            ("\"vegas\"", "congestion", "not vegas"),
            ("{ preset = \"linux\", rto_tick = \"10ms\" }", "rto_tick", "no such choice"),
            ("{ preset = \"linux\", ack = \"40B\" }", "ack", "52B"),
            ("{ preset = \"linux\", delayed_ack = \"none\" }", "delayed_ack", "no such choice"),
            ("\"sctp\"", "transport", "SCTP"),
            ("{ preset = \"rtp\", header = \"28B\" }", "header", "40B or more"),
            ("{ preset = \"udp\", header = \"8B\" }", "header", "28"),
        ] {
            let line = refusal(
                transport,
                if transport.contains("udp") { "traffic = { kind = \"cbr\", rate = \"1Mbit\" }" } else { "" },
            );
            assert!(line.starts_with("flows.ftp.") && line.contains(key) && line.contains(why), "{line}");
        }
    }

    #[test]
    fn windows_below_four_packets_are_refused() {
        // 20 Mbit/s, 44 ms, 1500 B: 73.3 packets, and a target of 7. 20 flows have 4.02 each, 21 have 3.83.
        let flows = |n: u32| format!("count = {n}\n[nominal]\ntarget = \"7pkt\"\n");
        assert!(needed(&plan("\"linux\"", &flows(20))).is_ok());
        let line = refusal("\"linux\"", &flows(21));
        assert!(line.contains("bottleneck") && line.contains("3.8 each"), "{line}");
    }

    #[test]
    fn what_sockets_are_told_follows_from_the_group() {
        let sockets = |transport: &str, more: &str| needed(&plan(transport, more)).unwrap().remove(0);
        // Expedited forwarding is DSCP 46, which stands above the two bits of ECN.
        let voice = sockets("{ preset = \"linux\", packet = \"1000B\" }", "class = 46\n");
        assert_eq!((voice.tos, voice.packet_bytes), (46 << 2, 1000));
        let datagrams = sockets("\"udp\"", "class = 63\ntraffic = { kind = \"cbr\", rate = \"1Mbit\" }\n");
        assert_eq!((datagrams.tos, datagrams.tcp), (63 << 2, None));
        let tcp = |transport: &str| sockets(transport, "").tcp.unwrap();
        let usual = tcp("\"linux\"");
        assert_eq!((usual.min_rto_ms, usual.receive_window_bytes, usual.initial_window), (None, None, 10));
        assert!(usual.ecn && !usual.pacing && usual.timestamps && usual.restarts, "{usual:?}");
        // BBR paces by itself; of others the kernel is asked to.
        assert!(!tcp("\"linux-bbr\"").pacing && tcp("{ preset = \"linux-reno\", pacing = true }").pacing);
        assert!(!tcp("{ preset = \"linux\", restart_window = \"none\" }").restarts);
        assert_eq!(tcp("{ preset = \"linux\", min_rto = \"100us\" }").min_rto_ms, Some(1), "the kernel's least");
        // Without timestamps headers have 40 bytes, and segments 12 more of data: 20 of 1460.
        let bare = "timestamps = false, header = \"40B\", ack = \"40B\"";
        let bare = tcp(&format!("{{ preset = \"linux\", {bare}, receive_window = \"20pkt\" }}"));
        assert_eq!((bare.timestamps, bare.receive_window_bytes), (false, Some(29_200)));
        // No TCP can offer more than 2^30 bytes.
        let wide = tcp("{ preset = \"linux\", receive_window = \"900000pkt\" }");
        assert_eq!(wide.receive_window_bytes, Some(1 << 30));
    }

    /// What the flows of a transport need, however many windows there is room for.
    fn of_preset(transport: &str) -> Result<Sockets, Failure> {
        let plan = plan(transport, "");
        of_group(&plan.groups[0], &described(&plan)?[0], &described(&with_own_presets(&plan))?[0])
    }

    #[test]
    fn what_just_fits_into_the_kernel_is_taken_and_what_does_not_is_refused() {
        // Segments of 88 to 32 767 bytes, behind 40 bytes of headers.
        for (packet, fits) in [("127B", false), ("128B", true), ("32807B", true), ("32808B", false)] {
            let transport = format!("{{ preset = \"linux\", packet = \"{packet}\" }}");
            let told = of_preset(&transport);
            assert_eq!(told.is_ok(), fits, "{packet}: {told:?}");
            assert!(
                fits || told.unwrap_err().to_string().contains("flows.ftp.transport.packet: engine live has segments")
            );
        }
        let line = refusal("\"linux\"", "class = 64\n");
        assert_eq!(line, "flows.ftp.class: engine live carries it as a DSCP, 0 to 63");
        // RTP over UDP has 28 and 12 bytes of headers at least.
        let rtp = |header: &str| needed(&plan(&format!("{{ preset = \"rtp\", header = \"{header}\" }}"), ""));
        assert!(rtp("39B").is_err() && rtp("40B").is_ok() && rtp("52B").is_ok());
        // Either header may be the one that is wrong, and how long it is to be follows from timestamps.
        for (settings, key, why) in [
            ("header = \"40B\"", "header", "with timestamps, whose headers have 52B"),
            ("ack = \"40B\"", "ack", "with timestamps, whose headers have 52B"),
            ("timestamps = false, header = \"40B\"", "ack", "without timestamps, whose headers have 40B"),
        ] {
            let line = refusal(&format!("{{ preset = \"linux\", {settings} }}"), "");
            assert!(line.starts_with(&format!("flows.ftp.transport.{key}: ")) && line.ends_with(why), "{line}");
        }
        // How many settings the kernel lacks is told.
        let one = refusal("{ preset = \"linux\", rto_tick = \"10ms\" }", "");
        assert!(one.ends_with("which has no such choice; take preset linux"), "{one}");
        let three = "rto_tick = \"10ms\", delayed_ack = \"none\", limited_transmit = false";
        let three = refusal(&format!("{{ preset = \"linux-reno\", {three} }}"), "");
        assert!(
            three.ends_with("which has no such choice (nor 2 more that are set); take preset linux-reno"),
            "{three}"
        );
    }

    #[test]
    fn what_the_kernel_has_once_is_the_same_for_all_flows() {
        let other = |transport: &str| {
            let more = format!("[[flows]]\nname = \"web\"\ntransport = {transport}\n");
            needed(&plan("\"linux\"", &more)).map(|all| all.len()).map_err(|failure| failure.to_string())
        };
        assert_eq!(other("\"linux-reno\""), Ok(2));
        let line = other("{ preset = \"linux\", timestamps = false, header = \"40B\", ack = \"40B\" }").unwrap_err();
        let why = "engine live has one timestamps for all flows, and ftp has another";
        assert_eq!(line, format!("flows.web.transport.timestamps: {why}"));
        let line = other("{ preset = \"linux\", restart_window = \"none\" }").unwrap_err();
        assert!(line.starts_with("flows.web.transport.restart_window: "), "{line}");
    }

    #[test]
    fn windows_of_four_packets_can_be_regulated() {
        assert!(have_windows(160.0, 40.0) && !have_windows(159.0, 40.0) && have_windows(161.0, 40.0));
    }

    #[test]
    fn windows_are_those_of_endless_flows_by_their_own_way_and_packets() {
        // 20 Mbit/s and 100 ms: 166.7 packets of 1500 bytes and a target of 7 are 4.04 for each of 43 flows, 3.95 for
        // each of 44.
        let long = |n: u32, more: &str| {
            let text = format!("count = {n}\nrtt = \"100ms\"\n{more}[nominal]\ntarget = \"7pkt\"\n");
            needed(&plan("\"linux\"", &text)).is_ok()
        };
        assert!(long(43, "") && !long(44, ""));
        // Those that have an end, that ask, or that are datagrams take no window.
        for other in ["transfer = \"1MB\"", "traffic = { kind = \"transfers\", size = \"10kB\", think = \"1s\" }"] {
            assert!(
                long(43, &format!("[[flows]]\nname = \"more\"\ncount = 20\ntransport = \"linux\"\n{other}\n")),
                "{other}"
            );
        }
        let calls = "transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1kbit\" }";
        assert!(long(43, &format!("[[flows]]\nname = \"more\"\ncount = 20\n{calls}\n")));
        // 20 of 100 ms and 20 of 44 ms have 72 ms in the mean, 120 packets: 3.2 each.
        let mixed = |n: u32| {
            let short = format!("[[flows]]\nname = \"more\"\ncount = {n}\nrtt = \"44ms\"\ntransport = \"linux\"\n");
            needed(&plan("\"linux\"", &format!("count = {n}\nrtt = \"100ms\"\n{short}[nominal]\ntarget = \"8pkt\"\n")))
        };
        // 128 packets are 4.3 for each of 30 flows, 3.8 for each of 34.
        assert!(mixed(15).is_ok());
        let line = mixed(17).unwrap_err().to_string();
        assert!(
            line.starts_with("link bottleneck: 34 flows share 128 packets of round trip and target, 3.8 each"),
            "{line}"
        );
        // Packets of 500 and 1500 bytes have 1000 in the mean.
        let sizes = |n: u32| {
            let small = "transport = { preset = \"linux\", packet = \"500B\" }";
            let small = format!("[[flows]]\nname = \"more\"\ncount = {n}\nrtt = \"60ms\"\n{small}\n");
            needed(&plan("\"linux\"", &format!("count = {n}\nrtt = \"60ms\"\n{small}[nominal]\ntarget = \"10pkt\"\n")))
        };
        // 20 Mbit/s x 60 ms are 150 of them, and 10: 4.2 for each of 38 flows, 3.8 for each of 42.
        assert!(sizes(19).is_ok());
        let line = sizes(21).unwrap_err().to_string();
        assert!(line.contains("42 flows share 160 packets of round trip and target, 3.8 each"), "{line}");
    }

    #[test]
    fn a_congestion_control_that_this_kernel_lacks_is_named_with_those_that_it_has() {
        let tcp = Tcp { congestion: "nonesuch", ..needed(&plan("\"linux\"", "")).unwrap().remove(0).tcp.unwrap() };
        let group = Sockets { tcp: Some(tcp), packet_bytes: 1500, tos: 0 };
        let line = has_congestion_controls(&[group]).unwrap_err().to_string();
        assert!(line.starts_with("congestion control nonesuch: ") && line.contains("reno"), "{line}");
        assert!(line.ends_with("(kernel option CONFIG_TCP_CONG_NONESUCH)"), "{line}");
    }
}
