//! Intrusive doubly linked lists of queues, in the order of service. A queue is in at most one list; all lists of a
//! discipline share one array of links.

use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// Links of all queues: (previous, next). Queues are numbered from 0; another number panics.
#[derive(Clone, Debug)]
pub struct ListLinks(Vec<(u32, u32)>);

/// A list of queues in the order of service. Its links are shared with the other lists of a discipline; a queue is in
/// at most one of them.
///
/// ```
/// use aqumen_aqm::{ListLinks, QueueList};
/// let mut links = ListLinks::new(3);
/// let mut round = QueueList::EMPTY;
/// (0..3).for_each(|queue| round.push(&mut links, queue));
/// round.rotate(&mut links);
/// round.remove(&mut links, 2);
/// assert_eq!(round.iter(&links).collect::<Vec<_>>(), [1, 0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct QueueList {
    head: u32,
    tail: u32,
    len: u32,
}

impl ListLinks {
    /// Heap memory per queue in bytes.
    pub const QUEUE_BYTES: usize = size_of::<(u32, u32)>();

    /// Links of `queues` queues, none of which is in a list.
    pub fn new(queues: usize) -> Self {
        ListLinks(alloc::vec![(NONE, NONE); queues])
    }

    /// Next queue in the list of `queue`.
    pub fn after(&self, queue: usize) -> Option<usize> {
        let after = self.0[queue].1;
        (after != NONE).then_some(after as usize)
    }
}

impl QueueList {
    /// No queue.
    pub const EMPTY: QueueList = QueueList { head: NONE, tail: NONE, len: 0 };

    /// First queue.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        (self.head != NONE).then_some(self.head as usize)
    }

    /// Number of queues.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no queue.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a queue that is in no list.
    #[inline]
    pub fn push(&mut self, links: &mut ListLinks, queue: usize) {
        let queue = queue as u32;
        links.0[queue as usize] = (self.tail, NONE);
        match self.tail {
            NONE => self.head = queue,
            tail => links.0[tail as usize].1 = queue,
        }
        self.tail = queue;
        self.len += 1;
    }

    /// Removes a queue of this list.
    #[inline]
    pub fn remove(&mut self, links: &mut ListLinks, queue: usize) {
        let (before, after) = links.0[queue];
        match before {
            NONE => self.head = after,
            before => links.0[before as usize].1 = after,
        }
        match after {
            NONE => self.tail = before,
            after => links.0[after as usize].0 = before,
        }
        self.len -= 1;
    }

    /// Moves the first queue to the end.
    #[inline]
    pub fn rotate(&mut self, links: &mut ListLinks) {
        if let Some(queue) = self.first() {
            self.remove(links, queue);
            self.push(links, queue);
        }
    }

    /// Queues in order.
    pub fn iter<'l>(&self, links: &'l ListLinks) -> impl Iterator<Item = usize> + use<'l> {
        core::iter::successors(self.first(), |&queue| links.after(queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn queues_keep_their_order_and_can_be_removed_anywhere() {
        let mut links = ListLinks::new(5);
        let (mut a, mut b) = (QueueList::EMPTY, QueueList::EMPTY);
        for queue in [3, 1, 4, 0] {
            a.push(&mut links, queue);
        }
        a.rotate(&mut links);
        assert_eq!(a.iter(&links).collect::<Vec<_>>(), [1, 4, 0, 3]);
        a.remove(&mut links, 0);
        b.push(&mut links, 0);
        a.remove(&mut links, 3);
        a.remove(&mut links, 1);
        assert_eq!((a.first(), a.len(), b.first()), (Some(4), 1, Some(0)));
        a.remove(&mut links, 4);
        assert_eq!((a.first(), a.len()), (None, 0));
        a.rotate(&mut links);
        a.push(&mut links, 2);
        assert_eq!(a.iter(&links).collect::<Vec<_>>(), [2]);
    }
}
