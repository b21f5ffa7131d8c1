//! A queue in a ring whose length is a power of two: what a [`VecDeque`](std::collections::VecDeque) does, with fewer
//! instructions for each item.

/// First in, first out.
pub(crate) struct Ring<T> {
    /// As many as a power of two, or none.
    slots: Vec<T>,
    /// How many have ever left, and have ever entered.
    left: usize,
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

    #[inline(always)]
    pub(crate) fn push(&mut self, item: T) {
        if self.entered - self.left == self.slots.len() {
            self.grow();
        }
        let place = self.entered & (self.slots.len() - 1);
        self.slots[place] = item;
        self.entered += 1;
    }

    /// The item that has been in it longest.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<&T> {
        // An empty ring has nothing at any place.
        if self.is_empty() { None } else { self.slots.get(self.left & (self.slots.len() - 1)) }
    }

    /// Lets that go.
    #[inline(always)]
    pub(crate) fn drop_first(&mut self) {
        debug_assert!(!self.is_empty());
        self.left += 1;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let (length, from) = (self.slots.len(), self.left);
        let mut slots = vec![T::default(); (2 * length).max(LEAST)];
        for (k, slot) in slots.iter_mut().enumerate().take(length) {
            *slot = self.slots[(from + k) & (length - 1)];
        }
        *self = Ring { slots, left: 0, entered: length };
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
}
