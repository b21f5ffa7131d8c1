"""Reads the packet trace of one queue; the link's metrics are made of it as of our own queues.

ns-2 writes a line per packet that arrives (`+`), leaves the queue for transmission (`-`) or is dropped (`d`; `e` when
the AQM dropped it early), with the time rounded to a microsecond. The queue is first in, first out and drops arriving
packets only, so that the k-th packet let in is the k-th to leave: lengths and waits follow, exact to that microsecond.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aqumen import _core

from .errors import Ns2Failed
from .plan import Link

__all__ = ["QueueTrace", "link_metrics", "read_trace"]

Floats = npt.NDArray[np.float64]
_CE = 4
"""Position of the congestion-experienced flag among the seven flag characters of a trace line."""


@dataclass(frozen=True)
class QueueTrace:
    """What happened at a queue, times in seconds and sizes in bytes, each in order of time."""

    arrived_s: Floats
    """Every packet that came, let in or not."""
    left_s: Floats
    """Packets that were taken for transmission."""
    left_bytes: Floats
    wait_s: Floats
    """For each of these, how long it waited in the queue (its transmission not counted)."""
    marked: npt.NDArray[np.bool_]
    """For each of these, whether this queue marked it CE."""
    early_drop_s: Floats
    overflow_drop_s: Floats
    lost: Floats
    """These in one order, a row each: when, the packet's number by arrival from 1, 1 if it was dropped early."""
    change_s: Floats
    """When the queue length changed ..."""
    length_pkts: Floats
    """... and the number of waiting packets from then on."""


def read_trace(path: Path, link: Link) -> QueueTrace:
    """Read the trace of `link` that ns-2 left at `path`."""
    arrived: list[str] = []
    let_in: list[tuple[float, bool]] = []
    left: list[float] = []
    sizes: list[int] = []
    waits: list[float] = []
    marked: list[bool] = []
    lost: list[tuple[float, int, bool]] = []
    change: list[float] = []
    length: list[int] = []
    waiting = 0
    head = 0
    # Queues that do not say why they drop (REM, AVQ): a drop is an overflow when the buffer was full.
    tells = link.aqm.name not in ("rem", "avq")
    with path.open(encoding="ascii") as lines:
        for line in lines:
            what, time, _, _, _, size, flags, _ = line.split(" ", 7)
            now = float(time)
            if what == "+":
                arrived.append(time)
                # The packet that came last counts as let in until a drop at the same moment says otherwise.
                let_in.append((now, flags[_CE] == "E"))
                waiting += 1
            elif what == "-":
                came, ce_before = let_in[head]
                head += 1
                waiting -= 1
                left.append(now)
                sizes.append(int(size))
                waits.append(now - came)
                marked.append(flags[_CE] == "E" and not ce_before)
            else:
                if not let_in or let_in[-1][0] != now:
                    raise Ns2Failed(f"{path.name}: a packet was dropped at {now} that had not just arrived")
                let_in.pop()
                waiting -= 1
                full = what == "d" and (tells or waiting >= link.buffer_pkts)
                lost.append((now, len(arrived), not full))
            change.append(now)
            length.append(waiting)
    return QueueTrace(
        arrived_s=np.array(arrived, dtype=np.float64),
        left_s=np.array(left),
        left_bytes=np.array(sizes, dtype=np.float64),
        wait_s=np.array(waits),
        marked=np.array(marked, dtype=np.bool_),
        early_drop_s=np.array([now for now, _, early in lost if early]),
        overflow_drop_s=np.array([now for now, _, early in lost if not early]),
        lost=np.array(lost, dtype=np.float64).reshape(-1, 3),
        change_s=np.array(change),
        length_pkts=np.array(length, dtype=np.float64),
    )


def link_metrics(
    trace: QueueTrace,
    link: Link,
    start_s: float,
    end_s: float,
    queue_integral: float | None = None,
    sample_interval_s: float = 0.1,
) -> dict[str, float | int | None]:
    """The metrics of one link over one window, by the names of `run --json`.

    `queue_integral` is ns-2's own integral of the queue length over the window (packet-seconds); without it the mean
    comes from the trace. `sample_interval_s` is the step of the samples by which settling, overshoot and the dispersion
    of losses are judged.
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
    metrics: dict[str, float | int | None] = json.loads(record.metrics_json(start_s, end_s, queue_integral, sampled))
    return metrics


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
    if name == "pi":
        return float(params["frequency"])
    if name == "rem":
        return 1.0 / float(params.get("interval", 0.002))
    return None
