//! `aqumend run`: a scenario with the kernel's TCP; and the options that the commands of the laboratory share.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use aqumen_scenario::{Plan, Scenario};
use serde::Serialize;

use super::report::{Curves, LiveResult};
use super::{report, run as live};
use crate::arguments::{Command, Opt, store, whole_number};
use crate::{Context, Error, shorten};

/// A scenario and changes of it, from a command line; `extra` has the options of one command.
#[derive(Debug, Default)]
pub(crate) struct ScenarioOptions<T> {
    file: Option<String>,
    name: Option<String>,
    aqm: Option<String>,
    seed: Option<u64>,
    changes: Vec<(String, String)>,
    until: Option<String>,
    pub(crate) extra: T,
}

impl<T: Default + 'static> ScenarioOptions<T> {
    /// Reads the command line of the command `name`; `None` if it only asked for help.
    pub(crate) fn read(
        name: &'static str,
        head: &'static str,
        extra: Vec<Opt<Self>>,
        arguments: lexopt::Parser,
    ) -> Result<Option<Self>, Error> {
        let mut options = vec![
            Opt::new(
                "aqm SPEC",
                "the AQM on the links under test; default: the scenario's own",
                |all: &mut Self, value| store(&mut all.aqm, Some(value.into())),
            ),
            Opt::new("seed N", "the seed; default 1", |all, value| {
                store(&mut all.seed, Some(whole_number("seed", value)?))
            }),
            Opt::repeated("set KEY=VALUE", "replace a value of the scenario; may be repeated", |all, value| {
                let (key, value) = value
                    .split_once('=')
                    .ok_or_else(|| Error::setup(format!("--set {}: must be KEY=VALUE", shorten(value))))?;
                all.changes.push((key.into(), value.into()));
                Ok(())
            }),
            Opt::new("until TIME", "only the beginning, up to this time: 30s", |all, value| {
                store(&mut all.until, Some(value.into()))
            }),
            Opt::new(
                "name FILE",
                "with -: name of the scenario, and the file beside which its own files are",
                |all, value| store(&mut all.name, Some(value.into())),
            ),
        ];
        options.extend(extra);
        let command = Command { name, head, operand: |all: &mut Self| &mut all.file, options };
        let mut all = Self::default();
        Ok(command.read(arguments, &mut all)?.then_some(all))
    }
}

impl<T> ScenarioOptions<T> {
    /// Reads the scenario, and makes its plan.
    pub(crate) fn plan(&self) -> Result<Plan, Error> {
        let file = self.file.as_deref().ok_or_else(|| Error::setup("a scenario file is missing; see --help"))?;
        let changes: Vec<(&str, &str)> = self.changes.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        let mut scenario = if file == "-" {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).context(|| "cannot read standard input".into())?;
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

/// A result, and curves for plots.
#[derive(Serialize)]
struct WithCurves<'a> {
    result: &'a LiveResult,
    curves: Curves<'a>,
}

/// Options of `aqumend run` alone.
#[derive(Debug, Default)]
struct RunFlags {
    curves: bool,
    progress: bool,
    super_packets: bool,
}

pub(crate) fn run(arguments: lexopt::Parser) -> Result<(), Error> {
    let extra = vec![
        Opt::new(
            "curves",
            "series and distributions too, under `curves`; the result is then under `result`",
            |all, _| {
                let all: &mut ScenarioOptions<RunFlags> = all;
                store(&mut all.extra.curves, true)
            },
        ),
        Opt::new("gso", "exchange super-packets of TCP: split before the queue, joined on the way out", |all, _| {
            store(&mut all.extra.super_packets, true)
        }),
        Opt::new("progress", "report progress on standard error", |all, _| store(&mut all.extra.progress, true)),
    ];
    let head = "aqumend run: a scenario with the kernel's own TCP and UDP, its links in this program, in network namespaces that end with it\n\n\
                Usage: aqumend run SCENARIO [OPTIONS]     (as root). SCENARIO is a file, or - for standard input; the result is JSON.\n";
    let Some(options) = ScenarioOptions::read("run", head, extra, arguments)? else { return Ok(()) };
    let plan = options.plan()?;
    let RunFlags { curves, progress, super_packets } = options.extra;
    stop_on_signals();
    let mut progress = progress.then(Progress::default);
    let (result, _) = live::run_with(&plan, live::RunOptions { super_packets, record: false }, |now| {
        if let Some(line) = progress.as_mut().and_then(|progress| progress.update(now, plan.duration.as_nanos())) {
            // The reader of the progress may have ended.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
        !is_stopped()
    })?;
    let json = if curves {
        serde_json::to_string(&WithCurves { curves: report::curves(&result.result), result: &result })
    } else {
        serde_json::to_string(&result)
    };
    print_line(&json.context(|| "the result".into())?)
}

/// Reported progress of a run, in hundredths.
#[derive(Debug, Default)]
struct Progress(u64);

impl Progress {
    /// Returns a line at each further hundredth of a run of `duration`; `now` and `duration` in nanoseconds.
    fn update(&mut self, now: u64, duration: u64) -> Option<String> {
        let hundredths = 100 * now / duration.max(1);
        (hundredths > std::mem::replace(&mut self.0, hundredths))
            .then(|| format!("progress {:.2}", hundredths as f64 / 100.0))
    }
}

/// Writes a line of data to standard output.
pub(crate) fn print_line(line: &str) -> Result<(), Error> {
    write_line(&mut std::io::stdout(), line)
}

/// Writes a line to `out`. A reader that has ended is no error.
fn write_line(out: &mut impl Write, line: &str) -> Result<(), Error> {
    match writeln!(out, "{line}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::setup(format!("cannot write: {error}")))
        }
        _ => Ok(()),
    }
}

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Whether a signal has requested the end of the program.
pub(crate) fn is_stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// Lets Ctrl-C and the signals of service managers end a run in good order.
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

    fn read(line: &[&str]) -> Result<Option<ScenarioOptions<bool>>, String> {
        let extra = vec![Opt::new("own", "a flag", |all: &mut ScenarioOptions<bool>, _| store(&mut all.extra, true))];
        let options = ScenarioOptions::read("test", "", extra, lexopt::Parser::from_args(line));
        options.map_err(|error| error.to_string())
    }

    #[test]
    fn a_scenario_and_its_changes_are_read() {
        let line =
            ["one.toml", "--aqm", "pi:a=1", "--seed", "7", "--set", "a.b=c=d", "--own", "--set=e=f", "--until", "3s"];
        let all = read(&line).unwrap().unwrap();
        assert!(all.extra);
        assert_eq!((all.file.as_deref(), all.aqm.as_deref()), (Some("one.toml"), Some("pi:a=1")));
        assert_eq!((all.seed, all.until.as_deref(), all.name), (Some(7), Some("3s"), None));
        let changes = [("a.b", "c=d"), ("e", "f")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(all.changes, changes);
        assert_eq!(read(&["-", "--name", "x.toml"]).unwrap().unwrap().name.as_deref(), Some("x.toml"));
        assert!(read(&["one.toml", "--help"]).unwrap().is_none());
    }

    #[test]
    fn invalid_options_are_refused_by_name() {
        let error = |line: &[&str]| read(line).unwrap_err();
        assert_eq!(error(&["one.toml", "--aqm", "pi", "--aqm", "red"]), "--aqm is given twice");
        assert_eq!(error(&["--set", "key"]), "--set key: must be KEY=VALUE");
        assert_eq!(error(&["--seed", "-1"]), "--seed -1: must be a whole number from 0 on");
        assert!(error(&["--set", &"word ".repeat(1000)]).len() < 150);
        let missing = ScenarioOptions::<bool>::default().plan().unwrap_err().to_string();
        assert_eq!(missing, "a scenario file is missing; see --help");
    }

    #[test]
    fn progress_is_reported_once_for_each_hundredth() {
        let mut progress = Progress::default();
        // A hundredth of 2 s is 20 ms.
        let lines = [0, 19, 20, 39, 40, 41, 1990, 2000].map(|ms| progress.update(ms * 1_000_000, 2_000_000_000));
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        assert_eq!(lines, ["progress 0.01", "progress 0.02", "progress 0.99", "progress 1.00"]);
    }

    /// Writer that always fails with this error.
    struct FailingWriter(std::io::ErrorKind);

    impl Write for FailingWriter {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is_one() {
        let mut out = Vec::new();
        write_line(&mut out, "{}").unwrap();
        assert_eq!(out, b"{}\n");
        assert_eq!(write_line(&mut FailingWriter(std::io::ErrorKind::BrokenPipe), "{}"), Ok(()));
        let error = write_line(&mut FailingWriter(std::io::ErrorKind::StorageFull), "{}").unwrap_err().to_string();
        assert!(error.starts_with("cannot write: "), "{error}");
    }
}
