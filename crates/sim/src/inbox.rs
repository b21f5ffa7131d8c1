//! An inbox: what will happen at one place, sorted roughly by time into windows of equal length.
//!
//! Within a window the order is that in which things were posted; who opens it puts them into the order that he needs.

use crate::event::Event;

/// What has a moment, nanoseconds.
pub(crate) trait Moment: Copy {
    fn at(&self) -> u64;
}

/// A moment, and what it concerns.
impl Moment for (u64, u32) {
    #[inline]
    fn at(&self) -> u64 {
        self.0
    }
}

impl Moment for Event {
    #[inline]
    fn at(&self) -> u64 {
        self.at
    }
}

pub(crate) struct Inbox<T> {
    /// A window is 2^width_bits nanoseconds long.
    width_bits: u32,
    /// A ring of windows; that of the present window holds what was posted since it was opened.
    windows: Vec<Vec<T>>,
    mask: u64,
    /// Number of the window that is open.
    present: u64,
    /// The first window that is not in the ring, and what lies there or later, as it came.
    limit: u64,
    far: Vec<T>,
    /// An empty window's memory, for the next that begins to fill: what is written lies in the cache.
    spare: Vec<Vec<T>>,
}

impl<T: Moment> Inbox<T> {
    /// An inbox with windows of 2^`width_bits` nanoseconds, most of what is posted less than `horizon_ns` ahead.
    pub(crate) fn new(width_bits: u32, horizon_ns: u64) -> Self {
        const MAX_WINDOWS: u64 = 1 << 12;
        // Twice as many, so that it is enough to look through what is far once in half a turn.
        let windows = (2 * (horizon_ns >> width_bits) + 4).next_power_of_two().min(MAX_WINDOWS);
        Inbox {
            width_bits,
            windows: (0..windows).map(|_| Vec::new()).collect(),
            mask: windows - 1,
            present: 0,
            limit: windows,
            far: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Posts `item`, which lies in the present window or later.
    #[inline(always)]
    pub(crate) fn post(&mut self, item: T) {
        let window = item.at() >> self.width_bits;
        debug_assert!(window >= self.present, "a message to the past");
        if window >= self.limit {
            return self.post_far(item);
        }
        let bucket = &mut self.windows[(window & self.mask) as usize];
        if bucket.len() == bucket.capacity() {
            grow(bucket, &mut self.spare);
        }
        bucket.push(item);
    }

    #[cold]
    #[inline(never)]
    fn post_far(&mut self, item: T) {
        self.far.push(item);
    }

    /// Opens `window`, the one after the present one or the first, and puts what lies in it at the end of `into`.
    pub(crate) fn open(&mut self, window: u64, into: &mut Vec<T>) {
        self.present = window;
        if window + self.mask / 2 >= self.limit {
            // Before anything can be posted to the windows that come into reach: what came first stays first.
            self.limit = window + self.mask + 1;
            std::mem::take(&mut self.far).into_iter().for_each(|item| self.post(item));
        }
        self.take(into);
    }

    /// Whether nothing lies in the present window.
    pub(crate) fn is_idle(&self) -> bool {
        self.windows[(self.present & self.mask) as usize].is_empty()
    }

    /// Puts what lies in the present window at the end of `into`.
    pub(crate) fn take(&mut self, into: &mut Vec<T>) {
        let bucket = &mut self.windows[(self.present & self.mask) as usize];
        if into.is_empty() {
            std::mem::swap(into, bucket);
        } else {
            into.append(bucket);
        }
        if bucket.capacity() > 0 {
            self.spare.push(std::mem::take(bucket));
        }
    }
}

/// Makes room in a full window.
#[cold]
#[inline(never)]
fn grow<T>(bucket: &mut Vec<T>, spare: &mut Vec<Vec<T>>) {
    match spare.pop() {
        Some(room) if bucket.capacity() == 0 => *bucket = room,
        other => spare.extend(other),
    }
    bucket.reserve(8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_comes_in_its_window_in_the_order_of_posting() {
        // Windows of 16 ns, a ring of 8: 15 lies in window 0, 16 to 31 in window 1, 1000 in window 62, far beyond.
        let mut inbox = Inbox::new(4, 32);
        let items = [(31, 0), (15, 1), (1000, 2), (16, 3), (31, 4), (1001, 5)];
        items.iter().for_each(|&item| inbox.post(item));
        let mut open = |window| {
            let mut seen = Vec::new();
            inbox.open(window, &mut seen);
            if window == 60 {
                inbox.post((1000, 6));
            }
            seen
        };
        let seen: Vec<_> = (0..64).map(&mut open).collect();
        assert_eq!((&seen[0][..], &seen[1][..]), (&[(15, 1)][..], &[(31, 0), (16, 3), (31, 4)][..]));
        assert_eq!(seen[62], [(1000, 2), (1001, 5), (1000, 6)]);
        assert_eq!(seen.iter().map(Vec::len).sum::<usize>(), 7);
    }

    #[test]
    fn what_is_posted_to_the_open_window_is_taken_from_it() {
        let mut inbox = Inbox::new(4, 32);
        let mut seen = Vec::new();
        inbox.open(0, &mut seen);
        inbox.post((3, 0));
        inbox.post((20, 1));
        inbox.take(&mut seen);
        assert_eq!(seen, [(3, 0)]);
    }
}
