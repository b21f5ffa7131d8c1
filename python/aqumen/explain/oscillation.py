"""Whether a measured queue swings of itself or is only moved by packets: a run's spectrum against its predicted noise.

A loop that is stable passes the noise of packets on, with a peak where its margin is small; one that is not cycles.
What tells them apart is the regular height of a cycle, how large the deviation is beside the predicted noise, and where
none could be predicted how long the law's answer is cut off at p = 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from aqumen import _core

__all__ = ["Oscillation", "oscillation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Oscillation:
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
    autocorrelation: float
    """Largest correlation of the queue with itself at a later time, from where it first falls to zero up to a fifth of
    the run: 1 of what repeats itself for ever."""


def oscillation(
    t_s: ArrayLike, queue_pkts: ArrayLike, probability: ArrayLike, noise_std_pkts: float | None = None
) -> Oscillation | None:
    """Judge a run's queue; `None` where there is too little of it or it does not move.

    Args:
        t_s: Equally spaced times, seconds.
        queue_pkts: Packets waiting.
        probability: The share that is signalled, as the AQM has it.
        noise_std_pkts: The deviation predicted of a stable loop; without one the loop counts as unstable by theory.
    """
    t, queue, p = (np.asarray(values, dtype=float) for values in (t_s, queue_pkts, probability))
    found = _core.oscillation(t, queue, p, noise_std_pkts)
    return None if found is None else Oscillation(**found)
