//! A test packet, and a driver that runs a port through the events of a link.

use aqumen_aqm::{PureAck, Totals};
use aqumen_network::measurement::{LinkMeasurement, edges, groups_at};
use aqumen_network::port::{Arrival, Port, Style};
use aqumen_network::{Identity, WirePacket};
use aqumen_result::Series;
use aqumen_scenario::Plan;
use aqumen_units::Ecn;

pub(crate) const MS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pkt {
    pub(crate) number: u32,
    pub(crate) bytes: u32,
    pub(crate) ecn: Ecn,
}

impl WirePacket for Pkt {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark(&mut self) {
        assert!(self.ecn.is_ect(), "it is not ECN-capable");
        self.ecn = Ecn::Ce;
    }

    fn pure_ack(&self) -> Option<PureAck> {
        None
    }
}

/// An arrival: time, packet, flow.
pub(crate) type PacketArrival = (u64, Pkt, u32);

/// Results of a driven port.
pub(crate) struct Outcome {
    /// Whether each packet was marked, and the port's answer.
    pub(crate) fates: Vec<(bool, Arrival)>,
    pub(crate) seen: Vec<LinkMeasurement>,
    pub(crate) series: Series,
    pub(crate) totals: Totals,
}

/// The link of `plan` that is recorded.
pub(crate) fn bottleneck(plan: &Plan) -> u32 {
    plan.links.iter().position(|link| link.record).expect("it is recorded") as u32
}

/// Runs `arrivals` through a port. Equal times are ordered: timers, window edges, changes of the AQM, samples, ends of
/// transmission, arrivals. `served`: use a served port.
pub(crate) fn by_port(plan: &Plan, number: u32, arrivals: &[PacketArrival], served: bool) -> Outcome {
    let link = &plan.links[number as usize];
    let (edges, style) = (edges(plan), Style { collapse: true, served });
    let mut port: Port<Pkt> = Port::new(link, plan.seed, number, style, &edges, false).unwrap();
    port.separate_groups(&groups_at(plan, number));
    let (step, end) = (plan.sample_interval.as_nanos(), plan.duration.as_nanos());
    let mut schedule: Vec<(u64, u8)> = edges.iter().map(|at| (*at, 1)).collect();
    let changes = link.line.as_ref().map_or(&[][..], |line| &line.aqms);
    schedule.extend(changes.iter().map(|(at, _)| (at.as_nanos(), 2)).filter(|(at, _)| *at <= end));
    schedule.extend((1..).map(|k| (k * step, 3)).take_while(|(at, _)| *at < end));
    schedule.sort_unstable();
    let (mut schedule, mut changes) = (schedule.into_iter().peekable(), changes.iter());
    let (mut series, mut fates) = (Series::default(), vec![None; arrivals.len()]);
    // Of a port that is served: when the transmission under way ends, and what was dropped.
    let (mut service, mut dropped) = (None, Vec::new());
    let is_marked = |packet: &Pkt| packet.ecn == Ecn::Ce;
    let mut until = |now: u64, port: &mut Port<Pkt>, service: &mut Option<u64>, fates: &mut Vec<_>| loop {
        let (timer, next) = (port.next_timer().unwrap_or(u64::MAX), schedule.peek().map_or(u64::MAX, |(at, _)| *at));
        let ends = service.unwrap_or(u64::MAX);
        if timer.min(next).min(ends) > now {
            return;
        }
        if timer <= next.min(ends) {
            assert!(timer == 0 || !port.on_timer(timer - 1), "it was not due");
            assert!(port.on_timer(timer), "it was due");
            continue;
        }
        if ends < next {
            let Port::Served(port) = port else { panic!("nobody asked") };
            let (sent, busy_until) = port.finish(ends, &mut dropped);
            *service = busy_until;
            if let Some(sent) = sent {
                let lost = Arrival::Lost { start: sent.start, end: ends };
                let fate = sent.reach.map_or(lost, |reach| Arrival::Leaves { start: sent.start, reach });
                fates[sent.packet.number as usize] = Some((is_marked(&sent.packet), fate));
            }
            for (packet, _) in dropped.drain(..) {
                fates[packet.number as usize] = Some((is_marked(&packet), Arrival::Dropped));
            }
            continue;
        }
        match schedule.next().unwrap() {
            (at, 1) => port.edge(at),
            (at, 2) => {
                let (_, choice) = changes.next().unwrap();
                port.retune(choice.build_qdisc(link.limit).unwrap().unwrap(), at);
            }
            (at, _) => {
                let (queue, probability) = port.sample(at).expect("it is recorded");
                series.sample(at as f64 * 1e-9, f64::from(queue), probability);
                port.observe(&mut |name, value| series.observe(name, value));
            }
        }
    };
    for &(at, mut packet, flow) in arrivals {
        until(at, &mut port, &mut service, &mut fates);
        match &mut port {
            Port::Fifo(port) => {
                let fate = port.arrive(at, &mut packet, flow);
                fates[packet.number as usize] = Some((is_marked(&packet), fate));
            }
            Port::Served(port) => {
                let (who, mut dropped) = (Identity { flow_hash: flow, ..Identity::default() }, Vec::new());
                if let Arrival::Waits { busy_until: Some(at) } = port.arrive(at, packet, &who, &mut dropped) {
                    service = Some(at);
                }
                for (packet, _) in dropped {
                    fates[packet.number as usize] = Some((is_marked(&packet), Arrival::Dropped));
                }
            }
            Port::Plain(_) => panic!("somebody looks"),
        }
    }
    until(end, &mut port, &mut service, &mut fates);
    let totals = *port.measured().expect("it is recorded").1;
    until(10 * end, &mut port, &mut service, &mut fates);
    let offered = port.offered_bits();
    let (meter, _) = port.measured().expect("it is recorded");
    let of = |window| LinkMeasurement::new(plan, link, window, &edges, meter, offered.as_deref(), &series);
    let seen = plan.windows.iter().map(of).collect();
    let fates = fates.into_iter().map(|fate| fate.expect("each packet has a fate")).collect();
    Outcome { fates, seen, totals, series }
}
