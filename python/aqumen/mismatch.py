"""How far engines disagree about the queue of one AQM.

The first engine is the one that the others are held against. Curves are compared as averages: over the seeds, and over
the last second, since no two engines agree about single round trips.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen.result import Result
from aqumen.transient import SMOOTH_S

if TYPE_CHECKING:
    from aqumen.result import Floats

__all__ = ["averaged", "mismatch"]


def mismatch(results: Sequence[Result]) -> dict[str, Any]:
    """What is compared -> link -> window -> differences; empty with a single engine.

    Args:
        results: All runs, those of one AQM and engine in a row.
    """
    found: dict[str, Any] = {}
    for aqm in dict.fromkeys(run.spec for run in results):
        by_label: dict[str, list[Result]] = {}
        for run in results:
            if run.spec == aqm:
                by_label.setdefault(run.label, []).append(run)
        reference, *others = by_label
        for label in others:
            first, second = by_label[reference], by_label[label]
            found[label] = {"reference": reference, "links": _links(first, second)}
    return found


def _links(first: Sequence[Result], second: Sequence[Result]) -> dict[str, Any]:
    return {
        link: {window: _differences(first, second, link, window, ends) for window, ends in first[0].windows.items()}
        for link in first[0].links
        if link in second[0].links
    }


def _differences(
    first: Sequence[Result], second: Sequence[Result], link: str, window: str, ends: tuple[float, float]
) -> dict[str, float | None]:
    (t, one), (_, other) = averaged(first, link), averaged(second, link)
    n = min(len(one), len(other))
    inside = (t[:n] > ends[0]) & (t[:n] <= ends[1])
    apart = (other[:n] - one[:n])[inside]
    return {
        "queue_mean_difference_pkts": _difference(first, second, link, window, "queue_mean_pkts"),
        "queue_std_difference_pkts": _difference(first, second, link, window, "queue_std_pkts"),
        "curve_rms_pkts": float(np.sqrt(np.mean(apart**2))) if len(apart) else None,
    }


def _difference(first: Sequence[Result], second: Sequence[Result], link: str, window: str, metric: str) -> float | None:
    """Mean of a metric over the second runs less that over the first."""
    one, other = ([run.link(link, window)[metric] for run in runs] for runs in (first, second))
    if None in one or None in other:
        return None
    return float(np.mean(np.array(other, dtype=np.float64)) - np.mean(np.array(one, dtype=np.float64)))


def averaged(runs: Sequence[Result], link: str) -> tuple[Floats, Floats]:
    """The sampling instants, and the queue averaged over the runs and over the last second.

    Args:
        runs: The runs.
        link: The link.
    """
    t = runs[0].series(link).t_s
    queue = np.mean([run.series(link).queue_pkts for run in runs], axis=0)
    step = float(np.median(np.diff(t))) if len(t) > 1 else SMOOTH_S
    width = max(1, round(SMOOTH_S / step))
    total = np.concatenate([[0.0], np.cumsum(queue, dtype=np.float64)])
    last = np.arange(1, len(queue) + 1)
    begin = np.maximum(last - width, 0)
    return t, (total[last] - total[begin]) / (last - begin)
