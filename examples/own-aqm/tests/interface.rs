//! Both custom AQMs obey the rules of the interface. These tests need the published crates alone.

use aqumen_aqm::testing::{Load, check};
use aqumen_aqm::{Limit, Network, Packet, Qdisc, Value};
use aqumen_units::{Ecn, Rate, Span};

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
