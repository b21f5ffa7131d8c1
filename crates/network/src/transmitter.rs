//! The transmitter of a link: start and duration of each transmission, and arrival at the next node.
//!
//! A plain wire has rates and a delay. A [`Line`] adds a medium, changing delays, outages and losses.

use std::collections::VecDeque;

use aqumen_scenario::Link;
use aqumen_scenario::streams::Stream;
use aqumen_units::{Bytes, Rate};

use crate::Losses;
use crate::channel::{self, Channel, Request, Use};

/// Times of a packet's transmission over a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Booking {
    /// Start of the transmission.
    pub(crate) start: u64,
    /// Time at which the link is free again.
    pub(crate) end: u64,
    /// Arrival at the next node.
    pub(crate) reach: u64,
    /// The packet is lost after its transmission.
    pub(crate) lost: bool,
}

/// Transmitter of a link.
#[derive(Clone)]
pub(crate) struct Transmitter {
    /// Rates with the time from which each applies; never empty.
    rates: Vec<(u64, Rate)>,
    /// Index of the rate at the last start of a transmission.
    current: usize,
    /// Index of the rate last reported to the queue discipline.
    announced: usize,
    /// Time at which the next rate begins.
    next_rate_at: u64,
    pub(crate) delay: u64,
    /// Last packet size and its duration at the current rate: sizes mostly repeat.
    cached: (u32, u64),
    /// End of the current rate; zero if there is a line.
    steady_until: u64,
    pub(crate) line: Option<Box<Line>>,
}

/// Properties of a link that is more than a plain wire.
#[derive(Clone)]
pub(crate) struct Line {
    channel: Option<Box<dyn Channel>>,
    /// Beginning and end of each outage.
    outages: Vec<(u64, u64)>,
    /// Number of outages that are over.
    over: usize,
    /// Propagation delays with the time from which each applies.
    delays: Vec<(u64, u64)>,
    begun: usize,
    losses: Option<Losses>,
    /// Arrival of the previous packet at the next node: packets do not overtake.
    last_reach: u64,
    /// Link time of each packet booked but not yet sent, and whether it is lost.
    booked: VecDeque<(u64, bool)>,
}

impl Transmitter {
    /// Makes the transmitter of `link`, number `number` of the plan; `edges` are those of the windows.
    pub(crate) fn new(link: &Link, seed: u64, number: u32, edges: &[u64]) -> Self {
        let rates: Vec<_> = link.rates.iter().map(|&(from, rate)| (from.as_nanos(), rate)).collect();
        let nanos = |(from, until): &(aqumen_units::Instant, Option<aqumen_units::Instant>)| {
            (from.as_nanos(), until.map_or(u64::MAX, |until| until.as_nanos()))
        };
        let line = link.line.as_ref().map(|line| {
            Box::new(Line {
                channel: channel::for_link(link, seed, number, edges),
                outages: line.outages.iter().map(nanos).collect(),
                over: 0,
                delays: line.delays.iter().map(|(at, delay)| (at.as_nanos(), delay.as_nanos())).collect(),
                begun: 0,
                losses: (!line.losses.is_empty()).then(|| Losses::new(&line.losses, Use::Loss.stream(seed, number))),
                last_reach: 0,
                booked: VecDeque::new(),
            })
        });
        Transmitter {
            current: 0,
            announced: 0,
            next_rate_at: rates.get(1).map_or(u64::MAX, |&(from, _)| from),
            rates,
            delay: link.delay.as_nanos(),
            cached: (0, 0),
            steady_until: 0,
            line,
        }
    }

    /// Returns the rate at `now` if it has changed since the last call. Calls are in the order of time.
    #[inline(always)]
    pub(crate) fn new_rate(&mut self, now: u64) -> Option<Rate> {
        if now < self.next_rate_at { None } else { self.next_rate(now) }
    }

    #[cold]
    fn next_rate(&mut self, now: u64) -> Option<Rate> {
        let mut announced = None;
        while self.next_rate_at <= now
            && let Some(&(_, rate)) = self.rates.get(self.announced + 1)
        {
            self.announced += 1;
            announced = Some(rate);
            self.next_rate_at = self.rates.get(self.announced + 1).map_or(u64::MAX, |&(from, _)| from);
        }
        announced
    }

    /// Returns the rate at `now`.
    pub(crate) fn rate(&self, now: u64) -> Rate {
        self.rates[self.rates.partition_point(|&(from, _)| from <= now).max(1) - 1].1
    }

    /// Returns the duration of a transmission of `bytes` that starts at `start`. Calls are in the order of time.
    #[inline]
    pub(crate) fn duration(&mut self, bytes: u32, start: u64) -> u64 {
        if start < self.steady_until && self.cached.0 == bytes { self.cached.1 } else { self.renew(bytes, start) }
    }

    fn renew(&mut self, bytes: u32, start: u64) -> u64 {
        while self.rates.get(self.current + 1).is_some_and(|&(from, _)| from <= start) {
            self.current += 1;
        }
        if self.line.is_none() {
            self.steady_until = self.rates.get(self.current + 1).map_or(u64::MAX, |&(from, _)| from);
        }
        // A transmission takes at least a nanosecond, so that no two packets leave a link at once.
        let duration = self.rates[self.current].1.time_for(Bytes(bytes as u64)).as_nanos().max(1);
        self.cached = (bytes, duration);
        duration
    }

    /// Sends a packet from `start` on over a plain wire; returns the end of its transmission.
    #[inline(always)]
    pub(crate) fn send(&mut self, start: u64, bytes: u32) -> u64 {
        debug_assert!(self.line.is_none());
        start + self.duration(bytes, start)
    }

    /// Books a packet that arrived at `arrived` and can be sent from `at` on. `None` if the link never works again.
    #[inline]
    pub(crate) fn book(&mut self, arrived: u64, at: u64, bytes: u32) -> Option<Booking> {
        self.over_wire(at, bytes).map(|(booking, _)| booking).or_else(|| self.book_rarely(arrived, at, bytes))
    }

    /// Returns booking and duration of a packet sent at `start`, where the cached duration applies.
    #[inline(always)]
    fn over_wire(&self, start: u64, bytes: u32) -> Option<(Booking, u64)> {
        let (known_bytes, duration) = self.cached;
        (start < self.steady_until && known_bytes == bytes).then(|| {
            let end = start + duration;
            (Booking { start, end, reach: end + self.delay, lost: false }, duration)
        })
    }

    #[inline(never)]
    fn book_rarely(&mut self, arrived: u64, at: u64, bytes: u32) -> Option<Booking> {
        let start = self.ready(at);
        if start == u64::MAX {
            return None;
        }
        let (booking, airtime) = self.transmit_rarely(arrived, start, bytes);
        if let Some(line) = &mut self.line {
            line.booked.push_back((airtime, booking.lost));
        }
        Some(booking)
    }

    /// Returns the first time from `at` on at which the link can take a packet; `u64::MAX`: never again.
    #[inline]
    pub(crate) fn ready(&mut self, at: u64) -> u64 {
        self.line.as_mut().map_or(at, |line| line.ready(at))
    }

    /// Sends a packet that arrived at `arrived` at `start`, a time that [`ready`](Self::ready) returned. Also returns
    /// the link time that it takes.
    #[inline]
    pub(crate) fn transmit(&mut self, arrived: u64, start: u64, bytes: u32) -> (Booking, u64) {
        self.over_wire(start, bytes).unwrap_or_else(|| self.transmit_rarely(arrived, start, bytes))
    }

    #[inline(never)]
    fn transmit_rarely(&mut self, arrived: u64, start: u64, bytes: u32) -> (Booking, u64) {
        let wire = self.duration(bytes, start);
        let delay = self.delay;
        let Some(line) = &mut self.line else {
            let end = start + wire;
            return (Booking { start, end, reach: end + delay, lost: false }, wire);
        };
        let (end, airtime, received, spoiled) = match &mut line.channel {
            Some(channel) => {
                let sent = channel.transmit(Request { start, arrived, bytes });
                (sent.end, sent.airtime, sent.received, sent.lost)
            }
            None => (start + wire, wire, start + wire, false),
        };
        let lost = line.losses.as_mut().is_some_and(|losses| losses.lose(start, bytes)) | spoiled;
        let reach = (received + line.delay(end).unwrap_or(delay)).max(line.last_reach + 1);
        if !lost {
            line.last_reach = reach;
        }
        (Booking { start, end, reach, lost }, airtime)
    }

    /// Draws losses from `rng` from now on. The conditions of a medium stay.
    pub(crate) fn reseed(&mut self, rng: Stream) {
        if let Some(losses) = self.line.as_mut().and_then(|line| line.losses.as_mut()) {
            losses.reseed(rng);
        }
    }

    /// Returns the bits that the medium offered between the edges of the windows.
    pub(crate) fn offered_bits(&mut self) -> Option<Vec<f64>> {
        Some(self.line.as_mut()?.channel.as_mut()?.offered_bits())
    }
}

impl Line {
    fn ready(&mut self, at: u64) -> u64 {
        let mut at = at;
        loop {
            // The link is down for good.
            if at == u64::MAX {
                return at;
            }
            while self.outages.get(self.over).is_some_and(|&(_, until)| until <= at) {
                self.over += 1;
            }
            if let Some(&(from, until)) = self.outages.get(self.over)
                && from <= at
            {
                if until == u64::MAX {
                    return u64::MAX;
                }
                at = until;
            }
            match &mut self.channel {
                None => return at,
                Some(channel) => match channel.ready(at) {
                    ready if ready == at => return at,
                    later => at = later,
                },
            }
        }
    }

    /// Returns the propagation delay of a transmission that ends at `end`, if it has changed since the start.
    fn delay(&mut self, end: u64) -> Option<u64> {
        while self.delays.get(self.begun).is_some_and(|&(from, _)| from <= end) {
            self.begun += 1;
        }
        Some(self.delays[self.begun.checked_sub(1)?].1)
    }

    /// Ends the transmission of the packet booked first; returns its link time and whether it is lost.
    pub(crate) fn sent(&mut self) -> (u64, bool) {
        self.booked.pop_front().unwrap_or_default()
    }
}
