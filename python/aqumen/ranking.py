"""The order of the AQMs of a comparison by a goal, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aqumen.errors import ScenarioError, listed

__all__ = ["GOALS", "Figure", "Goal", "Place", "Ranking", "rank"]

Summary = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure that a goal looks at."""

    key: str
    """The metric: of the link, or over its flow groups."""
    title: str
    """What it is."""
    unit: str
    """Its unit in tables."""
    factor: float = 1.0
    """From the metric to that unit."""
    digits: int = 1
    """Digits behind the point in tables."""
    more: bool = False
    """Whether more is better."""
    alike: float = 0.0
    """Differences up to this count as none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What AQMs are ranked by: an AQM is better if it is clearly so in some figure, and clearly worse in none."""

    words: str
    """The goal in words; `{base}` stands for the round-trip time without queues."""
    figures: tuple[Figure, ...]
    """What it looks at, the figure that is shown first."""
    needs: str
    """What a scenario without such a figure lacks."""
    power: bool = False
    """Delay and utilisation, in this order, are weighed by power where one AQM is faster and the other fuller."""


_DELAY = Figure(key="sojourn_mean_s", title="Sojourn, mean", unit="ms", factor=1000)
_FULL = Figure(key="utilization", title="Utilisation", unit="%", factor=100, digits=2, more=True, alike=0.005)

GOALS = {
    "queue-error": Goal(
        words="the queue's distance from its target (QACD), the smallest first",
        figures=(Figure(key="qacd_pkts", title="QACD", unit="packets"),),
        needs="no target is set; give one with --target, such as --target 50pkt",
    ),
    "delay": Goal(words="mean sojourn time, the shortest first", figures=(_DELAY,), needs="no packet crossed the link"),
    "p99": Goal(
        words="the sojourn time that 99 % of the packets stay below, the shortest first",
        figures=(Figure(key="sojourn_p99_s", title="Sojourn, p99", unit="ms", factor=1000),),
        needs="this engine records no distribution of sojourn times",
    ),
    "delay-at-utilization": Goal(
        words="delay at utilisation: the largest power, which is utilisation over round-trip time ({base} without "
        "queues, and the mean sojourn time); nobody stands above an AQM that is as full and faster",
        figures=(_DELAY, _FULL),
        needs="no packet crossed the link",
        power=True,
    ),
    "page-load": Goal(
        words="mean page load time, the shortest first",
        figures=(Figure(key="page_load_mean_s", title="Page load, mean", unit="s", digits=2),),
        needs="no flow group loads web pages",
    ),
    "calls": Goal(
        words="quality of calls (MOS), the best first",
        figures=(Figure(key="mos", title="Quality of calls", unit="MOS", digits=2, more=True),),
        needs="no flow group is a call",
    ),
    "goodput": Goal(
        words="goodput of all flows, the largest first",
        figures=(Figure(key="goodput_bps", title="Goodput", unit="Mbit/s", factor=1e-6, digits=3, more=True),),
        needs="there are no flows",
    ),
}
"""What `--rank-by` takes. Without it: `queue-error` where the scenario has a target, else `delay-at-utilization`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of one AQM."""

    aqm: str
    """The AQM as it was asked for."""
    place: int
    """1 + the number of AQMs that are clearly better."""
    clearly_best: bool
    """It is clearly better than every other."""
    tied_with: tuple[str, ...]
    """AQMs of which neither it nor they are clearly better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """AQMs in order, the best first."""

    link: str
    """The link that is judged."""
    window: str
    """The window that is judged."""
    by: str
    """The goal, a name of `GOALS`."""
    summaries: Mapping[str, Mapping[str, Summary]]
    """Of each AQM the figures that the goal looks at."""
    places: tuple[Place, ...]
    """The AQMs in order."""
    base_rtt_s: float = 0.0
    """The round-trip time without queues, where power decides."""

    @property
    def goal(self) -> Goal:
        """The goal."""
        return GOALS[self.by]

    @property
    def words(self) -> str:
        """The goal in words."""
        return self.goal.words.format(base=f"{self.base_rtt_s * 1000:.4g} ms")

    @property
    def figure(self) -> Figure:
        """The figure that is shown first."""
        return self.goal.figures[0]


def rank(
    summaries: Mapping[str, Mapping[str, Summary]],
    link: str,
    window: str,
    by: str | None = None,
    *,
    base_rtt_s: float = 0.0,
) -> Ranking:
    """Rank AQMs by a goal; differences that lie within the 95 % intervals are none.

    Delay and utilisation are two figures. That one AQM is faster and as full is proof enough. Where one is faster and
    the other fuller, power decides: a rule without it has the fullest buffer among the best whatever it holds.

    Args:
        summaries: For each AQM the summary of each figure, of this link in this window.
        link: The link.
        window: The window.
        by: A name of `GOALS`; without one the queue's error where there is a target, else delay at utilisation.
        base_rtt_s: The round-trip time without queues, seconds; power counts it beside the queue.
    """
    if by is None:
        has_target = all(metrics.get("qacd_pkts", {}).get("n", 0) > 0 for metrics in summaries.values())
        by = "queue-error" if has_target else "delay-at-utilization"
    elif by not in GOALS:
        raise ScenarioError(f"rank by {by}: no such goal; there are: {listed(GOALS)}")
    elif not any(metrics.get(GOALS[by].figures[0].key, {}).get("n", 0) for metrics in summaries.values()):
        raise ScenarioError(f"rank by {by}: {GOALS[by].needs}")
    figures = GOALS[by].figures
    spans = {aqm: [_span(metrics.get(f.key), f) for f in figures] for aqm, metrics in summaries.items()}
    alike = [figure.alike for figure in figures]
    power = {aqm: _power(span, base_rtt_s) for aqm, span in spans.items()} if GOALS[by].power else {}

    def clearly(a: str, b: str) -> bool:
        if not power:
            return _beats(spans[a], spans[b], alike)
        # Never against the power of the means: so nobody beats, over others, who beats him.
        above = power[a][1] <= power[b][1]
        return above and (_beats(spans[a], spans[b], alike) or power[a][2] < power[b][0])

    beats = {a: {b for b in spans if clearly(a, b)} for a in spans}
    # No worse in any mean and better in one: no proof, but nobody may stand above whoever is ahead of him in all.
    ahead = {a: {b for b in spans if _ahead(spans[a], spans[b])} for a in spans}
    below = _below({a: beats[a] | ahead[a] for a in spans})
    proven = {a: {e for c in {a, *below[a]} for d in beats[c] for e in {d, *below[d]}} for a in spans}
    better = {b: {a for a in spans if b in proven[a] and a not in {b, *below[b]}} for b in spans}
    sure = len(spans) > 1 and all((m.get(f.key) or {}).get("ci95") for m in summaries.values() for f in figures)

    def order(aqm: str) -> tuple[int, list[float]]:
        first = [power[aqm][1]] if power else []
        return len(better[aqm]), first + [mean for _, mean, _ in spans[aqm]]

    places = tuple(
        Place(
            aqm=aqm,
            place=1 + len(better[aqm]),
            clearly_best=sure and beats[aqm] == set(spans) - {aqm},
            tied_with=tuple(b for b in spans if b != aqm and b not in beats[aqm] and aqm not in beats[b]),
        )
        for aqm in sorted(spans, key=order)
    )
    shown = {aqm: {f.key: metrics.get(f.key, _NONE) for f in figures} for aqm, metrics in summaries.items()}
    return Ranking(link=link, window=window, by=by, summaries=shown, places=places, base_rtt_s=base_rtt_s)


_NONE: Summary = {"mean": None, "std": None, "ci95": None, "n": 0}

Span = tuple[float, float, float]


def _span(summary: Summary | None, figure: Figure) -> Span:
    """Interval and mean, turned so that less is better; a single run has one value; what is undefined is beyond all."""
    if summary is None or not summary["n"]:
        return math.inf, math.inf, math.inf
    mean = float(summary["mean"])
    low, high = summary["ci95"] or (mean, mean)
    return (-high, -mean, -low) if figure.more else (low, mean, high)


def _beats(one: list[Span], other: list[Span], alike: list[float]) -> bool:
    """Whether one is clearly better in some figure and clearly worse in none."""
    better = [high + margin < low for (_, _, high), (low, _, _), margin in zip(one, other, alike, strict=True)]
    worse = [high + margin < low for (_, _, high), (low, _, _), margin in zip(other, one, alike, strict=True)]
    return any(better) and not any(worse)


def _power(spans: list[Span], base_rtt_s: float) -> Span:
    """Kleinrock's power, turned so that less is better: the time for which utilisation is paid.

    L. Kleinrock, "Power and deterministic rules of thumb for probabilistic problems in computer communications",
    ICC 1979: throughput over response time. As wide as the intervals of both figures allow.
    """
    (low, delay, high), (most, empty, least) = spans

    def paid(delay_s: float, empty: float) -> float:
        # Utilisation is turned: -1 is full.
        return (base_rtt_s + delay_s) / -empty if empty < 0 else math.inf

    return paid(max(low, 0.0), most), paid(delay, empty), paid(high, least)


def _ahead(one: list[Span], other: list[Span]) -> bool:
    """Whether one's means are nowhere worse and somewhere better."""
    means = [(a, b) for (_, a, _), (_, b, _) in zip(one, other, strict=True)]
    return all(a <= b for a, b in means) and any(a < b for a, b in means)


def _below(edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """All that can be reached from each."""
    reached = {}
    for start in edges:
        seen: set[str] = set()
        next_ = list(edges[start])
        while next_:
            at = next_.pop()
            if at not in seen:
                seen.add(at)
                next_ += edges[at]
        reached[start] = seen
    return reached
