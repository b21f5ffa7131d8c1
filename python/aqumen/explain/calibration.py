"""Number of flows for a congestion level: RFC 7928 section 8.2 defines levels by the loss ratio of DropTail."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from aqumen import engines
from aqumen._run import RunData
from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario

__all__ = ["Calibration", "Trial", "calibrate", "fewest"]

MOST = 100_000
"""Largest number of flows to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Loss ratio at one number of flows."""

    flows: int
    """Number of flows."""
    loss_ratio: float
    """Packets lost at the link / packets that arrived, mean over the seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Result of a calibration, with its trials."""

    group: str
    """Flow group that was varied."""
    aqm: str
    """AQM of the link under test."""
    loss_ratio: float
    """Wanted loss ratio."""
    flows: int
    """Smallest number of flows with at least that loss ratio."""
    trials: tuple[Trial, ...]
    """Trials, by number of flows."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as `aqumen calibrate --json` prints it."""
        return {"schema": 1, **asdict(self), "trials": [asdict(trial) for trial in self.trials]}


def calibrate(
    scenario: Scenario, group: str, loss_ratio: float, *, aqm: str = "droptail", seeds: int = 3, window: str = "steady"
) -> Calibration:
    """Find the smallest number of flows of a group with a given loss ratio at the link under test.

    Args:
        scenario: Network, traffic and duration of the runs.
        group: Flow group to vary.
        loss_ratio: Packets lost / packets arrived, above 0 and below 1.
        aqm: AQM of the link under test, a SPEC.
        seeds: Number of seeds to average over.
        window: Window of the measurement.
    """
    groups = [known["name"] for known in scenario.plan(aqm=aqm)["groups"]]
    if group not in groups:
        raise ScenarioError(f"no flow group {group}; choose from: {', '.join(groups)}")
    if not 0 < loss_ratio < 1:
        raise ScenarioError(f"loss ratio {loss_ratio:g}: must be above 0 and below 1")
    if seeds < 1:
        raise ScenarioError(f"seeds = {seeds}: must be at least 1")

    def lost(flows: int) -> float:
        changed = scenario.set(f"flows.{group}.count", str(flows))
        jobs: list[tuple[str | None, int]] = [(aqm, seed) for seed in range(1, seeds + 1)]
        shares: list[float] = []

        def keep(_index: int, answer: Any) -> bool:
            link = RunData(answer).link(window=window)
            early, overflow = link["early_drop_ratio"], link["overflow_drop_ratio"]
            shares.append((early or 0.0) + (overflow or 0.0))
            return True

        threads = engines.threads_within_memory(changed, engines.cores())
        engines.run_many(changed, jobs, "packet", threads, keep)
        return sum(shares) / len(shares)

    flows, trials = fewest(lost, loss_ratio)
    return Calibration(group=group, aqm=aqm, loss_ratio=loss_ratio, flows=flows, trials=trials)


def fewest(lost: Callable[[int], float], loss_ratio: float) -> tuple[int, tuple[Trial, ...]]:
    """Find the smallest number of flows with a given loss ratio by bisection, assuming that it rises with the flows.

    Args:
        lost: Returns the loss ratio at a number of flows.
        loss_ratio: Wanted loss ratio.
    """
    tried: dict[int, float] = {}

    def enough(flows: int) -> bool:
        tried[flows] = lost(flows)
        return tried[flows] >= loss_ratio

    few, many = 0, 1
    while not enough(many):
        if many >= MOST:
            worst = max(tried.values())
            raise ScenarioError(f"{many} flows lose only {worst:.3%} of their packets, less than {loss_ratio:.3%}")
        few, many = many, min(2 * many, MOST)
    while many - few > 1:
        middle = math.floor((few + many) / 2)
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many, tuple(Trial(flows=flows, loss_ratio=share) for flows, share in sorted(tried.items()))
