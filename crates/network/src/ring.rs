//! A ring buffer whose length is a power of two: a [`VecDeque`](std::collections::VecDeque) with fewer instructions per
//! item.

/// A first-in first-out queue.
#[derive(Clone)]
pub(crate) struct Ring<T> {
    /// Slots, a power of two of them or none.
    slots: Vec<T>,
    /// Number of items that have ever left.
    left: usize,
    /// Number of items that have ever entered.
    entered: usize,
}

const LEAST: usize = 16;

impl<T: Copy + Default> Ring<T> {
    pub(crate) const fn new() -> Self {
        Ring { slots: Vec::new(), left: 0, entered: 0 }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.left == self.entered
    }

    /// Returns the number of items that have ever left.
    #[inline(always)]
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Returns the number of items that have ever entered.
    #[inline(always)]
    pub(crate) fn entered(&self) -> usize {
        self.entered
    }

    /// Returns the number of items that fit without more memory.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, item: T) {
        if self.entered - self.left == self.slots.len() {
            self.grow();
        }
        self.push_fitting(item);
    }

    /// Adds an item that [fits](Self::capacity).
    #[inline(always)]
    pub(crate) fn push_fitting(&mut self, item: T) {
        debug_assert!(self.entered - self.left < self.slots.len(), "an item would be lost");
        let slot = self.entered & self.slots.len().wrapping_sub(1);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = item;
        }
        self.entered += 1;
    }

    /// Returns access to items by number: the first item that ever entered has number 0.
    #[inline(always)]
    pub(crate) fn by_number(&mut self) -> ByNumber<'_, T> {
        ByNumber(&mut self.slots)
    }

    /// Drops items until `left` have left in all.
    #[inline(always)]
    pub(crate) fn drop_until(&mut self, left: usize) {
        debug_assert!(self.left <= left && left <= self.entered);
        self.left = left;
    }

    /// Grows the ring until `items` fit.
    #[inline]
    pub(crate) fn reserve(&mut self, items: usize) {
        while self.slots.len() < items {
            self.grow();
        }
    }

    /// Returns the oldest item.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<&T> {
        // An empty ring may have no slots.
        if self.is_empty() { None } else { self.slots.get(self.left & (self.slots.len() - 1)) }
    }

    /// Drops the oldest item.
    #[inline(always)]
    pub(crate) fn drop_first(&mut self) {
        debug_assert!(!self.is_empty());
        self.left += 1;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let length = self.slots.len();
        let mut slots = vec![T::default(); (2 * length).max(LEAST)];
        let mask = slots.len() - 1;
        // Each item keeps its number.
        for number in self.left..self.left + length {
            slots[number & mask] = self.slots[number & (length - 1)];
        }
        self.slots = slots;
    }
}

/// Access to the items of a [`Ring`] by number.
pub(crate) struct ByNumber<'a, T>(&'a mut [T]);

impl<T> ByNumber<'_, T> {
    #[inline(always)]
    pub(crate) fn at(&mut self, number: usize) -> &mut T {
        let slot = number & (self.0.len() - 1);
        &mut self.0[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_leave_in_the_order_in_which_they_entered() {
        let (mut ring, mut next) = (Ring::new(), 0);
        assert!(ring.first().is_none());
        for round in 1..60 {
            // Each round leaves one more in it, so that it grows at every place of the ring.
            (0..round).for_each(|k| ring.push(round * 1000 + k));
            for _ in 1..round {
                let first = *ring.first().unwrap();
                assert!(first > next, "{first} after {next}");
                next = first;
                ring.drop_first();
            }
        }
        let rest = std::iter::from_fn(|| {
            let first = ring.first().copied();
            first.inspect(|_| ring.drop_first())
        });
        assert_eq!(rest.collect::<Vec<_>>().len(), 59);
        assert!(ring.is_empty());
    }

    #[test]
    fn an_item_keeps_its_number_where_the_ring_grows() {
        let mut ring = Ring::new();
        (0..10).for_each(|k| ring.push(k));
        ring.drop_until(5);
        (10..21).for_each(|k| ring.push(k)); // 16 are in it now, all there is room for
        ring.reserve(17);
        assert_eq!((5..21).map(|number| *ring.by_number().at(number)).collect::<Vec<_>>(), (5..21).collect::<Vec<_>>());
        assert_eq!((ring.left(), ring.entered(), ring.capacity()), (5, 21, 32));
    }
}
