"""Mean ranks of AQMs over many networks, and critical differences.

J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine Learning Research 7,
2006, section 3.2: Friedman's test decides whether any AQM differs, Nemenyi's test which pairs do.

Within one situation the networks are fixed and the seeds are the sample. Each seed gives every AQM a mean rank; the
critical difference follows from their variance between seeds (Tukey's range test with seeds as blocks).
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
    """Ranks of AQMs over networks."""

    means: dict[str, float]
    """Mean rank of each AQM, 1 for the best, ascending."""
    places: int
    """Number of networks."""
    friedman: float
    """Friedman's statistic: asymptotically chi-squared, with one degree of freedom less than AQMs."""
    critical_difference: float
    """Smallest significant difference of mean ranks, at 95 % for all pairs together."""

    def tied_with_best(self) -> list[str]:
        """Return the best AQM and those not significantly different from it."""
        return _tied(self.means, self.critical_difference)

    def groups(self) -> dict[str, str]:
        """Return the letters of a compact letter display: AQMs that share one do not differ significantly."""
        return _groups(self.means, self.critical_difference)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRanks:
    """Ranks of AQMs by fixed metrics over seeds."""

    means: dict[str, float]
    """Mean over the seeds of each AQM's mean rank over the metrics, 1 for the best, ascending."""
    figures: int
    """Number of metrics."""
    seeds: int
    """Number of seeds."""
    critical_difference: float | None
    """Smallest significant difference of mean ranks, at 95 % for all pairs together; `None` with one seed."""

    def tied_with_best(self) -> list[str]:
        """Return the best AQM and those not significantly different from it."""
        return _tied(self.means, math.inf if self.critical_difference is None else self.critical_difference)

    def groups(self) -> dict[str, str]:
        """Return the letters of a compact letter display: AQMs that share one do not differ significantly."""
        return _groups(self.means, math.inf if self.critical_difference is None else self.critical_difference)


def as_dict(ranked: Ranks | SeedRanks) -> dict[str, Any]:
    """Return ranks as a JSON object.

    Args:
        ranked: Result of `ranks` or `seed_ranks`.
    """
    return {**asdict(ranked), "tied_with_best": ranked.tied_with_best(), "groups": ranked.groups()}


def _tied(means: Mapping[str, float], critical_difference: float) -> list[str]:
    """Return the AQMs not significantly different from the best; equal ranks never differ."""
    best = min(means.values())
    return [aqm for aqm, rank in means.items() if not _differ(rank, best, critical_difference)]


def _groups(means: Mapping[str, float], critical_difference: float) -> dict[str, str]:
    pairs = itertools.combinations(means, 2)
    return letter_groups(list(means), ((a, b) for a, b in pairs if _differ(means[a], means[b], critical_difference)))


def _differ(one: float, other: float, critical_difference: float) -> bool:
    return one != other and abs(one - other) >= critical_difference


def ranks(table: Sequence[Mapping[str, float]], *, more: bool = False) -> Ranks | None:
    """Rank AQMs over networks; `None` for fewer than two AQMs or networks.

    Args:
        table: For each network the metric of each AQM; all networks have the same AQMs.
        more: Whether larger is better.
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
    """Rank AQMs over seeds; `None` for fewer than two AQMs or without a metric.

    Args:
        tables: For each seed a list of metrics, each by AQM, smaller is better.
    """
    if not tables or not tables[0] or len(tables[0][0]) < 2:
        return None
    by_seed = [_mean_ranks(table) for table in tables]
    k, n = len(by_seed[0]), len(by_seed)
    means = {aqm: sum(one[aqm] for one in by_seed) / n for aqm in by_seed[0]}
    critical = None
    if n > 1:
        # Within a seed the ranks have a fixed mean, so the residual from an AQM's own mean is random.
        freedom = (k - 1) * (n - 1)
        error = sum((one[aqm] - means[aqm]) ** 2 for one in by_seed for aqm in means) / freedom
        # Range of normal numbers, widened for the estimated variance; exact for two AQMs (paired t-test).
        wider = student_quantile(0.975, freedom) / NormalDist().inv_cdf(0.975)
        critical = critical_range(k) * wider * math.sqrt(error / n)
    return SeedRanks(means=_rising(means), figures=len(tables[0]), seeds=n, critical_difference=critical)


def concordance(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Kendall's tau-b of two lists: 1 for equal order, -1 for opposite order, 0 for no association.

    Args:
        a: Values of the first list.
        b: Values of the second list, in the same order of items.
    """

    def sign(x: float, y: float) -> int:
        return (x > y) - (x < y)

    pairs = [(sign(a[i], a[j]), sign(b[i], b[j])) for i in range(len(a)) for j in range(i)]
    told = math.sqrt(sum(x != 0 for x, _ in pairs) * sum(y != 0 for _, y in pairs))
    return sum(x * y for x, y in pairs) / told if told else 1.0


def _mean_ranks(table: Sequence[Mapping[str, float]], more: bool = False) -> dict[str, float]:
    """Return the mean rank of each AQM over the metrics."""
    sums = dict.fromkeys(table[0], 0.0)
    for figures in table:
        for aqm, own in figures.items():
            ahead = sum(other > own if more else other < own for other in figures.values())
            # Ties share their mean rank.
            sums[aqm] += ahead + (sum(other == own for other in figures.values()) + 1) / 2
    return {aqm: total / len(table) for aqm, total in sums.items()}


def _rising(means: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(means.items(), key=lambda item: item[1]))


@functools.cache
def critical_range(k: int, sure: float = 0.95) -> float:
    """Return the 95 % quantile of the range of `k` independent standard normal numbers.

    Args:
        k: Number of normal numbers, at least 2.
        sure: Probability that the range is below the quantile.
    """

    def below(q: float) -> float:
        # The smallest is at z, all others between z and z + q. Simpson's rule.
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
    """Return the Pareto-optimal names: no other is better in one metric without being worse in the other. Smaller is
    better.

    Args:
        points: Two metrics for each name.
    """

    def beaten(name: str) -> bool:
        x, y = points[name]
        return any(a <= x and b <= y and (a, b) != (x, y) for a, b in points.values())

    return sorted((name for name in points if not beaten(name)), key=lambda name: points[name])
