"""Ranking of the AQMs of a comparison by a goal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from aqumen import _core
from aqumen.errors import ScenarioError
from aqumen.metrics import Summary

__all__ = ["GOALS", "Figure", "Goal", "Rank", "Ranking", "letter_groups", "rank"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A metric of a goal."""

    key: str
    """Key of the metric, of the link or over its flow groups."""
    title: str
    """Column heading."""
    unit: str
    """Unit in tables."""
    factor: float = 1.0
    """Factor from the metric to that unit."""
    digits: int = 1
    """Decimal places in tables."""
    more: bool = False
    """Whether larger is better."""
    alike: float = 0.0
    """Differences up to this value count as zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Ranking criterion: a better AQM is significantly better in some metric and significantly worse in none."""

    words: str
    """Description; `{base}` stands for the base RTT."""
    figures: tuple[Figure, ...]
    """Metrics, the main one first."""
    needs: str
    """Requirement that a scenario without such a metric lacks."""
    power: bool = False
    """Whether power (utilisation / delay) decides if one AQM has less delay and the other more utilisation."""


def _goals() -> dict[str, Goal]:
    goals = {}
    for entry in _core.goals():
        name, figures = entry.pop("name"), tuple(Figure(**figure) for figure in entry.pop("figures"))
        goals[name] = Goal(figures=figures, **entry)
    return goals


GOALS = _goals()
"""Values of `--rank-by`. Default: `queue-error` if the scenario has a target, else `delay-at-utilization`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Rank of one AQM."""

    aqm: str
    """The AQM as given by the user."""
    place: int
    """1 + the number of AQMs that are significantly better."""
    clearly_best: bool
    """Whether it is significantly better than every other AQM."""
    tied_with: tuple[str, ...]
    """AQMs that are neither significantly better nor worse."""
    group: str | None = None
    """Letters: AQMs that share one do not differ significantly (compact letter display). `None` without intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """AQMs in order, best first."""

    link: str
    """Name of the link."""
    window: str
    """Name of the window."""
    by: str
    """Name of the goal in `GOALS`."""
    summaries: Mapping[str, Mapping[str, Summary]]
    """Summaries of the goal's metrics for each label."""
    places: tuple[Rank, ...]
    """AQMs in order."""
    words: str
    """Description of the goal."""

    @property
    def goal(self) -> Goal:
        """The goal."""
        return GOALS[self.by]

    @property
    def figure(self) -> Figure:
        """The goal's main metric."""
        return self.goal.figures[0]


def rank(
    summaries: Mapping[str, Mapping[str, Summary]],
    link: str,
    window: str,
    by: str | None = None,
    *,
    base_rtt_s: float = 0.0,
    unranked: Collection[str] = (),
) -> Ranking:
    """Rank AQMs by a goal; differences that are not significant at 95 % count as zero.

    `delay-at-utilization` has two metrics. An AQM with less delay and equal utilisation is better. If one has less
    delay and the other more utilisation, power (utilisation / delay) decides. Otherwise the fullest buffer would
    always be among the best.

    Args:
        summaries: Metric summaries of each AQM for this link and window.
        link: Name of a recorded link, such as `bottleneck`.
        window: `steady`, `all`, or a window of the scenario.
        by: Name of a goal in `GOALS`; default: `queue-error` if there is a target, else `delay-at-utilization`.
        base_rtt_s: Base RTT, seconds; power uses base RTT plus sojourn time.
        unranked: Labels with metrics but without a place, such as an AQM on a second engine.
    """
    keys = {figure.key for goal in GOALS.values() for figure in goal.figures}
    known = [
        (aqm, [(key, metrics[key]) for key in keys if metrics.get(key, _NONE)["n"]])
        for aqm, metrics in summaries.items()
        if aqm not in unranked
    ]
    try:
        by, words, order = _core.rank(known, by, base_rtt_s)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    places = tuple(
        Rank(aqm=aqm, place=place, clearly_best=best, tied_with=tuple(tied), group=group)
        for aqm, place, best, tied, group in order
    )
    shown = {aqm: {f.key: metrics.get(f.key, _NONE) for f in GOALS[by].figures} for aqm, metrics in summaries.items()}
    return Ranking(link=link, window=window, by=by, summaries=shown, places=places, words=words)


def letter_groups(names: Sequence[str], differ: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Compact letter display (Piepho 2004): two rows share a letter if and only if they do not differ significantly.

    Args:
        names: Names of the rows, in table order.
        differ: Pairs that differ significantly, in any order.
    """
    at = {name: i for i, name in enumerate(names)}
    letters = _core.letter_groups(len(at), {(at[one], at[other]) for one, other in differ})
    return dict(zip(at, letters, strict=True))


_NONE: Summary = {"mean": None, "std": None, "ci95": None, "n": 0}
