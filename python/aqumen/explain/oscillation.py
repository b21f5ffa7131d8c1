"""Detection of self-sustained oscillations of a measured queue, as opposed to packet noise.

A stable loop filters packet noise, with a spectral peak if its margin is small; an unstable loop has a limit cycle. The
criteria are the constant amplitude of a cycle, the standard deviation relative to the predicted noise, and, if no noise
could be predicted, the fraction of time in which the probability is saturated at 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from aqumen import _core

__all__ = ["Oscillation", "oscillation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Oscillation:
    """Oscillation analysis of a measured queue."""

    oscillates: bool
    """Whether the oscillation is self-sustained."""
    why: str
    """Reason of the verdict."""
    period_s: float | None
    """Period of the spectral peak, seconds; `None` unless it contains half of the power."""
    std_pkts: float
    """Standard deviation of the queue, packets."""
    peak_share: float
    """Fraction of the power around the peak."""
    irregularity: float
    """Standard deviation / mean of the envelope around the peak: 0 for a sine, 0.52 for noise."""
    bound_share: float
    """Fraction of time with p = 0 or 1."""
    autocorrelation: float
    """Largest autocorrelation at lags from its first zero to a fifth of the run: 1 for a periodic queue."""


def oscillation(
    t_s: ArrayLike, queue_pkts: ArrayLike, probability: ArrayLike, noise_std_pkts: float | None = None
) -> Oscillation | None:
    """Analyse the queue of a run; `None` if it is too short or constant.

    Args:
        t_s: Equally spaced times, seconds.
        queue_pkts: Queue length, packets.
        probability: Marking or dropping probability.
        noise_std_pkts: Predicted standard deviation of a stable loop, packets; `None` for an unstable loop.
    """
    t, queue, p = (np.asarray(values, dtype=float) for values in (t_s, queue_pkts, probability))
    found = _core.oscillation(t, queue, p, noise_std_pkts)
    return None if found is None else Oscillation(**found)
