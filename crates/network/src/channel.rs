//! Media with a law of their own: what a transmitter does when its link is not a wire of given rates.
//!
//! A port asks [`Channel::ready`] when the link may take the next packet, and hands it over with [`Channel::transmit`].
//! Both calls come in the order of service with moments that never go back, and what a channel answers depends on them
//! and on its random streams alone, not on when it is asked: a port may ask as soon as it knows the packet, or when the
//! link is free. The radio conditions have streams of their own, so that they do not depend on the traffic.

mod offer;
mod radio;
mod shared;
mod slotted;
mod wifi;

use aqumen_aqm::Draw;
use aqumen_scenario::channel::Channel as Model;
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_scenario::{Link, Medium};

use offer::Offered;

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

/// The medium of `link`, number `number` of the plan; `None` for a wire. `edges` are those of the windows.
pub fn of_link(link: &Link, seed: u64, number: u32, edges: &[u64]) -> Option<Box<dyn Channel>> {
    let line = link.line.as_ref()?;
    let offered = Offered::new(edges, &line.outages);
    let stream = |use_of: Use| use_of.stream(seed, number);
    let slotted = |slotting| slotted::radio(&slotting, offered.clone(), &stream);
    match &line.medium {
        Medium::Wire => None,
        Medium::Opportunities(trace) => Some(slotted::trace(trace.clone(), edges, &line.outages)),
        Medium::Channel(Model::Wimax(wimax)) => Some(slotted(wimax.slotting())),
        Medium::Channel(Model::Umts(umts)) => Some(slotted(umts.slotting())),
        Medium::Channel(Model::Lte(lte)) => Some(slotted(lte.slotting())),
        Medium::Channel(Model::Wifi(wifi)) => Some(Box::new(wifi::Medium::new(wifi, offered, &stream))),
        Medium::Channel(Model::Shared(shared)) => Some(Box::new(shared::Medium::new(shared, offered, &stream))),
    }
}

/// What a link draws random numbers for; each use has a stream of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Losses on the wire.
    Loss = 0,
    /// Packet by packet: backoff, collisions, blocks in error.
    Access = 1,
    /// The radio channel's level, or who else is busy.
    Level = 2,
    /// Handovers.
    Handover = 3,
}

impl Use {
    /// The stream for this use of link `number`.
    pub fn stream(self, seed: u64, number: u32) -> Stream {
        Stream::new(seed, Kind::Link, (self as u64) << 32 | u64::from(number))
    }
}

/// An exponentially distributed time of the given mean, nanoseconds.
pub fn exponential(rng: &mut Stream, mean_ns: f64) -> f64 {
    -libm::log1p(-rng.uniform()) * mean_ns
}
