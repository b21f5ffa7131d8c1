//! The written part of the network, dumbbell or graph: its nodes, directed links, and the way of each group through it.
//! Hosts and access links come later, one set for each flow.

use aqumen_aqm::{Limit, Network};
use aqumen_units::{Bytes, Rate, Span};

use crate::error::suggestion;
use crate::field::{Buffer, Packets};
use crate::routes::{Edge, route};
use crate::schema::{Access, Group, Reverse, Spec, Topology};

/// A directed link as written.
#[derive(Clone, Debug)]
pub(crate) struct CoreLink {
    pub(crate) name: String,
    /// Dotted path of its table, for messages.
    pub(crate) path: String,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) rate: Rate,
    pub(crate) delay: Span,
    pub(crate) buffer: Buffer,
    /// The SPEC of its AQM; `None` if it is under test.
    pub(crate) aqm: Option<String>,
    pub(crate) record: bool,
    pub(crate) target: Option<Packets>,
}

/// The way of a group.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) access: Option<Access>,
    pub(crate) path: Vec<u32>,
    pub(crate) return_path: Vec<u32>,
}

/// Nodes and links as written, and the ways of the groups.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub(crate) nodes: Vec<String>,
    pub(crate) links: Vec<CoreLink>,
    pub(crate) ways: Vec<Way>,
}

/// A dotted path, and what is wrong there.
pub(crate) type Wrong = (String, String);

impl Core {
    /// The network of `spec`.
    pub(crate) fn new(spec: &Spec) -> Result<Core, Wrong> {
        let mut core = Core { nodes: Vec::new(), links: Vec::new(), ways: Vec::new() };
        match &spec.topology {
            Topology::Dumbbell(dumbbell) => {
                core.nodes = vec!["r1".into(), "r2".into()];
                let bottleneck = &dumbbell.bottleneck;
                let link = CoreLink {
                    name: "bottleneck".into(),
                    path: "topology.bottleneck".into(),
                    from: 0,
                    to: 1,
                    rate: bottleneck.rate,
                    delay: bottleneck.delay,
                    buffer: bottleneck.buffer,
                    aqm: None,
                    record: true,
                    target: None,
                };
                let back = link.opposite(&bottleneck.reverse);
                core.links.extend([link, back]);
            }
            Topology::Graph(graph) => {
                for (i, node) in graph.nodes.iter().enumerate() {
                    if core.nodes.contains(&node.0) {
                        return Err((format!("topology.nodes.{i}"), "there is another node of this name".into()));
                    }
                    core.nodes.push(node.0.clone());
                }
                for (i, written) in graph.links.iter().enumerate() {
                    let path = format!("topology.links.{i}");
                    let (from, to) =
                        (core.node(&path, "from", &written.from.0)?, core.node(&path, "to", &written.to.0)?);
                    if from == to {
                        return Err((format!("{path}.to"), "the link leads to the node it comes from".into()));
                    }
                    if written.one_way && written.reverse != Reverse::default() {
                        return Err((format!("{path}.one_way"), "excludes reverse".into()));
                    }
                    let under_test = written.aqm == "test";
                    let link = CoreLink {
                        name: written.name.0.clone(),
                        path: path.clone(),
                        from,
                        to,
                        rate: written.rate,
                        delay: written.delay,
                        buffer: written.buffer,
                        aqm: (!under_test).then(|| written.aqm.clone()),
                        record: written.record || under_test,
                        target: written.target,
                    };
                    let back = (!written.one_way).then(|| link.opposite(&written.reverse));
                    for link in std::iter::once(link).chain(back) {
                        if core.links.iter().any(|known| known.name == link.name) {
                            let message = format!("there is another link called {}", link.name);
                            return Err((format!("{path}.name"), message));
                        }
                        core.links.push(link);
                    }
                }
            }
        }
        for i in 0..spec.record.links.len() {
            let link = core.link(&format!("record.links.{i}"), &spec.record.links[i].0)?;
            core.links[link].record = true;
        }
        core.ways =
            spec.flows.iter().enumerate().map(|(i, group)| core.way(spec, i, group)).collect::<Result<_, _>>()?;
        Ok(core)
    }

    /// Index of the link called `name`, which stands at `path`.
    pub(crate) fn link(&self, path: &str, name: &str) -> Result<usize, Wrong> {
        self.links.iter().position(|link| link.name == name).ok_or_else(|| {
            let known = suggestion(name, self.links.iter().map(|link| link.name.as_str()));
            (path.into(), format!("no such link{known}"))
        })
    }

    /// Links under test.
    pub(crate) fn under_test(&self) -> impl Iterator<Item = usize> {
        (0..self.links.len()).filter(|i| self.links[*i].aqm.is_none())
    }

    fn node(&self, path: &str, key: &str, name: &str) -> Result<u32, Wrong> {
        self.nodes.iter().position(|node| node == name).map(|i| i as u32).ok_or_else(|| {
            let known = suggestion(name, self.nodes.iter().map(String::as_str));
            (format!("{path}.{key}"), format!("no such node{known}"))
        })
    }

    fn way(&self, spec: &Spec, i: usize, group: &Group) -> Result<Way, Wrong> {
        let at = format!("flows.{i}");
        let end = |key: &str, given: &Option<crate::field::Name>, dumbbell: u32| match (given, &spec.topology) {
            (Some(name), _) => self.node(&at, key, &name.0),
            (None, Topology::Dumbbell(_)) => Ok(dumbbell),
            (None, Topology::Graph(_)) => Err((at.clone(), format!("{key} is missing; in a graph it names a node"))),
        };
        let (from, to) = (end("from", &group.from, 0)?, end("to", &group.to, 1)?);
        if from == to {
            return Err((format!("{at}.to"), "the flows end where they begin".into()));
        }
        let access = group.access.clone().or_else(|| match &spec.topology {
            Topology::Dumbbell(dumbbell) => Some(dumbbell.access.clone()),
            Topology::Graph(graph) => graph.access.clone(),
        });
        if access.is_none() && group.extra_rtt.high > Span::ZERO {
            return Err((format!("{at}.extra_rtt"), "needs access links to add the delay to; give access".into()));
        }
        let edges: Vec<Edge> =
            self.links.iter().map(|link| Edge { from: link.from, to: link.to, delay: link.delay }).collect();
        let name = |node: u32| &self.nodes[node as usize];
        let find = |a: u32, b: u32, what: &str| {
            let lost = || (format!("{at}.to"), format!("no way for {what} from {} to {}", name(a), name(b)));
            route(self.nodes.len(), &edges, a, b).ok_or_else(lost)
        };
        let (path, return_path) = (find(from, to, "data")?, find(to, from, "acknowledgements")?);
        Ok(Way { from, to, access, path, return_path })
    }

    /// The nominal network of link `i`: what the scenario says, else what follows from the flows that cross the link.
    pub(crate) fn nominal(&self, spec: &Spec, i: usize) -> Network {
        let link = &self.links[i];
        let crosses = |way: &Way| way.path.contains(&(i as u32));
        let any = self.ways.iter().any(crosses);
        let (mut flows, mut rtt_s, mut bytes) = (0.0, 0.0, 0.0);
        for (way, group) in self.ways.iter().zip(&spec.flows).filter(|(way, _)| !any || crosses(way)) {
            let count = f64::from(group.count);
            flows += count;
            rtt_s += count * self.base_rtt_s(way, group);
            bytes += count * f64::from(group.transport.config.packet_bytes());
        }
        let given = &spec.nominal;
        let packet_bytes = given.packet.map_or(bytes / flows, |packet| packet.0 as f64);
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
    fn base_rtt_s(&self, way: &Way, group: &Group) -> f64 {
        let links = way.path.iter().chain(&way.return_path);
        let written: u64 = links.map(|link| self.links[*link as usize].delay.as_nanos()).sum();
        let access = way.access.as_ref().map_or(0.0, |access| 4.0 * access.delay.mean_s() + group.extra_rtt.mean_s());
        written as f64 / 1e9 + access
    }
}

impl CoreLink {
    fn opposite(&self, reverse: &Reverse) -> CoreLink {
        let under_test = reverse.aqm == "test";
        CoreLink {
            name: format!("{}-reverse", self.name),
            path: format!("{}.reverse", self.path),
            from: self.to,
            to: self.from,
            rate: reverse.rate.unwrap_or(self.rate),
            delay: reverse.delay.unwrap_or(self.delay),
            buffer: reverse.buffer,
            aqm: (!under_test).then(|| reverse.aqm.clone()),
            record: reverse.record || under_test,
            target: reverse.target,
        }
    }
}

/// The limit of a queue.
pub(crate) fn limit(buffer: Buffer) -> Limit {
    match buffer {
        Buffer::Packets(packets) => Limit::packets(packets),
        Buffer::Bytes(bytes) => Limit { packets: u32::MAX, bytes: Bytes(bytes.0) },
    }
}
