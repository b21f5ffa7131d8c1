//! The network of a plan as the engine runs it: ports where flows share a queue, and the path legs between them.

use aqumen_network::measurement::{edges, groups_at};
use aqumen_network::port::{Port, Style};
use aqumen_network::{Error, Identities};
use aqumen_scenario::{Flow, Group, Link, Plan};

use crate::event::Event;
use crate::paths::{Paths, Target};

#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) ports: Vec<Port<Event>>,
    /// Class and hosts of each flow.
    pub(crate) identities: Identities,
    /// Number of each port's link in the plan.
    pub(crate) port_links: Vec<u32>,
    pub(crate) paths: Paths,
    /// Port of each link of the plan, if it has one.
    pub(crate) port_of: Vec<Option<u32>>,
    /// Inline port of each link of the plan, if it has one.
    passed_of: Vec<Option<u32>>,
    style: Style,
}

impl Network {
    /// Builds the network of `plan`. `traced`: all links that can overflow get ports, so that a packet trace shows
    /// them.
    pub(crate) fn new(plan: &Plan, style: Style, traced: bool) -> Result<Self, Error> {
        let users = users(plan);
        let is_private = |(link, users): (&Link, &Users)| {
            style.collapse && is_private(link, users) && !(traced && users.can_overflow(link))
        };
        let private: Vec<bool> = plan.links.iter().zip(&users).map(is_private).collect();
        let (edges, identities) = (edges(plan), Identities::new(plan));
        let classes = identities.classes();
        let may_pass = style.collapse && !style.served && !traced;
        let passes: Vec<bool> = arrive_in_order(plan).into_iter().map(|in_order| in_order && may_pass).collect();
        let (mut ports, mut passed) = (Vec::new(), Vec::new());
        let mut port_links = Vec::new();
        let (mut port_of, mut passed_of) = (vec![None; plan.links.len()], vec![None; plan.links.len()]);
        for (number, link) in plan.links.iter().enumerate() {
            if private[number] || (users[number].flows == 0 && !link.record) {
                continue;
            }
            let mut port = match Port::new(link, plan.seed, number as u32, style, &edges, classes)? {
                Port::Plain(port) if passes[number] => {
                    passed_of[number] = Some(passed.len() as u32);
                    passed.push(*port);
                    continue;
                }
                port => port,
            };
            port_of[number] = Some(ports.len() as u32);
            port_links.push(number as u32);
            if link.record {
                port.separate_groups(&groups_at(plan, number as u32));
            }
            ports.push(port);
        }
        // A flow has one leg more each way than it crosses ports.
        let is_port = |&&link: &&u32| port_of[link as usize].or(passed_of[link as usize]).is_some();
        let ports_on = |path: &[u32]| path.iter().filter(is_port).count();
        let lanes_of = |flow: &Flow| ports_on(&flow.path) + ports_on(&flow.return_path) + 2;
        let most = plan.flows.iter().map(lanes_of).max().unwrap_or(0);
        let paths = Paths::new(plan.flows.len(), most, passed);
        let mut network = Network { ports, identities, port_links, paths, port_of, passed_of, style };
        for (number, flow) in plan.flows.iter().enumerate() {
            let group = &plan.groups[flow.group as usize];
            let (packet_bytes, ack_bytes) = (group.transport.packet_bytes(), group.transport.ack_bytes());
            let (sink, source) = match group.transport.tcp() {
                Some(_) if network.is_inline(group) => (Target::InlineReceiver, Target::Sender),
                Some(_) => (Target::Receiver, Target::Sender),
                None => (Target::AgentSink, Target::AgentSource),
            };
            let first = network.paths.first_of(number as u32);
            let acks = network.set_legs((plan, &users), first, &flow.path, packet_bytes, sink);
            let end = network.set_legs((plan, &users), acks, &flow.return_path, ack_bytes, source);
            network.paths.add_route(acks, end);
        }
        Ok(network)
    }

    /// Returns whether receivers of `group` are inline: computed when a segment enters its last leg. An application
    /// needs deliveries as events, so its receivers are not inline.
    pub(crate) fn is_inline(&self, group: &Group) -> bool {
        let answers_at_once = group.transport.tcp().is_some_and(|tcp| tcp.delayed_ack.is_none());
        self.style.collapse && answers_at_once && !group.traffic.has_requests()
    }

    /// Sets the legs of one direction of a flow from `leg` on, and returns the leg after the last.
    fn set_legs(
        &mut self,
        (plan, users): (&Plan, &[Users]),
        leg: u32,
        path: &[u32],
        usual_bytes: u16,
        end: Target,
    ) -> u32 {
        let (mut leg, mut hops) = (leg, Vec::new());
        for &link in path {
            let port = self.port_of[link as usize].map(Target::Port);
            match port.or(self.passed_of[link as usize].map(Target::Passed)) {
                Some(port) => {
                    self.paths.set(leg, &hops, port, usual_bytes);
                    hops.clear();
                    leg += 1;
                }
                None => {
                    let (link, users) = (&plan.links[link as usize], &users[link as usize]);
                    let limit = users.can_overflow(link).then_some(link.limit);
                    hops.push(self.paths.hop(link.rates[0].1, link.delay, limit));
                }
            }
        }
        self.paths.set(leg, &hops, end, usual_bytes);
        leg + 1
    }
}

/// Returns for each link whether all its packets come from one other link or one endpoint, and so arrive in the order
/// in which they were sent.
fn arrive_in_order(plan: &Plan) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Origin {
        Link(u32),
        End { flow: usize, back: bool },
    }
    let mut origins = vec![None; plan.links.len()];
    let mut in_order = vec![true; plan.links.len()];
    for (number, flow) in plan.flows.iter().enumerate() {
        for (path, back) in [(&flow.path, false), (&flow.return_path, true)] {
            let mut before = Origin::End { flow: number, back };
            for &link in path {
                in_order[link as usize] &= *origins[link as usize].get_or_insert(before) == before;
                before = Origin::Link(link);
            }
        }
    }
    in_order
}

/// Users of a link.
#[derive(Clone, Copy, Default)]
struct Users {
    /// Number of flow directions: data and acknowledgements count separately.
    flows: u32,
    /// Most packets that they can have in flight.
    window_pkts: u64,
    /// Largest packet, bytes.
    largest: u64,
}

fn users(plan: &Plan) -> Vec<Users> {
    let mut users = vec![Users::default(); plan.links.len()];
    for flow in &plan.flows {
        let transport = &plan.groups[flow.group as usize].transport;
        for (path, bytes) in [(&flow.path, transport.packet_bytes()), (&flow.return_path, transport.ack_bytes())] {
            for &link in path {
                let users = &mut users[link as usize];
                users.flows += 1;
                users.window_pkts += transport.window_pkts().unwrap_or(u32::MAX) as u64;
                users.largest = users.largest.max(bytes as u64);
            }
        }
    }
    users
}

impl Users {
    /// Returns whether the buffer of `link` can overflow.
    fn can_overflow(&self, link: &Link) -> bool {
        // Retransmissions can repeat packets in flight: at most twice the window is in flight.
        let most = 2 * self.window_pkts;
        most > u64::from(link.limit.packets) || most.saturating_mul(self.largest) > link.limit.bytes.0
    }
}

/// Returns whether a link's queue can be computed without events: one user, a plain queue, one rate, not recorded.
fn is_private(link: &Link, users: &Users) -> bool {
    users.flows == 1 && link.is_plain() && link.rates.len() == 1
}

#[cfg(test)]
mod tests {
    use aqumen_scenario::Scenario;

    use super::*;

    #[test]
    fn a_link_overflows_where_twice_the_windows_of_its_users_find_no_room() {
        // Packets of 1000 bytes in windows of 10: each of the flows may have 20 at the bottleneck.
        let overflows = |buffer: &str, count: u32| {
            let text = format!(
                "name = \"room\"\nduration = \"1s\"\n[topology]\npreset = \"dumbbell\"\n\
                 bottleneck = {{ rate = \"8Mbit\", delay = \"20ms\", buffer = \"{buffer}\" }}\n\
                 access = {{ rate = \"80Mbit\", delay = \"4ms\" }}\n[[flows]]\nname = \"few\"\ncount = {count}\n\
                 transport = {{ preset = \"ns2\", packet = \"1000B\", receive_window = \"10pkt\" }}\n"
            );
            let plan = Scenario::parse(&text, "room").unwrap().plan(1, None).unwrap();
            let bottleneck = plan.links.iter().position(|link| link.record).unwrap();
            users(&plan)[bottleneck].can_overflow(&plan.links[bottleneck])
        };
        let one = ["19pkt", "20pkt", "19999B", "20kB"].map(|buffer| overflows(buffer, 1));
        assert_eq!(one, [true, false, true, false]);
        assert_eq!(["40pkt", "59pkt", "60pkt"].map(|buffer| overflows(buffer, 3)), [true, true, false]);
    }
}
