//! What the viewers of films saw in a window: when the picture began, how long it stood still, how good it was.

use std::ops::Range;

use crate::{Film, FlowMetrics, Histogram, Playback, Served};

/// One viewer and what came of the film.
struct Viewed {
    playback: Playback,
    asked_at: Option<u64>,
    leaves_at: u64,
    last_bytes: Option<u64>,
}

/// Fills in what the viewers of `film` saw in a `window` of nanoseconds: `segments` came to the flows `flows`, one
/// viewer each, in order of their end; a viewer leaves at `leaves_at`.
pub fn tell_films<'a>(
    metrics: &mut FlowMetrics,
    film: Film,
    flows: Range<u32>,
    window: Range<u64>,
    segments: impl Iterator<Item = &'a Served>,
    leaves_at: impl Fn(u32) -> u64,
) {
    let viewer = |flow| {
        let leaves_at = leaves_at(flow).min(window.end);
        Viewed { playback: Playback::new(film), asked_at: None, leaves_at, last_bytes: None }
    };
    let mut viewers: Vec<Viewed> = flows.clone().map(viewer).collect();
    let (mut bits, mut count, mut switches) = (0.0, 0u64, 0);
    for segment in segments.filter(|segment| segment.delivered_at < window.end && flows.contains(&segment.flow)) {
        let viewer = &mut viewers[(segment.flow - flows.start) as usize];
        viewer.asked_at.get_or_insert(segment.asked_at);
        let other = viewer.last_bytes.replace(segment.bytes).is_some_and(|last| last != segment.bytes);
        if segment.delivered_at < viewer.leaves_at {
            viewer.playback.on_segment(segment.delivered_at);
        }
        if window.contains(&segment.delivered_at) {
            bits += segment.bytes as f64 * 8.0;
            count += 1;
            switches += u64::from(other);
        }
    }
    let (mut began, mut stalls, mut stalled_ns, mut watched_ns) = (0, 0, 0, 0);
    let mut startup = Histogram::default();
    // How much of a time from one moment to another lies in the window.
    let within = |from: u64, until: u64| until.min(window.end).saturating_sub(from.max(window.start));
    for viewer in &mut viewers {
        viewer.playback.advance(viewer.leaves_at);
        let (Some(began_at), Some(asked_at)) = (viewer.playback.began_at, viewer.asked_at) else { continue };
        began += 1;
        if window.contains(&began_at) {
            startup.record(began_at.saturating_sub(asked_at));
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
    metrics.video_bitrate_mean_bps = (count > 0).then(|| bits / (count as f64 * film.segment_ns as f64 * 1e-9));
    metrics.video_switches = Some(switches);
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    /// Segments of 4 s; 8 s to begin.
    const FILM: Film = Film { segment_ns: 4 * S, play_at_ns: 8 * S, segments: None };

    fn segment(flow: u32, bytes: u64, asked_s: u64, delivered_s: u64) -> Served {
        Served { flow, bytes, asked_at: asked_s * S, first_at: None, delivered_at: delivered_s * S }
    }

    fn told(segments: &[Served], film: Film, window: Range<u64>, leaves_s: u64) -> FlowMetrics {
        let mut metrics = FlowMetrics::default();
        let window = window.start * S..window.end * S;
        tell_films(&mut metrics, film, 3..5, window, segments.iter(), |_| leaves_s * S);
        metrics
    }

    #[test]
    fn a_window_has_its_share_of_the_stalls_and_the_picture_of_its_segments() {
        let segments = [
            segment(3, 500_000, 0, 1), // 1 Mbit/s
            segment(4, 250_000, 0, 2),
            segment(3, 1_000_000, 1, 3),
            segment(9, 9, 0, 4), // of another group
            segment(3, 500_000, 3, 16),
            segment(3, 500_000, 16, 20),
        ];
        // Flow 3 begins at 3 s, after 3 s, is dry from 11 to 20 s; flow 4 never begins.
        let all = told(&segments, FILM, 0..28, 100);
        assert_eq!((all.video_began, all.video_stalls, all.video_switches), (Some(1), Some(1), Some(2)));
        assert!((all.video_startup_mean_s.unwrap() - 3.0).abs() < 0.02);
        assert!((all.video_stalled_ratio.unwrap() - 9.0 / 25.0).abs() < 1e-12);
        // 1, 0.5, 2, 1 and 1 Mbit/s.
        assert!((all.video_bitrate_mean_bps.unwrap() - 1.1e6).abs() < 1e-6);
        // From 15 to 25 s: half of it stalled, no stall of its own, one switch, nobody who begins.
        let late = told(&segments, FILM, 15..25, 100);
        assert_eq!((late.video_began, late.video_stalls, late.video_switches), (Some(1), Some(0), Some(1)));
        assert_eq!((late.video_stalled_ratio, late.video_startup_mean_s), (Some(0.5), None));
        assert_eq!(late.video_bitrate_mean_bps, Some(1e6));
        // A viewer who leaves at 12 s has seen 8 s and stood still for 1.
        assert_eq!(told(&segments, FILM, 0..28, 12).video_stalled_ratio, Some(1.0 / 9.0));
        // Nobody has asked for anything yet.
        let none = told(&[], FILM, 0..28, 100);
        assert_eq!((none.video_began, none.video_stalled_ratio, none.video_bitrate_mean_bps), (Some(0), None, None));
    }
}
