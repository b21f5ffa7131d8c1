//! The network as the engine runs it: ports, and the lanes that lead a flow's packets from port to port.
//!
//! A **lane** is one stretch of a flow's way, from an endpoint or port to the next port or endpoint. The links on it that
//! this flow alone uses have no queue that anybody else could join, so a packet's way through them is computed when it
//! enters the lane (`max(arrival, link free) + size / rate + delay`, exactly what a port would do), without events.

use aqumen_network::measured::edges;
use aqumen_network::port::{Port, Style};
use aqumen_network::{Error, Identities};
use aqumen_scenario::{Group, Link, Plan, Traffic};
use aqumen_units::{Bytes, Rate};

use crate::event::Event;

pub(crate) struct Network {
    pub(crate) ports: Vec<Port<Event>>,
    /// Class and hosts of each flow.
    pub(crate) identities: Identities,
    /// The link of each port, by number in the plan.
    pub(crate) port_links: Vec<u32>,
    pub(crate) lanes: Vec<Lane>,
    /// Private links; a lane owns a run of them.
    pub(crate) hops: Vec<Hop>,
    /// First data lane and first acknowledgement lane of each flow.
    pub(crate) routes: Vec<Route>,
    /// The port of each link of the plan that has one.
    pub(crate) port_of: Vec<Option<u32>>,
    style: Style,
}

/// A flow's lanes: data lanes from `data` on, then acknowledgement lanes from `acks` on.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) data: u32,
    pub(crate) acks: u32,
}

/// One stretch of a flow's way, 32 bytes. A single private link stands in the lane itself: most lanes have one.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Lane {
    /// When the private link is free.
    free_at: u64,
    /// Its propagation delay.
    delay: u32,
    /// Time that it takes for a packet of `usual_bytes`.
    usual_tx: u32,
    /// Number of the port it leads to, or an endpoint.
    target: u32,
    pub(crate) flow: u32,
    /// The lane's private links.
    first_hop: u32,
    /// The size that most packets have, if the lane has one private link; zero, which none has, otherwise.
    usual_bytes: u16,
    hops: Hops,
}

/// How many private links a lane has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hops {
    None,
    /// One, kept in the lane.
    One,
    /// This many, kept in the table.
    Many(u8),
}

/// Where a lane leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Port(u32),
    /// A receiver that answers each segment at once: what it does is computed when the segment enters the lane. Its
    /// acknowledgements leave on the lane that follows.
    PromptReceiver,
    /// A receiver in whose place more happens: it has a timer, or an application.
    Receiver,
    Sender,
    /// Ends that are places by themselves.
    LoneReceiver,
    LoneSender,
    /// The sink of a transport other than TCP.
    AgentSink,
    /// Its source.
    AgentSource,
}

const RECEIVER: u32 = u32::MAX;
const SENDER: u32 = u32::MAX - 1;
const PROMPT_RECEIVER: u32 = u32::MAX - 2;
const AGENT_SINK: u32 = u32::MAX - 3;
const AGENT_SOURCE: u32 = u32::MAX - 4;
const LONE_RECEIVER: u32 = u32::MAX - 5;
const LONE_SENDER: u32 = u32::MAX - 6;

/// A private link.
#[derive(Clone, Copy)]
pub(crate) struct Hop {
    free_at: u64,
    rate: Rate,
    delay: u64,
}

impl Network {
    pub(crate) fn new(plan: &Plan, style: Style) -> Result<Self, Error> {
        let users = users(plan);
        let private: Vec<bool> =
            plan.links.iter().zip(&users).map(|(link, users)| style.collapse && is_private(link, users)).collect();
        let (edges, identities) = (edges(plan), Identities::new(plan));
        let mut ports = Vec::new();
        let mut port_links = Vec::new();
        let mut port_of = vec![None; plan.links.len()];
        for (number, link) in plan.links.iter().enumerate() {
            if private[number] || (users[number].flows == 0 && !link.record) {
                continue;
            }
            port_of[number] = Some(ports.len() as u32);
            port_links.push(number as u32);
            ports.push(Port::new(link, plan.seed, number as u32, style, &edges, identities.classes())?);
        }
        let (lanes, hops, routes) = (Vec::new(), Vec::new(), Vec::new());
        let mut network = Network { ports, identities, port_links, lanes, hops, routes, port_of, style };
        for (number, flow) in plan.flows.iter().enumerate() {
            let group = &plan.groups[flow.group as usize];
            let (packet_bytes, ack_bytes) = (group.transport.packet_bytes(), group.transport.ack_bytes());
            let (sink, source) = match group.transport.tcp() {
                Some(_) if network.is_prompt(group) => (Target::PromptReceiver, Target::Sender),
                Some(_) => (Target::Receiver, Target::Sender),
                None => (Target::AgentSink, Target::AgentSource),
            };
            let data = network.add_lanes(plan, number, &flow.path, packet_bytes, sink);
            let acks = network.add_lanes(plan, number, &flow.return_path, ack_bytes, source);
            network.routes.push(Route { data, acks });
        }
        Ok(network)
    }

    /// Whether what a receiver of `group` does is computed as soon as a segment is on its way to it, which nothing can stop. An
    /// application wants to know when its data arrive, so that they must arrive in an event.
    pub(crate) fn is_prompt(&self, group: &Group) -> bool {
        let answers_at_once = group.transport.tcp().is_some_and(|tcp| tcp.delayed_ack.is_none());
        self.style.collapse && answers_at_once && group.traffic == Traffic::Bulk
    }

    /// Adds the lanes of one direction of a flow, and returns the first.
    fn add_lanes(&mut self, plan: &Plan, flow: usize, path: &[u32], usual_bytes: u16, end: Target) -> u32 {
        let first = self.lanes.len() as u32;
        let mut hops_from = self.hops.len();
        for &link in path {
            match self.port_of[link as usize] {
                Some(port) => {
                    self.add_lane(hops_from, Target::Port(port), flow, usual_bytes);
                    hops_from = self.hops.len();
                }
                None => {
                    let link = &plan.links[link as usize];
                    self.hops.push(Hop { free_at: 0, rate: link.rates[0].1, delay: link.delay.as_nanos() });
                }
            }
        }
        self.add_lane(hops_from, end, flow, usual_bytes);
        first
    }

    fn add_lane(&mut self, hops_from: usize, target: Target, flow: usize, usual_bytes: u16) {
        let hops = match &self.hops[hops_from..] {
            [] => Hops::None,
            [only] if only.fits_lane(usual_bytes) => Hops::One,
            many => Hops::Many(many.len() as u8),
        };
        let first = self.hops.get(hops_from);
        self.lanes.push(Lane {
            free_at: 0,
            delay: first.map_or(0, |hop| hop.delay as u32),
            usual_tx: first.map_or(0, |hop| hop.tx(usual_bytes) as u32),
            target: target.code(),
            flow: flow as u32,
            first_hop: hops_from as u32,
            usual_bytes: if hops == Hops::One { usual_bytes } else { 0 },
            hops,
        });
    }
}

impl Lane {
    /// When a packet of `bytes` that enters at `now` reaches the end.
    #[inline(always)]
    pub(crate) fn cross(&mut self, hops: &mut [Hop], now: u64, bytes: u16) -> u64 {
        if self.usual_bytes == bytes {
            self.free_at = self.free_at.max(now) + self.usual_tx as u64;
            self.free_at + self.delay as u64
        } else {
            self.cross_hops(hops, now, bytes)
        }
    }

    /// When a packet of `bytes` that enters at `now` reaches the end, whatever its size and the lane's links.
    #[inline(never)]
    fn cross_hops(&mut self, hops: &mut [Hop], now: u64, bytes: u16) -> u64 {
        match self.hops {
            Hops::None => now,
            Hops::One => {
                self.free_at = self.free_at.max(now) + hops[self.first_hop as usize].tx(bytes);
                self.free_at + self.delay as u64
            }
            Hops::Many(n) => hops[self.first_hop as usize..][..n as usize].iter_mut().fold(now, |at, hop| {
                hop.free_at = hop.free_at.max(at) + hop.tx(bytes);
                hop.free_at + hop.delay
            }),
        }
    }

    /// The end that it leads to is a place by itself.
    pub(crate) fn end_alone(&mut self) {
        self.target = match self.target() {
            Target::Sender => LONE_SENDER,
            Target::Receiver => LONE_RECEIVER,
            other => other.code(),
        };
    }

    /// The port that it leads to, if it does not lead to an end.
    #[inline(always)]
    pub(crate) fn port(&self) -> Option<u32> {
        (self.target < LONE_SENDER).then_some(self.target)
    }

    #[inline(always)]
    pub(crate) fn target(&self) -> Target {
        match self.target {
            PROMPT_RECEIVER => Target::PromptReceiver,
            RECEIVER => Target::Receiver,
            SENDER => Target::Sender,
            AGENT_SINK => Target::AgentSink,
            AGENT_SOURCE => Target::AgentSource,
            LONE_RECEIVER => Target::LoneReceiver,
            LONE_SENDER => Target::LoneSender,
            port => Target::Port(port),
        }
    }
}

impl Target {
    fn code(self) -> u32 {
        match self {
            Target::Port(port) => port,
            Target::PromptReceiver => PROMPT_RECEIVER,
            Target::Receiver => RECEIVER,
            Target::Sender => SENDER,
            Target::AgentSink => AGENT_SINK,
            Target::AgentSource => AGENT_SOURCE,
            Target::LoneReceiver => LONE_RECEIVER,
            Target::LoneSender => LONE_SENDER,
        }
    }
}

impl Hop {
    /// Whether its times fit the narrower fields of a lane.
    fn fits_lane(&self, usual_bytes: u16) -> bool {
        self.delay <= u32::MAX as u64 && self.tx(usual_bytes) <= u32::MAX as u64
    }

    fn tx(&self, bytes: u16) -> u64 {
        self.rate.time_for(Bytes(bytes as u64)).as_nanos().max(1)
    }
}

/// Who uses a link.
#[derive(Clone, Copy, Default)]
struct Users {
    /// Directions of flows: data and acknowledgements count apart.
    flows: u32,
    /// Most packets that they can have under way.
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

/// Whether a link's queue can be computed without events: one user, a plain queue that can never overflow, one rate,
/// and nobody who wants to see it.
fn is_private(link: &Link, users: &Users) -> bool {
    // Retransmissions can repeat what is under way: twice the window is more than is ever there at once.
    let most = 2 * users.window_pkts;
    let fits = most <= link.limit.packets as u64 && most.saturating_mul(users.largest) <= link.limit.bytes.0;
    users.flows == 1 && link.is_plain() && fits && link.rates.len() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_fills_half_a_cache_line() {
        assert_eq!(size_of::<Lane>(), 32);
    }
}
