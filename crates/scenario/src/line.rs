//! Properties of a link in the plan beyond one rate, one delay and one AQM.

use std::sync::Arc;

use aqumen_units::{Instant, Span};
use serde_json::{Value, json};

use crate::channel::{Channel, Loss, Losses};
use crate::choice::AqmChoice;
use crate::field::{Field, as_json};

/// Medium, losses and changes over time of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Medium of the link. For a model, the link's rates hold its mean capacity.
    pub medium: Medium,
    /// Propagation delays that start during the run, in order. The delay at the end of a transmission applies; packets
    /// stay in order.
    pub delays: Vec<(Instant, Span)>,
    /// Losses on the wire with their start times, in order; none before the first. The losses at the start of a
    /// transmission apply.
    pub losses: Vec<(Instant, Loss)>,
    /// Outages, in which no transmission starts: from, and until (`None`: the end of the run). In order, disjoint.
    pub outages: Vec<(Instant, Option<Instant>)>,
    /// AQMs, or changed parameters, with their start times, in order.
    pub aqms: Vec<(Instant, AqmChoice)>,
}

/// Capacity law of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Medium {
    /// Rates of the link.
    #[default]
    Wire,
    /// Delivery opportunities: times at which a fixed number of bytes may leave.
    Opportunities(Arc<Opportunities>),
    /// A model of a medium.
    Channel(Channel),
}

/// Repeating delivery opportunities: a Mahimahi file.
#[derive(Clone, Debug, PartialEq)]
pub struct Opportunities {
    /// Times, nanoseconds, in order.
    pub at: Vec<u64>,
    /// Period, nanoseconds: the last of `at`. Above zero.
    pub period: u64,
}

impl Opportunities {
    /// Bytes per opportunity (Mahimahi: the largest packet of a tunnel device).
    pub const BYTES: u32 = 1504;

    /// Time of opportunity `n`, from 0, repetitions included.
    pub fn time(&self, n: u64) -> u64 {
        let round = self.at.len() as u64;
        (n / round) * self.period + self.at[(n % round) as usize]
    }

    /// Number of the first opportunity at `from` or later.
    pub fn first_from(&self, from: u64) -> u64 {
        // The last opportunity of a period coincides with the start of the next period.
        let (mut rounds, mut rest) = (from / self.period, from % self.period);
        if rest == 0 && rounds > 0 {
            (rounds, rest) = (rounds - 1, self.period);
        }
        rounds * self.at.len() as u64 + self.at.partition_point(|at| *at < rest) as u64
    }

    /// Long-run rate, bit/s.
    pub fn mean_bps(&self) -> f64 {
        8e9 * f64::from(Self::BYTES) * self.at.len() as f64 / self.period as f64
    }
}

impl Line {
    /// Whether the link is a plain wire.
    pub fn is_plain(&self) -> bool {
        *self == Line::default()
    }

    /// The line as JSON, without its AQMs.
    pub(crate) fn to_json(&self) -> Value {
        let moment = |at: Instant| at.as_nanos() as f64 / 1e9;
        let table = |value: Option<toml::Value>| value.map_or(Value::Null, |value| as_json(&value));
        let medium = match &self.medium {
            Medium::Wire => Value::Null,
            Medium::Channel(channel) => table(channel.write()),
            Medium::Opportunities(opportunities) => json!({
                "model": "opportunities", "bytes": Opportunities::BYTES, "count": opportunities.at.len(),
                "period_s": opportunities.period as f64 / 1e9, "fingerprint": fingerprint(&opportunities.at),
            }),
        };
        let delays: Vec<Value> =
            self.delays.iter().map(|(at, delay)| json!([moment(*at), delay.as_nanos() as f64 / 1e9])).collect();
        let losses: Vec<Value> =
            self.losses.iter().map(|(at, loss)| json!([moment(*at), table(Losses(loss.clone()).write())])).collect();
        let outages: Vec<Value> =
            self.outages.iter().map(|(from, until)| json!([moment(*from), until.map(moment)])).collect();
        json!({"channel": medium, "delays": delays, "losses": losses, "outages": outages})
    }
}

/// FNV-1a over the numbers, in hexadecimal: distinguishes traces.
fn fingerprint(numbers: &[u64]) -> String {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_identified_by_length_and_fingerprint() {
        // FNV-1a of no bytes is its offset basis.
        assert_eq!(fingerprint(&[]), "cbf29ce484222325");
        let trace = Opportunities { at: vec![1_000_000, 2_000_000], period: 2_500_000_000 };
        let line = Line { medium: Medium::Opportunities(std::sync::Arc::new(trace)), ..Line::default() };
        let json = line.to_json()["channel"].clone();
        assert_eq!((json["count"].as_u64(), json["period_s"].as_f64()), (Some(2), Some(2.5)));
        assert_eq!(json["fingerprint"], "ca2aed0816bec27a");
    }

    #[test]
    fn opportunities_repeat_after_the_last() {
        // 2, 5, 5 ms, then 7, 10, 10 ms, ...
        let ms = 1_000_000;
        let trace = Opportunities { at: vec![2 * ms, 5 * ms, 5 * ms], period: 5 * ms };
        let times: Vec<u64> = (0..6).map(|n| trace.time(n) / ms).collect();
        assert_eq!(times, [2, 5, 5, 7, 10, 10]);
        let first: Vec<u64> = [0, 2, 3, 5, 6, 10, 11].iter().map(|from| trace.first_from(from * ms)).collect();
        assert_eq!(first, [0, 0, 1, 1, 3, 4, 6]);
        assert!((trace.mean_bps() - 3.0 * 1504.0 * 8.0 / 5e-3).abs() < 1e-6);
    }
}
