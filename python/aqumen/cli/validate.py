"""`aqumen validate`: do our numbers agree with those of others?"""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated

import typer

from aqumen.cli import talk
from aqumen.cli.options import JsonOption
from aqumen.errors import EngineError

__all__ = ["validate"]


class Yardstick(str, Enum):
    """What can be compared with."""

    ns2 = "ns2"
    ns3 = "ns3"
    vectors = "vectors"
    live = "live"


def validate(
    yardstick: Annotated[Yardstick, typer.Argument(metavar="ns2|vectors", show_default=False)],
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Seeds a side: 1 to N.")] = 20,
    as_json: JsonOption = False,
) -> int:
    """Compare the packet engine with ns-2. The exit code is 1 where a figure is outside its bound."""
    if yardstick is not Yardstick.ns2:
        raise EngineError(f"`validate {yardstick.value}` is not built yet; `validate ns2` is")
    raise EngineError("`validate ns2` is not built yet")
    talk.say(json.dumps([seeds, as_json]))
