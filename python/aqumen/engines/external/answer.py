"""Result dictionary of a run in an external simulator."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from aqumen import _core
from aqumen._files import json_text
from aqumen.engines.external.plan import Link

if TYPE_CHECKING:
    from aqumen.engines.answer import Floats

__all__ = ["ExecutedPlan", "ExternalAnswer", "answer", "metric_keys"]

SCHEMA = 1
"""Version of the result's layout."""


class ExecutedPlan(Protocol):
    """Fields of a plan that the result contains."""

    @property
    def scenario(self) -> str:
        """Name of the scenario."""

    @property
    def seed(self) -> int:
        """Seed of the run."""

    @property
    def links(self) -> Sequence[Link]:
        """Links in the plan's order; the AQM of the first recorded one is the run's."""

    @property
    def windows(self) -> Mapping[str, tuple[float, float]]:
        """Start and end of each window, seconds."""


def answer(
    engine: str,
    plan: ExecutedPlan,
    *,
    links: Mapping[str, Any],
    flows: Mapping[str, Any],
    series: Mapping[str, Any],
    cpu_s: float,
    wall_s: float,
    packets: int | None,
) -> dict[str, Any]:
    """Assemble the result of a run.

    Args:
        engine: Name of the engine.
        plan: The plan that was run.
        links: Metrics of each recorded link, by window.
        flows: Metrics of each flow group, by window.
        series: Times, queue and probability of each recorded link.
        cpu_s: CPU time of the program, seconds.
        wall_s: Wall-clock time, seconds.
        packets: Packets that left the recorded links; `None` if not counted.
    """
    aqm = next((link.aqm for link in plan.links if link.record), None)
    return {
        "schema": SCHEMA,
        "aqumen": _core.__version__,
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


@functools.cache
def metric_keys() -> dict[str, list[str]]:
    """Return the keys of a recorded link (`links`) and a flow group (`flows`) in each window, equal for all engines.

    Metrics that an engine does not measure are null.
    """
    links, flows = _core.metric_keys()
    return {"links": links, "flows": flows}


class ExternalAnswer:
    """Result of an external simulator, with all keys of a result."""

    def __init__(self, answer: dict[str, Any]) -> None:
        """Wrap the engine's dictionary.

        Args:
            answer: The metrics, and under `series` queue and probability over time.
        """
        self._series = answer["series"]
        self._sojourn = answer.get("sojourn", {})
        plain = {key: value for key, value in answer.items() if key not in ("series", "sojourn")}
        whole = {
            key: {
                name: {window: {**dict.fromkeys(wanted), **metrics} for window, metrics in windows.items()}
                for name, windows in plain[key].items()
            }
            for key, wanted in metric_keys().items()
        }
        self.json = json_text({**plain, "aqumen": _core.__version__, **whole})

    def series(self, link: str) -> tuple[Floats, Floats, Floats]:
        """Return times (s), queue lengths (packets) and probabilities (NaN if the AQM has none)."""
        own = self._series[link]
        t, queue, p = (np.array(own[key], dtype=np.float64) for key in ("t", "queue_pkts", "p"))
        return t, queue, p

    def state(self, _link: str) -> list[tuple[str, Floats]]:
        """Return no state variables: external simulators report queue and probability only."""
        return []

    def sojourn_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Return sojourn times (s) and the fraction of packets at or below each; empty if not recorded."""
        times, share = self._sojourn.get(link, {}).get(window, ((), ()))
        return np.array(times, dtype=np.float64), np.array(share, dtype=np.float64)

    def queue_cdf(self, _link: str, _window: str) -> tuple[Floats, Floats]:
        """Return an empty distribution: external simulators report the sampled queue only."""
        return np.array([]), np.array([])
