"""AQMs and links of a plan, as all external simulators read them."""

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
    """Return all fields of a transport preset, as in plans.

    An option that a simulator lacks must have the value of the simulator's preset. New options of Aqumen are therefore
    refused if enabled, without being listed.
    """
    return next(row["plan"] for row in _core.list_transports() if row["name"] == name)


@dataclass(frozen=True, slots=True)
class Aqm:
    """An AQM by name, with its parameters (packets, seconds, Hz)."""

    name: str
    """Name in a SPEC."""
    params: Mapping[str, Any]
    """All parameters in force."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Given parameters, including design rules."""
    nominal: Mapping[str, Any] = field(default_factory=dict)
    """Nominal network of the design."""

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> "Aqm":
        """Read an AQM of the plan."""
        return Aqm(raw["name"], dict(raw.get("params", {})), dict(raw.get("given", {})), dict(raw.get("nominal", {})))

    def report(self) -> dict[str, Any]:
        """Return the AQM as in a result."""
        told = {"given": self.given, "params": self.params, "nominal": self.nominal}
        return {"name": self.name, **{key: dict(values) for key, values in told.items()}}


@dataclass(frozen=True, slots=True)
class Link:
    """A directed link of a plan."""

    name: str
    """Name in the scenario."""
    tail: int
    """Node where it starts."""
    head: int
    """Node where it ends."""
    delay_s: float
    """Propagation delay, seconds."""
    rates: tuple[tuple[float, float], ...]
    """Capacity over time: (start in s, bit/s)."""
    buffer_pkts: int | None
    """Maximum queue length without the packet in transmission, packets; None if in bytes."""
    aqm: Aqm
    """AQM of its queue."""
    target_pkts: float | None
    """Target queue, packets."""
    record: bool
    """Whether it is recorded."""
    wire_loss: WireLoss = NO_LOSS
    """Losses after the queue."""
    buffer_bytes: int | None = None
    """Maximum queue length without the packet in transmission, bytes; None if in packets."""

    def rate_at(self, times_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the capacity at given times, bit/s."""
        begins = np.array([begin for begin, _ in self.rates])
        rates = np.array([rate for _, rate in self.rates])
        return rates[np.searchsorted(begins, times_s, side="right") - 1]


def read_buffer(link: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the two buffer fields of a `Link` from a link of the plan."""
    sizes = {unit: link.get(unit) for unit in ("buffer_pkts", "buffer_bytes")}
    return {unit: None if size is None else int(size) for unit, size in sizes.items()}
