"""`aqumen calibrate`: number of flows at which a queue loses a given fraction of packets."""

from __future__ import annotations

from pathlib import Path

import click

from aqumen._files import laid_out
from aqumen.cli import talk
from aqumen.cli.options import json_option, load, scenario_argument, set_option
from aqumen.errors import ScenarioError
from aqumen.explain import calibration
from aqumen.view import tables

__all__ = ["calibrate", "fraction"]


@click.command()
@scenario_argument
@click.option("--group", required=True, metavar="NAME", help="Flow group to vary.")
@click.option("--loss", required=True, metavar="SHARE", help="Fraction of packets to lose: 1% or 0.01.")
@click.option("--aqm", default="droptail", show_default=True, metavar="SPEC", help="AQM of the link under test.")
@click.option("--seeds", type=int, default=3, show_default=True, metavar="N", help="Number of seeds to average over.")
@click.option("--window", default="steady", show_default=True, metavar="NAME", help="Window of the measurement.")
@set_option
@json_option
def calibrate(
    scenario: Path, group: str, loss: str, aqm: str, seeds: int, window: str, set_: tuple[str, ...], as_json: bool
) -> int:
    """Find the number of flows at which a queue loses a given fraction.

    Prints the smallest number of flows of a group at which the link under test loses at least this fraction: the
    congestion levels of RFC 7928, section 5.1.
    """
    found = calibration.calibrate(load(scenario, set_), group, fraction(loss), aqm=aqm, seeds=seeds, window=window)
    if as_json:
        print(laid_out(found.to_dict()), end="")
        return 0
    made = talk.table("", ["flows", "lost\n%"])
    for trial in found.trials:
        made.add_row(str(trial.flows), tables.number(trial.loss_ratio * 100, 3))
    talk.show(f"{found.flows} flows of {group}: the fewest at which {aqm} loses {found.loss_ratio:.3g} or more", made)
    return 0


def fraction(text: str) -> float:
    """Parse a fraction: `1%` or `0.01`.

    Args:
        text: The value of `--loss`.
    """
    plain = text.strip()
    try:
        return float(plain.removesuffix("%")) / 100 if plain.endswith("%") else float(plain)
    except ValueError:
        raise ScenarioError(f'--loss {text}: must be a fraction, such as "1%" or "0.01"') from None
