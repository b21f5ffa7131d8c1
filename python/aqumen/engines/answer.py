"""Interface of an engine's answer to one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Answer"]


class Answer(Protocol):
    """Result of a run as an engine returns it; a compiled run is one."""

    @property
    def json(self) -> str:
        """Metrics as JSON text, as `run --json` prints them."""

    def series(self, link: str) -> tuple[Floats, Floats, Floats]:
        """Return times (s), queue lengths (packets, without the one in transmission) and probabilities."""

    def state(self, link: str) -> list[tuple[str, Floats]]:
        """Return the AQM's state variables at those times, by name; NaN where undefined."""

    def sojourn_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Return sojourn times (s) and the fraction of packets at or below each."""

    def queue_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Return queue lengths (packets) and the fraction of time at or below each."""
