"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario

__all__ = [
    "EngineOption",
    "EnginesOption",
    "JsonOption",
    "OutOption",
    "ScenarioArgument",
    "SetOption",
    "UntilOption",
    "load",
]

ScenarioArgument = Annotated[
    Path,
    typer.Argument(
        metavar="SCENARIO", help="A scenario file, or the name of an experiment: arm-pfc/exp1.", show_default=False
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine", metavar="ENGINE", help="packet, fluid (or fluid:hollot, fluid:ecn, fluid:drop), theory, ns2 or ns3."
    ),
]
EnginesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="As for run; repeat it to set several engines beside the first. Without it packet.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the scenario; may be repeated."),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="TIME",
        help="Run only the beginning; later events, windows and flows are left out.",
        show_default=False,
    ),
]
OutOption = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder for all that is written.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def load(path: Path, changes: list[str] | None, until: str | None = None) -> Scenario:
    """The scenario of a file with the changes of `--set`, and only its beginning with `--until`.

    Args:
        path: The file.
        changes: Each as KEY=VALUE.
        until: When it ends, if not at its own end.
    """
    scenario = Scenario.load(path)
    pairs = []
    for change in changes or []:
        key, equals, value = change.partition("=")
        if not equals or not key.strip():
            raise ScenarioError(f"--set {change}: write it as KEY=VALUE, for instance --set duration=20s")
        pairs.append((key.strip(), value.strip()))
    if pairs:
        scenario = scenario.set_all(pairs)
    return scenario if until is None else scenario.until(until)
