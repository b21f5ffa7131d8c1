"""Non-TCP transports of ns-2.35: `Agent/SCTP` with bulk traffic, `Agent/UDP` with a traffic generator.

Checks a group's plan against the features of ns-2 and translates it to Tcl.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from aqumen._core import quantity

from .errors import Ns2Unsupported

__all__ = ["Generator", "Sctp", "Udp", "read_sctp", "read_udp", "sctp_sets", "udp_application"]


@dataclass(frozen=True, slots=True)
class Sctp:
    """An SCTP association with bulk traffic. Sizes in bytes, on the wire or of chunks with their headers."""

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
    """Constant-rate packets of one size; `on_s` and `off_s` are the means of exponential ON and OFF periods."""

    rate_bps: float
    """Rate without headers, bit/s."""
    payload_bytes: int
    on_s: float | None = None
    off_s: float | None = None


@dataclass(frozen=True, slots=True)
class Udp:
    """UDP flow of a traffic generator."""

    packet_bytes: int
    """Maximum packet size, bytes."""
    header_bytes: int
    generator: Generator


def read_sctp(raw: Mapping[str, Any], traffic: Any, group: str) -> Sctp:
    """Read the SCTP settings of a group's plan; raise `Ns2Unsupported` for other features."""
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
        raise Ns2Unsupported(f"group '{group}': ns-2 runs only bulk traffic over SCTP")
    if raw["max_burst"] not in (0, 4):
        raise Ns2Unsupported(f"group '{group}': the SCTP of ns-2 has a max_burst of 4 or none, not {raw['max_burst']}")
    # RFC 4960 section 7.2.1; ns-2 uses `initialCwnd_` only for idle associations.
    chunk = raw["packet_bytes"] - 32
    first = min(4 * chunk, max(2 * chunk, 4380))
    if raw["initial_window_bytes"] != first:
        raise Ns2Unsupported(
            f"group '{group}': the SCTP of ns-2 has an initial window of {first} bytes for this packet size"
        )
    return Sctp(**{field.name: raw[field.name] for field in fields(Sctp)})


def read_udp(raw: Mapping[str, Any], traffic: Any, group: str) -> Udp:
    """Read the UDP settings of a group's plan; raise `Ns2Unsupported` for other features."""
    kind = traffic["kind"] if isinstance(traffic, Mapping) else traffic
    if not isinstance(traffic, Mapping) or kind not in ("cbr", "on-off"):
        raise Ns2Unsupported(f"group '{group}': over UDP ns-2 runs only cbr and on-off traffic, not {kind}")
    payload = int(quantity("size", traffic.get("packet", "1000B")))
    periods: dict[str, float] = {}
    if kind == "on-off":
        for name in ("on", "off"):
            law = traffic[name]
            if not isinstance(law, Mapping) or law["law"] != "exponential":
                raise Ns2Unsupported(f"group '{group}': ns-2 has only exponential periods of an ON/OFF source")
            periods[f"{name}_s"] = quantity("time", law["mean"])
    generator = Generator(quantity("rate", traffic["rate"]), payload, **periods)
    udp = Udp(int(raw["packet_bytes"]), int(raw["header_bytes"]), generator)
    if payload > udp.packet_bytes - udp.header_bytes:
        raise Ns2Unsupported(f"group '{group}': a message must fit into one packet in ns-2")
    return udp


def sctp_sets(sctp: Sctp) -> dict[str, Any]:
    """Return the Tcl variables of both endpoints."""
    return {
        "mtu_": sctp.packet_bytes,
        "ipHeaderSize_": 20,
        # Chunk with its header, without IP (20 bytes) and SCTP header (12 bytes).
        "dataChunkSize_": sctp.packet_bytes - 32,
        "initialRwnd_": sctp.receive_window_bytes,
        "initialSsthresh_": sctp.receive_window_bytes,
        "useDelayedSacks_": sctp.delayed_sack_s is not None,
        "sackDelay_": 0.2 if sctp.delayed_sack_s is None else float(sctp.delayed_sack_s),
        "useMaxBurst_": bool(sctp.max_burst),
        "fastRtxTrigger_": 3,
        # No heartbeats after the one that precedes data; Aqumen has none.
        "heartbeatInterval_": 0,
        "minRto_": float(sctp.min_rto_s),
        "maxRto_": float(sctp.max_rto_s),
        "initialRto_": float(sctp.initial_rto_s),
    }


def udp_application(udp: Udp) -> tuple[str, dict[str, Any]]:
    """Return class and variables of the generator. ns-2 counts no headers: sizes and rates are those on the wire."""
    generator = udp.generator
    size = generator.payload_bytes + udp.header_bytes
    sets: dict[str, Any] = {"packetSize_": size, "rate_": generator.rate_bps * size / generator.payload_bytes}
    if generator.on_s is None or generator.off_s is None:
        return "Application/Traffic/CBR", sets | {"random_": 0}
    return "Application/Traffic/Exponential", sets | {"burst_time_": generator.on_s, "idle_time_": generator.off_s}
