"""Typed form of a plan (nodes, directed links, flows) for ns-2.

Reads the dictionary of `Scenario.plan`, in which all random quantities of the set-up are drawn. Raises `Ns2Unsupported`
for features that ns-2 lacks, before any Tcl is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from aqumen.engines.external.plan import Aqm, Link, preset_in_plans, read_buffer

from .errors import Ns2Unsupported
from .others import Sctp, Udp, read_sctp, read_udp
from .requests import Requests, read_requests
from .wire import read_wire

__all__ = ["Flow", "Group", "Plan", "Transport"]


@dataclass(frozen=True, slots=True)
class Transport:
    """TCP settings of ns-2. Sizes in bytes on the wire, windows in packets; defaults are ns-2's, except the window."""

    variant: str = "reno"
    ecn: bool = False
    packet_bytes: int = 1000
    header_bytes: int = 40
    """Header of a packet, and size of a SYN, bytes."""
    ack_bytes: int = 40
    receive_window: float = 1000.0
    initial_window: float = 2.0
    max_burst: int = 0
    send_overhead_s: float = 0.0
    min_rto_s: float = 0.2
    max_rto_s: float = 60.0
    initial_rto_s: float = 3.0
    rto_granularity_s: float = 0.01
    delayed_ack_s: float | None = None
    restart_window: float | None = 1.0
    """Window after a retransmission time-out with no data outstanding, packets; None keeps the window."""
    syn: bool = True
    limited_transmit: bool = True
    cwr_retransmissions: bool = True
    exit_by_flight: bool = False
    initial_threshold: int | None = None
    """Initial slow-start threshold, packets; None: the receive window. Only for Agent/TCP/Linux."""
    congestion: str = "reno"
    """`reno`, or `cubic-2.1`: CUBIC of Linux 2.6.22, in `Agent/TCP/Linux`."""


@dataclass(frozen=True, slots=True)
class Group:
    """Flows that are reported together: numbers `first` to `last` - 1."""

    name: str
    transport: Transport | Sctp | Udp
    first: int
    last: int
    requests: Requests | None = None
    """Requests for finite transfers; None for bulk and generated traffic."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A connection: link numbers of both directions, and ON periods of its source ((start_s, stop_s or None), ...)."""

    group: int
    path: tuple[int, ...]
    return_path: tuple[int, ...]
    on: tuple[tuple[float, float | None], ...]
    transfer_bytes: int | None


_VARIANTS = ("reno", "newreno", "sack")
# Names of plans that differ from those of `Transport`.
_ALIASES = {"rto_tick_s": "rto_granularity_s"}
# Fields of `Transport` that are built into Agent/TCP/Linux. Its reactions to marks have not been validated.
_OF_RENO = {"variant", "ecn", "delayed_ack_s", "limited_transmit", "initial_window"}
# Options of ECN, which is off, and of NewReno: no effect in Agent/TCP/Linux.
_LINUX_UNUSED = {
    "min_window", "ect_retransmissions", "cwr_retransmissions", "timeout_after_mark_keeps_threshold",
    "mark_after_timeout_counts", "ecn_backoff", "exit_by_flight", "recovery_burst",
}  # fmt: skip


def _transport(raw: Mapping[str, Any], traffic: Any, group: str, asks: bool) -> Transport | Sctp | Udp:
    preset = str(raw.get("preset", "ns2"))
    if preset.startswith("sctp"):
        return read_sctp(raw, traffic, group)
    if preset == "udp":
        return read_udp(raw, traffic, group)
    if traffic != "bulk" and not asks:
        raise Ns2Unsupported(f"group '{group}': ns-2 runs only bulk, transfers and web traffic over TCP")
    return _tcp(raw, group)


def _tcp(raw: Mapping[str, Any], group: str) -> Transport:
    known = {field.name for field in fields(Transport)}
    values: dict[str, Any] = {}
    congestion = raw.get("congestion") or "reno"
    cubic = congestion == "cubic-2.1"
    if congestion not in ("reno", "cubic-2.1"):
        hint = ": its CUBIC is that of 2005, preset cubic-ns2" if congestion == "cubic" else ""
        raise Ns2Unsupported(
            f"group '{group}': ns-2 runs only the congestion controls reno and cubic-2.1, not {congestion}{hint}"
        )
    name_of = "the CUBIC of ns-2" if cubic else "ns-2"
    # Built-in behaviour is that of ns-2's preset, except for the fields of `Transport`.
    handed_over = known - _OF_RENO if cubic else known
    preset = preset_in_plans("cubic-ns2" if cubic else "ns2")
    built_in = {name: value for name, value in preset.items() if _ALIASES.get(name, name) not in handed_over}
    for name, value in raw.items():
        name = _ALIASES.get(name, name)
        if name == "preset":
            if value not in ("ns2", "cubic-ns2"):
                presets = "ns2, cubic-ns2, sctp-ns2 and udp"
                raise Ns2Unsupported(f"group '{group}': ns-2 runs only the transport presets {presets}, not '{value}'")
        elif (name in ("hystart", "reno_friendly") and not cubic) or (cubic and name in _LINUX_UNUSED):
            continue
        elif name in built_in and value != built_in[name] and (value is not None or name in known):
            raise Ns2Unsupported(f"group '{group}': {name_of} has {name} = {built_in[name]} built in, not {value}")
        elif name in known:
            values[name] = value
        elif name not in built_in:
            raise Ns2Unsupported(f"group '{group}': ns-2 has no transport option '{name}'")
    transport = Transport(**values)
    if transport.variant not in _VARIANTS:
        raise Ns2Unsupported(f"group '{group}': ns-2 runs only {', '.join(_VARIANTS)}, not '{transport.variant}'")
    if transport.initial_threshold is not None and not cubic:
        raise Ns2Unsupported(f"group '{group}': in ns-2 only CUBIC has an initial_threshold")
    if not 0 < transport.header_bytes < transport.packet_bytes:
        raise Ns2Unsupported(f"group '{group}': a packet must be larger than its header")
    if transport.restart_window not in (None, 1):
        raise Ns2Unsupported(f"group '{group}': ns-2 restarts with a window of 1, not {transport.restart_window}")
    return transport


def _group(raw: Mapping[str, Any]) -> Group:
    requests = read_requests(raw)
    transport = _transport(raw["transport"], raw.get("traffic", "bulk"), raw["name"], requests is not None)
    first, last = raw["flows"]
    return Group(raw["name"], transport, first, last, requests)


def _optional(value: float | None) -> float | None:
    return None if value is None else float(value)


@dataclass(frozen=True, slots=True)
class Plan:
    """Network, flows and windows of one run."""

    scenario: str
    seed: int
    duration_s: float
    nodes: tuple[str, ...]
    links: tuple[Link, ...]
    groups: tuple[Group, ...]
    flows: tuple[Flow, ...]
    windows: Mapping[str, tuple[float, float]]
    sample_interval_s: float

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> "Plan":
        """Read the dictionary of `Scenario.plan`; raise `Ns2Unsupported` for features that ns-2 lacks."""
        nominal_target = raw.get("nominal", {}).get("target_pkts")
        links = tuple(
            Link(
                name=link["name"],
                tail=link["from"],
                head=link["to"],
                delay_s=float(link["delay_s"]),
                rates=tuple((float(t), float(rate)) for t, rate in link["rates"]),
                **read_buffer(link),
                aqm=Aqm.from_dict(link["aqm"]),
                target_pkts=_optional(link.get("target_pkts", nominal_target)),
                record=bool(link.get("record", False)),
                wire_loss=read_wire(link),
            )
            for link in raw["links"]
        )
        groups = tuple(_group(group) for group in raw["groups"])
        flows = tuple(
            Flow(
                group=flow["group"],
                path=tuple(flow["path"]),
                return_path=tuple(flow["return_path"]),
                on=tuple((float(start), _optional(stop)) for start, stop in flow["on"]),
                transfer_bytes=flow.get("transfer_bytes"),
            )
            for flow in raw["flows"]
        )
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

    def base_rtt_s(self, flow: Flow) -> float:
        """Return the round-trip propagation delay of a flow, seconds."""
        return sum(self.links[number].delay_s for number in (*flow.path, *flow.return_path))

    def routes(self) -> list[tuple[int, int, int]]:
        """Return the forwarding table: (node, destination node, link). ns-2 forwards by destination."""
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
