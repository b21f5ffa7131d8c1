"""What is compared with ns-3: AQMs and congestion controls that both have, and how large a difference counts as none.

The comparison itself is that with ns-2: see `aqumen.ns2.crosscheck`.
"""

from aqumen.ns2.crosscheck import Bound, Cell

__all__ = ["CELLS", "METRICS", "WINDOWS"]

METRICS: dict[str, Bound] = {
    "utilization": Bound(0.0, 0.01),
    "queue_mean_pkts": Bound(0.15, 1.0),
    "mark_ratio": Bound(0.20, 0.0005),
    "drop_ratio": Bound(0.20, 0.0005),
}
"""What is compared. Two TCPs meet here, not one program and its copy: the bounds are wider than those of ns-2."""

WINDOWS = ("steady",)
"""Not the start: how the hundreds of losses of slow start are repaired is the business of the TCPs."""


def _cells() -> list[Cell]:
    aqms = {
        "DropTail": "droptail",
        "CoDel": "codel:schedule=now",
        "PIE": "pie:derandomize=false",
        "COBALT": "cobalt",
        "FQ-CoDel": "fq-codel:schedule=now,backlog=queue,count_drops=false",
    }
    # The losses of slow start set BLUE's probability, which then falls for ten seconds.
    later = {("small windows", "COBALT"): (("windows.steady", "15s"),)}
    networks = {"small windows": "ns3/small-windows.toml", "large windows": "ns3/large-windows.toml"}
    cells = [
        Cell(network, scenario, later.get((network, label), ()), label, spec)
        for network, scenario in networks.items()
        for label, spec in aqms.items()
    ]
    # Other congestion controls, each where it is meant to work.
    cubic = {label: aqms[label] for label in ("DropTail", "CoDel", "PIE")}
    cells += [Cell("CUBIC", "ns3/cubic.toml", (), label, spec) for label, spec in cubic.items()]
    step = "codel:ce_threshold=1ms"
    cells.append(Cell("DCTCP", "ns3/dctcp.toml", (), "step at 1 ms", step))
    cells.append(Cell("BBR", "ns3/bbr.toml", (), "DropTail", "droptail"))
    # Vegas and LEDBAT are left out: ns-3's round trips in milliseconds and its bound on the window decide there.
    return cells


CELLS: list[Cell] = _cells()
"""Scenario files in the folder `validation`."""
