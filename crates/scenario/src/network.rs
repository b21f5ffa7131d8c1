//! The core network, from a preset or a graph: nodes, directed links, and the route of each group. Hosts and access
//! links of the flows are added later.

use aqumen_aqm::{Limit, Network};
use aqumen_units::{Bytes, Instant, Rate, Span};

use crate::channel::{Capacity, Channel, Loss, Losses};
use crate::error::{PathError, suggestion};
use crate::field::{Buffer, Field, Name, Packets};
use crate::files::Files;
use crate::line::Medium;
use crate::links::{Access, GraphLink, Reverse};
use crate::rates::{RateSchedule, resolve};
use crate::routes::{Edge, route};
use crate::schema::{Group, Nominal, Side, Spec, Topology};
use crate::spread::Spread;
use crate::units::show_span;

/// A directed link as written.
#[derive(Clone, Debug)]
pub(crate) struct CoreLink {
    pub(crate) name: String,
    /// Dotted path of its table.
    pub(crate) path: String,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// First rate, or mean capacity of the medium.
    pub(crate) rate: Rate,
    pub(crate) carries: RateSchedule,
    pub(crate) loss: Option<Loss>,
    pub(crate) delay: Span,
    pub(crate) buffer: Buffer,
    /// SPEC of the AQM; `None` under test.
    pub(crate) aqm: Option<String>,
    pub(crate) record: bool,
    pub(crate) target: Option<Packets>,
}

/// Route of a group.
#[derive(Clone, Debug)]
pub(crate) struct GroupRoute {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) access: Option<Access>,
    pub(crate) path: Vec<u32>,
    pub(crate) return_path: Vec<u32>,
}

/// Nodes, links and routes of the groups.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub(crate) nodes: Vec<String>,
    pub(crate) links: Vec<CoreLink>,
    pub(crate) routes: Vec<GroupRoute>,
}

/// Resolves the capacity of a link from its rate, its channel and the path of its table.
type CapacityResolver<'a> =
    dyn Fn(&Option<Capacity>, &Option<Channel>, &str) -> Result<Option<RateSchedule>, PathError> + 'a;

impl Core {
    /// Builds the network of `spec` with the files that it names.
    pub(crate) fn new(spec: &Spec, files: &Files) -> Result<Core, PathError> {
        let resolve_capacity = |rate: &Option<Capacity>, channel: &Option<Channel>, path: &str| {
            resolve_capacity(rate, channel, path, spec.duration, files)
        };
        let mut core = Core { nodes: Vec::new(), links: Vec::new(), routes: Vec::new() };
        match &spec.topology {
            Topology::Dumbbell(dumbbell) => {
                core.nodes = vec!["r1".into(), "r2".into()];
                let bottleneck = &dumbbell.bottleneck;
                let path = "topology.bottleneck";
                let carries = resolve_capacity(&bottleneck.rate, &bottleneck.channel, path)?
                    .ok_or_else(|| (format!("{path}.rate"), missing_rate()))?;
                let link = CoreLink {
                    name: "bottleneck".into(),
                    path: path.into(),
                    from: 0,
                    to: 1,
                    rate: carries.rates[0].1,
                    carries,
                    loss: loss(&bottleneck.loss, path)?,
                    delay: bottleneck.delay,
                    buffer: bottleneck.buffer,
                    aqm: None,
                    record: true,
                    target: None,
                };
                let reverse = &bottleneck.reverse;
                let carries = resolve_capacity(&reverse.rate, &reverse.channel, &format!("{path}.reverse"))?;
                let back = link.opposite(reverse, carries)?;
                core.links.extend([link, back]);
            }
            Topology::ParkingLot(row) => {
                core.nodes.extend(row.nodes());
                for link in row.links().map_err(|(key, message)| (format!("topology.{key}"), message))? {
                    core.add("topology", &link, &resolve_capacity)?;
                }
            }
            Topology::Graph(graph) => {
                for (i, node) in graph.nodes.iter().enumerate() {
                    if core.nodes.contains(&node.0) {
                        return Err((format!("topology.nodes.{i}"), "there is another node of this name".into()));
                    }
                    core.nodes.push(node.0.clone());
                }
                for (i, link) in graph.links.iter().enumerate() {
                    core.add(&format!("topology.links.{i}"), link, &resolve_capacity)?;
                }
            }
        }
        for i in 0..spec.record.links.len() {
            let link = core.link(&format!("record.links.{i}"), &spec.record.links[i].0)?;
            core.links[link].record = true;
        }
        for (i, group) in spec.flows.iter().enumerate() {
            let group_route = core.group_route(spec, i, group)?;
            core.routes.push(group_route);
        }
        Ok(core)
    }

    /// Adds the link at `path` and its opposite direction, with capacities by `resolve`.
    fn add(
        &mut self,
        path: &str,
        written: &GraphLink,
        resolve_capacity: &CapacityResolver<'_>,
    ) -> Result<(), PathError> {
        let (from, to) = (self.node(path, "from", &written.from.0)?, self.node(path, "to", &written.to.0)?);
        if from == to {
            return Err((format!("{path}.to"), "from and to must be different nodes".into()));
        }
        if written.one_way && written.reverse != Reverse::default() {
            return Err((format!("{path}.one_way"), "excludes reverse".into()));
        }
        let under_test = written.aqm == "test";
        let carries = resolve_capacity(&written.rate, &written.channel, path)?
            .ok_or_else(|| (format!("{path}.rate"), missing_rate()))?;
        let link = CoreLink {
            name: written.name.0.clone(),
            path: path.into(),
            from,
            to,
            rate: carries.rates[0].1,
            carries,
            loss: loss(&written.loss, path)?,
            delay: written.delay,
            buffer: written.buffer,
            aqm: (!under_test).then(|| written.aqm.clone()),
            record: written.record || under_test,
            target: written.target,
        };
        let reverse = &written.reverse;
        let carries = resolve_capacity(&reverse.rate, &reverse.channel, &format!("{path}.reverse"))?;
        let back = (!written.one_way).then(|| link.opposite(reverse, carries)).transpose()?;
        for link in std::iter::once(link).chain(back) {
            if self.links.iter().any(|known| known.name == link.name) {
                return Err((format!("{path}.name"), format!("there is another link called {}", link.name)));
            }
            self.links.push(link);
        }
        Ok(())
    }

    /// Index of the link called `name`, which `path` refers to.
    pub(crate) fn link(&self, path: &str, name: &str) -> Result<usize, PathError> {
        self.links.iter().position(|link| link.name == name).ok_or_else(|| {
            let known = suggestion(name, self.links.iter().map(|link| link.name.as_str()));
            (path.into(), format!("no such link{known}"))
        })
    }

    /// Indices of the links under test.
    pub(crate) fn under_test(&self) -> impl Iterator<Item = usize> {
        (0..self.links.len()).filter(|i| self.links[*i].aqm.is_none())
    }

    fn node(&self, path: &str, key: &str, name: &str) -> Result<u32, PathError> {
        self.nodes.iter().position(|node| node == name).map(|i| i as u32).ok_or_else(|| {
            let known = suggestion(name, self.nodes.iter().map(String::as_str));
            (format!("{path}.{key}"), format!("no such node{known}"))
        })
    }

    fn group_route(&self, spec: &Spec, i: usize, group: &Group) -> Result<GroupRoute, PathError> {
        let at = format!("flows.{i}");
        let last = (self.nodes.len() as u32).saturating_sub(1);
        let end = |key: &str, given: &Option<Name>, of_preset: u32| match (given, &spec.topology) {
            (Some(name), _) => self.node(&at, key, &name.0),
            (None, Topology::Graph(_)) => Err((at.clone(), format!("{key} is missing; in a graph it names a node"))),
            (None, Topology::Dumbbell(_) | Topology::ParkingLot(_)) => Ok(of_preset),
        };
        let (from, to) = (end("from", &group.from, 0)?, end("to", &group.to, last)?);
        if from == to {
            return Err((format!("{at}.to"), "from and to must be different nodes".into()));
        }
        let access = group.access.clone().or_else(|| match &spec.topology {
            Topology::Dumbbell(dumbbell) => Some(dumbbell.access.clone()),
            Topology::ParkingLot(row) => row.access.clone(),
            Topology::Graph(graph) => graph.access.clone(),
        });
        if access.is_none() && group.extra_rtt.high > Span::ZERO {
            return Err((format!("{at}.extra_rtt"), "needs access links to add the delay to; give access".into()));
        }
        let edges: Vec<Edge> =
            self.links.iter().map(|link| Edge { from: link.from, to: link.to, delay: link.delay }).collect();
        let name = |node: u32| &self.nodes[node as usize];
        let find = |a: u32, b: u32, what: &str| {
            let lost = || (format!("{at}.to"), format!("no route for {what} from {} to {}", name(a), name(b)));
            route(self.nodes.len(), &edges, a, b).ok_or_else(lost)
        };
        let (path, return_path) = (find(from, to, "data")?, find(to, from, "acknowledgements")?);
        let group_route = GroupRoute { from, to, access, path, return_path };
        if let Some(rtt) = &group.rtt {
            let key = format!("{at}.rtt");
            let Some(access) = &group_route.access else {
                return Err((key, "needs access links to add the delay to; give access".into()));
            };
            if group.extra_rtt != Spread::fixed(Span::ZERO) {
                return Err((key, "excludes extra_rtt".into()));
            }
            let least = self.written_delay(&group_route) + access.delay.high * 4;
            if rtt.low < least {
                return Err((key, format!("must be at least that of the links, {}", show_span(least))));
            }
        }
        Ok(group_route)
    }

    /// Two-way propagation delay of the core links of a route.
    pub(crate) fn written_delay(&self, group_route: &GroupRoute) -> Span {
        let links = group_route.path.iter().chain(&group_route.return_path);
        Span::from_nanos(links.map(|link| self.links[*link as usize].delay.as_nanos()).sum())
    }

    /// Returns the nominal network of link `i`: values of the scenario, else those of the network as it is.
    pub(crate) fn nominal(&self, spec: &Spec, i: usize) -> Network {
        self.derived(spec, i, &spec.nominal)
    }

    /// Returns the network of link `i` as it is, from the link and the flows that cross it.
    pub(crate) fn actual(&self, spec: &Spec, i: usize) -> Network {
        self.derived(spec, i, &Nominal::default())
    }

    fn derived(&self, spec: &Spec, i: usize, given: &Nominal) -> Network {
        let link = &self.links[i];
        let crosses = |group_route: &GroupRoute| group_route.path.contains(&(i as u32));
        let any = self.routes.iter().any(crosses);
        let there: Vec<usize> = (0..self.routes.len()).filter(|&g| !any || crosses(&self.routes[g])).collect();
        // A design for N flows assumes long-lived TCP flows. Without them all flows count.
        let long: Vec<usize> = there.iter().copied().filter(|&g| spec.flows[g].is_long_lived_tcp()).collect();
        let sum = |groups: &[usize], of: &dyn Fn(usize) -> f64| -> f64 {
            groups.iter().map(|&g| f64::from(spec.flows[g].count) * of(g)).sum()
        };
        let designed_for = if long.is_empty() { &there } else { &long };
        let flows = sum(designed_for, &|_| 1.0);
        // If the hosts belong to two groups, each contributes half of the round trip.
        let of_hosts = |g: usize| self.base_rtt_s(&self.routes[g], &spec.flows[g]) / 2.0;
        let rtt_s = sum(designed_for, &|g| self.owners(spec, g).map(of_hosts).iter().sum());
        let bytes = sum(&there, &|g| f64::from(spec.flows[g].transport.config.packet_bytes()));
        let packet_bytes = given.packet.map_or_else(|| bytes / sum(&there, &|_| 1.0), |packet| packet.0 as f64);
        let buffer_pkts = match link.buffer {
            Buffer::Packets(packets) => f64::from(packets),
            Buffer::Bytes(bytes) => bytes.0 as f64 / packet_bytes,
        };
        Network {
            capacity: given.capacity.unwrap_or(link.rate),
            flows: given.flows.unwrap_or(flows),
            base_rtt_s: given.base_rtt.map_or(rtt_s / flows, |rtt| rtt.as_nanos() as f64 / 1e9),
            target_pkts: link.target.or(given.target).map_or(buffer_pkts / 3.0, |target| target.0),
            packet_bytes,
            link_rate: link.rate,
            buffer_pkts,
        }
    }

    /// Expected round-trip time of a group without queueing or transmission, seconds.
    fn base_rtt_s(&self, group_route: &GroupRoute, group: &Group) -> f64 {
        if let Some(rtt) = &group.rtt {
            return rtt.mean_s();
        }
        let access =
            group_route.access.as_ref().map_or(0.0, |access| 4.0 * access.delay.mean_s() + group.extra_rtt.mean_s());
        self.written_delay(group_route).as_nanos() as f64 / 1e9 + access
    }
}

impl GroupRoute {
    /// Node to which the hosts of a side attach.
    pub(crate) fn node(&self, side: Side) -> u32 {
        match side {
            Side::Source => self.from,
            Side::Destination => self.to,
        }
    }
}

impl Core {
    /// Returns the group and side that own the hosts of group `i` on a side, at the same node. `None` if that group
    /// does not exist or has no hosts there.
    pub(crate) fn owner(&self, spec: &Spec, i: usize, side: Side) -> Option<(usize, Side)> {
        let (mut group, mut at) = (i, side);
        while let Some(of) = spec.flows[group].shares(at) {
            let owner = spec.flows[..group].iter().position(|other| other.name == *of)?;
            let node = self.routes[group].node(at);
            at = Side::BOTH.into_iter().find(|&theirs| self.routes[owner].node(theirs) == node)?;
            group = owner;
        }
        Some((group, at))
    }

    /// Returns the groups that own the hosts of both sides of group `i`, and so determine their links and delays.
    pub(crate) fn owners(&self, spec: &Spec, i: usize) -> [usize; 2] {
        // Existence has been checked.
        Side::BOTH.map(|side| self.owner(spec, i, side).map_or(i, |(owner, _)| owner))
    }

    /// Number of hosts of group `i` on a side, shared ones included.
    pub(crate) fn hosts(&self, spec: &Spec, i: usize, side: Side) -> u32 {
        // Existence has been checked.
        self.owner(spec, i, side).map_or(1, |(owner, theirs)| spec.flows[owner].own_hosts(theirs))
    }
}

impl CoreLink {
    /// Returns the opposite direction, with the same capacity unless it has its own rate or medium.
    fn opposite(&self, reverse: &Reverse, carries: Option<RateSchedule>) -> Result<CoreLink, PathError> {
        let under_test = reverse.aqm == "test";
        let carries = carries.unwrap_or_else(|| self.carries.clone());
        let path = format!("{}.reverse", self.path);
        Ok(CoreLink {
            name: format!("{}-reverse", self.name),
            from: self.to,
            to: self.from,
            rate: carries.rates[0].1,
            carries,
            loss: loss(&reverse.loss, &path)?,
            path,
            delay: reverse.delay.unwrap_or(self.delay),
            buffer: reverse.buffer,
            aqm: (!under_test).then(|| reverse.aqm.clone()),
            record: reverse.record || under_test,
            target: reverse.target,
        })
    }
}

/// Resolves the capacity of a link with this `rate` or `channel`, whose table is at `path`; `None` without either.
fn resolve_capacity(
    rate: &Option<Capacity>,
    channel: &Option<Channel>,
    path: &str,
    duration: Span,
    files: &Files,
) -> Result<Option<RateSchedule>, PathError> {
    match (rate, channel) {
        (Some(_), Some(_)) => Err((format!("{path}.channel"), "excludes rate: a medium has its own".into())),
        (Some(rate), None) => resolve(rate, &format!("{path}.rate"), duration, files).map(Some),
        (None, Some(channel)) => {
            channel.check().map_err(|(key, message)| (format!("{path}.channel.{key}"), message))?;
            let mean = Rate::from_bps((channel.mean_bps() + 0.5).max(1.0) as u64);
            let medium = Medium::Channel(channel.clone());
            Ok(Some(RateSchedule { rates: vec![(Instant::ZERO, mean)], outages: Vec::new(), medium }))
        }
        (None, None) => Ok(None),
    }
}

/// Losses of the link at `path`.
pub(crate) fn loss(written: &Option<Losses>, path: &str) -> Result<Option<Loss>, PathError> {
    let Some(Losses(loss)) = written else { return Ok(None) };
    loss.check().map_err(|(key, message)| (format!("{path}.loss.{key}"), message))?;
    Ok((!loss.is_none()).then(|| loss.clone()))
}

fn missing_rate() -> String {
    format!("missing; it must be {}", Capacity::WHAT)
}

/// Limit of a queue.
pub(crate) fn limit(buffer: Buffer) -> Limit {
    match buffer {
        Buffer::Packets(packets) => Limit::packets(packets),
        Buffer::Bytes(bytes) => Limit { packets: u32::MAX, bytes: Bytes(bytes.0) },
    }
}
