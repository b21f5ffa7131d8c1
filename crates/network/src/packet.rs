//! What a network has to know of a packet.

use aqumen_aqm::{Packet, PureAck};
use aqumen_scenario::{Flow, Plan};
use aqumen_units::Ecn;

/// A host's packet, or its handle, as the network sees it.
pub trait Carried {
    /// Size on the wire.
    fn bytes(&self) -> u32;

    /// Its ECN field.
    fn ecn(&self) -> Ecn;

    /// A queue marks it: sets CE.
    fn mark(&mut self);

    /// The same if `marks`. Worth a way of its own where that can be done without a branch: which packets are chosen
    /// nobody can foretell.
    #[inline]
    fn mark_if(&mut self, marks: bool) {
        if marks {
            self.mark();
        }
    }

    /// What a filter of acknowledgements may know of it.
    fn pure_ack(&self) -> Option<PureAck> {
        None
    }
}

/// Whose packet it is, for disciplines that tell flows, hosts and classes apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Tells its flow from others.
    pub flow_hash: u32,
    /// Tells the host that sent it from others.
    pub source_hash: u32,
    /// Tells the host that it goes to from others.
    pub destination_hash: u32,
    /// Its traffic class; zero is the default.
    pub class: u8,
}

/// Class and hosts, source and destination, of each flow of a plan.
#[derive(Clone, Debug)]
pub struct Identities(Vec<(u8, [u32; 2])>);

impl Identity {
    /// What a discipline may know of `packet`.
    #[inline]
    pub fn metadata(&self, packet: &impl Carried) -> Packet {
        Packet {
            bytes: packet.bytes(),
            ecn: packet.ecn(),
            class: self.class,
            segments: 1,
            flow_hash: self.flow_hash,
            source_hash: self.source_hash,
            destination_hash: self.destination_hash,
            ack: packet.pure_ack(),
        }
    }
}

impl Identities {
    /// Those of the flows of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let of_flow = |flow: &Flow| (plan.groups[flow.group as usize].class, [flow.source, flow.destination]);
        Identities(plan.flows.iter().map(of_flow).collect())
    }

    /// Whether there is more than the default class.
    pub fn classes(&self) -> bool {
        self.0.iter().any(|(class, _)| *class != 0)
    }

    /// That of a packet of `flow`, on its way to the flow's destination or `back`. Both ways are one flow: disciplines
    /// that follow Linux sort a packet's addresses before they hash it.
    #[inline]
    pub fn of(&self, flow: u32, back: bool) -> Identity {
        let (class, [source, destination]) = self.0[flow as usize];
        let (from, to) = if back { (destination, source) } else { (source, destination) };
        Identity { flow_hash: flow, source_hash: from, destination_hash: to, class }
    }
}

/// What an AQM of one queue may know of a packet of `flow`, where no class or host is told from others.
#[inline]
pub(crate) fn metadata(packet: &impl Carried, flow: u32) -> Packet {
    Packet {
        bytes: packet.bytes(),
        ecn: packet.ecn(),
        class: 0,
        segments: 1,
        flow_hash: flow,
        source_hash: flow,
        destination_hash: flow,
        ack: None,
    }
}
