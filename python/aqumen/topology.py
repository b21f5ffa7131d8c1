"""Scenarios from typed Python objects. The name of a quantity ends in its unit.

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
"""One value for all flows, or the two ends of a range from which each flow draws a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """TCP configuration of a flow group."""

    preset: str = "linux"
    """`linux` is what Linux hosts run, `modern` follows today's RFCs, `ns2` follows ns-2.35."""
    variant: str | None = None
    """`reno`, `newreno` or `sack`; default: by the preset."""
    ecn: bool | None = None
    """Whether packets are ECN-capable; default: by the preset."""
    packet_bytes: int | None = None
    """Size of a full packet on the wire, bytes; default: by the preset."""
    receive_window_pkts: int | None = None
    """Maximum window of the receiver, packets; default: by the preset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """A group of flows with equal transport, reported together."""

    name: str
    """Name in results."""
    count: int = 1
    """Number of flows."""
    transport: Transport = field(default_factory=Transport)
    """Transport of the flows."""
    start_s: Span = 0.0
    """Start time, seconds; a range spreads the flows."""
    stop_s: float | None = None
    """Stop time, seconds; default: the end of the run."""
    transfer_bytes: int | None = None
    """Bytes to send for each flow; default: unlimited."""
    extra_rtt_s: Span = 0.0
    """Round-trip time added to that of the links, seconds; a range spreads the flows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change during the run; each opens a window."""

    at_s: float
    """Time, seconds."""
    name: str | None = None
    """Name of its window."""
    capacity_bps: float | None = None
    """New rate of the bottleneck, bit/s."""
    stop: str | None = None
    """Flow group to stop."""
    resume: str | None = None
    """Flow group to resume."""
    count: int | None = None
    """Number of flows of that group; default: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumbbell:
    """A dumbbell: senders and receivers on both sides of one bottleneck."""

    name: str
    """Short name in results."""
    rate_bps: float
    """Rate of the bottleneck, bit/s."""
    delay_s: float
    """Propagation delay of the bottleneck, seconds."""
    buffer_pkts: int
    """Buffer size, packets."""
    flows: Sequence[Flows]
    """Flow groups."""
    title: str = ""
    """One-line description."""
    duration_s: float = 100.0
    """Duration of a run, seconds."""
    aqm: str = "droptail"
    """Default AQM, a SPEC."""
    access_rate_bps: float = 1e9
    """Rate of each access link, bit/s."""
    access_delay_s: Span = 0.01
    """Propagation delay of each access link, seconds; a range spreads them."""
    target_pkts: float | None = None
    """Target queue of the AQMs, packets."""
    nominal_flows: float | None = None
    """Number of flows for self-designing AQMs; default: the actual number."""
    base_rtt_s: float | None = None
    """Base RTT for self-designing AQMs, seconds; default: that of the links."""
    events: Sequence[Event] = ()
    """Changes during the run."""
    windows_s: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Start and end of additional windows, seconds, by name."""
    sample_interval_s: float = 0.1
    """Sampling interval of queue and probability, seconds."""

    def scenario(self) -> Scenario:
        """Return the scenario."""
        return Scenario.parse(self.to_toml(), self.name)

    def to_toml(self) -> str:
        """Return the scenario as TOML text."""
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
        # Basic strings of TOML use JSON's escapes.
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def _time(seconds: float) -> str:
    return _largest_unit(round(seconds * 1e9), (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)))


def _span(seconds: Span) -> str | list[str]:
    return [_time(end) for end in seconds] if isinstance(seconds, tuple) else _time(seconds)


def _rate(bps: float) -> str:
    return _largest_unit(round(bps), (("Gbit", 10**9), ("Mbit", 10**6), ("kbit", 10**3), ("bit", 1)))


def _largest_unit(amount: int, units: Sequence[tuple[str, int]]) -> str:
    """Format an amount as an integer of the largest unit that divides it."""
    unit, size = next((unit, size) for unit, size in units if amount % size == 0)
    return f"{amount // size}{unit}"
