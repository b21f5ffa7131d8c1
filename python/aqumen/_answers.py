"""Answers of engines as text: for the store, and for other processes."""

from __future__ import annotations

import base64
import json
import zlib
from typing import TYPE_CHECKING, Any

from aqumen.engines.answer import Answer

if TYPE_CHECKING:
    from aqumen.engines.answer import Floats

__all__ = ["SERIES", "StoredAnswer", "as_text", "from_text", "stored"]

SERIES = ("none", "sampled", "all")
"""Series and distributions that the store keeps of a run: none, at most `POINTS` points of each, all."""
POINTS = 500

RUN = b',"run":'
"""Separator of arrays and metrics. Strings of JSON cannot contain it, since their quotes are escaped."""


class StoredAnswer:
    """A run's metrics as text, and its series and distributions, read when they are asked for."""

    def __init__(self, metrics: str, arrays: dict[str, int], packed: str, kept: str = "all") -> None:
        """Wrap a stored run.

        Args:
            metrics: The metrics as JSON text.
            arrays: Length of each array, in order.
            packed: All arrays, little-endian doubles, compressed by zlib, in base 64.
            kept: Which series and distributions they are, a name of `SERIES`.
        """
        self.json = metrics
        self.kept = kept
        self._lengths, self._packed = arrays, packed
        self._arrays: dict[str, Floats] | None = None
        self._names: tuple[list[str], list[str]] | None = None

    def _array(self, name: str) -> Floats:
        if self._arrays is None:
            import numpy as np

            every = np.frombuffer(zlib.decompress(base64.b64decode(self._packed)), dtype="<f8")
            self._arrays, start = {}, 0
            for each, length in self._lengths.items():
                self._arrays[each] = every[start : start + length]
                start += length
        return self._arrays[name]

    def _link(self, link: str) -> int:
        return self._places()[0].index(link)

    def _places(self) -> tuple[list[str], list[str]]:
        if self._names is None:
            data = json.loads(self.json)
            self._names = list(data["links"]), list(data["windows"])
        return self._names

    def series(self, link: str) -> tuple[Floats, Floats, Floats]:
        """Return times (s), queue lengths (packets, without the one in transmission) and probabilities."""
        k = self._link(link)
        return self._array(f"t_s_{k}"), self._array(f"queue_pkts_{k}"), self._array(f"probability_{k}")

    def state(self, link: str) -> list[tuple[str, Floats]]:
        """Return the AQM's state variables at those times, by name."""
        prefix = f"state_{self._link(link)}_"
        return [(key.removeprefix(prefix), self._array(key)) for key in self._lengths if key.startswith(prefix)]

    def sojourn_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Return sojourn times (s) and the fraction of packets at or below each."""
        at = f"{self._link(link)}_{self._places()[1].index(window)}"
        return self._array(f"sojourn_s_{at}"), self._array(f"share_{at}")

    def queue_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Return queue lengths (packets) and the fraction of time at or below each."""
        at = f"{self._link(link)}_{self._places()[1].index(window)}"
        return self._array(f"level_pkts_{at}"), self._array(f"time_share_{at}")

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredAnswer, (self.json, self._lengths, self._packed, self.kept)


def stored(answer: Answer, series: str = "all") -> StoredAnswer:
    """Return an answer in the form in which it is stored.

    Args:
        answer: Result of the engine.
        series: Series and distributions to keep, a name of `SERIES`.
    """
    if isinstance(answer, StoredAnswer) and SERIES.index(answer.kept) <= SERIES.index(series):
        return answer
    import numpy as np

    text = answer.json
    data = json.loads(text)
    arrays: dict[str, Floats] = {}
    for k, link in enumerate(data["links"]):
        arrays[f"t_s_{k}"], arrays[f"queue_pkts_{k}"], arrays[f"probability_{k}"] = answer.series(link)
        arrays.update({f"state_{k}_{name}": values for name, values in answer.state(link)})
        for w, window in enumerate(data["windows"]):
            arrays[f"sojourn_s_{k}_{w}"], arrays[f"share_{k}_{w}"] = answer.sojourn_cdf(link, window)
            arrays[f"level_pkts_{k}_{w}"], arrays[f"time_share_{k}_{w}"] = answer.queue_cdf(link, window)
    if series != "all":
        arrays = {name: _thinned(values, 0 if series == "none" else POINTS) for name, values in arrays.items()}
    every = np.concatenate([np.empty(0), *arrays.values()]).astype("<f8")
    # The fastest level: runs of seconds are common, and series of whole numbers are short anyway.
    packed = base64.b64encode(zlib.compress(every.tobytes(), 1)).decode()
    return StoredAnswer(text, {name: len(values) for name, values in arrays.items()}, packed, series)


def _thinned(values: Floats, most: int) -> Floats:
    """Return every k-th value, the last one of a distribution among them."""
    if not most or len(values) <= most:
        return values[: len(values) if most else 0]
    step = -(-len(values) // most)
    return values[(len(values) - 1) % step :: step]


def as_text(answer: Answer) -> str:
    """Return an answer as JSON text on one line.

    Args:
        answer: Result of an engine.
    """
    kept = stored(answer)
    arrays = json.dumps(kept._lengths, separators=(",", ":"))
    return f'{{"series":"{kept.kept}","lengths":{arrays},"arrays":"{kept._packed}","run":{kept.json}}}'


def from_text(text: bytes) -> StoredAnswer:
    """Return the answer of a text from `as_text`.

    Args:
        text: JSON text as the store has it.
    """
    head, _, run = text.partition(RUN)
    arrays = json.loads(head + b"}")
    return StoredAnswer(run[:-1].decode(), arrays["lengths"], arrays["arrays"], arrays["series"])
