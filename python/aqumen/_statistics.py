"""Number of events behind a metric: a mean over three pages says little, however many seeds there are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aqumen import _core
from aqumen.metrics import Summary

__all__ = ["ANY", "FEW", "MARK", "NOTE", "dropped", "events", "few", "summarize", "summarize_metric"]

FEW = 10
"""Metrics with fewer events are marked."""
MARK = "†"
"""Mark after such a value."""
NOTE = f"{MARK} Based on fewer than {FEW} events (packets lost or marked, pages, transfers)."

_LOSSES = ("early_dropped_pkts", "overflow_dropped_pkts")
_COUNTS = (
    (r"sojourn_", ("departures_pkts",)),
    (r"mark_ratio", ("marked_pkts",)),
    (r"early_drop_ratio", ("early_dropped_pkts",)),
    (r"overflow_drop_ratio", ("overflow_dropped_pkts",)),
    (r"drop_ratio|loss_(run|dispersion|interval|event|sync)", _LOSSES),
    (r"page_load_", ("pages",)),
    (r"frame_loss_ratio", ("frames",)),
    (r"video_startup_", ("video_began",)),
    (r"(?P<size>fct_\w+)_(mean_s|p\d+_s|slowdown)", ("{size}_count",)),
    (r"(?P<own>video_stalls|video_switches|timeouts|refused)", ("{own}",)),
)
"""Pattern of a metric's key, and the keys of the counters of its events."""


def events(metric: str, runs: Iterable[Mapping[str, float | None]]) -> int | None:
    """Count the events behind a metric over all runs; for a percentile, those beyond it. `None` if they are not
    counted.

    Args:
        metric: Key of the metric.
        runs: Metrics of a link or a flow group in one window, for each run.
    """
    for pattern, keys in _COUNTS:
        if (found := re.match(pattern, metric)) is not None:
            counts = [run.get(key.format(**found.groupdict())) for run in runs for key in keys]
            known = [count for count in counts if count is not None]
            beyond = re.search(r"_p(9\d)_", metric)
            share = 1.0 if beyond is None else (100 - int(beyond[1])) / 100
            # Rounding removes floating-point errors: 0.05 times 200 is slightly more than 10.
            return math.ceil(round(share * sum(known), 6)) if known else None
    return None


def few(summary: Mapping[str, Any]) -> bool:
    """Return whether a metric has few events and is marked; a metric with none is exact and is not.

    Args:
        summary: Summary of a metric over several runs.
    """
    return 0 < (summary.get("events") or 0) < FEW


ANY = (-math.inf, math.inf)
"""Range of an unbounded metric."""


def summarize(values: Sequence[float | None], within: tuple[float, float] = ANY) -> Summary:
    """Return mean, standard deviation, 95 % confidence interval and number of the defined values.

    Args:
        values: One value for each run; `None` if undefined.
        within: Range of the metric, which bounds its interval; Student's interval if unbounded.
    """
    defined = [float(value) for value in values if value is not None]
    if not defined:
        return {"mean": None, "std": None, "ci95": None, "n": 0}
    mean, std, ci95, n = _core.summary(defined, *within)
    return {"mean": mean, "std": std, "ci95": None if ci95 is None else list(ci95), "n": n}


def summarize_metric(metric: str, runs: Sequence[Mapping[str, float | None]]) -> Summary:
    """Summarise a metric, with the number of events behind it if they are counted.

    Args:
        metric: Key of the metric.
        runs: Metrics of a link or a flow group in one window, for each run.
    """
    found = summarize([run[metric] for run in runs], _core.range_of(metric))
    behind = events(metric, runs) if found["n"] else None
    return found if behind is None else {**found, "events": behind}


def dropped(metrics: dict[str, float | None]) -> float | None:
    """Return the fraction of packets that a link dropped, early or by overflow.

    Args:
        metrics: Metrics of the link.
    """
    early, overflow = metrics["early_drop_ratio"], metrics["overflow_drop_ratio"]
    return None if early is None and overflow is None else (early or 0.0) + (overflow or 0.0)
