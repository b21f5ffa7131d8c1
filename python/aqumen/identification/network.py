"""Network that a link under test meets: capacity, round-trip times, and the time of the last change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aqumen.errors import ScenarioError

if TYPE_CHECKING:
    from aqumen.scenario import Scenario

__all__ = ["Network", "network_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Network as the first link under test meets it at the end of a scenario."""

    link: str
    """Name of the link."""
    capacity_pps: float
    """Capacity, full packets per second."""
    base_rtt_s: float
    """Mean round-trip time of the active flows without queueing, seconds."""
    base_rtt_max_s: float
    """Longest of them, seconds."""
    change_s: float
    """Time of the last change: a start, a stop, an event, seconds."""
    duration_s: float
    """Duration of the scenario, seconds."""


def network_of(scenario: Scenario, aqm: str | None = None, seed: int = 1) -> Network:
    """Return the network of the first link under test.

    Args:
        scenario: Scenario whose plan is read.
        aqm: The AQM; `None`: that of the scenario.
        seed: Seed of start times and delays.
    """
    plan = scenario.plan(seed, aqm)
    links, end = plan["links"], float(plan["duration_s"])
    number, link = next((k, each) for k, each in enumerate(links) if each["record"])
    changes, trips, sizes = [0.0], [], []
    packets = {k: group["transport"].get("packet_bytes", 1500) for k, group in enumerate(plan["groups"])}
    for flow in plan["flows"]:
        if number not in flow["path"]:
            continue
        times = [t for on in flow["on"] for t in on if t is not None and t < end]
        changes += times
        start, stop = flow["on"][-1]
        if start < end and (stop is None or stop >= end):
            trips.append(sum(links[k]["delay_s"] for k in (*flow["path"], *flow["return_path"])))
            sizes.append(packets[flow["group"]])
    if not trips:
        raise ScenarioError(f"{scenario.name}: no flow crosses {link['name']} at the end of the run")
    changes += [at for at, _ in link["rates"] if at < end]
    return Network(
        link=link["name"],
        capacity_pps=link["rates"][-1][1] / (8.0 * float(np.mean(sizes))),
        base_rtt_s=float(np.mean(trips)),
        base_rtt_max_s=float(np.max(trips)),
        change_s=max(changes),
        duration_s=end,
    )
