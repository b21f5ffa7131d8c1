//! A shared link: neighbours become busy and idle, and the packet in service gets the rate that they leave.

use aqumen_aqm::Draw;
use aqumen_scenario::channel::SharedLink;
use aqumen_scenario::streams::Stream;

use super::medium::{Channel, Request, Transmission};
use super::offered::OfferedCapacity;
use super::random::{Use, exponential};

#[derive(Clone)]
pub(super) struct Medium {
    shared: SharedLink,
    /// Number of busy neighbours.
    busy: u32,
    /// Time at which that number changes next.
    change: u64,
    offered: OfferedCapacity,
    rng: Stream,
}

impl Medium {
    pub(super) fn new(shared: &SharedLink, offered: OfferedCapacity, stream: &dyn Fn(Use) -> Stream) -> Self {
        let mut rng = stream(Use::Level);
        let busy = (0..shared.neighbours).filter(|_| rng.uniform() < shared.activity()).count() as u32;
        let mut medium = Medium { shared: shared.clone(), busy, change: 0, offered, rng };
        medium.change = medium.next_change(0);
        medium
    }

    fn next_change(&mut self, now: u64) -> u64 {
        let rate = self.starting() + self.stopping();
        if rate == 0.0 {
            return u64::MAX;
        }
        now.saturating_add(exponential(&mut self.rng, 1.0 / rate) as u64).saturating_add(1)
    }

    /// Returns the rate at which neighbours become busy, per nanosecond.
    fn starting(&self) -> f64 {
        f64::from(self.shared.neighbours - self.busy) / self.shared.mean_off.as_nanos() as f64
    }

    /// Returns the rate at which neighbours become idle, per nanosecond.
    fn stopping(&self) -> f64 {
        f64::from(self.busy) / self.shared.mean_on.as_nanos() as f64
    }

    fn advance(&mut self, at: u64) {
        while self.change <= at {
            self.offered.advance(self.change, self.shared.rate_bps(self.busy));
            let (starting, stopping) = (self.starting(), self.stopping());
            if self.rng.uniform() * (starting + stopping) < starting {
                self.busy += 1
            } else {
                self.busy -= 1
            }
            self.change = self.next_change(self.change);
        }
    }
}

impl Channel for Medium {
    fn ready(&mut self, at: u64) -> u64 {
        at
    }

    fn transmit(&mut self, packet: Request) -> Transmission {
        self.advance(packet.start);
        let (mut now, mut bits) = (packet.start, 8.0 * f64::from(packet.bytes));
        loop {
            let per_ns = self.shared.rate_bps(self.busy) * 1e-9;
            let end = now.saturating_add((bits / per_ns + 0.5) as u64);
            if end <= self.change {
                let end = end.max(packet.start + 1);
                return Transmission { end, airtime: end - packet.start, received: end, lost: false };
            }
            bits -= per_ns * (self.change - now) as f64;
            now = self.change;
            self.advance(now);
        }
    }

    fn offered_bits(&mut self) -> Vec<f64> {
        let end = self.offered.end();
        self.advance(end);
        self.offered.advance(end, self.shared.rate_bps(self.busy));
        self.offered.pieces()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_scenario::Name;
    use aqumen_scenario::streams::Kind;
    use aqumen_units::{Rate, Span};

    fn medium(neighbours: u32, mean_on: Span, mean_off: Span, edges: &[u64]) -> Medium {
        let (model, rate) = (Name("shared".into()), Rate::from_bps(3_000_000));
        let shared = SharedLink { model, rate, neighbours, mean_on, mean_off };
        Medium::new(&shared, OfferedCapacity::new(edges, &[]), &|use_of: Use| Stream::new(1, Kind::Link, use_of as u64))
    }

    #[test]
    fn without_neighbours_it_is_a_wire_of_the_whole_rate() {
        let mut medium = medium(0, Span::from_secs(1), Span::from_secs(1), &[3_000_000_000]);
        assert_eq!(medium.ready(5), 5);
        // 8000 bits at 3 Mbit/s: 2666666.7 ns.
        let passage = medium.transmit(Request { start: 1000, arrived: 0, bytes: 1000 });
        assert_eq!(passage, Transmission { end: 2_667_667, airtime: 2_666_667, received: 2_667_667, lost: false });
        assert!((medium.offered_bits()[0] - 9e6).abs() < 1e-3);
        // However quick, it sends one packet after the other.
        medium.shared.rate = Rate::from_bps(400_000_000_000);
        assert_eq!(medium.transmit(Request { start: 3_000_000, arrived: 0, bytes: 20 }).end, 3_000_001);
    }

    #[test]
    fn an_always_busy_link_sends_its_offered_capacity() {
        // Neighbours come and go each 10 ms, within each packet of 100 ms and more.
        let edges = [40_000_000_000, 100_000_000_000];
        let mut medium = medium(3, Span::from_millis(30), Span::from_millis(30), &edges);
        let (mut at, mut ends) = (0, Vec::new());
        while at < edges[1] {
            let passage = medium.transmit(Request { start: at, arrived: 0, bytes: 37_500 });
            assert_eq!((passage.airtime, passage.received, passage.lost), (passage.end - at, passage.end, false));
            // 300 kbit at 3 Mbit/s, shared with up to three.
            assert!((100_000_000..=400_000_001).contains(&passage.airtime), "{passage:?}");
            at = passage.end;
            ends.push(at);
        }
        let offered = medium.offered_bits();
        let sent = |from: u64, until: u64| ends.iter().filter(|end| (from..until).contains(*end)).count() as f64 * 3e5;
        for (offered, sent) in offered.iter().zip([sent(0, edges[0]), sent(edges[0], edges[1])]) {
            assert!((offered - sent).abs() <= 3e5, "{offered} {sent}");
        }
        // Each half of the time: 3 Mbit/s (1 - (1/2)^4) / (4 / 2) on average, with a correlation time of 15 ms.
        let mean = (offered[0] + offered[1]) / 100.0;
        assert!((mean / 1.40625e6 - 1.0).abs() < 0.05, "{mean}");
    }
}
