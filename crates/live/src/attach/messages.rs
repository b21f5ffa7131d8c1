//! Messages of `attach`: the dry run, the line at the attachment, and the status.

use std::fmt::Write as _;
use std::net::SocketAddr;

use aqumen_aqm::{Aqm, Network, Value};

use super::design::target_s;
use super::marker::Hook;
use super::options::{Options, is_self_contained};
use super::shaper::Shaper;
use crate::netlink::tc::Device;
use crate::shorten;
use crate::telemetry::{SCHEMA, ShaperStatus, Status};

/// Text of `--dry-run`.
pub(super) fn dry_run(
    options: &Options,
    device: &Device,
    shaper: &Shaper,
    network: &Network,
    aqm: &impl Aqm,
) -> String {
    let mut text = String::new();
    let name = &device.name;
    match &shaper.own_bucket {
        Some(bucket) => {
            let overhead = if bucket.overhead > 0 { format!(" overhead {}", bucket.overhead) } else { String::new() };
            let _ = writeln!(
                text,
                "shaper: tc qdisc replace dev {name} root handle {} tbf rate {}bit burst {}b limit {}b{overhead}, removed at the end",
                shaper.handle,
                shaper.rate.as_bps(),
                bucket.burst,
                bucket.limit
            );
        }
        None => {
            let _ = writeln!(
                text,
                "shaper: {} {} of {name}, {} bit/s, buffer of {:.0} packets; unchanged",
                shaper.kind,
                shaper.handle,
                shaper.rate.as_bps(),
                network.buffer_pkts
            );
        }
    }
    let hook = match options.via {
        None => "a TCX link, or a filter of clsact before Linux 6.6",
        Some(Hook::Tcx) => "a TCX link",
        Some(Hook::Clsact) => "a filter of clsact",
    };
    let _ =
        writeln!(text, "marker: at the egress of {name} by {hook}; non-IP packets and neighbour discovery are exempt");
    if let Some(why) = shared_marker_warning(options, shaper) {
        let _ = writeln!(text, "warning: {why}");
    }
    let design = if is_self_contained(&options.aqm) {
        format!(
            ": measures rate, flows and round trip (until the first handshake {} s), and chooses its target; signals \
             are added up flow by flow in the marker",
            network.base_rtt_s
        )
    } else {
        format!(" for {:.0} flows, RTT {} s, target {}", network.flows, network.base_rtt_s, target(network))
    };
    let _ = writeln!(text, "aqm: {}{design}", options.aqm.label);
    for (name, value) in params(aqm) {
        let _ = writeln!(text, "  {name} = {value}");
    }
    text
}

/// Line that is printed after the attachment.
pub(super) fn greeting(
    options: &Options,
    device: &Device,
    shaper: &Shaper,
    network: &Network,
    via: Hook,
    page: Option<SocketAddr>,
) -> String {
    let mut text = format!("{}: {}", device.name, description(options, shaper, network, via));
    if let Some(page) = page {
        let _ = write!(text, "; live page http://{page}/");
    }
    text
}

/// Description of an attachment: AQM, shaper, target and hook.
pub(super) fn description(options: &Options, shaper: &Shaper, network: &Network, via: Hook) -> String {
    let target = if is_self_contained(&options.aqm) { "of its own".into() } else { target(network) };
    format!(
        "{} above {} {} ({:.2} Mbit/s), target {target}, marker by {}",
        shorten(&options.aqm.label),
        shaper.kind,
        shaper.handle,
        shaper.rate.as_bps() as f64 / 1e6,
        hook_name(via)
    )
}

fn target(network: &Network) -> String {
    format!("{:.1} packets ({:.1} ms)", network.target_pkts, 1e3 * target_s(network))
}

/// Warning that traffic of other classes is regulated too, if it is.
pub(super) fn shared_marker_warning(options: &Options, shaper: &Shaper) -> Option<String> {
    if shaper.other_leaves.is_empty() || !options.only.is_empty() {
        return None;
    }
    let others: Vec<String> = shaper.other_leaves.iter().map(ToString::to_string).collect();
    Some(format!(
        "the marker signals the traffic of all classes, also of {}, for the queue of {}: select the packets of {} by --only mark=, dscp= or port=",
        others.join(", "),
        shaper.handle,
        shaper.handle
    ))
}

/// Status at the attachment.
pub(super) fn status(
    options: &Options,
    device: &Device,
    shaper: &Shaper,
    network: &Network,
    aqm: &impl Aqm,
    via: Hook,
    page: Option<SocketAddr>,
) -> Status {
    Status {
        schema: SCHEMA,
        aqumen: env!("CARGO_PKG_VERSION"),
        device: device.name.clone(),
        pid: std::process::id(),
        kernel: format!("Linux {}", rustix::system::uname().release().to_string_lossy()),
        aqm: options.aqm.label.clone(),
        params: params(aqm),
        via: hook_name(via),
        shaper: ShaperStatus {
            kind: shaper.kind.clone(),
            handle: shaper.handle.to_string(),
            rate_bps: shaper.rate.as_bps(),
            ours: shaper.own_bucket.is_some(),
        },
        target_pkts: network.target_pkts,
        target_s: target_s(network),
        regulating: true,
        page: page.map(|page| format!("http://{page}/")),
        ..Status::default()
    }
}

fn params(aqm: &impl Aqm) -> serde_json::Map<String, serde_json::Value> {
    let mut params = serde_json::Map::new();
    aqm.settings(&mut |name, value| {
        let value = match value {
            Value::Number(number) => number.into(),
            Value::Flag(flag) => flag.into(),
            Value::Choice(word) => word.into(),
        };
        params.insert(name.into(), value);
    });
    params
}

fn hook_name(via: Hook) -> &'static str {
    match via {
        Hook::Tcx => "tcx",
        Hook::Clsact => "clsact",
    }
}

#[cfg(test)]
mod tests {

    use super::super::design;
    use super::super::sampled;
    use super::*;
    use crate::netlink::tc::{Bucket, Handle};

    /// Calls `work` with the configuration of `line` over 12 Mbit/s, in our own bucket or in an existing class.
    fn with<T>(line: &str, bucket: Option<Bucket>, work: impl FnOnce(&Options, &Device, &Shaper, &Network) -> T) -> T {
        let options = Options::from_line(line);
        let (device, leaf) = super::super::shaper::example(12, 400);
        let shaper = if bucket.is_some() {
            Shaper { kind: "tbf".into(), handle: Handle::new(0xa9e, 0), is_class: false, own_bucket: bucket, ..leaf }
        } else {
            leaf
        };
        let network = design::network(&options, &device, &shaper).unwrap();
        work(&options, &device, &shaper, &network)
    }

    fn dry_run_lines(line: &str, bucket: Option<Bucket>) -> Vec<String> {
        let text = with(line, bucket, |options, device, shaper, network| {
            dry_run(options, device, shaper, network, &sampled::build(&options.aqm, network).unwrap())
        });
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_dry_run_shows_bucket_marker_and_aqm() {
        let bucket = |overhead| Bucket { rate: 1_500_000, burst: 15_000, limit: 300_000, overhead };
        let line = "eth0 --aqm fixed:p=0.5 --target 50ms --flows 20 --via clsact";
        let lines = dry_run_lines(line, Some(bucket(26)));
        let tbf = "shaper: tc qdisc replace dev eth0 root handle a9e: tbf rate 12000000bit burst 15000b limit 300000b";
        assert_eq!(lines[0], format!("{tbf} overhead 26, removed at the end"));
        assert_eq!(dry_run_lines(line, Some(bucket(0)))[0], format!("{tbf}, removed at the end"));
        let exempt = "non-IP packets and neighbour discovery are exempt";
        assert_eq!(lines[1], format!("marker: at the egress of eth0 by a filter of clsact; {exempt}"));
        // 1000 packets a second: 50 in 50 ms.
        assert_eq!(lines[2], "aqm: fixed:p=0.5 for 20 flows, RTT 0.1 s, target 50.0 packets (50.0 ms)");
        assert!(lines.contains(&"  ecn = true".to_owned()), "{lines:?}");
    }

    #[test]
    fn a_dry_run_says_that_an_existing_shaper_stays() {
        let lines = dry_run_lines("eth0 --aqm pi:ecn=false --via tcx", None);
        assert_eq!(lines[0], "shaper: htb 1:10 of eth0, 12000000 bit/s, buffer of 400 packets; unchanged");
        assert!(lines[1].starts_with("marker: at the egress of eth0 by a TCX link; "), "{}", lines[1]);
        assert!(lines.contains(&"  ecn = false".to_owned()), "{lines:?}");
        let either = &dry_run_lines("eth0 --aqm pi", None)[1];
        assert!(either.contains("by a TCX link, or a filter of clsact before Linux 6.6; "), "{either}");
    }

    #[test]
    fn traffic_of_other_classes_causes_a_warning_unless_excluded() {
        let warning = |line: &str, others: &[&str]| {
            with(line, None, |options, _, shaper, _| {
                let others = others.iter().map(|other| Handle::parse(other).unwrap()).collect();
                shared_marker_warning(options, &Shaper { other_leaves: others, ..shaper.clone() })
            })
        };
        let text = warning("eth0 --aqm pi --leaf 1:10", &["1:20", "1:30"]).unwrap();
        assert!(
            text.contains("also of 1:20, 1:30, for the queue of 1:10: select the packets of 1:10 by --only"),
            "{text}"
        );
        assert_eq!(warning("eth0 --aqm pi --leaf 1:10 --only mark=1", &["1:20"]), None);
        assert_eq!(warning("eth0 --aqm pi --leaf 1:10", &[]), None);
    }

    #[test]
    fn the_first_line_names_shaper_target_hook_and_page() {
        let greeting_for = |page: Option<&str>, via| {
            let page = page.map(|page| page.parse().unwrap());
            with("eth0 --aqm pi --target 50ms", None, |options, device, shaper, network| {
                greeting(options, device, shaper, network, via, page)
            })
        };
        let start = "eth0: pi above htb 1:10 (12.00 Mbit/s), target 50.0 packets (50.0 ms), marker by";
        assert_eq!(greeting_for(None, Hook::Tcx), format!("{start} tcx"));
        let shown = greeting_for(Some("127.0.0.1:9811"), Hook::Clsact);
        assert_eq!(shown, format!("{start} clsact; live page http://127.0.0.1:9811/"));
    }

    #[test]
    fn a_status_names_the_configuration() {
        let result = with("eth0 --aqm pi:a=0.25,b=0.125 --target 50ms", None, |options, device, shaper, network| {
            let aqm = sampled::build(&options.aqm, network).unwrap();
            status(options, device, shaper, network, &aqm, Hook::Clsact, Some("127.0.0.1:80".parse().unwrap()))
        });
        assert_eq!((result.schema, result.device.as_str(), result.aqm.as_str()), (SCHEMA, "eth0", "pi:a=0.25,b=0.125"));
        assert_eq!((result.pid, result.via, result.regulating), (std::process::id(), "clsact", true));
        assert_eq!((result.target_pkts, result.target_s), (50.0, 0.05));
        assert_eq!(result.page.as_deref(), Some("http://127.0.0.1:80/"));
        assert_eq!((result.shaper.kind.as_str(), result.shaper.handle.as_str()), ("htb", "1:10"));
        assert_eq!((result.shaper.rate_bps, result.shaper.ours), (12_000_000, false));
        assert_eq!(result.params["a"], 0.25);
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(result.kernel, format!("Linux {}", release.trim()));
        assert_eq!(result.aqumen, env!("CARGO_PKG_VERSION"));
    }
}
