"""`aqumen break`: search networks in which an AQM does worse than a reference, and write the smallest as files."""

from __future__ import annotations

import re
import shlex
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aqumen import __version__
from aqumen._files import laid_out, write_text
from aqumen.cli import complete, talk
from aqumen.cli.interrupt import first_interrupt
from aqumen.cli.options import OUT, PATH, custom_classes, custom_option, json_option
from aqumen.errors import Cancelled, OutputError, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aqumen.metrics import Summary
    from aqumen.search.breaking import Failure, Progress, Search
    from aqumen.search.criteria import Criterion
    from aqumen.search.networks import Space

__all__ = ["break_"]

SCHEMA = 1
"""Version of the JSON; it grows when a key is removed or changes its meaning."""


@click.command("break")
@click.argument("aqm", shell_complete=complete.specs)
@click.option(
    "--against",
    default="droptail",
    show_default=True,
    shell_complete=complete.specs,
    metavar="SPEC",
    help="Reference: a network is a failure where the AQM does worse than this one.",
)
@click.option(
    "--over",
    type=PATH,
    metavar="STUDY.toml",
    help="Study whose scenarios and factors are searched; default: one bottleneck with flows, RTT, rate, buffer, "
    "traffic and events.",
)
@click.option(
    "--metric",
    metavar="METRIC",
    help="Metric in which to do worse, such as sojourn_p99_s; default: oscillation, empty queue, unfairness, overflow.",
)
@click.option("--by", metavar="X", help="Least excess with --metric: 10%, or a number; default: 25%, of ratios 0.05.")
@click.option("--runs", type=click.IntRange(2), metavar="N", help="Most runs; default: as many as the budget allows.")
@click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="CPU time of all runs, as estimated before them.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, metavar="N", help="Seed of the search.")
@click.option(
    "--out", type=OUT, default="broken", show_default=True, metavar="DIR", help="Folder of the scenarios found."
)
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Concurrent runs; default: the cores.")
@custom_option
@json_option
def break_(aqm: str, out: Path, as_json: bool, **given: Any) -> int:
    """Search networks in which an AQM does worse than a reference.

    What is found is made as small as it goes, with fresh seeds at each step, and written as a scenario file that
    `run` and `compare` repeat.
    """
    from aqumen.search.breaking import Search
    from aqumen.study.executors import Threads

    space, criteria = _space(given["over"], given["aqm_from"]), _criteria(given["metric"], given["by"])
    if out.exists() and not out.is_dir():
        raise OutputError(f"--out {out}: not a folder")
    written: dict[str, tuple[Failure, Path, str]] = {}
    with talk.progress() as bar, first_interrupt() as stopped:
        task = bar.add_task("breaking", total=1.0, done="")

        def advance(now: Progress) -> bool:
            said = f"{now.doing}, {now.networks} networks, {len(written)} failures"
            bar.update(task, completed=now.done, done=said)
            return not stopped.is_set()

        search = Search(
            space,
            aqm,
            given["against"],
            criteria,
            budget_s=given["budget"],
            runs_max=given["runs"],
            seed=given["seed"],
            on=Threads(given["threads"]),
            on_progress=advance,
        )

        def keep(failure: Failure) -> None:
            written[failure.criterion.name] = (failure, *_write(failure, search, out))

        try:
            search.all(keep)
        except (KeyboardInterrupt, Cancelled):
            talk.say(f"stopped; {len(written)} failures are complete")
    if as_json:
        print(laid_out(_json(search, written)), end="")
    else:
        _show(search, written, given["aqm_from"])
    return talk.INTERRUPTED if stopped.is_set() else 0


def _space(over: Path | None, aqm_from: tuple[str, ...]) -> Space:
    from aqumen.search.networks import dumbbells, of_study
    from aqumen.study.definition import Definition

    if over is None:
        return dumbbells(custom_classes(aqm_from))
    study = Definition.load(over)
    try:
        return of_study(replace(study, aqm_from=(*study.aqm_from, *aqm_from)))
    except ScenarioError as error:
        raise ScenarioError(f"{over}: {error}") from None


def _criteria(metric: str | None, by: str | None) -> Sequence[Criterion]:
    from aqumen.search.criteria import CAUSES, of_metric
    from aqumen.search.objectives import Objective

    if metric is None:
        if by is not None:
            raise ScenarioError("--by needs --metric; the four causes have least excesses of their own")
        return CAUSES
    try:
        objective = Objective.read(metric)
    except ScenarioError as error:
        raise ScenarioError(f"--metric {error}") from None
    try:
        return [of_metric(objective, by)]
    except ScenarioError as error:
        raise ScenarioError(f"--by {error}") from None


def _write(failure: Failure, search: Search, out: Path) -> tuple[Path, str]:
    """Write the scenario of a failure with its cause. Returns the file and the cause."""
    from aqumen.search.causes import paragraph

    aqm, reference = search.specs
    cause = paragraph(failure.scenario, aqm, reference, failure.criterion, search.space.engine, failure.seeds[0])
    slug = re.sub(r"[^A-Za-z0-9]+", "-", failure.criterion.name).strip("-")
    path = out / f"{slug}.toml"
    head = [f"{aqm} against {reference}: {failure.criterion.name}. {_excess(failure)}", cause]
    comment = "\n#\n".join(
        textwrap.fill(text, 110, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False) for text in head
    )
    title = f"{aqm} against {reference}: {failure.criterion.name}"
    text = failure.scenario.set_all([("name", f"broken-{slug}"), ("title", title), ("aqm", aqm)]).to_toml()
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, contents in failure.scenario.core.files():
            # A file that the scenario names lies beside it.
            (out / Path(name).name).write_bytes(contents)
            text = text.replace(f'"{name}"', f'"{Path(name).name}"')
    except OSError as error:
        raise OutputError(f"cannot write to {out}: {error.strerror}") from None
    write_text(path, f"{comment}\n{text}")
    return path, cause


def _excess(failure: Failure) -> str:
    one = failure.criterion
    figure = one.figure if "_" in one.figure else one.figure[0].upper() + one.figure[1:]
    values = f"{_interval(failure.value)} in place of {_interval(failure.reference)}"
    return (
        f"{figure}: {values} (95 % intervals over {len(failure.seeds)} fresh seeds), worse by "
        f"{one.shown(failure.excess['mean'] or 0.0)}; a failure is worse by {one.shown(one.least)} in every seed."
    )


def _interval(of: Summary) -> str:
    half = "" if of["ci95"] is None else f" ± {(of['ci95'][1] - of['ci95'][0]) / 2:.2g}"
    return f"{of['mean']:.4g}{half}"


def _show(search: Search, written: dict[str, tuple[Failure, Path, str]], aqm_from: tuple[str, ...]) -> None:
    from aqumen.search.breaking import described

    aqm, reference = search.specs
    ran = sum(each is not None for each in search.networks.values())
    count = f"{len(written)} failure{'' if len(written) == 1 else 's'}"
    lines = [f"{aqm} against {reference}: {count} in {ran} networks, {search.spent_runs} runs"]
    missing = [each for each in search.criteria if each.name not in written]
    for each in missing:
        lines.append(
            f"Nothing found for {each.name}: nowhere is {aqm} worse by {each.shown(each.least)} in every fresh seed"
        )
    for name, (failure, path, cause) in written.items():
        command = ["aqumen", "compare", str(path), "--aqm", aqm, "--aqm", reference]
        command += [word for file in aqm_from for word in ("--aqm-from", file)]
        command += ["--seeds", f"{failure.seeds[0]}-{failure.seeds[-1]}"]
        lines += ["", f"{name[0].upper()}{name[1:]}: {path}"]
        for text in (f"Network: {described(failure.values)}.", _excess(failure), cause):
            lines.append(textwrap.fill(text, 120, break_on_hyphens=False))
        lines.append(f"Repeat: {shlex.join(command)}")
    print("\n".join(lines))


def _json(search: Search, written: dict[str, tuple[Failure, Path, str]]) -> dict[str, Any]:
    failures = [
        {
            "criterion": name,
            "figure": failure.criterion.figure,
            "least": failure.criterion.least,
            "relative": failure.criterion.relative,
            "values": failure.values,
            "found": failure.found,
            "aqm": failure.value,
            "reference": failure.reference,
            "excess": failure.excess,
            "seeds": list(failure.seeds),
            "cause": cause,
            "file": str(path),
        }
        for name, (failure, path, cause) in written.items()
    ]
    return {
        "schema": SCHEMA,
        "aqumen": __version__,
        "aqm": search.specs[0],
        "against": search.specs[1],
        "networks": sum(each is not None for each in search.networks.values()),
        "runs": search.spent_runs,
        "failures": failures,
        "nothing_found": [each.name for each in search.criteria if each.name not in written],
    }
