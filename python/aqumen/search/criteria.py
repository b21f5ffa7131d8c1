"""Criteria by which an AQM does worse than a reference in a network, from the rows of two runs."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass

from aqumen import _core
from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario
from aqumen.search.objectives import Objective

__all__ = ["CAUSES", "Criterion", "of_metric", "unequal"]

Column = Callable[[str], float]
"""Value of a column of a run."""

NOISE_PKTS = 5.0
"""Standard deviation of a queue that packets alone may cause, packets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """A figure of a run, and by how much an AQM must be worse than the reference in it to have failed."""

    name: str
    """Cause or metric."""
    figure: str
    """Name of the figure."""
    sign: float
    """1 where smaller values are better, else -1."""
    least: float
    """Least excess of a failure."""
    relative: bool
    """Whether the excess is relative to the reference."""
    floor: float
    """Least value of the reference to which an excess is relative."""
    value: Callable[[Column, Scenario], float]
    """Figure of a run, by its columns and scenario."""

    def excess(self, value: float, reference: float) -> float:
        """Return by how much a value is worse than that of the reference; negative where it is better.

        Args:
            value: Figure of the AQM.
            reference: Figure of the reference in the same network with the same seed.
        """
        worse = self.sign * (value - reference)
        return worse / max(abs(reference), self.floor) if self.relative else worse

    def shown(self, excess: float) -> str:
        """Return an excess as text.

        Args:
            excess: Result of `excess`.
        """
        if self.relative and self.sign > 0 and excess > 2:
            return f"a factor of {1 + excess:.3g}"
        return f"{100 * excess:.3g} %" if self.relative else f"{excess:.3g}"


def bulk_groups(scenario: Scenario) -> dict[str, int]:
    """Return the groups of flows that have data all the time, with their numbers of flows.

    Args:
        scenario: Scenario of the runs.
    """
    given = tomllib.loads(scenario.to_toml())
    stopped = {event.get("stop") for event in given.get("events", ())}
    found = {}
    for group in given["flows"]:
        kind = group.get("traffic", "bulk")
        bulk = (kind if isinstance(kind, str) else kind["kind"]) == "bulk"
        transport = group.get("transport", "linux")
        responsive = transport != "udp"
        if bulk and responsive and not {"stop", "off", "transfer"} & set(group) and group["name"] not in stopped:
            found[group["name"]] = int(group.get("count", 1))
    return found


def unequal(column: Column, scenario: Scenario) -> float:
    """Return Jain's index of the goodputs of all long flows, from the goodputs and indices of their groups.

    Args:
        column: Columns of a run.
        scenario: Network of the run.
    """
    groups = bulk_groups(scenario)
    total = squares = 0.0
    for name, count in groups.items():
        goodput, index = column(f"{name}.goodput_bps"), column(f"{name}.jain_fairness")
        # Jain's index of n flows: J = (sum x)^2 / (n sum x^2).
        total, squares = total + goodput, squares + goodput**2 / (count * index)
    count = sum(groups.values())
    return total**2 / (count * squares) if count > 1 and squares > 0 else math.nan


def _of_link(key: str) -> Callable[[Column, Scenario], float]:
    return lambda column, _scenario: column(key)


CAUSES = (
    Criterion(
        name="oscillation", figure="standard deviation of the queue, packets", sign=1, least=0.5, relative=True,
        floor=NOISE_PKTS, value=_of_link("queue_std_pkts"),
    ),
    Criterion(
        name="empty queue", figure="utilisation", sign=-1, least=0.05, relative=False, floor=0,
        value=_of_link("utilization"),
    ),
    Criterion(
        name="unfairness", figure="Jain's index of the long flows", sign=-1, least=0.1, relative=False, floor=0,
        value=unequal,
    ),
    Criterion(
        name="overflow", figure="packets lost to the full buffer, fraction", sign=1, least=0.01, relative=False,
        floor=0, value=_of_link("overflow_drop_ratio"),
    ),
)  # fmt: skip
"""Causes of failures, with the least excess that counts."""


def of_metric(objective: Objective, by: str | None) -> Criterion:
    """Return the criterion of a metric that the user names.

    Args:
        objective: Metric and direction.
        by: Least excess: `10%` of the reference, or a number in the metric's unit; default: 0.05 for metrics between
            0 and 1, else 25 %.

    Raises:
        ScenarioError: The excess is no number above 0.
    """
    key = objective.column.partition("@")[0].rpartition(":")[2].rpartition(".")[2]
    ratio = tuple(_core.range_of(key)) == (0.0, 1.0)
    text = by if by is not None else "0.05" if ratio else "25%"
    try:
        least = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        least = math.nan
    if not 0 < least < math.inf:
        raise ScenarioError(f"{text}: must be above 0: a percentage of the reference such as 10%, or a number")
    return Criterion(
        name=objective.column,
        figure=objective.column,
        sign=objective.sign,
        least=least,
        relative=text.endswith("%"),
        floor=1e-12,
        value=_of_link(objective.column),
    )
