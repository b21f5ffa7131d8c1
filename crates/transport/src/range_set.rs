//! Sets of segment numbers, stored as ranges.

use alloc::vec::Vec;

/// Disjoint ranges of segment numbers in ascending order; no two are adjacent.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeSet(Vec<(u32, u32)>);

impl RangeSet {
    /// Adds `first..end`; returns the number of new segments.
    pub(crate) fn insert(&mut self, first: u32, end: u32) -> u32 {
        if first >= end {
            return 0;
        }
        // Ranges `from..to` overlap or touch the new one.
        let from = self.0.partition_point(|range| range.1 < first);
        let to = self.0.partition_point(|range| range.0 <= end);
        let covered: u32 = self.0[from..to].iter().map(|range| range.1 - range.0).sum();
        let merged = match self.0[from..to] {
            [] => (first, end),
            [head, .., tail] => (first.min(head.0), end.max(tail.1)),
            [only] => (first.min(only.0), end.max(only.1)),
        };
        self.0.splice(from..to, [merged]);
        merged.1 - merged.0 - covered
    }

    /// Removes all segments before `seq`.
    pub(crate) fn remove_before(&mut self, seq: u32) {
        self.0.retain(|range| range.1 > seq);
        if let Some(range) = self.0.first_mut() {
            range.0 = range.0.max(seq);
        }
    }

    /// The range that contains `seq`.
    pub(crate) fn range_containing(&self, seq: u32) -> Option<(u32, u32)> {
        let index = self.0.partition_point(|range| range.1 <= seq);
        self.0.get(index).copied().filter(|range| range.0 <= seq)
    }

    /// Number of segments of `first..end` in the set.
    pub(crate) fn count_in(&self, first: u32, end: u32) -> u32 {
        self.0.iter().map(|range| range.1.min(end).saturating_sub(range.0.max(first))).sum()
    }

    /// Ranges of `first..end` that are not in the set.
    pub(crate) fn gaps(&self, first: u32, end: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let ends = self.0.iter().map(|range| range.0).chain([u32::MAX]);
        let starts = [0].into_iter().chain(self.0.iter().map(|range| range.1));
        let clipped = starts.zip(ends).map(move |(from, to)| (from.max(first), to.min(end)));
        clipped.filter(|gap| gap.0 < gap.1)
    }

    /// One past the highest segment in the set.
    pub(crate) fn end(&self) -> Option<u32> {
        self.0.last().map(|range| range.1)
    }

    /// The `nth` highest segment in the set (1: the highest).
    pub(crate) fn nth_highest(&self, nth: u32) -> Option<u32> {
        let mut left = nth;
        for &(first, end) in self.0.iter().rev() {
            if end - first >= left {
                return Some(end - left);
            }
            left -= end - first;
        }
        None
    }

    /// The ranges, as (first, one past the last), in ascending order.
    pub(crate) fn as_slice(&self) -> &[(u32, u32)] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
