//! The nominal network of a design as a scenario: a link, its flows and their round trip. Units and ranges are those of
//! scenario files; absent values get defaults.

use crate::field::PACKETS_MAX;
use crate::units::{read_packets, read_span};
use crate::{Error, Extensions, Scenario};

/// Default target: fraction of the round trip at the target that is spent in the queue.
pub const TARGET_FRACTION: f64 = 0.2;
/// Default buffer, in targets.
pub const BUFFER_TARGETS: f64 = 3.0;

/// Parameters, written as in a scenario file: `30Mbit`, `246ms`, `1000B`, `100pkt`.
#[derive(Clone, Copy, Debug)]
pub struct NetworkParameters<'a> {
    /// Capacity of the link.
    pub capacity: &'a str,
    /// Number of long-lived flows.
    pub flows: f64,
    /// Round-trip time.
    pub round_trip: &'a str,
    /// Whether the round trip includes the queueing delay at the target.
    pub at_target: bool,
    /// Packet size on the wire.
    pub packet: &'a str,
    /// Target queue, packets or the time that it takes at the capacity; [`TARGET_FRACTION`] of the round trip at the
    /// target if absent.
    pub target: Option<&'a str>,
    /// Buffer; [`BUFFER_TARGETS`] if absent.
    pub buffer: Option<&'a str>,
}

impl NetworkParameters<'_> {
    /// Returns the scenario with this link as its bottleneck and these values as its nominal network. Its base round
    /// trip is the given one, with or without the queue.
    ///
    /// Errors name the parameter, `capacity` or `round trip`, and no file.
    pub fn scenario(&self, extensions: impl Into<Extensions>) -> Result<Scenario, Error> {
        let extensions = extensions.into();
        let known = || {
            let known = self.with("100pkt", "300pkt", extensions.clone())?.plan(1, None)?.nominal;
            Ok::<_, Error>((known.capacity.as_bps() as f64 / (8.0 * known.packet_bytes), known))
        };
        let target = match self.target {
            Some(target) => match read_span(target) {
                Ok(delay) => format!("{}pkt", delay.as_secs_f64() * known()?.0),
                Err(_) => target.to_string(),
            },
            None => {
                let (pps, known) = known()?;
                let share = if self.at_target { TARGET_FRACTION } else { TARGET_FRACTION / (1.0 - TARGET_FRACTION) };
                format!("{}pkt", libm::rint(share * known.base_rtt_s * pps).max(1.0))
            }
        };
        let buffer = match self.buffer {
            Some(buffer) => buffer.to_string(),
            // An unreadable target is reported first.
            None => {
                let pkts = read_packets(&target).map_or(BUFFER_TARGETS, |pkts| libm::ceil(BUFFER_TARGETS * pkts));
                format!("{}pkt", pkts.clamp(1.0, PACKETS_MAX))
            }
        };
        self.with(&target, &buffer, extensions)
    }

    fn with(&self, target: &str, buffer: &str, extensions: Extensions) -> Result<Scenario, Error> {
        let NetworkParameters { capacity, flows, round_trip, packet, .. } = self;
        let [capacity, round_trip, packet, target, buffer] =
            [capacity, round_trip, packet, target, buffer].map(|text| toml::Value::from(text).to_string());
        let flows = toml::Value::from(*flows);
        let text = format!(
            r#"
            name = "design"
            duration = "1s"
            aqm = "droptail"
            [topology]
            preset = "dumbbell"
            bottleneck = {{ rate = {capacity}, delay = "1ms", buffer = {buffer} }}
            access = {{ rate = "1Gbit", delay = "1ms" }}
            [[flows]]
            name = "flow"
            count = 1
            transport = "modern"
            [nominal]
            capacity = {capacity}
            flows = {flows}
            base_rtt = {round_trip}
            packet = {packet}
            target = {target}
            "#
        );
        Scenario::parse_with_extensions(&text, "", crate::Files::default(), extensions).map_err(|error| {
            let key = error.key.strip_prefix("nominal.").or(error.key.strip_prefix("topology.bottleneck."));
            let key = match key.unwrap_or(&error.key) {
                "rate" => "capacity".into(),
                "base_rtt" => "round trip".into(),
                other => other.to_string(),
            };
            Error { key, ..error }
        })
    }
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::Catalogue;

    use super::*;

    const GIVEN: NetworkParameters<'_> = NetworkParameters {
        capacity: "30Mbit",
        flows: 60.0,
        round_trip: "246ms",
        at_target: true,
        packet: "1000B",
        target: None,
        buffer: None,
    };

    fn nominal(given: NetworkParameters<'_>) -> (f64, f64) {
        let plan = given.scenario(Catalogue::BUILT_IN).unwrap().plan(1, None).unwrap();
        (plan.nominal.target_pkts, plan.nominal.buffer_pkts)
    }

    #[test]
    fn absent_values_have_defaults() {
        // 3750 packets a second: a fifth of 246 ms is 184.5 packets, rounded to even; three targets.
        assert_eq!(nominal(GIVEN), (184.0, 552.0));
        // Without queues it is a quarter: 230.6.
        assert_eq!(nominal(NetworkParameters { at_target: false, ..GIVEN }), (231.0, 693.0));
        assert_eq!(nominal(NetworkParameters { capacity: "10kbit", round_trip: "1ms", ..GIVEN }), (1.0, 3.0));
        assert_eq!(nominal(NetworkParameters { target: Some("50pkt"), ..GIVEN }), (50.0, 150.0));
        // 20 ms at 3750 packets a second.
        assert_eq!(nominal(NetworkParameters { target: Some("20ms"), ..GIVEN }), (75.0, 225.0));
        // Whole packets, within the range of a buffer.
        assert_eq!(nominal(NetworkParameters { target: Some("10.5pkt"), ..GIVEN }), (10.5, 32.0));
        assert_eq!(nominal(NetworkParameters { target: Some("1e9pkt"), ..GIVEN }), (1e9, 1e9));
        assert_eq!(nominal(NetworkParameters { target: Some("50pkt"), buffer: Some("70pkt"), ..GIVEN }), (50.0, 70.0));
    }

    #[test]
    fn errors_name_the_parameter() {
        let refusal = |given: NetworkParameters<'_>| given.scenario(Catalogue::BUILT_IN).unwrap_err().to_string();
        for (given, expected) in [
            (NetworkParameters { capacity: "30Mb", ..GIVEN }, "capacity = \"30Mb\": unknown unit"),
            (NetworkParameters { capacity: "3\"0", ..GIVEN }, "capacity = "),
            (NetworkParameters { round_trip: "246", ..GIVEN }, "round trip = \"246\": needs a unit"),
            (NetworkParameters { flows: f64::NAN, ..GIVEN }, "flows = "),
            (NetworkParameters { packet: "0B", ..GIVEN }, "packet = \"0B\": must be"),
            (NetworkParameters { target: Some("10"), ..GIVEN }, "target = \"10\": needs a unit"),
            (NetworkParameters { target: Some("20kB"), ..GIVEN }, "target = \"20kB\": unknown unit"),
            (NetworkParameters { buffer: Some("huge"), ..GIVEN }, "buffer = \"huge\": must be"),
        ] {
            assert!(refusal(given).starts_with(expected), "{}", refusal(given));
        }
    }
}
