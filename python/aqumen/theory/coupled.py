"""Operating point and noise of DualPI2's coupled queues, with classic and scalable flows."""

from __future__ import annotations

from typing import Any

from aqumen.errors import ScenarioError, listed
from aqumen.explain.prediction import predict
from aqumen.scenario import Scenario
from aqumen.theory.design import nominal_network

__all__ = ["coupled"]

CLASSIC = ("modern", "cubic", "linux-reno", "linux", "ns2")
"""Presets of classic senders with a known response function."""


def coupled(
    aqm: str,
    *,
    capacity: str | float,
    flows: int,
    scalable: int,
    rtt: str | float,
    packet: str | float = "1500B",
    classic: str = "modern",
) -> dict[str, Any]:
    """Return the operating point of two coupled queues and the noise around it.

    Args:
        aqm: A SPEC of DualPI2: `dualpi2`, `dualpi2:target=20ms,k=2`.
        capacity: Capacity of the link: `100Mbit`, or bits per second.
        flows: Number of long-lived classic flows, at least one.
        scalable: Number of long-lived flows of Prague, at least one.
        rtt: Round-trip time without queueing: `20ms`, or seconds.
        packet: Packet size on the wire: `1500B`, or bytes.
        classic: Preset of the classic flows, with ECN: `modern` (Reno), `cubic`, `linux`, `linux-reno` or `ns2`.
    """
    if classic not in CLASSIC:
        raise ScenarioError(f"unknown classic sender `{classic}`; choose from: {listed(CLASSIC)}")
    for name, count in (("flows", flows), ("scalable", scalable)):
        if count < 1 or not float(count).is_integer():
            raise ScenarioError(f"{name} = {count}: must be an integer of at least 1")
    network = nominal_network(capacity=capacity, flows=flows + scalable, rtt=rtt, packet=packet)
    bits, base, size = network["capacity_bps"], network["base_rtt_s"], network["packet_bytes"]
    # The buffer is far above both equilibrium queues.
    made = Scenario.parse(f"""
name = "coupled"
duration = "60s"
aqm = "droptail"
[[flows]]
name = "classic"
count = {int(flows)}
transport = {{ preset = "{classic}", ecn = true, packet = "{size:g}B" }}
[[flows]]
name = "scalable"
count = {int(scalable)}
transport = {{ preset = "prague", packet = "{size:g}B" }}
[topology]
preset = "dumbbell"
bottleneck = {{ rate = "{bits:.0f}bit", delay = "{400 * base:.6f}ms", buffer = "1000000000pkt" }}
access = {{ rate = "{100 * bits:.0f}bit", delay = "{50 * base:.6f}ms" }}
[nominal]
capacity = "{bits:.0f}bit"
flows = {flows + scalable}
base_rtt = "{base:.9f}s"
packet = "{size:g}B"
target = "{max(1, round(0.015 * bits / (8 * size)))}pkt"
""")
    try:
        found = predict(made, aqm)["bottleneck"]["all"]
    except ScenarioError as error:
        raise ScenarioError(str(error).removeprefix("link bottleneck: ")) from None
    analysis = found["analysis"]
    if "coupled" not in found or analysis is None:
        raise ScenarioError(f"{aqm} does not couple two queues; scalable flows need dualpi2")
    noise = analysis["noise"]
    told = {key: noise[key] for key in ("valid", "why", "queue_std_pkts", "queue_p95_pkts")}
    warnings = analysis["warnings"]
    return {**found["coupled"], "queue_pkts": found["queue_pkts"], "noise": told, "warnings": warnings}
