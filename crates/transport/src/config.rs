//! Parameters common to all transports, for hosts that do not distinguish between them.

/// The parameters of a transport.
pub trait Config {
    /// Size on the wire of a full data packet (bytes).
    fn packet_bytes(&self) -> u16;

    /// Headers in a data packet (bytes).
    fn header_bytes(&self) -> u16;

    /// Data in a full packet (bytes).
    fn payload_bytes(&self) -> u16 {
        self.packet_bytes() - self.header_bytes()
    }

    /// Whether packets are ECN-capable.
    fn ecn(&self) -> bool {
        false
    }

    /// Whether the sender adapts its rate to congestion. A transport that does not sends only what the application
    /// writes.
    fn adapts(&self) -> bool {
        true
    }

    /// Size on the wire of the sink's usual feedback packet (bytes); 0: no feedback.
    fn ack_bytes(&self) -> u16 {
        0
    }

    /// Largest number of data packets in flight; `None`: no bound.
    fn window_pkts(&self) -> Option<u32> {
        None
    }

    /// Packets that a flow sends at once at its start.
    fn initial_window_pkts(&self) -> u32 {
        1
    }
}
