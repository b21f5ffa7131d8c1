//! Media with a law of their own: what a transmitter does when its link is not a wire of given rates.
//!
//! A port asks [`Channel::ready`] when the link may take the next packet, and hands it over with [`Channel::transmit`].
//! Both calls come in the order of service with moments that never go back, and what a channel answers depends on them
//! and on its random streams alone, not on when it is asked: a port may ask as soon as it knows the packet, or when the
//! link is free. The radio conditions have streams of their own, so that they do not depend on the traffic.

mod chances;
mod medium;
mod offer;
mod radio;
mod shared;
mod slotted;
mod wifi;

use aqumen_scenario::channel::Channel as Model;
use aqumen_scenario::{Link, Medium};

pub use chances::{Use, exponential};
pub use medium::{Accepted, Channel, Passage};
use offer::Offered;

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
