//! Times of a capture as times of a replay: from 0 on, ascending, without pauses longer than an hour.

/// Conversion of times. Times of a capture are untrusted: a clock that was set leaves hours or centuries between
/// packets.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    speedup: f64,
    /// Times of the first packet and of the latest one, in the capture's time.
    first_ns: Option<i64>,
    latest_ns: i64,
    /// Time since the first packet, pauses shortened.
    since_ns: u64,
    /// Packets with a time before that of the previous packet; offered together with it.
    pub(crate) reordered: u64,
    /// Pauses that were shortened.
    pub(crate) shortened: u64,
}

/// Longest pause between two packets: an hour. A queue is empty by then, and AQM timers need not run for years.
const PAUSE_MAX_NS: u64 = 3_600_000_000_000;

/// Last time of a replay: 146 years. Additions to it do not overflow.
pub(crate) const HORIZON_NS: u64 = 1 << 62;

impl Pace {
    pub(crate) fn new(speedup: f64) -> Self {
        Pace { speedup, first_ns: None, latest_ns: 0, since_ns: 0, reordered: 0, shortened: 0 }
    }

    /// Returns the time at which a packet captured at `at_ns` is offered, nanoseconds from the first.
    #[inline]
    pub(crate) fn at(&mut self, at_ns: i64) -> u64 {
        if self.first_ns.is_none() {
            self.first_ns = Some(at_ns);
            self.latest_ns = at_ns;
        }
        if at_ns < self.latest_ns {
            self.reordered += 1;
        } else {
            let pause = at_ns.abs_diff(self.latest_ns);
            self.shortened += u64::from(pause > PAUSE_MAX_NS);
            self.since_ns = (self.since_ns + pause.min(PAUSE_MAX_NS)).min(HORIZON_NS);
            self.latest_ns = at_ns;
        }
        if self.speedup == 1.0 { self.since_ns } else { self.scaled() }
    }

    /// Rounding keeps the order.
    fn scaled(&self) -> u64 {
        ((self.since_ns as f64 / self.speedup + 0.5) as u64).min(HORIZON_NS)
    }

    /// The first packet's time in the capture, nanoseconds since 1970.
    pub(crate) fn first_ns(&self) -> i64 {
        self.first_ns.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_never_go_back_and_pauses_are_shortened() {
        let mut pace = Pace::new(1.0);
        let hour = PAUSE_MAX_NS as i64;
        let stamps = [1000, 1500, 1400, 1600, 1600 + hour, 1601 + 3 * hour, i64::MIN, i64::MAX];
        let offered: Vec<u64> = stamps.iter().map(|&at_ns| pace.at(at_ns)).collect();
        let h = PAUSE_MAX_NS;
        assert_eq!(offered, [0, 500, 500, 600, 600 + h, 600 + 2 * h, 600 + 2 * h, 600 + 3 * h]);
        assert_eq!((pace.reordered, pace.shortened, pace.first_ns()), (2, 2, 1000));
        let mut fast = Pace::new(4.0);
        assert_eq!([1000, 1010, 1400].map(|at_ns| fast.at(at_ns)), [0, 3, 100]);
    }
}
