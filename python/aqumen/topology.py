"""Scenarios from typed Python objects; every quantity has its unit in its name.

scenario = aqumen.Dumbbell(
    name="uplink", rate_bps=8e6, delay_s=0.02, buffer_pkts=300, target_pkts=100,
    flows=[aqumen.Flows(name="ftp", count=120, transport=aqumen.Transport(ecn=True))],
).scenario()
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aqumen.scenario import Scenario

__all__ = ["Dumbbell", "Event", "Flows", "Transport"]

Span = float | tuple[float, float]
"""A value for all, or the two ends between which each flow draws its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """The transport of a group of flows: TCP."""

    preset: str = "linux"
    """`linux` is what Linux hosts run, `modern` follows today's RFCs, `ns2` follows ns-2.35."""
    variant: str | None = None
    """`reno`, `newreno` or `sack`; without it the preset's."""
    ecn: bool | None = None
    """Whether packets may be marked instead of dropped; without it the preset's."""
    packet_bytes: int | None = None
    """Size of a full packet on the wire; without it the preset's."""
    receive_window_pkts: int | None = None
    """What the receiver offers at most; without it the preset's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """A group of flows that share a transport and are reported together."""

    name: str
    """The name that results carry."""
    count: int = 1
    """How many."""
    transport: Transport = field(default_factory=Transport)
    """Their transport."""
    start_s: Span = 0.0
    """When each starts, seconds; two ends spread them."""
    stop_s: float | None = None
    """When they stop; without it at the end of the run."""
    transfer_bytes: int | None = None
    """What each has to send; without it, without end."""
    extra_rtt_s: Span = 0.0
    """Round-trip time on top of that of the links, seconds; two ends spread it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that changes during the run; each opens a window of its own."""

    at_s: float
    """When, seconds."""
    name: str | None = None
    """Name of the window that it opens."""
    capacity_bps: float | None = None
    """The bottleneck's rate from then on, bit/s."""
    stop: str | None = None
    """A group of flows that stops."""
    resume: str | None = None
    """A group of flows that goes on."""
    count: int | None = None
    """How many flows of that group; without it all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumbbell:
    """Senders and receivers on both sides of one bottleneck."""

    name: str
    """Short name, as results carry it."""
    rate_bps: float
    """Rate of the bottleneck, bit/s."""
    delay_s: float
    """Its propagation delay, seconds."""
    buffer_pkts: int
    """Room of its queue, packets."""
    flows: Sequence[Flows]
    """The traffic."""
    title: str = ""
    """What it is, in a line."""
    duration_s: float = 100.0
    """How long a run lasts, seconds."""
    aqm: str = "droptail"
    """The AQM where none is asked for, a SPEC."""
    access_rate_bps: float = 1e9
    """Rate of each access link, bit/s."""
    access_delay_s: Span = 0.01
    """Propagation delay of each access link, seconds; two ends spread it."""
    target_pkts: float | None = None
    """Queue length that AQMs aim at, packets."""
    nominal_flows: float | None = None
    """Number of flows for which AQMs design themselves; without it those that there are."""
    base_rtt_s: float | None = None
    """Round-trip time without queueing for which AQMs design themselves, seconds; without it that of the links."""
    events: Sequence[Event] = ()
    """What changes during the run."""
    windows_s: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Named intervals for which metrics are wanted besides `all` and `steady`, seconds."""
    sample_interval_s: float = 0.1
    """How often queue and probability are recorded, seconds."""

    def scenario(self) -> Scenario:
        """The scenario."""
        return Scenario.parse(self.to_toml(), self.name)

    def to_toml(self) -> str:
        """The scenario's TOML text."""
        top = {"name": self.name, "title": self.title or None, "duration": _time(self.duration_s), "aqm": self.aqm}
        bottleneck = {"rate": _rate(self.rate_bps), "delay": _time(self.delay_s), "buffer": f"{self.buffer_pkts}pkt"}
        access = {"rate": _rate(self.access_rate_bps), "delay": _span(self.access_delay_s)}
        lines = [
            *_pairs(top),
            "",
            "[topology]",
            'preset = "dumbbell"',
            "",
            "[topology.bottleneck]",
            *_pairs(bottleneck),
        ]
        lines += ["", "[topology.access]", *_pairs(access)]
        for group in self.flows:
            lines += ["", "[[flows]]", *_pairs(_group(group))]
        for event in self.events:
            own = {
                "at": _time(event.at_s),
                "name": event.name,
                "capacity": None if event.capacity_bps is None else _rate(event.capacity_bps),
                "stop": event.stop,
                "resume": event.resume,
                "count": event.count,
            }
            lines += ["", "[[events]]", *_pairs(own)]
        if self.windows_s:
            lines += ["", "[windows]", *_pairs({key: [_time(a), _time(b)] for key, (a, b) in self.windows_s.items()})]
        nominal = {
            "flows": self.nominal_flows,
            "base_rtt": None if self.base_rtt_s is None else _time(self.base_rtt_s),
            "target": None if self.target_pkts is None else f"{self.target_pkts:g}pkt",
        }
        lines += [
            "",
            "[record]",
            *_pairs({"interval": _time(self.sample_interval_s)}),
            "",
            "[nominal]",
            *_pairs(nominal),
        ]
        return "\n".join(lines) + "\n"


def _group(group: Flows) -> dict[str, Any]:
    transport = group.transport
    config = {
        "preset": transport.preset,
        "variant": transport.variant,
        "ecn": transport.ecn,
        "packet": None if transport.packet_bytes is None else f"{transport.packet_bytes}B",
        "receive_window": None if transport.receive_window_pkts is None else f"{transport.receive_window_pkts}pkt",
    }
    return {
        "name": group.name,
        "count": group.count,
        "transport": config,
        "start": _span(group.start_s),
        "stop": None if group.stop_s is None else _time(group.stop_s),
        "transfer": None if group.transfer_bytes is None else f"{group.transfer_bytes}B",
        "extra_rtt": _span(group.extra_rtt_s),
    }


def _pairs(table: dict[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items() if value is not None]


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(_pairs(value)) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    if isinstance(value, str):
        # TOML's basic strings escape as JSON does.
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def _time(seconds: float) -> str:
    return _largest_unit(round(seconds * 1e9), (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)))


def _span(seconds: Span) -> str | list[str]:
    return [_time(end) for end in seconds] if isinstance(seconds, tuple) else _time(seconds)


def _rate(bps: float) -> str:
    return _largest_unit(round(bps), (("Gbit", 10**9), ("Mbit", 10**6), ("kbit", 10**3), ("bit", 1)))


def _largest_unit(amount: int, units: Sequence[tuple[str, int]]) -> str:
    """A whole number of the largest unit that divides the amount."""
    unit, size = next((unit, size) for unit, size in units if amount % size == 0)
    return f"{amount // size}{unit}"
