//! A buffered window on a stream, with its offset from the start.

use std::io::{self, ErrorKind, Read};

pub(crate) struct Window<R> {
    input: R,
    buffer: Vec<u8>,
    /// Range of valid bytes within the buffer.
    start: usize,
    end: usize,
    /// Offset of `start` in the stream.
    offset: u64,
    ended: bool,
}

/// First size of the buffer; it doubles only when it is full of bytes that the stream delivered.
const CHUNK: usize = 1 << 17;

impl<R: Read> Window<R> {
    pub(crate) fn new(input: R) -> Self {
        Window { input, buffer: vec![0; CHUNK], start: 0, end: 0, offset: 0, ended: false }
    }

    /// Returns the stream.
    pub(crate) fn input(&self) -> &R {
        &self.input
    }

    /// Returns the offset of the window in the stream.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Fills the window to at least `n` bytes; returns false if the stream ends before.
    #[inline]
    pub(crate) fn fill(&mut self, n: usize) -> io::Result<bool> {
        if self.end - self.start >= n { Ok(true) } else { self.refill(n) }
    }

    #[cold]
    fn refill(&mut self, n: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < n && !self.ended {
            if self.end == self.buffer.len() {
                self.buffer.resize(2 * self.end, 0);
            }
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end >= n)
    }

    /// Returns the bytes of the window.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Skips `n` bytes; returns false if the stream ends before.
    pub(crate) fn skip(&mut self, n: u64) -> io::Result<bool> {
        let mut left = n;
        loop {
            let now = left.min((self.end - self.start) as u64);
            self.start += now as usize;
            self.offset += now;
            left -= now;
            if left == 0 {
                return Ok(true);
            }
            if !self.fill(1)? {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that gives three bytes at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(3).min(to.len());
            to[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn bytes_come_in_order_in_reads_of_any_size() {
        let all: Vec<u8> = (0..=255).cycle().take(3 * CHUNK + 7).collect();
        let mut window = Window::new(Slow(&all));
        assert!(window.fill(10).unwrap() && window.bytes()[..10] == all[..10]);
        assert!(window.skip(7).unwrap());
        // Larger than the first buffer.
        let n = 2 * CHUNK + 1;
        assert!(window.fill(n).unwrap() && window.bytes()[..n] == all[7..7 + n]);
        assert!(window.skip(n as u64).unwrap());
        assert_eq!(window.offset(), 7 + n as u64);
        assert!(!window.fill(CHUNK).unwrap() && window.bytes() == &all[7 + n..]);
        assert!(!window.skip(CHUNK as u64).unwrap());
        assert_eq!(window.offset(), all.len() as u64);
    }
}
