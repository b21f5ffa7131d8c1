"""Base classes of custom AQMs and traffic sources, their parameters and names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from aqumen.errors import ScenarioError

if TYPE_CHECKING:
    from aqumen._core import LawView, PacketView, QueueView

UNITS = ("", "pkt", "B", "s", "Hz", "bit/s", "1/pkt")
"""Units of a parameter. A SPEC may use any unit of the same kind: `5ms` for seconds."""


class Param:
    """A parameter: an attribute of the class that holds the value in force in each instance.

    gain = Param(1e-5, unit="1/pkt", low=0, doc="weight of the error")
    """

    def __init__(
        self,
        default: float | None,
        unit: str = "",
        low: float | None = None,
        high: float | None = None,
        doc: str = "",
    ) -> None:
        """Describe a parameter.

        Args:
            default: Default value; `None` if `start` sets one.
            unit: "pkt", "B", "s", "Hz", "bit/s", "1/pkt", or "" for a plain number.
            low: Minimum value.
            high: Maximum value.
            doc: One-line description.
        """
        self.default, self.unit, self.low, self.high, self.doc = default, unit, low, high, doc
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        # Used until the instance has an attribute of this name, which is then read directly.
        return self if instance is None else self.default


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Nominal network for which an AQM designs itself: the scenario's `[nominal]`, and the link."""

    capacity_bps: float
    """Capacity, bit/s."""
    flows: float
    """Number of long-lived flows."""
    base_rtt_s: float
    """Round-trip time without queueing, seconds."""
    target_pkts: float
    """Target queue length, packets."""
    packet_bytes: float
    """Size of a packet on the wire, bytes."""
    link_bps: float
    """Initial rate of the link, bit/s."""
    buffer_pkts: float
    """Buffer size, packets."""

    @property
    def capacity_pps(self) -> float:
        """Capacity, packets per second."""
        return self.capacity_bps / (8.0 * self.packet_bytes)

    @property
    def r0_s(self) -> float:
        """Round-trip time with the queue at its target, seconds."""
        return self.base_rtt_s + self.target_pkts / self.capacity_pps


class CustomAqm:
    """Base of custom AQMs. Each queue of each run has its own instance."""

    name: ClassVar[str] = ""
    """Name in a SPEC; default: from the class name, `MyPi` is `my-pi`."""
    network: Network
    """Nominal network; set before `start`."""

    def start(self) -> None:
        """Called once, with `network` and all parameters set: compute derived values and initial state."""

    def take_over(self, old: Any) -> None:
        """Called after `start` when parameters change during a run: copy the state from `old`.

        Args:
            old: The previous instance.
        """


class SampledLaw(CustomAqm):
    """A sampled control law: computes the marking or dropping probability from an observation in each period.

    Runs in the packet engine, the fluid engine, replays and the theory.
    """

    period: float | tuple[float, float] = 0.01
    """Sampling period, seconds; two for a law with two loops, where `seen.loop` is the loop to step."""
    initial: float = 0.0
    """Probability before the first step."""
    ecn: bool = True
    """Default of the parameter `ecn`: whether ECN-capable packets are marked instead of dropped."""
    transfer: tuple[Sequence[float], Sequence[float]] | None = None
    """Transfer function of a linear law of one loop, from the queue in packets to the probability, set by `start`:
    numerator and denominator in powers of 1/z. `None`: theory linearises the law by its answer to an impulse."""

    def step(self, seen: LawView) -> float:
        """Return the probability, 0 to 1, until the next step.

        Args:
            seen: Current queue, and arrivals and departures since the last step of the same loop.
        """
        raise NotImplementedError


class PacketAqm(CustomAqm):
    """An algorithm that decides for each packet: more general than a law, and slower.

    A verdict is None or "pass", "mark" or "drop"; "mark" drops a packet that is not ECN-capable. Only methods that a
    class defines are called.
    """

    period: float = 0.01
    """Interval between two calls of `on_timer`, seconds."""

    def on_arrival(self, packet: PacketView, queue: QueueView) -> str | None:
        """Return the verdict on an arriving packet.

        Args:
            packet: Size, ECN field and flow.
            queue: The queue before the packet enters.
        """
        return None

    def on_dequeue(self, packet: PacketView, queue: QueueView) -> str | None:
        """Return the verdict on the packet at the head of the queue. After a drop the next packet follows.

        Args:
            packet: Size, ECN field and flow.
            queue: The queue without the packet; `sojourn_s` is the packet's sojourn time.
        """
        return None

    def on_timer(self, queue: QueueView) -> None:
        """Called once in each period.

        Args:
            queue: Current queue length and limits.
        """


class TrafficSource:
    """A traffic source: times and sizes of an application's messages, which the flow's transport sends.

    Each flow of each run has its own instance. Runs in the packet engine.
    """

    name: ClassVar[str] = ""
    """Name in a scenario; default: from the class name, `MySource` is `my-source`."""
    random: Random
    """Random numbers of this flow and seed; set before `start`. With no others, equal seeds give equal results."""

    def start(self) -> None:
        """Called once, with all parameters set: compute derived values and initial state."""

    def next(self) -> tuple[float, int] | None:
        """Return (seconds since the previous message, bytes) of the next message; the first counts from the start.

        With 0 bytes the source only waits; `None` ends it.
        """
        raise NotImplementedError


CustomAqmClass = type[SampledLaw] | type[PacketAqm]
CustomClass = CustomAqmClass | type[TrafficSource]


def name_of(custom: CustomClass) -> str:
    """Return the name of a custom class in a SPEC or scenario.

    Args:
        custom: Class to inspect.
    """
    name = custom.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", custom.__name__).lower().replace("_", "-")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ScenarioError(f"{custom.__name__}: the name `{name}` must consist of words of a-z and 0-9, joined by `-`")
    return name


def params_of(custom: CustomClass) -> list[Param]:
    """Return the parameters of a custom class, those of its bases first.

    Args:
        custom: Class to inspect.
    """
    found: dict[str, Param] = {}
    for base in reversed(custom.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Param):
                found[name] = value
            else:
                found.pop(name, None)
    return list(found.values())


def as_custom(thing: object) -> CustomClass | None:
    """Return `thing` if it is a custom AQM or traffic source, else `None`.

    Args:
        thing: Any object.
    """
    return thing if isinstance(thing, type) and issubclass(thing, (SampledLaw, PacketAqm, TrafficSource)) else None


def is_aqm(custom: CustomClass) -> bool:
    """Return whether a custom class is an AQM; else it is a traffic source.

    Args:
        custom: Class to inspect.
    """
    return not issubclass(custom, TrafficSource)
