//! AAQM: adapts the probability until the arrival rate matches the capacity (Rahmani, Ahlund and Kanter 2011).
//!
//! ```text
//! packet accepted: A += 1      transmission ends: B += 1
//! every T:  U = A / (B + idle C), the arrivals relative to what the link could send
//!           P += U < 1 ? -p1 T : +p2 T, clamped to [0, 1];  A = B = idle = 0
//! ```
//!
//! Deviations:
//! - The paper's U is A / B. With an empty queue departures equal arrivals, U stays at 1, P rises to 1 and the link
//!   starves. `u = literal` restores it.
//! - The paper's steps p1 = 0.7 and p2 = 1.0 per 10 ms make P jump between 0 and 1. Here they are probability per
//!   second; `reading = plain` takes them literally, `percent` as percentage points per T.
//! - The paper's special cases A == B == 0 (U = 0) and B == 0 (U = 1) apply to the denominator above.

use aqumen_units::{Probability, Span};

use crate::{
    Algorithm, AntiWindup, Bound, DefaultValue, Kind, MAX_LOOPS, Network, Observation, Param, ParamError, SampledAqm,
    SampledLaw, Settings, Theory, Unit, Value,
};

const DEFAULT_P1: f64 = 0.7;
const DEFAULT_P2: f64 = 1.0;
const DEFAULT_PERIOD_S: f64 = 0.01;
/// Least number of packets that the link can send per period.
const PACKETS_PER_PERIOD: f64 = 3.0;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "aaqm",
    title: "AAQM",
    summary: "adapts the probability until the arrival rate matches the capacity; no target queue",
    reference: "Rahmani, Ahlund, Kanter: Design of active queue management for robust control on access router for heterogeneous networks, 2011",
    params: &[
        Param {
            name: "p1",
            kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(0.0), max: Bound::Open },
            default: DefaultValue::number(DEFAULT_P1),
            doc: "fall of the probability while U < 1, in the unit of `reading`; at most p2",
        },
        Param::positive(
            "p2",
            Unit::One,
            DefaultValue::number(DEFAULT_P2),
            "rise of the probability while U >= 1, in the unit of `reading`",
        ),
        Param::positive(
            "period",
            Unit::Seconds,
            DefaultValue::Designed("10 ms, at least 3 packets' transmission"),
            "T; at least 3 packets' transmission time",
        ),
        Param::positive(
            "capacity",
            Unit::BitsPerSecond,
            DefaultValue::Designed("the link's rate"),
            "capacity that converts idle time to packets, C",
        ),
        Param {
            name: "reading",
            kind: Kind::Choice(&["rate", "plain", "percent"]),
            default: DefaultValue::Value(Value::Choice("rate")),
            doc: "p1 and p2 are probability per second (rate), per T (plain), percentage points per T (percent)",
        },
        Param {
            name: "u",
            kind: Kind::Choice(&["capacity", "literal"]),
            default: DefaultValue::Value(Value::Choice("capacity")),
            doc: "arrivals over what the link could send (capacity), or over departures as printed (literal)",
        },
        AntiWindup::PARAM,
        Param::ECN,
    ],
};

/// The unit of p1 and p2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Probability per second.
    Rate,
    /// Probability per period.
    Plain,
    /// Percentage points per period.
    Percent,
}

/// The denominator of U.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Utilization {
    /// Departures plus the packets that the link could have sent while idle.
    Capacity,
    /// Departures alone, as printed.
    Literal,
}

/// The parameters of [`Aaqm`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AaqmParams {
    /// Fall while U < 1, P1.
    pub p1: f64,
    /// Rise while U >= 1, P2.
    pub p2: f64,
    /// Period, T, seconds.
    pub period_s: f64,
    /// Capacity, packets/s.
    pub capacity_pps: f64,
    /// The unit of p1 and p2.
    pub reading: Reading,
    /// The denominator of U.
    pub utilization: Utilization,
}

/// The law.
#[derive(Clone, Debug)]
pub struct Aaqm {
    params: AaqmParams,
    /// Capacity as given in the settings; `None` if built without settings.
    capacity_bps: Option<f64>,
    p: Probability,
    /// U of the last period.
    u: f64,
}

impl AaqmParams {
    /// Recommended parameters at `capacity_pps` packets/s.
    pub fn new(capacity_pps: f64) -> Self {
        AaqmParams {
            p1: DEFAULT_P1,
            p2: DEFAULT_P2,
            period_s: DEFAULT_PERIOD_S.max(PACKETS_PER_PERIOD / capacity_pps),
            capacity_pps,
            reading: Reading::Rate,
            utilization: Utilization::Capacity,
        }
    }
}

impl Aaqm {
    /// The law at P = 0. Requires p1 <= p2 and a period of at least three packets.
    pub fn new(params: AaqmParams) -> Result<Self, ParamError> {
        let AaqmParams { p1, p2, period_s, capacity_pps, .. } = params;
        Param::check_positive("p2", p2, Unit::One)?;
        Param::check_positive("capacity", capacity_pps, Unit::One)?;
        if !(0.0..=p2).contains(&p1) {
            return Err(ParamError::relation("p1", p1, "must be at least 0 and not above p2, or the buffer fills"));
        }
        // A period of exactly 3 / C passes despite rounding.
        let enough = period_s * capacity_pps >= PACKETS_PER_PERIOD * (1.0 - 1e-9);
        if !(enough && period_s.is_finite()) {
            return Err(ParamError::relation("period", period_s, "must be at least 3 packets' transmission time"));
        }
        Ok(Aaqm { params, capacity_bps: None, p: Probability::ZERO, u: 0.0 })
    }

    fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let capacity_bps = settings.number("capacity").unwrap_or(network.link_rate.as_bps() as f64);
        let mut params = AaqmParams::new(capacity_bps / (8.0 * network.packet_bytes));
        for (name, field) in [("p1", &mut params.p1), ("p2", &mut params.p2), ("period", &mut params.period_s)] {
            if let Some(x) = settings.number(name) {
                *field = x;
            }
        }
        params.reading = match settings.choice("reading") {
            Some("plain") => Reading::Plain,
            Some("percent") => Reading::Percent,
            _ => Reading::Rate,
        };
        params.utilization = match settings.choice("u") {
            Some("literal") => Utilization::Literal,
            _ => Utilization::Capacity,
        };
        Ok(Aaqm { capacity_bps: Some(capacity_bps), ..Aaqm::new(params)? })
    }
}

impl SampledAqm<Aaqm> {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        Ok(SampledAqm::with_settings(Aaqm::from_settings(settings, network)?, settings, network))
    }
}

impl SampledLaw for Aaqm {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_secs_f64(self.params.period_s)), None]
    }

    fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
        let AaqmParams { p1, p2, period_s, capacity_pps, reading, utilization } = self.params;
        let (arrived, departed) = (observation.accepted_pkts, observation.departures_pkts);
        let clearing = match utilization {
            Utilization::Literal => departed,
            Utilization::Capacity => departed + observation.idle_s * capacity_pps,
        };
        self.u = if arrived == 0.0 && departed == 0.0 {
            0.0
        } else if clearing <= 0.0 {
            1.0
        } else {
            arrived / clearing
        };
        let unit = match reading {
            Reading::Rate => period_s,
            Reading::Plain => 1.0,
            Reading::Percent => 0.01,
        };
        let change = if self.u < 1.0 { -p1 } else { p2 };
        self.p = Probability::clamp(self.p.get() + change * unit);
        self.p
    }

    fn integral(&self) -> Option<f64> {
        Some(self.p.get())
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        self.p = Probability::clamp(p);
        self.p
    }

    fn take_over(&mut self, old: &Self) {
        (self.p, self.u) = (old.p, old.u);
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("utilization", self.u);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("p1", Value::Number(self.params.p1));
        visit("p2", Value::Number(self.params.p2));
        visit("period", Value::Number(self.params.period_s));
        if let Some(capacity) = self.capacity_bps {
            visit("capacity", Value::Number(capacity));
        }
        visit("reading", Value::Choice(self.params.reading.name()));
        visit("u", Value::Choice(self.params.utilization.name()));
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for Aaqm {
    fn not_linearizable(&self) -> Option<&'static str> {
        Some("its probability moves by fixed steps, up or down, in each period")
    }
}

impl Reading {
    const fn name(self) -> &'static str {
        match self {
            Reading::Rate => "rate",
            Reading::Plain => "plain",
            Reading::Percent => "percent",
        }
    }
}

impl Utilization {
    const fn name(self) -> &'static str {
        match self {
            Utilization::Capacity => "capacity",
            Utilization::Literal => "literal",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P after one period of 10 ms at 1000 packets/s from P = 0.5.
    fn after(reading: Reading, utilization: Utilization, arrived: f64, departed: f64, idle_s: f64) -> f64 {
        let params = AaqmParams { reading, utilization, ..AaqmParams::new(1000.0) };
        let mut law = Aaqm { p: Probability::clamp(0.5), ..Aaqm::new(params).unwrap() };
        let observation = Observation {
            accepted_pkts: arrived,
            departures_pkts: departed,
            idle_s,
            interval_s: 0.01,
            ..Observation::default()
        };
        law.step(0, &observation).get()
    }

    #[test]
    fn the_probability_rises_if_arrivals_exceed_the_capacity_and_falls_otherwise() {
        use Utilization::{Capacity, Literal};
        // A busy link sends 10 packets in 10 ms. 12 arrivals: U = 1.2, up by 1.0 * 0.01; 8: down by 0.7 * 0.01.
        assert_eq!(after(Reading::Rate, Capacity, 12.0, 10.0, 0.0), 0.51);
        assert_eq!(after(Reading::Rate, Capacity, 8.0, 10.0, 0.0), 0.493);
        // A link that is idle half of the time: U = 5 / (5 + 5); as printed 5 / 5 = 1, which starves the link.
        assert_eq!(after(Reading::Rate, Capacity, 5.0, 5.0, 0.005), 0.493);
        assert_eq!(after(Reading::Rate, Literal, 5.0, 5.0, 0.005), 0.51);
        // No packets: U = 0. Arrivals without departures: U = 1 as printed.
        assert_eq!(after(Reading::Rate, Literal, 0.0, 0.0, 0.0), 0.493);
        assert_eq!(after(Reading::Rate, Literal, 2.0, 0.0, 0.0), 0.51);
    }

    #[test]
    fn the_readings_differ_in_the_size_of_the_step() {
        // At T = 10 ms a percentage point equals 1.0 * 0.01. Plain steps of 1.0 and 0.7 jump between 0 and 1.
        use Utilization::Capacity;
        assert_eq!(after(Reading::Percent, Capacity, 12.0, 10.0, 0.0), 0.51);
        assert_eq!(after(Reading::Plain, Capacity, 12.0, 10.0, 0.0), 1.0);
        assert_eq!(after(Reading::Plain, Capacity, 8.0, 10.0, 0.0), 0.0);
    }

    #[test]
    fn errors_name_the_invalid_parameter() {
        let good = AaqmParams::new(1000.0);
        let refused = |params| Aaqm::new(params).unwrap_err().param;
        assert_eq!(refused(AaqmParams { p1: 1.1, ..good }), "p1");
        assert_eq!(refused(AaqmParams { p2: 0.0, ..good }), "p2");
        // Three packets take 3 ms.
        assert_eq!(refused(AaqmParams { period_s: 0.0029, ..good }), "period");
        assert!(Aaqm::new(AaqmParams { period_s: 0.003, ..good }).is_ok());
        assert_eq!(refused(AaqmParams { capacity_pps: 0.0, ..good }), "capacity");
        // A slow link has a longer period: 3 packets at 100 packets/s.
        assert_eq!(AaqmParams::new(100.0).period_s, 0.03);
    }
}
