"""CPU time and packet counts of ns-2 without traces and monitors."""

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
    """CPU time of one run of ns-2, seconds; read from `/proc/self/schedstat` within the process."""

    setup_s: float
    """Before simulated time 0: interpreter, network and routes."""
    run_s: float
    """From simulated time 0 to the end."""


def ns2_cost(plan: Mapping[str, Any] | Plan) -> Ns2Cost:
    """Run a plan once and measure its CPU time.

    Args:
        plan: A plan, or its dictionary.
    """
    start, end = _execute(script(_plan(plan), timing=True)).metered_ns
    return Ns2Cost(setup_s=start / 1e9, run_s=(end - start) / 1e9)


def ns2_packets(plan: Mapping[str, Any] | Plan) -> int:
    """Count the packets that leave the recorded links, in a run of its own since counting takes CPU time.

    Args:
        plan: A plan, or its dictionary.
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
