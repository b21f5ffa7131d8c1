//! Media whose capacity varies by a law of their own: Wi-Fi, LTE, UMTS, WiMAX, shared links, traces.
//!
//! A port asks [`Channel::ready`] for the time at which the link takes the next packet, and sends the packet with
//! [`Channel::transmit`]. Both calls come in the order of service, with times that never go back. The answers depend on
//! these times and on the random streams alone: a port may ask when the packet arrives or when the link is free. Radio
//! conditions have streams of their own, so that they do not depend on the traffic.

mod medium;
mod offered;
mod radio;
mod random;
mod shared;
mod slotted;
mod wifi;

use aqumen_scenario::channel::Channel as Model;
use aqumen_scenario::{Link, Medium};

pub use medium::{Channel, Request, Transmission};
use offered::OfferedCapacity;
pub use random::{Use, exponential};

/// Makes the medium of `link`, number `number` of the plan; `None` for a wire. `edges` are those of the windows.
pub fn for_link(link: &Link, seed: u64, number: u32, edges: &[u64]) -> Option<Box<dyn Channel>> {
    let line = link.line.as_ref()?;
    let offered = OfferedCapacity::new(edges, &line.outages);
    let stream = |use_of: Use| use_of.stream(seed, number);
    let slotted = |slotting| slotted::radio(&slotting, offered.clone(), &stream);
    match &line.medium {
        Medium::Wire => None,
        Medium::Opportunities(trace) => Some(slotted::trace(trace.clone(), edges, &line.outages)),
        Medium::Channel(Model::Wimax(wimax)) => Some(slotted(wimax.slotting())),
        Medium::Channel(Model::Umts(umts)) => Some(slotted(umts.slotting())),
        Medium::Channel(Model::Lte(lte)) => Some(slotted(lte.slotting())),
        Medium::Channel(Model::Wifi(wifi)) => Some(Box::new(wifi::Medium::new(wifi, offered, &stream))),
        Medium::Channel(Model::SharedLink(shared)) => Some(Box::new(shared::Medium::new(shared, offered, &stream))),
    }
}
