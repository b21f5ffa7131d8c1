//! Errors of readings: the queue is gone, or the kernel could not answer this time. Without readings there are no
//! orders, and the marker passes everything once the last one has expired. So there is time to retry.

use std::io;

use aqumen_units::{Instant, Span};

/// Time for which transient errors are retried.
const RETRY_TIME: Span = Span::from_secs(2);

/// Limit on the time of failed readings.
#[derive(Debug, Default)]
pub(super) struct RetryLimit {
    since: Option<Instant>,
}

impl RetryLimit {
    /// Notes a successful reading.
    pub(super) fn reset(&mut self) {
        self.since = None;
    }

    /// Notes a reading that failed with `error`. Returns whether to retry.
    pub(super) fn allows(&mut self, now: Instant, error: &io::Error) -> bool {
        let since = *self.since.get_or_insert(now);
        is_transient(error) && now.saturating_since(since) < RETRY_TIME
    }
}

/// Whether `error` is transient: no memory, no buffer space, a timeout or a signal. All others mean that there is
/// nothing to read.
pub(super) fn is_transient(error: &io::Error) -> bool {
    use libc::{EAGAIN, EBUSY, EINTR, ENOBUFS, ENOMEM, ETIMEDOUT};
    matches!(error.raw_os_error(), Some(EAGAIN | EBUSY | EINTR | ENOBUFS | ENOMEM | ETIMEDOUT))
}

/// Whether something is known to be absent. A transient error says nothing about that.
pub(super) fn is_absent(exists: &io::Result<bool>) -> bool {
    match exists {
        Ok(exists) => !exists,
        Err(error) => !is_transient(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transient_error_does_not_mean_absence() {
        let error = |code| Err(io::Error::from_raw_os_error(code));
        let answers = [Ok(true), error(libc::ENOBUFS), Ok(false), error(libc::ENODEV)];
        assert_eq!(answers.each_ref().map(is_absent), [false, false, true, true]);
    }

    #[test]
    fn transient_errors_are_retried_for_two_seconds() {
        let (mut limit, at) = (RetryLimit::default(), |ms: u64| Instant::from_nanos(ms * 1_000_000));
        let no_buffers = io::Error::from_raw_os_error(libc::ENOBUFS);
        assert!(limit.allows(at(1000), &no_buffers) && limit.allows(at(2999), &no_buffers));
        assert!(!limit.allows(at(3000), &no_buffers));
        // A successful reading restarts the time.
        limit.reset();
        assert!(limit.allows(at(3010), &no_buffers));
        for code in [libc::ENOENT, libc::ENODEV, libc::EINVAL] {
            assert!(!RetryLimit::default().allows(at(0), &io::Error::from_raw_os_error(code)), "{code}");
        }
    }
}
