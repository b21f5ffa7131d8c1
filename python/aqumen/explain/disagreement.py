"""Disagreement of engines in the queue of one AQM.

The first engine is the reference. Curves are averaged over the seeds and over 1 s before comparison, since engines
differ in every single round trip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, cast

from aqumen import _core
from aqumen._run import RunData

if TYPE_CHECKING:
    from aqumen.engines.answer import Floats

__all__ = ["Disagreement", "QueueDifference", "averaged", "disagreement", "sentences"]


class QueueDifference(TypedDict):
    """Difference of the queue between two engines in one window: the engine less its reference."""

    queue_mean_difference_pkts: float | None
    """Difference of the mean queue length, packets."""
    queue_std_difference_pkts: float | None
    """Difference of the standard deviation of the queue length, packets."""
    curve_rms_pkts: float | None
    """Root mean square of the difference of the averaged queues over time, packets."""


class Disagreement(TypedDict):
    """Disagreement of an engine with the reference, by link and window."""

    reference: str
    """Label of the reference."""
    links: dict[str, dict[str, QueueDifference]]
    """Differences by link and window."""


def disagreement(results: Sequence[RunData]) -> dict[str, Disagreement]:
    """Return the differences: label -> link -> window -> metric; empty with a single engine.

    Args:
        results: All runs, grouped by AQM and engine.
    """
    found: dict[str, Disagreement] = {}
    for aqm in dict.fromkeys(run.spec for run in results):
        by_label: dict[str, list[RunData]] = {}
        for run in results:
            if run.spec == aqm:
                by_label.setdefault(run.label, []).append(run)
        reference, *others = by_label
        for label in others:
            first, second = by_label[reference], by_label[label]
            found[label] = {"reference": reference, "links": _links(first, second)}
    return found


def sentences(found: Mapping[str, Disagreement], link: str, window: str) -> list[str]:
    """Describe the difference of each engine from the reference in a sentence.

    Args:
        found: Result of `disagreement`.
        link: Name of a recorded link, such as `bottleneck`.
        window: `steady`, `all`, or a window of the scenario.
    """
    told = []
    for label, entry in found.items():
        each = entry["links"].get(link, {}).get(window)
        apart, mean = (None, None) if each is None else (each["curve_rms_pkts"], each["queue_mean_difference_pkts"])
        if apart is not None and mean is not None:
            told.append(
                f"{label} differs from {entry['reference']} by {apart:.1f} packets (root mean square of the queue); "
                f"its mean queue is {abs(mean):.1f} packets {'shorter' if mean < 0 else 'longer'}."
            )
    return told


def _links(first: Sequence[RunData], second: Sequence[RunData]) -> dict[str, dict[str, QueueDifference]]:
    return {
        link: {window: _differences(first, second, link, window, ends) for window, ends in first[0].windows.items()}
        for link in first[0].links
        if link in second[0].links
    }


def _differences(
    first: Sequence[RunData], second: Sequence[RunData], link: str, window: str, ends: tuple[float, float]
) -> QueueDifference:
    (t, one), (_, other) = averaged(first, link), averaged(second, link)
    return {
        "queue_mean_difference_pkts": _difference(first, second, link, window, "queue_mean_pkts"),
        "queue_std_difference_pkts": _difference(first, second, link, window, "queue_std_pkts"),
        "curve_rms_pkts": _core.curve_rms(t, one, other, *ends),
    }


def _difference(
    first: Sequence[RunData], second: Sequence[RunData], link: str, window: str, metric: str
) -> float | None:
    """Mean of a metric over the second runs less that over the first."""
    means = []
    for runs in (first, second):
        known = [
            value
            for run in runs
            if (value := cast(Mapping[str, float | None], run.link(link, window))[metric]) is not None
        ]
        if len(known) < len(runs):
            return None
        means.append(_core.summary(known)[0])
    return means[1] - means[0]


def averaged(runs: Sequence[RunData], link: str) -> tuple[Floats, Floats]:
    """Return the sampling times and the queue averaged over the runs and over 1 s.

    Args:
        runs: Results of one AQM on one engine, one for each seed.
        link: Name of a recorded link, such as `bottleneck`.
    """
    t = runs[0].series(link).t_s
    return t, _core.mean_curve(t, [run.series(link).queue_pkts for run in runs])
