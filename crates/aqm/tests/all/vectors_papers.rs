//! Replays the known answers in `vectors/` of the papers' controllers and of the self-tuning structure.

use crate::common::Fixed;
use crate::replay;

use aqumen_aqm::aaqm::{self, Aaqm, AaqmParams};
use aqumen_aqm::aqm_mo::{AqmMo, AqmMoParams, design::Rule};
use aqumen_aqm::paqm::{Paqm, PaqmParams, Reading};
use aqumen_aqm::threshold::signal_probability;
use aqumen_aqm::{
    Aqm, ArmPfcParams, Cx, DropReason, EstimatorParams, Estimators, Limit, NetworkEstimate, Observation, Packet,
    QueueView, Rls, RlsParams, RoundTrip, SampledAqm, SampledLaw, SelfTuned, Target, TcpPlant, Totals, TunablePi,
    TunableRed, Variant, Verdict, arm_pfc_adaptive,
};
use aqumen_units::{Ecn, Instant, Probability, Span};
use replay::{Compare, flag, load, number, observed, rows};
use serde_json::Value;

fn probability(of: &Value, key: &str) -> Probability {
    Probability::new(number(of, key)).unwrap()
}

fn numbers(of: &Value) -> Vec<f64> {
    of.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn estimators(params: &Value) -> EstimatorParams {
    EstimatorParams {
        capacity_pps: number(params, "C0"),
        load: number(params, "L0"),
        tau_c_s: number(params, "tauC"),
        tau_l_s: number(params, "tauL"),
        c_min_pps: number(params, "Cmin"),
        l_min: number(params, "Lmin"),
        l_max: number(params, "Lmax"),
    }
}

/// Observation of a row with departures after the probability `applied`; busy time in whole nanoseconds.
fn departures(row: &Value, applied: Probability) -> Observation {
    Observation {
        queue_pkts: number(row, "q"),
        departures_pkts: number(row, "dep"),
        busy_s: Span::from_secs_f64(number(row, "busy")).as_secs_f64(),
        applied,
        ..Observation::default()
    }
}

fn check_estimators(compare: &Compare, where_: &str, got: &Estimators, row: &Value) {
    compare.check(where_, "C_hat", got.capacity_pps(), number(row, "C_hat"));
    compare.check(where_, "L_hat", got.load_filter(), number(row, "L_hat"));
}

#[test]
fn stpi_tunes_itself() {
    for name in ["stpi", "stpi_clamps"] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let (fs, target) = (number(params, "fs"), Target::Packets(number(params, "qref")));
        let round_trip = RoundTrip::Effective(number(params, "R_prop"));
        let estimates = estimators(params);
        let network = NetworkEstimate {
            capacity_pps: estimates.capacity_pps,
            load: estimates.load,
            rtt_s: round_trip.rtt_s(target, estimates.capacity_pps),
        };
        let mut p = probability(params, "p_init");
        let law = TunablePi::new(number(params, "beta"), fs, target, &network, p).unwrap();
        let mut law = SelfTuned::new(law, Estimators::new(estimates, 1.0 / fs, None).unwrap(), round_trip);
        for (k, row) in rows(&file).iter().enumerate() {
            p = law.step(0, &departures(row, p));
            let where_ = format!("{name} row {k}");
            check_estimators(&compare, &where_, law.estimators(), row);
            let (a, b) = (law.law().gains().a(), law.law().gains().b());
            compare.check(&where_, "a", a, number(row, "a"));
            compare.check(&where_, "b", b, number(row, "b"));
            compare.check(&where_, "kp", 0.5 * (a + b), number(row, "kp"));
            compare.check(&where_, "ki", (a - b) * fs, number(row, "ki"));
            compare.check(&where_, "p", p.get(), number(row, "p"));
        }
    }
}

#[test]
fn stred_tunes_itself() {
    for name in ["stred", "stred_limits", "stred_kmax_band", "stred_lmax"] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let (ts, estimates) = (number(params, "Ts"), estimators(params));
        let rtt_s = number(params, "R");
        let network = NetworkEstimate { capacity_pps: estimates.capacity_pps, load: estimates.load, rtt_s };
        let law =
            TunableRed::new(number(params, "br"), 1.0 / ts, number(params, "td"), &network, number(params, "avg_init"));
        let estimators = Estimators::new(estimates, ts, None).unwrap();
        let mut law = SelfTuned::new(law.unwrap(), estimators, RoundTrip::Fixed(rtt_s));
        let mut p = probability(params, "p_init");
        for (k, row) in rows(&file).iter().enumerate() {
            p = law.step(0, &departures(row, p));
            let where_ = format!("{name} row {k}");
            check_estimators(&compare, &where_, law.estimators(), row);
            let got = observed(|visit| law.observe(visit));
            for (key, shown) in [
                ("avg", "average_queue"),
                ("minth", "min_th"),
                ("maxth", "max_th"),
                ("pmax", "max_p"),
                ("K", "average_pole"),
            ] {
                compare.check(&where_, key, got[shown], number(row, key));
            }
            compare.check(&where_, "p", p.get(), number(row, "p"));
        }
    }
}

#[test]
fn adaptive_arm_pfc_follows_capacity_and_load() {
    for name in ["pfc_adaptive_physical", "pfc_adaptive_limits"] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let (rtt, estimates) = (number(params, "R"), estimators(params));
        // The flows that make the load L0.
        let flows = estimates.load * rtt * estimates.capacity_pps;
        let plant = TcpPlant::new(flows, estimates.capacity_pps, rtt).unwrap();
        let design = ArmPfcParams {
            d: number(params, "d") as usize,
            h: number(params, "h") as usize,
            psi: number(params, "Psi"),
            p0: probability(params, "p0"),
            variant: Variant::B,
            ..ArmPfcParams::new(plant, number(params, "q0"))
        };
        let mut law = arm_pfc_adaptive::physical(design, estimates).unwrap();
        assert_eq!(law.periods()[0], Some(Span::from_secs_f64(number(params, "Ts"))));
        let mut p = Probability::ZERO;
        for (k, row) in rows(&file).iter().enumerate() {
            p = law.step(0, &departures(row, p));
            let where_ = format!("{name} row {k}");
            check_estimators(&compare, &where_, law.estimators(), row);
            compare.check(&where_, "L", law.estimators().load(), number(row, "L"));
            compare.check(&where_, "g", law.law().predictor().gain(), number(row, "g"));
            compare.check(&where_, "p", p.get(), number(row, "p"));
        }
    }
}

#[test]
fn recursive_least_squares_forget_and_stay_bounded() {
    for name in ["rls_trace", "rls_arm10", "rls_symmetrise"] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let rls = RlsParams {
            forgetting: number(params, "lambda"),
            covariance: number(params, "P0"),
            dead_zone: number(params, "dz"),
        };
        let mut rls = Rls::new(rls, &numbers(&params["theta0"])).unwrap();
        if let Some(p) = params["P_init"].as_array() {
            rls = rls.with_covariance(&p.iter().flat_map(numbers).collect::<Vec<_>>());
        }
        for (k, row) in rows(&file).iter().enumerate() {
            let error = rls.update(&numbers(&row["phi"]), number(row, "y"));
            let where_ = format!("{name} row {k}");
            compare.check(&where_, "e", error, number(row, "e"));
            compare.check(&where_, "trP", rls.trace(), number(row, "trP"));
            let expected = numbers(&row["theta"]);
            assert_eq!(expected.len(), rls.theta().len());
            for (got, expected) in rls.theta().iter().zip(expected) {
                compare.check(&where_, "theta", *got, expected);
            }
        }
    }
}

#[test]
fn paqm_follows_its_law_in_every_reading() {
    let mut replayed = 0;
    for (letters, reading) in [("X", Reading::X), ("SUM", Reading::Sum), ("DPI", Reading::Dpi), ("I", Reading::I)] {
        for kind in ["rmax2", "rmaxNone", "clamp"] {
            if (letters, kind) == ("I", "rmax2") || (letters, kind) == ("I", "rmaxNone") {
                continue;
            }
            let name = format!("paqm_{letters}_{kind}");
            let file = load(&name);
            let (compare, params) = (Compare::of(&file), &file["params"]);
            assert_eq!(params["reading"].as_str(), Some(letters));
            let paqm = PaqmParams {
                alpha: number(params, "alpha"),
                period_s: number(params, "Ts"),
                target: number(params, "qref"),
                buffer: number(params, "B"),
                reading,
                ratio_max: params["ratio_max"].as_f64(),
            };
            let mut law = Paqm::new(paqm, probability(params, "p_init")).unwrap();
            for (k, row) in rows(&file).iter().enumerate() {
                let p = law.step(0, &Observation { queue_pkts: number(row, "q"), ..Observation::default() });
                let (where_, got) = (format!("{name} row {k}"), observed(|visit| law.observe(visit)));
                compare.check(&where_, "gamma_hat", got["predicted_increment"], number(row, "gamma_hat"));
                compare.check(&where_, "Q_hat", got["predicted_queue"], number(row, "Q_hat"));
                assert_eq!(got["same_side"] != 0.0, flag(row, "same_side"), "{where_}");
                compare.check(&where_, "p", p.get(), number(row, "p"));
            }
            replayed += 1;
        }
    }
    assert_eq!(replayed, 10);
}

#[test]
fn aqm_mo_follows_its_two_loops() {
    for name in ["aqmmo_D1c", "aqmmo_D0", "aqmmo_limits", "aqmmo_limits_D0"] {
        let file = load(name);
        let (compare, params, gains) = (Compare::of(&file), &file["params"], &file["gains"]);
        let r0 = number(gains, "R0");
        let plant = TcpPlant::new(number(params, "N"), number(params, "C"), r0).unwrap();
        let loops = AqmMoParams {
            rule: if params["variant"] == "D0" { Rule::D0 } else { Rule::D1c },
            h1_s: number(params, "h1"),
            h2_s: number(params, "h2"),
            tau_l_s: number(params, "tau_l"),
            tau_q_s: number(params, "tau_q"),
            p_max: number(params, "p_max"),
            x_bound: number(params, "xb"),
            adapt_n: false,
        };
        let mut law = AqmMo::new(loops, plant, number(params, "Tp"), Target::Packets(number(params, "qref"))).unwrap();
        compare.check(name, "p", law.initial().get(), number(&params["init"], "p"));
        let designed = *law.gains();
        for (key, got) in [
            ("W0", plant.window_pkts()),
            ("T_first", designed.t_first),
            ("kpo", designed.k_po),
            ("Tio", designed.t_io),
            ("Tdo", designed.t_do),
            ("Kp", designed.k_p),
        ] {
            compare.check(name, key, got, number(gains, key));
        }
        for event in file["events"].as_array().unwrap() {
            let where_ = format!("{name} {event}");
            let seen = Observation {
                queue_pkts: number(event, "q"),
                arrivals_pkts: number(event, "A"),
                ..Observation::default()
            };
            let mut p = law.step(0, &seen);
            if event["e"].is_number() {
                p = law.step(1, &seen);
            }
            let got = observed(|visit| law.observe(visit));
            compare.check(&where_, "p", p.get(), number(event, "p"));
            compare.check(&where_, "split", got["p1"] + got["p2"], number(event, "p"));
            compare.check(&where_, "V", got["inner_integral"], number(event, "V"));
            compare.check(&where_, "lam", got["arrival_rate"], number(event, "lam"));
            if event["e"].is_number() {
                compare.check(&where_, "e", got["error"], number(event, "e"));
                compare.check(&where_, "X", got["outer_integral"], number(event, "X"));
            }
        }
    }
}

/// The host of AAQM's files: the packet in transmission counts as waiting, and busy time is whatever is not idle up to
/// the moment. It feeds the totals that the law sees in the product.
struct AaqmHost {
    aqm: SampledAqm<Aaqm>,
    limit: u32,
    waiting: u32,
    totals: Totals,
    idle: Span,
    idle_since: Option<Instant>,
}

impl AaqmHost {
    fn event(&mut self, event: &Value) -> Option<&'static str> {
        let now = Instant::from_nanos(event["t_ns"].as_u64().unwrap());
        match event["op"].as_str().unwrap() {
            "deq" => {
                self.waiting -= 1;
                self.totals.departures += 1;
                self.idle_since = (self.waiting == 0).then_some(now);
                None
            }
            "tick" => {
                let idle = self.idle + self.idle_since.map_or(Span::ZERO, |since| now - since);
                self.totals.busy = (now - Instant::ZERO) - idle;
                assert_eq!(self.aqm.next_timer(), Some(now));
                let queue = QueueView {
                    packets: self.waiting,
                    bytes: 0,
                    limit: Limit::packets(self.limit),
                    totals: &self.totals,
                };
                self.aqm.on_timer(&mut Cx { now, queue, rng: &mut Fixed(1.0) });
                None
            }
            "enq" => Some(self.arrive(event, now)),
            op => panic!("unknown operation {op}"),
        }
    }

    fn arrive(&mut self, event: &Value, now: Instant) -> &'static str {
        let ecn = if flag(event, "ect") { Ecn::Ect0 } else { Ecn::NotEct };
        let packet = Packet { bytes: number(event, "size") as u32, ecn, segments: 1, ..Packet::default() };
        let totals = self.totals;
        let queue = QueueView { packets: self.waiting, bytes: 0, limit: Limit::packets(self.limit), totals: &totals };
        let full = queue.is_full(&packet);
        let cx = &mut Cx { now, queue, rng: &mut Fixed(number(event, "u")) };
        let verdict = self.aqm.on_arrival(&packet, cx);
        self.totals.arrivals += 1;
        let result = match verdict {
            _ if full => "drop_overflow",
            Verdict::Drop(DropReason::Overflow) => "drop_overflow",
            Verdict::Drop(DropReason::Early) => "drop_early",
            Verdict::Mark => "mark",
            Verdict::Pass => "enq",
        };
        if !result.starts_with("drop") {
            self.totals.accepted += 1;
            self.waiting += 1;
            if let Some(since) = self.idle_since.take() {
                self.idle += now - since;
            }
        }
        result
    }
}

#[test]
fn aaqm_counts_what_came_and_what_could_have_left() {
    let mut fates = std::collections::BTreeSet::new();
    for name in ["aaqm_recommended", "aaqm_literal", "aaqm_drop", "aaqm_overflow"] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let law = Aaqm::new(AaqmParams {
            p1: number(params, "P1"),
            p2: number(params, "P2"),
            period_s: number(params, "T"),
            reading: if params["reading"] == "plain" { aaqm::Reading::Plain } else { aaqm::Reading::Rate },
            utilization: if params["u_def"] == "literal" {
                aaqm::Utilization::Literal
            } else {
                aaqm::Utilization::Capacity
            },
            ..AaqmParams::new(number(params, "C"))
        });
        let mut host = AaqmHost {
            aqm: SampledAqm::new(law.unwrap(), flag(params, "ecn")),
            limit: number(params, "limit") as u32,
            waiting: 0,
            totals: Totals::default(),
            idle: Span::ZERO,
            idle_since: Some(Instant::ZERO),
        };
        let mut at_tick = Totals::default();
        for (i, event) in file["events"].as_array().unwrap().iter().enumerate() {
            let where_ = format!("{name} event {i} {event}");
            let expected = &event["state"];
            match host.event(event) {
                Some(result) => {
                    assert_eq!(result, event["res"].as_str().unwrap(), "{where_}");
                    fates.insert(result);
                }
                None if event["op"] == "tick" => at_tick = host.totals,
                None => {}
            }
            let got = observed(|visit| host.aqm.observe(visit));
            assert_eq!(f64::from(host.waiting), number(expected, "q"), "{where_}");
            compare.check(&where_, "P", host.aqm.probability().get(), number(expected, "P"));
            compare.check(&where_, "U", got["utilization"], number(expected, "U"));
            assert_eq!((host.totals.accepted - at_tick.accepted) as f64, number(expected, "A"), "{where_}");
            assert_eq!((host.totals.departures - at_tick.departures) as f64, number(expected, "B"), "{where_}");
        }
    }
    // The files show every fate.
    assert_eq!(fates.into_iter().collect::<Vec<_>>(), ["drop_early", "drop_overflow", "enq", "mark"]);
}

#[test]
fn the_threshold_function_rises_from_threshold_to_limit() {
    let file = load("F18");
    let (compare, pi) = (Compare::of(&file), number(&file["params"], "Pi"));
    for case in file["cases"].as_array().unwrap() {
        let th = number(case, "th");
        let (x, f) = (numbers(&case["x"]), numbers(&case["F"]));
        assert_eq!(x.len(), f.len());
        for (x, expected) in x.into_iter().zip(f) {
            compare.check(&format!("F18 th {th} x {x}"), "F", signal_probability(x, th, pi), expected);
            // In shares of the buffer, as the wrapper computes it.
            compare.check("F18 in shares", "F", signal_probability(x / pi, th / pi, 1.0), expected);
        }
    }
}
