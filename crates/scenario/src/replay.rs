//! Settings of a replay: the queue, and how the packets of a capture are offered to it.

use aqumen_aqm::{Limit, Network};
use aqumen_units::{Bytes, Rate, Span};
use serde_json::json;

use crate::Error;
use crate::field::{Buffer, Cursor, Field, Packets, ValueError, table};
use crate::tree::{Node, Value, locate};
use crate::units;
use crate::value::RawValue;

table! {
    /// The settings. The rate is `rate`, or follows from `load`.
    pub struct Settings("a replay") {
        /// Rate of the link behind the queue.
        pub rate: Option<Rate>,
        /// Offered load, from which the rate follows: bits of the capture over its duration, as a fraction of the rate.
        pub load: Option<f64>,
        /// Capacity of the queue, packets or bytes.
        pub buffer: Buffer = Buffer::Packets(1000),
        /// Propagation delay of the link, included in the departure times.
        pub delay: Span = Span::ZERO,
        /// Target queue of AQMs that have one: packets, or their transmission time; a third of the buffer if absent.
        pub target: Option<Target>,
        /// Number of flows for which AQMs design themselves.
        pub flows: f64 = 50.0,
        /// Round-trip time for which AQMs design themselves.
        pub rtt: Span = Span::from_millis(100),
        /// Packet size for which AQMs design themselves; the mean of the capture's first packets if absent.
        pub packet: Option<Bytes>,
        /// Bytes on the link beyond the packet length in the capture; may be negative.
        pub overhead: f64 = 0.0,
        /// Speed relative to the capture.
        pub speedup: f64 = 1.0,
        /// Interface of a pcapng file, from 0; all if absent.
        pub interface: Option<u32>,
        /// Number of largest flows that are reported separately.
        pub top: u32 = 10,
        /// Seed of the AQM's random numbers.
        pub seed: u32 = 1,
    }
}

/// A target queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// In packets.
    Packets(f64),
    /// As the transmission time of the queue.
    Time(Span),
}

impl Field for Target {
    const WHAT: &'static str = "a target, such as \"100pkt\" or \"5ms\"";
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        if let Value::Text(text) = &at.node.value
            && units::TIME.read(text).is_ok()
        {
            return match Span::read(at)? {
                Span::ZERO => Err(at.error("must be above 0")),
                time => Ok(Target::Time(time)),
            };
        }
        Packets::read(at).map(|packets| Target::Packets(packets.0))
    }
    fn write(&self) -> Option<toml::Value> {
        match self {
            Target::Packets(packets) => Packets(*packets).write(),
            Target::Time(time) => time.write(),
        }
    }
    fn schema() -> serde_json::Value {
        json!({"type": "string", "format": "packets or time", "examples": ["100pkt", "5ms"]})
    }
}

/// Largest buffer in packets, accepted ranges of speed, load and overhead, and most flows reported.
const BUFFER_MAX: u32 = 10_000_000;
const SPEEDUP: std::ops::RangeInclusive<f64> = 1e-6..=1e6;
const LOAD: std::ops::RangeInclusive<f64> = 1e-6..=1e6;
const OVERHEAD: std::ops::RangeInclusive<f64> = -256.0..=1024.0;
const TOP_MAX: u32 = 10_000;

impl Settings {
    /// Reads settings by name from a command line, and checks them.
    pub fn read_from(given: &[(String, RawValue)]) -> Result<Self, Error> {
        let node = |value| Node { value, line: 0 };
        let entries = given.iter().map(|(key, written)| {
            let value = match written {
                RawValue::Text(text) => Value::Text(text.clone()),
                // Whole numbers are integers.
                RawValue::Number(x) if x.fract() == 0.0 && x.abs() < 9e15 => Value::Integer(*x as i64),
                RawValue::Number(x) => Value::Float(*x),
                RawValue::Flag(yes) => Value::Bool(*yes),
            };
            (key.clone(), node(value))
        });
        let tree = node(Value::Table(entries.collect()));
        // Keys are options of the command line.
        let as_option = |error: Error| Error { key: format!("--{}", error.key), ..error };
        let settings = <Settings as Field>::read(&Cursor { node: &tree, path: String::new() });
        let settings = settings.map_err(|error| as_option(error.in_file("")))?;
        settings.check().map_err(|(key, message)| as_option(locate(&tree, "", (key.into(), message))))?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let within = |key, value: f64, range: std::ops::RangeInclusive<f64>| {
            if range.contains(&value) {
                return Ok(());
            }
            Err((key, format!("must be {} to {}", range.start(), range.end())))
        };
        if self.rate.is_some() == self.load.is_some() {
            let message = "give the rate of the link, such as --rate 10Mbit, or the load from which it follows, such as \
                           --load 0.95, and not both";
            return Err(("rate", message.into()));
        }
        within("load", self.load.unwrap_or(1.0), LOAD)?;
        within("speedup", self.speedup, SPEEDUP)?;
        within("overhead", self.overhead, OVERHEAD)?;
        if self.overhead.fract() != 0.0 {
            return Err(("overhead", "must be a whole number of bytes".into()));
        }
        if self.flows < 1.0 {
            return Err(("flows", "must be at least 1".into()));
        }
        if self.rtt == Span::ZERO {
            return Err(("rtt", "must be above 0".into()));
        }
        if self.top > TOP_MAX {
            return Err(("top", format!("must be 0 to {TOP_MAX}")));
        }
        match self.buffer {
            Buffer::Packets(packets) if packets > BUFFER_MAX => {
                Err(("buffer", format!("must be at most {BUFFER_MAX}pkt")))
            }
            _ => Ok(()),
        }
    }

    /// Capacity of the queue.
    pub fn limit(&self) -> Limit {
        match self.buffer {
            Buffer::Packets(packets) => Limit::packets(packets),
            Buffer::Bytes(bytes) => Limit { packets: BUFFER_MAX, bytes },
        }
    }

    /// The nominal network at `rate`, for a mean packet size of `packet_bytes`.
    pub fn network(&self, rate: Rate, packet_bytes: f64) -> Network {
        let packet_bytes = self.packet.map_or(packet_bytes, |packet| packet.0 as f64);
        let buffer_pkts = match self.buffer {
            Buffer::Packets(packets) => f64::from(packets),
            Buffer::Bytes(bytes) => bytes.0 as f64 / packet_bytes,
        };
        let target_pkts = match self.target {
            None => buffer_pkts / 3.0,
            Some(Target::Packets(packets)) => packets,
            Some(Target::Time(time)) => time.as_secs_f64() * rate.as_bps() as f64 / (8.0 * packet_bytes),
        };
        Network {
            capacity: rate,
            flows: self.flows,
            base_rtt_s: self.rtt.as_secs_f64(),
            target_pkts,
            packet_bytes,
            link_rate: rate,
            buffer_pkts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[(&str, RawValue)]) -> Result<Settings, String> {
        let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
        Settings::read_from(&given).map_err(|error| error.to_string())
    }

    fn text(text: &str) -> RawValue {
        RawValue::Text(text.into())
    }

    #[test]
    fn settings_of_a_command_line() {
        let rate = ("rate", text("8Mbit"));
        let settings = read(&[rate.clone(), ("target", text("5ms")), ("speedup", RawValue::Number(2.0))]).unwrap();
        assert_eq!((settings.buffer, settings.speedup, settings.seed), (Buffer::Packets(1000), 2.0, 1));
        // 5 ms at 8 Mbit/s are 5000 bytes: 10 packets of 500.
        assert_eq!(settings.network(settings.rate.unwrap(), 500.0).target_pkts, 10.0);
        let settings = read(&[rate, ("buffer", text("30kB"))]).unwrap();
        let network = settings.network(settings.rate.unwrap(), 1000.0);
        assert_eq!((network.buffer_pkts, network.target_pkts), (30.0, 10.0));
        assert_eq!(settings.limit().bytes, Bytes(30_000));
    }

    #[test]
    fn errors_name_the_option() {
        let rate = ("rate", text("8Mbit"));
        let refused = |given: &[(&str, RawValue)]| read(given).unwrap_err();
        assert_eq!(refused(&[("rate", text("10"))]), "--rate = \"10\": needs a unit, such as \"10Mbit\"");
        assert!(refused(&[]).starts_with("--rate: give the rate of the link, such as --rate 10Mbit, or the load"));
        assert!(refused(&[rate.clone(), ("load", RawValue::Number(0.9))]).ends_with("and not both"));
        assert_eq!(refused(&[("load", RawValue::Number(0.0))]), "--load = 0: must be 0.000001 to 1000000");
        for (key, value, message) in [
            ("buffer", text("0pkt"), "--buffer = \"0pkt\": must be a whole number of packets"),
            ("buffer", text("20000000pkt"), "--buffer = \"20000000pkt\": must be at most 10000000pkt"),
            ("target", text("0ms"), "--target = \"0ms\": must be above 0"),
            ("target", text("many"), "--target = \"many\": must be a number of packets"),
            ("speedup", RawValue::Number(-1.0), "--speedup = -1: must be 0.000001 to 1000000"),
            ("overhead", RawValue::Number(0.5), "--overhead = 0.5: must be a whole number of bytes"),
            ("flows", RawValue::Number(0.0), "--flows = 0: must be at least 1"),
            ("rtt", text("0s"), "--rtt = \"0s\": must be above 0"),
            ("top", RawValue::Number(1e6), "--top = 1000000: must be 0 to 10000"),
            ("seed", RawValue::Number(-1.0), "--seed = -1: must be 0 to 4294967295"),
        ] {
            let refusal = refused(&[rate.clone(), (key, value)]);
            assert!(refusal.starts_with(message), "{refusal}");
        }
    }
}
