//! What `attach` says of itself: before (`--dry-run`), when it has attached, and as its status.

use std::fmt::Write as _;
use std::net::SocketAddr;

use aqumen_aqm::{Aqm, Network, Value};

use super::design::target_s;
use super::marker::Way;
use super::options::Options;
use super::shaper::Shaper;
use crate::netlink::tc::Device;
use crate::shown;
use crate::telemetry::{SCHEMA, Shaped, Status};

/// What `--dry-run` prints.
pub(super) fn plan(options: &Options, device: &Device, shaper: &Shaper, network: &Network, aqm: &impl Aqm) -> String {
    let mut text = String::new();
    let name = &device.name;
    match &shaper.ours {
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
                "shaper: {} {} of {name}, {} bit/s, room for {:.0} packets; it stays as it is",
                shaper.kind,
                shaper.handle,
                shaper.rate.as_bps(),
                network.buffer_pkts
            );
        }
    }
    let way = match options.via {
        None => "a TCX link, or a filter of clsact before Linux 6.6",
        Some(Way::Tcx) => "a TCX link",
        Some(Way::Clsact) => "a filter of clsact",
    };
    let _ = writeln!(text, "marker: at the egress of {name} by {way}; spares what is not IP and neighbour discovery");
    if let Some(why) = regulates_others(options, shaper) {
        let _ = writeln!(text, "warning: {why}");
    }
    let _ = writeln!(
        text,
        "aqm: {} for {:.0} flows, RTT {} s, target {:.1} packets ({:.1} ms)",
        options.aqm.label,
        network.flows,
        network.base_rtt_s,
        network.target_pkts,
        1e3 * target_s(network)
    );
    for (name, value) in params(aqm) {
        let _ = writeln!(text, "  {name} = {value}");
    }
    text
}

/// The line that says that it has attached.
pub(super) fn greeting(
    options: &Options,
    device: &Device,
    shaper: &Shaper,
    network: &Network,
    via: Way,
    page: Option<SocketAddr>,
) -> String {
    let mut text = format!("{}: {}", device.name, attached(options, shaper, network, via));
    if let Some(page) = page {
        let _ = write!(text, "; live page http://{page}/");
    }
    text
}

/// What is attached above which shaper.
pub(super) fn attached(options: &Options, shaper: &Shaper, network: &Network, via: Way) -> String {
    format!(
        "{} above {} {} ({:.2} Mbit/s), target {:.1} packets ({:.1} ms), marker by {}",
        shown(&options.aqm.label),
        shaper.kind,
        shaper.handle,
        shaper.rate.as_bps() as f64 / 1e6,
        network.target_pkts,
        1e3 * target_s(network),
        way_name(via)
    )
}

/// The warning that traffic of other classes is regulated too, if it is.
pub(super) fn regulates_others(options: &Options, shaper: &Shaper) -> Option<String> {
    if shaper.others.is_empty() || options.only.are_given() {
        return None;
    }
    let others: Vec<String> = shaper.others.iter().map(ToString::to_string).collect();
    Some(format!(
        "the marker signals the traffic of all classes, also of {}, for the queue of {}: say with --only mark=, dscp= or port= what {} carries",
        others.join(", "),
        shaper.handle,
        shaper.handle
    ))
}

/// Its status at the beginning.
pub(super) fn status(
    options: &Options,
    device: &Device,
    shaper: &Shaper,
    network: &Network,
    aqm: &impl Aqm,
    via: Way,
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
        via: way_name(via),
        shaper: Shaped {
            kind: shaper.kind.clone(),
            handle: shaper.handle.to_string(),
            rate_bps: shaper.rate.as_bps(),
            ours: shaper.ours.is_some(),
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

fn way_name(via: Way) -> &'static str {
    match via {
        Way::Tcx => "tcx",
        Way::Clsact => "clsact",
    }
}

#[cfg(test)]
mod tests {
    use aqumen_units::Rate;

    use super::super::design;
    use super::super::sampled;
    use super::*;
    use crate::netlink::tc::{Bucket, Handle};

    /// What is told of `line` over 12 Mbit/s, in a bucket of our own or in a class that is there.
    fn with<T>(line: &str, ours: Option<Bucket>, tell: impl FnOnce(&Options, &Device, &Shaper, &Network) -> T) -> T {
        let options = Options::of_line(line);
        let device = Device { index: 1, name: "eth0".into(), hardware: 1, mtu: 1486, queue_length: 1000 };
        let shaper = Shaper {
            kind: if ours.is_some() { "tbf" } else { "htb" }.into(),
            handle: if ours.is_some() { Handle::new(0xa9e, 0) } else { Handle::new(1, 0x10) },
            class: ours.is_none(),
            rate: Rate::from_bps(12_000_000),
            limit_bytes: None,
            limit_pkts: Some(400),
            ours,
            others: Vec::new(),
        };
        let network = design::network(&options, &device, &shaper).unwrap();
        tell(&options, &device, &shaper, &network)
    }

    fn planned(line: &str, ours: Option<Bucket>) -> Vec<String> {
        let text = with(line, ours, |options, device, shaper, network| {
            plan(options, device, shaper, network, &sampled::build(&options.aqm, network).unwrap())
        });
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_plan_is_the_command_for_a_bucket_of_our_own_the_marker_and_the_aqm() {
        let bucket = |overhead| Bucket { rate: 1_500_000, burst: 15_000, limit: 300_000, overhead };
        let line = "eth0 --aqm fixed:p=0.5 --target 50ms --flows 20 --via clsact";
        let lines = planned(line, Some(bucket(26)));
        let tbf = "shaper: tc qdisc replace dev eth0 root handle a9e: tbf rate 12000000bit burst 15000b limit 300000b";
        assert_eq!(lines[0], format!("{tbf} overhead 26, removed at the end"));
        assert_eq!(planned(line, Some(bucket(0)))[0], format!("{tbf}, removed at the end"));
        let spares = "spares what is not IP and neighbour discovery";
        assert_eq!(lines[1], format!("marker: at the egress of eth0 by a filter of clsact; {spares}"));
        // 1000 packets a second: 50 in 50 ms.
        assert_eq!(lines[2], "aqm: fixed:p=0.5 for 20 flows, RTT 0.1 s, target 50.0 packets (50.0 ms)");
        assert!(lines.contains(&"  ecn = true".to_owned()), "{lines:?}");
    }

    #[test]
    fn a_plan_says_of_a_shaper_that_is_there_that_it_stays() {
        let lines = planned("eth0 --aqm pi:ecn=false --via tcx", None);
        assert_eq!(lines[0], "shaper: htb 1:10 of eth0, 12000000 bit/s, room for 400 packets; it stays as it is");
        assert!(lines[1].starts_with("marker: at the egress of eth0 by a TCX link; "), "{}", lines[1]);
        assert!(lines.contains(&"  ecn = false".to_owned()), "{lines:?}");
        let either = &planned("eth0 --aqm pi", None)[1];
        assert!(either.contains("by a TCX link, or a filter of clsact before Linux 6.6; "), "{either}");
    }

    #[test]
    fn traffic_of_other_classes_is_warned_of_unless_it_is_left_out() {
        let warned = |line: &str, others: &[&str]| {
            with(line, None, |options, _, shaper, _| {
                let others = others.iter().map(|other| Handle::parse(other).unwrap()).collect();
                regulates_others(options, &Shaper { others, ..shaper.clone() })
            })
        };
        let said = warned("eth0 --aqm pi --leaf 1:10", &["1:20", "1:30"]).unwrap();
        assert!(said.contains("also of 1:20, 1:30, for the queue of 1:10: say with --only"), "{said}");
        assert_eq!(warned("eth0 --aqm pi --leaf 1:10 --only mark=1", &["1:20"]), None);
        assert_eq!(warned("eth0 --aqm pi --leaf 1:10", &[]), None);
    }

    #[test]
    fn it_greets_with_what_it_keeps_how_long_and_where_it_is_shown() {
        let greeted = |page: Option<&str>, via| {
            let page = page.map(|page| page.parse().unwrap());
            with("eth0 --aqm pi --target 50ms", None, |options, device, shaper, network| {
                greeting(options, device, shaper, network, via, page)
            })
        };
        let said = "eth0: pi above htb 1:10 (12.00 Mbit/s), target 50.0 packets (50.0 ms), marker by";
        assert_eq!(greeted(None, Way::Tcx), format!("{said} tcx"));
        let shown = greeted(Some("127.0.0.1:9811"), Way::Clsact);
        assert_eq!(shown, format!("{said} clsact; live page http://127.0.0.1:9811/"));
    }

    #[test]
    fn a_status_names_all_that_was_chosen() {
        let told = with("eth0 --aqm pi:a=0.25,b=0.125 --target 50ms", None, |options, device, shaper, network| {
            let aqm = sampled::build(&options.aqm, network).unwrap();
            status(options, device, shaper, network, &aqm, Way::Clsact, Some("127.0.0.1:80".parse().unwrap()))
        });
        assert_eq!((told.schema, told.device.as_str(), told.aqm.as_str()), (SCHEMA, "eth0", "pi:a=0.25,b=0.125"));
        assert_eq!((told.pid, told.via, told.regulating), (std::process::id(), "clsact", true));
        assert_eq!((told.target_pkts, told.target_s), (50.0, 0.05));
        assert_eq!(told.page.as_deref(), Some("http://127.0.0.1:80/"));
        assert_eq!((told.shaper.kind.as_str(), told.shaper.handle.as_str()), ("htb", "1:10"));
        assert_eq!((told.shaper.rate_bps, told.shaper.ours), (12_000_000, false));
        assert_eq!(told.params["a"], 0.25);
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(told.kernel, format!("Linux {}", release.trim()));
        assert_eq!(told.aqumen, env!("CARGO_PKG_VERSION"));
    }
}
