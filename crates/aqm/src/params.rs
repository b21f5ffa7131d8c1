//! Parameters of algorithms: descriptions, values, checks and errors.

use core::fmt;

use aqumen_units::{Rate, Span};

/// Shortest allowed period of an algorithm's timer. With a shorter one a run would hardly do anything else.
pub const PERIOD_MIN: Span = Span::from_micros(1);

/// Range of numbers that are printed without exponent.
const PLAIN: core::ops::Range<f64> = 1e-7..1e15;

/// Longest list of names in a message, in characters.
const LIST_CHARS_MAX: usize = 200;

/// Unit of a number. The scenario parser converts `150Hz`, `5ms` or `100pkt` to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Per second.
    Hertz,
    /// Bits per second.
    BitsPerSecond,
    /// Probability per packet of queue.
    PerPacket,
    /// Dimensionless.
    One,
}

/// One end of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Closed end.
    Inclusive(f64),
    /// Open end.
    Exclusive(f64),
    /// Unbounded.
    Open,
}

/// Type and range of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A number in a unit, within a range.
    Number {
        /// Unit.
        unit: Unit,
        /// Lower end.
        min: Bound,
        /// Upper end.
        max: Bound,
    },
    /// True or false.
    Flag,
    /// One of these names.
    Choice(&'static [&'static str]),
}

/// Default value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DefaultValue {
    /// A constant.
    Value(Value<'static>),
    /// A value designed for the nominal network by the rule that the text names.
    Designed(&'static str),
}

/// Description of one parameter, for checks, documentation and command line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Name in a scenario and on the command line.
    pub name: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// Default value.
    pub default: DefaultValue,
    /// One-line description, with its symbol in the source.
    pub doc: &'static str,
}

/// A parameter's value, in the unit of its [`Param`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// A name.
    Choice(&'a str),
}

/// Nominal network, for which an algorithm without given gains is designed, and properties of its link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Assumed capacity, C.
    pub capacity: Rate,
    /// Assumed number of long-lived flows, N.
    pub flows: f64,
    /// Assumed round-trip time without queueing, seconds.
    pub base_rtt_s: f64,
    /// Target queue length, packets.
    pub target_pkts: f64,
    /// Mean packet size on the wire, bytes.
    pub packet_bytes: f64,
    /// Actual rate of the link at the start of a run.
    pub link_rate: Rate,
    /// Capacity of the buffer, packets.
    pub buffer_pkts: f64,
}

/// Values given by the operator, checked against the parameter table.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    values: &'a [(&'a str, Value<'a>)],
}

/// Error: a parameter has an invalid value.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamError {
    /// Name of the parameter as given.
    pub param: alloc::string::String,
    /// Value as text.
    pub value: alloc::string::String,
    /// Violated requirement.
    pub requirement: Requirement,
}

/// Requirement on a parameter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Requirement {
    /// A known name; these are the known ones.
    Known(alloc::vec::Vec<&'static str>),
    /// A number in this range.
    Range {
        /// Unit.
        unit: Unit,
        /// Lower end.
        min: Bound,
        /// Upper end.
        max: Bound,
    },
    /// `true` or `false`.
    Flag,
    /// One of these names.
    OneOf(&'static [&'static str]),
    /// A relation to other parameters or to the network, such as "must be below max_th".
    Relation(&'static str),
    /// A longer timer period than the resulting one, nanoseconds.
    Period(u64),
}

impl Unit {
    /// Symbol after a number; empty for a dimensionless one.
    pub const fn symbol(self) -> &'static str {
        match self {
            Unit::Packets => "pkt",
            Unit::Bytes => "B",
            Unit::Seconds => "s",
            Unit::Hertz => "Hz",
            Unit::BitsPerSecond => "bit/s",
            Unit::PerPacket => "1/pkt",
            Unit::One => "",
        }
    }
}

/// Concatenates tables of parameters at compile time.
macro_rules! joined {
    ($($part:expr),* $(,)?) => {{
        const PARTS: &[&[$crate::Param]] = &[$($part),*];
        const ALL: [$crate::Param; $crate::params::rows(PARTS)] = $crate::params::join(PARTS);
        &ALL
    }};
}
pub(crate) use joined;

/// Total length of `parts`.
pub(crate) const fn rows(parts: &[&[Param]]) -> usize {
    let (mut sum, mut part) = (0, 0);
    while part < parts.len() {
        sum += parts[part].len();
        part += 1;
    }
    sum
}

/// Concatenates `parts`, whose total length is `N`.
pub(crate) const fn join<const N: usize>(parts: &[&[Param]]) -> [Param; N] {
    let mut all = [Param::ECN; N];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut i = 0;
        while i < parts[part].len() {
            all[at] = parts[part][i];
            (at, i) = (at + 1, i + 1);
        }
        part += 1;
    }
    all
}

impl Param {
    /// A parameter above 0.
    pub const fn positive(name: &'static str, unit: Unit, default: DefaultValue, doc: &'static str) -> Self {
        Param { name, kind: Kind::Number { unit, min: Bound::Exclusive(0.0), max: Bound::Open }, default, doc }
    }

    /// A dimensionless parameter in [0, 1].
    pub const fn fraction(name: &'static str, default: DefaultValue, doc: &'static str) -> Self {
        let kind = Kind::Number { unit: Unit::One, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1.0) };
        Param { name, kind, default, doc }
    }

    /// A flag.
    pub const fn flag(name: &'static str, default: bool, doc: &'static str) -> Self {
        Param { name, kind: Kind::Flag, default: DefaultValue::Value(Value::Flag(default)), doc }
    }

    /// Parameter of every algorithm with early signals.
    pub const ECN: Param = Param::flag("ecn", true, "mark ECN-capable packets instead of dropping them");

    /// Parameter of every algorithm with a target queue length.
    pub const TARGET: Param = Param::positive(
        "target",
        Unit::Packets,
        DefaultValue::Designed("the network's target"),
        "target queue length, q0",
    );

    /// Checks that a number from outside a table is finite and above 0.
    pub(crate) fn check_positive(name: &str, value: f64, unit: Unit) -> Result<(), ParamError> {
        if value > 0.0 && value.is_finite() {
            Ok(())
        } else {
            let requirement = Requirement::Range { unit, min: Bound::Exclusive(0.0), max: Bound::Open };
            Err(ParamError::new(name, Value::Number(value), requirement))
        }
    }

    /// Checks a value.
    fn check(&self, value: Value<'_>) -> Result<(), Requirement> {
        match (self.kind, value) {
            (Kind::Number { unit, min, max }, Value::Number(x)) => {
                if min.admits_above(x) && max.admits_below(x) {
                    Ok(())
                } else {
                    Err(Requirement::Range { unit, min, max })
                }
            }
            (Kind::Number { unit, min, max }, _) => Err(Requirement::Range { unit, min, max }),
            (Kind::Flag, Value::Flag(_)) => Ok(()),
            (Kind::Flag, _) => Err(Requirement::Flag),
            (Kind::Choice(names), Value::Choice(name)) if names.contains(&name) => Ok(()),
            (Kind::Choice(names), _) => Err(Requirement::OneOf(names)),
        }
    }
}

impl Value<'_> {
    /// A time in seconds with its shortest decimal form: 15 ms is 0.015, not 0.015000000000000001.
    pub fn seconds(span: Span) -> Self {
        Value::Number(span.as_nanos() as f64 / 1e9)
    }
}

impl DefaultValue {
    /// A number.
    pub const fn number(x: f64) -> Self {
        DefaultValue::Value(Value::Number(x))
    }
}

impl Bound {
    fn admits_above(self, x: f64) -> bool {
        match self {
            Bound::Inclusive(b) => x >= b && x.is_finite(),
            Bound::Exclusive(b) => x > b && x.is_finite(),
            Bound::Open => x.is_finite(),
        }
    }

    fn admits_below(self, x: f64) -> bool {
        match self {
            Bound::Inclusive(b) => x <= b,
            Bound::Exclusive(b) => x < b,
            Bound::Open => true,
        }
    }
}

impl Network {
    /// Assumed capacity, packets per second.
    pub fn capacity_pps(&self) -> f64 {
        self.capacity.as_bps() as f64 / (8.0 * self.packet_bytes)
    }

    /// Actual rate of the link, packets per second.
    pub fn link_pps(&self) -> f64 {
        self.link_rate.as_bps() as f64 / (8.0 * self.packet_bytes)
    }

    /// Round-trip time at the operating point, R0 = base RTT + target / capacity, seconds.
    pub fn r0_s(&self) -> f64 {
        self.base_rtt_s + self.target_pkts / self.capacity_pps()
    }
}

impl<'a> Settings<'a> {
    /// No values: every parameter has its default.
    pub const NONE: Settings<'static> = Settings { values: &[] };

    /// Checks names, types and ranges of `values` against `table`.
    pub fn check(values: &'a [(&'a str, Value<'a>)], table: &[Param]) -> Result<Self, ParamError> {
        for &(name, value) in values {
            let Some(param) = table.iter().find(|param| param.name == name) else {
                let known = table.iter().map(|param| param.name).collect();
                return Err(ParamError::new(name, value, Requirement::Known(known)));
            };
            param.check(value).map_err(|requirement| ParamError::new(name, value, requirement))?;
        }
        Ok(Settings { values })
    }

    /// The number given for `name`.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.find(name)? {
            Value::Number(x) => Some(x),
            _ => None,
        }
    }

    /// The integer given for `name`; an error if the number is not whole.
    pub fn whole(&self, name: &str) -> Result<Option<usize>, ParamError> {
        match self.number(name) {
            Some(x) if x < 0.0 || libm::floor(x) != x => Err(ParamError::relation(name, x, "must be a whole number")),
            given => Ok(given.map(|x| x as usize)),
        }
    }

    /// The flag given for `name`.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.find(name)? {
            Value::Flag(yes) => Some(yes),
            _ => None,
        }
    }

    /// The choice given for `name`.
    pub fn choice(&self, name: &str) -> Option<&'a str> {
        match self.find(name)? {
            Value::Choice(choice) => Some(choice),
            _ => None,
        }
    }

    /// Whether `name` was given.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The last value given for `name`; later values override earlier ones.
    fn find(&self, name: &str) -> Option<Value<'a>> {
        self.values.iter().rev().find(|(given, _)| *given == name).map(|&(_, value)| value)
    }
}

impl ParamError {
    /// Error: `value` of `param` violates `requirement`.
    pub fn new(param: &str, value: Value<'_>, requirement: Requirement) -> Self {
        ParamError { param: param.into(), value: alloc::format!("{value}"), requirement }
    }

    /// Error: `value` of `param` violates a relation to other parameters.
    pub fn relation(param: &str, value: f64, relation: &'static str) -> Self {
        ParamError::new(param, Value::Number(value), Requirement::Relation(relation))
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Keeps messages short: 1e300, not 301 digits.
            Value::Number(x) if *x != 0.0 && x.is_finite() && !PLAIN.contains(&x.abs()) => write!(f, "{x:e}"),
            Value::Number(x) => write!(f, "{x}"),
            Value::Flag(yes) => write!(f, "{yes}"),
            Value::Choice(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Known(names) => {
                // A long list is truncated.
                let mut free = LIST_CHARS_MAX;
                let fits = |name: &&&str| {
                    let left = free.checked_sub(name.len() + 2);
                    free = left.unwrap_or(0);
                    left.is_some()
                };
                let shown: alloc::vec::Vec<&str> = names.iter().take_while(fits).copied().collect();
                write!(f, "not a parameter; known: {}", shown.join(", "))?;
                match names.len() - shown.len() {
                    0 => Ok(()),
                    left => write!(f, ", ... and {left} more; aqumen list aqms lists all"),
                }
            }
            Requirement::Range { unit, min, max } => {
                f.write_str("must be a number")?;
                match min {
                    Bound::Inclusive(b) => write!(f, " of at least {b}")?,
                    Bound::Exclusive(b) => write!(f, " above {b}")?,
                    Bound::Open => {}
                }
                match max {
                    Bound::Inclusive(b) => write!(f, ", at most {b}")?,
                    Bound::Exclusive(b) => write!(f, ", below {b}")?,
                    Bound::Open => {}
                }
                match unit {
                    Unit::One => Ok(()),
                    unit => write!(f, " ({})", unit.symbol()),
                }
            }
            Requirement::Flag => f.write_str("must be true or false"),
            Requirement::OneOf(names) => write!(f, "must be one of {}", names.join(", ")),
            Requirement::Relation(relation) => f.write_str(relation),
            Requirement::Period(nanos) => {
                let shortest = PERIOD_MIN.as_nanos() / 1000;
                write!(f, "gives an update period of {nanos} ns; it must be at least {shortest} us")
            }
        }
    }
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.requirement {
            Requirement::Known(_) => write!(f, "{}: {}", self.param, self.requirement),
            Requirement::Period(_) if self.param.is_empty() => write!(f, "the nominal network {}", self.requirement),
            requirement => write!(f, "{} = {}: {requirement}", self.param, self.value),
        }
    }
}

impl core::error::Error for ParamError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const TABLE: &[Param] = &[
        Param::positive("target", Unit::Packets, DefaultValue::Designed("the network's target"), "q_ref"),
        Param::ECN,
        Param {
            name: "variant",
            kind: Kind::Choice(&["A", "B"]),
            default: DefaultValue::Value(Value::Choice("B")),
            doc: "",
        },
    ];

    fn message(values: &[(&str, Value<'_>)]) -> alloc::string::String {
        Settings::check(values, TABLE).unwrap_err().to_string()
    }

    #[test]
    fn values_are_found_by_name_and_the_later_one_wins() {
        let values = [("target", Value::Number(100.0)), ("ecn", Value::Flag(false)), ("target", Value::Number(50.0))];
        let settings = Settings::check(&values, TABLE).unwrap();
        assert_eq!(settings.number("target"), Some(50.0));
        assert_eq!(settings.flag("ecn"), Some(false));
        assert_eq!(settings.choice("variant"), None);
    }

    #[test]
    fn a_time_prints_in_its_shortest_form() {
        assert_eq!(Value::seconds(Span::from_millis(15)).to_string(), "0.015");
        assert_eq!(Value::seconds(Span::from_millis(150)).to_string(), "0.15");
    }

    #[test]
    fn errors_name_the_parameter_and_its_accepted_range() {
        assert_eq!(message(&[("target", Value::Number(0.0))]), "target = 0: must be a number above 0 (pkt)");
        assert_eq!(message(&[("target", Value::Number(f64::NAN))]), "target = NaN: must be a number above 0 (pkt)");
        assert_eq!(message(&[("ecn", Value::Choice("maybe"))]), "ecn = maybe: must be true or false");
        assert_eq!(message(&[("variant", Value::Choice("D"))]), "variant = D: must be one of A, B");
        assert_eq!(message(&[("aim", Value::Number(1.0))]), "aim: not a parameter; known: target, ecn, variant");
    }

    #[test]
    fn very_large_and_small_numbers_print_with_an_exponent() {
        let shown = |x: f64| Value::Number(x).to_string();
        assert_eq!([1e300, 1e-300, -1e300, 5e-324].map(shown), ["1e300", "1e-300", "-1e300", "5e-324"]);
        assert_eq!([0.0, 6.48e-7, 1e9, 0.1].map(shown), ["0", "0.000000648", "1000000000", "0.1"]);
        assert_eq!([f64::INFINITY, f64::NAN].map(shown), ["inf", "NaN"]);
    }

    #[test]
    fn a_long_list_of_parameters_is_truncated_and_names_the_command() {
        let names: alloc::vec::Vec<&'static str> = (0..60).map(|_| "parameter").collect();
        let message = Requirement::Known(names).to_string();
        // "parameter, " takes 11 characters: 18 of them fit into 200.
        assert_eq!(message.matches("parameter, ").count(), 18);
        assert!(message.ends_with("parameter, ... and 42 more; aqumen list aqms lists all"), "{message}");
    }
}
