//! Lists of transports and kinds of traffic for `aqumen list`, generated from the tables that read them.

use serde_json::{Value, json};

use crate::field::param;
use crate::traffic;
use crate::transport::{PRESETS, Protocol};

/// Summary and reference of presets; the others have those of their protocol.
const ABOUT: &[(&str, &str, &str)] = &[
    ("ns2", "TCP as ns-2.35 does it, for cross-checks", "ns-2.35"),
    (
        "modern",
        "TCP as today's RFCs describe it: SACK, ECN, ten segments to begin with",
        "RFC 9293, RFC 5681, RFC 8985, RFC 9937",
    ),
    ("linux", "TCP as a Linux host runs it, with CUBIC: whole windows, quick acknowledgements, F-RTO", "Linux 6.x"),
    ("linux-reno", "linux with Reno", "Linux 6.x"),
    ("linux-bbr", "linux with BBR version 1", "Linux 6.x"),
    ("cubic", "modern with CUBIC and HyStart++", "RFC 9438, RFC 9406"),
    ("dctcp", "modern with DCTCP: reacts to the fraction of marks", "RFC 8257"),
    (
        "prague",
        "modern with TCP Prague: ECT(1), counted marks, paced",
        "draft-briscoe-iccrg-prague-congestion-control-04",
    ),
    (
        "bbr",
        "modern with BBR version 1: a model of bandwidth and round trip, paced",
        "draft-cardwell-iccrg-bbr-congestion-control-00",
    ),
    ("vegas", "modern with Vegas: a few packets in the queue", "Brakmo, Peterson 1995"),
    ("ledbat", "modern with LEDBAT: yields to others", "RFC 6817"),
    ("rtp-tfrc", "RTP at the rate of TCP's throughput equation", "RFC 3550, RFC 5348"),
    ("rtp-nada", "RTP at a rate that follows delay, loss and marks", "RFC 3550, RFC 8698"),
    ("sctp-ns2", "SCTP as ns-2.35 does it, for cross-checks", "ns-2.35"),
];

/// Every preset of a transport with its settings, and its JSON in a plan.
pub fn transports() -> Value {
    let row = |(name, config): &(&'static str, fn() -> Protocol)| {
        let protocol = config();
        let (summary, reference) = protocol.about();
        let about = ABOUT.iter().find(|(known, ..)| known == name);
        let (summary, reference) = about.map_or((summary, reference), |(_, summary, reference)| (*summary, *reference));
        json!({
            "name": name, "kind": protocol.kind(), "summary": summary, "reference": reference, "params": protocol.rows(),
            "plan": protocol.to_json(name),
        })
    };
    PRESETS.iter().map(row).collect()
}

/// Every kind of traffic with its parameters.
pub fn traffic() -> Value {
    let row = |kind: &traffic::Kind| {
        let schema = kind.schema();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let params = schema["properties"].as_object().into_iter().flatten().map(|(name, below)| {
            let mut row = param(name, below);
            row["default"] = below["default"].clone();
            row["required"] = required.contains(&name.as_str()).into();
            row["doc"] = below["description"].clone();
            row
        });
        json!({
            "name": kind.name, "kind": kind.sends, "summary": kind.summary, "reference": kind.reference,
            "params": params.collect::<Vec<_>>(),
        })
    };
    traffic::kinds().iter().map(row).collect()
}
