"""Which AQM is ahead over many places at once: mean ranks, and how far apart they must be to differ.

J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine Learning Research 7,
2006, section 3.2: Friedman's test asks whether any AQM differs from the others, Nemenyi's which two do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Ranks", "critical_range", "pareto", "ranks"]


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
        best = min(self.means.values())
        return [aqm for aqm, rank in self.means.items() if rank - best < self.critical_difference]


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
    sums = dict.fromkeys(aqms, 0.0)
    for figures in table:
        for aqm in aqms:
            own = figures[aqm]
            ahead = sum(other > own if more else other < own for other in figures.values())
            # Equal ones share the mean of their ranks.
            sums[aqm] += ahead + (sum(other == own for other in figures.values()) + 1) / 2
    means = {aqm: total / n for aqm, total in sorted(sums.items(), key=lambda item: item[1])}
    spread = sum(rank * rank for rank in means.values()) - k * (k + 1) ** 2 / 4
    return Ranks(
        means=means,
        places=n,
        friedman=12 * n / (k * (k + 1)) * spread,
        critical_difference=critical_range(k) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n)),
    )


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
