"""Plans for the ns-2 tests: the dumbbell of the ARM-PFC paper, drawn here from a seed by plain Python."""

import random
from typing import Any

AQMS: dict[str, dict[str, Any]] = {
    "DropTail": {"name": "droptail", "params": {"ns2_limit": True}},
    "RED50mk": {
        "name": "red",
        "params": {
            "min_th": 50.0,
            "max_th": 150.0,
            "max_p": 0.1,
            "weight": 0.002,
            "use_mark_p": False,
            "mean_packet": 1000,
        },
    },
    "PIpaper": {"name": "pi", "params": {"a": 6.48e-7, "b": 6.42e-7, "frequency": 150.0, "target": 100.0}},
    "PIx1000": {"name": "pi", "params": {"a": 6.48e-4, "b": 6.42e-4, "frequency": 150.0, "target": 100.0}},
}
"""The labels of validation/ns2/reference.csv."""

SCENARIOS = {
    "arm_exp1": (120, 8e6),
    "arm_exp3_N50": (50, 8e6),
    "arm_exp3_N100": (100, 8e6),
    "arm_exp4_N300": (300, 10e6),
}
"""Label to (flows, bottleneck bit/s)."""


def dumbbell(
    aqm: dict[str, Any],
    *,
    flows: int = 120,
    capacity_bps: float = 8e6,
    seed: int = 1,
    duration_s: float = 100.0,
    transport: dict[str, Any] | None = None,
    scenario: str = "arm_exp1",
) -> dict[str, Any]:
    """N senders with access links of their own (10 Mbit/s, 35 to 45 ms) over a 20 ms bottleneck with a buffer of 300."""
    draw = random.Random(seed)
    plain = {"name": "droptail", "params": {}}
    nodes = ["left", "right"]
    access_bps = 10e6 if capacity_bps <= 10e6 else capacity_bps / 10

    def link(name: str, tail: int, head: int, delay_s: float, rate: float, **more: Any) -> dict[str, Any]:
        base = {
            "name": name,
            "from": tail,
            "to": head,
            "delay_s": delay_s,
            "rates": [[0.0, rate]],
            "buffer_pkts": 100000,
        }
        return base | {"record": False, "aqm": plain} | more

    links = [
        link("bottleneck", 0, 1, 0.02, capacity_bps, buffer_pkts=300, record=True, aqm=aqm),
        link("reverse", 1, 0, 0.02, capacity_bps),
    ]
    connections = []
    for i in range(flows):
        source, sink = len(nodes), len(nodes) + 1
        nodes += [f"src{i}", f"dst{i}"]
        near, far = draw.uniform(0.035, 0.045), draw.uniform(0.035, 0.045)
        first = len(links)
        links += [
            link(f"src{i}-left", source, 0, near, access_bps),
            link(f"left-src{i}", 0, source, near, access_bps),
            link(f"right-dst{i}", 1, sink, far, access_bps),
            link(f"dst{i}-right", sink, 1, far, access_bps),
        ]
        connections.append(
            {
                "group": 0,
                "path": [first, 0, first + 2],
                "return_path": [first + 3, 1, first + 1],
                "on": [[draw.uniform(0.0, 1.0), None]],
                "transfer_bytes": None,
            }
        )
    base = {
        "preset": "ns2",
        "variant": "reno",
        "ecn": aqm["name"] != "droptail",
        "packet_bytes": 1000,
        "ack_bytes": 40,
        "receive_window": 1000,
        "initial_window": 2.0,
        "send_overhead_s": 0.5 * 8000.0 / capacity_bps,
    }
    windows = {"all": [0.0, duration_s]}
    if duration_s > 10.0:
        windows["steady"] = [10.0, duration_s]
    return {
        "scenario": scenario,
        "seed": seed,
        "duration_s": duration_s,
        "nodes": nodes,
        "links": links,
        "groups": [{"name": "ftp", "transport": base | (transport or {}), "flows": [0, flows]}],
        "flows": connections,
        "windows": windows,
        "sample_interval_s": 0.1,
        "nominal": {"capacity_bps": capacity_bps, "flows": flows, "target_pkts": 100.0, "packet_bytes": 1000},
    }
