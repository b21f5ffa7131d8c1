//! Interface to the host's packets: size, ECN field, flow, hosts and class.

use aqumen_aqm::{Packet, PureAck};
use aqumen_scenario::{Flow, Plan};
use aqumen_units::Ecn;

/// A host's packet, or a handle of one.
pub trait WirePacket {
    /// Returns the size on the wire.
    fn bytes(&self) -> u32;

    /// Returns the ECN field.
    fn ecn(&self) -> Ecn;

    /// Sets CE.
    fn mark(&mut self);

    /// Sets CE if `marks`. A branch-free implementation pays, since marks are unpredictable.
    #[inline]
    fn mark_if(&mut self, marks: bool) {
        if marks {
            self.mark();
        }
    }

    /// Returns whether the packet opens a TCP connection.
    fn syn(&self) -> bool {
        false
    }

    /// Returns the fields that an acknowledgement filter reads, if the packet is a pure acknowledgement.
    fn pure_ack(&self) -> Option<PureAck> {
        None
    }
}

/// Flow, hosts and class of a packet, for disciplines that distinguish them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Hash of the flow.
    pub flow_hash: u32,
    /// Hash of the source host.
    pub source_hash: u32,
    /// Hash of the destination host.
    pub destination_hash: u32,
    /// Traffic class; zero is the default.
    pub class: u8,
}

/// Class, source and destination of each flow of a plan.
#[derive(Clone, Debug)]
pub struct Identities(Vec<(u8, [u32; 2])>);

impl Identity {
    /// Returns the fields of `packet` that a discipline reads.
    #[inline]
    pub fn metadata(&self, packet: &impl WirePacket) -> Packet {
        Packet {
            bytes: packet.bytes(),
            ecn: packet.ecn(),
            class: self.class,
            segments: 1,
            flow_hash: self.flow_hash,
            source_hash: self.source_hash,
            destination_hash: self.destination_hash,
            syn: packet.syn(),
            ack: packet.pure_ack(),
        }
    }
}

impl Identities {
    /// Collects the identities of the flows of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let identity = |flow: &Flow| (plan.groups[flow.group as usize].class, [flow.source, flow.destination]);
        Identities(plan.flows.iter().map(identity).collect())
    }

    /// Returns whether any flow has another class than the default.
    pub fn classes(&self) -> bool {
        self.0.iter().any(|(class, _)| *class != 0)
    }

    /// Returns the identity of a packet of `flow`, on the forward path or on the way `back`. Both directions have one
    /// hash: Linux sorts a packet's addresses before it hashes them.
    #[inline]
    pub fn packet(&self, flow: u32, back: bool) -> Identity {
        let (class, [source, destination]) = self.0[flow as usize];
        let (from, to) = if back { (destination, source) } else { (source, destination) };
        Identity { flow_hash: flow, source_hash: from, destination_hash: to, class }
    }
}

/// Returns the fields of a packet of `flow` that an AQM of one queue reads: without class and hosts.
#[inline]
pub(crate) fn metadata(packet: &impl WirePacket, flow: u32) -> Packet {
    Packet {
        bytes: packet.bytes(),
        ecn: packet.ecn(),
        class: 0,
        segments: 1,
        flow_hash: flow,
        source_hash: flow,
        destination_hash: flow,
        syn: packet.syn(),
        ack: None,
    }
}
