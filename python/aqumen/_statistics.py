"""How many events stand behind a figure: a mean of three pages says little, however many seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aqumen import _core

__all__ = ["ANY", "FEW", "MARK", "NOTE", "dropped", "events", "few", "summarize", "summarize_metric"]

FEW = 10
"""A figure with fewer events behind it is marked."""
MARK = "†"
"""The mark."""
NOTE = f"{MARK} Fewer than {FEW} events (packets lost or marked, pages, transfers) stand behind the figure."

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
"""By the beginning of a metric's key the keys that count what it is made of."""


def events(metric: str, runs: Iterable[Mapping[str, float | None]]) -> int | None:
    """Number of events behind a figure over all runs; behind a percentile, those beyond it. `None` if none are counted.

    Args:
        metric: The key of the figure.
        runs: The metrics of a link or a flow group in one window, a run each.
    """
    for pattern, keys in _COUNTS:
        if (found := re.match(pattern, metric)) is not None:
            counts = [run.get(key.format(**found.groupdict())) for run in runs for key in keys]
            known = [count for count in counts if count is not None]
            beyond = re.search(r"_p(9\d)_", metric)
            share = 1.0 if beyond is None else (100 - int(beyond[1])) / 100
            # Rounded first: 0.05 times 200 is a little more than 10.
            return math.ceil(round(share * sum(known), 6)) if known else None
    return None


def few(summary: Mapping[str, Any]) -> bool:
    """Whether so few events stand behind a figure that it is marked; none at all is a fact and is not.

    Args:
        summary: What stands in place of a figure over several runs.
    """
    return 0 < (summary.get("events") or 0) < FEW


ANY = (-math.inf, math.inf)
"""The range of a figure that may be anything."""


def summarize(values: Sequence[float | None], within: tuple[float, float] = ANY) -> dict[str, Any]:
    """Mean, standard deviation, 95 % interval and number of the values that are defined.

    Args:
        values: One value per run.
        within: The range of the figure, in which its interval stays; without ends it is Student's.
    """
    defined = [float(value) for value in values if value is not None]
    if not defined:
        return {"mean": None, "std": None, "ci95": None, "n": 0}
    mean, std, ci95, n = _core.summary(defined, *within)
    return {"mean": mean, "std": std, "ci95": None if ci95 is None else list(ci95), "n": n}


def summarize_metric(metric: str, runs: Sequence[Mapping[str, float | None]]) -> dict[str, Any]:
    """The same of a metric, and how many events stand behind it, where those are counted.

    Args:
        metric: The key of the metric.
        runs: The metrics of a link or a flow group in one window, a run each.
    """
    found = summarize([run[metric] for run in runs], _core.range_of(metric))
    behind = events(metric, runs) if found["n"] else None
    return found if behind is None else {**found, "events": behind}


def dropped(metrics: dict[str, float | None]) -> float | None:
    """Share of the packets that a link dropped, early or for want of room.

    Args:
        metrics: The link's metrics.
    """
    early, overflow = metrics["early_drop_ratio"], metrics["overflow_drop_ratio"]
    return None if early is None and overflow is None else (early or 0.0) + (overflow or 0.0)
