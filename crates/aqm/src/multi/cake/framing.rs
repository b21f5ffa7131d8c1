//! Size of a packet on a line with framing: Linux, `cake_calc_overhead`.
//!
//! ```text
//! framed = max(bytes + overhead, mpu)
//! noatm: framed        atm: 53 ceil(framed / 48)        ptm: framed + ceil(framed / 64)
//! ```

use crate::{Bound, DefaultValue, Kind, Param, ParamError, Settings, Unit, Value};

/// Range of tc's `overhead`, bytes.
const OVERHEAD: (f64, f64) = (-64.0, 256.0);
/// Upper bound of tc's `mpu`, bytes.
const MPU_MAX: f64 = 256.0;

pub(super) const PARAMS: [Param; 3] = [
    Param {
        name: "overhead",
        kind: Kind::Number { unit: Unit::Bytes, min: Bound::Inclusive(OVERHEAD.0), max: Bound::Inclusive(OVERHEAD.1) },
        default: DefaultValue::number(0.0),
        doc: "bytes added to each packet on the line, for turns and the rates of tins; tc's overhead",
    },
    Param {
        name: "mpu",
        kind: Kind::Number { unit: Unit::Bytes, min: Bound::Inclusive(0.0), max: Bound::Inclusive(MPU_MAX) },
        default: DefaultValue::number(0.0),
        doc: "least size of a packet on the line, with its overhead; tc's mpu",
    },
    Param {
        name: "atm",
        kind: Kind::Choice(Cells::NAMES),
        default: DefaultValue::Value(Value::Choice(Cells::None.name())),
        doc: "cells of the line, by tc's names: none, ATM (53 bytes carry 48), or PTM (65 bytes carry 64)",
    },
];

/// Cells of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cells {
    /// None.
    None,
    /// ATM: 53 bytes carry 48.
    Atm,
    /// PTM: 65 bytes carry 64.
    Ptm,
}

impl Cells {
    const NAMES: &'static [&'static str] = &["noatm", "atm", "ptm"];

    fn from_name(name: &str) -> Cells {
        match name {
            "atm" => Cells::Atm,
            "ptm" => Cells::Ptm,
            _ => Cells::None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Cells::None => "noatm",
            Cells::Atm => "atm",
            Cells::Ptm => "ptm",
        }
    }
}

/// Framing of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bytes added to each packet.
    pub overhead: i32,
    /// Least size of a frame, bytes.
    pub mpu: u32,
    /// Cells.
    pub cells: Cells,
}

impl Framing {
    /// No framing.
    pub const NONE: Framing = Framing { overhead: 0, mpu: 0, cells: Cells::None };

    pub(super) fn from_settings(settings: &Settings<'_>) -> Result<Self, ParamError> {
        let overhead = settings.number("overhead").unwrap_or(0.0);
        if libm::floor(overhead) != overhead {
            return Err(ParamError::relation("overhead", overhead, "must be a whole number"));
        }
        Ok(Framing {
            overhead: overhead as i32,
            mpu: settings.whole("mpu")?.map_or(0, |bytes| bytes as u32),
            cells: settings.choice("atm").map_or(Cells::None, Cells::from_name),
        })
    }

    /// Size of a packet of `bytes` on the line.
    #[inline]
    pub(super) fn counted(&self, bytes: u32) -> u32 {
        let framed = bytes.saturating_add_signed(self.overhead).max(self.mpu);
        match self.cells {
            Cells::None => framed,
            Cells::Atm => framed.div_ceil(48).saturating_mul(53),
            Cells::Ptm => framed.saturating_add(framed.div_ceil(64)),
        }
    }

    pub(super) fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("overhead", Value::Number(f64::from(self.overhead)));
        visit("mpu", Value::Number(f64::from(self.mpu)));
        visit("atm", Value::Choice(self.cells.name()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(overhead: i32, mpu: u32, cells: Cells, bytes: [u32; 3]) -> [u32; 3] {
        bytes.map(|bytes| Framing { overhead, mpu, cells }.counted(bytes))
    }

    #[test]
    fn frames_have_a_least_size_and_cells_are_whole() {
        assert_eq!(counted(0, 0, Cells::None, [40, 576, 1500]), [40, 576, 1500]);
        // tc's `ethernet`: 38 B more, 84 at least: 78 is less.
        assert_eq!(counted(38, 84, Cells::None, [40, 46, 1500]), [84, 84, 1538]);
        // tc's `pppoe-llcsnap`: 40 B more in cells of 48: 80 B fill two, 1540 B 33; 56 + 40 fill two to the brim.
        assert_eq!(counted(40, 0, Cells::Atm, [40, 56, 1500]), [106, 106, 1749]);
        // tc's `pppoe-ptm`: 30 B more; 70 B and two for 64 and 6; 1530 and 24 for 23.9; 64 and one.
        assert_eq!(counted(30, 0, Cells::Ptm, [40, 34, 1500]), [72, 65, 1554]);
        // A packet that was counted with its link header loses it; none counts for less than nothing.
        assert_eq!(counted(-14, 0, Cells::None, [1514, 54, 10]), [1500, 40, 0]);
        assert_eq!(counted(-14, 64, Cells::None, [54, 78, 79]), [64, 64, 65]);
    }

    #[test]
    fn settings_are_read_and_fractions_of_bytes_are_errors() {
        let given = [("overhead", Value::Number(-4.0)), ("mpu", Value::Number(64.0)), ("atm", Value::Choice("ptm"))];
        let framing = Framing::from_settings(&Settings::check(&given, &PARAMS).unwrap()).unwrap();
        assert_eq!(framing, Framing { overhead: -4, mpu: 64, cells: Cells::Ptm });
        let mut visited = alloc::vec::Vec::new();
        framing.settings(&mut |name, value| visited.push((name, value)));
        assert_eq!(visited, given);
        for (name, value) in [("overhead", 1.5), ("mpu", 1.5)] {
            let given = [(name, Value::Number(value))];
            assert!(Framing::from_settings(&Settings::check(&given, &PARAMS).unwrap()).is_err(), "{name}");
        }
        for (name, value) in [("overhead", 257.0), ("overhead", -65.0), ("mpu", -1.0), ("mpu", 257.0)] {
            assert!(Settings::check(&[(name, Value::Number(value))], &PARAMS).is_err(), "{name} = {value}");
        }
    }
}
