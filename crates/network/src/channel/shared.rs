//! A virtual link: neighbours become busy and idle, and the packet in service gets the rate that
//! they leave, moment by moment.

use aqumen_aqm::Draw;
use aqumen_scenario::channel::Shared;
use aqumen_scenario::streams::Stream;

use super::{Accepted, Channel, Offered, Passage, Use, exponential};

pub(super) struct Medium {
    shared: Shared,
    /// Neighbours that are busy.
    busy: u32,
    /// When that changes next.
    change: u64,
    offered: Offered,
    rng: Stream,
}

impl Medium {
    pub(super) fn new(shared: &Shared, offered: Offered, stream: &dyn Fn(Use) -> Stream) -> Self {
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

    /// How often a neighbour becomes busy, per nanosecond.
    fn starting(&self) -> f64 {
        f64::from(self.shared.neighbours - self.busy) / self.shared.mean_off.as_nanos() as f64
    }

    /// How often one becomes idle, per nanosecond.
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

    fn transmit(&mut self, packet: Accepted) -> Passage {
        self.advance(packet.start);
        let (mut now, mut bits) = (packet.start, 8.0 * f64::from(packet.bytes));
        loop {
            let per_ns = self.shared.rate_bps(self.busy) * 1e-9;
            let end = now.saturating_add((bits / per_ns + 0.5) as u64);
            if end <= self.change {
                let end = end.max(packet.start + 1);
                return Passage { end, airtime: end - packet.start, through: end, lost: false };
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
