//! What a failed reading means: that the queue is gone, or that the kernel could not answer just now. Without readings
//! no order is given, and the marker lets everything pass once the last one is too old; so there is time to ask again.

use std::io;

use aqumen_units::{Instant, Span};

/// So long readings may fail for a reason that may pass.
const PATIENCE: Span = Span::from_secs(2);

/// Counts for how long nothing could be read.
#[derive(Debug, Default)]
pub(super) struct Patience {
    since: Option<Instant>,
}

impl Patience {
    /// A reading came.
    pub(super) fn answered(&mut self) {
        self.since = None;
    }

    /// A reading failed with `error`: whether to go on without it.
    pub(super) fn bears(&mut self, now: Instant, error: &io::Error) -> bool {
        let since = *self.since.get_or_insert(now);
        may_pass(error) && now.saturating_since(since) < PATIENCE
    }
}

/// Whether the kernel may answer the next time: no memory, no room, no time, or a signal; whatever else says
/// that there is nothing to read.
pub(super) fn may_pass(error: &io::Error) -> bool {
    use libc::{EAGAIN, EBUSY, EINTR, ENOBUFS, ENOMEM, ETIMEDOUT};
    matches!(error.raw_os_error(), Some(EAGAIN | EBUSY | EINTR | ENOBUFS | ENOMEM | ETIMEDOUT))
}

/// Whether something is known not to be there. Not knowing is not a no: it is asked again.
pub(super) fn is_gone(is_there: &io::Result<bool>) -> bool {
    match is_there {
        Ok(there) => !there,
        Err(error) => !may_pass(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_asked_just_now_is_not_gone() {
        let refused = |code| Err(io::Error::from_raw_os_error(code));
        let answers = [Ok(true), refused(libc::ENOBUFS), Ok(false), refused(libc::ENODEV)];
        assert_eq!(answers.each_ref().map(is_gone), [false, false, true, true]);
    }

    #[test]
    fn what_may_pass_is_borne_for_two_seconds_and_what_is_gone_is_not() {
        let (mut patience, at) = (Patience::default(), |ms: u64| Instant::from_nanos(ms * 1_000_000));
        let no_room = io::Error::from_raw_os_error(libc::ENOBUFS);
        assert!(patience.bears(at(1000), &no_room) && patience.bears(at(2999), &no_room));
        assert!(!patience.bears(at(3000), &no_room));
        // A reading in between, and the time begins anew.
        patience.answered();
        assert!(patience.bears(at(3010), &no_room));
        for gone in [libc::ENOENT, libc::ENODEV, libc::EINVAL] {
            assert!(!Patience::default().bears(at(0), &io::Error::from_raw_os_error(gone)), "{gone}");
        }
    }
}
