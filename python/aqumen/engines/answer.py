"""Interface of an engine's answer to one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Answer"]


class Answer(Protocol):
    """What an engine hands back for one run; a compiled run is one."""

    @property
    def json(self) -> str:
        """The metrics, as `run --json` prints them."""

    def series(self, link: str) -> tuple[Floats, Floats, Floats]:
        """Times in seconds, packets waiting, probability in force."""

    def state(self, link: str) -> list[tuple[str, Floats]]:
        """What the AQM shows of its state at those times, by name; NaN where it showed nothing."""

    def sojourn_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Sojourn times in seconds and the share of packets at or below each."""

    def queue_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Queue lengths in packets and the share of time at or below each."""
