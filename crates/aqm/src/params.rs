//! Parameters: how an algorithm describes them, how an operator gives them, what is wrong when one does not fit.

use core::fmt;

use aqumen_units::{Rate, Span};

/// The least time between two updates of an algorithm, whether it is given or follows from other parameters: below it a
/// run would do nothing but update.
pub const PERIOD_MIN: Span = Span::from_micros(1);

/// Numbers that are written out; others have a power of ten.
const PLAIN: core::ops::Range<f64> = 1e-7..1e15;

/// Longest list of names in a message, characters.
const LIST_CHARS_MAX: usize = 200;

/// The unit in which a number is kept. The scenario's parser turns `150Hz`, `5ms` or `100pkt` into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A number without dimension.
    One,
}

/// One end of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The value itself is allowed.
    Inclusive(f64),
    /// The value itself is not allowed.
    Exclusive(f64),
    /// No bound.
    Open,
}

/// What values a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A number in a unit, within a range.
    Number {
        /// Its unit.
        unit: Unit,
        /// The lower end.
        min: Bound,
        /// The upper end.
        max: Bound,
    },
    /// Yes or no.
    Flag,
    /// One of some words.
    Choice(&'static [&'static str]),
}

/// The value when the operator gives none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DefaultValue {
    /// This value.
    Value(Value<'static>),
    /// A value designed from the nominal network; the text names the rule.
    Designed(&'static str),
}

/// One parameter of an algorithm: a row of the tables that documentation and command line print.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Its name in a scenario or on the command line.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// The value when the operator gives none.
    pub default: DefaultValue,
    /// One line on what it does, with its symbol in the source.
    pub doc: &'static str,
}

/// A parameter's value, in the unit of its [`Param`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A word.
    Choice(&'a str),
}

/// The nominal network, from which algorithms that are given no gains design themselves, and the link they sit on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Capacity that the design assumes.
    pub capacity: Rate,
    /// Number of long-lived flows that the design assumes, N.
    pub flows: f64,
    /// Round-trip time without queueing that the design assumes, seconds.
    pub base_rtt_s: f64,
    /// Target queue length, packets.
    pub target_pkts: f64,
    /// Mean packet size on the wire, bytes.
    pub packet_bytes: f64,
    /// Rate of the link itself when the run starts.
    pub link_rate: Rate,
    /// Room of the queue, packets.
    pub buffer_pkts: f64,
}

/// The values an operator gave, checked against the algorithm's table.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    values: &'a [(&'a str, Value<'a>)],
}

/// Why parameters do not fit.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamError {
    /// The parameter at fault, as the operator wrote it.
    pub param: alloc::string::String,
    /// Its value, as text.
    pub value: alloc::string::String,
    /// What is asked of it.
    pub requirement: Requirement,
}

/// What is asked of a parameter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Requirement {
    /// No such parameter; the known ones.
    Known(alloc::vec::Vec<&'static str>),
    /// A number in this range.
    Range {
        /// Its unit.
        unit: Unit,
        /// The lower end.
        min: Bound,
        /// The upper end.
        max: Bound,
    },
    /// `true` or `false`.
    Flag,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A relation to other parameters or to the network, in words: "must be below max_th".
    Relation(&'static str),
    /// A longer time between two updates; the one that these parameters make, nanoseconds.
    Period(u64),
}

impl Unit {
    /// The unit as written after a number; empty for a pure number.
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

/// A table of parameters made of several, one after another.
macro_rules! joined {
    ($($part:expr),* $(,)?) => {{
        const PARTS: &[&[$crate::Param]] = &[$($part),*];
        const ALL: [$crate::Param; $crate::params::rows(PARTS)] = $crate::params::join(PARTS);
        &ALL
    }};
}
pub(crate) use joined;

/// Rows of `parts` in all.
pub(crate) const fn rows(parts: &[&[Param]]) -> usize {
    let (mut sum, mut part) = (0, 0);
    while part < parts.len() {
        sum += parts[part].len();
        part += 1;
    }
    sum
}

/// The rows of `parts`, which are `N`.
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
    /// A number above zero.
    pub const fn positive(name: &'static str, unit: Unit, default: DefaultValue, doc: &'static str) -> Self {
        Param { name, kind: Kind::Number { unit, min: Bound::Exclusive(0.0), max: Bound::Open }, default, doc }
    }

    /// A number in [0, 1] without dimension.
    pub const fn fraction(name: &'static str, default: DefaultValue, doc: &'static str) -> Self {
        let kind = Kind::Number { unit: Unit::One, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1.0) };
        Param { name, kind, default, doc }
    }

    /// Yes or no.
    pub const fn flag(name: &'static str, default: bool, doc: &'static str) -> Self {
        Param { name, kind: Kind::Flag, default: DefaultValue::Value(Value::Flag(default)), doc }
    }

    /// The parameter that every algorithm with early signals has.
    pub const ECN: Param = Param::flag("ecn", true, "mark ECN-capable packets instead of dropping them");

    /// The parameter that every algorithm with a target queue has.
    pub const TARGET: Param = Param::positive(
        "target",
        Unit::Packets,
        DefaultValue::Designed("the network's target"),
        "target queue length, q0",
    );

    /// Checks that a number that did not come through a table is finite and above zero.
    pub(crate) fn check_positive(name: &str, value: f64, unit: Unit) -> Result<(), ParamError> {
        if value > 0.0 && value.is_finite() {
            Ok(())
        } else {
            let requirement = Requirement::Range { unit, min: Bound::Exclusive(0.0), max: Bound::Open };
            Err(ParamError::new(name, Value::Number(value), requirement))
        }
    }

    /// Checks one value against this row.
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
            (Kind::Choice(words), Value::Choice(word)) if words.contains(&word) => Ok(()),
            (Kind::Choice(words), _) => Err(Requirement::OneOf(words)),
        }
    }
}

impl Value<'_> {
    /// A length of time, seconds, as short as it was written: 15 ms is 0.015, not 0.015000000000000001.
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
    /// Capacity that the design assumes, packets per second.
    pub fn capacity_pps(&self) -> f64 {
        self.capacity.as_bps() as f64 / (8.0 * self.packet_bytes)
    }

    /// Rate of the link itself, packets per second.
    pub fn link_pps(&self) -> f64 {
        self.link_rate.as_bps() as f64 / (8.0 * self.packet_bytes)
    }

    /// Round-trip time at the operating point, R0 = base RTT + target / capacity, seconds.
    pub fn r0_s(&self) -> f64 {
        self.base_rtt_s + self.target_pkts / self.capacity_pps()
    }
}

impl<'a> Settings<'a> {
    /// Nothing given: every parameter takes its default.
    pub const NONE: Settings<'static> = Settings { values: &[] };

    /// Checks `values` against `table`, one by one: known names, right kinds, in range.
    pub fn check(values: &'a [(&'a str, Value<'a>)], table: &[Param]) -> Result<Self, ParamError> {
        for &(name, value) in values {
            let Some(row) = table.iter().find(|row| row.name == name) else {
                let known = table.iter().map(|row| row.name).collect();
                return Err(ParamError::new(name, value, Requirement::Known(known)));
            };
            row.check(value).map_err(|requirement| ParamError::new(name, value, requirement))?;
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

    /// The number given for `name`, which must be whole.
    pub(crate) fn whole(&self, name: &str) -> Result<Option<usize>, ParamError> {
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

    /// The word given for `name`.
    pub fn choice(&self, name: &str) -> Option<&'a str> {
        match self.find(name)? {
            Value::Choice(word) => Some(word),
            _ => None,
        }
    }

    /// Whether `name` was given.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The last value given for `name`: a later one overrides an earlier.
    fn find(&self, name: &str) -> Option<Value<'a>> {
        self.values.iter().rev().find(|(given, _)| *given == name).map(|&(_, value)| value)
    }
}

impl ParamError {
    /// The error that `param` with `value` breaks `requirement`.
    pub fn new(param: &str, value: Value<'_>, requirement: Requirement) -> Self {
        ParamError { param: param.into(), value: alloc::format!("{value}"), requirement }
    }

    /// The error that `param` stands in the wrong relation to others.
    pub fn relation(param: &str, value: f64, words: &'static str) -> Self {
        ParamError::new(param, Value::Number(value), Requirement::Relation(words))
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // As written out a number of 300 digits would be one, and no line of a message.
            Value::Number(x) if *x != 0.0 && x.is_finite() && !PLAIN.contains(&x.abs()) => write!(f, "{x:e}"),
            Value::Number(x) => write!(f, "{x}"),
            Value::Flag(yes) => write!(f, "{yes}"),
            Value::Choice(word) => f.write_str(word),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Known(names) => {
                // Of a long list the beginning.
                let mut room = LIST_CHARS_MAX;
                let fits = |name: &&&str| {
                    let left = room.checked_sub(name.len() + 2);
                    room = left.unwrap_or(0);
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
            Requirement::OneOf(words) => write!(f, "must be one of {}", words.join(", ")),
            Requirement::Relation(words) => f.write_str(words),
            Requirement::Period(nanos) => {
                let least = PERIOD_MIN.as_nanos() / 1000;
                write!(f, "makes an update each {nanos} ns; no less than {least} us may lie between two updates")
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
    fn a_time_is_shown_as_it_was_written() {
        assert_eq!(Value::seconds(Span::from_millis(15)).to_string(), "0.015");
        assert_eq!(Value::seconds(Span::from_millis(150)).to_string(), "0.15");
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_accepted_range() {
        assert_eq!(message(&[("target", Value::Number(0.0))]), "target = 0: must be a number above 0 (pkt)");
        assert_eq!(message(&[("target", Value::Number(f64::NAN))]), "target = NaN: must be a number above 0 (pkt)");
        assert_eq!(message(&[("ecn", Value::Choice("maybe"))]), "ecn = maybe: must be true or false");
        assert_eq!(message(&[("variant", Value::Choice("D"))]), "variant = D: must be one of A, B");
        assert_eq!(message(&[("aim", Value::Number(1.0))]), "aim: not a parameter; known: target, ecn, variant");
    }

    #[test]
    fn a_number_takes_no_line_of_its_own() {
        let shown = |x: f64| Value::Number(x).to_string();
        assert_eq!([1e300, 1e-300, -1e300, 5e-324].map(shown), ["1e300", "1e-300", "-1e300", "5e-324"]);
        assert_eq!([0.0, 6.48e-7, 1e9, 0.1].map(shown), ["0", "0.000000648", "1000000000", "0.1"]);
        assert_eq!([f64::INFINITY, f64::NAN].map(shown), ["inf", "NaN"]);
    }

    #[test]
    fn a_long_list_of_parameters_ends_at_a_word_and_names_the_command() {
        let names: alloc::vec::Vec<&'static str> = (0..60).map(|_| "parameter").collect();
        let said = Requirement::Known(names).to_string();
        // "parameter, " takes 11 characters: 18 of them fit into 200.
        assert_eq!(said.matches("parameter, ").count(), 18);
        assert!(said.ends_with("parameter, ... and 42 more; aqumen list aqms lists all"), "{said}");
    }
}
