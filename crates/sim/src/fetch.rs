//! Fetching ahead: what the packets to come need is on its way into the cache before their turn.
//!
//! In a large network none of it is there. A fetch waits for nothing and changes nothing but the time that the later
//! read takes; on machines without such an instruction it does nothing.

use std::slice::from_ref;

use prefetch_index::prefetch_index;

/// So many packets ahead.
pub(crate) const STEP: usize = 16;

/// Fetches the cache line on which `item` begins.
#[inline(always)]
pub(crate) fn fetch<T>(item: &T) {
    prefetch_index(from_ref(item), 0);
}

/// The same of the one with this index, if there is one.
#[inline(always)]
pub(crate) fn fetch_at<T>(items: &[T], index: usize) {
    prefetch_index(items, index);
}
