//! Utilisation by fluid TCP flows after ten seconds of unresponsive overload, for each law with an integral.

use aqumen_aqm::registry::{self, algorithms};
use aqumen_aqm::{Aqm, Network, Observation, Value};
use aqumen_units::{Instant, Probability, Rate};

const STEP_S: f64 = 1e-3;
/// The unresponsive traffic: when, and 30 of 20 Mbit/s.
const FLOOD_S: (f64, f64) = (20.0, 30.0);
const FLOOD: f64 = 1.5;

/// A link of so many Mbit/s with a target of 10 ms and a buffer of 240.
fn network(mbit: f64, flows: f64, base_rtt_s: f64) -> Network {
    let rate = Rate::from_bps((mbit * 1e6) as u64);
    let pps = mbit * 1e6 / (8.0 * 1514.0);
    Network {
        capacity: rate,
        flows,
        base_rtt_s,
        target_pkts: 0.01 * pps,
        packet_bytes: 1514.0,
        link_rate: rate,
        buffer_pkts: 0.24 * pps,
    }
}

/// The link, its queue and the window of a flow, which answers a round trip late.
struct Link {
    pps: f64,
    flows: f64,
    rtt_s: f64,
    buffer_pkts: f64,
    window: f64,
    queue: f64,
    /// The probabilities of the last round trip.
    lately: std::collections::VecDeque<f64>,
    /// Packets that arrived and left, and seconds without any, since the start.
    arrived: f64,
    left: f64,
    idle_s: f64,
}

impl Link {
    fn new(network: &Network) -> Self {
        Link {
            pps: network.link_rate.as_bps() as f64 / (8.0 * network.packet_bytes),
            flows: network.flows,
            rtt_s: network.base_rtt_s,
            buffer_pkts: network.buffer_pkts,
            window: 1.0,
            queue: 0.0,
            lately: std::iter::repeat_n(0.0, (network.base_rtt_s / STEP_S) as usize).collect(),
            arrived: 0.0,
            left: 0.0,
            idle_s: 0.0,
        }
    }

    fn pass(&mut self, p: f64, flood: bool) {
        self.lately.push_back(p);
        let p_then = self.lately.pop_front().unwrap();
        let rtt_s = self.rtt_s + self.queue / self.pps;
        // No window is below a packet.
        self.window = (self.window + STEP_S * (1.0 - 0.5 * self.window * self.window * p_then) / rtt_s).max(1.0);
        let flood_pps = if flood { FLOOD * self.pps * (1.0 - p) } else { 0.0 };
        let arriving = STEP_S * (self.flows * self.window / rtt_s + flood_pps);
        let leaving = (STEP_S * self.pps).min(self.queue + arriving);
        self.queue = (self.queue + arriving - leaving).min(self.buffer_pkts);
        self.arrived += arriving;
        self.left += leaving;
        self.idle_s += STEP_S - leaving / self.pps;
    }
}

/// The share of the link that is used in each second by `network`, the law being designed for `designed`.
fn used(name: &str, anti_windup: &str, network: &Network, designed: &Network) -> Vec<f64> {
    let settings = [("anti_windup", Value::Choice(anti_windup))];
    let mut aqm = registry::build(name, &settings, designed).unwrap().unwrap();
    let law = aqm.law_mut().unwrap();
    let periods =
        law.periods().map(|period| period.map(|period| (period.as_secs_f64() / STEP_S).ceil().max(1.0) as u64));
    let mut link = Link::new(network);
    let mut p = law.initial();
    let mut last = [(0, 0.0, 0.0, 0.0); 2];
    let (mut seconds, mut before) = (Vec::new(), 0.0);
    for tick in 1..=60_000u64 {
        let now_s = tick as f64 * STEP_S;
        link.pass(p.get(), (FLOOD_S.0..FLOOD_S.1).contains(&now_s));
        for (which, period) in periods.iter().enumerate() {
            if period.is_none_or(|period| tick % period != 0) {
                continue;
            }
            let (then, arrived, left, idle_s) =
                std::mem::replace(&mut last[which], (tick, link.arrived, link.left, link.idle_s));
            let interval_s = (tick - then) as f64 * STEP_S;
            let idle_s = link.idle_s - idle_s;
            p = law.step(
                which,
                &observation(now_s, &link, p, interval_s, link.arrived - arrived, link.left - left, idle_s),
            );
        }
        if tick % 1000 == 0 {
            seconds.push((link.left - before) / link.pps);
            before = link.left;
        }
    }
    seconds
}

fn observation(
    now_s: f64,
    link: &Link,
    applied: Probability,
    interval_s: f64,
    arrived: f64,
    left: f64,
    idle_s: f64,
) -> Observation {
    Observation {
        now: Instant::from_nanos((now_s * 1e9) as u64),
        interval_s,
        queue_pkts: link.queue,
        queue_bytes: 1514.0 * link.queue,
        arrivals_pkts: arrived,
        accepted_pkts: arrived,
        departures_pkts: left,
        departures_bytes: 1514.0 * left,
        busy_s: interval_s - idle_s,
        idle_s,
        sojourn_s: link.queue / link.pps,
        applied,
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The laws with an integral.
fn integrating() -> impl Iterator<Item = &'static str> {
    algorithms().filter(|row| row.params.iter().any(|param| param.name == "anti_windup")).map(|row| row.name)
}

#[test]
fn three_seconds_after_the_flood_every_law_uses_the_link_as_before() {
    let network = network(20.0, 10.0, 0.062);
    let after = |name, anti_windup| {
        let used = used(name, anti_windup, &network, &network);
        (mean(&used[10..20]), used[33..].iter().copied().fold(1.0, f64::min))
    };
    let mut laws = 0;
    for name in integrating() {
        for anti_windup in ["conditional", "back-calculation"] {
            let (before, least) = after(name, anti_windup);
            assert!(least > 0.95 * before, "{name}, {anti_windup}: {before:.2} before, {least:.2} after");
        }
        laws += 1;
    }
    assert!(laws >= 13, "{laws} laws");
    for name in ["pi", "arm-pfc", "aqm-mo", "paqm", "rem"] {
        let (before, least) = after(name, "none");
        assert!(before > 0.95 && least < 0.4, "{name}: {before:.2} before, {least:.2} after");
    }
}

#[test]
fn in_networks_that_were_not_designed_for_the_link_fills_as_fast_as_windows_grow() {
    let mut state = 1u64;
    let mut draw = |least: f64, most: f64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        least * (most / least).powf((state >> 11) as f64 / (1u64 << 53) as f64)
    };
    let mut networks = 0;
    while networks < 12 {
        let (mbit, flows, rtt_s) = (draw(2.0, 100.0), draw(2.0, 100.0).round(), draw(0.01, 0.3));
        let designed = network(mbit, flows * draw(0.33, 3.0), rtt_s * draw(0.33, 3.0));
        let real = network(mbit, flows, rtt_s);
        // A packet a round trip, from nothing.
        let window = mbit * 1e6 / (8.0 * 1514.0) * (rtt_s + 0.01) / flows;
        let fill_s = window * (rtt_s + 0.01);
        if window < 3.0 || fill_s > 10.0 {
            continue;
        }
        networks += 1;
        let from = 33 + fill_s.ceil() as usize;
        for name in integrating() {
            let [none, conditional] =
                ["none", "conditional"].map(|anti_windup| used(name, anti_windup, &real, &designed));
            let said = || format!("{name}: {mbit:.1} Mbit/s, {flows} flows, {rtt_s:.3} s, designed for {designed:?}");
            let (before, without) = (mean(&conditional[10..20]), mean(&none[10..20]));
            assert!(before > without - 0.03, "{}: {before:.2} before the flood, {without:.2} with none", said());
            let after = mean(&conditional[from..from + 10]);
            assert!(after > 0.9 * before, "{}: {before:.2} before, {after:.2} after", said());
        }
    }
}
