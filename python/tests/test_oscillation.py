"""Features of an oscillating queue that noise lacks."""

import numpy as np
import pytest

from aqumen.explain.oscillation import oscillation

T = np.arange(0, 200, 0.02)
P = np.full(T.size, 0.1)


def narrow_noise(seed: int, period_s: float, width: float):
    """White noise through a resonance: as narrow as a cycle, of no regular height."""
    noise = np.random.default_rng(seed).normal(size=T.size)
    f = np.fft.rfftfreq(T.size, 0.02)
    shape = 1 / (1 + ((f * period_s - 1) / width) ** 2)
    queue = np.fft.irfft(np.fft.rfft(noise) * shape, T.size)
    return 100 + 20 * queue / queue.std()


def test_a_cycle_in_noise_swings_and_has_its_period():
    noise = np.random.default_rng(1).normal(size=T.size)
    seen = oscillation(T, 100 + 30 * np.sin(2 * np.pi * T / 4.1) + 5 * noise, P, 10.0)
    assert seen.oscillates
    assert seen.period_s == pytest.approx(4.1, abs=0.1)
    # A sine of 30 has a deviation of 21.2, with the noise 21.8.
    assert seen.std_pkts == pytest.approx(np.hypot(30 / np.sqrt(2), 5), rel=0.02)
    assert seen.irregularity < 0.1


@pytest.mark.parametrize("seed", range(8))
def test_noise_in_a_narrow_band_is_no_cycle_as_long_as_it_was_predicted(seed):
    queue = narrow_noise(seed, 4.0, 0.05)
    calm = oscillation(T, queue, P, 20.0)
    assert calm.peak_share > 0.5
    assert calm.irregularity > 0.26
    assert not calm.oscillates
    # Twice what was predicted is more than noise.
    assert oscillation(T, queue, P, 10.0).oscillates


@pytest.mark.parametrize("seed", range(8))
def test_where_no_noise_was_predicted_what_repeats_itself_or_is_cut_off_swings(seed):
    # After a period (1 + 2 pi width) e^(-2 pi width) is left of a resonance: .44 and .96.
    wide, thin = narrow_noise(seed, 4.0, 0.3), narrow_noise(seed, 4.0, 0.05)
    assert not oscillation(T, wide, P).oscillates
    assert oscillation(T, wide, np.where(wide < 95, 0.0, 0.1)).oscillates
    seen = oscillation(T, thin, P)
    assert seen.oscillates
    assert seen.autocorrelation > 0.8
    assert "correlation" in seen.why


def test_what_is_short_or_still_is_not_judged():
    assert oscillation(T[:20], P[:20], P[:20]) is None
    assert oscillation(T, np.full(T.size, 7.0), P) is None
