"""`aqumen robust`: the gains of an AQM with the best worst case over ranges of networks, or over identified plants."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from aqumen import __version__
from aqumen._files import laid_out
from aqumen.cli import talk
from aqumen.cli.network import AXIS, designed, given, network_options, plain, span
from aqumen.cli.options import custom_classes, json_option, load
from aqumen.custom import CustomClass
from aqumen.errors import ScenarioError
from aqumen.identification import Plant, identify
from aqumen.theory import Design, RobustAqm, RobustOverPlants, RobustPi, robust_pi
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
@click.option(
    "--plant",
    "plant_",
    multiple=True,
    metavar="FILE|SCENARIO",
    help="Identified plant in place of a network: a .json file of Plant.save, or a scenario to identify; "
    "may be repeated.",
)
@click.option("--aim", default="speed", show_default=True, help="Objective: speed or noise.")
@click.option("--margin", type=float, default=0.5, show_default=True, help="Modulus margin to keep.")
@json_option
def robust(
    aqm: str | None,
    aqm_from: tuple[str, ...],
    over: tuple[str, ...],
    plant_: tuple[str, ...],
    aim: str,
    margin: float,
    as_json: bool,
    **network: Any,
) -> int:
    """Find the gains of an AQM with the best worst case over ranges of networks, or over identified plants.

    SPEC is pi, red, rem, paqm or arm-pfc. What has no range is as in the network. Over plants there is no red, whose
    queue moves with its gains.
    """
    if plant_:
        return _over_plants(aqm, plant_, custom_classes(aqm_from), aim, margin, as_json)
    if not over:
        raise ScenarioError(f"give --over {AXIS}, for instance --over flows=15:200, or --plant FILE")
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
    for warning in found.warnings:
        talk.say(f"warning: {warning}")
    return 0


def _best(found: Design, spans: dict[str, tuple[float, float]], aim: str, margin: float) -> RobustPi | RobustAqm:
    flows, rtt_s, pps = (spans.get(name) for name in RANGES)
    if found.aqm == "pi":
        return robust_pi(found, flows=flows, rtt_s=rtt_s, capacity_pps=pps, aim=aim, modulus_margin=margin)
    return robust_for(design=found, flows=flows, rtt_s=rtt_s, capacity_pps=pps, aim=aim, modulus_margin=margin)


EXCLUDED = ("over", "capacity", "flows", "rtt", "target", "packet", "sender")
"""Options of a network, which plants exclude."""


def _over_plants(
    aqm: str | None, names: tuple[str, ...], custom: Sequence[CustomClass], aim: str, margin: float, as_json: bool
) -> int:
    """Design over identified plants."""
    if unused := given(EXCLUDED):
        raise ScenarioError(f"{unused[0]} does not go with --plant: the plants are the networks")
    if aqm is None:
        raise ScenarioError("name one AQM: aqumen robust SPEC --plant FILE")
    with talk.progress() as bar:
        task = bar.add_task("identifying", total=float(len(names)), done="")

        def plant(k: int, name: str) -> Plant:
            def told(done: float) -> bool:
                bar.update(task, completed=k + done, done=name)
                return True

            if name.endswith(".json"):
                return Plant.load(name, custom)
            return identify(load(Path(name), (), custom=custom), aqm, on_progress=told)

        plants = [plant(k, name) for k, name in enumerate(names)]
    best = robust_for(aqm, plants=plants, aim=aim, modulus_margin=margin)
    rows = [{"plant": name, **each} for name, each in zip(names, best.each, strict=True)]
    if as_json:
        data = {**best.to_dict(), "each": rows}
        print(laid_out({"schema": SCHEMA, "aqumen": __version__, **data}), end="")
        return 0
    _show_plants(best, rows)
    return 0


def _show_plants(best: RobustOverPlants, rows: list[dict[str, Any]]) -> None:
    """Print the design, and its margins around each plant."""
    table = talk.table(f"\nRobust design of {best.aqm}", ["", "value"])
    for name, value in best.to_dict().items():
        if name not in ("each", "warnings"):
            table.add_row(name, plain(value))
    talk.show(table)
    heads = ["plant", "modulus_margin", "gain_margin", "phase_margin_deg", "delay_margin_s", "crossover_rad_s"]
    beside = talk.table("\nMargins of each plant", heads)
    for row in rows:
        beside.add_row(*(plain(row[key]) for key in heads))
    talk.show(beside)
    for warning in best.warnings:
        talk.say(f"warning: {warning}")
