//! Replays the known answers in `vectors/`. What they are and where they come from: `vectors/README.md`.

use crate::replay;

use std::collections::BTreeMap;

use aqumen_aqm::arm_pfc::design::{Model, Predictor};
use aqumen_aqm::{
    ArmPfc, ArmPfcParams, Crossover, DropTail, Observation, Pi, PiController, PiGains, RedCurve, SampledLaw, TcpPlant,
    Variant,
};
use aqumen_units::Probability;
use replay::{Compare, Host, check_red, flag, load, number, observed, red, red_host, rows};

fn sample(queue_pkts: f64) -> Observation {
    Observation { queue_pkts, ..Observation::default() }
}

#[test]
fn pi_follows_its_law() {
    for name in ["pi_classic", "pi_saturating", "pi_qold_saturated"] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let gains = PiGains::new(number(params, "a"), number(params, "b")).unwrap();
        let mut pi = Pi::new(gains, number(params, "fs"), number(params, "qref"));
        for (k, row) in rows(&file).iter().enumerate() {
            let p = pi.step(0, &sample(number(row, "q")));
            compare.check(&format!("{name} row {k}"), "p", p.get(), number(row, "p"));
        }
    }
}

#[test]
fn pi_is_designed_by_its_rule() {
    let file = load("pi_gains");
    let compare = Compare::of(&file);
    for row in rows(&file) {
        let plant = TcpPlant::new(number(row, "N"), number(row, "C"), number(row, "R")).unwrap();
        let pi = PiController::design(&plant, Crossover::PerDelay(number(row, "beta")));
        let gains = pi.sampled(number(row, "fs")).unwrap();
        compare.check("pi_gains", "kp", pi.proportional(), number(row, "kp"));
        compare.check("pi_gains", "ki", pi.gain, number(row, "ki"));
        compare.check("pi_gains", "a", gains.a(), number(row, "a"));
        compare.check("pi_gains", "b", gains.b(), number(row, "b"));
    }
}

#[test]
fn arm_pfc_follows_its_law_in_every_variant() {
    for (letter, variant) in [("A", Variant::A), ("B", Variant::B), ("C", Variant::C)] {
        for name in [format!("pfc_{letter}"), format!("pfc_{letter}_small")] {
            let file = load(&name);
            let (compare, params) = (Compare::of(&file), &file["params"]);
            let plant = TcpPlant::new(number(params, "N"), number(params, "C"), number(params, "R0")).unwrap();
            let mut law = ArmPfc::new(ArmPfcParams {
                d: number(params, "d") as usize,
                h: number(params, "h") as usize,
                psi: number(params, "Psi"),
                p0: Probability::new(number(params, "p0")).unwrap(),
                variant,
                ..ArmPfcParams::new(plant, number(params, "q0"))
            })
            .unwrap();
            for (k, row) in rows(&file).iter().enumerate() {
                let p = law.step(0, &sample(number(row, "q")));
                let where_ = format!("{name} row {k}");
                let state = observed(|visit| law.observe(visit));
                compare.check(&where_, "p", p.get(), number(row, "p"));
                compare.check(&where_, "ym", state["model_output"], number(row, "ym"));
                compare.check(&where_, "y_free", state["free_response"], number(row, "y_free"));
                compare.check(&where_, "u_unsat", state["unclamped_input"], number(row, "u_unsat"));
            }
        }
    }
}

#[test]
fn arm_pfc_is_designed_by_its_equations() {
    let file = load("pfc_design");
    let compare = Compare::of(&file);
    for row in rows(&file) {
        let plant = TcpPlant::new(number(row, "N"), number(row, "C"), number(row, "R0")).unwrap();
        let model = Model::new(&plant, number(row, "d") as usize).unwrap();
        let predictor = Predictor::new(&model, number(row, "h") as usize).unwrap();
        let ts = model.period_s();
        let gamma = ts / (plant.queue_time_s().powi(2) + plant.window_time_s().powi(2)).sqrt();
        for (key, got) in [
            ("kt", plant.gain_pkts()),
            ("tau1", plant.queue_time_s()),
            ("tau2", plant.window_time_s()),
            ("Ts", ts),
            ("gamma", gamma),
            ("W0", plant.window_pkts()),
            ("p0", plant.operating_probability()),
            ("n1", model.n1()),
            ("n2", model.n2()),
            ("m1", model.m1()),
            ("m2", model.m2()),
            ("beta1", predictor.beta1()),
            ("beta2", predictor.beta2()),
            ("eta", predictor.eta()),
            ("g", predictor.gain()),
        ] {
            compare.check(&format!("pfc_design {row}"), key, got, number(row, key));
        }
        let c = row["c"].as_array().unwrap();
        assert_eq!(c.len(), predictor.c().len());
        for (got, expected) in predictor.c().iter().zip(c) {
            compare.check("pfc_design", "c", *got, expected.as_f64().unwrap());
        }
    }
}

#[test]
fn red_has_its_curve() {
    let file = load("red_prob");
    let (compare, params) = (Compare::of(&file), &file["params"]);
    for (gentle, key) in [(true, "p"), (false, "p_not_gentle")] {
        let curve =
            RedCurve::new(number(params, "minth"), number(params, "maxth"), number(params, "pmax"), gentle).unwrap();
        for row in rows(&file) {
            let average = number(row, "avg");
            compare.check(&format!("red_prob at {average}"), key, curve.probability(average), number(row, key));
        }
    }
}

#[test]
fn droptail_drops_when_full() {
    for name in ["droptail", "droptail_ns2"] {
        let file = load(name);
        let params = &file["params"];
        let mut host = Host::new(DropTail::new(flag(params, "ns2")), number(params, "limit") as u64, |host| {
            host.queue.len() as u64 >= host.limit
        });
        for (i, event) in file["events"].as_array().unwrap().iter().enumerate() {
            let result = host.event(event);
            if let Some(result) = result {
                assert_eq!(result, event["res"].as_str().unwrap(), "{name} event {i}");
            }
            assert_eq!(host.queue.len() as f64, number(&event["state"], "q"), "{name} event {i}");
        }
    }
}

#[test]
fn red_does_what_ns2_does() {
    let mut fates = BTreeMap::new();
    for name in [
        "red_gentle_pkts",
        "red_nongentle_nowait_ecn",
        "red_bytes",
        "red_bytes_overflow",
        "red_idle_no_poll",
        "red_mark_p_equal",
    ] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let mut host = red_host(red(params), params);
        let unit = if flag(params, "qib") { number(params, "mean_pktsize") } else { 1.0 };
        for (i, event) in file["events"].as_array().unwrap().iter().enumerate() {
            let where_ = format!("{name} event {i} {event}");
            if let Some(result) = host.event(event) {
                assert_eq!(result, event["res"].as_str().unwrap(), "{where_}");
                *fates.entry(result).or_insert(0) += 1;
            }
            check_red(&compare, &where_, &host, unit, event);
        }
    }
    // The files show every fate.
    assert_eq!(fates.keys().copied().collect::<Vec<_>>(), ["drop_early", "drop_overflow", "enq", "mark"]);
}
