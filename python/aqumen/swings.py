"""Whether a measured queue swings of itself or is only moved by packets: a run's spectrum against its predicted noise.

A loop that is stable passes the noise of packets on, with a peak where its margin is small; one that is not cycles. A
peak alone does not tell them apart, nor do correlations: noise in a narrow band repeats itself, too. What does:

- a cycle has a regular height, noise in a narrow band has not: the envelope of the latter has Rayleigh's distribution,
  whose deviation is .52 of its mean, that of a sine none;
- where noise was predicted (the loop is stable by theory), it explains a deviation about as large as it, and none much
  larger;
- where none could be (the loop is unstable by theory), a law that spends its time at p = 0 or 1 is no linear loop at
  rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from aqumen.result import Floats

__all__ = ["Swing", "swing"]

NARROW = 1.3
"""A peak's power is that within this factor of its frequency."""
PEAK_SHARE = 0.5
"""Share of the power that a cycle has in its peak."""
REGULAR = 0.26
"""Deviation of an envelope in its means below which it is that of a cycle: half of Rayleigh's."""
CYCLES_MIN = 20
"""Fewer cycles say nothing of an envelope."""
NOISE_RATIO = 1.5
"""Deviations of the predicted noise that noise does not explain any more."""
BOUND_SHARE = 0.08
"""Share of the time at p = 0 or 1 above which a law's answer is cut off."""
SAMPLES_MIN = 64
"""Fewer samples are no spectrum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swing:
    """What a measured queue does."""

    oscillates: bool
    """Whether it swings of itself."""
    why: str
    """What says so."""
    period_s: float | None
    """Period of the peak of its spectrum, where half of the power lies there; else there is none."""
    std_pkts: float
    """Deviation of the queue."""
    peak_share: float
    """Share of its power around the peak."""
    irregularity: float
    """Deviation of the envelope around the peak over its mean: 0 of a sine, .52 of noise."""
    bound_share: float
    """Share of the time at p = 0 or 1."""


def swing(
    t_s: ArrayLike, queue_pkts: ArrayLike, probability: ArrayLike, noise_std_pkts: float | None = None
) -> Swing | None:
    """Judge a run's queue; `None` where there is too little of it or it does not move.

    Args:
        t_s: Equally spaced times, seconds.
        queue_pkts: Packets waiting.
        probability: The share that is signalled, as the AQM has it.
        noise_std_pkts: The deviation predicted of a stable loop; without one the loop counts as unstable by theory.
    """
    t, queue = np.asarray(t_s, dtype=float), np.asarray(queue_pkts, dtype=float)
    p = np.asarray(probability, dtype=float)
    if len(t) < SAMPLES_MIN:
        return None
    around = queue - queue.mean()
    deviation = float(around.std())
    if deviation <= 1e-9 * max(1.0, float(queue.mean())):
        return None
    step = float(t[1] - t[0])
    peak, share = _peak(around, step)
    irregular, cycles = _irregularity(around, step, peak), peak * step * len(t)
    bound = float(np.mean((p <= 0) | (p >= 1)))
    narrow = share > PEAK_SHARE
    if narrow and cycles >= CYCLES_MIN and irregular < REGULAR:
        oscillates, why = True, f"a regular envelope: it varies by {irregular:.2f}, of noise by .52"
    elif noise_std_pkts is not None:
        oscillates = deviation > NOISE_RATIO * noise_std_pkts
        why = f"a deviation of {deviation / noise_std_pkts:.2f} times the predicted noise"
    else:
        oscillates = bound > BOUND_SHARE
        why = f"p = 0 or 1 for {bound:.0%} of the time"
    return Swing(
        oscillates=oscillates,
        why=why,
        period_s=1 / peak if narrow else None,
        std_pkts=deviation,
        peak_share=share,
        irregularity=irregular,
        bound_share=bound,
    )


def _peak(around: Floats, step: float) -> tuple[float, float]:
    """Frequency of the largest peak of the spectrum, Hz, and the share of the power around it."""
    frequency = np.fft.rfftfreq(len(around), step)
    power = np.abs(np.fft.rfft(around * np.hanning(len(around)))) ** 2
    # What takes a third of the run is drift, not a cycle.
    told = frequency > 3 / (step * len(around))
    peak = float(frequency[int(np.argmax(np.where(told, power, 0.0)))])
    near = (frequency > peak / NARROW) & (frequency < peak * NARROW)
    return peak, float(power[near].sum() / power[frequency > 1.5 / (step * len(around))].sum())


def _irregularity(around: Floats, step: float, peak: float) -> float:
    """Deviation of the envelope around `peak` over its mean."""
    frequency = np.fft.fftfreq(len(around), step)
    near = (frequency > peak / NARROW**2) & (frequency < peak * NARROW**2)
    envelope = np.abs(np.fft.ifft(np.where(near, 2 * np.fft.fft(around), 0)))
    # The ends know of each other.
    cut = int(min(len(around) // 10, 1 / (peak * step)))
    inside = envelope[cut : len(envelope) - cut]
    return float(inside.std() / inside.mean())
