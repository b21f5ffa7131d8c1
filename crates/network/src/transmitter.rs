//! The transmitter of a link: when a packet goes out, how long that takes, when it reaches the next node.
//!
//! A plain wire needs its rates and its delay. What else a link may do (a medium of its own, delays that change,
//! outages, losses) is in a [`Line`], which plain wires do not have.

use std::collections::VecDeque;

use aqumen_scenario::Link;
use aqumen_units::{Bytes, Rate};

use crate::Losses;
use crate::channel::{self, Accepted, Channel, Use};

/// A packet's way through a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Booking {
    /// When its transmission starts.
    pub(crate) start: u64,
    /// When the link is free again.
    pub(crate) end: u64,
    /// When it reaches the next node.
    pub(crate) reach: u64,
    /// It gets lost after its transmission.
    pub(crate) lost: bool,
}

/// Rates and propagation delay, and what else there is.
pub(crate) struct Transmitter {
    /// Rate from each moment on; never empty.
    rates: Vec<(u64, Rate)>,
    /// Index of the rate in force at the last start of a transmission.
    current: usize,
    /// Index of the rate that the queue discipline was told, and when the next begins.
    announced: usize,
    next_rate_at: u64,
    pub(crate) delay: u64,
    /// The last size asked for and the time it takes at the current rate: packets mostly repeat their size.
    cached: (u32, u64),
    /// Until when the current rate lasts; zero if there is a line to be asked.
    steady_until: u64,
    pub(crate) line: Option<Box<Line>>,
}

/// What a plain wire does not have.
pub(crate) struct Line {
    channel: Option<Box<dyn Channel>>,
    /// From, until.
    outages: Vec<(u64, u64)>,
    /// Outages that are over.
    over: usize,
    /// Propagation delays that begin later.
    delays: Vec<(u64, u64)>,
    begun: usize,
    losses: Option<Losses>,
    /// When the packet before reaches the next node: none overtakes it.
    last_reach: u64,
    /// Of the packets booked but not yet sent: the link's time that each takes, and whether it gets lost.
    booked: VecDeque<(u64, bool)>,
}

impl Transmitter {
    /// The transmitter of `link`, number `number` of the plan; `edges` are those of the windows.
    pub(crate) fn new(link: &Link, seed: u64, number: u32, edges: &[u64]) -> Self {
        let rates: Vec<_> = link.rates.iter().map(|&(from, rate)| (from.as_nanos(), rate)).collect();
        let nanos = |(from, until): &(aqumen_units::Instant, Option<aqumen_units::Instant>)| {
            (from.as_nanos(), until.map_or(u64::MAX, |until| until.as_nanos()))
        };
        let line = link.line.as_ref().map(|line| {
            Box::new(Line {
                channel: channel::of_link(link, seed, number, edges),
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

    /// The rate at `now`, which never goes back, if it is not the one that this said last or that of the start.
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

    /// The rate at `now`.
    pub(crate) fn rate(&self, now: u64) -> Rate {
        self.rates[self.rates.partition_point(|&(from, _)| from <= now).max(1) - 1].1
    }

    /// How long `bytes` take when their transmission starts at `start`, which never goes back.
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
        // Two packets never leave one link at the same nanosecond: a transmission takes at least one.
        let duration = self.rates[self.current].1.time_for(Bytes(bytes as u64)).as_nanos().max(1);
        self.cached = (bytes, duration);
        duration
    }

    /// Sends a packet from `start` on over a plain wire: when its transmission ends.
    #[inline(always)]
    pub(crate) fn send(&mut self, start: u64, bytes: u32) -> u64 {
        debug_assert!(self.line.is_none());
        start + self.duration(bytes, start)
    }

    /// Books a packet that arrived at `arrived` and can go out from `at` on. `None` if it never will.
    #[inline]
    pub(crate) fn book(&mut self, arrived: u64, at: u64, bytes: u32) -> Option<Booking> {
        self.over_wire(at, bytes).map(|(booking, _)| booking).or_else(|| self.book_rarely(arrived, at, bytes))
    }

    /// A packet that goes out at `start` over a plain wire, like most: its way, and how long it takes.
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

    /// The first moment from `at` on at which the link can take a packet; `u64::MAX`: never again.
    #[inline]
    pub(crate) fn ready(&mut self, at: u64) -> u64 {
        self.line.as_mut().map_or(at, |line| line.ready(at))
    }

    /// Sends a packet that arrived at `arrived` from `start` on, a moment that [`ready`](Self::ready) gave. Also says
    /// how much of the link's time it takes.
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
        let (end, airtime, through, spoiled) = match &mut line.channel {
            Some(channel) => {
                let passage = channel.transmit(Accepted { start, arrived, bytes });
                (passage.end, passage.airtime, passage.through, passage.lost)
            }
            None => (start + wire, wire, start + wire, false),
        };
        let lost = line.losses.as_mut().is_some_and(|losses| losses.strikes(start, bytes)) | spoiled;
        let reach = (through + line.delay(end).unwrap_or(delay)).max(line.last_reach + 1);
        if !lost {
            line.last_reach = reach;
        }
        (Booking { start, end, reach, lost }, airtime)
    }

    /// Bits that a medium of its own offered between the edges of the windows.
    pub(crate) fn offered_bits(&mut self) -> Option<Vec<f64>> {
        Some(self.line.as_mut()?.channel.as_mut()?.offered_bits())
    }
}

impl Line {
    fn ready(&mut self, at: u64) -> u64 {
        let mut at = at;
        loop {
            // A link that is down for good: no medium knows a moment after the last.
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

    /// The propagation delay of a transmission that ends at `end`, which never goes back, if
    /// it is not that of the start.
    fn delay(&mut self, end: u64) -> Option<u64> {
        while self.delays.get(self.begun).is_some_and(|&(from, _)| from <= end) {
            self.begun += 1;
        }
        Some(self.delays[self.begun.checked_sub(1)?].1)
    }

    /// The transmission of the packet booked first ends: the link's time that it took, and whether it is lost.
    pub(crate) fn sent(&mut self) -> (u64, bool) {
        self.booked.pop_front().unwrap_or_default()
    }
}
