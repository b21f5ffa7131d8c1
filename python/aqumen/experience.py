"""What people feel of a network, and AQMs in order by it, with every weight said.

Several figures that have no common unit make one score: each counts as a ratio, and the score is their weighted
geometric mean. Halving the time of a page weighs as much as doubling the rate of an upload; 100 % would be an AQM as
good as the best in each. The order of two AQMs does not depend on which others are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqumen import _core
from aqumen.result import Result

__all__ = ["ALIKE", "Felt", "Score", "Scored", "scores"]

ALIKE = 0.02
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
    least: float = 1e-3
    """Below so much, counted from there, ratios mean nothing."""
    weight: float = 1.0
    """How much it counts unless `--weigh` says otherwise."""
    worst: float = math.nan
    """What stands for it where it is not defined."""

    def good(self, value: float | None) -> float:
        """Its logarithm, more is better.

        Args:
            value: The figure.
        """
        known = self.worst if value is None else value
        logarithm = math.log(max(known - self.from_, self.least))
        return logarithm if self.more else -logarithm


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
    good = {
        aqm: {f.key: {who: [f.good(f.of(by[who][seed])) for seed in seeds] for who in senders} for f in felt}
        for aqm, by in runs.items()
    }
    whole = sum(weights.values())
    best = {(f.key, who): max(_mean(good[aqm][f.key][who]) for aqm in runs) for f in felt for who in senders}

    def by_seed(aqm: str, over: Sequence[str]) -> list[float]:
        """Logarithm of the score, seed by seed."""
        return [
            sum(
                weights[f.key] / whole * (good[aqm][f.key][who][i] - best[f.key, who]) / len(over)
                for f in felt
                for who in over
                if weights[f.key]
            )
            for i in range(len(seeds))
        ]

    logs = {aqm: by_seed(aqm, senders) for aqm in runs}
    better = {aqm: {other for other in runs if other != aqm and _clearly(logs[other], logs[aqm])} for aqm in runs}
    lead = {f.key: max(runs, key=lambda aqm, f=f: sum(_mean(good[aqm][f.key][who]) for who in senders)) for f in felt}  # type: ignore[misc]
    scored = []
    for aqm, by in runs.items():
        mean, _, interval, _ = _core.summary(logs[aqm])
        level = math.exp(mean)
        scored.append(
            Scored(
                aqm=aqm,
                place=1 + len(better[aqm]),
                tied_with=tuple(b for b in runs if b != aqm and b not in better[aqm] and aqm not in better[b]),
                score=100 * level,
                score_half=None if interval is None else 100 * level * math.sinh((interval[1] - interval[0]) / 2),
                by_senders={who: 100 * math.exp(_mean(by_seed(aqm, [who]))) for who in senders},
                values={f.key: _over_seeds(f, by, senders, seeds) for f in felt},
                alone=frozenset(f.key for f in felt if lead[f.key] == aqm),
            )
        )
    # Nobody has a better place than one with a better score.
    ordered: list[Scored] = []
    for each in sorted(scored, key=lambda each: -each.score):
        ordered.append(replace(each, place=max(each.place, ordered[-1].place if ordered else 1)))
    return tuple(ordered)


def _clearly(one: list[float], other: list[float]) -> bool:
    """Whether one's score is above the other's by more than what counts as alike, as sure as the seeds allow."""
    differences = [a - b for a, b in zip(one, other, strict=True)]
    mean, _, interval, _ = _core.summary(differences)
    low = mean if interval is None else interval[0]
    return float(low) > 0 and float(mean) > math.log1p(ALIKE)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _over_seeds(
    f: Felt, by: Mapping[str, Mapping[int, Result]], senders: Sequence[str], seeds: Sequence[int]
) -> dict[str, Any]:
    """Summary over the seeds of the mean over the senders, of what is defined."""
    means = []
    for seed in seeds:
        known = [value for who in senders if (value := f.of(by[who][seed])) is not None]
        if known:
            means.append(_mean(known))
    if not means:
        return {"mean": None, "std": None, "ci95": None, "n": 0}
    mean, std, interval, n = _core.summary(means)
    return {"mean": mean, "std": std, "ci95": None if interval is None else list(interval), "n": n}
