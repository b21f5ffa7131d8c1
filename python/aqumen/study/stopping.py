"""Stopping rule: run seeds until the interval of a metric's mean is narrow enough.

The rule is sequential. It looks at fixed numbers of seeds only (`looks`), so that its answer does not depend on the
order in which runs finish. A rule that stops at the first narrow interval stops too often where the deviation is
underestimated by chance (Y. S. Chow, H. Robbins, "On the asymptotic theory of fixed-width sequential confidence
intervals", 1965), so the interval must be narrow at two looks in a row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from aqumen import _core
from aqumen._statistics import summarize

__all__ = ["GROWTH", "StoppingRule"]

GROWTH = 1.2
"""Factor between the numbers of seeds of two looks."""


MARGIN = 2.0
"""Seeds by which the width is narrowed, relative to their number, against stopping too early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """Until the 95 % interval of the mean of a metric is within a half-width."""

    metric: str
    """Column of the rows, such as `queue_mean_pkts`."""
    relative: float | None = None
    """Half-width over the mean."""
    absolute: float | None = None
    """Half-width in the unit of the metric."""
    least: int = 5
    """Seeds before the first look."""
    most: int = 200
    """Seeds after which it gives up: "not reached"."""

    def looks(self) -> list[int]:
        """Return the numbers of seeds at which the rule looks."""
        found = [self.least]
        while found[-1] < self.most:
            found.append(min(max(found[-1] + 1, math.ceil(found[-1] * GROWTH)), self.most))
        return found

    def half_width(self, values: Sequence[float | None]) -> tuple[float, float] | None:
        """Return mean and half-width of its 95 % interval; `None` if undefined.

        Args:
            values: One value for each seed; `None` where the metric is undefined.
        """
        found = summarize(values, _core.range_of(self.metric.rpartition(".")[2].partition("@")[0]))
        if found["mean"] is None or found["ci95"] is None or found["n"] < len(values):
            return None
        low, high = found["ci95"]
        return found["mean"], (high - low) / 2

    def narrow(self, values: Sequence[float | None]) -> bool:
        """Return whether the interval over these seeds is within the width.

        Args:
            values: One value for each seed.
        """
        found = self.half_width(values)
        if found is None:
            return False
        mean, half = found
        width = self.absolute if self.absolute is not None else (self.relative or 0.0) * abs(mean)
        return half * (1 + MARGIN / len(values)) <= width

    def wanted(self, values: Sequence[float | None]) -> int:
        """Return how many seeds the rule wants, given those that are finished, in their order.

        It is the number of values where the rule is satisfied, or has given up.

        Args:
            values: One value for each finished seed.
        """
        narrow = False
        for look in self.looks():
            if look > len(values):
                return look
            now = self.narrow(values[:look])
            if now and narrow:
                return look
            narrow = now
        return self.most

    def reached(self, values: Sequence[float | None]) -> bool:
        """Return whether the rule is satisfied by these seeds.

        Args:
            values: One value for each finished seed.
        """
        looks = [self.narrow(values[:look]) for look in self.looks() if look <= len(values)]
        return any(now and before for before, now in itertools.pairwise(looks))
