//! Custom AQMs obey the rules of the interface. These tests need the published crates alone.

use aqumen_aqm::testing::{Fixed, Load, Log, check, check_qdisc};
use aqumen_aqm::{AnyQdisc, Limit, Network, Packet, Qdisc, Value};
use aqumen_units::{Ecn, Instant, Rate, Span};

const LINK: Rate = Rate::from_bps(8_000_000);
const NETWORK: Network = Network {
    capacity: LINK,
    flows: 10.0,
    base_rtt_s: 0.1,
    target_pkts: 20.0,
    packet_bytes: 1000.0,
    link_rate: LINK,
    buffer_pkts: 1000.0,
};

#[test]
fn custom_aqms_obey_the_rules_of_the_interface() {
    let catalogue = own_aqm::catalogue().expect("the names are free");
    for name in ["integral", "impatient"] {
        check(&catalogue.build(name, &[], &NETWORK).expect("it has a name").expect("its defaults are valid"));
    }
}

fn turns(values: &[(&str, Value<'_>)], limit: Limit) -> Result<AnyQdisc, String> {
    let catalogue = own_aqm::catalogue().expect("the names are free");
    let built = catalogue.build_qdisc("turns", values, &NETWORK, limit).expect("it has a name");
    built.map_err(|error| error.to_string())
}

#[test]
fn turns_conserves_packets_with_any_number_of_queues() {
    for values in [&[][..], &[("queues", Value::Number(2.0))], &[("idle_first", Value::Flag(false))]] {
        check_qdisc(|limit| turns(values, limit).expect("the values are valid"));
    }
}

#[test]
fn a_flow_that_was_idle_goes_before_flows_in_their_turns() {
    // Flow 1 brings 10, 11, 12; after 10 is sent it is no longer new. Then flow 2 brings 20 and 21.
    let order = |idle_first: bool| {
        let mut queue = turns(&[("idle_first", Value::Flag(idle_first))], Limit::packets(10)).expect("it is a flag");
        let (mut log, mut rng, now) = (Log::default(), Fixed(0.3), Instant::ZERO);
        let arrive = |queue: &mut AnyQdisc, handles: &[u32]| {
            for handle in handles {
                let packet = Packet { bytes: 1000, flow_hash: handle / 10, ..Packet::default() };
                queue.enqueue(*handle, &packet, now, &mut Fixed(0.3), &mut Log::default());
            }
        };
        arrive(&mut queue, &[10, 11, 12]);
        let first = queue.dequeue(now, &mut rng, &mut log);
        arrive(&mut queue, &[20, 21]);
        first.into_iter().chain(std::iter::from_fn(|| queue.dequeue(now, &mut rng, &mut log))).collect::<Vec<_>>()
    };
    assert_eq!(order(true), [10, 20, 11, 21, 12]);
    assert_eq!(order(false), [10, 11, 20, 12, 21]);
}

#[test]
fn a_parameter_out_of_range_is_named() {
    let wrong = |values| turns(values, Limit::packets(10)).expect_err("it is wrong");
    assert_eq!(wrong(&[("queues", Value::Number(0.0))]), "queues = 0: must be a number of at least 1, at most 65536");
    assert_eq!(wrong(&[("queues", Value::Number(1.5))]), "queues = 1.5: must be a whole number");
}

#[test]
fn impatient_marks_what_waits_longer_than_its_limit() {
    let catalogue = own_aqm::catalogue().expect("the names are free");
    let values = [("limit", Value::Number(0.01))];
    let built = catalogue.build_qdisc("impatient", &values, &NETWORK, Limit::packets(1000));
    let mut queue = built.expect("it has a name").expect("the limit is valid");
    let load = Load {
        link: LINK,
        factor: 2.0,
        packet: Packet { bytes: 1000, ecn: Ecn::Ect0, ..Packet::default() },
        duration: Span::from_millis(100),
    };
    let outcome = load.offer(&mut queue);
    // Marks begin beyond 10 ms of sojourn time, and are certain beyond 20 ms.
    let late = |limit_ms| outcome.sojourns.iter().filter(|sojourn| **sojourn > Span::from_millis(limit_ms)).count();
    assert!((late(20)..late(10)).contains(&outcome.log.marked.len()), "{}", outcome.log.marked.len());
    assert_eq!(queue.totals().marked, outcome.log.marked.len() as u64);
}
