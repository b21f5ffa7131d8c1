//! Interarrival jitter as estimated by an RTP receiver.

/// Estimate of RFC 3550, section 6.4.1: a running mean of the change in transit time between packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    /// Transit time of the previous packet, nanoseconds.
    transit: Option<u64>,
    estimate: f64,
}

impl Jitter {
    /// Updates the estimate with a packet's transit time; both in nanoseconds.
    pub fn update(&mut self, transit: u64) -> f64 {
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
    fn the_estimate_moves_by_a_sixteenth_of_the_change() {
        let mut jitter = Jitter::default();
        // D = 0, 1600, 1600: J = 0, 0, 1600 / 16 = 100, 100 + 1500 / 16 = 193.75.
        let seen = [5_000, 5_000, 6_600, 5_000].map(|transit| jitter.update(transit));
        assert_eq!(seen, [0.0, 0.0, 100.0, 193.75]);
    }

    proptest! {
        /// The estimate never exceeds the largest change, and decays at a constant transit time.
        #[test]
        fn the_estimate_lies_within_the_changes(transits in prop::collection::vec(0u64..1_000_000, 2..50)) {
            let mut jitter = Jitter::default();
            let worst = transits.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().unwrap_or(0) as f64;
            let seen: Vec<f64> = transits.iter().map(|&transit| jitter.update(transit)).collect();
            prop_assert!(seen.iter().all(|&j| (0.0..=worst).contains(&j)));
            let last = *transits.last().unwrap();
            let faded = (0..400).fold(0.0, |_, _| jitter.update(last));
            prop_assert!(faded < 1e-3);
        }
    }
}
