//! Tests of the interfaces with small algorithms, disciplines and hosts: decisions at the head, reactions to overflow
//! and idleness, coupled queues, laws with two periods, custom laws, a fluid model.

use std::collections::VecDeque;

use aqumen_aqm::registry::{AnyAqm, build};
use aqumen_aqm::{
    Account, Aqm, ArmPfc, ArmPfcParams, Backlog, Cx, Draw, DropReason, DropTail, Fates, Fifo, Handle, Hooks, Limit,
    MAX_LOOPS, Observation, Packet, Pi, PiGains, Qdisc, SampledAqm, SampledLaw, ServiceRecord, TcpPlant, Totals, Value,
    Variant, Verdict,
};
use aqumen_units::{Ecn, Instant, Probability, Span};

use crate::common::{Fixed, NETWORK};

#[derive(Default)]
struct Log {
    marked: Vec<Handle>,
    dropped: Vec<(Handle, DropReason)>,
}

impl Fates for Log {
    fn marked(&mut self, handle: Handle) {
        self.marked.push(handle);
    }

    fn dropped(&mut self, handle: Handle, reason: DropReason) {
        self.dropped.push((handle, reason));
    }
}

fn packet(ecn: Ecn) -> Packet {
    Packet { bytes: 1000, ecn, segments: 1, ..Packet::default() }
}

fn at_ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// CoDel (RFC 8289) without its re-entry rule: decides at the head, by sojourn time.
#[derive(Default)]
struct MiniCodel {
    above_since: Option<Instant>,
    dropping: Option<Dropping>,
}

struct Dropping {
    next: Instant,
    count: u32,
}

impl MiniCodel {
    const TARGET: Span = Span::from_millis(5);
    const INTERVAL: Span = Span::from_millis(100);

    fn spacing(count: u32) -> Span {
        Span::from_secs_f64(0.1 / f64::from(count).sqrt())
    }
}

impl Aqm for MiniCodel {
    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        if sojourn < Self::TARGET || cx.queue.bytes == 0 {
            (self.above_since, self.dropping) = (None, None);
            return Verdict::Pass;
        }
        let since = *self.above_since.get_or_insert(cx.now);
        match &mut self.dropping {
            Some(dropping) if cx.now >= dropping.next => {
                dropping.count += 1;
                dropping.next += Self::spacing(dropping.count);
                Verdict::signal(packet, true)
            }
            None if cx.now >= since + Self::INTERVAL => {
                self.dropping = Some(Dropping { next: cx.now + Self::spacing(1), count: 1 });
                Verdict::signal(packet, true)
            }
            _ => Verdict::Pass,
        }
    }

    fn hooks(&self) -> Hooks {
        Hooks { decides_at_head: true, departures: true }
    }
}

#[test]
fn codel_decides_at_the_head() {
    let mut fifo = Fifo::new(MiniCodel::default(), Limit::packets(1000));
    let (mut rng, mut log) = (Fixed(0.5), Log::default());
    for i in 0..1000 {
        fifo.enqueue(i, &packet(Ecn::NotEct), Instant::ZERO, &mut rng, &mut log);
    }
    // All arrived at 0, one leaves each millisecond: the head at t ms waited t ms. Above 5 ms since 5 ms, so
    // the first drop is at 105 ms, then 100/sqrt(1) later at 205, 100/sqrt(2) = 70.7 later at 276, 100/sqrt(3)
    // = 57.7 later at 334 (333.4).
    let mut times = Vec::new();
    for ms in 1..=350 {
        let before = log.dropped.len();
        assert!(fifo.dequeue(at_ms(ms), &mut rng, &mut log).is_some(), "the next head is offered at once");
        fifo.transmitted(Span::from_millis(1), at_ms(ms));
        times.extend(std::iter::repeat_n(ms, log.dropped.len() - before));
    }
    assert_eq!(times, [105, 205, 276, 334]);
    assert_eq!(fifo.backlog(), Backlog { packets: 1000 - 350 - 4, bytes: 1000 * (1000 - 350 - 4) });
    assert_eq!(fifo.totals().early_dropped, 4);
}

/// BLUE (Feng et al. 1999): p rises at overflows and falls when the link idles, at most once per 10 ms.
#[derive(Default)]
struct MiniBlue {
    p: f64,
    last: Option<Instant>,
}

impl MiniBlue {
    fn change(&mut self, by: f64, now: Instant) {
        if self.last.is_none_or(|last| now - last > Span::from_millis(10)) {
            self.p = (self.p + by).clamp(0.0, 1.0);
            self.last = Some(now);
        }
    }
}

impl Aqm for MiniBlue {
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        let chosen = cx.rng.uniform() < self.p && !cx.queue.is_full(packet);
        if chosen { Verdict::signal(packet, false) } else { Verdict::Pass }
    }

    fn on_overflow<R: Draw>(&mut self, _packet: &Packet, cx: &mut Cx<'_, R>) {
        self.change(0.5, cx.now);
    }

    fn on_idle(&mut self, now: Instant) {
        self.change(-0.2, now);
    }
}

#[test]
fn blue_learns_of_overflow_and_idleness() {
    let mut fifo = Fifo::new(MiniBlue::default(), Limit::packets(2));
    let (mut rng, mut log) = (Fixed(0.4), Log::default());
    // Two fit, the third overflows: p = 0.5. The fourth overflows, too, but within 10 ms.
    for handle in 0..4 {
        fifo.enqueue(handle, &packet(Ecn::Ect0), at_ms(1), &mut rng, &mut log);
    }
    assert_eq!(log.dropped, [(2, DropReason::Overflow), (3, DropReason::Overflow)]);
    assert_eq!(fifo.aqm().p, 0.5);
    // With room again, 0.4 < 0.5 drops early.
    fifo.dequeue(at_ms(2), &mut rng, &mut log);
    fifo.enqueue(4, &packet(Ecn::Ect0), at_ms(2), &mut rng, &mut log);
    assert_eq!(log.dropped.last(), Some(&(4, DropReason::Early)));
    // The last packet leaves; the poll that finds nothing lowers p by 0.2.
    fifo.dequeue(at_ms(3), &mut rng, &mut log);
    assert_eq!(fifo.dequeue(at_ms(20), &mut rng, &mut log), None);
    assert!((fifo.aqm().p - 0.3).abs() < 1e-12);
}

/// Two queues after DualPI2 (RFC 9332): one law over the classic queue, its square drops there, its double marks in the
/// low-latency queue, which goes first. When both are full together, the oldest classic packet makes room.
struct MiniDual {
    classic: VecDeque<(Handle, Packet, Instant)>,
    low_latency: VecDeque<(Handle, Packet, Instant)>,
    law: Pi,
    due: Instant,
    p: Probability,
    totals: Totals,
}

impl MiniDual {
    const ROOM: usize = 4;
    const PERIOD: Span = Span::from_millis(16);

    fn new(law: Pi) -> Self {
        MiniDual {
            classic: VecDeque::new(),
            low_latency: VecDeque::new(),
            law,
            due: Instant::ZERO + Self::PERIOD,
            p: Probability::ZERO,
            totals: Totals::default(),
        }
    }
}

impl Qdisc for MiniDual {
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        self.totals.arrivals += 1;
        self.totals.arrived_bytes += u64::from(packet.bytes);
        if self.classic.len() + self.low_latency.len() >= Self::ROOM {
            // The displaced packet is not the one at hand.
            let displaced = self.classic.pop_front().map_or(handle, |(displaced, ..)| displaced);
            self.totals.overflow_dropped += 1;
            fates.dropped(displaced, DropReason::Overflow);
            if displaced == handle {
                return;
            }
        }
        let (p, l4s) = (self.p.get(), packet.ecn == Ecn::Ect1);
        let chosen = rng.uniform() < if l4s { 2.0 * p } else { p * p };
        if chosen && !l4s {
            self.totals.early_dropped += 1;
            fates.dropped(handle, DropReason::Early);
            return;
        }
        if chosen {
            self.totals.marked += 1;
            fates.marked(handle);
        }
        self.totals.accepted += 1;
        let queue = if l4s { &mut self.low_latency } else { &mut self.classic };
        queue.push_back((handle, *packet, now));
    }

    fn dequeue<R: Draw>(&mut self, now: Instant, _rng: &mut R, _fates: &mut impl Fates) -> Option<Handle> {
        let (handle, _, arrived) = self.low_latency.pop_front().or_else(|| self.classic.pop_front())?;
        self.totals.last_sojourn = now - arrived;
        Some(handle)
    }

    fn transmitted(&mut self, duration: Span, _now: Instant) {
        self.totals.departures += 1;
        self.totals.busy += duration;
    }

    fn backlog(&self) -> Backlog {
        let all = || self.classic.iter().chain(&self.low_latency);
        Backlog { packets: all().count() as u32, bytes: all().map(|(_, packet, _)| u64::from(packet.bytes)).sum() }
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }

    fn next_timer(&self) -> Option<Instant> {
        Some(self.due)
    }

    fn on_timer<R: Draw>(&mut self, now: Instant, _rng: &mut R) {
        if now >= self.due {
            let seen = Observation { now, queue_pkts: self.classic.len() as f64, ..Observation::default() };
            self.p = self.law.step(0, &seen);
            self.due = now + Self::PERIOD;
        }
    }

    fn probability(&self) -> Probability {
        self.p
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("low_latency_pkts", self.low_latency.len() as f64);
    }
}

#[test]
fn a_discipline_of_two_queues_couples_and_schedules_them() {
    // p after one step from an empty state, target 1, with 3 classic packets: a (3 - 1) - b
    // (0 - 1) = 0.2 + 0.05 = 0.25.
    let mut dual = MiniDual::new(Pi::new(PiGains::new(0.1, 0.05).unwrap(), 62.5, 1.0));
    let (mut rng, mut log) = (Fixed(0.3), Log::default());
    for handle in 0..3 {
        dual.enqueue(handle, &packet(Ecn::Ect0), at_ms(1), &mut rng, &mut log);
    }
    dual.on_timer(at_ms(16), &mut rng);
    assert!((dual.probability().get() - 0.25).abs() < 1e-12);
    // 0.3 < 2 * 0.25 marks the L4S packet; 0.3 > 0.25^2 spares the classic one, which displaces the oldest.
    dual.enqueue(3, &packet(Ecn::Ect1), at_ms(17), &mut rng, &mut log);
    dual.enqueue(4, &packet(Ecn::Ect0), at_ms(17), &mut rng, &mut log);
    assert_eq!(log.marked, [3]);
    assert_eq!(log.dropped, [(0, DropReason::Overflow)]);
    let order: Vec<_> = std::iter::from_fn(|| dual.dequeue(at_ms(18), &mut rng, &mut log)).collect();
    assert_eq!(order, [3, 1, 2, 4]);
}

/// A law with a fast and a slow loop, like AQM-MO, that writes down its steps.
#[derive(Clone)]
struct TwoLoops(std::sync::mpsc::Sender<(usize, f64, f64, f64, f64)>);

impl SampledLaw for TwoLoops {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_millis(10)), Some(Span::from_millis(20))]
    }

    fn step(&mut self, which: usize, seen: &Observation) -> Probability {
        self.0.send((which, seen.now.as_secs_f64(), seen.interval_s, seen.arrivals_pkts, seen.applied.get())).unwrap();
        Probability::clamp(seen.applied.get() + if which == 0 { 0.1 } else { 0.4 })
    }
}

#[test]
fn two_loops_count_for_themselves_and_the_first_goes_first() {
    let (sender, steps) = std::sync::mpsc::channel();
    let mut fifo = Fifo::new(AnyAqm::custom_law(TwoLoops(sender), true), Limit::packets(300));
    let (mut rng, mut log) = (Fixed(0.9), Log::default());
    // Packets at 5, 15, 25 ms; timers when they are due.
    for (handle, ms) in [(0, 5), (1, 15), (2, 25)] {
        while fifo.next_timer().unwrap() <= at_ms(ms) {
            fifo.on_timer(fifo.next_timer().unwrap(), &mut rng);
        }
        fifo.enqueue(handle, &packet(Ecn::Ect0), at_ms(ms), &mut rng, &mut log);
    }
    fifo.on_timer(at_ms(30), &mut rng);
    let steps: Vec<_> = steps
        .try_iter()
        .map(|(which, t, since, n, p)| (which, (t * 1e3).round(), (since * 1e3).round(), n, (p * 10.0).round()))
        .collect();
    // (loop, ms, ms since its last step, arrivals since then, tenths of p so far)
    assert_eq!(
        steps,
        [(0, 10.0, 10.0, 1.0, 0.0), (0, 20.0, 10.0, 1.0, 1.0), (1, 20.0, 20.0, 2.0, 2.0), (0, 30.0, 10.0, 1.0, 6.0)]
    );
}

#[test]
fn a_late_timer_does_one_step_and_keeps_its_phase() {
    let (sender, steps) = std::sync::mpsc::channel();
    let mut fifo = Fifo::new(SampledAqm::new(TwoLoops(sender), true), Limit::packets(300));
    // Ten hours late.
    let late = at_ms(36_000_000) + Span::from_millis(3);
    fifo.on_timer(late, &mut Fixed(0.5));
    assert_eq!(steps.try_iter().count(), 2);
    assert_eq!(fifo.next_timer(), Some(at_ms(36_000_010)));
}

#[test]
fn a_packet_that_finds_no_room_costs_no_draw() {
    // Two algorithms that lose different packets to overflow still draw the same numbers for the others.
    struct Counting(u32);
    impl Draw for Counting {
        fn uniform(&mut self) -> f64 {
            self.0 += 1;
            0.9999
        }
    }
    struct ConstantHalf;
    impl SampledLaw for ConstantHalf {
        fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
            [None, None]
        }

        fn initial(&self) -> Probability {
            Probability::clamp(0.5)
        }

        fn step(&mut self, _which: usize, _seen: &Observation) -> Probability {
            unreachable!("it has no loop")
        }
    }
    let mut fifo = Fifo::new(SampledAqm::new(ConstantHalf, true), Limit::packets(2));
    let (mut rng, mut log) = (Counting(0), Log::default());
    for handle in 0..5 {
        fifo.enqueue(handle, &packet(Ecn::Ect0), at_ms(1), &mut rng, &mut log);
    }
    assert_eq!((fifo.totals().overflow_dropped, rng.0), (3, 2));
}

#[test]
fn a_law_that_asks_for_no_time_between_steps_does_not_stop_the_clock() {
    struct ZeroPeriod;
    impl SampledLaw for ZeroPeriod {
        fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
            [Some(Span::ZERO), Some(Span::MAX)]
        }

        fn step(&mut self, _which: usize, _seen: &Observation) -> Probability {
            Probability::ONE
        }
    }
    let mut fifo = Fifo::new(SampledAqm::new(ZeroPeriod, true), Limit::packets(1));
    fifo.on_timer(at_ms(1000), &mut Fixed(0.5));
    assert!(fifo.next_timer().unwrap() > at_ms(1000));
}

/// The fluid model of `flows` TCP connections over a queue (Misra, Gong, Towsley 2000), with the delayed quantities of
/// one moment R(t) ago, stepped by Euler's rule every millisecond. Returns the mean queue of the last 20 of 120 s.
fn settled_queue(mut law: ArmPfc, flows: f64, capacity: f64) -> f64 {
    const DT: f64 = 1e-3;
    const BASE_RTT: f64 = 0.2;
    const STEPS: usize = 120_000;
    let period = (law.periods()[0].unwrap().as_secs_f64() / DT).round() as usize;
    let (mut window, mut queue, mut p) = (1.0f64, 0.0f64, 0.0);
    let mut past: Vec<(f64, f64, f64)> = Vec::with_capacity(STEPS);
    let mut late = 0.0;
    for i in 0..STEPS {
        if i % period == 0 {
            p = law.step(0, &Observation { queue_pkts: queue, ..Observation::default() }).get();
        }
        let rtt = queue / capacity + BASE_RTT;
        past.push((window, rtt, p));
        let (window_d, rtt_d, p_d) = past[i.saturating_sub((rtt / DT) as usize)];
        let inflow = flows * window / rtt;
        window = (window + DT * (1.0 / rtt - window / 2.0 * window_d / rtt_d * p_d)).max(1.0);
        queue = (queue + DT * (inflow - capacity)).clamp(0.0, 300.0);
        if i >= STEPS - 20_000 {
            late += queue / 20_000.0;
        }
    }
    late
}

#[test]
fn a_fluid_engine_drives_the_same_law() {
    // Designed for N = 100, C = 1250, R0 = 0.28; the printed d, h, Psi.
    let printed = |variant| {
        let plant = TcpPlant::new(100.0, 1250.0, 0.28).unwrap();
        ArmPfc::new(ArmPfcParams { h: 7, psi: 0.83, variant, ..ArmPfcParams::new(plant, 100.0) }).unwrap()
    };
    // Variant B settles on the target of 100 although the load is another (120 flows, 1000 packets/s).
    let settled = settled_queue(printed(Variant::B), 120.0, 1000.0);
    assert!((settled - 100.0).abs() < 0.1, "{settled}");
    // Variant A settles where its formula says: 13.68 beside it for N = 110. There the model's equilibrium is
    // W = (q / C + 0.2) C / N and p = 2 / W^2, so that p itself depends on q: 113.68 / 1250 + 0.2 = 0.290944,
    // W = 3.30618, p = 0.182968; 694.4 (0.182968 - 0.163265) = 13.68.
    let law = printed(Variant::A);
    let offset = law.theory().offset_pkts(Probability::new(0.182_968).unwrap());
    assert!((offset - 13.68).abs() < 0.01, "{offset}");
    let settled = settled_queue(law, 110.0, 1250.0);
    assert!((settled - 113.68).abs() < 0.05, "{settled}");
}

#[test]
fn an_account_that_skips_unused_hooks_follows_the_current_algorithm() {
    let aqm = |name: &str, given: &[_]| build(name, given, &NETWORK).unwrap().unwrap();
    let account = || Account::new(aqm("droptail", &[]), Limit::packets(9));
    let (mut sparing, mut all) = (account().skipping_unused_hooks(), account());
    assert_eq!((sparing.observes_departures(), all.observes_departures()), (false, true));
    // RED wants to know when the link is idle, PIE what leaves where it measures the rate or does as Linux.
    for (name, given, wants) in [
        ("red", vec![], true),
        ("droptail", vec![], false),
        ("codel", vec![], true),
        ("pie", vec![], false),
        ("pie", vec![("delay", Value::Choice("rate"))], true),
        ("pie", vec![("safeguards", Value::Choice("linux"))], true),
    ] {
        sparing.replace_aqm(aqm(name, &given), at_ms(1));
        all.replace_aqm(aqm(name, &given), at_ms(1));
        assert_eq!((sparing.observes_departures(), all.observes_departures()), (wants, true), "{name} {given:?}");
    }
}

#[test]
fn an_account_counts_verdicts_of_the_host_like_its_own() {
    let account = || {
        let fixed = build("fixed", &[("p", Value::Number(0.5))], &NETWORK).unwrap().unwrap();
        Account::new(fixed, Limit::packets(9))
    };
    let (mut asked, mut told) = (account(), account());
    for (bytes, ecn, draw) in [(1000, Ecn::Ect0, 0.4), (600, Ecn::NotEct, 0.4), (400, Ecn::Ect0, 0.6)] {
        match asked.arrive(&Packet { bytes, ..packet(ecn) }, at_ms(0), &mut Fixed(draw)) {
            Ok(marked) => told.admit(bytes, marked),
            Err(_) => told.refuse(bytes),
        }
    }
    assert_eq!((told.backlog(), told.totals()), (asked.backlog(), asked.totals()));
    assert_eq!(told.backlog(), Backlog { packets: 2, bytes: 1400 });
    assert_eq!((told.totals().marked, told.totals().early_dropped), (1, 1));
}

#[test]
fn record_service_counts_like_packet_by_packet_calls() {
    // Three packets come, two are taken, of which one has been sent: told packet by packet, and told together.
    let (mut rng, sizes) = (crate::random::Random(1), [1000, 600, 400]);
    let full = |account: &mut Account<DropTail>, rng: &mut crate::random::Random| {
        for bytes in sizes {
            assert_eq!(account.arrive(&Packet { bytes, ..packet(Ecn::NotEct) }, at_ms(0), rng), Ok(false));
        }
    };
    let mut each = Account::new(DropTail::default(), Limit::packets(9));
    full(&mut each, &mut rng);
    for (bytes, taken_at) in [(1000, 0), (600, 8)] {
        let head = Packet { bytes, ..packet(Ecn::NotEct) };
        assert_eq!(each.dequeue_head(&head, Span::from_millis(taken_at), at_ms(taken_at), &mut rng), Verdict::Pass);
        if bytes == 1000 {
            each.transmitted(bytes, Span::from_millis(8), at_ms(8));
        }
    }
    let mut together = Account::new(DropTail::default(), Limit::packets(9)).skipping_unused_hooks();
    assert_eq!((each.observes_departures(), together.observes_departures()), (true, false));
    full(&mut together, &mut rng);
    let of = |packets, bytes| Backlog { packets, bytes };
    together.record_service(&ServiceRecord {
        started: of(2, 1600),
        last_sojourn: Span::from_millis(8),
        finished: of(1, 1000),
        busy: Span::from_millis(8),
        transmitting_since: Some(at_ms(8)),
    });
    assert_eq!((together.backlog(), together.backlog()), (each.backlog(), of(1, 400)));
    let totals = *together.totals();
    assert_eq!((totals.departures, totals.departed_bytes), (1, each.totals().departed_bytes));
    assert_eq!((totals.busy, totals.last_sojourn), (each.totals().busy, Span::from_millis(8)));
    assert_eq!((totals.transmitting_since, each.totals().departures), (Some(at_ms(8)), 1));
    // The last one follows.
    together.record_service(&ServiceRecord {
        started: of(1, 400),
        last_sojourn: Span::from_millis(13),
        finished: of(1, 600),
        busy: Span::from_millis(5),
        transmitting_since: Some(at_ms(13)),
    });
    assert_eq!((together.backlog(), together.totals().departures), (of(0, 0), 2));
}
