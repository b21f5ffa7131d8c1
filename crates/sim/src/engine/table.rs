//! A table of what is too large to travel in an event: acknowledgements with SACK blocks, packets of other transports.

/// What is too large to travel in an event.
pub(super) struct Table<T> {
    kept: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { kept: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Table<T> {
    pub(super) fn keep(&mut self, item: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.kept[index as usize] = item;
            index
        } else {
            self.kept.push(item);
            (self.kept.len() - 1) as u32
        }
    }

    /// Takes an item out.
    #[inline]
    pub(super) fn take(&mut self, index: u32) -> T {
        self.free.push(index);
        self.kept[index as usize]
    }

    pub(super) fn get(&self, index: u32) -> &T {
        &self.kept[index as usize]
    }
}
