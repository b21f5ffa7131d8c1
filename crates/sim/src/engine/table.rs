//! Tables of packets that are too large for an event: acknowledgements with SACK blocks, packets of other transports.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Packets that are too large for an event.
#[derive(Clone)]
pub(super) struct Table<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Table<T> {
    pub(super) fn keep(&mut self, item: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = item;
            index
        } else {
            self.slots.push(item);
            (self.slots.len() - 1) as u32
        }
    }

    /// Takes an item out.
    #[inline]
    pub(super) fn take(&mut self, index: u32) -> T {
        self.free.push(index);
        self.slots[index as usize]
    }

    pub(super) fn get(&self, index: u32) -> &T {
        &self.slots[index as usize]
    }
}

/// A table that two workers may share. The index of an entry depends on the order of the threads; results do not depend
/// on it.
#[derive(Clone)]
pub(super) enum Shareable<T> {
    Own(Table<T>),
    Shared(Arc<Mutex<Table<T>>>),
}

impl<T: Copy> Shareable<T> {
    /// Returns a second handle of the table.
    pub(super) fn share(&mut self) -> Self {
        let shared = match std::mem::replace(self, Shareable::Own(Table::default())) {
            Shareable::Own(table) => Arc::new(Mutex::new(table)),
            Shareable::Shared(table) => table,
        };
        *self = Shareable::Shared(Arc::clone(&shared));
        Shareable::Shared(shared)
    }

    pub(super) fn keep(&mut self, item: T) -> u32 {
        match self {
            Shareable::Own(table) => table.keep(item),
            Shareable::Shared(table) => locked(table).keep(item),
        }
    }

    /// Takes an item out.
    #[inline]
    pub(super) fn take(&mut self, index: u32) -> T {
        match self {
            Shareable::Own(table) => table.take(index),
            Shareable::Shared(table) => locked(table).take(index),
        }
    }

    pub(super) fn get(&self, index: u32) -> T {
        match self {
            Shareable::Own(table) => *table.get(index),
            Shareable::Shared(table) => *locked(table).get(index),
        }
    }
}

/// Locks the table; a panic cannot leave it half changed.
fn locked<T>(table: &Mutex<Table<T>>) -> MutexGuard<'_, Table<T>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
