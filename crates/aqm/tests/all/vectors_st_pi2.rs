//! Replays the known answers in `vectors/` of ST-PI2, which `python/tests/st_pi2_vectors.py` computes.

use aqumen_aqm::{Aqm, Cx, DropReason, Limit, Packet, QueueView, StPi2, StPi2Params, Totals, Verdict};
use aqumen_units::{Ecn, Instant, Span};
use serde_json::Value;

use crate::common::Fixed;
use crate::replay::{Compare, load, number, observed, rows};

fn params(given: &Value) -> StPi2Params {
    let or = |key: &str, otherwise: f64| given[key].as_f64().unwrap_or(otherwise);
    let default = StPi2Params::default();
    StPi2Params {
        sigma: or("sigma", default.sigma),
        b: or("b", default.b),
        gamma: or("gamma", default.gamma),
        rtt_s: or("rtt", default.rtt_s),
        idle: or("idle", default.idle),
        exempt_pkts: or("exempt", default.exempt_pkts),
        ecn: given["ecn"].as_bool().unwrap_or(default.ecn),
    }
}

#[test]
fn st_pi2_decides_and_tunes_itself() {
    for name in ["st_pi2_classic", "st_pi2_mixed", "st_pi2_idle", "st_pi2_sets", "st_pi2_light"] {
        let file = load(name);
        let compare = Compare::of(&file);
        let mut aqm = StPi2::new(params(&file["params"])).unwrap();
        for (k, row) in rows(&file).iter().enumerate() {
            let (count, at) = (|key: &str| number(row, key) as u64, format!("{name} row {k}"));
            let now = Instant::from_nanos(count("t_ns"));
            let is_step = row["op"] == "step";
            let mut totals = Totals::default();
            if is_step {
                (totals.departures, totals.departed_bytes) = (count("dep"), count("dep_bytes"));
                totals.busy = Span::from_nanos(count("busy_ns"));
                totals.transmitting_since = row["since_ns"].as_u64().map(Instant::from_nanos);
            }
            let queue = QueueView {
                packets: count("q") as u32,
                bytes: count("bytes"),
                limit: Limit::packets(u32::MAX),
                totals: &totals,
            };
            let cx = &mut Cx { now, queue, rng: &mut Fixed(0.5) };
            if is_step {
                assert_eq!(aqm.next_timer(), Some(now), "{at}");
                aqm.on_timer(cx);
                let state = observed(|visit| aqm.observe(visit));
                for (key, shown) in [
                    ("root", "root_probability"),
                    ("average", "root_average"),
                    ("target", "target_delay"),
                    ("delay", "delay"),
                    ("idle", "idle_share"),
                    ("flows", "flows"),
                    ("rtt", "rtt"),
                    ("capacity", "capacity"),
                ] {
                    compare.check(&at, key, state[shown], number(row, key));
                }
                continue;
            }
            let packet = Packet {
                bytes: count("size") as u32,
                ecn: Ecn::from_bits(count("ecn") as u8),
                segments: 1,
                flow_hash: count("flow") as u32,
                syn: count("syn") == 1,
                ..Packet::default()
            };
            let fate = match aqm.on_arrival(&packet, cx) {
                Verdict::Pass => 0.0,
                Verdict::Mark => 1.0,
                Verdict::Drop(DropReason::Early | DropReason::Overflow) => 2.0,
            };
            compare.check(&at, "fate", fate, number(row, "fate"));
        }
    }
}
