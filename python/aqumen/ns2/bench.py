"""What ns-2 costs: CPU time per packet that crosses the bottleneck, set-up taken off, nothing traced or monitored."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .errors import Ns2Failed
from .plan import Plan
from .runner import execute
from .tcl import script

__all__ = ["Ns2Cost", "ns2_cpu_per_packet"]


@dataclass(frozen=True)
class Ns2Cost:
    """Cost of one plan in ns-2; times are user CPU seconds of the `ns` process."""

    run_s: float
    """The whole run."""
    setup_s: float
    """The same script ended at time 0: start of the interpreter, network, routes."""
    packets: int
    """Packets that left the recorded links."""

    @property
    def ns_per_packet(self) -> float:
        """Nanoseconds of CPU per bottleneck packet, without the set-up."""
        return (self.run_s - self.setup_s) / self.packets * 1e9


def ns2_cpu_per_packet(plan: Mapping[str, Any] | Plan, *, repeats: int = 3) -> Ns2Cost:
    """Measure a plan: the least of `repeats` runs each of the simulation and of its set-up, alternating.

    Packets are counted in a further run of the same seed: counting changes no packet, but costs time.
    """
    plan = plan if isinstance(plan, Plan) else Plan.from_dict(plan)
    empty = replace(plan, duration_s=0.0, windows={})
    runs, setups = [], []
    for _ in range(repeats):
        runs.append(_execute(script(plan, timing=True)).user_s)
        setups.append(_execute(script(empty, timing=True)).user_s)
    packets = sum(_execute(script(plan, timing=True, count=True)).counts.values())
    if packets == 0:
        raise Ns2Failed("no packet crossed a recorded link")
    return Ns2Cost(run_s=min(runs), setup_s=min(setups), packets=packets)


def _execute(text: str) -> Any:
    with tempfile.TemporaryDirectory(prefix="aqumen-ns2-") as name:
        return execute(text, Path(name))
