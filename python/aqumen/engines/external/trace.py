"""Packet trace of a queue in an external simulator, and the link metrics computed from it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aqumen import _core
from aqumen.engines.external.plan import Link

__all__ = ["QueueTrace", "length_at", "link_metrics"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QueueTrace:
    """Events of a queue in order of time; times in seconds, sizes in bytes."""

    arrived_s: Floats
    """Arrival times of all packets, accepted or not."""
    left_s: Floats
    """Times at which transmissions start."""
    left_bytes: Floats
    """Size on the wire of each transmitted packet."""
    wait_s: Floats
    """Sojourn time of each transmitted packet."""
    marked: npt.NDArray[np.bool_]
    """Whether this queue marked each transmitted packet."""
    early_drop_s: Floats
    """Times of early drops."""
    overflow_drop_s: Floats
    """Times of overflow drops."""
    lost: Floats
    """All drops in order, one row each: time, arrival number from 1, and 1 for an early drop."""
    change_s: Floats
    """Times at which the queue length changes."""
    length_pkts: Floats
    """Queue length from each of these times on, packets."""


def link_metrics(
    trace: QueueTrace,
    link: Link,
    start_s: float,
    end_s: float,
    queue_integral: float | None = None,
    sample_interval_s: float = 0.1,
) -> dict[str, float | int | None]:
    """Return the metrics of one link in one window, by the keys of `run --json`.

    `queue_integral` is the simulator's integral of the queue length over the window (packet-seconds); without it the
    mean is computed from the trace. `sample_interval_s` is the sampling interval for settling time, overshoot and
    dispersion of losses.
    """
    # Departure is the end of the transmission, at the rate in force at its start.
    departed_s = trace.left_s + trace.left_bytes * 8.0 / link.rate_at(trace.left_s)
    record = _core.QueueRecord(
        trace.arrived_s,
        np.column_stack((trace.left_s, departed_s, trace.left_bytes, trace.wait_s, trace.marked)),
        trace.lost,
        np.column_stack((trace.change_s, trace.length_pkts)),
        link.rates,
        link.target_pkts,
        sample_interval_s,
    )
    sampled = _sampled_pkts(trace, link, start_s, end_s)
    return record.metrics(start_s, end_s, queue_integral, sampled)


def length_at(trace: QueueTrace, times: Floats) -> Floats:
    """Return the queue length just before each of the given times (s)."""
    if not trace.change_s.size:
        return np.zeros_like(times)
    before = np.searchsorted(trace.change_s, times, side="left") - 1
    return np.where(before >= 0, trace.length_pkts[before], 0.0)


def _sampled_pkts(trace: QueueTrace, link: Link, start_s: float, end_s: float) -> list[float]:
    """Return the queue at the AQM's sampling times; empty for an AQM without."""
    frequency = _sampling_hz(link.aqm.name, link.aqm.params)
    if frequency is None:
        return []
    ticks = np.arange(np.ceil(start_s * frequency), np.floor(end_s * frequency) + 1) / frequency
    lengths: list[float] = length_at(trace, ticks[(ticks > start_s) & (ticks <= end_s)]).tolist()
    return lengths


def _sampling_hz(name: str, params: Any) -> float | None:
    match name:
        case "pi":
            return float(params["frequency"])
        case "rem":
            return 1.0 / float(params["interval"])
    return None
