"""The explicit network that one run simulates (nodes, directed links, flows), read from the scenario's expansion.

The dictionary comes from `scenario` (one scenario, one seed, everything random about the set-up already drawn). This
file turns it into typed records and refuses what ns-2 cannot do before a line of Tcl is written.
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
    """TCP as ns-2 offers it. Sizes are bytes on the wire, windows packets; defaults are ns-2's, save the window."""

    variant: str = "reno"
    ecn: bool = False
    packet_bytes: int = 1000
    header_bytes: int = 40
    """Of a packet; a SYN is as large."""
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
    """Window after the retransmission timer expired with nothing outstanding; None: unchanged."""
    syn: bool = True
    limited_transmit: bool = True
    cwr_retransmissions: bool = True
    exit_by_flight: bool = False
    initial_threshold: int | None = None
    """Slow-start threshold at the start (packets); None: the receive window. Agent/TCP/Linux alone."""
    congestion: str = "reno"
    """`cubic-2.1`: that of Linux 2.6.22, in `Agent/TCP/Linux`."""


@dataclass(frozen=True, slots=True)
class Group:
    """Flows that are reported together: numbers first to last - 1."""

    name: str
    transport: Transport | Sctp | Udp
    first: int
    last: int
    requests: Requests | None = None
    """Finite transfers; None: the flows send by themselves."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A connection: link numbers there and back, and when its source is on ((start_s, stop_s or None), ...)."""

    group: int
    path: tuple[int, ...]
    return_path: tuple[int, ...]
    on: tuple[tuple[float, float | None], ...]
    transfer_bytes: int | None


_VARIANTS = ("reno", "newreno", "sack")
# Names that other parts of the program use for the same thing.
_ALIASES = {"rto_tick_s": "rto_granularity_s"}
# Of these what Agent/TCP/Linux has built in. It knows more than one reaction to marks, none of them compared with ours.
_OF_RENO = {"variant", "ecn", "delayed_ack_s", "limited_transmit", "initial_window"}
# What it has otherwise or not at all: of reactions to marks, which are off; and of NewReno.
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
        raise Ns2Unsupported(f"group '{group}': over TCP ns-2 runs the traffic bulk, transfers and web here")
    return _tcp(raw, group)


def _tcp(raw: Mapping[str, Any], group: str) -> Transport:
    known = {field.name for field in fields(Transport)}
    values: dict[str, Any] = {}
    congestion = raw.get("congestion") or "reno"
    cubic = congestion == "cubic-2.1"
    if congestion not in ("reno", "cubic-2.1"):
        hint = ": its CUBIC is that of 2005, preset cubic-ns2" if congestion == "cubic" else ""
        raise Ns2Unsupported(
            f"group '{group}': ns-2 runs the congestion controls reno and cubic-2.1 here, not {congestion}{hint}"
        )
    name_of = "the CUBIC of ns-2" if cubic else "ns-2"
    # What it always does is what the preset for it does, but for what a field of `Transport` hands over.
    handed_over = known - _OF_RENO if cubic else known
    preset = preset_in_plans("cubic-ns2" if cubic else "ns2")
    built_in = {name: value for name, value in preset.items() if _ALIASES.get(name, name) not in handed_over}
    for name, value in raw.items():
        name = _ALIASES.get(name, name)
        if name == "preset":
            if value not in ("ns2", "cubic-ns2"):
                presets = "ns2, cubic-ns2, sctp-ns2 and udp"
                raise Ns2Unsupported(f"group '{group}': ns-2 runs the transport presets {presets}, not '{value}'")
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
        raise Ns2Unsupported(f"group '{group}': ns-2 runs {', '.join(_VARIANTS)} here, not '{transport.variant}'")
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

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> "Plan":
        """Read the scenario's expansion; raises `Ns2Unsupported` for what ns-2 does not have."""
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
        """The round trip of a flow's propagation alone."""
        return sum(self.links[number].delay_s for number in (*flow.path, *flow.return_path))

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
