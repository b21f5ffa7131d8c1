//! What a network has to know of a packet.

use aqumen_aqm::PureAck;
use aqumen_units::Ecn;

/// A host's packet, or its handle, as the network sees it.
pub trait Carried {
    /// Size on the wire.
    fn bytes(&self) -> u32;

    /// Its ECN field.
    fn ecn(&self) -> Ecn;

    /// A queue marks it: sets CE.
    fn mark(&mut self);

    /// What a filter of acknowledgements may know of it.
    fn pure_ack(&self) -> Option<PureAck> {
        None
    }
}
