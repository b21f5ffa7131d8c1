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


# What a scenario's `transport` and `flows` accept today.
TRANSPORTS = [
    {
        "name": "modern",
        "summary": "TCP as today's RFCs describe it; variant reno, newreno or sack",
        "reference": "RFC 9293",
    },
    {"name": "ns2", "summary": "TCP as ns-2.35 does it, for cross-checks; the same variants", "reference": "ns-2.35"},
]
TRAFFIC = [
    {"name": "endless", "summary": "Transfers without end: a group of flows without `transfer`"},
    {"name": "transfer", "summary": 'Transfers of so many bytes: `transfer = "1MB"`'},
]
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
    heads = list(rows[0]) if kind is not Kind.aqms else ["name", "kind", "summary", "parameters"]
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
        talk.say("units, defaults and ranges of the parameters: aqumen list aqms --json")
    return 0


def _rows(kind: Kind) -> list[dict[str, Any]]:
    if kind is Kind.aqms:
        return list(json.loads(_core.list_aqms_json()))
    if kind is Kind.scenarios:
        rows = []
        for path in experiments():
            try:
                rows.append({"file": str(path), "title": Scenario.load(path).title})
            except ScenarioError as error:
                talk.say(f"left out: {error}")
        return rows
    return {Kind.transports: TRANSPORTS, Kind.traffic: TRAFFIC, Kind.papers: PAPERS}[kind]
