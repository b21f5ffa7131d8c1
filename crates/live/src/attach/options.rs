//! Options of `aqumend attach`.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use aqumen_scenario::{AqmSpec, OwnedValue, read_bytes, read_packets, read_rate, read_span};
use aqumen_units::{Bytes, Rate, Span};

use super::marker::Hook;
use super::rules::Rules;
use super::values::{invalid, pairs};
use crate::arguments::{Command, Opt, store};
use crate::netlink::tc::Handle;
use crate::telemetry::server::Listen;
use crate::{Context as _, Error, shorten};

/// Default port of the live page.
const PORT: u16 = 9811;
/// Rates that a token bucket can keep, bit/s.
const RATES: (u64, u64) = (8_000, 400_000_000_000);
/// Longest file of options, bytes.
const FILE_BYTES_MAX: u64 = 1 << 16;

#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Command line, from which the options are read again.
    arguments: Vec<OsString>,
    pub(crate) device: String,
    pub(crate) aqm: AqmSpec,
    pub(crate) target: Target,
    pub(crate) rate: Option<Rate>,
    pub(crate) overhead: u16,
    pub(crate) buffer: Option<Bytes>,
    pub(crate) leaf: Option<Handle>,
    pub(crate) flows: Option<f64>,
    pub(crate) rtt: Span,
    pub(crate) spare: Rules,
    pub(crate) only: Rules,
    pub(crate) autorate: Option<Range>,
    pub(crate) rollback: Option<Rollback>,
    pub(crate) listen: Listen,
    pub(crate) host: Option<String>,
    pub(crate) record: Option<PathBuf>,
    pub(crate) duration: Option<Span>,
    pub(crate) via: Option<Hook>,
    pub(crate) dry_run: bool,
}

/// Target of the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    Delay(Span),
    Packets(f64),
}

/// Limits of `--autorate`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Range {
    pub(crate) floor: Option<Rate>,
    pub(crate) ceiling: Option<Rate>,
}

/// Limits of `--rollback`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rollback {
    /// Highest increase of the mean delay, seconds.
    pub(crate) delay_s: Option<f64>,
    /// Highest relative loss of throughput.
    pub(crate) throughput: Option<f64>,
    /// Pause after which the AQM returns, seconds.
    pub(crate) return_s: Option<f64>,
}

/// Options of a command line that is not read completely.
struct Draft {
    device: Option<String>,
    aqm: Option<AqmSpec>,
    target: Option<Target>,
    file: Option<PathBuf>,
    /// All other options; device, AQM and target are not final yet.
    options: Options,
}

fn command() -> Command<Draft> {
    Command {
        name: "attach",
        head: "aqumend attach DEV --aqm SPEC [OPTIONS]: keep the queue of the shaper on DEV short\n",
        operand: |draft| &mut draft.device,
        options: vec![
            Opt::new(
                "aqm SPEC",
                "the AQM: pi, stpi:target=100pkt, pie, ... (with a control law; red and ared in a sampled form)",
                |draft, value| store(&mut draft.aqm, Some(AqmSpec::builtin(value)?)),
            ),
            Opt::new("target TARGET", "target of the queue: 5ms (default) or 20pkt", |draft, value| {
                let target = Target::read(value).map_err(|why| invalid("target", value, why))?;
                store(&mut draft.target, Some(target))
            }),
            Opt::new(
                "rate RATE",
                "shape to RATE with a token bucket, removed at the end; without it DEV's own tbf or htb is used",
                |draft, value| store(&mut draft.options.rate, Some(rate("rate", value)?)),
            ),
            Opt::new(
                "overhead BYTES",
                "bytes of each packet on the wire beyond what the kernel counts (with --rate)",
                |draft, value| store(&mut draft.options.overhead, overhead(value)?),
            ),
            Opt::new("buffer SIZE", "buffer in bytes (with --rate); default: 200 ms at --rate", |draft, value| {
                let bytes = read_bytes(value).map_err(|why| invalid("buffer", value, why))?;
                let bytes = Some(bytes).filter(|bytes| (2_000..=1 << 30).contains(&bytes.0));
                store(&mut draft.options.buffer, Some(checked("buffer", value, bytes, "must be 2kB to 1GiB")?))
            }),
            Opt::new(
                "leaf CLASS",
                "leaf class of htb to regulate, such as 1:10, if there are several",
                |draft, value| {
                    let leaf = Handle::parse(value).filter(|leaf| leaf.0 as u16 != 0);
                    store(&mut draft.options.leaf, Some(checked("leaf", value, leaf, "must be a class, such as 1:10")?))
                },
            ),
            Opt::new("flows N", "long-lived flows that the AQM is designed for; default 10", |draft, value| {
                let flows = value.parse().ok().filter(|flows| (1.0..=1e6).contains(flows));
                let flows = checked("flows", value, flows, "must be a number from 1 to 1e6")?;
                store(&mut draft.options.flows, Some(flows))
            }),
            Opt::new(
                "rtt TIME",
                "round-trip time without queue that it is designed for; default 100ms",
                |draft, value| {
                    store(&mut draft.options.rtt, time("rtt", value, Span::from_millis(1), Span::from_secs(60))?)
                },
            ),
            Opt::repeated(
                "spare RULE",
                "never mark or drop: dscp=46, port=22, protocol=47, mark=0x10/0xf0; may be repeated",
                |draft, value| draft.options.spare.add("spare", value),
            ),
            Opt::repeated(
                "only RULE",
                "regulate matching packets only: mark=0x10/0xf0, dscp=0, port=443; may be repeated",
                |draft, value| draft.options.only.add("only", value),
            ),
            Opt::new("autorate [RANGE]", "follow a changing link rate: floor=1Mbit,ceiling=50Mbit", |draft, value| {
                store(&mut draft.options.autorate, Some(Range::read(value)?))
            }),
            Opt::new(
                "rollback LIMITS",
                "detach when worse than before: delay=20ms,throughput=10%; with return=5min only for this time",
                |draft, value| store(&mut draft.options.rollback, Some(Rollback::read(value)?)),
            ),
            Opt::new(
                "listen ADDRESS",
                "live page and Prometheus metrics: PORT or IP:PORT, default 127.0.0.1:9811; 'no' for none",
                |draft, value| store(&mut draft.options.listen, listen(value)?),
            ),
            Opt::new("host NAME", "host name of the live page, beside IP addresses and localhost", |draft, value| {
                store(&mut draft.options.host, Some(host(value)?))
            }),
            Opt::new(
                "record FILE",
                "write every sample to FILE, or continue the recording in it; %Y-%m-%d and the like stand for the time",
                |draft, value| store(&mut draft.options.record, Some(value.into())),
            ),
            Opt::new("duration TIME", "detach after TIME", |draft, value| {
                let longest = Span::from_secs(366 * 86_400);
                store(&mut draft.options.duration, Some(time("duration", value, Span::from_millis(100), longest)?))
            }),
            Opt::new(
                "options FILE",
                "further options, in any number of lines; # begins a comment. SIGHUP reads them again",
                |draft, value| store(&mut draft.file, Some(value.into())),
            ),
            Opt::new(
                "via tcx|clsact",
                "hook of the marker; default tcx where the kernel has it (6.6)",
                |draft, value| {
                    let hook = match value {
                        "tcx" => Some(Hook::Tcx),
                        "clsact" => Some(Hook::Clsact),
                        _ => None,
                    };
                    store(&mut draft.options.via, Some(checked("via", value, hook, "must be tcx or clsact")?))
                },
            ),
            Opt::new("dry-run", "print what would be done, and do nothing", |draft, _| {
                store(&mut draft.options.dry_run, true)
            }),
        ],
    }
}

impl Draft {
    fn new() -> Result<Self, Error> {
        let options = Options {
            arguments: Vec::new(),
            device: String::new(),
            aqm: AqmSpec::builtin("droptail")?,
            target: Target::Delay(Span::from_millis(5)),
            rate: None,
            overhead: 0,
            buffer: None,
            leaf: None,
            flows: None,
            rtt: Span::from_millis(100),
            spare: Rules::default(),
            only: Rules::default(),
            autorate: None,
            rollback: None,
            listen: Listen::Preferred(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT)),
            host: None,
            record: None,
            duration: None,
            via: None,
            dry_run: false,
        };
        Ok(Draft { device: None, aqm: None, target: None, file: None, options })
    }

    /// Completes the options, if they are consistent and nothing is missing.
    fn complete(self) -> Result<Options, Error> {
        let Draft { device, aqm, target, mut options, .. } = self;
        options.device = device.ok_or_else(|| Error::setup("which device? aqumend attach DEV --aqm SPEC"))?;
        options.aqm = aqm.ok_or_else(|| Error::setup("which AQM? --aqm SPEC, such as --aqm stpi"))?;
        for (given, name) in [(options.overhead != 0, "overhead"), (options.buffer.is_some(), "buffer")] {
            if given && options.rate.is_none() {
                return Err(Error::setup(format!("--{name} applies to the shaper of --rate; --rate is missing")));
            }
        }
        if options.leaf.is_some() && options.rate.is_some() {
            return Err(Error::setup(
                "--leaf selects an existing shaper, and --rate makes a new one: give one of them",
            ));
        }
        if is_self_contained(&options.aqm) {
            let name = &options.aqm.algorithm;
            for (given, option) in [(target.is_some(), "target"), (options.flows.is_some(), "flows")] {
                if given {
                    return Err(Error::setup(format!("--{option}: {name} measures its network; leave it out")));
                }
            }
            options.pass_rtt();
        }
        if let Some(target) = target {
            options.target = target;
            options.pass_target();
        }
        Ok(options)
    }
}

impl Options {
    /// Reads a command line, and the file of options that it may name; `None` if it only asked for help.
    pub(crate) fn read(mut arguments: lexopt::Parser) -> Result<Option<Self>, Error> {
        let arguments: Vec<OsString> = arguments.raw_args()?.collect();
        let (command, mut draft, mut given) = (command(), Draft::new()?, Vec::new());
        if !command.read_more(lexopt::Parser::from_args(arguments.clone()), &mut draft, &mut given)? {
            return Ok(None);
        }
        if let Some(file) = draft.file.clone() {
            let at = |error: Error| Error::setup(format!("{}: {error}", shorten(&file.display().to_string())));
            let further = lexopt::Parser::from_args(file_arguments(&file).map_err(at)?);
            if !command.read_more(further, &mut draft, &mut given).map_err(at)? {
                return Ok(None);
            }
        }
        draft.options.arguments = arguments;
        draft.complete().map(Some)
    }

    /// Reads the command line again, with the present contents of its options file.
    pub(super) fn read_again(&self) -> Result<Self, Error> {
        let options = Options::read(lexopt::Parser::from_args(self.arguments.clone()))?;
        options.ok_or_else(|| Error::setup("--help is no option of an attachment"))
    }

    /// Reads a command line, for tests.
    #[cfg(test)]
    pub(super) fn from_line(line: &str) -> Self {
        let read = Options::read(lexopt::Parser::from_args(line.split(' ')));
        read.unwrap_or_else(|error| panic!("{error}")).expect("it asks for no help")
    }

    /// Passes the round trip to an algorithm that starts with one.
    fn pass_rtt(&mut self) {
        if self.aqm.values.iter().all(|(name, _)| name != "rtt") {
            self.aqm.values.push(("rtt".into(), OwnedValue::Number(self.rtt.as_secs_f64())));
        }
    }

    /// Passes the target to an algorithm that has a target delay as a parameter.
    fn pass_target(&mut self) {
        let param = aqumen_aqm::registry::find(&self.aqm.algorithm)
            .and_then(|algorithm| algorithm.params.iter().find(|param| param.name == "target"));
        let in_seconds = param.is_some_and(|param| {
            matches!(param.kind, aqumen_aqm::Kind::Number { unit: aqumen_aqm::Unit::Seconds, .. })
        });
        let given = self.aqm.values.iter().any(|(name, _)| name == "target");
        if let (true, false, Target::Delay(delay)) = (in_seconds, given, self.target) {
            self.aqm.values.push(("target".into(), OwnedValue::Number(delay.as_secs_f64())));
        }
    }
}

/// Whether the AQM of `spec` is designed for no network: it measures the one that it has.
pub(super) fn is_self_contained(spec: &AqmSpec) -> bool {
    spec.algorithm == "st-pi2"
}

/// Arguments in a file of options. `OPTIONS=` may precede them, as in environment files of a service.
fn file_arguments(file: &Path) -> Result<Vec<OsString>, Error> {
    let mut text = String::new();
    let open = File::open(file).context(|| "--options".into())?;
    open.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).context(|| "--options".into())?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(Error::setup(format!("--options: must have at most {FILE_BYTES_MAX} bytes")));
    }
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let lines = lines.map(|line| line.strip_prefix("OPTIONS=").unwrap_or(line).trim_matches('"'));
    Ok(lines.flat_map(str::split_whitespace).map(OsString::from).collect())
}

/// Returns `value`, or the error that `text` is not an `accepted` value of `option`.
fn checked<V>(option: &str, text: &str, value: Option<V>, accepted: &str) -> Result<V, Error> {
    value.ok_or_else(|| invalid(option, text, accepted))
}

fn rate(option: &str, value: &str) -> Result<Rate, Error> {
    let rate = read_rate(value).map_err(|why| invalid(option, value, why))?;
    let rate = Some(rate).filter(|rate| (RATES.0..=RATES.1).contains(&rate.as_bps()));
    checked(option, value, rate, "must be 8kbit to 400Gbit")
}

fn time(option: &str, value: &str, least: Span, most: Span) -> Result<Span, Error> {
    let time = read_span(value).map_err(|why| invalid(option, value, why))?;
    let accepted = format!("must be {}s to {}s", least.as_nanos() as f64 / 1e9, most.as_nanos() as f64 / 1e9);
    checked(option, value, Some(time).filter(|time| (least..=most).contains(time)), &accepted)
}

fn overhead(value: &str) -> Result<u16, Error> {
    let bytes = read_bytes(value).map_err(|why| invalid("overhead", value, why))?.0;
    // A negative size is read as zero.
    let bytes = u16::try_from(bytes).ok().filter(|bytes| *bytes <= 1000 && !value.starts_with('-'));
    checked("overhead", value, bytes, "must be 0B to 1000B")
}

fn host(value: &str) -> Result<String, Error> {
    let is_name = |name: &&str| {
        (1..=253).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    let name = Some(value).filter(is_name).map(str::to_owned);
    checked("host", value, name, "must be a host's name, such as router.lan, without a port")
}

impl Target {
    fn read(text: &str) -> Result<Self, String> {
        let span = read_span(text);
        if let Ok(packets) = read_packets(text) {
            return if (1.0..=1e6).contains(&packets) {
                Ok(Target::Packets(packets))
            } else {
                Err("must be 1pkt to 1000000pkt".into())
            };
        }
        match span {
            Ok(span) if (Span::from_micros(100)..=Span::from_secs(10)).contains(&span) => Ok(Target::Delay(span)),
            Ok(_) => Err("must be 100us to 10s".into()),
            Err(why) => Err(format!("{why}, or a number of packets, such as \"20pkt\"")),
        }
    }
}

impl Range {
    fn read(text: &str) -> Result<Self, Error> {
        let mut range = Range::default();
        for pair in pairs("autorate", text) {
            match pair? {
                ("floor", value) => range.floor = Some(rate("autorate floor", value)?),
                ("ceiling", value) => range.ceiling = Some(rate("autorate ceiling", value)?),
                (name, _) => return Err(invalid("autorate", name, "choose from: floor, ceiling")),
            }
        }
        match (range.floor, range.ceiling) {
            (Some(floor), Some(ceiling)) if floor > ceiling => {
                Err(invalid("autorate", text, "floor must not be above ceiling"))
            }
            _ => Ok(range),
        }
    }
}

impl Rollback {
    fn read(text: &str) -> Result<Self, Error> {
        let mut rollback = Rollback::default();
        for pair in pairs("rollback", text) {
            match pair? {
                ("delay", value) => {
                    let delay = time("rollback delay", value, Span::from_micros(100), Span::from_secs(60))?;
                    rollback.delay_s = Some(delay.as_secs_f64());
                }
                ("throughput", value) => {
                    let fraction = value.strip_suffix('%').and_then(|percent| percent.parse::<f64>().ok());
                    let fraction =
                        fraction.map(|percent| percent / 100.0).filter(|fraction| *fraction > 0.0 && *fraction < 1.0);
                    let accepted = "must be above 0% and below 100%, such as 10%";
                    rollback.throughput = Some(checked("rollback throughput", value, fraction, accepted)?);
                }
                ("return", value) => {
                    let pause = time("rollback return", value, Span::from_secs(1), Span::from_secs(86_400))?;
                    rollback.return_s = Some(pause.as_secs_f64());
                }
                (name, _) => return Err(invalid("rollback", name, "choose from: delay, throughput, return")),
            }
        }
        if rollback.delay_s.is_none() && rollback.throughput.is_none() {
            return Err(invalid("rollback", text, "must have a limit: delay=20ms, throughput=10%"));
        }
        Ok(rollback)
    }
}

fn listen(text: &str) -> Result<Listen, Error> {
    if text == "no" {
        return Ok(Listen::Off);
    }
    let loopback = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let address = text.parse().or_else(|_| text.parse().map(loopback));
    address.map(Listen::Exactly).map_err(|_| invalid("listen", text, "must be PORT, IP:PORT or 'no'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        let parser = lexopt::Parser::from_args(line.split(' '));
        Options::read(parser).map(|options| options.expect("no help asked")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_full_command_line_is_read() {
        let line = "eth0 --aqm pi --target 20pkt --rate 20Mbit --overhead 26B --flows 40 --rtt 80ms --spare dscp=ef,port=22 \
                    --spare mark=0x10/0xf0 --autorate floor=1Mbit,ceiling=50Mbit --rollback delay=20ms,throughput=10% \
                    --listen 0.0.0.0:8080 --via clsact --duration 90s --dry-run";
        let options = read(line).unwrap();
        assert_eq!((options.device.as_str(), options.aqm.algorithm.as_str()), ("eth0", "pi"));
        assert_eq!(options.target, Target::Packets(20.0));
        assert_eq!((options.rate, options.overhead), (Some(Rate::from_bps(20_000_000)), 26));
        assert_eq!((options.spare.dscps, options.spare.ports[0], options.spare.kinds), (1 << 46, 22, 1 | 4 | 8));
        assert_eq!((options.spare.mark, options.spare.mask), (0x10, 0xf0));
        assert_eq!(options.autorate.unwrap().ceiling, Some(Rate::from_bps(50_000_000)));
        assert_eq!(options.rollback, Some(Rollback { delay_s: Some(0.02), throughput: Some(0.1), return_s: None }));
        assert_eq!(options.listen, Listen::Exactly("0.0.0.0:8080".parse().unwrap()));
        assert_eq!((options.via, options.dry_run), (Some(Hook::Clsact), true));
        assert_eq!(read("eth0 --autorate --aqm pi").unwrap().autorate, Some(Range::default()));
        assert_eq!(read("eth0 --aqm pi --listen 80").unwrap().listen, Listen::Exactly("127.0.0.1:80".parse().unwrap()));
    }

    #[test]
    fn spare_and_only_rules_are_independent() {
        let options = read("eth0 --aqm pi --spare dscp=ef --only mark=1 --spare port=22 --only port=443").unwrap();
        assert_eq!((options.spare.dscps, options.spare.ports[0], options.spare.mark), (1 << 46, 22, 0));
        assert_eq!((options.only.dscps, options.only.ports[0], options.only.mark), (0, 443, 1));
        let default = read("eth0 --aqm pi").unwrap();
        assert!(default.spare.is_empty() && default.only.is_empty());
    }

    #[test]
    fn values_at_the_ends_of_their_ranges_are_accepted() {
        let options = read("eth0 --aqm pi --rate 8kbit --overhead 1000B --buffer 2kB").unwrap();
        assert_eq!((options.rate, options.overhead), (Some(Rate::from_bps(8000)), 1000));
        assert_eq!(options.buffer, Some(Bytes(2000)));
        let large = read("eth0 --aqm pi --rate 400Gbit --buffer 1GiB").unwrap();
        assert_eq!((large.rate, large.buffer), (Some(Rate::from_bps(400_000_000_000)), Some(Bytes(1 << 30))));
        let range = read("eth0 --aqm pi --autorate ceiling=2Mbit,floor=2Mbit").unwrap().autorate.unwrap();
        assert_eq!((range.floor, range.ceiling), (range.ceiling, Some(Rate::from_bps(2_000_000))));
        let limits = read("eth0 --aqm pi --rollback throughput=99%,delay=100us,return=5min").unwrap().rollback.unwrap();
        assert_eq!(limits, Rollback { delay_s: Some(1e-4), throughput: Some(0.99), return_s: Some(300.0) });
        let others = read("eth0 --aqm pi --leaf 1:10 --duration 100ms --record out --listen no --via tcx").unwrap();
        assert_eq!((others.leaf, others.duration), (Handle::parse("1:10"), Some(Span::from_millis(100))));
        assert_eq!((others.record, others.listen, others.via), (Some("out".into()), Listen::Off, Some(Hook::Tcx)));
        let default = read("eth0 --aqm pi").unwrap();
        assert_eq!((default.target, default.rtt), (Target::Delay(Span::from_millis(5)), Span::from_millis(100)));
        assert_eq!(default.listen, Listen::Preferred("127.0.0.1:9811".parse().unwrap()));
        assert!(
            !default.dry_run && default.flows.is_none() && default.autorate.is_none() && default.rollback.is_none()
        );
        assert!(Options::read(lexopt::Parser::from_args(["eth0", "--help"])).unwrap().is_none());
    }

    #[test]
    fn a_target_delay_is_passed_to_algorithms_with_a_target_parameter() {
        let target = |line: &str| {
            let values = read(line).unwrap().aqm.values;
            values.into_iter().find(|(name, _)| name == "target").map(|(_, value)| value)
        };
        assert_eq!(target("eth0 --aqm pie --target 5ms"), Some(OwnedValue::Number(0.005)));
        assert_eq!(target("eth0 --aqm pie:target=9ms --target 5ms"), Some(OwnedValue::Number(0.009)));
        assert_eq!(target("eth0 --aqm pie"), None);
        assert_eq!(target("eth0 --aqm pi --target 5ms"), None);
        // Other parameters do not suppress it, and it is set once.
        assert_eq!(target("eth0 --aqm pie:interval=20ms --target 5ms"), Some(OwnedValue::Number(0.005)));
        let error = |line: &str| read(line).unwrap().aqm.values.len();
        assert_eq!([error("eth0 --aqm pie:target=9ms --target 5ms"), error("eth0 --aqm pie --target 5ms")], [1, 1]);
        // An algorithm without a target delay gets none.
        assert_eq!(error("eth0 --aqm blue --target 5ms"), 0);
    }

    #[test]
    fn options_may_come_from_a_file_that_is_read_again() {
        let file = std::env::temp_dir().join(format!("aqumend-options-{}", std::process::id()));
        let line = format!("eth0 --aqm pi --options {}", file.display());
        let with = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read(&line)
        };
        let options = with("# a comment\n--target 9ms   # of the queue\n\n--spare dscp=ef --rtt 20ms\n").unwrap();
        assert_eq!((options.target, options.rtt), (Target::Delay(Span::from_millis(9)), Span::from_millis(20)));
        assert_eq!((options.device.as_str(), options.spare.dscps), ("eth0", 1 << 46));
        std::fs::write(&file, "OPTIONS=\"--target 3ms\"\n").unwrap();
        let again = options.read_again().unwrap();
        assert_eq!((again.target, again.spare.dscps), (Target::Delay(Span::from_millis(3)), 0));
        let at = format!("{}: ", file.display());
        for (text, why) in [
            ("--target soon", "--target \"soon\""),
            ("--aqm pi", "--aqm is given twice"),
            ("--options other", "--options is given twice"),
            ("eth1", "unexpected argument \"eth1\""),
            (&"x ".repeat(1 << 15 | 1), "must have at most 65536 bytes"),
        ] {
            let error = with(text).unwrap_err();
            assert!(error.starts_with(&at) && error.contains(why), "{error}");
        }
        std::fs::remove_file(&file).unwrap();
        assert!(read(&line).unwrap_err().contains("--options: No such file"));
    }

    #[test]
    fn errors_quote_only_the_beginning_of_a_long_value() {
        for option in ["aqm", "target", "rate", "leaf", "flows", "rtt", "spare", "rollback", "listen", "host", "via"] {
            for long in ["x".repeat(5000), "x y=z ".repeat(1000)] {
                let words = ["eth0".to_owned(), format!("--{option}={long}")];
                let error = Options::read(lexopt::Parser::from_args(words)).unwrap_err().to_string();
                // The list of all AQMs, and the value once or twice.
                assert!(error.len() < 600, "--{option}: {error}");
            }
        }
    }

    #[test]
    fn errors_name_option_value_and_accepted_values() {
        for (line, message) in [
            ("", "which device"),
            ("eth0", "which AQM"),
            ("eth0 --aqm nonsense", "no AQM \"nonsense\""),
            ("eth0 --aqm pi --target 5", "--target \"5\": needs a unit"),
            ("eth0 --aqm pi --target 20s", "must be 100us to 10s"),
            ("eth0 --aqm pi --rate fast", "--rate \"fast\": must be a rate"),
            ("eth0 --aqm pi --rate 1bit", "must be 8kbit to 400Gbit"),
            ("eth0 --aqm pi --rate -5Mbit", "must be 8kbit to 400Gbit"),
            ("eth0 --aqm pi --overhead 4B", "--rate is missing"),
            ("eth0 --aqm pi --rate 9Mbit --overhead -3B", "--overhead \"-3B\": must be 0B to 1000B"),
            ("eth0 --aqm pi --rate 9Mbit --overhead 1001B", "must be 0B to 1000B"),
            ("eth0 --aqm pi --rate 1Mbit --leaf 1:10", "give one of them"),
            ("eth0 --aqm pi --leaf 1:", "must be a class"),
            ("eth0 --aqm pi --flows 0", "must be a number from 1"),
            ("eth0 --aqm pi --flows nan", "must be a number from 1"),
            ("eth0 --aqm pi --buffer 9kB", "--buffer applies to the shaper of --rate"),
            ("eth0 --aqm pi --rate 9Mbit --buffer 1999B", "must be 2kB to 1GiB"),
            ("eth0 --aqm pi --target 0pkt", "must be 1pkt to 1000000pkt"),
            ("eth0 --aqm pi --duration 99ms", "must be 0.1s to 31622400s"),
            ("eth0 --aqm pi --spare protocol=256", "must be 0 to 255"),
            ("eth0 --aqm pi --spare mark=1,mark=2", "one mark can be given"),
            ("eth0 --aqm pi --rollback throughput=0%", "such as 10%"),
            ("eth0 --aqm pi --rollback throughput=100%", "such as 10%"),
            ("eth0 --aqm pi --rollback speed=9", "choose from: delay, throughput, return"),
            ("eth0 --aqm pi --rollback return=5min", "must have a limit"),
            ("eth0 --aqm pi --rollback delay=20ms,return=100ms", "must be 1s to 86400s"),
            ("eth0 --aqm pi --autorate=middle=9Mbit", "choose from: floor, ceiling"),
            ("eth0 --aqm pi --autorate floor=1bit", "must be 8kbit to 400Gbit"),
            ("eth0 --aqm pi --rtt 0s", "must be 0.001s to 60s"),
            ("eth0 --aqm pi --spare dscp=64", "must be 0 to 63"),
            ("eth0 --aqm pi --spare port=0", "must be 1 to 65535"),
            ("eth0 --aqm pi --spare mark=0x10/0x0f", "with MARK inside MASK"),
            ("eth0 --aqm pi --spare voice", "must be NAME=VALUE"),
            ("eth0 --aqm pi --only class=1:10", "--only \"class\": choose from: dscp, protocol, mark, port"),
            ("eth0 --aqm pi --only dscp=64", "--only dscp \"64\": must be 0 to 63"),
            ("eth0 --aqm pi --spare colour=red", "choose from: dscp, protocol, mark, port"),
            ("eth0 --aqm pi --rollback delay=1h", "must be 0.0001s to 60s"),
            ("eth0 --aqm pi --rollback throughput=2", "such as 10%"),
            ("eth0 --aqm pi --rollback ,", "must have a limit"),
            ("eth0 --aqm pi --autorate floor=9Mbit,ceiling=1Mbit", "floor must not be above ceiling"),
            ("eth0 --aqm pi --listen nowhere", "must be PORT"),
            ("eth0 --aqm pi --listen 70000", "must be PORT"),
            ("eth0 --aqm pi --host router.lan:80", "without a port"),
            ("eth0 --aqm pi --host=", "must be a host's name"),
            ("eth0 --aqm pi --via magic", "must be tcx or clsact"),
            ("eth0 --aqm pi --colour red", "unknown option --colour"),
            ("eth0 --aqm pi --rate 9Mbit --aqm stpi", "--aqm is given twice"),
            ("eth0 --aqm pi --dry-run --dry-run", "--dry-run is given twice"),
            ("eth0 eth1 --aqm pi", "eth1"),
        ] {
            let arguments = line.split(' ').filter(|word| !word.is_empty());
            let error = Options::read(lexopt::Parser::from_args(arguments)).unwrap_err();
            assert!(matches!(error, Error::Setup(_)));
            assert!(error.to_string().contains(message), "{line}: {error}");
        }
    }
}
