"""Warm-up by MSER-5: where the window `steady` should begin.

K. P. White, M. J. Cobb, S. C. Spratt, "A comparison of five steady-state truncation heuristics for simulation", 2000:
means of five samples each; the truncation that minimises the squared standard error of the mean of what is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqumen import engines
from aqumen.scenario import Scenario

if TYPE_CHECKING:
    from aqumen.engines.answer import Floats

__all__ = ["mser5", "settled"]

BATCH = 5
"""Samples in a mean."""


def mser5(values: Floats) -> int:
    """Return the number of samples to leave out at the beginning.

    Args:
        values: Samples at equal distances; at least ten.

    The later half is never left out: a minimum there says that the series is too short.
    """
    import numpy as np

    count = len(values) // BATCH
    if count < 2:
        return 0
    means = np.asarray(values[: count * BATCH], dtype=float).reshape(count, BATCH).mean(axis=1)
    left = np.arange(count, 0, -1)
    # Sums over what is left, about the overall mean for precision.
    away = means - means.mean()
    sums, squares = (np.cumsum(each[::-1])[::-1] for each in (away, away**2))
    errors = (squares - sums**2 / left) / left**2
    return int(np.argmin(errors[: count // 2 + 1])) * BATCH


def settled(scenario: Scenario, spec: str, engine: str) -> list[tuple[str, str]]:
    """Return the change that lets `steady` begin where the queue of a pilot run (seed 0) has settled.

    Args:
        scenario: The scenario of a case.
        spec: Its AQM.
        engine: Name of the engine.
    """
    answer = engines.run_one(scenario, (spec, 0), engine)
    plan = scenario.plan(aqm=spec)
    link = next(link["name"] for link in plan["links"] if link["record"])
    times, queue, _ = answer.series(link)
    at = float(times[mser5(queue)]) if len(times) else 0.0
    return [("windows.steady", f'["{round(at, 6)}s", "{plan["duration_s"]}s"]')]
