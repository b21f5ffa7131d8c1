"""What people feel of a network, and AQMs in order by it, with every weight said.

Several figures that have no common unit make one score: each counts as a ratio, and the score is their weighted
geometric mean. Halving the time of a page weighs as much as doubling the rate of an upload; 100 % would be an AQM as
good as the best in each. The order of two AQMs does not depend on which others are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqumen import _core
from aqumen.result import Result

__all__ = ["ALIKE", "Felt", "Score", "Scored", "scores"]

ALIKE: float = _core.ALIKE
"""Scores closer than this ratio count as alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Felt:
    """A figure that somebody feels."""

    key: str
    """Its name for `--weigh`."""
    title: str
    """What it is."""
    unit: str
    """Its unit in tables."""
    digits: int
    """Digits behind the point in tables."""
    of: Callable[[Result], float | None]
    """The figure of a run, in that unit."""
    more: bool = False
    """Whether more is better."""
    from_: float = 0.0
    """Where it begins: a call without any quality has MOS 1."""
    to: float = math.inf
    """The most that it can be."""
    least: float = 1e-3
    """Below so much, counted from there, ratios mean nothing."""
    weight: float = 1.0
    """How much it counts unless `--weigh` says otherwise."""
    worst: float = math.nan
    """What stands for it where it is not defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One AQM."""

    aqm: str
    """The AQM as it was asked for."""
    place: int
    """1 + the number of AQMs that are clearly better."""
    tied_with: tuple[str, ...]
    """AQMs of which neither it nor they are clearly better."""
    score: float
    """100 times the weighted geometric mean of its ratios to the best in each figure."""
    score_half: float | None
    """Half the 95 % interval of the score; `None` with one seed."""
    by_senders: Mapping[str, float]
    """The same score for each kind of senders."""
    values: Mapping[str, dict[str, Any]]
    """The summary of each figure over the seeds."""
    alone: frozenset[str]
    """Figures in which its mean is the best."""
    group: str | None = None
    """Letters: two AQMs share one if neither is clearly better (compact letter display). `None` with one seed."""

    @property
    def score_ci95(self) -> list[float] | None:
        """The 95 % interval of the score, symmetric in its logarithm; `None` with one seed."""
        if self.score_half is None:
            return None
        half = math.asinh(self.score_half / self.score)
        return [self.score * math.exp(-half), self.score * math.exp(half)]


Score = tuple[Scored, ...]
Runs = Mapping[str, Mapping[str, Mapping[int, Result]]]
"""AQM, kind of senders and seed of each run."""


def scores(runs: Runs, felt: Sequence[Felt], weights: Mapping[str, float]) -> Score:
    """AQMs in order, the best first. They meet the same traffic seed by seed, so differences are taken in pairs.

    Args:
        runs: The runs; a seed counts where every AQM finished it with all senders.
        felt: The figures.
        weights: How much each counts, by its key.
    """
    senders = list(next(iter(runs.values())))
    seeds = sorted(set.intersection(*(set(of) for by in runs.values() for of in by.values())))
    figures = [(f.more, f.from_, f.to, f.least, f.worst, weights[f.key]) for f in felt]
    tried = [
        (aqm, [[[f.of(by[who][seed]) for seed in seeds] for who in senders] for f in felt]) for aqm, by in runs.items()
    ]
    return tuple(
        Scored(
            aqm=aqm,
            place=place,
            tied_with=tuple(tied),
            group=group,
            score=score,
            score_half=half,
            by_senders=dict(zip(senders, by_senders, strict=True)),
            values={f.key: _summary(told) for f, told in zip(felt, values, strict=True)},
            alone=frozenset(f.key for f, leads in zip(felt, leads_in, strict=True) if leads),
        )
        for aqm, place, tied, group, score, half, by_senders, values, leads_in in _core.rank_by_experience(
            figures, tried
        )
    )


def _summary(told: tuple[float, float | None, tuple[float, float] | None, int] | None) -> dict[str, Any]:
    mean, std, interval, n = told or (None, None, None, 0)
    return {"mean": mean, "std": std, "ci95": None if interval is None else list(interval), "n": n}
