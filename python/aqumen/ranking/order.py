"""The order of the AQMs of a comparison by a goal, and how sure it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqumen import _core
from aqumen.errors import ScenarioError

__all__ = ["GOALS", "Figure", "Goal", "Place", "Ranking", "letter_groups", "rank"]

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


def _goals() -> dict[str, Goal]:
    goals = {}
    for entry in _core.goals():
        name, figures = entry.pop("name"), tuple(Figure(**figure) for figure in entry.pop("figures"))
        goals[name] = Goal(figures=figures, **entry)
    return goals


GOALS = _goals()
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
    group: str | None = None
    """Letters: two AQMs share one if neither is clearly better (compact letter display). `None` without intervals."""


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
    """Of each AQM the figures that the goal looks at; with several engines of each AQM on each."""
    places: tuple[Place, ...]
    """The AQMs in order."""
    words: str
    """The goal in words."""

    @property
    def goal(self) -> Goal:
        """The goal."""
        return GOALS[self.by]

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
    unranked: Collection[str] = (),
) -> Ranking:
    """Rank AQMs by a goal; differences that lie within the 95 % intervals are none.

    Delay and utilisation are two figures. That one AQM is faster and as full is proof enough. Where one is faster and
    the other fuller, power decides: a rule without it has the fullest buffer among the best whatever it holds.

    Args:
        summaries: For each AQM the summary of each figure, of this link in this window.
        link: Name of a link that is recorded, such as `bottleneck`.
        window: Which part of the run: `steady`, `all`, or one that the scenario names.
        by: A name of `GOALS`; without one the queue's error where there is a target, else delay at utilisation.
        base_rtt_s: The round-trip time without queues, seconds; power counts it beside the queue.
        unranked: Names that have figures but no place, such as an AQM on a second engine.
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
        Place(aqm=aqm, place=place, clearly_best=best, tied_with=tuple(tied), group=group)
        for aqm, place, best, tied, group in order
    )
    shown = {aqm: {f.key: metrics.get(f.key, _NONE) for f in GOALS[by].figures} for aqm, metrics in summaries.items()}
    return Ranking(link=link, window=window, by=by, summaries=shown, places=places, words=words)


def letter_groups(names: Sequence[str], differ: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Letters of a compact letter display (Piepho, 2004): two rows share a letter if and only if they do not differ.

    Args:
        names: The rows, in the order in which the table shows them.
        differ: The pairs that differ significantly, each in either order.
    """
    at = {name: i for i, name in enumerate(names)}
    letters = _core.letter_groups(len(at), {(at[one], at[other]) for one, other in differ})
    return dict(zip(at, letters, strict=True))


_NONE: Summary = {"mean": None, "std": None, "ci95": None, "n": 0}
