//! Playback metrics of segmented video in a window: start-up, stalls, bit rate.

use std::ops::Range;

use crate::{CompletedRequest, FlowMetrics, Histogram, Playback, SegmentedVideo};

/// A viewer's playback.
struct Viewer {
    playback: Playback,
    requested_at: Option<u64>,
    leaves_at: u64,
    last_bytes: Option<u64>,
}

/// Fills in the playback metrics of `video` in a `window` of nanoseconds. `segments` are the delivered ones of the
/// flows `flows`, one viewer each, in order of completion; a viewer leaves at `leaves_at`.
pub fn fill_video_metrics<'a>(
    metrics: &mut FlowMetrics,
    video: SegmentedVideo,
    flows: Range<u32>,
    window: Range<u64>,
    segments: impl Iterator<Item = &'a CompletedRequest>,
    leaves_at: impl Fn(u32) -> u64,
) {
    let viewer = |flow| {
        let leaves_at = leaves_at(flow).min(window.end);
        Viewer { playback: Playback::new(video), requested_at: None, leaves_at, last_bytes: None }
    };
    let mut viewers: Vec<Viewer> = flows.clone().map(viewer).collect();
    let (mut bits, mut count, mut switches) = (0.0, 0u64, 0);
    for segment in segments.filter(|segment| segment.delivered_at < window.end && flows.contains(&segment.flow)) {
        let viewer = &mut viewers[(segment.flow - flows.start) as usize];
        viewer.requested_at.get_or_insert(segment.requested_at);
        let switched = viewer.last_bytes.replace(segment.bytes).is_some_and(|last| last != segment.bytes);
        if segment.delivered_at < viewer.leaves_at {
            viewer.playback.on_segment(segment.delivered_at);
        }
        if window.contains(&segment.delivered_at) {
            bits += segment.bytes as f64 * 8.0;
            count += 1;
            switches += u64::from(switched);
        }
    }
    let (mut began, mut stalls, mut stalled_ns, mut watched_ns) = (0, 0, 0, 0);
    let mut startup = Histogram::default();
    // Part of an interval inside the window.
    let within = |from: u64, until: u64| until.min(window.end).saturating_sub(from.max(window.start));
    for viewer in &mut viewers {
        viewer.playback.advance(viewer.leaves_at);
        let (Some(began_at), Some(requested_at)) = (viewer.playback.began_at, viewer.requested_at) else { continue };
        began += 1;
        if window.contains(&began_at) {
            startup.record(began_at.saturating_sub(requested_at));
        }
        watched_ns += within(began_at, viewer.playback.over_at.unwrap_or(viewer.leaves_at));
        for &(from, until) in &viewer.playback.stalls {
            stalls += u64::from(window.contains(&from));
            stalled_ns += within(from, until.unwrap_or(viewer.leaves_at));
        }
    }
    metrics.video_began = Some(began);
    metrics.video_startup_mean_s = startup.mean().map(|ns| ns * 1e-9);
    metrics.video_stalls = Some(stalls);
    metrics.video_stalled_ratio = (watched_ns > 0).then(|| stalled_ns as f64 / watched_ns as f64);
    metrics.video_bitrate_mean_bps = (count > 0).then(|| bits / (count as f64 * video.segment_ns as f64 * 1e-9));
    metrics.video_switches = Some(switches);
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    /// Segments of 4 s; playback starts with 8 s.
    const VIDEO: SegmentedVideo = SegmentedVideo { segment_ns: 4 * S, play_at_ns: 8 * S, segments: None };

    fn segment(flow: u32, bytes: u64, asked_s: u64, delivered_s: u64) -> CompletedRequest {
        CompletedRequest { flow, bytes, requested_at: asked_s * S, first_at: None, delivered_at: delivered_s * S }
    }

    fn metrics_of(
        segments: &[CompletedRequest],
        video: SegmentedVideo,
        window: Range<u64>,
        leaves_s: u64,
    ) -> FlowMetrics {
        let mut metrics = FlowMetrics::default();
        let window = window.start * S..window.end * S;
        fill_video_metrics(&mut metrics, video, 3..5, window, segments.iter(), |_| leaves_s * S);
        metrics
    }

    #[test]
    fn stalls_and_bit_rates_belong_to_their_window() {
        let segments = [
            segment(3, 500_000, 0, 1), // 1 Mbit/s
            segment(4, 250_000, 0, 2),
            segment(3, 1_000_000, 1, 3),
            segment(9, 9, 0, 4), // another group
            segment(3, 500_000, 3, 16),
            segment(3, 500_000, 16, 20),
        ];
        // Flow 3 starts at 3 s, after 3 s, and stalls from 11 to 20 s; flow 4 never starts.
        let all = metrics_of(&segments, VIDEO, 0..28, 100);
        assert_eq!((all.video_began, all.video_stalls, all.video_switches), (Some(1), Some(1), Some(2)));
        assert!((all.video_startup_mean_s.unwrap() - 3.0).abs() < 0.02);
        assert!((all.video_stalled_ratio.unwrap() - 9.0 / 25.0).abs() < 1e-12);
        // 1, 0.5, 2, 1 and 1 Mbit/s.
        assert!((all.video_bitrate_mean_bps.unwrap() - 1.1e6).abs() < 1e-6);
        // 15 to 25 s: half of it stalled, no new stall, one switch, no start.
        let late = metrics_of(&segments, VIDEO, 15..25, 100);
        assert_eq!((late.video_began, late.video_stalls, late.video_switches), (Some(1), Some(0), Some(1)));
        assert_eq!((late.video_stalled_ratio, late.video_startup_mean_s), (Some(0.5), None));
        assert_eq!(late.video_bitrate_mean_bps, Some(1e6));
        // A viewer who leaves at 12 s has watched 9 s, 1 s of them stalled.
        assert_eq!(metrics_of(&segments, VIDEO, 0..28, 12).video_stalled_ratio, Some(1.0 / 9.0));
        // No request yet.
        let none = metrics_of(&[], VIDEO, 0..28, 100);
        assert_eq!((none.video_began, none.video_stalled_ratio, none.video_bitrate_mean_bps), (Some(0), None, None));
    }
}
