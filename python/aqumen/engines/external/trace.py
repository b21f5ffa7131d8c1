"""What happened at a queue, packet by packet; the link's metrics are made of it as of our own queues."""

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
    """What happened at a queue, times in seconds and sizes in bytes, each in order of time."""

    arrived_s: Floats
    """Every packet that came, let in or not."""
    left_s: Floats
    """Packets that were taken for transmission."""
    left_bytes: Floats
    """For each of these, its size on the wire."""
    wait_s: Floats
    """For each of these, how long it waited in the queue (its transmission not counted)."""
    marked: npt.NDArray[np.bool_]
    """For each of these, whether this queue marked it CE."""
    early_drop_s: Floats
    """When the AQM dropped packets."""
    overflow_drop_s: Floats
    """When packets were dropped for want of room."""
    lost: Floats
    """These in one order, a row each: when, the packet's number by arrival from 1, 1 if it was dropped early."""
    change_s: Floats
    """When the queue length changed ..."""
    length_pkts: Floats
    """... and the number of waiting packets from then on."""


def link_metrics(
    trace: QueueTrace,
    link: Link,
    start_s: float,
    end_s: float,
    queue_integral: float | None = None,
    sample_interval_s: float = 0.1,
) -> dict[str, float | int | None]:
    """The metrics of one link over one window, by the names of `run --json`.

    `queue_integral` is the simulator's own integral of the queue length over the window (packet-seconds); without it
    the mean comes from the trace. `sample_interval_s` is the step of the samples by which settling, overshoot and the
    dispersion of losses are judged.
    """
    # A packet has departed when its transmission, at the rate in force when it began, is over.
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
    """Waiting packets just before each of the given times (s)."""
    if not trace.change_s.size:
        return np.zeros_like(times)
    before = np.searchsorted(trace.change_s, times, side="left") - 1
    return np.where(before >= 0, trace.length_pkts[before], 0.0)


def _sampled_pkts(trace: QueueTrace, link: Link, start_s: float, end_s: float) -> list[float]:
    """The queue at the AQM's own sampling instants; nothing where it has none."""
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
