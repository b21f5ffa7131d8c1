//! A calendar queue (Brown 1988): a process's events in buckets of equal width.
//!
//! Events of a bucket are first in, first out; the process that opens the bucket sorts them. A ring of buckets covers
//! the near future, a list holds the rest.

use crate::event::Event;

/// Item with a time in nanoseconds.
pub(crate) trait TimedItem: Copy {
    fn at(&self) -> u64;
}

/// A time and a number.
impl TimedItem for (u64, u32) {
    #[inline]
    fn at(&self) -> u64 {
        self.0
    }
}

impl TimedItem for Event {
    #[inline]
    fn at(&self) -> u64 {
        self.at
    }
}

#[derive(Clone)]
pub(crate) struct CalendarQueue<T> {
    /// A bucket is 2^width_bits nanoseconds wide.
    width_bits: u32,
    /// Ring of buckets. The current bucket holds items that were added since it was opened.
    buckets: Vec<Vec<T>>,
    mask: u64,
    /// A bit per bucket: set if it has items.
    filled: Vec<u64>,
    /// A bit per word of `filled`: set if the word is not zero.
    filled_words: u64,
    /// Number of the open bucket.
    present: u64,
    /// Number of the bucket after it.
    next: u64,
    /// Number of buckets in the ring from `next` on.
    reach: u64,
    /// First bucket beyond the ring.
    limit: u64,
    /// Items of buckets beyond the ring, first in, first out.
    far: Vec<T>,
    /// First bucket of these items, or `NO_BUCKET`.
    first_far: u64,
    spare: Spare<T>,
}

/// Memory of empty buckets, reused for buckets that begin to fill, so that it stays in the cache.
#[derive(Clone)]
struct Spare<T> {
    /// Lists with a capacity above [`TOGETHER`].
    large: Vec<Vec<T>>,
    /// Lists with a capacity up to [`TOGETHER`].
    small: Vec<Vec<T>>,
    /// Number of buckets that have memory.
    lent: usize,
}

/// Number after all buckets.
pub(crate) const NO_BUCKET: u64 = u64::MAX;

const WORD: u64 = u64::BITS as u64;

/// Initial capacity of a bucket.
const TOGETHER: usize = 8;

/// Number of buckets with memory above which most lie far ahead and hold few items: they begin with a small capacity.
const FEW: usize = 64;

/// A bucket that used less than one of this many parts of its memory frees it.
const PARTS: usize = 4;

impl<T: TimedItem> CalendarQueue<T> {
    /// Makes a queue with buckets of 2^`width_bits` nanoseconds, for items that mostly lie less than `horizon_ns`
    /// ahead.
    pub(crate) fn new(width_bits: u32, horizon_ns: u64) -> Self {
        // Two levels of one-word bit sets.
        const MOST_BUCKETS: u64 = WORD * WORD;
        // Twice as many, so that far items are examined once per half turn of the ring.
        let buckets = (2 * (horizon_ns >> width_bits) + 4).next_power_of_two().clamp(WORD, MOST_BUCKETS);
        CalendarQueue {
            width_bits,
            buckets: (0..buckets).map(|_| Vec::new()).collect(),
            mask: buckets - 1,
            filled: vec![0; (buckets / WORD) as usize],
            filled_words: 0,
            present: 0,
            next: 1,
            reach: buckets - 1,
            limit: buckets,
            far: Vec::new(),
            first_far: NO_BUCKET,
            spare: Spare { large: Vec::new(), small: Vec::new(), lent: 0 },
        }
    }

    /// Adds `item` if its bucket is in the ring after the current one, as most are; returns whether it is.
    #[inline(always)]
    #[must_use]
    pub(crate) fn push_ahead(&mut self, item: T) -> bool {
        let bucket = item.at() >> self.width_bits;
        let ahead = bucket.wrapping_sub(self.next) < self.reach;
        if ahead {
            self.put(bucket, item);
        }
        ahead
    }

    /// Adds `item`, which lies in the current bucket or later.
    #[inline(never)]
    pub(crate) fn push(&mut self, item: T) {
        let bucket = item.at() >> self.width_bits;
        debug_assert!(bucket >= self.present, "a message to the past");
        if bucket >= self.limit { self.push_far(item) } else { self.put(bucket, item) }
    }

    #[inline(always)]
    fn put(&mut self, bucket: u64, item: T) {
        let list = &mut self.buckets[(bucket & self.mask) as usize];
        if list.len() == list.capacity() {
            // An empty bucket has no memory, so each comes here when it begins to fill.
            self.spare.grow(list);
            mark(&mut self.filled, &mut self.filled_words, bucket & self.mask);
        }
        list.push(item);
    }

    #[cold]
    #[inline(never)]
    fn push_far(&mut self, item: T) {
        self.first_far = self.first_far.min(item.at() >> self.width_bits);
        self.far.push(item);
    }

    /// Opens `bucket` and appends its items to `into`. No items lie between the current bucket and this one.
    pub(crate) fn open(&mut self, bucket: u64, into: &mut Vec<T>) {
        self.present = bucket;
        if bucket + self.mask / 2 >= self.limit {
            // Before items are added to the buckets that come into the ring: first in, first out.
            self.limit = bucket + self.mask + 1;
            self.take_far();
        }
        (self.next, self.reach) = (bucket + 1, self.limit - bucket - 1);
        self.take(into);
    }

    /// Moves overflow items whose bucket is now within the ring into it.
    #[cold]
    #[inline(never)]
    fn take_far(&mut self) {
        let (mut far, limit, width_bits) = (std::mem::take(&mut self.far), self.limit, self.width_bits);
        self.first_far = NO_BUCKET;
        far.retain(|item| {
            let bucket = item.at() >> width_bits;
            if bucket < limit {
                self.put(bucket, *item);
                return false;
            }
            self.first_far = self.first_far.min(bucket);
            true
        });
        self.far = far;
    }

    /// Returns the next bucket with items after the current one, or `NO_BUCKET`.
    #[inline]
    pub(crate) fn next_bucket(&self) -> u64 {
        debug_assert!(self.is_idle(), "the current bucket has items");
        let next = self.present + 1;
        let from = next & self.mask;
        let word = from / WORD;
        // The rest of this word mostly has a filled bucket.
        match self.filled[word as usize] >> (from % WORD) {
            0 => self.next_in_other_words(next + WORD - from % WORD),
            rest => next + u64::from(rest.trailing_zeros()),
        }
    }

    /// Returns the next bucket with items from `bucket` on, which begins a word.
    fn next_in_other_words(&self, bucket: u64) -> u64 {
        let words = self.filled.len() as u64;
        let first = (bucket & self.mask) / WORD;
        // The words from `first` on, then the ones before it: the ring wraps.
        let (later, earlier) = (self.filled_words >> first, self.filled_words);
        let ahead = match (later, earlier) {
            (_, 0) => return self.first_far,
            (0, earlier) => words - first + u64::from(earlier.trailing_zeros()),
            (later, _) => u64::from(later.trailing_zeros()),
        };
        let word = self.filled[((first + ahead) % words) as usize];
        bucket + ahead * WORD + u64::from(word.trailing_zeros())
    }

    /// Returns whether the current bucket is empty.
    pub(crate) fn is_idle(&self) -> bool {
        self.buckets[(self.present & self.mask) as usize].is_empty()
    }

    /// Appends the items of the current bucket to `into`.
    pub(crate) fn take(&mut self, into: &mut Vec<T>) {
        let index = self.present & self.mask;
        let word = &mut self.filled[(index / WORD) as usize];
        *word &= !(1 << (index % WORD));
        self.filled_words &= !(u64::from(*word == 0) << (index / WORD));
        let mut list = std::mem::take(&mut self.buckets[index as usize]);
        if list.capacity() == 0 {
            return;
        }
        self.spare.lent -= 1;
        if list.capacity() > PARTS * list.len().max(TOGETHER) {
            into.append(&mut list);
            return;
        }
        if into.is_empty() {
            std::mem::swap(into, &mut list);
        } else {
            into.append(&mut list);
        }
        self.spare.keep(list);
    }
}

/// Hand-over between two workers: each has a queue for a process, and one of them opens it.
impl<T: TimedItem> CalendarQueue<T> {
    /// Opens `bucket`, as [`open`](Self::open) does, and moves its items to the same bucket of `other`, which is not
    /// open.
    pub(crate) fn hand_over(&mut self, bucket: u64, other: &mut CalendarQueue<T>) {
        let mut items = Vec::new();
        self.open(bucket, &mut items);
        other.admit(bucket, &mut items);
        // Keeps the memory that the other gave in exchange.
        self.spare.keep(items);
    }

    /// Adds all `items`, which lie in `bucket`, and returns memory in exchange.
    fn admit(&mut self, bucket: u64, items: &mut Vec<T>) {
        if items.is_empty() {
            return;
        }
        if bucket.wrapping_sub(self.next) >= self.reach {
            return items.drain(..).for_each(|item| self.push(item));
        }
        let index = bucket & self.mask;
        let list = &mut self.buckets[index as usize];
        if list.is_empty() {
            std::mem::swap(list, items);
            self.spare.lent += 1;
            mark(&mut self.filled, &mut self.filled_words, index);
        } else {
            list.append(items);
        }
        if items.capacity() == 0 {
            *items = self.spare.any();
        }
    }
}

/// Sets the bits of the bucket with this index.
#[inline(always)]
fn mark(filled: &mut [u64], filled_words: &mut u64, index: u64) {
    filled[(index / WORD) as usize] |= 1 << (index % WORD);
    *filled_words |= 1 << (index / WORD);
}

impl<T> Spare<T> {
    /// Grows a full bucket.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, list: &mut Vec<T>) {
        if list.capacity() == 0 {
            self.lent += 1;
            *list = if self.lent > FEW { self.small.pop().unwrap_or_default() } else { self.any() };
        } else if let Some(mut larger) = self.fitting(list.capacity()) {
            larger.append(list);
            self.keep(std::mem::replace(list, larger));
        }
        list.reserve(TOGETHER);
    }

    /// Returns memory for a bucket of `len` items that grows. A bucket far ahead does not get a large list, which a
    /// near bucket fills at once and passes on.
    fn fitting(&mut self, len: usize) -> Option<Vec<T>> {
        let most = if self.lent > FEW { PARTS * len } else { usize::MAX };
        self.large.pop_if(|list| (2 * len..=most).contains(&list.capacity()))
    }

    fn any(&mut self) -> Vec<T> {
        self.large.pop().or_else(|| self.small.pop()).unwrap_or_default()
    }

    /// Keeps the memory of an empty bucket for reuse.
    #[inline]
    fn keep(&mut self, list: Vec<T>) {
        if list.capacity() > TOGETHER {
            // At most this many buckets take large lists.
            if self.large.len() < FEW {
                self.large.push(list);
            }
        } else if list.capacity() > 0 {
            self.small.push(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_leave_their_bucket_first_in_first_out() {
        // Buckets of 16 ns, a ring of 64: 15 lies in bucket 0, 16 to 31 in bucket 1, 2000 in bucket 125, far beyond.
        let mut queue = CalendarQueue::new(4, 32);
        let items = [(31, 0), (15, 1), (2000, 2), (16, 3), (31, 4), (2001, 5)];
        items.iter().for_each(|&item| queue.push(item));
        let mut open = |bucket| {
            let mut seen = Vec::new();
            queue.open(bucket, &mut seen);
            if bucket == 120 {
                queue.push((2000, 6));
            }
            seen
        };
        let seen: Vec<_> = (0..128).map(&mut open).collect();
        assert_eq!((&seen[0][..], &seen[1][..]), (&[(15, 1)][..], &[(31, 0), (16, 3), (31, 4)][..]));
        assert_eq!(seen[125], [(2000, 2), (2001, 5), (2000, 6)]);
        assert_eq!(seen.iter().map(Vec::len).sum::<usize>(), 7);
    }

    #[test]
    fn buckets_far_ahead_keep_little_memory() {
        // In each bucket 600 items that come at the last moment, and 17 that were added a thousand buckets before.
        let (mut queue, mut seen) = (CalendarQueue::new(4, 16_000), Vec::new());
        for bucket in 0..3000u64 {
            (0..17).for_each(|item| queue.push(((bucket + 1000) << 4, item)));
            (0..600).for_each(|item| queue.push(((bucket + 1) << 4, item)));
            seen.clear();
            queue.open(bucket + 1, &mut seen);
            assert_eq!(seen.len(), if bucket < 999 { 600 } else { 617 });
        }
        let held: usize = queue.buckets.iter().map(Vec::len).sum();
        let room: usize =
            queue.buckets.iter().chain(&queue.spare.large).chain(&queue.spare.small).map(Vec::capacity).sum();
        assert!(held >= 17 * 999 && room < 4 * held, "{held} {room}");
    }

    /// Posts each item when the clock is where it says, goes from one filled bucket to the next,
    /// and says what came in which.
    fn hop(items: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let (mut queue, mut seen, mut bucket) = (CalendarQueue::new(4, 32), Vec::new(), 0);
        let mut items = items.iter().peekable();
        loop {
            let mut taken: Vec<(u64, u32)> = Vec::new();
            queue.open(bucket, &mut taken);
            assert!(bucket == 0 || !taken.is_empty(), "nothing lies in {bucket}");
            seen.extend(taken.iter().map(|&(at, _)| (bucket, at)));
            while let Some((_, at)) = items.next_if(|(when, _)| when >> 4 <= bucket) {
                queue.push((*at, 0));
            }
            bucket = queue.next_bucket();
            if bucket == NO_BUCKET {
                return seen;
            }
        }
    }

    #[test]
    fn the_next_filled_bucket_is_found_in_the_ring_and_beyond() {
        // Buckets of 16 ns: 100 is in the 7th, 16 x 63 in the 64th and last of the ring, 16 x 64
        // beyond it, 16 x 1000 far beyond.
        let far: Vec<(u64, u64)> = [100, 1008, 1024, 16_000, 16_017].iter().map(|&at| (0, at)).collect();
        assert_eq!(hop(&far), [(6, 100), (63, 1008), (64, 1024), (1000, 16_000), (1001, 16_017)]);
        // From bucket 1000, on index 40 of the ring, 1001 to 1063 lie ahead round its end.
        for ahead in [1, 23, 24, 25, 62, 63, 64, 500] {
            let at = 16 * (1000 + ahead);
            assert_eq!(hop(&[(0, 16_000), (16_000, at)]), [(1000, 16_000), (1000 + ahead, at)], "{ahead} ahead");
        }
    }

    #[test]
    fn only_items_ahead_and_within_the_ring_take_the_fast_path() {
        // 64 buckets of 16 ns, of which the first is open.
        let mut queue = CalendarQueue::new(4, 32);
        assert_eq!(
            [15, 16, 1023, 1024, u64::MAX].map(|at| queue.push_ahead((at, 0))),
            [false, true, true, false, false]
        );
        let mut seen = Vec::new();
        queue.open(1, &mut seen);
        assert_eq!([31, 32].map(|at| queue.push_ahead((at, 1))), [false, true]);
        queue.open(2, &mut seen);
        queue.open(63, &mut seen);
        // Half a turn later the ring reaches as far again.
        assert_eq!([1023, 1024, 2031, 2032].map(|at| queue.push_ahead((at, 2))), [false, true, true, false]);
        assert_eq!(seen, [(16, 0), (32, 1), (1023, 0)]);
    }

    #[test]
    fn items_handed_over_join_the_ones_of_the_other_queue() {
        // Buckets of 16 ns, rings of 64: 40 lies in bucket 2, 2000 in bucket 125, beyond both rings.
        let [mut there, mut here] = [CalendarQueue::new(4, 32), CalendarQueue::new(4, 32)];
        [(40, 0), (41, 1), (2000, 2), (2001, 3)].iter().for_each(|&item| there.push(item));
        let mut seen = Vec::new();
        here.open(1, &mut seen);
        here.push((42, 4));
        there.hand_over(2, &mut here);
        assert_eq!(here.next_bucket(), 2);
        here.open(2, &mut seen);
        assert_eq!(seen, [(42, 4), (40, 0), (41, 1)]);
        assert_eq!(there.next_bucket(), 125);
        there.hand_over(125, &mut here);
        assert_eq!((here.next_bucket(), there.next_bucket()), (125, NO_BUCKET));
        seen.clear();
        here.open(125, &mut seen);
        assert_eq!(seen, [(2000, 2), (2001, 3)]);
    }

    #[test]
    fn queues_that_hand_over_keep_bounded_memory() {
        let [mut there, mut here] = [CalendarQueue::new(4, 32), CalendarQueue::new(4, 32)];
        let mut seen = Vec::new();
        for bucket in 1..1000 {
            there.push((bucket * 16, 0));
            there.hand_over(bucket, &mut here);
            seen.clear();
            here.open(bucket, &mut seen);
            assert_eq!(seen, [(bucket * 16, 0)]);
        }
        assert_eq!([&there, &here].map(lent), [&there, &here].map(|queue| queue.spare.lent));
        let kept = |queue: &CalendarQueue<_>| queue.spare.small.len() + queue.spare.large.len();
        assert!(kept(&there) + kept(&here) < 4, "{} and {}", kept(&there), kept(&here));
    }

    /// Number of buckets that have memory.
    fn lent(queue: &CalendarQueue<(u64, u32)>) -> usize {
        queue.buckets.iter().filter(|bucket| bucket.capacity() > 0).count()
    }

    /// Capacity of the queue's memory, items.
    fn room(queue: &CalendarQueue<(u64, u32)>) -> usize {
        let spare = queue.spare.large.iter().chain(&queue.spare.small);
        queue.buckets.iter().chain(spare).map(Vec::capacity).sum()
    }

    #[test]
    fn buckets_far_ahead_that_hold_little_take_little_memory() {
        let mut queue = CalendarQueue::new(4, 32_000);
        for bucket in 1..3000 {
            queue.open(bucket, &mut Vec::new());
            // One of many timers, and packets that come soon.
            queue.push((16 * (bucket + 1500), 0));
            (0..1000).for_each(|_| queue.push((16 * (bucket + 1), 0)));
        }
        assert_eq!((queue.spare.lent, lent(&queue)), (1500, 1500));
        // 1500 buckets with room for eight, and the few that came first with more.
        assert!(room(&queue) < 1500 * TOGETHER + 2 * FEW * 1024, "{}", room(&queue));
    }

    #[test]
    fn memory_that_is_no_longer_needed_is_given_up() {
        let mut queue = CalendarQueue::new(4, 32_000);
        let mut seen = Vec::new();
        (0..10_000).for_each(|n| queue.push((16 * (1 + n % 10), 0)));
        for bucket in 1..100 {
            seen.clear();
            queue.open(bucket, &mut seen);
            if bucket == 10 {
                assert!(room(&queue) > 9 * 1000, "{}", room(&queue));
            }
            queue.push((16 * (bucket + 1), 0));
        }
        assert_eq!((queue.spare.lent, lent(&queue)), (1, 1));
        assert!(room(&queue) < 1000, "{}", room(&queue));
    }

    #[test]
    fn buckets_begin_with_the_memory_of_those_before() {
        let mut queue = CalendarQueue::new(4, 32);
        queue.push((16, 0));
        // What is taken comes to something that is there already.
        let mut seen = vec![(0, 0)];
        queue.open(1, &mut seen);
        let memory = queue.spare.small.first().expect("it is kept").as_ptr();
        queue.push((40, 1));
        assert_eq!((queue.buckets[2].as_ptr(), queue.spare.small.len()), (memory, 0));
    }

    #[test]
    fn items_added_to_the_open_bucket_are_taken_from_it() {
        let mut queue = CalendarQueue::new(4, 32);
        let mut seen = Vec::new();
        queue.open(0, &mut seen);
        queue.push((3, 0));
        queue.push((20, 1));
        queue.take(&mut seen);
        assert_eq!(seen, [(3, 0)]);
    }
}
