//! Runs of segments: what arrived out of order at a receiver, what a sender knows to have arrived.

use alloc::vec::Vec;

/// Disjoint runs of segment numbers, ascending, no two touching.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs(Vec<(u32, u32)>);

impl Runs {
    /// Adds `first..end`; says how many segments of it were new.
    pub(crate) fn insert(&mut self, first: u32, end: u32) -> u32 {
        if first >= end {
            return 0;
        }
        // The runs that overlap or touch the new one are `from..to`.
        let from = self.0.partition_point(|run| run.1 < first);
        let to = self.0.partition_point(|run| run.0 <= end);
        let covered: u32 = self.0[from..to].iter().map(|run| run.1 - run.0).sum();
        let merged = match self.0[from..to] {
            [] => (first, end),
            [head, .., tail] => (first.min(head.0), end.max(tail.1)),
            [only] => (first.min(only.0), end.max(only.1)),
        };
        self.0.splice(from..to, [merged]);
        merged.1 - merged.0 - covered
    }

    /// Forgets everything before `seq`.
    pub(crate) fn forget_before(&mut self, seq: u32) {
        self.0.retain(|run| run.1 > seq);
        if let Some(run) = self.0.first_mut() {
            run.0 = run.0.max(seq);
        }
    }

    /// The run that holds `seq`.
    pub(crate) fn run_with(&self, seq: u32) -> Option<(u32, u32)> {
        let index = self.0.partition_point(|run| run.1 <= seq);
        self.0.get(index).copied().filter(|run| run.0 <= seq)
    }

    /// How many segments of `first..end` are in the set.
    pub(crate) fn count_in(&self, first: u32, end: u32) -> u32 {
        self.0.iter().map(|run| run.1.min(end).saturating_sub(run.0.max(first))).sum()
    }

    /// The runs of `first..end` that are not in the set.
    pub(super) fn gaps(&self, first: u32, end: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let ends = self.0.iter().map(|run| run.0).chain([u32::MAX]);
        let starts = [0].into_iter().chain(self.0.iter().map(|run| run.1));
        let clipped = starts.zip(ends).map(move |(from, to)| (from.max(first), to.min(end)));
        clipped.filter(|gap| gap.0 < gap.1)
    }

    /// One past the highest segment in the set.
    pub(crate) fn end(&self) -> Option<u32> {
        self.0.last().map(|run| run.1)
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

    /// The runs, as (first, one past the last), ascending.
    pub(crate) fn as_slice(&self) -> &[(u32, u32)] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
