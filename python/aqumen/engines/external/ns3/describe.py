"""Translates a plan to the input lines of Aqumen's ns-3 program; raises `Ns3Unsupported` for features that ns-3 lacks.

Relevant attributes are set explicitly, since ns-3's defaults change between releases.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aqumen._core import quantity
from aqumen.engines.external.plan import Aqm, Link, preset_in_plans, read_buffer
from aqumen.engines.external.wire import NO_LOSS, WireLoss, read_wire
from aqumen.errors import listed

from .errors import Ns3Unsupported

__all__ = ["Group", "Run", "describe"]

BUILT_IN: dict[str, Any] = {
    "halve_flight": False,
    "ect_retransmissions": True,
    "loss_detection": "rfc6675",
    "reduction": "at-once",
    "rto_floor": "timeout",
}
"""Behaviour of ns-3's senders that differs from the preset `modern` and cannot be configured."""

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
"""ns-3 class of each congestion control, with the attribute values of Aqumen's implementation. `Rfc5681Reno` and
`Rfc3465Cubic` are defined in Aqumen's ns-3 program."""

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
"""Options that are passed to ns-3 or checked separately."""

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
    # Unused with rfc6675.
    "tail_probe",
    "frto",
)
"""Options that ns-3 implements differently, or that have no effect on bulk flows."""


@dataclass(frozen=True, slots=True)
class Group:
    """Flows that are reported together."""

    name: str
    """Name in the scenario."""
    first: int
    """Number of the first flow."""
    last: int
    """Number of the last flow + 1."""
    is_tcp: bool = True
    """Whether the flows use TCP; else UDP."""


@dataclass(frozen=True, slots=True)
class Run:
    """Input of a run: the program's text, and links, groups and windows for the metrics."""

    scenario: str
    """Name of the scenario."""
    seed: int
    """Seed of the plan."""
    duration_s: float
    """Simulated time, seconds."""
    links: tuple[Link, ...]
    """Links in the plan's order."""
    groups: tuple[Group, ...]
    """Groups in the plan's order."""
    windows: Mapping[str, tuple[float, float]]
    """Start and end of each window, seconds."""
    sample_interval_s: float
    """Sampling interval of the series, seconds."""
    snapshots_s: tuple[float, ...]
    """Times at which the program prints the flows' counters, seconds."""
    text: str
    """Input text of the program."""


def describe(raw: Mapping[str, Any]) -> Run:
    """Translate the dictionary of `Scenario.plan`; raise `Ns3Unsupported` for features that ns-3 lacks."""
    links = tuple(_link(link, raw) for link in raw["links"])
    windows = {name: (float(start), float(end)) for name, (start, end) in raw["windows"].items()}
    snapshots = tuple(sorted({time for window in windows.values() for time in window} - {0.0}))
    lines = [f"seed {_seed(int(raw['seed']))}", f"duration {float(raw['duration_s'])!r}", f"nodes {len(raw['nodes'])}"]
    lines += _links(links)
    # First and last words of a flow's line, around path and times.
    words: list[tuple[str, str]] = []
    numbers: dict[tuple[str, ...], int] = {}
    for group in raw["groups"]:
        if _is_udp(group):
            words.append(("datagrams", _datagrams(group)))
            continue
        traffic = group.get("traffic", "bulk")
        if traffic != "bulk":
            kind = traffic["kind"] if isinstance(traffic, Mapping) else traffic
            raise Ns3Unsupported(f"group '{group['name']}': ns-3 runs only bulk traffic over TCP, not {kind}")
        told = tuple(_transport(group["name"], dict(group["transport"])))
        if told not in numbers:
            number = numbers[told] = len(numbers)
            lines.append(f"transport {number} {told[0]}")
            lines += [f"option {number} {option}" for option in told[1:]]
        words.append(("flow", str(numbers[told])))
    if any(link.aqm.name == "fq-codel" for link in links):
        for group in raw["groups"]:
            if group["transport"].get("congestion") == "bbr":
                raise Ns3Unsupported(
                    f"group '{group['name']}': the BBR of ns-3 stalls under FQ-CoDel; run it under another AQM"
                )
    lines += [f"route {at} {to} {link}" for (at, to), link in _routes(raw, links).items()]
    for flow in raw["flows"]:
        if len(flow["on"]) != 1:
            raise Ns3Unsupported("ns-3 needs flows that start once and stop at most once")
        ((start, stop),) = flow["on"]
        kind, told_of_it = words[flow["group"]]
        ends = f"{flow['path'][0]} {flow['path'][-1]} {start!r} {-1 if stop is None else stop!r}"
        amount = f" {flow.get('transfer_bytes') or 0}" if kind == "flow" else ""
        lines.append(f"{kind} {ends} {told_of_it}{amount}")
    # Just before the end, at which the run stops first.
    lines += [f"snapshot {min(time, float(raw['duration_s']) - 1e-9)!r}" for time in snapshots]
    return Run(
        scenario=raw["scenario"],
        seed=int(raw["seed"]),
        duration_s=float(raw["duration_s"]),
        links=links,
        groups=tuple(_group(group) for group in raw["groups"]),
        windows=windows,
        sample_interval_s=float(raw.get("sample_interval_s", 0.1)),
        snapshots_s=snapshots,
        text="\n".join(lines) + "\n",
    )


def _group(group: Mapping[str, Any]) -> Group:
    first, last = group["flows"]
    return Group(group["name"], first, last, not _is_udp(group))


def _seed(seed: int) -> int:
    """Return a seed for ns-3, 1 to 2^32 - 2; a hash decorrelates adjacent seeds."""
    digest = hashlib.sha256(f"aqumen ns3 {seed}".encode()).digest()
    return int.from_bytes(digest[:8], "little") % (2**32 - 2) + 1


def _link(link: Mapping[str, Any], raw: Mapping[str, Any]) -> Link:
    target = link.get("target_pkts", raw.get("nominal", {}).get("target_pkts"))
    return Link(
        name=link["name"],
        tail=link["from"],
        head=link["to"],
        delay_s=float(link["delay_s"]),
        rates=tuple((float(time), float(rate)) for time, rate in link["rates"]),
        **read_buffer(link),
        aqm=Aqm.from_dict(link["aqm"]),
        target_pkts=None if target is None else float(target),
        record=bool(link.get("record", False)),
        wire_loss=read_wire(link, Ns3Unsupported, "ns-3"),
    )


def _links(links: tuple[Link, ...]) -> list[str]:
    by_ends = {(link.tail, link.head): link for link in links}
    if len(by_ends) != len(links):
        raise Ns3Unsupported("ns-3 needs at most one link between two nodes")
    if len({link.aqm.params.get("mtu") for link in links if link.aqm.name == "fq-codel"}) > 1:
        raise Ns3Unsupported("all FQ-CoDel disciplines must have equal mtu in ns-3")
    lines = []
    for i, link in enumerate(links):
        back = by_ends.get((link.head, link.tail))
        if back is None or back.delay_s != link.delay_s:
            raise Ns3Unsupported(
                f"link '{link.name}': ns-3's point-to-point links need equal delays in both directions"
            )
        lines.append(f"link {i} {link.tail} {link.head} {link.rates[0][1]!r} {link.delay_s!r} {_limit(link)}")
        lines += [f"rate {i} {time!r} {later!r}" for time, later in link.rates[1:]]
        # The device's own queue would count its header in bytes.
        if link.record or link.aqm.name != "droptail" or link.buffer_bytes is not None:
            if link.aqm.name not in _AQMS:
                raise Ns3Unsupported(f"ns-3 has no AQM '{link.aqm.name}'; it has {listed(sorted(_AQMS))}")
            params = _Params(link.aqm)
            kind, attributes = _AQMS[link.aqm.name](params, link)
            params.done()
            lines.append(f"disc {i} ns3::{kind}")
            lines += [f"set {i} {name} {value}" for name, value in attributes.items()]
        if link.record:
            lines.append(f"record {i}")
        lines += _losses(i, link.wire_loss)
    return lines


def _losses(number: int, loss: WireLoss) -> list[str]:
    """Return the lines of a wire's losses, applied where packets arrive."""
    if loss == NO_LOSS:
        return []
    kinds = {"random": (loss.random,), "bits": (loss.bit_errors,), "chain": loss.chain, "times": loss.times}
    return [
        f"{kind} {number} {' '.join(map(repr, values))}" for kind, values in kinds.items() if values and any(values)
    ]


def _is_udp(group: Mapping[str, Any]) -> bool:
    return bool(group["transport"].get("preset") == "udp")


NUMBERED_BYTES = 20
"""Bytes of number, time and size in each datagram of ns-3's generator."""


def _datagrams(group: Mapping[str, Any]) -> str:
    """Return payload, rate and periods of a UDP group."""

    def refuse(what: str) -> Ns3Unsupported:
        return Ns3Unsupported(f"group '{group['name']}': {what}")

    transport, traffic = group["transport"], group.get("traffic", "bulk")
    kind = traffic["kind"] if isinstance(traffic, Mapping) else traffic
    if not isinstance(traffic, Mapping) or kind not in ("cbr", "on-off"):
        raise refuse(f"ns-3 runs only cbr and on-off traffic over UDP, not {kind}")
    if transport["header_bytes"] != 28:
        raise refuse(f"ns-3's UDP headers are 28 bytes, not {transport['header_bytes']}")
    payload = int(quantity("size", traffic.get("packet", "1000B")))
    most = transport["packet_bytes"] - transport["header_bytes"]
    if not NUMBERED_BYTES <= payload <= most:
        raise refuse(f"a message of ns-3's generator must have {NUMBERED_BYTES} to {most} bytes, not {payload}")
    periods = ["ns3::ConstantRandomVariable[Constant=1e9]", "ns3::ConstantRandomVariable[Constant=0]"]
    if kind == "on-off":
        for k, name in enumerate(("on", "off")):
            law = traffic[name]
            if not isinstance(law, Mapping) or law["law"] != "exponential":
                raise refuse("ns-3 runs only exponential periods of an ON/OFF source")
            periods[k] = f"ns3::ExponentialRandomVariable[Mean={quantity('time', law['mean'])!r}]"
    return f"{payload} {round(quantity('rate', traffic['rate']))}bps {' '.join(periods)}"


def _routes(raw: Mapping[str, Any], links: tuple[Link, ...]) -> dict[tuple[int, int], int]:
    table: dict[tuple[int, int], int] = {}
    for flow in raw["flows"]:
        for path in (flow["path"], flow["return_path"]):
            destination = links[path[-1]].head
            for number in path:
                if table.setdefault((links[number].tail, destination), number) != number:
                    raise Ns3Unsupported("ns-3 forwards by destination: two flows leave one node over different links")
    return table


def _transport(group: str, transport: dict[str, Any]) -> list[str]:
    """Return congestion control and size of a write, then options: `OBJECT ATTRIBUTE VALUE`."""

    def refuse(what: str) -> Ns3Unsupported:
        return Ns3Unsupported(f"group '{group}': {what}")

    # ns-3's CUBIC counts whole segments; Reno is Aqumen's own class in the program.
    built_in = BUILT_IN | {"whole_windows": transport["congestion"] == "cubic"}
    for name, value in (preset_in_plans("modern") | built_in).items():
        given = transport.get(name, value)
        if name not in HANDED_OVER and name not in NOT_COMPARED and given != value:
            raise refuse(f"ns-3 has {name} = {value} built in, not {given}")
    variant = transport.pop("variant")
    if variant != "sack":
        # ns-3's NewReno miscounts duplicate acknowledgements as SACKs.
        raise refuse(f"ns-3 runs only the variant sack, not '{variant}'")
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
    # BBR enables pacing itself.
    paced = transport.pop("pacing")
    if congestion not in SOCKETS:
        raise refuse(f"ns-3 has no congestion control '{congestion}'; it has {listed(SOCKETS)}")
    control, values = SOCKETS[congestion]
    if congestion in ("reno", "cubic"):
        values = values | {"GrowthLimit": int(transport["growth_limit"])}
    if congestion == "cubic":
        # ns-3 implements HyStart, not HyStart++.
        values |= {"FastConvergence": "true", "Beta": 0.7, "C": 0.4, "HyStart": _flag(transport["hystart"])}
        if transport["reno_friendly"]:
            raise refuse("the CUBIC of ns-3 has reno_friendly = False built in, not True")
    of_socket = {
        "SegmentSize": payload,
        "InitialCwnd": int(transport.pop("initial_window")),
        # The default is the receive window; ns-3's window would grow beyond it.
        "InitialSlowStartThreshold": window if threshold is None else int(threshold) * payload,
        # The send buffer limits the window, since ns-3.37 can crash if the receive buffer does.
        "SndBufSize": window,
        "RcvBufSize": 2 * window,
        "DelAckCount": 1 if delayed_s is None else 2,
        "DelAckTimeout": f"{0.2 if delayed_s is None else delayed_s}s",
        "ConnTimeout": f"{initial_rto_s}s",
        "ConnCount": 1000,
        "DataRetries": 100000,
        "MinRto": f"{transport.pop('min_rto_s')}s",
        "ClockGranularity": "1ms",
        "Sack": "true",
        "Timestamp": _flag(timestamps),
        "WindowScaling": "true",
        "LimitedTransmit": _flag(transport.pop("limited_transmit")),
        "UseEcn": "On" if transport.pop("ecn") else "Off",
    }
    unknown = [name for name in transport if name not in preset_in_plans("modern")]
    if unknown:
        raise refuse(f"ns-3 has no transport option '{unknown[0]}'")
    return [
        # One segment for each write, since a write must fit into the send buffer.
        f"ns3::{control} {payload}",
        *(f"control {name} {value}" for name, value in values.items()),
        *([] if congestion == "bbr" else [f"pacing on {_flag(paced)}"]),
        *(f"socket {name} {value}" for name, value in of_socket.items()),
        f"rtt InitialEstimation {initial_rto_s}s",
    ]


def _flag(value: Any) -> str:
    return "true" if value else "false"


class _Params:
    """Parameters of an AQM. Raises `Ns3Unsupported` for those that ns-3 lacks."""

    def __init__(self, aqm: Aqm) -> None:
        self._aqm = aqm
        self._left = dict(aqm.params)

    def take(self, name: str) -> Any:
        if name not in self._left:
            raise Ns3Unsupported(f"AQM '{self._aqm.name}' for ns-3 needs the parameter '{name}'")
        return self._left.pop(name)

    def take_or(self, name: str, default: Any) -> Any:
        return self._left.pop(name, default)

    def time(self, name: str) -> str:
        return f"{float(self.take(name))!r}s"

    def flag(self, name: str) -> str:
        return _flag(self.take(name))

    def fixed(self, name: str, value: Any) -> None:
        """Check a parameter that is built into ns-3."""
        given = self._left.pop(name, None)
        if given is not None and given != value:
            raise Ns3Unsupported(f"AQM '{self._aqm.name}' in ns-3 has {name} = {value} built in, not {given}")

    def ignore(self, name: str) -> None:
        """Drop a parameter without a relevant effect."""
        self._left.pop(name, None)

    def has(self, name: str) -> bool:
        return name in self._left

    def done(self) -> None:
        for name, value in self._left.items():
            if value is not None:
                raise Ns3Unsupported(f"AQM '{self._aqm.name}' in ns-3 has no parameter '{name}'")


def _with_buffer(params: _Params, link: Link, name: str) -> None:
    """Check a parameter that ns-3 enables if and only if the buffer is in bytes."""
    in_bytes = link.buffer_bytes is not None
    given = bool(params.take_or(name, False))
    if given != in_bytes:
        raise Ns3Unsupported(
            f"link '{link.name}': AQM '{link.aqm.name}' in ns-3 has {name} = {in_bytes} with a buffer in "
            f"{'bytes' if in_bytes else 'packets'}, not {given}"
        )


def _limit(link: Link) -> str:
    return f"{link.buffer_pkts}p" if link.buffer_bytes is None else f"{link.buffer_bytes}B"


def _packets(link: Link) -> str:
    if link.buffer_bytes is not None:
        raise Ns3Unsupported(f"link '{link.name}': the buffer of ns-3's {link.aqm.name} is in packets, not bytes")
    return _limit(link)


def _droptail(params: _Params, link: Link) -> tuple[str, dict[str, Any]]:
    params.fixed("ns2_limit", False)
    return "FifoQueueDisc", {"MaxSize": _limit(link)}


def _codel(params: _Params, link: Link) -> tuple[str, dict[str, Any]]:
    attributes = {
        "MaxSize": _limit(link),
        "Target": params.time("target"),
        "Interval": params.time("interval"),
        # ns-3 compares with <, Aqumen with <=.
        "MinBytes": int(params.take("mtu")) + 1,
        "UseEcn": params.flag("ecn"),
        "UseL4s": "false",
    }
    # ns-3 schedules from the time of the mark, and uses a Newton step.
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
    _with_buffer(params, link, "bytemode")
    params.fixed("on_off", False)
    params.fixed("anti_windup", "none")
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
    # ns-3 uses a table and a Newton step.
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
    # The packet limit applies long before this memory limit.
    params.fixed("memory", 32 * 2**20)
    params.fixed("backlog", "queue")
    params.fixed("half", "bytes")
    params.fixed("count_drops", False)
    params.fixed("emptied", "old")
    params.fixed("ce_threshold_selector", "any")
    params.fixed("ways", 1)
    for name in ("truesize", "schedule", "arithmetic"):
        params.ignore(name)
    return "FqCoDelQueueDisc", {
        "MaxSize": _packets(link),
        "Flows": int(params.take("queues")),
        "DropBatchSize": int(params.take("drop_batch")),
        "Target": params.time("target"),
        "Interval": params.time("interval"),
        "UseEcn": params.flag("ecn"),
        "UseL4s": "false",
        # The program sets these two on the discipline and its queues; for + 1 see CoDel.
        "quantum": int(params.take("quantum")),
        "MinBytes": int(params.take("mtu")) + 1,
    }


def _red(params: _Params, link: Link) -> tuple[str, dict[str, Any]]:
    _with_buffer(params, link, "bytes")
    _with_buffer(params, link, "queue_in_bytes")
    params.fixed("use_mark_p", False)
    params.fixed("spacing", "ns2")
    # Rules for thresholds and weight, whose values are given; `mark_p` is used only with `use_mark_p`.
    for name in ("thresholds", "target_delay", "weight_rule", "link_delay", "mark_p"):
        params.ignore(name)
    max_p = float(params.take("max_p"))
    if max_p == 0.0:
        raise Ns3Unsupported("AQM 'red' in ns-3 has max_p above 0, not 0")
    mean_packet = int(params.take("mean_packet"))
    # Thresholds have the unit of the average.
    unit = 1 if link.buffer_bytes is None else mean_packet
    return "RedQueueDisc", {
        "MaxSize": _limit(link),
        "MinTh": unit * float(params.take("min_th")),
        "MaxTh": unit * float(params.take("max_th")),
        "LInterm": 1.0 / max_p,
        "QW": float(params.take("weight")),
        "Gentle": params.flag("gentle"),
        "Wait": params.flag("wait"),
        "MeanPktSize": mean_packet,
        # ns-3 inverts this flag: without it, a drop beyond the curve's end does not reset the count since the last
        # signal, and the next packet is signalled too.
        "Ns1Compat": "true",
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
