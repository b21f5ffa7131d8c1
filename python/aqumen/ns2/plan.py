"""The explicit network that one run simulates (nodes, directed links, flows), read from the scenario's expansion.

The dictionary comes from `scenario` (one scenario, one seed, everything random about the set-up already drawn). This file turns
it into typed records and refuses what ns-2 cannot do before a line of Tcl is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import Ns2Unsupported

__all__ = ["Aqm", "Flow", "Group", "Link", "Nominal", "Plan", "Transport"]


@dataclass(frozen=True)
class Aqm:
    """An AQM by name, with its parameters (packets, seconds, Hz)."""

    name: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Link:
    """A directed link: `rates` is its capacity over time, [(from_s, bit/s), ...]; the buffer counts waiting packets."""

    name: str
    tail: int
    head: int
    delay_s: float
    rates: tuple[tuple[float, float], ...]
    buffer_pkts: int
    aqm: Aqm
    record: bool

    def capacity_bits(self, start_s: float, end_s: float) -> float:
        """What the link can carry between two times, in bits."""
        total = 0.0
        for i, (begin, rate) in enumerate(self.rates):
            until = self.rates[i + 1][0] if i + 1 < len(self.rates) else float("inf")
            total += rate * max(0.0, min(until, end_s) - max(begin, start_s))
        return total


@dataclass(frozen=True)
class Transport:
    """TCP as ns-2 offers it; sizes are bytes on the wire, windows packets."""

    variant: str
    ecn: bool
    packet_bytes: int
    ack_bytes: int
    receive_window: float
    initial_window: float
    send_overhead_s: float
    min_rto_s: float
    max_rto_s: float
    initial_rto_s: float
    rto_granularity_s: float
    delayed_ack: bool
    syn: bool


@dataclass(frozen=True)
class Group:
    """Flows that are reported together: numbers first to last - 1."""

    name: str
    transport: Transport
    first: int
    last: int


@dataclass(frozen=True)
class Flow:
    """A connection: link numbers there and back, and when its source is on ((start_s, stop_s or None), ...)."""

    group: int
    path: tuple[int, ...]
    return_path: tuple[int, ...]
    on: tuple[tuple[float, float | None], ...]
    transfer_bytes: int | None


@dataclass(frozen=True)
class Nominal:
    """The network that AQMs design themselves for; only the target (packets) matters here."""

    target_pkts: float | None


# The transport keys understood here, with ns-2's own defaults for those a scenario may leave out.
_TRANSPORT_DEFAULTS: dict[str, Any] = {
    "variant": "reno",
    "ecn": False,
    "packet_bytes": 1000,
    "ack_bytes": 40,
    "receive_window": 1000.0,
    "initial_window": 2.0,
    "send_overhead_s": 0.0,
    "min_rto_s": 0.2,
    "max_rto_s": 60.0,
    "initial_rto_s": 3.0,
    "rto_granularity_s": 0.01,
    "delayed_ack": False,
    "syn": True,
}
_VARIANTS = ("tahoe", "reno", "newreno", "sack")


def _transport(raw: Mapping[str, Any], group: str) -> Transport:
    preset = raw.get("preset", "ns2")
    if preset != "ns2":
        raise Ns2Unsupported(f"group '{group}': ns-2 runs the transport preset 'ns2' only, not '{preset}'")
    unknown = sorted(key for key in raw if key not in _TRANSPORT_DEFAULTS and key != "preset" and raw[key] is not None)
    if unknown:
        raise Ns2Unsupported(f"group '{group}': ns-2 has no transport option '{unknown[0]}'")
    values = _TRANSPORT_DEFAULTS | {key: value for key, value in raw.items() if key != "preset" and value is not None}
    if values["variant"] not in _VARIANTS:
        raise Ns2Unsupported(f"group '{group}': ns-2 runs {', '.join(_VARIANTS)} here, not '{values['variant']}'")
    if values["packet_bytes"] <= TCP_HEADER_BYTES:
        raise Ns2Unsupported(f"group '{group}': ns-2 adds {TCP_HEADER_BYTES} bytes of header, so packets must be larger")
    return Transport(**values)


TCP_HEADER_BYTES = 40
"""ns-2's tcpip_base_hdr_size_, bytes: added to every data packet, and the whole of a SYN."""


@dataclass(frozen=True)
class Plan:
    """One run: everything that `tcl` writes down."""

    scenario: str
    seed: int
    duration_s: float
    nodes: tuple[str, ...]
    links: tuple[Link, ...]
    groups: tuple[Group, ...]
    flows: tuple[Flow, ...]
    windows: Mapping[str, tuple[float, float]]
    sample_interval_s: float
    nominal: Nominal

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> "Plan":
        """Read the scenario's expansion; raises `Ns2Unsupported` for what ns-2 does not have."""
        links = tuple(
            Link(
                name=link["name"],
                tail=link["from"],
                head=link["to"],
                delay_s=float(link["delay_s"]),
                rates=tuple((float(t), float(rate)) for t, rate in link["rates"]),
                buffer_pkts=int(link["buffer_pkts"]),
                aqm=Aqm(link["aqm"]["name"], dict(link["aqm"].get("params", {}))),
                record=bool(link.get("record", False)),
            )
            for link in raw["links"]
        )
        groups = tuple(
            Group(group["name"], _transport(group["transport"], group["name"]), group["flows"][0], group["flows"][1])
            for group in raw["groups"]
        )
        flows = tuple(
            Flow(
                group=flow["group"],
                path=tuple(flow["path"]),
                return_path=tuple(flow["return_path"]),
                on=tuple((float(start), None if stop is None else float(stop)) for start, stop in flow["on"]),
                transfer_bytes=flow.get("transfer_bytes"),
            )
            for flow in raw["flows"]
        )
        target = raw.get("nominal", {}).get("target_pkts")
        plan = Plan(
            scenario=raw["scenario"],
            seed=int(raw["seed"]),
            duration_s=float(raw["duration_s"]),
            nodes=tuple(raw["nodes"]),
            links=links,
            groups=groups,
            flows=flows,
            windows={name: (float(start), float(end)) for name, (start, end) in raw["windows"].items()},
            sample_interval_s=float(raw.get("sample_interval_s", 0.1)),
            nominal=Nominal(None if target is None else float(target)),
        )
        plan._check()
        return plan

    def _check(self) -> None:
        pairs: dict[tuple[int, int], str] = {}
        for link in self.links:
            other = pairs.setdefault((link.tail, link.head), link.name)
            if other != link.name or list(self.links).count(link) > 1:
                raise Ns2Unsupported(f"ns-2 allows one link between two nodes, not both '{other}' and '{link.name}'")
        for name, (start, end) in self.windows.items():
            if not 0 <= start < end <= self.duration_s:
                raise Ns2Unsupported(f"window '{name}' is not within the run's {self.duration_s:g} s")
        self.routes()

    def routes(self) -> list[tuple[int, int, int]]:
        """The forwarding table: (at node, to destination node, over link). ns-2 forwards by destination only."""
        table: dict[tuple[int, int], int] = {}
        for flow in self.flows:
            for path in (flow.path, flow.return_path):
                destination = self.links[path[-1]].head
                for number in path:
                    at = self.links[number].tail
                    if table.setdefault((at, destination), number) != number:
                        raise Ns2Unsupported(
                            f"ns-2 forwards by destination: two flows leave node '{self.nodes[at]}' for "
                            f"'{self.nodes[destination]}' over different links"
                        )
        return [(at, destination, number) for (at, destination), number in table.items()]
