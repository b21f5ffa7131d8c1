//! What the parameters of any transport tell of it: the same questions of each, so that a host
//! need not know which one it is.

/// The parameters of a transport.
pub trait Config {
    /// Size on the wire of a full packet of data, bytes.
    fn packet_bytes(&self) -> u16;

    /// Of which headers, bytes.
    fn header_bytes(&self) -> u16;

    /// Data in a full packet, bytes.
    fn payload_bytes(&self) -> u16 {
        self.packet_bytes() - self.header_bytes()
    }

    /// Whether its packets can be marked instead of dropped.
    fn ecn(&self) -> bool {
        false
    }

    /// Whether it slows down where the network has less room; else it sends what is written, and nothing of its own.
    fn adapts(&self) -> bool {
        true
    }

    /// Size on the wire of what the sink usually sends back, bytes; 0: nothing.
    fn ack_bytes(&self) -> u16 {
        0
    }

    /// Most packets of data that a flow can have under way; `None`: no bound.
    fn window_pkts(&self) -> Option<u32> {
        None
    }

    /// Packets that leave at once at the start of a flow.
    fn initial_window_pkts(&self) -> u32 {
        1
    }
}
