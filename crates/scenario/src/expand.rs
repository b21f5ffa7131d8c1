//! Expansion of a scenario to the plan of one seed: hosts, access links, delays and start time of every flow.

use std::sync::Arc;

use aqumen_aqm::{AnyQdisc, Draw, Limit, Network};
use aqumen_units::{Instant, Span};
use smallvec::SmallVec;

use crate::channel::LinkState;
use crate::check::{event_link, event_windows, merge, pauses};
use crate::choice::AqmChoice;
use crate::error::PathError;
use crate::field::Buffer;
use crate::line::Line;
use crate::links::Access;
use crate::network::{Core, CoreLink, GroupRoute, limit};
use crate::plan::{Flow, Group, Link, LinkPath, LinkSettings, Part, Plan, PlanName, Window};
use crate::schema::{Side, Spec};
use crate::spec::{AqmChange, AqmSpec};
use crate::spread::Spread;
use crate::streams::{Kind, Stream};

/// Fraction of the run, 1/n, before the default window `steady`.
const STEADY_FROM: u64 = 10;

/// Returns the plan of `spec` for `seed`, with `chosen` on the links under test and the SPECs in `fixed` on the others.
/// Fails if an event changes parameters that an AQM lacks.
pub(crate) fn expand(
    spec: &Spec,
    core: &Core,
    seed: u64,
    chosen: &AqmSpec,
    fixed: &[Option<AqmSpec>],
) -> Result<Plan, PathError> {
    let first = core.under_test().next().or_else(|| core.links.iter().position(|link| link.record)).unwrap_or(0);
    let mut plan = Plan {
        scenario: spec.name.0.clone(),
        seed,
        duration: spec.duration,
        nodes: core.nodes.iter().map(|name| name.as_str().into()).collect(),
        links: Vec::new(),
        groups: Vec::new(),
        flows: Vec::new(),
        windows: windows(spec),
        sample_interval: spec.sample_interval(),
        nominal: core.nominal(spec, first),
        actual: core.actual(spec, first),
        notes: Vec::new(),
    };
    for (i, link) in core.links.iter().enumerate() {
        let aqm = fixed[i].as_ref().unwrap_or(chosen);
        plan.links.push(written_link(spec, core, i, link, aqm)?);
    }
    let mut placement =
        Placement { spec, core, plan, hosts: vec![Default::default(); spec.flows.len()], host_count: 0 };
    (0..spec.flows.len()).for_each(|group| placement.group(group));
    Ok(placement.plan)
}

/// Placement of flows and their hosts.
struct Placement<'a> {
    spec: &'a Spec,
    core: &'a Core,
    plan: Plan,
    /// Hosts of each group, by side.
    hosts: Vec<[Vec<Host>; 2]>,
    host_count: u32,
}

impl Placement<'_> {
    /// Adds the flows of group `i`.
    fn group(&mut self, i: usize) {
        let (group, route) = (&self.spec.flows[i], &self.core.routes[i]);
        let first = self.plan.flows.len() as u32;
        self.plan.groups.push(Group {
            name: group.name.0.clone(),
            preset: group.transport.preset.clone(),
            transport: group.transport.config,
            traffic: group.traffic.clone(),
            // The total is at most FLOWS_MAX.
            flows: first..first + group.flows() as u32,
            class: group.class as u8,
        });
        let access = route.access.as_ref().map(|access| NewAccess::new(&group.name.0, access, &self.plan.nominal));
        let pauses = pauses(self.spec, group);
        let connections = group.traffic.connections();
        for number in 0..group.count {
            let draws = Stream::new(self.plan.seed, Kind::Placement, u64::from(first + number * connections));
            let (start, delays) = self.draw_start_and_delays(i, number, draws);
            let [source, sink] = self.hosts_of_flow(i, number, access.as_ref(), delays);
            let flow = Flow {
                group: i as u32,
                source: source.number,
                destination: sink.number,
                path: end_to_end(source.links, &route.path, sink.links),
                return_path: end_to_end(sink.links, &route.return_path, source.links),
                on: on_intervals(start, group.stop, &pauses[number as usize]),
                transfer: group.transfer,
            };
            // All connections of a session run between the same hosts.
            self.plan.flows.extend(std::iter::repeat_n(flow, connections as usize));
        }
        add_notes(&mut self.plan, group, first as usize);
    }

    /// Draws the start time of flow `number` of group `i`, and the delays of the access links of its source and sink.
    ///
    /// The order of draws is part of the format. Every number is drawn, needed or not, so that a range in one place
    /// does not change the draws in another.
    fn draw_start_and_delays(&self, i: usize, number: u32, mut draws: Stream) -> (Span, [Span; 2]) {
        let (group, route) = (&self.spec.flows[i], &self.core.routes[i]);
        let start = group.start.value(draws.uniform(), number, group.count);
        // Delays belong to the hosts.
        let hosts = Side::BOTH.map(|side| self.core.hosts(self.spec, i, side));
        let of_hosts = |spread: &Spread, uniform: f64| hosts.map(|count| spread.value(uniform, number % count, count));
        let none = Spread::fixed(Span::ZERO);
        let delay = route.access.as_ref().map_or(&none, |access| &access.delay);
        let [source, _] = of_hosts(delay, draws.uniform());
        let [_, sink] = of_hosts(delay, draws.uniform());
        // Delay added to each access link of the source and of the sink, so that the round trip has the given length.
        let extra = match &group.rtt {
            None => of_hosts(&group.extra_rtt, draws.uniform()),
            Some(rtt) => {
                let least = self.core.written_delay(route) + (source + sink) * 2;
                of_hosts(rtt, draws.uniform()).map(|rtt| rtt.saturating_sub(least))
            }
        };
        (start, [source + extra[0] / 4, sink + extra[1] / 4])
    }

    /// Returns the hosts of flow `number` of group `i`; new hosts get access links with these delays.
    fn hosts_of_flow(&mut self, i: usize, number: u32, access: Option<&NewAccess>, delays: [Span; 2]) -> [Host; 2] {
        let route = &self.core.routes[i];
        let known = Side::BOTH.map(|side| {
            let count = self.core.hosts(self.spec, i, side);
            let (owner, theirs) = self.core.owner(self.spec, i, side).unwrap_or((i, side));
            self.hosts[owner][theirs as usize].get((number % count) as usize).copied()
        });
        let new = known.map(|host| host.is_none());
        let access = access.filter(|_| new.contains(&true));
        let placed = access.map(|access| access.add_hosts(&mut self.plan, number, route, new, delays));
        [0, 1].map(|side| {
            known[side].unwrap_or_else(|| {
                let host = Host { number: self.host_count, links: placed.and_then(|placed| placed[side]) };
                self.host_count += 1;
                self.hosts[i][side].push(host);
                host
            })
        })
    }
}

/// Adds notes for readers about `group`, whose flows start at index `first`.
fn add_notes(plan: &mut Plan, group: &crate::schema::Group, first: usize) {
    let name = &group.name.0;
    if let Some(shape) = group.traffic.infinite_residual_shape() {
        plan.notes.push(format!(
            "{name}: its ON and OFF times are Pareto of shape {shape}: the residual of the period in which a source starts has no mean and may \
             decide its traffic for the whole run; begin = \"off\" starts with a whole OFF period, as ns-2 does"
        ));
    }
    if group.start.high >= plan.duration {
        let (flows, end) = (&plan.flows[first..], Instant::ZERO + plan.duration);
        let late = flows.iter().filter(|flow| flow.on.first().is_none_or(|(from, _)| *from >= end)).count();
        plan.notes.push(format!("{name}: {late} of {} flows begin after the end of the run", flows.len()));
    }
}

pub(crate) fn written_link(
    spec: &Spec,
    core: &Core,
    i: usize,
    link: &CoreLink,
    aqm: &AqmSpec,
) -> Result<Link, PathError> {
    let network = core.nominal(spec, i);
    let choice = |aqm: &AqmSpec| aqm.on(network);
    let mut rates = link.carries.rates.clone();
    let mut line = Line {
        medium: link.carries.medium.clone(),
        losses: link.loss.iter().map(|loss| (Instant::ZERO, loss.clone())).collect(),
        outages: link.carries.outages.clone(),
        ..Line::default()
    };
    let mut current = aqm.clone();
    let mut before = choice(aqm);
    let mut events: Vec<_> = spec.events.iter().enumerate().collect();
    events.sort_by_key(|(_, event)| event.at);
    for (number, event) in events {
        if event_link(event, core) != Some(i) {
            continue;
        }
        let at = Instant::ZERO + event.at;
        if let Some(rate) = event.capacity {
            // The event replaces later rates and outages.
            rates.retain(|(known, _)| *known < at);
            line.outages.retain(|(from, _)| *from < at);
            if let Some((_, until)) = line.outages.last_mut() {
                *until = Some(until.map_or(at, |until| until.min(at)));
            }
            rates.push((at, rate));
        }
        line.delays.extend(event.delay.map(|delay| (at, delay)));
        line.losses.extend(event.loss.as_ref().map(|losses| (at, losses.0.clone())));
        if let Some(change) = &event.aqm {
            let path = |key: Option<&str>| match key {
                Some(key) => format!("events.{number}.aqm.{key}"),
                None => format!("events.{number}.aqm"),
            };
            current = current.changed(change, &spec.aqms).map_err(|(key, message)| (path(key.as_deref()), message))?;
            let new = choice(&current);
            let limit = limit(link.buffer);
            check_takeover(&before, &new, limit, change).map_err(|(key, message)| (path(key.as_deref()), message))?;
            before = new.clone();
            line.aqms.push((at, new));
        }
    }
    add_failures(spec, core, i, &mut line);
    let target_pkts = match link.aqm {
        // Without a target in the scenario no deviation is measured, although an AQM may assume a third of the buffer.
        None => link.target.or(spec.nominal.target).map(|target| target.0),
        Some(_) => link.target.map(|target| target.0),
    };
    let settings = LinkSettings {
        rates,
        line: (!line.is_plain()).then(|| Box::new(line)),
        limit: limit(link.buffer),
        aqm: choice(aqm),
        target_pkts,
        record: link.record,
    };
    Ok(Link {
        name: link.name.as_str().into(),
        from: link.from,
        to: link.to,
        delay: link.delay,
        settings: settings.into(),
    })
}

/// Refuses an AQM that cannot replace `before`; returns the parameter (`None`: the AQM itself) and a message.
fn check_takeover(
    before: &AqmChoice,
    new: &AqmChoice,
    limit: Limit,
    change: &AqmChange,
) -> Result<(), (Option<String>, String)> {
    let built = match new.build_qdisc(limit) {
        Some(Ok(built)) => built,
        Some(Err(error)) => return Err((None, error.to_string())),
        None => return Err((None, format!("no AQM \"{}\"", new.name))),
    };
    let multi_queue = [before, new].into_iter().find(|choice| choice.build().is_none());
    if let Some(multi_queue) = multi_queue.filter(|_| before.name != new.name) {
        let name = &multi_queue.name;
        return Err((
            None,
            format!("{name} has several queues: its parameters can change, but it cannot change to another AQM"),
        ));
    }
    // An AQM that cannot be built is reported elsewhere.
    let Some(Ok(old)) = before.build_qdisc(limit) else { return Ok(()) };
    if matches!(old, AnyQdisc::Custom(_)) && before != new {
        return Err((None, format!("{} is a custom discipline: its parameters cannot change during a run", new.name)));
    }
    old.fixed(&built).map_err(|error| match change {
        AqmChange::Params(_) => (Some(error.param.to_string()), error.requirement.to_string()),
        AqmChange::Spec(_) => (None, error.to_string()),
    })
}

/// Adds the down times of link `i` by events to its outages.
fn add_failures(spec: &Spec, core: &Core, i: usize, line: &mut Line) {
    let mut events: Vec<_> = spec.events.iter().filter(|event| event_link(event, core) == Some(i)).collect();
    events.sort_by_key(|event| event.at);
    for event in events {
        let at = Instant::ZERO + event.at;
        match event.state {
            Some(LinkState::Down) => line.outages.push((at, None)),
            Some(LinkState::Up) => {
                if let Some((_, until)) = line.outages.iter_mut().rev().find(|(_, until)| until.is_none()) {
                    *until = Some(at);
                }
            }
            None => {}
        }
    }
    merge(&mut line.outages);
}

/// A host.
#[derive(Clone, Copy, Debug)]
struct Host {
    /// Number over all groups.
    number: u32,
    /// Access links, if any.
    links: Option<AccessLinks>,
}

/// Numbers of the access links of a host.
#[derive(Clone, Copy, Debug)]
struct AccessLinks {
    /// Uplink.
    out: u32,
    /// Downlink.
    into: u32,
}

/// Access links of a group's hosts, all alike but for their delays.
struct NewAccess {
    group: Arc<str>,
    settings: Arc<LinkSettings>,
}

impl NewAccess {
    fn new(group: &str, access: &Access, nominal: &Network) -> Self {
        let limit = limit(access.buffer);
        let buffer_pkts = match access.buffer {
            Buffer::Packets(_) => f64::from(limit.packets),
            Buffer::Bytes(bytes) => bytes.0 as f64 / nominal.packet_bytes,
        };
        let network = Network { link_rate: access.rate, buffer_pkts, ..*nominal };
        let line = access
            .loss
            .as_ref()
            .map(|losses| Box::new(Line { losses: vec![(Instant::ZERO, losses.0.clone())], ..Line::default() }));
        let settings = LinkSettings {
            rates: vec![(Instant::ZERO, access.rate)],
            line,
            limit,
            aqm: AqmChoice::builtin("droptail", Vec::new(), network),
            target_pkts: None,
            record: false,
        };
        NewAccess { group: group.into(), settings: settings.into() }
    }

    /// Adds the hosts of flow `number` that are `new` with their access links; returns the links.
    fn add_hosts(
        &self,
        plan: &mut Plan,
        number: u32,
        route: &GroupRoute,
        new: [bool; 2],
        delays: [Span; 2],
    ) -> [Option<AccessLinks>; 2] {
        let name = |part| PlanName::of_part(&self.group, number, part);
        let mut nodes = [0; 2];
        for (side, part) in [Part::Source, Part::Sink].into_iter().enumerate().filter(|(side, _)| new[*side]) {
            nodes[side] = plan.nodes.len() as u32;
            plan.nodes.push(name(part));
        }
        let [source, sink] = nodes;
        let mut links = [AccessLinks { out: 0, into: 0 }; 2];
        for (part, side, from, to) in [
            (Part::SourceOut, 0, source, route.from),
            (Part::SinkIn, 1, route.to, sink),
            (Part::SinkOut, 1, sink, route.to),
            (Part::SourceIn, 0, route.from, source),
        ] {
            if !new[side] {
                continue;
            }
            let link = plan.links.len() as u32;
            *(if from == nodes[side] { &mut links[side].out } else { &mut links[side].into }) = link;
            plan.links.push(Link { name: name(part), from, to, delay: delays[side], settings: self.settings.clone() });
        }
        [0, 1].map(|side| new[side].then_some(links[side]))
    }
}

/// Returns the path between two hosts, access links included.
fn end_to_end(from: Option<AccessLinks>, path: &[u32], to: Option<AccessLinks>) -> LinkPath {
    let (before, after) = (from.map(|host| host.out), to.map(|host| host.into));
    before.into_iter().chain(path.iter().copied()).chain(after).collect()
}

/// Returns the time from `start` to `stop` without the pauses, which are disjoint and in order.
fn on_intervals(
    start: Span,
    stop: Option<Span>,
    pauses: &[(Span, Option<Span>)],
) -> SmallVec<[(Instant, Option<Instant>); 1]> {
    let end = stop.unwrap_or(Span::MAX);
    let mut on = Vec::new();
    let mut from = start;
    for (pause, resume) in pauses {
        if *pause >= end {
            break;
        }
        if *pause > from {
            on.push((from, Some(*pause)));
        }
        from = from.max(resume.unwrap_or(Span::MAX));
    }
    if from < end {
        on.push((from, stop));
    }
    on.into_iter().map(|(from, until)| (Instant::ZERO + from, until.map(|until| Instant::ZERO + until))).collect()
}

/// Returns the windows `all`, `steady`, one for each event, and those of the scenario.
fn windows(spec: &Spec) -> Vec<Window> {
    let end = Instant::ZERO + spec.duration;
    let window = |name: &str, start: Span, until: Option<Span>| Window {
        name: name.into(),
        start: Instant::ZERO + start,
        end: until.map_or(end, |until| Instant::ZERO + until),
    };
    let mut windows = vec![window("all", Span::ZERO, None)];
    if spec.windows.get("steady").is_none() {
        windows.push(window("steady", spec.duration / STEADY_FROM, None));
    }
    windows.extend(event_windows(spec).iter().map(|(name, start, until)| window(name, *start, *until)));
    windows.extend(spec.windows.0.iter().map(|(name, interval)| window(name, interval.start, interval.end)));
    windows
}
