//! The equations by themselves: equilibria, oscillations, several classes and queues.

use aqumen_aqm::registry::{self, AnyAqm};
use aqumen_aqm::{
    ArmPfc, ArmPfcParams, MAX_LOOPS, Network as Nominal, Observation, Pi, PiGains, Red, RedCurve, RedLaw, RedParams,
    SampledLaw, TcpPlant, Value, Variant,
};
use aqumen_theory::fluid::{Class, Control, Fluid, Join, Model, Network, Queue};
use aqumen_theory::linear::OperatingPoint;
use aqumen_units::{Probability, Rate, Span};

fn law(law: impl SampledLaw + Clone + Send + 'static) -> Control {
    Control::Law(AnyAqm::custom_law(law, true))
}

/// The PI of the ARM-PFC paper's comparison with its gains a thousand times larger, which regulates.
fn pi() -> Control {
    law(Pi::new(PiGains::new(6.48e-4, 6.42e-4).unwrap(), 150.0, 100.0))
}

/// The ARM-PFC paper's controller as printed: h = 7, Psi = 0.83.
fn arm_pfc(variant: Variant) -> Control {
    let plant = TcpPlant::new(100.0, 1250.0, 0.28).unwrap();
    law(ArmPfc::new(ArmPfcParams { h: 7, psi: 0.83, variant, ..ArmPfcParams::new(plant, 100.0) }).unwrap())
}

fn one_class(model: Model, flows: f64, capacity: f64, control: Control) -> Network {
    Network {
        classes: vec![Class::endless(model, flows, 0.2, vec![0])],
        queues: vec![Queue::new(capacity, 300.0, control)],
        sample_at_start: true,
    }
}

/// Mean and standard deviation of queue `queue` from `from_s` to `to_s`.
fn statistics(fluid: &mut Fluid, queue: usize, from_s: u64, to_s: u64) -> (f64, f64) {
    let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
    for ms in (from_s * 1000..to_s * 1000).step_by(5) {
        fluid.advance(ms * 1_000_000);
        let q = fluid.queue_pkts(queue);
        (sum, squares, n) = (sum + q, squares + q * q, n + 1.0);
    }
    let mean = sum / n;
    (mean, (squares / n - mean * mean).max(0.0).sqrt())
}

fn settle(network: Network, step_s: f64) -> (f64, f64) {
    statistics(&mut Fluid::new(network, step_s).unwrap(), 0, 60, 100)
}

#[test]
fn every_model_comes_to_rest_at_its_equilibrium() {
    for (model, flows, capacity) in [
        (Model::Hollot, 100.0, 1250.0),
        (Model::Hollot, 120.0, 1000.0),
        (Model::Ecn, 120.0, 1000.0),
        (Model::Ecn, 300.0, 1250.0),
        (Model::Drop, 120.0, 1000.0),
    ] {
        let at = OperatingPoint::new(model, flows, capacity, 0.0, 0.2, 100.0).unwrap();
        let mut fluid = Fluid::new(one_class(model, flows, capacity, pi()), 1e-3).unwrap();
        fluid.advance(200_000_000_000);
        for (what, got, expected) in [
            ("queue", fluid.queue_pkts(0), 100.0),
            ("window", fluid.window_pkts(0), at.window_pkts),
            ("probability", fluid.probability(0), at.probability),
        ] {
            assert!((got / expected - 1.0).abs() < 1e-3, "{model:?} N = {flows}: {what} {got}, expected {expected}");
        }
    }
}

#[test]
fn without_an_equilibrium_every_packet_is_marked_and_the_queue_settles_where_that_holds_it() {
    // 300 flows: 1250 (sqrt(2) 300/1250 - 0.2) = 174.26 packets.
    let mut fluid = Fluid::new(one_class(Model::Hollot, 300.0, 1250.0, pi()), 1e-3).unwrap();
    fluid.advance(100_000_000_000);
    assert_eq!(fluid.probability(0), 1.0);
    assert!((fluid.queue_pkts(0) - 174.26).abs() < 0.1, "{}", fluid.queue_pkts(0));
}

#[test]
fn unresponsive_traffic_takes_its_part() {
    // 250 of 1250: W0 = 0.28 * 1000 / 100 = 2.8, p0 = 2/2.8^2.
    let mut network = one_class(Model::Hollot, 100.0, 1250.0, pi());
    network.queues[0].unresponsive_pps = 250.0;
    let mut fluid = Fluid::new(network, 1e-3).unwrap();
    fluid.advance(150_000_000_000);
    assert!((fluid.window_pkts(0) - 2.8).abs() < 1e-2 && (fluid.probability(0) - 0.2551).abs() < 1e-3);
}

/// Results of a separate program for the same equations (means and deviations of the queue over the last 40 of 100 s).
#[test]
fn arm_pfc_behaves_off_its_operating_point_as_computed_elsewhere() {
    use Variant::{A, B, C};
    for (model, flows, capacity, variant, mean, deviation) in [
        (Model::Hollot, 100.0, 1250.0, A, 100.0, 0.0),
        (Model::Hollot, 100.0, 1250.0, C, 100.0, 0.0),
        (Model::Hollot, 120.0, 1000.0, A, 141.0, 6.4),
        (Model::Hollot, 120.0, 1000.0, B, 100.0, 0.0),
        (Model::Hollot, 120.0, 1000.0, C, 97.3, 3.4),
        (Model::Ecn, 120.0, 1000.0, A, 125.6, 4.7),
        (Model::Ecn, 120.0, 1000.0, B, 100.0, 0.0),
        (Model::Ecn, 120.0, 1000.0, C, 99.2, 2.7),
        (Model::Hollot, 50.0, 1250.0, A, 15.0, 9.0),
        (Model::Hollot, 200.0, 1250.0, A, 220.0, 5.0),
    ] {
        let (got, spread) = settle(one_class(model, flows, capacity, arm_pfc(variant)), 0.5e-3);
        let case = format!("{model:?} N = {flows} {variant:?}");
        // Chatter at the sampling instants depends on the last bit; its mean does not.
        let (allowed, spread_allowed) = if deviation == 0.0 { (0.1, 0.1) } else { (1.5, 2.0) };
        assert!((got - mean).abs() < allowed, "{case}: {got} +- {spread}, expected {mean} +- {deviation}");
        assert!(
            (spread - deviation).abs() < spread_allowed,
            "{case}: {got} +- {spread}, expected {mean} +- {deviation}"
        );
    }
}

#[test]
fn the_printed_pi_does_not_regulate_in_a_hundred_seconds() {
    let printed = || law(Pi::new(PiGains::new(6.48e-7, 6.42e-7).unwrap(), 150.0, 100.0));
    let (mean, deviation) = settle(one_class(Model::Hollot, 100.0, 1250.0, printed()), 1e-3);
    assert!((mean - 273.0).abs() < 3.0 && (deviation - 29.0).abs() < 4.0, "{mean} +- {deviation}");
}

#[test]
fn halving_the_step_hardly_moves_the_answer() {
    let at = |step_s| {
        let mut fluid = Fluid::new(one_class(Model::Ecn, 120.0, 1000.0, pi()), step_s).unwrap();
        (1..=20)
            .map(|k| {
                fluid.advance(k * 500_000_000);
                fluid.queue_pkts(0)
            })
            .collect::<Vec<_>>()
    };
    let (coarse, fine) = (at(0.5e-3), at(0.25e-3));
    for (coarse, fine) in coarse.iter().zip(&fine) {
        assert!((coarse - fine).abs() < 1e-4 * 300.0, "{coarse} {fine}");
    }
}

#[test]
fn classes_share_by_their_round_trips() {
    // All see one p, so in the hollot model all have one window: rates are as 1 / R.
    let class = |rtt| Class::endless(Model::Hollot, 50.0, rtt, vec![0]);
    let network = Network {
        classes: vec![class(0.1), class(0.3)],
        queues: vec![Queue::new(1250.0, 300.0, pi())],
        sample_at_start: false,
    };
    let mut fluid = Fluid::new(network, 1e-3).unwrap();
    fluid.advance(200_000_000_000);
    let (short, long) = (fluid.window_pkts(0), fluid.window_pkts(1));
    assert!((short / long - 1.0).abs() < 1e-3, "{short} {long}");
    let rate = |k: usize| 50.0 * fluid.window_pkts(k) / fluid.round_trip_s(k);
    // R = 0.18 and 0.38.
    assert!((rate(0) / rate(1) - 0.38 / 0.18).abs() < 0.01);
    assert!((rate(0) + rate(1) - 1250.0).abs() < 1.0);
}

#[test]
fn of_two_queues_in_a_row_the_narrow_one_fills() {
    for (first, second, full) in [(1000.0, 1500.0, 0), (1500.0, 1000.0, 1)] {
        let queues = [first, second].map(|capacity| Queue::new(capacity, 300.0, pi()));
        let network = Network {
            classes: vec![Class::endless(Model::Ecn, 100.0, 0.2, vec![0, 1])],
            queues: queues.into(),
            sample_at_start: false,
        };
        let mut fluid = Fluid::new(network, 1e-3).unwrap();
        let other = 1 - full;
        let (mean, deviation) = statistics(&mut fluid, full, 60, 100);
        assert!((mean - 100.0).abs() < 0.5 && deviation < 0.5, "{first} {second}: {mean} +- {deviation}");
        assert!(fluid.queue_pkts(other) < 1e-6 && fluid.probability(other) == 0.0);
    }
}

#[test]
fn crossing_traffic_at_two_bottlenecks() {
    // A long class over both queues, a short one over each: both queues at their target, and by symmetry the short
    // classes do alike. A long flow sees 1 - (1-p)^2 and has the smaller window.
    let long = Class::endless(Model::Ecn, 40.0, 0.2, vec![0, 1]);
    let short = |queue| Class::endless(Model::Ecn, 40.0, 0.2, vec![queue]);
    let network = Network {
        classes: vec![long, short(0), short(1)],
        queues: vec![Queue::new(1000.0, 300.0, pi()), Queue::new(1000.0, 300.0, pi())],
        sample_at_start: false,
    };
    let mut fluid = Fluid::new(network, 1e-3).unwrap();
    fluid.advance(300_000_000_000);
    for queue in [0, 1] {
        assert!((fluid.queue_pkts(queue) - 100.0).abs() < 0.5, "{}", fluid.queue_pkts(queue));
    }
    assert!((fluid.window_pkts(1) / fluid.window_pkts(2) - 1.0).abs() < 1e-2);
    let p = 1.0 - (1.0 - fluid.probability(0)) * (1.0 - fluid.probability(1));
    // W^2 = 2 (1-p) / p.
    let expected = (2.0 * (1.0 - p) / p).sqrt();
    assert!((fluid.window_pkts(0) / expected - 1.0).abs() < 1e-2, "{} {expected}", fluid.window_pkts(0));
    let rate = |k: usize| 40.0 * fluid.window_pkts(k) / fluid.round_trip_s(k);
    assert!((rate(0) + rate(1) - 1000.0).abs() < 2.0);
}

#[test]
fn a_transfer_ends_when_it_is_delivered() {
    // One class of four flows on an empty wide link, window 1 (held by its limit), RTT 0.1: 10 packets/s each; 25
    // packets take 2.5 s.
    let join = Join { flows: 4.0, from_ns: 0, until_ns: None, transfer_pkts: Some(25.0) };
    let class = Class { max_window: 1.0, joins: vec![join], ..Class::endless(Model::Ecn, 4.0, 0.1, vec![0]) };
    let network = Network {
        classes: vec![class],
        queues: vec![Queue::new(1000.0, 100.0, Control::None)],
        sample_at_start: false,
    };
    let mut fluid = Fluid::new(network, 1e-3).unwrap();
    fluid.advance(2_490_000_000);
    assert_eq!(fluid.flows(0), 4.0);
    fluid.advance(2_510_000_000);
    assert_eq!(fluid.flows(0), 0.0);
}

#[test]
fn a_transfer_that_begins_late_takes_as_long() {
    // The same from 5 s on, and a second of half the size from 6 s on: both end at 7.5 s and 7.25 s.
    let join = |from_s: u64, pkts: f64| Join {
        flows: 1.0,
        from_ns: from_s * 1_000_000_000,
        until_ns: None,
        transfer_pkts: Some(pkts),
    };
    let joins = vec![join(5, 25.0), join(6, 12.5)];
    let class = Class { max_window: 1.0, joins, ..Class::endless(Model::Ecn, 2.0, 0.1, vec![0]) };
    let network = Network {
        classes: vec![class],
        queues: vec![Queue::new(1000.0, 100.0, Control::None)],
        sample_at_start: false,
    };
    let mut fluid = Fluid::new(network, 1e-3).unwrap();
    for (ms, flows) in [(4990, 0.0), (5010, 1.0), (6010, 2.0), (7230, 2.0), (7270, 1.0), (7480, 1.0), (7520, 0.0)] {
        fluid.advance(ms * 1_000_000);
        assert_eq!(fluid.flows(0), flows, "{ms} ms");
    }
}

/// A law that drops a tenth and looks at what it is shown.
#[derive(Clone)]
struct Watches;

impl SampledLaw for Watches {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_millis(20)), None]
    }

    fn step(&mut self, _which: usize, seen: &Observation) -> Probability {
        assert!((seen.interval_s - 0.02).abs() < 1e-9 && seen.arrivals_pkts >= seen.accepted_pkts);
        assert!(
            (seen.sojourn_s - seen.queue_pkts / 1000.0).abs() < 1e-9 && seen.queue_bytes == 1000.0 * seen.queue_pkts
        );
        assert!((seen.departures_bytes - 1000.0 * seen.departures_pkts).abs() < 1e-6);
        // A tenth of what comes does not enter, once it applies; what leaves was busy for so long.
        if seen.now.as_secs_f64() > 0.1 && seen.queue_pkts < 90.0 {
            assert!((seen.accepted_pkts / seen.arrivals_pkts - 0.9).abs() < 1e-6, "{seen:?}");
        }
        assert!((seen.busy_s - seen.departures_pkts / 1000.0).abs() < 1e-6, "{seen:?}");
        assert!((seen.busy_s + seen.idle_s - 0.02).abs() < 1e-6, "{seen:?}");
        Probability::clamp(0.1)
    }

    fn initial(&self) -> Probability {
        Probability::clamp(0.1)
    }
}

#[test]
fn a_law_in_a_fluid_is_shown_what_came_entered_and_left() {
    let control = Control::Law(AnyAqm::custom_law(Watches, false));
    let network = Network {
        classes: vec![Class::endless(Model::Drop, 30.0, 0.1, vec![0])],
        queues: vec![Queue::new(1000.0, 100.0, control)],
        sample_at_start: false,
    };
    let mut fluid = Fluid::new(network, 1e-3).unwrap();
    fluid.advance(20_000_000_000);
    // W^2 = 2 (1 - p) / p = 18: 30 flows of 4.24 packets over .1 s are 1273 a second, of which nine tenths enter: the
    // queue grows until they are 1111: R = .1145 s.
    let rest = 1000.0 * (30.0 * 18f64.sqrt() * 0.9 / 1000.0 - 0.1);
    assert!((fluid.queue_pkts(0) - rest).abs() < 0.5, "{} {rest}", fluid.queue_pkts(0));
}

#[test]
fn windows_stay_at_their_limits() {
    let class = Class { max_window: 6.0, ..Class::endless(Model::Ecn, 4.0, 0.1, vec![0]) };
    let network = Network {
        classes: vec![class],
        queues: vec![Queue::new(1000.0, 100.0, Control::None)],
        sample_at_start: false,
    };
    let mut fluid = Fluid::new(network, 1e-3).unwrap();
    fluid.advance(30_000_000_000);
    // 240 packets/s of 1000: nothing waits, no window grows further.
    assert!((fluid.window_pkts(0) - 6.0).abs() < 0.02 && fluid.queue_pkts(0) < 1e-9, "{}", fluid.window_pkts(0));
}

#[test]
fn networks_without_sense_are_refused() {
    let refused = |change: &dyn Fn(&mut Network)| {
        let mut network = one_class(Model::Ecn, 10.0, 1000.0, Control::None);
        change(&mut network);
        Fluid::new(network, 1e-3).unwrap_err().to_string()
    };
    assert!(refused(&|n| n.queues[0].rates[0].1 = 0.0).contains("capacity"));
    assert!(refused(&|n| n.queues[0].rates.clear()).contains("capacity"));
    assert!(refused(&|n| n.queues[0].buffer_pkts = f64::NAN).contains("buffer"));
    assert!(refused(&|n| n.classes[0].base_rtt_s = 1e-3).contains("base RTT"));
    assert!(refused(&|n| n.classes[0].min_window = 0.0).contains("windows"));
    assert!(refused(&|n| n.classes[0].path = vec![7]).contains("no such queue"));
    assert!(Fluid::new(one_class(Model::Ecn, 1.0, 1.0, Control::None), f64::NAN).is_err());
}

#[test]
fn red_asked_packet_by_packet_does_what_its_averaged_law_says() {
    // Thresholds and weight for a loop that is stable.
    let red = || {
        Red::new(RedParams {
            curve: RedCurve::new(50.0, 250.0, 0.5, true).unwrap(),
            weight: 2e-5,
            link_pps: 1250.0,
            wait: true,
            bytes: false,
            queue_in_bytes: false,
            mean_packet: 1000,
            use_mark_p: false,
            mark_p: Probability::ZERO,
            linux_spacing: false,
            mark_above: false,
            ecn: true,
        })
        .unwrap()
    };
    let law = Control::Red(red().params().law());
    let asked = Control::Packets(AnyAqm::Red(red()));
    let late = |control| {
        statistics(&mut Fluid::new(one_class(Model::Ecn, 100.0, 1250.0, control), 1e-3).unwrap(), 0, 400, 500)
    };
    let ((averaged, calm), (packets, rough)) = (late(law), late(asked));
    assert!(
        (averaged / packets - 1.0).abs() < 0.02 && calm < 3.0 && rough < 12.0,
        "{averaged} +- {calm}, {packets} +- {rough}"
    );
}

fn built(
    name: &str,
    values: &[(&str, Value<'_>)],
    capacity_pps: f64,
    flows: f64,
    base_rtt_s: f64,
    target: f64,
    buffer: f64,
) -> Control {
    let rate = Rate::from_bps((capacity_pps * 8000.0) as u64);
    let network = Nominal {
        capacity: rate,
        flows,
        base_rtt_s,
        target_pkts: target,
        packet_bytes: 1000.0,
        link_rate: rate,
        buffer_pkts: buffer,
    };
    Control::Law(registry::build(name, values, &network).unwrap().unwrap())
}

#[test]
fn what_comes_to_a_second_queue_has_waited_in_the_first() {
    let load = |rate_pps: f64, from_s: u64, path: &[usize]| Class {
        rate_pps: Some(rate_pps),
        joins: vec![Join { flows: 1.0, from_ns: from_s * 1_000_000_000, until_ns: None, transfer_pkts: None }],
        ..Class::endless(Model::Drop, 1.0, 0.1, path.to_vec())
    };
    let network = Network {
        classes: vec![load(1500.0, 0, &[0]), load(100.0, 10, &[0, 1])],
        queues: vec![Queue::new(1000.0, 500.0, Control::None), Queue::new(50.0, 500.0, Control::None)],
        sample_at_start: true,
    };
    let mut fluid = Fluid::new(network, 1e-3).unwrap();
    let mut second = |ms: u64| {
        fluid.advance(ms * 1_000_000);
        assert!((fluid.queue_pkts(0) - 500.0).abs() < 1e-9);
        fluid.queue_pkts(1)
    };
    // 500 packets at 1000 a second: half a second later than they came; 100 of 1600 are 62.5 a second, of which 50 go
    // on at once.
    assert_eq!(second(10_490), 0.0);
    for (ms, waiting) in [(11_500, 12.5), (14_500, 50.0)] {
        assert!((second(ms) - waiting).abs() < 0.1, "{ms}");
    }
}

#[test]
fn paqm_oscillates_at_light_load_and_long_delay_only() {
    // Its gain margin is 0.23 at 60 flows and 240 ms, 2.04 at 63 flows and 120 ms.
    let run = |flows, base| {
        let alpha = [("alpha", Value::Number(8e-4)), ("period", Value::Number(0.05))];
        let control = built("paqm", &alpha, 3750.0, flows, base, 200.0, 800.0);
        let network = Network {
            classes: vec![Class::endless(Model::Drop, flows, base, vec![0])],
            queues: vec![Queue::new(3750.0, 800.0, control)],
            sample_at_start: true,
        };
        statistics(&mut Fluid::new(network, 1e-3).unwrap(), 0, 100, 300)
    };
    let (mean, deviation) = run(63.0, 0.12);
    assert!((mean - 200.0).abs() < 1.0 && deviation < 1.0, "{mean} +- {deviation}");
    let (mean, deviation) = run(60.0, 0.24);
    assert!(deviation > 100.0, "{mean} +- {deviation}");
}

#[test]
fn stred_with_hollots_slow_average_chases_its_own_load_estimate() {
    // 60 flows at 3750 packets/s, target 175: with b_r = 0.1 a limit cycle of hundreds of packets, with 0.5 at rest.
    let run = |b_r: f64| {
        // As the paper has it: the load is estimated while the queue is short, too.
        let settings = [("b_r", Value::Number(b_r)), ("patient", Value::Flag(false))];
        let control = built("stred", &settings, 3750.0, 60.0, 0.2, 175.0, 800.0);
        let network = Network {
            classes: vec![Class::endless(Model::Hollot, 60.0, 0.2, vec![0])],
            queues: vec![Queue::new(3750.0, 800.0, control)],
            sample_at_start: true,
        };
        statistics(&mut Fluid::new(network, 2e-3).unwrap(), 0, 150, 300)
    };
    let (mean, deviation) = run(0.5);
    assert!((mean - 175.0).abs() < 6.0 && deviation < 10.0, "{mean} +- {deviation}");
    let (mean, deviation) = run(0.1);
    assert!(deviation > 80.0, "{mean} +- {deviation}");
}

#[test]
fn flows_that_come_as_others_leave_begin_with_their_own_window() {
    // Ten flows of 2 packets grow for 5 s; as they leave, ten others come.
    let join = |from_s: u64, until_s: Option<u64>| Join {
        flows: 10.0,
        from_ns: from_s * 1_000_000_000,
        until_ns: until_s.map(|until| until * 1_000_000_000),
        transfer_pkts: None,
    };
    let mut network = one_class(Model::Hollot, 10.0, 1250.0, Control::None);
    network.classes[0].initial_window = 2.0;
    network.classes[0].joins = vec![join(0, Some(5)), join(5, None)];
    // A capacity that changes at the same moment is there for both.
    network.queues[0].rates.push((5_000_000_000, 625.0));
    let mut fluid = Fluid::new(network, 1e-3).unwrap();
    fluid.advance(4_999_000_000);
    assert!(fluid.window_pkts(0) > 20.0 && fluid.flows(0) == 10.0, "{}", fluid.window_pkts(0));
    let waiting = fluid.queue_pkts(0);
    fluid.advance(5_000_000_000);
    assert_eq!((fluid.window_pkts(0), fluid.flows(0)), (2.0, 10.0));
    assert!((fluid.round_trip_s(0) - 0.2 - waiting / 625.0).abs() < 2e-3, "{}", fluid.round_trip_s(0));
}

#[test]
fn reds_average_goes_by_the_packets_that_come_and_at_an_empty_queue_by_those_that_could() {
    let red = RedLaw {
        curve: RedCurve::new(50.0, 150.0, 0.5, false).unwrap(),
        decay: 1e-3,
        wait: false,
        ecn: true,
        mark_limit: (1.0, 1e9),
    };
    let average = |load_pps: f64, from: f64, waits: f64| {
        let queue = Queue {
            unresponsive_pps: load_pps,
            initial_pkts: waits,
            initial_average_pkts: from,
            ..Queue::new(500.0, waits.max(1.0), Control::Red(red))
        };
        let network = Network { classes: Vec::new(), queues: vec![queue], sample_at_start: true };
        let mut fluid = Fluid::new(network, 1e-3).unwrap();
        fluid.advance(1_000_000_000);
        red.average_at(fluid.probability(0))
    };
    // Empty, without anything that comes or with half of what could: exp(-.001 (500)).
    for load in [0.0, 250.0] {
        assert!(
            (average(load, 140.0, 0.0) - 140.0 * (-0.5f64).exp()).abs() < 0.1,
            "{load} {}",
            average(load, 140.0, 0.0)
        );
    }
    // Full of 120, with three times what the link takes: 120 - 50 exp(-.001 (1500)).
    let full = average(1500.0, 70.0, 120.0);
    assert!((full - (120.0 - 50.0 * (-1.5f64).exp())).abs() < 0.2, "{full}");
}

#[test]
fn flows_of_next_to_nothing_that_leave_change_nothing() {
    // Reno's windows run ahead of their queue by what they have grown since their flows came or went.
    let after = |more: f64| {
        let mut network = one_class(Model::Reno, 60.0, 1250.0, pi());
        let leaving = Join { flows: more, from_ns: 0, until_ns: Some(3_000_000_000), transfer_pkts: None };
        network.classes[0].joins.extend((more > 0.0).then_some(leaving));
        let mut fluid = Fluid::new(network, 1e-3).unwrap();
        [3.5, 5.0, 8.0].map(|s: f64| {
            fluid.advance((s * 1e9) as u64);
            (fluid.queue_pkts(0), fluid.window_pkts(0))
        })
    };
    for ((queue, window), (same, alike)) in after(0.0).iter().zip(after(1e-9)) {
        assert!((queue - same).abs() < 0.2 && (window - alike).abs() < 0.01, "{queue} {same}, {window} {alike}");
    }
}

#[test]
fn in_slow_motion_a_network_moves_the_same() {
    // Classes of every model over two queues, flows that come, leave and end, a capacity that changes, averages.
    let told = |times: u64| {
        let slow = times as f64;
        let ns = |ms: u64| ms * 1_000_000 * times;
        let join = |flows: f64, from_ms: u64, until_ms: Option<u64>, transfer_pkts: Option<f64>| Join {
            flows,
            from_ns: ns(from_ms),
            until_ns: until_ms.map(ns),
            transfer_pkts,
        };
        let class = |model: Model, base_rtt_s: f64, path: &[usize], joins: Vec<Join>| Class {
            joins,
            initial_window: 2.0,
            ..Class::endless(model, 10.0, base_rtt_s * slow, path.to_vec())
        };
        let endless = |flows: f64| vec![join(flows, 0, None, None)];
        let load = Class { rate_pps: Some(4.0 / slow), ..class(Model::Drop, 0.1, &[0, 1], endless(5.0)) };
        let classes = vec![
            class(Model::Reno, 0.1, &[0, 1], endless(20.0)),
            class(Model::Ecn, 0.2, &[1], vec![join(10.0, 0, Some(6000), None), join(15.0, 3000, None, None)]),
            class(Model::Hollot, 0.15, &[0], vec![join(5.0, 0, None, None), join(1.0, 2000, None, Some(300.0))]),
            load,
        ];
        let red = |min_th: f64| RedLaw {
            curve: RedCurve::new(min_th, 3.0 * min_th, 0.2, true).unwrap(),
            decay: 2e-3,
            wait: true,
            ecn: true,
            mark_limit: (1.0, 1e9),
        };
        let mut narrow = Queue::new(1000.0 / slow, 150.0, Control::Red(red(20.0)));
        narrow.rates.push((ns(5000), 700.0 / slow));
        let queues = vec![narrow, Queue::new(1200.0 / slow, 200.0, Control::Red(red(30.0)))];
        let mut fluid = Fluid::new(Network { classes, queues, sample_at_start: true }, 1e-3 * slow).unwrap();
        let mut seen = Vec::new();
        for ms in [100, 1000, 2500, 4000, 5500, 7000, 12_000] {
            fluid.advance(ns(ms));
            seen.extend((0..2).flat_map(|queue| [fluid.queue_pkts(queue), fluid.probability(queue)]));
            seen.extend((0..4).flat_map(|class| [fluid.window_pkts(class), fluid.flows(class)]));
            seen.extend((0..4).map(|class| fluid.round_trip_s(class) / slow));
        }
        (seen, fluid.steps())
    };
    let ((known, steps), (slow, same)) = (told(1), told(16));
    assert_eq!(steps, same);
    for (k, (a, b)) in slow.iter().zip(&known).enumerate() {
        assert!((a - b).abs() <= 1e-6 * b.abs(), "{k}: {a} {b}");
    }
    // It is no rest that is compared.
    assert!(known[16] > 50.0 && known[16] != known[32], "{known:?}");
}
