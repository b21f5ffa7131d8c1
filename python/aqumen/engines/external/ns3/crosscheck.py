"""Cells of the comparison with ns-3: AQMs and congestion controls of both simulators, and bounds."""

import json
from typing import Any

import numpy as np

from aqumen.engines.external.crosscheck import Bound, Cell

__all__ = ["CELLS", "FOLDER", "METRICS", "OURS", "WINDOWS", "drawn"]

METRICS: dict[str, Bound] = {
    "utilization": Bound(0.0, 0.01),
    "queue_mean_pkts": Bound(0.15, 0.2),
    "mark_ratio": Bound(0.20, 0.0001),
    "drop_ratio": Bound(0.20, 0.0001),
    "timeout_ratio": Bound(0.30, 0.0001),
    "jain_fairness": Bound(0.0, 0.05),
    "goodput_share": Bound(0.0, 0.03),
    "loss_ratio": Bound(0.20, 0.0005),
}
"""Metrics and bounds. The TCP implementations are independent, so bounds are wider than for ns-2. The absolute bounds
apply to values near zero: a fifth of a packet, and one packet in 10 000."""

WINDOWS = ("steady",)
"""Windows to compare, without start-up: the repair of slow start's losses depends on the TCP implementation."""
FOLDER = "validation"
"""Folder of the scenario files."""
OURS = 4
"""Seeds of the packet engine for each seed of ns-3, whose runs take a hundred times as long."""


def _cells() -> list[Cell]:
    aqms = {
        "DropTail": "droptail",
        # Deviations of ns-3's CoDel from the RFC: see docs/engines/ns3.md.
        "CoDel": "codel:schedule=now,arithmetic=linux",
        "PIE": "pie:derandomize=false",
        "COBALT": "cobalt",
        "FQ-CoDel": "fq-codel:schedule=now,arithmetic=linux,backlog=queue,count_drops=false",
        "RED": "red:min_th=10pkt,max_th=40pkt,max_p=0.1,weight=0.002",
    }
    # Slow start's losses raise BLUE's probability, which then decays for 10 s.
    later = {("small windows", "COBALT"): (("windows.steady", "15s"),)}
    networks = {"small windows": "ns3/small-windows.toml", "large windows": "ns3/large-windows.toml"}
    cells = [
        Cell(network, scenario, later.get((network, label), ()), label, spec)
        for network, scenario in networks.items()
        for label, spec in aqms.items()
    ]
    # Other congestion controls, each in a network it is designed for.
    cubic = {label: aqms[label] for label in ("DropTail", "CoDel", "PIE")}
    cells += [Cell("CUBIC", "ns3/cubic.toml", (), label, spec) for label, spec in cubic.items()]
    step = "codel:ce_threshold=1ms"
    cells.append(Cell("DCTCP", "ns3/dctcp.toml", (), "step at 1 ms", step))
    cells.append(Cell("BBR", "ns3/bbr.toml", (), "DropTail", "droptail"))
    cells.append(Cell("CUBIC near ten", "ns3/cubic-near-ten.toml", (), "CoDel", aqms["CoDel"]))
    cells.append(Cell("capacity drop", "ns3/capacity-drop.toml", (), "PIE", aqms["PIE"]))
    # Two congestion controls, 1500-byte packets (CoDel ignores a queue of one) and the minimum RTO of Linux.
    cells += [Cell("1500 B", "ns3/mixed.toml", (), label, aqms[label]) for label in ("CoDel", "FQ-CoDel", "PIE")]
    # A minimum RTO of one round trip: spurious time-outs, and loss recovery with windows of three packets.
    short = (("flows.0.transport.packet", "1500B"), ("flows.0.transport.min_rto", "200ms"))
    cells += [Cell("200 ms", networks["small windows"], short, label, aqms[label]) for label in ("CoDel", "PIE", "RED")]
    # A curve that ends below the equilibrium probability, and an average that often crosses its end.
    cut = "red:min_th=10pkt,max_th=40pkt,max_p=0.01,weight=0.05,gentle=false"
    cells.append(Cell("not gentle", networks["small windows"], (), "RED", cut))
    # Traffic in both directions, two transports and UDP; also with a lossy wire and with buffers in bytes.
    two_ways = "ns3/two-ways.toml"
    cells += [Cell("two ways", two_ways, (), label, aqms[label]) for label in ("DropTail", "CoDel", "RED")]
    burst = (("bottleneck.loss", "{ random = 0.001, burst = { to_bad = 0.004, to_good = 0.5 } }"),)
    cells.append(Cell("wire", two_ways, burst, "CoDel", aqms["CoDel"]))
    in_bytes = {
        "DropTail": "droptail",
        "PIE": f"{aqms['PIE']},bytemode=true,mean_packet=1500B",
        "RED": f"{aqms['RED']},bytes=true,queue_in_bytes=true",
    }
    room = (("topology.bottleneck.buffer", "100kB"), ("topology.bottleneck.reverse.buffer", "80kB"))
    cells += [Cell("bytes", two_ways, room, label, spec) for label, spec in in_bytes.items()]
    # Vegas and LEDBAT are left out: ns-3 measures RTTs in milliseconds and bounds the window.
    return cells


CELLS: list[Cell] = _cells()
"""Cells of the comparison; their scenario files are in the folder `validation`."""

DRAWN_PACKETS = 30_000
"""Approximate number of packets at the bottleneck in a run of a random cell."""


def drawn(seed: int, count: int) -> list[Cell]:
    """Draw random cells, to guard against overfitting to the listed ones.

    Cells are ordered by number of packets: an undecided cell takes 32 runs instead of 2, up to ten minutes of CPU.

    Args:
        seed: Seed of the random numbers.
        count: Number of cells.
    """
    random = np.random.Generator(np.random.PCG64(seed))
    aqms = {cell.label: cell.aqm for cell in CELLS if cell.experiment == "small windows"}
    cells: list[tuple[float, Cell]] = []
    for number in range(1, count + 1):
        size = int(random.choice([500, 1000, 1500]))
        rate_bps = float(np.exp(random.uniform(np.log(2e6), np.log(40e6))))
        rtt_s = float(np.exp(random.uniform(np.log(0.02), np.log(0.2))))
        pipe = rate_bps * rtt_s / 8.0 / size
        # Windows of at least four packets; smaller ones would compare timers instead of AQMs.
        flows = int(min(np.exp(random.uniform(np.log(2.0), np.log(40.0))), max(2.0, pipe / 4.0)))
        control = str(random.choice(["reno", "reno", "cubic"]))
        label = str(random.choice(sorted(aqms)))
        duration_s = float(np.clip(DRAWN_PACKETS * size * 8.0 / rate_bps, 20.0, 60.0))
        transport = {
            **_SENDER,
            **(_CUBIC if control == "cubic" else {"preset": "modern"}),
            "ecn": bool(random.random() < 0.75),
            "packet": f"{size}B",
            "min_rto": str(random.choice(["200ms", "1s"])),
        }
        # An access delay is an eighth of the RTT; with spread, RTTs of flows differ by up to half the RTT.
        spread = float(random.choice([0.0, 1.0]))
        access = [f"{rtt_s / 8 * factor:.4f}s" for factor in (1.0 - spread, 1.0 + spread)]
        bulk = {"start": ["0s", "1s"], "transport": transport, "access": _access(rate_bps, access)}
        groups: list[dict[str, Any]] = [{"name": "ftp", "count": flows, **bulk}]
        buffer = f"{max(20, pipe * random.uniform(0.5, 3.0)):.0f}pkt"
        settings = {
            "duration": f"{duration_s:.0f}s",
            # Half of the run, without slow start.
            "windows.steady": f"{duration_s / 2:.0f}s",
            "topology.bottleneck.rate": f"{rate_bps / 1e3:.0f}kbit",
            "topology.bottleneck.delay": f"{rtt_s / 4:.4f}s",
            "topology.bottleneck.buffer": buffer,
        }
        if random.random() < 1.0 / 3.0:
            back = int(random.integers(1, flows + 1))
            groups.append({"name": "back", "count": back, "from": "r2", "to": "r1", **bulk})
            settings["topology.bottleneck.reverse"] = _toml({"buffer": buffer})
        if random.random() < 1.0 / 3.0:
            groups.append(_datagrams(random, rate_bps))
        if random.random() < 1.0 / 3.0:
            # A change within the compared window.
            steps = [["0s", f"{rate_bps / 1e3:.0f}kbit"]]
            steps.append([f"{0.7 * duration_s:.0f}s", f"{rate_bps * random.uniform(0.4, 1.6) / 1e3:.0f}kbit"])
            settings["topology.bottleneck.rate"] = _toml({"steps": steps})
        settings["flows"] = _toml(groups)
        name = f"drawn {seed}.{number}"
        cell = Cell(name, "ns3/small-windows.toml", tuple(settings.items()), label, aqms[label])
        cells.append((rate_bps * duration_s / 8.0 / size, cell))
    return [cell for _, cell in sorted(cells, key=lambda one: one[0])]


def _access(rate_bps: float, delay: list[str]) -> dict[str, Any]:
    return {"rate": f"{rate_bps * 5 / 1e3:.0f}kbit", "delay": delay if delay[0] != delay[1] else delay[0]}


def _datagrams(random: np.random.Generator, rate_bps: float) -> dict[str, Any]:
    """Return a UDP group that offers 5 to 25 % of the rate."""
    share, count = float(random.uniform(0.05, 0.25)), int(random.integers(1, 6))
    packet = f"{int(random.integers(100, 1401))}B"
    kbit = rate_bps * share / count / 1e3
    traffic: dict[str, Any] = {"kind": "cbr", "rate": f"{kbit:.0f}kbit", "packet": packet}
    if random.random() < 0.5:
        half = {"law": "exponential", "mean": "500ms"}
        traffic |= {"kind": "on-off", "rate": f"{2 * kbit:.0f}kbit", "on": half, "off": half}
    access = _access(rate_bps, ["1ms", "1ms"])
    return {
        "name": "udp",
        "count": count,
        "start": ["0s", "1s"],
        "transport": "udp",
        "traffic": traffic,
        "access": access,
    }


def _toml(value: Any) -> str:
    """Format a value of a scenario file in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


_SENDER: dict[str, Any] = {
    "receive_window": "1000pkt",
    "delayed_ack": "none",
    "halve_flight": False,
    "rto_floor": "timeout",
    "loss_detection": "rfc6675",
    "reduction": "at-once",
    "ect_retransmissions": True,
}
"""Behaviour of ns-3's senders; explained in small-windows.toml."""

_CUBIC: dict[str, Any] = {"preset": "cubic", "hystart": False, "reno_friendly": False, "whole_windows": True}
"""Settings of CUBIC for the comparison; explained in cubic.toml."""
