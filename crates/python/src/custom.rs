//! Custom code in Python: control laws and per-packet AQMs; `traffic` has custom sources, `law_view` the observation
//! passed to a law, `errors` the errors of custom code. Engines run without the GIL and take it for each call.

mod copy;
mod errors;
mod law_view;
mod traffic;

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use aqumen_aqm::{
    Algorithm, AnyAqm, Aqm, Bound as End, Cx, DefaultValue, Draw, DropReason, Equilibrium, Hooks, Kind, MAX_LOOPS,
    Network, Observation, PERIOD_MIN, Param, ParamError, QueueOperatingPoint, Requirement, SampledLaw, Settings,
    Theory, Totals, Transfer, Unit, Value, Verdict,
};
use aqumen_scenario::{Extensions, Plan, Traffic};
use aqumen_units::{Ecn, Instant, Probability, Span};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::catalogue::names;
use crate::error::refuse;
use crate::own;
use copy::deep_copies;
pub(crate) use errors::WithCustomCode;
use errors::{CallError, Calls, ErrorSlot, custom_error, repr};
pub(crate) use law_view::LawView;
use law_view::View;

/// Names available to scenarios: the built-in ones and a list of Python classes.
#[pyclass(frozen, module = "aqumen._core")]
pub(crate) struct Catalogue(pub(crate) WithCustomCode<Extensions>);

/// Returns whether a run of `plan` calls Python code throughout.
pub(crate) fn calls_python(plan: &Plan) -> bool {
    plan.links.iter().any(|link| !names().any(|name| name == link.aqm.name))
        || plan.groups.iter().any(|group| matches!(group.traffic, Traffic::Custom(_)))
}

/// Description of a Python class.
#[derive(FromPyObject)]
struct CustomClass {
    name: String,
    title: String,
    summary: String,
    params: Vec<ParamTuple>,
    /// Kind: `law`, a control law; `packets`, a per-packet AQM; `traffic`, a source.
    kind: String,
    /// Constructor: of an AQM from the nominal network and the values given, of a source from a seed and the values.
    make: Py<PyAny>,
}

/// Parameter: name, unit, default (`None`: chosen by the instance), least and greatest value, description of one line.
type ParamTuple = (String, String, Option<f64>, Option<f64>, Option<f64>, String);

/// Instance of a law: the object, `step`, the periods of its loops in seconds, the initial probability, its parameters,
/// whether it marks, its transfer function.
type Law = (Py<PyAny>, Py<PyAny>, Vec<f64>, f64, Vec<(String, f64)>, bool, Option<(Vec<f64>, Vec<f64>)>);

/// Instance of a per-packet AQM: the object, the methods for an arrival, the head and the timer (`None`: it has none),
/// the timer's period in seconds, its parameters.
type PerPacket = (Py<PyAny>, Option<Py<PyAny>>, Option<Py<PyAny>>, Option<Py<PyAny>>, f64, Vec<(String, f64)>);

#[pymethods]
impl Catalogue {
    /// Makes a catalogue of the built-in names and these classes.
    #[new]
    fn new(classes: Vec<CustomClass>) -> PyResult<Self> {
        let errors = ErrorSlot::default();
        let mut all = own::extensions();
        for class in classes {
            let algorithm = class.algorithm()?;
            if class.kind == "traffic" {
                let kind = traffic::kind(algorithm.name, algorithm.params, class.make, &errors);
                all.traffic = all.traffic.with(kind).map_err(refuse)?;
                continue;
            }
            let (errors, make, law) = (errors.clone(), class.make, class.kind == "law");
            let build = move |settings: &Settings<'_>, network: &Network| -> Result<AnyAqm, ParamError> {
                let make = Factory { make: &make, algorithm: &algorithm, errors: &errors };
                if law { make.law(settings, network) } else { make.per_packet(settings, network) }
            };
            all.aqms = all.aqms.with(algorithm, build).map_err(refuse)?;
        }
        Ok(Catalogue(WithCustomCode::with(all, errors)))
    }
}

impl CustomClass {
    fn algorithm(&self) -> PyResult<Algorithm> {
        let mut params = Vec::new();
        for (name, unit, default, least, most, doc) in &self.params {
            let unit = UNITS.iter().find(|known| known.symbol() == unit).copied().ok_or_else(|| {
                let known = UNITS.map(|unit| format!("\"{}\"", unit.symbol()));
                refuse(format!(
                    "{}: parameter {name}: unknown unit \"{unit}\"; choose from: {}",
                    self.name,
                    known.join(", ")
                ))
            })?;
            let bound = |end: Option<f64>| end.map_or(End::Open, End::Inclusive);
            params.push(Param {
                name: static_str(name),
                kind: Kind::Number { unit, min: bound(*least), max: bound(*most) },
                default: default.map_or(DefaultValue::Designed("by the AQM itself"), DefaultValue::number),
                doc: static_str(doc),
            });
        }
        if self.kind == "law" {
            params.push(Param::ECN);
        }
        Ok(Algorithm {
            name: static_str(&self.name),
            title: static_str(&self.title),
            summary: static_str(&self.summary),
            reference: "-",
            params: Vec::leak(params),
        })
    }
}

const UNITS: [Unit; 7] =
    [Unit::One, Unit::Packets, Unit::Bytes, Unit::Seconds, Unit::Hertz, Unit::BitsPerSecond, Unit::PerPacket];

/// Returns `text` with static lifetime, as algorithm descriptors need it; each text is stored once.
fn static_str(text: &str) -> &'static str {
    static STRINGS: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut all = STRINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = all.get(text) {
        return text;
    }
    let text: &'static str = Box::leak(text.into());
    all.insert(text);
    text
}

/// Factory of one AQM's instances.
struct Factory<'a> {
    make: &'a Py<PyAny>,
    algorithm: &'a Algorithm,
    errors: &'a ErrorSlot,
}

impl Factory<'_> {
    fn law(&self, settings: &Settings<'_>, network: &Network) -> Result<AnyAqm, ParamError> {
        let (instance, step, periods_s, initial, params, ecn, transfer): Law = self.instance(settings, network)?;
        let mut periods = [None; MAX_LOOPS];
        for (period, given) in periods.iter_mut().zip(periods_s) {
            *period = Some(self.period(given)?);
        }
        let calls = Calls::new(self.algorithm.name, self.errors);
        let params = params.into_iter().map(|(name, value)| (static_str(&name), value)).collect();
        let transfer = match (transfer, periods) {
            (Some((num, den)), [Some(period), None]) => {
                Some(Transfer { num, den, period_s: Some(period.as_secs_f64()) })
            }
            _ => None,
        };
        let law = PyLaw {
            calls,
            instance,
            step,
            view: View::default(),
            periods,
            initial: Probability::clamp(initial),
            params,
            transfer,
        };
        Ok(AnyAqm::custom_law(law, ecn))
    }

    fn per_packet(&self, settings: &Settings<'_>, network: &Network) -> Result<AnyAqm, ParamError> {
        let (instance, arrival, head, timer, period_s, params): PerPacket = self.instance(settings, network)?;
        let period = self.period(if timer.is_some() { period_s } else { 1.0 })?;
        let calls = Calls::new(self.algorithm.name, self.errors);
        let params = params.into_iter().map(|(name, value)| (static_str(&name), value)).collect();
        let due = Instant::ZERO.saturating_add(period);
        Ok(AnyAqm::custom(PyAqm { calls, instance, arrival, head, timer, period, due, params }))
    }

    /// Makes an instance for `network`, in the form that the Python side describes.
    fn instance<T: for<'a, 'py> FromPyObject<'a, 'py, Error: Into<PyErr>>>(
        &self,
        settings: &Settings<'_>,
        network: &Network,
    ) -> Result<T, ParamError> {
        let made = Python::attach(|py| -> PyResult<T> {
            let values = PyDict::new(py);
            for param in self.algorithm.params {
                if let Some(x) = settings.number(param.name) {
                    values.set_item(param.name, x)?;
                } else if let Some(yes) = settings.flag(param.name) {
                    values.set_item(param.name, yes)?;
                }
            }
            let nominal = PyDict::new(py);
            for (name, value) in [
                ("capacity_bps", network.capacity.as_bps() as f64),
                ("flows", network.flows),
                ("base_rtt_s", network.base_rtt_s),
                ("target_pkts", network.target_pkts),
                ("packet_bytes", network.packet_bytes),
                ("link_bps", network.link_rate.as_bps() as f64),
                ("buffer_pkts", network.buffer_pkts),
            ] {
                nominal.set_item(name, value)?;
            }
            self.make.bind(py).call1((nominal, values))?.extract().map_err(Into::into)
        });
        made.map_err(|error| {
            self.errors.raise(custom_error(format!("{}: cannot be made", self.algorithm.name), error));
            // The caller raises the stored exception instead of this.
            ParamError::new("custom AQM", Value::Choice(self.algorithm.name), Requirement::Relation("cannot be made"))
        })
    }

    fn period(&self, seconds: f64) -> Result<Span, ParamError> {
        let period = Span::from_secs_f64(seconds);
        if seconds <= 1e9 && period >= PERIOD_MIN {
            return Ok(period);
        }
        Err(ParamError::new(
            "period",
            Value::Number(seconds),
            Requirement::Relation("must be from 1e-6 to 1e9 seconds"),
        ))
    }
}

/// Control law in Python.
struct PyLaw {
    calls: Calls,
    instance: Py<PyAny>,
    step: Py<PyAny>,
    view: View,
    periods: [Option<Span>; MAX_LOOPS],
    initial: Probability,
    params: Vec<(&'static str, f64)>,
    /// Transfer function from queue to probability, if the class names it.
    transfer: Option<Transfer>,
}

impl PyLaw {
    /// Probability per packet of a constant error; `None` with an integrator, or where the transfer function is not
    /// known.
    fn static_gain(&self) -> Option<f64> {
        let Transfer { num, den, .. } = self.transfer.as_ref()?;
        let (num, sum): (f64, f64) = (num.iter().sum(), den.iter().sum());
        let scale: f64 = den.iter().map(|x| x.abs()).sum();
        (sum.abs() > 1e-12 * scale && num != 0.0).then(|| num / sum)
    }
}

impl Theory for PyLaw {
    fn linear(&self, _at: &QueueOperatingPoint) -> Option<Transfer> {
        self.transfer.clone()
    }

    fn equilibrium(&self) -> Equilibrium {
        if self.static_gain().is_some() { Equilibrium::OffTarget } else { Equilibrium::AtTarget }
    }

    fn offset_pkts(&self, p: Probability) -> f64 {
        self.static_gain().map_or(0.0, |gain| p.get() / gain)
    }
}

impl Clone for PyLaw {
    fn clone(&self) -> Self {
        let [instance, step] = deep_copies(&self.calls, [Some(&self.instance), Some(&self.step)]);
        let same = |object: &Py<PyAny>| Python::attach(|py| object.clone_ref(py));
        PyLaw {
            calls: self.calls.clone(),
            instance: instance.unwrap_or_else(|| same(&self.instance)),
            step: step.unwrap_or_else(|| same(&self.step)),
            view: View::default(),
            periods: self.periods,
            initial: self.initial,
            params: self.params.clone(),
            transfer: self.transfer.clone(),
        }
    }
}

impl SampledLaw for PyLaw {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        self.periods
    }

    fn step(&mut self, which: usize, observation: &Observation) -> Probability {
        let PyLaw { calls, step, view, .. } = self;
        let result = calls.attempt(observation.now, |py| {
            let result = view.show_to(step.bind(py), which, observation)?;
            match result.extract::<f64>() {
                Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
                Ok(p) => Err(CallError::Wrong(format!("step() returned {p}; a probability is from 0 to 1"))),
                Err(_) => Err(CallError::Wrong(format!(
                    "step() returned {}; a probability is a number from 0 to 1",
                    repr(&result)
                ))),
            }
        });
        result.map_or(observation.applied, Probability::clamp)
    }

    fn initial(&self) -> Probability {
        self.initial
    }

    fn take_over(&mut self, old: &Self) {
        let instance = &self.instance;
        self.calls.attempt(Instant::ZERO, |py| follow(py, instance, &old.instance));
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.params.iter().for_each(|&(name, value)| visit(name, Value::Number(value)));
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

/// Calls `take_over` of `new` with the instance that it replaces.
fn follow(py: Python<'_>, new: &Py<PyAny>, old: &Py<PyAny>) -> Result<(), CallError> {
    new.call_method1(py, "take_over", (old,))?;
    Ok(())
}

/// View of a packet, passed to Python.
#[pyclass(frozen, get_all, module = "aqumen._core")]
pub(crate) struct PacketView {
    bytes: u32,
    ect: bool,
    ce: bool,
    flow: u32,
    class_: u8,
}

/// View of the queue, passed to Python.
#[pyclass(frozen, get_all, module = "aqumen._core")]
pub(crate) struct QueueView {
    now_s: f64,
    packets: u32,
    bytes: u64,
    limit_packets: u32,
    full: bool,
    sojourn_s: f64,
    uniform: f64,
    arrivals_pkts: u64,
    departures_pkts: u64,
}

/// Per-packet AQM in Python.
struct PyAqm {
    calls: Calls,
    instance: Py<PyAny>,
    arrival: Option<Py<PyAny>>,
    head: Option<Py<PyAny>>,
    timer: Option<Py<PyAny>>,
    period: Span,
    due: Instant,
    params: Vec<(&'static str, f64)>,
}

fn packet_view(packet: &aqumen_aqm::Packet) -> PacketView {
    PacketView {
        bytes: packet.bytes,
        ect: packet.ecn.is_ect(),
        ce: packet.ecn == Ecn::Ce,
        flow: packet.flow_hash,
        class_: packet.class,
    }
}

/// Makes a view of the queue; `sojourn` is that of the current packet, or of the one dequeued last.
fn queue_view<R: Draw>(
    cx: &mut Cx<'_, R>,
    packet: Option<&aqumen_aqm::Packet>,
    sojourn: Span,
    draw: bool,
) -> QueueView {
    QueueView {
        now_s: cx.now.as_secs_f64(),
        packets: cx.queue.packets,
        bytes: cx.queue.bytes,
        limit_packets: cx.queue.limit.packets,
        full: packet.is_some_and(|packet| cx.queue.is_full(packet)),
        sojourn_s: sojourn.as_secs_f64(),
        uniform: if draw { cx.rng.uniform() } else { 0.0 },
        arrivals_pkts: cx.queue.totals.arrivals,
        departures_pkts: cx.queue.totals.departures,
    }
}

/// Converts Python's verdict on `packet`.
fn verdict(name: &str, result: &Bound<'_, PyAny>, packet: &aqumen_aqm::Packet) -> Result<Verdict, CallError> {
    if result.is_none() {
        return Ok(Verdict::Pass);
    }
    let word = result.extract::<&str>().ok();
    match word {
        Some("pass") => Ok(Verdict::Pass),
        Some("mark") => Ok(Verdict::signal(packet, true)),
        Some("drop") => Ok(Verdict::Drop(DropReason::Early)),
        _ => Err(CallError::Wrong(format!(
            "{name}() returned {}; a verdict is None or \"pass\", \"mark\" or \"drop\"",
            repr(result)
        ))),
    }
}

impl Clone for PyAqm {
    fn clone(&self) -> Self {
        let objects = [Some(&self.instance), self.arrival.as_ref(), self.head.as_ref(), self.timer.as_ref()];
        let [instance, arrival, head, timer] = deep_copies(&self.calls, objects);
        PyAqm {
            calls: self.calls.clone(),
            instance: instance.unwrap_or_else(|| Python::attach(|py| self.instance.clone_ref(py))),
            arrival,
            head,
            timer,
            period: self.period,
            due: self.due,
            params: self.params.clone(),
        }
    }
}

impl Aqm for PyAqm {
    fn on_arrival<R: Draw>(&mut self, packet: &aqumen_aqm::Packet, cx: &mut Cx<'_, R>) -> Verdict {
        let Some(arrival) = &self.arrival else { return Verdict::Pass };
        let sojourn = cx.queue.totals.last_sojourn;
        let (now, queue) = (cx.now, queue_view(cx, Some(packet), sojourn, true));
        let result = self
            .calls
            .attempt(now, |py| verdict("on_arrival", &arrival.bind(py).call1((packet_view(packet), queue))?, packet));
        result.unwrap_or(Verdict::Pass)
    }

    fn on_dequeue<R: Draw>(&mut self, packet: &aqumen_aqm::Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        let Some(head) = &self.head else { return Verdict::Pass };
        let (now, queue) = (cx.now, queue_view(cx, None, sojourn, true));
        let result = self
            .calls
            .attempt(now, |py| verdict("on_dequeue", &head.bind(py).call1((packet_view(packet), queue))?, packet));
        result.unwrap_or(Verdict::Pass)
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timer.as_ref().map(|_| self.due)
    }

    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        let Some(timer) = &self.timer else { return };
        if self.due > cx.now {
            return;
        }
        // A late call does the work of one period; the clock keeps its phase.
        let periods = (cx.now - self.due).as_nanos() / self.period.as_nanos() + 1;
        self.due = self.due.saturating_add(self.period.saturating_mul(periods));
        let sojourn = cx.queue.totals.last_sojourn;
        let (now, queue) = (cx.now, queue_view(cx, None, sojourn, false));
        self.calls.attempt(now, |py| {
            timer.bind(py).call1((queue,))?;
            Ok(())
        });
    }

    fn hooks(&self) -> Hooks {
        Hooks { decides_at_head: self.head.is_some(), departures: false }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.params.iter().for_each(|&(name, value)| visit(name, Value::Number(value)));
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, _totals: &Totals) {
        self.due = now.saturating_add(self.period);
        if let Some(old) = old {
            self.due = old.due;
            let instance = &self.instance;
            self.calls.attempt(now, |py| follow(py, instance, &old.instance));
        }
    }
}
