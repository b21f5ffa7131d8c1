//! Delivery rate: how fast segments arrived, one sample for each acknowledgement
//! (draft-cheng-iccrg-delivery-rate-estimation-00).
//!
//! A segment remembers, when it leaves, how many had arrived by then and when the last of them did. When it arrives
//! itself, the segments that arrived in between and the longer of the two intervals (between sends, between
//! acknowledgements) give a rate that neither a burst of sends nor a burst of acknowledgements can inflate.
//!
//! Deviation: the draft's record of a segment lives as long as the segment; ours lives in a queue from the oldest
//! segment outstanding on, and its round trip serves as BBR's sample, also without timestamps.

use alloc::collections::VecDeque;

use aqumen_units::{Instant, Span};

/// What a segment remembers (the `P.` variables).
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Segments that had arrived when it left.
    delivered: u32,
    delivered_at: Instant,
    /// When the segment left that opened this sampling interval.
    first_sent_at: Instant,
    sent_at: Instant,
    limited: bool,
    arrived: bool,
    /// It left more than once: which of the copies arrived nobody knows.
    repeated: bool,
}

/// A sample (the `rs.` variables).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// Segments a second; `None`: the interval was shorter than any round trip.
    pub(super) rate: Option<f64>,
    /// Segments that had arrived when the newest segment acknowledged left.
    pub(super) prior_delivered: u32,
    /// Round trip of the latest segment that left once only.
    pub(super) rtt: Option<Span>,
    /// The application had nothing to send then.
    pub(super) limited: bool,
}

/// Rate sampling of one connection (the `C.` variables).
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    records: VecDeque<Record>,
    /// Number of the segment of the first record.
    first: u32,
    /// Segments that have arrived.
    pub(super) delivered: u32,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Samples are limited by the application until so many have arrived; 0: they are not.
    limited_until: u32,
    /// Of the segments that arrived since the last sample, the one sent with the most delivered.
    newest: Option<Record>,
    /// When the last of them left that left once only.
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

    /// Segment `seq` leaves; nothing was outstanding before, if `idle` (section 3.2).
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
        let place = seq.wrapping_sub(self.first) as usize;
        if seq < self.first {
            return; // acknowledged before: a copy tells nothing
        }
        match self.records.get_mut(place) {
            Some(old) => *old = Record { repeated: true, ..record },
            None => self.records.push_back(record),
        }
    }

    /// Segments `first..end` have arrived (section 3.3).
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

    /// The sample of the segments that arrived since the last one; everything before `una` can be forgotten.
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

    /// The application has nothing more to send, with `in_flight` segments on their way (section 3.4).
    pub(super) fn limit(&mut self, in_flight: u32) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// Whether what is sent now is limited by the application.
    pub(super) fn is_limited(&self) -> bool {
        self.limited_until != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn a_burst_gives_the_rate_at_which_it_was_acknowledged() {
        let mut delivery = Delivery::new();
        // Four segments at once; acknowledged one by one, 10 ms apart, from 100 ms on.
        for seq in 0..4 {
            delivery.on_sent(at(0), seq, seq == 0);
        }
        // The first: 1 segment in the 100 ms since the start, 10 a second.
        delivery.on_arrival(at(100), 0, 1);
        let sample = delivery.sample(at(100), 1, Span::MAX).unwrap();
        assert_eq!((sample.rate, sample.rtt, sample.prior_delivered), (Some(10.0), Some(Span::from_millis(100)), 0));
        delivery.on_sent(at(100), 4, false);
        for seq in 1..4 {
            delivery.on_arrival(at(100 + 10 * u64::from(seq)), seq, seq + 1);
            delivery.sample(at(100 + 10 * u64::from(seq)), seq + 1, Span::MAX).unwrap();
        }
        // Segment 4 left when 1 had arrived, at 100 ms; at 200 ms 5 have: 4 in 100 ms.
        delivery.on_arrival(at(200), 4, 5);
        let sample = delivery.sample(at(200), 5, Span::from_millis(100)).unwrap();
        assert_eq!((sample.rate, sample.prior_delivered), (Some(40.0), 1));
        assert_eq!(delivery.sample(at(200), 5, Span::MAX), None, "nothing new arrived");
    }

    #[test]
    fn acknowledgements_that_come_at_once_do_not_raise_the_rate_above_the_sends() {
        let mut delivery = Delivery::new();
        // One segment each 50 ms; all acknowledged at 300 ms.
        for seq in 0..4 {
            delivery.on_sent(at(50 * u64::from(seq)), seq, seq == 0);
        }
        delivery.on_arrival(at(300), 0, 4);
        // 4 segments; between sends 150 ms, between acknowledgements 300 ms: the longer counts.
        let sample = delivery.sample(at(300), 4, Span::from_millis(150)).unwrap();
        assert!((sample.rate.unwrap() - 4.0 / 0.3).abs() < 1e-9);
        // An interval below the smallest round trip gives none.
        delivery.on_sent(at(300), 4, true);
        delivery.on_arrival(at(310), 4, 5);
        assert_eq!(delivery.sample(at(310), 5, Span::from_millis(150)).unwrap().rate, None);
    }

    #[test]
    fn samples_are_limited_until_what_was_under_way_has_arrived() {
        let mut delivery = Delivery::new();
        delivery.on_sent(at(0), 0, true);
        delivery.limit(1);
        delivery.on_sent(at(5), 1, false);
        delivery.on_arrival(at(10), 0, 1);
        assert!(!delivery.sample(at(10), 1, Span::MAX).unwrap().limited);
        delivery.on_arrival(at(15), 1, 2);
        assert!(delivery.sample(at(15), 2, Span::MAX).unwrap().limited);
        assert!(!delivery.is_limited());
    }
}
