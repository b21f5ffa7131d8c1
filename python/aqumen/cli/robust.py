"""`aqumen robust`: the gains of an AQM with the best worst case over ranges of networks."""

from __future__ import annotations

from typing import Any

import click

from aqumen import __version__
from aqumen._files import laid_out
from aqumen.cli import talk
from aqumen.cli.network import AXIS, designed, network_options, plain, span
from aqumen.cli.options import json_option
from aqumen.errors import ScenarioError
from aqumen.theory import Design, RobustAqm, RobustPi, robust_pi
from aqumen.theory import robust as robust_for
from aqumen.theory.loop import SCHEMA

__all__ = ["robust"]

RANGES = ("flows", "rtt", "capacity")
"""Quantities that a robust design has ranges of."""


@click.command()
@click.argument("aqm", metavar="SPEC", required=False)
@network_options
@click.option(
    "--over", multiple=True, metavar=AXIS, help="Range of flows, rtt or capacity: flows=15:200; may be repeated."
)
@click.option("--aim", default="speed", show_default=True, help="Objective: speed or noise.")
@click.option("--margin", type=float, default=0.5, show_default=True, help="Modulus margin to keep.")
@json_option
def robust(
    aqm: str | None,
    aqm_from: tuple[str, ...],
    over: tuple[str, ...],
    aim: str,
    margin: float,
    as_json: bool,
    **network: Any,
) -> int:
    """Find the gains of an AQM with the best worst case over ranges of networks.

    SPEC is pi, red, rem, paqm or arm-pfc. What has no range is as in the network.
    """
    if not over:
        raise ScenarioError(f"give --over {AXIS}, for instance --over flows=15:200")
    found = designed("robust", aqm, aqm_from, **network)
    spans = {name: (low, high) for name, low, high in (span(text, network) for text in over)}
    if unknown := [name for name in spans if name not in RANGES]:
        raise ScenarioError(f"--over {unknown[0]}: there are {', '.join(RANGES)}")
    best = _best(found, spans, aim, margin)
    if as_json:
        print(laid_out({"schema": SCHEMA, "aqumen": __version__, "aqm": found.aqm, **best.to_dict()}), end="")
        return 0
    table = talk.table(f"\nRobust design of {found.aqm}", ["", "value"])
    for name, value in best.to_dict().items():
        table.add_row(name, plain(value))
    talk.show(table)
    return 0


def _best(found: Design, spans: dict[str, tuple[float, float]], aim: str, margin: float) -> RobustPi | RobustAqm:
    flows, rtt_s, pps = (spans.get(name) for name in RANGES)
    if found.aqm == "pi":
        return robust_pi(found, flows=flows, rtt_s=rtt_s, capacity_pps=pps, aim=aim, modulus_margin=margin)
    return robust_for(design=found, flows=flows, rtt_s=rtt_s, capacity_pps=pps, aim=aim, modulus_margin=margin)
