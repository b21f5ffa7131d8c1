//! An inbox: what will happen at one place, sorted roughly by time into buckets of equal length.
//!
//! Within a bucket the order is that in which things were posted; who opens it puts them into the order that he needs.

use aqumen_scenario::memory::kept;

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
    /// A bucket is 2^width_bits nanoseconds long.
    width_bits: u32,
    /// A ring of buckets; that of the present bucket holds what was posted since it was opened.
    buckets: Vec<Vec<T>>,
    mask: u64,
    /// A bit for each of them: whether something lies there; and a bit for each word of those: whether it has one.
    filled: Vec<u64>,
    filled_words: u64,
    /// Number of the bucket that is open.
    present: u64,
    /// The next after it, and how many are in the ring from that on.
    next: u64,
    reach: u64,
    /// The first bucket that is not in the ring, and what lies there or later, as it came.
    limit: u64,
    far: Vec<T>,
    /// The first bucket of those, or `NO_BUCKET`.
    first_far: u64,
    spare: Spare<T>,
}

/// The memory of empty buckets, for those that begin to fill: what is written lies in the cache.
struct Spare<T> {
    /// Room for more than [`TOGETHER`], and for no more.
    large: Vec<Vec<T>>,
    small: Vec<Vec<T>>,
    /// How many buckets have memory.
    lent: usize,
}

/// After all buckets.
pub(crate) const NO_BUCKET: u64 = u64::MAX;

const WORD: u64 = u64::BITS as u64;

/// A bucket has room for so many from the first on.
const TOGETHER: usize = 8;

/// Where more buckets than this have memory, most lie far ahead and hold little: each begins with little room.
const FEW: usize = 64;

/// The memory of a bucket that needed less than one of so many parts of it is given up.
const PARTS: usize = 4;

const _: () = assert!(TOGETHER <= kept::TOGETHER && WORD * WORD <= kept::LISTS as u64);

impl<T: Moment> Inbox<T> {
    /// An inbox with buckets of 2^`width_bits` nanoseconds, most of what is posted less than `horizon_ns` ahead.
    pub(crate) fn new(width_bits: u32, horizon_ns: u64) -> Self {
        // As many as the bits of one word can tell apart, word by word.
        const MOST_BUCKETS: u64 = WORD * WORD;
        // Twice as many, so that it is enough to look through what is far once in half a turn.
        let buckets = (2 * (horizon_ns >> width_bits) + 4).next_power_of_two().clamp(WORD, MOST_BUCKETS);
        Inbox {
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

    /// Posts `item`, if it lies in a bucket after the present one that is in the ring; most do. `false`: it does not.
    #[inline(always)]
    #[must_use]
    pub(crate) fn post_ahead(&mut self, item: T) -> bool {
        let bucket = item.at() >> self.width_bits;
        let ahead = bucket.wrapping_sub(self.next) < self.reach;
        if ahead {
            self.put(bucket, item);
        }
        ahead
    }

    /// Posts `item`, which lies in the present bucket or later.
    #[inline(never)]
    pub(crate) fn post(&mut self, item: T) {
        let bucket = item.at() >> self.width_bits;
        debug_assert!(bucket >= self.present, "a message to the past");
        if bucket >= self.limit { self.post_far(item) } else { self.put(bucket, item) }
    }

    #[inline(always)]
    fn put(&mut self, bucket: u64, item: T) {
        let list = &mut self.buckets[(bucket & self.mask) as usize];
        if list.len() == list.capacity() {
            // An empty bucket has no memory, so that each comes by here when it begins to fill.
            self.spare.grow(list);
            mark(&mut self.filled, &mut self.filled_words, bucket & self.mask);
        }
        list.push(item);
    }

    #[cold]
    #[inline(never)]
    fn post_far(&mut self, item: T) {
        self.first_far = self.first_far.min(item.at() >> self.width_bits);
        self.far.push(item);
    }

    /// Opens `bucket`, the first or a later one than the present one, with nothing between them, and puts what lies in
    /// it at the end of `into`.
    pub(crate) fn open(&mut self, bucket: u64, into: &mut Vec<T>) {
        self.present = bucket;
        if bucket + self.mask / 2 >= self.limit {
            // Before anything can be posted to the buckets that come into reach: what came first stays first.
            self.limit = bucket + self.mask + 1;
            self.take_far();
        }
        (self.next, self.reach) = (bucket + 1, self.limit - bucket - 1);
        self.take(into);
    }

    /// What lies in the ring by now goes there.
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

    /// The next bucket after the present one in which something lies, or `NO_BUCKET`.
    #[inline]
    pub(crate) fn next_bucket(&self) -> u64 {
        debug_assert!(self.is_idle(), "something lies in the present bucket");
        let next = self.present + 1;
        let from = next & self.mask;
        let word = from / WORD;
        // The rest of the word in which the next one is, mostly enough.
        match self.filled[word as usize] >> (from % WORD) {
            0 => self.next_in_other_words(next + WORD - from % WORD),
            rest => next + u64::from(rest.trailing_zeros()),
        }
    }

    /// The same from `bucket` on, whose word it begins.
    fn next_in_other_words(&self, bucket: u64) -> u64 {
        let words = self.filled.len() as u64;
        let first = (bucket & self.mask) / WORD;
        // Those from the first on, then those before it: the ring goes round.
        let (later, earlier) = (self.filled_words >> first, self.filled_words);
        let ahead = match (later, earlier) {
            (_, 0) => return self.first_far,
            (0, earlier) => words - first + u64::from(earlier.trailing_zeros()),
            (later, _) => u64::from(later.trailing_zeros()),
        };
        let word = self.filled[((first + ahead) % words) as usize];
        bucket + ahead * WORD + u64::from(word.trailing_zeros())
    }

    /// Whether nothing lies in the present bucket.
    pub(crate) fn is_idle(&self) -> bool {
        self.buckets[(self.present & self.mask) as usize].is_empty()
    }

    /// Puts what lies in the present bucket at the end of `into`.
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

/// What two threads post to one place: each has an inbox for it, and one of them opens it.
impl<T: Moment> Inbox<T> {
    /// Opens `bucket`, as [`open`](Self::open) does; what lies in it goes to the same bucket of `other`, where that is
    /// not open yet.
    pub(crate) fn hand_over(&mut self, bucket: u64, other: &mut Inbox<T>) {
        let mut items = Vec::new();
        self.open(bucket, &mut items);
        other.admit(bucket, &mut items);
        // The other's memory for what it takes.
        self.spare.keep(items);
    }

    /// Posts all `items`, which lie in `bucket`, and gives memory for as many back.
    fn admit(&mut self, bucket: u64, items: &mut Vec<T>) {
        if items.is_empty() {
            return;
        }
        if bucket.wrapping_sub(self.next) >= self.reach {
            return items.drain(..).for_each(|item| self.post(item));
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

/// Something lies in the bucket with this index.
#[inline(always)]
fn mark(filled: &mut [u64], filled_words: &mut u64, index: u64) {
    filled[(index / WORD) as usize] |= 1 << (index % WORD);
    *filled_words |= 1 << (index / WORD);
}

impl<T> Spare<T> {
    /// Makes room in a full bucket.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, list: &mut Vec<T>) {
        if list.capacity() == 0 {
            self.lent += 1;
            *list = if self.lent > FEW { self.small.pop().unwrap_or_default() } else { self.any() };
        } else if let Some(mut room) = self.fitting(list.capacity()) {
            room.append(list);
            self.keep(std::mem::replace(list, room));
        }
        list.reserve(TOGETHER);
    }

    /// Memory for a bucket that holds so many and gets more. One that lies far ahead is not given what a near one
    /// needs, which fills at once and hands it on.
    fn fitting(&mut self, held: usize) -> Option<Vec<T>> {
        let most = if self.lent > FEW { PARTS * held } else { usize::MAX };
        self.large.pop_if(|room| (2 * held..=most).contains(&room.capacity()))
    }

    fn any(&mut self) -> Vec<T> {
        self.large.pop().or_else(|| self.small.pop()).unwrap_or_default()
    }

    /// Keeps the memory of an empty bucket.
    #[inline]
    fn keep(&mut self, room: Vec<T>) {
        if room.capacity() > TOGETHER {
            // No more than so many buckets take any.
            if self.large.len() < FEW {
                self.large.push(room);
            }
        } else if room.capacity() > 0 {
            self.small.push(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_comes_in_its_bucket_in_the_order_of_posting() {
        // Buckets of 16 ns, a ring of 64: 15 lies in bucket 0, 16 to 31 in bucket 1, 2000 in bucket 125, far beyond.
        let mut inbox = Inbox::new(4, 32);
        let items = [(31, 0), (15, 1), (2000, 2), (16, 3), (31, 4), (2001, 5)];
        items.iter().for_each(|&item| inbox.post(item));
        let mut open = |bucket| {
            let mut seen = Vec::new();
            inbox.open(bucket, &mut seen);
            if bucket == 120 {
                inbox.post((2000, 6));
            }
            seen
        };
        let seen: Vec<_> = (0..128).map(&mut open).collect();
        assert_eq!((&seen[0][..], &seen[1][..]), (&[(15, 1)][..], &[(31, 0), (16, 3), (31, 4)][..]));
        assert_eq!(seen[125], [(2000, 2), (2001, 5), (2000, 6)]);
        assert_eq!(seen.iter().map(Vec::len).sum::<usize>(), 7);
    }

    #[test]
    fn buckets_far_ahead_have_no_memory_for_many_times_what_they_hold() {
        // In each bucket 600 items that come at the last moment, and 17 that were posted a thousand buckets before.
        let (mut inbox, mut seen) = (Inbox::new(4, 16_000), Vec::new());
        for bucket in 0..3000u64 {
            (0..17).for_each(|item| inbox.post(((bucket + 1000) << 4, item)));
            (0..600).for_each(|item| inbox.post(((bucket + 1) << 4, item)));
            seen.clear();
            inbox.open(bucket + 1, &mut seen);
            assert_eq!(seen.len(), if bucket < 999 { 600 } else { 617 });
        }
        let held: usize = inbox.buckets.iter().map(Vec::len).sum();
        let room: usize =
            inbox.buckets.iter().chain(&inbox.spare.large).chain(&inbox.spare.small).map(Vec::capacity).sum();
        assert!(held >= 17 * 999 && room < 4 * held, "{held} {room}");
    }

    /// Posts each item when the clock is where it says, goes from one filled bucket to the next,
    /// and says what came in which.
    fn hop(items: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let (mut inbox, mut seen, mut bucket) = (Inbox::new(4, 32), Vec::new(), 0);
        let mut items = items.iter().peekable();
        loop {
            let mut taken: Vec<(u64, u32)> = Vec::new();
            inbox.open(bucket, &mut taken);
            assert!(bucket == 0 || !taken.is_empty(), "nothing lies in {bucket}");
            seen.extend(taken.iter().map(|&(at, _)| (bucket, at)));
            while let Some((_, at)) = items.next_if(|(when, _)| when >> 4 <= bucket) {
                inbox.post((*at, 0));
            }
            bucket = inbox.next_bucket();
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
    fn only_what_lies_ahead_and_in_the_ring_is_taken_at_once() {
        // 64 buckets of 16 ns, of which the first is open.
        let mut inbox = Inbox::new(4, 32);
        assert_eq!(
            [15, 16, 1023, 1024, u64::MAX].map(|at| inbox.post_ahead((at, 0))),
            [false, true, true, false, false]
        );
        let mut seen = Vec::new();
        inbox.open(1, &mut seen);
        assert_eq!([31, 32].map(|at| inbox.post_ahead((at, 1))), [false, true]);
        inbox.open(2, &mut seen);
        inbox.open(63, &mut seen);
        // Half a turn later the ring reaches as far again.
        assert_eq!([1023, 1024, 2031, 2032].map(|at| inbox.post_ahead((at, 2))), [false, true, true, false]);
        assert_eq!(seen, [(16, 0), (32, 1), (1023, 0)]);
    }

    #[test]
    fn what_is_handed_over_joins_what_was_posted_there() {
        // Buckets of 16 ns, rings of 64: 40 lies in bucket 2, 2000 in bucket 125, beyond both rings.
        let [mut there, mut here] = [Inbox::new(4, 32), Inbox::new(4, 32)];
        [(40, 0), (41, 1), (2000, 2), (2001, 3)].iter().for_each(|&item| there.post(item));
        let mut seen = Vec::new();
        here.open(1, &mut seen);
        here.post((42, 4));
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
    fn inboxes_that_hand_over_for_long_keep_no_more_memory_than_they_need() {
        let [mut there, mut here] = [Inbox::new(4, 32), Inbox::new(4, 32)];
        let mut seen = Vec::new();
        for bucket in 1..1000 {
            there.post((bucket * 16, 0));
            there.hand_over(bucket, &mut here);
            seen.clear();
            here.open(bucket, &mut seen);
            assert_eq!(seen, [(bucket * 16, 0)]);
        }
        assert_eq!([&there, &here].map(lent), [&there, &here].map(|inbox| inbox.spare.lent));
        let kept = |inbox: &Inbox<_>| inbox.spare.small.len() + inbox.spare.large.len();
        assert!(kept(&there) + kept(&here) < 4, "{} and {}", kept(&there), kept(&here));
    }

    /// How many buckets of an inbox have memory.
    fn lent(inbox: &Inbox<(u64, u32)>) -> usize {
        inbox.buckets.iter().filter(|bucket| bucket.capacity() > 0).count()
    }

    /// How many items the memory of an inbox has room for.
    fn room(inbox: &Inbox<(u64, u32)>) -> usize {
        let spare = inbox.spare.large.iter().chain(&inbox.spare.small);
        inbox.buckets.iter().chain(spare).map(Vec::capacity).sum()
    }

    #[test]
    fn buckets_far_ahead_that_hold_little_take_little_memory() {
        let mut inbox = Inbox::new(4, 32_000);
        for bucket in 1..3000 {
            inbox.open(bucket, &mut Vec::new());
            // One of many timers, and packets that come soon.
            inbox.post((16 * (bucket + 1500), 0));
            (0..1000).for_each(|_| inbox.post((16 * (bucket + 1), 0)));
        }
        assert_eq!((inbox.spare.lent, lent(&inbox)), (1500, 1500));
        // 1500 buckets with room for eight, and the few that came first with more.
        assert!(room(&inbox) < 1500 * TOGETHER + 2 * FEW * 1024, "{}", room(&inbox));
    }

    #[test]
    fn memory_that_is_no_longer_needed_is_given_up() {
        let mut inbox = Inbox::new(4, 32_000);
        let mut seen = Vec::new();
        (0..10_000).for_each(|n| inbox.post((16 * (1 + n % 10), 0)));
        for bucket in 1..100 {
            seen.clear();
            inbox.open(bucket, &mut seen);
            if bucket == 10 {
                assert!(room(&inbox) > 9 * 1000, "{}", room(&inbox));
            }
            inbox.post((16 * (bucket + 1), 0));
        }
        assert_eq!((inbox.spare.lent, lent(&inbox)), (1, 1));
        assert!(room(&inbox) < 1000, "{}", room(&inbox));
    }

    #[test]
    fn buckets_begin_with_the_memory_of_those_before() {
        let mut inbox = Inbox::new(4, 32);
        inbox.post((16, 0));
        // What is taken comes to something that is there already.
        let mut seen = vec![(0, 0)];
        inbox.open(1, &mut seen);
        let memory = inbox.spare.small.first().expect("it is kept").as_ptr();
        inbox.post((40, 1));
        assert_eq!((inbox.buckets[2].as_ptr(), inbox.spare.small.len()), (memory, 0));
    }

    #[test]
    fn what_is_posted_to_the_open_bucket_is_taken_from_it() {
        let mut inbox = Inbox::new(4, 32);
        let mut seen = Vec::new();
        inbox.open(0, &mut seen);
        inbox.post((3, 0));
        inbox.post((20, 1));
        inbox.take(&mut seen);
        assert_eq!(seen, [(3, 0)]);
    }
}
