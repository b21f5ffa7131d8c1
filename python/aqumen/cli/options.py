"""Arguments and options that several commands share."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aqumen import _core
from aqumen.cli import complete
from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario
from aqumen.view.export import FORMATS

if TYPE_CHECKING:
    from aqumen.custom import CustomClass

__all__ = [
    "OUT",
    "PATH",
    "TARGET",
    "aqms_option",
    "custom_classes",
    "custom_option",
    "engine_option",
    "engines_option",
    "factors_of",
    "figures_option",
    "flent_option",
    "force_option",
    "format_option",
    "json_option",
    "load",
    "named_too",
    "out_option",
    "pairs_of",
    "scenario_argument",
    "seeds_option",
    "series_option",
    "set_option",
    "spec_list",
    "sweep_option",
    "target_option",
    "theory_option",
    "traffic_option",
    "until_option",
    "wide_option",
]

PATH = click.Path(path_type=Path)


class _Folder(click.Path):
    """A folder to write into: created if missing; a file is an error."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.is_file() or path.suffix in _FILES:
            raise ScenarioError(f"--out {value}: must be a folder; the command names the files in it")
        return path


_FILES = {".csv", ".html", ".json", ".md", ".npz", ".parquet", ".pcap", ".pcapng", ".svg", ".tex", ".toml"}
"""Suffixes of files that older versions took for `--out`."""


class _Target(click.ParamType[str]):
    """A target queue: packets, or the delay at the link's rate; both with a unit. The text is kept."""

    name = "length"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        kind = "packets" if value.endswith("pkt") else "time"
        try:
            if _core.quantity(kind, value) > 0 and value.endswith(("pkt", "s")):
                return value
        except _core.ScenarioError:
            pass
        raise ScenarioError(f"--target {value}: must be packets or a time, above 0 and with a unit: 50pkt or 20ms")


OUT = _Folder(path_type=Path)
TARGET = _Target()

scenario_argument = click.argument("scenario", type=PATH, shell_complete=complete.scenarios)
engine_option = click.option(
    "--engine",
    shell_complete=complete.engines,
    default="packet",
    show_default=True,
    metavar="ENGINE",
    help="packet, fluid (or fluid:hollot, :ecn, :reno, :drop), theory, live, ns2 or ns3.",
)
engines_option = click.option(
    "--engine",
    shell_complete=complete.engines,
    multiple=True,
    metavar="ENGINE",
    help="As for run, default packet; repeat it to compare several engines with the first.",
)
set_option = click.option(
    "--set",
    "set_",
    multiple=True,
    shell_complete=complete.keys,
    metavar="KEY=VALUE",
    help="Change a value of the scenario; may be repeated.",
)


sweep_option = click.option(
    "--sweep",
    multiple=True,
    shell_complete=complete.keys,
    metavar="KEY=VALUES",
    help="Values of a key or of an AQM's parameter, such as flows.ftp.count=10,50 or pi:target=20pkt,50pkt; may be "
    "repeated.",
)


def _seeds(_context: click.Context, _option: click.Parameter, given: str) -> list[int] | int:
    """Parse `--seeds`: a number, a range or a list."""
    if re.fullmatch(r"-?\d+", given):
        return int(given)
    from aqumen.study.definition import seeds_of

    try:
        return seeds_of(given)
    except ScenarioError as error:
        raise ScenarioError(f"--seeds {error}") from None


seeds_option = click.option(
    "--seeds",
    default="20",
    show_default=True,
    callback=_seeds,
    metavar="N",
    help="Number of seeds (1 to N), a range 11-20, or a list 1,2,7.",
)


def aqms_option(more: str = "") -> Callable[[Any], Any]:
    """Option `--aqm` of a command that takes several AQMs.

    Args:
        more: Text to add to its help.
    """
    return click.option(
        "--aqm",
        multiple=True,
        shell_complete=complete.specs,
        metavar="SPEC",
        help=f"AQMs: codel, or codel,pie:target=5ms; may be repeated.{more}",
    )


custom_option = click.option(
    "--aqm-from",
    multiple=True,
    metavar="FILE:CLASS",
    help="A custom AQM: a class in a Python file, such as my_aqm.py:MyPi, named my-pi in a SPEC; may be repeated.",
)
traffic_option = click.option(
    "--traffic-from",
    multiple=True,
    metavar="FILE:CLASS",
    help="A custom traffic source: a class in a Python file, such as my_source.py:MySource. The scenario refers to it "
    "by name: --set flows.GROUP.traffic=my-source. May be repeated.",
)
until_option = click.option(
    "--until", metavar="TIME", help="Stop at this simulated time; later events, windows and flows are left out."
)
target_option = click.option(
    "--target",
    type=TARGET,
    metavar="LENGTH",
    help="Target queue of the AQMs and of the ranking: packets (50pkt), or its delay (20ms).",
)
wide_option = click.option("--wide", is_flag=True, help="Print every column, even beyond the terminal's width.")
out_option = click.option("--out", type=OUT, metavar="DIR", help="Output folder.")
force_option = click.option("--force", is_flag=True, help="Run even if it is estimated to take hours.")
theory_option = click.option(
    "--theory", is_flag=True, help="Also predict stability margins and oscillations (may take seconds)."
)
flent_option = click.option(
    "--flent",
    type=PATH,
    metavar="DIR",
    help="Write each run for Flent into this folder, as .flent.gz; reruns each simulation.",
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    help="Format of the tables on standard output.",
)
figures_option = click.option(
    "--figures", type=PATH, metavar="DIR", help="Write figures into this folder as SVG, PDF and PNG."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def series_option(default: str, kept: str) -> Callable[[Any], Any]:
    """Option `--series`: which series and distributions the runs in an output folder keep.

    Args:
        default: Value without the option.
        kept: What is kept, for its help.
    """
    return click.option(
        "--series", type=click.Choice(("none", "sampled", "all")), default=default, show_default=True, help=kept
    )


def custom_classes(aqms: Sequence[str], traffic: Sequence[str] = ()) -> list[CustomClass]:
    """Load the classes of `--aqm-from` and `--traffic-from`.

    Args:
        aqms: AQMs, each as FILE:CLASS.
        traffic: Traffic sources, each as FILE:CLASS.
    """
    if not aqms and not traffic:
        return []
    from aqumen.custom import from_file

    sources = [from_file(file, traffic=True) for file in dict.fromkeys(traffic)]
    return [*(from_file(file) for file in dict.fromkeys(aqms)), *sources]


def named_too(specs: Sequence[str], custom: Sequence[CustomClass]) -> list[str]:
    """Return the SPECs, followed by the names of custom AQMs that no SPEC mentions.

    Args:
        specs: SPECs of `--aqm`.
        custom: Custom AQMs and traffic sources.
    """
    if not custom:
        return list(specs)
    from aqumen.custom import is_aqm, name_of

    given = {spec.partition(":")[0].strip() for spec in specs}
    return [*specs, *(name for name in map(name_of, filter(is_aqm, custom)) if name not in given)]


def load(
    path: Path,
    changes: Sequence[str],
    until: str | None = None,
    target: str | None = None,
    custom: Sequence[CustomClass] = (),
) -> Scenario:
    """Load a scenario file and apply `--set`, `--target` and `--until`.

    Args:
        path: The file.
        changes: Changes, each as KEY=VALUE.
        until: Simulated time at which to stop, with a unit; `None` keeps the scenario's duration.
        target: Target queue in packets, or its delay at the nominal capacity; `None` keeps the scenario's.
        custom: Custom AQMs that the scenario may use and custom traffic sources that it must use.
    """
    scenario = Scenario.load(path, custom)
    pairs = pairs_of("--set", changes)
    if target is not None:
        pairs.append(("nominal.target", "1pkt" if (timed := target.endswith("s")) else target))
    if pairs:
        try:
            scenario = scenario.set_all(pairs)
        except ScenarioError as error:
            for key, value in pairs if "unknown key" in str(error) else ():
                if near := " or ".join(each for each in scenario.keys if each.endswith(f".{key}")):
                    raise ScenarioError(f"--set {key}={value}: no such key; did you mean {near}?") from None
            raise
    if target is not None and timed:
        from aqumen.theory.design import nominal_network

        known = scenario.plan()["nominal"]
        bits, size = known["capacity_bps"], known["packet_bytes"]
        pkts = nominal_network(capacity=bits, flows=1, rtt=1, packet=size, target=target)["target_pkts"]
        scenario = scenario.set_all([("nominal.target", f"{pkts!r}pkt")])
    _check_sources(scenario, custom)
    if until is None:
        return scenario
    if re.fullmatch(r"[\d.]+", until):
        raise ScenarioError(f"--until {until}: needs a unit: {until}s for seconds, or {until}ms")
    return scenario.until(until)


def pairs_of(option: str, changes: Sequence[str]) -> list[tuple[str, str]]:
    """Split the values of `--set` or `--sweep` into keys and values.

    Args:
        option: Name of the option, for messages.
        changes: Each as KEY=VALUE.
    """
    pairs = []
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not key.strip():
            example = "duration=20s" if option == "--set" else "flows.ftp.count=10,50,100"
            raise ScenarioError(f"{option} {change}: write it as KEY=VALUE, for instance {option} {example}")
        pairs.append((key.strip(), value.strip()))
    return pairs


def factors_of(sweeps: Sequence[str]) -> dict[str, list[str | int | float]]:
    """Return the factors of `--sweep`, numbers as numbers.

    Args:
        sweeps: Each as KEY=VALUE,VALUE,...
    """
    factors: dict[str, list[str | int | float]] = {}
    for key, values in pairs_of("--sweep", sweeps):
        if key in factors:
            raise ScenarioError(f"--sweep {key}: is given twice; join the values by commas")
        factors[key] = [_number(value.strip()) for value in values.split(",")]
    return factors


def _number(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _check_sources(scenario: Scenario, custom: Sequence[CustomClass]) -> None:
    """Raise `ScenarioError` for a custom traffic source that no flow group uses."""
    if not custom:
        return
    from aqumen.custom import is_aqm, name_of

    for name in (name_of(each) for each in custom if not is_aqm(each)):
        if name not in scenario.custom_traffic.values():
            import tomllib

            groups = [group["name"] for group in tomllib.loads(scenario.to_toml())["flows"]]
            say = f"--set flows.{groups[0]}.traffic={name}"
            raise ScenarioError(f"--traffic-from: no flow group has traffic = {name}; add {say}")


def spec_list(given: Sequence[str]) -> list[str]:
    """Split the values of `--aqm`; one may hold several SPECs: `codel,pie:target=5ms,tupdate=15ms,fq-codel`.

    Args:
        given: The value of each `--aqm`.
    """
    specs: list[str] = []
    for text in given:
        begins = True
        for piece in text.split(","):
            # In a parameter `=` comes before any `:`; any other piece begins a new SPEC.
            name, equals, _ = piece.partition("=")
            if begins or not equals or ":" in name:
                specs.append(piece.strip())
            else:
                specs[-1] += f",{piece}"
            begins = False
    return specs
