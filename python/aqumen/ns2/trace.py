"""Reads the packet trace of one queue and computes the link's metrics from it.

ns-2 writes a line per packet that arrives (`+`), leaves the queue for transmission (`-`) or is dropped (`d`; `e` when
the AQM dropped it early), with the time rounded to a microsecond. The queue is first in, first out and drops arriving
packets only, so that the k-th packet let in is the k-th to leave: lengths and waits follow, exact to that microsecond.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

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
    early: list[float] = []
    overflow: list[float] = []
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
                (overflow if full else early).append(now)
            change.append(now)
            length.append(waiting)
    return QueueTrace(
        arrived_s=np.array(arrived, dtype=np.float64),
        left_s=np.array(left),
        left_bytes=np.array(sizes, dtype=np.float64),
        wait_s=np.array(waits),
        marked=np.array(marked, dtype=np.bool_),
        early_drop_s=np.array(early),
        overflow_drop_s=np.array(overflow),
        change_s=np.array(change),
        length_pkts=np.array(length, dtype=np.float64),
    )


def link_metrics(
    trace: QueueTrace, link: Link, start_s: float, end_s: float, queue_integral: float | None = None
) -> dict[str, float | int | None]:
    """The metrics of one link over one window, by the names of `run --json`.

    `queue_integral` is ns-2's own integral of the queue length over the window (packet-seconds); without it the mean
    comes from the trace.
    """
    duration = end_s - start_s
    lengths, spans = _steps(trace, start_s, end_s)
    trace_mean = float(np.dot(lengths, spans)) / duration
    variance = float(np.dot((lengths - trace_mean) ** 2, spans)) / duration
    mean = trace_mean if queue_integral is None else queue_integral / duration
    target_pkts = link.target_pkts
    taken = _within(trace.left_s, start_s, end_s)
    # A packet has departed when its transmission, at the rate in force when it began, is over.
    departed = _within(trace.left_s + trace.left_bytes * 8.0 / link.rate_at(trace.left_s), start_s, end_s)
    arrivals = int(np.count_nonzero(_within(trace.arrived_s, start_s, end_s)))
    marks = int(np.count_nonzero(trace.marked & taken))
    early = int(np.count_nonzero(_within(trace.early_drop_s, start_s, end_s)))
    overflow = int(np.count_nonzero(_within(trace.overflow_drop_s, start_s, end_s)))
    waits = trace.wait_s[taken]

    def ratio(count: int) -> float | None:
        return count / arrivals if arrivals else None

    def wait(quantile: float) -> float | None:
        return float(np.quantile(waits, quantile, method="inverted_cdf")) if waits.size else None

    return {
        "utilization": float(trace.left_bytes[departed].sum()) * 8.0 / link.capacity_bits(start_s, end_s),
        "queue_mean_pkts": mean,
        "queue_std_pkts": variance**0.5,
        "qacd_pkts": None if target_pkts is None else (variance + (mean - target_pkts) ** 2) ** 0.5,
        "qacd_sampled_pkts": _sampled_deviation(trace, link, start_s, end_s),
        "sojourn_mean_s": float(waits.mean()) if waits.size else None,
        "sojourn_p50_s": wait(0.50),
        "sojourn_p95_s": wait(0.95),
        "sojourn_p99_s": wait(0.99),
        "arrivals_pkts": arrivals,
        "departures_pkts": int(np.count_nonzero(departed)),
        "marked_pkts": marks,
        "early_dropped_pkts": early,
        "overflow_dropped_pkts": overflow,
        "wire_lost_pkts": None,
        "mark_ratio": ratio(marks),
        "early_drop_ratio": ratio(early),
        "overflow_drop_ratio": ratio(overflow),
    }


def _within(times: Floats, start_s: float, end_s: float) -> npt.NDArray[np.bool_]:
    return (times >= start_s) & (times < end_s)


def _steps(trace: QueueTrace, start_s: float, end_s: float) -> tuple[Floats, Floats]:
    """The queue length as steps over a window: lengths, and for how many seconds each."""
    first, last = np.searchsorted(trace.change_s, [start_s, end_s], side="right")
    before = trace.length_pkts[first - 1] if first else 0.0
    lengths = np.concatenate(([before], trace.length_pkts[first:last]))
    edges = np.concatenate(([start_s], trace.change_s[first:last], [end_s]))
    return lengths, np.diff(edges)


def length_at(trace: QueueTrace, times: Floats) -> Floats:
    """Waiting packets just before each of the given times (s)."""
    if not trace.change_s.size:
        return np.zeros_like(times)
    before = np.searchsorted(trace.change_s, times, side="left") - 1
    return np.where(before >= 0, trace.length_pkts[before], 0.0)


def _sampled_deviation(trace: QueueTrace, link: Link, start_s: float, end_s: float) -> float | None:
    """Root mean square of queue minus target at the AQM's own sampling instants; None without those or a target."""
    frequency = _sampling_hz(link.aqm.name, link.aqm.params)
    if frequency is None or link.target_pkts is None:
        return None
    ticks = np.arange(np.ceil(start_s * frequency), np.floor(end_s * frequency) + 1) / frequency
    ticks = ticks[(ticks > start_s) & (ticks <= end_s)]
    if not ticks.size:
        return None
    return float(np.sqrt(np.mean((length_at(trace, ticks) - link.target_pkts) ** 2)))


def _sampling_hz(name: str, params: Any) -> float | None:
    if name == "pi":
        return float(params["frequency"])
    if name == "rem":
        return 1.0 / float(params.get("interval", 0.002))
    return None
