//! ARM-PFC's closed-form predictor against the plain recursion of its model, step by step.

use crate::common;

use aqumen_aqm::arm_pfc::design::{Model, Predictor};
use proptest::prelude::*;

fn models() -> impl Strategy<Value = Model> {
    let tau = || 0.05..3.0;
    // Equal time constants, nearly equal ones and any.
    let apart = prop_oneof![Just(0.0), -1e-6..1e-6, -0.9..3.0];
    (10.0..5000.0, tau(), apart, 0.01..0.3, 1usize..=12).prop_map(|(gain, tau1, apart, period, d)| {
        Model::from_time_constants(gain, tau1, tau1 * (1.0 + apart), period, d)
    })
}

/// y(k+h), by the recursion. `u(i)` is the input at k + i, i negative in the past.
fn recursion(model: &Model, h: usize, y: f64, y1: f64, u: impl Fn(isize) -> f64) -> f64 {
    let (mut now, mut before) = (y, y1);
    for i in 1..=h as isize {
        let d = model.delay() as isize;
        let next = -model.n1() * now - model.n2() * before + model.m1() * u(i - d - 1) + model.m2() * u(i - d - 2);
        (now, before) = (next, now);
    }
    now
}

proptest! {
    #![proptest_config(common::config(500))]

    #[test]
    fn the_prediction_is_what_the_recursion_reaches(
        model in models(),
        beyond in 1usize..=20,
        outputs in prop::array::uniform2(-300.0..300.0f64),
        inputs in prop::collection::vec(-1.0..1.0f64, 40),
    ) {
        let (d, [y, y1]) = (model.delay(), outputs);
        let predictor = Predictor::new(&model, d + beyond).unwrap();
        // inputs[0] is u(k), held from now on; inputs[j] is u(k-j).
        let past = &inputs[1..];
        let predicted = predictor.free_response(y, y1, past) + predictor.gain() * inputs[0];
        let reached = recursion(&model, d + beyond, y, y1, |i| inputs[(-i).max(0) as usize]);
        let scale = model.gain().abs() + 300.0 * (predictor.beta1().abs() + predictor.beta2().abs());
        prop_assert!((predicted - reached).abs() < 1e-11 * scale, "{predicted} {reached} {scale}");
    }

    #[test]
    fn the_prediction_from_the_past_with_the_inputs_applied_since_is_the_present(
        model in models(),
        beyond in 1usize..=20,
        outputs in prop::array::uniform2(-300.0..300.0f64),
        inputs in prop::collection::vec(-1.0..1.0f64, 50),
    ) {
        let (d, h, [y, y1]) = (model.delay(), model.delay() + beyond, outputs);
        let predictor = Predictor::new(&model, h).unwrap();
        // inputs[j] is u(k-j); the recursion starts at k-h.
        let predicted = predictor.predict_applied(y, y1, &inputs[d + 1..]);
        let reached = recursion(&model, h, y, y1, |i| inputs[(h as isize - i) as usize]);
        let scale = model.gain().abs() + 300.0 * (predictor.beta1().abs() + predictor.beta2().abs());
        prop_assert!((predicted - reached).abs() < 1e-11 * scale, "{predicted} {reached} {scale}");
    }

    #[test]
    fn the_sampled_model_does_not_jump_where_the_time_constants_meet(tau in 0.05..3.0f64, period in 0.01..0.3f64) {
        let at = |apart: f64| Model::from_time_constants(1000.0, tau, tau * (1.0 + apart), period, 5);
        let (meet, near) = (at(0.0), at(1e-9));
        for n in 1..30 {
            prop_assert!((meet.step_response(n) - near.step_response(n)).abs() < 1e-6);
        }
        // The response rises from 0 to the gain at rest.
        prop_assert!((meet.step_response(100_000) - meet.gain()).abs() < 1e-6);
        prop_assert_eq!(meet.step_response(0), 0.0);
    }
}

#[test]
fn a_response_that_is_lost_in_rounding_is_none() {
    // Time constants of 10^15 s, and five samples of a millisecond: 1 - exp(-x) (1 + x) is x^2 / 2, far below 2^-53.
    let still = Model::from_time_constants(1000.0, 1e15, 1e15, 0.001, 2);
    let error = Predictor::new(&still, 5).unwrap_err().to_string();
    assert!(error.contains("is too short for a response"), "{error}");
    assert!(Predictor::new(&Model::from_time_constants(1000.0, 1.0, 1.0, 0.001, 2), 5).is_ok());
}
