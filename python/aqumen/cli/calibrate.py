"""`aqumen calibrate`: how many flows make a level of congestion."""

from __future__ import annotations

from pathlib import Path

import click

from aqumen._files import laid_out
from aqumen.cli import talk
from aqumen.cli.options import json_option, load, scenario_argument, set_option
from aqumen.errors import ScenarioError
from aqumen.explain import calibration
from aqumen.view import tables

__all__ = ["calibrate", "share"]


@click.command()
@scenario_argument
@click.option("--group", required=True, metavar="NAME", help="The flow group whose number is looked for.")
@click.option("--loss", required=True, metavar="SHARE", help="What is to be lost of the packets: 1%, or 0.01.")
@click.option("--aqm", default="droptail", show_default=True, metavar="SPEC", help="The AQM that loses them.")
@click.option("--seeds", type=int, default=3, show_default=True, metavar="N", help="Over how many seeds the mean is.")
@click.option("--window", default="steady", show_default=True, metavar="NAME", help="The window that counts.")
@set_option
@json_option
def calibrate(
    scenario: Path, group: str, loss: str, aqm: str, seeds: int, window: str, set_: tuple[str, ...], as_json: bool
) -> int:
    """Find how many flows make a level of congestion: DropTail loses 1 %.

    The fewest flows of a group with which the link under test loses the share asked for: RFC 7928 names its levels of
    congestion so.
    """
    found = calibration.calibrate(load(scenario, set_), group, share(loss), aqm=aqm, seeds=seeds, window=window)
    if as_json:
        print(laid_out(found.to_dict()), end="")
        return 0
    made = talk.table("", ["flows", "lost\n%"])
    for trial in found.trials:
        made.add_row(str(trial.flows), tables.number(trial.loss_ratio * 100, 3))
    talk.show(f"{found.flows} flows of {group}: with them {aqm} loses {found.loss_ratio:.3g} or more", made)
    return 0


def share(text: str) -> float:
    """A share as a person writes it: `1%` or `0.01`.

    Args:
        text: What was written.
    """
    plain = text.strip()
    try:
        return float(plain.removesuffix("%")) / 100 if plain.endswith("%") else float(plain)
    except ValueError:
        raise ScenarioError(f'--loss {text}: write a share, such as "1%" or "0.01"') from None
