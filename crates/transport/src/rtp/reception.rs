//! Receiver statistics for RTCP reports (RFC 3550 appendices A.3 and A.8).

use aqumen_units::{Ecn, Instant};

use super::{CLOCK_HZ, Media, ticks};

/// Losses, marks and jitter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiverStats {
    /// First and highest sequence number.
    range: Option<(u32, u32)>,
    received: u32,
    marked: u32,
    /// Expected, received and marked packets at the last report.
    last_report: (u32, u32, u32),
    /// Transit time of the last packet (ticks of the media clock, arbitrary origin).
    transit: Option<u32>,
    /// 16 times the jitter (ticks).
    jitter: u32,
}

impl ReceiverStats {
    pub(super) fn on_media(&mut self, now: Instant, ecn: Ecn, media: &Media) {
        let (first, highest) = self.range.unwrap_or((media.seq, media.seq));
        self.range = Some((first.min(media.seq), highest.max(media.seq)));
        self.received = self.received.wrapping_add(1);
        self.marked = self.marked.wrapping_add(u32::from(ecn == Ecn::Ce));
        let transit = ticks(now.as_nanos(), CLOCK_HZ).wrapping_sub(media.timestamp);
        if let Some(last) = self.transit {
            // J += (|D| - J) / 16, in sixteenths and rounded (appendix A.8).
            let difference = transit.wrapping_sub(last).cast_signed().unsigned_abs();
            self.jitter = self.jitter.saturating_add(difference) - ((self.jitter.saturating_add(8)) >> 4);
        }
        self.transit = Some(transit);
    }

    /// Highest sequence number that arrived.
    pub(super) fn highest(&self) -> Option<u32> {
        self.range.map(|range| range.1)
    }

    /// Interarrival jitter (ticks of the media clock).
    pub(super) fn jitter(&self) -> u32 {
        self.jitter >> 4
    }

    /// Packets lost since the beginning; negative after duplicates.
    pub(super) fn cumulative_lost(&self) -> i32 {
        // The wire has 24 bits (appendix A.3).
        (i64::from(self.expected()) - i64::from(self.received)).clamp(-0x80_0000, 0x7f_ffff) as i32
    }

    /// Fractions lost and marked since the last report (1/256).
    pub(super) fn fractions(&mut self) -> (u8, u8) {
        let now = (self.expected(), self.received, self.marked);
        let before = core::mem::replace(&mut self.last_report, now);
        let fraction = |part: i64, of: u32| match of {
            0 => 0,
            _ => (part.max(0) * 256 / i64::from(of)).min(255) as u8,
        };
        let expected = now.0.wrapping_sub(before.0);
        let received = now.1.wrapping_sub(before.1);
        let lost = fraction(i64::from(expected) - i64::from(received), expected);
        (lost, fraction(i64::from(now.2.wrapping_sub(before.2)), received))
    }

    fn expected(&self) -> u32 {
        self.range.map_or(0, |(first, highest)| (highest - first).saturating_add(1))
    }
}
