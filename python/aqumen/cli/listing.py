"""`aqumen list`: AQMs, transports, traffic sources, papers and scenarios."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

import click

from aqumen import _core
from aqumen._experiments import FORMER, PAPERS, Experiment, experiments
from aqumen._files import laid_out
from aqumen.cli import talk
from aqumen.cli.options import json_option
from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario

__all__ = ["list_things"]

SCHEMA = 1


class Kind(StrEnum):
    """Names of the lists."""

    aqms = "aqms"
    transports = "transports"
    traffic = "traffic"
    papers = "papers"
    scenarios = "scenarios"


# Columns of the tables; `--json` prints everything.
HEADS = {
    Kind.aqms: ["name", "kind", "summary", "parameters"],
    # Presets of one protocol have equal parameters, listed once below.
    Kind.transports: ["name", "kind", "summary"],
    Kind.traffic: ["name", "kind", "summary", "parameters"],
    Kind.scenarios: ["name", "title", "duration", "aqm"],
}


@click.command()
@click.argument("kind", type=click.Choice(Kind), metavar="|".join(Kind))
@json_option
def list_things(
    kind: Kind,
    as_json: bool,
) -> int:
    """List AQMs, transports, traffic, papers or scenarios."""
    rows = _rows(kind)
    if as_json:
        print(laid_out({"schema": SCHEMA, kind.value: rows}), end="")
        return 0
    if not rows:
        talk.say(f"no {kind.value} found")
        return 0
    heads = HEADS.get(kind, list(rows[0]))
    made = talk.table("", heads, figures=False)
    for row in rows:
        cells = {**row, "parameters": _parameters(row)}
        made.add_row(*(str(cells.get(head) or "") for head in heads))
    talk.show(made)
    if kind is Kind.transports:
        by_protocol = talk.table("Parameters", ["kind", "parameters"], figures=False)
        for protocol, parameters in {row["kind"]: _parameters(row) for row in rows}.items():
            by_protocol.add_row(protocol, parameters)
        talk.show(by_protocol)
    if kind is Kind.scenarios:
        talk.say("run a scenario: aqumen run arm-pfc/exp1; run one cell of a sweep: aqumen run paqm/load@n7")
        talk.say("cells and variants: aqumen list scenarios --json")
        former = ", ".join(f"{old} is {new}" for old, new in FORMER.items())
        talk.say(f"former names that still work: {former}")
    if kind is Kind.aqms:
        common: list[dict[str, Any]] = next((row["common_params"] for row in rows if row["common_params"]), [])
        talk.say(f"every single-queue AQM also takes: {', '.join(each['name'] for each in common)}")
    if "params" in rows[0]:
        talk.say(f"units, defaults and descriptions of the parameters: aqumen list {kind.value} --json")
    return 0


def _parameters(row: dict[str, Any]) -> str:
    return ", ".join(each["name"] for each in row.get("params", []))


def _rows(kind: Kind) -> list[dict[str, Any]]:
    of_core = {
        Kind.aqms: _core.list_aqms,
        Kind.transports: _core.list_transports,
        Kind.traffic: _core.list_traffic,
    }
    if kind in of_core:
        return of_core[kind]()
    if kind is Kind.scenarios:
        return _scenarios()
    return [{"name": name, "summary": summary} for name, summary in PAPERS.items()]


def _scenarios() -> list[dict[str, Any]]:
    """List the experiments; one that cannot be parsed is skipped with a message."""
    rows = []
    for experiment in sorted(experiments(), key=_by_number):
        try:
            scenario = Scenario.parse(experiment.text, str(experiment.file or experiment.name))
        except ScenarioError as error:
            talk.say(f"skipped: {error}")
            continue
        formerly = {old: new for old, new in FORMER.items() if new.partition("@")[0] == experiment.name}
        cells = {"cells": scenario.cells, "variants": scenario.variants, "formerly": formerly}
        rows.append({**experiment.row(), **cells})
    return rows


def _by_number(experiment: Experiment) -> list[str | int]:
    """Sort key with numbers in numeric order: `n7` before `n10`."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", experiment.name)]
