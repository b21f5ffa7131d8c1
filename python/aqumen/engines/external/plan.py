"""AQMs and links of a plan, read from the scenario's expansion: what every simulator of packets is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from aqumen import _core

from .wire import NO_LOSS, WireLoss

__all__ = ["Aqm", "Link", "preset_in_plans", "read_buffer"]


@cache
def preset_in_plans(name: str) -> dict[str, Any]:
    """Every field of a preset of a transport, as plans have it.

    An option that a simulator has no word for must be as in the preset that says what that simulator does: so a new
    option of ours is refused where it is on, and need be listed nowhere.
    """
    return next(row["plan"] for row in _core.list_transports() if row["name"] == name)


@dataclass(frozen=True, slots=True)
class Aqm:
    """An AQM by name, with its parameters (packets, seconds, Hz)."""

    name: str
    """As users type it."""
    params: Mapping[str, Any]
    """All in force."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Of those, and of design rules, the ones that were given."""
    nominal: Mapping[str, Any] = field(default_factory=dict)
    """The network for which the others were designed."""

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> "Aqm":
        """Read an AQM of the scenario's expansion."""
        return Aqm(raw["name"], dict(raw.get("params", {})), dict(raw.get("given", {})), dict(raw.get("nominal", {})))

    def report(self) -> dict[str, Any]:
        """The AQM as a result tells it."""
        told = {"given": self.given, "params": self.params, "nominal": self.nominal}
        return {"name": self.name, **{key: dict(values) for key, values in told.items()}}


@dataclass(frozen=True, slots=True)
class Link:
    """A directed link: `rates` is its capacity over time, [(from_s, bit/s), ...]."""

    name: str
    """As the scenario calls it."""
    tail: int
    """The node where it begins."""
    head: int
    """The node where it ends."""
    delay_s: float
    """Propagation delay."""
    rates: tuple[tuple[float, float], ...]
    """Capacity over time: from when, and bit/s."""
    buffer_pkts: int | None
    """Most packets that wait, the one in transmission not counted; None where bytes are counted."""
    aqm: Aqm
    """What looks after its queue."""
    target_pkts: float | None
    """Queue that the AQM is judged by."""
    record: bool
    """Whether results tell of it."""
    wire_loss: WireLoss = NO_LOSS
    """What is lost after the queue."""
    buffer_bytes: int | None = None
    """Most bytes that wait, the packet in transmission not counted; None where packets are counted."""

    def rate_at(self, times_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Capacity in force at the given times, bit/s."""
        begins = np.array([begin for begin, _ in self.rates])
        rates = np.array([rate for _, rate in self.rates])
        return rates[np.searchsorted(begins, times_s, side="right") - 1]


def read_buffer(link: Mapping[str, Any]) -> dict[str, int | None]:
    """The two fields of a `Link` for the buffer of a link of the plan."""
    sizes = {unit: link.get(unit) for unit in ("buffer_pkts", "buffer_bytes")}
    return {unit: None if size is None else int(size) for unit, size in sizes.items()}
