"""Frequency response of a plant in closed loop, from its excitation: estimate, coherence and confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aqumen.errors import ScenarioError
from aqumen.identification.excited import Floats, Record
from aqumen.identification.fits import Complexes

__all__ = ["Spectrum", "spectrum"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Spectrum:
    """Frequency response without a model; every array has the shape (frequencies,)."""

    w: Floats
    """Frequencies, rad/s."""
    response: Complexes
    """Response of the queue (packets) to the probability."""
    std: Floats
    """Standard deviation of the response: the root of E|error|^2."""
    coherence: Floats
    """Fraction of the queue's power that the excitation explains, 0 to 1."""
    segments: float
    """Number of independent segments behind each value."""

    @property
    def radius(self) -> Floats:
        """Radius of the 95 % confidence circle around each response."""
        return np.asarray(np.sqrt(-np.log(0.05)) * self.std)


def spectrum(records: Sequence[Record], segment_s: float, w: Floats) -> Spectrum:
    """Estimate the frequency response with the excitation as instrument.

    G = S_yr / S_ur, averaged over segments with Hann windows that overlap by half. The excitation r is independent of
    the noise, so the estimate has no bias from the feedback, unlike S_yu / S_uu (Ljung, System Identification, section
    13.5). Variance: S_ee S_rr / (K |S_ur|^2) with e = y - G u.

    Args:
        records: Runs with the same excitation law.
        segment_s: Length of a segment, seconds.
        w: Frequencies, rad/s; each value is the average of the lines near it.
    """
    period = records[0].period_s
    length = max(int(segment_s / period), 16)
    window = np.hanning(length + 1)[:length]
    angle = 2.0 * np.pi * np.arange(1, length // 2 + 1) / (length * period)
    lines: list[tuple[Complexes, Complexes, Complexes]] = []
    for record in records:
        signals = [record.queue_pkts, record.probability, record.excitation]
        for begin in range(0, len(record.t_s) - length + 1, length // 2):
            pieces = [each[begin : begin + length] for each in signals]
            y, u, r = (np.fft.rfft(window * (x - x.mean()))[1 : len(angle) + 1] for x in pieces)
            lines.append((y, u, r))
    if len(lines) < 4:
        raise ScenarioError("the run is too short for a frequency response; make it longer")
    y, u, r = (np.array([each[k] for each in lines]) for k in range(3))
    bounds = np.sqrt(w[1:] * w[:-1])
    place = np.searchsorted(bounds, angle)
    found = []
    for k, at in enumerate(w):
        inside = np.flatnonzero(place == k)
        if not len(inside):
            inside = np.array([int(np.argmin(np.abs(angle - at)))])
        # Lines of one segment next to one another correlate under a Hann window: two in three are independent.
        independent = len(lines) * 0.5 * 1.06 * max(len(inside) / 1.5, 1.0)
        found.append(_at(y[:, inside], u[:, inside], r[:, inside], independent))
    response, std, coherence = (np.array(each) for each in zip(*found, strict=True))
    return Spectrum(w=w, response=response, std=std.real, coherence=coherence.real, segments=0.53 * len(lines))


def _at(y: Complexes, u: Complexes, r: Complexes, independent: float) -> tuple[complex, float, float]:
    """Return response, its standard deviation and the coherence of lines around one frequency."""
    rr, yy = float(np.mean(np.abs(r) ** 2)), float(np.mean(np.abs(y) ** 2))
    yr, ur = complex(np.mean(y * r.conj())), complex(np.mean(u * r.conj()))
    if rr == 0.0 or ur == 0.0 or yy == 0.0:
        return complex(np.nan), float("inf"), 0.0
    g = yr / ur
    error = float(np.mean(np.abs(y - g * u) ** 2))
    return g, float(np.sqrt(error * rr / independent)) / abs(ur), min(abs(yr) ** 2 / (rr * yy), 1.0)
