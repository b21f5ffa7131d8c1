//! Capacity that a medium offers: the integral of its rate over each piece between the edges of the windows.

use aqumen_units::Instant;

/// Bits offered in each piece. Time advances with each call.
#[derive(Clone, Debug)]
pub(super) struct OfferedCapacity {
    /// Edges after `now`, the last of them first.
    edges: Vec<u64>,
    /// Outages in order: beginning and end.
    outages: Vec<(u64, u64)>,
    /// Number of the first outage that is not over.
    next_outage: usize,
    now: u64,
    bits: f64,
    pieces: Vec<f64>,
}

impl OfferedCapacity {
    pub(super) fn new(edges: &[u64], outages: &[(Instant, Option<Instant>)]) -> Self {
        let nanos = |at: &Option<Instant>| at.map_or(u64::MAX, Instant::as_nanos);
        OfferedCapacity {
            edges: edges.iter().rev().copied().collect(),
            outages: outages.iter().map(|(from, until)| (from.as_nanos(), nanos(until))).collect(),
            next_outage: 0,
            now: 0,
            bits: 0.0,
            pieces: Vec::with_capacity(edges.len()),
        }
    }

    /// Adds a capacity of `bps` from `now` to `until`.
    pub(super) fn advance(&mut self, until: u64, bps: f64) {
        while self.now < until {
            let Some(&edge) = self.edges.last() else { return };
            let to = until.min(edge);
            self.bits += bps * (to - self.now - self.down(self.now, to)) as f64 * 1e-9;
            self.now = to;
            if to == edge {
                self.edges.pop();
                self.pieces.push(std::mem::take(&mut self.bits));
            }
        }
    }

    /// Returns how long the link is down between two times. Calls are in the order of time.
    fn down(&mut self, from: u64, to: u64) -> u64 {
        let mut sum = 0;
        while let Some(&(down, up)) = self.outages.get(self.next_outage) {
            sum += up.min(to).saturating_sub(down.max(from));
            if up > to {
                break;
            }
            self.next_outage += 1;
        }
        sum
    }

    /// Returns the last edge; zero if all have passed.
    pub(super) fn end(&self) -> u64 {
        self.edges.first().copied().unwrap_or(0)
    }

    /// Returns the complete pieces.
    pub(super) fn pieces(&self) -> Vec<f64> {
        self.pieces.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_divided_at_the_edges_and_outages_offer_nothing() {
        let at = |secs: u64| Instant::from_nanos(secs * 1_000_000_000);
        let edges = [10, 20, 30].map(|secs| at(secs).as_nanos());
        let mut offered = OfferedCapacity::new(&edges, &[(at(8), Some(at(12))), (at(28), None)]);
        offered.advance(at(15).as_nanos(), 100.0);
        assert_eq!(offered.end(), at(30).as_nanos());
        offered.advance(at(40).as_nanos(), 10.0);
        // 8 s of 100; 3 s of 100 and 5 s of 10; 8 s of 10.
        assert_eq!(offered.pieces(), [800.0, 350.0, 80.0]);
    }
}
