//! Interface of a medium.

use dyn_clone::DynClone;

/// A medium.
pub trait Channel: DynClone + Send {
    /// Returns the first time from `at` on at which the medium can take a packet.
    fn ready(&mut self, at: u64) -> u64;

    /// Sends a packet at a time that `ready` returned.
    fn transmit(&mut self, packet: Request) -> Transmission;

    /// Returns the bits that it could have carried between the edges of the windows.
    fn offered_bits(&mut self) -> Vec<f64>;
}

dyn_clone::clone_trait_object!(Channel);

/// A packet to be sent over a medium.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Start of the transmission, nanoseconds.
    pub start: u64,
    /// Arrival at the queue.
    pub arrived: u64,
    /// Size.
    pub bytes: u32,
}

/// Times of a packet's transmission over a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Time at which the link is free again, after `start`.
    pub end: u64,
    /// Link time that the packet took: its fraction of the frame, slot or aggregate.
    pub airtime: u64,
    /// Reception at the far end of the medium, `end` or later; the propagation delay follows.
    pub received: u64,
    /// The packet was lost.
    pub lost: bool,
}
