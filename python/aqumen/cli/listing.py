"""`aqumen list`: what there is."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from aqumen import _core
from aqumen.cli import talk
from aqumen.cli.options import JsonOption
from aqumen.errors import ScenarioError
from aqumen.experiments import experiments
from aqumen.scenario import Scenario

__all__ = ["list_things"]

SCHEMA = 1


class Kind(StrEnum):
    """What can be listed."""

    aqms = "aqms"
    transports = "transports"
    traffic = "traffic"
    papers = "papers"
    scenarios = "scenarios"


PAPERS = [{"name": "arm-pfc", "summary": "ARM-PFC, an optimized AQM congestion controller in TCP/IP networks (2007)"}]


def list_things(
    kind: Annotated[Kind, typer.Argument(metavar="aqms|transports|traffic|papers|scenarios", show_default=False)],
    as_json: JsonOption = False,
) -> int:
    """List AQMs, transports, traffic, papers or scenarios."""
    rows = _rows(kind)
    if as_json:
        print(json.dumps({"schema": SCHEMA, kind.value: rows}, indent=2))
        return 0
    if not rows:
        talk.say(f"no {kind.value} here yet")
        return 0
    heads = list(rows[0]) if "params" not in rows[0] else ["name", "kind", "summary", "parameters"]
    made = talk.table("", heads, numbers=False)
    for column in made.columns[1:]:
        column.no_wrap = False
    for row in rows:
        cells = {**row, "parameters": ", ".join(each["name"] for each in row.get("params", []))}
        made.add_row(*(str(cells.get(head) or "") for head in heads))
    talk.show(made)
    if kind is Kind.aqms:
        common = next((row["common_params"] for row in rows if row["common_params"]), [])
        talk.say(f"every AQM of one queue also takes: {', '.join(each['name'] for each in common)}")
    if "params" in rows[0]:
        talk.say(f"units, defaults and meaning of the parameters: aqumen list {kind.value} --json")
    return 0


def _rows(kind: Kind) -> list[dict[str, Any]]:
    of_core = {
        Kind.aqms: _core.list_aqms_json,
        Kind.transports: _core.list_transports_json,
        Kind.traffic: _core.list_traffic_json,
    }
    if kind in of_core:
        return list(json.loads(of_core[kind]()))
    if kind is Kind.scenarios:
        rows = []
        for path in experiments():
            try:
                rows.append({"file": str(path), "title": Scenario.load(path).title})
            except ScenarioError as error:
                talk.say(f"left out: {error}")
        return rows
    return PAPERS
