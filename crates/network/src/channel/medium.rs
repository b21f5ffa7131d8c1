//! What a medium is asked, and what it answers.

/// A medium.
pub trait Channel: Send {
    /// The first moment from `at` on at which it can take a packet.
    fn ready(&mut self, at: u64) -> u64;

    /// It takes `packet`, at a moment that `ready` gave.
    fn transmit(&mut self, packet: Accepted) -> Passage;

    /// Bits that it could have carried between the edges of the windows, up to the last edge.
    fn offered_bits(&mut self) -> Vec<f64>;
}

/// A packet that a medium takes from the queue.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    /// When, nanoseconds.
    pub start: u64,
    /// When it arrived at the queue.
    pub arrived: u64,
    /// Its size.
    pub bytes: u32,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When the link is free again, after `start`.
    pub end: u64,
    /// How much of the link's time it took: its share of what it went out with.
    pub airtime: u64,
    /// When it comes off the medium, `end` or later; the propagation delay follows.
    pub through: u64,
    /// It got lost on the way.
    pub lost: bool,
}
