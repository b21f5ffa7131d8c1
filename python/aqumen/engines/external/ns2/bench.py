"""What ns-2 costs: CPU time from time 0 to the end, with nothing traced or monitored."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import Ns2Failed
from .plan import Plan
from .runner import Output, execute
from .tcl import script

__all__ = ["Ns2Cost", "ns2_cost", "ns2_packets"]


@dataclass(frozen=True, slots=True)
class Ns2Cost:
    """Cost of one run of ns-2, read inside its process from `/proc/self/schedstat`; seconds of CPU."""

    setup_s: float
    """Until time 0: start of the interpreter, network, routes."""
    run_s: float
    """From time 0 to the end."""


def ns2_cost(plan: Mapping[str, Any] | Plan) -> Ns2Cost:
    """Run a plan once and measure it.

    Args:
        plan: The plan, or what it says as a dictionary.
    """
    start, end = _execute(script(_plan(plan), timing=True)).metered_ns
    return Ns2Cost(setup_s=start / 1e9, run_s=(end - start) / 1e9)


def ns2_packets(plan: Mapping[str, Any] | Plan) -> int:
    """Packets that leave the recorded links. Counting changes no packet, but costs time: a run of its own.

    Args:
        plan: The plan, or what it says as a dictionary.
    """
    packets = sum(_execute(script(_plan(plan), timing=True, count=True)).counts.values())
    if packets == 0:
        raise Ns2Failed("no packet crossed a recorded link")
    return packets


def _plan(plan: Mapping[str, Any] | Plan) -> Plan:
    return plan if isinstance(plan, Plan) else Plan.from_dict(plan)


def _execute(text: str) -> Output:
    with tempfile.TemporaryDirectory(prefix="aqumen-ns2-") as name:
        return execute(text, Path(name))
