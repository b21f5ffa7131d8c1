//! Queue model against closed forms, an independent recursion, and laws of queueing theory.

use aqumen_queueing::{Action, Adaptation, Delay, Measures, Minisources, Model, Queue, Source, dispersion};
use proptest::prelude::*;

use crate::common;

use common::{close, config, two_states};

fn poisson_queue(rate: f64, capacity: u32, stages: u32, service_rate: f64) -> Measures {
    let source = Source::poisson("p", rate).unwrap();
    Model::new(Queue { capacity, service_rate, stages }, vec![source]).unwrap().solve().unwrap()
}

#[test]
fn a_poisson_source_before_an_exponential_server_is_mm1l() {
    // p_b = (1 - rho) rho^b / (1 - rho^(L+1)), at rho = 1 all equal; loss = p_L.
    for capacity in [1, 2, 7, 50, 400] {
        for rho in [0.1, 0.5, 0.9, 1.0, 1.3, 4.0f64] {
            let m = poisson_queue(100.0 * rho, capacity, 1, 100.0);
            let total: f64 = (0..=capacity).map(|b| rho.powi(b as i32)).sum();
            let mut mean = 0.0;
            for (b, p) in m.occupancy.iter().enumerate() {
                let expected = rho.powi(b as i32) / total;
                close(*p, expected, 1e-12, &format!("p_{b}, rho {rho}, L {capacity}"));
                mean += b as f64 * expected;
            }
            close(m.total.loss_ratio, rho.powi(capacity as i32) / total, 1e-12, "loss");
            close(m.occupancy_mean_pkts, mean, 1e-12, "E[N]");
        }
    }
}

/// M/G/1/L from the embedded chain at departures, with Poisson counts during an Erlang service: p_b for b = 0..L.
fn embedded_chain(rate: f64, capacity: usize, stages: u32, service_rate: f64) -> Vec<f64> {
    // Arrivals during a service: negative binomial, a_{j+1} = a_j q (m + j) / (j + 1), with q = rate / (rate + m mu).
    let nu = f64::from(stages) * service_rate;
    let q = rate / (rate + nu);
    let mut a = vec![(1.0 - q).powi(stages as i32)];
    for j in 0..capacity {
        a.push(a[j] * q * (f64::from(stages) + j as f64) / (j as f64 + 1.0));
    }
    // Packets left behind at departures: x_{k+1} a_0 = x_k - x_0 a_k - sum_{1 <= i <= k} x_i a_{k-i+1}. With tail sums
    // b_j = 1 - a_0 - ... - a_j, nothing cancels: x_{k+1} a_0 = x_0 b_k + sum_{1 <= i <= k} x_i b_{k-i+1}.
    let mut tail = vec![0.0; capacity + 1];
    let mut term = a[capacity];
    let mut beyond = 0.0;
    for j in capacity..capacity + 4000 {
        term *= q * (f64::from(stages) + j as f64) / (j as f64 + 1.0);
        beyond += term;
    }
    for j in (0..=capacity).rev() {
        tail[j] = beyond;
        beyond += a[j];
    }
    let mut x = vec![1.0];
    for k in 0..capacity - 1 {
        let sum: f64 = x[0] * tail[k] + (1..=k).map(|i| x[i] * tail[k - i + 1]).sum::<f64>();
        x.push(sum / a[0]);
    }
    let total: f64 = x.iter().sum();
    let x: Vec<f64> = x.iter().map(|x| x / total).collect();
    // Time averages: p_b = x_b / (x_0 + rho), p_L = the rest: 1 - 1 / (x_0 + rho).
    let scale = x[0] + rate / service_rate;
    let mut p: Vec<f64> = x.iter().map(|x| x / scale).collect();
    p.push((scale - 1.0) / scale);
    p
}

#[test]
fn a_poisson_source_before_an_erlang_server_is_mg1l() {
    for (capacity, stages) in [(1, 3), (5, 2), (20, 4), (50, 5), (30, 10)] {
        for rho in [0.3, 0.8, 1.0, 1.4] {
            let m = poisson_queue(975.0 * rho, capacity, stages, 975.0);
            let expected = embedded_chain(975.0 * rho, capacity as usize, stages, 975.0);
            for (b, (p, expected)) in m.occupancy.iter().zip(&expected).enumerate() {
                let bound = 1e-12 * expected + if b == capacity as usize { 1e-14 } else { 0.0 };
                assert!(
                    (p - expected).abs() < bound,
                    "p_{b} = {p}, not {expected}: rho {rho}, L {capacity}, m {stages}"
                );
            }
        }
    }
}

#[test]
fn probabilities_of_one_in_ten_to_the_hundred_keep_their_precision() {
    // M/M/1/L with rho = 0.1: p_100 / p_0 = 1e-100.
    let m = poisson_queue(10.0, 100, 1, 100.0);
    close(m.occupancy[100] / m.occupancy[0], 1e-100, 1e-12, "p_100 / p_0");
}

#[test]
fn overload_loses_what_cannot_be_served() {
    // rho = 1.3 before a large buffer: 1 - 1/1.3 of the packets are lost, though probabilities span 10^1139.
    let m = poisson_queue(130.0, 10_000, 1, 100.0);
    close(m.total.loss_ratio, 1.0 - 1.0 / 1.3, 1e-12, "loss");
    close(m.utilization, 1.0, 1e-12, "utilization");
}

#[test]
fn a_modulated_source_with_equal_rates_is_poisson() {
    let plain = poisson_queue(500.0, 30, 3, 600.0);
    let source = two_states("s", 500.0, 500.0, 3.0, 0.2);
    let queue = Queue { capacity: 30, service_rate: 600.0, stages: 3 };
    let modulated = Model::new(queue, vec![source]).unwrap().solve().unwrap();
    for (p, expected) in modulated.occupancy.iter().zip(&plain.occupancy) {
        close(*p, *expected, 1e-12, "p");
    }
    close(modulated.total.delay.std_s(), plain.total.delay.std_s(), 1e-12, "std of the delay");
}

#[test]
fn the_delay_of_mm1_without_loss_is_exponential() {
    // M/M/1, rho = 0.5, mu = 100: sojourn exponential with mean 1 / (100 - 50) = 20 ms.
    // With L = 200 the loss is 2^-201.
    let delay = poisson_queue(50.0, 200, 1, 100.0).total.delay;
    close(delay.mean_s(), 0.02, 1e-12, "mean");
    close(delay.std_s(), 0.02, 1e-12, "std");
    for t in [1e-4, 0.005, 0.02, 0.1, 0.5] {
        close(delay.cdf(t), 1.0 - (-50.0 * t).exp(), 1e-11, "cdf");
        close(delay.survival(t), (-50.0 * t).exp(), 1e-11, "survival");
    }
    for p in [0.001, 0.5, 0.95, 0.999, 0.999_999] {
        close(delay.quantile(p), -(1.0f64 - p).ln() / 50.0, 1e-10, "quantile");
    }
    assert_eq!((delay.cdf(0.0), delay.survival(0.0), delay.quantile(0.0)), (0.0, 1.0, 0.0));
    assert!(delay.quantile(1.0).is_nan() && delay.quantile(-0.1).is_nan());
}

#[test]
fn the_delay_at_a_capacity_of_one_is_the_service_time() {
    // L = 1: no waiting. Erlang-4 with mean 10 ms: variance 0.01^2 / 4; P(D > t) = e^-x (1 + x + x^2/2 + x^3/6), x =
    // 400 t.
    let delay = poisson_queue(80.0, 1, 4, 100.0).total.delay;
    close(delay.mean_s(), 0.01, 1e-13, "mean");
    close(delay.variance_s2(), 0.01 * 0.01 / 4.0, 1e-13, "variance");
    let x: f64 = 400.0 * 0.015;
    close(delay.survival(0.015), (-x).exp() * (1.0 + x + x * x / 2.0 + x * x * x / 6.0), 1e-12, "P(D > 15 ms)");
}

#[test]
fn thresholds_at_the_capacity_change_no_bit() {
    let sources = || vec![two_states("a", 300.0, 80.0, 2.0, 1.0), two_states("b", 260.0, 20.0, 1.25, 5.0)];
    let queue = Queue { capacity: 9, service_rate: 400.0, stages: 2 };
    let without = Model::new(queue, sources()).unwrap().solve().unwrap();
    // Occupancies below 9 are below the threshold of 9 packets, too.
    let with = Model::new(queue, sources()).unwrap().with_thresholds(Action::Drop, vec![Some(9.0), None]).unwrap();
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        let refused = with.clone().with_thresholds(Action::Drop, vec![Some(9.0), Some(wrong)]).unwrap_err();
        assert!(refused.to_string().contains("at least 0 packets"), "{wrong}: {refused}");
    }
    let with = with.solve().unwrap();
    assert_eq!(with.occupancy, without.occupancy);
    assert_eq!(with.total.loss_ratio, without.total.loss_ratio);
}

#[test]
fn early_drops_shorten_the_queue_and_marks_do_not() {
    // Everything above 3 packets is chosen with certainty from b = 4 on only if th = 4 is a step there: F(b) at L = 4.
    let queue = Queue { capacity: 12, service_rate: 400.0, stages: 2 };
    let model = Model::new(queue, vec![two_states("a", 600.0, 300.0, 2.0, 1.0)]).unwrap();
    // th = 0: a packet that finds b is chosen with probability b/12, so the buffer can still fill, but seldom.
    let dropped = model.clone().with_thresholds(Action::Drop, vec![Some(0.0)]).unwrap().solve().unwrap();
    let plain = model.clone().solve().unwrap();
    assert!(dropped.occupancy_mean_pkts < plain.occupancy_mean_pkts);
    assert!(dropped.total.overflow_drop_ratio < 0.01 * plain.total.overflow_drop_ratio);
    assert!(dropped.total.early_drop_ratio > 0.0 && dropped.total.mark_ratio == 0.0);
    // Marks leave the queue as it is, and a packet cannot be both marked and lost.
    let marked = model.with_thresholds(Action::Mark, vec![Some(0.0)]).unwrap().solve().unwrap();
    assert_eq!(marked.occupancy, plain.occupancy);
    assert_eq!(marked.total.loss_ratio, plain.total.loss_ratio);
    let mean_found: f64 = marked.total.mark_ratio * 12.0 / (1.0 - marked.total.loss_ratio);
    assert!(mean_found > 0.0 && marked.total.mark_ratio + marked.total.loss_ratio < 1.0);
}

#[test]
fn a_silent_source_has_no_loss_ratio_and_no_effect() {
    let queue = Queue { capacity: 20, service_rate: 400.0, stages: 2 };
    let alone = Model::new(queue, vec![two_states("a", 600.0, 100.0, 2.0, 1.0)]).unwrap().solve().unwrap();
    let silent = Source::poisson("silent", 0.0).unwrap();
    let both = Model::new(queue, vec![silent, two_states("a", 600.0, 100.0, 2.0, 1.0)]).unwrap().solve().unwrap();
    assert!(both.sources[0].loss_ratio.is_nan() && both.sources[0].delay.mean_s().is_nan());
    assert!(both.sources[0].delay.quantile(0.5).is_nan());
    assert_eq!(both.sources[0].offered_pps, 0.0);
    close(both.total.loss_ratio, alone.total.loss_ratio, 1e-12, "loss of the other");
}

#[test]
fn invalid_models_are_refused_in_one_line() {
    let check = |result: Result<Source, aqumen_queueing::Error>, part: &str| {
        let message = result.err().unwrap_or_else(|| panic!("accepted: {part}")).to_string();
        assert!(message.contains(part) && message.lines().count() == 1, "{message}");
    };
    let two = |a: f64, b: f64, c: f64, d: f64| Source::new("s", &[vec![a, b], vec![c, d]], &[1.0, 2.0]);
    check(two(-1.0, 1.0, 0.0, 0.0), "state 1 cannot be reached from state 2");
    check(two(0.0, 0.0, 1.0, -1.0), "state 2 cannot be reached from state 1");
    check(two(1.0, 1.0, 1.0, -1.0), "row 1 sums to 2");
    check(two(1.0, -1.0, 1.0, -1.0), "row 1, column 2 is -1");
    check(two(f64::NAN, 1.0, 1.0, -1.0), "row 1, column 1 is NaN");
    check(Source::new("s", &[vec![0.0]], &[1.0, 2.0]), "must be 2 by 2");
    check(Source::poisson("s", -1.0), "a rate is -1");
    check(Source::poisson("s", f64::INFINITY), "a rate is inf");
    let queue = |capacity, stages, service_rate| {
        let model = Model::new(Queue { capacity, service_rate, stages }, vec![Source::poisson("p", 1.0).unwrap()]);
        model.expect_err("no queue").to_string()
    };
    assert!(queue(0, 1, 1.0).contains("capacity of at least one packet"));
    assert!(queue(1, 0, 1.0).contains("at least one service stage"));
    assert!(queue(1, 1, 0.0).contains("must be above 0"));
    let silent =
        Model::new(Queue { capacity: 1, service_rate: 1.0, stages: 1 }, vec![Source::poisson("p", 0.0).unwrap()]);
    assert!(silent.expect_err("no traffic").to_string().contains("at least one must be above 0"));
    let huge = Model::new(
        Queue { capacity: 4_000_000_000, service_rate: 1.0, stages: 100 },
        vec![two_states("a", 1.0, 2.0, 1.0, 1.0)],
    );
    assert!(huge.unwrap().solve().unwrap_err().to_string().contains("GiB of memory"));
}

#[test]
fn many_minisources_have_the_moments_of_one_times_their_number() {
    // n = 30, ON for 0.5 s, OFF for 10/7 s, 40 packets/s: mean 30 * 40 * 0.7/2.7 and the index of dispersion of one.
    let minisources = Minisources { count: 30, off_rate: 2.0, on_rate: 0.7, rate: 40.0 };
    let one = Source::minisources("one", &Minisources { count: 1, ..minisources }).unwrap();
    let exact = Source::minisources("exact", &minisources).unwrap();
    let approximate = Source::two_state_minisources("approximate", &minisources).unwrap();
    close(exact.mean_rate(), 30.0 * 40.0 * 0.7 / 2.7, 1e-13, "mean");
    for t in [1e-3, 0.05, 0.4, 3.0, 100.0] {
        let expected = dispersion(std::slice::from_ref(&one), t);
        close(dispersion(std::slice::from_ref(&exact), t), expected, 1e-10, "exact index of dispersion");
        close(dispersion(std::slice::from_ref(&approximate), t), expected, 1e-10, "index of dispersion of two states");
    }
    // Yet the losses differ by many orders of magnitude at moderate load, and little near saturation.
    let loss = |source: &Source, load: f64| {
        let queue = Queue { capacity: 200, service_rate: source.mean_rate() / load, stages: 1 };
        Model::new(queue, vec![source.clone()]).unwrap().solve().unwrap().total.loss_ratio
    };
    let ratio = |load: f64| loss(&exact, load) / loss(&approximate, load);
    assert!(ratio(0.7) > 1e4, "{} and {}", loss(&exact, 0.7), loss(&approximate, 0.7));
    assert!((ratio(0.95) - 1.0).abs() < 0.3, "{} and {}", loss(&exact, 0.95), loss(&approximate, 0.95));
}

#[test]
fn a_two_state_superposition_keeps_mean_variance_skewness_and_long_run_dispersion() {
    let sources = [two_states("www", 350.0, 60.0, 5.0, 3.0), two_states("ftp", 280.0, 100.0, 0.5, 0.4)];
    let merged = Source::two_state_superposition("www-ftp", &sources).unwrap();
    let moment = |source: &Source, order: i32| -> f64 {
        let shares = source.stationary_distribution().iter().zip(source.rates());
        shares.map(|(p, rate)| p * (rate - source.mean_rate()).powi(order)).sum()
    };
    assert_eq!(merged.states(), 2);
    close(merged.mean_rate(), 168.75 + 180.0, 1e-12, "mean");
    for order in [2, 3] {
        let expected = sources.iter().map(|source| moment(source, order)).sum::<f64>();
        close(moment(&merged, order), expected, 1e-9, "moment");
    }
    close(dispersion(&[merged], 1e5), dispersion(&sources, 1e5), 1e-4, "long run");
}

#[test]
fn a_higher_threshold_loses_less_and_delays_more() {
    // The four sources of the reference case, L = 40, m = 2, mu = 975; figures of an independent implementation.
    let sources = || {
        vec![
            two_states("video", 300.0, 80.0, 2.0, 1.0),
            two_states("multimedia", 260.0, 20.0, 1.25, 5.0),
            two_states("www", 350.0, 60.0, 5.0, 3.0),
            two_states("ftp", 280.0, 100.0, 0.5, 0.4),
        ]
    };
    let mut last_delay_s = 0.0;
    for (share, loss) in [(0.25, 0.02232), (0.5, 0.01443), (0.75, 0.01058), (0.95, 0.00873), (1.0, 0.00859)] {
        let queue = Queue { capacity: 40, service_rate: 975.0, stages: 2 };
        let model = Model::new(queue, sources()).unwrap().with_thresholds(Action::Drop, vec![Some(share * 40.0); 4]);
        let total = model.unwrap().solve().unwrap().total;
        assert!((total.loss_ratio - loss).abs() <= 0.5e-5, "{} is not {loss}", total.loss_ratio);
        assert!(total.delay.mean_s() > last_delay_s);
        last_delay_s = total.delay.mean_s();
    }
    assert_eq!(format!("{:.2}", last_delay_s * 1e3), "8.16");
}

#[test]
fn the_search_finds_the_smallest_threshold_that_meets_the_target() {
    // One source: every threshold can be tried by hand.
    let queue = Queue { capacity: 40, service_rate: 975.0, stages: 2 };
    let model = Model::new(queue, vec![two_states("a", 1400.0, 300.0, 5.0, 4.0)]).unwrap();
    let loss = |share: f64| {
        let model = model.clone().with_thresholds(Action::Drop, vec![Some(share * 40.0)]).unwrap();
        model.solve().unwrap().total.loss_ratio
    };
    let adaptation = Adaptation { loss_ratio_max: (loss(0.6) + loss(0.61)) / 2.0, ..Adaptation::default() };
    let found = model.clone().adapt_thresholds(&adaptation).unwrap().thresholds()[0].unwrap();
    close(found, 0.61 * 40.0, 1e-12, "threshold");
    // Infeasible: the greatest candidate.
    let adaptation = Adaptation { loss_ratio_max: 0.0, ..Adaptation::default() };
    close(model.adapt_thresholds(&adaptation).unwrap().thresholds()[0].unwrap(), 0.95 * 40.0, 1e-12, "highest");
}

#[test]
fn the_search_finds_the_least_thresholds_for_all_sources() {
    let sources = vec![two_states("a", 700.0, 80.0, 2.0, 1.0), two_states("b", 560.0, 20.0, 1.25, 5.0)];
    let model = Model::new(Queue { capacity: 30, service_rate: 1200.0, stages: 2 }, sources).unwrap();
    let adaptation = Adaptation { loss_ratio_max: 0.025, ..Adaptation::default() };
    let found = model.clone().adapt_thresholds(&adaptation).unwrap();
    let answer = found.solve().unwrap();
    let thresholds: Vec<f64> = found.thresholds().iter().map(|t| t.unwrap()).collect();
    assert!(thresholds.iter().all(|t| *t > 0.25 * 30.0 + 1e-9 && *t < 0.95 * 30.0), "{thresholds:?}");
    for s in 0..2 {
        assert!(answer.sources[s].loss_ratio <= 0.025);
        let mut lower = thresholds.clone();
        lower[s] -= 0.01 * 30.0;
        let lower = model.clone().with_thresholds(Action::Drop, lower.into_iter().map(Some).collect()).unwrap();
        assert!(lower.solve().unwrap().sources[s].loss_ratio > 0.025, "source {s} could do with less");
    }
}

#[test]
fn threshold_adjustment_follows_the_measured_loss() {
    let adaptation = Adaptation::default();
    close(adaptation.adjusted(0.5, 0.02), 0.55, 1e-12, "too much loss");
    close(adaptation.adjusted(0.5, 0.004), 0.45, 1e-12, "less than half the target");
    close(adaptation.adjusted(0.5, 0.007), 0.5, 1e-12, "between");
    close(adaptation.adjusted(0.95, 0.5), 0.95, 1e-12, "at the top");
    close(adaptation.adjusted(0.25, 0.0), 0.25, 1e-12, "at the bottom");
}

/// Arbitrary irreducible source of one to three states: a cycle, and further rates that may be zero.
fn any_source() -> impl Strategy<Value = Source> {
    let speed = prop_oneof![Just(0.0), 1e-2..1e3];
    (
        1usize..=3,
        prop::collection::vec(1e-2..1e2, 3),
        prop::collection::vec(speed, 9),
        prop::collection::vec(0.0..1e3, 3),
    )
        .prop_map(|(n, cycle, extra, rates)| {
            let mut generator = vec![vec![0.0; n]; n];
            for i in 0..n {
                for j in 0..n {
                    if i != j {
                        generator[i][j] = extra[3 * i + j] + if j == (i + 1) % n { cycle[i] } else { 0.0 };
                    }
                }
                generator[i][i] = -generator[i].iter().sum::<f64>();
            }
            Source::new("s", &generator, &rates[..n]).unwrap()
        })
}

fn any_model() -> impl Strategy<Value = Model> {
    let thresholds = prop::collection::vec(prop::option::of(0.0..25.0), 3);
    let sources = prop::collection::vec(any_source(), 1..=3);
    (sources, 1u32..=20, 1u32..=6, 10.0..2e3, thresholds, any::<bool>()).prop_filter_map(
        "some packets",
        |(sources, capacity, stages, service_rate, mut thresholds, drop)| {
            thresholds.truncate(sources.len());
            let model = Model::new(Queue { capacity, service_rate, stages }, sources).ok()?;
            model.with_thresholds(if drop { Action::Drop } else { Action::Mark }, thresholds).ok()
        },
    )
}

fn increasing(delay: &Delay) -> bool {
    let points = [0.001, 0.1, 0.5, 0.9, 0.99, 0.9999].map(|p| delay.quantile(p));
    points.is_sorted() && points.iter().all(|t| (delay.cdf(*t) + delay.survival(*t) - 1.0).abs() < 1e-12)
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn flow_balance_little_and_the_server_agree(model in any_model()) {
        let m = model.solve().unwrap();
        let total: f64 = m.occupancy.iter().sum();
        prop_assert!((total - 1.0).abs() < 1e-12);
        prop_assert!(m.occupancy.iter().all(|p| *p >= 0.0));
        // Accepted packets are served; the server is busy for throughput / mu; Little: E[N] = X E[D].
        close(m.total.accepted_pps, m.throughput_pps, 1e-12, "flow");
        close(m.utilization, m.throughput_pps / model.queue().service_rate, 1e-12, "server");
        close(1.0 - m.occupancy[0], m.utilization, 1e-11, "idle");
        close(m.occupancy_mean_pkts, m.throughput_pps * m.total.delay.mean_s(), 1e-12, "Little");
        prop_assert!(increasing(&m.total.delay));
        let mut loss_pps = 0.0;
        for (stream, source) in m.sources.iter().zip(model.sources()) {
            close(stream.offered_pps, source.mean_rate(), 1e-12, "offered");
            let balance = stream.accepted_pps + stream.overflow_pps + stream.early_dropped_pps;
            close(balance, stream.offered_pps, 1e-12, "accepted + lost");
            prop_assert!(stream.marked_pps <= stream.accepted_pps * (1.0 + 1e-12));
            loss_pps += stream.overflow_pps + stream.early_dropped_pps;
        }
        close(m.total.loss_ratio * m.total.offered_pps, loss_pps, 1e-12, "loss");
    }

    #[test]
    fn a_larger_buffer_never_loses_more(model in any_model()) {
        let queue = model.queue();
        let more = Queue { capacity: queue.capacity + 1, ..queue };
        let loss = |queue| Model::new(queue, model.sources().to_vec()).unwrap().solve().unwrap().total.loss_ratio;
        prop_assert!(loss(more) <= loss(queue) * (1.0 + 1e-12));
    }

    #[test]
    fn the_index_of_dispersion_starts_at_one_and_has_the_two_state_closed_form(source in any_source(), t in 1e-5..1e3f64) {
        let own = std::slice::from_ref(&source);
        if source.mean_rate() > 0.0 {
            prop_assert!((dispersion(own, 1e-9) - 1.0).abs() < 1e-4);
            prop_assert!(dispersion(own, t).is_finite());
        }
        if source.states() == 2 && source.mean_rate() > 0.0 {
            // Two states never alternate: the variance is at least that of Poisson, and in closed form
            // I = 1 + 2 v / (a r) (1 - (1 - exp(-r t)) / (r t)).
            let (q, p, rates) = (source.generator(), source.stationary_distribution(), source.rates());
            let relaxation = q[0][1] + q[1][0];
            let variance = p[0] * p[1] * (rates[0] - rates[1]) * (rates[0] - rates[1]);
            let x = relaxation * t;
            let rise = if x < 1e-4 { x / 2.0 - x * x / 6.0 } else { 1.0 + (-x).exp_m1() / x };
            let expected = 1.0 + 2.0 * variance / (source.mean_rate() * relaxation) * rise;
            close(dispersion(own, t), expected, 1e-8, "two states");
        }
    }
}
