"""The dictionary that a run of a peer answers with, whichever it is."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from aqumen._core import __version__

from .plan import Link

__all__ = ["Planned", "answer"]

SCHEMA = 1
"""Version of the result's layout."""


class Planned(Protocol):
    """What the answer takes from the plan that was run."""

    @property
    def scenario(self) -> str:
        """The scenario's name."""

    @property
    def seed(self) -> int:
        """Seed of the run."""

    @property
    def links(self) -> Sequence[Link]:
        """In the plan's order; the AQM of the first that is recorded is the run's."""

    @property
    def windows(self) -> Mapping[str, tuple[float, float]]:
        """Start and end of each, seconds."""


def answer(
    engine: str,
    plan: Planned,
    *,
    links: Mapping[str, Any],
    flows: Mapping[str, Any],
    series: Mapping[str, Any],
    cpu_s: float,
    wall_s: float,
    packets: int | None,
) -> dict[str, Any]:
    """Put together what the run of a program gave.

    Args:
        engine: Its name.
        plan: What was run.
        links: Metrics of each recorded link, by window.
        flows: Metrics of each group, by window.
        series: Times, queue and probability of each recorded link.
        cpu_s: CPU time that it took, seconds.
        wall_s: The same by the clock on the wall.
        packets: How many left the recorded links; `None` where nobody counted.
    """
    aqm = next((link.aqm for link in plan.links if link.record), None)
    return {
        "schema": SCHEMA,
        "aqumen": __version__,
        "scenario": plan.scenario,
        "engine": engine,
        "aqm": None if aqm is None else aqm.report(),
        "seed": plan.seed,
        "windows": {name: list(window) for name, window in plan.windows.items()},
        "links": links,
        "flows": flows,
        "series": series,
        "cost": {"cpu_s": cpu_s, "wall_s": wall_s, "events": None, "bottleneck_packets": packets},
    }
