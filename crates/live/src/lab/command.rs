//! `aqumend run`: a scenario with the kernel's TCP; and the options that the laboratory's commands share.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use aqumen_scenario::{Plan, Scenario};
use lexopt::prelude::*;
use serde::Serialize;

use super::report::{Curves, LiveResult};
use super::{report, run as live};
use crate::{Failure, Tried, shown};

/// The scenario and what is changed of it, as the command line has them.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    file: Option<String>,
    /// What the scenario is called in messages, and beside which its files are, where it comes from standard input.
    name: Option<String>,
    aqm: Option<String>,
    seed: Option<u64>,
    changes: Vec<(String, String)>,
    until: Option<String>,
}

impl Chosen {
    /// The help of these options.
    pub(crate) const HELP: &str = "  SCENARIO           a scenario file; - for standard input
  --aqm SPEC         the AQM on the links under test; else the scenario's own
  --seed N           the seed (1)
  --set KEY=VALUE    replace a value of the scenario; may be repeated
  --until TIME       only the beginning, up to this time: 30s
  --name FILE        with -: what the scenario is called, and beside which file its own files are
";

    /// The options of a command line, of which `own` takes those that are the command's; `None`:
    /// `help` was wanted, and is printed.
    pub(crate) fn read(
        mut parser: lexopt::Parser,
        help: fn() -> String,
        mut own: impl FnMut(&str, &mut lexopt::Parser) -> Result<bool, Failure>,
    ) -> Result<Option<Self>, Failure> {
        let mut chosen = Chosen::default();
        while let Some(argument) = parser.next()? {
            let (name, value) = match &argument {
                Long("help") | Short('h') => {
                    print!("{}", help());
                    return Ok(None);
                }
                Long(name) => (name.to_string(), None),
                Value(value) => (String::new(), Some(value.clone().string()?)),
                Short(_) => return Err(argument.unexpected().into()),
            };
            let taken =
                value.is_none() && own(&name, &mut parser)? || chosen.take(&name, value.clone(), &mut parser)?;
            match value {
                _ if taken => {}
                Some(value) => {
                    return Err(Failure::refused(format!("unexpected argument {}; see --help", shown(&value))));
                }
                None => return Err(Failure::refused(format!("unknown option --{}; see --help", shown(&name)))),
            }
        }
        Ok(Some(chosen))
    }

    /// Takes `argument` if it is one of these; `false`: it is not.
    fn take(&mut self, argument: &str, value: Option<String>, parser: &mut lexopt::Parser) -> Result<bool, Failure> {
        match (argument, value) {
            ("", Some(file)) if self.file.is_none() => self.file = Some(file),
            ("aqm", None) if self.aqm.is_some() => {
                return Err(Failure::refused("--aqm is given twice: a run has one AQM"));
            }
            ("aqm", None) => self.aqm = Some(parser.value()?.string()?),
            ("seed", None) => self.seed = Some(whole_number(parser, argument)?),
            ("until", None) => self.until = Some(parser.value()?.string()?),
            ("name", None) => self.name = Some(parser.value()?.string()?),
            ("set", None) => {
                let text = parser.value()?.string()?;
                let pair = text.split_once('=');
                let (key, value) =
                    pair.ok_or_else(|| Failure::refused(format!("--set {}: KEY=VALUE is wanted", shown(&text))))?;
                self.changes.push((key.into(), value.into()));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The plan.
    pub(crate) fn plan(&self) -> Result<Plan, Failure> {
        let file = self.file.as_deref().ok_or_else(|| Failure::refused("a scenario file is missing; see --help"))?;
        let changes: Vec<(&str, &str)> = self.changes.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        let mut scenario = if file == "-" {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).or_refuse(|| "cannot read standard input".into())?;
            Scenario::from_bytes(&text, self.name.as_deref().unwrap_or("standard input"), &changes)?
        } else {
            Scenario::load(file, &changes)?
        };
        if let Some(end) = &self.until {
            scenario = scenario.until(end)?;
        }
        let aqm = self.aqm.as_deref().map(|spec| scenario.aqm(spec)).transpose()?;
        Ok(scenario.plan(self.seed.unwrap_or(1), aqm.as_ref())?)
    }
}

/// A result, and what plots want beside it.
#[derive(Serialize)]
struct WithCurves<'a> {
    result: &'a LiveResult,
    curves: Curves<'a>,
}

/// `aqumend run`.
pub(crate) fn run(arguments: lexopt::Parser) -> Result<(), Failure> {
    let (mut curves, mut progress, mut super_packets) = (false, false, false);
    let own = |name: &str, _: &mut lexopt::Parser| {
        match name {
            "curves" => curves = true,
            "progress" => progress = true,
            "gso" => super_packets = true,
            _ => return Ok(false),
        }
        Ok(true)
    };
    let Some(chosen) = Chosen::read(arguments, help, own)? else { return Ok(()) };
    let plan = chosen.plan()?;
    stop_on_signals();
    let mut told = progress.then(Progress::default);
    let (result, _) = live::carry_out(&plan, live::Manner { super_packets, record: false }, |now| {
        if let Some(line) = told.as_mut().and_then(|told| told.news(now, plan.duration.as_nanos())) {
            // Whoever wanted to hear of it may be gone.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
        !is_stopped()
    })?;
    let json = if curves {
        serde_json::to_string(&WithCurves { curves: report::curves(&result.result), result: &result })
    } else {
        serde_json::to_string(&result)
    };
    print_line(&json.or_refuse(|| "the result".into())?)
}

/// How much of a run was told to be over, in hundredths.
#[derive(Debug, Default)]
struct Progress(u64);

impl Progress {
    /// What to tell at `now`, nanoseconds of a run of such a `duration`: another hundredth is over.
    fn news(&mut self, now: u64, duration: u64) -> Option<String> {
        let share = 100 * now / duration.max(1);
        (share > std::mem::replace(&mut self.0, share)).then(|| format!("progress {:.2}", share as f64 / 100.0))
    }
}

fn help() -> String {
    format!(
        "aqumend run: a scenario with the kernel's own TCP and UDP, its links in this program, in network namespaces that end with it\n\n\
         Usage: aqumend run SCENARIO [OPTIONS]     (as root); the result is JSON on standard output\n\n{}\
         \x20 --curves           series and distributions too, under `curves`; the result is then under `result`\n\
         \x20 --gso              take super-packets of TCP: split before the queue, joined on the way out\n\
         \x20 --progress         say on standard error how far it is\n",
        Chosen::HELP
    )
}

/// The value of an option that wants a whole number.
pub(crate) fn whole_number<T: std::str::FromStr>(parser: &mut lexopt::Parser, option: &str) -> Result<T, Failure> {
    let text = parser.value()?.string()?;
    text.parse()
        .map_err(|_| Failure::refused(format!("--{option} {}: a whole number from 0 on is wanted", shown(&text))))
}

/// Writes a line of data.
pub(crate) fn print_line(line: &str) -> Result<(), Failure> {
    write_line(&mut std::io::stdout(), line)
}

/// The same to `out`. Whoever reads may leave.
fn write_line(out: &mut impl Write, line: &str) -> Result<(), Failure> {
    match writeln!(out, "{line}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::refused(format!("cannot write: {error}")))
        }
        _ => Ok(()),
    }
}

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Whether somebody wants the program to end.
pub(crate) fn is_stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// Ctrl-C, and what service managers send, end a run in good order.
pub(crate) fn stop_on_signals() {
    extern "C" fn stop(_: libc::c_int) {
        STOPPED.store(true, Ordering::Relaxed);
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler stores to an atomic, which is allowed at any moment.
        unsafe { libc::signal(signal, stop as *const () as libc::sighandler_t) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options of a command line of a command that has the flag --own.
    fn read(line: &[&str]) -> Result<(Option<Chosen>, bool), Failure> {
        let mut own = false;
        let chosen = Chosen::read(lexopt::Parser::from_args(line), String::new, |name, _| {
            own |= name == "own";
            Ok(name == "own")
        })?;
        Ok((chosen, own))
    }

    fn refused(line: &[&str]) -> String {
        read(line).unwrap_err().to_string()
    }

    #[test]
    fn a_scenario_and_what_is_changed_of_it_are_read() {
        let line =
            ["one.toml", "--aqm", "pi:a=1", "--seed", "7", "--set", "a.b=c=d", "--own", "--set=e=f", "--until", "3s"];
        let (chosen, own) = read(&line).unwrap();
        let chosen = chosen.unwrap();
        assert!(own);
        assert_eq!((chosen.file.as_deref(), chosen.aqm.as_deref()), (Some("one.toml"), Some("pi:a=1")));
        assert_eq!((chosen.seed, chosen.until.as_deref(), chosen.name), (Some(7), Some("3s"), None));
        let changes = [("a.b", "c=d"), ("e", "f")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(chosen.changes, changes);
        assert_eq!(read(&["-", "--name", "x.toml"]).unwrap().0.unwrap().name.as_deref(), Some("x.toml"));
        assert!(read(&["one.toml", "--help"]).unwrap().0.is_none() && read(&["-h"]).unwrap().0.is_none());
    }

    #[test]
    fn what_is_no_option_is_refused_by_name() {
        assert_eq!(refused(&["one.toml", "two.toml"]), "unexpected argument two.toml; see --help");
        assert_eq!(refused(&["--onw"]), "unknown option --onw; see --help");
        assert_eq!(refused(&["one.toml", "--aqm", "pi", "--aqm", "red"]), "--aqm is given twice: a run has one AQM");
        let long = "word ".repeat(1000);
        assert!(
            [&["one.toml", &long][..], &["--set", &long], &["--seed", &long]]
                .map(refused)
                .iter()
                .all(|said| said.len() < 150)
        );
        assert_eq!(refused(&["--set", "key"]), "--set key: KEY=VALUE is wanted");
        assert_eq!(refused(&["--seed", "-1"]), "--seed -1: a whole number from 0 on is wanted");
        assert!(refused(&["-x"]).contains("-x") && refused(&["--aqm"]).contains("--aqm"));
        let missing = Chosen::default().plan().unwrap_err().to_string();
        assert_eq!(missing, "a scenario file is missing; see --help");
    }

    #[test]
    fn progress_is_told_at_each_hundredth_once() {
        let mut progress = Progress::default();
        // Of 2 s a hundredth is 20 ms.
        let news = [0, 19, 20, 39, 40, 41, 1990, 2000].map(|ms| progress.news(ms * 1_000_000, 2_000_000_000));
        let told: Vec<String> = news.into_iter().flatten().collect();
        assert_eq!(told, ["progress 0.01", "progress 0.02", "progress 0.99", "progress 1.00"]);
    }

    /// Takes nothing, for this reason.
    struct Deaf(std::io::ErrorKind);

    impl Write for Deaf {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_reads_no_more_ends_nothing_and_a_full_disk_is_told() {
        let mut out = Vec::new();
        write_line(&mut out, "{}").unwrap();
        assert_eq!(out, b"{}\n");
        assert_eq!(write_line(&mut Deaf(std::io::ErrorKind::BrokenPipe), "{}"), Ok(()));
        let why = write_line(&mut Deaf(std::io::ErrorKind::StorageFull), "{}").unwrap_err().to_string();
        assert!(why.starts_with("cannot write: "), "{why}");
    }
}
