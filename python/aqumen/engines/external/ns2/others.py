"""Transports other than TCP as ns-2.35 has them: `Agent/SCTP` sending without end, `Agent/UDP` with a generator.

What a group's plan says is checked here against what ns-2 can do, and written as Tcl.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from aqumen._core import quantity

from .errors import Ns2Unsupported

__all__ = ["Generator", "Sctp", "Udp", "read_sctp", "read_udp", "sctp_sets", "udp_application"]


@dataclass(frozen=True, slots=True)
class Sctp:
    """An association that sends without end. Sizes are bytes, on the wire or of chunks with their headers."""

    packet_bytes: int
    header_bytes: int
    receive_window_bytes: int
    delayed_sack_s: float | None
    max_burst: int
    min_rto_s: float
    max_rto_s: float
    initial_rto_s: float


@dataclass(frozen=True, slots=True)
class Generator:
    """Packets of one size at a constant rate; with `on_s` and `off_s`, the means of exponential periods."""

    rate_bps: float
    """Headers not counted."""
    payload_bytes: int
    on_s: float | None = None
    off_s: float | None = None


@dataclass(frozen=True, slots=True)
class Udp:
    """Datagrams of a generator."""

    packet_bytes: int
    """Largest packet."""
    header_bytes: int
    generator: Generator


def read_sctp(raw: Mapping[str, Any], traffic: Any, group: str) -> Sctp:
    """The association of a group's plan."""
    wanted = {
        "ecn": False,
        "streams": 1,
        "handshake": True,
        "header_bytes": 48,
        "burst_after_repair": True,
        "recovery": "ns2",
    }
    for name, value in wanted.items():
        if raw[name] != value:
            raise Ns2Unsupported(f"group '{group}': the SCTP of ns-2 has {name} = {value} built in, not {raw[name]}")
    if traffic != "bulk":
        raise Ns2Unsupported(f"group '{group}': over SCTP ns-2 runs bulk traffic here")
    if raw["max_burst"] not in (0, 4):
        raise Ns2Unsupported(f"group '{group}': the SCTP of ns-2 has a max_burst of 4 or none, not {raw['max_burst']}")
    # RFC 4960 section 7.2.1; `initialCwnd_` is read for idle associations alone.
    chunk = raw["packet_bytes"] - 32
    first = min(4 * chunk, max(2 * chunk, 4380))
    if raw["initial_window_bytes"] != first:
        raise Ns2Unsupported(f"group '{group}': the SCTP of ns-2 begins with {first} bytes of such packets")
    return Sctp(**{field.name: raw[field.name] for field in fields(Sctp)})


def read_udp(raw: Mapping[str, Any], traffic: Any, group: str) -> Udp:
    """The datagrams of a group's plan."""
    kind = traffic["kind"] if isinstance(traffic, Mapping) else traffic
    if not isinstance(traffic, Mapping) or kind not in ("cbr", "on-off"):
        raise Ns2Unsupported(f"group '{group}': over UDP ns-2 runs the traffic cbr and on-off here, not {kind}")
    payload = int(quantity("size", traffic.get("packet", "1000B")))
    periods: dict[str, float] = {}
    if kind == "on-off":
        for name in ("on", "off"):
            law = traffic[name]
            if not isinstance(law, Mapping) or law["law"] != "exponential":
                raise Ns2Unsupported(f"group '{group}': the periods of an ON/OFF source are exponential in ns-2")
            periods[f"{name}_s"] = quantity("time", law["mean"])
    generator = Generator(quantity("rate", traffic["rate"]), payload, **periods)
    udp = Udp(int(raw["packet_bytes"]), int(raw["header_bytes"]), generator)
    if payload > udp.packet_bytes - udp.header_bytes:
        raise Ns2Unsupported(f"group '{group}': a message of ns-2's generators has to fit into one packet")
    return udp


def sctp_sets(sctp: Sctp) -> dict[str, Any]:
    """Variables of both ends."""
    return {
        "mtu_": sctp.packet_bytes,
        "ipHeaderSize_": 20,
        # The chunk with its header; 12 bytes of SCTP header are beside it.
        "dataChunkSize_": sctp.packet_bytes - 32,
        "initialRwnd_": sctp.receive_window_bytes,
        "initialSsthresh_": sctp.receive_window_bytes,
        "useDelayedSacks_": sctp.delayed_sack_s is not None,
        "sackDelay_": 0.2 if sctp.delayed_sack_s is None else float(sctp.delayed_sack_s),
        "useMaxBurst_": bool(sctp.max_burst),
        "fastRtxTrigger_": 3,
        # None but the one that opens the way for data; Aqumen has no heartbeats.
        "heartbeatInterval_": 0,
        "minRto_": float(sctp.min_rto_s),
        "maxRto_": float(sctp.max_rto_s),
        "initialRto_": float(sctp.initial_rto_s),
    }


def udp_application(udp: Udp) -> tuple[str, dict[str, Any]]:
    """Class and variables of the generator. ns-2 counts no headers: its packets and rates are those on the wire."""
    generator = udp.generator
    size = generator.payload_bytes + udp.header_bytes
    sets: dict[str, Any] = {"packetSize_": size, "rate_": generator.rate_bps * size / generator.payload_bytes}
    if generator.on_s is None or generator.off_s is None:
        return "Application/Traffic/CBR", sets | {"random_": 0}
    return "Application/Traffic/Exponential", sets | {"burst_time_": generator.on_s, "idle_time_": generator.off_s}
