//! The network of a design: a link, its flows and their round trip by their numbers alone, as a scenario, so that units
//! and ranges are those of scenario files. What is not given is chosen here.

use crate::field::PACKETS_MAX;
use crate::units::read_packets;
use crate::{Error, Outside, Scenario};

/// Share of the round trip at the target that the queue takes, when no target is given.
pub const TARGET_SHARE: f64 = 0.2;
/// Room of the queue in targets, when no buffer is given.
pub const BUFFER_TARGETS: f64 = 3.0;

/// The numbers, written as in a scenario file: `30Mbit`, `246ms`, `1000B`, `100pkt`.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    /// Capacity of the link.
    pub capacity: &'a str,
    /// Number of long-lived flows.
    pub flows: f64,
    /// Round-trip time.
    pub round_trip: &'a str,
    /// Whether that is with the queue at its target; else without queues.
    pub at_target: bool,
    /// Packet size on the wire.
    pub packet: &'a str,
    /// Target queue; without one [`TARGET_SHARE`] of the round trip at the target.
    pub target: Option<&'a str>,
    /// Room of the queue; without it [`BUFFER_TARGETS`].
    pub buffer: Option<&'a str>,
}

impl Numbers<'_> {
    /// The scenario with this link as its bottleneck and these numbers as its nominal network. Its base round trip is
    /// the one given, whether or not that is with the queue.
    ///
    /// Errors name what is wrong as it is called here, `capacity` or `round trip`, and no file.
    pub fn scenario(&self, outside: impl Into<Outside>) -> Result<Scenario, Error> {
        let outside = outside.into();
        let target = match self.target {
            Some(target) => target.to_string(),
            None => {
                let known = self.with("100pkt", "300pkt", outside.clone())?.plan(1, None)?.nominal;
                let pps = known.capacity.as_bps() as f64 / (8.0 * known.packet_bytes);
                let share = if self.at_target { TARGET_SHARE } else { TARGET_SHARE / (1.0 - TARGET_SHARE) };
                format!("{}pkt", libm::rint(share * known.base_rtt_s * pps).max(1.0))
            }
        };
        let buffer = match self.buffer {
            Some(buffer) => buffer.to_string(),
            // Of a target that cannot be read only the target is told.
            None => {
                let pkts = read_packets(&target).map_or(BUFFER_TARGETS, |pkts| libm::ceil(BUFFER_TARGETS * pkts));
                format!("{}pkt", pkts.clamp(1.0, PACKETS_MAX))
            }
        };
        self.with(&target, &buffer, outside)
    }

    fn with(&self, target: &str, buffer: &str, outside: Outside) -> Result<Scenario, Error> {
        let Numbers { capacity, flows, round_trip, packet, .. } = self;
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
        Scenario::parse_knowing(&text, "", crate::Files::default(), outside).map_err(|error| {
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

    const GIVEN: Numbers<'_> = Numbers {
        capacity: "30Mbit",
        flows: 60.0,
        round_trip: "246ms",
        at_target: true,
        packet: "1000B",
        target: None,
        buffer: None,
    };

    fn nominal(given: Numbers<'_>) -> (f64, f64) {
        let plan = given.scenario(Catalogue::BUILT_IN).unwrap().plan(1, None).unwrap();
        (plan.nominal.target_pkts, plan.nominal.buffer_pkts)
    }

    #[test]
    fn what_is_not_given_is_chosen() {
        // 3750 packets a second: a fifth of 246 ms is 184.5 packets, to the even one; three targets.
        assert_eq!(nominal(GIVEN), (184.0, 552.0));
        // Without queues it is a quarter: 230.6.
        assert_eq!(nominal(Numbers { at_target: false, ..GIVEN }), (231.0, 693.0));
        assert_eq!(nominal(Numbers { capacity: "10kbit", round_trip: "1ms", ..GIVEN }), (1.0, 3.0));
        assert_eq!(nominal(Numbers { target: Some("50pkt"), ..GIVEN }), (50.0, 150.0));
        // Whole packets, and no more than a buffer may have.
        assert_eq!(nominal(Numbers { target: Some("10.5pkt"), ..GIVEN }), (10.5, 32.0));
        assert_eq!(nominal(Numbers { target: Some("1e9pkt"), ..GIVEN }), (1e9, 1e9));
        assert_eq!(nominal(Numbers { target: Some("50pkt"), buffer: Some("70pkt"), ..GIVEN }), (50.0, 70.0));
    }

    #[test]
    fn what_is_wrong_is_told_by_the_name_it_was_given_under() {
        let told = |given: Numbers<'_>| given.scenario(Catalogue::BUILT_IN).unwrap_err().to_string();
        for (given, said) in [
            (Numbers { capacity: "30Mb", ..GIVEN }, "capacity = \"30Mb\": unknown unit"),
            (Numbers { capacity: "3\"0", ..GIVEN }, "capacity = "),
            (Numbers { round_trip: "246", ..GIVEN }, "round trip = \"246\": needs a unit"),
            (Numbers { flows: f64::NAN, ..GIVEN }, "flows = "),
            (Numbers { packet: "0B", ..GIVEN }, "packet = \"0B\": must be"),
            (Numbers { target: Some("10"), ..GIVEN }, "target = \"10\": needs a unit"),
            (Numbers { target: Some("20kB"), ..GIVEN }, "target = \"20kB\": unknown unit"),
            (Numbers { buffer: Some("huge"), ..GIVEN }, "buffer = \"huge\": must be"),
        ] {
            assert!(told(given).starts_with(said), "{}", told(given));
        }
    }
}
