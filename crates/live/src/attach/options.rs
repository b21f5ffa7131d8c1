//! What `aqumend attach` is told.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use aqumen_scenario::{AqmSpec, OwnedValue, read_bytes, read_packets, read_rate, read_span};
use aqumen_units::{Bytes, Rate, Span};
use lexopt::prelude::*;

use super::marker::Way;
use super::rules::Rules;
use super::values::{pairs, wrong};
use crate::netlink::tc::Handle;
use crate::telemetry::server::Listen;
use crate::{Failure, Tried as _, shown};

pub(crate) const HELP: &str = "\
aqumend attach DEV --aqm SPEC [OPTIONS]: keep the queue of the shaper on DEV short

  --aqm SPEC          the AQM: pi, stpi:target=100pkt, pie, ...  (one with a control law; red and ared in a sampled form)
  --target TARGET     the queue it aims at: 5ms (default) or 20pkt
  --rate RATE         shape to RATE with a token bucket of its own, removed at the end; without it DEV's tbf or htb is used
  --overhead BYTES    bytes each packet has on the wire beyond what the kernel counts (with --rate)
  --buffer SIZE       bytes that may wait (with --rate); default: what --rate sends in 200 ms
  --leaf CLASS        the leaf class of htb to look after, such as 1:10, if there are several
  --flows N           long-lived flows that the AQM is designed for; default 10
  --rtt TIME          round-trip time without queue that it is designed for; default 100ms
  --spare RULE        never mark or drop: dscp=46, port=22, protocol=47, mark=0x10/0xf0; may be given again
  --only RULE         regulate what fits alone, and let all else pass: mark=0x10/0xf0, dscp=0, port=443; may be given again
  --autorate [RANGE]  follow a rate that changes: floor=1Mbit,ceiling=50Mbit
  --rollback LIMITS   leave when things get worse than before: delay=20ms,throughput=10%; with return=5min only for so long
  --listen ADDRESS    live page and Prometheus metrics: PORT or IP:PORT, default 127.0.0.1:9811; 'no' for none
  --host NAME         a name by which the live page may be asked for, beside IP addresses and localhost
  --record FILE       write every sample to FILE, or go on with the recording that FILE is; %Y-%m-%d and the like stand for the time
  --duration TIME     detach after TIME
  --options FILE      more options, as here, in any number of lines; # begins a comment. SIGHUP reads them anew
  --via tcx|clsact    how the marker hangs at DEV; default tcx where the kernel has it (6.6)
  --dry-run           say what would be done, and do nothing
";

/// The port of the live page if none is said.
const PORT: u16 = 9811;
/// Rates that a token bucket can keep apart from nothing and everything.
const RATES: (u64, u64) = (8_000, 400_000_000_000);

/// Longest file of options, bytes.
const FILE_BYTES_MAX: u64 = 1 << 16;

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The command line, by which it is asked for again.
    words: Vec<OsString>,
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
    pub(crate) via: Option<Way>,
    pub(crate) dry_run: bool,
}

/// The queue to aim at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    Delay(Span),
    Packets(f64),
}

/// Between which rates `--autorate` may move.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Range {
    pub(crate) floor: Option<Rate>,
    pub(crate) ceiling: Option<Rate>,
}

/// How much worse than before things may be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rollback {
    /// More mean delay, seconds.
    pub(crate) delay_s: Option<f64>,
    /// Lost throughput, a share.
    pub(crate) throughput: Option<f64>,
    /// After so much time without it the AQM comes back, seconds.
    pub(crate) return_s: Option<f64>,
}

/// What has been read so far of a command line.
struct Given {
    device: Option<String>,
    aqm: Option<AqmSpec>,
    target: Option<Target>,
    /// Options that may not come again.
    seen: Vec<String>,
    /// All else; device, AQM and target are not yet theirs.
    options: Options,
}

impl Given {
    fn nothing() -> Result<Self, Failure> {
        let options = Options {
            words: Vec::new(),
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
            listen: Listen::Usual(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT)),
            host: None,
            record: None,
            duration: None,
            via: None,
            dry_run: false,
        };
        Ok(Given { device: None, aqm: None, target: None, seen: Vec::new(), options })
    }

    /// One of [`KNOWN`] and its value.
    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let misfit = |why: String| wrong(name, value, why);
        let refused = |accepted: &str| wrong(name, value, accepted);
        let options = &mut self.options;
        match name {
            "aqm" => self.aqm = Some(AqmSpec::builtin(value)?),
            "target" => self.target = Some(Target::read(value).map_err(misfit)?),
            "rate" => options.rate = Some(rate(name, value)?),
            "overhead" => {
                let bytes = read_bytes(value).map_err(misfit)?.0;
                // A size below nothing is read as none.
                let fits = u16::try_from(bytes).ok().filter(|bytes| *bytes <= 1000 && !value.starts_with('-'));
                options.overhead = fits.ok_or_else(|| refused("must be 0B to 1000B"))?;
            }
            "buffer" => {
                let bytes = Some(read_bytes(value).map_err(misfit)?);
                options.buffer = bytes.filter(|bytes| (2_000..=1 << 30).contains(&bytes.0));
                options.buffer.ok_or_else(|| refused("must be 2kB to 1GiB"))?;
            }
            "leaf" => {
                options.leaf = Handle::parse(value).filter(|leaf| leaf.0 as u16 != 0);
                options.leaf.ok_or_else(|| refused("must be a class, such as 1:10"))?;
            }
            "flows" => {
                options.flows = value.parse().ok().filter(|flows| (1.0..=1e6).contains(flows));
                options.flows.ok_or_else(|| refused("must be a number from 1 to 1e6"))?;
            }
            "rtt" => options.rtt = time(name, value, Span::from_millis(1), Span::from_secs(60))?,
            "spare" => options.spare.add("spare", value)?,
            "only" => options.only.add("only", value)?,
            "rollback" => options.rollback = Some(Rollback::read(value)?),
            "listen" => options.listen = listen(value)?,
            "host" => {
                let is_name = |name: &&str| {
                    (1..=253).contains(&name.len())
                        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
                };
                options.host = Some(value).filter(is_name).map(str::to_owned);
                options
                    .host
                    .as_ref()
                    .ok_or_else(|| refused("must be a host's name, such as router.lan, without a port"))?;
            }
            "record" => options.record = Some(value.into()),
            "duration" => {
                let longest = Span::from_secs(366 * 86_400);
                options.duration = Some(time(name, value, Span::from_millis(100), longest)?);
            }
            _ => {
                options.via = Some(match value {
                    "tcx" => Way::Tcx,
                    "clsact" => Way::Clsact,
                    _ => return Err(refused("must be tcx or clsact")),
                });
            }
        }
        Ok(())
    }

    /// Takes the options of a command line, or of the `file` that it names. False: help was asked for.
    fn take(&mut self, mut arguments: lexopt::Parser, file: &mut Option<PathBuf>) -> Result<bool, Failure> {
        while let Some(argument) = arguments.next()? {
            if let Long(name) = argument {
                if self.seen.iter().any(|other| other == name) {
                    return Err(Failure::refused(format!("--{} is given twice", shown(name))));
                }
                if !REPEATED.contains(&name) {
                    self.seen.push(name.to_owned());
                }
            }
            match argument {
                Long("help") | Short('h') => return Ok(false),
                Long("dry-run") => self.options.dry_run = true,
                Long("autorate") => self.options.autorate = Some(autorate(&mut arguments)?),
                Long("options") => *file = Some(arguments.value()?.into()),
                Long(name) => {
                    let name = name.to_owned();
                    if !KNOWN.contains(&name.as_str()) {
                        return Err(Failure::refused(format!(
                            "unknown option --{}; see aqumend attach --help",
                            shown(&name)
                        )));
                    }
                    self.set(&name, &arguments.value()?.string()?)?;
                }
                Value(name) if self.device.is_none() => self.device = Some(name.string()?),
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(true)
    }

    /// All of it, if it fits together and nothing is missing.
    fn complete(self) -> Result<Options, Failure> {
        let Given { device, aqm, target, seen: _, mut options } = self;
        options.device = device.ok_or_else(|| Failure::refused("which device? aqumend attach DEV --aqm SPEC"))?;
        options.aqm = aqm.ok_or_else(|| Failure::refused("which AQM? --aqm SPEC, such as --aqm stpi"))?;
        for (given, name) in [(options.overhead != 0, "overhead"), (options.buffer.is_some(), "buffer")] {
            if given && options.rate.is_none() {
                return Err(Failure::refused(format!(
                    "--{name} is of the shaper that --rate makes; --rate is missing"
                )));
            }
        }
        if options.leaf.is_some() && options.rate.is_some() {
            return Err(Failure::refused("--leaf is of a shaper that is there, --rate makes one: give one of them"));
        }
        if let Some(target) = target {
            options.target = target;
            options.aim();
        }
        Ok(options)
    }
}

/// The words of a file of options. `OPTIONS=` may stand before them, as in files for the environment of a service.
fn words_of(file: &Path) -> Result<Vec<OsString>, Failure> {
    let mut text = String::new();
    let open = File::open(file).or_refuse(|| "--options".into())?;
    open.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).or_refuse(|| "--options".into())?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(Failure::refused(format!("--options: must have at most {FILE_BYTES_MAX} bytes")));
    }
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let lines = lines.map(|line| line.strip_prefix("OPTIONS=").unwrap_or(line).trim_matches('"'));
    Ok(lines.flat_map(str::split_whitespace).map(OsString::from).collect())
}

/// The range of `--autorate`, which may be left out: what follows belongs to it only if it looks like one.
fn autorate(arguments: &mut lexopt::Parser) -> Result<Range, Failure> {
    if let Some(range) = arguments.optional_value() {
        return Range::read(&range.string()?);
    }
    let is_range =
        |next: &OsStr| next.to_str().is_some_and(|next| next.starts_with("floor=") || next.starts_with("ceiling="));
    let range = arguments.try_raw_args().and_then(|mut raw| raw.next_if(is_range));
    Range::read(&range.unwrap_or_default().to_string_lossy())
}

impl Options {
    /// Reads the command line; `None` if it only asked for help.
    pub(crate) fn read(mut arguments: lexopt::Parser) -> Result<Option<Self>, Failure> {
        let words: Vec<OsString> = arguments.raw_args()?.collect();
        let mut given = Given::nothing()?;
        let mut file = None;
        if !given.take(lexopt::Parser::from_args(words.clone()), &mut file)? {
            return Ok(None);
        }
        if let Some(file) = file {
            let at = |failure: Failure| Failure::refused(format!("{}: {failure}", shown(&file.display().to_string())));
            let words = words_of(&file).map_err(at)?;
            if !given.take(lexopt::Parser::from_args(words), &mut Some(file.clone())).map_err(at)? {
                return Ok(None);
            }
        }
        given.options.words = words;
        given.complete().map(Some)
    }

    /// Reads the command line again, with the present contents of its options file.
    pub(super) fn again(&self) -> Result<Self, Failure> {
        let options = Options::read(lexopt::Parser::from_args(self.words.clone()))?;
        options.ok_or_else(|| Failure::refused("--help is no option of an attachment"))
    }

    /// Those of a command line, for tests.
    #[cfg(test)]
    pub(super) fn of_line(line: &str) -> Self {
        let read = Options::read(lexopt::Parser::from_args(line.split(' ')));
        read.unwrap_or_else(|error| panic!("{error}")).expect("it asks for no help")
    }

    /// Puts the target where an algorithm takes a delay of its own.
    fn aim(&mut self) {
        let own = aqumen_aqm::registry::find(&self.aqm.algorithm)
            .and_then(|algorithm| algorithm.params.iter().find(|param| param.name == "target"));
        let in_seconds = own.is_some_and(|param| {
            matches!(param.kind, aqumen_aqm::Kind::Number { unit: aqumen_aqm::Unit::Seconds, .. })
        });
        let given = self.aqm.values.iter().any(|(name, _)| name == "target");
        if let (true, false, Target::Delay(delay)) = (in_seconds, given, self.target) {
            self.aqm.values.push(("target".into(), OwnedValue::Number(delay.as_secs_f64())));
        }
    }
}

/// Options that have a value.
const KNOWN: [&str; 16] = [
    "aqm", "target", "rate", "overhead", "buffer", "leaf", "flows", "rtt", "spare", "only", "rollback", "listen",
    "host", "record", "duration", "via",
];

/// Options of which each adds to the others.
const REPEATED: [&str; 2] = ["spare", "only"];

fn rate(option: &str, value: &str) -> Result<Rate, Failure> {
    let rate = read_rate(value).map_err(|why| wrong(option, value, why))?;
    if !(RATES.0..=RATES.1).contains(&rate.as_bps()) {
        return Err(wrong(option, value, "must be 8kbit to 400Gbit"));
    }
    Ok(rate)
}

fn time(option: &str, value: &str, least: Span, most: Span) -> Result<Span, Failure> {
    let time = read_span(value).map_err(|why| wrong(option, value, why))?;
    if !(least..=most).contains(&time) {
        let range = format!("must be {}s to {}s", least.as_nanos() as f64 / 1e9, most.as_nanos() as f64 / 1e9);
        return Err(wrong(option, value, range));
    }
    Ok(time)
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
    fn read(text: &str) -> Result<Self, Failure> {
        let mut range = Range::default();
        for pair in pairs("autorate", text) {
            match pair? {
                ("floor", value) => range.floor = Some(rate("autorate floor", value)?),
                ("ceiling", value) => range.ceiling = Some(rate("autorate ceiling", value)?),
                (name, _) => return Err(wrong("autorate", name, "known: floor, ceiling")),
            }
        }
        match (range.floor, range.ceiling) {
            (Some(floor), Some(ceiling)) if floor > ceiling => {
                Err(wrong("autorate", text, "floor must not be above ceiling"))
            }
            _ => Ok(range),
        }
    }
}

impl Rollback {
    fn read(text: &str) -> Result<Self, Failure> {
        let mut rollback = Rollback::default();
        for pair in pairs("rollback", text) {
            match pair? {
                ("delay", value) => {
                    let delay = time("rollback delay", value, Span::from_micros(100), Span::from_secs(60))?;
                    rollback.delay_s = Some(delay.as_secs_f64());
                }
                ("throughput", value) => {
                    let share = value.strip_suffix('%').and_then(|percent| percent.parse::<f64>().ok());
                    let share = share.map(|percent| percent / 100.0).filter(|share| *share > 0.0 && *share < 1.0);
                    let accepted = "must be a share above 0% and below 100%, such as 10%";
                    rollback.throughput = Some(share.ok_or_else(|| wrong("rollback throughput", value, accepted))?);
                }
                ("return", value) => {
                    let away = time("rollback return", value, Span::from_secs(1), Span::from_secs(86_400))?;
                    rollback.return_s = Some(away.as_secs_f64());
                }
                (name, _) => return Err(wrong("rollback", name, "known: delay, throughput, return")),
            }
        }
        if rollback.delay_s.is_none() && rollback.throughput.is_none() {
            return Err(wrong("rollback", text, "must have a limit: delay=20ms, throughput=10%"));
        }
        Ok(rollback)
    }
}

/// Where the live page is to be.
fn listen(text: &str) -> Result<Listen, Failure> {
    if text == "no" {
        return Ok(Listen::No);
    }
    let loopback = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let address = text.parse().or_else(|_| text.parse().map(loopback));
    address.map(Listen::At).map_err(|_| wrong("listen", text, "must be PORT, IP:PORT or 'no'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        let parser = lexopt::Parser::from_args(line.split(' '));
        Options::read(parser).map(|options| options.expect("no help asked")).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_whole_command_line_is_supported() {
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
        assert_eq!(options.listen, Listen::At("0.0.0.0:8080".parse().unwrap()));
        assert_eq!((options.via, options.dry_run), (Some(Way::Clsact), true));
        assert_eq!(read("eth0 --autorate --aqm pi").unwrap().autorate, Some(Range::default()));
        assert_eq!(read("eth0 --aqm pi --listen 80").unwrap().listen, Listen::At("127.0.0.1:80".parse().unwrap()));
    }

    #[test]
    fn what_is_spared_and_what_alone_is_regulated_are_apart() {
        let options = read("eth0 --aqm pi --spare dscp=ef --only mark=1 --spare port=22 --only port=443").unwrap();
        assert_eq!((options.spare.dscps, options.spare.ports[0], options.spare.mark), (1 << 46, 22, 0));
        assert_eq!((options.only.dscps, options.only.ports[0], options.only.mark), (0, 443, 1));
        let usual = read("eth0 --aqm pi").unwrap();
        assert!(!usual.spare.are_given() && !usual.only.are_given());
    }

    #[test]
    fn what_is_just_within_its_range_is_taken() {
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
        assert_eq!((others.record, others.listen, others.via), (Some("out".into()), Listen::No, Some(Way::Tcx)));
        let usual = read("eth0 --aqm pi").unwrap();
        assert_eq!((usual.target, usual.rtt), (Target::Delay(Span::from_millis(5)), Span::from_millis(100)));
        assert_eq!(usual.listen, Listen::Usual("127.0.0.1:9811".parse().unwrap()));
        assert!(!usual.dry_run && usual.flows.is_none() && usual.autorate.is_none() && usual.rollback.is_none());
        assert!(Options::read(lexopt::Parser::from_args(["eth0", "--help"])).unwrap().is_none());
    }

    #[test]
    fn a_delay_reaches_an_algorithm_that_has_one_of_its_own() {
        let target = |line: &str| {
            let values = read(line).unwrap().aqm.values;
            values.into_iter().find(|(name, _)| name == "target").map(|(_, value)| value)
        };
        assert_eq!(target("eth0 --aqm pie --target 5ms"), Some(OwnedValue::Number(0.005)));
        assert_eq!(target("eth0 --aqm pie:target=9ms --target 5ms"), Some(OwnedValue::Number(0.009)));
        assert_eq!(target("eth0 --aqm pie"), None);
        assert_eq!(target("eth0 --aqm pi --target 5ms"), None);
        // Another parameter beside it does not keep it away, and it is said once.
        assert_eq!(target("eth0 --aqm pie:interval=20ms --target 5ms"), Some(OwnedValue::Number(0.005)));
        let said = |line: &str| read(line).unwrap().aqm.values.len();
        assert_eq!([said("eth0 --aqm pie:target=9ms --target 5ms"), said("eth0 --aqm pie --target 5ms")], [1, 1]);
        // One whose other times are no target gets none.
        assert_eq!(said("eth0 --aqm blue --target 5ms"), 0);
    }

    #[test]
    fn options_may_stand_in_a_file_which_is_read_anew() {
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
        let again = options.again().unwrap();
        assert_eq!((again.target, again.spare.dscps), (Target::Delay(Span::from_millis(3)), 0));
        let at = format!("{}: ", file.display());
        for (text, why) in [
            ("--target soon", "--target \"soon\""),
            ("--aqm pi", "--aqm is given twice"),
            ("--options other", "--options is given twice"),
            ("eth1", "unexpected argument \"eth1\""),
            (&"x ".repeat(1 << 15 | 1), "must have at most 65536 bytes"),
        ] {
            let said = with(text).unwrap_err();
            assert!(said.starts_with(&at) && said.contains(why), "{said}");
        }
        std::fs::remove_file(&file).unwrap();
        assert!(read(&line).unwrap_err().contains("--options: No such file"));
    }

    #[test]
    fn what_is_wrong_is_told_by_its_first_characters() {
        for option in ["aqm", "target", "rate", "leaf", "flows", "rtt", "spare", "rollback", "listen", "host", "via"] {
            for long in ["x".repeat(5000), "x y=z ".repeat(1000)] {
                let words = ["eth0".to_owned(), format!("--{option}={long}")];
                let said = Options::read(lexopt::Parser::from_args(words)).unwrap_err().to_string();
                // The list of all AQMs, and the value once or twice.
                assert!(said.len() < 600, "--{option}: {said}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_option_value_and_what_is_accepted() {
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
            ("eth0 --aqm pi --buffer 9kB", "--buffer is of the shaper that --rate makes"),
            ("eth0 --aqm pi --rate 9Mbit --buffer 1999B", "must be 2kB to 1GiB"),
            ("eth0 --aqm pi --target 0pkt", "must be 1pkt to 1000000pkt"),
            ("eth0 --aqm pi --duration 99ms", "must be 0.1s to 31622400s"),
            ("eth0 --aqm pi --spare protocol=256", "must be 0 to 255"),
            ("eth0 --aqm pi --spare mark=1,mark=2", "one mark can be given"),
            ("eth0 --aqm pi --rollback throughput=0%", "such as 10%"),
            ("eth0 --aqm pi --rollback throughput=100%", "such as 10%"),
            ("eth0 --aqm pi --rollback speed=9", "known: delay, throughput, return"),
            ("eth0 --aqm pi --rollback return=5min", "must have a limit"),
            ("eth0 --aqm pi --rollback delay=20ms,return=100ms", "must be 1s to 86400s"),
            ("eth0 --aqm pi --autorate=middle=9Mbit", "known: floor, ceiling"),
            ("eth0 --aqm pi --autorate floor=1bit", "must be 8kbit to 400Gbit"),
            ("eth0 --aqm pi --rtt 0s", "must be 0.001s to 60s"),
            ("eth0 --aqm pi --spare dscp=64", "must be 0 to 63"),
            ("eth0 --aqm pi --spare port=0", "must be 1 to 65535"),
            ("eth0 --aqm pi --spare mark=0x10/0x0f", "with MARK inside MASK"),
            ("eth0 --aqm pi --spare voice", "must be NAME=VALUE"),
            ("eth0 --aqm pi --only class=1:10", "--only \"class\": known: dscp, protocol, mark, port"),
            ("eth0 --aqm pi --only dscp=64", "--only dscp \"64\": must be 0 to 63"),
            ("eth0 --aqm pi --spare colour=red", "known: dscp, protocol, mark, port"),
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
            let failure = Options::read(lexopt::Parser::from_args(arguments)).unwrap_err();
            assert!(matches!(failure, Failure::Refused(_)));
            assert!(failure.to_string().contains(message), "{line}: {failure}");
        }
    }
}
