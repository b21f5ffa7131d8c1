"""`aqumen map`: stability and noise of a loop over two quantities of the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from aqumen import __version__
from aqumen._files import laid_out
from aqumen.cli import talk
from aqumen.cli.network import AXIS, designed, network_options, plain, span
from aqumen.cli.options import PATH, json_option
from aqumen.errors import OutputError, ScenarioError, listed
from aqumen.theory import StabilityMap, stability_map
from aqumen.theory.design import MODELS
from aqumen.theory.loop import SCHEMA
from aqumen.theory.maps import DESIGN_AXES, SHOWN

__all__ = ["map_"]

MAP_POINTS = 100
"""Points along each axis of a map."""
MAP_POINTS_MANY = 24
"""Points along each axis for senders whose windows are a distribution: each takes some ten milliseconds."""
COLUMNS = ("stable", "feasible", "noise_valid", *SHOWN, "phase_margin_deg", "modulus_margin")
"""Arrays of a map that `--json` prints."""


@click.command("map")
@click.argument("aqm", metavar="SPEC", required=False)
@network_options
@click.option(
    "--over",
    multiple=True,
    metavar=AXIS,
    help="Twice: the axes, of flows, rtt, capacity, target, gain and rtt_estimate, capacity_estimate, flows_estimate "
    "(estimate over value, of an AQM that measures): flows=10:400, rtt=50ms:600ms.",
)
@click.option("--plot", type=PATH, metavar="FILE", help="Plot the map into this file.")
@click.option("--show", default="gain_margin", show_default=True, help=f"Quantity to plot: {listed(SHOWN)}.")
@click.option("--cycles", is_flag=True, help="Also search coexisting limit cycles.")
@json_option
def map_(
    aqm: str | None,
    aqm_from: tuple[str, ...],
    over: tuple[str, ...],
    plot: Path | None,
    show: str,
    cycles: bool,
    as_json: bool,
    **network: Any,
) -> int:
    """Map the stability and noise of an AQM's loop over two quantities of the network.

    The controller is the one designed for the network; SPEC is optional if --aqm-from names a single AQM.
    """
    if len(over) != 2:
        raise ScenarioError(f"a map has two axes: give --over {AXIS} twice")
    if show not in SHOWN:
        raise ScenarioError(f"unknown quantity `{show}` of a map; choose from: {listed(SHOWN)}")
    found = designed("map", aqm, aqm_from, **network)
    axes = [span(axis, network) for axis in over]
    if unknown := [name for name, *_ in axes if name not in DESIGN_AXES]:
        raise ScenarioError(f"--over {unknown[0]}: there are {listed(DESIGN_AXES)}")
    (x, *x_ends), (y, *y_ends) = axes
    points = MAP_POINTS if network["sender"] in (*MODELS, "ns2") else MAP_POINTS_MANY
    across, up = (np.geomspace(low, high, points) for low, high in (x_ends, y_ends))
    made = stability_map(found, x, across, y, up, cycles=cycles)
    if plot is not None:
        figure = made.plot(show)
        try:
            figure.savefig(plot)
        except (OSError, ValueError) as error:
            raise OutputError(f"cannot write {plot}: {error}") from None
        talk.say(f"wrote {plot}")
    if as_json:
        print(laid_out(_data(made)), end="")
    else:
        _show(made)
        for warning in found.warnings:
            talk.say(f"warning: {warning}")
    return 0


def _data(made: StabilityMap) -> dict[str, Any]:
    """Return a map for `--json`: axes, and arrays of shape (y, x)."""
    cycles = ("coexisting_std_pkts", "coexisting_period_s", "supercritical")
    columns = {name: getattr(made, name) for name in (*COLUMNS, *cycles)}
    # JSON has no NaN: null where a quantity is undefined.
    rows = {name: [[None if x != x else x for x in row] for row in column.tolist()] for name, column in columns.items()}
    ends = {side: {"name": name, "values": values.tolist()} for side, (name, values) in (("x", made.x), ("y", made.y))}
    return {"schema": SCHEMA, "aqumen": __version__, "aqm": made.aqm, **ends, **rows}


def _show(made: StabilityMap) -> None:
    """Show how much of a map is stable, and its noise there."""
    table = talk.table(f"\n{made.aqm} over {made.x[0]} and {made.y[0]}", ["", "of the map", "least", "largest"])
    for name in ("feasible", "stable", "noise_valid"):
        table.add_row(name, f"{getattr(made, name).mean():.1%}", "", "")
    for name in SHOWN:
        known = getattr(made, name)[made.stable & ~np.isnan(getattr(made, name))]
        ends = [plain(float(end)) for end in (known.min(), known.max())] if known.size else ["–", "–"]
        table.add_row(name, f"{known.size / made.stable.size:.1%}", *ends)
    talk.show(table)
