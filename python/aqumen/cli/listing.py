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
from aqumen.experiments import PAPERS, experiments
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

# What a person is shown; all else is in the JSON.
HEADS = {
    Kind.aqms: ["name", "kind", "summary", "parameters"],
    Kind.scenarios: ["name", "title", "duration", "aqm"],
}


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
    heads = HEADS.get(kind, list(rows[0]))
    made = talk.table("", heads, numbers=False)
    for column in made.columns[1:]:
        column.no_wrap = False
    for row in rows:
        cells = {**row, "parameters": ", ".join(each["name"] for each in row.get("params", []))}
        made.add_row(*(str(cells.get(head) or "") for head in heads))
    talk.show(made)
    if kind is Kind.scenarios:
        talk.say("run one by its name: aqumen run arm-pfc/exp1")
    if kind is Kind.aqms:
        talk.say("units, defaults and ranges of the parameters: aqumen list aqms --json")
    return 0


def _rows(kind: Kind) -> list[dict[str, Any]]:
    if kind is Kind.aqms:
        return list(json.loads(_core.list_aqms_json()))
    if kind is Kind.scenarios:
        return _scenarios()
    if kind is Kind.papers:
        return [{"name": name, "summary": summary} for name, summary in PAPERS.items()]
    return {Kind.transports: TRANSPORTS, Kind.traffic: TRAFFIC}[kind]


def _scenarios() -> list[dict[str, Any]]:
    """The experiments that can be read; the others are told of."""
    rows = []
    for experiment in experiments():
        try:
            Scenario.parse(experiment.text, str(experiment.file or experiment.name))
        except ScenarioError as error:
            talk.say(f"left out: {error}")
            continue
        rows.append(experiment.row())
    return rows
