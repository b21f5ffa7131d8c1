//! Tests of catalogues with custom algorithms.

use std::fmt;

use aqumen_aqm::QueueKind::{Multi, Single};
use aqumen_aqm::testing::Load;
use aqumen_aqm::{
    Algorithm, AnyAqm, AnyQdisc, Aqm, Catalogue, Cx, DefaultValue, Draw, DropReason, DropTail, Drr, Hooks, Limit,
    MAX_LOOPS, NameTakenError, Network, Observation, Packet, Param, ParamError, Qdisc, QueueView, SampledLaw, Totals,
    Unit, Value, Verdict,
};
use aqumen_units::{Bytes, Ecn, Instant, Probability, Rate, Span};

use crate::common::Fixed;

const NETWORK: Network = Network {
    capacity: Rate::from_bps(8_000_000),
    flows: 10.0,
    base_rtt_s: 0.1,
    target_pkts: 20.0,
    packet_bytes: 1000.0,
    link_rate: Rate::from_bps(8_000_000),
    buffer_pkts: 100.0,
};

const ROW: Algorithm = Algorithm {
    name: "every",
    title: "Every n-th",
    summary: "drops every n-th packet that arrives, and every one at the head after the timer",
    reference: "-",
    params: &[Param::positive("n", Unit::One, DefaultValue::number(3.0), "how many")],
};

/// Drops every n-th arriving packet, and after its timer every packet at the head.
#[derive(Clone)]
struct NthDropper {
    n: u64,
    seen: u64,
    due: Option<Instant>,
    draws: f64,
}

impl Aqm for NthDropper {
    fn on_arrival<R: Draw>(&mut self, _packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        self.seen += 1;
        self.draws += cx.rng.uniform();
        if self.seen.is_multiple_of(self.n) { Verdict::Drop(DropReason::Early) } else { Verdict::Pass }
    }

    fn on_dequeue<R: Draw>(&mut self, _packet: &Packet, _sojourn: Span, _cx: &mut Cx<'_, R>) -> Verdict {
        if self.due.is_none() { Verdict::Drop(DropReason::Early) } else { Verdict::Pass }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.due
    }

    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        if self.due.is_some_and(|due| due <= cx.now) {
            self.due = None;
        }
    }

    fn hooks(&self) -> Hooks {
        Hooks { decides_at_head: true, departures: false }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("n", Value::Number(self.n as f64));
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("seen", self.seen as f64);
        visit("draws", self.draws);
    }

    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        tell(format_args!("{} packets came", self.seen));
    }

    fn take_over(&mut self, old: Option<&Self>, _now: Instant, _totals: &Totals) {
        self.seen = old.map_or(1000, |old| old.seen);
    }
}

fn catalogue() -> Catalogue {
    let every = |n| NthDropper { n, seen: 0, due: Some(Instant::ZERO + Span::from_millis(10)), draws: 0.0 };
    Catalogue::BUILT_IN
        .with(ROW, move |settings, _| Ok(AnyAqm::custom(every(settings.number("n").unwrap_or(3.0) as u64))))
        .unwrap()
}

fn build(values: &[(&str, Value<'_>)]) -> AnyAqm {
    catalogue().build("every", values, &NETWORK).unwrap().unwrap()
}

fn arrive(aqm: &mut AnyAqm, ms: u64) -> Verdict {
    let totals = Totals::default();
    let queue = QueueView { packets: 1, bytes: 1000, limit: Limit::packets(100), totals: &totals };
    let packet = Packet { bytes: 1000, ecn: Ecn::Ect0, ..Packet::default() };
    aqm.on_arrival(&packet, &mut Cx { now: Instant::ZERO + Span::from_millis(ms), queue, rng: &mut Fixed(0.5) })
}

fn shown(aqm: &AnyAqm) -> Vec<(&'static str, f64)> {
    let mut shown = Vec::new();
    aqm.observe(&mut |name, value| shown.push((name, value)));
    shown
}

#[test]
fn a_custom_algorithm_is_built_by_name_with_its_parameters() {
    let mut aqm = build(&[("n", Value::Number(2.0))]);
    let dropped = Verdict::Drop(DropReason::Early);
    assert_eq!([1, 2, 3, 4].map(|ms| arrive(&mut aqm, ms)), [Verdict::Pass, dropped, Verdict::Pass, dropped]);
    // Four numbers of the host's, 0.5 each.
    assert_eq!(shown(&aqm), [("seen", 4.0), ("draws", 2.0)]);
    let mut given = Vec::new();
    aqm.settings(&mut |name, value| given.push((name, value)));
    assert_eq!(given, [("n", Value::Number(2.0))]);
}

#[test]
fn its_parameters_are_checked_and_the_threshold_function_lies_over_it() {
    let wrong =
        |values: &[(&str, Value<'_>)]| catalogue().build("every", values, &NETWORK).unwrap().unwrap_err().to_string();
    assert_eq!(wrong(&[("n", Value::Number(0.0))]), "n = 0: must be a number above 0");
    assert_eq!(wrong(&[("m", Value::Number(1.0))]), "m: not a parameter; known: n");
    assert!(matches!(build(&[("threshold", Value::Number(0.5))]), AnyAqm::Threshold(_)));
}

#[test]
fn what_it_does_at_the_head_and_at_its_timer_happens_in_a_queue() {
    struct Log(u32);
    impl aqumen_aqm::Fates for Log {
        fn marked(&mut self, _handle: aqumen_aqm::Handle) {}
        fn dropped(&mut self, _handle: aqumen_aqm::Handle, _reason: DropReason) {
            self.0 += 1;
        }
    }
    let limit = Limit { packets: 100, bytes: Bytes(1 << 20) };
    let mut queue = catalogue().build_qdisc("every", &[], &NETWORK, limit).unwrap().unwrap();
    assert!(matches!(queue, AnyQdisc::Fifo(_)));
    let (mut log, at) = (Log(0), |ms: u64| Instant::ZERO + Span::from_millis(ms));
    let packet = Packet { bytes: 1000, ecn: Ecn::Ect0, ..Packet::default() };
    for handle in 0..5 {
        queue.enqueue(handle, &packet, at(1), &mut Fixed(0.5), &mut log);
    }
    // The third was dropped as it came.
    assert_eq!((log.0, queue.dequeue(at(2), &mut Fixed(0.5), &mut log)), (1, Some(0)));
    queue.transmitted(Span::from_millis(1), at(3));
    assert_eq!(queue.next_timer(), Some(at(10)));
    queue.on_timer(at(10), &mut Fixed(0.5));
    // From now on each at the head.
    assert_eq!((queue.dequeue(at(11), &mut Fixed(0.5), &mut log), log.0), (None, 4));
    let mut notes = Vec::new();
    queue.notes(&mut |note| notes.push(note.to_string()));
    assert_eq!(notes, ["5 packets came"]);
}

#[test]
fn it_takes_over_from_its_own_kind_alone() {
    let (mut old, mut new) = (build(&[]), build(&[]));
    arrive(&mut old, 1);
    new.take_over(Some(&old), Instant::ZERO, &Totals::default());
    assert_eq!(shown(&new)[0], ("seen", 1.0));
    let other = AnyAqm::custom(DropTail::default());
    new.take_over(Some(&other), Instant::ZERO, &Totals::default());
    assert_eq!(shown(&new)[0], ("seen", 1000.0));
}

#[test]
fn a_law_is_stepped_at_its_period_and_answers_for_each_packet() {
    #[derive(Clone)]
    struct Constant;
    impl SampledLaw for Constant {
        fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
            [Some(Span::from_millis(20)), None]
        }
        fn step(&mut self, _which: usize, _seen: &Observation) -> Probability {
            Probability::clamp(0.75)
        }
    }
    let row = Algorithm { name: "constant", params: &[Param::ECN], ..ROW };
    let known = catalogue()
        .with(row, |settings, _| Ok(AnyAqm::custom_law(Constant, settings.flag("ecn").unwrap_or(true))))
        .unwrap();
    let mut aqm = known.build("constant", &[], &NETWORK).unwrap().unwrap();
    assert_eq!((arrive(&mut aqm, 1), aqm.next_timer()), (Verdict::Pass, Some(Instant::ZERO + Span::from_millis(20))));
    let totals = Totals::default();
    let queue = QueueView { packets: 1, bytes: 1000, limit: Limit::packets(100), totals: &totals };
    aqm.on_timer(&mut Cx { now: Instant::ZERO + Span::from_millis(20), queue, rng: &mut Fixed(0.5) });
    // The host's 0.5 is below 0.75.
    assert_eq!(arrive(&mut aqm, 21), Verdict::Mark);
    assert!(aqm.law_mut().is_some());
}

#[test]
fn names_are_found_those_built_in_are_kept_and_a_later_one_makes_way() {
    let known = catalogue();
    assert_eq!(known.find("every"), Some(&ROW));
    assert_eq!(known.find("pi-x1000").map(|row| row.name), Some("pi"));
    assert!(known.build("nobody", &[], &NETWORK).is_none() && Catalogue::BUILT_IN.find("every").is_none());
    assert_eq!(known.algorithms().last().map(|row| row.name), Some("every"));
    for name in ["pi", "cake", "red50"] {
        let taken = known.with(Algorithm { name, ..ROW }, |_, _| Ok(AnyAqm::custom(DropTail::default())));
        assert_eq!(taken.unwrap_err(), NameTakenError(name));
    }
    let again =
        known.with(Algorithm { title: "Again", ..ROW }, |_, _| Ok(AnyAqm::custom(DropTail::default()))).unwrap();
    assert_eq!(again.custom().map(|row| row.title).collect::<Vec<_>>(), ["Again"]);
    assert!(known == known.clone() && known != again && known != Catalogue::BUILT_IN);
    // What builds it may be another in spite of the same row.
    assert!(known != catalogue());
}

const FAIR: Algorithm = Algorithm {
    name: "fair",
    params: &[Param::positive("quantum", Unit::Bytes, DefaultValue::number(1514.0), "bytes of a round")],
    ..ROW
};

/// DRR under the name `fair`, with one of its parameters.
fn with_fair() -> Catalogue {
    let build = |settings: &aqumen_aqm::Settings<'_>, network: &Network, limit: Limit| {
        let quantum = settings.number("quantum").unwrap_or(1514.0);
        if quantum > network.link_rate.as_bps() as f64 / 8.0 {
            return Err(ParamError::relation("quantum", quantum, "takes more than a second to send"));
        }
        Ok(AnyQdisc::custom(Drr::new(1024, quantum as u32, false, limit)))
    };
    catalogue().with_qdisc(FAIR, build).unwrap()
}

#[test]
fn a_custom_discipline_gives_the_fates_of_the_built_in_one_that_it_is() {
    let limit = Limit::packets(40);
    let custom = || with_fair().build_qdisc("fair", &[], &NETWORK, limit).unwrap().unwrap();
    let built_in = || Catalogue::BUILT_IN.build_qdisc("drr", &[], &NETWORK, limit).unwrap().unwrap();
    assert!(matches!(custom(), AnyQdisc::Custom(_)) && custom().is_custom() && !built_in().is_custom());
    let load = Load {
        link: NETWORK.link_rate,
        factor: 1.5,
        packet: Packet { bytes: 1000, flow_hash: 7, ..Packet::default() },
        duration: Span::from_secs(2),
    };
    assert_eq!(load.offer(&mut custom()), load.offer(&mut built_in()));
    aqumen_aqm::testing::check_qdisc(|limit| with_fair().build_qdisc("fair", &[], &NETWORK, limit).unwrap().unwrap());
}

#[test]
fn a_custom_discipline_has_several_queues_and_checked_parameters() {
    let known = with_fair();
    let wrong = |name: &str, value: f64| {
        let built = known.build_qdisc("fair", &[(name, Value::Number(value))], &NETWORK, Limit::packets(40));
        built.unwrap().unwrap_err().to_string()
    };
    assert_eq!(wrong("quantum", 0.0), "quantum = 0: must be a number above 0 (B)");
    assert_eq!(wrong("quantum", 1e7), "quantum = 10000000: takes more than a second to send");
    // The threshold function is one of single queues.
    assert_eq!(wrong("threshold", 0.5), "threshold: not a parameter; known: quantum");
    assert!(known.build("fair", &[], &NETWORK).is_none());
    let kind = |name: &str| known.kind(known.find(name).unwrap());
    assert_eq!(["fair", "every", "drr", "pi"].map(kind), [Multi, Single, Multi, Single]);
    assert_eq!(
        known.with_qdisc(Algorithm { name: "cake", ..ROW }, |_, _, _| unreachable!()),
        Err(NameTakenError("cake"))
    );
    // A later algorithm of one queue replaces it.
    let single = known.with(Algorithm { name: "fair", ..ROW }, |_, _| Ok(AnyAqm::custom(DropTail::default()))).unwrap();
    assert_eq!(single.kind(single.find("fair").unwrap()), Single);
}

#[test]
fn parameters_of_a_custom_discipline_are_fixed() {
    let fair = |quantum: f64| {
        let values = [("quantum", Value::Number(quantum))];
        with_fair().build_qdisc("fair", &values, &NETWORK, Limit::packets(40)).unwrap().unwrap()
    };
    let error = fair(1514.0).fixed(&fair(3000.0)).unwrap_err();
    assert_eq!(error.to_string(), "quantum = 3000: cannot change during the run");
    assert_eq!(fair(1514.0).fixed(&fair(1514.0)), Ok(()));
}

#[test]
fn a_catalogue_has_every_profile_of_the_built_in_algorithms() {
    let catalogue = Catalogue::BUILT_IN;
    let names: Vec<&str> = catalogue.profiles().iter().map(|profile| profile.name).collect();
    for name in ["pie-linux", "fq-codel-linux", "dualpi2-linux", "cake-linux", "red-ns2"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    // What a profile sets up is found by its own name.
    assert!(names.iter().all(|name| catalogue.find(name).is_some()), "{names:?}");
}
