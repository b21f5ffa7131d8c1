"""The order of the AQMs of a comparison, and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Place", "Ranking", "rank"]

Summary = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of one AQM."""

    aqm: str
    """The AQM as it was asked for."""
    place: int
    """1 + the number of AQMs that are clearly better: whose whole interval lies below this one's."""
    clearly_best: bool
    """Its interval overlaps no other, and none is better."""
    tied_with: tuple[str, ...]
    """AQMs whose intervals overlap this one's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """AQMs in order, the best first."""

    link: str
    """The link that is judged."""
    window: str
    """The window that is judged."""
    metric: str
    """What decides; less is better."""
    places: tuple[Place, ...]
    """The AQMs in order."""


def rank(summaries: Mapping[str, Mapping[str, Summary]], link: str, window: str) -> Ranking:
    """Rank AQMs by the distance of the queue from its target, ties by utilisation.

    Without a target the mean sojourn time decides. AQMs whose 95 % intervals overlap are tied.

    Args:
        summaries: For each AQM the summary of each metric, of this link in this window.
        link: The link.
        window: The window.
    """
    has_target = all(metrics.get("qacd_pkts", {}).get("n", 0) > 0 for metrics in summaries.values())
    metric = "qacd_pkts" if has_target else "sojourn_mean_s"
    spans = {aqm: _span(metrics.get(metric)) for aqm, metrics in summaries.items()}
    better = {a: [b for b in spans if spans[b][1] < spans[a][0]] for a in spans}
    tied = {a: tuple(b for b in spans if b != a and b not in better[a] and a not in better[b]) for a in spans}

    def order(aqm: str) -> tuple[int, float, float]:
        utilization = summaries[aqm].get("utilization", {}).get("mean")
        return len(better[aqm]), -(utilization or 0.0), spans[aqm][0]

    places = tuple(
        Place(
            aqm=aqm,
            place=1 + len(better[aqm]),
            clearly_best=not better[aqm] and not tied[aqm] and len(spans) > 1,
            tied_with=tied[aqm],
        )
        for aqm in sorted(spans, key=order)
    )
    return Ranking(link=link, window=window, metric=metric, places=places)


def _span(summary: Summary | None) -> tuple[float, float]:
    """The interval of a mean; its single value where one run gives none; beyond all others where it is not defined."""
    if summary is None or not summary["n"]:
        return float("inf"), float("inf")
    low, high = summary["ci95"] or (summary["mean"], summary["mean"])
    return float(low), float(high)
