"""What a class of one's own derives from, its parameters, and its name."""

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
"""Units of a parameter. In a SPEC it is written with one of the same kind: `5ms` for seconds."""


class Param:
    """A parameter: an attribute of the class, and of each instance the value in force.

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
        """Describe it.

        Args:
            default: Its value where a SPEC gives none; `None`: `start` chooses one.
            unit: "pkt", "B", "s", "Hz", "bit/s", "1/pkt", or "" for a plain number.
            low: The least value that it takes.
            high: The greatest.
            doc: One line on what it does.
        """
        self.default, self.unit, self.low, self.high, self.doc = default, unit, low, high, doc
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        # Only until the instance has an attribute of this name: from then on a step reads that, without a call.
        return self if instance is None else self.default


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The network for which an AQM designs itself: the scenario's `[nominal]`, and the link."""

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
    """Rate of the link when the run starts, bit/s."""
    buffer_pkts: float
    """Room of the queue, packets."""

    @property
    def capacity_pps(self) -> float:
        """Capacity, packets per second."""
        return self.capacity_bps / (8.0 * self.packet_bytes)

    @property
    def r0_s(self) -> float:
        """Round-trip time when the queue is at its target, seconds."""
        return self.base_rtt_s + self.target_pkts / self.capacity_pps


class CustomAqm:
    """What both kinds of AQMs share. Instances are made for each queue and run; none is shared."""

    name: ClassVar[str] = ""
    """Its name in a SPEC; without one it follows from the class: `MyPi` is `my-pi`."""
    network: Network
    """The nominal network, there when `start` is called."""

    def start(self) -> None:
        """Called once, when `network` and all parameters are there: choose here what follows from them."""

    def take_over(self, old: Any) -> None:
        """Called after `start` when parameters change during a run: take from `old` what is state.

        Args:
            old: The instance before.
        """


class SampledLaw(CustomAqm):
    """A control law: at each period it turns what was seen into the probability of a mark or loss.

    It runs in the packet engine, the fluid engine, replays and the theory.
    """

    period: float | tuple[float, float] = 0.01
    """Seconds between two steps; of a law with two loops both, and `seen.loop` says which one steps."""
    initial: float = 0.0
    """The probability before the first step."""
    ecn: bool = True
    """Whether packets that can carry a mark are marked and not dropped: the parameter `ecn`."""
    transfer: tuple[Sequence[float], Sequence[float]] | None = None
    """Transfer function of a linear law of one loop, from the queue in packets to the probability, set by `start`:
    numerator and denominator in powers of 1/z. `None`: theory linearises the law by its answer to an impulse."""

    def step(self, seen: LawView) -> float:
        """The probability, from 0 to 1, that applies until the next step.

        Args:
            seen: The queue now, and what went through it since the same loop's last step.
        """
        raise NotImplementedError


class PacketAqm(CustomAqm):
    """An algorithm that decides packet by packet: slower than a law, and free to do anything.

    A verdict is None or "pass", "mark" or "drop"; "mark" drops a packet that cannot carry a mark. Only what a class
    defines is called.
    """

    period: float = 0.01
    """Seconds between two calls of `on_timer`."""

    def on_arrival(self, packet: PacketView, queue: QueueView) -> str | None:
        """What happens to a packet that arrives.

        Args:
            packet: Its size, ECN field and flow.
            queue: The queue before it enters.
        """
        return None

    def on_dequeue(self, packet: PacketView, queue: QueueView) -> str | None:
        """What happens to the packet at the head, about to be transmitted. After a drop the next one is asked about.

        Args:
            packet: Its size, ECN field and flow.
            queue: The queue without it; `sojourn_s` is how long it waited.
        """
        return None

    def on_timer(self, queue: QueueView) -> None:
        """Called at each period.

        Args:
            queue: What waits there now, and how full it is.
        """


class TrafficSource:
    """What an application sends, as packets or as whatever the flow's transport makes of so many bytes at once.

    An instance is made for each flow and run. It runs in the packet engine.
    """

    name: ClassVar[str] = ""
    """Its name in a scenario; without one it follows from the class: `MySource` is `my-source`."""
    random: Random
    """Chances of this flow and seed, there when `start` is called: with no others equal seeds give equal results."""

    def start(self) -> None:
        """Called once, when all parameters are there: choose here what follows from them."""

    def next(self) -> tuple[float, int] | None:
        """How many seconds after the bytes before the next are sent, and how many; the first after the flow's start.

        With 0 bytes it only waits; `None`: it sends no more.
        """
        raise NotImplementedError


CustomAqmClass = type[SampledLaw] | type[PacketAqm]
CustomClass = CustomAqmClass | type[TrafficSource]


def name_of(custom: CustomClass) -> str:
    """Its name in a SPEC.

    Args:
        custom: The class.
    """
    name = custom.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", custom.__name__).lower().replace("_", "-")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ScenarioError(f"{custom.__name__}: the name `{name}` must be words of a-z and 0-9 with `-` between them")
    return name


def params_of(custom: CustomClass) -> list[Param]:
    """Its parameters, those of its bases first.

    Args:
        custom: The class.
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
    """`thing` if it is a class of one's own AQM or source.

    Args:
        thing: Anything.
    """
    return thing if isinstance(thing, type) and issubclass(thing, (SampledLaw, PacketAqm, TrafficSource)) else None


def is_aqm(custom: CustomClass) -> bool:
    """Whether it is an AQM, and no source of traffic.

    Args:
        custom: The class.
    """
    return not issubclass(custom, TrafficSource)
