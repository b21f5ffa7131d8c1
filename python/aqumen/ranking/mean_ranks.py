"""Which AQM is ahead over many places at once: mean ranks, and how far apart they must be to differ.

J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine Learning Research 7,
2006, section 3.2: Friedman's test asks whether any AQM differs from the others, Nemenyi's which two do.

Within one situation places are no sample of anything: what is drawn there is the seed. Each seed gives every AQM a mean
rank, and how far apart these must be follows from how they scatter from seed to seed (Tukey's range test with seeds as
blocks).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

from aqumen._core import student_quantile
from aqumen.ranking import letter_groups

__all__ = ["Ranks", "SeedRanks", "as_dict", "concordance", "critical_range", "pareto", "ranks", "seed_ranks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """The ranks of some AQMs over places."""

    means: dict[str, float]
    """Mean rank of each AQM, 1 for the best, in rising order."""
    places: int
    """At how many places."""
    friedman: float
    """Friedman's statistic: with many places chi-squared with one degree of freedom less than AQMs."""
    critical_difference: float
    """Mean ranks that differ by less than this are not told apart, at 95 % for all pairs together."""

    def tied_with_best(self) -> list[str]:
        """The AQMs that are not told apart from the first, the first included."""
        return _tied(self.means, self.critical_difference)

    def groups(self) -> dict[str, str]:
        """Letters of a compact letter display: AQMs that are not told apart share one."""
        return _groups(self.means, self.critical_difference)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRanks:
    """The ranks of some AQMs by the same figures over seeds."""

    means: dict[str, float]
    """Mean over the seeds of each AQM's mean rank over the figures, 1 for the best, in rising order."""
    figures: int
    """By how many figures."""
    seeds: int
    """Over how many seeds."""
    critical_difference: float | None
    """Mean ranks that differ by less are not told apart, at 95 % for all pairs together; `None` with one seed."""

    def tied_with_best(self) -> list[str]:
        """The AQMs that are not told apart from the first, the first included."""
        return _tied(self.means, math.inf if self.critical_difference is None else self.critical_difference)

    def groups(self) -> dict[str, str]:
        """Letters of a compact letter display: AQMs that are not told apart share one."""
        return _groups(self.means, math.inf if self.critical_difference is None else self.critical_difference)


def as_dict(ranked: Ranks | SeedRanks) -> dict[str, Any]:
    """Ranks as JSON has them.

    Args:
        ranked: What `ranks` or `seed_ranks` returned.
    """
    return {**asdict(ranked), "tied_with_best": ranked.tied_with_best(), "groups": ranked.groups()}


def _tied(means: Mapping[str, float], critical_difference: float) -> list[str]:
    """The AQMs that differ from the best by less; of those that are equal none is told apart."""
    best = min(means.values())
    return [aqm for aqm, rank in means.items() if not _differ(rank, best, critical_difference)]


def _groups(means: Mapping[str, float], critical_difference: float) -> dict[str, str]:
    pairs = itertools.combinations(means, 2)
    return letter_groups(list(means), ((a, b) for a, b in pairs if _differ(means[a], means[b], critical_difference)))


def _differ(one: float, other: float, critical_difference: float) -> bool:
    return one != other and abs(one - other) >= critical_difference


def ranks(table: Sequence[Mapping[str, float]], *, more: bool = False) -> Ranks | None:
    """Ranks over places; `None` for fewer than two AQMs or places.

    Args:
        table: For each place the figure of each AQM; all places have the same AQMs.
        more: Whether more is better.
    """
    aqms = list(table[0]) if table else []
    k, n = len(aqms), len(table)
    if k < 2 or n < 2:
        return None
    means = _rising(_mean_ranks(table, more=more))
    spread = sum(rank * rank for rank in means.values()) - k * (k + 1) ** 2 / 4
    return Ranks(
        means=means,
        places=n,
        friedman=12 * n / (k * (k + 1)) * spread,
        critical_difference=critical_range(k) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n)),
    )


def seed_ranks(tables: Sequence[Sequence[Mapping[str, float]]]) -> SeedRanks | None:
    """Ranks over seeds; `None` for fewer than two AQMs or without a figure.

    Args:
        tables: For each seed the figures, less being better; all have the same figures of the same AQMs.
    """
    if not tables or not tables[0] or len(tables[0][0]) < 2:
        return None
    by_seed = [_mean_ranks(table) for table in tables]
    k, n = len(by_seed[0]), len(by_seed)
    means = {aqm: sum(one[aqm] for one in by_seed) / n for aqm in by_seed[0]}
    critical = None
    if n > 1:
        # In each seed the ranks have the same mean, so that what is left beside an AQM's own mean is chance.
        freedom = (k - 1) * (n - 1)
        error = sum((one[aqm] - means[aqm]) ** 2 for one in by_seed for aqm in means) / freedom
        # The range of normal numbers, wider as the variance is estimated: exact for two, where it is the paired t-test.
        wider = student_quantile(0.975, freedom) / NormalDist().inv_cdf(0.975)
        critical = critical_range(k) * wider * math.sqrt(error / n)
    return SeedRanks(means=_rising(means), figures=len(tables[0]), seeds=n, critical_difference=critical)


def concordance(a: Sequence[float], b: Sequence[float]) -> float:
    """Kendall's tau (b) of two lists of figures of the same things: 1 if they order them alike, -1 if the other way
    round, 0 if one tells nothing of the other. Pairs that are equal in a list count for half.

    Args:
        a: The figures of one list.
        b: Those of the other.
    """

    def sign(x: float, y: float) -> int:
        return (x > y) - (x < y)

    pairs = [(sign(a[i], a[j]), sign(b[i], b[j])) for i in range(len(a)) for j in range(i)]
    told = math.sqrt(sum(x != 0 for x, _ in pairs) * sum(y != 0 for _, y in pairs))
    return sum(x * y for x, y in pairs) / told if told else 1.0


def _mean_ranks(table: Sequence[Mapping[str, float]], more: bool = False) -> dict[str, float]:
    """The mean rank of each AQM over the figures."""
    sums = dict.fromkeys(table[0], 0.0)
    for figures in table:
        for aqm, own in figures.items():
            ahead = sum(other > own if more else other < own for other in figures.values())
            # Equal ones share the mean of their ranks.
            sums[aqm] += ahead + (sum(other == own for other in figures.values()) + 1) / 2
    return {aqm: total / len(table) for aqm, total in sums.items()}


def _rising(means: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(means.items(), key=lambda item: item[1]))


@functools.cache
def critical_range(k: int, sure: float = 0.95) -> float:
    """The range that `k` independent standard normal numbers exceed in one case of 20.

    Args:
        k: How many numbers, at least 2.
        sure: With which probability their range is below.
    """

    def below(q: float) -> float:
        # The smallest lies at z, all others between z and z + q. By Simpson's rule.
        def density(z: float) -> float:
            return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (_normal(z + q) - _normal(z)) ** (k - 1)

        steps, first, last = 400, -8.0, 8.0
        h = (last - first) / steps
        inner = sum((4 if i % 2 else 2) * density(first + i * h) for i in range(1, steps))
        return k * h / 3 * (density(first) + inner + density(last))

    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < sure else (low, middle)
    return low


def _normal(z: float) -> float:
    return (1 + math.erf(z / math.sqrt(2))) / 2


def pareto(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The names of which no other is better in one figure without being worse in the other: less is better in both.

    Args:
        points: Two figures of each name.
    """

    def beaten(name: str) -> bool:
        x, y = points[name]
        return any(a <= x and b <= y and (a, b) != (x, y) for a, b in points.values())

    return sorted((name for name in points if not beaten(name)), key=lambda name: points[name])
