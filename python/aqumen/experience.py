"""Scores of AQMs by user experience.

A score combines metrics of different units: the weighted geometric mean of each metric's ratio to the best AQM. Halving
the load time of a page counts as much as doubling the rate of an upload. An AQM that is best in every metric has 100 %.
The order of two AQMs does not depend on which others are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqumen import _core
from aqumen.result import Result

__all__ = ["ALIKE", "AqmScore", "ExperienceMetric", "Score", "scores"]

ALIKE: float = _core.ALIKE
"""Scores closer than this ratio count as equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperienceMetric:
    """A metric of user experience."""

    key: str
    """Name for `--weigh`."""
    title: str
    """Column heading."""
    unit: str
    """Unit in tables."""
    digits: int
    """Decimal places in tables."""
    of: Callable[[Result], float | None]
    """Returns the metric of a run, in that unit; `None` if undefined."""
    more: bool = False
    """Whether larger is better."""
    from_: float = 0.0
    """Lower end of its range: a call's MOS begins at 1."""
    to: float = math.inf
    """Upper end of its range."""
    least: float = 1e-3
    """Smallest distance from `from_` that ratios use."""
    weight: float = 1.0
    """Default weight."""
    worst: float = math.nan
    """Value that replaces an undefined metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AqmScore:
    """Score of one AQM."""

    aqm: str
    """The AQM as given by the user."""
    place: int
    """1 + the number of AQMs that are significantly better."""
    tied_with: tuple[str, ...]
    """AQMs that are neither significantly better nor worse."""
    score: float
    """100 times the weighted geometric mean of the ratios to the best AQM, percent."""
    score_half: float | None
    """Half-width of the 95 % confidence interval of the score; `None` with one seed."""
    by_senders: Mapping[str, float]
    """Score with each kind of senders, percent."""
    values: Mapping[str, dict[str, Any]]
    """Summary of each metric over the seeds."""
    alone: frozenset[str]
    """Metrics in which its mean is the best."""
    group: str | None = None
    """Letters: AQMs that share one do not differ significantly (compact letter display). `None` with one seed."""

    @property
    def score_ci95(self) -> list[float] | None:
        """The 95 % confidence interval of the score, symmetric in its logarithm; `None` with one seed."""
        if self.score_half is None:
            return None
        half = math.asinh(self.score_half / self.score)
        return [self.score * math.exp(-half), self.score * math.exp(half)]


Score = tuple[AqmScore, ...]
Runs = Mapping[str, Mapping[str, Mapping[int, Result]]]
"""AQM -> kind of senders -> seed -> run."""


def scores(runs: Runs, metrics: Sequence[ExperienceMetric], weights: Mapping[str, float]) -> Score:
    """Score and order AQMs, best first. Differences are paired by seed, since all AQMs see the same traffic.

    Args:
        runs: The runs; a seed counts if every AQM finished it with all senders.
        metrics: Metrics of user experience.
        weights: Weight of each metric, by its key.
    """
    senders = list(next(iter(runs.values())))
    seeds = sorted(set.intersection(*(set(of) for by in runs.values() for of in by.values())))
    figures = [(f.more, f.from_, f.to, f.least, f.worst, weights[f.key]) for f in metrics]
    tried = [
        (aqm, [[[f.of(by[who][seed]) for seed in seeds] for who in senders] for f in metrics])
        for aqm, by in runs.items()
    ]
    return tuple(
        AqmScore(
            aqm=aqm,
            place=place,
            tied_with=tuple(tied),
            group=group,
            score=score,
            score_half=half,
            by_senders=dict(zip(senders, by_senders, strict=True)),
            values={f.key: _summary(told) for f, told in zip(metrics, values, strict=True)},
            alone=frozenset(f.key for f, leads in zip(metrics, leads_in, strict=True) if leads),
        )
        for aqm, place, tied, group, score, half, by_senders, values, leads_in in _core.rank_by_experience(
            figures, tried
        )
    )


def _summary(told: tuple[float, float | None, tuple[float, float] | None, int] | None) -> dict[str, Any]:
    mean, std, interval, n = told or (None, None, None, 0)
    return {"mean": mean, "std": std, "ci95": None if interval is None else list(interval), "n": n}
