//! Requirements of a plan on the kernel. A plan that it does not support is refused by name, before anything is set up.

use std::fs;

use aqumen_scenario::{Group, PRESETS, Plan, Protocol, Traffic};
use aqumen_units::Span;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with, sockopt};
use serde_json::Value;

use super::ip::UDP_HEADER_BYTES;
use crate::{Context, Error};

/// Socket settings of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SocketSettings {
    /// `None`: datagrams.
    pub(crate) tcp: Option<TcpSettings>,
    pub(crate) packet_bytes: u16,
    /// Type-of-service byte: the group's class as DSCP.
    pub(crate) tos: u8,
}

/// Settings of the kernel's TCP.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TcpSettings {
    /// Name of the congestion control, as the kernel has it.
    pub(crate) congestion: &'static str,
    /// Whether connections negotiate ECN.
    pub(crate) ecn: bool,
    /// Whether TCP paces, although its congestion control does not.
    pub(crate) pacing: bool,
    /// Initial window, segments.
    pub(crate) initial_window: u32,
    /// Minimum retransmission timeout, milliseconds, unless the kernel's default.
    pub(crate) min_rto_ms: Option<u32>,
    /// Whether segments carry timestamps.
    pub(crate) timestamps: bool,
    /// Whether the window restarts after an idle period.
    pub(crate) restarts: bool,
    /// Highest advertised window, bytes, unless the kernel's default.
    pub(crate) receive_window_bytes: Option<u32>,
}

/// Presets of the kernel's own TCP, with their congestion controls.
const KERNEL_PRESETS: [(&str, &str); 3] = [("linux", "cubic"), ("linux-reno", "reno"), ("linux-bbr", "bbr")];

/// TCP settings that the kernel can apply. Any other difference from the preset is refused.
const SUPPORTED: [&str; 11] = [
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

/// Header of RTP (RFC 3550, section 5.1).
const RTP_BYTES: u16 = 12;

/// Segments that the kernel accepts (`TCP_MAXSEG`).
const SEGMENT_BYTES: std::ops::RangeInclusive<u16> = 88..=32_767;

/// The kernel's minimum retransmission timeout (`TCP_RTO_MIN`).
const MIN_RTO: Span = Span::from_millis(200);

/// Largest window of TCP (RFC 7323, section 2.2).
const WINDOW_BYTES_MAX: u32 = 1 << 30;

/// Window in packets below which TCP sits at its minimum, and marks or losses do not regulate it.
pub(crate) const WINDOW_PKTS_MIN: f64 = 4.0;

/// Socket settings of the groups of `plan`, which this kernel supports.
pub(crate) fn sockets(plan: &Plan) -> Result<Vec<SocketSettings>, Error> {
    let groups = requirements(plan)?;
    check_congestion_controls(&groups)?;
    Ok(groups)
}

/// Socket settings of the groups of `plan`, whatever congestion controls this kernel has.
pub(super) fn requirements(plan: &Plan) -> Result<Vec<SocketSettings>, Error> {
    let (described, presets) = (transports_json(plan)?, transports_json(&with_kernel_presets(plan))?);
    let groups = plan.groups.iter().zip(described.iter().zip(&presets));
    let groups: Vec<SocketSettings> = groups
        .map(|(group, (described, preset))| group_settings(group, described, preset))
        .collect::<Result<_, _>>()?;
    let mut tcps =
        plan.groups.iter().zip(&groups).filter_map(|(group, settings)| Some((group, settings.tcp.as_ref()?)));
    if let Some((first, tcp)) = tcps.next() {
        for (group, other) in tcps {
            let same = [
                ("timestamps", tcp.timestamps == other.timestamps),
                ("restart_window", tcp.restarts == other.restarts),
            ];
            if let Some((key, _)) = same.iter().find(|(_, same)| !same) {
                let (group, first) = (&group.name, &first.name);
                let message = format!(
                    "flows.{group}.transport.{key}: engine live has one {key} for all flows, and that of {first} differs"
                );
                return Err(Error::Setup(message));
            }
        }
    }
    check_windows(plan)?;
    Ok(groups)
}

/// Socket settings of `group`. `described`: its transport as JSON; `preset`: that of the kernel's preset.
fn group_settings(group: &Group, described: &Value, preset: &Value) -> Result<SocketSettings, Error> {
    let error = |key: &str, why: &str| Err(Error::Setup(format!("flows.{}.{key}: engine live {why}", group.name)));
    let transport_error = |key: &str, why: &str| error(&format!("transport.{key}"), why);
    let sockets = |tcp| SocketSettings { tcp, packet_bytes: group.transport.packet_bytes(), tos: group.class << 2 };
    if group.class > 63 {
        return error("class", "carries it as a DSCP, 0 to 63");
    }
    let tcp = match &group.transport {
        Protocol::Tcp(tcp) => tcp,
        Protocol::Udp(_) if group.transport.header_bytes() == UDP_HEADER_BYTES => return Ok(sockets(None)),
        Protocol::Udp(_) => return transport_error("header", "uses the kernel's UDP over IPv4, with headers of 28B"),
        Protocol::Rtp(_) if group.transport.header_bytes() >= UDP_HEADER_BYTES + RTP_BYTES => return Ok(sockets(None)),
        Protocol::Rtp(_) => {
            return transport_error("header", "uses RTP over the kernel's UDP, with headers of 40B or more");
        }
        Protocol::Sctp(_) => return error("transport", "supports TCP, UDP and RTP, not SCTP"),
    };
    let congestion = described["congestion"].as_str().unwrap_or_default();
    let Some((preset_name, congestion)) = KERNEL_PRESETS.into_iter().find(|(_, known)| *known == congestion) else {
        let why = format!(
            "supports the kernel's reno, cubic and bbr, not {congestion}; use preset linux, linux-reno or linux-bbr"
        );
        return transport_error("congestion", &why);
    };
    let keys = described.as_object().into_iter().flatten().filter(|(key, _)| !SUPPORTED.contains(&key.as_str()));
    let mut unsupported =
        keys.filter(|(key, value)| **value != preset[*key]).map(|(key, _)| key.trim_end_matches("_s"));
    if let Some(key) = unsupported.next() {
        let more = match unsupported.count() {
            0 => String::new(),
            n => format!(" (nor {n} more that are set)"),
        };
        return transport_error(
            key,
            &format!("uses the kernel's own TCP, which has no such setting{more}; use preset {preset_name}"),
        );
    }
    let header = if tcp.timestamps { 52 } else { 40 };
    if tcp.header_bytes != header || tcp.ack_bytes != header {
        let key = if tcp.header_bytes != header { "header" } else { "ack" };
        let stamps = if tcp.timestamps { "with" } else { "without" };
        return transport_error(
            key,
            &format!("uses the kernel's TCP over IPv4 {stamps} timestamps, with headers of {header}B"),
        );
    }
    let segment = tcp.packet_bytes.saturating_sub(40);
    if !SEGMENT_BYTES.contains(&segment) {
        return transport_error("packet", "supports packets of 128B to 32807B");
    }
    Ok(sockets(Some(TcpSettings {
        congestion,
        ecn: tcp.ecn,
        pacing: tcp.pacing && congestion != "bbr",
        initial_window: tcp.initial_window,
        min_rto_ms: (tcp.min_rto != MIN_RTO).then(|| (tcp.min_rto.as_nanos() / 1_000_000).max(1) as u32),
        timestamps: tcp.timestamps,
        restarts: tcp.restart_window.is_some(),
        receive_window_bytes: (described["receive_window"] != preset["receive_window"]).then(|| {
            let payload = u32::from(tcp.packet_bytes - tcp.header_bytes);
            tcp.receive_window.saturating_mul(payload).min(WINDOW_BYTES_MAX)
        }),
    })))
}

/// Transports of the groups of `plan`, as JSON.
fn transports_json(plan: &Plan) -> Result<Vec<Value>, Error> {
    let json = plan.to_json().context(|| plan.scenario.clone())?;
    let groups = json["groups"].as_array().into_iter().flatten();
    Ok(groups.map(|group| group["transport"].clone()).collect())
}

/// Copy of `plan` with each TCP replaced by the kernel's preset of the same congestion control.
fn with_kernel_presets(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for group in &mut plan.groups {
        let Protocol::Tcp(tcp) = &group.transport else { continue };
        let same = |(name, make): &(&str, fn() -> Protocol)| match make() {
            Protocol::Tcp(preset) if name.starts_with("linux") && preset.congestion == tcp.congestion => {
                Some(Protocol::Tcp(preset))
            }
            _ => None,
        };
        if let Some(preset) = PRESETS.iter().find_map(same) {
            group.transport = preset;
        }
    }
    plan
}

/// Refuses a recorded link where the TCP flows would have windows below [`WINDOW_PKTS_MIN`], from the bandwidth-delay
/// product and the target queue.
fn check_windows(plan: &Plan) -> Result<(), Error> {
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
        if !can_be_regulated(pkts, n) {
            return Err(Error::Setup(format!(
                "link {}: {n} flows share {pkts:.0} packets of round trip and target, {:.1} each; the kernel's TCP is not regulated below \
                 {WINDOW_PKTS_MIN}: use fewer flows, a higher rate, a longer delay or a longer target",
                link.name,
                pkts / n
            )));
        }
    }
    Ok(())
}

/// Whether `flows` that share `pkts` have windows that can be regulated.
fn can_be_regulated(pkts: f64, flows: f64) -> bool {
    pkts / flows >= WINDOW_PKTS_MIN
}

/// Refuses a congestion control that this kernel lacks.
fn check_congestion_controls(groups: &[SocketSettings]) -> Result<(), Error> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP))
        .context(|| "cannot open a socket".into())?;
    for tcp in groups.iter().filter_map(|group| group.tcp.as_ref()) {
        let name = tcp.congestion;
        sockopt::set_tcp_congestion(&socket, name).map_err(|error| {
            let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
            let option = format!("CONFIG_TCP_CONG_{}", name.to_uppercase());
            Error::Setup(format!(
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
    use crate::lab::dumbbell;

    fn plan(transport: &str, more: &str) -> Plan {
        let links = &[
            ("topology.bottleneck.rate", "20Mbit"),
            ("topology.bottleneck.buffer", "100pkt"),
            ("topology.access.rate", "1Gbit"),
            ("topology.access.delay", "1ms"),
        ];
        dumbbell(links, &format!("[[flows]]\nname = \"ftp\"\ntransport = {transport}\n{more}"))
    }

    /// The line with which the kernel refuses a transport.
    fn refusal(transport: &str, more: &str) -> String {
        requirements(&plan(transport, more)).unwrap_err().to_string()
    }

    #[test]
    fn the_kernels_presets_and_settings_are_accepted() {
        let settings = |transport: &str| requirements(&plan(transport, "")).unwrap().remove(0).tcp.unwrap();
        assert_eq!(settings("\"linux\"").congestion, "cubic");
        let reno = settings("{ preset = \"linux-reno\", ecn = false, initial_window = \"3pkt\", min_rto = \"50ms\" }");
        assert_eq!((reno.congestion, reno.ecn, reno.initial_window, reno.min_rto_ms), ("reno", false, 3, Some(50)));
        assert!(!settings("\"linux-bbr\"").ecn);
        // 20 segments of 1500 - 52 bytes.
        let narrow = settings("{ preset = \"linux\", receive_window = \"20pkt\" }");
        assert_eq!((narrow.receive_window_bytes, reno.receive_window_bytes), (Some(28_960), None));
    }

    #[test]
    fn unsupported_settings_are_refused_by_name() {
        for (transport, key, why) in [
            ("\"ns2\"", "ack_marks", "preset linux-reno"),
            ("\"dctcp\"", "congestion", "not dctcp"),
            ("\"vegas\"", "congestion", "not vegas"),
            ("{ preset = \"linux\", rto_tick = \"10ms\" }", "rto_tick", "no such setting"),
            ("{ preset = \"linux\", ack = \"40B\" }", "ack", "52B"),
            ("{ preset = \"linux\", delayed_ack = \"none\" }", "delayed_ack", "no such setting"),
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
        assert!(requirements(&plan("\"linux\"", &flows(20))).is_ok());
        let line = refusal("\"linux\"", &flows(21));
        assert!(line.contains("bottleneck") && line.contains("3.8 each"), "{line}");
    }

    #[test]
    fn socket_settings_follow_from_the_group() {
        let sockets = |transport: &str, more: &str| requirements(&plan(transport, more)).unwrap().remove(0);
        // Expedited forwarding is DSCP 46, which stands above the two bits of ECN.
        let voice = sockets("{ preset = \"linux\", packet = \"1000B\" }", "class = 46\n");
        assert_eq!((voice.tos, voice.packet_bytes), (46 << 2, 1000));
        let datagrams = sockets("\"udp\"", "class = 63\ntraffic = { kind = \"cbr\", rate = \"1Mbit\" }\n");
        assert_eq!((datagrams.tos, datagrams.tcp), (63 << 2, None));
        let tcp = |transport: &str| sockets(transport, "").tcp.unwrap();
        let usual = tcp("\"linux\"");
        assert_eq!((usual.min_rto_ms, usual.receive_window_bytes, usual.initial_window), (None, None, 10));
        assert!(usual.ecn && !usual.pacing && usual.timestamps && usual.restarts, "{usual:?}");
        // BBR paces by itself; other controls are paced by the kernel.
        assert!(!tcp("\"linux-bbr\"").pacing && tcp("{ preset = \"linux-reno\", pacing = true }").pacing);
        assert!(!tcp("{ preset = \"linux\", restart_window = \"none\" }").restarts);
        assert_eq!(tcp("{ preset = \"linux\", min_rto = \"100us\" }").min_rto_ms, Some(1), "the kernel's least");
        // Without timestamps headers have 40 bytes, and segments 12 more of data: 20 of 1460.
        let bare = "timestamps = false, header = \"40B\", ack = \"40B\"";
        let bare = tcp(&format!("{{ preset = \"linux\", {bare}, receive_window = \"20pkt\" }}"));
        assert_eq!((bare.timestamps, bare.receive_window_bytes), (false, Some(29_200)));
        // TCP cannot offer more than 2^30 bytes.
        let wide = tcp("{ preset = \"linux\", receive_window = \"900000pkt\" }");
        assert_eq!(wide.receive_window_bytes, Some(1 << 30));
    }

    /// Socket settings of a transport, without the check of windows.
    fn settings_of(transport: &str) -> Result<SocketSettings, Error> {
        let plan = plan(transport, "");
        group_settings(&plan.groups[0], &transports_json(&plan)?[0], &transports_json(&with_kernel_presets(&plan))?[0])
    }

    #[test]
    fn settings_at_the_kernels_limits_are_accepted_and_beyond_refused() {
        // Segments of 88 to 32 767 bytes, behind 40 bytes of headers.
        for (packet, fits) in [("127B", false), ("128B", true), ("32807B", true), ("32808B", false)] {
            let transport = format!("{{ preset = \"linux\", packet = \"{packet}\" }}");
            let result = settings_of(&transport);
            assert_eq!(result.is_ok(), fits, "{packet}: {result:?}");
            assert!(
                fits || result
                    .unwrap_err()
                    .to_string()
                    .contains("flows.ftp.transport.packet: engine live supports packets")
            );
        }
        let line = refusal("\"linux\"", "class = 64\n");
        assert_eq!(line, "flows.ftp.class: engine live carries it as a DSCP, 0 to 63");
        // RTP over UDP has 28 and 12 bytes of headers at least.
        let rtp = |header: &str| requirements(&plan(&format!("{{ preset = \"rtp\", header = \"{header}\" }}"), ""));
        assert!(rtp("39B").is_err() && rtp("40B").is_ok() && rtp("52B").is_ok());
        // Either header may be wrong, and its length depends on timestamps.
        for (settings, key, why) in [
            ("header = \"40B\"", "header", "with timestamps, with headers of 52B"),
            ("ack = \"40B\"", "ack", "with timestamps, with headers of 52B"),
            ("timestamps = false, header = \"40B\"", "ack", "without timestamps, with headers of 40B"),
        ] {
            let line = refusal(&format!("{{ preset = \"linux\", {settings} }}"), "");
            assert!(line.starts_with(&format!("flows.ftp.transport.{key}: ")) && line.ends_with(why), "{line}");
        }
        // The number of unsupported settings is named.
        let one = refusal("{ preset = \"linux\", rto_tick = \"10ms\" }", "");
        assert!(one.ends_with("which has no such setting; use preset linux"), "{one}");
        let three = "rto_tick = \"10ms\", delayed_ack = \"none\", limited_transmit = false";
        let three = refusal(&format!("{{ preset = \"linux-reno\", {three} }}"), "");
        assert!(
            three.ends_with("which has no such setting (nor 2 more that are set); use preset linux-reno"),
            "{three}"
        );
    }

    #[test]
    fn settings_of_the_whole_kernel_are_equal_for_all_flows() {
        let other = |transport: &str| {
            let more = format!("[[flows]]\nname = \"web\"\ntransport = {transport}\n");
            requirements(&plan("\"linux\"", &more)).map(|all| all.len()).map_err(|error| error.to_string())
        };
        assert_eq!(other("\"linux-reno\""), Ok(2));
        let line = other("{ preset = \"linux\", timestamps = false, header = \"40B\", ack = \"40B\" }").unwrap_err();
        let why = "engine live has one timestamps for all flows, and that of ftp differs";
        assert_eq!(line, format!("flows.web.transport.timestamps: {why}"));
        let line = other("{ preset = \"linux\", restart_window = \"none\" }").unwrap_err();
        assert!(line.starts_with("flows.web.transport.restart_window: "), "{line}");
    }

    #[test]
    fn windows_of_four_packets_can_be_regulated() {
        assert!(can_be_regulated(160.0, 40.0) && !can_be_regulated(159.0, 40.0) && can_be_regulated(161.0, 40.0));
    }

    #[test]
    fn windows_are_those_of_endless_flows_with_their_own_rtt_and_packets() {
        // 20 Mbit/s and 100 ms: 166.7 packets of 1500 bytes and a target of 7 are 4.04 for each of 43 flows, 3.95 for
        // each of 44.
        let long = |n: u32, more: &str| {
            let text = format!("count = {n}\nrtt = \"100ms\"\n{more}[nominal]\ntarget = \"7pkt\"\n");
            requirements(&plan("\"linux\"", &text)).is_ok()
        };
        assert!(long(43, "") && !long(44, ""));
        // Finite flows, requests and datagrams take no window.
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
            requirements(&plan(
                "\"linux\"",
                &format!("count = {n}\nrtt = \"100ms\"\n{short}[nominal]\ntarget = \"8pkt\"\n"),
            ))
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
            requirements(&plan(
                "\"linux\"",
                &format!("count = {n}\nrtt = \"60ms\"\n{small}[nominal]\ntarget = \"10pkt\"\n"),
            ))
        };
        // 20 Mbit/s x 60 ms are 150 of them, and 10: 4.2 for each of 38 flows, 3.8 for each of 42.
        assert!(sizes(19).is_ok());
        let line = sizes(21).unwrap_err().to_string();
        assert!(line.contains("42 flows share 160 packets of round trip and target, 3.8 each"), "{line}");
    }

    #[test]
    fn a_congestion_control_that_this_kernel_lacks_is_named_with_those_that_it_has() {
        let tcp = TcpSettings {
            congestion: "nonesuch",
            ..requirements(&plan("\"linux\"", "")).unwrap().remove(0).tcp.unwrap()
        };
        let group = SocketSettings { tcp: Some(tcp), packet_bytes: 1500, tos: 0 };
        let line = check_congestion_controls(&[group]).unwrap_err().to_string();
        assert!(line.starts_with("congestion control nonesuch: ") && line.contains("reno"), "{line}");
        assert!(line.ends_with("(kernel option CONFIG_TCP_CONG_NONESUCH)"), "{line}");
    }
}
