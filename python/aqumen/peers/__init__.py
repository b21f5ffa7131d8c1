"""Engines that are programs of their own: their answers, with the keys of every run.

What ns-2 and ns-3 share stands in `plan`, `trace`, `answer` and `crosscheck`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen import _core
from aqumen.files import json_text

if TYPE_CHECKING:
    from aqumen.result import Floats

__all__ = ["PeerAnswer", "metric_keys"]


@functools.cache
def metric_keys() -> dict[str, list[str]]:
    """The keys that a recorded link (`links`) and a flow group (`flows`) carry in each window, whatever the engine.

    Those that an engine does not measure are null.
    """
    links, flows = _core.metric_keys()
    return {"links": links, "flows": flows}


class PeerAnswer:
    """What a peer answered, with the keys of every run."""

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
        """Nothing: peers tell the queue and the probability alone."""
        return []

    def sojourn_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Sojourn times in seconds and the share of packets at or below each; empty where none were taken."""
        times, share = self._sojourn.get(link, {}).get(window, ((), ()))
        return np.array(times, dtype=np.float64), np.array(share, dtype=np.float64)

    def queue_cdf(self, _link: str, _window: str) -> tuple[Floats, Floats]:
        """Empty: peers tell the queue as sampled alone."""
        return np.array([]), np.array([])
