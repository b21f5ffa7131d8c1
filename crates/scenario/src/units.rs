//! Values with units: "10Mbit", "280ms", "100pkt". All reading and writing of units is here.

use aqumen_aqm::Unit;
use aqumen_units::{Bytes, Rate, Span};

/// A physical quantity: its units, with their size in the base unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    /// Name in messages.
    pub(crate) name: &'static str,
    /// Example in messages.
    pub(crate) example: &'static str,
    /// Units; of several spellings of a size, messages list the first.
    units: &'static [(&'static str, f64)],
    /// Units suggested for a bare number, in addition to that of the example.
    likely: &'static [&'static str],
    /// Whether a bare number is accepted.
    bare: bool,
}

/// Time; base unit: nanosecond.
pub(crate) const TIME: Quantity = Quantity {
    name: "time",
    example: "280ms",
    units: &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9), ("\u{b5}s", 1e3)],
    likely: &["s"],
    bare: false,
};

/// Rate; base unit: bit per second.
pub(crate) const RATE: Quantity = Quantity {
    name: "rate",
    example: "8Mbit",
    units: &[
        ("bit", 1.0),
        ("kbit", 1e3),
        ("Mbit", 1e6),
        ("Gbit", 1e9),
        ("Tbit", 1e12),
        ("bit/s", 1.0),
        ("kbit/s", 1e3),
        ("Mbit/s", 1e6),
        ("Gbit/s", 1e9),
        ("Tbit/s", 1e12),
        ("bps", 1.0),
        ("kbps", 1e3),
        ("Mbps", 1e6),
        ("Gbps", 1e9),
        ("Tbps", 1e12),
    ],
    likely: &[],
    bare: false,
};

/// Packets.
pub(crate) const PACKETS: Quantity = Quantity {
    name: "number of packets",
    example: "100pkt",
    units: &[("pkt", 1.0), ("pkts", 1.0), ("packet", 1.0), ("packets", 1.0)],
    likely: &[],
    bare: false,
};

/// Bytes.
pub(crate) const BYTES: Quantity = Quantity {
    name: "size",
    example: "1000B",
    units: &[
        ("B", 1.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
    ],
    likely: &[],
    bare: false,
};

/// Packets per second.
pub(crate) const PACKET_RATE: Quantity = Quantity {
    name: "packet rate",
    example: "975pkt/s",
    units: &[("pkt/s", 1.0), ("kpkt/s", 1e3), ("Mpkt/s", 1e6), ("pps", 1.0), ("kpps", 1e3), ("Mpps", 1e6)],
    likely: &[],
    bare: false,
};

pub(crate) const FREQUENCY: Quantity = Quantity {
    name: "frequency",
    example: "150Hz",
    units: &[("Hz", 1.0), ("kHz", 1e3), ("/s", 1.0)],
    likely: &[],
    bare: false,
};

const PER_PACKET: Quantity =
    Quantity { name: "number", example: "1.8e-5", units: &[("/pkt", 1.0)], likely: &[], bare: true };

pub(crate) const NUMBER: Quantity = Quantity { name: "number", example: "0.5", units: &[], likely: &[], bare: true };

/// Reads a rate: "8Mbit".
pub fn read_rate(text: &str) -> Result<Rate, String> {
    RATE.read(text).map(|bps| Rate::from_bps(bps as u64))
}

/// Reads a time: "280ms".
pub fn read_span(text: &str) -> Result<Span, String> {
    TIME.read(text).map(|nanos| Span::from_nanos(nanos as u64))
}

/// Reads a number of packets: "100pkt".
pub fn read_packets(text: &str) -> Result<f64, String> {
    PACKETS.read(text)
}

/// Reads a size: "1000B".
pub fn read_bytes(text: &str) -> Result<Bytes, String> {
    BYTES.read(text).map(|bytes| Bytes(bytes as u64))
}

impl Quantity {
    /// Returns the quantity of `unit`, and the number of its base units per unit.
    pub(crate) fn for_unit(unit: Unit) -> (Quantity, f64) {
        match unit {
            Unit::Packets => (PACKETS, 1.0),
            Unit::Bytes => (BYTES, 1.0),
            Unit::Seconds => (TIME, 1e9),
            Unit::Hertz => (FREQUENCY, 1.0),
            Unit::BitsPerSecond => (RATE, 1.0),
            Unit::PerPacket => (PER_PACKET, 1.0),
            _ => (NUMBER, 1.0),
        }
    }

    /// Whether a bare number is accepted.
    pub(crate) fn is_bare(&self) -> bool {
        self.bare
    }

    /// Reads `text` in base units; the error is a message.
    pub(crate) fn read(&self, text: &str) -> Result<f64, String> {
        let text = text.trim();
        let (number, unit) = split(text);
        let Ok(value) = number.parse::<f64>() else {
            return Err(format!("must be a {}, such as \"{}\"", self.name, self.example));
        };
        if !value.is_finite() {
            return Err(format!("must be a finite {}, such as \"{}\"", self.name, self.example));
        }
        if unit.is_empty() {
            if self.bare {
                return Ok(value);
            }
            let units = std::iter::once(split(self.example).1).chain(self.likely.iter().copied());
            let offered: Vec<String> = units.map(|unit| format!("\"{number}{unit}\"")).collect();
            return Err(format!("needs a unit, such as {}", offered.join(" or ")));
        }
        match self.units.iter().find(|(name, _)| *name == unit) {
            Some((_, scale)) => Ok(value * scale),
            None if self.units.is_empty() => Err(format!("must be a number without unit, such as {}", self.example)),
            None => {
                // Of several spellings the first is listed.
                let first = |i: usize| !self.units[..i].iter().any(|(_, scale)| *scale == self.units[i].1);
                let listed: Vec<&str> = (0..self.units.len()).filter(|i| first(*i)).map(|i| self.units[i].0).collect();
                Err(format!("unknown unit \"{unit}\"; use {}", listed.join(", ")))
            }
        }
    }
}

/// Splits "1.5e3 Mbit" into number and unit. The number may still be malformed.
fn split(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while at < bytes.len() && (bytes[at].is_ascii_digit() || bytes[at] == b'.') {
            at += 1;
        }
        at
    };
    let sign = |at: usize| if matches!(bytes.get(at), Some(b'+' | b'-')) { at + 1 } else { at };
    let mut end = digits(sign(0));
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let exponent = sign(end + 1);
        if bytes.get(exponent).is_some_and(u8::is_ascii_digit) {
            end = digits(exponent);
        }
    }
    (&text[..end], text[end..].trim_start())
}

/// Formats a time exactly.
pub(crate) fn show_span(span: Span) -> String {
    if span == Span::ZERO {
        return "0s".into();
    }
    exact(span.as_nanos(), &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")], "ns")
}

/// Formats a rate exactly.
pub(crate) fn show_rate(rate: Rate) -> String {
    exact(rate.as_bps(), &[(1_000_000_000, "Gbit"), (1_000_000, "Mbit"), (1_000, "kbit")], "bit")
}

/// Formats a size exactly.
pub(crate) fn show_bytes(bytes: Bytes) -> String {
    exact(bytes.0, &[], "B")
}

/// Formats a parameter's value so that it can be read back.
pub(crate) fn show_value(unit: Unit, x: f64) -> String {
    match unit {
        Unit::Seconds if x >= 1e-9 => show_span(Span::from_nanos((x * 1e9 + 0.5) as u64)),
        Unit::BitsPerSecond if x >= 1.0 => show_rate(Rate::from_bps((x + 0.5) as u64)),
        Unit::Packets => format!("{}pkt", show_number(x)),
        Unit::Bytes => format!("{}B", show_number(x)),
        Unit::Hertz => format!("{}Hz", show_number(x)),
        _ => show_number(x),
    }
}

/// Formats a number with at most six digits.
fn show_number(x: f64) -> String {
    let rounded = format!("{x:.5e}").parse().unwrap_or(x);
    if rounded == 0.0 || (1e-4..1e15).contains(&f64::abs(rounded)) {
        format!("{rounded}")
    } else {
        format!("{rounded:e}")
    }
}

fn exact(value: u64, units: &[(u64, &str)], base: &str) -> String {
    match units.iter().find(|(size, _)| value >= *size && value.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", value / size),
        None => format!("{value}{base}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_base_units() {
        assert_eq!(RATE.read("8Mbit"), Ok(8e6));
        assert_eq!(RATE.read("15.55 Mbit/s"), Ok(15.55e6));
        assert_eq!(TIME.read("280ms"), Ok(280e6));
        assert_eq!(TIME.read("1e-3s"), Ok(1e6));
        assert_eq!(TIME.read("-1s"), Ok(-1e9));
        assert_eq!(BYTES.read("1KiB"), Ok(1024.0));
        assert_eq!(Quantity::for_unit(Unit::PerPacket).0.read("1.8e-5/pkt"), Ok(1.8e-5));
        assert_eq!(Quantity::for_unit(Unit::PerPacket).0.read("1.8e-5"), Ok(1.8e-5));
    }

    #[test]
    fn a_parameter_is_written_in_its_unit_and_kept_in_it() {
        for (unit, text, expected) in [
            (Unit::Packets, "30pkt", 30.0),
            (Unit::Bytes, "1.5kB", 1500.0),
            (Unit::Seconds, "20ms", 0.02),
            (Unit::Hertz, "170Hz", 170.0),
            (Unit::BitsPerSecond, "8Mbit", 8e6),
            (Unit::One, "0.25", 0.25),
        ] {
            let (quantity, scale) = Quantity::for_unit(unit);
            assert_eq!(quantity.read(text).map(|value| value / scale), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_show_the_accepted_form() {
        let error = |quantity: Quantity, text: &str| quantity.read(text).unwrap_err();
        assert_eq!(error(TIME, "100"), "needs a unit, such as \"100ms\" or \"100s\"");
        assert_eq!(error(RATE, "8mbit"), "unknown unit \"mbit\"; use bit, kbit, Mbit, Gbit, Tbit");
        assert_eq!(error(RATE, "fast"), "must be a rate, such as \"8Mbit\"");
        assert_eq!(error(TIME, "NaN"), "must be a time, such as \"280ms\"");
        assert_eq!(error(TIME, "inf s"), "must be a time, such as \"280ms\"");
        assert_eq!(error(TIME, "1e999s"), "must be a finite time, such as \"280ms\"");
        assert_eq!(error(TIME, "1.2.3s"), "must be a time, such as \"280ms\"");
        assert_eq!(error(TIME, ""), "must be a time, such as \"280ms\"");
        assert_eq!(error(NUMBER, "3pkt"), "must be a number without unit, such as 0.5");
    }

    #[test]
    fn written_values_read_back_exactly() {
        for nanos in [0, 1, 999, 1_000, 1_500_000, 35_000_000, 100_000_000_000, 86_399_999_999_999] {
            let shown = show_span(Span::from_nanos(nanos));
            assert_eq!(TIME.read(&shown).map(|x| x as u64), Ok(nanos), "{shown}");
        }
        assert_eq!(show_span(Span::from_millis(1500)), "1500ms");
        assert_eq!(show_rate(Rate::from_bps(15_550_000)), "15550kbit");
    }

    #[test]
    fn a_parameter_is_shown_as_it_may_be_written() {
        for (unit, value, shown) in [
            (Unit::Seconds, 0.02, "20ms"),
            (Unit::Seconds, 1e-9, "1ns"),
            (Unit::BitsPerSecond, 8e6, "8Mbit"),
            (Unit::BitsPerSecond, 1.0, "1bit"),
            (Unit::Packets, 30.0, "30pkt"),
            (Unit::Bytes, 1500.0, "1500B"),
            (Unit::Hertz, 1.0 / 3.0, "0.333333Hz"),
            (Unit::One, 1e-4, "0.0001"),
            (Unit::One, 1e-5, "1e-5"),
            (Unit::One, 0.0, "0"),
            (Unit::One, -2e15, "-2e15"),
            // Less than a nanosecond, or a bit per second, has no unit.
            (Unit::Seconds, 1e-12, "1e-12"),
            (Unit::BitsPerSecond, 0.5, "0.5"),
        ] {
            assert_eq!(show_value(unit, value), shown);
        }
    }
}
