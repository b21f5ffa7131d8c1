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
    {"name": "cubic", "summary": "modern with CUBIC and HyStart++", "reference": "RFC 9438, RFC 9406"},
    {"name": "dctcp", "summary": "modern with DCTCP: reacts to the fraction of marks", "reference": "RFC 8257"},
    {
        "name": "prague",
        "summary": "modern with TCP Prague: ECT(1), counted marks, paced",
        "reference": "draft-briscoe-iccrg-prague-congestion-control-04",
    },
    {
        "name": "bbr",
        "summary": "modern with BBR version 1: a model of bandwidth and round trip, paced",
        "reference": "draft-cardwell-iccrg-bbr-congestion-control-00",
    },
    {"name": "vegas", "summary": "modern with Vegas: a few packets in the queue", "reference": "Brakmo, Peterson 1995"},
    {"name": "ledbat", "summary": "modern with LEDBAT: yields to others", "reference": "RFC 6817"},
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
