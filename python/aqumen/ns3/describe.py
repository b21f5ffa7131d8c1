"""Writes a plan as the lines that our ns-3 program reads, and refuses what ns-3 does not have before it starts.

Every attribute that matters is set explicitly: ns-3's defaults differ from release to release.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aqumen.errors import listed
from aqumen.peers.plan import Aqm, Link, preset_in_plans

from .errors import Ns3Unsupported

__all__ = ["Group", "Run", "describe"]

PPP_BYTES = 2
"""What ns-3's point-to-point device adds to a packet."""

BUILT_IN: dict[str, Any] = {
    "halve_flight": False,
    "ect_retransmissions": True,
    "loss_detection": "rfc6675",
    "reduction": "at-once",
    "rto_floor": "timeout",
}
"""What ns-3's senders always do, where that is not what the preset `modern` does; a scenario that says otherwise cannot
be run."""

SOCKETS: dict[str, tuple[str, dict[str, Any]]] = {
    "reno": ("Rfc5681Reno", {}),
    "cubic": ("Rfc3465Cubic", {}),
    "dctcp": ("TcpDctcp", {"DctcpShiftG": 0.0625, "DctcpAlphaOnInit": 1.0, "UseEct0": "true"}),
    "bbr": ("TcpBbr", {"HighGain": 2.89, "BwWindowLength": 10, "RttWindowLength": "10s", "ProbeRttDuration": "200ms"}),
    "vegas": ("TcpVegas", {"Alpha": 2, "Beta": 4, "Gamma": 1}),
    "ledbat": (
        "TcpLedbat",
        {
            "TargetDelay": "100ms",
            "Gain": 1.0,
            "BaseHistoryLen": 10,
            "NoiseFilterLen": 4,
            "MinCwnd": 2,
            "SSParam": "yes",
        },
    ),
}
"""ns-3's name for each congestion control, and the values that ours has. `Rfc5681Reno` and
`Rfc3465Cubic` are in our program: see there."""

HANDED_OVER = (
    "variant",
    "congestion",
    "pacing",
    "ecn",
    "packet_bytes",
    "header_bytes",
    "initial_window",
    "receive_window",
    "initial_threshold",
    "delayed_ack_s",
    "min_rto_s",
    "initial_rto_s",
    "limited_transmit",
    "timestamps",
)
"""What ns-3 is told, or refused for by itself."""

NOT_COMPARED = (
    "preset",
    "hystart",
    "reno_friendly",
    "growth_limit",
    "restart_window",
    "max_rto_s",
    "rto_tick_s",
    "validate_window",
    "exit_by_flight",
    "recovery_burst",
    "cwr_retransmissions",
    "mark_after_timeout_counts",
    "ack_bytes",
    # With rfc6675 nobody reads them.
    "tail_probe",
    "frto",
)
"""Where ns-3 goes its own way, or where the value cannot matter to flows that always have data."""


@dataclass(frozen=True, slots=True)
class Group:
    """Flows that are reported together."""

    name: str
    """As in the scenario."""
    first: int
    """Number of its first flow."""
    last: int
    """One more than the number of its last flow."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run needs beside the text: links as the metrics want them, groups, windows."""

    scenario: str
    """Its name."""
    seed: int
    """As in the plan."""
    duration_s: float
    """Simulated time."""
    links: tuple[Link, ...]
    """In the plan's order."""
    groups: tuple[Group, ...]
    """In the plan's order."""
    windows: Mapping[str, tuple[float, float]]
    """Start and end of each, seconds."""
    sample_interval_s: float
    """Of the series."""
    snapshots_s: tuple[float, ...]
    """When the program prints the counters of the flows."""
    text: str
    """What the program reads."""


def describe(raw: Mapping[str, Any]) -> Run:
    """Read the scenario's expansion and write it for the program; raises `Ns3Unsupported`."""
    links = tuple(_link(link, raw) for link in raw["links"])
    for group in raw["groups"]:
        if group.get("traffic", "bulk") != "bulk":
            raise Ns3Unsupported(f"group '{group['name']}': ns-3 here has bulk traffic only")
    transports = [(group["name"], dict(group["transport"])) for group in raw["groups"]]
    windows = {name: (float(start), float(end)) for name, (start, end) in raw["windows"].items()}
    snapshots = tuple(sorted({time for window in windows.values() for time in window} - {0.0}))
    packet_bytes = int(transports[0][1]["packet_bytes"]) if transports else 1000
    lines = [f"seed {_seed(int(raw['seed']))}", f"duration {float(raw['duration_s'])!r}", f"nodes {len(raw['nodes'])}"]
    if transports:
        # A segment at a time: a write must fit whole into the sender's buffer.
        lines.append(f"write {packet_bytes - int(transports[0][1]['header_bytes'])}")
        lines += [f"default ns3::{key} {value}" for key, value in _defaults(transports).items()]
    lines += _links(links, packet_bytes)
    lines += [f"control {node} ns3::{kind}" for node, kind in _controls(raw, links).items()]
    if any(link.record and link.aqm.name == "fq-codel" for link in links):
        for name, transport in transports:
            if transport["congestion"] == "bbr":
                raise Ns3Unsupported(f"group '{name}': the BBR of ns-3 stalls under FQ-CoDel; run it under another AQM")
    lines += [f"route {at} {to} {link}" for (at, to), link in _routes(raw, links).items()]
    for flow in raw["flows"]:
        if len(flow["on"]) != 1:
            raise Ns3Unsupported("ns-3 here has flows that start once and stop at most once")
        ((start, stop),) = flow["on"]
        bytes_ = flow.get("transfer_bytes") or 0
        lines.append(f"flow {flow['path'][0]} {flow['path'][-1]} {start!r} {-1 if stop is None else stop!r} {bytes_}")
    # At the very end the run stops first.
    lines += [f"snapshot {min(time, float(raw['duration_s']) - 1e-9)!r}" for time in snapshots]
    return Run(
        scenario=raw["scenario"],
        seed=int(raw["seed"]),
        duration_s=float(raw["duration_s"]),
        links=links,
        groups=tuple(Group(group["name"], *group["flows"]) for group in raw["groups"]),
        windows=windows,
        sample_interval_s=float(raw.get("sample_interval_s", 0.1)),
        snapshots_s=snapshots,
        text="\n".join(lines) + "\n",
    )


def _seed(seed: int) -> int:
    """A seed for ns-3's generator, 1 to 2^32 - 2; a hash spreads neighbouring ones."""
    digest = hashlib.sha256(f"aqumen ns3 {seed}".encode()).digest()
    return int.from_bytes(digest[:8], "little") % (2**32 - 2) + 1


def _link(link: Mapping[str, Any], raw: Mapping[str, Any]) -> Link:
    target = link.get("target_pkts", raw.get("nominal", {}).get("target_pkts"))
    if link.get("line") is not None:
        raise Ns3Unsupported(f"link '{link['name']}': ns-3 runs wires here, of which only the rate changes")
    if link.get("buffer_bytes") is not None:
        raise Ns3Unsupported(f"link '{link['name']}': ns-3 here has limits in packets, not bytes")
    return Link(
        name=link["name"],
        tail=link["from"],
        head=link["to"],
        delay_s=float(link["delay_s"]),
        rates=tuple((float(time), float(rate)) for time, rate in link["rates"]),
        buffer_pkts=int(link["buffer_pkts"]),
        aqm=Aqm.from_dict(link["aqm"]),
        target_pkts=None if target is None else float(target),
        record=bool(link.get("record", False)),
    )


def _links(links: tuple[Link, ...], packet_bytes: int) -> list[str]:
    by_ends = {(link.tail, link.head): link for link in links}
    if len(by_ends) != len(links):
        raise Ns3Unsupported("ns-3 here has one link between two nodes")
    # The device's own header comes on top of the packet: a rate higher by as much keeps the packet's time.
    larger = (packet_bytes + PPP_BYTES) / packet_bytes
    lines = []
    for i, link in enumerate(links):
        back = by_ends.get((link.head, link.tail))
        if back is None or back.delay_s != link.delay_s:
            raise Ns3Unsupported(f"link '{link.name}': ns-3's point-to-point links have the same delay both ways")
        rate = link.rates[0][1] * larger
        lines.append(f"link {i} {link.tail} {link.head} {rate!r} {link.delay_s!r} {link.buffer_pkts}")
        lines += [f"rate {i} {time!r} {later * larger!r}" for time, later in link.rates[1:]]
        if link.record:
            if link.aqm.name not in _AQMS:
                raise Ns3Unsupported(f"ns-3 here has no AQM '{link.aqm.name}'; it has {listed(sorted(_AQMS))}")
            params = _Params(link.aqm)
            kind, attributes = _AQMS[link.aqm.name](params, link)
            params.done()
            lines.append(f"disc {i} ns3::{kind}")
            lines += [f"set {i} {name} {value}" for name, value in attributes.items()]
        elif link.aqm.name != "droptail":
            raise Ns3Unsupported(f"link '{link.name}': ns-3 here has AQMs on recorded links only")
    return lines


def _routes(raw: Mapping[str, Any], links: tuple[Link, ...]) -> dict[tuple[int, int], int]:
    table: dict[tuple[int, int], int] = {}
    for flow in raw["flows"]:
        for path in (flow["path"], flow["return_path"]):
            destination = links[path[-1]].head
            for number in path:
                if table.setdefault((links[number].tail, destination), number) != number:
                    raise Ns3Unsupported(
                        "ns-3 here forwards by destination: two flows leave one node over different links"
                    )
    return table


def _defaults(transports: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """What all senders have; only the congestion control may differ from group to group."""
    found: dict[str, Any] = {}
    for name, transport in transports:
        for key, value in _transport(name, dict(transport)).items():
            if found.setdefault(key, value) != value:
                raise Ns3Unsupported(
                    "ns-3 here has one transport for all flows but for `congestion`; "
                    f"groups '{transports[0][0]}' and '{name}' differ in what it calls {key.replace(' ', '::')}"
                )
    return found


def _controls(raw: Mapping[str, Any], links: tuple[Link, ...]) -> dict[int, str]:
    """The congestion control of each host at an end of a flow."""
    found: dict[int, str] = {}
    for flow in raw["flows"]:
        group = raw["groups"][flow["group"]]
        kind = SOCKETS[group["transport"]["congestion"]][0]
        for node in (links[flow["path"][0]].tail, links[flow["path"][-1]].head):
            if found.setdefault(node, kind) != kind:
                raise Ns3Unsupported(
                    f"group '{group['name']}': ns-3 here has one congestion control for each host, and it shares some"
                )
    return found


def _transport(group: str, transport: dict[str, Any]) -> dict[str, Any]:
    def refuse(what: str) -> Ns3Unsupported:
        return Ns3Unsupported(f"group '{group}': {what}")

    # Of its congestion controls only CUBIC counts in whole segments; ours of Reno is in the program.
    built_in = BUILT_IN | {"whole_windows": transport["congestion"] == "cubic"}
    for name, value in (preset_in_plans("modern") | built_in).items():
        given = transport.get(name, value)
        if name not in HANDED_OVER and name not in NOT_COMPARED and given != value:
            raise refuse(f"ns-3 has {name} = {value} built in, not {given}")
    variant = transport.pop("variant")
    if variant != "sack":
        # Its NewReno counts duplicate acknowledgements as if they were SACKs, and guesses wrong.
        raise refuse(f"ns-3 runs sack here, not '{variant}'")
    timestamps = bool(transport.pop("timestamps"))
    header = 52 if timestamps else 40
    if transport.pop("header_bytes") != header:
        raise refuse(f"ns-3's headers are {header} bytes {'with' if timestamps else 'without'} timestamps")
    payload = int(transport.pop("packet_bytes")) - header
    window = int(transport.pop("receive_window")) * payload
    threshold = transport.pop("initial_threshold", None)
    delayed_s = transport.pop("delayed_ack_s")
    initial_rto_s = float(transport.pop("initial_rto_s"))
    congestion = transport.pop("congestion")
    # BBR turns it on itself.
    paced = transport.pop("pacing")
    if congestion not in SOCKETS:
        raise refuse(f"ns-3 has no congestion control '{congestion}'; it has {listed(SOCKETS)}")
    socket, values = SOCKETS[congestion]
    inherited: dict[str, Any] = {}
    if congestion in ("reno", "cubic"):
        values = values | {"GrowthLimit": int(transport["growth_limit"])}
    if congestion == "cubic":
        # ns-3 has the HyStart that came before HyStart++.
        inherited = {"FastConvergence": "true", "Beta": 0.7, "C": 0.4, "HyStart": _flag(transport["hystart"])}
        if transport["reno_friendly"]:
            raise refuse("the CUBIC of ns-3 has reno_friendly = False built in, not True")
    attributes = {
        **{f"{socket} {name}": value for name, value in values.items()},
        **{f"TcpCubic {name}": value for name, value in inherited.items()},
        **({} if congestion == "bbr" else {"TcpSocketState EnablePacing": _flag(paced)}),
        "TcpL4Protocol RecoveryType": "ns3::TcpClassicRecovery",
        "TcpSocket SegmentSize": payload,
        "TcpSocket InitialCwnd": int(transport.pop("initial_window")),
        # Ours is the receive window where none is known; ns-3's window would open beyond what it may send.
        "TcpSocket InitialSlowStartThreshold": window if threshold is None else int(threshold) * payload,
        # The sender's buffer limits the window: ns-3.37 crashes at times when the receiver's does.
        "TcpSocket SndBufSize": window,
        "TcpSocket RcvBufSize": 2 * window,
        "TcpSocket DelAckCount": 1 if delayed_s is None else 2,
        "TcpSocket DelAckTimeout": f"{0.2 if delayed_s is None else delayed_s}s",
        "TcpSocket ConnTimeout": f"{initial_rto_s}s",
        "TcpSocket ConnCount": 1000,
        "TcpSocket DataRetries": 100000,
        "TcpSocketBase MinRto": f"{transport.pop('min_rto_s')}s",
        "TcpSocketBase ClockGranularity": "1ms",
        "TcpSocketBase Sack": "true",
        "TcpSocketBase Timestamp": _flag(timestamps),
        "TcpSocketBase WindowScaling": "true",
        "TcpSocketBase LimitedTransmit": _flag(transport.pop("limited_transmit")),
        "TcpSocketBase UseEcn": "On" if transport.pop("ecn") else "Off",
        "RttEstimator InitialEstimation": f"{initial_rto_s}s",
    }
    unknown = [name for name in transport if name not in preset_in_plans("modern")]
    if unknown:
        raise refuse(f"ns-3 here has no transport option '{unknown[0]}'")
    return attributes


def _flag(value: Any) -> str:
    return "true" if value else "false"


class _Params:
    """Hands out parameters by name and complains about those nobody asked for."""

    def __init__(self, aqm: Aqm) -> None:
        self._aqm = aqm
        self._left = dict(aqm.params)

    def take(self, name: str) -> Any:
        if name not in self._left:
            raise Ns3Unsupported(f"AQM '{self._aqm.name}' for ns-3 needs the parameter '{name}'")
        return self._left.pop(name)

    def time(self, name: str) -> str:
        return f"{float(self.take(name))!r}s"

    def flag(self, name: str) -> str:
        return _flag(self.take(name))

    def fixed(self, name: str, value: Any) -> None:
        """A parameter that ns-3 has built in, at this value."""
        given = self._left.pop(name, None)
        if given is not None and given != value:
            raise Ns3Unsupported(f"AQM '{self._aqm.name}' in ns-3 has {name} = {value} built in, not {given}")

    def ignore(self, name: str) -> None:
        """A parameter that makes no difference worth refusing."""
        self._left.pop(name, None)

    def has(self, name: str) -> bool:
        return name in self._left

    def done(self) -> None:
        for name, value in self._left.items():
            if value is not None:
                raise Ns3Unsupported(f"AQM '{self._aqm.name}' in ns-3 has no parameter '{name}'")


def _limit(link: Link) -> str:
    return f"{link.buffer_pkts}p"


def _droptail(params: _Params, link: Link) -> tuple[str, dict[str, Any]]:
    params.fixed("ns2_limit", False)
    return "FifoQueueDisc", {"MaxSize": _limit(link)}


def _codel(params: _Params, link: Link) -> tuple[str, dict[str, Any]]:
    attributes = {
        "MaxSize": _limit(link),
        "Target": params.time("target"),
        "Interval": params.time("interval"),
        # Quiet with less than this left, where ours is quiet with as much.
        "MinBytes": int(params.take("mtu")) + 1,
        "UseEcn": params.flag("ecn"),
        "UseL4s": "false",
    }
    # ns-3 counts from the mark itself, whatever is asked for, and takes a Newton step.
    params.ignore("schedule")
    params.ignore("arithmetic")
    params.fixed("ce_threshold_selector", "any")
    if params.has("ce_threshold"):
        attributes["CeThreshold"] = params.time("ce_threshold")
    return "CoDelQueueDisc", attributes


def _pie(params: _Params, link: Link) -> tuple[str, dict[str, Any]]:
    params.fixed("auto_tune", True)
    params.fixed("delay_boost", False)
    params.fixed("safeguards", "rfc8033")
    params.fixed("bytemode", False)
    params.fixed("on_off", False)
    return "PieQueueDisc", {
        "MaxSize": _limit(link),
        "QueueDelayReference": params.time("target"),
        "Tupdate": params.time("interval"),
        "A": float(params.take("alpha")),
        "B": float(params.take("beta")),
        "MaxBurstAllowance": params.time("burst"),
        "MeanPktSize": int(params.take("mean_packet")),
        "UseCapDropAdjustment": params.flag("cap"),
        "UseDerandomization": params.flag("derandomize"),
        "UseDequeueRateEstimator": _flag(params.take("delay") == "rate"),
        "MarkEcnThreshold": float(params.take("mark_p")),
        "UseEcn": params.flag("ecn"),
        "UseL4s": "false",
    }


def _cobalt(params: _Params, link: Link) -> tuple[str, dict[str, Any]]:
    params.fixed("mtu", 0)
    # ns-3 has a table and a Newton step.
    params.ignore("arithmetic")
    return "CobaltQueueDisc", {
        "MaxSize": _limit(link),
        "Target": params.time("target"),
        "Interval": params.time("interval"),
        "Increment": float(params.take("increment")),
        "Decrement": float(params.take("decrement")),
        "BlueThreshold": params.time("blue_threshold"),
        "UseEcn": params.flag("ecn"),
        "UseL4s": "false",
    }


def _fq_codel(params: _Params, link: Link) -> tuple[str, dict[str, Any]]:
    # A limit in packets is reached long before this much memory is.
    params.fixed("memory", 32 * 2**20)
    params.fixed("backlog", "queue")
    params.fixed("half", "bytes")
    params.fixed("count_drops", False)
    params.fixed("emptied", "old")
    params.fixed("ce_threshold_selector", "any")
    for name in ("truesize", "schedule", "arithmetic"):
        params.ignore(name)
    return "FqCoDelQueueDisc", {
        "MaxSize": _limit(link),
        "Flows": int(params.take("queues")),
        "DropBatchSize": int(params.take("drop_batch")),
        "Target": params.time("target"),
        "Interval": params.time("interval"),
        "UseEcn": params.flag("ecn"),
        "UseL4s": "false",
        # The program gives these two to the discipline's calls and to its queues; see CoDel for the one byte.
        "quantum": int(params.take("quantum")),
        "MinBytes": int(params.take("mtu")) + 1,
    }


def _red(params: _Params, link: Link) -> tuple[str, dict[str, Any]]:
    params.fixed("bytes", False)
    params.fixed("queue_in_bytes", False)
    params.fixed("use_mark_p", False)
    params.fixed("spacing", "ns2")
    # They fix thresholds and weight, which come as numbers, or are read with `use_mark_p` alone.
    for name in ("thresholds", "target_delay", "weight_rule", "link_delay", "mark_p"):
        params.ignore(name)
    max_p = float(params.take("max_p"))
    if max_p == 0.0:
        raise Ns3Unsupported("AQM 'red' in ns-3 has max_p above 0, not 0")
    return "RedQueueDisc", {
        "MaxSize": _limit(link),
        "MinTh": float(params.take("min_th")),
        "MaxTh": float(params.take("max_th")),
        "LInterm": 1.0 / max_p,
        "QW": float(params.take("weight")),
        "Gentle": params.flag("gentle"),
        "Wait": params.flag("wait"),
        "MeanPktSize": int(params.take("mean_packet")),
        "LinkBandwidth": f"{round(link.rates[0][1])}bps",
        "UseHardDrop": _flag(params.take("above") == "drop"),
        "UseEcn": params.flag("ecn"),
    }


_AQMS: dict[str, Callable[[_Params, Link], tuple[str, dict[str, Any]]]] = {
    "droptail": _droptail,
    "codel": _codel,
    "pie": _pie,
    "cobalt": _cobalt,
    "fq-codel": _fq_codel,
    "red": _red,
}
