//! Interarrival jitter as an RTP receiver estimates it.

/// The estimate of RFC 3550, section 6.4.1: a running mean of how much the transit time changes from packet to packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    /// Transit time of the packet before, nanoseconds.
    transit: Option<u64>,
    estimate: f64,
}

impl Jitter {
    /// A packet arrived that was `transit` nanoseconds under way; the estimate after it, nanoseconds.
    pub fn arrived(&mut self, transit: u64) -> f64 {
        if let Some(before) = self.transit.replace(transit) {
            // RFC 3550 section 6.4.1: J(i) = J(i-1) + (|D(i-1,i)| - J(i-1)) / 16.
            self.estimate += (transit.abs_diff(before) as f64 - self.estimate) / 16.0;
        }
        self.estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_estimate_moves_by_a_sixteenth_of_the_surprise() {
        let mut jitter = Jitter::default();
        // D = 0, 1600, 1600: J = 0, 0, 1600 / 16 = 100, 100 + 1500 / 16 = 193.75.
        let seen = [5_000, 5_000, 6_600, 5_000].map(|transit| jitter.arrived(transit));
        assert_eq!(seen, [0.0, 0.0, 100.0, 193.75]);
    }

    proptest! {
        /// It never exceeds the largest change, and a constant transit time lets it fade.
        #[test]
        fn the_estimate_lies_within_the_changes(transits in prop::collection::vec(0u64..1_000_000, 2..50)) {
            let mut jitter = Jitter::default();
            let worst = transits.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().unwrap_or(0) as f64;
            let seen: Vec<f64> = transits.iter().map(|&transit| jitter.arrived(transit)).collect();
            prop_assert!(seen.iter().all(|&j| (0.0..=worst).contains(&j)));
            let last = *transits.last().unwrap();
            let faded = (0..400).fold(0.0, |_, _| jitter.arrived(last));
            prop_assert!(faded < 1e-3);
        }
    }
}
