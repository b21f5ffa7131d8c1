"""How many flows make a level of congestion: RFC 7928 section 8.2 names levels by what DropTail loses."""

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
"""No search goes beyond so many flows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a number of flows lost."""

    flows: int
    """How many there were."""
    loss_ratio: float
    """Packets lost at the link / packets that arrived, mean over the seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The answer, and what was tried."""

    group: str
    """The group whose flows were counted."""
    aqm: str
    """The AQM that lost them."""
    loss_ratio: float
    """What was asked for."""
    flows: int
    """The fewest flows that lose as much."""
    trials: tuple[Trial, ...]
    """All that was tried, in rising order."""

    def to_dict(self) -> dict[str, Any]:
        """As `aqumen calibrate --json` prints it."""
        return {"schema": 1, **asdict(self), "trials": [asdict(trial) for trial in self.trials]}


def calibrate(
    scenario: Scenario, group: str, loss_ratio: float, *, aqm: str = "droptail", seeds: int = 3, window: str = "steady"
) -> Calibration:
    """The fewest flows of a group with which the link under test loses so much.

    Args:
        scenario: The network, its flows, and what happens during a run.
        group: The group whose number of flows is looked for.
        loss_ratio: Packets lost / packets that arrive, above 0 and below 1.
        aqm: The AQM that loses them.
        seeds: Over how many seeds the mean is taken: 1 to this.
        window: The window that counts.
    """
    groups = [known["name"] for known in scenario.plan(aqm=aqm)["groups"]]
    if group not in groups:
        raise ScenarioError(f"no flow group {group}; choose from: {', '.join(groups)}")
    if not 0 < loss_ratio < 1:
        raise ScenarioError(f"a share of lost packets of {loss_ratio:g} is not above 0 and below 1")
    if seeds < 1:
        raise ScenarioError(f"seeds = {seeds}: at least 1 is needed")

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
    """The fewest flows that lose so much, where more lose more, and all that was tried.

    Args:
        lost: What a number of flows loses.
        loss_ratio: What is looked for.
    """
    tried: dict[int, float] = {}

    def enough(flows: int) -> bool:
        tried[flows] = lost(flows)
        return tried[flows] >= loss_ratio

    few, many = 0, 1
    while not enough(many):
        if many >= MOST:
            worst = max(tried.values())
            raise ScenarioError(f"{many} flows lose {worst:.3%} of their packets, and not {loss_ratio:.3%}")
        few, many = many, min(2 * many, MOST)
    while many - few > 1:
        middle = math.floor((few + many) / 2)
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many, tuple(Trial(flows=flows, loss_ratio=share) for flows, share in sorted(tried.items()))
