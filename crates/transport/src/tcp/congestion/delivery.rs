//! Delivery rate estimation, one sample for each acknowledgement (draft-cheng-iccrg-delivery-rate-estimation-00).
//!
//! At its transmission a segment records the number of delivered segments and the time of the last delivery. At its
//! acknowledgement the segments delivered since, and the longer of the two intervals (between sends, between
//! acknowledgements), give a rate that bursts of sends or acknowledgements cannot inflate.
//!
//! Deviation: records are kept in a queue from the oldest outstanding segment on. They also give BBR's round-trip
//! samples, without timestamps.

use alloc::collections::VecDeque;

use aqumen_units::{Instant, Span};

/// State at the transmission of a segment (the `P.` variables).
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Segments delivered before it.
    delivered: u32,
    delivered_at: Instant,
    /// Sending time of the segment that opened the sampling interval.
    first_sent_at: Instant,
    sent_at: Instant,
    limited: bool,
    arrived: bool,
    /// Whether it was retransmitted, so that its round trip is ambiguous.
    repeated: bool,
}

/// Rate sample (the `rs.` variables).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// Delivery rate (segments/s); `None`: the interval is shorter than the smallest round-trip time.
    pub(super) rate: Option<f64>,
    /// Segments delivered before the transmission of the newest acknowledged segment.
    pub(super) prior_delivered: u32,
    /// Round-trip time of the last acknowledged segment that was sent once.
    pub(super) rtt: Option<Span>,
    /// Whether the sender was limited by the application.
    pub(super) limited: bool,
}

/// Rate estimator of one connection (the `C.` variables).
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    records: VecDeque<Record>,
    /// Sequence number of the first record.
    first: u32,
    /// Delivered segments.
    pub(super) delivered: u32,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Number of deliveries up to which samples are application-limited; 0: they are not.
    limited_until: u32,
    /// Record with the most deliveries among segments that arrived since the last sample.
    newest: Option<Record>,
    /// Last sending time among newly arrived segments that were sent once.
    original_sent_at: Option<Instant>,
}

impl Delivery {
    pub(super) fn new() -> Self {
        Delivery {
            records: VecDeque::new(),
            first: 0,
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            limited_until: 0,
            newest: None,
            original_sent_at: None,
        }
    }

    /// Records the transmission of segment `seq`; `idle`: nothing was outstanding (section 3.2).
    pub(super) fn on_sent(&mut self, now: Instant, seq: u32, idle: bool) {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let record = Record {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            sent_at: now,
            limited: self.limited_until != 0,
            arrived: false,
            repeated: false,
        };
        let index = seq.wrapping_sub(self.first) as usize;
        if seq < self.first {
            return; // a copy of acknowledged data
        }
        match self.records.get_mut(index) {
            Some(old) => *old = Record { repeated: true, ..record },
            None => self.records.push_back(record),
        }
    }

    /// Records the arrival of segments `first..end` (section 3.3).
    pub(super) fn on_arrival(&mut self, now: Instant, first: u32, end: u32) {
        for seq in first.max(self.first)..end {
            let Some(record) = self.records.get_mut((seq - self.first) as usize) else { break };
            if record.arrived {
                continue;
            }
            record.arrived = true;
            self.delivered += 1;
            self.delivered_at = now;
            let record = *record;
            if !record.repeated {
                self.original_sent_at = self.original_sent_at.max(Some(record.sent_at));
            }
            if self.newest.is_none_or(|newest| record.delivered >= newest.delivered) {
                self.first_sent_at = record.sent_at;
                self.newest = Some(record);
            }
        }
    }

    /// Sample of the segments that arrived since the last one; discards records before `una`.
    pub(super) fn sample(&mut self, now: Instant, una: u32, min_rtt: Span) -> Option<Sample> {
        while self.first < una && self.records.pop_front().is_some() {
            self.first += 1;
        }
        if self.limited_until != 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let newest = self.newest.take()?;
        let sending = newest.sent_at.saturating_since(newest.first_sent_at);
        let acking = self.delivered_at.saturating_since(newest.delivered_at);
        let interval = sending.max(acking);
        let usable = interval > Span::ZERO && (min_rtt == Span::MAX || interval >= min_rtt);
        let segments = f64::from(self.delivered - newest.delivered);
        Some(Sample {
            rate: usable.then(|| segments / interval.as_secs_f64()),
            prior_delivered: newest.delivered,
            rtt: self.original_sent_at.take().map(|sent_at| now.saturating_since(sent_at)),
            limited: newest.limited,
        })
    }

    /// Marks the sender as application-limited, with `in_flight` segments in the network (section 3.4).
    pub(super) fn limit(&mut self, in_flight: u32) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// Whether the sender is application-limited.
    pub(super) fn is_limited(&self) -> bool {
        self.limited_until != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    #[test]
    fn a_burst_gives_the_rate_at_which_it_was_acknowledged() {
        let mut delivery = Delivery::new();
        // Four segments at once; acknowledged one by one, 10 ms apart, from 100 ms on.
        for seq in 0..4 {
            delivery.on_sent(ms(0), seq, seq == 0);
        }
        // First acknowledgement: one segment in 100 ms, 10 a second.
        delivery.on_arrival(ms(100), 0, 1);
        let sample = delivery.sample(ms(100), 1, Span::MAX).unwrap();
        assert_eq!((sample.rate, sample.rtt, sample.prior_delivered), (Some(10.0), Some(Span::from_millis(100)), 0));
        delivery.on_sent(ms(100), 4, false);
        for seq in 1..4 {
            delivery.on_arrival(ms(100 + 10 * u64::from(seq)), seq, seq + 1);
            delivery.sample(ms(100 + 10 * u64::from(seq)), seq + 1, Span::MAX).unwrap();
        }
        // Segment 4 is sent after one delivery, at 100 ms; at 200 ms there are five: 4 in 100 ms.
        delivery.on_arrival(ms(200), 4, 5);
        let sample = delivery.sample(ms(200), 5, Span::from_millis(100)).unwrap();
        assert_eq!((sample.rate, sample.prior_delivered), (Some(40.0), 1));
        assert_eq!(delivery.sample(ms(200), 5, Span::MAX), None, "nothing new arrived");
    }

    #[test]
    fn an_acknowledgement_burst_does_not_raise_the_rate_above_the_sends() {
        let mut delivery = Delivery::new();
        // One segment per 50 ms; all acknowledged at 300 ms.
        for seq in 0..4 {
            delivery.on_sent(ms(50 * u64::from(seq)), seq, seq == 0);
        }
        delivery.on_arrival(ms(300), 0, 4);
        // 4 segments; 150 ms between sends, 300 ms between acknowledgements: the longer counts.
        let sample = delivery.sample(ms(300), 4, Span::from_millis(150)).unwrap();
        assert!((sample.rate.unwrap() - 4.0 / 0.3).abs() < 1e-9);
        // An interval below the smallest round-trip time gives no rate.
        delivery.on_sent(ms(300), 4, true);
        delivery.on_arrival(ms(310), 4, 5);
        assert_eq!(delivery.sample(ms(310), 5, Span::from_millis(150)).unwrap().rate, None);
    }

    #[test]
    fn samples_are_limited_until_data_in_flight_has_arrived() {
        let mut delivery = Delivery::new();
        delivery.on_sent(ms(0), 0, true);
        delivery.limit(1);
        delivery.on_sent(ms(5), 1, false);
        delivery.on_arrival(ms(10), 0, 1);
        assert!(!delivery.sample(ms(10), 1, Span::MAX).unwrap().limited);
        delivery.on_arrival(ms(15), 1, 2);
        assert!(delivery.sample(ms(15), 2, Span::MAX).unwrap().limited);
        assert!(!delivery.is_limited());
    }
}
