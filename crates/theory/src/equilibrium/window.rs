//! Reno's mean window when marks meet packets at random: what a mean of many windows does,
//! without a number that was fitted.
//!
//! Three things that `dW/dt = 1/R - W^2 p / (2R)` leaves out:
//! - **Windows differ.** A window that grows by one a round and halves at a rate p W a round has a mean of 1.3098 /
//!   sqrt(p) and a mean square of 2 / p (Ott, Kemperman and Mathis, "The stationary behavior of ideal TCP congestion
//!   avoidance", 1996): halvings take p E\[W^2\] / 2 = p W^2 / (2 [`SPREAD`]) a round.
//! - **A round without growth follows each signal**, since its echo lasts until the answer to it arrives: at rest a
//!   window grows in the share h = W / (W + 2) of its rounds. Around there h falls with p as 1 / (1 + p W) does.
//! - **Acknowledgements clock packets.** What waits is what is under way less what the path holds. A window that grows
//!   sends at once; one that was halved is silent until half of what it had under way has been acknowledged, R/2, in
//!   which what is under way falls evenly: by R/4 later on average. A queue that follows N W / R lags by R; with
//!   [`LEAD`] R of the window's slope added, by R/4.
//!
//! Derivation: docs/theory/models.md. Left out: time-outs, and windows that are whole packets.

/// E\[W\]^2 / E\[W^2\] of a window under random marks: 1.3098^2 / 2.
pub(crate) const SPREAD: f64 = 1.3098 * 1.3098 / 2.0;
/// Share of a round trip by which packets run ahead of a queue that follows the windows' mean rate.
pub(crate) const LEAD: f64 = 0.75;

/// How many windows around their rest answer, in model `reno`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Windows {
    /// Slopes of what a window gains a round trip, in window and share.
    pub slopes: (f64, f64),
    /// Noise that the reductions of one window are, packets^2 a round trip.
    pub noise: f64,
    /// Share of a round trip by which packets run ahead of a queue that follows the windows' mean rate.
    pub lead: f64,
}

impl Windows {
    /// Windows of ns-2's Reno at a mean window of `window_pkts`.
    pub(crate) fn from_reno(window_pkts: f64) -> Self {
        Windows { slopes: slopes(window_pkts), noise: halving_noise(window_pkts), lead: LEAD }
    }
}

/// Share of the packets that holds the mean window at `window`: p = 2 SPREAD h / W^2.
pub(crate) fn probability(window: f64) -> f64 {
    2.0 * SPREAD / (window * (window + 2.0))
}

/// The mean window that the share `p` holds.
pub(crate) fn window(p: f64) -> f64 {
    (1.0 + 2.0 * SPREAD / p).sqrt() - 1.0
}

/// Share of its rounds in which a window of `window` grows under the share `p`.
fn growing(window: f64, p: f64) -> f64 {
    1.0 / (1.0 + p * window + 2.0 / window - 2.0 * SPREAD / (window + 2.0))
}

/// Net growth of a window a round, packets.
pub(crate) fn gained(window: f64, p: f64) -> f64 {
    growing(window, p) - 0.5 * p * window * window / SPREAD
}

/// Slopes of what a window gains in window and share, where it rests at `window`.
pub(crate) fn slopes(window: f64) -> (f64, f64) {
    let (w, p) = (window, probability(window));
    let h = w / (w + 2.0);
    let in_window = -h * h * (p - 2.0 / (w * w) + 2.0 * SPREAD / ((w + 2.0) * (w + 2.0))) - p * w / SPREAD;
    (in_window, -h * h * w - 0.5 * w * w / SPREAD)
}

/// Noise that the halvings of one window at rest are, packets^2 a round: p E\[W^3\] / 4, with E\[W^3\] = (8/3) E\[W\] /
/// p from the balance of W^2, in the rounds that count.
pub(crate) fn halving_noise(window: f64) -> f64 {
    2.0 / 3.0 * window * window / (window + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_rests_where_its_closed_form_says() {
        for w in [0.8, 1.0, 2.5, 3.5, 15.0, 80.0] {
            let p = probability(w);
            assert!(gained(w, p).abs() < 1e-12, "{w}");
            assert!((window(p) / w - 1.0).abs() < 1e-12);
            // W0 = 2.5: 1.71556 / (2.5 4.5) = .1525.
            let h = 1e-5;
            let (in_window, in_p) = slopes(w);
            let slope = |a: (f64, f64), b: (f64, f64), d: f64| (gained(a.0, a.1) - gained(b.0, b.1)) / d;
            assert!((slope((w + h, p), (w - h, p), 2.0 * h) / in_window - 1.0).abs() < 1e-6, "{w}");
            assert!((slope((w, p + h * p), (w, p - h * p), 2.0 * h * p) / in_p - 1.0).abs() < 1e-6, "{w}");
        }
        assert!((probability(2.5) - 0.1525).abs() < 1e-4);
    }

    #[test]
    fn its_variance_is_that_of_windows_under_random_marks() {
        // Of large windows E[W^2] - E[W]^2 = (2 - 1.3098^2) / p = .2844 / p; noise over twice the pole gives .286 / p.
        let p = 1e-6;
        let w = window(p);
        let variance = halving_noise(w) / (-2.0 * slopes(w).0);
        assert!((variance * p - 0.2844).abs() < 0.003, "{}", variance * p);
    }

    #[test]
    fn no_probability_above_one_is_asked_for_down_to_two_thirds_of_a_packet() {
        // W (W + 2) = 1.71556: W = sqrt(2.71556) - 1 = .6479.
        assert!((window(1.0) - 0.6479).abs() < 1e-4 && probability(0.66) < 1.0 && probability(0.64) > 1.0);
    }
}
