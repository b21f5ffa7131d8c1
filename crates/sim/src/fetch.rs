//! Prefetching of the state that the next packets need, which is not in the cache in large networks.
//!
//! A fetch does not wait, and affects only the time of the later read. On machines without such an instruction it does
//! nothing.

use std::slice::from_ref;

use prefetch_index::prefetch_index;

/// Number of packets ahead.
pub(crate) const STEP: usize = 16;

/// Fetches the cache line on which `item` begins.
#[inline(always)]
pub(crate) fn fetch<T>(item: &T) {
    prefetch_index(from_ref(item), 0);
}

/// Fetches the cache line on which the item with this index begins, if it exists.
#[inline(always)]
pub(crate) fn fetch_at<T>(items: &[T], index: usize) {
    prefetch_index(items, index);
}
