//! Replays the known answers of the classic algorithms in `vectors/`. What they are and where they come from:
//! `vectors/README.md`.

use crate::replay;

use std::collections::BTreeMap;

use aqumen_aqm::{
    AdaptiveRed, AdaptiveRedLaw, Aqm, Avq, AvqForm, AvqParams, Blue, BlueLaw, FengRule, FloydRule, MaxPRule,
    Observation, RedCurve, Rem, RemLaw, RemParams, SampledLaw,
};
use aqumen_units::Span;
use replay::{Compare, Host, check_red, flag, load, number, observed, red, red_host, rows};
use serde_json::Value;

/// Replays every event of a file, checks its result, and shows the host after it. Returns how often each result came.
fn replay<A: Aqm>(
    name: &str,
    file: &Value,
    mut host: Host<A>,
    mut check: impl FnMut(&str, &Host<A>, &Value),
) -> BTreeMap<&'static str, u32> {
    let mut fates = BTreeMap::new();
    for (i, event) in file["events"].as_array().unwrap().iter().enumerate() {
        let where_ = format!("{name} event {i} {event}");
        if let Some(result) = host.event(event) {
            assert_eq!(result, event["res"].as_str().unwrap(), "{where_}");
            *fates.entry(result).or_insert(0) += 1;
        }
        assert_eq!(host.queue.len() as f64, number(&event["state"], "q"), "{where_}");
        check(&where_, &host, event);
    }
    fates
}

fn adaptive(name: &str, file: &Value, rule: impl MaxPRule, interval: Option<Span>) {
    let (compare, params) = (Compare::of(file), &file["params"]);
    let aqm = AdaptiveRed::new(red(params), rule, interval, flag(params, "ns2_stale_gentle"));
    replay(name, file, red_host(aqm, params), |where_, host, event| {
        let got = check_red(&compare, where_, host, 1.0, event);
        compare.check(where_, "maxp", got["max_p"], number(&event["state"], "maxp"));
    });
}

#[test]
fn ared_does_what_ns2_does() {
    for name in ["ared", "ared_gentle_corrected", "ared_interval_equal", "ared_top_quarter"] {
        let file = load(name);
        let params = &file["params"];
        let rule = FloydRule {
            alpha: number(params, "alpha"),
            beta: number(params, "beta"),
            top: number(params, "top"),
            bottom: number(params, "bottom"),
        };
        adaptive(name, &file, rule, Some(Span::from_secs_f64(number(params, "interval"))));
    }
}

#[test]
fn fengs_ared_does_what_ns2_does() {
    for name in ["ared_feng", "feng_unclamped"] {
        let file = load(name);
        let params = &file["params"];
        adaptive(name, &file, FengRule::new(number(params, "alpha"), number(params, "beta")), None);
    }
}

#[test]
fn ared_follows_its_sampled_law() {
    for name in ["ared_sampled", "ared_sampled_limits"] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let target = number(params, "td") * number(params, "C");
        let min_th = (target / 2.0).max(number(params, "minth_floor"));
        let curve = RedCurve::new(min_th, 3.0 * min_th, number(params, "pmax_init"), true).unwrap();
        let rule = FloydRule {
            alpha: number(params, "alpha_max"),
            beta: number(params, "beta"),
            top: number(params, "pmax_cap"),
            bottom: number(params, "pmax_floor"),
        };
        let (period, interval) = (number(params, "Ts"), number(params, "interval"));
        let every = (interval / period).round() as u32;
        let mut law = AdaptiveRedLaw::new(curve, 1.0, rule, Span::from_secs_f64(period), every);
        for (k, row) in rows(&file).iter().enumerate() {
            let where_ = format!("{name} row {k}");
            let p = law.step(0, &Observation { queue_pkts: number(row, "q"), ..Observation::default() });
            let state = observed(|visit| law.observe(visit));
            compare.check(&where_, "avg", state["average_queue"], number(row, "avg"));
            compare.check(&where_, "pmax", state["max_p"], number(row, "pmax"));
            compare.check(&where_, "p", p.get(), number(row, "p"));
        }
    }
}

#[test]
fn rem_does_what_ns2_does() {
    let mut fates = BTreeMap::new();
    for name in ["rem_ns2", "rem_overflow"] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let law = RemLaw::new(RemParams {
            gamma: number(params, "gamma"),
            phi: number(params, "phi"),
            alpha: number(params, "alpha"),
            inw: number(params, "inw"),
            interval: Span::from_secs_f64(number(params, "T")),
            target_pkts: number(params, "pbo"),
            capacity_pps: number(params, "ptc"),
        })
        .unwrap();
        let host =
            Host::new(Rem::new(law, false, true, flag(params, "mark")), number(params, "limit") as u64, |host| {
                host.queue.len() as u64 >= host.limit
            });
        fates.extend(replay(name, &file, host, |where_, host, event| {
            let (state, got) = (&event["state"], observed(|visit| host.aqm.observe(visit)));
            compare.check(where_, "price", got["price"], number(state, "price"));
            compare.check(where_, "prob", host.aqm.probability().get(), number(state, "prob"));
            if event["op"] == "tick" {
                compare.check(where_, "in_avg", got["average_arrivals"], in_avg(&file, event));
            }
        }));
    }
    assert_eq!(fates.keys().copied().collect::<Vec<_>>(), ["drop_early", "drop_overflow", "enq"]);
}

/// The average of the arrivals that REM has at a tick of `file`, from the counts of the events before it.
fn in_avg(file: &Value, tick: &Value) -> f64 {
    let inw = number(&file["params"], "inw");
    let (mut average, mut count) = (0.0, 0.0);
    for event in file["events"].as_array().unwrap() {
        match event["op"].as_str().unwrap() {
            "enq" => count += 1.0,
            "tick" => {
                average = (1.0 - inw) * average + inw * count;
                count = 0.0;
            }
            _ => {}
        }
        if event == tick {
            break;
        }
    }
    average
}

#[test]
fn avq_does_what_ns2_and_its_paper_do() {
    let mut fates = BTreeMap::new();
    for (name, form) in [("avq_ns2", AvqForm::Ns2), ("avq_paper_mark", AvqForm::Paper)] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let aqm = Avq::new(AvqParams {
            gamma: number(params, "gamma"),
            alpha: number(params, "alpha"),
            initial_fraction: number(params, "ecnlim"),
            buffer_fraction: number(params, "buflim"),
            form,
            bytes: false,
            mean_packet: 1000.0,
            capacity_pps: number(params, "C"),
            spare_not_ect: true,
            ecn: flag(params, "mark"),
        })
        .unwrap();
        let host = Host::new(aqm, number(params, "limit") as u64, |host| host.queue.len() as u64 >= host.limit);
        fates.extend(replay(name, &file, host, |where_, host, event| {
            let (state, got) = (&event["state"], observed(|visit| host.aqm.observe(visit)));
            compare.check(where_, "vq", got["virtual_queue"], number(state, "vq"));
            compare.check(where_, "ctilde", got["virtual_capacity"], number(state, "ctilde"));
        }));
    }
    assert_eq!(fates.keys().copied().collect::<Vec<_>>(), ["drop_early", "drop_overflow", "enq", "mark"]);
}

#[test]
fn blue_follows_its_rules() {
    for name in ["blue", "blue_freeze"] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let law =
            BlueLaw::new(Span::from_secs_f64(number(params, "freeze")), number(params, "d1"), number(params, "d2"));
        let host = Host::new(Blue::new(law, flag(params, "ecn")), number(params, "limit") as u64, |host| {
            host.queue.len() as u64 >= host.limit
        });
        let fates = replay(name, &file, host, |where_, host, event| {
            compare.check(where_, "p", host.aqm.probability().get(), number(&event["state"], "p"));
        });
        assert!(fates.contains_key("drop_overflow") && fates.contains_key("drop_early"), "{name}: {fates:?}");
    }
}
