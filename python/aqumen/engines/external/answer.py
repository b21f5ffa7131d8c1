"""Answer of an external simulator, with the keys of every engine's answer."""

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

__all__ = ["ExternalAnswer", "Planned", "answer", "metric_keys"]

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
    """The keys that a recorded link (`links`) and a flow group (`flows`) carry in each window, whatever the engine.

    Those that an engine does not measure are null.
    """
    links, flows = _core.metric_keys()
    return {"links": links, "flows": flows}


class ExternalAnswer:
    """Answer of an external simulator, with the keys of every run."""

    def __init__(self, answer: dict[str, Any]) -> None:
        """Take the engine's dictionary.

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
        """Times in seconds, packets waiting, probability in force (NaN where the AQM has none)."""
        own = self._series[link]
        t, queue, p = (np.array(own[key], dtype=np.float64) for key in ("t", "queue_pkts", "p"))
        return t, queue, p

    def state(self, _link: str) -> list[tuple[str, Floats]]:
        """Nothing: external simulators report queue and probability only."""
        return []

    def sojourn_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Sojourn times in seconds and the share of packets at or below each; empty where none were taken."""
        times, share = self._sojourn.get(link, {}).get(window, ((), ()))
        return np.array(times, dtype=np.float64), np.array(share, dtype=np.float64)

    def queue_cdf(self, _link: str, _window: str) -> tuple[Floats, Floats]:
        """Empty: external simulators report the sampled queue only."""
        return np.array([]), np.array([])
